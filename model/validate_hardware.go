package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// hardware checks what the model asks of hardware against what is known of it. A line that is wrong for many ports is
// one finding.
func (v *validator) hardware() {
	type line struct {
		at   *Origin
		what string
	}
	said := map[line]bool{}
	once := func(at *Origin, what string) bool {
		l := line{at, what}
		again := said[l]
		said[l] = true
		return !again
	}
	for i := range v.f.Devices {
		d := &v.f.Devices[i]
		platform, _ := v.f.Catalog.Platform(d.Platform.V)
		for j := range d.Ports {
			p := &d.Ports[j]
			if hint := strange(d, p.Iface.V); p.Iface.Set && !p.Iface.Pos().IsZero() && hint != "" && once(p.Iface.From, "iface") {
				v.found.Errorf("value", p.Iface.Pos(), hint, "%s of %s is bound to %q, which is no interface name of %s", p.Name, d.Name, p.Iface.V, d.Platform.V)
			}
			if !d.Host {
				if most := platform.Speed / units.BitRate(max(p.Breakout, 1)); most > 0 && p.Speed.V > most && !(p.Breakout > 1 && unable(platform, p.Breakout)) && once(p.Speed.From, platform.Name) {
					v.tooFast(d, p, platform.Name, profiles.KindPlatform, "speed", most, d.Platform.From)
				}
				continue
			}
			if !p.NIC.Set {
				continue
			}
			nic, ok := v.f.Catalog.NIC(p.NIC.V)
			if !ok {
				if once(p.NIC.From, "unknown") {
					v.found.Errorf("nic", p.NIC.Pos(), nicHint(clip(p.NIC.V), v.f.Catalog.NamesOf(profiles.KindNIC))+
						" (or describe it in a document of kind Profile)", "unknown NIC %q", clip(p.NIC.V))
				}
				continue
			}
			if most := nic.Fastest(); most > 0 && p.Speed.V > most && once(p.Speed.From, nic.Name) {
				v.tooFast(d, p, nic.Name, profiles.KindNIC, "speeds", most, p.NIC.From)
			}
			if !nic.RoCEv2 && (p.Carries.V == 0 || p.Carries.V&CarriesRDMA != 0) && once(p.NIC.From, "roce") {
				v.noRoCE(d, p, nic)
			}
			if once(p.NIC.From, "limits") {
				v.limits(d, p, nic)
			}
			if most := nic.MaxMTU; most > 0 && v.f.MTU.Host.V > most && once(v.f.MTU.Host.From, nic.Name) {
				v.found.Add(diag.Finding{
					Rule: "value", Severity: diag.Error, Pos: v.f.MTU.Host.Pos(), Hint: "lower it to " + most.Exact() + v.mayBeWrong(profiles.KindNIC, nic.Name, "max_mtu"),
					Msg:     fmt.Sprintf("mtu.host: %s is more than the NIC %s takes, which is %s", v.f.MTU.Host.V.Exact(), nic.Name, most.Exact()),
					Related: []diag.Related{{Pos: p.NIC.Pos(), Msg: "the NIC is named here"}},
				})
			}
		}
	}
}

// strange says how interfaces are named on a device's system where iface is not named so; "" where it is, and where
// nobody knows.
func strange(d *Device, iface string) string {
	os, _, _ := strings.Cut(d.Platform.V, "/")
	number, front := strings.CutPrefix(iface, "Ethernet")
	switch {
	case misfit(d): // which is said
	case os == "sonic" && !(front && isDigits(number)):
		return "SONiC names front ports Ethernet and a number: show interfaces status lists them"
	case os == "eos" && !(front && isDigits(strings.ReplaceAll(number, "/", ""))):
		return "EOS names front ports Ethernet1/1, or Ethernet1: show interfaces status lists them"
	case os == "linux" && len(iface) > 15:
		return "Linux names have at most 15 characters: ip link lists them"
	}
	return ""
}

