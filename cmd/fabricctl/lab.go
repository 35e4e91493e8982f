package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/model/diag"
)

func (a *app) newLab() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run an emulated fabric in the process",
		Args:  wantVerb,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var out, state, workload string
	var load loadFlags
	up := &cobra.Command{
		Use:   "up",
		Short: "Start one emulated device per device of the model, and write an inventory that reaches them",
		Long: `Start an emulated switch or host for every device of the model: real gNMI servers (TLS) and real SSH command lines on
loopback ports. They start as after installation, hold what they are told, and know nothing of the model. With --state,
a switch starts with what DIR holds for it: NAME.config_db.json, over SONiC's base configuration, or NAME.eos.cfg, as
render --out writes them or as saved from a switch. LLDP tells each switch what it is cabled to. The command
runs until it is interrupted; DIR/inventory.yaml is the layer to give after the model. Any SSH or gNMI client may log in
with the user and password in DIR. Counters begin at 0: --load, lab load, and verbs tests that are run on the emulated hosts
let traffic pass, which is simulated on what the devices hold.`,
		Example: "  fabricctl lab up -f examples/small --out lab &\n  fabricctl plan -f examples/small -f lab/inventory.yaml\n" +
			"  fabricctl lab up -f examples/small --out lab --state rendered --load incast:8",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if out == "" {
				return fail(exitUsage, "for example: --out lab", "lab up needs a directory for the inventory")
			}
			if err := outDir("--out", out); err != nil {
				return err
			}
			var first *lab.Load
			if workload != "" {
				if load.Workload, err = readWorkload(workload); err != nil {
					return err
				}
				first = &load.Load
			}
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runLabUp(ctx, out, state, first, load.details, json)
		},
	}
	up.Flags().StringVar(&out, "out", "", "directory for inventory.yaml and the credentials")
	up.Flags().StringVar(&state, "state", "", "directory with what switches hold when they start")
	up.Flags().StringVar(&workload, "load", "", "let a workload pass first, as lab load does, with the flags that begin so")
	mustCompleteBy(up, "load", completeWorkload)
	load.register(up, "load-")
	c.AddCommand(up, a.newLabTell(), a.newLabLoad())
	return c
}

type labJSON struct {
	Schema    string `json:"schema"`
	Inventory string `json:"inventory"`
	Devices   int    `json:"devices"`

	Load *lab.Loaded `json:"load,omitempty"` // what came of --load
}

func (a *app) runLabUp(ctx context.Context, dir, state string, first *lab.Load, details, json bool) error {
	if info, err := os.Stat(state); state != "" && (err != nil || !info.IsDir()) {
		return fail(exitUsage, "render --out writes one", "--state %s: not a directory that can be read", state)
	}
	m, err := a.mustLoad(ctx)
	if err != nil {
		return err
	}
	var loaded *lab.Loaded
	pass := func(l *lab.Lab) (err error) {
		if first != nil {
			if loaded, err = l.Run(ctx, *first); err != nil {
				err = a.loadRefused(ctx, err)
			}
		}
		return err
	}
	l, err := lab.Up(m.net, lab.Options{Dir: dir, State: state, Log: a.log, Ready: pass})
	if err != nil {
		return err
	}
	if json {
		err = a.printJSON(labJSON{"fabricctl/lab/v1", l.Inventory, len(m.net.Devices), loaded})
	} else {
		_, err = fmt.Fprintln(a.sys.out, l.Inventory)
	}
	if err == nil && loaded != nil && !json {
		err = a.showLoad(loaded, details, false)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	for _, x := range l.Unused {
		fmt.Fprintln(a.sys.err, "warning:", x)
	}
	fmt.Fprintf(a.sys.err, "%s up; end with Ctrl-C\n", diag.Count(len(m.net.Devices), "emulated device"))
	<-ctx.Done()
	return l.Close()
}
