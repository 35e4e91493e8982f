package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
)

// printTunePlan says what an experiment will move, write and risk, before it does.
func printTunePlan(w io.Writer, x *experiment) {
	e := &x.exp
	fmt.Fprintf(w, "%s\n", show.Paint(show.Bold, fmt.Sprintf("%s: class %s, %s", e.Context.Fabric, e.Context.Class, runnerText(&e.Context))))
	for _, f := range planFacts(e) {
		show.Hang(w, "  "+show.Pad(f.label, 11), f.text)
	}
	if x.scant != "" {
		show.Hang(w, "  "+show.Pad("too few", 11), x.scant)
	}
	fmt.Fprintln(w)
	show.Table(w, variableTable(e.Space))
	if costs := costTable(e.Space.Vars); len(costs) > 0 {
		fmt.Fprintln(w)
		show.Table(w, costs)
	}
}

// tunePlanJSON is the same for programs.
type tunePlanJSON struct {
	Schema   string            `json:"schema"`
	Fabric   string            `json:"fabric"`
	Class    string            `json:"class"`
	Runner   string            `json:"runner"`
	Workload string            `json:"workload"`
	Vars     []tuning.Variable `json:"vars"`
	Start    tuning.Setting    `json:"start"`
	Method   tuning.Method     `json:"method"`
	Seed     uint64            `json:"seed"`
	Budget   tuning.Budget     `json:"budget"`
	Devices  []string          `json:"devices"`
	Ports    []string          `json:"ports"`
	Notes    []string          `json:"notes"`
}

// plan is what an experiment will move, write and risk.
func (x *experiment) plan() tunePlanJSON {
	e := &x.exp
	c := &e.Context
	notes := c.Note
	if x.scant != "" {
		notes = append(slices.Clone(notes), x.scant)
	}
	return tunePlanJSON{
		Schema: "fabricctl/tune-plan/v1", Fabric: c.Fabric, Class: c.Class, Runner: c.Runner, Workload: e.Workload.String(), Vars: e.Space.Vars, Start: e.Space.Base,
		Method: e.Method, Seed: e.Seed, Budget: e.Budget, Devices: c.Devices, Ports: c.Ports, Notes: notes,
	}
}

// planFacts are what is to be done, in a few lines.
func planFacts(e *tuning.Experiment) []answer {
	load := e.Workload.String()
	names, docs := tuning.Standards()
	if i := slices.Index(names, e.Workload.Name); i >= 0 {
		load = names[i] + ": " + docs[i]
	}
	facts := []answer{{label: "load", text: load}, {label: "start", text: tuning.SettingText(e.Space.Vars, e.Space.Base)}}
	goal := fmt.Sprintf("J = ln goodput - %s ln p99.9", strconv.FormatFloat(e.Objective.Exchange, 'g', 4, 64))
	switch {
	case e.Objective.Lexicographic:
		goal = "goodput first, then p99.9"
	case e.Objective.Exchange == 0:
		goal = "goodput alone"
	}
	if m := e.Objective.PausedMost; m > 0 {
		goal += fmt.Sprintf("; no port towards a host stands still for more than %g %% of the time", 100*m)
	}
	facts = append(facts, answer{label: "best is", text: goal + "; no packet of a lossless class is lost"})
	var limits []string
	if e.Budget.Runs > 0 {
		limits = append(limits, diag.Count(e.Budget.Runs, "run"))
	}
	if e.Budget.Time > 0 {
		limits = append(limits, e.Budget.Time.String())
	}
	most := "no limit"
	if len(limits) > 0 {
		most = "at most " + strings.Join(limits, ", ")
	}
	facts = append(facts, answer{label: "runs", text: fmt.Sprintf("%s; %s, seed %d", most, e.Method, e.Seed)})
	if len(e.Context.Devices) > 0 {
		ends := "a loss in a lossless class, a PFC watchdog that acts"
		if p := e.Limits.Pausing; p > 0 {
			ends += fmt.Sprintf(", a host that stops its switch for more than %g %% of a run", 100*p)
		}
		facts = append(facts, answer{label: "writes", text: show.NameList(e.Context.Devices)}, answer{label: "ends on", text: ends})
	}
	if len(e.Context.Ports) > 0 {
		facts = append(facts, answer{label: "touches", text: "ports that share an object which is edited: " + show.Counted(e.Context.Ports, "port", "")})
	}
	for _, n := range e.Context.Note {
		facts = append(facts, answer{label: "note", text: n})
	}
	return facts
}

// variableTable is a row for each variable: where it stands, between what it is moved, and what sets it.
func variableTable(s *tuning.Space) [][]string {
	rows := [][]string{{"  variable", "now", "from", "to", "sets"}}
	for i := range s.Vars {
		v := &s.Vars[i]
		sets := strings.Join(v.Paths, ", ")
		if v.External != nil {
			sets = strings.Join(v.External.Set, " ")
		}
		rows = append(rows, []string{"  " + v.Name, v.Text(s.Base[i]), v.Text(v.Low), v.Text(v.High), sets})
	}
	return rows
}

// costTable is what moving variables costs, where that is known: a row for each platform and kind.
func costTable(vars []tuning.Variable) [][]string {
	var rows [][]string
	for i := range vars {
		for _, c := range vars[i].Costs {
			kind := string(c.Kind)
			switch c.Kind {
			case tuning.Hitless:
				kind = show.Paint(show.Green, kind)
			case tuning.Flaps, tuning.Refused:
				kind = show.Paint(show.Red, kind)
			}
			rows = append(rows, []string{"  " + vars[i].Name, c.Platform, show.NameList(c.Devices), kind, c.Why})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return append([][]string{{"  variable", "platform", "devices", "moving it", ""}}, rows...)
}
