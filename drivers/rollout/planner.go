package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Waves of this version: hosts that lower their MTU, then switches, then the other hosts, so that no host sends what
// the switches do not carry, or not yet.
const (
	waveLowering = 1
	waveSwitches = 2
	waveHosts    = 3
)

// Plan reads the devices of net and says what would bring them to it. A device that cannot be read, or that must not
// be written, is part of the plan and says why; the error is only that ctx ended. The same devices and the same clock
// give the same bytes: drift is a Plan that nobody applies.
func (e *Engine) Plan(ctx context.Context, net *intent.Net, o PlanOptions) (*Plan, error) {
	p := &Plan{
		Schema: PlanSchema, Tool: e.Tool, Fabric: net.Fabric, Model: o.Model, Created: e.Now().UTC(), Lab: o.Lab,
		Adopt: o.Adopt, Devices: make([]DevicePlan, len(net.Devices)),
	}
	held, err := e.holds(net.Fabric)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o.thinking, o.alike = make(chan struct{}, runtime.GOMAXPROCS(0)), new(twins)
	outlook := make([]outlooks, len(net.Devices))
	slots := make(chan struct{}, e.parallel())
	var wg sync.WaitGroup
	for i, d := range net.Devices {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			p.Devices[i], outlook[i] = e.planDevice(ctx, d, held, o)
		})
	}
	wg.Wait()
	p.Finds = e.Rules.outcome(o.Fabric, net, outlook, p.LeftOut(), e.command("hold", "list"))
	if err := context.Cause(ctx); err != nil {
		var silent []string
		for _, d := range p.Devices {
			if d.Error != "" {
				silent = append(silent, d.Name)
			}
		}
		if len(silent) == 0 {
			return nil, fmt.Errorf("plan: %w", err)
		}
		return nil, fmt.Errorf("plan: %w; not read: %s", err, strings.Join(silent, ", "))
	}
	p.Finds = append(p.Finds, fleet(o.Fabric, net, p.Devices)...).Sort()
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if o.Outlook != nil {
		now, after := net.With(nil), net.With(nil)
		for i := range outlook {
			now.Devices, after.Devices = append(now.Devices, outlook[i].now), append(after.Devices, outlook[i].after)
		}
		o.Outlook(now, after)
	}
	return p, nil
}

// planDevice plans one device, and says what it does now and later.
func (e *Engine) planDevice(ctx context.Context, d intent.Device, all holdSet, o PlanOptions) (dp DevicePlan, look outlooks) {
	dp = DevicePlan{harmless: o.Harmless, spare: o.Spare, Name: d.Name, OS: d.OS(), Platform: d.Platform, Host: d.Host, Verified: d.Profile.Verified}
	dp.Mode, dp.Reason = mode(&d)
	unknown := intent.Join(d, nil)
	look = outlooks{now: unknown, after: unknown, free: unknown}
	if dp.Mode == Skipped {
		return dp, look
	}
	if err := e.read(ctx, d, all, o, &dp, &look); err != nil {
		held := all.of(&d, dp.Facts)
		msg := diag.OneLine(err.Error())
		dp.Steps = nil
		switch {
		case held.whole(&d):
			dp.Held, dp.Left = held, &Left{}
			dp.Findings = append(dp.Findings, diag.Finding{Rule: "not-read", Severity: diag.Warning, At: d.Name, Msg: msg})
		case errors.Is(err, drivers.ErrIdentity) && dp.Mode == Write:
			dp.stranger(&d, err)
		case dp.Mode == Watch:
			f := diag.Finding{Rule: "not-read", Severity: diag.Info, At: d.Name, Msg: msg}
			if d.State == intent.Active {
				f.Severity = diag.Warning
			}
			dp.Findings.Add(f)
		default:
			dp.Error = msg
		}
	}
	dp.Findings = dp.Findings.Sort()
	look.refused = dp.Blocked
	return dp, look
}

