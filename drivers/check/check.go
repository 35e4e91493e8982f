// Package check looks at devices and says what it sees: whether they do what a model asks (Live), and what a first
// contact with one shows (Doctor), with a capture to send on. It can read and nothing else, by type: what it gets of a
// device is a drivers.View.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Schema names the format of a Report.
const Schema = "fabricctl/check/v1"

// Verdict is what became of one area of a device.
type Verdict string

const (
	Agrees   Verdict = "agrees"    // on every port that could be compared, which is one at least
	Differs  Verdict = "differs"   // on one port at least
	NotKnown Verdict = "not known" // the device says nothing about it
	Ignored  Verdict = "ignored"   // manage says ignore on every port
)

// Report is a live fabric against its model. The same devices and the same model give the same report.
type Report struct {
	Schema   string    `json:"schema"` // Schema
	Fabric   string    `json:"fabric"`
	Devices  []Device  `json:"devices"`            // in the order of the model
	Findings diag.List `json:"findings,omitempty"` // what the rules say of the live fabric and not of the model

	Live *intent.Net `json:"-"` // the fabric as it is: of what was not read, nothing is known
}

// Device is one device against the model.
type Device struct {
	Name        string       `json:"name"`
	Platform    string       `json:"platform"`
	Host        bool         `json:"host,omitempty"`
	State       string       `json:"state"`
	Skipped     bool         `json:"skipped,omitempty"` // planned or absent: not contacted
	Error       string       `json:"error,omitempty"`   // it was not read, and why
	Held        []string     `json:"held,omitempty"`    // who keeps fabricctl from writing to it or to ports of it, a sentence each
	Areas       []Area       `json:"areas,omitempty"`   // those that the model speaks about
	Differences []Difference `json:"differences,omitempty"`
	Missing     []string     `json:"missing_ports,omitempty"` // interface names of the model that the device does not show
	Unbound     []string     `json:"unbound_ports,omitempty"` // ports of the model without an interface name: not compared
	Findings    diag.List    `json:"findings,omitempty"`      // about how the configuration reads
	Counters    *Counters    `json:"counters,omitempty"`      // where they were asked for
}

// Area is one area of a device: on how many ports it was compared, differs, or is not known.
type Area struct {
	Name     string  `json:"area"`
	Verdict  Verdict `json:"verdict"`
	Compared int     `json:"compared"`
	Differ   int     `json:"differ"`
	NotKnown int     `json:"not_known"`
}

// Difference is what some ports of a device do otherwise than the model says.
type Difference struct {
	Ports       []string `json:"ports"`                 // the device's interface names, in the order of the model
	Maintenance bool     `json:"maintenance,omitempty"` // the ports are in maintenance: shown, and no failure
	Values      []Value  `json:"values"`
}

// Value is one value that differs, in the words of the model.
type Value struct {
	Field intent.Field `json:"field"`
	Name  string       `json:"name"`
	Live  string       `json:"live"`
	Model string       `json:"model"`
	From  diag.Pos     `json:"from,omitzero"` // the line of the model
}

// Options are what Live needs besides the model.
type Options struct {
	Open     func(ctx context.Context, device string) (*drivers.View, error) // a new connection
	Held     func(*intent.Device, render.Facts) []string                     // who holds it or a port of it, by zero facts where it is not read; nil = nobody looks
	Parallel int                                                             // devices at a time, at least 1
	Counting *Counting                                                       // reads counters too; nil = none
}

// Differs reports whether something active does otherwise than the model says, or is not there.
func (r *Report) Differs() bool {
	return slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Fails() && d.Error == "" })
}

// Unread reports whether an active device was not read.
func (r *Report) Unread() bool {
	return slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Fails() && d.Error != "" })
}

// Differs reports whether a port of d does otherwise than the model says, or is not there.
func (d *Device) Differs() bool { return len(d.Differences)+len(d.Missing) > 0 }

// Fails reports whether d is active and was not read, or one of its active ports differs.
func (d *Device) Fails() bool {
	return d.State == intent.Active.String() && (d.Error != "" || len(d.Missing) > 0 ||
		slices.ContainsFunc(d.Differences, func(x Difference) bool { return !x.Maintenance }))
}

