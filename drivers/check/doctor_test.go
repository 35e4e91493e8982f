package check_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// patient is a device with companions.
type patient struct {
	box
	trials  []drivers.Trial
	tryErr  error
	pending []drivers.Tx
	unsaved bool
}

func (p patient) Try(context.Context) ([]drivers.Trial, error)  { return p.trials, p.tryErr }
func (p patient) Pending(context.Context) ([]drivers.Tx, error) { return p.pending, nil }
func (p patient) Saved(context.Context) (bool, error)           { return !p.unsaved, nil }

// subject is a device that is reached and as expected.
func subject(dev drivers.Reader) check.Subject {
	return check.Subject{
		Name: "spine1", OS: "sonic", Platform: "sonic/sn5600", Host: "spine1.example.net", Port: 8080, Trust: check.Trust{What: "certificate", Hint: "give the authority"},
		Expected: &drivers.Identity{Name: "spine1"}, User: "ops",
		Open:  func(context.Context) (*drivers.View, error) { return drivers.ViewOf("spine1", dev), nil },
		Stage: func(error) check.Stage { return check.AtSession },
	}
}

func surroundings() check.Surroundings {
	return check.Surroundings{
		Resolve: func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil },
		Connect: func(context.Context, string) error { return nil },
	}
}

// lines is a diagnosis as text, an item a line.
func lines(d *check.Diagnosis) string {
	var b strings.Builder
	for _, i := range d.Items {
		fmt.Fprintf(&b, "%s %s %s: %s -> %s\n", i.Section, i.Status, i.Name, i.Said, i.Next)
	}
	return b.String()
}

func wants(t *testing.T, d *check.Diagnosis, wants ...string) {
	t.Helper()
	text := lines(d)
	for _, w := range wants {
		if !regexp.MustCompile(`(?m)^` + w).MatchString(text) {
			t.Errorf("no line %q in\n%s", w, text)
		}
	}
}

// Each step that fails names itself and ends the way; a device that does not answer is not waited for longer than was
// agreed.
func TestDoctorReach(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unreachable := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	for _, x := range []struct {
		name string
		edit func(*check.Subject, *check.Surroundings)
		want []string
	}{
		{"no such name", func(_ *check.Subject, o *check.Surroundings) {
			o.Resolve = func(context.Context, string) ([]string, error) { return nil, &net.DNSError{Err: "no such host"} }
		}, []string{`reach failed name: spine1.example.net: no such host -> correct the address`, `reach not tried connection`, `reach not tried login`}},
		{"resolver hangs", func(_ *check.Subject, o *check.Surroundings) {
			o.Resolve = func(ctx context.Context, _ string) ([]string, error) { return nil, hang(ctx) }
		}, []string{`reach failed name: spine1.example.net: no answer within 1ms`}},
		{"nobody answers", func(_ *check.Subject, o *check.Surroundings) {
			o.Connect = func(ctx context.Context, _ string) error { return hang(ctx) }
		}, []string{`reach ok name: spine1.example.net is 10.0.0.1`, `reach failed connection: spine1.example.net:8080: no answer within 1ms -> is it up`, `reach not tried certificate`}},
		{"refused", func(_ *check.Subject, o *check.Surroundings) {
			o.Connect = func(context.Context, string) error { return refused }
		}, []string{`reach failed connection: .*connection refused.* -> start the gNMI server, or give its port under gnmi.port`}},
		{"no route", func(_ *check.Subject, o *check.Surroundings) {
			o.Connect = func(context.Context, string) error { return unreachable }
		}, []string{`reach failed connection: spine1.example.net:8080: no route to host -> is this its management address`}},
		{"an address needs no name", func(s *check.Subject, _ *check.Surroundings) { s.Host = "2001:db8::1" }, []string{`reach ok connection: \[2001:db8::1\]:8080 accepts`}},
		{"slow login", func(s *check.Subject, _ *check.Surroundings) {
			s.Open = func(ctx context.Context) (*drivers.View, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("spine1: gnmi dial: waiting for the answer: %w", context.Cause(ctx))
			}
		}, []string{`reach failed session: gnmi dial: waiting for the answer: no answer within 2ms -> the device is slow or stuck`}},
		{"behind a jump host", func(s *check.Subject, o *check.Surroundings) {
			s.Via = "jump.example.net"
			o.Resolve, o.Connect = nil, nil // they would be asked in vain
		}, []string{`reach not tried address: spine1.example.net:8080 is reached through jump.example.net`, `reach ok login: logged in as "ops"`}},
		{"no TLS", func(s *check.Subject, _ *check.Surroundings) { s.Trust = check.Trust{} }, []string{`reach warning encryption: none: the password`}},
		{"not verified", func(s *check.Subject, _ *check.Surroundings) { s.Trust.Insecure = true }, []string{`reach warning certificate: not verified: whoever answers gets the password -> give the authority`}},
		{"not trusted", func(s *check.Subject, _ *check.Surroundings) {
			s.Open = func(context.Context) (*drivers.View, error) { return nil, errors.New("spine1: stranger") }
			s.Stage = func(error) check.Stage { return check.AtTrust }
		}, []string{`reach failed certificate: stranger -> give the authority`, `reach not tried login`}},
		{"not trusted, with what to do", func(s *check.Subject, _ *check.Surroundings) {
			s.Open = func(context.Context) (*drivers.View, error) { return nil, fmt.Errorf("spine1: %w", advised{}) }
			s.Stage = func(error) check.Stage { return check.AtTrust }
		}, []string{`reach failed certificate: revoked -> do not connect`}},
		{"hung up later", func(s *check.Subject, _ *check.Surroundings) {
			s.Open = func(context.Context) (*drivers.View, error) { return nil, errors.New("spine1: hung up") }
		}, []string{`reach failed session: hung up -> is this SONiC's own gNMI server`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, n := example(t)
			s, o := subject(patient{box: perfect(n)["spine1"]}), surroundings()
			o.Patience, o.Login = time.Millisecond, 2*time.Millisecond
			if x.name != "slow login" {
				o.Login = time.Minute
			}
			x.edit(&s, &o)
			d, v := check.Doctor(context.Background(), s, o)
			wants(t, d, x.want...)
			if d.Failed() != (v == nil) {
				t.Errorf("failed %v, and a view: %v", d.Failed(), v != nil)
			}
		})
	}
}

