package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
)

// pair is two hosts on one network, whose tests measure what measure says.
type pair struct {
	t    *testing.T
	net  *Network
	host [2]*Host
	conn [2]*ssh.Client

	cut bool // host2 is cut off once its server listens

	mu    sync.Mutex
	tests [][]Test
}

func newPair(t *testing.T, outcome Outcome) *pair {
	t.Helper()
	p := &pair{t: t}
	p.net = NewNetwork(NetworkOptions{
		Measure: func(_ context.Context, tests []Test) ([]Outcome, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.tests = append(p.tests, tests)
			return slices.Repeat([]Outcome{outcome}, len(tests)), nil
		},
		Observe: func(_ context.Context, w string, seed uint64) ([]byte, error) {
			return fmt.Appendf(nil, `{"observed":%q,"seed":%d}`, w, seed), nil
		},
		Load: func(_ context.Context, w string, seed uint64) ([]byte, error) {
			if w == "nonsense" {
				return nil, fmt.Errorf("workload: nonsense is not a kind")
			}
			return fmt.Appendf(nil, `{"workload":%q,"seed":%d}`, w, seed), nil
		},
	})
	for i := range p.host {
		h, addr := start(t, Options{Hostname: fmt.Sprintf("host%d", i+1), Network: p.net, Links: []Link{
			{Name: "rdma0", MTU: 9000, Min: 68, Max: 9978, NIC: "connectx-7", Addresses: []string{fmt.Sprintf("10.1.0.%d/24", i+1)}},
		}})
		p.host[i], p.conn[i] = h, login(t, h, addr)
	}
	t.Cleanup(p.net.Close) // before the hosts: what waits for a test ends
	return p
}

// at is a command's outputs, and in brackets how it ended.
func at(c *ssh.Client, command string) string {
	s, err := c.NewSession()
	if err != nil {
		return "[gone]"
	}
	defer s.Close()
	out, err := s.CombinedOutput(command)
	switch e, ok := errors.AsType[*ssh.ExitError](err); {
	case err == nil:
		return string(out) + "[0]"
	case !ok:
		return string(out) + "[gone]"
	case e.Signal() != "":
		return string(out) + "[" + e.Signal() + "]"
	default:
		return fmt.Sprintf("%s[%d]", out, e.ExitStatus())
	}
}

// begin starts a server and returns when it listens. What it printed comes when it ends.
func (p *pair) begin(command string) <-chan string {
	p.t.Helper()
	done := make(chan string, 1)
	before := listening(p.host[1])
	go func() { done <- at(p.conn[1], command) }()
	for listening(p.host[1]) == before {
		select {
		case out := <-done: // it ended at once
			done <- out
			return done
		case <-time.After(time.Millisecond):
		}
	}
	return done
}

// listening is how many tests of a host wait for a client.
func listening(h *Host) (n int) {
	for _, p := range h.running() {
		if p.port != 0 {
			n++
		}
	}
	return n
}

// run runs a server and a client to their ends.
func (p *pair) run(server, client string) (s, c string) {
	p.t.Helper()
	done := p.begin(server)
	c = at(p.conn[0], client)
	return <-done, c
}

// idle fails the test when programs are left on a host.
func (p *pair) idle() {
	p.t.Helper()
	for _, h := range p.host {
		for _, x := range h.running() {
			p.t.Errorf("%s still runs %q", h.opt.Hostname, x.args)
		}
	}
}

func TestBandwidthTest(t *testing.T) {
	p := newPair(t, Outcome{Numbers: perftest.Numbers{Iterations: 1000, Bits: 389.5e9, Rate: 742_912}})
	s, c := p.run("ib_write_bw -d mlx5_0 -F --report_gbits -D 3 -q 2 -s 65536 --tclass=104", "ib_write_bw -d mlx5_0 -F --report_gbits -D 3 -q 2 -s 65536 --tclass=104 10.1.0.2")
	const row = "\n 65536      1000             0.00               389.50 \t\t   0.742912\n-----"
	for _, out := range []string{s, c} {
		if !strings.Contains(out, row) {
			t.Errorf("no row of results:\n%s", out)
		}
	}
	for _, want := range []string{
		"                    RDMA_Write BW Test\n", " Number of qps   : 2\t\tTransport type : IB\n", " TX depth        : 128\n", " Mtu             : 4096[B]\n",
		" GID index       : 3\n", " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:01:00:01\n", " ibv_wr* API     : ON\n",
	} {
		if !strings.Contains(c, want) {
			t.Errorf("the client's report lacks %q:\n%s", want, c)
		}
	}
	if !strings.Contains(s, "* Waiting for client to connect... *") || strings.Contains(s, "TX depth") {
		t.Errorf("the server's report:\n%s", s)
	}
	got := p.tests[0][0]
	if got.Client != (End{"host1", "rdma0", 104}) || got.Server != (End{"host2", "rdma0", 104}) || got.MTU != 4096 || got.QPs != 2 || got.Duration != 3 {
		t.Errorf("the test was %+v", got)
	}
	if out := at(p.conn[1], "ss -ltn"); strings.Contains(out, "18515") || !strings.Contains(out, ":22") {
		t.Errorf("after it: %s", out)
	}
	p.idle()
}

