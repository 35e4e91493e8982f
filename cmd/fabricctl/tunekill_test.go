package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// tunedQuartet is quartet with something that may be moved on a SONiC switch, an EOS switch and hosts.
var tunedQuartet = strings.Replace(quartet, "netdevs: [rdma0]", "netdevs: [rdma0], nic: connectx-7", 1) + "hosts: {congestion: {parameters: {ai_rate: 20Mbps}}}\n"

// tunes is a short experiment that writes all three.
func tunes(verb ...string) []string {
	return append(verb, "--yes", "--persist-trials", "--runner", "lab", "--workload", "incast:3,class=training,for=200us,warmup=50us + probe,class=training",
		"--looks", "2,1,2", "--confirm", "4", "--max-runs", "24", "--rounds", "1", "--variables", "cc.ai_rate,kmax", "--parallel", "1")
}

// often is one of how many points is tried: usually, or with FABRICCTL_FULL=1.
func often(usually, full int) int {
	if os.Getenv("FABRICCTL_FULL") != "" {
		return full
	}
	return usually
}

// experiments are the ids of all experiments, oldest first.
func (b *bench) experiments(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "state", "tune", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".jsonl")
	}
	return files
}

var rollbackHint = regexp.MustCompile(`(?m)^hint: fabricctl (runs rollback \S+)`)

// TestKillTune ends the real program with SIGKILL at failpoints of an experiment: before and after each fsync and each device write.
// From what it leaves behind, the next experiment, a resume, or the command that plan names must end in exactly the baseline.
func TestKillTune(t *testing.T) {
	program := asProgram(t)
	b := applied(t, tunedQuartet)
	old := b.config(t)
	hit, inForce := map[string]int{}, map[string]int{}
	ways := []string{"run", "rollback", "resume"}
	all, deaths := 0, 0
	for n := 1; ; n += often(43, 7) {
		before := len(b.experiments(t))
		point, died := b.until(t, program, n, tunes("tune", "run")...)
		if !died {
			all = n - 1
			break
		}
		hit[point]++
		if b.config(t) != old {
			inForce[point]++
		}
		way := ways[deaths%len(ways)]
		deaths++
		t.Run(fmt.Sprint(n, " ", point, " ", way), func(t *testing.T) {
			ids := b.experiments(t)
			switch {
			case way == "resume" && len(ids) > before:
				if r := b.call(t, "tune", "resume", ids[len(ids)-1], "--yes"); r.code != exitOK && !strings.Contains(r.err, "died before it was written down") {
					t.Errorf("%s", r)
				}
			case way == "rollback":
				r := b.call(t, "plan")
				hint := rollbackHint.FindStringSubmatch(strings.ReplaceAll(r.err, "\n  ", " "))
				if hint == nil && b.config(t) != old {
					t.Fatalf("plan says nothing of the trial that is in force: %s", r)
				}
				if hint != nil {
					b.must(t, exitOK, strings.Fields(hint[1])...)
				}
			}
			if way != "run" {
				b.same(t, old, "after "+way)
			}
			b.must(t, exitOK, tunes("tune", "run", "--max-runs", "10")...) // restores first what is left; ends by its budget
			b.same(t, old, "after the next experiment")
			if r := b.must(t, exitOK, "plan", "--detailed-exitcode"); strings.Contains(r.err, "experiment") {
				t.Errorf("%s", r)
			}
		})
	}
	for _, p := range slices.Sorted(maps.Keys(hit)) {
		t.Logf("%-24s %3d deaths, %3d with a trial in force", p, hit[p], inForce[p])
	}
	t.Logf("about %d points", all)
	if len(inForce) == 0 {
		t.Error("no death left a trial in force")
	}
}

// trouble is what happens to an experiment at a moment.
type trouble struct {
	name string
	do   func(b *bench, gates map[string]*gate, stop context.CancelFunc)
	mend func(gates map[string]*gate)
}

// off cuts a device off, and restarts it meanwhile.
func off(device string) trouble {
	return trouble{"power-off of " + device, func(b *bench, gates map[string]*gate, _ context.CancelFunc) {
		gates[device].set(true)
		switch x := b.lab.Box(device).(type) {
		case *eos.Switch:
			x.Reload()
		case *sonic.Switch:
			x.Reboot()
		case *host.Host:
			x.Disconnect()
		}
	}, open}
}

func open(gates map[string]*gate) {
	for _, g := range gates {
		g.set(false)
	}
}