// tooFast reports a link that is faster than one of its ends. fact is what says how fast that end is.
func (v *validator) tooFast(d *Device, p *Port, name string, kind profiles.Kind, fact string, most units.BitRate, named *Origin) {
	what := "a port of " + name
	if kind == profiles.KindNIC {
		what = "the NIC " + name
	}
	if p.Breakout > 1 {
		what = fmt.Sprintf("one of %d parts of %s", p.Breakout, what)
	}
	hint := fmt.Sprintf("lower it to at most %s, or name faster hardware", most) + v.mayBeWrong(kind, name, fact)
	f := diag.Finding{
		Rule: "port-speed", Severity: diag.Error, Pos: p.Speed.Pos(), Hint: hint,
		Msg: fmt.Sprintf("%s at %s:%s is faster than %s, which does %s", p.Speed.V, d.Name, p.Name, what, most),
	}
	if at := named.At(); !at.IsZero() {
		f.Related = []diag.Related{{Pos: at, Msg: name + " is named here"}}
	}
	v.found.Add(f)
}

// mayBeWrong ends a hint: a number of the hardware that is not true can be corrected.
func (v *validator) mayBeWrong(kind profiles.Kind, name, fact string) string {
	e, _ := v.f.Catalog.Entry(kind, name)
	f, ok := e.Fact(fact)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; if that is not true of it, correct %s in a document of kind Profile: it is from %s", fact, f.From())
}

// noRoCE reports a NIC that cannot take part.
func (v *validator) noRoCE(d *Device, p *Port, nic profiles.NIC) {
	speaks := "no RoCE v2"
	if nic.IWARP {
		speaks = "iWARP and no RoCE v2"
	}
	v.found.Warningf("nic-roce", p.NIC.Pos(),
		"name the NIC that carries RDMA; if none does here, say so with carries, without rdma in it",
		"the NIC %s of %s:%s speaks %s, so it cannot exchange RDMA traffic with the others", nic.Name, d.Name, p.Name, speaks)
}

// limits reports classes that a NIC is known not to be able to keep apart.
func (v *validator) limits(d *Device, p *Port, nic profiles.NIC) {
	var lossless []*Class
	for i := range v.f.Classes {
		if c := &v.f.Classes[i]; c.Lossless.V {
			lossless = append(lossless, c)
		}
	}
	named := []diag.Related{{Pos: p.NIC.Pos(), Msg: fmt.Sprintf("the NIC of %s:%s is named here", d.Name, p.Name)}}
	if most := nic.MaxLossless; most > 0 && len(lossless) > most {
		c := lossless[most]
		v.found.Add(diag.Finding{
			Rule: "nic-limits", Severity: diag.Warning, Pos: c.Lossless.Pos(), Related: named,
			Msg:  fmt.Sprintf("%d lossless classes, but the NIC %s is known to do PFC for no more than %d at once", len(lossless), nic.Name, most),
			Hint: fmt.Sprintf("make %s lossy, or name another NIC", c.Name) + v.mayBeWrong(profiles.KindNIC, nic.Name, "max_lossless"),
		})
	}
	if most := nic.TrafficClasses; most > 0 && len(v.f.Classes) > most {
		v.found.Add(diag.Finding{
			Rule: "nic-limits", Severity: diag.Info, Pos: v.f.Classes[most].Pos, Related: named,
			Msg:  fmt.Sprintf("%d classes, but the NIC %s has %d traffic classes: some share a queue there", len(v.f.Classes), nic.Name, most),
			Hint: "lossless classes and notifications keep one of their own; explain and plan say which share" + v.mayBeWrong(profiles.KindNIC, nic.Name, "traffic_classes"),
		})
	}
	for i := range v.f.Classes {
		c := &v.f.Classes[i]
		if most := nic.MaxPriority; most.OK && c.Priority.Set && c.Priority.V > most.V {
			v.found.Add(diag.Finding{
				Rule: "nic-limits", Severity: diag.Warning, Pos: c.Priority.Pos(), Related: named,
				Msg:  fmt.Sprintf("class %s has priority %d, but the NIC %s can map code points to priorities up to %d only", c.Name, c.Priority.V, nic.Name, most.V),
				Hint: v.lowerPriority(c.Name, most.V) + v.mayBeWrong(profiles.KindNIC, nic.Name, "max_priority"),
			})
		}
	}
}

// lowerPriority is the hint that moves a class to a priority of at most most.
func (v *validator) lowerPriority(class string, most uint8) string {
	for p := range most + 1 {
		if !slices.ContainsFunc(v.f.Classes, func(c Class) bool { return c.Priority.Set && c.Priority.V == p }) {
			return fmt.Sprintf("give %s priority %d, which is free, or name another NIC", class, p)
		}
	}
	return fmt.Sprintf("name another NIC: the priorities up to %d all have a class", most)
}
