package observe

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/units"
)

// Workload is what traffic to drive: parts that run side by side, and how long it is measured. It has a compact text form
// (String, ParseWorkload), as "incast:8,bytes=1MB + victim:1 + probe,every=2us", and a YAML or JSON form (ReadWorkload). The
// zero Workload drives nothing.
type Workload struct {
	Name     string         `json:"name,omitempty" yaml:"name"`     // what people call it; "" = its text
	Parts    []Part         `json:"parts" yaml:"parts"`             //
	Duration units.Duration `json:"for,omitempty" yaml:"for"`       // how long is measured, warm-up not counted; 0 = as the runner has it
	Warmup   units.Duration `json:"warmup,omitempty" yaml:"warmup"` // before it is measured; 0 = as the runner has it
}

// Kind is who sends to whom.
type Kind string

// The kinds of parts. N is Part.N.
const (
	Single      Kind = "single"      // one flow: from the first host to the second that is named, or else to one under another switch
	Incast      Kind = "incast"      // N hosts (0 = all others) to one
	Pairs       Kind = "pairs"       // N pairs (0 = as many as there are): the first half of the hosts to the second half, one to one
	AllToAll    Kind = "alltoall"    // each of N hosts (0 = all) to each other
	Ring        Kind = "ring"        // each host to the next: N steps of an all-reduce, each waiting for the one before; 0 = the whole all-reduce of 2(n-1)
	Permutation Kind = "permutation" // each of N hosts (0 = all) to another one, drawn; each receives from one
	Background  Kind = "background"  // flows of a size between drawn hosts, at drawn times, for a load
	Probe       Kind = "probe"       // small messages at drawn times, for their latency
	Victim      Kind = "victim"      // N flows (0 = 1) from senders of the parts before to hosts that receive from nobody else
	Trace       Kind = "trace"       // flows as a file lists them
)

// Op is the operation of a flow.
type Op string

// The operations. Of an OpRead, the data goes from the second host to the first, which asks for it.
const (
	OpWrite Op = "write" // the default
	OpRead  Op = "read"
	OpSend  Op = "send"
)

// Part is one pattern of traffic. A field that is zero has the default that its comment gives. The letters in brackets are
// the options of perftest that ask for the same.
type Part struct {
	Kind Kind   `json:"kind" yaml:"kind"`
	N    int    `json:"n,omitempty" yaml:"n"`       // how many; see Kind
	Name string `json:"name,omitempty" yaml:"name"` // in results; "" = the kind, with a number when there are several

	Class  string   `json:"class,omitempty" yaml:"class"`   // of the model; "" = that of the hosts' RDMA connections
	DSCP   *uint8   `json:"dscp,omitempty" yaml:"dscp"`     // code point, whatever the class has [--tclass is 4 times it]
	Hosts  []string `json:"hosts,omitempty" yaml:"hosts"`   // that take part, in order; "host1..host8" is all of them from one to the other, "host1:nic-2" takes part with that NIC alone; empty = every host that has RDMA
	To     string   `json:"to,omitempty" yaml:"to"`         // host that receives; "" = the first one (of single, see there)
	Rail   int      `json:"rail,omitempty" yaml:"rail"`     // only this rail of the hosts, from 1; 0 = each flow on every rail
	Across bool     `json:"across,omitempty" yaml:"across"` // only between hosts that have no switch in common
	Random bool     `json:"random,omitempty" yaml:"random"` // who takes part is drawn anew at each burst

	Bytes   units.Bytes `json:"bytes,omitempty" yaml:"bytes"`     // that each flow sends; of a ring, that are reduced; 0 = it never ends (probe: 1KB, background: 64KB)
	Message units.Bytes `json:"size,omitempty" yaml:"size"`       // in messages of this size [-s]; 0 = it is one message
	Depth   int         `json:"depth,omitempty" yaml:"depth"`     // messages under way at most [-t]; 0 = no limit; of a latency test 1
	QPs     int         `json:"qps,omitempty" yaml:"qps"`         // queue pairs, each a flow of its own [-q]; 0 = 1
	Both    bool        `json:"both,omitempty" yaml:"both"`       // in both directions at once [-b]
	Op      Op          `json:"op,omitempty" yaml:"op"`           // ib_write_*, ib_read_*, ib_send_*
	MTU     units.Bytes `json:"mtu,omitempty" yaml:"mtu"`         // payload of a packet [-m]; 0 = the hosts' own
	Latency bool        `json:"latency,omitempty" yaml:"latency"` // messages one by one, for their latency [ib_*_lat]; size 0 = 2B

	Start  units.Duration `json:"start,omitempty" yaml:"start"`   // when it begins, warm-up included
	Spread units.Duration `json:"spread,omitempty" yaml:"spread"` // flows begin at drawn times within it
	Every  units.Duration `json:"every,omitempty" yaml:"every"`   // it is a burst, and comes again each so often; of probes, the mean time between two (0 = 2us)
	Jitter units.Percent  `json:"jitter,omitempty" yaml:"jitter"` // the time between two bursts is drawn from so much below to so much above
	Count  int            `json:"count,omitempty" yaml:"count"`   // bursts, or probes; 0 = until the end
	Load   units.Percent  `json:"load,omitempty" yaml:"load"`     // background: of the links of the hosts, on average; 0 = 30%

	File  string      `json:"file,omitempty" yaml:"file"`   // trace: where its flows are listed; whoever reads it fills in Flows
	Flows []TraceFlow `json:"flows,omitempty" yaml:"flows"` // trace
}

// Endless reports whether a part of w goes on until somebody stops it: flows without a size, or bursts without a number.
func (w *Workload) Endless() bool {
	return slices.ContainsFunc(w.Parts, func(p Part) bool {
		switch p.Kind {
		case Probe, Background:
			return p.Count == 0
		case Trace:
			return false
		}
		return p.Bytes == 0 || p.Every > 0 && p.Count == 0
	})
}

// TraceFlow is one flow of a trace.
type TraceFlow struct {
	Start units.Duration `json:"start" yaml:"start"`
	Src   string         `json:"src" yaml:"src"` // a host, or a NIC port of one as "host1:nic-2"
	Dst   string         `json:"dst" yaml:"dst"`
	Class string         `json:"class,omitempty" yaml:"class"` // "" = that of the part
	Bytes units.Bytes    `json:"bytes" yaml:"bytes"`
}

// Error is a workload that was refused.
type Error struct {
	Text string // the part, key or value that is wrong, as written
	What string // what is wrong with it, continuing a sentence that starts with the text
	Hint string // what to write instead; "" = nothing better is known
}

// Error is the text and what is wrong with it; the hint is kept apart.
func (e *Error) Error() string { return "workload: " + e.Text + " " + e.What }
