package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// causes groups what a rule sees by its cause, in the order in which causes are first seen.
type causes[K comparable] struct {
	keys []K
	at   map[K]*where
}

// where is all that one cause touches.
type where struct {
	first   Place
	devices []string // in the order in which they are first seen
	roles   []string // of the devices, likewise
	seen    map[string]bool
	ports   int
}

// add notes pl under k.
func (c *causes[K]) add(k K, pl Place) {
	w := c.at[k]
	if w == nil {
		if c.at == nil {
			c.at = map[K]*where{}
		}
		w = &where{first: pl, seen: map[string]bool{}}
		c.at[k] = w
		c.keys = append(c.keys, k)
	}
	w.ports += pl.Ports
	if name := pl.Device.Name; !w.seen[name] {
		w.seen[name] = true
		w.devices = append(w.devices, name)
		if role := pl.Device.Role; !slices.Contains(w.roles, role) {
			w.roles = append(w.roles, role)
		}
	}
}

// all yields each cause with what it touches.
func (c *causes[K]) all(yield func(K, *where) bool) {
	for _, k := range c.keys {
		if !yield(k, c.at[k]) {
			return
		}
	}
}

// String names the place for people: "leaf1:downlink-3" for a single port, else the devices.
func (w *where) String() string {
	if len(w.devices) == 1 && w.ports == 1 {
		return w.first.String()
	}
	return w.names()
}

// names is "leaf1", "leaf1 and leaf2", or "leaf1 and 3 more".
func (w *where) names() string {
	switch n := len(w.devices); n {
	case 1:
		return w.devices[0]
	case 2:
		return w.devices[0] + " and " + w.devices[1]
	default:
		return fmt.Sprintf("%s and %d more", w.devices[0], n-1)
	}
}

// report adds a finding of the rule. What only planned ports or devices in maintenance have is info. A finding without
// a position points at the device.
func (p *Pass) report(w *where, f diag.Finding) {
	first := w.first
	f.Rule = p.rule.ID
	f.Devices, f.Roles = slices.SortedFunc(slices.Values(w.devices), intent.CompareNames), slices.Sorted(slices.Values(w.roles))
	if f.Severity == diag.Info {
		f.Severity = p.rule.Severity
	}
	if !first.Active {
		f.Severity = diag.Info
	}
	if f.Pos.IsZero() {
		f.At = first.String()
	}
	f.Related = slices.DeleteFunc(f.Related, func(r diag.Related) bool { return r.Pos.IsZero() || r.Pos == f.Pos })
	p.found.Add(f)
}

// reportModel adds a finding about the model itself, whatever devices there are.
func (p *Pass) reportModel(f diag.Finding) {
	f.Rule = p.rule.ID
	if f.Severity == diag.Info {
		f.Severity = p.rule.Severity
	}
	p.found.Add(f)
}

// setHere is a related place: where what came from, and over which lines.
func setHere(what string, o *model.Origin) diag.Related {
	msg := what + " set here"
	if o != nil && len(o.Lost) > 0 {
		lost := make([]string, len(o.Lost))
		for i, pos := range o.Lost {
			lost[i] = pos.String()
		}
		msg += ", over " + strings.Join(lost, " and ")
	}
	return diag.Related{Pos: o.At(), Msg: msg}
}

// class names priority prio on d: "class training", or "priority 3" where the model names no class.
func class(d *intent.Device, prio int) string {
	if n := d.Classes[prio]; n != "" {
		return "class " + n
	}
	return "priority " + strconv.Itoa(prio)
}

// priorities lists the set bits of m.
func priorities(m uint8) string { return intent.PriorityNames(m) }

func perQueue(prefix string, prio int, suffix string) intent.Field {
	return intent.Field(prefix + strconv.Itoa(prio) + suffix)
}

// start is where the thresholds of a port may start that has none, by its speed and its chip.
func start(pl *Place) profiles.Start {
	speed := pl.Port.Speed
	if speed <= 0 {
		speed = 400 * units.Gbps
	}
	return pl.Device.Profile.Start(speed)
}

// startingECN is the ramp of a starting point as a model writes it, and who stands behind it.
func startingECN(s profiles.Start) (yaml, label string) {
	return fmt.Sprintf("ecn: {kmin: %v, kmax: %v, pmax: %v}", s.Kmin, s.Kmax, s.Pmax), "a starting point for " + s.Speed.String() + ", " + string(s.Ramp.Label)
}
