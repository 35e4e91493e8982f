package render

import (
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// eosOwned says what the model owns on a device.
//
//   - An interface: that it is there, MTU and binding, and whatever of trust, PFC, link pause (where a priority is lossless), watchdog and the queues of named
//     classes stands there directly, since it would override the profile.
//   - A profile of this fabric: all of it. An adopted profile: the owned areas, in the queues of named classes.
//   - The maps and watchdog timers are one for the whole device, also for ports that the model does not know. They
//     are owned when every port of the device that counts has the area own: code points that the model maps,
//     traffic classes that it names, and the timers if it has a watchdog. Render refuses ports that disagree. So is the
//     line that switches PFC off everywhere, if a class is lossless: it is only ever taken away.
//
// Lines of other kinds are never owned.
type eosOwned struct {
	fabric   string
	queue    string // "uc-tx-queue"
	iface    map[string]intent.Areas
	adopted  map[string]intent.Areas // by mode line of the profile
	device   intent.Areas
	profiles bool // some port is bound by us
	class    [8]bool
	queues   [8]bool         // queues of named classes
	marking  [8]bool         // queues of classes that mark
	lossless bool            // some class is
	pause    map[string]bool // interfaces whose link pause the model has a say in: where a priority is lossless
	watchdog bool
	dscp     [64]bool
}

func eosOwns(d intent.Device, f Facts) func(Key) bool { return eosOwnedOf(d, f).owns }

func eosOwnedOf(d intent.Device, f Facts) *eosOwned {
	o := &eosOwned{fabric: d.Fabric, queue: eosQueueWord(&d), iface: map[string]intent.Areas{}, adopted: map[string]intent.Areas{}, pause: map[string]bool{}}
	for i, name := range d.Classes {
		o.class[i] = name != ""
	}
	if slices.ContainsFunc(d.Ports, eosCounts) {
		o.device = intent.SwitchAreas
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		if eosCounts(*p) {
			o.device &= p.Manage.Owned()
		}
		if p.State != intent.Absent && p.Iface != "" { // it has its lines in a profile of ours
			o.watchdog = o.watchdog || d.PolicyOf(p).Watchdog.On
		}
		if p.State == intent.Active && p.Iface != "" && d.State == intent.Active {
			o.port(&d, f, p)
		}
	}
	if d.State != intent.Active {
		o.device = 0
	}
	return o
}

// eosCounts reports whether p has a say in what the whole device does: ports that the model leaves alone have none.
func eosCounts(p intent.Port) bool {
	return (p.State == intent.Active || p.State == intent.Maintenance) && p.Role != "unused"
}

func (o *eosOwned) port(d *intent.Device, f Facts, p *intent.Port) {
	own := p.Manage.Owned() & intent.SwitchAreas
	o.iface[eosPort(p.Iface)] = own
	if own&intent.AreaSet(eosBundle...) != 0 {
		o.profiles = true
	}
	if profile, adopted := eosProfile(d, f, rampSite(p)); adopted {
		if old, ok := o.adopted[profile]; ok {
			own &= old
		}
		o.adopted[profile] = own
	}
	pol := d.PolicyOf(p)
	o.pause[eosPort(p.Iface)] = len(pol.Lossless()) > 0 || pol.Pause != (intent.Pause{})
	for i, tc := range pol.DSCP {
		o.dscp[i] = o.dscp[i] || tc <= 7
	}
	for i, q := range pol.TCQueue {
		if q <= 7 && o.class[i] {
			o.queues[q] = true
			o.marking[q] = o.marking[q] || pol.Queues[i].ECN.On
		}
		o.lossless = o.lossless || pol.Queues[i].Lossless
	}
}

func (o *eosOwned) owns(k Key) bool {
	path := eosPath(k.Scope)
	if len(path) == 0 {
		if own, ok := o.adopted[k.Object]; ok {
			return own != 0
		}
		if o.ours(k.Object) || o.iface[k.Object] != 0 {
			return true
		}
		area, ok := eosArea(k)
		return ok && o.device.Has(area) && o.names(k)
	}
	if o.ours(path[0]) {
		return true
	}
	own, bound := o.iface[path[0]], true
	if own == 0 {
		own, bound = o.adopted[path[0]], false
	}
	if own == 0 || !o.names(k) {
		return false
	}
	switch {
	case len(path) == 1 && k.Object == eosBinding:
		return bound && own&intent.AreaSet(eosBundle...) != 0
	case len(path) == 1 && eosQueue.MatchString(k.Object):
		n, _ := number(eosQueue, k.Object)
		return own.Has(intent.AreaScheduler) || own.Has(intent.AreaECN) && o.marking[n]
	case k.Object == eosCount && !bound:
		return false
	}
	area, ok := eosArea(k)
	return ok && own.Has(area)
}

// ours reports whether mode is a profile of this fabric, on a device where we bind profiles.
func (o *eosOwned) ours(mode string) bool {
	name, ok := strings.CutPrefix(mode, eosProfileMode)
	return ok && o.profiles && ownName(eosNameLimit, eosNameRune, o.fabric, name)
}

// names reports whether the model names the code point, class, priority, queue or watchdog that k is about.
func (o *eosOwned) names(k Key) bool {
	for i, mode := range eosPath(eosInside(k.Scope, k.Object)) {
		if n, ok := number(eosQueue, mode); ok && i > 0 {
			return strings.HasPrefix(mode, o.queue+" ") && o.queues[n]
		}
	}
	if n, ok := number(eosDSCPHead, k.Object); ok {
		return n < 64 && o.dscp[n]
	}
	if n, ok := number(eosTCHead, k.Object); ok {
		return o.class[n]
	}
	if n, ok := number(eosPrioHead, k.Object); ok {
		return o.class[n]
	}
	switch {
	case k.Object == eosPFC, k.Object == eosAllOff:
		return o.lossless
	case eosIsPause(k.Object):
		return o.pause[eosTop(k.Scope)]
	case strings.HasPrefix(k.Object, eosWatchdog):
		return o.watchdog
	}
	return true
}

// eosArea is the area that a line belongs to; ok is false for lines outside all of them, for mode lines and for
// bindings, which belong to several.
func eosArea(k Key) (area intent.Area, ok bool) {
	path := eosPath(k.Scope)
	switch {
	case len(path) == 0:
		switch k.Object {
		case eosTimeout, eosRecovery, eosPolling, eosAction:
			return intent.AreaWatchdog, true
		case eosAllOff:
			return intent.AreaPFC, true
		}
		_, dscp := number(eosDSCPHead, k.Object)
		_, tc := number(eosTCHead, k.Object)
		return intent.AreaMaps, dscp || tc
	case !strings.HasPrefix(path[0], eosInterfaceMode) && !strings.HasPrefix(path[0], eosProfileMode):
		return 0, false
	case len(path) == 2 && eosQueue.MatchString(path[1]):
		return eosQueueArea(k.Object)
	case len(path) > 1:
		return 0, false
	}
	switch k.Object {
	case eosMTU:
		return intent.AreaMTU, true
	case eosTrust:
		return intent.AreaMaps, true
	case eosPFC, eosSend, eosReceive:
		return intent.AreaPFC, true
	case eosWatchdog, eosTimer, eosPortAct:
		return intent.AreaWatchdog, true
	}
	return intent.AreaPFC, eosPrioHead.MatchString(k.Object)
}

func eosQueueArea(object string) (area intent.Area, ok bool) {
	switch {
	case object == eosPriority || object == eosShare:
		return intent.AreaScheduler, true
	case object == eosECN || object == eosCount || eosIsDrop(object):
		return intent.AreaECN, true
	}
	return 0, false
}

// eosIsDrop reports whether a line has the queue drop early instead of marking.
func eosIsDrop(object string) bool { return strings.HasPrefix(object, "random-detect drop ") }
