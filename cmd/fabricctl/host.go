package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/hostverb"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/model/intent"
)

func (a *app) newHost() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Plan, apply and look at the machine that this runs on",
		Long: `These verbs are about the machine that they run on, as a host of the fabric, and need no connection to it. fabricctl-host, the
small program for hosts, has the same ones.

What the host is to hold is said by a host file (` + hostlocal.DefaultFile + `), which host unit writes, or by a model given with -f.
With a model, the machine is found in it by its serial number, its addresses, its hostname or the PCI addresses of its NICs, or is
named with --device.`,
		Args: wantVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newHostStatus(), a.newHostPlan(), a.newHostApply(), a.newHostBack("resume", "Finish a run of this machine that was cut short"),
		a.newHostBack("rollback", "Take a run of this machine back"), a.newHostRevert(), a.newHostUnit())
	return c
}

// hostFlags are those that say which host this machine is.
type hostFlags struct {
	hostverb.Options
	device string
}

func (o *hostFlags) register(c *cobra.Command) {
	o.Files(c.Flags())
	c.Flags().StringVar(&o.device, "device", "", "with -f: which host of the model this machine is")
}

// program is the verbs of the machine that fabricctl runs on.
func (a *app) program() (*hostverb.Program, error) {
	json, err := a.wants("text", "json")
	if err != nil {
		return nil, err
	}
	dir := hostlocal.StateDir()
	if a.stateDir != "" {
		if dir, err = a.state(); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is fabricctl: %w", err)
	}
	return &hostverb.Program{
		Name: "fabricctl host", Version: toolVersion(), In: a.sys.in, Out: a.sys.out, Err: a.sys.err, JSON: json, ReadOnly: a.readOnly,
		State: dir, Revert: []string{self, "host", "revert", "--state-dir", dir}, Log: a.log,
	}, nil
}

// hostFile is what this machine is to hold, by the model or the host file. With optional, none is no error.
func (a *app) hostFile(ctx context.Context, p *hostverb.Program, o *hostFlags, optional bool) (*hostlocal.File, error) {
	switch {
	case len(a.fabric) > 0 && o.File != hostlocal.DefaultFile:
		return nil, usage("--conf and -f both say what this host is to hold: give one of them")
	case len(a.fabric) == 0 && o.device != "":
		return nil, usage("--device names a host of a model: give it with -f")
	case len(a.fabric) == 0 && optional:
		return o.Optional()
	case len(a.fabric) == 0:
		return o.Read()
	}
	m, err := a.mustLoad(ctx, planned()...)
	if err != nil {
		return nil, err
	}
	name := o.device
	if name == "" {
		machine, err := p.Machine(nil, o.Options)
		if err != nil {
			return nil, err
		}
		machine.Catalog = m.fabric.Catalog
		var by string
		if name, by, err = machine.Find(ctx, m.net); err != nil {
			return nil, fail(exitError, "say which one it is with --device", "%w", err)
		}
		fmt.Fprintf(a.sys.err, "this machine is %s, by its %s\n", name, by)
	}
	d, err := hostOf(m.net, name)
	if err != nil {
		return nil, err
	}
	return hostlocal.FileOf(*d, m.digest(), toolVersion(), !a.untrusted), nil
}

// hostOf is a Linux host of the model.
func hostOf(n *intent.Net, name string) (*intent.Device, error) {
	d := n.Device(name)
	switch {
	case d == nil:
		return nil, noDevice(n, name)
	case !d.Host || d.OS() != "linux":
		return nil, fail(exitError, "name a host", "%s is no Linux host, it is %s", name, cmp.Or(d.Platform, "of no platform"))
	}
	return d, nil
}

// hostVerb is the run function of a verb about the machine: what goes wrong in it ends with its own code.
func (a *app) hostVerb(o *hostFlags, optional bool, do func(context.Context, *hostverb.Program, *hostlocal.File) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		ctx, cancel := a.limit(c.Context())
		defer cancel()
		p, err := a.program()
		if err != nil {
			return err
		}
		file, err := a.hostFile(ctx, p, o, optional)
		if err == nil {
			err = do(ctx, p, file)
		}
		return hostEnd(err)
	}
}

// hostEnd gives an error of a verb of the host its exit code here.
func hostEnd(err error) error {
	var f *hostverb.Failure
	if errors.As(err, &f) {
		return &exitErr{code: f.Code, err: f.Err, hint: f.Hint, quiet: f.Quiet}
	}
	return err
}

func (a *app) newHostStatus() *cobra.Command {
	var o hostFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what this machine is and holds, and how that fits the model",
		Long: `Show the NICs with their drivers, firmware, RDMA devices, GIDs and live queue pairs, what they hold (MTU, PFC, ETS, maps, DCBX, …),
who else would write it, what the compatibility matrix says of them, holds, changes that wait for a confirmation, and how all that
differs from what the host file or the model asks for. Nothing is written. It works on machines without an RDMA NIC and without a
model too, and shows then what there is.`,
		Example: "  fabricctl host status\n  fabricctl host status -f pod1/ -o json",
		Args:    noArgs,
		RunE: a.hostVerb(&o, true, func(ctx context.Context, p *hostverb.Program, f *hostlocal.File) error {
			return p.Status(ctx, f, o.Options)
		}),
	}
	o.register(c)
	o.Shows(c.Flags())
	o.Exits(c.Flags())
	return c
}

