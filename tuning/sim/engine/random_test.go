package engine_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// draw gives numbers from 0 to n-1: rapid's, a fuzzer's bytes, or those of a generator with a seed.
type draw func(n int) int

func (d draw) chance(percent int) bool { return d(100) < percent }

// between is a number from lo to hi.
func (d draw) between(lo, hi int) int { return lo + d(hi-lo+1) }

func pick[T any](d draw, from ...T) T { return from[d(len(from))] }

// seeded draws the same numbers for the same seed, on any machine.
func seeded(seed uint64) draw { return rand.New(rand.NewPCG(seed, 1)).IntN }

// Kinds of packets in random fabrics, and the priority that is their group and their queue.
const (
	markLossless  = 0
	markLossy     = 1
	markCNP       = 2
	markLossless2 = 3
	markUnknown   = 4 // no port takes it

	prioLossy     = 0
	prioLossless  = 3
	prioLossless2 = 4
	prioCNP       = 6
)

// random is a fabric that could be built, small, with any of the engine's features.
type random struct {
	*engine.Config
	d draw
	// Sound: no buffer is too small for what it promises and all switches keep to pauses, so a lossless group drops nothing for want of headroom,
	// unless the NIC at its link is deaf to it.
	Sound bool
}

// deaf are the groups, as bits by port, of what a NIC sends by a queue that their pauses do not stop, as a host does whose maps are not those of its
// switch: answers that go with the data's mark, which makes a group of them at the switch, and by a queue of the NIC's own choice. Of them,
// as much arrives as is sent, and no headroom is enough. Switches further on have them in a queue that can be stopped.
func (r *random) deaf() []uint8 {
	groups := make([]uint8, len(r.Ports))
	for i := range r.Flows {
		f := &r.Flows[i]
		from := f.Dst
		if f.Read {
			from = f.Src
		}
		nic := &r.Ports[r.NICs[from].Port]
		group := r.Ports[nic.Peer].Classify[f.Mark].Group
		if f.Answers > 0 && group != engine.None && nic.Obeys[group]>>(f.Answers-1)&1 == 0 {
			groups[nic.Peer] |= 1 << group
		}
	}
	return groups
}

// unsound says where a fabric that is sound dropped for want of headroom.
func (r *random) unsound(res *engine.Result) (found []string) {
	deaf := r.deaf()
	for i := range res.Ports {
		for g := range r.Ports[i].Groups {
			if n := res.Ports[i].Groups[g].Drops; r.Sound && r.Ports[i].Groups[g].Lossless && deaf[i]>>g&1 == 0 && n > 0 {
				found = append(found, fmt.Sprintf("port %d dropped %d frames of group %d for want of headroom", i, n, g))
			}
		}
	}
	return found
}

const onWire = 24 // bytes of a frame besides its own

// randomFabric draws one. All draws are made in the same order, so that a fuzzer's bytes keep their meaning.
func randomFabric(d draw) *random {
	r := &random{d: d, Sound: d.chance(60), Config: &engine.Config{
		Compat: d.chance(15), Seed: uint64(d(1 << 16)), Overhead: pick[int32](d, onWire, onWire, 0), Stop: engine.Time(d.between(20, 200)) * engine.Microsecond,
	}}
	if r.Compat {
		r.Sound = false // the reference's hosts answer in spite of pauses
	}
	r.topology()
	r.Transport = engine.Transport{
		AckSize: pick[int32](d, 60, 64), CNPSize: 64, PauseSize: 64, Header: pick[int32](d, 48, 82), AckEvery: pick[int32](d, 1, 1, 2, 16),
		RTO: pick[engine.Time](d, 0, 60, 100) * engine.Microsecond, NackGap: pick[engine.Time](d, 0, 10, 500) * engine.Microsecond,
	}
	r.buffers()
	r.nics()
	for range d.between(1, 10) {
		r.flow()
	}
	if d.chance(30) {
		r.Measure = r.Stop / 3
	}
	if d.chance(30) {
		r.Sample = engine.Time(d.between(1, 20)) * engine.Microsecond
		r.Watch = []engine.QueueRef{{Port: d(len(r.Ports)), Queue: prioLossless}}
	}
	return r
}

