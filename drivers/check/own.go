package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// abilities says what the device can do for an apply.
func (d *Diagnosis) abilities() {
	if d.OS == "linux" {
		d.add(Abilities, "all", NotTried, "what a host can do is fabricctl-host's to say, which plan and apply copy there", "")
		return
	}
	c := d.Caps
	said := func(name string, is bool, yes, no string) {
		if !is {
			yes = no
		}
		d.add(Abilities, name, OK, yes, "")
	}
	said("undo", c.Confirm, "it takes a change back by itself unless the change is confirmed", "it cannot take a change back by itself: fabricctl's journal keeps the undo")
	said("transactions", c.Atomic, "a commit happens whole or not at all", "a change that fails in the middle stays half done until it is taken back")
	said("saving", c.PersistsOnCommit, "each commit is saved at once", "a commit is saved by a command of its own, after it was confirmed")
	said("counters", c.Counters, "can be read", "are not read by fabricctl on this kind of device")
}

// privileges tries what the account may do.
func (d *Diagnosis) privileges(ctx context.Context, v *drivers.View, not bool) {
	if not {
		d.add(Privileges, "trials", NotTried, "--read-only", "leave it out to try what the account may do: nothing is changed by that either")
		return
	}
	ts, err := v.Try(ctx)
	for _, t := range ts {
		d.trial(t)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		d.add(Privileges, "trials", NotTried, "fabricctl knows no harmless way on this kind of device", "")
	case err != nil:
		d.add(Privileges, "trials", Failed, d.nameless(err), "look at the device's list of sessions, and abort what is named here")
	}
}

// trial says what came of one operation. What fabricctl does not need should be refused.
func (d *Diagnosis) trial(t drivers.Trial) {
	st, said, next := OK, string(t.Verdict)+": "+t.How, ""
	if t.Verdict == drivers.NotTried {
		said = t.How
	}
	if t.Answer != "" {
		said += "; the device said " + fmt.Sprintf("%q", t.Answer)
	}
	switch {
	case t.Verdict == drivers.NotTried:
		st = NotTried
	case t.Verdict == drivers.Refused && t.For == "plan":
		st, next = Failed, "plan, check and import need it: give it to the account"
	case t.Verdict == drivers.Refused && t.For != "":
		st, next = Warning, t.For+" needs it; an account that is only to look is right without it"
	case t.Verdict == drivers.Allowed && t.For == "":
		next = "fabricctl does not need it: an account that may do less is in docs/security.md"
	}
	d.add(Privileges, t.Operation, st, said, next)
}

// ownership says what fabricctl would own, what somebody else has, and what could be taken over.
func (d *Diagnosis) ownership(s *Subject, live render.Config) {
	dialect := render.ByOS(s.OS)
	lifted, finds := dialect.Lift(live, *d.Facts)
	d.understood(live, lifted, finds)
	if s.Device == nil {
		if ours := objects(dialect, live, func(name string) bool { return strings.HasPrefix(strings.ToLower(name), render.Prefix+"-") }); len(ours) > 0 {
			d.add(Ownership, "objects", Warning, "a fabricctl has been here: "+few(ours), "ask its operators for their model, and give it with -f")
		}
		d.add(Ownership, "model", OK, "no Fabric was given: nothing is owned", "fabricctl import makes a model of what is there")
		return
	}
	d.owned(s, dialect, live, lifted)
}

// understood says how much of the configuration means something to fabricctl.
func (d *Diagnosis) understood(live render.Config, lifted map[string]intent.Policy, finds diag.List) {
	var known intent.Areas
	lossless := map[string]int{}
	for _, p := range lifted {
		known |= p.Known
		if ps := p.Lossless(); len(ps) > 0 {
			lossless[intent.Ranges(ps)]++
		}
	}
	text, _ := known.MarshalText()
	said := diag.Count(len(live), "setting") + ", " + diag.Count(len(lifted), "interface")
	if len(text) > 0 {
		said += "; it speaks about " + strings.ReplaceAll(string(text), " ", ", ")
	}
	for _, ps := range slices.Sorted(maps.Keys(lossless)) {
		said += fmt.Sprintf("; priority %s lossless on %d", ps, lossless[ps])
	}
	d.add(Ownership, "configuration", OK, said, "")
	for _, f := range finds.Sort() {
		if f.Severity > diag.Info {
			d.add(Ownership, "reading", Warning, strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(f.At, d.Name), ":")+": ", ": ")+f.Msg, f.Hint)
		}
	}
}

