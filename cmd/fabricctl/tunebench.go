package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
	"github.com/fabricctl/fabricctl/tuning"
)

// lookEvery is how often the devices that settings do not write are read all the same, to see whether somebody changed one.
const lookEvery = 5 * time.Minute

// usualRevert is how long a device with a commit timer keeps a setting that nobody renews: several long runs.
const usualRevert = 15 * time.Minute

// benchOptions are the leaves that a user gives to an experiment on devices.
type benchOptions struct {
	Leave   rollout.ApplyOptions
	Persist bool          // devices that keep each write over a restart, and cannot take it back by themselves, may be written
	Devices []string      // that will be written; none = whatever has to change for a setting
	Revert  time.Duration // after which a device takes a setting back by itself where it can; 0 = usualRevert
}

// tuneBench is the devices of a model as the bench of an experiment. Each setting is a trial run of the rollout engine, called
// after the experiment, and is rolled back before the next one begins: what holds between two is the baseline, read back. So
// one run at most is in force, and taking that back from its journal restores everything, whoever does it.
//
// The fabric's lease is held from openBench to Close. It is used by one goroutine.
type tuneBench struct {
	app   *app
	model loaded
	e     *rollout.Engine
	id    string
	o     benchOptions
	mark  *benchMark
	keep  func() // ends the renewing of the lease

	runs  int               // that were begun
	key   string            // the patch that is in force; "" = the baseline
	due   time.Time         // when the first device takes it back; zero = none does
	reset string            // a run that may be in force and that was not taken back
	wrote map[string]bool   // devices that were written
	base  map[string]string // fingerprints of what the model owns on each device, at the baseline
	asks  map[string]asked  // what the model asks of each device that was read
	seen  time.Time         // when all devices were read last
	vague bool              // what was refused last was refused in words that may mean a trouble of the device
	pause time.Duration     // before that is tried once more
	facts map[string]string // firmware by device
}

// openBench takes the fabric's lease for experiment id, restores what a dead experiment has left, and wants the devices to hold what
// the model says.
func (a *app) openBench(ctx context.Context, m loaded, id string, o benchOptions) (_ *tuneBench, err error) {
	if a.readOnly {
		return nil, fail(exitRefused, "leave --read-only out to write", "%w", drivers.ErrReadOnly)
	}
	b := &tuneBench{app: a, model: m, id: id, o: o, pause: refusedPause, wrote: map[string]bool{}, base: map[string]string{}, asks: map[string]asked{}, facts: map[string]string{}}
	b.o.Leave.Trial = id
	d := a.dialler(m.fabric, m.net)
	d.allowJobs = o.Leave.AllowJobs
	if b.e, err = a.engine(d.open); err != nil {
		return nil, err
	}
	b.e.Within, b.e.NewID, b.e.Progress = cmp.Or(o.Revert, usualRevert), b.nextRun, nil
	b.e.Lines = new(rollout.Lines)
	if b.e.Lease, err = b.e.Acquire(ctx, m.net.Fabric, id); err != nil {
		return nil, refusal(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.release(ctx))
		}
	}()
	if err := a.restoreDead(ctx, b.e, m.net.Fabric); err != nil {
		return nil, err
	}
	if err := b.baseline(ctx); err != nil {
		return nil, err
	}
	if b.runs, err = lastTrial(b.e.StateDir, id); err != nil { // of an experiment that is resumed
		return nil, err
	}
	if b.mark, err = a.markBench(b.e.StateDir, m.net.Fabric, id, b.e.Hook); err != nil {
		return nil, err
	}
	b.keep = keepLease(b.e.Lease, a.log)
	return b, nil
}

// refusal is an error of the engine with its hint and the exit code for it.
func refusal(err error) error {
	if r, ok := errors.AsType[*rollout.RefusedError](err); ok {
		return fail(exitRefused, r.Hint, "%s", r.Reason)
	}
	return err
}

// release gives the lease back and ends idle connections.
func (b *tuneBench) release(ctx context.Context) error {
	if b.keep != nil {
		b.keep()
	}
	b.e.Lines.Close()
	return b.e.Lease.Release(context.WithoutCancel(ctx))
}

// Close gives the fabric free. When the baseline is not back, the next command on the fabric finds that out and says so.
func (b *tuneBench) Close(ctx context.Context) error {
	var err error
	if b.reset == "" {
		err = b.mark.remove()
	}
	return errors.Join(err, b.mark.close(), b.release(ctx))
}

