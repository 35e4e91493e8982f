package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/tuning"
)

// header is the first row of a table: the names of its columns for people, nothing for a program that reads along.
func (a *app) header(names ...string) [][]string {
	if s, ok := a.sys.out.(*show.Screen); ok && s.Terminal() {
		return [][]string{names}
	}
	return nil
}

func (a *app) newRuns() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, show, finish or take back runs",
		Args:  wantVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newRunsList(), a.newRunsShow(),
		a.newRunsAct("resume", "Finish a run from its journal", func(ctx context.Context, e *rollout.Engine, id string) (*rollout.Run, error) {
			return e.Resume(ctx, id)
		}),
		a.newRunsAct("rollback", "Take a run back from its journal", func(ctx context.Context, e *rollout.Engine, id string) (*rollout.Run, error) {
			return e.Rollback(ctx, id)
		}))
	return c
}

type runsJSON struct {
	Schema string    `json:"schema"`
	Runs   []runJSON `json:"runs"`
}

// historyJSON is a run with its attempts.
type historyJSON struct {
	Schema string `json:"schema"`
	*rollout.History
	Became string `json:"became,omitempty"`
}

// runJSON is a run in a list, with what became of one that is unfinished.
type runJSON struct {
	rollout.Summary
	Became string `json:"became,omitempty"`
}

func (a *app) newRunsList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runs in the state directory, oldest first",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			dir, err := a.state()
			if err != nil {
				return err
			}
			runs, err := rollout.Runs(dir, time.Now())
			if err != nil {
				return err
			}
			all := a.runsOf(runs)
			if json {
				return a.printJSON(runsJSON{"fabricctl/runs/v1", all})
			}
			if len(all) == 0 {
				fmt.Fprintf(a.sys.err, "no runs in %s\n", dir)
				return nil
			}
			rows := a.header("run", "status", "started", "fabric", "devices")
			for i := range all {
				r := &all[i]
				started := "not begun"
				if !r.Started.IsZero() {
					started = r.Started.Format(time.RFC3339)
				}
				rows = append(rows, []string{r.ID, string(r.Status), started, cmp.Or(r.Fabric, "not known"), r.words()})
			}
			show.Table(a.sys.out, rows)
			return nil
		},
	}
}

// runsOf are runs with what became of them.
func (a *app) runsOf(runs []rollout.Summary) []runJSON {
	all := make([]runJSON, len(runs))
	of := map[string]*tuning.History{} // experiments, nil where one cannot be read
	for i, r := range runs {
		if r.Status == rollout.Unfinished && r.Trial != "" {
			if _, read := of[r.Trial]; !read {
				_, of[r.Trial], _ = a.tuned(r.Trial)
			}
		}
		all[i] = runJSON{r, became(&r, of[r.Trial])}
	}
	return all
}

// became is what became of a run that is unfinished, as far as that is known elsewhere than in its journal: h is its experiment, nil when there is none.
func became(r *rollout.Summary, h *tuning.History) string {
	switch {
	case r.Status != rollout.Unfinished:
		return ""
	case h != nil && !h.Touched && len(h.Restores) > 0:
		return "its experiment has brought the baseline back since"
	case r.Later != nil:
		return laterWords(r.Later)
	}
	return ""
}

// laterWords are what later runs have made of an unfinished one.
func laterWords(l *rollout.Later) string {
	words, is := "run "+l.Runs[0], "is"
	if len(l.Runs) > 1 {
		words, is = "runs "+show.NameList(l.Runs), "are"
	}
	words += " came later"
	if l.Whole() {
		return words + ", and " + is + " in force in its place"
	}
	if len(l.Devices) > 0 {
		words += ", and " + is + " in force on " + show.NameList(l.Devices)
	}
	if len(l.Unknown) > 0 {
		words += "; what is in force on " + show.NameList(l.Unknown) + " is not known"
	}
	switch len(l.Left) {
	case 0:
		return words
	case 1:
		return words + "; " + l.Left[0] + " is as it was left"
	}
	return words + "; " + show.NameList(l.Left) + " are as they were left"
}

