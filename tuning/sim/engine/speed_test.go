package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// speedCase is a load that the engine's speed is told by. Must and aim are delivered packets in a second of processor time.
type speedCase struct {
	name      string
	must, aim float64
	config    func() *engine.Config
}

func speedCases() []speedCase {
	const long = 1 << 40
	return []speedCase{
		{"9 hosts, 8:1", 2.5e6, 4e6, func() *engine.Config { return busy(1, 9, 0).incast(8, 200_000_000).Config }},
		{"9 hosts, 8:1, 10 ms (must: 0.06 CPU-s, aim: 0.03)", 0, 0, func() *engine.Config {
			c := busy(1, 9, 0).incast(8, long).Config
			c.Stop = 10 * engine.Millisecond
			return c
		}},
		{"33 hosts, 32:1", 2e6, 3.5e6, func() *engine.Config { return busy(1, 33, 0).incast(32, 40_000_000).Config }},
		{"9 hosts, 8:1, 10,000 QPs", 0, 0, func() *engine.Config { return busy(1, 9, 0).incast(10_000, 200_000).Config }},
		{"128 hosts, permutation", 6e5, 1.5e6, func() *engine.Config { return busy(8, 16, 8).permutation(8_000_000).Config }},
		{"128 hosts, all-to-all (16,256 QPs)", 6e5, 1.5e6, func() *engine.Config { return busy(8, 16, 8).allToAll(60_000).Config }},
		{"512 hosts, permutation", 3.5e5, 7e5, func() *engine.Config { return busy(32, 16, 8).permutation(2_000_000).Config }},
		{"512 hosts, all-to-all (261,632 QPs)", 0, 0, func() *engine.Config { return busy(32, 16, 8).allToAll(4_000).Config }},
		{"1,024 hosts, permutation", 2e5, 4e5, func() *engine.Config { return busy(32, 32, 16).permutation(1_000_000).Config }},
	}
}

// loaded is a two-tier fabric, or a star, with all that a fabric in use has switched on: PFC with reaction time and refreshed quanta, its watchdog,
// two pools, ECN, notifications of their own class, DCQCN with timers and byte counter, retransmission.
type loaded struct {
	*engine.Config
	hosts int
}

// busy has leaves with so many hosts each at 100G, and spines at 200G above them.
func busy(leaves, perLeaf, spines int) *loaded {
	c := &loaded{hosts: leaves * perLeaf, Config: &engine.Config{
		Seed: 1, Overhead: onWire, Stop: engine.Second,
		Transport: engine.Transport{
			AckSize: 64, CNPSize: 64, PauseSize: 64, Header: 48, AckEvery: 1, RTO: 4 * engine.Millisecond, NackGap: 500 * engine.Microsecond,
		},
	}}
	link := func(a, b int, rate int64) {
		for _, sw := range []int{a, b} {
			c.Ports = append(c.Ports, busyPort(sw, len(c.Ports)^1, rate))
		}
	}
	for l := range leaves {
		for range perLeaf {
			link(l, engine.None, 100e9)
			c.NICs = append(c.NICs, engine.NIC{
				Port: len(c.Ports) - 1, Address: uint32(len(c.NICs) + 1), CNPMark: markCNP, CNPClass: prioCNP, CNPGap: 4 * engine.Microsecond,
				React: engine.Reaction{
					On: true, AlphaTimer: engine.Microsecond, CutTimer: 4 * engine.Microsecond, RateTimer: 300 * engine.Microsecond, ByteCounter: 10 << 20,
					FastRecovery: 1, G: 1.0 / 256, AI: 20e6, HAI: 200e6, MinRate: 1e9,
				},
			})
		}
		for s := range spines {
			link(l, leaves+s, 200e9)
		}
	}
	const buffer = 32 << 20
	left := make([]int64, leaves+spines)
	for i := range left {
		left[i] = buffer
	}
	for i := range c.Ports {
		if p := &c.Ports[i]; p.Switch != engine.None {
			left[p.Switch] -= p.Groups[prioLossless].Headroom + p.Groups[prioLossless].Reserved
		}
	}
	for i, size := range left {
		c.Switches = append(c.Switches, engine.Switch{Buffer: buffer, HashSeed: uint32(i + 1), Pools: []engine.Pool{{Size: size * 3 / 4}, {Size: size / 4}}})
	}
	return c
}

