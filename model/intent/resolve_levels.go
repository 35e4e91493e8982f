package intent

import (
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
)

// field is a name with a number: "lossless.3".
func field(name string, n uint8) Field { return Field(name + "." + strconv.Itoa(int(n))) }

func firstOrigin(a, b *model.Origin) *model.Origin {
	if a != nil {
		return a
	}
	return b
}

func manageOf(o *model.Override) *model.Manage {
	if o == nil {
		return nil
	}
	return &o.Manage
}

// manageOver is below with what m says on top: a word for all areas first, then the areas named.
func manageOver(below Manage, m *model.Manage) Manage {
	if m == nil {
		return below
	}
	if m.All.Set {
		for a := range below {
			below[a] = parseMode(m.All.V)
		}
	}
	for name, v := range m.Areas {
		if a, ok := ParseArea(name); ok {
			below[a] = parseMode(v.V)
		}
	}
	return below
}

func parseMode(s string) Mode {
	for _, m := range []Mode{Own, Ignore} {
		if m.String() == s {
			return m
		}
	}
	return Observe
}

// stateOver is the override's state, or the one below.
func stateOver(below State, o *model.Override) State {
	if o == nil || !o.State.Set {
		return below
	}
	for s := Active; s <= Absent; s++ {
		if s.String() == o.State.V {
			return s
		}
	}
	return below
}

// hostNCCL is what hosts tell NCCL: the traffic class, which is the ToS byte (DSCP << 2; the two ECN bits stay 0) of what
// the application nccl marks, or else of the first code point of the class it uses.
func (r *resolver) hostNCCL() (NCCL, map[Field]*model.Origin) {
	class := r.ncclClass()
	if class == nil {
		return NCCL{}, nil
	}
	d, m := class.DSCP[0], r.f.NCCL
	if app := r.ncclApp(); app != nil && app.Class.V == class.Name && app.DSCP.Set {
		d = app.DSCP
	}
	n := NCCL{On: true, TrafficClass: d.V << 2, Timeout: uint8(m.Timeout.V), RetryCount: uint8(m.RetryCount.V)}
	inputs := []*model.Origin{d.From}
	if m.Class.Set {
		inputs = append(inputs, m.Class.From)
	} else if app := r.ncclApp(); app != nil {
		inputs = append(inputs, app.Class.From)
	}
	return n, map[Field]*model.Origin{
		"nccl.traffic_class": {Kind: model.FromFormula, Ref: "DSCP << 2 of class " + class.Name, Pos: d.Pos(), Inputs: inputs},
		"nccl.timeout":       m.Timeout.From,
		"nccl.retry_count":   m.RetryCount.From,
	}
}

// ncclApp is the application nccl of the marking table; nil when there is none.
func (r *resolver) ncclApp() *model.Application {
	if i := slices.IndexFunc(r.f.Apps, func(a model.Application) bool { return a.Name == "nccl" }); i >= 0 {
		return &r.f.Apps[i]
	}
	return nil
}

// ncclClass is the class that NCCL uses: the one named, else that of the application nccl, else the only lossless one;
// nil when that is not clear.
func (r *resolver) ncclClass() *model.Class {
	if !slices.ContainsFunc(r.f.Devices, func(d model.Device) bool { return d.Host }) {
		return nil
	}
	named := r.f.NCCL.Class
	if app := r.ncclApp(); !named.Set && app != nil {
		named = app.Class
	}
	var lossless []*model.Class
	for i := range r.f.Classes {
		c := &r.f.Classes[i]
		if named.Set && c.Name == named.V {
			if len(c.DSCP) == 0 {
				return nil
			}
			return c
		}
		if c.Lossless.V && len(c.DSCP) > 0 {
			lossless = append(lossless, c)
		}
	}
	switch {
	case named.Set || len(lossless) == 0:
		return nil
	case len(lossless) > 1:
		r.found.Infof("nccl-class", lossless[1].Pos, "add nccl: {class: "+lossless[0].Name+"}",
			"%d classes are lossless and nccl.class does not say which one NCCL uses, so nothing is written for it", len(lossless))
		return nil
	}
	return lossless[0]
}
