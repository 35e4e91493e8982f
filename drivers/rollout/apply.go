package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// Apply carries out a plan: that of Plan as it is, that of a file after Check. An error means that no device was touched; errors.As *RefusedError when that was for
// safety. Otherwise the Run says what each device holds. A plan without changes takes no lease, leaves no journal and
// returns a Run without an id.
//
// When ctx ends, no further device is started, and those in progress are taken back (Cause Interrupted), which may
// take as long as Engine.Grace.
func (e *Engine) Apply(ctx context.Context, p *Plan, o ApplyOptions) (*Run, error) {
	if err := cmp.Or(p.check(), p.bound()); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if err := cmp.Or(p.Refusal(), p.Unwritable()); err != nil {
		return nil, err
	}
	early, gate := settled(p)
	ws := p.waves(false)
	if len(ws) == 0 {
		now := e.Now().UTC()
		r := &Run{Fabric: p.Fabric, Kind: KindApply, Started: now, Ended: now, Results: early, Left: p.LeftOut()}
		return r, nil
	}
	if err := e.preflight(p, o); err != nil {
		return nil, err
	}
	id := e.NewID()
	if !idPattern.MatchString(id) {
		return nil, fmt.Errorf("run id %q: want at most 28 letters, digits and \"-\"", id)
	}
	var first *reached
	defer func() { first.close() }()
	a, err := e.begin(ctx, id, KindApply, p.Fabric, func(jo journal.Options) (*attempt, error) {
		log, err := journal.Create(runPath(e.StateDir, id), jo)
		if err != nil {
			return nil, err
		}
		first = e.reachFirst(ctx, ws[0])
		a := &attempt{plan: p, leave: o, log: log, saves: map[string]bool{}, first: first}
		return a, a.append(recRun, headOf(id, p, o))
	})
	if err != nil {
		return nil, err
	}
	a.run.Left = p.LeftOut()
	for _, r := range early {
		a.run.Results = append(a.run.Results, r)
		a.record(recResult, r, func(note string) { a.run.Notes = append(a.run.Notes, note) })
	}
	a.work(ctx, ws, gate, func(ctx context.Context, s *session) Result { return s.apply(ctx) })
	return a.end(ctx), nil
}

// Refusal is the *RefusedError with which Apply refuses a plan that has blocked devices: a fabric that agrees only in
// part is not what the model asks for. Nil when there are none.
func (p *Plan) Refusal() error {
	var names []string
	var first diag.Finding
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Blocked {
			if len(names) == 0 {
				first = d.blockedBy()
			}
			names = append(names, d.Name)
		}
	}
	for _, f := range p.Finds {
		if f.Severity == diag.Error && len(names) == 0 {
			return &RefusedError{Reason: "nothing was written: " + f.Msg, Hint: f.Hint}
		}
	}
	others := ", or plan the other devices alone with --device"
	switch n := len(names); n {
	case 0:
		return nil
	case 1:
		return &RefusedError{Reason: fmt.Sprintf("nothing was written: the plan refuses %s: %s", names[0], first.Msg), Hint: cmp.Or(first.Hint, "repair that") + others}
	default:
		return &RefusedError{Reason: fmt.Sprintf("nothing was written: the plan refuses %s and %s, for reasons that it shows; %s: %s", names[0], diag.Plural(n-1, "other", "others"), names[0], first.Msg), Hint: "repair that" + others}
	}
}

// settled is the results of devices that the plan could not read or leaves alone. gate is set when a switch is among
// the former: hosts then stay as they are.
func settled(p *Plan) (rs []Result, gate error) {
	for _, d := range p.Devices {
		r := Result{Device: d.Name, Outcome: Unchanged}
		switch {
		case d.Error != "":
			r.Cause, r.Message = FailedCause, d.Error
		case d.Mode == Write && len(d.Steps) == 0 && (d.Left != nil || len(d.Held) > 0):
			r.Message = d.heldWords()
		case d.Mode == Write && len(d.Steps) == 0:
		default:
			continue
		}
		rs = append(rs, r)
		if r.Cause != None && !d.Host {
			gate = fmt.Errorf("%s is not as planned, and hosts depend on the switches", d.Name)
		}
	}
	return rs, gate
}

