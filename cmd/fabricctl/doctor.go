package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

type doctorFlags struct {
	login     loginFlags
	capture   string
	anonymise bool
}

func (a *app) newDoctor() *cobra.Command {
	var o doctorFlags
	c := &cobra.Command{
		Use:   "doctor DEVICE...",
		Short: "Look at a device for the first time: can it be reached, read, and what would be owned",
		Long: `Go step by step to a device and say at each step what was seen and what to do about it: name, connection, certificate or
host key, login; who it is and whether the inventory agrees; what it can do for an apply; what the account may do;
what the model would own there, what is somebody else's and what could be taken over; who else works on it, and
whether it is saved.

A DEVICE is a name of the layers given with -f, a Fabric or only an Inventory, or OS:ADDRESS[:PORT] for one that no
layer names: eos:10.0.0.12, sonic:[2001:db8::1]:8080, linux:host1.example.net. No model is needed.

Nothing is changed. What the account may do is tried where that has no effect: on EOS a configuration session is begun,
two lines are typed into it, and it is dropped; on SONiC a Set is sent that cannot reach a configuration; on a host
sudo is asked who it is. With --read-only not even that is sent. docs/security.md says why it is harmless.

--capture FILE.tar.gz writes what a maintainer needs to understand a device: its running configuration, what it says
about itself, its LLDP neighbours and this diagnosis, with passwords, keys, hashes, communities and tokens taken out.
MANIFEST.json in it says where something was taken out. Look through it before you send it. With --anonymise, names,
addresses, serial numbers and descriptions are replaced too, the same one by the same everywhere.

Exit 0 when nothing failed (warnings are for what apply would refuse or ask for), 1 when something did, also when a device
was not looked at in the time of --timeout: the others are shown, and captured, all the same.`,
		Example: "  fabricctl doctor eos:10.0.0.12 --username admin --password env:PW --known-hosts file:known_hosts\n" +
			"  fabricctl doctor -f fabric.yaml -f inventory.yaml leaf1\n  fabricctl doctor --read-only -f inventory.yaml leaf1 leaf2 -o json\n" +
			"  fabricctl doctor -f inventory.yaml leaf1 --capture leaf1.tar.gz --anonymise",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fail(exitUsage, "for example: fabricctl doctor eos:10.0.0.12, or -f inventory.yaml leaf1", "doctor wants a device")
			}
			return nil
		},
		ValidArgsFunction: a.completeDevices,
		RunE:              func(c *cobra.Command, args []string) error { return a.runDoctor(c.Context(), o, args) },
	}
	o.login.register(c)
	c.Flags().StringVar(&o.capture, "capture", "", "write a scrubbed capture of the devices to this file, which must not be there yet")
	c.Flags().BoolVar(&o.anonymise, "anonymise", false, "replace names, addresses and serial numbers in the capture")
	return c
}

type doctorJSON struct {
	Schema  string             `json:"schema"`
	Devices []*check.Diagnosis `json:"devices"`
}

func (a *app) runDoctor(ctx context.Context, o doctorFlags, args []string) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	ts, err := a.targets(ctx, o.login, args)
	if err != nil {
		return err
	}
	found, evidence := make([]*check.Diagnosis, len(ts.list)), make([]check.Evidence, len(ts.list))
	slots := make(chan struct{}, a.parallel)
	var wg sync.WaitGroup
	for i, t := range ts.list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var v *drivers.View
			found[i], v = check.Doctor(ctx, ts.subject(t), a.surroundings())
			if o.capture != "" {
				evidence[i] = check.Collect(ctx, found[i], v)
			}
			if v != nil {
				_ = v.Close()
			}
		})
	}
	wg.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return interrupted(ctx, fmt.Errorf("doctor: %w", context.Cause(ctx)))
	}
	if json {
		err = a.printJSON(doctorJSON{"fabricctl/doctor/v1", found})
	} else {
		err = printDoctor(a.sys.out, found)
	}
	if err == nil && o.capture != "" {
		err = a.writeCapture(o, evidence)
	}
	if err != nil {
		return err
	}
	for _, d := range found {
		if d.Failed() {
			return done(exitError)
		}
	}
	return nil
}

