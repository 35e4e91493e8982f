package tuning

import "time"

// The records of an experiment's journal, by kind. What a record announces is done after it is on the disk: a trial is applied after its
// apply, and the restore that is done is written after the baseline was read back. A measure stands behind its run, and not always the
// next after it, where several runs are made at once.
const (
	recBegin    = "begin"    // Begin: what the experiment is about
	recSaid     = "said"     // Said: an answer of the space
	recApply    = "apply"    // Trial: devices and knobs are about to be brought to its setting
	recRun      = "run"      // Trial: it is about to be run
	recMeasure  = "measure"  // Measured
	recRefused  = "refused"  // NotTaken: devices do not take the setting of a trial, and hold the baseline
	recDecision = "decision" // Decision
	recNotice   = "notice"   // Notice: what whoever reads of it should know: drift, a block that was discarded
	recRestore  = "restore"  // Restore: the baseline is about to be brought back, or is
	recResume   = "resume"   // Begin: another process goes on
	recEnd      = "end"      // Outcome
	recGate     = "gate"     // Gated: the program of the user has judged the best setting
)

// RecordSchema is the schema of a journal, in its first record.
const RecordSchema = "fabricctl/tune-journal/v1"

// Begin is what an experiment is about: with the records after it, all that a replay needs.
type Begin struct {
	Schema    string             `json:"schema"`
	At        time.Time          `json:"at"`
	Context   Context            `json:"context"`
	Vars      []Variable         `json:"vars"`
	Base      Setting            `json:"base"`
	Start     Setting            `json:"start"`
	Workload  string             `json:"workload"`       // its text
	Load      string             `json:"load,omitempty"` // what people call the workload; "" = nothing
	Objective Objective          `json:"objective"`
	Limits    Limits             `json:"limits"`
	Budget    Budget             `json:"budget"`
	Method    Method             `json:"method"`
	Seed      uint64             `json:"seed"`
	Looks     Looks              `json:"looks"`
	Rounds    int                `json:"rounds"`
	Plain     bool               `json:"plain"`
	PFC       bool               `json:"pfc"`                 // the phase without ECN is part of it
	Drifts    bool               `json:"drifts"`              // what is compared takes turns, since what it runs on may drift
	Guarded   bool               `json:"guarded"`             // a limit that is broken ends it
	Rejects   bool               `json:"rejects,omitempty"`   // some runs more are kept for the confirmation, since some may be rejected
	Externals map[string]float64 `json:"externals,omitempty"` // what external variables were before
}

// Said is an answer of the Space that is not what was asked, so that a replay needs no model.
type Said struct {
	Of     string  `json:"of"` // "normal", "unmarked", "starts" or "check"
	In     Setting `json:"in"`
	Out    Setting `json:"out,omitempty"`
	Starts []Start `json:"starts,omitempty"`
	Why    string  `json:"why,omitempty"` // check: the errors
}

// Measured is the outcome of a trial.
type Measured struct {
	N        int       `json:"n"`
	At       time.Time `json:"at"`
	Measure  *Measure  `json:"measure"`            // null when it was rejected
	Rejected *Rejected `json:"rejected,omitempty"` //
	Harm     *Harm     `json:"harm,omitempty"`     // of a rejected run on devices: what their counters say of it all the same
}

// NotTaken is a trial that was not run, since devices do not take its setting.
type NotTaken struct {
	N      int    `json:"n"`
	Device string `json:"device"`
	Why    string `json:"why"`
}

// Notice is what happened besides.
type Notice struct {
	Text string `json:"text"`
}

// Restore is about the baseline.
type Restore struct {
	Why  string `json:"why"`
	Done bool   `json:"done"` // it is back, and was read back
	Left string `json:"left"` // with an error: what is not as it was
}
