package rollout

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// Engine plans and carries out runs. Its fields are set once by the caller and not changed while it works; the zero
// value of an optional field means its default. An Engine may be used by several goroutines.
type Engine struct {
	Open     func(ctx context.Context, device string) (drivers.Device, error) // a new connection to a device of the inventory
	Dialect  func(os string) *render.Dialect                                  // render.ByOS
	Rules    Rules                                                            // lint's, for what a plan makes of the fabric; the zero value leaves that to others
	StateDir string                                                           // journals (runs/) and leases (leases/); created with mode 0700
	Tool     string                                                           // version of fabricctl
	Model    string                                                           // digest of today's model, which Resume wants to be the run's; "" does not compare
	Now      func() time.Time                                                 // clock
	NewID    func() string                                                    // id of a new run: letters, digits and "-", at most 28 of them
	Log      *slog.Logger                                                     // nil discards
	Hook     func(point string)                                               // failpoints, see Points; nil does nothing
	Progress func(Event)                                                      // called by one goroutine at a time; nil does nothing
	Wait     func(ctx context.Context, d time.Duration) error                 // pause between attempts to reconnect; nil waits for real
	Parallel int                                                              // devices at a time; 0 means 8
	Lease    *journal.Held                                                    // under which runs are made, held by the caller for longer than one; nil: each run takes its own
	Drainer  Drainer                                                          // takes traffic off devices before a link of theirs goes down; nil does not
	Lines    *Lines                                                           // connections from Plan to Apply; nil makes new ones
	Command  func(words ...string) string                                     // a command of fabricctl as a user of this engine types it, with flags; nil adds none
	ReadOnly bool                                                             // refuse every write with drivers.ErrReadOnly
	Within   time.Duration                                                    // confirm window where the device has one; 0 means 5 minutes
	Grace    time.Duration                                                    // for reading and restoring one device after an error or an interruption; 0 means 12 minutes
	Answer   time.Duration                                                    // how long a device that cannot revert is waited for once the run is to stop; 0 means 10 minutes
	LeaseTTL time.Duration                                                    // must be longer than the longest transaction; 0 means 20 minutes
}

// Rules judge a fabric. They are no import, since the program of a host, which sees one host alone and has to be small,
// does without.
type Rules struct {
	Check  func(*intent.Net, *model.Fabric) diag.List // lint.Check
	Advise func(l diag.List, after, want *intent.Net) // lint.Advise
}

// PlanOptions are the choices of a plan.
type PlanOptions struct {
	Model  string        // digest of the model
	Fabric *model.Fabric // the model, for what it promises of its classes; nil looks at the devices alone
	Adopt  bool          // look for live objects that may stand for ours
	Lab    bool          // every target is emulated: unverified platforms need no leave

	Harmless bool                     // leave out, and count as Kept, what is worse than hitless
	Spare    func(render.Change) bool // leave out, and count as Kept, what it is true for; nil leaves out nothing

	// Outlook, when not nil, is told what the devices do now, and what they will do once the plan is carried out. A device that was not
	// read knows nothing in either.
	Outlook func(now, after *intent.Net)

	thinking chan struct{} // slots for what needs a processor and memory; many more devices are waited for
	alike    *twins
}

// ApplyOptions are the leaves that a user gives. They stand in the journal and hold for Resume too.
type ApplyOptions struct {
	AllowDisruptive  bool `json:"allow_disruptive,omitempty"`  // risks of class flap and worse
	AllowJobs        bool `json:"allow_jobs,omitempty"`        // of those, the ones that kill live queue pairs; the connections must have that leave too
	AcceptUnverified bool `json:"accept_unverified,omitempty"` // platforms not tried on a real device

	// Trial is the experiment that the run is a trial of; "" = it is none. What a trial writes is not to stay: nothing is
	// saved, and a device that takes a change back by itself is left to do so unless Rollback comes first. A trial is rolled
	// back, and never resumed.
	Trial string `json:"trial,omitempty"`

	DrainHook string `json:"drain_hook,omitempty"` // the program behind Engine.Drainer, for who finishes the run
}

// Stage is what is being done to a device.
type Stage string

const (
	StageRead    Stage = "read"
	StageDrain   Stage = "drain" // Message has the ports
	StageUndrain Stage = "undrain"
	StageCommit  Stage = "commit"
	StageVerify  Stage = "verify"
	StageConfirm Stage = "confirm"
	StageSave    Stage = "save"
	StageUndo    Stage = "undo"
	StageDone    Stage = "done" // Outcome is set
)

// Event is progress as data.
type Event struct {
	Device  string
	Stage   Stage
	Step    int // from 1; 0 when the stage is not about a step
	Of      int // steps of the device
	Changes int // changes of the step
	Outcome Outcome
	Message string
}

func (e *Engine) parallel() int { return max(cmp.Or(e.Parallel, 8), 1) }

// command is a command of fabricctl, in messages.
func (e *Engine) command(words ...string) string {
	if e.Command != nil {
		return e.Command(words...)
	}
	return "fabricctl " + strings.Join(words, " ")
}

func (e *Engine) confirmWindow() time.Duration { return cmp.Or(e.Within, 5*time.Minute) }
func (e *Engine) grace() time.Duration         { return cmp.Or(e.Grace, 12*time.Minute) }
func (e *Engine) leaseTTL() time.Duration      { return cmp.Or(e.LeaseTTL, 20*time.Minute) }

func (e *Engine) log() *slog.Logger {
	if e.Log != nil {
		return e.Log
	}
	return slog.New(slog.DiscardHandler)
}

func (e *Engine) answer() time.Duration { return cmp.Or(e.Answer, 10*time.Minute) }

// Points are the failpoints of Engine.Hook, in the order of a run. At a point ending in "before" nothing has happened
// yet; at "after" it has, and nothing that follows from it.
func Points() []string {
	return []string{
		"lease.fsync.before", "lease.fsync.after",
		"journal.fsync.before", "journal.fsync.after",
		"device.commit.before", "device.commit.after",
		"device.confirm.before", "device.confirm.after",
		"device.save.before", "device.save.after",
		"device.abort.before", "device.abort.after",
		"undo.commit.before", "undo.commit.after",
	}
}
