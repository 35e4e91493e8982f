package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Status is what came of one item of a diagnosis.
type Status string

const (
	OK       Status = "ok"
	Warning  Status = "warning"   // look is possible; apply will ask for something, or refuse
	Failed   Status = "failed"    // what has to work does not
	NotTried Status = "not tried" // because of what failed before it, or because trying would have an effect
)

// Section groups items.
type Section string

const (
	Reach      Section = "reach"
	Identity   Section = "identity"
	Abilities  Section = "abilities"
	Privileges Section = "privileges"
	Ownership  Section = "ownership"
	Others     Section = "others"
)

// Item is one thing that was looked at.
type Item struct {
	Section Section `json:"section"`
	Name    string  `json:"name"`
	Status  Status  `json:"status"`
	Said    string  `json:"said"`           // what was seen
	Next    string  `json:"next,omitempty"` // what to do about it
}

// Diagnosis is a first look at one device.
type Diagnosis struct {
	Name     string        `json:"name"`
	OS       string        `json:"os"`
	Platform string        `json:"platform,omitempty"`
	Address  string        `json:"address"` // host:port
	Items    []Item        `json:"items"`
	Facts    *render.Facts `json:"facts,omitempty"` // nil when it was not reached
	Caps     *drivers.Caps `json:"caps,omitempty"`
}

// Failed reports whether an item failed.
func (d *Diagnosis) Failed() bool { return d.Count(Failed) > 0 }

// Count is the number of items with a status.
func (d *Diagnosis) Count(s Status) int {
	n := 0
	for _, i := range d.Items {
		if i.Status == s {
			n++
		}
	}
	return n
}

func (d *Diagnosis) add(s Section, name string, st Status, said, next string) {
	d.Items = append(d.Items, Item{s, name, st, said, next})
}

// Subject is a device to look at.
type Subject struct {
	Name     string             // of the layers, or OS:ADDRESS
	Expected *drivers.Identity  // nil when nothing is known of the device but its address
	OS       string             // the dialect
	Platform string             // "" when nobody says
	Profile  *profiles.Platform // nil when the platform is not known
	Device   *intent.Device     // nil without a Fabric
	Lab      bool               // emulated
	Host     string             // name or address
	Port     int
	Via      string                      // jump hosts on the way; "" = none
	Trust    Trust                       // how the device proves who it is
	User     string                      // who logs in, as far as it may be shown
	Catalog  *profiles.Catalog           // hardware to name when Platform is "", and what is known of a host's NICs; nil = nothing
	Held     func(render.Facts) []string // who holds it or a port of it, a sentence each; nil = nobody looks
	Ready    func(context.Context) error // what can be seen of the credentials without the device; nil = nothing
	Open     func(context.Context) (*drivers.View, error)
	Stage    func(error) Stage            // how far Open came when it failed with this
	Command  func(words ...string) string // a command of fabricctl as its user types it, with flags; nil adds none
}

// Trust is how a device proves who it is.
type Trust struct {
	What     string // "certificate", "host key"; "" = it does not: there is no TLS
	Insecure bool   // nobody verifies it
	Hint     string // what to do when it is not accepted
}

// Stage is where a connection failed.
type Stage int

const (
	AtCredentials Stage = iota // before it: a reference could not be followed, or a file not be read
	AtConnect                  // nobody answered
	AtTrust                    // whoever answered is not known to be the device
	AtLogin                    // the device does not let the user in
	AtSession                  // later
)

// Surroundings are what Doctor reaches the network with, and what it may do.
type Surroundings struct {
	Resolve  func(ctx context.Context, host string) ([]string, error)
	Connect  func(ctx context.Context, address string) error // TCP, and hangs up
	Patience time.Duration                                   // for a name or a connection; 0 means 10 seconds
	Login    time.Duration                                   // for the whole login; 0 means 1 minute
	NoTrials bool                                            // do not try what the account may do
}

// Doctor looks at a device, step by step, and says at each what was seen and what to do about it. It ends at the first
// step without which the next ones make no sense. The view is left open, for who wants to go on looking, and nil when
// the device could not be read. When ctx ends on the way, the diagnosis says so and holds what was seen until then.
func Doctor(ctx context.Context, s Subject, o Surroundings) (*Diagnosis, *drivers.View) {
	d := &Diagnosis{Name: s.Name, OS: s.OS, Platform: s.Platform, Address: hostPort(s.Host, s.Port)}
	const next = "look at it alone, or give more time"
	if ctx.Err() != nil {
		d.add(Reach, "device", Failed, fmt.Sprintf("not looked at: %v", context.Cause(ctx)), next)
		return d, nil
	}
	v := d.look(ctx, &s, &o)
	d.holds(&s)
	if ctx.Err() != nil && d.Failed() {
		d.add(Others, "time", Failed, fmt.Sprintf("cut short: %v; what failed before this may have failed for that reason alone", context.Cause(ctx)), next)
	}
	return d, v
}

// look goes through the steps of a diagnosis.
func (d *Diagnosis) look(ctx context.Context, s *Subject, o *Surroundings) *drivers.View {
	v := d.reach(ctx, s, o)
	if v == nil {
		return nil
	}
	d.way(s)
	live, ok := d.read(ctx, s, v)
	if !ok {
		_ = v.Close()
		return nil
	}
	d.identify(s)
	d.abilities()
	d.privileges(ctx, v, o.NoTrials)
	d.ownership(s, live)
	d.others(ctx, s, v)
	d.versions(s)
	return v
}

