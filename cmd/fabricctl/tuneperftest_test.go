package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// verbsBench is a configured lab of one leaf and four hosts, and how to make a runner of verbs tests there.
type verbsBench struct {
	*bench
	t *testing.T
}

func newVerbsBench(t *testing.T) *verbsBench {
	t.Helper()
	b := newBench(t, strings.Replace(trio, "per_leaf: 1", "per_leaf: 4", 1))
	b.must(t, exitOK, "apply", "--yes", "--accept-unverified", "--allow-disruptive")
	return &verbsBench{b, t}
}

func (b *verbsBench) host(name string) *host.Host { return b.lab.Box(name).(*host.Host) }

// runner makes a runner for a workload; run makes one run by it.
func (b *verbsBench) runner(ctx context.Context, text string, o perftestFlags) (r *perftestRunner, said []string, run func() (observe.Observation, error), err error) {
	b.t.Helper()
	w, err := observe.ParseWorkload(text)
	if err != nil {
		b.t.Fatal(err)
	}
	var files []string
	for i := 1; i < len(b.layers); i += 2 {
		files = append(files, b.layers[i])
	}
	a := &app{sys: quiet(), stateDir: filepath.Join(b.dir, "state")}
	m, err := a.load(ctx, files)
	if err != nil {
		b.t.Fatal(err)
	}
	r, said, err = a.newPerftestRunner(ctx, m, w, 1, o, filepath.Join(b.dir, "raw"))
	if err != nil {
		return nil, said, nil, err
	}
	b.t.Cleanup(func() { _ = r.Close() })
	return r, said, func() (observe.Observation, error) { return r.Run(ctx, tuning.Trial{N: 1, Seed: 1, Workload: w}) }, nil
}