func busyPort(sw, peer int, rate int64) engine.Port {
	p := engine.Port{Switch: sw, Peer: peer, Rate: rate, Delay: engine.Microsecond, MTU: 9216, Reaction: 500 * engine.Nanosecond, Quanta: 65535}
	for q := range p.Queues {
		p.Obeys[q] = 1 << q
		p.Queues[q].Weight, p.Queues[q].Pool, p.Queues[q].Alpha = 9216, 1, 1<<16
		p.Classify[q] = engine.Class{Group: engine.None}
	}
	p.Classify[markLossless] = engine.Class{Group: prioLossless, Queue: prioLossless}
	p.Classify[markLossy] = engine.Class{Group: prioLossy, Queue: prioLossy}
	p.Classify[markCNP] = engine.Class{Group: prioCNP, Queue: prioCNP}
	p.Queues[prioCNP].Strict = true
	scale := rate / 100e9
	p.Queues[prioLossless] = engine.Queue{Weight: 9216, Marks: true, Kmin: 400_000 * scale, Kmax: 1_600_000 * scale, Pmax: 0.2}
	if sw != engine.None {
		p.Groups[prioLossless] = engine.Group{Lossless: true, Reserved: 4096, Alpha: 1 << 13, Headroom: 75_000 * scale, XonOffset: 3072}
		p.Groups[prioLossy] = engine.Group{Pool: 1, Alpha: 1 << 16}
		p.Groups[prioCNP] = engine.Group{Pool: 1, Alpha: 1 << 16}
		p.Watchdog = engine.Watchdog{
			Action: engine.WatchdogDrop, Queues: 1 << prioLossless, Poll: 100 * engine.Millisecond, Detect: 200 * engine.Millisecond, Restore: 200 * engine.Millisecond,
		}
	}
	return p
}

func (c *loaded) flow(src, dst int, bytes int64) {
	c.Flows = append(c.Flows, engine.Flow{
		Src: src, Dst: dst, Bytes: bytes, After: engine.None, Mark: markLossless, Class: prioLossless, Payload: 1000, SourcePort: uint16(10_000 + len(c.Flows)%50_000),
	})
}

func (c *loaded) incast(flows int, bytes int64) *loaded {
	for i := range flows {
		c.flow(i%(c.hosts-1), c.hosts-1, bytes)
	}
	return c
}

func (c *loaded) permutation(bytes int64) *loaded {
	for i := range c.hosts {
		c.flow(i, (i+16)%c.hosts, bytes)
	}
	return c
}

func (c *loaded) allToAll(bytes int64) *loaded {
	for k := 1; k < c.hosts; k++ {
		for i := range c.hosts {
			c.flow(i, (i+k)%c.hosts, bytes)
		}
	}
	return c
}

// childRun is what a process that measures one thing says, and what the system says of it. Time is of the processor, in seconds.
type childRun struct {
	CPU, Wall       float64
	Simulated       float64 // seconds
	Packets, Events uint64
	GCs             uint32
	Mallocs, Bytes  uint64  // of the heap, by Run
	Rate            float64 // of a loop: rounds in a second of the processor
	peak            int64   // bytes of memory
}

