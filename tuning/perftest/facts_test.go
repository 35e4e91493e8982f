package perftest

import (
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// TestFacts are what the recordings are known to say.
func TestFacts(t *testing.T) {
	const ok = Code("")
	facts := []struct {
		of  name
		rc  int
		why Code // the first that rejects; ok = it may be used
	}{
		{name{"01-write_bw-D3", "client"}, 0, ok},
		{name{"02-write_bw-n", "client"}, 0, TooShort}, // 200 messages in 0.3 s
		{name{"03-send_bw", "client"}, 0, ok},
		{name{"04-read_bw", "client"}, 0, ok}, // "Device not recognized" does not matter
		{name{"05-write_lat", "client"}, 0, Clock},
		{name{"06-read_lat", "server"}, 0, ok}, // it measures nothing
		{name{"07-send_lat", "client"}, 0, ok},
		{name{"08-write_lat-D", "client"}, 0, ok},
		{name{"10-write_bw-json", "client"}, 0, ok},
		{name{"12-read_lat-json-D", "client"}, 0, ok},
		{name{"14-json-unwritable", "client"}, 0, ok}, // no file, but a table
		{name{"15-write_bw-q4", "client"}, 0, ok},
		{name{"18-gid-mixed", "client"}, 1, WrongGID},
		{name{"18-gid-mixed", "server"}, 1, WrongGID},
		{name{"19-gid-bad", "client"}, 1, WrongGID},
		{name{"20-gid-toolarge", "client"}, 1, WrongGID},
		{name{"22-rdmacm-tos", "client"}, 0, ok},
		{name{"23-tos-no-R", "client"}, 1, BadOption}, // said on standard output
		{name{"24-rdmacm-client-only", "client"}, 1, NoServer},
		{name{"24-rdmacm-client-only", "server"}, 255, Killed},
		{name{"25-m1024", "client"}, 0, ok},
		{name{"26-m-mismatch", "client"}, 0, ok},
		{name{"26-m-mismatch", "server"}, 0, WrongMTU}, // it asked for 4096 and got 1024 without a word
		{name{"27-m-invalid", "client"}, 0, WrongMTU},
		{name{"28-bidir", "client"}, 0, ok},
		{name{"29-size-mismatch", "client"}, 1, Options},
		{name{"29-size-mismatch", "server"}, 1, PeerGone},
		{name{"30-qp-mismatch", "client"}, 1, PeerGone},
		{name{"30-qp-mismatch", "server"}, 1, PeerGone}, // with garbage as a row
		{name{"31-tool-mismatch", "client"}, 1, Options},
		{name{"32-mode-mismatch", "client"}, 0, ok},
		{name{"33-output-bw", "client"}, 0, NoResult},
		{name{"34-output-lat", "client"}, 1, NoServer},
		{name{"35-all-sizes", "client"}, 0, NotAsked},
		{name{"36-cpu_util", "client"}, 0, Host},
		{name{"36-cpu_util", "server"}, 0, ok},
		{name{"37-D1", "client"}, 0, ok},
		{name{"42-no-server", "client"}, 1, NoServer},
		{name{"43-no-server-R", "client"}, 1, NoServer},
		{name{"44-no-host", "client"}, 1, NoServer},
		{name{"45-bad-name", "client"}, 1, NoName},
		{name{"46-bad-device", "client"}, 1, NoDevice},
		{name{"47-bad-ibport", "client"}, 1, NoDevice},
		{name{"48-bad-flag", "client"}, 1, BadOption},
		{name{"49-two-tests-one-port", "client"}, 0, ok},
		{name{"49-two-tests-one-port", "server2"}, 1, PortBusy},
		{name{"49-two-tests-one-port", "client2"}, 1, NoServer},
		{name{"50-two-tests-two-ports", "client2"}, 0, ok},
		{name{"51-kill-server", "client"}, 1, PeerGone}, // with a row that is too low
		{name{"51-kill-server", "server"}, 255, Killed},
		{name{"52-kill-client", "server"}, 1, PeerGone},
		{name{"53-term-client", "client"}, 255, Killed},
		{name{"54-int-client", "client"}, 255, Killed},
		{name{"55-kill-server-lat", "client"}, 255, Killed},
		{name{"56-run_infinitely-pipe", "client"}, 255, Killed},
		{name{"59-link-down", "client"}, -999, NoEnd},
		{name{"60-wire-default", "client"}, 0, TooShort},
		{name{"62-wire-R-T105", "client"}, 255, NoServer},
		{name{"65-m4096-on-1500", "server"}, 0, WrongMTU}, // said on standard output
		{name{"65-m4096-on-1500", "client"}, 0, WrongMTU}, // not said: the head shows it
		{name{"66-mtu1024", "client"}, 0, ok},
		{name{"67-memlock", "client"}, 1, BadOption}, // setpriv's own
		{name{"69-dup-json", "client"}, 0, Clock},
		{name{"70-output-lat", "client"}, 0, NoResult},
		{name{"72-link-down", "client"}, -999, NoEnd},
	}
	all := recordings(t)
	for _, f := range facts {
		p, there := all[f.of]
		if !there || p.ExitCode != f.rc {
			t.Fatalf("%v: recorded %t with exit code %d, want %d", f.of, there, p.ExitCode, f.rc)
		}
		r := p.parse(t)
		test := commanded(p.Cmd, &r)
		if got := rejected(r.Judge(&test, soft)); got != f.why {
			t.Errorf("%v is rejected for %q, want %q", f.of, got, f.why)
		}
	}
}

// rejected is why a run is rejected in the first place.
func rejected(fs []Finding) Code {
	for _, f := range fs {
		if f.Reject {
			return f.Code
		}
	}
	return ""
}

// TestRowsOfFailures: no row of a test that has failed may be used, however well it looks.
func TestRowsOfFailures(t *testing.T) {
	rows := 0
	for n, p := range recordings(t) {
		if n.role == "tcpdump" || p.ExitCode == 0 {
			continue
		}
		r := p.parse(t)
		test := commanded(p.Cmd, &r)
		if rejected(r.Judge(&test, Limits{Messages: 1, Time: 1})) == "" {
			t.Errorf("%v has exit code %d and is not rejected", n, p.ExitCode)
		}
		rows += len(r.Rows)
	}
	if rows < 2 {
		t.Error("no failed recording has a row: this tests nothing")
	}
}

// TestUnits: the bandwidths of all recordings are what their message rates make of them, in MB (which is MiB) as in Gbit/s.
func TestUnits(t *testing.T) {
	mb, gb := 0, 0
	for n, p := range recordings(t) {
		if n.role == "tcpdump" {
			continue
		}
		r := p.parse(t)
		for _, w := range r.Rows {
			if !w.agrees() {
				t.Errorf("%v: %d bit/s, but %g messages of %d bytes per second", n, w.Average.V, w.Rate.V, w.Size)
			}
			switch {
			case r.Latency:
			case strings.Contains(p.Stdout, "MB/sec"):
				mb++
			default:
				gb++
			}
		}
	}
	if mb == 0 || gb == 0 {
		t.Errorf("%d rows in MB/sec, %d in Gb/sec", mb, gb)
	}
}

// TestOneNumber: the same run in three units is one number.
func TestOneNumber(t *testing.T) {
	var got []units.BitRate
	for _, table := range []string{
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000             92.41              92.31              0.176068\n",
		" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      5000             11016.16           11004.25           0.176068\n",
		" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n 65536      5000             11016.16           11004.25           0.176068\n",
	} {
		r, err := Parse([]byte(table), nil, nil, 0)
		if err != nil || len(r.Rows) != 1 {
			t.Fatal(r.Rows, err)
		}
		g := r.Rows[0].Goodput()
		got = append(got, g.V)
		if g.Step > units.Mbps || !r.Rows[0].Peak.Set {
			t.Errorf("%+v", r.Rows[0])
		}
	}
	for _, v := range got {
		if off := v - got[0]; max(off, -off) > units.Mbps {
			t.Error(got)
		}
	}
}

// TestMargin: of -D seconds, a quarter in whole seconds is not measured at either end. The help says 2 s.
func TestMargin(t *testing.T) {
	all := recordings(t)
	for of, want := range map[string]time.Duration{
		"37-D1": time.Second, "39-counters": 2 * time.Second, "01-write_bw-D3": 3 * time.Second,
		"49-two-tests-one-port": 2 * time.Second, "50-two-tests-two-ports": 2 * time.Second, "51-kill-server": 6 * time.Second,
	} {
		p := all[name{of, "client"}]
		r := p.parse(t)
		test := commanded(p.Cmd, &r)
		j := judge{r: &r, t: &test}
		got := j.took(&r.Rows[0])
		if off := (got.V - want).Abs(); !got.Set || off > want/14+got.Step {
			t.Errorf("%s has measured %s, want %s", of, got.V, want)
		}
	}
}

// TestPairs: recorded sides know each other, and no side of another recording.
func TestPairs(t *testing.T) {
	all := recordings(t)
	clients, servers := map[string]Report{}, map[string]Report{}
	for n, p := range all {
		if n.role == "tcpdump" {
			continue
		}
		switch r := p.parse(t); {
		case p.ExitCode != 0 || len(r.Local) == 0:
		case n.role == "client":
			clients[n.recording] = r
		case n.role == "server":
			servers[n.recording] = r
		}
	}
	if len(clients) < 30 {
		t.Fatalf("%d clients", len(clients))
	}
	for n, c := range clients {
		for m, s := range servers {
			got := Compare(&c, &s)
			if n == m && len(got) > 0 {
				t.Errorf("%s: %+v", n, got)
			}
			if n != m && len(got) == 0 {
				t.Errorf("the client of %s and the server of %s are taken for a pair", n, m)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	for _, x := range []struct {
		a, b Report
		want Code
	}{
		{Report{Version: "6.06"}, Report{Version: "6.27"}, Version},
		{Report{Version: "6.06"}, Report{}, ""},
		{Report{Head: Head{MTU: 1024}}, Report{Head: Head{MTU: 4096}}, WrongMTU},
		{Report{Head: Head{QPs: 4}}, Report{Head: Head{QPs: 1}}, Options},
		{Report{Local: []QP{{Number: 1}}}, Report{Remote: []QP{{Number: 1}}}, ""},
		{Report{Local: []QP{{Number: 1}}}, Report{Remote: []QP{{Number: 2}}}, Strangers},
		{Report{Remote: []QP{{Number: 1, PSN: 1}}}, Report{Local: []QP{{Number: 1, PSN: 2}}}, Strangers},
		{Report{Title: "Send BW Test"}, Report{Title: "RDMA_Write BW Test"}, Options},
	} {
		if got := rejected(Compare(&x.a, &x.b)); got != x.want {
			t.Errorf("%+v and %+v: %q, want %q", x.a, x.b, got, x.want)
		}
	}
}
