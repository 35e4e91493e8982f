package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
)

type tunesJSON struct {
	Schema string        `json:"schema"`
	Runs   []tuneSummary `json:"runs"`
}

func (a *app) newTuneList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments in the state directory, oldest first",
		Long:  "List the experiments in the state directory, oldest first. One that is dead lost its process before it had ended: tune resume finishes it, and restores the baseline where devices were written.",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			all, err := a.allTuned()
			if err != nil {
				return err
			}
			if json {
				return a.printJSON(tunesJSON{"fabricctl/tunes/v1", all})
			}
			if len(all) == 0 {
				dir, _ := a.tuneDir()
				fmt.Fprintf(a.sys.err, "no experiments in %s\n", dir)
				return nil
			}
			rows := a.header("experiment", "state", "started", "fabric", "runner", "class", "runs", "answer")
			for _, r := range all {
				if r.Error != "" {
					rows = append(rows, []string{r.ID, "unreadable", "-", "-", "-", "-", "-", r.Error})
					continue
				}
				rows = append(rows, []string{
					r.ID, string(r.State), r.Started.Format(time.RFC3339), r.Fabric, r.Runner, r.Class, fmt.Sprint(r.Runs),
					diag.OneLine(cmp.Or(string(r.Verdict), "-")),
				})
			}
			show.Table(a.sys.out, rows)
			return nil
		},
	}
}

func wantTuned(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("want one experiment: an id, the beginning of one, or last; fabricctl tune list shows them")
	}
	return nil
}

func (a *app) newTuneShow() *cobra.Command {
	var details bool
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Show an experiment: the answer, every decision with its evidence, and what was not tried",
		Long: `Show an experiment from its journal: the answer, each decision with its effect on J, interval and number of runs, what else is as good,
and what was not tried. --details has the reason for each decision, and what was compared. No model is needed.`,
		Args: wantTuned,
		RunE: func(_ *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			r, h, err := a.experimentOf(args[0])
			if err != nil {
				return err
			}
			return a.showTuned(r, h, details, json)
		},
	}
	c.Flags().BoolVar(&details, "details", false, "why each decision was made, and what was compared")
	return c
}

// showTuned prints an experiment.
func (a *app) showTuned(r *tuneJSON, h *tuning.History, details, json bool) error {
	r.Looked = a.unconfirmedOf(r, h)
	if json {
		return a.printJSON(r)
	}
	printTuned(a.sys.out, r, h, details)
	fmt.Fprintf(a.sys.out, "\nrun %s\n", r.ID)
	for _, h := range a.tuneHints(r) {
		show.Hang(a.sys.out, "  ", h)
	}
	return nil
}
