package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// target is a device that a command line names: by its name in the layers, or by operating system and address.
type target struct {
	Name     string // in the layers, or OS:ADDRESS as given
	OS       string // the dialect
	Platform string // "sonic/sn5600"; "" when nobody says
	Endpoint *model.Endpoint
	Device   *intent.Device // nil without a Fabric
}

// targets are the devices of one call, with the model where there is one.
type targets struct {
	app   *app
	login loginFlags
	model loaded // its net is nil without a Fabric
	list  []target
}

// loginFlags are how to log in where no inventory says it, or says it otherwise. They win over an inventory.
type loginFlags struct {
	username, password, ca, knownHosts string
	insecure                           bool
}

func (o *loginFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.username, "username", "", "user to log in as: text, or a reference such as env:FABRIC_USER")
	f.StringVar(&o.password, "password", "", "reference to the password: env:NAME, file:PATH or exec:COMMAND, never the password itself")
	f.StringVar(&o.ca, "ca", "", "reference to the certificate authority of gNMI servers, such as file:ca.pem")
	f.StringVar(&o.knownHosts, "known-hosts", "", "reference to the known SSH host keys, such as file:known_hosts")
	f.BoolVar(&o.insecure, "insecure", false, "do not verify who is at the other end: the password goes to whoever answers")
}

// check refuses what must not stand on a command line. A password is not repeated.
func (o *loginFlags) check() error {
	if o.password != "" && !secret.IsReference(o.password) {
		return fail(exitUsage, "write --password env:NAME, file:PATH or exec:COMMAND; if it was the password, change it",
			"--password takes a reference: every user of this machine can read a process's arguments")
	}
	for _, x := range []struct{ flag, v string }{{"--ca", o.ca}, {"--known-hosts", o.knownHosts}} {
		if x.v != "" && !secret.IsReference(x.v) {
			return fail(exitUsage, "write "+x.flag+" file:"+x.v, "%s %s is not a reference", x.flag, x.v)
		}
	}
	if o.knownHosts != "" && !strings.HasPrefix(o.knownHosts, "file:") {
		return fail(exitUsage, "write --known-hosts file:PATH", "--known-hosts %s is not a file", o.knownHosts)
	}
	return nil
}

// over puts the flags over what the inventory says.
func (o *loginFlags) over(e *model.Endpoint) *model.Endpoint {
	c := *e
	set := func(flag, v string, to ...*model.Value[string]) {
		for _, t := range to {
			if v != "" {
				*t = model.Value[string]{V: v, Set: true, From: flagOrigin(flag)}
			}
		}
	}
	set("--username", o.username, &c.GNMI.Username, &c.SSH.Username)
	set("--password", o.password, &c.GNMI.Password, &c.SSH.Password)
	set("--ca", o.ca, &c.GNMI.CA)
	set("--known-hosts", o.knownHosts, &c.SSH.KnownHosts)
	if o.insecure {
		yes := model.Value[bool]{V: true, Set: true, From: flagOrigin("--insecure")}
		for _, v := range []*model.Value[bool]{&c.GNMI.Insecure, &c.SSH.Insecure} {
			if !v.V {
				*v = yes
			}
		}
	}
	return &c
}

// commandLine begins the words for where the value of a flag comes from.
const commandLine = "the command line's "

func flagOrigin(flag string) *model.Origin {
	return &model.Origin{Kind: model.FromDefault, Ref: commandLine + flag}
}

// fromFlag reports whether a value was given on the command line.
func fromFlag(o *model.Origin) bool { return o != nil && strings.HasPrefix(o.Ref, commandLine) }

// targets finds the devices that args name: names of the layers given with -f, or OS:ADDRESS[:PORT]. Layers without a
// Fabric document will do, and none at all where every device is given by its address. Findings of severity error
// among the layers' own end the call, as elsewhere.
func (a *app) targets(ctx context.Context, o loginFlags, args []string) (targets, error) {
	ts := targets{app: a, login: o}
	if err := o.check(); err != nil {
		return ts, err
	}
	var err error
	if ts.model, err = a.loadAny(ctx); err != nil {
		return ts, err
	}
	err = ts.add(args)
	return ts, err
}

// add finds the devices that args name.
func (ts *targets) add(args []string) error {
	for _, arg := range args {
		t, err := ts.find(arg)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ts.list, func(o target) bool { return o.Name == t.Name }) {
			return usage("%s is named twice", t.Name)
		}
		ts.list = append(ts.list, t)
	}
	return nil
}

