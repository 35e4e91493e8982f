package perftest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// onRXE is the head of an output of soft-RoCE.
var onRXE = strings.NewReplacer("mlx5_0", "rxe0").Replace(nic)

// gbLong is gbRow of 3 s.
var gbLong = strings.Replace(gbRow, "352136", "528204", 1)

// hosts are two hosts that are made up: "a", the client's, and "b". They take the commands of a Session and nothing else.
type hosts struct {
	t *testing.T

	mu      sync.Mutex
	pids    int
	running map[int]*program
	killed  []string // signals, as they came
	silent  bool     // nobody answers

	gid       int                              // index
	version   map[string]string                // by host
	without   string                           // program that is not installed
	listen    func(p *program) bool            // whether a server listens once it runs; nil = yes
	does      func(p *program) (Output, error) // what a client comes to; a server's answer is in serves
	serves    func(p *program) (Output, error) // what a server comes to once its client has ended
	stubborn  string                           // signal that nothing minds: "TERM", or all: "KILL"
	reused    bool                             // every number is another process's by now
	noise     string                           // what a login shell prints by itself
	commands  []string
	forgetful bool // starting a program fails, since the connection ends
}

// program is what runs on a host.
type program struct {
	host, argv string
	pid        int
	start      uint64
	server     bool
	gone       chan struct{} // closed when it was ended
	over       chan struct{} // closed when its own work is done
	out        Output
	err        error
}

func newHosts(t *testing.T) *hosts {
	h := &hosts{t: t, running: map[int]*program{}, gid: 3, version: map[string]string{"a": "6.06", "b": "6.06"}}
	h.does = func(p *program) (Output, error) { return Output{Stdout: []byte(onRXE + gbHead + gbLong)}, nil }
	h.serves = h.does
	return h
}

var (
	killing  = regexp.MustCompile(`^kill -s ([A-Z]+) (?:-- -\d+; kill -s [A-Z]+ )?(\d+)$`)
	statFile = regexp.MustCompile(`^cat /proc/sys/kernel/random/boot_id; cat /proc/(\d+)/stat$`)
	launched = regexp.MustCompile(`^exec sh -c '.*exec timeout -k 5 \d+ (.*)'$`)
)

func (h *hosts) stat(p *program) string {
	start := p.start
	if h.reused {
		start++
	}
	return fmt.Sprintf("%d (a) b (c) S 1 1 1 0 -1 4194304 100 0 0 0 1 1 0 0 20 0 1 0 %d 9000000 200\n", p.pid, start)
}

func (h *hosts) Run(ctx context.Context, host, command string) (Output, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent || ctx.Err() != nil {
		return Output{}, errors.New("the host is silent")
	}
	line, ok := strings.CutPrefix(command, "echo "+mark+"; ")
	if !ok {
		h.t.Errorf("a command without the mark: %s", command)
	}
	h.commands = append(h.commands, host+": "+line)
	say := func(s string) (Output, error) { return Output{Stdout: []byte(h.noise + mark + "\n" + s)}, nil }
	switch m := killing.FindStringSubmatch(line); {
	case m != nil:
		pid, _ := strconv.Atoi(m[2])
		h.killed = append(h.killed, m[1])
		if p := h.running[pid]; p != nil && h.stubborn != m[1] && h.stubborn != "KILL" {
			delete(h.running, pid)
			close(p.gone)
		}
		return say("")
	case strings.HasPrefix(line, "command -v "):
		var out string
		for c := range strings.SplitSeq(line, "; ") {
			if n := strings.TrimPrefix(c, "command -v "); n != h.without {
				out += "/usr/bin/" + n + "\n"
			}
		}
		return say(out)
	case strings.HasSuffix(line, " --version"):
		return say("Version: " + h.version[host] + "\n")
	case line == "ls /sys/class/infiniband":
		return say("rxe0\n")
	case strings.HasPrefix(line, "grep -rs . /sys/class/infiniband/rxe0/ports/1/gids"):
		at := fmt.Sprintf("/sys/class/infiniband/rxe0/ports/1/%%s/%d:%%s\n", h.gid)
		return say(fmt.Sprintf(at, "gids", "0000:0000:0000:0000:0000:ffff:0a00:000"+map[string]string{"a": "1", "b": "2"}[host]) +
			fmt.Sprintf(at, "gid_attrs/types", "RoCE v2") + fmt.Sprintf(at, "gid_attrs/ndevs", "eth0"))
	case line == "cat /proc/net/tcp /proc/net/tcp6":
		out := "  sl  local_address rem_address   st\n   0: 00000000:0016 00000000:0000 0A 0\n"
		for _, p := range h.running {
			if p.host == host && p.server && (h.listen == nil || h.listen(p)) {
				out += fmt.Sprintf("   1: 00000000:%04X 00000000:0000 0A 0\n   2: 0100007F:%04X 0100007F:1234 01 0\n", p.port(), p.port()+500)
			}
		}
		return say(out)
	}
	if m := statFile.FindStringSubmatch(line); m != nil {
		pid, _ := strconv.Atoi(m[1])
		out := "boot-" + host + "\n"
		if p := h.running[pid]; p != nil {
			out += h.stat(p)
		}
		return say(out)
	}
	h.t.Errorf("%s: an unknown command: %s", host, line)
	return Output{Status: 127}, nil
}

