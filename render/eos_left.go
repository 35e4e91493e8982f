package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// eosLeft is the counters of marks of queues that a profile of ours still marks and the model does not name any more:
// they stand on the ports, outside of the profile. What stands in somebody else's profile, and the watchdog's timers,
// may be anybody's: it stays, and is said.
func eosLeft(d intent.Device, f Facts, live Config) ([]Key, diag.List) {
	if d.State != intent.Active {
		return nil, nil
	}
	o := eosOwnedOf(d, f)
	x := &eosRemains{d: &d, f: f, o: o, live: eosLifter{c: live}}
	l := x.lossless()
	l.Add(x.timers()...)
	var keys []Key
	for _, s := range live {
		path := eosPath(s.Key.Scope)
		if s.Key.Object != eosCount || len(path) != 2 || o.owns(s.Key) {
			continue
		}
		i := slices.IndexFunc(d.Ports, func(p intent.Port) bool { return eosPort(p.Iface) == path[0] && p.State == intent.Active })
		if i < 0 || !d.Ports[i].Manage.Owned().Has(intent.AreaECN) {
			continue
		}
		name := live.Get(eosInside("", path[0]), eosBinding, "")
		queue := eosInside(eosInside("", eosProfileMode+name), path[1])
		_, marks := live.Find(Key{queue, eosECN, "minimum-threshold"})
		if marks && ownName(eosNameLimit, eosNameRune, d.Fabric, name) {
			keys = append(keys, s.Key)
		}
	}
	return keys, l.Sort()
}

// eosRemains finds lines that still act on ports of the model after a plan, though the model does not ask for them.
type eosRemains struct {
	d    *intent.Device
	f    Facts
	o    *eosOwned
	live eosLifter
}

// ports are the ports whose lines the model writes in area a.
func (x *eosRemains) ports(a intent.Area) []*intent.Port {
	var ps []*intent.Port
	for i := range x.d.Ports {
		if p := &x.d.Ports[i]; p.Iface != "" && eosActsOn(p, a) {
			ps = append(ps, p)
		}
	}
	return ps
}

// line is what an object is on p after the plan, as far as the model does not write it: on the interface, or in the
// profile that the model binds.
func (x *eosRemains) line(p *intent.Port, object string) (value, mode string) {
	profile, _ := eosProfile(x.d, x.f, rampSite(p))
	for _, mode := range []string{eosPort(p.Iface), profile} {
		k := Key{eosInside("", mode), object, ""}
		if v, ok := x.live.c.Find(k); ok && !x.o.owns(k) {
			return v, mode
		}
	}
	return "", ""
}

// lossless says which priorities without a class are lossless, and stay so.
func (x *eosRemains) lossless() diag.List {
	if x.live.stands("", eosAllOff) && !x.o.owns(Key{"", eosAllOff, ""}) {
		return nil
	}
	var on [8]struct{ ports, modes []string }
	for _, p := range x.ports(intent.AreaPFC) {
		if v, _ := x.line(p, eosPFC); v != "on" && len(x.d.PolicyOf(p).Lossless()) == 0 {
			continue
		}
		for prio, class := range x.d.Classes {
			if v, mode := x.line(p, eosNoDrop(prio)); class == "" && v == "no-drop" {
				on[prio].ports, on[prio].modes = append(on[prio].ports, p.Iface), append(on[prio].modes, mode)
			}
		}
	}
	var l diag.List
	for prio, at := range on {
		if len(at.ports) == 0 {
			continue
		}
		l.Add(diag.Finding{
			Rule: "stays-lossless", Severity: diag.Info, At: x.d.Name,
			Msg: fmt.Sprintf("priority %d is lossless on %s; no class of the model has it, and it stays so", prio, strings.Join(sortedPorts(at.ports), ", ")),
			Hint: fmt.Sprintf("remove %q from %s by hand if nobody needs it, and then the lines of its queue, or name a class with it",
				eosNoDrop(prio)+" no-drop", strings.Join(sortedPorts(at.modes), ", ")),
		})
	}
	return l
}

// timers says that the watchdog's timers stay, which belong to the whole device, when no port of the model has a
// watchdog any more. Nothing about them tells who wrote them.
func (x *eosRemains) timers() diag.List {
	if x.o.watchdog || !x.o.device.Has(intent.AreaWatchdog) {
		return nil
	}
	var lines, watched []string
	for _, object := range []string{eosAction, eosPolling, eosRecovery, eosTimeout} {
		if v, ok := x.live.c.Find(Key{"", object, ""}); ok {
			lines = append(lines, strconv.Quote(eosLine(object, v)))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	for _, p := range x.ports(intent.AreaWatchdog) {
		if v, mode := x.line(p, eosWatchdog); mode != "" && v != "no" {
			watched = append(watched, p.Iface)
		}
	}
	acts := "whether EOS watches ports by these alone is not verified"
	if len(watched) > 0 {
		acts = strings.Join(sortedPorts(watched), ", ") + " stay watched by lines of their own or of their profile"
	}
	return diag.List{{
		Rule: "watchdog-timers-stay", Severity: diag.Info, At: x.d.Name,
		Msg:  fmt.Sprintf("%s stay: no port of the model has a watchdog, and they may be somebody else's; %s", strings.Join(lines, ", "), acts),
		Hint: "remove them by hand if nobody needs them",
	}}
}
