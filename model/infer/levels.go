package infer

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// place is where a value of a model stands: for the fabric (the zero place), a role, a device or a port.
type place struct{ role, device, port string }

// above is the next wider place.
func (p place) above() place {
	switch {
	case p.port != "":
		p.port = ""
	case p.device != "":
		p.device = ""
	default:
		p.role = ""
	}
	return p
}

// placement is where the model gives a value; a place without one has that of the place above.
type placement[V comparable] map[place]V

// at is the value that holds at p.
func (m placement[V]) at(p place) V {
	for {
		if v, ok := m[p]; ok || p == (place{}) {
			return v
		}
		p = p.above()
	}
}

// inherited is the value that p would have without one of its own.
func (m placement[V]) inherited(p place) V {
	if p == (place{}) {
		var none V
		return none
	}
	return m.at(p.above())
}

// place puts what the votes say at the widest places where it is right for most: the fabric, then roles, devices and
// ports that differ. can reports whether an override turns one value into another; where it cannot, what is above
// holds, and the comparison at the end says so. A value that one role has and another has none of is given by role.
func placed[V comparable](votes []vote, says func(vote) (V, bool), can func(from, to V) bool) placement[V] {
	return placedBy(votes, most(says), can)
}

// choice is the value that a place gets for what is voted there; false when nobody says anything.
type choice[V comparable] func([]vote) (V, bool)

// most chooses what most votes say.
func most[V comparable](says func(vote) (V, bool)) choice[V] {
	return func(votes []vote) (V, bool) {
		x, _, of := majority(votes, says)
		return x, of > 0
	}
}

// placedBy is placed with a choice other than that of the majority.
func placedBy[V comparable](votes []vote, choose choice[V], can func(from, to V) bool) placement[V] {
	m := placement[V]{}
	all, ok := choose(votes)
	if !ok {
		return m
	}
	byRole, roles := grouped(votes, func(v vote) place { return place{role: v.dev.Role} })
	var off V
	for _, r := range roles {
		if x, ok := choose(byRole[r]); ok && !can(all, x) {
			all = off
		}
	}
	m[place{}] = all
	for _, r := range roles {
		m.add(r, byRole[r], choose, can)
		byDevice, devices := grouped(byRole[r], func(v vote) place { return place{v.dev.Role, v.dev.Name, ""} })
		for _, d := range devices {
			m.add(d, byDevice[d], choose, can)
			byPort, ports := grouped(byDevice[d], func(v vote) place { return place{v.dev.Role, v.dev.Name, v.port.Name} })
			for _, p := range ports {
				m.add(p, byPort[p], choose, can)
			}
		}
	}
	return m
}

// add gives p what most of its votes say, where that differs from above and can be said.
func (m placement[V]) add(p place, votes []vote, choose choice[V], can func(from, to V) bool) {
	x, ok := choose(votes)
	if above := m.at(p.above()); ok && x != above && can(above, x) {
		m[p] = x
	}
}

// grouped splits votes by a place, in the order in which places are met.
func grouped(votes []vote, by func(vote) place) (groups map[place][]vote, order []place) {
	groups = map[place][]vote{}
	for _, v := range votes {
		p := by(v)
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], v)
	}
	return groups, order
}