// blockedBy is the first error finding of a device.
func (d *DevicePlan) blockedBy() diag.Finding {
	for _, f := range d.Findings {
		if f.Severity == diag.Error {
			return f
		}
	}
	return diag.Finding{Msg: "the plan refuses it"}
}

// preflight refuses a run as a whole, before anything is touched.
func (e *Engine) preflight(p *Plan, o ApplyOptions) error {
	if e.ReadOnly {
		return &RefusedError{Reason: drivers.ErrReadOnly.Error(), Err: drivers.ErrReadOnly}
	}
	if err := e.freeToWrite(p, func(string) bool { return true }, "plan again: the new plan leaves it out"); err != nil {
		return err
	}
	var disruptive, working, unverified []string
	ports, jobs := 0, 0
	for i := range p.Devices {
		d := &p.Devices[i]
		if len(d.Steps) == 0 {
			continue
		}
		class, n := d.Worst()
		if class == render.Refused {
			return &RefusedError{Reason: d.Name + ": the device would refuse a change of this plan"}
		}
		if class > render.Hitless {
			ports += n
			disruptive = append(disruptive, fmt.Sprintf("%s (%s, %s)", d.Name, class, diag.Count(n, "port")))
		}
		if n, known := d.Jobs(); n > 0 || !known {
			jobs += n
			working = append(working, fmt.Sprintf("%s (%s)", d.Name, jobsWord(n, known)))
		}
		if !d.Verified && !p.Lab {
			unverified = append(unverified, d.Name+" ("+d.Platform+")")
		}
	}
	if err := p.triable(o); err != nil {
		return err
	}
	switch {
	case len(disruptive) > 0 && !o.AllowDisruptive:
		return &RefusedError{Reason: fmt.Sprintf("the plan disrupts traffic on %s: %s", diag.Count(ports, "port"), strings.Join(disruptive, ", ")), Hint: "--allow-disruptive permits it"}
	case len(working) > 0 && !o.AllowJobs && e.Drainer == nil: // what is drained has none left, or is refused then
		return &RefusedError{
			Reason: fmt.Sprintf("the plan kills %s of running jobs: %s", jobsWord(jobs, true), strings.Join(working, ", ")),
			Hint:   "wait until they are done and plan again; --allow-jobs permits it", Err: drivers.ErrJobs,
		}
	case len(unverified) > 0 && !o.AcceptUnverified:
		return &RefusedError{Reason: "platforms that were never tried on a real device: " + strings.Join(unverified, ", "), Hint: "--accept-unverified permits it"}
	}
	return nil
}

// triable refuses a trial that would be in force for good on a device that takes back what is not confirmed: it can do
// that of one transaction.
func (p *Plan) triable(o ApplyOptions) error {
	for i := range p.Devices {
		if d := &p.Devices[i]; o.Trial != "" && d.Caps.Confirm && len(d.Steps) > 1 {
			return &RefusedError{Reason: fmt.Sprintf("%s needs %s for this, and takes back by itself but one", d.Name, diag.Count(len(d.Steps), "transaction"))}
		}
	}
	return nil
}

// jobsWord is a number of live queue pairs in words.
func jobsWord(n int, known bool) string {
	switch {
	case n == 0 && !known:
		return "live queue pairs that cannot be counted"
	case !known:
		return "at least " + diag.Count(n, "live queue pair")
	}
	return diag.Count(n, "live queue pair")
}

// Resume finishes a run that died, was interrupted, or left devices behind: devices that are as planned by the journal
// are only read, the others are taken to the planned state from wherever they stand. It is refused when Engine.Model is
// not the model of the run. Errors and results are as of Apply; errors.Is(err, fs.ErrNotExist) when there is no such run.
func (e *Engine) Resume(ctx context.Context, id string) (*Run, error) {
	return e.again(ctx, id, KindResume)
}

// Rollback takes back a run: every device that a transaction was sent to ends with what it held before. It can itself
// be killed and started again. Errors and results are as of Resume.
func (e *Engine) Rollback(ctx context.Context, id string) (*Run, error) {
	return e.again(ctx, id, KindRollback)
}

