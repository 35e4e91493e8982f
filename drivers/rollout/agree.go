package rollout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Check refuses a plan that does not come from net as it stands, with a *RefusedError that names what does not fit: a
// file is a proposal, and the model decides what may be written. It contacts no device; what only a device knows (what
// it holds, what a change risks there, what may be adopted) is checked again by Apply before its first write. net is
// the whole model, of which p may be a part. Intent, Verified and Lab are not believed but set: the first two from net,
// Lab from lab, which says whether a device is emulated.
func (e *Engine) Check(p *Plan, net *intent.Net, lab func(device string) bool) error {
	err := p.check()
	if err == nil && p.Fabric != net.Fabric {
		err = fmt.Errorf("it is for fabric %q, the model is %q", p.Fabric, net.Fabric)
	}
	if err == nil {
		err = e.eachAgrees(p, net)
	}
	p.Lab = err == nil
	for i := range p.Devices {
		d := &p.Devices[i]
		p.Lab = p.Lab && (d.Mode == Skipped || lab(d.Name))
	}
	if err != nil {
		return &RefusedError{Reason: "the plan does not fit the model: " + err.Error(), Hint: "make a new plan", Err: err}
	}
	return nil
}

// eachAgrees compares the devices of p with those of net, several at a time. The error is that of the first one.
func (e *Engine) eachAgrees(p *Plan, net *intent.Net) error {
	model := make(map[string]*intent.Device, len(net.Devices))
	for i := range net.Devices {
		model[net.Devices[i].Name] = &net.Devices[i]
	}
	errs := make([]error, len(p.Devices))
	var shared render.Shared
	slots := make(chan struct{}, e.parallel())
	var wg sync.WaitGroup
	for i := range p.Devices {
		d := &p.Devices[i]
		want := model[d.Name]
		if want == nil {
			errs[i] = fmt.Errorf("the model has no device %q", d.Name)
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			d.Verified = want.Profile.Verified
			if err := e.agrees(d, *want, p.Adopt, &shared); err != nil {
				errs[i] = fmt.Errorf("%s: %w", d.Name, err)
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// agrees compares the plan of one device with the device of the model. Renderings are shared with its twins.
func (e *Engine) agrees(d *DevicePlan, want intent.Device, adopt bool, shared *render.Shared) error {
	m, _ := mode(&want)
	switch {
	case d.OS != want.OS() || d.Platform != want.Platform || d.Host != want.Host:
		return fmt.Errorf("the plan takes it for another kind of device than %q", want.Platform)
	case d.Mode != m:
		return fmt.Errorf("its mode is %q in the plan, and %q by the model", d.Mode, m)
	case m == Write && d.Live == "" && d.Error == "" && !d.Blocked:
		return fmt.Errorf("the plan does not say what it held")
	case len(d.Adopted) > 0 && !adopt:
		return fmt.Errorf("it has adopted objects in a plan without adoption")
	case len(d.Steps) == 0:
		return nil
	}
	if w := d.Steps[0].Wave; d.Host && w != waveHosts && w != waveLowering || !d.Host && w != waveSwitches {
		return fmt.Errorf("wave %d is not one that it may be in", w)
	}
	if err := identify(&want, d.Facts); err != nil {
		return err
	}
	if same, err := sameJSON(d.Cut, cutOf(&want, d.Risks)); err != nil || !same {
		return fmt.Errorf("whether its changes may cut our own way to it is not what the model says")
	}
	want = holdSet(d.Held).without(want.Bind(d.Facts.Aliases))
	want.Origins = nil
	d.Intent = &want
	dialect := e.Dialect(d.OS)
	if dialect == nil {
		return fmt.Errorf("no dialect is called %q", d.OS)
	}
	f := d.Facts
	f.Names = d.Adopted
	asked, finds := shared.Render(dialect, &want, f)
	if finds.HasErrors() {
		return fmt.Errorf("the model cannot be expressed on it")
	}
	own := dialect.Owns(want, f)
	for i, s := range d.Steps {
		for _, c := range s.Changes {
			switch {
			case !own(c.Key) && (c.After != nil || dialect.Left == nil): // what is left by an earlier model, only the device can tell
				return fmt.Errorf("step %d: %s is not the model's to write", i+1, c.Key)
			case !equalValue(c.After, value(asked, c.Key)):
				return fmt.Errorf("step %d: %s becomes %s, and the model wants %s", i+1, c.Key, shown(c.After), shown(value(asked, c.Key)))
			}
		}
	}
	return nil
}

// sameJSON compares values as files hold them.
func sameJSON(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// holds wants what the plan says about the device, besides what it holds, to be so now: the names of its interfaces,
// what may be adopted, what an earlier model left, and what the changes risk.
func (s *session) holds(live render.Config) error {
	stale := func(format string, a ...any) error {
		return &RefusedError{Reason: s.dp.Name + ": " + fmt.Sprintf(format, a...), Hint: "plan again"}
	}
	if !maps.Equal(s.dp.Facts.Aliases, s.facts.Aliases) {
		return stale("its interfaces have other names than in the plan")
	}
	if len(s.dp.Adopted) > 0 {
		f := s.facts
		f.Names = nil
		names, _ := render.Adopt(s.j.d, *s.dp.Intent, f, live)
		for k, v := range s.dp.Adopted {
			if names[k] != v {
				return stale("%s cannot stand for %s any more", v, k)
			}
		}
	}
	own, _ := render.Owned(s.j.d, *s.dp.Intent, s.facts, live)
	var cs []render.Change
	for _, x := range s.dp.Steps {
		for _, c := range x.Changes {
			if !own(c.Key) {
				return stale("%s is not the model's to write", c.Key)
			}
		}
		cs = append(cs, x.Changes...)
	}
	if names := render.Collisions(s.j.d, s.dp.Intent, own, live, cs); len(names) > 0 {
		return stale("%s", names[0])
	}
	if s.dp.Host {
		if _, lowers := behaviourOf(s.j.d, s.dp.Intent, s.facts, live, cs); lowers != (s.dp.Steps[0].Wave == waveLowering) {
			return stale("it is not in the wave in which it has to be")
		}
	}
	is, risks := render.Hitless, s.j.d.Risk(live, cs, s.facts)
	for _, r := range risks {
		is = max(is, r.Class)
	}
	if n, known := jobsOf(risks); (n > 0 || !known) && !s.a.leave.AllowJobs && (s.drained || s.e.Drainer == nil) {
		when := "by now"
		if s.drained {
			when = "although it was drained"
		}
		return &RefusedError{
			Reason: fmt.Sprintf("%s: %s there are %s, which the change would kill", s.dp.Name, when, jobsWord(n, known)),
			Hint:   "wait until the jobs are done and plan again; --allow-jobs permits it", Err: drivers.ErrJobs,
		}
	}
	if s.dp.Cut == nil && cutOf(s.dp.Intent, risks) != nil {
		return stale("the change may cut our own way to it, which the plan does not say")
	}
	if said, _ := s.dp.Worst(); is > said {
		return stale("the change is of class %s, and the plan says %s", is, said)
	}
	return nil
}
