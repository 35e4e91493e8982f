package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/infer"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

type importFlags struct {
	login   loginFlags
	name    string
	out     string
	roles   []string
	force   bool
	partial bool
}

func (a *app) newImport() *cobra.Command {
	var o importFlags
	c := &cobra.Command{
		Use:   "import [DEVICE...]",
		Short: "Write a model of a fabric that exists, and say what does not agree in it",
		Long: `Read devices and write DIR/fabric.yaml, a model of what they do, and DIR/inventory.yaml, how they were reached. DEVICE is
a name of the inventory given with -f, or OS:ADDRESS[:PORT]; without any, all devices of the inventory are read. Nothing
is written to any device.

LLDP tells who is connected to whom: switches that hear hosts become leaves, those above them spines; hosts that are
heard and not read become planned ones. What most ports do is written for the fabric, what most of a role do for the
role, and the rest as overrides of devices and ports. Everything is observed, so that a plan of the result changes
nothing. --insecure is not written. What no override can say, what breaks a rule and what LLDP contradicts are findings; so is each area that
could not be owned without changing something.

Exit 0 when the model was written, 1 when a device could not be read, when two cannot be told apart, or when the model has
errors, which a plan of it would refuse.`,
		Example:           "  fabricctl import -f inventory.yaml --out pod1\n  fabricctl import eos:10.0.0.11 sonic:10.0.0.12 --username env:FABRIC_USER --password env:FABRIC_PASSWORD --ca file:ca.pem --out pod1",
		ValidArgsFunction: a.completeDevices,
		RunE:              func(c *cobra.Command, args []string) error { return a.runImport(c.Context(), o, args) },
	}
	o.login.register(c)
	f := c.Flags()
	f.StringVar(&o.out, "out", "", "directory for fabric.yaml and inventory.yaml")
	f.StringVar(&o.name, "name", "", "name of the fabric (default: the last element of --out)")
	f.StringArrayVar(&o.roles, "role", nil, "PATTERN=ROLE: the role of devices whose name matches, such as 'gpu*=host'; repeat, the first that matches counts")
	f.BoolVar(&o.force, "force", false, "replace the two files where they exist, unless the inventory says what import does not write")
	f.BoolVar(&o.partial, "partial", false, "write a model of the devices that could be read, if some could not")
	return c
}

// roleFlags reads --role.
func roleFlags(flags []string) ([]infer.Role, error) {
	var rs []infer.Role
	for _, s := range flags {
		pattern, role, ok := strings.Cut(s, "=")
		if _, err := filepath.Match(pattern, ""); !ok || err != nil || pattern == "" || !nameRE.MatchString(role) {
			return nil, fail(exitUsage, "for example --role 'leaf*=leaf'", "--role %s: want PATTERN=ROLE", s)
		}
		rs = append(rs, infer.Role{Pattern: pattern, Role: role})
	}
	return rs, nil
}

// files are the two files of an import.
func (o *importFlags) files() (fabric, inventory string) {
	return filepath.Join(o.out, "fabric.yaml"), filepath.Join(o.out, "inventory.yaml")
}

// check refuses what cannot work before a device is asked.
func (o *importFlags) check() error {
	if o.out == "" {
		return fail(exitUsage, "for example: --out pod1", "import needs a directory for the model")
	}
	if o.name == "" {
		abs, err := filepath.Abs(o.out)
		if err != nil {
			return err
		}
		o.name = filepath.Base(abs)
	}
	if !nameRE.MatchString(o.name) {
		return fail(exitUsage, "give --name with letters, digits and -_.", "%q cannot be a fabric's name", o.name)
	}
	fabric, inventory := o.files()
	for _, p := range []string{fabric, inventory} {
		if _, err := os.Stat(p); err == nil && !o.force {
			return fail(exitError, "name another directory, or give --force to replace it", "%s exists and stays as it is", p)
		}
	}
	return nil
}

// seen is one device as it was read.
type seen struct {
	target   target
	facts    render.Facts
	live     render.Config
	policies map[string]intent.Policy // by interface
	box      infer.Box
	found    diag.List
	err      error
}

