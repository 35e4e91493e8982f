package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneVariablesJSON is the result of tune variables.
type tuneVariablesJSON struct {
	Schema    string             `json:"schema"`
	Fabric    string             `json:"fabric"` // "" without a model
	Class     string             `json:"class"`
	Variables []tuneVariableJSON `json:"variables"`
}

// tuneVariableJSON is one variable. Values are as the model writes them; without a model, or where it cannot be moved, they are empty.
type tuneVariableJSON struct {
	Name   string   `json:"name"`
	Doc    string   `json:"doc"`
	Now    string   `json:"now"`
	Low    string   `json:"low"`
	High   string   `json:"high"`
	Ladder []string `json:"ladder"`
	Paths  []string `json:"paths"`
	Why    string   `json:"why"` // it cannot be moved in this model; "" = it can
	Hint   string   `json:"hint"`
}

func (a *app) newTuneVariables() *cobra.Command {
	var class, scope string
	c := &cobra.Command{
		Use:   "variables",
		Short: "List what can be moved, and with a model from where to where",
		Long: `List the variables that tune run --variables takes. With a model: what each of them is now, how far it would be moved, and which lines of the
model it sets; of those that this model cannot move, why. Variables of the load (workload.depth, workload.qps, workload.size) are listed
too. Knobs that no dialect has are declared in a file, see --external of tune run.`,
		Example: "  fabricctl tune variables\n  fabricctl tune variables -f fabric.yaml --scope leaf",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.runTuneVariables(c.Context(), class, scope) },
	}
	c.Flags().StringVar(&class, "class", "", "lossless class that is tuned (default: the only one there is)")
	c.Flags().StringVar(&scope, "scope", "", "part of the fabric whose values are moved: a role such as leaf, or a device (default: all of it)")
	a.completeScope(c)
	return c
}

func (a *app) runTuneVariables(ctx context.Context, class, scope string) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	r := tuneVariablesJSON{Schema: "fabricctl/tune-variables/v1", Variables: []tuneVariableJSON{}}
	var m loaded
	switch {
	case len(a.fabric) > 0:
		if m, err = a.mustLoad(ctx); err != nil {
			return err
		}
		r.Fabric = m.net.Fabric
		if r.Class, err = tunedClass(m.net, class); err != nil {
			return err
		}
	case class != "" || scope != "":
		return usage("--class and --scope are of a model: give -f")
	}
	load := observe.Workload{Parts: []observe.Part{{Kind: observe.Incast}}}
	for _, v := range tuning.VariableNames() {
		x := tuneVariableJSON{Name: v.Name, Doc: v.Doc, Ladder: []string{}, Paths: v.Paths}
		if r.Fabric != "" {
			o := tuning.SpaceOptions{Class: r.Class, Variables: []string{v.Name}, Scope: scope, Workload: load}
			if err := a.oneVariable(m, o, &x); err != nil {
				return err
			}
		}
		r.Variables = append(r.Variables, x)
	}
	if json {
		return a.printJSON(r)
	}
	r.print(a.sys.out)
	return nil
}

// oneVariable fills in what a variable is in a model. What is wrong with the class or the scope is an error.
func (a *app) oneVariable(m loaded, o tuning.SpaceOptions, x *tuneVariableJSON) error {
	s, found := tuning.NewSpace(m.fabric, o)
	if !found.HasErrors() {
		v := &s.Vars[0]
		x.Name, x.Now, x.Low, x.High, x.Paths = v.Name, v.Text(s.Base[0]), v.Text(v.Low), v.Text(v.High), v.Paths
		for _, r := range v.Ladder {
			x.Ladder = append(x.Ladder, v.Text(r))
		}
		return nil
	}
	for _, f := range found {
		if f.Severity != diag.Error {
			continue
		}
		why, about := strings.CutPrefix(f.Msg, x.Name+" ")
		if !about {
			a.simFindings(found)
			return fail(exitError, "", "nothing can be listed: %s", diag.Count(found.Count(diag.Error), "error"))
		}
		x.Why, x.Hint = strings.TrimPrefix(why, "cannot be moved: "), f.Hint
		return nil
	}
	return nil
}

// print writes a row for each variable, and of those that cannot be moved why, with the others of which the same is true.
func (r *tuneVariablesJSON) print(w io.Writer) {
	if r.Fabric == "" {
		rows := [][]string{{"variable", "what it does"}}
		for _, x := range r.Variables {
			rows = append(rows, []string{x.Name, x.Doc})
		}
		show.Table(w, rows)
		return
	}
	rows := [][]string{{"variable", "now", "from", "to", "sets"}}
	var reasons []string
	names, hint := map[string][]string{}, map[string]string{}
	for _, x := range r.Variables {
		if x.Why == "" {
			rows = append(rows, []string{x.Name, x.Now, x.Low, x.High, cmp.Or(strings.Join(x.Paths, ", "), "the load")})
			continue
		}
		if names[x.Why] == nil {
			reasons = append(reasons, x.Why)
		}
		names[x.Why], hint[x.Why] = append(names[x.Why], x.Name), x.Hint
	}
	show.Table(w, rows)
	if len(reasons) > 0 {
		fmt.Fprintln(w, "\nnot moved in this model:")
	}
	for _, why := range reasons {
		text := strings.Join(names[why], ", ") + ": " + why
		if len(names[why]) == 1 && hint[why] != "" { // of several, each has its own
			text += "; " + hint[why]
		}
		show.Hang(w, "  ", text)
	}
}