// kept is what tests have printed in a run.
func kept(dir, digest string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, digest+".json.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// idle fails the test when a program is left on a host.
func (b *verbsBench) idle() {
	b.t.Helper()
	for _, d := range b.net.Devices {
		if d.Host {
			if left := b.host(d.Name).Running(); len(left) > 0 {
				b.t.Errorf("%s still runs %q", d.Name, left)
			}
		}
	}
}

// Real SSH, emulated hosts: what the tests measure is what their fabric lets pass, and the counters say that it was the class.
func TestPerftestRunner(t *testing.T) {
	b := newVerbsBench(t)
	_, said, run, err := b.runner(t.Context(), "incast:3,to=host1 + single,latency,hosts=host2/host1", perftestFlags{})
	if err != nil || len(said) > 0 {
		t.Fatal(said, err)
	}
	o, err := run()
	if err != nil {
		t.Fatal(err)
	}
	if o.Goodput == nil || *o.Goodput < 200e9 || *o.Goodput > 400e9 || len(o.Parts) != 1 || o.Parts["incast"] != *o.Goodput {
		t.Errorf("goodput %v, parts %v", o.Goodput, o.Parts)
	}
	if o.P50 == nil || o.P999 == nil || *o.P50 <= 0 || *o.P999 < *o.P50 || len(o.Latency) == 0 {
		t.Errorf("latencies %v, %v, %v", o.P50, o.P999, o.Latency)
	}
	if o.Fairness == nil || *o.Fairness < .5 || *o.Fairness > 1 {
		t.Errorf("fairness %v", o.Fairness)
	}
	d := observe.Delta(o.Before["host2"], o.After["host2"])
	if v, ok := d.Get("rdma0", observe.TxBytes.Of(3)); !ok || v == 0 {
		t.Errorf("host2 has counted %d in the class", v)
	}
	if _, ok := o.After["leaf1"]; !ok {
		t.Error("its switch was not asked")
	}
	for _, n := range o.Notes {
		if strings.Contains(n, "not known") || strings.Contains(n, "not read") {
			t.Error(n)
		}
	}
	raw, err := kept(filepath.Join(b.dir, "raw"), o.Digest)
	if err != nil || strings.Count(string(raw), "RDMA_Write BW Test") != 6 || !strings.Contains(string(raw), "--tclass=104") {
		t.Errorf("what was kept: %v\n%.3000s", err, raw)
	}
	if !slices.Contains(o.Notes, "perftest 6.06") {
		t.Errorf("%q", o.Notes)
	}
	b.idle()
}

// What of a workload is an option of the tests.
func TestPerftestWorkloads(t *testing.T) {
	b := newVerbsBench(t)
	for _, tt := range []struct {
		workload string
		flags    perftestFlags
		want     []string // in what is kept
		tests    int      // outputs of them
	}{
		{"pairs,both,qps=2,size=16KiB,depth=8", perftestFlags{}, []string{"Bidirectional BW Test", "-s 16384 ", "-q 2 -t 8 -D 7 -f 1 -b --tclass=104 --cpu_util"}, 4},
		{"incast:2,to=host1,op=read + victim,op=send", perftestFlags{}, []string{"RDMA_Read BW Test", "Send BW Test"}, 6},
		{"single,hosts=host2/host1,dscp=48", perftestFlags{slow: true}, []string{"--tclass=192 -F"}, 2},
		{"single,hosts=host2/host1 + probe,hosts=host3/host1", perftestFlags{rdmaCM: true}, []string{"-R -T 104", "ib_write_lat", "-H"}, 4},
	} {
		_, _, run, err := b.runner(t.Context(), tt.workload, tt.flags)
		if err != nil {
			t.Errorf("%s: %v", tt.workload, err)
			continue
		}
		o, err := run()
		if err != nil {
			t.Errorf("%s: %v", tt.workload, err)
			continue
		}
		raw, err := kept(filepath.Join(b.dir, "raw"), o.Digest)
		if err != nil || strings.Count(string(raw), "\"side\"") != tt.tests {
			t.Errorf("%s: %v, %d outputs", tt.workload, err, strings.Count(string(raw), "\"side\""))
		}
		for _, w := range tt.want {
			if !strings.Contains(string(raw), w) {
				t.Errorf("%s: no %q in\n%.4000s", tt.workload, w, raw)
			}
		}
		if o.Goodput == nil || *o.Goodput < 100e9 || len(o.Parts) == 0 {
			t.Errorf("%s: goodput %v, parts %v", tt.workload, o.Goodput, o.Parts)
		}
		b.idle()
	}
}

// What is wrong with a host before the first run is a clear word, and nothing has begun.
func TestPerftestRefused(t *testing.T) {
	b := newVerbsBench(t)
	for _, tt := range []struct {
		name, workload, want string
		flags                perftestFlags
		fault                host.Faults
	}{
		{name: "bursts", workload: "incast:3,bytes=64KB,every=500us", want: "verbs tests send without a pause"},
		{name: "a ring", workload: "ring", want: "steps that wait for one another"},
		{name: "milliseconds", workload: `{parts: [{kind: single}], for: 5ms}`, want: "whole seconds"},
		{name: "unknown host", workload: "single,hosts=host1/hostx", want: "hostx"},
		{name: "no perftest", workload: "single,hosts=host2/host1", fault: host.Faults{Without: "ib_write_bw"}, want: "host1: ib_write_bw is not installed"},
		{name: "no timeout", workload: "single,hosts=host2/host1", fault: host.Faults{Without: "timeout"}, want: "timeout is not installed"},
		{name: "another version", workload: "single,hosts=host2/host1", fault: host.Faults{Perftest: "5.6"}, want: "perftest is version"},
		{name: "port busy", workload: "single,hosts=host2/host1", flags: perftestFlags{port: 22}, want: "host1: something listens at TCP port 22 already"},
	} {
		b.host("host1").SetFaults(tt.fault)
		w := tt.workload
		if strings.HasPrefix(w, "{") {
			x, err := observe.ReadWorkload([]byte(w))
			if err != nil {
				t.Fatal(err)
			}
			r := &perftestRunner{net: b.net}
			if _, err := r.plan(x, 1); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		_, _, _, err := b.runner(t.Context(), w, tt.flags)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		b.idle()
	}
}

// A host whose driver forces another class than the model's: the run is rejected, and says where the bytes went.
func TestPerftestWrongClass(t *testing.T) {
	b := newVerbsBench(t)
	_, _, run, err := b.runner(t.Context(), "single,hosts=host2/host1", perftestFlags{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.host("host2").Set("rdma0", "roce traffic-class", "0"); err != nil {
		t.Fatal(err)
	}
	_, err = run()
	x, ok := errors.AsType[*tuning.Rejected](err)
	if !ok || x.Code != "wrong-class" || x.Host || !strings.Contains(x.Why, "with priority 3, where DSCP 26 of class training belongs") || !strings.Contains(x.Why, "with priority 0") {
		t.Fatal(err)
	}
	b.idle()
}

// A host that is too slow is said to be, and not the fabric.
func TestPerftestSlowHost(t *testing.T) {
	b := newVerbsBench(t)
	_, _, run, err := b.runner(t.Context(), "single,hosts=host2/host1", perftestFlags{})
	if err != nil {
		t.Fatal(err)
	}
	b.host("host1").SetFaults(host.Faults{Busy: 99})
	_, err = run()
	x, ok := errors.AsType[*tuning.Rejected](err)
	if !ok || x.Code != "host" || !x.Host || !strings.Contains(x.Why, "host1") {
		t.Fatal(err)
	}
	b.host("host1").SetFaults(host.Faults{})
	if err := b.host("host1").Slow("rdma0", 50*units.Gbps); err != nil {
		t.Fatal(err)
	}
	_, err = run()
	if x, ok := errors.AsType[*tuning.Rejected](err); !ok || x.Code != "host" || !x.Host || !strings.Contains(x.Why, "host1, which receives, was the bottleneck: it has stopped its switch") {
		t.Fatal(err)
	}
	if err := b.host("host1").Slow("rdma0", 0); err != nil {
		t.Fatal(err)
	}
	b.host("host2").SlowClock(true)
	_, err = run()
	if x, ok := errors.AsType[*tuning.Rejected](err); !ok || x.Code != "clock" {
		t.Fatal(err)
	}
	b.idle()
}

// Ctrl-C ends what runs on hosts, though one hangs and takes no SIGTERM.
func TestPerftestInterrupted(t *testing.T) {
	b := newVerbsBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, _, run, err := b.runner(ctx, "single,hosts=host2/host1", perftestFlags{})
	if err != nil {
		t.Fatal(err)
	}
	b.host("host2").SetFaults(host.Faults{Hang: true})
	go func() {
		for len(b.host("host2").Running()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err = run(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.idle()
}

// A process that a fabricctl before this one has begun and not ended is named and ended, if it is that one and no other.
func TestPerftestLeftovers(t *testing.T) {
	b := newVerbsBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _, run, err := b.runner(ctx, "single,hosts=host2/host1", perftestFlags{})
	if err != nil {
		t.Fatal(err)
	}
	b.host("host2").SetFaults(host.Faults{Hang: true})
	go func() {
		for len(b.host("host2").Running()) == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, h := range []string{"host1", "host2"} { // nobody can be reached while it is ended
			if err := b.host(h).Lose(true); err != nil {
				t.Error(err)
			}
		}
		cancel()
	}()
	if _, err = run(); err == nil || !strings.Contains(err.Error(), "may run still") {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Log(err)
	}
	for _, h := range []string{"host1", "host2"} {
		if err := b.host(h).Lose(false); err != nil {
			t.Fatal(err)
		}
	}
	b.host("host2").SetFaults(host.Faults{})
	_, said, run, err := b.runner(t.Context(), "single,hosts=host2/host1", perftestFlags{})
	if err != nil || len(said) != 2 || !strings.Contains(strings.Join(said, "\n"), "was left by an earlier run, and was ended") {
		t.Fatalf("%q %v", said, err)
	}
	b.idle()
	if _, err := run(); err != nil {
		t.Error(err)
	}
	b.idle()
}
