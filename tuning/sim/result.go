package sim

import (
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// Result is what became of a workload, from the end of the warm-up on. Lists are sorted: what matters most first where
// there is such an order, else by name.
type Result struct {
	Schema   string         `json:"schema"`
	Fabric   string         `json:"fabric"`
	Workload string         `json:"workload"` // in its text form
	Changed  []string       `json:"changed"`  // what Options have changed of the fabric: faults, and what was left out
	Seed     uint64         `json:"seed"`
	Hash     string         `json:"hash"` // of the order of all events: equal runs have equal ones
	Events   uint64         `json:"events"`
	Packets  uint64         `json:"packets"`  // of data, received in order
	Warmup   units.Duration `json:"warmup"`   //
	Measured units.Duration `json:"measured"` // what all numbers are of
	End      End            `json:"end"`

	Totals   Totals     `json:"totals"`
	Parts    []Group    `json:"parts"`   // of the workload
	Classes  []Group    `json:"classes"` //
	Flows    []Flow     `json:"flows"`
	Queues   []Queue    `json:"queues"` // that held a packet, the fullest first
	Pauses   []Pause    `json:"pauses"` // by port and priority, the longest paused first
	Drops    []Drop     `json:"drops"`  // the most first
	Buffers  []Buffer   `json:"buffers"`
	Watchdog []Watchdog `json:"watchdog"`
	Why      []string   `json:"why"`     // why nothing happened, or what did: sentences with the numbers that they follow from
	Assumed  []string   `json:"assumed"` // what the fabric does not say, and what was taken for it
	Findings diag.List  `json:"findings"`
	Series   *Series    `json:"series,omitempty"`

	silent []int // places in Flows
	setup  *Setup
	raw    *engine.Result
}

// Release lets go of what only Counters needs, which is far more than the rest: of a Result that is kept beside many others.
func (r *Result) Release() { r.setup, r.raw = nil, nil }

// Silent are the flows of which nothing ever arrived, warm-up included, although they had most of the run for it, ten times as
// long as they would take alone, and as long as their NICs need to serve ten times each flow that they have.
func (r *Result) Silent() []*Flow {
	fs := make([]*Flow, len(r.silent))
	for i, at := range r.silent {
		fs[i] = &r.Flows[at]
	}
	return fs
}

// End is why the run ended: "stop" (its time was over), "done" (all flows had ended), "idle" (nothing could happen any
// more), "deadlock", "livelock", or "interrupted".
type End struct {
	Why   string         `json:"why"`
	At    units.Duration `json:"at"`
	Words string         `json:"words"` // a sentence
	Stuck []Stuck        `json:"stuck,omitempty"`
}

// Stuck is a queue that waits, and the port that makes it wait: of a deadlock, one after the other around the circle.
type Stuck struct {
	Queue  Place       `json:"queue"`
	Bytes  units.Bytes `json:"bytes"`
	Paused Place       `json:"paused_by"` // the port that pauses it; zero when none does
}

// Place is a port of a device, with the queue or priority that it is about.
type Place struct {
	Device string `json:"device"`
	Port   string `json:"port"`            // the device's own name where it is bound, else the model's
	Queue  int    `json:"queue"`           // or priority
	Class  string `json:"class,omitempty"` // of the model
	Host   bool   `json:"host,omitempty"`  // it is a NIC
}

// Totals are over all flows.
type Totals struct {
	Goodput     units.BitRate  `json:"goodput"`     // payload that arrived in order
	Completed   int            `json:"completed"`   // flows of a known size that have ended
	Unfinished  int            `json:"unfinished"`  // that have not, but started
	Completion  Times          `json:"completion"`  // times of those that have ended
	Latency     Times          `json:"latency"`     // of the messages of parts that measure it
	Marked      uint64         `json:"marked"`      // packets
	CNPs        uint64         `json:"cnps"`        // sent
	Pauses      uint64         `json:"pauses"`      // sent by switches and NICs; refreshes not counted
	PausedTime  units.Duration `json:"paused_time"` // sum over ports and priorities
	Drops       uint64         `json:"drops"`
	Lossless    uint64         `json:"lossless_drops"` // of these, in classes that are lossless
	Resent      uint64         `json:"resent"`         // packets
	Timeouts    uint64         `json:"timeouts"`
	OutOfOrder  uint64         `json:"out_of_order"`
	WatchdogHit uint64         `json:"watchdog"` // queues found stuck
	Fairness    float64        `json:"fairness"` // Jain's index over the endless flows; 0 = there are none
}

// Times are percentiles of a time; all zero when nothing was timed.
type Times struct {
	Count uint64         `json:"count"`
	Mean  units.Duration `json:"mean"`
	P50   units.Duration `json:"p50"`
	P99   units.Duration `json:"p99"`
	P999  units.Duration `json:"p999"`
	Max   units.Duration `json:"max"`
}

// Group is the flows of a part of the workload, or of a class.
type Group struct {
	Name       string        `json:"name"`
	Flows      int           `json:"flows"`
	Goodput    units.BitRate `json:"goodput"`
	Least      units.BitRate `json:"least"` // goodput of the worst and the best flow that was active throughout
	Most       units.BitRate `json:"most"`
	Fairness   float64       `json:"fairness"`
	Completed  int           `json:"completed"`
	Unfinished int           `json:"unfinished"`
	Completion Times         `json:"completion"`
	Latency    Times         `json:"latency"`
	Marked     uint64        `json:"marked"`
	CNPs       uint64        `json:"cnps"`  // received by its senders
	Drops      uint64        `json:"drops"` // frames of its flows, answers and notifications included
	Resent     uint64        `json:"resent"`

	counted  engine.Histogram // of Completion, or of Latency where it is measured, in ns
	measured bool
}

// Flow is one queue pair.
type Flow struct {
	Part       string         `json:"part"`
	Class      string         `json:"class"`
	DSCP       uint8          `json:"dscp"`
	From       Place          `json:"from"` // the NIC whose memory the data is in
	To         Place          `json:"to"`
	Bytes      units.Bytes    `json:"bytes"` // 0 = endless
	Start      units.Duration `json:"start"`
	Started    bool           `json:"started"`
	Done       bool           `json:"done"`
	Completion units.Duration `json:"completion"` // 0 = it has not ended
	Ideal      units.Duration `json:"ideal"`      // what it would take alone; 0 = endless
	Goodput    units.BitRate  `json:"goodput"`    // while it was active and measured
	Received   units.Bytes    `json:"received"`
	Rate       units.BitRate  `json:"rate"` // that congestion control allows it at the end
	Latency    Times          `json:"latency"`
	Marked     uint64         `json:"marked"`
	CNPs       uint64         `json:"cnps"`
	Cuts       uint64         `json:"cuts"`
	Drops      uint64         `json:"drops"`
	Resent     uint64         `json:"resent"`
	NAKs       uint64         `json:"naks"`
	Timeouts   uint64         `json:"timeouts"`
}

// Queue is an egress queue.
type Queue struct {
	Place
	Mean   units.Bytes `json:"mean"` // over time
	P99    units.Bytes `json:"p99"`
	Max    units.Bytes `json:"max"`
	Kmin   units.Bytes `json:"kmin"` // 0 = it does not mark
	Kmax   units.Bytes `json:"kmax"`
	Bytes  uint64      `json:"bytes"` // sent
	Frames uint64      `json:"frames"`
	Marked uint64      `json:"marked"`
	Drops  uint64      `json:"drops"`
}

// Pause is a priority of a port that was paused, or that paused its neighbour.
type Pause struct {
	Place
	Sent     uint64         `json:"sent"`     // pauses to the neighbour
	Received uint64         `json:"received"` // that it obeyed
	Paused   units.Duration `json:"paused"`   // for which it was stopped
	Longest  units.Duration `json:"longest"`  // without an end between
	Part     float64        `json:"part"`     // Paused of the time measured, 0 to 1
}

// Drop is packets that were discarded at one place for one reason.
type Drop struct {
	Place
	Reason   string `json:"reason"`
	Packets  uint64 `json:"packets"`
	Bytes    uint64 `json:"bytes"`
	Lossless bool   `json:"lossless"` // the class is lossless where it was dropped
}

// Buffer is how far an ingress priority group came towards its thresholds.
type Buffer struct {
	Place
	Max         units.Bytes `json:"max"`          // held, headroom not counted
	Threshold   units.Bytes `json:"threshold"`    // where it pauses when nobody else holds anything; 0 = it does not
	Headroom    units.Bytes `json:"headroom"`     // that it has
	HeadroomMax units.Bytes `json:"headroom_max"` // that it used
	PoolMax     units.Bytes `json:"pool_max"`     // of its pool, by all groups of the switch
	Pool        units.Bytes `json:"pool"`
}

// Watchdog is a queue on which the PFC watchdog acted.
type Watchdog struct {
	Place
	Stuck    uint64 `json:"stuck"`
	Restored uint64 `json:"restored"`
	Dropped  uint64 `json:"dropped"` // packets
}

// Series is rows over time.
type Series struct {
	Queues []Place `json:"queues"` // columns of Rows.Queues
	Flows  []int   `json:"flows"`  // columns of Rows.Rates: indices of Result.Flows
	Rows   []Row   `json:"rows"`
}

// Row is the state at one time.
type Row struct {
	At      units.Duration  `json:"at"` // from the start, warm-up included
	Queues  []units.Bytes   `json:"queues"`
	Goodput []units.BitRate `json:"goodput"` // received in order since the row before, by flow
	Rates   []units.BitRate `json:"rates"`   // that congestion control allows, by flow
	Paused  units.Duration  `json:"paused"`  // sum over ports since the row before
	Marked  uint64          `json:"marked"`
	Drops   uint64          `json:"drops"`
}
