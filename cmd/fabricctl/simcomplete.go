package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// completeSim offers what the flags of sim take.
func (a *app) completeSim(c *cobra.Command) {
	for _, f := range []string{"duration", "warmup", "sample", "seed", "seeds", "grid", "best", "username", "password", "ca", "known-hosts"} {
		mustComplete(c, f)
	}
	mustCompleteBy(c, "workload", completeWorkload)
	mustCompleteBy(c, "watch", func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return a.completePorts(c, nil, word)
	})
	mustCompleteBy(c, "class", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if f, _ := a.devices(); f != nil {
			for i := range f.Classes {
				names = append(names, f.Classes[i].Name)
			}
		}
		return names, noFiles | cobra.ShellCompDirectiveKeepOrder
	})
	mustCompleteBy(c, "hosts", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		i := strings.LastIndexByte(word, ',') + 1
		return after(word[:i], a.hostNames()), noFiles
	})
	mustCompleteBy(c, "fault", func(c *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		kind, at, chosen := strings.Cut(word, ":")
		switch {
		case !chosen:
			return []string{string(sim.Storm) + ":", string(sim.Slow) + ":", string(sim.Down) + ":"}, noFiles | cobra.ShellCompDirectiveNoSpace
		case strings.Contains(at, ","):
			return nil, noFiles
		case sim.FaultKind(kind) == sim.Down:
			names, d := a.completePorts(c, nil, at)
			return after(kind+":", names), d
		}
		return after(kind+":", a.hostNames()), noFiles
	})
}

// completeWorkload offers the kinds of the part that is being written, and files to a word that looks like one.
func completeWorkload(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	if strings.ContainsAny(word, "./") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	i := strings.LastIndexByte(word, '+') + 1
	i += len(word[i:]) - len(strings.TrimLeft(word[i:], " "))
	if strings.ContainsAny(word[i:], ":,") {
		return nil, noFiles
	}
	var kinds []string
	for _, k := range observe.Kinds() {
		name := string(k.Kind)
		if k.N != "" || k.Kind == observe.Trace || k.Kind == observe.Background {
			name += ":"
		}
		kinds = append(kinds, name)
	}
	return after(word[:i], kinds), noFiles | cobra.ShellCompDirectiveNoSpace
}

// after is names with what was written before them.
func after(before string, names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = before + out[i]
	}
	return out
}

// hostNames are the hosts of the layers given with -f.
func (a *app) hostNames() []string {
	f, names := a.devices()
	if f == nil {
		return nil
	}
	host := map[string]bool{}
	for i := range f.Devices {
		host[f.Devices[i].Name] = f.Devices[i].Host
	}
	return slices.DeleteFunc(names, func(n string) bool { return !host[n] })
}