// mode says what a plan does with a device, and why if it is not to write.
func mode(d *intent.Device) (Mode, string) {
	switch d.State {
	case intent.Planned, intent.Absent:
		return Skipped, d.State.String()
	case intent.Maintenance:
		return Watch, d.State.String()
	}
	owned := d.Manage.Owned()
	for i := range d.Ports {
		if d.Ports[i].State == intent.Active {
			owned |= d.Ports[i].Manage.Owned()
		}
	}
	if owned == 0 {
		return Watch, "nothing is owned"
	}
	return Write, ""
}

func (dp *DevicePlan) block(rule, msg string) {
	dp.Blocked = true
	dp.Findings.Add(diag.Finding{Rule: rule, Severity: diag.Error, At: dp.Name, Msg: msg})
}

// stranger blocks a device that is not the one of the inventory, with the one line to change if it was replaced.
func (dp *DevicePlan) stranger(d *intent.Device, err error) {
	who := (*drivers.IdentityError)(nil)
	if !errors.As(err, &who) {
		dp.block("identity", diag.OneLine(err.Error()))
		return
	}
	f := diag.Finding{Rule: "identity", Severity: diag.Error, At: dp.Name, Msg: fmt.Sprintf("%v: %s", drivers.ErrIdentity, who.What), Pos: d.Known.Hostname}
	if who.Key == "serial" {
		f.Pos = d.Known.Serial
	}
	where := "under devices." + d.Name + " in the inventory"
	if !f.Pos.IsZero() {
		where = "at " + f.Pos.String()
	}
	f.Hint = fmt.Sprintf("if it was replaced, or is the right one all the same, write %s %s", who.Line(), where)
	dp.Blocked = true
	dp.Findings.Add(f)
}

// read is the pass over one device: facts, identity, owners, configuration, adoption, and the difference.
func (e *Engine) read(ctx context.Context, d intent.Device, all holdSet, o PlanOptions, dp *DevicePlan, look *outlooks) (err error) {
	dialect := e.Dialect(dp.OS)
	if dialect == nil {
		return fmt.Errorf("%s: no dialect is called %q", d.Name, dp.OS)
	}
	dev, err := e.Open(ctx, d.Name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil || !e.Lines.keep(dev, dp) {
			dev.Close()
		}
	}()
	f, caps, err := dev.Facts(ctx)
	if err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	dp.Facts, dp.Caps = f, caps
	if err := identify(&d, f); err != nil {
		return err
	}
	live, err := dev.Read(ctx)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	d = d.Bind(f.Aliases)
	if all, err = all.with(ctx, dev, &d); err != nil {
		return err
	}
	o.thinking <- struct{}{}
	think := sync.OnceFunc(func() { <-o.thinking })
	defer think()
	held := all.of(&d, f)
	lifted, finds := dialect.Lift(live, f)
	finds = observed(&d, lifted, finds, dp.Mode)
	dp.Findings.Add(finds...)
	dp.Observed = observedOf(&d, lifted, dp.Mode)
	look.now = dialect.Joined(d, live, lifted)
	look.after, look.free = look.now, look.now
	defer func() {
		if len(dp.Steps) > 0 {
			look.after = outlook(dialect, &d, f, live, dp.Steps)
		}
		if len(held) == 0 {
			look.free = look.after
		}
	}()
	if dp.Mode == Watch {
		return nil
	}
	if o.Adopt {
		names, finds := render.Adopt(dialect, d, f, live)
		dp.Findings.Add(finds...)
		if len(names) > 0 {
			dp.Adopted, f.Names = names, names
		}
	}
	if len(held) > 0 {
		look.free = outlook(dialect, &d, f, live, dp.stepsAround(held, dialect, d, f, live))
	} else {
		dp.steps(dialect, d, f, live)
		if !o.Adopt {
			dp.adopting(dialect, d, f, live)
		}
	}
	if o.Adopt {
		render.AdoptedInVain(dp.Findings)
	}
	if held.whole(&d) {
		return nil
	}
	if finds.HasErrors() { // ports that are to be written and are not there
		dp.Blocked, dp.Steps = true, nil
	}
	if len(f.Owners) > 0 {
		dp.refuse("owner", "somebody else configures it: "+strings.Join(f.Owners, "; "))
	}
	o.alike.share(dp.Steps)
	think()
	if err := e.waiting(ctx, dev, dp); err != nil {
		return err
	}
	return dp.unsaved(ctx, dev)
}