// firmware is what each device that may be written says it runs.
func (b *tuneBench) firmware() map[string]string { return b.facts }

// baseline wants all devices to hold what the model says, and those of the experiment to be fit for trials.
func (b *tuneBench) baseline(ctx context.Context) error {
	p, err := b.plan(ctx, b.model.net, b.model.fabric)
	if err != nil {
		return interrupted(ctx, fmt.Errorf("nothing was written: %w", err))
	}
	b.seen = b.e.Now()
	hint := "apply the model first: " + b.app.command("apply")
	if b.model.findings.HasErrors() {
		hint = "write into the model what they hold: apply does not write a model with errors"
	}
	if err := b.isBaseline(p, hint); err != nil {
		return err
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		b.base[d.Name] = d.Live
		if dev, dialect := b.model.net.Device(d.Name), b.e.Dialect(d.OS); d.Error == "" && d.Mode != rollout.Skipped && dialect != nil {
			b.asks[d.Name] = askedOf(dialect, dev, d)
		}
		if d.Mode != rollout.Write || len(b.o.Devices) > 0 && !slices.Contains(b.o.Devices, d.Name) {
			continue
		}
		b.facts[d.Name] = strings.TrimSpace(d.Platform + " " + d.Facts.Version)
		if err := b.fit(d, p.Lab); err != nil {
			return err
		}
	}
	return nil
}

// isBaseline wants a plan of the model to have nothing to do.
func (b *tuneBench) isBaseline(p *rollout.Plan, hint string) error {
	if err := cmp.Or(p.Refusal(), p.Unwritable()); err != nil {
		return refusal(err)
	}
	var differ []string
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Error != "" {
			return fail(exitError, "", "%s could not be read, and an experiment needs all devices: %s", d.Name, d.Error)
		}
		if d.Ops.Total() > 0 || d.Left != nil && d.Left.Ops.Total() > 0 {
			differ = append(differ, d.Name)
		}
	}
	if len(differ) > 0 {
		return fail(exitRefused, hint, "the devices do not hold what the model says, and that is the baseline: %s", show.NameList(differ))
	}
	return nil
}

// fit wants a device to be one on which settings can be tried.
func (b *tuneBench) fit(d *rollout.DevicePlan, emulated bool) error {
	switch {
	case len(d.Held) > 0:
		return fail(exitRefused, "wait until the hold is over, or release it", "%s", d.Held[0])
	case d.Caps.PersistsOnCommit && !d.Caps.Confirm && !b.o.Persist:
		return fail(exitRefused, "--persist-trials permits it",
			"%s keeps each write over a restart, and cannot take it back by itself: should this machine die, a trial stays there until fabricctl restores the baseline", d.Name)
	case !d.Verified && !emulated && !b.o.Leave.AcceptUnverified:
		return fail(exitRefused, "--accept-unverified permits it", "nobody has tried %s (%s) on a real device", d.Name, d.Platform)
	}
	for _, f := range d.Findings {
		if f.Rule == "unsaved" {
			return fail(exitRefused, "save it on the device first", "%s runs another configuration than it starts with: after a restart it would not have the baseline", d.Name)
		}
	}
	return nil
}

// plan plans a model against the devices of net, which may be a part of them.
func (b *tuneBench) plan(ctx context.Context, net *intent.Net, f *model.Fabric) (*rollout.Plan, error) {
	p, err := b.e.Plan(ctx, net, rollout.PlanOptions{Model: f.Digest(), Fabric: f, Adopt: f.Adopt.V, Lab: allLab(b.model, net)})
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	return p, nil
}

// Apply makes the model with patch hold on the devices. A setting that is in force already is left alone, or renewed when a device would
// take it back soon.
func (b *tuneBench) Apply(ctx context.Context, patch model.Patch) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	key := string(text)
	if key == b.key && b.reset != "" {
		left := b.due.Sub(b.e.Now())
		switch {
		case b.due.IsZero() || left > b.e.Within/2:
			return nil
		case left <= 0:
			return b.lost(fmt.Errorf("a device took back the setting by itself at %s, while it was measured: a run takes too long for that time", b.due.Format(time.RFC3339)))
		}
	}
	if err := b.takeBack(ctx); err != nil {
		return err
	}
	if err := b.look(ctx); err != nil {
		return err
	}
	net, f, err := b.patched(patch)
	if err != nil {
		return err
	}
	if len(net.Devices) == 0 {
		b.key = key
		return nil
	}
	err = b.attempt(ctx, net, f)
	if _, refused := errors.AsType[*tuning.Refusal](err); refused && b.vague {
		err = b.onceMore(ctx, net, f, err)
	}
	if err != nil {
		return err
	}
	b.key = key
	return nil
}