func (e *Engine) again(ctx context.Context, id string, kind Kind) (*Run, error) {
	if e.ReadOnly {
		return nil, &RefusedError{Reason: drivers.ErrReadOnly.Error(), Err: drivers.ErrReadOnly}
	}
	st, err := load(e.StateDir, id)
	if err != nil {
		return nil, err
	}
	if trial := st.head.Options.Trial; trial != "" && kind == KindResume {
		return nil, &RefusedError{
			Reason: "run " + id + " is a trial of experiment " + trial + ", and was never to stay",
			Hint:   e.command("tune", "resume", trial) + " goes on with that; " + e.command("runs", "rollback", id) + " takes the trial back",
		}
	}
	if err := e.later(id, st, kind); err != nil {
		return nil, err
	}
	moved := e.Model != "" && e.Model != st.head.Plan.Model && st.head.Options.Trial == "" // the model of a trial was never that of the files
	if moved && kind == KindResume {
		return nil, &RefusedError{
			Reason: fmt.Sprintf("run %s was planned for another model: digest %.12s then, %.12s now", id, st.head.Plan.Model, e.Model),
			Hint:   "restore that model, or roll the run back",
		}
	}
	keep := st.keep(kind)
	if err := e.freeToWrite(st.head.Plan, func(name string) bool { return !keep[name] }, "wait until the hold is over, or release it ("+e.command("hold", "list")+" shows it), then again"); err != nil {
		return nil, err
	}
	var work func(context.Context, *session) Result
	a, err := e.begin(ctx, id, kind, st.head.Plan.Fabric, func(jo journal.Options) (*attempt, error) {
		log, recs, torn, err := journal.Open(runPath(e.StateDir, id), jo) // again: now nobody else writes to it
		if err != nil {
			return nil, err
		}
		a := &attempt{log: log, saves: map[string]bool{}}
		if st, err = tell(recs, torn); err != nil {
			return a, err
		}
		a.plan, a.tx, a.saves, a.leave.Trial = st.head.Plan, st.records, st.saved, st.head.Options.Trial
		if n := len(st.attempts); kind == KindResume && n > 0 && st.attempts[n-1].Kind == KindRollback && st.status(false) == Finished {
			return a, &RefusedError{Reason: "run " + id + " was taken back", Hint: "plan and apply again"}
		}
		return a, nil
	})
	if err != nil {
		return nil, err
	}
	if st.torn != nil {
		a.run.Notes = append(a.run.Notes, "journal "+id+": "+st.torn.String())
	}
	if moved {
		a.run.Notes = append(a.run.Notes, "the model has changed since the run: what is taken back comes from the journal alone")
	}
	a.story = st
	a.run.Left = a.plan.LeftOut()
	a.keep = st.keep(kind)
	ws := a.plan.waves(kind == KindRollback)
	var gate error
	if kind == KindResume {
		var early []Result
		early, gate = settled(a.plan)
		a.run.Results = append(a.run.Results, early...)
		work = func(ctx context.Context, s *session) Result { return s.resume(ctx, st) }
	} else {
		work = func(ctx context.Context, s *session) Result { return s.rollback(ctx, st) }
	}
	a.work(ctx, ws, gate, work)
	return a.end(ctx), nil
}

