package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// usually is what --simulate is without a workload.
const usually = "usual"

// planSim is the fabric before and after a plan, under the same load. A nil one is a plan that is not simulated.
type planSim struct {
	want     *intent.Net
	workload observe.Workload
	notes    []string
	fabrics  []simulatedNet
}

// simulatedNet is one of the fabrics.
type simulatedNet struct {
	name, what string
	net        *intent.Net
	result     *sim.Result
	err        error // it was not simulated
}

// planJSON is a plan with what a simulation says of it.
type planJSON struct {
	show.PlanJSON
	Simulation *simulationJSON `json:"simulation,omitempty"`
}

// simulationJSON is fabrics under the same load.
type simulationJSON struct {
	Says     string          `json:"says"` // whose answer it is
	Workload string          `json:"workload"`
	Notes    []string        `json:"notes"` // what is to be known of the fabrics
	Fabrics  []simulatedJSON `json:"fabrics"`
	Figures  []comparedJSON  `json:"figures"`
}

type simulatedJSON struct {
	Name     string         `json:"name"` // "now", "after" or "model"
	What     string         `json:"what"`
	Error    string         `json:"error,omitempty"` // it could not be simulated
	Seed     uint64         `json:"seed"`
	Warmup   units.Duration `json:"warmup"`
	Measured units.Duration `json:"measured"`
	End      sim.End        `json:"end"`
	Drops    []sim.Drop     `json:"drops"`
	Why      []string       `json:"why"`
	Assumed  []string       `json:"assumed"`
}

