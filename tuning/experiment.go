package tuning

import (
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// Experiment is what is to be found out, and how.
type Experiment struct {
	Context   Context
	Space     *Space
	Start     Setting // nil = Space.Base
	Workload  observe.Workload
	Sight     Sight // how the counters of an observation are understood
	Objective Objective
	Limits    Limits
	Budget    Budget
	Method    Method
	Seed      uint64
	Looks     Looks
	Parallel  int  // runs at once; 0 = 1. More than one only without a Bench and knobs
	Steady    bool // what it runs on does not drift, as an emulated fabric: what was measured stands
	Rejects   bool // runs may be rejected, so some more are kept for the confirmation
	PFCAlone  bool // the phase without ECN is allowed
	Rounds    int  // cycles at most; 0 = 4
	Plain     bool // one variable at a time and nothing else: no joint moves

	Now func() time.Time // for budgets and the journal
}

// Looks is how often a comparison is looked at. All looks of all metrics are counted together: each is at Confidence.
type Looks struct {
	First      int     `json:"first"`      // runs of each arm before the first, 6
	Every      int     `json:"every"`      // runs between two, 2
	Most       int     `json:"most"`       // runs of each arm, 16
	Polish     int     `json:"polish"`     // the same at the end, 20 or more where noise asks for it
	Confirm    int     `json:"confirm"`    // pairs on fresh seeds, 20; up to four times as many where noise asks for it
	Confidence float64 `json:"confidence"` // of each look, 0.99
}

// Context is what an experiment was made in, for whoever reads of it later.
type Context struct {
	Fabric      string            `json:"fabric"`
	Digest      string            `json:"digest"` // of the model
	Version     string            `json:"version"`
	Runner      string            `json:"runner"`             // "sim", "lab", "perftest"
	Emulated    bool              `json:"emulated,omitempty"` // it is an emulated fabric, whoever makes the runs: nothing was measured
	Command     []string          `json:"command"`
	Layers      []string          `json:"layers"`          // of the model
	Class       string            `json:"class"`           // that is tuned
	Devices     []string          `json:"devices"`         // that are written
	Ports       []string          `json:"ports"`           // that share an object which is edited: the blast radius
	Firmware    map[string]string `json:"firmware"`        // by device that takes part and answers, as it says
	Tool        string            `json:"tool,omitempty"`  // that makes the runs, with its version: "perftest 6.06"; "" = fabricctl itself
	Fingerprint string            `json:"fingerprint"`     // of firmware and tool together: when it changes, runs are not comparable
	Note        []string          `json:"note"`            // what holds for all of it
	Takes       int               `json:"takes,omitempty"` // runs that it takes at least until something is compared, where the budget had fewer
}

// Lab is what an experiment is carried out with.
type Lab struct {
	Runner Runner
	Bench  Bench // nil: the runner needs none
	Knobs  Knobs // nil: there are no external variables
}

// Outcome is what came of an experiment.
type Outcome struct {
	State   State   `json:"state"`
	Best    Setting `json:"best"` // Start when nothing better was found
	Verdict Verdict `json:"verdict"`
	Words   string  `json:"words"` // a sentence
	Spent   bool    `json:"spent"` // the budget was over before the search was
	Trip    string  `json:"trip"`  // the limit that ended it; "" = none
	Left    string  `json:"left"`  // with State NeedsHands: what is not as it was, and the commands that help

	Confirmed *Decision      `json:"confirmed"` // against Start on fresh seeds; nil = not made
	Pareto    []Arm          `json:"pareto"`    // that nothing beats in both goodput and tail
	Untested  []string       `json:"untested"`  // what was not tried, in words
	Runs      int            `json:"runs"`      // all, those of the confirmation and rejected ones too
	Rejected  int            `json:"rejected"`
	Took      units.Duration `json:"took"`
}

// State is how an experiment stands.
type State string

// The states.
const (
	Running    State = "running"
	Done       State = "done"
	Stopped    State = "stopped"     // by budget or by hand; the baseline is back
	Tripped    State = "tripped"     // a limit was broken; the baseline is back
	NeedsHands State = "needs-hands" // the baseline is not back
	Dead       State = "dead"        // the process is gone, and nobody has restored the baseline yet
)

// Event tells whoever watches. One of its pointers is set.
type Event struct {
	Progress *Progress
	Decision *Decision
	Notice   string // "baseline restored", "run 12 rejected: ..."
}

// Progress is how far an experiment is.
type Progress struct {
	Step string // "race", "kmax ladder"
	Runs int
	Most int           // runs that it may still come to at most; 0 = not known
	Left time.Duration // by what runs took until now; 0 = not known
}