func (p *program) port() int {
	_, rest, _ := strings.Cut(p.argv, " -p ")
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n
}

func (h *hosts) Start(ctx context.Context, host, command string, head func(string) bool) (Running, error) {
	m := launched.FindStringSubmatch(command)
	if m == nil {
		h.t.Errorf("an unknown program: %s", command)
		return nil, errors.New("unknown")
	}
	h.mu.Lock()
	if h.forgetful {
		h.mu.Unlock()
		return nil, errors.New("the connection has ended")
	}
	h.pids++
	p := &program{host: host, argv: m[1], pid: 4000 + h.pids, start: uint64(70000 + h.pids), server: !strings.HasSuffix(m[1], " 10.0.0.2"), gone: make(chan struct{}), over: make(chan struct{})}
	h.running[p.pid] = p
	h.mu.Unlock()
	for _, line := range strings.SplitAfter(h.noise+mark+"\nboot-"+host+"\n"+h.stat(p), "\n") {
		if head(line) {
			break
		}
	}
	if !p.server {
		go func() {
			p.out, p.err = h.does(p)
			h.mu.Lock()
			var server *program
			for _, s := range h.running {
				if s.server && s.port() == p.port() {
					server = s
				}
			}
			h.mu.Unlock()
			if server != nil && p.out.Status == 0 && p.err == nil {
				server.out, server.err = h.serves(server)
				h.leave(server)
			}
			h.leave(p)
		}()
	}
	return waiting{ctx, p}, nil
}

// leave ends a program by itself.
func (h *hosts) leave(p *program) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[p.pid] == p {
		if p.err == nil { // who lost its connection goes on
			delete(h.running, p.pid)
		}
		close(p.over)
	}
}

type waiting struct {
	ctx context.Context
	p   *program
}

func (w waiting) Wait() (Output, error) {
	select {
	case <-w.p.over:
		return w.p.out, w.p.err
	case <-w.p.gone:
		return Output{Status: 143}, nil
	case <-w.ctx.Done():
		return Output{}, context.Cause(w.ctx)
	}
}

// idle fails the test when something is left.
func (h *hosts) idle() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.running {
		h.t.Errorf("%s still runs %s", p.host, p.argv)
	}
}

// session is a session on h that does not wait.
func (h *hosts) session(c Config) *Session {
	c.Exec = h
	c.Pause = func(ctx context.Context, _ time.Duration) error { runtime.Gosched(); return context.Cause(ctx) }
	return New(c)
}