// later refuses to work on a run while a later one is in force on the same devices: those that it was sent to, to take it
// back, and those that it has changes for, to finish it. Undoing below the later one, or writing over it, would end in a
// state that nobody planned.
func (e *Engine) later(id string, st *story, kind Kind) error {
	if len(st.attempts) == 0 || e.alone(st) {
		return nil
	}
	concerns, hint := st.begun, "roll that one back first"
	if kind == KindResume {
		concerns, hint = map[string]bool{}, hint+", or plan and apply again: a new plan has what is left of this one"
		for i := range st.head.Plan.Devices {
			d := &st.head.Plan.Devices[i]
			concerns[d.Name] = len(d.Steps) > 0
		}
	}
	began := st.attempts[0].Started
	var refused *RefusedError
	var first time.Time // when the run began that it is about; zero of a damaged one
	err := each(e.StateDir, e.Now(), func(other string, h *History, err error) {
		var broken *DamagedError
		switch {
		case other == id:
		case errors.As(err, &broken):
			if d := broken.concerns(concerns, began); d != "" && (refused == nil || !first.IsZero()) {
				first, refused = time.Time{}, &RefusedError{
					Reason: fmt.Sprintf("run %s came later, and may be in force on %s: its journal is damaged", other, d),
					Hint:   "plan and apply instead; or move " + broken.Path + " away when it is certain that nothing of that run is in force", Err: err,
				}
			}
		case err == nil && h.Started.After(began) && (refused == nil || h.Started.Before(first)):
			t := h.trace()
			if on := t.over(st.head.Plan, concerns); len(on) > 0 {
				first, refused = h.Started, &RefusedError{
					Reason: fmt.Sprintf("run %s%s came later and is in force on %s", other, ofAnother(h.Plan.Fabric, st.head.Plan.Fabric), on[0].device),
					Hint:   hint, Err: drivers.ErrMoved,
				}
			}
		}
	})
	if err != nil || refused == nil {
		return err
	}
	if kind == KindRollback && !first.IsZero() {
		if l, err := LaterOf(e.StateDir, id, e.Now()); err == nil && l.Whole() {
			refused.Hint = "nothing of this run is in force any more"
			if trial := st.head.Options.Trial; trial != "" {
				refused.Hint += "; " + e.command("tune", "resume", trial) + " goes on with its experiment"
			}
		}
	}
	return refused
}

// alone reports whether nobody but us can have made a run since that of st began: it is a trial, under a lease that we
// have had since before. There may be hundreds of them, and each is taken back before the next begins.
func (e *Engine) alone(st *story) bool {
	if e.Lease == nil || st.head.Options.Trial == "" {
		return false
	}
	l := e.Lease.Lease()
	return l.Run == st.head.Options.Trial && st.attempts[0].Fence == l.Fence
}

// ofAnother says of which fabric a run is, where that is not the one that is spoken of.
func ofAnother(fabric, spoken string) string {
	if fabric == spoken {
		return ""
	}
	return " of fabric " + fabric
}

// sameBox reports whether two plans mean the same device by a name: they are of one fabric, or of one that was renamed
// and whose device says the same of itself.
func sameBox(a, b *Plan, name string) bool {
	if a.Fabric == b.Fabric {
		return true
	}
	x, y := a.Device(name), b.Device(name)
	return x != nil && y != nil && sameDevice(x.Facts, y.Facts) == nil
}

// keep is the devices with steps that need no work by the journal, in an attempt of a kind.
func (s *story) keep(kind Kind) map[string]bool {
	m := map[string]bool{}
	for _, d := range s.head.Plan.Devices {
		r, known := s.last[d.Name]
		idle := known && r.Outcome == Applied && r.Cause == None
		if kind == KindRollback {
			back := known && (r.Outcome == RolledBack || r.Outcome == Unchanged) && !s.open[d.Name]
			idle = back || !s.begun[d.Name] && s.torn == nil
		}
		m[d.Name] = len(d.Steps) > 0 && idle
	}
	return m
}

// NoRunError is that no run in a state directory has an id. It is fs.ErrNotExist.
type NoRunError struct{ ID, Dir string }

func (e *NoRunError) Error() string { return "there is no run " + e.ID + " in " + e.Dir }

// Is reports whether target is fs.ErrNotExist.
func (e *NoRunError) Is(target error) bool { return target == fs.ErrNotExist }

// load reads the journal of a run. errors.As *DamagedError when it is damaged.
func load(stateDir, id string) (*story, error) {
	if !idPattern.MatchString(id) {
		return nil, fmt.Errorf("%q is not the id of a run", id)
	}
	path := runPath(stateDir, id)
	recs, torn, err := journal.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &NoRunError{ID: id, Dir: stateDir}
	case err != nil:
		return nil, damaged(id, path, err)
	}
	st, err := tell(recs, torn)
	return st, damaged(id, path, err)
}
