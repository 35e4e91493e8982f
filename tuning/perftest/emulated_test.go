package perftest_test

import (
	"math"
	"testing"
	"time"

	lab "github.com/fabricctl/fabricctl/drivers/lab/perftest"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/perftest"
)

// emulated is what the lab's hosts print for a command line: they were written apart from this package.
func emulated(t *testing.T, argv perftest.Argv) *lab.Side {
	t.Helper()
	tool, ok := lab.Find(argv[0])
	if !ok {
		t.Fatalf("%s is not emulated", argv[0])
	}
	o, ended := lab.Parse(tool, argv[1:])
	if ended != nil {
		t.Fatalf("%s: %+v", argv, ended)
	}
	s := &lab.Side{Options: o, Card: lab.Card{Name: o.Device, Reads: 16, NewAPI: true}, Index: o.GID, GID: [16]byte{10: 255, 11: 255, 12: 10, 15: 1}}
	for i := range o.QPs {
		s.Pairs = append(s.Pairs, lab.QP{Number: uint32(100 + i), PSN: uint32(7*i + 1)})
	}
	return s
}

// output is all of a test that went well.
func output(s, other *lab.Side, n lab.Numbers) (stdout, stderr string) {
	stdout, stderr = s.Start()
	return stdout + s.Head(4096) + s.Peers(other) + s.Row(n), stderr
}

// TestEmulated: the emulated hosts take our command lines, and what they print says what they were told to measure.
func TestEmulated(t *testing.T) {
	base := perftest.Test{Op: perftest.Write, Device: "mlx5_0", GID: 3, Port: 18515, Size: 64 * units.KiB, Duration: 2 * time.Second, MTU: 4096, ToS: 104}
	var tests []perftest.Test
	for _, op := range []perftest.Op{perftest.Write, perftest.Read, perftest.Send} {
		bw := base
		bw.Op, bw.QPs, bw.Depth = op, 4, 64
		both := bw
		both.Bidirectional = true
		cm := bw
		cm.RDMACM = true
		count := bw
		count.Duration, count.Iterations, count.QPs = 0, 400_000, 1
		lat := base
		lat.Op, lat.Latency, lat.Size = op, true, 2
		latCount := lat
		latCount.Duration, latCount.Iterations = 0, 1_000_000
		tests = append(tests, bw, both, cm, count, lat, latCount)
	}
	n := lab.Numbers{Iterations: 400_000, Bits: 93.4567e9, Rate: 93.4567e9 / 8 / 65536, Min: 1.5, Max: 12.25, Typical: 2, Average: 2.5, Stdev: .25, P99: 3, P999: 4.5}
	for _, test := range tests {
		server, err := test.Serve()
		if err != nil {
			t.Fatal(err)
		}
		client, err := test.Connect("10.0.0.2")
		if err != nil {
			t.Fatal(err)
		}
		s, c := emulated(t, server), emulated(t, client)
		n := n
		if test.Latency {
			n.Iterations = 1_000_000
			if n.Rate = 1e6 / n.Average; test.Op != perftest.Read {
				n.Rate /= 2
			}
		}
		read := func(s, other *lab.Side) *perftest.Report {
			out, errs := output(s, other, n)
			r, err := perftest.Parse([]byte(out), []byte(errs), nil, 0)
			if err != nil {
				t.Fatalf("%s: %v", client, err)
			}
			return &r
		}
		mine, theirs := read(c, s), read(s, c)
		for _, f := range append(mine.Judge(&test, perftest.Limits{}), theirs.Judge(&test, perftest.Limits{})...) {
			t.Errorf("%s: %+v", client, f)
		}
		if fs := perftest.Compare(mine, theirs); len(fs) > 0 {
			t.Errorf("%s: %+v", client, fs)
		}
		if len(mine.Rows) != 1 {
			t.Fatalf("%s: %d rows", client, len(mine.Rows))
		}
		w := mine.Rows[0]
		switch g := w.Goodput(); {
		case test.Latency && w.Mean.V != 2500*time.Nanosecond, test.Latency && test.Iterations > 0 && w.P999.V != 4500*time.Nanosecond:
			t.Errorf("%s: %+v", client, w)
		case !test.Latency && (!g.Set || math.Abs(float64(g.V)-n.Bits) > 600e3):
			t.Errorf("%s: %d bit/s, want %g", client, g.V, n.Bits)
		}
		file, err := perftest.Parse(nil, nil, []byte(c.Report(4096, n)), 0)
		if err != nil || len(file.Rows) != 1 || file.Device != "mlx5_0" || file.GID != 3 {
			t.Errorf("%s: the file is read as %+v, %v", client, file, err)
		}
	}
}

// TestEmulatedFailures: what the emulated hosts say when a test fails is understood.
func TestEmulatedFailures(t *testing.T) {
	test := perftest.Test{Op: perftest.Write, Device: "mlx5_0", GID: 3, Port: 18515, Size: 64 * units.KiB, Duration: 2 * time.Second, ToS: 104}
	argv, err := test.Connect("10.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	s := emulated(t, argv)
	cm := *s
	cm.RDMACM = true
	for want, texts := range map[perftest.Code][]string{
		perftest.NoServer: {s.NoServer(), cm.NoServer()},
		perftest.NoName:   {s.NoName()},
		perftest.PortBusy: {s.PortBusy()},
		perftest.NoDevice: {s.NoDevice(), (&lab.Options{}).NoDevice(), s.NoPort()},
		perftest.LinkDown: {s.PortDown()},
		perftest.WrongGID: {lab.WrongGID},
		perftest.PeerGone: {s.PeerGone()},
		perftest.Options:  {s.Failed(lab.WrongRequest), s.Failed(lab.NoAccess)},
		perftest.Retries:  {s.Failed(lab.NoAnswer)},
	} {
		for _, text := range texts {
			r, err := perftest.Parse(nil, []byte(text), nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			if fs := r.Judge(&test, perftest.Limits{}); len(fs) != 1 || fs[0].Code != want || !fs[0].Reject || fs[0].Line == "" {
				t.Errorf("%q: %+v, want %s", text, fs, want)
			}
		}
	}
	out, errs := output(s, s, lab.Numbers{Iterations: 400_000, Bits: 9e10, Rate: 9e10 / 8 / 65536})
	r, err := perftest.Parse([]byte(out), []byte(errs+lab.SlowClock(1200, 3600)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if fs := r.Judge(&test, perftest.Limits{}); len(fs) != 1 || fs[0].Code != perftest.Clock {
		t.Errorf("%+v", fs)
	}
}
