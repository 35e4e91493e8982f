package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
)

// header is the first row of a table: the names of its columns for people, nothing for a program that reads along.
func (a *app) header(names ...string) [][]string {
	if s, ok := a.sys.out.(*show.Screen); ok && s.Terminal() {
		return [][]string{names}
	}
	return nil
}

// seeRuns is the hint where a run is not there.
const seeRuns = "fabricctl runs list shows the runs"

// again is a command on a run as it can be pasted: it reaches the same devices and the same journal.
func (a *app) again(verb, id string) string {
	words := []string{"fabricctl", "runs", verb, id}
	for _, f := range a.fabric {
		words = append(words, "-f", quote(f))
	}
	if len(a.fabric) == 0 {
		words = append(words, "-f", "MODEL")
	}
	if a.stateDir != "" {
		words = append(words, "--state-dir", quote(a.stateDir))
	}
	return strings.Join(words, " ")
}

// quote is s as one word of a POSIX shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
	Schema string            `json:"schema"`
	Runs   []rollout.Summary `json:"runs"`
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
			if json {
				if runs == nil {
					runs = []rollout.Summary{}
				}
				return a.printJSON(runsJSON{"fabricctl/runs/v1", runs})
			}
			if len(runs) == 0 {
				fmt.Fprintf(a.sys.err, "no runs in %s\n", dir)
				return nil
			}
			rows := a.header("run", "status", "started", "fabric", "devices")
			for _, r := range runs {
				started := "not begun"
				if !r.Started.IsZero() {
					started = r.Started.Format(time.RFC3339)
				}
				rows = append(rows, []string{r.ID, string(r.Status), started, cmp.Or(r.Fabric, "not known"), outcomes(r)})
			}
			show.Table(a.sys.out, rows)
			return nil
		},
	}
}

func outcomes(r rollout.Summary) string {
	if r.Error != "" {
		return "journal cannot be read: " + r.Error
	}
	var s []string
	for o, n := range r.Devices {
		s = append(s, fmt.Sprintf("%d %s", n, o))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
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
			if json {
				return a.printJSON(struct {
					Schema string `json:"schema"`
					*rollout.History
				}{"fabricctl/history/v1", h})
			}
			fmt.Fprintf(a.sys.out, "run %s of %s: %s\n", h.ID, h.Fabric, h.Status)
			if h.Plan != nil {
				if err := show.Plan(a.sys.out, h.Plan, false); err != nil {
					return err
				}
			}
			for i, r := range h.Attempts {
				fmt.Fprintf(a.sys.out, "\n%s by %s, %s\n", r.Kind, r.Owner, r.Started.Format(time.RFC3339))
				show.Run(a.sys.out, r, i == len(h.Attempts)-1, a.again)
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

type locksJSON struct {
	Schema string          `json:"schema"`
	Locks  []journal.Lease `json:"locks"`
}

func (a *app) newLock() *cobra.Command {
	c := &cobra.Command{
		Use:   "lock",
		Short: "List or break the leases that keep two runs on one fabric apart",
		Args:  wantVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the leases in the state directory that are not free",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			dir, err := a.leases()
			if err != nil {
				return err
			}
			ls, err := journal.Leases(dir)
			if err != nil {
				return err
			}
			if json {
				if ls == nil {
					ls = []journal.Lease{}
				}
				return a.printJSON(locksJSON{"fabricctl/locks/v1", ls})
			}
			rows := a.header("fabric", "state", "by", "run", "fence")
			empty := len(rows)
			for _, l := range ls {
				if l.Free != "" {
					continue
				}
				state := "expired"
				if l.Held(time.Now()) {
					state = "held until " + l.Expires.Format(time.RFC3339)
				}
				rows = append(rows, []string{l.Name, state, fmt.Sprintf("%s (pid %d)", l.Owner, l.PID), l.Run, strconv.FormatUint(l.Fence, 10)})
			}
			if len(rows) == empty {
				fmt.Fprintf(a.sys.err, "no lease is held in %s\n", dir)
				return nil
			}
			show.Table(a.sys.out, rows)
			return nil
		},
	}
	brk := &cobra.Command{
		Use:   "break FABRIC",
		Short: "Break a fabric's lease; its holder is fenced out before its next write",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("lock break wants one fabric; fabricctl lock list shows them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if !nameRE.MatchString(args[0]) {
				return usage("%q is not a fabric's name", args[0])
			}
			dir, err := a.leases()
			if err != nil {
				return err
			}
			if l, err := journal.ReadLease(journal.LeasePath(dir, args[0])); err == nil && (l.Fence == 0 || l.Free != "") {
				return fail(exitError, "fabricctl lock list shows the leases", "nobody holds a lease of fabric %s in %s", args[0], dir)
			}
			was, err := journal.Break(c.Context(), journal.LeasePath(dir, args[0]), journal.Options{Now: time.Now})
			if err != nil {
				return err
			}
			if json {
				return a.printJSON(locksJSON{"fabricctl/locks/v1", []journal.Lease{was}})
			}
			who := "its file was damaged"
			if was.Run != "" {
				who = "it was held by " + was.Owner + " for run " + was.Run
			}
			_, err = fmt.Fprintf(a.sys.out, "%s: broken; %s\n", args[0], who)
			return err
		},
	}
	c.AddCommand(list, brk)
	return c
}

// leases is where the engine keeps its leases.
func (a *app) leases() (string, error) {
	dir, err := a.state()
	return rollout.LeasesDir(dir), err
}
