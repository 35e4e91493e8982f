package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// Grid is marking ramps to try: all combinations of what is listed. Its text form is "kmin=100KB/400KB,kmax=1.6MB,pmax=1%/10%"; what it does
// not name stays as it is.
type Grid struct {
	Kmin, Kmax []units.Bytes
	Pmax       []units.Percent
}

// ParseGrid reads the text form of a grid.
func ParseGrid(s string) (Grid, error) {
	var g Grid
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(s, ",") {
		key, list, given := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case seen[key]:
			return Grid{}, fmt.Errorf("grid %q has %s twice: write its values as one list, with / between them", s, key)
		case !given || list == "":
			return Grid{}, fmt.Errorf("grid %q has no values for %q: write kmin=100KB/400KB,kmax=1.6MB,pmax=1%%/10%%", s, diag.Line(key))
		}
		seen[key] = true
		for v := range strings.SplitSeq(list, "/") {
			if err := g.add(key, v); err != nil {
				return Grid{}, fmt.Errorf("grid: %w", err)
			}
		}
	}
	return g, nil
}

func (g *Grid) add(key, v string) error {
	switch key {
	case "kmin", "kmax":
		n, err := units.ParseBytes(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if key == "kmin" {
			g.Kmin = append(g.Kmin, n)
		} else {
			g.Kmax = append(g.Kmax, n)
		}
	case "pmax":
		n, err := units.ParsePercent(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		g.Pmax = append(g.Pmax, n)
	default:
		return fmt.Errorf("%q is none of kmin, kmax and pmax", diag.Line(key))
	}
	return nil
}

// String is the text form; ParseGrid reads it back.
func (g Grid) String() string {
	var parts []string
	add := func(key string, values []string) {
		if len(values) > 0 {
			parts = append(parts, key+"="+strings.Join(values, "/"))
		}
	}
	add("kmin", texts(g.Kmin))
	add("kmax", texts(g.Kmax))
	add("pmax", texts(g.Pmax))
	return strings.Join(parts, ",")
}

func texts[T fmt.Stringer](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.String())
	}
	return out
}

// mostPoints is how many settings a grid may have.
const mostPoints = 2000

// setting is a ramp, as it is asked for and as the hardware has it.
type setting struct{ ramp, effect derive.Ramp }

// points are the settings of a grid on a port, in the order of its lists; those with a kmin above the kmax, and those that come to the same in the
// hardware as one before, are left out and counted.
func (g Grid) points(now derive.Ramp, dev *intent.Device) (ps []setting, skipped, same int) {
	orNow(&g.Kmin, now.Kmin)
	orNow(&g.Kmax, now.Kmax)
	orNow(&g.Pmax, now.Pmax)
	seen := map[derive.Ramp]bool{}
	for _, kmin := range g.Kmin {
		for _, kmax := range g.Kmax {
			for _, pmax := range g.Pmax {
				p := setting{ramp: derive.Ramp{Kmin: kmin, Kmax: kmax, Pmax: pmax}}
				p.effect = inHardware(p.ramp, dev)
				switch {
				case kmin > kmax:
					skipped++
				case seen[p.effect]:
					same++
				default:
					seen[p.effect] = true
					ps = append(ps, p)
				}
			}
		}
	}
	return ps, skipped, same
}

func orNow[T any](list *[]T, now T) {
	if len(*list) == 0 {
		*list = []T{now}
	}
}

// inHardware is what a switch makes of a ramp.
func inHardware(r derive.Ramp, dev *intent.Device) derive.Ramp {
	e := intent.ECNInEffect(intent.ECN{On: true, Kmin: r.Kmin, Kmax: r.Kmax, Pmax: r.Pmax}, dev.Profile.Chip)
	return derive.Ramp{Kmin: e.Kmin, Kmax: e.Kmax, Pmax: e.Pmax}
}

// check finds what in a grid can be no setting of a switch whose queues share a pool.
func (g Grid) check(dev *intent.Device, pool units.Bytes) (found diag.List) {
	add := func(hint, format string, a ...any) {
		found.Add(diag.Finding{Rule: "sim-grid", Severity: diag.Error, At: "--grid", Msg: fmt.Sprintf(format, a...), Hint: hint})
	}
	step := intent.ECNStep(dev.Profile.Chip)
	for i, list := range [][]units.Bytes{g.Kmin, g.Kmax} {
		key := []string{"kmin", "kmax"}[i]
		for _, v := range list {
			switch {
			case v <= 0:
				add("write at least "+max(step, units.KB).String(), "%s %s: a ramp begins above 0", key, v)
			case derive.RoundDown(v, step) == 0:
				add("write at least "+step.String(), "%s %s is 0 in the hardware of %s, which counts in steps of %s", key, v, dev.Name, step)
			case key == "kmin" && v >= pool:
				add("write less than "+pool.String(), "kmin %s: no queue of %s can be that long, whose pool has %s, so that nothing is ever marked", v, dev.Name, pool)
			}
		}
	}
	for _, v := range g.Pmax {
		if v <= 0 || v > 100*units.OnePercent {
			add("write more than 0% and at most 100%", "pmax %s is no probability that marks", v)
		}
	}
	if n := max(len(g.Kmin), 1) * max(len(g.Kmax), 1) * max(len(g.Pmax), 1); n > mostPoints {
		add(fmt.Sprintf("try a coarser one of at most %d", mostPoints), "the grid has %d settings", n)
	}
	return found
}

// withRamp is a Net in which some traffic classes have another ramp, wherever a switch marks them. queues is how many queues of ports that is, changed
// on how many it is another than before.
func withRamp(n *intent.Net, tcs []int, r derive.Ramp) (m *intent.Net, queues, changed int) {
	m = n.With(slices.Clone(n.Devices))
	for i := range m.Devices {
		d := &m.Devices[i]
		if d.Host {
			continue
		}
		d.Policies = slices.Clone(d.Policies)
		set := make([][2]int, len(d.Policies)) // queues, and those that are changed
		for j := range d.Policies {
			set[j] = setRamp(&d.Policies[j], tcs, r)
		}
		for j := range d.Ports {
			if !active(d, &d.Ports[j]) {
				continue
			}
			queues += set[d.Ports[j].Policy][0]
			changed += set[d.Ports[j].Policy][1]
		}
	}
	return m, queues, changed
}

// setRamp sets the ramp of traffic classes of a policy where they mark.
func setRamp(p *intent.Policy, tcs []int, r derive.Ramp) (set [2]int) {
	for _, tc := range tcs {
		e := &p.Queues[tc].ECN
		if !p.Known.Has(intent.AreaECN) || !e.On {
			continue
		}
		want := intent.ECN{On: true, Kmin: r.Kmin, Kmax: r.Kmax, Pmax: r.Pmax}
		set[0]++
		if *e != want {
			*e = want
			set[1]++
		}
	}
	return set
}