// write is a plan of one test from a to b.
func write() *Plan {
	return &Plan{Duration: 3 * time.Second, Margin: time.Second, Pairs: []Pair{{
		Part: "single", Class: "training", Priority: 3,
		Client: End{Host: "a", Iface: "eth0", Address: netip.MustParseAddr("10.0.0.1")}, Server: End{Host: "b", Iface: "eth0", Address: netip.MustParseAddr("10.0.0.2")},
		Test: Test{Op: Write, Size: 64 * units.KiB, Duration: 3 * time.Second, Margin: time.Second, ToS: 104, AnyClock: true},
	}}}
}

// TestSessionOfRecordings runs each recording as if hosts had said it: the golden says what becomes of the run. Every process is gone after it.
func TestSessionOfRecordings(t *testing.T) {
	all := recordings(t)
	var b strings.Builder
	for _, n := range slices.SortedFunc(maps.Keys(all), func(a, b name) int { return strings.Compare(a.recording, b.recording) }) {
		client := all[n]
		if n.role != "client" {
			continue
		}
		server, served := all[name{n.recording, "server"}]
		r := client.parse(t)
		plan := write()
		p := &plan.Pairs[0]
		p.Test = commanded(client.Cmd, &r)
		p.AnyClock, p.Port = true, 0
		if p.Duration == 0 && p.Iterations == 0 {
			p.Iterations = 5000
		}
		p.Latency = p.Latency && p.Duration == 0
		if strings.Contains(client.Cmd, "_lat") && p.Duration > 0 {
			p.Latency = true
		}
		h := newHosts(t)
		h.gid = min(p.GID, mostGID)
		h.does = func(*program) (Output, error) {
			if client.ExitCode < 0 { // it never ended
				return Output{}, errors.New("the connection to it has ended")
			}
			return Output{Stdout: []byte(client.Stdout), Stderr: []byte(client.Stderr), Status: client.ExitCode}, nil
		}
		h.serves = func(*program) (Output, error) {
			return Output{Stdout: []byte(server.Stdout), Stderr: []byte(server.Stderr), Status: server.ExitCode}, nil
		}
		res, err := h.session(Config{Limits: soft, Instant: true}).Run(t.Context(), plan)
		switch {
		case err != nil:
			fmt.Fprintf(&b, "%s: error: %v\n", n.recording, err)
		case res.Rejected != nil:
			fmt.Fprintf(&b, "%s: rejected, %s: %s\n", n.recording, res.Rejected.Code, res.Rejected.Why)
		case res.Goodput != nil:
			fmt.Fprintf(&b, "%s: %.0f bit/s %q\n", n.recording, *res.Goodput, res.Notes)
		default:
			fmt.Fprintf(&b, "%s: p50 %v p99.9 %v %q\n", n.recording, res.P50, res.P999, res.Notes)
		}
		if err == nil && res.Rejected == nil && (client.ExitCode != 0 || served && server.ExitCode != 0) {
			t.Errorf("%s is used, and has ended with %d and %d", n.recording, client.ExitCode, server.ExitCode)
		}
		h.idle()
	}
	golden(t, "testdata/sessions.golden", b.String())
}

// A measurement that hangs is one that is rejected, whatever it takes to end it.
func TestHungMeasurement(t *testing.T) {
	for stubborn, each := range map[string][]string{"": {"TERM"}, "TERM": {"KILL", "TERM"}} {
		h := newHosts(t)
		h.stubborn = stubborn
		forever := make(chan struct{})
		t.Cleanup(func() { close(forever) })
		h.does = func(*program) (Output, error) { <-forever; return Output{}, nil }
		plan := write()
		s := h.session(Config{})
		s.o.Setup = 20*time.Millisecond - 5*time.Second // all in all
		res, err := s.Run(t.Context(), plan)
		if err != nil || res.Rejected == nil || res.Rejected.Code != NoEnd || !strings.Contains(res.Rejected.Why, "did not end within 20ms") {
			t.Errorf("%+v %v", res.Rejected, err)
		}
		want := slices.Repeat(each, h.pids) // on a slow machine the client may not have begun
		slices.Sort(h.killed)
		slices.Sort(want)
		if !slices.Equal(h.killed, want) {
			t.Errorf("signals %q, want %q", h.killed, want)
		}
		h.idle()
	}
}

