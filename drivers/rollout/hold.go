package rollout

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// ErrHeld is the cause of a refusal to write to a device or port that somebody holds: here, or, as a host itself
// says, there.
var ErrHeld = drivers.ErrHeld

// HoldsDir is where the holds of a state directory are, for journal.SetHold and its companions.
func HoldsDir(stateDir string) string { return filepath.Join(stateDir, "holds") }

// Left is what a plan leaves out because of holds. No operations mean that the device could not be read, so that nobody
// knows.
type Left struct {
	Ops       Ops         `json:"ops"`
	Behaviour []Behaviour `json:"behaviour,omitempty"`
}

// holdSet are holds that are in force. Those of other fabrics than the one at work name it.
type holdSet []journal.Hold

// Held finds the holds that are in force at the time now on a device of a fabric, or on ports of it: what a plan would
// leave out. A device that no model names is found by its serial number and address.
func Held(stateDir string, now time.Time, fabric string) (func(*intent.Device, render.Facts) []journal.Hold, error) {
	hs, err := inForce(stateDir, now, fabric)
	if err != nil {
		return nil, err
	}
	return func(d *intent.Device, f render.Facts) []journal.Hold { return hs.of(d, f) }, nil
}

func (e *Engine) holds(fabric string) (holdSet, error) { return inForce(e.StateDir, e.Now(), fabric) }

// inForce are all holds that are in force in the state directory: models may share a device, or be renamed.
func inForce(stateDir string, now time.Time, fabric string) (holdSet, error) {
	all, err := journal.AllHolds(HoldsDir(stateDir))
	if err != nil {
		return nil, err
	}
	var hs holdSet
	for _, of := range all {
		for _, h := range of.Holds {
			if h.Fabric = of.Fabric; of.Fabric == fabric {
				h.Fabric = ""
			}
			if h.Active(now) {
				hs = append(hs, h)
			}
		}
	}
	return hs, nil
}

// holding is a host that knows what it leaves alone: by its own state, which other operators may have set.
type holding interface {
	Holds(context.Context) ([]journal.Hold, error)
}

// with adds what a host, d, leaves alone to what is held here. A hold that is in both is the one here.
func (hs holdSet) with(ctx context.Context, dev drivers.Device, d *intent.Device) (holdSet, error) {
	on, ok := dev.(holding)
	if !ok {
		return hs, nil
	}
	far, err := on.Holds(ctx)
	if err != nil {
		return hs, fmt.Errorf("holds: %w", err)
	}
	for _, h := range far {
		if h.Serial, h.Address = "", d.Address; h.Fabric == d.Fabric { // it is on d, whatever its own model calls that
			h.Fabric = ""
		}
		if !slices.ContainsFunc(hs, func(o journal.Hold) bool { return o.Fabric == h.Fabric && o.Device == h.Device && o.Port == h.Port }) {
			hs = append(slices.Clip(hs), h)
		}
	}
	return hs, nil
}

// of are the holds on a device and its ports, interfaces by the device's own names as far as f tells them: it is zero
// when the device was not reached.
func (hs holdSet) of(d *intent.Device, f render.Facts) holdSet {
	var out holdSet
	for _, h := range hs {
		if holdsOn(&h, d, cmp.Or(f.Serial, d.Serial)) {
			h.Iface = cmp.Or(f.Aliases[h.Iface], h.Iface)
			out = append(out, h)
		}
	}
	return out
}

// holdsOn reports whether h is on d, or a port of d: by the names of our model, or else because it is the same box. Where
// both serial numbers are known, an address that was given to another box does not count.
func holdsOn(h *journal.Hold, d *intent.Device, serial string) bool {
	switch {
	case h.Fabric == "" && h.Device == d.Name:
		return true
	case h.Serial != "" && serial != "":
		return h.Serial == serial
	}
	return h.Address != "" && h.Address == d.Address
}

// whole reports whether one of the holds is on all of d. False when only ports of d are held, or nothing.
func (hs holdSet) whole(d *intent.Device) bool {
	return slices.ContainsFunc(hs, func(h journal.Hold) bool { return wholly(d, h) })
}

// wholly reports whether a hold is on all of d: on the device, or on a port that the model does not know, since nobody
// can say then which one is meant.
func wholly(d *intent.Device, h journal.Hold) bool { return h.Port == "" || len(heldPorts(d, h)) == 0 }

// heldPorts are the ports of d that a hold is about: by the model's name, unless another model gave it, and by the
// interface. These are two when the inventory has bound the name to another interface since.
func heldPorts(d *intent.Device, h journal.Hold) []*intent.Port {
	var ps []*intent.Port
	for i := range d.Ports {
		if p := &d.Ports[i]; h.Fabric == "" && p.Name == h.Port || h.Iface != "" && p.Iface == h.Iface {
			ps = append(ps, p)
		}
	}
	return ps
}

// heldIfaces are the interfaces of d that a hold on a port is about, also one that no port of the model has any more.
func heldIfaces(d *intent.Device, h journal.Hold) []string {
	var names []string
	if h.Iface != "" {
		names = append(names, h.Iface)
	}
	for _, p := range heldPorts(d, h) {
		if p.Iface != "" && p.Iface != h.Iface {
			names = append(names, p.Iface)
		}
	}
	return names
}

// without is d with the held ports taken for ports in maintenance: looked at, and not written.
func (hs holdSet) without(d intent.Device) intent.Device {
	if len(hs) == 0 {
		return d
	}
	d.Ports = slices.Clone(d.Ports)
	for _, h := range hs {
		for _, p := range heldPorts(&d, h) {
			if p.State == intent.Active {
				p.State = intent.Maintenance
			}
		}
	}
	return d
}