// Hardware that is not what it is taken for, that nobody tried, or that nobody named.
func TestDoctorPlatform(t *testing.T) {
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	_, n := example(t)
	p, _ := cat.Platform("sonic/sn5600")
	known := p.Words["hwsku"]
	for _, x := range []struct {
		name, platform, model string
		verified              bool
		want                  string
	}{
		{"as taken for", "sonic/sn5600", known, true, `identity ok platform: sonic/sn5600; the device says it is ` + known},
		{"not tried", "sonic/sn5600", known, false, `identity warning verified: nobody has tried sonic/sn5600 on a real device -> apply asks for --accept-unverified`},
		{"another box", "sonic/sn5600", "Mellanox-SN2700", true, `identity warning platform: the device says it is Mellanox-SN2700, and sonic/sn5600 is ` + known + ` -> name the platform`},
		{"nobody says, but the hardware does", "", known, false, `identity warning platform: the device says it is ` + known + `; nobody says which platform that is -> name its platform in the inventory: sonic/`},
		{"nobody knows", "", "Box-9", false, `identity warning platform: the device says it is Box-9; .* -> .*a document of kind Profile`},
		{"unknown platform", "sonic/box9", "Box-9", false, `identity warning platform: fabricctl does not know sonic/box9 -> describe it`},
	} {
		b := perfect(n)["spine1"]
		b.facts.Model = x.model
		s := subject(patient{box: b})
		s.Platform, s.Catalog = x.platform, cat
		if q, ok := cat.Platform(x.platform); ok {
			q.Verified = x.verified
			s.Profile = &q
		}
		d, _ := check.Doctor(context.Background(), s, surroundings())
		wants(t, d, x.want)
	}
}

// What the device says of itself is text in the line of the inventory that is offered, and EOS hardware is known by its
// family, as for import.
func TestDoctorEntry(t *testing.T) {
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	two := cat.With(alike(t, cat, "sonic/sn5600", "sonic/again"))
	_, n := example(t)
	for _, x := range []struct{ os, hostname, serial, model, want string }{
		{"eos", "tor-7", "JPE1", "DCS-7060X6-64PE-F", `tor-7: {address: spine1.example.net, platform: eos/7060x6, serial: JPE1}`},
		{"sonic", "x: {address: evil}, y", "1, lab: true", "ACS-SN5600", `"x: {address: evil}, y": {address: spine1.example.net, platform: sonic/…, serial: "1, lab: true"}`},
		{"sonic", "no", "0123", "Box-9", `"no": {address: spine1.example.net, platform: sonic/…, serial: "0123"}`},
	} {
		b := perfect(n)["spine1"]
		b.facts.Hostname, b.facts.Serial, b.facts.Model = x.hostname, x.serial, x.model
		s := subject(patient{box: b})
		s.OS, s.Platform, s.Expected, s.Catalog = x.os, "", nil, two
		d, _ := check.Doctor(context.Background(), s, surroundings())
		wants(t, d, `identity ok device: .* -> give it a place in an inventory: `+regexp.QuoteMeta(x.want)+"$")
		if x.model == "ACS-SN5600" {
			wants(t, d, `identity warning platform: .* -> name its platform in the inventory: sonic/again or sonic/sn5600$`)
		}
	}
}