// owned says what the model owns on the device.
func (d *Diagnosis) owned(s *Subject, dialect *render.Dialect, live render.Config, lifted map[string]intent.Policy) {
	dev := s.Device.Bind(d.Facts.Aliases)
	f := *d.Facts
	var modes [3]intent.Areas // by mode
	ports := 0
	for i := range dev.Ports {
		p := &dev.Ports[i]
		if p.State != intent.Active || p.Role == "unused" {
			continue
		}
		ports++
		known := dev.PolicyOf(p).Known
		for a := range intent.NumAreas {
			if known.Has(a) {
				modes[p.Manage[a]] |= intent.AreaSet(a)
			}
		}
	}
	var said []string
	for _, m := range []intent.Mode{intent.Own, intent.Observe, intent.Ignore} {
		if text, _ := modes[m].MarshalText(); len(text) > 0 {
			said = append(said, m.String()+" "+strings.ReplaceAll(string(text), " ", ", "))
		}
	}
	next := ""
	if modes[intent.Own] == 0 {
		kind := "switches"
		if dev.Host {
			kind = "hosts"
		}
		next = "write manage: {" + kind + ": own}, or own for one area of one device, when that is to change"
	}
	d.add(Ownership, "areas", OK, fmt.Sprintf("on %s of the model: %s", diag.Count(ports, "port"), orElse(strings.Join(said, "; "), "nothing is asked")), next)
	if missing := notShown(&dev, lifted); len(missing) > 0 {
		d.add(Ownership, "ports", Warning, "the device does not show "+few(missing)+", which the model has", "correct the ports, or the nics of a host, in the inventory: apply refuses the device while it owns something there")
	}
	p := render.Look(dialect, dev, f, live)
	if modes[intent.Own] != 0 {
		said := fmt.Sprintf("%d of %d on the device are the model's to write, and apply would make %s", len(p.Owned), len(live), diag.Count(len(p.Changes), "change"))
		if len(s.held(f)) > 0 {
			said += " if nothing of it were held"
		}
		d.add(Ownership, "settings", OK, said, "")
	}
	if theirs := foreign(dialect, live, p.Own, lifted); len(theirs) > 0 {
		d.add(Ownership, "foreign", OK, "objects of other names in use, which are left as they are: "+few(theirs), "")
	}
	for _, c := range p.Collisions {
		d.add(Ownership, "collision", Warning, c, "apply refuses the device until that use is gone, or the model has another name")
	}
	names, why := render.Adopt(dialect, dev, f, live)
	if len(names) > 0 {
		d.add(Ownership, "adoption", OK, "could stand for ours, instead of new ones: "+few(adoptable(names)), "plan --adopt shows what that means")
	}
	for _, x := range why {
		d.add(Ownership, "adoption", OK, x.Msg, "")
	}
}

// notShown are the interfaces of active ports that a device does not show.
func notShown(dev *intent.Device, lifted map[string]intent.Policy) []string {
	var names []string
	for i := range dev.Ports {
		p := &dev.Ports[i]
		if _, ok := lifted[p.Iface]; !ok && p.Iface != "" && p.State == intent.Active {
			names = append(names, p.Iface)
		}
	}
	return names
}

