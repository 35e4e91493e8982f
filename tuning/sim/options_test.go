package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// TestOptions: each option does what it says, and no more.
func TestOptions(t *testing.T) {
	n := example(t, "small")
	load := "incast:8,bytes=10MB"
	plain := run(t, n, load, Options{}, 1)
	entry := run(t, n, load, Options{Entry: true}, 1)
	if entry.Hash == plain.Hash || entry.Totals.Marked == 0 || entry.Totals.Completed != 8 {
		t.Errorf("marks on entry: %+v", entry.Totals)
	}
	if r := run(t, n, load, Options{Compat: true}, 1); r.Hash == plain.Hash || r.Totals.Completed != 8 || r.Totals.Drops > 0 {
		t.Errorf("whole nanoseconds: %+v", r.Totals)
	}
	open := "incast:8,for=2ms,warmup=500us"
	if r := run(t, n, open, Options{NoPause: true, NoMarks: true}, 1); r.Totals.Pauses > 0 || r.Totals.Drops == 0 || r.Measured != 2*units.Millisecond || r.Warmup != 500*units.Microsecond {
		t.Errorf("neither pauses nor marks: %+v", r.Totals)
	} else if text := strings.Join(r.Why, "\n"); !strings.Contains(text, "PFC was left out on request") || !strings.Contains(text, "marking was left out on request") {
		t.Error(text)
	}
	if r := run(t, n, open, Options{Duration: units.Millisecond, Warmup: units.Microsecond}, 1); r.Measured != units.Millisecond || r.Warmup != units.Microsecond {
		t.Errorf("%s after %s", r.Measured, r.Warmup)
	}
}

// TestInterrupted: a run whose context ends tells what it has seen until then, and how far it is while it goes on.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last units.Duration
	o := Options{Duration: units.Second, Progress: func(at, end units.Duration) {
		if at < last || end != units.Second+DefaultWarmup {
			t.Errorf("%s of %s after %s", at, end, last)
		}
		if last = at; at > 2*units.Millisecond {
			cancel()
		}
	}}
	r, err := Run(ctx, example(t, "small"), workload(t, "incast:8"), o, 1)
	if !errors.Is(err, context.Canceled) || r == nil || r.End.Why != "interrupted" || r.Totals.Goodput == 0 || r.Measured == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
}

// TestLinkPause: 802.3x pauses stop every class of a link, those too that fill nothing.
func TestLinkPause(t *testing.T) {
	n := edit(example(t, "small"), func(*intent.Device, *intent.Port) bool { return true }, func(p *intent.Policy) {
		p.Queues[3].Lossless, p.Pause = false, intent.Pause{Send: true, Receive: true}
	})
	load := "incast:8,to=host1,hosts=host1..host9,bytes=20MB + single,hosts=host2,to=host10,class=default,bytes=20MB"
	r := run(t, n, load, Options{NoMarks: true}, 1)
	if r.Totals.Drops > 0 || r.Totals.Pauses == 0 || r.Totals.Completed != 9 || !strings.Contains(strings.Join(r.Assumed, "\n"), "802.3x pause frames of the neighbour stop all queues") {
		t.Errorf("%+v\n%s", r.Totals, strings.Join(r.Why, "\n"))
	}
	pfc := run(t, example(t, "small"), load, Options{NoMarks: true}, 1)
	if a, b := r.Flows[8].Completion, pfc.Flows[8].Completion; a < 2*b {
		t.Errorf("the other class takes %s with 802.3x, and %s with PFC", a, b)
	}
	deaf := edit(n, hosts, func(p *intent.Policy) { p.Pause = intent.Pause{} })
	if r := run(t, deaf, load, Options{NoMarks: true, Duration: 2 * units.Millisecond}, 1); r.Totals.Drops == 0 {
		t.Error("hosts that hear no pause lose nothing")
	}
}
