// Package sim simulates a fabric: an intent.Net, wanted or as devices hold it, under a workload. It makes of the Net what
// package engine runs (ports, classes, buffers, queue pairs), and of what the engine counted what people and tuning read:
// goodput and latencies, queues, pauses and drops by the names of devices, and why nothing happened where nothing did.
//
// What a Net says is simulated as it is: a map that sends a class elsewhere, a port without PFC, a headroom that is too
// small or an MTU that is different has the effect that it would have. What a Net does not say is assumed, and each
// assumption is in the result.
//
// The package does no I/O and reads no clock. A run is a pure function of its arguments.
package sim

import (
	"context"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// Schema is the schema of a Result in JSON.
const Schema = "fabricctl/sim/v1"

// How long a run is measured, and how long it warms up before, when neither the options nor the workload say.
const (
	DefaultDuration = 10 * units.Millisecond
	DefaultWarmup   = units.Millisecond
)

// Options are how to simulate, whatever the fabric and the workload. The zero Options are what most runs want.
type Options struct {
	Duration units.Duration // how long is measured; 0 = the workload's, or DefaultDuration
	Warmup   units.Duration // before that; 0 = the workload's, or DefaultWarmup when a flow never ends, or none
	Sample   units.Duration // a row of Result.Series each so often; 0 = none
	Watch    []Ref          // queues in the rows; empty = those that the workload fills, as far as that can be told before
	Faults   []Fault        //
	Entry    bool           // switches mark packets as they join a queue, not as they leave it
	Compat   bool           // whole nanoseconds, as an established simulator computes; to compare with it
	NoPause  bool           // no switch and no NIC pauses: what congestion control does alone
	NoMarks  bool           // no switch marks: what PFC does alone
	Audit    int            // bytes are counted anew each so many events, and a missing one ends the run with an error; 0 = never

	Progress func(at, end units.Duration) // told, when not nil, how far the run is, warm-up included; end 0 = nobody knows
}

// Changes are the words for what o changes of a fabric: "without PFC", "without ECN", "marked on entry", and faults in their text form.
// They are never nil.
func (o *Options) Changes() []string {
	all := []string{}
	for _, x := range []struct {
		is   bool
		word string
	}{{o.NoPause, "without PFC"}, {o.NoMarks, "without ECN"}, {o.Entry, "marked on entry"}} {
		if x.is {
			all = append(all, x.word)
		}
	}
	for _, f := range o.Faults {
		all = append(all, f.String())
	}
	return all
}

// Ref names a queue (or priority) of a port: "leaf1:Ethernet8:3". Port is the model's name or the device's.
type Ref struct {
	Device, Port string
	Queue        int
}

// Job is one run of several.
type Job struct {
	Net      *intent.Net
	Workload observe.Workload
	Options  Options
	Seed     uint64
}

// Refused is the error of a run that cannot be: nothing was simulated.
type Refused struct {
	Findings diag.List // sorted; at least one is an error
}

// Run simulates w on n. The seed decides what is drawn: who sends to whom where the workload leaves that open, when flows
// start, which packets are marked, and which ways flows hash to. The error is a *Refused, or ctx's: then the
// Result, when there is one, is of the time until then, and its End is "interrupted".
func Run(ctx context.Context, n *intent.Net, w observe.Workload, o Options, seed uint64) (*Result, error) {
	s, err := Build(n, w, o, seed)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx)
}