// words are the outcomes of a run by number of devices, and what became of it since.
func (r *runJSON) words() string {
	if r.Error != "" {
		return "journal cannot be read: " + r.Error
	}
	var s []string
	for o, n := range r.Devices {
		s = append(s, fmt.Sprintf("%d %s", n, o))
	}
	slices.Sort(s)
	words := strings.Join(s, ", ")
	if r.Became != "" {
		words += "; " + r.Became
	}
	return words
}

func wantRun(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("want one run id; fabricctl runs list shows them")
	}
	return nil
}

func (a *app) newRunsShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: its plan and every attempt",
		Args:  wantRun,
		RunE: func(c *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			dir, err := a.state()
			if err != nil {
				return err
			}
			h, err := rollout.Show(dir, args[0], time.Now())
			if err != nil {
				return a.finish(c.Context(), nil, err, json)
			}
			if h.Status == rollout.Unfinished {
				if h.Later, err = rollout.LaterOf(dir, h.ID, time.Now()); err != nil {
					return err
				}
			}
			r := a.runsOf([]rollout.Summary{h.Summary})[0]
			if json {
				return a.printJSON(historyJSON{"fabricctl/history/v1", h, r.Became})
			}
			status := string(h.Status)
			if r.Became != "" {
				status += "; " + r.Became
			}
			fmt.Fprintf(a.sys.out, "run %s of %s: %s\n", h.ID, h.Fabric, status)
			if h.Plan != nil {
				if err := show.Plan(a.sys.out, h.Plan, false); err != nil {
					return err
				}
			}
			for i, r := range h.Attempts {
				fmt.Fprintf(a.sys.out, "\n%s by %s, %s\n", r.Kind, r.Owner, r.Started.Format(time.RFC3339))
				show.Run(a.sys.out, r, i == len(h.Attempts)-1, a.again, a.command("hold", "list"))
			}
			return nil
		},
	}
}

func (a *app) newRunsAct(verb, short string, act func(context.Context, *rollout.Engine, string) (*rollout.Run, error)) *cobra.Command {
	var allowJobs bool
	var hook hookFlags
	c := &cobra.Command{
		Use:   verb + " RUN",
		Short: short,
		Long:  short + ". The model (-f) says how to reach the devices; what is done comes from the journal alone. A resume is refused when the model is not the one of the run; a rollback is not, even when the model has errors. A host refuses what would kill live queue pairs of running jobs, unless --allow-jobs is given here or was given to apply.",
		Args:  wantRun,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if a.readOnly {
				return fail(exitRefused, "leave --read-only away to write", "runs %s: %w", verb, drivers.ErrReadOnly)
			}
			m, err := a.mustLoad(ctx)
			if err != nil && (verb != "rollback" || m.net == nil) { // the way back is open, whatever has become of the model
				return err
			}
			d := a.dialler(m.fabric, m.net)
			e, err := a.engine(d.open)
			if err != nil {
				return err
			}
			e.Model = m.digest()
			d.allowJobs = allowJobs
			inherited := ""
			if h, err := rollout.Show(e.StateDir, args[0], time.Now()); err == nil {
				d.allowJobs = d.allowJobs || h.Options.AllowJobs
				inherited = h.Options.DrainHook
				if h.Fabric != m.net.Fabric {
					fmt.Fprintf(a.sys.err, "warning: run %s is of fabric %s, and the model given with -f is of %s\n", args[0], h.Fabric, m.net.Fabric)
				}
			}
			program, err := hook.find(a, m.net.Fabric, inherited)
			if err != nil {
				return err
			}
			drains(e, program)
			r, err := act(ctx, e, args[0])
			return a.finish(ctx, r, err, json)
		},
	}
	hook.register(c, " (that of the run, when not given; none for none)")
	c.Flags().BoolVar(&allowJobs, "allow-jobs", false, "kill live queue pairs of running jobs where the way there does; a run that was applied with it has that leave")
	return c
}
