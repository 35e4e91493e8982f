package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Advise corrects the hints of findings about what devices do, or will do, where that is not what the model asks for and
// nobody owns it: the value in the model is right then, so the way out is to own its area there, or to set it by hand.
// Other findings keep the hint of their rule. is and want are the same fabric; l is changed in place.
func Advise(l diag.List, is, want *intent.Net) {
	for i := range l {
		r := slices.IndexFunc(Rules(), func(r Rule) bool { return r.ID == l[i].Rule })
		if r < 0 {
			continue
		}
		o := foreign(is, want, Rules()[r].Areas, l[i].Devices)
		if len(o.devices) == 0 { // who differs from the others may be the one that does as the model asks
			o = foreign(is, want, Rules()[r].Areas, nil)
		}
		if len(o.devices) > 0 {
			l[i].Hint = o.hint()
		}
	}
}

// notOurs are values that differ from the model and that nobody owns.
type notOurs struct {
	devices []string
	areas   intent.Areas
	example intent.Difference
}

// foreign looks for them in areas of devices, or of all when there are no names.
func foreign(is, want *intent.Net, areas intent.Areas, devices []string) (o notOurs) {
	live := make(map[string]*intent.Device, len(is.Devices))
	for i := range is.Devices {
		live[is.Devices[i].Name] = &is.Devices[i]
	}
	for i := range want.Devices {
		w := &want.Devices[i]
		d := live[w.Name]
		if d == nil || w.State != intent.Active || len(devices) > 0 && !slices.Contains(devices, w.Name) {
			continue
		}
		was := o.areas
		o.areas = 0
		for j := range w.Ports {
			o.port(d, w, &w.Ports[j], areas)
		}
		if o.areas != 0 {
			o.devices = append(o.devices, w.Name)
		}
		o.areas |= was
	}
	return o
}

func (o *notOurs) port(is, want *intent.Device, p *intent.Port, areas intent.Areas) {
	q := is.Port(p.Name)
	if q == nil || p.State != intent.Active {
		return
	}
	for a := range intent.NumAreas {
		if !areas.Has(a) || p.Manage[a] != intent.Observe {
			continue
		}
		x, y := is.PolicyOf(q).Only(intent.AreaSet(a)), want.PolicyOf(p).Only(intent.AreaSet(a))
		if x.Known == 0 || y.Known == 0 || x == y {
			continue
		}
		if ds := intent.Differences(&x, &y); len(ds) > 0 {
			if len(o.devices) == 0 && o.areas == 0 {
				o.example = ds[0]
			}
			o.areas |= intent.AreaSet(a)
		}
	}
}

func (o notOurs) hint() string {
	w := where{devices: o.devices}
	return fmt.Sprintf("own %s on %s, or set it by hand: the model says %s %s, %s %s",
		strings.Join(o.areas.Names(), " and "), w.names(), o.example.Label, o.example.After, o.devices[0], o.example.Before)
}
