package netlink

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// sensed is what a NIC says of its settings.
type sensed struct {
	cfg   render.Config
	knobs []string // what answered, or can be made
	notes []string // getters that failed in another way than by not being there
}

// sense reads every setting of a NIC. A knob that the NIC does not have gives nothing, which is not off. The MTU is left
// to the caller: every link has one.
func (d *Device) sense(ctx context.Context, n *nic) (sensed, error) {
	r := reading{d: d, n: n}
	r.dcb()
	r.ethtool(ctx)
	r.knobs(ctx)
	if n.hw.pci != "" && n.hw.vfOf == "" {
		if v, ok := d.maxReadRequest(n.hw.pci); ok {
			r.put("pci.max-read-request", render.Key{Scope: scopePCI, Object: n.Name, Field: "max-read-request"}, strconv.Itoa(v))
		}
		if v, ok := d.affinity(n.hw.pci); ok {
			r.put("irq", render.Key{Scope: scopeIRQ, Object: n.Name, Field: "affinity"}, v)
		}
	}
	r.out.cfg = r.out.cfg.Sorted()
	slices.Sort(r.out.knobs)
	r.out.knobs = slices.Compact(r.out.knobs)
	return r.out, ctx.Err()
}

// reading is a sense under way.
type reading struct {
	d   *Device
	n   *nic
	out sensed
}

func (r *reading) has(knob string) { r.out.knobs = append(r.out.knobs, knob) }

func (r *reading) put(knob string, k render.Key, value string) {
	r.has(knob)
	r.out.cfg = append(r.out.cfg, render.Setting{Key: k, Value: value})
}

// failed notes an error, unless it is how the kernel says that there is nothing.
func (r *reading) failed(what string, err error) {
	if err == nil || is(err, syscall.EOPNOTSUPP, syscall.ENODEV, syscall.EINVAL) {
		return
	}
	r.out.notes = append(r.out.notes, fmt.Sprintf("%s: %s: %v", r.n.Name, what, err))
}

func (r *reading) dcb() {
	s := r.n.dcb
	if s == nil {
		return
	}
	r.out.cfg = append(r.out.cfg, dcbSettings(r.n.Name, s)...)
	for _, x := range []struct {
		knob  string
		shown bool
	}{
		{"pfc", s.PFC != nil},
		{"ets", s.ETS != nil},
		{"app", s.Apps != nil},
		{"buffer", s.Buffer != nil},
		{"maxrate", s.MaxRate != nil},
		{"dcbx", s.DCBX != nil},
	} {
		if x.shown {
			r.has(x.knob)
		}
	}
}

func (r *reading) ethtool(ctx context.Context) {
	if r.d.cfg.Ethtool == nil {
		return
	}
	link := r.n.Name
	e := ethLink{r.d.cfg.Ethtool, link}
	key := func(scope, field string) render.Key { return render.Key{Scope: scope, Object: link, Field: field} }
	if p, err := e.pause(ctx); err == nil {
		r.put("pause", key(scopePause, "autoneg"), onOff(p.autoneg))
		r.put("pause", key(scopePause, "receive"), onOff(p.rx))
		r.put("pause", key(scopePause, "send"), onOff(p.tx))
	} else {
		r.failed("link pause", err)
	}
	if g, _, err := e.rings(ctx); err == nil {
		r.put("ring", key(scopeRing, "rx"), strconv.FormatUint(uint64(g.rx), 10))
		r.put("ring", key(scopeRing, "tx"), strconv.FormatUint(uint64(g.tx), 10))
	} else {
		r.failed("rings", err)
	}
	if f, err := e.fec(ctx); err == nil {
		r.put("fec", key(scopeFEC, "mode"), f)
	} else if err != errNoFEC {
		r.failed("FEC", err)
	}
	if r.n.per.LLDPFlag == "" {
		return
	}
	names, on, err := e.flags(ctx)
	if i := slices.Index(names, r.n.per.LLDPFlag); err == nil && i >= 0 {
		r.put("flag."+names[i], key(scopeFlag, names[i]), onOff(on&(1<<i) != 0))
	} else {
		r.failed("private flags", err)
	}
}

func (r *reading) knobs(ctx context.Context) {
	io := r.d.knobIO(r.n)
	for _, k := range r.n.per.Knobs {
		scope, _, _ := strings.Cut(k.Name, ".")
		if slices.Contains(r.out.knobs, scope) {
			continue // dcbnl shows it, and counts
		}
		v, ok, err := io.read(ctx, k.Knob)
		if ok && slices.Contains(profiles.Objects(), scope) {
			r.has(scope)
		}
		switch {
		case err != nil:
			r.out.notes = append(r.out.notes, fmt.Sprintf("%s: %s: %v", r.n.Name, k.Name, err))
		case ok:
			r.put(k.Name, knobKey(r.n.Name, k.Name), v)
		case io.can(k.Knob):
			r.has(k.Name)
		}
	}
}

func (d *Device) knobIO(n *nic) knobIO { return knobIO{tree: d.tree, run: d.cfg.Run, at: n.place()} }

// settings reads everything: MTUs, NICs, files.
func (d *Device) settings(ctx context.Context) (render.Config, *machine, error) {
	m, err := d.look(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	c, err := d.fileSettings()
	if err != nil {
		return nil, nil, err
	}
	for _, l := range m.links {
		if !l.Loopback {
			c = append(c, render.Setting{Key: mtuKey(l.Name), Value: strconv.FormatUint(uint64(l.MTU), 10)})
		}
	}
	for _, n := range m.nics {
		if n.per.Status == profiles.Unsupported {
			continue
		}
		s, err := d.sense(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		c = append(c, s.cfg...)
	}
	return c.Sorted(), m, nil
}