// topology draws switches with links between them, and NICs below them.
func (r *random) topology() {
	d := r.d
	up := func(sw int) int {
		p := len(r.Ports)
		r.Ports = append(r.Ports, engine.Port{Switch: sw, Peer: p ^ 1})
		return p
	}
	link := func(a, b int, rate int64, delay engine.Time) {
		p, q := up(a), up(b)
		for _, i := range []int{p, q} {
			r.Ports[i].Rate, r.Ports[i].Delay = rate, delay
		}
	}
	rate := pick[int64](d, 10e9, 25e9, 100e9, 400e9)
	delay := func() engine.Time { return engine.Time(d.between(0, 1000)) * engine.Nanosecond }
	switches := d.between(1, 4)
	for i := range switches {
		r.Switches = append(r.Switches, engine.Switch{HashSeed: uint32(i + 1), OnEntry: d.chance(20)})
	}
	leaves := switches
	switch d(3) {
	case 0: // a chain, or one switch
		for i := 1; i < switches; i++ {
			link(i-1, i, rate, delay())
		}
	case 1: // a ring when there are enough
		for i := range switches {
			if j := (i + 1) % switches; switches > 2 || j > i {
				link(i, j, rate, delay())
			}
		}
	default: // the first ones are spines
		spines := max(1, switches/2)
		leaves = switches - spines
		for s := range spines {
			for l := range leaves {
				link(spines+l, s, rate, delay())
				if d.chance(20) {
					link(spines+l, s, rate, delay())
				}
			}
		}
		if leaves == 0 {
			leaves = 1
		}
	}
	slow := pick[int64](d, 1, 1, 1, 4)
	for i := range d.between(2, 6) {
		link(switches-1-i%leaves, engine.None, rate/slow, delay())
		r.NICs = append(r.NICs, engine.NIC{Port: len(r.Ports) - 1, Address: uint32(i + 1), CNPMark: markCNP, CNPClass: prioCNP})
	}
}

// buffers gives every port classes, groups and queues, and every switch enough for them.
func (r *random) buffers() {
	d := r.d
	const frame = 4096 + 82
	quanta := pick[int32](d, 0, 65535, 2000)
	reaction := engine.Time(d.between(0, 800)) * engine.Nanosecond
	alpha := pick[int64](d, 1<<10, 1<<13, 1<<16, 1<<18)
	marks, onlyOne := d.chance(70), d.chance(50)
	kmin := int64(d.between(2_000, 100_000))
	static := d.chance(20)
	watchdog := engine.Watchdog{Poll: 5 * engine.Microsecond, Detect: 20 * engine.Microsecond, Restore: 20 * engine.Microsecond, Queues: 1<<prioLossless | 1<<prioLossless2}
	watchdog.Action = pick(d, engine.WatchdogOff, engine.WatchdogOff, engine.WatchdogAlert, engine.WatchdogForward, engine.WatchdogDrop)
	if r.Sound && watchdog.Action == engine.WatchdogForward {
		watchdog.Action = engine.WatchdogAlert // what is sent on in spite of a pause finds no headroom
	}
	short := d.between(1, 8) // of headroom, in eighths, where not all is sound
	pool := int64(d.between(100_000, 1_000_000))
	for i := range r.Switches {
		r.Switches[i].Pools = []engine.Pool{{Size: pool}, {Size: int64(d.between(50_000, 500_000))}}
	}
	needs := make([]int64, len(r.Switches))
	for i := range r.Ports {
		p := &r.Ports[i]
		for q := range p.Queues {
			p.Obeys[q] = 1 << q
			p.Queues[q].Weight = int32(d.between(4200, 20_000))
		}
		p.Quanta, p.Reaction = quanta, reaction
		for m := range p.Classify {
			p.Classify[m] = engine.Class{Group: engine.None, Queue: prioLossy}
		}
		for m, prio := range map[int]int8{markLossless: prioLossless, markLossless2: prioLossless2, markLossy: prioLossy, markCNP: prioCNP} {
			p.Classify[m] = engine.Class{Group: prio, Queue: prio}
		}
		if p.Switch == engine.None {
			continue
		}
		// A pause is owed from the moment at which a frame is over the threshold. What arrives from then on is headroom: until it is on the wire, as
		// much as the frame that the port is sending, and the pause of the other class before it; then the pause itself, the way there, the
		// reaction, and the way back of what is on it; and the frame that the peer has begun. The frame that is over as the first is shared, and
		// headroom too only where the pool has no room for it. A pause ends no sooner than headroom is empty, so that the next one finds all of it.
		// That no more PFC frames wait than those two holds as long as groups do not pause and resume with each small packet: see queueFrame.
		flight := 2*p.Delay + reaction
		need := int64(flight/1000)*(p.Rate/1e6)/8000 + 3*(frame+onWire) + 2*(64+onWire)
		for _, prio := range []int{prioLossless, prioLossless2} {
			g := engine.Group{Lossless: true, Reserved: 4096, Alpha: alpha, Headroom: need, XonOffset: int64(d(8000))}
			if static {
				g.Static = pool / int64(2*len(r.Ports))
			}
			if !r.Sound {
				g.Headroom = need * int64(short) / 8
			}
			p.Groups[prio] = g
			needs[p.Switch] += need
			q := &p.Queues[prio]
			q.Marks, q.Kmin, q.Kmax, q.Pmax = marks, kmin, 4*kmin, 0.2
		}
		for _, prio := range []int{prioLossy, prioCNP} {
			p.Groups[prio] = engine.Group{Pool: 1, Reserved: 1024, Alpha: alpha}
			p.Queues[prio].Pool, p.Queues[prio].Alpha = 1, 1<<16
		}
		lossy := &p.Queues[prioLossy]
		lossy.Drops, lossy.Kmin, lossy.Kmax, lossy.Pmax = onlyOne, kmin, 2*kmin, 0.1
		if onlyOne {
			lossy.Limit = 3 * kmin
		}
		p.Queues[prioCNP].Strict = true
		p.Watchdog = watchdog
		if !r.Sound && d.chance(10) {
			p.MTU = 1600
		}
		if !r.Sound && d.chance(5) {
			p.Obeys[prioLossless] = 0 // its neighbour's pauses go unheard
		}
	}
	if d.chance(30) {
		for i := range r.Switches {
			r.Switches[i].Headroom = needs[i]
			if !r.Sound {
				r.Switches[i].Headroom = needs[i]/int64(d.between(1, 8)) + 1
			}
		}
	}
}