// comparedJSON is one figure of all fabrics.
type comparedJSON struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`
	Values []*float64 `json:"values"` // in the order of the fabrics; null where one could not be simulated
}

// newPlanSim reads the workload, before any device is read.
func newPlanSim(want *intent.Net, workload string) (*planSim, error) {
	if workload == usually {
		workload = usualWorkload(want, "", nil)
	}
	w, err := readWorkload(workload)
	if err != nil {
		return nil, err
	}
	return &planSim{want: want, workload: w}, nil
}

// outlook takes what the devices do now and will do. Of those that were not read or are not part of the plan it is taken that they do what
// the model says.
func (s *planSim) outlook(now, after *intent.Net) {
	unread := map[string]bool{}
	for i := range now.Devices {
		d := &now.Devices[i]
		if d.State == intent.Active && !slices.ContainsFunc(d.Policies, func(p intent.Policy) bool { return p.Known != 0 }) {
			unread[d.Name] = true
		}
	}
	var missing []string
	active := 0
	for i := range s.want.Devices {
		d := &s.want.Devices[i]
		if d.State != intent.Active {
			continue
		}
		active++
		if unread[d.Name] || now.Device(d.Name) == nil {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) == active {
		s.notes = append(s.notes, "no device was read: what is shown is the model alone")
		s.fabrics = []simulatedNet{{name: "model", what: "as the model has it", net: s.want}}
		return
	}
	if len(missing) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("not read, and taken to be as the model says: %s", show.NameList(missing)))
	}
	whole := func(n *intent.Net) *intent.Net {
		return intent.Mix(s.want, n, func(name string) bool { return !unread[name] })
	}
	now, after = whole(now), whole(after)
	s.fabrics = []simulatedNet{{name: "now", what: "as the devices are", net: now}}
	if differ(now, after) {
		s.fabrics = append(s.fabrics, simulatedNet{name: "after", what: "once the plan is applied", net: after})
	} else {
		s.notes = append(s.notes, "the plan changes nothing that a port does")
	}
	if differ(after, s.want) {
		s.fabrics = append(s.fabrics, simulatedNet{name: "model", what: "as the model has it, where nothing is owned too", net: s.want})
	}
}

// differ reports whether an active port does otherwise in a than in b, as far as both are known.
func differ(a, b *intent.Net) bool {
	for i := range a.Devices {
		x := &a.Devices[i]
		y := b.Device(x.Name)
		if y == nil || x.State != intent.Active {
			continue
		}
		for j := range x.Ports {
			p := &x.Ports[j]
			q := y.Port(p.Name)
			if q != nil && p.State == intent.Active && len(intent.Differences(x.PolicyOf(p), y.PolicyOf(q))) > 0 {
				return true
			}
		}
	}
	return false
}

// run simulates the fabrics side by side. What goes wrong is said where its numbers would stand.
func (s *planSim) run(ctx context.Context, a *app) {
	p := a.progressOf(s.want.Fabric, len(s.fabrics))
	var wg sync.WaitGroup
	for i := range s.fabrics {
		wg.Go(func() {
			f := &s.fabrics[i]
			f.result, f.err = sim.Run(ctx, f.net, s.workload, sim.Options{Progress: p.of(i)}, 1)
			if f.err != nil {
				f.result = nil
			}
			p.done(i)
		})
	}
	wg.Wait()
	p.end()
}

// interrupted is an error when the end of ctx has cut the simulation short.
func (s *planSim) interrupted(ctx context.Context) error {
	if s == nil || !slices.ContainsFunc(s.fabrics, func(f simulatedNet) bool { return f.err != nil && ctx.Err() != nil }) {
		return nil
	}
	return interrupted(ctx, fmt.Errorf("the plan is whole, its simulation is not: %w", context.Cause(ctx)))
}

// trouble says why a fabric was not simulated.
func (f *simulatedNet) trouble() string {
	var r *sim.Refused
	if errors.As(f.err, &r) {
		for _, x := range r.Findings {
			if x.Severity == diag.Error {
				return x.Rule + ": " + x.Msg
			}
		}
	}
	return diag.OneLine(f.err.Error())
}

// figures are the numbers of all fabrics.
func (s *planSim) figures() []comparedJSON {
	out := []comparedJSON{}
	for _, f := range figures(promised(s.want)) {
		c := comparedJSON{Name: f.name, Unit: f.unit}
		any := false
		for i := range s.fabrics {
			r := s.fabrics[i].result
			if r == nil {
				c.Values = append(c.Values, nil)
				continue
			}
			v := f.of(r)
			c.Values = append(c.Values, &v)
			any = any || f.has(r)
		}
		if any {
			out = append(out, c)
		}
	}
	return out
}

func (s *planSim) json() *simulationJSON {
	if s == nil {
		return nil
	}
	j := &simulationJSON{Says: modelsAnswer, Workload: s.workload.String(), Notes: show.Some(s.notes), Fabrics: []simulatedJSON{}, Figures: s.figures()}
	for i := range s.fabrics {
		f := &s.fabrics[i]
		x := simulatedJSON{Name: f.name, What: f.what, Drops: []sim.Drop{}, Why: []string{}, Assumed: []string{}}
		if r := f.result; r != nil {
			x.Seed, x.Warmup, x.Measured, x.End = r.Seed, r.Warmup, r.Measured, r.End
			x.Drops, x.Why, x.Assumed = show.Some(r.Drops), show.Some(r.Why), show.Some(r.Assumed)
		} else {
			x.Error = f.trouble()
		}
		j.Fabrics = append(j.Fabrics, x)
	}
	return j
}

// rows are a table of the figures, the heading first.
func (s *planSim) rows() [][]string {
	rows := [][]string{{""}}
	for i := range s.fabrics {
		rows[0] = append(rows[0], s.fabrics[i].name)
	}
	for _, c := range s.figures() {
		row := []string{c.Name}
		for _, v := range c.Values {
			if v == nil {
				row = append(row, "-")
				continue
			}
			row = append(row, figureText(c.Unit, *v))
		}
		rows = append(rows, row)
	}
	return rows
}

// title is "simulated under incast:8, 10ms after 1ms of warm-up: a model's answer, not a measurement".
func (s *planSim) title() string {
	how := ""
	for i := range s.fabrics {
		if r := s.fabrics[i].result; r != nil {
			how = ", " + howLong(r)
		}
	}
	return "simulated under " + s.workload.String() + how + ": " + modelsAnswer
}

// remarks are the sentences below the table.
func (s *planSim) remarks() []string {
	out := slices.Clone(s.notes)
	for i := range s.fabrics {
		f := &s.fabrics[i]
		switch {
		case f.result == nil:
			out = append(out, f.name+" could not be simulated: "+f.trouble())
		default:
			if e := simVerdict(f.result, promised(s.want)); e != nil {
				out = append(out, f.name+": "+e.Error())
			}
			if n := len(f.result.Why); n > 0 {
				out = append(out, f.name+": "+strings.Join(f.result.Why[:min(n, 2)], "; "))
			}
		}
	}
	for i := range s.fabrics {
		if r := s.fabrics[i].result; r != nil && len(r.Assumed) > 0 {
			out = append(out, "assumed of "+s.fabrics[i].name+": "+strings.Join(r.Assumed, "; "))
		}
	}
	return out
}

// print writes the comparison for people.
func (s *planSim) print(w io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintln(w, "\n"+s.title())
	rows := s.rows()
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	show.Table(w, rows)
	for _, t := range s.remarks() {
		show.Hang(w, "  - ", t)
	}
}

// markdown is the comparison for a pull request.
func (s *planSim) markdown() string {
	var b strings.Builder
	b.WriteString("\n#### " + show.MdText(s.title()) + "\n\n")
	for i, r := range s.rows() {
		for j := range r {
			r[j] = show.MdText(r[j])
		}
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|---:", len(r)-1) + "|\n")
		}
	}
	b.WriteString("\n")
	for _, t := range s.remarks() {
		b.WriteString("- " + show.MdText(t) + "\n")
	}
	return b.String()
}

// room is how many bytes of markdown are left for the plan, which comes first: at least the smallest comment.
func (s *planSim) room(limit int) int {
	if s == nil {
		return limit
	}
	return max(limit-len(s.markdown()), show.SmallestComment)
}

// under is a comment with the comparison below it, if that finds room.
func (s *planSim) under(comment string, limit int) string {
	if s == nil {
		return comment
	}
	if text := s.markdown(); len(comment)+len(text) <= limit {
		return comment + text
	}
	const none = "\n**There was no room for what the simulation says: see -o json.**\n"
	if len(comment)+len(none) <= limit {
		return comment + none
	}
	return comment
}