// check refuses a capture that could not be written, before any device is asked.
func (o *doctorFlags) check() error {
	if o.capture == "" && o.anonymise {
		return fail(exitUsage, "add --capture FILE.tar.gz", "--anonymise is for a capture")
	}
	if o.capture == "" {
		return nil
	}
	if err := outFile("--capture", o.capture, "capture.tar.gz"); err != nil {
		return err
	}
	if _, err := os.Lstat(o.capture); err == nil {
		return fail(exitError, "name another file", "%s is there already, and a capture is never written over a file", o.capture)
	}
	return nil
}

// writeCapture writes a capture, and says what was taken out of it.
func (a *app) writeCapture(o doctorFlags, es []check.Evidence) error {
	b, m, err := check.Capture{Tool: toolVersion(), Anonymise: o.anonymise}.Bytes(es)
	if err != nil {
		return err
	}
	if err := check.WriteNew(o.capture, b); err != nil {
		return err
	}
	files := 0
	for _, d := range m.Devices {
		files += len(d.Files)
		for _, x := range d.Missing {
			fmt.Fprintf(a.sys.err, "%s: not in the capture: %s\n", d.Name, diag.OneLine(x))
		}
		for i, r := range d.Scrubbed {
			if i == show.Most {
				fmt.Fprintf(a.sys.err, "%s: and %d more, listed in MANIFEST.json\n", d.Name, len(d.Scrubbed)-show.Most)
				break
			}
			fmt.Fprintf(a.sys.err, "%s: taken out: %s (%s)\n", d.Name, r.Where, r.What)
		}
	}
	fmt.Fprintf(a.sys.err, "captured %s of %s in %s; look through it before you send it\n", diag.Count(files, "file"), diag.Count(len(m.Devices), "device"), o.capture)
	return nil
}

// surroundings are this machine's network.
func (a *app) surroundings() check.Surroundings {
	return check.Surroundings{
		Resolve: net.DefaultResolver.LookupHost,
		Connect: func(ctx context.Context, address string) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
		NoTrials: a.readOnly,
	}
}

// subject is a target as doctor looks at it.
func (ts targets) subject(t target) check.Subject {
	e := t.Endpoint
	s := check.Subject{
		Name: t.Name, OS: t.OS, Platform: t.Platform, Device: t.Device, Lab: e.Lab.V, Host: e.Address.V, Catalog: ts.model.fabric.Catalog,
		Ready: func(ctx context.Context) error {
			return (&dialler{app: ts.app, fabric: ts.model.fabric, reads: true}).ready(ctx, t.Endpoint, t.OS)
		},
		Open:  func(ctx context.Context) (*drivers.View, error) { return ts.open(ctx, t) },
		Stage: stageOf, Command: ts.app.command,
	}
	if p, ok := ts.model.fabric.Catalog.Platform(t.Platform); ok {
		s.Profile = &p
	}
	if t.Name == e.Device && ts.model.fabric.Endpoints[t.Name] != nil {
		s.Expected = &drivers.Identity{Name: t.Name, Serial: e.Serial.V, Hostname: e.Hostname.V}
	}
	s.Held = ts.held(t)
	ts.channel(t, e, &s)
	return s
}

// held finds who holds a target: by the model where it is in one, by its address and serial number anyway.
func (ts targets) held(t target) func(render.Facts) []string {
	fabric, dev := "", t.Device
	if ts.model.net != nil {
		fabric = ts.model.net.Fabric
	}
	if dev == nil {
		dev = &intent.Device{Name: t.Name, Serial: t.Endpoint.Serial.V, Address: t.Endpoint.HostPort(t.OS)}
	}
	on := ts.app.heldOn(fabric)
	return func(f render.Facts) []string { return on(dev, f) }
}