func TestLatencyTest(t *testing.T) {
	p := newPair(t, Outcome{Numbers: perftest.Numbers{Iterations: 1000, Min: 1.8, Max: 9.5, Typical: 1.9, Average: 2.1, Stdev: 0.3, P99: 4.4, P999: 9.5}})
	_, c := p.run("ib_write_lat -F", "ib_write_lat -F host2")
	if want := "\n 2       1000         1.80           9.50         1.90     \t       2.10        \t0.30   \t\t4.40    \t\t9.50   \n"; !strings.Contains(c, want) {
		t.Errorf("no row %q:\n%s", want, c)
	}
	s, c := p.run("ib_read_lat -F -D 2", "ib_read_lat -F -D 2 host2")
	if !strings.Contains(c, "tps average") || strings.Contains(s, "tps average") || !strings.Contains(s, "Outstand reads  : 16") {
		t.Errorf("who is read from measures nothing:\n%s%s", s, c)
	}
}

// How tests fail, as far as both sides go, and what is left after that: nothing.
func TestVerbsFailures(t *testing.T) {
	for _, tt := range []struct {
		name           string
		server, client string // "" = none
		before         func(p *pair)
		serverSays     string
		clientSays     string
		lingers        bool // the server goes on
	}{
		{"no server", "", "ib_write_bw -F 10.1.0.2", nil, "", "Couldn't connect to 10.1.0.2:18515\nUnable to open file descriptor for socket connection Unable to init the socket connection\n[1]", false},
		{"no server, rdma_cm", "", "ib_write_bw -F -R host2", nil, "", "Unexpected CM event bl blka 8\n Unable to perform rdma_client function\n Unable to init the socket connection\n[1]", false},
		{"no such address", "", "ib_write_bw 10.1.0.99", nil, "", "Couldn't connect to 10.1.0.99:18515", false},
		{"no such name", "", "ib_write_bw no.such.host", nil, "", "Name or service not known for no.such.host:18515\nProblem in resolving basic address and port\n", false},
		{"another port", "ib_write_bw -p 18600", "ib_write_bw host2", nil, "", "Couldn't connect to host2:18515", true},
		{"no such device", "", "ib_write_bw -d rxe0 host2", nil, "", "IB device rxe0 not found\n Unable to find the Infiniband/RoCE device\n[1]", false},
		{"no such port of it", "", "ib_write_bw -i 2 host2", nil, "", " Unable to query port 2 attributes\n Couldn't set the link layer\n Couldn't get context for the device\n[1]", false},
		{"link down", "", "ib_write_bw host2", func(p *pair) { p.down(0) }, "", " Port number 1 state is Down\n", false},
		{"unknown option", "", "ib_write_bw --nonsense host2", nil, "", "ib_write_bw: unrecognized option '--nonsense'\n Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited with Error\n", false},
		{"not emulated", "", "ib_write_bw -a host2", nil, "", "ib_write_bw: invalid option -- 'a'\n Invalid Command or flag.\n", false},
		{"ToS without rdma_cm", "", "ib_write_bw -T 105 host2", nil, "", " TOS only valid for rdma_cm based QP and RawEth QP \n[1]", false},
		{"GID beyond", "", "ib_write_bw -x 5000 host2", nil, "", " Gid index should be between 0 and 64\n Parser function exited with Error\n[1]", false},
		{"GID empty", "ib_write_bw", "ib_write_bw -x 9 host2", nil, perftest.WrongGID, perftest.WrongGID, false},
		{"GIDs of two kinds", "ib_write_bw -x 1", "ib_write_bw -x 3 host2", nil, perftest.WrongGID, perftest.WrongGID, false},
		{"RoCE v1", "", "ib_write_bw -x 2 host2", nil, "", "RoCE v1, and GID index 2 is of it\n[1]", false},
		{"sizes", "ib_write_bw -s 4096", "ib_write_bw -s 65536 host2", nil, "Unable to read to socket/rdma_cm\n", " Failed status 10: wr_id 0 syndrom 0x0\nscnt=128, ccnt=0\n", false},
		{"queue pairs", "ib_write_bw", "ib_write_bw -q 4 host2", nil, "Unable to read to socket/rdma_cm\n", "Unable to read from socket/rdma_cm\n Failed to exchange data between server and clients\n", false},
		{"tools", "ib_read_bw", "ib_write_bw host2", nil, "Unable to read to socket/rdma_cm\n", " Failed status 9: wr_id 0 syndrom 0x0\n", false},
		{"rdma_cm on one side", "ib_write_bw", "ib_write_bw -R host2", nil, "", "Unexpected CM event bl blka 8\n", true},
		{"nothing arrives", "ib_write_bw", "ib_write_bw host2", func(p *pair) {
			p.net.Measure = func(_ context.Context, tests []Test) ([]Outcome, error) { return []Outcome{{Dead: true}}, nil }
		}, "Couldn't read remote address\n", " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n Failed to complete run_iter_bw function successfully\n", false},
		{"no simulation", "ib_write_bw", "ib_write_bw host2", func(p *pair) {
			p.net.Measure = func(context.Context, []Test) ([]Outcome, error) { return nil, fmt.Errorf("sim: no way") }
		}, "Couldn't read remote address\n", "sim: no way\n", false},
		{"server is cut off", "ib_write_bw", "ib_write_bw host2", func(p *pair) { p.cut = true }, "", "Couldn't connect to host2:18515", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, Outcome{})
			if tt.before != nil {
				tt.before(p)
			}
			var done <-chan string
			if tt.server != "" {
				done = p.begin(tt.server)
			}
			if p.cut {
				if err := p.host[1].Lose(true); err != nil {
					t.Fatal(err)
				}
			}
			c := at(p.conn[0], tt.client)
			if !strings.Contains(c, tt.clientSays) {
				t.Errorf("client: no %q in\n%s", tt.clientSays, c)
			}
			switch {
			case tt.lingers:
				if len(p.host[1].running()) != 1 {
					t.Error("the server ended")
				}
			case tt.server != "":
				if s := <-done; !strings.Contains(s, tt.serverSays) {
					t.Errorf("server: no %q in\n%s", tt.serverSays, s)
				}
				p.idle()
			}
		})
	}
}