func (r *random) nics() {
	d := r.d
	react := engine.Reaction{
		On: d.chance(80), CutOnCNP: d.chance(50), AlphaTimer: pick[engine.Time](d, 1, 55) * engine.Microsecond, CutTimer: pick[engine.Time](d, 4, 50) * engine.Microsecond,
		RateTimer: pick[engine.Time](d, 20, 55, 300) * engine.Microsecond, ByteCounter: pick[int64](d, 0, 100_000, 10<<20), FastRecovery: pick(d, 1, 5), G: pick(d, 1.0/256, 1.0/16),
		AI: 40e6, HAI: 400e6, MinRate: pick[int64](d, 10e6, 1e9), ClampTarget: d.chance(50),
	}
	for i := range r.NICs {
		n := &r.NICs[i]
		n.React = react
		n.CNPGap, n.CNPWait = pick[engine.Time](d, 0, 4, 50)*engine.Microsecond, pick[engine.Time](d, 0, 1)*engine.Microsecond
		if d.chance(10) {
			n.Drain, n.Buffer, n.Xoff, n.Xon = r.Ports[n.Port].Rate/int64(d.between(2, 10)), 200_000, 50_000, 20_000
		}
		if d.chance(10) {
			from := engine.Time(d.between(0, 50)) * engine.Microsecond
			n.Storms = []engine.Storm{{From: from, To: from + engine.Time(d.between(1, 80))*engine.Microsecond, Priorities: 1 << prioLossless}}
		}
	}
}

func (r *random) flow() {
	d := r.d
	f := engine.Flow{
		Src: d(len(r.NICs)), Start: engine.Time(d(20_000)) * engine.Nanosecond, After: engine.None, SourcePort: uint16(d(1 << 16)),
		Payload: pick[int32](d, 64, 1000, 1024, 4096),
	}
	f.Dst = (f.Src + d.between(1, len(r.NICs)-1)) % len(r.NICs)
	if d.chance(50) { // most go to one
		f.Dst = 0
		f.Src = max(f.Src, 1)
	}
	switch d(10) {
	case 0, 1, 2:
		f.Mark, f.Class = markLossy, prioLossy
	case 3, 4:
		f.Mark, f.Class = markLossless2, prioLossless2
	case 5:
		if !r.Sound {
			f.Mark, f.Class = markUnknown, prioLossy
			break
		}
		fallthrough
	default:
		f.Mark, f.Class = markLossless, prioLossless
	}
	if d.chance(70) {
		f.Bytes = int64(d.between(1, 500_000))
	}
	if d.chance(30) {
		f.Message, f.Depth = int64(d.between(1, 20_000)), int32(d.between(0, 8))
		if r.Compat {
			f.Message = max(f.Message, 64) // shorter ones take less than a nanosecond at 400 Gbps, which is refused
		}
	}
	f.Answers = int8(pick[int](d, 0, 0, 0, 1+prioLossless, 1+prioLossy))
	f.Read = d.chance(10)
	if n := len(r.Flows); n > 0 && d.chance(15) {
		if after := d(n); r.Flows[after].Bytes > 0 {
			f.After = after
		}
	}
	r.Flows = append(r.Flows, f)
}