// Live reads the devices of net and compares everything that the model says about them, owned or not. A device that
// cannot be read is part of the report, also when the deadline of ctx came first; the error is only that ctx was
// cancelled. The rules judge the fabric as it is live; what they say of the model f too is left out, and
// acknowledgements count.
func Live(ctx context.Context, net *intent.Net, f *model.Fabric, o Options) (*Report, error) {
	r := &Report{Schema: Schema, Fabric: net.Fabric, Devices: make([]Device, len(net.Devices))}
	live := net.With(make([]intent.Device, len(net.Devices)))
	nics := make([][]profiles.Fitted, len(net.Devices))
	var catalog *profiles.Catalog
	if f != nil {
		catalog = f.Catalog
	}
	slots := make(chan struct{}, max(o.Parallel, 1))
	var wg sync.WaitGroup
	for i := range net.Devices {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.Devices[i], live.Devices[i], nics[i] = look(ctx, net.Devices[i], o, catalog)
		})
	}
	wg.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("check: %w", context.Cause(ctx))
	}
	r.Live = live
	r.Findings = liveFindings(net, live, f, catalog.Fleet(slices.Concat(nics...)))
	return r, nil
}

// look reads one device and compares it. live is what it does; of one that was not read, nothing is known. nics are those of a
// host, where there is a catalog to know them by.
func look(ctx context.Context, want intent.Device, o Options, c *profiles.Catalog) (d Device, live intent.Device, nics []profiles.Fitted) {
	d = Device{Name: want.Name, Platform: want.Platform, Host: want.Host, State: want.State.String()}
	live = intent.Join(want, nil)
	if d.Skipped = want.State == intent.Planned || want.State == intent.Absent; d.Skipped {
		return d, live, nil
	}
	if ctx.Err() != nil {
		d.Error = fmt.Sprintf("%s: not begun: %v", want.Name, context.Cause(ctx))
		return d, live, nil
	}
	if o.Held != nil {
		d.Held = o.Held(&want, render.Facts{})
	}
	lifted, is, err := lift(ctx, want, o, &d)
	if err != nil {
		d.Error = err.Error()
		if why := context.Cause(ctx); why != nil && !strings.Contains(d.Error, why.Error()) {
			d.Error += fmt.Sprintf(" (%v)", why)
		}
		return d, live, nil
	}
	bound := want.Bind(is.facts.Aliases)
	d.compare(&bound, lifted)
	if o.Counting != nil {
		d.tell(&bound, is.counted)
	}
	if want.Host && c != nil {
		nics = render.Fitted(want, is.facts, c)
	}
	return d, render.ByOS(want.OS()).Joined(bound, is.config, lifted), nics
}

// holding is what a device holds, and what it says of itself.
type holding struct {
	config  render.Config
	facts   render.Facts
	counted counted
}

// lift reads what a device does.
func lift(ctx context.Context, want intent.Device, o Options, d *Device) (lifted map[string]intent.Policy, is holding, err error) {
	dialect := render.ByOS(want.OS())
	if dialect == nil {
		return nil, is, fmt.Errorf("%s: no dialect is called %q", want.Name, want.OS())
	}
	dev, err := o.Open(ctx, want.Name)
	if err != nil {
		return nil, is, err
	}
	defer dev.Close()
	f, _, err := dev.Facts(ctx)
	if err != nil {
		return nil, is, err
	}
	if err := (drivers.Identity{Name: want.Name, Serial: want.Serial, Hostname: want.Hostname}).Is(f); err != nil {
		return nil, is, err
	}
	if o.Held != nil {
		d.Held = o.Held(&want, f)
	}
	c, err := dev.Read(ctx)
	if err != nil {
		return nil, is, err
	}
	lifted, l := dialect.Lift(c, f)
	for i := range l {
		l[i].Severity = min(l[i].Severity, diag.Warning) // the device is as it is
		if l[i].At == "" {
			l[i].At = want.Name
		}
	}
	d.Findings = l.Sort()
	is = holding{config: c, facts: f}
	if o.Counting != nil {
		is.counted = count(ctx, dev, *o.Counting)
	}
	return lifted, is, nil
}

// liveFindings are what the rules say of the live fabric and not of the model, and what is found of its hosts' fleet.
func liveFindings(want, live *intent.Net, f *model.Fabric, l diag.List) diag.List {
	for _, x := range lint.Check(live, f).Without(lint.Check(want, f)) {
		if x.Severity > diag.Info {
			x.Hint = "the model asks for something else: bring the devices to it, plan shows how" // a hint of the rule would change the model
			l.Add(x)
		}
	}
	lint.Advise(l, live, want)
	if f == nil {
		return l.Sort()
	}
	acked := f.Acknowledge(l)
	l = nil
	for _, x := range acked {
		if x.Rule != "acknowledge" { // that nothing of the kind was found live says nothing about the model
			l.Add(x)
		}
	}
	return l
}
