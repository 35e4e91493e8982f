package rollout

import (
	"errors"
	"time"
)

// Outcome is what is known about a device after a run; it is said only after the device was read.
type Outcome string

const (
	Unchanged  Outcome = "unchanged"   // it holds what it held before the run; Cause says why if that was not the wish
	Applied    Outcome = "applied"     // it holds what was planned, read back over a new connection, confirmed and saved; a trial is neither confirmed nor saved
	RolledBack Outcome = "rolled-back" // something was written and has been taken back; it holds what it held before
	Unknown    Outcome = "unknown"     // it could not be read after a write began
	NeedsHands Outcome = "needs-hands" // it holds neither the old nor the new state, and undo failed or would destroy another's change
)

// Cause says why a device is not as wished.
type Cause string

const (
	None        Cause = ""
	Refused     Cause = "refused"     // for safety: stale plan, wrong device, competing owner, foreign transaction
	FailedCause Cause = "failed"      // the device or the way to it failed
	NotStarted  Cause = "not-started" // an earlier wave did not succeed, so this device was not touched
	Interrupted Cause = "interrupted" // the run was asked to stop
)

// Result is the outcome of one device.
type Result struct {
	Device  string    `json:"device"`
	Outcome Outcome   `json:"outcome"`
	Cause   Cause     `json:"cause,omitempty"`
	Message string    `json:"message,omitempty"` // one line: the device's own sentence, or what moved
	Notes   []string  `json:"notes,omitempty"`   // what a reader should know besides
	Steps   int       `json:"steps"`             // transactions in the plan
	Done    int       `json:"done"`              // transactions in force at the end
	Drained bool      `json:"drained,omitempty"` // it was drained, and could not be undrained
	Reverts time.Time `json:"reverts,omitzero"`  // of a trial: when the device takes it back by itself; zero when it does not
	Err     error     `json:"-"`                 // for errors.Is; nil in a result read from a journal
}

// Kind is what a run, or a later attempt on it, does.
type Kind string

const (
	KindApply    Kind = "apply"
	KindResume   Kind = "resume"
	KindRollback Kind = "rollback"
)

// Run is the result of Apply, Resume or Rollback, and what Show reads from a journal.
type Run struct {
	ID          string    `json:"id"`
	Fabric      string    `json:"fabric"`
	Kind        Kind      `json:"kind"`
	Owner       string    `json:"owner"`                 // user@host
	Fence       uint64    `json:"fence"`                 // lease number of the attempt
	Started     time.Time `json:"started,omitzero"`      // of the attempt
	Ended       time.Time `json:"ended,omitzero"`        // zero while it runs, or when it died
	Interrupted bool      `json:"interrupted,omitempty"` // stopped on request
	Results     []Result  `json:"results"`               // in the order of the plan; devices that are only observed are left out
	Left        []string  `json:"left,omitempty"`        // devices of which the plan left something out because of holds
	Notes       []string  `json:"notes,omitempty"`       // about the run, for example a torn journal line
	Unrecorded  bool      `json:"unrecorded,omitempty"`  // the journal vanished meanwhile: the run can neither be finished nor taken back
}

// RefusedError is a run refused as a whole, before anything was touched.
type RefusedError struct {
	Reason string
	Hint   string // what would make it possible; may be ""
	Err    error  // the cause, for errors.Is; may be nil
}

func (e *RefusedError) Error() string {
	s := e.Reason
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap is the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode is the exit code of design section 14 for what Apply, Resume or Rollback returned: 0 done; 1 failed before
// any change; 3 partly applied, devices that were left out for a hold or stay drained counting as such; 4 refused for safety, only held changes left, or
// taken back; 5 needs hands, unknown, not recorded, or a damaged journal; 130 interrupted.
func ExitCode(r *Run, err error) int {
	var refused *RefusedError
	var broken *DamagedError
	switch {
	case errors.As(err, &refused):
		return 4
	case errors.As(err, &broken):
		return 5
	case err != nil || r == nil:
		return 1
	}
	var done, bad, safe int
	for _, x := range r.Results {
		switch {
		case x.Outcome == Unknown || x.Outcome == NeedsHands:
			return 5
		case x.Drained && x.Cause == None:
			done, bad = done+1, bad+1
		case r.good(x):
			if x.Outcome != Unchanged {
				done++
			}
		case x.Outcome == RolledBack || x.Cause == Refused || x.Outcome == Applied:
			bad, safe = bad+1, safe+1
		default:
			bad++
		}
	}
	if len(r.Left) > 0 && r.Kind != KindRollback {
		bad, safe = bad+1, safe+1
	}
	switch {
	case r.Unrecorded:
		return 5
	case r.Interrupted:
		return 130
	case bad == 0:
		return 0
	case done > 0:
		return 3
	case safe > 0:
		return 4
	}
	return 1
}

// good reports whether x is what the run wished for.
func (r *Run) good(x Result) bool {
	if x.Cause != None || x.Drained {
		return false
	}
	if r.Kind == KindRollback {
		return x.Outcome == RolledBack || x.Outcome == Unchanged
	}
	return x.Outcome == Applied || x.Outcome == Unchanged
}
