package tuning

import (
	"context"
	"fmt"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Trial is one run that is to be made.
type Trial struct {
	N        int              `json:"n"` // from 1, in the order in which they were asked for
	Setting  Setting          `json:"setting"`
	Change   Change           `json:"change"` // what it means
	Seed     uint64           `json:"seed"`   // of whatever is drawn in the run; runs that are to be compared have the same
	Workload observe.Workload `json:"-"`      // that of the experiment
}

// Runner makes runs: the simulator, an emulated fabric, or verbs tests on hosts.
type Runner interface {
	// Run makes the run and says what was seen. A *Rejected error is a run whose numbers must not be used; any other error is
	// a Runner that cannot go on. A Runner of an Experiment with Parallel above 1 may be called so many times at once.
	Run(ctx context.Context, t Trial) (observe.Observation, error)
}

// Bench is devices that settings are tried on.
type Bench interface {
	// Apply brings the devices to the model with p in it, and has read that back when it returns nil. A *Refusal is a setting that the
	// devices do not take: they hold what they held before the first Apply, and have been read. After any other error they are somewhere
	// between, or it is not known where. It is called before each run: when the devices have p already, it sees to it that they keep
	// it for as long as a run may take.
	Apply(ctx context.Context, p model.Patch) error
	// Restore brings the devices back to what they held before the first Apply, and has read that back when it returns nil.
	// It may be called at any time, more than once, and after a Bench was made anew of the journal of one that died.
	Restore(ctx context.Context) error
}

// Knobs sets and reads external variables. Restoring them is the loop's business: it has read them before it moved any.
type Knobs interface {
	Set(ctx context.Context, v *Variable, value float64) error // and has read it back
	Get(ctx context.Context, v *Variable) (float64, error)
}

// Rejected is a run whose numbers must not be used. It says nothing about the setting: the run is made again.
type Rejected struct {
	Code string `json:"code"` // "host", "wrong-class", "failed", "no-end", ...: see the runner
	Why  string `json:"why"`  // in words
	Host bool   `json:"host"` // the host was what limited it, and not the fabric
}

// Error is why the run is not used.
func (r *Rejected) Error() string { return fmt.Sprintf("run rejected (%s): %s", r.Code, r.Why) }

// Harm is what a run has done to the fabric, whether its numbers can be used or not.
type Harm struct {
	Drops    *uint64  `json:"drops"`
	Watchdog *uint64  `json:"watchdog"`
	Pausing  *float64 `json:"pausing"`
}

// harm is what a run has done to the fabric.
func (m *Measured) harm() Harm {
	switch {
	case m.Harm != nil:
		return *m.Harm
	case m.Measure != nil:
		return Harm{m.Measure.Drops, m.Measure.Watchdog, m.Measure.Pausing}
	}
	return Harm{}
}

// Refusal is a setting that a device does not take, or that a plan for it refuses. It says something about the setting and nothing about the
// device, whose state is known: the setting is left out, and the experiment goes on.
type Refusal struct {
	Device string
	Why    string // in the device's own words
}

// Error names the device.
func (r *Refusal) Error() string { return r.Device + " refuses it: " + r.Why }

// Lost is a device that does not answer any more, or a Bench that does not know what its devices hold. It ends the
// experiment, and the baseline is restored as far as that goes.
type Lost struct {
	Device string
	Err    error
}

// Error names the device.
func (l *Lost) Error() string { return l.Device + ": " + l.Err.Error() }

// Unwrap is what happened.
func (l *Lost) Unwrap() error { return l.Err }

// Measure is one run in the numbers that decisions are made from. It stands in the journal, so a replay has nothing else.
type Measure struct {
	Goodput float64            `json:"goodput"`         // bits per second of payload, all flows
	Parts   map[string]float64 `json:"parts,omitempty"` // the same by part of the workload

	P50     float64          `json:"p50"` // seconds, of what measures latency, or of completion times; 0 = not measured
	P99     float64          `json:"p99"`
	P999    float64          `json:"p999"`
	Latency []observe.Bucket `json:"latency,omitempty"` // the same, counted, to be added up over runs

	Drops    *uint64  `json:"drops"`    // packets of lossless classes; null = nobody counts them
	Watchdog *uint64  `json:"watchdog"` // times that a PFC watchdog took something for a storm
	Sequence *uint64  `json:"sequence"` // out-of-sequence, NAK and time-out events of hosts
	Paused   *float64 `json:"paused"`   // the part of the time that the worst port was stopped by a switch, 0 to 1
	Pausing  *float64 `json:"pausing"`  // the part of the time that the worst host stopped its switch: a slow receiver
	Marked   *uint64  `json:"marked"`   // packets

	Digest string   `json:"digest"` // SHA-256 of what the runner has kept of the run
	Notes  []string `json:"notes,omitempty"`
}