// waiting refuses a device that will take its configuration back, whatever it holds now, and warns of transactions
// for which apply would refuse it.
func (e *Engine) waiting(ctx context.Context, dev drivers.Device, dp *DevicePlan) error {
	c, ok := dev.(drivers.Confirmer)
	if !ok {
		return nil
	}
	txs, err := c.Pending(ctx)
	if err != nil {
		return fmt.Errorf("pending transactions: %w", err)
	}
	for _, tx := range txs {
		st := storyOf(e.StateDir, tx.ID)
		switch {
		case tx.State == drivers.TxTimed:
			msg := fmt.Sprintf("transaction %s has a commit timer running, which will take the configuration back", tx.ID)
			if !tx.Deadline.IsZero() {
				msg += " at " + tx.Deadline.UTC().Format(time.RFC3339)
			}
			switch id := runOf(tx.ID); {
			case st == nil:
				msg += "; it stands in no journal here, so another operator may be at work"
			case st.head.Options.Trial != "":
				msg += fmt.Sprintf("; it is a trial of experiment %s, and \"%s\" ends it", st.head.Options.Trial, e.command("runs", "rollback", id))
			default:
				msg += fmt.Sprintf("; \"%s\" or \"%s\" ends it", e.command("runs", "resume", id), e.command("runs", "rollback", id))
			}
			dp.refuse("pending-timer", msg)
		case st == nil:
			dp.Findings.Add(diag.Finding{Rule: "open-transaction", Severity: diag.Warning, At: dp.Name, Msg: fmt.Sprintf(
				"transaction %s is open, looks like ours and stands in no journal here: apply refuses the device while it is there", tx.ID)})
		}
	}
	return nil
}

// refuse blocks a device that would otherwise have been written.
func (dp *DevicePlan) refuse(rule, msg string) {
	dp.block(rule, msg)
	dp.Steps = nil
}

// unsaved warns of a running configuration that a reboot would lose, or that saving after apply would save with the rest.
func (dp *DevicePlan) unsaved(ctx context.Context, dev drivers.Device) error {
	saver, ok := dev.(drivers.Saver)
	if !ok {
		return nil
	}
	saved, err := saver.Saved(ctx)
	if err != nil {
		return fmt.Errorf("saved: %w", err)
	}
	if saved {
		return nil
	}
	msg := "the running configuration differs from startup already; saving after apply saves that too"
	if len(dp.Steps) == 0 {
		msg = "the running configuration differs from startup: a reboot loses the difference; save it on the device"
	}
	dp.Findings.Add(diag.Finding{Rule: "unsaved", Severity: diag.Warning, At: dp.Name, Msg: msg})
	return nil
}

// steps computes the ordered transactions of a device, their undo and what they risk.
func (dp *DevicePlan) steps(dialect *render.Dialect, d intent.Device, f render.Facts, live render.Config) {
	p := render.Look(dialect, d, f, live)
	if dp.harmless || dp.spare != nil {
		dp.Kept = p.Spare(dialect, f, live, dp.harmless, dp.spare)
	}
	dp.Findings.Add(p.Stays...)
	dp.Findings.Add(p.Findings...)
	j := judge{d: dialect, f: f, own: p.Own}
	dp.Live = j.fingerprint(p.Owned)
	cs := p.Changes
	for _, k := range p.Used {
		dp.Findings.Add(diag.Finding{Rule: "still-used", Severity: diag.Info, At: d.Name, Msg: fmt.Sprintf(
			"%s stays: the model does not ask for it any more, but something that the model does not own still uses it", k)})
	}
	dp.Ops = opsOf(cs)
	if len(cs) == 0 {
		return
	}
	dp.Risks = p.Risks
	dp.Cut = cutOf(&d, dp.Risks)
	behaviour, lowersMTU := behaviourOf(dialect, &d, f, live, cs)
	dp.Behaviour = behaviour
	d.Origins = nil
	dp.Intent = &d
	phases := render.Phases(dialect, cs)
	at, print := p.Owned, dp.Live
	for i, phase := range phases {
		s := Step{Device: d.Name, Changes: phase, Undo: render.Undo(phase), Before: print, Wave: waveSwitches, Why: why(i, len(phases), phase)}
		switch {
		case d.Host && lowersMTU:
			s.Wave = waveLowering
		case d.Host:
			s.Wave = waveHosts
		}
		at = render.Apply(at, phase)
		print = j.fingerprint(at)
		s.After = print
		dp.Steps = append(dp.Steps, s)
	}
	if p.Findings.HasErrors() {
		dp.Blocked, dp.Steps = true, nil
	}
	for _, msg := range p.Collisions {
		dp.refuse("name-collision", msg)
	}
	var last *diag.Finding
	for _, r := range dp.Risks {
		if r.Class == render.Refused {
			dp.refuse("refused-by-device", r.Why)
			last = &dp.Findings[len(dp.Findings)-1]
		}
	}
	if last != nil { // one way out of all of them
		last.Hint = "set that on the device by hand, as fabricctl render has it, and plan again: what it holds already is not written"
	}
}

