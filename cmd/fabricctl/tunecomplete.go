package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/tuning"
)

// completeTune offers what the flags of tune run take.
func (a *app) completeTune(c *cobra.Command) {
	for _, f := range []string{
		"exchange", "tie", "max-paused", "max-host-pause", "max-runs", "max-time", "window", "seed", "looks", "confirm", "rounds", "duration", "warmup",
		"test-port", "settle",
	} {
		mustComplete(c, f)
	}
	mustComplete(c, "runner", runnerSim, runnerLab, runnerPerftest)
	mustComplete(c, "method", string(tuning.OFAT), string(tuning.NelderMead), string(tuning.FullGrid))
	mustCompleteBy(c, "workload", func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		names, _ := tuning.Standards()
		kinds, d := completeWorkload(c, args, word)
		if !strings.ContainsAny(word, "+./,:") {
			kinds = append(names, kinds...)
		}
		return kinds, d
	})
	a.completeScope(c)
	mustCompleteBy(c, "variables", lastOf(func() (names []string) {
		for _, v := range tuning.VariableNames() {
			names = append(names, v.Name)
		}
		return names
	}))
	mustCompleteBy(c, "test-hosts", lastOf(a.hostNames))
	mustCompleteBy(c, "test-ports", func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		i := strings.LastIndexByte(word, ',') + 1
		names, d := a.completePorts(c, nil, word[i:])
		return after(word[:i], names), d
	})
}

// lastOf offers names for the last word of a list.
func lastOf(names func() []string) arguments {
	return func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		i := strings.LastIndexByte(word, ',') + 1
		return after(word[:i], names()), noFiles
	}
}

// completeTuned offers the last experiment, and those of the state directory, the newest first.
func (a *app) completeTuned(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	all, _ := a.allTuned()
	var ids []string
	if len(all) > 0 {
		ids = append(ids, lastTuned)
	}
	for _, r := range slices.Backward(all) {
		ids = append(ids, r.ID)
	}
	return ids, noFiles | cobra.ShellCompDirectiveKeepOrder
}

// completeScope offers the lossless classes and the roles of the model.
func (a *app) completeScope(c *cobra.Command) {
	mustCompleteBy(c, "class", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if f, _ := a.devices(); f != nil {
			for i := range f.Classes {
				if f.Classes[i].Lossless.V {
					names = append(names, f.Classes[i].Name)
				}
			}
		}
		return names, noFiles | cobra.ShellCompDirectiveKeepOrder
	})
	mustCompleteBy(c, "scope", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var roles []string
		if f, _ := a.devices(); f != nil {
			for i := range f.Devices {
				roles = append(roles, f.Devices[i].Role)
			}
		}
		slices.Sort(roles)
		return slices.Compact(roles), noFiles
	})
}