// way says that our own connection takes ports that the model configures.
func (d *Diagnosis) way(s *Subject) {
	if s.Device == nil || !s.Device.Way.InBand {
		return
	}
	through := "one of its ports"
	if p := s.Device.Way.Port; p != "" {
		through = p
	}
	d.add(Reach, "way", OK, "managed in-band, through "+through+": apply changes what may cut this way last, and one device at a time", "")
}

// read asks for facts and configuration.
func (d *Diagnosis) read(ctx context.Context, s *Subject, v *drivers.View) (render.Config, bool) {
	f, caps, err := v.Facts(ctx)
	if err != nil {
		switch st := s.Stage(err); {
		case errors.Is(err, errors.ErrUnsupported):
			d.add(Identity, "facts", Failed, d.nameless(err), "")
		case st == AtTrust || st == AtLogin || st == AtConnect:
			d.failedAt(s, st, err)
		default:
			d.add(Identity, "facts", Failed, d.nameless(err), nextOfRefusal(err, "the account must be allowed to read what the device says about itself"))
		}
		return nil, false
	}
	d.Facts, d.Caps = &f, &caps
	live, err := v.Read(ctx)
	if err != nil {
		d.add(Privileges, "configuration", Failed, d.nameless(err), nextOfRefusal(err, "the account must be allowed to read the running configuration"))
		return nil, false
	}
	return live, true
}

// nextOfRefusal is what to do about a refusal; an error that is none needs another look.
func nextOfRefusal(err error, refused string) string {
	var no *drivers.RejectedError
	if errors.As(err, &no) {
		return refused
	}
	return "try again with --log-level debug, and send a maintainer what it says"
}

// nameless is an error on one line, without the device's name, which stands above.
func (d *Diagnosis) nameless(err error) string {
	s := diag.OneLine(err.Error())
	return strings.TrimPrefix(strings.ReplaceAll(s, ": "+d.Name+": ", ": "), d.Name+": ")
}

// identify compares the device with what is expected of it.
func (d *Diagnosis) identify(s *Subject) {
	f := d.Facts
	who := fmt.Sprintf("hostname %q", f.Hostname)
	if f.Serial != "" {
		who += fmt.Sprintf(", serial number %q", f.Serial)
	}
	switch {
	case s.Expected == nil:
		d.add(Identity, "device", OK, who, "give it a place in an inventory: "+entry(s, f))
	default:
		if err := s.Expected.Is(*f); err != nil {
			d.add(Identity, "device", Failed, d.nameless(err), "correct the address, or what the inventory expects: apply refuses a device that is another one")
		} else if s.Expected.Serial == "" && f.Serial != "" {
			d.add(Identity, "device", Warning, who+"; the inventory gives no serial number", fmt.Sprintf("add serial: %q to it, and a box that was swapped is noticed", f.Serial))
		} else {
			d.add(Identity, "device", OK, who+", as expected", "")
		}
	}
	if f.Version != "" {
		d.add(Identity, "version", OK, f.Version, "")
	}
	d.platform(s)
}

// entry is a line of an inventory, as YAML takes it, whatever the device says of itself.
func entry(s *Subject, f *render.Facts) string {
	platform := s.OS + "/…"
	if names := platformsFor(s, f.Model); len(names) == 1 {
		platform = names[0]
	}
	e := fmt.Sprintf("%s: {address: %s, platform: %s", model.Scalar(f.Hostname), model.Scalar(s.Host), platform)
	if f.Serial != "" {
		e += ", serial: " + model.Scalar(f.Serial)
	}
	return e + "}"
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// platformsFor are the platforms of the catalog that hardware of that name may be.
func platformsFor(s *Subject, model string) []string {
	if s.Catalog == nil {
		return nil
	}
	return s.Catalog.OfModel(s.OS, model)
}

// platform compares the hardware with the platform that it is taken for.
func (d *Diagnosis) platform(s *Subject) {
	model := d.Facts.Model
	hardware := "the device does not say what hardware it is"
	if model != "" {
		hardware = "the device says it is " + model
	}
	p := s.Profile
	switch {
	case s.Platform == "":
		next := "name its platform in the inventory; fabricctl knows none for this hardware, so a document of kind Profile may be needed"
		if names := platformsFor(s, model); len(names) > 0 {
			next = "name its platform in the inventory: " + strings.Join(names, " or ")
		}
		d.add(Identity, "platform", Warning, hardware+"; nobody says which platform that is", next)
		return
	case p == nil:
		d.add(Identity, "platform", Warning, "fabricctl does not know "+s.Platform, "describe it in a document of kind Profile")
		return
	case p.Words["hwsku"] != "" && model != "" && p.Words["hwsku"] != model && !s.Lab:
		next := "name the platform that it is in the topology and the inventory"
		if names := platformsFor(s, model); len(names) > 0 {
			next += ": " + strings.Join(names, " or ")
		}
		d.add(Identity, "platform", Warning, fmt.Sprintf("%s, and %s is %s", hardware, s.Platform, p.Words["hwsku"]), next)
	default:
		d.add(Identity, "platform", OK, s.Platform+"; "+hardware, "")
	}
	switch {
	case s.Lab:
		d.add(Identity, "verified", OK, "emulated, so nothing has to be verified", "")
	case p.Verified:
		d.add(Identity, "verified", OK, s.Platform+" was tried on a real device", "")
	default:
		d.add(Identity, "verified", Warning, "nobody has tried "+s.Platform+" on a real device", "apply asks for --accept-unverified; begin with one port of one device")
	}
}