func (a *app) runImport(ctx context.Context, o importFlags, args []string) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	roles, err := roleFlags(o.roles)
	if err := cmp.Or(err, o.check()); err != nil {
		return err
	}
	if err := o.keeps(nil); err != nil {
		return err
	}
	ts, err := a.targets(ctx, o.login, nil)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = ts.all()
	}
	if len(args) == 0 {
		return fail(exitUsage, "for example: fabricctl import -f inventory.yaml --out pod1", "no device to read: give an inventory with -f, or devices as OS:ADDRESS")
	}
	if err := ts.add(args); err != nil {
		return err
	}
	fmt.Fprintf(a.sys.err, "reading %s\n", diag.Count(len(ts.list), "device"))
	all := a.lookAt(ctx, ts)
	if err := context.Cause(ctx); err != nil {
		return interrupted(ctx, fmt.Errorf("import: %w; nothing was written", err))
	}
	read := slices.DeleteFunc(slices.Clone(all), func(s seen) bool { return s.err != nil })
	res := importJSON{Schema: "fabricctl/import/v1"}
	for _, s := range all {
		if s.err != nil {
			res.Findings.Add(diag.Finding{Rule: "not-read", Severity: diag.Error, At: s.target.Name, Msg: diag.OneLine(show.Nameless(s.err.Error(), s.target.Endpoint.Device))})
		}
	}
	if n := len(all) - len(read); n > 0 && (!o.partial || len(read) == 0) {
		show.Findings(a.sys.err, res.Findings)
		return fail(exitError, unreadHint(all, len(read)), "%s could not be read; nothing was written", diag.Count(n, "device"))
	}
	if o.login.insecure {
		res.Findings.Add(diag.Finding{
			Rule: "insecure", Severity: diag.Warning, Msg: "whoever answered was not verified; --insecure is for this call alone, and the inventory asks for verification",
			Hint: "compare what answered with the consoles, then give ssh.known_hosts and gnmi.tls.ca in the inventory",
		})
	}
	same := confusable(read)
	if same.HasErrors() {
		show.Findings(a.sys.err, same)
		return fail(exitError, "", "devices that cannot be told apart; nothing was written")
	}
	res.Findings.Add(same...)
	if err := res.infer(o, roles, read, ts.model.fabric.Catalog); err != nil {
		return err
	}
	var names []string
	for i := range read {
		names = append(names, read[i].box.Device.Name)
	}
	if err := o.keeps(names); err != nil {
		return err
	}
	if err := a.writeModel(o, &res, read); err != nil {
		return err
	}
	if json {
		res.Files, res.Roles, res.Findings, res.Areas = show.Some(res.Files), show.Some(res.Roles), show.Some(res.Findings), show.Some(res.Areas)
		err = a.printJSON(res)
	} else {
		a.printImport(o, &res)
	}
	if err != nil {
		return err
	}
	if len(read) < len(all) || res.Findings.HasErrors() {
		return done(exitError)
	}
	return nil
}

// unreadHint says what to do about devices that could not be read, when so many others could.
func unreadHint(all []seen, others int) string {
	hint := ""
	for _, s := range all {
		switch {
		case errors.Is(s.err, ssh.ErrNoLogin):
			return "give --username and --password, for example --username admin --password env:SWITCH_PASSWORD"
		case s.err != nil && hint == "":
			hint = "fabricctl doctor " + s.target.Name + " says what is wrong"
		}
	}
	if others > 0 {
		hint += fmt.Sprintf("; --partial makes a model of the %s that could be read", diag.Count(others, "device"))
	}
	return hint
}

// lookAt reads the targets, several at a time.
func (a *app) lookAt(ctx context.Context, ts targets) []seen {
	all := make([]seen, len(ts.list))
	slots := make(chan struct{}, a.parallel)
	var wg sync.WaitGroup
	for i, t := range ts.list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			all[i] = lookAtOne(ctx, ts, t)
		})
	}
	wg.Wait()
	names(all)
	return all
}

// lookAtOne reads one device and what it hears.
func lookAtOne(ctx context.Context, ts targets, t target) (s seen) {
	s.target = t
	var dev *drivers.View
	if dev, s.err = ts.open(ctx, t); s.err != nil {
		return s
	}
	defer dev.Close()
	if s.facts, _, s.err = dev.Facts(ctx); s.err != nil {
		return s
	}
	if s.live, s.err = dev.Read(ctx); s.err != nil {
		return s
	}
	s.box.Aliases = s.facts.Aliases
	heard, err := dev.Neighbours(ctx)
	var refused *drivers.RejectedError
	switch {
	case errors.Is(err, errors.ErrUnsupported): // hosts are heard by the switches
	case errors.As(err, &refused):
		s.box.NoLLDP = "it says " + diag.OneLine(refused.Sentence)
	case err != nil:
		s.err = err
		return s
	}
	for _, n := range heard {
		s.box.Heard = append(s.box.Heard, infer.Neighbour(n))
	}
	s.device(ts.model.fabric.Catalog)
	return s
}

// device fills in the box: the ports that can be bound, and what each does.
func (s *seen) device(catalog *profiles.Catalog) {
	dialect := render.ByOS(s.target.OS)
	s.policies, s.found = dialect.Lift(s.live, s.facts)
	ports := map[string]render.Port{}
	if dialect.Ports != nil {
		ports = dialect.Ports(s.live)
	} else {
		for iface := range s.policies {
			ports[iface] = render.Port{}
		}
	}
	d := &s.box.Device
	d.Name, d.Hostname, d.Host = s.target.Name, s.facts.Hostname, s.target.OS == "linux"
	var may []string
	if d.Platform, may = platformOf(s.target, s.facts, catalog); may != nil {
		s.found.Add(diag.Finding{
			Rule: "platform", Severity: diag.Warning, At: d.Name, Hint: "say under devices." + d.Name + ".platform in the inventory which it is",
			Msg: fmt.Sprintf("%s is the hardware of %s; the model takes it for the first", s.facts.Model, strings.Join(may, ", ")),
		})
	}
	d.Profile, _ = catalog.Platform(d.Platform)
	taken := map[string]bool{}
	for _, iface := range slices.SortedFunc(maps.Keys(ports), intent.CompareNames) {
		name := infer.Name(iface)
		if !nameRE.MatchString(name) || taken[name] || !ifaceNameRE.MatchString(iface) {
			s.found.Add(diag.Finding{Rule: "port-name", Severity: diag.Warning, At: d.Name, Msg: fmt.Sprintf("interface %q has a name that a model cannot hold; it is left out", iface)})
			continue
		}
		taken[name] = true
		p := intent.Port{Name: name, Iface: iface, Speed: ports[iface].Speed, Policy: d.Intern(s.policies[iface])}
		if nic, ok := s.facts.NIC(iface); ok {
			p.Speed, p.RDMA, p.NIC = cmp.Or(p.Speed, nic.Link.Speed), nic.RDMA, nicOf(nic.Model, catalog)
			if nameRE.MatchString(nic.Bond) {
				p.Bond = nic.Bond
			}
		}
		d.Ports = append(d.Ports, p)
	}
}