// attempt plans the part of a model that a setting asks for, from the baseline, and carries that out.
func (b *tuneBench) attempt(ctx context.Context, net *intent.Net, f *model.Fabric) error {
	b.vague = false
	p, err := b.plan(ctx, net, f)
	if err != nil {
		return err
	}
	if err := b.unmoved(p); err != nil {
		return err
	}
	return b.try(ctx, p)
}

// asked is what a model asks of a device, in the device's words.
type asked struct {
	dialect *render.Dialect
	facts   render.Facts // as the device said them when the experiment began, with the names that it has for ours
	want    render.Config
	broken  bool // the device cannot have all of it
}

func askedOf(dialect *render.Dialect, dev *intent.Device, dp *rollout.DevicePlan) asked {
	a := asked{dialect: dialect, facts: dp.Facts}
	a.facts.Names = dp.Adopted
	a.want, a.broken = a.of(dev)
	return a
}

func (a *asked) of(dev *intent.Device) (render.Config, bool) {
	want, found := a.dialect.Render(dev.Bind(a.facts.Aliases), a.facts)
	return want, found.HasErrors()
}

// same reports whether a model asks the same of a device as that of the baseline: then nothing is written there.
func (a *asked) same(dev *intent.Device) bool {
	want, broken := a.of(dev)
	return !a.broken && !broken && slices.EqualFunc(a.want, want, func(x, y render.Setting) bool { return x.Key == y.Key && x.Value == y.Value })
}

// patched is the part of the model with a patch that has to be planned: the devices of which it asks something else than the baseline does.
func (b *tuneBench) patched(patch model.Patch) (*intent.Net, *model.Fabric, error) {
	f, found := b.model.fabric.With(patch)
	if found.HasErrors() {
		return nil, nil, firstError(found)
	}
	net, found := intent.Resolve(f)
	if found.HasErrors() {
		return nil, nil, firstError(found)
	}
	some := net.With(nil)
	for i := range net.Devices {
		d := &net.Devices[i]
		if was := b.model.net.Device(d.Name); was != nil && intent.Twins(was, d) {
			continue
		}
		if is, known := b.asks[d.Name]; !known || !is.same(d) {
			some.Devices = append(some.Devices, *d)
		}
	}
	return some, f, nil
}

// look wants all devices to hold the baseline, when it is a while since they were read: those that settings do not write are part of the
// experiment too. What does not answer is passed over: one that is written is missed soon enough.
func (b *tuneBench) look(ctx context.Context) error {
	now := b.e.Now()
	if now.Sub(b.seen) < lookEvery {
		return nil
	}
	p, err := b.plan(ctx, b.model.net, b.model.fabric)
	if err != nil {
		return err
	}
	b.seen = now
	p.Devices = slices.DeleteFunc(p.Devices, func(d rollout.DevicePlan) bool { return d.Error != "" })
	return b.unmoved(p)
}

// unmoved wants the devices of a plan to hold the baseline: who changes one during an experiment spoils it.
func (b *tuneBench) unmoved(p *rollout.Plan) error {
	for i := range p.Devices {
		d := &p.Devices[i]
		switch was, known := b.base[d.Name]; {
		case d.Error != "":
			return &tuning.Lost{Device: d.Name, Err: errors.New(d.Error)}
		case known && d.Live != was && d.Live != "":
			return &tuning.Lost{Device: d.Name, Err: errors.New("somebody changed it during the experiment: it does not hold the baseline any more")}
		}
	}
	return nil
}