// alike is a platform of another name with the hardware of one in the catalog.
func alike(t *testing.T, cat *profiles.Catalog, of, name string) profiles.Entry {
	t.Helper()
	e, ok := cat.Entry(profiles.KindPlatform, of)
	if !ok {
		t.Fatal(of)
	}
	e.Name = name
	return e
}

// What would be owned, what is somebody else's, what could be taken over, and where the names meet.
func TestDoctorOwnership(t *testing.T) {
	_, n := example(t)
	boxes := perfect(n)
	look := func(b box, edit func(*check.Subject)) *check.Diagnosis {
		s := subject(patient{box: b})
		s.Device = n.Device("spine1")
		if edit != nil {
			edit(&s)
		}
		d, v := check.Doctor(context.Background(), s, surroundings())
		if v == nil {
			t.Fatal(lines(d))
		}
		return d
	}
	wants(t, look(boxes["spine1"], nil), `ownership ok areas: on 2 ports of the model: own mtu, maps`, `ownership ok settings: .*apply would make 0 changes`)

	// A port that the model does not know uses an object of ours that would change: a collision.
	b := perfect(n)["spine1"]
	for i, s := range b.held {
		if s.Key.Scope == "WRED_PROFILE" && s.Key.Field == "green_max_threshold" {
			b.held[i].Value = "9000000"
			b.held = append(b.held, render.Setting{Key: render.Key{Scope: "QUEUE", Object: "Ethernet504|3", Field: "wred_profile"}, Value: s.Key.Object})
			break
		}
	}
	b.held.Sorted()
	wants(t, look(b, nil), `ownership warning collision: .*Ethernet504.*uses it -> apply refuses the device`)

	// Somebody else's map on our ports is foreign, and could stand for ours.
	c := perfect(n)["spine1"]
	for i, s := range c.held {
		if s.Key.Scope == "DSCP_TO_TC_MAP" {
			c.held[i].Key.Object = "AZURE"
		}
		if s.Key.Field == "dscp_to_tc_map" {
			c.held[i].Value = "AZURE"
		}
	}
	c.held.Sorted()
	wants(t, look(c, nil), `ownership ok foreign: .*DSCP_TO_TC_MAP AZURE`, `ownership ok adoption: .*AZURE for fctl-mixed`)

	// Of what is only observed, the shared objects are foreign, and the rows of ports are not: owning an area edits them.
	watched := *n.Device("spine1")
	watched.Ports = slices.Clone(watched.Ports)
	for i := range watched.Ports {
		for a := range watched.Ports[i].Manage {
			watched.Ports[i].Manage[a] = intent.Observe
		}
	}
	d := look(boxes["spine1"], func(s *check.Subject) { s.Device = &watched })
	wants(t, d, `ownership ok foreign: objects of other names in use, which are left as they are: .*DSCP_TO_TC_MAP`)
	if strings.Contains(lines(d), "PORT_QOS_MAP Ethernet") {
		t.Errorf("the row of a port is no shared object:\n%s", lines(d))
	}

	// A port that the device does not have.
	elsewhere := watched
	elsewhere.Ports = slices.Clone(watched.Ports)
	elsewhere.Ports[0].Iface = "Ethernet600"
	wants(t, look(boxes["spine1"], func(s *check.Subject) { s.Device = &elsewhere }), `ownership warning ports: the device does not show Ethernet600, which the model has -> correct the ports`)

	// Without a model: a fabricctl has been here.
	wants(t, look(boxes["spine1"], func(s *check.Subject) { s.Device = nil }), `ownership warning objects: a fabricctl has been here: .*fctl-mixed`, `ownership ok model: no Fabric was given`)
}