// loadAny is mustLoad for layers that need not hold a Fabric, and may be none.
func (a *app) loadAny(ctx context.Context) (loaded, error) {
	hardware, l := a.hardware()
	if len(a.fabric) == 0 && !l.HasErrors() {
		cat, _ := model.LoadCatalog(osFS{}, hardware...)
		return loaded{fabric: &model.Fabric{Catalog: cat}}, nil
	}
	f := new(model.Fabric)
	if !l.HasErrors() {
		f, l = model.LoadInventory(osFS{}, append(hardware, a.fabric...)...)
	}
	if f.HasModel() {
		return a.mustLoad(ctx)
	}
	show.Findings(a.sys.err, slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return f.Severity == diag.Info }))
	if l.HasErrors() {
		return loaded{}, fail(exitError, "", "the inventory has %s; nothing was done", diag.Count(l.Count(diag.Error), "error"))
	}
	return loaded{fabric: f, findings: l}, nil
}

// find is the device that one argument names.
func (ts targets) find(arg string) (target, error) {
	if e := ts.model.fabric.Endpoints[arg]; e != nil {
		return ts.named(arg, e)
	}
	os, address, ok := strings.Cut(arg, ":")
	if !ok {
		if ts.model.net != nil {
			return target{}, noDevice(ts.model.net, arg)
		}
		hint := "for a device without an inventory write " + strings.Join(systems(), ":ADDRESS, ") + ":ADDRESS"
		if len(ts.app.fabric) == 0 {
			return target{}, fail(exitError, "give the inventory that has it with -f; "+hint, "nothing says what %q is: no layer is given", arg)
		}
		if near := nearName(arg, ts.names(), "they have "); strings.HasPrefix(near, "they") {
			hint = near + "; " + hint
		} else {
			hint = cmp.Or(near, hint)
		}
		return target{}, fail(exitError, hint, "there is no device %q in the layers given with -f", arg)
	}
	if !slices.Contains(systems(), os) {
		return target{}, fail(exitUsage, "the operating systems are "+strings.Join(systems(), ", "),
			"%s: no operating system is called %q", arg, os)
	}
	host, port, err := model.ParseAddress(address)
	if err != nil {
		return target{}, fail(exitUsage, "for example: "+os+":10.0.0.12 or "+os+":[2001:db8::1]:8080", "%s: %w", strings.TrimSuffix(arg, ":"), err)
	}
	e := ts.model.fabric.DefaultEndpoint(arg, host)
	if port != 0 {
		p := model.Value[int]{V: port, Set: true, From: flagOrigin("argument")}
		e.GNMI.Port, e.SSH.Port = p, p
	}
	return target{Name: arg, OS: os, Endpoint: ts.login.over(e)}, nil
}

// named is a device of the layers.
func (ts targets) named(name string, e *model.Endpoint) (target, error) {
	t := target{Name: name, Platform: e.Platform.V, Endpoint: ts.login.over(e)}
	if ts.model.net != nil {
		t.Device = ts.model.net.Device(name)
	}
	if t.Device != nil {
		t.Platform = t.Device.Platform
	}
	if !e.Address.Set {
		return t, fail(exitError, "give an Inventory with -f that has devices: {"+name+": {address: 10.0.0.11}}", "no layer gives an address of %s", name)
	}
	if t.Platform == "" {
		return t, fail(exitError, fmt.Sprintf("add a platform under devices.%s in the inventory, such as platform: sonic/sn5600", name),
			"nothing says what %s is: there is no Fabric, and the inventory gives no platform", name)
	}
	t.OS, _, _ = strings.Cut(t.Platform, "/")
	return t, nil
}

// names are the devices of the layers.
func (ts targets) names() []string {
	return slices.SortedFunc(maps.Keys(ts.model.fabric.Endpoints), intent.CompareNames)
}

// all are the devices of the layers that can be reached: those of the Fabric, or else of the inventory.
func (ts targets) all() []string {
	var names []string
	for n, e := range ts.model.fabric.Endpoints {
		if e.Address.Set {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, intent.CompareNames)
	return names
}

// systems are the operating systems that can be talked to.
func systems() []string {
	var names []string
	for _, d := range render.Dialects() {
		names = append(names, d.OS)
	}
	slices.Sort(names)
	return names
}

// open connects to a target. What comes back can read and nothing else; what a driver copies to a device for its own
// use is not copied.
func (ts targets) open(ctx context.Context, t target) (*drivers.View, error) {
	d := &dialler{app: ts.app, fabric: ts.model.fabric, reads: true}
	dev, err := d.connect(ctx, t.Endpoint, t.OS)
	if err != nil {
		return nil, err
	}
	return drivers.ViewOf(t.Name, dev), nil
}
