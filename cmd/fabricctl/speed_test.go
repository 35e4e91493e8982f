package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

// rendered loads, resolves, lints and renders a model: what each device would hold.
func rendered(text []byte) ([][]byte, error) {
	wrong := func(l diag.List) error {
		for _, f := range l {
			if f.Severity == diag.Error {
				return errors.New(f.String())
			}
		}
		return nil
	}
	f, l := model.Load(fstest.MapFS{"m.yaml": {Data: text}}, "m.yaml")
	if err := wrong(l); err != nil {
		return nil, err
	}
	net, l := intent.Resolve(f)
	l.Add(lint.Check(net, f)...)
	out := make([][]byte, len(net.Devices))
	var shared render.Shared
	for i := range net.Devices {
		d := &net.Devices[i]
		dialect := render.ByOS(d.OS())
		c, more := shared.Render(dialect, d, render.Facts{})
		l.Add(more...)
		out[i] = dialect.Text(c)
	}
	return out, wrong(l)
}

// The yardstick writes the bytes that fabricctl writes.
func TestYardstick(t *testing.T) {
	text := writtenOut(2)
	want, err := rendered(text)
	if err != nil {
		t.Fatal(err)
	}
	in, err := sheets(want)
	if err != nil {
		t.Fatal(err)
	}
	nodes, got, err := yardstick(text, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 3 || len(want) != 16+2+64 || !slices.EqualFunc(want, got, bytes.Equal) {
		t.Errorf("%d documents, %d renderings, and other bytes", len(nodes), len(want))
	}
}

// BenchmarkWrittenOut is for profiles; TestSpeed makes the table.
func BenchmarkWrittenOut(b *testing.B) {
	text := writtenOut(128)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rendered(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply is for profiles; TestSpeed makes the table.
func BenchmarkApply(b *testing.B) {
	m := newSpeedBench(b)
	var clock, cpu pairs
	for n := 0; b.Loop(); n++ {
		ours, bare := m.change(b, n)
		clock.add(ours.wall, bare.wall)
		cpu.add(ours.cpu, bare.cpu)
	}
	for unit, p := range map[string]pairs{"": clock, "cpu-": cpu} {
		b.ReportMetric(median(p.a).Seconds()*1000, "ours-"+unit+"ms")
		b.ReportMetric(median(p.b).Seconds()*1000, "gnmic-"+unit+"ms")
		b.ReportMetric(p.ratios()[len(p.a)/2], unit+"ratio")
	}
}

// newSpeedBench is 200 emulated switches that hold the model.
func newSpeedBench(t testing.TB) *bench {
	t.Helper()
	b := newBench(t, manySwitches("800KB"))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	return b
}

// change times the apply of a plan that changes one value on every switch, and the same calls in bare gnmic code.
func (b *bench) change(t testing.TB, n int) (ours, bare spent) {
	t.Helper()
	b.write(t, "fabric.yaml", manySwitches([]string{"900KB", "800KB"}[n%2]))
	plan := filepath.Join(b.dir, "plan.json")
	b.must(t, exitOK, "plan", "--out", plan)
	ours = spend(t, func() { b.must(t, exitOK, "apply", plan) })
	return ours, spend(t, func() { bareChange(t, b, "850000") })
}

// spent is the time that something took: by the clock, and of the processors, which is not lengthened by what others
// do on the machine.
type spent struct{ wall, cpu time.Duration }

func spend(t testing.TB, f func()) spent {
	t.Helper()
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	start, used := time.Now(), cpu()
	f()
	return spent{time.Since(start), cpu() - used}
}

// speedChild is one measured process: it loads and renders the model in a file, or does what the yardstick does.
func speedChild() {
	var r child
	err := func() error {
		text, err := os.ReadFile(os.Args[2])
		if err != nil {
			return err
		}
		var out [][]byte
		if os.Args[1] == "yardstick" {
			b, err := os.ReadFile(os.Args[2] + ".sheets")
			if err != nil {
				return err
			}
			var in []sheet
			if err := json.Unmarshal(b, &in); err != nil {
				return err
			}
			b = nil
			runtime.GC()
			start := time.Now()
			nodes, o, err := yardstick(text, in)
			r.Time, out = time.Since(start), o
			runtime.KeepAlive(nodes)
			if err != nil {
				return err
			}
		} else {
			start := time.Now()
			if out, err = rendered(text); err != nil {
				return err
			}
			r.Time = time.Since(start)
		}
		for _, o := range out {
			r.Out += len(o)
		}
		return nil
	}()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is what a measured process says, and what the system says of it.
type child struct {
	Time time.Duration // of the work, without the start
	Out  int           // bytes rendered
	wall time.Duration // of the process
	peak int64         // of its memory, in bytes
}

func measure(t testing.TB, name string, args ...string) child {
	t.Helper()
	c := exec.Command(name, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, os.Stderr
	start := time.Now()
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	r := child{wall: time.Since(start)}
	if b := out.Bytes(); bytes.HasPrefix(b, []byte("{")) {
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
	}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = u.Maxrss << 10
	}
	return r
}

// pairs is the measurements of two things, taken in turn, so that a machine that others use too slows both.
type pairs struct{ a, b []time.Duration }

func (p *pairs) add(a, b time.Duration) { p.a, p.b = append(p.a, a), append(p.b, b) }

// ratios is those of the pairs, sorted.
func (p *pairs) ratios() []float64 {
	r := make([]float64, len(p.a))
	for i := range p.a {
		r[i] = float64(p.a[i]) / float64(p.b[i])
	}
	slices.Sort(r)
	return r
}

// String is the medians, and the median and the span of the ratios of the pairs: cells of a table.
func (p *pairs) String() string {
	ratios := p.ratios()
	n := len(ratios)
	return fmt.Sprintf("%s | %s | **%.2f** (%.2f to %.2f)", ms(median(p.a)), ms(median(p.b)), ratios[n/2], ratios[0], ratios[n-1])
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.4g ms", float64(d.Microseconds())/1000) }

// speedMark is where the table begins in the file that it is written to.
const speedMark = "<!-- make bench writes what follows -->\n"

// TestSpeed measures, and writes the table into the file that FABRICCTL_SPEED names. It fails for what is wrong, never
// for what is slow.
func TestSpeed(t *testing.T) {
	path := os.Getenv("FABRICCTL_SPEED")
	if path == "" {
		t.Skip("FABRICCTL_SPEED names no file for the table; make bench does")
	}
	var table strings.Builder
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&table, "Commit %s, %s, %s/%s, %d processors.\n\n", bytes.TrimSpace(commit), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	speedOfWrittenOut(t, &table)
	speedOfApply(t, &table)
	speedOfStart(t, &table)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), speedMark)
	if !found {
		t.Fatalf("%s does not say where the table goes: %q", path, speedMark)
	}
	if err := os.WriteFile(path, []byte(head+speedMark+"\n"+strings.TrimSpace(table.String())+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func speedOfWrittenOut(t *testing.T, table *strings.Builder) {
	table.WriteString("| every device, port and link listed | read | rendered | fabricctl | yaml.v3 and encoding/json | ratio | peak memory |\n|---|---|---|---|---|---|---|\n")
	for _, size := range []int{1, 2, 4} {
		text := writtenOut(128 * size)
		out, err := rendered(text)
		if err != nil {
			t.Fatal(err)
		}
		in, err := sheets(out)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "written.yaml")
		if err := errors.Join(os.WriteFile(path, text, 0o600), os.WriteFile(path+".sheets", b, 0o600)); err != nil {
			t.Fatal(err)
		}
		var p pairs
		var peak int64
		for range 5 {
			ours, base := measure(t, "speed", "fabricctl", path), measure(t, "speed", "yardstick", path)
			if ours.Out != base.Out {
				t.Fatalf("%d bytes against %d", ours.Out, base.Out)
			}
			p.add(ours.Time, base.Time)
			peak = max(peak, ours.peak)
		}
		n := 0
		for _, o := range out {
			n += len(o)
		}
		fmt.Fprintf(table, "| %dx: 16 spines, %d leaves, %d hosts | %.1f MB | %.1f MB | %s | %d MB |\n",
			size, 128*size, 4096*size, float64(len(text))/1e6, float64(n)/1e6, &p, peak/1e6)
	}
	table.WriteString("\n")
}

func speedOfApply(t *testing.T, table *strings.Builder) {
	b := newSpeedBench(t)
	b.change(t, 0) // both are warm afterwards
	var clock, cpu pairs
	for n := range 7 {
		ours, bare := b.change(t, n+1)
		clock.add(ours.wall, bare.wall)
		cpu.add(ours.cpu, bare.cpu)
	}
	fmt.Fprintf(table, "| one change on 200 switches, 8 at a time | fabricctl apply plan.json | bare gnmic | ratio |\n|---|---|---|---|\n| dial, 3 Gets, Set, dial, Get each: by the clock | %s |\n| time of the processors, the switches' included | %s |\n\n", &clock, &cpu)
}

func speedOfStart(t *testing.T, table *strings.Builder) {
	dir := t.TempDir()
	for _, what := range []string{".", "./testdata/hello"} {
		c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/", what)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	var p pairs
	for range 21 {
		p.add(measure(t, filepath.Join(dir, "fabricctl"), "version").wall, measure(t, filepath.Join(dir, "hello"), "version").wall)
	}
	fmt.Fprintf(table, "| start | fabricctl version | hello-world on cobra | ratio |\n|---|---|---|---|\n| the whole process | %s |\n", &p)
}