// stepsAround computes the steps of a device of which something is held, and what they leave out. With a hold on all of
// it, or when the steps would move a held port by way of something that it shares with others, everything is left out.
// The steps as if nothing were held are returned besides.
func (dp *DevicePlan) stepsAround(hs holdSet, dialect *render.Dialect, d intent.Device, f render.Facts, live render.Config) (free []Step) {
	dp.Held = hs
	full := *dp
	full.Findings = slices.Clone(dp.Findings)
	full.steps(dialect, d, f, live)
	whole := hs.whole(&d)
	if !whole {
		dp.steps(dialect, hs.without(d), f, live)
		whole = slices.ContainsFunc(hs, func(h journal.Hold) bool { return movesPort(dialect, f, live, dp.Steps, heldIfaces(&d, h)) })
		if whole {
			full.Findings.Add(diag.Finding{Rule: "held", Severity: diag.Info, At: d.Name, Msg: "all of it is left out: what would change is shared with a port that is held"})
		}
	}
	if whole {
		ops, behaviour, steps := full.Ops, full.Behaviour, full.Steps
		*dp = full
		dp.Ops, dp.Behaviour, dp.Steps, dp.Risks, dp.Cut, dp.Intent, dp.Blocked = Ops{}, nil, nil, nil, nil, nil, false
		for i := range dp.Findings { // what would refuse a write is no error where nothing is written
			dp.Findings[i].Severity = min(dp.Findings[i].Severity, diag.Warning)
		}
		dp.leave(ops, behaviour)
		return steps
	}
	left := Ops{full.Ops.Add - dp.Ops.Add, full.Ops.Set - dp.Ops.Set, full.Ops.Remove - dp.Ops.Remove}
	var behaviour []Behaviour
	for _, b := range full.Behaviour {
		b.Ports = slices.DeleteFunc(slices.Clone(b.Ports), func(iface string) bool {
			return !slices.ContainsFunc(hs, func(h journal.Hold) bool { return slices.Contains(heldIfaces(&d, h), iface) })
		})
		if len(b.Ports) > 0 {
			behaviour = append(behaviour, b)
		}
	}
	dp.leave(left, behaviour)
	return full.Steps
}

func (dp *DevicePlan) leave(ops Ops, behaviour []Behaviour) {
	if ops.Total() > 0 {
		dp.Left = &Left{ops, behaviour}
	}
}

// movesPort reports whether steps change what one of the ports does, or write to something that is called like it, or
// like the bond that it is in: the system sets a bond's members along with it.
func movesPort(d *render.Dialect, f render.Facts, live render.Config, steps []Step, ifaces []string) bool {
	was, will := live, live
	called := slices.Clone(ifaces)
	for _, iface := range ifaces {
		if n, ok := f.NIC(iface); ok && n.Bond != "" {
			called = append(called, n.Bond)
		}
	}
	for _, s := range slices.Backward(steps) {
		was = render.Apply(was, s.Undo)
	}
	for _, s := range steps {
		will = render.Apply(will, s.Changes)
		for _, c := range s.Changes {
			if names(c.Key, called) {
				return true
			}
		}
	}
	a, _ := d.Lift(was, f)
	b, _ := d.Lift(will, f)
	return slices.ContainsFunc(ifaces, func(iface string) bool { return a[iface] != b[iface] })
}

// names reports whether a key is made of names of which one of the interfaces is one.
func names(k render.Key, ifaces []string) bool {
	return slices.ContainsFunc(k.Words(), func(w string) bool { return slices.Contains(ifaces, w) })
}

// LeftGroups are what a plan leaves out because of holds.
func LeftGroups(p *Plan) []Group {
	return grouped(p, func(d *DevicePlan) []Behaviour {
		if d.Left == nil {
			return nil
		}
		return d.Left.Behaviour
	})
}

// LeftOut names the devices of which the plan leaves something out because of holds, or may do so.
func (p *Plan) LeftOut() []string {
	var names []string
	for _, d := range p.Devices {
		if d.Left != nil {
			names = append(names, d.Name)
		}
	}
	return names
}

// heldWords says who keeps a device as it is, and what that leaves out.
func (d *DevicePlan) heldWords() string {
	var why []string
	for _, h := range d.Held {
		why = append(why, h.String())
	}
	said := strings.Join(why, "; ")
	switch {
	case d.Left == nil:
		return said
	case d.Left.Ops.Total() == 0:
		return said + "; it could not be read, so nobody knows what is left out"
	}
	return fmt.Sprintf("%s; settings left out: %d", said, d.Left.Ops.Total())
}

// freeToWrite refuses a run that would write to a device on which there is a hold now, whole or on a port that its
// steps move by their own account; before each write it is looked at again. again is what to do later.
func (e *Engine) freeToWrite(p *Plan, works func(device string) bool, again string) error {
	hs, err := e.holds(p.Fabric)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	var why []string
	for i := range p.Devices {
		d := &p.Devices[i]
		if len(d.Steps) == 0 || !works(d.Name) {
			continue
		}
		for _, h := range hs.of(d.Intent, d.Facts) {
			if wholly(d.Intent, h) || d.shows(heldIfaces(d.Intent, h)) {
				why = append(why, h.String())
			}
		}
	}
	if len(why) == 0 {
		return nil
	}
	return &RefusedError{Reason: "nothing was written: " + strings.Join(why, "; "), Hint: again, Err: ErrHeld}
}

// shows reports whether the plan says that one of these ports of the device changes.
func (d *DevicePlan) shows(ifaces []string) bool {
	return slices.ContainsFunc(d.Behaviour, func(b Behaviour) bool {
		return slices.ContainsFunc(b.Ports, func(p string) bool { return slices.Contains(ifaces, p) })
	}) || slices.ContainsFunc(d.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Changes, func(c render.Change) bool { return names(c.Key, ifaces) })
	})
}