// down takes the link of a host down.
func (p *pair) down(i int) {
	p.host[i].mu.Lock()
	defer p.host[i].mu.Unlock()
	p.host[i].nics["rdma0"].down = true
}

func TestPortBusy(t *testing.T) {
	p := newPair(t, Outcome{})
	p.begin("ib_write_bw")
	if out := at(p.conn[1], "ib_read_bw"); !strings.Contains(out, "Couldn't listen to port 18515\nUnable to open file descriptor for socket connection") || !strings.HasSuffix(out, "[1]") {
		t.Error(out)
	}
	if out := at(p.conn[1], "ss -Hltn 'sport = :18515'"); !strings.HasPrefix(out, "LISTEN 0      1            0.0.0.0:18515      0.0.0.0:*\n") {
		t.Errorf("%q", out)
	}
}

// A program goes on when the connection that started it ends, and is ended by its number.
func TestProgramsOutliveTheirConnection(t *testing.T) {
	p := newPair(t, Outcome{})
	c2 := login(t, p.host[1], p.host[1].addr)
	s, err := c2.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`echo "$$"; exec ib_write_bw -p 18600`); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(out, &pid); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(at(p.conn[1], "ss -ltn"), ":18600") {
		time.Sleep(time.Millisecond)
	}
	_ = c2.Close()
	if got := at(p.conn[1], "pgrep -x -n ib_write_bw"); got != fmt.Sprintf("%d\n[0]", pid) {
		t.Errorf("pgrep says %q, want %d", got, pid)
	}
	if got := at(p.conn[1], "pgrep -f -a 18600"); got != fmt.Sprintf("%d ib_write_bw -p 18600\n[0]", pid) {
		t.Errorf("pgrep -fa says %q", got)
	}
	for _, step := range [][2]string{
		{fmt.Sprintf("kill -0 %d", pid), "[0]"},
		{fmt.Sprintf("test -e /proc/%d", pid), "[0]"},
		{fmt.Sprintf("kill %d", pid), "[0]"},
		{fmt.Sprintf("kill %d", pid+100), "sh: 1: kill: No such process\n[1]"},
		{"kill x", "sh: 1: kill: Illegal number: x\n[2]"},
		{"pgrep ib_", "[1]"},
		{"ss -Hltn sport = :18600", "[0]"},
	} {
		if got := at(p.conn[1], step[0]); got != step[1] {
			t.Errorf("%s: %q, want %q", step[0], got, step[1])
		}
	}
	p.gone(1)
}

