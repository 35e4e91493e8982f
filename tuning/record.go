package tuning

import "time"

// Record is a line of an experiment's journal. One of its pointers is set. What a record announces is done after it is on the
// disk: a trial is applied after its Apply, and Restored is written after the baseline was read back.
type Record struct {
	Begin    *Begin    `json:"begin,omitempty"`
	Apply    *Trial    `json:"apply,omitempty"`    // devices are about to be brought to the setting of this trial
	Run      *Trial    `json:"run,omitempty"`      // it is about to be run
	Measure  *Measured `json:"measure,omitempty"`  //
	Decision *Decision `json:"decision,omitempty"` //
	Restore  *Restore  `json:"restore,omitempty"`  // the baseline is about to be brought back, or is
	Resume   *Begin    `json:"resume,omitempty"`   // another process goes on
	Gate     *Gated     `json:"gate,omitempty"`     // the program of the user has judged the best setting
	End      *Outcome  `json:"end,omitempty"`      //
}

// RecordSchema is the schema of the first record of a journal.
const RecordSchema = "fabricctl/tune-journal/v1"

// Begin is what an experiment is about: with the records after it, all that a replay needs.
type Begin struct {
	Schema    string             `json:"schema"`
	At        time.Time          `json:"at"`
	Context   Context            `json:"context"`
	Vars      []Variable         `json:"vars"`
	Base      Setting            `json:"base"`
	Start     Setting            `json:"start"`
	Workload  string             `json:"workload"` // its text
	Objective Objective          `json:"objective"`
	Limits    Limits             `json:"limits"`
	Budget    Budget             `json:"budget"`
	Method    Method             `json:"method"`
	Seed      uint64             `json:"seed"`
	Looks     Looks              `json:"looks"`
	PFCAlone  bool               `json:"pfc_alone"`
	Rounds    int                `json:"rounds"`
	Externals map[string]float64 `json:"externals,omitempty"` // what external variables were before
}

// Measured is the outcome of a trial.
type Measured struct {
	N        int       `json:"n"`
	At       time.Time `json:"at"`
	Measure  *Measure  `json:"measure"`            // null when it was rejected
	Rejected *Rejected `json:"rejected,omitempty"` //
}

// Restore is about the baseline.
type Restore struct {
	Why  string `json:"why"`
	Done bool   `json:"done"` // it is back, and was read back
	Left string `json:"left"` // with an error: what is not as it was
}
