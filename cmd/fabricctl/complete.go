package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
)

// arguments offers what a command or a flag takes, to a shell that completes a word.
type arguments = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// complete gives every command below root its completion: what it has of its own, the names of devices for --device, and
// for a command that takes no argument nothing, where the shell would offer files.
func (a *app) complete(root *cobra.Command) {
	mustComplete(root, "color", "auto", "always", "never")
	mustComplete(root, "log-level", "debug", "info", "warn", "error")
	mustComplete(root, "log-format", "text", "json")
	mustCompleteBy(root, "output", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return formatsOf(c), noFiles
	})
	for _, f := range []string{"timeout", "parallel"} {
		mustComplete(root, f)
	}
	files := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	of := map[string]arguments{
		"explain": a.completePorts, "hold": a.completePorts,
		"runs show": a.completeRuns, "runs resume": a.completeRuns, "runs rollback": a.completeRuns, "lock break": a.completeLocks,
		"tune show": a.completeTuned, "tune resume": a.completeTuned, "tune replay": a.completeTuned, "tune report": a.completeTuned, "tune diff": a.completeTuned,
		"init": files, "validate": files, "apply": files, "plan show": files, "schema": files,
	}
	var visit func(c *cobra.Command, path string)
	visit = func(c *cobra.Command, path string) {
		if c.Flags().Lookup("device") != nil {
			mustCompleteBy(c, "device", a.completeDevices)
		}
		switch path {
		case "sim":
			a.completeSim(c)
		case "tune run":
			a.completeTune(c)
		case "tune resume":
			mustComplete(c, "max-runs")
			mustComplete(c, "max-time")
		}
		switch own := of[path]; {
		case own != nil:
			c.ValidArgsFunction = own
		case c.ValidArgsFunction == nil && len(c.ValidArgs) == 0:
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, k := range c.Commands() {
			visit(k, strings.TrimSpace(path+" "+k.Name()))
		}
	}
	visit(root, "")
}

// mustComplete offers the words that a flag takes.
func mustComplete(c *cobra.Command, flag string, words ...string) {
	mustCompleteBy(c, flag, cobra.FixedCompletions(words, noFiles))
}

func mustCompleteBy(c *cobra.Command, flag string, by arguments) {
	if err := c.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the flag does not exist
	}
}

// formatsOf are the formats of -o that a command prints.
func formatsOf(c *cobra.Command) []string {
	switch c.CommandPath() {
	case "fabricctl plan", "fabricctl plan show", "fabricctl drift":
		return []string{"text", "json", "markdown"}
	case "fabricctl validate":
		return findingFormats()
	case "fabricctl tune report":
		return []string{"html", "markdown"}
	case "fabricctl graph":
		return []string{"text", "json", "dot"}
	}
	return []string{"text", "json"}
}

// devices are the names of the layers given with -f, and the model as far as it can be read; nil without layers.
func (a *app) devices() (*model.Fabric, []string) {
	if len(a.fabric) == 0 {
		return nil, nil
	}
	hardware, _ := a.hardware()
	f, _ := model.LoadInventory(osFS{}, append(hardware, a.fabric...)...)
	var names []string
	for n := range f.Endpoints {
		names = append(names, n)
	}
	for i := range f.Devices {
		names = append(names, f.Devices[i].Name)
	}
	slices.SortFunc(names, intent.CompareNames)
	return f, slices.Compact(names)
}

// completeDevices offers the names of the layers given with -f.
func (a *app) completeDevices(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	_, names := a.devices()
	return names, noFiles
}

// completePorts offers devices, and after DEVICE: the ports of the device by the model's names. One is taken.
func (a *app) completePorts(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	f, names := a.devices()
	device, _, port := strings.Cut(word, ":")
	if !port || f == nil {
		return names, noFiles
	}
	i := slices.IndexFunc(f.Devices, func(d model.Device) bool { return d.Name == device })
	if i < 0 {
		return nil, noFiles
	}
	var refs []string
	for _, p := range f.Devices[i].Ports {
		refs = append(refs, device+":"+p.Name)
	}
	return refs, noFiles
}

// completeRuns offers the runs of the state directory, the newest first.
func (a *app) completeRuns(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	dir, err := a.state()
	if err != nil || len(args) > 0 {
		return nil, noFiles
	}
	runs, _ := rollout.Runs(dir, time.Now())
	var ids []string
	for _, r := range slices.Backward(runs) {
		ids = append(ids, r.ID)
	}
	return ids, noFiles | cobra.ShellCompDirectiveKeepOrder
}

// completeLocks offers the fabrics with a lease in the state directory.
func (a *app) completeLocks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	dir, err := a.leases()
	if err != nil || len(args) > 0 {
		return nil, noFiles
	}
	ls, _ := journal.Leases(dir)
	var names []string
	for _, l := range ls {
		names = append(names, l.Name)
	}
	return names, noFiles
}