// gone waits until no program is left on a host.
func (p *pair) gone(i int) {
	for len(p.host[i].running()) > 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestKilledProgramsSaySo(t *testing.T) {
	p := newPair(t, Outcome{})
	p.net.Expect(2) // so that one waits
	server := p.begin("ib_write_bw")
	client := make(chan string, 1)
	go func() { client <- at(p.conn[0], "ib_write_bw host2") }()
	for listening(p.host[1]) > 0 {
		time.Sleep(time.Millisecond)
	}
	p.host[1].kill(p.host[1].running()[0].pid, "KILL")
	if out := <-server; !strings.Contains(out, "KILL") {
		t.Errorf("the server: %s", out)
	}
	if out := <-client; !strings.Contains(out, "ethernet_read_keys: Couldn't read remote address\n Unable to read from socket/rdma_cm\n") {
		t.Errorf("the client: %s", out)
	}
	if out := at(p.conn[1], "timeout 0.01 ib_write_bw"); !strings.HasSuffix(out, "[124]") {
		t.Errorf("a time limit: %s", out)
	}
	p.idle()
}

// What tests send is marked as the driver, the option or the device says, in that order.
func TestToS(t *testing.T) {
	p := newPair(t, Outcome{})
	for _, h := range p.host {
		if err := h.Set("rdma0", "roce tos", "96"); err != nil {
			t.Fatal(err)
		}
	}
	for i, tt := range []struct {
		option string
		want   uint8
	}{{"", 0}, {"--tclass=106", 106}, {"-R", 96}, {"-R -T 105", 105}} {
		p.run("ib_send_bw "+tt.option, "ib_send_bw "+tt.option+" host2")
		if got := p.tests[i][0].Client.ToS; got != tt.want {
			t.Errorf("%s: ToS %d, want %d", tt.option, got, tt.want)
		}
	}
	if err := p.host[0].Set("rdma0", "roce traffic-class", "104"); err != nil {
		t.Fatal(err)
	}
	p.run("ib_write_bw --tclass=8", "ib_write_bw --tclass=8 host2")
	if got := p.tests[len(p.tests)-1][0]; got.Client.ToS != 104 || got.Server.ToS != 8 {
		t.Errorf("what the driver forces: %+v", got)
	}
}

func TestMTUs(t *testing.T) {
	p := newPair(t, Outcome{})
	if err := p.host[1].SetMTU("rdma0", 1500); err != nil {
		t.Fatal(err)
	}
	s, c := p.run("ib_write_bw -m 4096", "ib_write_bw host2")
	if !strings.Contains(s, "Requested mtu is higher than active mtu \nChanging to active mtu - 3\n") || !strings.Contains(c, " Mtu             : 1024[B]\n") {
		t.Errorf("%s%s", s, c)
	}
	for netdev, want := range map[int]int{1500: 1024, 4192: 4096, 4191: 2048, 9000: 4096, 600: 256, 608: 512, 68: 256} {
		if got := activeMTU(netdev); got != want {
			t.Errorf("MTU %d: payload %d, want %d", netdev, got, want)
		}
	}
}

// Tests that begin together take place together.
func TestTestsGather(t *testing.T) {
	p := newPair(t, Outcome{Numbers: perftest.Numbers{Bits: 1e9}})
	p.net.Expect(3)
	var wg sync.WaitGroup
	for i := range 3 {
		port := 18600 + i
		done := p.begin(fmt.Sprintf("ib_write_bw -p %d", port))
		wg.Go(func() { at(p.conn[0], fmt.Sprintf("ib_write_bw -p %d host2", port)) })
		wg.Go(func() { <-done })
		for listening(p.host[1]) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	wg.Wait()
	if len(p.tests) != 1 || len(p.tests[0]) != 3 {
		t.Errorf("%d runs", len(p.tests))
	}
	p.run("ib_write_bw", "ib_write_bw host2")
	if len(p.tests) != 2 || len(p.tests[1]) != 1 {
		t.Errorf("a single test after that: %d runs", len(p.tests))
	}
	p.idle()
}

// Who is waited for still comes: a server without its client keeps the others from beginning, for a while.
func TestGatherWaitsForServers(t *testing.T) {
	p := newPair(t, Outcome{Numbers: perftest.Numbers{Bits: 1e9}})
	p.net.Settle = time.Minute // nobody waits that long: timers are set off by hand
	first, second := p.begin("ib_write_bw -p 18600"), p.begin("ib_write_bw -p 18601")
	var wg sync.WaitGroup
	client := func(port int) {
		wg.Go(func() { at(p.conn[0], fmt.Sprintf("ib_write_bw -p %d host2", port)) })
	}
	gathered := func(n int) *gathering {
		for {
			p.net.mu.Lock()
			g := p.net.open
			ok := g != nil && len(g.tests) == n
			p.net.mu.Unlock()
			if ok {
				return g
			}
			runtime.Gosched()
		}
	}
	client(18600)
	g := gathered(1)
	p.net.due(g)
	client(18601)
	p.net.due(gathered(2))
	<-first
	<-second
	wg.Wait()
	if len(p.tests) != 1 || len(p.tests[0]) != 2 {
		t.Errorf("%d runs", len(p.tests))
	}
	p.idle()
}

// A timer that went off before it was stopped starts no test without those that are expected.
func TestGatherWithALateTimer(t *testing.T) {
	var runs []int
	n := NewNetwork(NetworkOptions{Settle: time.Hour, Measure: func(_ context.Context, tests []Test) ([]Outcome, error) {
		runs = append(runs, len(tests))
		return make([]Outcome, len(tests)), nil
	}})
	defer n.Close()
	n.Expect(2)
	var wg sync.WaitGroup
	join := func() {
		wg.Go(func() {
			if _, err := n.join(t.Context(), Test{}); err != nil {
				t.Error(err)
			}
		})
	}
	join()
	var g *gathering
	for g == nil {
		n.mu.Lock()
		g = n.open
		n.mu.Unlock()
		runtime.Gosched()
	}
	n.due(g)
	join()
	wg.Wait()
	if !slices.Equal(runs, []int{2}) {
		t.Errorf("runs of %v tests, want one of 2", runs)
	}
}

func TestReportFileAndClock(t *testing.T) {
	p := newPair(t, Outcome{Numbers: perftest.Numbers{Bits: 1e9}})
	p.host[0].SlowClock(true)
	_, c := p.run("ib_write_bw -F", "ib_write_bw --out_json --out_json_file=/tmp.json host2")
	if !strings.Contains(c, "Conflicting CPU frequency values detected: 800.000000 != 3500.000000. CPU Frequency is not max.\n") {
		t.Error(c)
	}
	if out := at(p.conn[0], "cat /tmp.json"); !strings.Contains(out, "BW_average: 119.209290,") {
		t.Error(out)
	}
	if _, c = p.run("ib_write_bw -F", "ib_write_bw -F --out_json --out_json_file=/nowhere/r.json host2"); strings.Contains(c, "Conflicting") || !strings.Contains(c, "failed to open /nowhere/r.json\n") || !strings.HasSuffix(c, "[0]") {
		t.Error(c)
	}
}

func TestLoadTool(t *testing.T) {
	p := newPair(t, Outcome{})
	for command, want := range map[string]string{
		"fabricctl-lab-load 'incast:8,bytes=1MB' 7": `{"workload":"incast:8,bytes=1MB","seed":7}` + "\n[0]",
		"fabricctl-lab-load nonsense 1":             "fabricctl-lab-load: workload: nonsense is not a kind\n[1]",
		"fabricctl-lab-load incast:8 x":             "fabricctl-lab-load: \"x\" is not a seed: a number from 0\n[1]",
		"fabricctl-lab-load":                        "usage: fabricctl-lab-load WORKLOAD SEED [observation]\n[64]",
		"fabricctl-lab-load incast:8 7 everything":  "usage: fabricctl-lab-load WORKLOAD SEED [observation]\n[64]",
		"fabricctl-lab-load incast:8 7 observation": `{"observed":"incast:8","seed":7}` + "\n[0]",
	} {
		if got := at(p.conn[0], command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// A host that ends, or starts anew, ends its programs.
func TestProgramsEndWithTheHost(t *testing.T) {
	p := newPair(t, Outcome{})
	done := p.begin("ib_write_bw")
	p.host[1].Reboot()
	<-done
	p.gone(1)
	p.begin("ib_write_bw") // and one that is there when the host is closed
}

var pids = regexp.MustCompile(`^\d+$`)

func TestOwnNumber(t *testing.T) {
	for line, want := range map[string]string{
		`echo $$`: "7", `echo "$$ x"`: `"7 x"`, `echo '$$'`: `'$$'`, `echo \$$`: `\$$`, `echo $`: "$",
	} {
		if got := own(line, 7); got != "echo "+want {
			t.Errorf("%s: %q", line, got)
		}
	}
	p := newPair(t, Outcome{})
	if got := strings.TrimSuffix(at(p.conn[0], "echo $$"), "\n[0]"); !pids.MatchString(got) {
		t.Errorf("$$ is %q", got)
	}
}