// try carries out a plan as a trial.
func (b *tuneBench) try(ctx context.Context, p *rollout.Plan) error {
	if err := b.refusesPlan(ctx, p); err != nil {
		return err
	}
	for i := range p.Devices {
		if d := &p.Devices[i]; len(d.Steps) > 0 && len(b.o.Devices) > 0 && !slices.Contains(b.o.Devices, d.Name) {
			return fail(exitRefused, "", "%s would have to be written, and is not among the devices of the experiment: %s", d.Name, show.NameList(b.o.Devices))
		}
	}
	for i := range p.Devices {
		if len(p.Devices[i].Steps) > 0 {
			b.wrote[p.Devices[i].Name] = true
		}
	}
	b.reset, b.due = trialRun(b.id, b.runs+1), time.Time{} // before anything is written
	r, err := b.e.Apply(ctx, p, b.o.Leave)
	if err != nil {
		return refusal(err)
	}
	if r.ID == "" { // the devices have nothing of what the setting is about
		b.reset = ""
		return nil
	}
	return b.came(ctx, r.Results)
}

// nextRun is the id of the next run: that of the experiment, and a number.
func (b *tuneBench) nextRun() string {
	b.runs++
	return trialRun(b.id, b.runs)
}

// takeBack ends the trial that is in force. An error is a *tuning.Lost, or the end of ctx.
func (b *tuneBench) takeBack(ctx context.Context) error {
	if b.reset == "" {
		b.key = ""
		return nil
	}
	left, err := rollBack(ctx, b.e, b.reset)
	if err != nil || len(left) > 0 {
		return b.lost(errors.Join(err, words(left)))
	}
	b.reset, b.key, b.due = "", "", time.Time{}
	return nil
}

// lost is an error that ends the experiment, with the device that is at fault where it is one.
func (b *tuneBench) lost(err error) error {
	if u, ok := errors.AsType[*unrestored](err); ok {
		return &tuning.Lost{Device: u.device, Err: err}
	}
	return &tuning.Lost{Device: b.model.net.Fabric, Err: err}
}

// pauses are how long a device that does not answer is waited for until the baseline is given up.
func pauses() []time.Duration { return []time.Duration{0, 2 * time.Second, 8 * time.Second} }

// Restore brings the baseline back, and looks at all devices that were written.
func (b *tuneBench) Restore(ctx context.Context) error {
	var left []*unrestored
	var err error
	for _, pause := range pauses() {
		if pause > 0 && b.wait(ctx, pause) != nil {
			break
		}
		if b.reset == "" {
			break
		}
		left, err = rollBack(ctx, b.e, b.reset)
		if err == nil && len(left) == 0 {
			b.reset, b.key, b.due = "", "", time.Time{}
		}
	}
	if b.reset != "" {
		if b.holds(ctx) != nil {
			return b.needsHands(left, err)
		}
		b.reset, b.key, b.due = "", "", time.Time{} // it could not be written down, and it is so
		return nil
	}
	if len(b.wrote) == 0 {
		return nil
	}
	if err := b.holds(ctx); err != nil {
		way := fmt.Sprintf("%s says what differs, %s brings it back", b.app.command("plan"), b.app.command("apply"))
		if b.model.findings.HasErrors() {
			way = "apply does not write a model with errors: what was changed there has to be changed back there"
		}
		return fmt.Errorf("what was tried was taken back, and still the baseline does not hold: %w; %s", err, way)
	}
	return nil
}

// holds reads all devices that were written, and is an error unless they hold the baseline.
func (b *tuneBench) holds(ctx context.Context) error {
	some, err := part(b.model.net, slices.Sorted(maps.Keys(b.wrote)))
	if err != nil {
		return err
	}
	p, err := b.plan(ctx, some, b.model.fabric)
	if err != nil {
		return err
	}
	if b.reset == "" { // a device that is silent now was read when its last trial was taken back
		p.Devices = slices.DeleteFunc(p.Devices, func(d rollout.DevicePlan) bool { return d.Error != "" })
	}
	if err := b.isBaseline(p, ""); err != nil {
		return err
	}
	return b.unmoved(p)
}

func (b *tuneBench) wait(ctx context.Context, d time.Duration) error {
	if b.e.Wait != nil {
		return b.e.Wait(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// needsHands says what is not as it was, and which command goes on.
func (b *tuneBench) needsHands(left []*unrestored, err error) error {
	var says []string
	if err != nil {
		says = append(says, diag.OneLine(err.Error()))
	}
	for _, u := range left {
		says = append(says, u.Error())
	}
	return fmt.Errorf("%s; when that is repaired, %s brings the baseline back", strings.Join(says, "; "), b.app.again("rollback", b.reset))
}

var _ tuning.Bench = (*tuneBench)(nil)