// What no signal ends is left, and said: nobody hangs with it, and it is found at the next start. A number that is another's by then is left alone.
func TestLeftBehind(t *testing.T) {
	h := newHosts(t)
	h.stubborn = "KILL"
	h.does = func(*program) (Output, error) { return Output{}, errors.New("the connection to it has ended") }
	path := filepath.Join(t.TempDir(), "tune", "x.processes")
	o := journal.Options{Now: time.Now}
	l, left, err := OpenLedger(path, o)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	res, err := h.session(Config{Ledger: l}).Run(t.Context(), write())
	silent, ok := errors.AsType[*Silent](err)
	if !ok || len(res.Left) != 2 || !strings.Contains(err.Error(), "could not be ended: kill -9") || silent.Host != "a" {
		t.Fatalf("%v, left %v", err, res.Left)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l, left, err = OpenLedger(path, o)
	if err != nil || len(left) != 2 || left[0].Boot == "" || left[0].Start < 70000 {
		t.Fatalf("%+v %v %q %d", left, err, left[0].Boot, left[0].Start)
	}
	s := h.session(Config{Ledger: l})
	for _, said := range s.Leftovers(t.Context(), left) {
		if !strings.Contains(said, "may run still") || !strings.Contains(said, "run kill -9") {
			t.Error(said)
		}
	}
	h.reused, h.stubborn = true, ""
	before := len(h.killed)
	if said := s.Leftovers(t.Context(), left); len(said) != 0 || len(h.killed) != before || len(h.running) != 2 {
		t.Errorf("%q, %d signals, %d run", said, len(h.killed)-before, len(h.running))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, left, err = OpenLedger(path, o); err != nil || len(left) != 0 {
		t.Errorf("%+v %v", left, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// The end of the context ends what runs, and Run with it.
func TestInterrupted(t *testing.T) {
	h := newHosts(t)
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	h.does = func(*program) (Output, error) { cancel(); <-forever; return Output{}, nil }
	res, err := h.session(Config{}).Run(ctx, write())
	if !errors.Is(err, context.Canceled) || len(res.Left) > 0 {
		t.Errorf("%v %v", err, res.Left)
	}
	h.idle()
}

// Why a run is rejected, or cannot be begun.
func TestSessionFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(h *hosts, p *Plan)
		want string // of the error, or the code and the words of the rejection
	}{
		{"no tool", func(h *hosts, _ *Plan) { h.without = "ib_write_bw" }, "ib_write_bw is not installed"},
		{"versions", func(h *hosts, _ *Plan) { h.version["b"] = "5.6" }, "perftest is version 5.6 here, and 6.06 on others"},
		{"no gid", func(_ *hosts, p *Plan) { p.Pairs[0].Server.Address = netip.MustParseAddr("10.0.0.9") }, "b: no RDMA device has a GID of RoCE v2 for 10.0.0.9 on eth0"},
		{"silent", func(h *hosts, _ *Plan) { h.silent = true }, "the host is silent"},
		{"no start", func(h *hosts, _ *Plan) { h.forgetful = true }, "killed b, server of a: the connection has ended"},
		{"lost", func(h *hosts, _ *Plan) {
			h.does = func(*program) (Output, error) { return Output{}, errors.New("the connection to it has ended") }
		}, "killed a, client of b: the connection to it has ended"},
		{"server killed", func(h *hosts, _ *Plan) { h.serves = func(*program) (Output, error) { return Output{Status: 137}, nil } }, "killed b, server of a: it was killed"},
		{"never listens", func(h *hosts, _ *Plan) { h.listen = func(*program) bool { return false } }, "no-end b, server of a: it did not end within 20ms"},
		{"hostile", func(h *hosts, _ *Plan) {
			h.does = func(*program) (Output, error) {
				return Output{Stdout: []byte("\x1b]0;owned\x07\x00\xff RDMA_Write BW Test\n #bytes #iterations\n 1 99999999999999999999\n"), Stderr: []byte("Couldn't listen to port \x1b[2J"), Status: 1}, nil
			}
		}, "port-busy a, client of b: something listens on the port already"},
		{"other words", func(h *hosts, _ *Plan) { h.noise = "Welcome!\nib_write_bw: not found\n" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, plan := newHosts(t), write()
			tt.set(h, plan)
			s := h.session(Config{})
			if tt.name == "never listens" {
				s.o.Setup = 20*time.Millisecond - 5*time.Second
			}
			res, err := s.Run(t.Context(), plan)
			got := ""
			switch {
			case err != nil:
				got = err.Error()
			case res.Rejected != nil:
				got = string(res.Rejected.Code) + " " + res.Rejected.Why
			}
			if !strings.HasPrefix(got, tt.want) && !strings.Contains(got, ": "+tt.want) || strings.ContainsAny(got, "\x1b\x00\x07") || tt.want == "" && got != "" {
				t.Errorf("%q, want %q", got, tt.want)
			}
			h.idle()
		})
	}
}

// Counters say which class carried the bytes, and whether it was a host that limited them.
func TestCensus(t *testing.T) {
	type counters = map[string]map[observe.Port]uint64
	const gbits = 92.31e9 / 8 * 3 // bytes that gbRow has measured in 3 s
	sent := func(iface string, n observe.Name, priority int, v float64) map[observe.Port]uint64 {
		return map[observe.Port]uint64{{Iface: iface, Name: n.Of(priority)}: uint64(v), {Iface: iface, Name: n.Of(7 - priority)}: 1000}
	}
	for _, tt := range []struct {
		name  string
		after counters
		want  string // code and words
		note  string
	}{
		{"right", counters{"a": sent("eth0", observe.TxBytes, 3, 1.2*gbits)}, "", ""},
		{"wrong", counters{"a": sent("eth0", observe.TxBytes, 0, 1.2*gbits)}, "wrong-class a has counted 0B of a with priority 3, where DSCP 26 of class training belongs", ""},
		{"half", counters{"a": {{Iface: "eth0", Name: "tx.bytes.3"}: uint64(.5 * gbits), {Iface: "eth0", Name: "tx.bytes.5"}: uint64(.7 * gbits)}}, "wrong-class", ""},
		{"by the switch", counters{"leaf": sent("swp1", observe.RxBytes, 0, 1.2*gbits)}, "wrong-class leaf has counted", ""},
		{"right by the switch", counters{"leaf": sent("swp1", observe.RxBytes, 3, 1.2*gbits)}, "", ""},
		{"old", counters{"a": sent("eth0", observe.TxBytes, 3, 0)}, "", "the counters of a are older than the run"},
		{"nobody", counters{"a": {{Iface: "eth0", Name: "port.tx.bytes"}: 5}}, "", "neither it nor its switch counts by priority"},
		{"pauses", counters{"b": {{Iface: "eth0", Name: "pfc.pausing_ns.3"}: 500_000_000}}, "host b, which receives, was the bottleneck: it has stopped its switch for 10.0% of the time", ""},
		{"few pauses", counters{"b": {{Iface: "eth0", Name: "pfc.pausing_ns.3"}: 5_000_000, {Iface: "eth0", Name: "pfc.tx.3"}: 9999}}, "", ""},
		{"frames", counters{"b": {{Iface: "eth0", Name: "pfc.tx.3"}: 9999}}, "host b, which receives, was the bottleneck: it has sent 9999 pauses", ""},
		{"no buffer", counters{"b": {{Iface: "eth0", Name: "nic.no-buffer"}: 3}}, "host b, which receives, was the bottleneck: its NIC had no buffer for 3 packets", ""},
		{"no receive", counters{"b": {{Iface: "eth0", Name: "rdma.no-wqe"}: 3}}, "host b, which receives", ""},
		{"the sender's pauses", counters{"a": {{Iface: "eth0", Name: "pfc.pausing_ns.3"}: 500_000_000}}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, plan := newHosts(t), write()
			plan.Pairs[0].Client.Switch, plan.Pairs[0].Client.SwitchIface = "leaf", "swp1"
			reads := 0
			sense := func(_ context.Context, ran bool) (map[string]observe.Counters, error) {
				if ran != (reads == 1) {
					t.Errorf("reading %d: ran is %t", reads, ran)
				}
				out := map[string]observe.Counters{}
				for device, values := range tt.after {
					c := observe.Counters{At: time.Unix(int64(10*reads), 0), Values: map[observe.Port]uint64{}}
					for p, v := range values {
						c.Values[p] = 7 + uint64(reads)*v
					}
					out[device] = c
				}
				reads++
				return out, nil
			}
			res, err := h.session(Config{Sense: sense}).Run(t.Context(), plan)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if res.Rejected != nil {
				got = string(res.Rejected.Code) + " " + res.Rejected.Why
				if res.Rejected.Host != (res.Rejected.Code == Host) {
					t.Errorf("%+v", res.Rejected)
				}
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if tt.note != "" && !strings.Contains(strings.Join(res.Notes, "\n"), tt.note) {
				t.Errorf("%q, want %q", res.Notes, tt.note)
			}
			if reads != 2 {
				t.Errorf("%d readings", reads)
			}
		})
	}
}

// A latency test measures under load: how many messages fit is found by a first run that is not counted, and one that has
// outlasted the load is rejected.
func TestLatencyUnderLoad(t *testing.T) {
	said := recordings(t)[name{"06-read_lat", "client"}]
	server := recordings(t)[name{"06-read_lat", "server"}]
	r := said.parse(t)
	mean := r.Rows[0].Mean.V
	for _, late := range []bool{false, true} {
		h, plan := newHosts(t), write()
		h.gid = r.GID
		load := strings.Replace(onRXE, "GID index       : 3", fmt.Sprintf("GID index       : %d", r.GID), 1) + gbHead + gbLong
		lat := plan.Pairs[0]
		lat.Part = "probe"
		lat.Test = Test{Op: Read, Latency: true, Size: 2, ToS: 104, AnyClock: true}
		plan.Pairs = append(plan.Pairs, lat)
		var asked []int
		var mu sync.Mutex
		looks, ran := 0, 0 // at the clock, and runs of whoever ends last
		look := func() int {
			mu.Lock()
			defer mu.Unlock()
			return looks
		}
		h.does = func(p *program) (Output, error) {
			latency := strings.HasPrefix(p.argv, "ib_read_lat")
			if latency {
				_, n, _ := strings.Cut(p.argv, " -n ")
				v, _ := strconv.Atoi(strings.Fields(n)[0])
				asked = append(asked, v)
			}
			if latency == late { // the clock is looked at as each of four begins and ends: both of the other test have ended
				for ; look() < 8*ran+6; runtime.Gosched() {
				}
				ran++
			}
			return Output{Stdout: []byte(map[bool]string{true: said.Stdout, false: load}[latency])}, nil
		}
		h.serves = func(p *program) (Output, error) {
			return Output{Stdout: []byte(map[bool]string{true: server.Stdout, false: load}[strings.HasPrefix(p.argv, "ib_read_lat")])}, nil
		}
		s := h.session(Config{Limits: soft, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			looks++
			return time.Unix(0, int64(looks)*int64(time.Millisecond))
		}})
		res, err := s.Run(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if len(asked) != 2 || asked[0] != int(soft.Messages) || asked[1] < int(2*time.Second/mean)/2 || asked[1] > int(3*time.Second/mean) {
			t.Errorf("%d messages were asked for, of %s each", asked, mean)
		}
		switch {
		case late && (res.Rejected == nil || res.Rejected.Code != Unloaded):
			t.Errorf("%+v", res.Rejected)
		case !late && (res.Rejected != nil || res.P99 == nil || res.Goodput == nil):
			t.Errorf("%+v, %v", res.Rejected, res.P99)
		}
		h.idle()
	}
}