// objects are the shared objects that live settings point at and that are there, whose name satisfies keep.
func objects(dialect *render.Dialect, live render.Config, keep func(name string) bool) []string {
	there := map[render.Key]bool{}
	for _, s := range live {
		there[s.Key.Whole()] = true
		there[render.Key{Object: s.Key.Scope}] = true // EOS: the mode is the scope of what stands in it
	}
	var out []string
	for _, s := range live {
		for _, r := range dialect.Refs(s.Key, s.Value) {
			name := r.Object[strings.LastIndexAny(r.Object, " |")+1:]
			if there[r] && keep(name) {
				out = append(out, strings.Trim(r.Scope+" "+r.Object, " "))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// foreign are the shared objects in use that the model does not own. The row of a port, which another row of it follows,
// is none.
func foreign(dialect *render.Dialect, live render.Config, own func(render.Key) bool, ports map[string]intent.Policy) []string {
	var out []string
	there := objects(dialect, live, func(name string) bool {
		_, port := ports[name]
		return !port
	})
	ours := map[render.Key]bool{} // objects of which a part at least is the model's
	for _, s := range live {
		if own(s.Key) {
			ours[s.Key.Whole()] = true
			ours[render.Key{Object: s.Key.Scope}] = true
		}
	}
	for _, s := range live {
		for _, r := range dialect.Refs(s.Key, s.Value) {
			if text := strings.Trim(r.Scope+" "+r.Object, " "); !own(r) && !ours[r] && slices.Contains(there, text) {
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func adoptable(names render.Names) []string {
	var out []string
	for k, live := range names {
		out = append(out, live+" for "+k.Object)
	}
	slices.Sort(out)
	return out
}

// few lists names, not too many.
func few(names []string) string {
	const most = 6
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// held is who holds the device or a port of it.
func (s *Subject) held(f render.Facts) []string {
	if s.Held == nil {
		return nil
	}
	return s.Held(f)
}

// command is a command of fabricctl, to go on with.
func (s *Subject) command(words ...string) string {
	if s.Command != nil {
		return s.Command(words...)
	}
	return "fabricctl " + strings.Join(words, " ")
}

// holds says who keeps fabricctl from writing to the device, also when it was not reached: that may be why.
func (d *Diagnosis) holds(s *Subject) {
	var f render.Facts
	if d.Facts != nil {
		f = *d.Facts
	}
	for _, h := range s.held(f) {
		d.add(Others, "hold", Warning, h, "plan and apply leave it out until then; "+s.command("hold", "list")+" shows all of them, hold release ends one")
	}
}

// others says who else works on the device, and what a reboot would lose.
func (d *Diagnosis) others(ctx context.Context, s *Subject, v *drivers.View) {
	for _, o := range d.Facts.Owners {
		d.add(Others, "owner", Warning, o, "apply refuses the device while that lasts")
	}
	txs, err := v.Pending(ctx)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		d.add(Others, "sessions", Failed, d.nameless(err), nextOfRefusal(err, "the account must be allowed to list sessions"))
	}
	for _, tx := range txs {
		switch tx.State {
		case drivers.TxTimed:
			said := fmt.Sprintf("transaction %s of a fabricctl has a commit timer running", tx.ID)
			if !tx.Deadline.IsZero() {
				said += ", until " + tx.Deadline.UTC().Format(time.RFC3339)
			}
			d.add(Others, "commit timer", Warning, said, s.command("runs", "list")+" shows whether it is one of ours; runs resume or runs rollback ends it")
		case drivers.TxOpen:
			d.add(Others, "session", Warning, fmt.Sprintf("transaction %s of a fabricctl is open", tx.ID), "apply refuses the device while it is there; abort it on the device if nobody is at work")
		}
	}
	saved, err := v.Saved(ctx)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		d.add(Others, "saved", Failed, d.nameless(err), nextOfRefusal(err, "the account must be allowed to compare running with startup"))
	case saved:
		d.add(Others, "saved", OK, "startup equals running", "")
	default:
		d.add(Others, "saved", Warning, "running differs from startup: a reboot loses the difference, and saving after apply saves it with the rest", "look at the difference on the device, and save it or take it back")
	}
	for _, n := range d.Facts.Notes {
		d.add(Others, "note", OK, n, "")
	}
}

// versions says what is known of the builds of a host's NICs, and where they differ among themselves.
func (d *Diagnosis) versions(s *Subject) {
	if s.Catalog == nil || len(d.Facts.NICs) == 0 {
		return
	}
	dev := intent.Device{Name: s.Name}
	if s.Device != nil {
		dev = *s.Device
	}
	for _, f := range s.Catalog.Fleet(render.Fitted(dev, *d.Facts, s.Catalog)) {
		d.add(Others, f.Rule, map[bool]Status{true: Failed, false: Warning}[f.Severity == diag.Error], f.Msg, f.Hint)
	}
}