// TestSpeedChild measures one thing in a process of its own. FABRICCTL_SIMSPEED_CHILD says what, and the file for the answer.
func TestSpeedChild(t *testing.T) {
	what, path, _ := strings.Cut(os.Getenv("FABRICCTL_SIMSPEED_CHILD"), "|")
	if path == "" {
		t.Skip("TestSpeed runs it")
	}
	var r childRun
	switch what {
	case "xorshift64":
		r.Rate = xorshift()
	case "pointer chase":
		r.Rate = chase()
	default:
		i := slices.IndexFunc(speedCases(), func(c speedCase) bool { return c.name == what })
		r = runCase(t, speedCases()[i])
	}
	b, err := json.Marshal(r)
	if err := errors.Join(err, os.WriteFile(path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Variables that name the file that a child writes a profile to.
const (
	profileTime   = "FABRICCTL_SIMSPEED_PROFILE"
	profileMemory = "FABRICCTL_SIMSPEED_MEMORY"
)

func runCase(t testing.TB, c speedCase) (r childRun) {
	config := c.config()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if path := os.Getenv(profileTime); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	if path := os.Getenv(profileMemory); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		runtime.MemProfileRate = 4096
		defer func() {
			runtime.GC() // the profile is of what was allocated until the last one
			if err := pprof.Lookup("allocs").WriteTo(f, 0); err != nil {
				t.Error(err)
			}
		}()
	}
	start, used := time.Now(), processor()
	res, err := engine.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	r.CPU, r.Wall = processor()-used, time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	r.Packets, r.Events, r.Simulated = res.Packets, res.Events, float64(res.At)/float64(engine.Second)
	r.GCs, r.Mallocs, r.Bytes = after.NumGC-before.NumGC, after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return r
}

// processor is the time that this process has had of the processors, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// xorshift is rounds of a loop that needs nothing but a processor.
func xorshift() float64 {
	const n = 100_000_000
	used, x := processor(), uint64(1)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x)
	return n / (processor() - used)
}

// chase is loads of a loop that waits for memory: each says where the next one is, anywhere in 64 MiB.
func chase() float64 {
	const n, loads = 16 << 20, 2_000_000
	next := make([]uint32, n)
	for i := range next { // one circle through all (Hull and Dobell 1962)
		next[i] = (uint32(i)*1_664_525 + 1_013_904_223) % n
	}
	used, at := processor(), uint32(0)
	for range loads {
		at = next[at]
	}
	runtime.KeepAlive(at)
	return loads / (processor() - used)
}

func child(t testing.TB, what string, env ...string) childRun {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answer")
	c := exec.Command(os.Args[0], "-test.run=^TestSpeedChild$")
	c.Env = append(os.Environ(), append(env, "FABRICCTL_SIMSPEED_CHILD="+what+"|"+path)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", what, err, out)
		return childRun{}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r childRun
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = u.Maxrss << 10
	}
	return r
}

// The xorshift64 loop on the machine that the notes' figures are of, with nothing else to do.
const quietXorshift = 637e6

// TestSpeed measures, and writes the tables into the page that FABRICCTL_SIMSPEED names. It fails for what is wrong, never for what is slow.
func TestSpeed(t *testing.T) {
	path := os.Getenv("FABRICCTL_SIMSPEED")
	if path == "" {
		t.Skip("FABRICCTL_SIMSPEED names no file for the tables; make bench does")
	}
	var out strings.Builder
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "Commit %s, %s, %s/%s, %d processors%s.\n\n", bytes.TrimSpace(commit), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), pressure())
	out.WriteString("| case | must | aim | packets/CPU-s | for a quiet machine | events/packet | ns/event | CPU-s | simulated | memory | GCs | allocations |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var loops, chases []float64
	for _, c := range speedCases() {
		var rates, quiet []float64
		var runs []childRun
		for range 3 {
			loop, hunt := child(t, "xorshift64").Rate, child(t, "pointer chase").Rate
			r := child(t, c.name)
			loops, chases = append(loops, loop), append(chases, hunt)
			rates = append(rates, float64(r.Packets)/r.CPU)
			quiet = append(quiet, float64(r.Packets)/r.CPU*quietXorshift/loop)
			runs = append(runs, r)
		}
		slices.SortFunc(runs, func(a, b childRun) int { return int((a.CPU - b.CPU) * 1e6) })
		r := runs[1]
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %.2f | %.1f | %.3f | %.2f ms | %.0f MB | %d | %d, %.1f MB |\n", c.name, thousands(c.must), thousands(c.aim), middle(rates), middle(quiet),
			float64(r.Events)/float64(r.Packets), r.CPU*1e9/float64(r.Events), r.CPU, r.Simulated*1e3, float64(r.peak)/1e6, r.GCs, r.Mallocs, float64(r.Bytes)/1e6)
	}
	fmt.Fprintf(&out, "\nBeside each run: xorshift64 %s million rounds per CPU-s, a pointer chase through 64 MiB %s million loads.\n\n", middleOf(loops, 1e6, "%.0f"), middleOf(chases, 1e6, "%.1f"))
	sideBySide(t, &out)
	profile(t, &out, profileTime, "function", "9 hosts, 8:1", "128 hosts, permutation")
	profile(t, &out, profileMemory, "memory that is allocated by", "128 hosts, permutation", "512 hosts, all-to-all (261,632 QPs)")
	if !t.Failed() {
		writePart(t, path, "make bench", out.String())
	}
}