func (a *app) newHostPlan() *cobra.Command {
	var o hostFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Compare the model with what this machine holds, and show what host apply would do",
		Long: `Read this machine and show what host apply would change, as fabricctl plan does for all devices. Nothing is written. The exit codes are
those of plan.`,
		Example: "  fabricctl host plan -f pod1/\n  fabricctl host plan --conf host1.json --detailed-exitcode",
		Args:    noArgs,
		RunE: a.hostVerb(&o, false, func(ctx context.Context, p *hostverb.Program, f *hostlocal.File) error {
			return p.Plan(ctx, f, o.Options)
		}),
	}
	o.register(c)
	o.Shows(c.Flags())
	o.Exits(c.Flags())
	return c
}

func (a *app) newHostApply() *cobra.Command {
	var o hostFlags
	c := &cobra.Command{
		Use:   "apply",
		Short: "Make this machine what the model says: write, read back, confirm",
		Long: `Plan this machine and carry it out, as fabricctl apply does for all devices: the undo is in the journal before the first write, a timer
takes the change back unless it is read back and confirmed, and what flaps or kills jobs needs leave. Other writers of this machine (the
agent, an apply from afar) are kept out meanwhile. The other devices of the fabric are not looked at: whether they agree is for fabricctl
plan to say.`,
		Example: "  fabricctl host apply -f pod1/ --accept-unverified\n  fabricctl host apply --yes --allow-disruptive --accept-unverified",
		Args:    noArgs,
		RunE: a.hostVerb(&o, false, func(ctx context.Context, p *hostverb.Program, f *hostlocal.File) error {
			return p.Apply(ctx, f, o.Options)
		}),
	}
	o.register(c)
	o.Shows(c.Flags())
	o.Writes(c.Flags())
	return c
}

func (a *app) newHostBack(verb, short string) *cobra.Command {
	var o hostFlags
	c := &cobra.Command{
		Use:   verb + " RUN",
		Short: short,
		Args:  wantRun,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			p, err := a.program()
			if err != nil {
				return err
			}
			return hostEnd(p.Back(ctx, verb, args[0], o.Options))
		},
	}
	o.Files(c.Flags())
	c.Flags().BoolVar(&o.Apply.AllowJobs, "allow-jobs", false, "kill live queue pairs of running jobs where the way there does")
	return c
}

// newHostRevert is what the timer of a change starts.
func (a *app) newHostRevert() *cobra.Command {
	return &cobra.Command{
		Use:    "revert TX",
		Short:  "Wait for the deadline of a change that is not confirmed, and take it back",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("host revert wants one transaction")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			p, err := a.program()
			if err != nil {
				return err
			}
			return p.Await(c.Context(), args[0])
		},
	}
}

func (a *app) newHostUnit() *cobra.Command {
	var device, out string
	var u hostlocal.UnitOptions
	c := &cobra.Command{
		Use:   "unit",
		Short: "Write the host file and the systemd units that keep a host as the model says",
		Long: `Write what a host needs to hold what the model says by itself, without the model: its host file, a unit that applies it at boot, the unit
of the agent that keeps it, a udev rule that starts them for NICs that come late, the state directory's tmpfiles line, and, where the
model lifts the limit on locked memory, a drop-in for each --service. Copy them below / of the host, with fabricctl-host in ` + hostlocal.ProgramPath + `.

Without --out everything is printed, each file after its path.`,
		Example: "  fabricctl host unit -f pod1/ --device host1 --out host1/\n  fabricctl host unit -f pod1/ --device host1 --service slurmd --service containerd",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runHostUnit(ctx, device, out, u)
		},
	}
	c.Flags().StringVar(&device, "device", "", "the host")
	c.Flags().StringVar(&out, "out", "", "write the files below this directory, which is made where there is none")
	c.Flags().StringArrayVar(&u.Services, "service", nil, "a service whose locked memory has no limit, where the model says so; repeat")
	return c
}

type hostUnitJSON struct {
	Schema string           `json:"schema"`
	Device string           `json:"device"`
	Files  []hostlocal.Unit `json:"files"`
	Paths  []string         `json:"written,omitempty"`
}

func (a *app) runHostUnit(ctx context.Context, device, out string, u hostlocal.UnitOptions) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	if device == "" {
		return fail(exitUsage, "name the host with --device", "no host given")
	}
	if out != "" {
		if err := outDir("--out", out); err != nil {
			return err
		}
	}
	m, err := a.mustLoad(ctx, planned()...)
	if err != nil {
		return err
	}
	d, err := hostOf(m.net, device)
	if err != nil {
		return err
	}
	files, err := hostlocal.Units(hostlocal.FileOf(*d, m.digest(), toolVersion(), !a.untrusted), u)
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	res := hostUnitJSON{Schema: "fabricctl/host-unit/v1", Device: device, Files: files}
	if out != "" {
		for _, f := range files {
			path := filepath.Join(out, f.Path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
				return err
			}
			res.Paths = append(res.Paths, path)
		}
	}
	if json {
		return a.printJSON(res)
	}
	for i, f := range files {
		if out != "" {
			fmt.Fprintln(a.sys.out, res.Paths[i])
			continue
		}
		fmt.Fprintf(a.sys.out, "# %s\n%s\n", f.Path, f.Text)
	}
	return nil
}
