package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
)

// NewRunID is a time to sort by and eight random digits, short enough to be part of a session's name on a device.
func NewRunID(now time.Time) string {
	return fmt.Sprintf("%s-%08x", now.UTC().Format("060102-150405"), rand.Uint32())
}

// Status says where a run stands.
type Status string

const (
	Running    Status = "running"    // its lease is held
	Unfinished Status = "unfinished" // it died, or ended with some devices as it wished and others not: Resume, Rollback or hands
	Finished   Status = "finished"   // every device is as the last attempt wished, or holds what it held before the run
)

// Summary is one run in a list.
type Summary struct {
	ID      string          `json:"id"`
	Fabric  string          `json:"fabric,omitempty"`
	Kind    Kind            `json:"kind,omitempty"` // of the last attempt
	Status  Status          `json:"status"`
	Started time.Time       `json:"started,omitzero"`
	Trial   string          `json:"trial,omitempty"`   // the experiment that it is a trial of
	Later   *Later          `json:"later,omitempty"`   // of an unfinished one: what later runs have made of it; nil = there are none
	Devices map[Outcome]int `json:"devices,omitempty"` // number of devices per outcome, after the last attempt
	Error   string          `json:"error,omitempty"`   // the journal cannot be read
}

// History is a run with its plan and all its attempts, oldest first.
type History struct {
	Summary
	Plan     *Plan        `json:"plan"`
	Options  ApplyOptions `json:"options"`
	Attempts []*Run       `json:"attempts"`
	Torn     string       `json:"torn,omitempty"` // the journal's last line was not written whole

	sent map[string]bool // devices to which a transaction may have been sent
}

// Runs lists the runs of a state directory, oldest first. A journal that cannot be read is listed with its Error.
func Runs(stateDir string, now time.Time) ([]Summary, error) {
	var out []Summary
	var all []trace
	of := map[string]*trace{}
	err := each(stateDir, now, func(id string, h *History, err error) {
		if err != nil {
			out = append(out, Summary{ID: id, Status: Unfinished, Error: diag.OneLine(err.Error())})
			return
		}
		t := h.trace()
		all, of[id] = append(all, t), &t
		out = append(out, h.Summary)
	})
	if err != nil {
		return nil, err
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Started.Before(out[j].Started) })
	slices.SortStableFunc(all, earlier)
	for i := range out {
		if x := &out[i]; x.Status == Unfinished && of[x.ID] != nil {
			x.Later = of[x.ID].later(all)
		}
	}
	return out, nil
}

// Show reads one run. errors.Is(err, fs.ErrNotExist) when there is none of that id.
func Show(stateDir, id string, now time.Time) (*History, error) {
	st, err := load(stateDir, id)
	if err != nil {
		return nil, err
	}
	p := st.head.Plan
	h := &History{Plan: p, Options: st.head.Options, Attempts: st.attempts, sent: st.begun}
	h.ID, h.Fabric, h.Trial = id, p.Fabric, st.head.Options.Trial
	if st.torn != nil {
		h.Torn = st.torn.String()
	}
	l, _ := journal.ReadLease(journal.LeasePath(LeasesDir(stateDir), p.Fabric))
	h.Status = st.status((l.Run == id || l.Run != "" && l.Run == st.head.Options.Trial) && l.Held(now))
	h.Devices = map[Outcome]int{}
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Mode == Write {
			h.Devices[st.outcome(d).Outcome]++
		}
	}
	for i, a := range st.attempts {
		if i == 0 {
			h.Started = a.Started
		}
		if i == len(st.attempts)-1 {
			h.Kind = a.Kind
			a.Results = st.complete(a)
		}
		sortedResults(p, a.Results)
	}
	return h, nil
}

func (s *story) status(held bool) Status {
	if held {
		return Running
	}
	if len(s.attempts) == 0 {
		return Unfinished
	}
	last := s.attempts[len(s.attempts)-1]
	if last.Ended.IsZero() {
		return Unfinished
	}
	if s.head.Options.Trial != "" && last.Kind == KindApply && len(s.begun) > 0 {
		return s.tried()
	}
	good, old := true, true // all as wished; all as before the run
	for i := range s.head.Plan.Devices {
		d := &s.head.Plan.Devices[i]
		if d.Mode != Write {
			continue
		}
		r := s.outcome(d)
		old = old && (r.Outcome == Unchanged || r.Outcome == RolledBack)
		if last.Kind == KindRollback {
			r.Cause = None // a device that an earlier attempt took back, or never touched, is as the rollback wishes
		}
		good = good && last.good(r)
	}
	for _, still := range s.drained {
		good, old = good && !still, old && !still
	}
	if good || old {
		return Finished
	}
	return Unfinished
}

// tried is the status of a trial that was not taken back by a run of its own: unless that happened when it failed, it is
// in force.
func (s *story) tried() Status {
	for device := range s.begun {
		if o := s.last[device].Outcome; s.open[device] || o != RolledBack && o != Unchanged {
			return Unfinished
		}
	}
	return Finished
}

// outcome is what the journal knows about a device.
func (s *story) outcome(d *DevicePlan) Result {
	r, known := s.last[d.Name]
	switch {
	case s.open[d.Name] && (!known || r.Outcome != NeedsHands):
		return Result{
			Device: d.Name, Outcome: Unknown, Cause: FailedCause, Steps: len(d.Steps),
			Message: "the run died with a transaction in flight: resume or roll back",
		}
	case known:
		return r
	case s.begun[d.Name]:
		return Result{
			Device: d.Name, Outcome: Unknown, Cause: FailedCause, Steps: len(d.Steps),
			Message: "the run died between transactions: resume or roll back",
		}
	case len(d.Steps) > 0:
		return Result{Device: d.Name, Outcome: Unchanged, Cause: NotStarted, Steps: len(d.Steps)}
	}
	return Result{Device: d.Name, Outcome: Unchanged}
}

// complete adds to the results of the last attempt what is known of the devices that it did not report.
func (s *story) complete(a *Run) []Result {
	rs := a.Results
	for i := range s.head.Plan.Devices {
		d := &s.head.Plan.Devices[i]
		if d.Mode == Write && !slices.ContainsFunc(rs, func(r Result) bool { return r.Device == d.Name }) {
			rs = append(rs, s.outcome(d))
		}
	}
	return rs
}