// levels places every value that an override can change.
func (d *draft) levels() {
	mtu := func(v vote) (units.Bytes, bool) { return v.pol.MTU, v.pol.Known.Has(intent.AreaMTU) && v.pol.MTU > 0 }
	d.mtu = placed(d.ports, mtu, always[units.Bytes])
	d.hostMTU = placed(d.nics, mtu, always[units.Bytes])
	d.words = placed(d.nics, d.wordsOf, canTell)
	_, d.mtuSeen = d.mtu[place{}]
	_, d.nicSeen = d.hostMTU[place{}]
	for i := range d.ecn {
		d.ecn[i] = placed(d.ports, func(v vote) (intent.ECN, bool) {
			e := v.pol.Queues[i].ECN
			return e, v.pol.Known.Has(intent.AreaECN) && d.class(uint8(i)) != nil
		}, func(_, to intent.ECN) bool { return to.On })
	}
	for i := range d.buffers {
		if c := d.class(uint8(i)); c != nil && c.lossless {
			d.buffers[i] = placedBy(inside(d.ports), bufferOf(i), func(from, to intent.Buffer) bool { return to.On || from == to })
		}
	}
	for _, v := range d.ports {
		d.weights = d.weights || v.pol.Known.Has(intent.AreaScheduler) && sum(d.sharesOf(v.pol)) > 100
	}
	d.shares = placed(slices.Concat(d.ports, d.nics), func(v vote) ([8]uint8, bool) {
		s := d.sharesOf(v.pol)
		return s, v.pol.Known.Has(intent.AreaScheduler) && (!v.dev.Host || sum(s) > 0) // a NIC that nobody has set says nothing
	}, canShare)
	if d.hasLossless() {
		d.dog = placed(inside(d.ports), func(v vote) (intent.Watchdog, bool) {
			w := v.pol.Watchdog
			w.Skips = 0 // a model's watchdog watches what is lossless
			return w, v.pol.Known.Has(intent.AreaWatchdog)
		}, canWatch)
		if w := d.dog[place{}]; w.On && !canWatch(intent.Watchdog{}, w) {
			delete(d.dog, place{})
		}
	}
}

// bufferOf chooses a buffer of a priority for ports of which none leaves it to its device: that is what the model means
// where it says nothing, and under a place that says something no override takes that back.
func bufferOf(priority int) choice[intent.Buffer] {
	says := func(v vote) (intent.Buffer, bool) {
		return v.pol.Queues[priority].Buffer, v.pol.Known.Has(intent.AreaBuffer)
	}
	return func(votes []vote) (intent.Buffer, bool) {
		if slices.ContainsFunc(votes, func(v vote) bool { b, ok := says(v); return ok && b.Device }) {
			return intent.Buffer{}, true
		}
		return most(says)(votes)
	}
}

func always[V any](V, V) bool { return true }

// class is the class of a priority, nil when the model has none.
func (d *draft) class(priority uint8) *class {
	if i := slices.IndexFunc(d.classes, func(c class) bool { return c.priority == priority }); i >= 0 {
		return &d.classes[i]
	}
	return nil
}

// sharesOf is the weights of the classes that the model has as weighted ones.
func (d *draft) sharesOf(p *intent.Policy) (s [8]uint8) {
	for _, c := range d.classes {
		if c.used && !c.strict {
			s[c.priority] = p.Queues[c.priority].Weight
		}
	}
	return s
}

// canShare: an override gives a class another share, but cannot take its share away.
func canShare(from, to [8]uint8) bool {
	for i := range from {
		if from[i] > 0 && to[i] == 0 {
			return false
		}
	}
	return true
}

func sum(s [8]uint8) (n int) {
	for _, w := range s {
		n += int(w)
	}
	return n
}

// canWatch: an override changes a watchdog or switches it on, but cannot switch it off or take its polling away.
func canWatch(from, to intent.Watchdog) bool {
	return to.On && to.Action != intent.ActionNone && to.Detect > 0 && to.Restore > 0 && (to.Poll > 0 || from.Poll == 0)
}

// exceptions counts the devices and ports that differ from their role.
func (d *draft) exceptions() int {
	at := map[place]bool{}
	for p := range d.places() {
		if p.device != "" {
			at[p] = true
		}
	}
	return len(at)
}

// places are all places at which the model says something.
func (d *draft) places() map[place]bool {
	at := map[place]bool{}
	collect(at, d.mtu)
	collect(at, d.hostMTU)
	collect(at, d.words)
	for i := range d.ecn {
		collect(at, d.ecn[i])
		collect(at, d.buffers[i])
	}
	collect(at, d.shares)
	collect(at, d.dog)
	return at
}

func collect[V comparable](at map[place]bool, m placement[V]) {
	for p := range m {
		at[p] = true
	}
}