// platformOf is what the inventory says the device is; else the platform of the hardware that it says it is, the first
// if several are possible; else one of that name, which no catalog has. may are the several.
func platformOf(t target, f render.Facts, catalog *profiles.Catalog) (name string, may []string) {
	if t.Platform != "" {
		return t.Platform, nil
	}
	if t.OS == "linux" {
		return "linux/generic", nil
	}
	switch names := catalog.OfModel(t.OS, f.Model); len(names) {
	case 0:
		return t.OS + "/" + strings.ToLower(cmp.Or(infer.Name(f.Model), "unknown")), nil
	case 1:
		return names[0], nil
	default:
		return names[0], names
	}
}

// nicOf is the catalog's name of the NIC with a PCI id such as 15b3:1021; "" when there is none.
func nicOf(id string, catalog *profiles.Catalog) string {
	for _, name := range catalog.NamesOf(profiles.KindNIC) {
		if nic, _ := catalog.NIC(name); id != "" && slices.Contains(nic.PCI, id) {
			return name
		}
	}
	return ""
}

// names gives devices that were named by their address the names that they have themselves, where these differ.
func names(all []seen) {
	taken := map[string]int{}
	for i := range all {
		taken[all[i].box.Device.Name]++
		taken[infer.Name(all[i].facts.Hostname)]++
	}
	for i := range all {
		d := &all[i].box.Device
		host := infer.Name(all[i].facts.Hostname)
		switch {
		case nameRE.MatchString(d.Name):
		case host != "" && taken[host] == 1:
			d.Name = host
		default:
			d.Name = infer.Name(d.Name)
		}
	}
}

// infer makes the model, and collects what there is to say of it and of the fabric.
func (r *importJSON) infer(o importFlags, roles []infer.Role, read []seen, catalog *profiles.Catalog) error {
	boxes := make([]infer.Box, len(read))
	for i := range read {
		boxes[i] = read[i].box
		for _, f := range read[i].found {
			if f.Severity > diag.Info {
				r.Findings.Add(f)
			}
		}
	}
	net, l := infer.Wire(boxes, roles)
	r.Findings.Add(l...)
	fabric, _ := o.files()
	m, l := infer.Infer(net, infer.Options{Name: o.name, File: fabric, Judge: lint.Check})
	r.Findings.Add(l...)
	r.model = m
	r.Classes, r.Exceptions = m.Classes, m.Exceptions
	for _, role := range m.Roles {
		n := 0
		for i := range net.Devices {
			if net.Devices[i].Role == role {
				n++
			}
		}
		r.Roles = append(r.Roles, roleJSON{role, n})
	}
	if m.Net == nil {
		r.Findings = r.Findings.Sort()
		return nil
	}
	wrong := lint.Check(m.Net, m.Fabric)
	for _, f := range lint.Weigh(m.Net, append(wrong, renderFindings(m.Net, wrong, inexpressible(m.Net))...)) {
		if f.Severity > diag.Info {
			r.Findings.Add(f)
		}
	}
	r.Findings.Add(liveFindings(m, read, wrong)...)
	r.Suggestions = m.Suggestions
	r.suggest(fabric)
	r.Findings = r.Findings.Sort()
	r.Areas = readiness(m.Net, read)
	return nil
}

// liveFindings are what the rules say of the fabric as it is live and do not say of the model. They are warnings: the
// model itself is right, the devices are not.
func liveFindings(m infer.Model, read []seen, known diag.List) diag.List {
	live := m.Net.With(nil)
	for _, d := range m.Net.Devices {
		if i := slices.IndexFunc(read, func(s seen) bool { return s.box.Device.Name == d.Name }); i >= 0 {
			live.Devices = append(live.Devices, render.ByOS(d.OS()).Joined(d, read[i].live, read[i].policies))
		}
	}
	var l diag.List
	for _, f := range lint.Check(live, m.Fabric).Without(known) {
		if f.Severity > diag.Info {
			f.Severity, f.Msg = diag.Warning, "live: "+f.Msg
			l.Add(f)
		}
	}
	lint.Advise(l, live, m.Net)
	return l
}
