package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// loadFlags are how a load is run in a lab.
type loadFlags struct {
	lab.Load
	details bool
}

func (o *loadFlags) register(c *cobra.Command, prefix string) {
	f := c.Flags()
	o.Duration = 10 * units.Second
	f.Var(&span{&o.Duration}, prefix+"duration", "how long the load lasts: counters grow by what happens in it")
	f.Var(&span{&o.Window}, prefix+"window", "how much of that is simulated (default 10ms)")
	f.Var(&span{&o.Warmup}, prefix+"warmup", "simulated before, and not counted (default 1ms where a flow never ends)")
	f.Uint64Var(&o.Seed, prefix+"seed", 1, "of all that is drawn; the same seed gives the same run on the same fabric")
	f.BoolVar(&o.details, prefix+"details", false, "list every flow, queue, pause and buffer")
	for _, name := range []string{"duration", "window", "warmup", "seed"} {
		mustComplete(c, prefix+name)
	}
}

func (a *app) newLabLoad() *cobra.Command {
	var o loadFlags
	c := &cobra.Command{
		Use:   "load DIR WORKLOAD",
		Short: "Let traffic pass over the emulated fabric, as its devices hold it now",
		Long: `Let a workload pass over the fabric of the lab that runs with directory DIR. What its devices hold at that moment is
understood as that of real ones is, and simulated: 10ms after 1ms of warm-up, unless flags say otherwise. What was
counted in that is scaled to --duration and added to the counters of the devices, which show them over their own
protocols. A workload that ends within what is simulated is counted as it is. Loads add up; a device that restarts
begins anew. The result is a simulator's, and no measurement. Exit 0 says that the load passed, whatever was lost.

WORKLOAD is as in sim: incast:8, 'pairs + background,load=30%', or a YAML file.`,
		Example: "  fabricctl lab load lab incast:8\n  fabricctl lab load lab incast:31,qps=2 --duration 60s\n" +
			"  fabricctl lab load lab 'pairs + background,load=30%' --seed 7 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fail(exitUsage, "for example: fabricctl lab load lab incast:8", "lab load wants a directory and a workload")
			}
			return nil
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return completeWorkload(c, args, word)
		},
		RunE: func(c *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if o.Workload, err = readWorkload(args[1]); err != nil {
				return err
			}
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			out, err := lab.Pass(ctx, args[0], o.Load)
			if err != nil {
				return a.loadRefused(ctx, err)
			}
			return a.showLoad(out, o.details, json)
		},
	}
	o.register(c, "")
	return c
}

// loadRefused is the error of a load that came to nothing.
func (a *app) loadRefused(ctx context.Context, err error) error {
	if r, ok := errors.AsType[*sim.Refused](err); ok {
		a.simFindings(r.Findings)
		return fail(exitError, "", "this load cannot be simulated: %s; nothing was counted", diag.Count(r.Findings.Count(diag.Error), "error"))
	}
	return interrupted(ctx, err)
}

type labLoadJSON struct {
	Schema string `json:"schema"`
	*lab.Loaded
}

// showLoad prints what a load came to.
func (a *app) showLoad(out *lab.Loaded, details, json bool) error {
	if json {
		return a.printJSON(labLoadJSON{"fabricctl/lab-load/v1", out})
	}
	a.simFindings(slices.Concat(out.NotLifted, out.Result.Findings))
	p := promise{}
	for _, class := range out.Lossless {
		p[class] = true
	}
	printSim(a.sys.out, out.Result, p, details)
	sentences(a.sys.out, "down, and what is cabled to that", out.Down)
	_, err := fmt.Fprintf(a.sys.out, "\ncounted on the devices: %s, of which %s were simulated\n", out.Duration, out.Window)
	return err
}
