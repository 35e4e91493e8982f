package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// shell logs in to a host of a lab as a stock client does, and returns how to run a command there: what it prints on both outputs, and
// its status.
func shell(t testing.TB, l *Lab, name string) func(command string) (string, int) {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(filepath.Dir(l.Inventory), "password"))
	if err != nil {
		t.Fatal(err)
	}
	h := l.Box(name).(*host.Host)
	c, err := ssh.Dial("tcp", h.Addr(), &ssh.ClientConfig{
		User: User, Auth: []ssh.AuthMethod{ssh.Password(strings.TrimSpace(string(password)))}, HostKeyCallback: ssh.FixedHostKey(h.HostKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(command string) (string, int) {
		s, err := c.NewSession()
		if err != nil {
			return err.Error(), -1
		}
		defer s.Close()
		out, err := s.CombinedOutput(command)
		if e, ok := err.(*ssh.ExitError); ok {
			return string(out), e.ExitStatus()
		}
		if err != nil {
			return string(out) + err.Error(), -1
		}
		return string(out), 0
	}
}

// verbs runs tests together, each "client server tool options", each at a port of its own, and returns what the clients print.
func verbs(t testing.TB, l *Lab, tests ...string) []string {
	t.Helper()
	l.network.Expect(len(tests))
	out := make([]string, len(tests))
	var wg sync.WaitGroup
	for i, test := range tests {
		f := strings.SplitN(test, " ", 3)
		client, server := shell(t, l, f[0]), shell(t, l, f[1])
		port := strconv.Itoa(18600 + i)
		wg.Go(func() { server(f[2] + " -F -p " + port) })
		for {
			if s, _ := server("ss -Hltn"); strings.Contains(s, ":"+port) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		wg.Go(func() {
			text, status := client(f[2] + " -F -p " + port + " " + f[1])
			out[i] = fmt.Sprintf("%s[%d]", text, status)
		})
	}
	wg.Wait()
	return out
}

// column is a number in the row of results.
func column(t testing.TB, out string, i int) float64 {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) < 4 || !strings.HasSuffix(out, "[0]") {
		t.Fatalf("no results:\n%s", out)
	}
	f := strings.Fields(lines[len(lines)-3])
	if i >= len(f) {
		t.Fatalf("no column %d:\n%s", i, out)
	}
	v, err := strconv.ParseFloat(f[i], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What perftest prints on hosts is what their fabric lets pass, and devices have counted it.
func TestVerbsOnTheFabric(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	const gbits = 3
	alone := column(t, verbs(t, l, "host1 host3 ib_write_bw -D 3 --report_gbits --tclass=104")[0], gbits)
	if alone < 350 || alone > 400 {
		t.Errorf("a pair alone: %.1f Gbit/s on links of 400", alone)
	}
	if sent := float64(l.counter("host1", "rdma0", observe.TxBytes.Of(3))) * 8 / 3e9; sent < alone || sent > 1.05*alone { // the margins lie inside of the 3 s
		t.Errorf("host1 has counted %.1f Gbit/s, and %.1f have arrived", sent, alone)
	}
	if n := l.counter("leaf1", "Ethernet1/1", observe.RxPackets.Of(3)); n == 0 {
		t.Error("its switch has counted nothing")
	}
	shared := verbs(t, l, "host1 host3 ib_write_bw -D 3 --report_gbits --tclass=104 -q 4", "host2 host3 ib_write_bw -D 3 --report_gbits --tclass=104 -q 4")
	if a, b := column(t, shared[0], gbits), column(t, shared[1], gbits); a+b > 400 || a+b < 250 || a < b/2 || b < a/2 {
		t.Errorf("two to one: %.1f and %.1f Gbit/s", a, b)
	}
	if n := l.counter("host3", "rdma0", observe.CNPSent); n == 0 {
		t.Error("two to one, and nobody was told to slow down")
	}
	const uplink = "Ethernet3/1"
	if n := l.counter("leaf1", uplink, observe.TxBytes.Of(0)); n != 0 {
		t.Errorf("%d B in the wrong class", n)
	}
	verbs(t, l, "host1 host3 ib_write_bw -D 1 --report_gbits")
	if n := l.counter("leaf1", uplink, observe.TxBytes.Of(0)); n == 0 {
		t.Error("without a ToS, nothing was in the default class")
	}
}

// A test of so many messages is simulated whole: what is counted is what was sent.
func TestVerbsOfSoManyMessages(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	out := verbs(t, l, "host1 host3 ib_write_bw -n 1000 -s 65536 --tclass=104")[0]
	mib := column(t, out, 3)
	if column(t, out, 1) != 1000 || mib < 20_000 || mib > 50_000 {
		t.Error(out)
	}
	if n := l.counter("host1", "rdma0", observe.TxBytes.Of(3)); n < 65_536_000 || n > 70_000_000 {
		t.Errorf("%d B were counted of 65536000", n)
	}
	long := verbs(t, l, "host1 host3 ib_write_bw -n 100000 -s 65536 --tclass=104")[0]
	if n := l.counter("host1", "rdma0", observe.TxBytes.Of(3)); n < 6_600_000_000 || n > 7_100_000_000 {
		t.Errorf("%d B were counted of 6619136000:\n%s", n, long)
	}
}

func TestLatencyOnTheFabric(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	write := verbs(t, l, "host1 host3 ib_write_lat --tclass=104")[0]
	least, most, typical, mean, p99 := column(t, write, 2), column(t, write, 3), column(t, write, 4), column(t, write, 5), column(t, write, 7)
	if least <= 0 || least > typical || typical > most || mean < least || mean > most || p99 > most*1.02 || most > 50 {
		t.Error(write)
	}
	read := verbs(t, l, "host1 host3 ib_read_lat --tclass=104")[0]
	if r := column(t, read, 4); r < 1.5*typical || r > 3*typical { // there and back
		t.Errorf("a write takes %.2f us one way, and a read %.2f us", typical, r)
	}
	loaded := verbs(t, l, "host1 host3 ib_write_lat --tclass=104", "host2 host3 ib_write_bw -D 1 --tclass=104", "host4 host3 ib_write_bw -D 1 --tclass=104")[0]
	if got := column(t, loaded, 4); got < typical {
		t.Errorf("under load %.2f us, alone %.2f us", got, typical)
	}
}

// A fabric that lets small messages pass and large ones not, and one without a way: the retries are used up.
func TestVerbsThatGetNoAnswer(t *testing.T) {
	const dead = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
	l := configured(t, wanted(t, pod), Options{})
	leaf := l.Box("leaf1").(*eos.Switch)
	for _, p := range l.identity.Device("leaf1").Ports {
		if err := leaf.Type("interface " + p.Iface + "\n mtu 1500\n"); err != nil {
			t.Fatal(err)
		}
	}
	if out := verbs(t, l, "host1 host3 ib_write_bw -D 1 --tclass=104")[0]; !strings.Contains(out, dead) || !strings.HasSuffix(out, "[1]") {
		t.Errorf("large messages: %s", out)
	}
	if n := l.counter("leaf1", "Ethernet1/1", observe.PortOversize); n == 0 {
		t.Error("nobody has dropped what was too long")
	}
	if out := verbs(t, l, "host1 host3 ib_write_bw -D 1 -s 512 --tclass=104")[0]; !strings.HasSuffix(out, "[0]") {
		t.Errorf("small messages: %s", out)
	}
	if out := verbs(t, l, "host1 host3 ib_write_bw -D 1 -m 1024 --tclass=104")[0]; !strings.HasSuffix(out, "[0]") {
		t.Errorf("small packets: %s", out)
	}
	l.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) {
		for _, p := range l.identity.Device("spine1").Ports {
			db.Set("PORT", p.Iface, "admin_status", "down")
		}
	})
	outs := verbs(t, l, "host1 host3 ib_write_bw -D 1 -s 512", "host1 host2 ib_write_bw -D 1 -s 512")
	if !strings.Contains(outs[0], dead) || !strings.HasSuffix(outs[1], "[0]") {
		t.Errorf("across a spine that is down, and beside it: %s", outs)
	}
	h := shell(t, l, "host1")
	if out, status := h("ib_write_bw -F host1"); status != 1 || !strings.Contains(out, "Couldn't connect to host1:18515") {
		t.Error(out)
	}
}

// fabricctl-lab-load prints what the simulator found, and counts it.
func TestLoadFromAHost(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	run := shell(t, l, "host2")
	one, status := run("fabricctl-lab-load 'incast:2,class=training' 7")
	if status != 0 || !strings.Contains(one, `"schema":"fabricctl/sim/v1"`) || !strings.Contains(one, `"seed":7`) {
		t.Fatalf("%d: %.300s", status, one)
	}
	if two, _ := run("fabricctl-lab-load 'incast:2,class=training' 7"); two != one {
		t.Error("the same load on the same fabric has another result")
	}
	if n := l.counter("leaf1", "Ethernet1/1", observe.PortTxPackets) + l.counter("leaf1", "Ethernet2/1", observe.PortTxPackets); n == 0 {
		t.Error("it was not counted")
	}
	if out, status := run("fabricctl-lab-load incast:99 7"); status != 1 || !strings.Contains(out, "needs 99 hosts") {
		t.Errorf("%d: %s", status, out)
	}
}

// What a host prints of a run is, to the last counter, what the simulator sees on what the devices hold.
func TestObservationFromAHost(t *testing.T) {
	const load = "incast:2,class=training,for=2ms,warmup=200us + probe,class=training"
	l := configured(t, wanted(t, pod), Options{})
	out, status := shell(t, l, "host2")("fabricctl-lab-load '" + load + "' 7 observation")
	if status != 0 {
		t.Fatalf("%d: %.300s", status, out)
	}
	got, err := DecodeObservation([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	w, err := observe.ParseWorkload(load)
	if err != nil {
		t.Fatal(err)
	}
	net, _, err := l.Net()
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(t.Context(), net, w, sim.Options{}, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := r.Observation()
	want.Workload, want.Notes = observe.Workload{}, []string{}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-simulator +host):\n%s", d)
	}
	if got.P999 == nil || len(got.Latency) == 0 || len(got.After["leaf1"].Values) == 0 {
		t.Errorf("it measured nothing: %+v", got)
	}
	for text, want := range map[string]string{
		"{}":                                  `its schema is ""`,
		strings.TrimSpace(out) + "x":          "lab observation",
		`{"schema":"fabricctl/sim/v1"}`:       `its schema is "fabricctl/sim/v1"`,
		out[:len(out)/2]:                      "unexpected EOF",
		strings.TrimSpace(out) + `{"more":1}`: "there is more after it",
	} {
		if _, err := DecodeObservation([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// A lab that is closed in the middle of a test ends it, and everything that listens.
func TestCloseEndsVerbs(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	l.network.Expect(2) // one waits
	client, server := shell(t, l, "host1"), shell(t, l, "host3")
	var wg sync.WaitGroup
	wg.Go(func() { server("ib_write_bw -F") })
	for {
		if s, _ := server("ss -Hltn"); strings.Contains(s, ":18515") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	wg.Go(func() { client("ib_write_bw -F host3") })
	for {
		if s, _ := server("ss -Hltn"); !strings.Contains(s, ":18515") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	addr := l.Box("host1").(*host.Host).Addr()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
}