func troubles() []trouble {
	cut := func(device string) trouble {
		return trouble{"no way to " + device, func(_ *bench, gates map[string]*gate, _ context.CancelFunc) { gates[device].set(true) }, open}
	}
	return []trouble{
		{"interrupt", func(_ *bench, _ map[string]*gate, stop context.CancelFunc) { stop() }, open},
		{"all connections cut, once", func(_ *bench, gates map[string]*gate, _ context.CancelFunc) {
			for _, g := range gates {
				g.set(true)
				g.set(false)
			}
		}, open},
		cut("leaf1"), cut("spine1"), cut("host1"), cut("host3"), off("leaf1"), off("spine1"), off("host2"),
	}
}

// meets runs a command in this process and makes trouble at its n-th failpoint. point is "" when there are less.
func (b *bench) meets(t *testing.T, n int, make func(stop context.CancelFunc), args []string) (r result, point string) {
	t.Helper()
	var out, errs bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sys := quiet()
	sys.out, sys.err = &show.Screen{To: &out}, &show.Screen{To: &errs}
	a := &app{sys: sys, log: slog.New(slog.DiscardHandler), wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	seen := newCounter()
	a.points = func(name string) {
		if seen.next() == n {
			point = name
			make(stop)
		}
	}
	root := a.root()
	root.SetArgs(b.args(args...))
	root.SetOut(sys.out)
	root.SetErr(sys.err)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	a.printError(ctx, err, code)
	return result{code, out.String(), errs.String()}, point
}

// counter counts calls of several goroutines.
type counter chan int

func newCounter() counter {
	c := make(counter, 1)
	c <- 0
	return c
}

func (c counter) next() int {
	n := <-c + 1
	c <- n
	return n
}

var rollbackCommand = regexp.MustCompile(`fabricctl runs rollback (\S+)`)

// TestKillTuneTrouble: Ctrl-C, a cut cable and a device that loses its power, at failpoints of an experiment: the baseline is back, or
// the run says that hands are needed, and the command that it names brings it back once the device is there again.
func TestKillTuneTrouble(t *testing.T) {
	b := applied(t, tunedQuartet)
	gates := b.gated(t)
	old := b.config(t)
	for i, x := range troubles() {
		if often(2, 1) > 1 && i%2 > 0 {
			continue // with FABRICCTL_FULL=1
		}
		t.Run(x.name, func(t *testing.T) {
			codes, all := map[int]int{}, 0
			for n := 1 + 37*i; ; n += often(173, 37) {
				r, point := b.meets(t, n, func(stop context.CancelFunc) { x.do(b, gates, stop) }, tunes("tune", "run"))
				x.mend(gates)
				if point == "" {
					if r.code != exitOK {
						t.Errorf("without trouble: %s", r)
					}
					break
				}
				all++
				codes[r.code]++
				said := strings.ReplaceAll(r.err, "\n  ", " ")
				switch again := rollbackCommand.FindStringSubmatch(said); {
				case r.code == exitNeedsHands && again != nil:
					b.must(t, exitOK, "runs", "rollback", again[1])
				case r.code == exitNeedsHands && strings.Contains(said, "fabricctl apply -f"):
					b.must(t, exitOK, "apply", "--yes")
				case r.code == exitNeedsHands:
					t.Errorf("%d %s: no command to go on with: %s", n, point, r)
				}
				if now := b.config(t); now != old {
					b.same(t, old, fmt.Sprint(n, " ", point, ": exit ", r.code, "\n", r.err))
					b.must(t, exitOK, tunes("tune", "run", "--max-runs", "10")...)
				}
				if x.name == "interrupt" && r.code != exitInterrupted && r.code != exitOK {
					t.Errorf("%d %s: %s", n, point, r)
				}
			}
			t.Logf("%d moments; exit codes %v", all, codes)
		})
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}

// TestKillTuneSignals: SIGINT, SIGTERM and SIGHUP, of a terminal that is closed, to the real program while a setting is applied, measured, and
// taken back.
func TestKillTuneSignals(t *testing.T) {
	program := asProgram(t)
	b := applied(t, tunedQuartet)
	old := b.config(t)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // where these tests run under nohup, the program is not to
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		for line, nth := range map[string]int{"commit timer": 2, "abort": 2, "show running-config": 9} {
			var out bytes.Buffer
			c := exec.Command(program, b.args(tunes("tune", "run")...)...)
			c.Stdout, c.Stderr = &out, &out
			count := newCounter()
			leaf.SetFaults(eos.Faults{OnLine: func(l string) {
				if strings.Contains(l, line) && count.next() == nth {
					_ = c.Process.Signal(s)
				}
			}})
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			leaf.SetFaults(eos.Faults{})
			if code := c.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(out.String(), "the baseline") {
				t.Errorf("%v at %q: exit %d, %v\n%s", s, line, code, err, &out)
			}
			b.same(t, old, fmt.Sprint(s, " at ", strconv.Quote(line)))
		}
	}
}