// pressure is what others want of the processors, where the system says so.
func pressure() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(b), " ")
	return ", load " + minute + " before"
}

// sideBySide is two runs at once on two processors, by the time that they have of them: by the clock it would be what others leave.
func sideBySide(t *testing.T, out *strings.Builder) {
	out.WriteString("| two runs at once | one alone, packets/CPU-s | two, together, for a second of both processors | ratio |\n|---|---|---|---|\n")
	for _, name := range []string{"9 hosts, 8:1", "128 hosts, permutation"} {
		var alone, together, ratio []float64
		for range 3 {
			a := child(t, name)
			var both [2]childRun
			var wait sync.WaitGroup
			for i := range both {
				wait.Go(func() { both[i] = child(t, name) })
			}
			wait.Wait()
			one := float64(a.Packets) / a.CPU
			two := float64(both[0].Packets)/both[0].CPU + float64(both[1].Packets)/both[1].CPU
			alone, together, ratio = append(alone, one), append(together, two), append(ratio, two/one)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", name, middle(alone), middle(together), middleOf(ratio, 1, "%.2f"))
	}
	out.WriteString("\n")
}

// profile is where the time goes, or the memory: the functions in which the processor was found, or which allocate.
func profile(t *testing.T, out *strings.Builder, variable, what string, cases ...string) {
	for _, name := range cases {
		path := filepath.Join(t.TempDir(), "profile")
		child(t, name, variable+"="+path)
		args := []string{"tool", "pprof", "-top", "-nodecount=12", `-hide=asyncPreempt`}
		if variable == profileMemory { // of the run, without what makes its config
			args = append(args, `-focus=engine\.Run$`, "-relative_percentages")
		}
		top, err := exec.Command("go", append(args, os.Args[0], path)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, rows, _ := strings.Cut(string(top), "cum%\n")
		fmt.Fprintf(out, "| %s: %s | of itself | with what it calls |\n|---|---|---|\n", name, what)
		for line := range strings.Lines(rows) {
			if f := strings.Fields(line); len(f) > 5 {
				fmt.Fprintf(out, "| `%s` | %s | %s |\n", strings.TrimPrefix(strings.Join(f[5:], " "), "github.com/fabricctl/fabricctl/tuning/sim/"), f[1], f[4])
			}
		}
		out.WriteString("\n")
	}
}

// middle is the median of rates, with the least and the greatest.
func middle(v []float64) string {
	v = slices.Sorted(slices.Values(v))
	return fmt.Sprintf("**%s** (%s to %s)", thousands(v[len(v)/2]), thousands(v[0]), thousands(v[len(v)-1]))
}

func middleOf(v []float64, unit float64, format string) string {
	v = slices.Sorted(slices.Values(v))
	return fmt.Sprintf(format+" ("+format+" to "+format+")", v[len(v)/2]/unit, v[0]/unit, v[len(v)-1]/unit)
}

// thousands is a rate as 1,234,000, cut to thousands.
func thousands(v float64) string {
	if v == 0 {
		return ""
	}
	n := int64(v / 1000)
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d,000", n/1000, n%1000)
	}
	return fmt.Sprintf("%d,000", n)
}