// adopting counts what a plan of the device with adoption would change, for who forgot to ask for it. Objects to adopt
// are looked for only where others would be created.
func (dp *DevicePlan) adopting(dialect *render.Dialect, d intent.Device, f render.Facts, live render.Config) {
	if dp.Ops.Add == 0 || dp.Blocked {
		return
	}
	names, _ := render.Adopt(dialect, d, f, live)
	if len(names) == 0 {
		return
	}
	f.Names = names
	p := render.Look(dialect, d, f, live)
	if p.Refused() != "" {
		return
	}
	ops := opsOf(p.Changes)
	dp.Adopting = &ops
}

// opsOf counts changes by kind.
func opsOf(cs []render.Change) Ops {
	var n Ops
	for _, c := range cs {
		switch c.Op {
		case render.Add:
			n.Add++
		case render.Modify:
			n.Set++
		case render.Remove:
			n.Remove++
		}
	}
	return n
}

// why says what makes a step one of several.
func why(i, n int, cs []render.Change) string {
	switch {
	case n == 1:
		return "one transaction"
	case cs[0].Op == render.Remove && cs[len(cs)-1].Op == render.Remove:
		return fmt.Sprintf("transaction %d of %d: removals that must be gone first", i+1, n)
	}
	return fmt.Sprintf("transaction %d of %d: one transaction cannot hold a safe order", i+1, n)
}

// others says which NICs a host has that the model does not name: after a swap, one of them is meant.
func others(d *intent.Device, lifted map[string]intent.Policy) string {
	var names []string
	for _, iface := range slices.Sorted(maps.Keys(lifted)) {
		if d.Host && d.Port(iface) == nil {
			names = append(names, iface)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("it shows %s, which the model does not name: correct the nics of %s in the inventory", strings.Join(names, ", "), d.Name)
}

// observed is what l, the findings of lifting what a device holds, and its ports say about it: shown, never planned.
func observed(d *intent.Device, lifted map[string]intent.Policy, l diag.List, m Mode) diag.List {
	for i := range l {
		l[i].Severity = min(l[i].Severity, diag.Warning) // what is on a device does not block its own repair
		l[i].At = cmp.Or(l[i].At, d.Name)
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.Iface == "" || p.State == intent.Planned || p.State == intent.Absent {
			continue
		}
		at := d.Name + ":" + p.Iface
		if _, ok := lifted[p.Iface]; !ok {
			f := diag.Finding{
				Rule: "no-such-port", Severity: diag.Warning, At: at, Hint: others(d, lifted),
				Msg: "the device does not show port " + p.Iface + " (" + p.Name + " in the model)",
			}
			if !d.Host && m == Write && p.State == intent.Active && p.Manage.Owned() != 0 {
				f.Severity = diag.Error
				f.Hint = "bind " + p.Name + " to the interface that is meant, under its ports in the inventory; or say state: planned for it until it is there"
			}
			l.Add(f)
		}
	}
	return l
}
