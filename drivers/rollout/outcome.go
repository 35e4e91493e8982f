package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// outlooks are what a device does now, what it does once the plan is carried out, and what it would do if nothing of it
// were held. A device that is not known knows nothing.
type outlooks struct {
	now, after, free intent.Device
	refused          bool // the plan must not write it, and says why
}

// outlook is what a device does once its steps are carried out, in all areas, owned or not.
func outlook(d *render.Dialect, dev *intent.Device, f render.Facts, live render.Config, steps []Step) intent.Device {
	for _, s := range steps {
		live = render.Apply(live, s.Changes)
	}
	lifted, _ := d.Lift(live, f)
	return d.Joined(*dev, live, lifted)
}

// outcome lints the fabric as it will be after the plan: what is not owned stays as it is live, and what is held stays
// too, and may not fit what changes. An error that the model does not share is a warning where the fabric has it now, for
// the plan does not make it, and may be a step out of it. One that only the plan makes is an error, which refuses it. f is
// the model, left names the devices of which something is left out, and holds is the command that shows for what.
func (r Rules) outcome(f *model.Fabric, want *intent.Net, ds []outlooks, left []string, holds string) diag.List {
	if r.Check == nil {
		return nil
	}
	net := func(pick func(outlooks) intent.Device) *intent.Net {
		n := want.With(make([]intent.Device, len(ds)))
		for i, d := range ds {
			n.Devices[i] = pick(d)
		}
		return n
	}
	after := net(func(o outlooks) intent.Device { return o.after })
	l := errorsIn(r.Check(after, f))
	if len(l) > 0 {
		l = l.Without(r.Check(want, f))
	}
	if len(l) == 0 {
		return nil
	}
	r.advise(l, after, want, ds, left)
	now := spotsOf(r.Check(net(func(o outlooks) intent.Device { return o.now }), f))
	free := now
	if len(left) > 0 {
		free = spotsOf(r.Check(net(func(o outlooks) intent.Device { return o.free }), f))
	}
	for i := range l {
		x := &l[i]
		switch {
		case now.have(x):
			x.Severity, x.Msg = diag.Warning, "after this plan, "+x.Msg
		case len(left) > 0 && !free.have(x):
			x.Msg = fmt.Sprintf("with %s left out, %s", strings.Join(left, ", "), x.Msg)
			x.Hint = "wait until the hold is over or release it (" + holds + "), or plan with --device what does not depend on it"
		default:
			x.Msg = "after this plan, and not now, " + x.Msg
			x.Hint = cmp.Or(x.Hint, "leave out what makes it")
		}
	}
	return l.Sort()
}

// advise gives findings that the model does not share the hints that help: to own what nobody owns, and else, where devices
// must not be written, to mend that, or where something is held, to wait. What the rules say themselves is how to change
// a model, which is right.
func (r Rules) advise(l diag.List, after, want *intent.Net, ds []outlooks, left []string) {
	var refused []string
	for _, d := range ds {
		if d.refused {
			refused = append(refused, d.after.Name)
		}
	}
	rules := make([]string, len(l))
	for i := range l {
		rules[i] = l[i].Hint
	}
	r.Advise(l, after, want)
	var ways []string
	if len(refused) > 0 {
		ways = append(ways, "mend what this plan refuses on "+some(refused))
	}
	if len(left) > 0 {
		ways = append(ways, "wait for the end of what is held on "+some(left))
	}
	for i := range l {
		if len(ways) > 0 && l[i].Hint == rules[i] {
			l[i].Hint = "nothing in the model: " + strings.Join(ways, ", or ")
		}
	}
}

func errorsIn(l diag.List) diag.List {
	return slices.DeleteFunc(l, func(x diag.Finding) bool { return x.Severity != diag.Error })
}

// spot is where a rule finds an error. Messages do not tell findings apart here: they count, and name others, so that
// a repair of one device of two would make a new one.
type spot struct{ rule, device string }

type spots map[spot]bool

func spotsOf(l diag.List) spots {
	s := spots{}
	for _, x := range errorsIn(l) {
		for _, d := range x.Devices {
			s[spot{x.Rule, d}] = true
		}
	}
	return s
}

// have reports whether the rule of x finds an error already on all devices of x.
func (s spots) have(x *diag.Finding) bool {
	return !slices.ContainsFunc(x.Devices, func(d string) bool { return !s[spot{x.Rule, d}] })
}