// What others do on the device, what the account may do, and what a failed trial leaves are said; a Reader without
// companions has none of it.
func TestDoctorCompanions(t *testing.T) {
	_, n := example(t)
	b := perfect(n)["spine1"]
	b.facts.Owners, b.facts.Notes = []string{"a controller configures it"}, []string{"remark"}
	p := patient{
		box: b, unsaved: true, pending: []drivers.Tx{
			{ID: "one", State: drivers.TxTimed, Deadline: time.Unix(0, 0)}, {ID: "two", State: drivers.TxOpen},
		},
		trials: []drivers.Trial{
			{Operation: "read", For: "plan", Verdict: drivers.Refused, How: "tried", Answer: "% no"},
			{Operation: "write", For: "apply", Verdict: drivers.Refused, How: "tried"},
			{Operation: "reboot", Verdict: drivers.Allowed, How: "tried"},
			{Operation: "save", For: "apply", Verdict: drivers.NotTried, How: "it would save"},
		},
		tryErr: errors.New("spine1: session x could not be dropped"),
	}
	s := subject(p)
	s.Command = func(words ...string) string { return "fabricctl " + strings.Join(words, " ") + " --state-dir s" }
	s.Held = func(render.Facts) []string { return []string{"spine1 is held"} }
	d, _ := check.Doctor(context.Background(), s, surroundings())
	wants(
		t, d, `privileges failed read: refused: tried; the device said "% no" -> plan, check and import need it`,
		`privileges warning write: refused: tried -> apply needs it`, `privileges ok reboot: allowed: tried -> fabricctl does not need it`,
		`privileges not tried save: it would save`, `privileges failed trials: session x could not be dropped`,
		`others warning owner: a controller configures it`, `others warning commit timer: transaction one .*until 1970-01-01T00:00:00Z -> fabricctl runs list --state-dir s shows`,
		`others warning hold: spine1 is held -> .*; fabricctl hold list --state-dir s shows`,
		`others warning session: transaction two`, `others warning saved: running differs`, `others ok note: remark`,
	)
	if !d.Failed() {
		t.Error("a refused read is no failure")
	}
	o := surroundings()
	o.NoTrials = true
	d, _ = check.Doctor(context.Background(), subject(p), o)
	wants(t, d, `privileges not tried trials: --read-only`)
	d, _ = check.Doctor(context.Background(), subject(b), surroundings())
	wants(t, d, `privileges not tried trials: fabricctl knows no harmless way`)
	if text := lines(d); strings.Contains(text, " saved:") || d.Failed() {
		t.Error(text)
	}
}

// Who holds a device is said, whether it was reached or not.
func TestDoctorHeld(t *testing.T) {
	s := subject(box{facts: render.Facts{Hostname: "spine1", Serial: "S1"}})
	s.Held = func(f render.Facts) []string { return []string{"held, seen as " + f.Serial} }
	d, v := check.Doctor(t.Context(), s, surroundings())
	if v == nil || d.Failed() {
		t.Errorf("%s", lines(d))
	}
	wants(t, d, `others warning hold: held, seen as S1 -> `)
	s.Open = func(context.Context) (*drivers.View, error) { return nil, errors.New("no") }
	d, _ = check.Doctor(t.Context(), s, surroundings())
	wants(t, d, `others warning hold: held, seen as  ->`)
}

// A device that never answers has a diagnosis when the time is over: what was seen of it, and that this is not all.
func TestDoctorCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), 5*time.Second, errors.New("--timeout 5s is over"))
		defer cancel()
		s := subject(box{})
		s.Open = func(ctx context.Context) (*drivers.View, error) { <-ctx.Done(); return nil, context.Cause(ctx) }
		d, v := check.Doctor(ctx, s, surroundings())
		if v != nil || !d.Failed() {
			t.Errorf("%v\n%s", v, lines(d))
		}
		wants(t, d, `reach ok connection`, `others failed time: cut short: --timeout 5s is over; .* -> look at it alone, or give more time`)
		d, v = check.Doctor(ctx, s, surroundings())
		if v != nil || !d.Failed() || len(d.Items) != 1 {
			t.Errorf("%v\n%s", v, lines(d))
		}
		wants(t, d, `reach failed device: not looked at: --timeout 5s is over -> look at it alone`)
	})
}

// advised is an error that ends with what to do.
type advised struct{}

func (advised) Error() string { return "revoked; do not connect" }
func (advised) Next() string  { return "do not connect" }