// channel says how a target is reached and how it proves who it is.
func (ts targets) channel(t target, e *model.Endpoint, s *check.Subject) {
	user := e.SSH.Username.V
	if t.OS == "sonic" {
		s.Port, s.Via, user = e.GNMI.Port.V, e.GNMI.Via.V, e.GNMI.Username.V
		if !e.GNMI.Plaintext.V {
			s.Trust = check.Trust{What: "certificate", Insecure: e.GNMI.Insecure.V, Hint: "give the authority that signed it: gnmi.tls.ca in the inventory, or --ca file:ca.pem; or correct the port, if something else answers there"}
		}
	} else {
		s.Port, s.Via = e.SSH.Port.V, e.SSH.Via.V
		s.Trust = check.Trust{What: "host key", Insecure: e.SSH.Insecure.V, Hint: "compare the fingerprint with the one on the device's console, then add the key to known hosts: ssh.known_hosts in the inventory, or --known-hosts file:known_hosts"}
	}
	if !secret.IsReference(user) { // what a reference leads to need not be shown
		s.User = user
	}
	if e.Lab.V {
		s.Via = "" // as the dialler sees it: a lab is on this machine
	}
}

// stageOf says how far a connection came that failed with err.
func stageOf(err error) check.Stage {
	var unresolved unresolvedError
	var file *fs.PathError
	var op *net.OpError
	switch {
	case errors.As(err, &unresolved), errors.As(err, &file), errors.Is(err, ssh.ErrNoLogin): // file: a key, or known hosts
		return check.AtCredentials
	case errors.Is(err, ssh.ErrHostKey), errors.Is(err, gnmi.ErrTLS):
		return check.AtTrust
	case errors.Is(err, ssh.ErrAuth), errors.Is(err, gnmi.ErrAuth):
		return check.AtLogin
	case errors.As(err, &op):
		return check.AtConnect
	}
	return check.AtSession
}

// printDoctor writes diagnoses for people: a list to go down, with what to do below what needs it.
func printDoctor(w io.Writer, ds []*check.Diagnosis) error {
	for i, d := range ds {
		if i > 0 {
			fmt.Fprintln(w)
		}
		what := d.OS
		if d.Platform != "" {
			what = d.Platform
		}
		fmt.Fprintf(w, "%s (%s at %s)\n", show.Paint(show.Bold, d.Name), what, d.Address)
		width := 0
		for _, x := range d.Items {
			width = max(width, show.Shown([]byte(x.Name)))
		}
		var last check.Section
		for _, x := range d.Items {
			if x.Section != last {
				fmt.Fprintf(w, "  %s\n", x.Section)
				last = x.Section
			}
			fmt.Fprintf(w, "    %s %s%s\n", statusWord(x.Status), show.Pad(x.Name, width+2), diag.OneLine(x.Said))
			if x.Next != "" {
				fmt.Fprintf(w, "%s%s %s\n", strings.Repeat(" ", 4+len(check.NotTried)+1+width+2), "next:", diag.OneLine(x.Next))
			}
		}
	}
	counts := func(s check.Status) int {
		n := 0
		for _, d := range ds {
			n += d.Count(s)
		}
		return n
	}
	parts := []string{fmt.Sprintf("%d ok", counts(check.OK)), diag.Count(counts(check.Warning), "warning"), fmt.Sprintf("%d failed", counts(check.Failed))}
	if n := counts(check.NotTried); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", n))
	}
	_, err := fmt.Fprintf(w, "\ndoctor: %s: %s\n", diag.Count(len(ds), "device"), strings.Join(parts, ", "))
	return err
}

func statusWord(s check.Status) string {
	st := show.Plain
	switch s {
	case check.OK:
		st = show.Green
	case check.Warning:
		st = show.Yellow
	case check.Failed:
		st = show.Red
	}
	return show.Paint(st, string(s)) + strings.Repeat(" ", max(0, len(check.NotTried)-len(s)))
}
