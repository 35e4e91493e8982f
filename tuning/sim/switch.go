package sim

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// Sizes of frames, without FCS: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4. The first packet of a message has a RETH of 16
// besides (InfiniBand Architecture Specification, annex A17).
const (
	etherHeader   = 14
	ipv4Header    = 20
	ipv6Header    = 40
	roceHeader    = 8 + 12 + 4 // UDP, BTH, ICRC
	rethHeader    = 16
	aethHeader    = 4
	cnpPayload    = 16 // reserved bytes of a CNP
	pauseFrame    = 60
	frameOverhead = 24 // FCS 4, preamble 8, gap 12
	smallestFrame = 60
)

// pauseQuanta is how long a pause lasts unless it is refreshed or ended: as long as the frame can say (IEEE 802.1Qbb).
const pauseQuanta = 65535

// quantumBits is a quantum of pause time (IEEE 802.3 31B).
const quantumBits = 512

// reaction is how long a port takes to obey a pause.
func reaction(speed int64) engine.Time {
	quanta := derive.StandardDelays(units.BitRate(speed)).Quanta
	return engine.Time(quanta * quantumBits * (int64(engine.Second) / 1000) / (speed / 1000))
}

// portsOf gives the ports what their policies say.
func (b *builder) portsOf() {
	for i := range b.ports {
		x, c := &b.ports[i], &b.Config.Ports[i]
		c.Reaction, c.Quanta = reaction(c.Rate), pauseQuanta
		c.MTU = b.frameLimit(x)
		b.pauses(i)
		b.queues(i)
		if x.dev.Host {
			for g := range c.Groups { // a NIC that is slow pauses
				c.Groups[g].Lossless = x.pol.Queues[g].Lossless && !b.options.NoPause
			}
			continue
		}
		b.groups(i)
		b.dog(i)
	}
	for i := range b.ports {
		x := &b.ports[i]
		if first := &b.ports[b.portOf[[2]int{b.at[x.dev.Name], 0}]]; !x.dev.Host && first.dev == x.dev && first.pol.TCQueue != x.pol.TCQueue {
			b.assume.say("packets are queued by the map of the port that they come in by, where ports of one switch have different ones", b.name(i))
		}
	}
	b.assume.say("ports obey a pause after the longest time that IEEE 802.3 31B.3.7 allows", "")
}

// frameLimit is the largest frame of a port, without the RETH that the first packet of a message has: a port that takes full
// packets, and not the first of them, takes no full message.
func (b *builder) frameLimit(x *port) int32 {
	switch {
	case x.pol.MTU <= 0:
		return 0
	case x.dev.Host:
		return int32(min(x.pol.MTU, 1<<20)) + etherHeader - rethHeader
	}
	return int32(max(min(x.pol.MTU, 1<<20)-rethHeader, 1))
}

// pauses says which queues a port stops when its neighbour pauses it.
func (b *builder) pauses(i int) {
	x, c := &b.ports[i], &b.Config.Ports[i]
	y := &b.ports[c.Peer]
	if b.options.NoPause {
		return
	}
	for p := range x.pol.Queues {
		if !x.pol.Queues[p].Lossless {
			continue
		}
		q := x.pol.PFCQueue[p]
		if q == intent.Unmapped {
			q = uint8(p)
		}
		c.Obeys[p] = 1 << (q & 7)
	}
	if x.pol.Pause.Receive && y.pol.Pause.Send {
		for p := range c.Obeys {
			c.Obeys[p] = 0xff
		}
		b.assume.say("802.3x pause frames of the neighbour stop all queues", b.name(i))
	}
}

// queues sets up the egress of a port. The queue of a traffic class that shares it with others is as the class of its own number has it, or
// else the lowest.
func (b *builder) queues(i int) {
	x, c := &b.ports[i], &b.Config.Ports[i]
	heaviest := b.quantum(x)
	for q := range c.Queues {
		c.Queues[q].Weight = heaviest
	}
	for tc := len(x.pol.Queues) - 1; tc >= 0; tc-- {
		if q := queueOf(&x.pol, tc); q != tc {
			b.queue(x, &c.Queues[q], tc, heaviest)
		}
	}
	for tc := range x.pol.Queues {
		if q := queueOf(&x.pol, tc); q == tc {
			b.queue(x, &c.Queues[q], tc, heaviest)
		}
	}
}

// largestFrame is about the largest frame of RDMA: what a queue of the least weight sends in its turn.
const largestFrame = 4200

// quantum is what a queue of weight 1 sends in its turn: a frame, where no queue has less.
func (b *builder) quantum(x *port) int32 {
	least := int32(0)
	for _, q := range x.pol.Queues {
		if w := int32(q.Weight); q.Used && !q.Strict && w > 0 && (least == 0 || w < least) {
			least = w
		}
	}
	return (largestFrame + max(least, 1) - 1) / max(least, 1)
}

// lossyAlpha is how far a lossy queue may grow: as much as is free, in 1/65536.
const lossyAlpha = 1 << 16

// lossyPool is the account of lossy queues at the egress, which lossless ones are not on. At the ingress, all are in pool 0.
const lossyPool = 1

func (b *builder) queue(x *port, c *engine.Queue, tc int, quantum int32) {
	q := &x.pol.Queues[tc]
	*c = engine.Queue{Strict: q.Strict, Weight: quantum * max(int32(q.Weight), 1)}
	if x.dev.Host {
		return
	}
	if (q.ECN.On || q.Drop) && !b.options.NoMarks {
		c.Marks, c.Drops = !q.Drop, q.Drop
		c.Kmin, c.Kmax = int64(q.ECN.Kmin), int64(max(q.ECN.Kmax, q.ECN.Kmin))
		c.Pmax = float64(q.ECN.Pmax) / float64(100*units.OnePercent)
	}
	if !q.Lossless && !x.pol.Pause.Send || b.options.NoPause {
		c.Alpha, c.Pool = lossyAlpha, lossyPool
	}
}

// groups sets up the ingress of a switch's port: what it makes of each code point is for traffic to say (see mark), and here
// is the buffer of each priority group.
func (b *builder) groups(i int) {
	x, c := &b.ports[i], &b.Config.Ports[i]
	for g := range c.Groups {
		buf, tc := bufferOf(&x.pol, g)
		if !x.pol.Queues[g].Lossless || b.options.NoPause {
			if buf.On && x.pol.Known.Has(intent.AreaBuffer) && (buf.Static > 0 || buf.Alpha.Num > 0) { // without PFC, what does not fit is lost
				c.Groups[g] = b.group(i, tc, buf)
				c.Groups[g].Lossless = false
			}
			continue // else lossy, and as large as the pool: see switchesOf
		}
		if !x.pol.Known.Has(intent.AreaBuffer) {
			buf = b.usualBuffer(i)
		}
		if !buf.On || buf.Headroom <= 0 && buf.Alpha.Num <= 0 && buf.Static <= 0 {
			b.notes = append(b.notes, fmt.Sprintf("priority %d of %s has PFC and no lossless buffer: it sends no pause, and drops", g, b.name(i)))
			continue
		}
		c.Groups[g] = b.group(i, tc, buf)
	}
	if x.pol.Pause.Send && !b.options.NoPause {
		for g := range c.Groups {
			if !c.Groups[g].Lossless {
				c.Groups[g] = b.group(i, g, b.usualBuffer(i))
			}
		}
	}
}

// bufferOf is the buffer of a priority group, and the traffic class that it is of.
func bufferOf(pol *intent.Policy, g int) (intent.Buffer, int) {
	if groupOf(pol, g) == g {
		return pol.Queues[g].Buffer, g
	}
	for tc := range pol.TCPG {
		if groupOf(pol, tc) == g {
			return pol.Queues[tc].Buffer, tc
		}
	}
	return pol.Queues[g].Buffer, g
}

func (b *builder) group(i, tc int, buf intent.Buffer) engine.Group {
	x := &b.ports[i]
	own := buf.Reserved
	if buf.Dedicated() {
		own -= buf.Headroom
	}
	g := engine.Group{
		Lossless: true, Reserved: int64(own), Static: int64(buf.Static), Headroom: int64(buf.Headroom),
		Xon: int64(buf.Xon), XonOffset: int64(buf.XonOffset),
	}
	if buf.Static == 0 {
		alpha := buf.Alpha
		if alpha.Num <= 0 || alpha.Den <= 0 {
			alpha = b.usualAlpha(i)
			b.assume.say(fmt.Sprintf("an alpha of %s where no pause threshold is given", alpha), b.name(i))
		}
		g.Alpha = int64(alpha.Num) << 16 / int64(alpha.Den)
	}
	if g.Xon == 0 && g.XonOffset == 0 {
		g.XonOffset = int64(2 * max(x.pol.MTU, largestFrame))
		b.assume.say(fmt.Sprintf("pauses end two frames below the threshold where no xon is given for priority %d", tc), b.name(i))
	}
	return g
}

// usualAlpha is the alpha that a port of this kind starts with.
func (b *builder) usualAlpha(i int) units.Ratio {
	x := &b.ports[i]
	if s := x.dev.Profile.Start(units.BitRate(b.Config.Ports[i].Rate)); s.Alpha.Den > 0 {
		return s.Alpha
	}
	return units.Ratio{Num: 1, Den: 8}
}

// usualBuffer is the lossless buffer of a port whose device does not say what it has: what a model without a word about it
// would get.
func (b *builder) usualBuffer(i int) intent.Buffer {
	x, c := &b.ports[i], &b.Config.Ports[i]
	in := intent.IngressOf(x.dev, x.port)
	in.Speed, in.MTU = units.BitRate(c.Rate), x.pol.MTU
	if in.MTU == 0 {
		in.MTU = largestFrame
	}
	if in.Cable == 0 {
		in.Cable = units.Length(int64(c.Delay) * int64(units.Metre) / int64(perMetre))
	}
	buf := intent.Buffer{On: true, Alpha: b.usualAlpha(i), XonOffset: 2 * in.MTU}
	what := "the standard's most"
	if choice, ok := intent.AutoHeadroom(in); ok {
		buf.Headroom, what = choice.Bytes, string(choice.Model)
	}
	b.assume.say(fmt.Sprintf("lossless buffers with alpha %s and %s as headroom (%s) at %s where none is known", buf.Alpha, buf.Headroom, what, in.Speed), b.name(i))
	return buf
}

// unknownBuffer is the buffer of a switch whose chip nobody knows.
const unknownBuffer = 32 * units.MiB

// switchesOf gives the switches their pools: the one that lossless traffic is in, in which lossy traffic is too, as on most switches
// that are known.
func (b *builder) switchesOf() {
	b.Config.Switches = make([]engine.Switch, len(b.switches))
	promised := make([]units.Bytes, len(b.switches))
	for i := range b.ports {
		c := &b.Config.Ports[i]
		if c.Switch == engine.None {
			continue
		}
		for _, g := range c.Groups {
			promised[c.Switch] = derive.Add(promised[c.Switch], units.Bytes(g.Reserved), units.Bytes(g.Headroom))
		}
	}
	for i, d := range b.switches {
		s := &b.Config.Switches[i]
		s.OnEntry, s.HashSeed = b.options.Entry, uint32(i+1)*0x9e3779b1
		s.Headroom = int64(d.Pools.Headroom)
		shared := engine.Pool{Size: int64(b.pool(d, promised[i]))}
		s.Pools = []engine.Pool{shared, lossyPool: shared}
	}
	for i := range b.ports {
		c := &b.Config.Ports[i]
		for g := range c.Groups {
			if c.Switch != engine.None && !c.Groups[g].Lossless && c.Groups[g].Alpha == 0 && c.Groups[g].Static == 0 {
				c.Groups[g].Static = b.Config.Switches[c.Switch].Pools[0].Size
			}
		}
	}
	b.assume.say("lossy classes share the pool of lossless ones, and a queue of theirs takes at most half of what is free (alpha 1)", "")
}

// pool is the size of a switch's shared pool.
func (b *builder) pool(d *intent.Device, promised units.Bytes) units.Bytes {
	chip := d.Profile.Chip.Buffer
	if d.Pools.Shared > 0 {
		if budget := intent.BudgetOf(d); chip > 0 && budget.Promised > chip {
			b.found.Add(diag.Finding{
				Rule: "sim-buffer", Severity: diag.Error, At: d.Name, Devices: []string{d.Name},
				Msg: fmt.Sprintf("%s promises %s of buffer (pool %s, headroom pool %s, headroom and reserves %s), and %s has %s", d.Name, budget.Promised,
					d.Pools.Shared, d.Pools.Headroom, derive.Add(budget.Headroom, budget.Reserved), d.Profile.Chip.Name, chip),
				Hint: fmt.Sprintf("take at least %s away", budget.Promised-chip),
			})
		}
		return d.Pools.Shared
	}
	if chip == 0 {
		chip = unknownBuffer
		b.found.Add(diag.Finding{
			Rule: "sim-buffer-unknown", Severity: diag.Info, At: d.Name, Devices: []string{d.Name},
			Msg:  fmt.Sprintf("how much buffer %s has is not known: simulated with %s", d.Name, chip),
			Hint: "describe its platform in a Profile",
		})
	}
	if d.Pools.Headroom > 0 {
		promised = d.Pools.Headroom
	}
	if promised >= chip {
		b.found.Add(diag.Finding{
			Rule: "sim-buffer", Severity: diag.Error, At: d.Name, Devices: []string{d.Name},
			Msg:  fmt.Sprintf("headroom and reserves on %s come to %s, and its buffer has %s: nothing is left to share", d.Name, promised, chip),
			Hint: fmt.Sprintf("lower headroom by more than %s in all", promised-chip),
		})
		return 1
	}
	b.assume.say(fmt.Sprintf("a shared pool of %s, which is what headroom and reserves leave of %s", chip-promised, chip), d.Name)
	return chip - promised
}

// dog sets up the PFC watchdog of a switch's port.
func (b *builder) dog(i int) {
	x, c := &b.ports[i], &b.Config.Ports[i]
	w := x.pol.Watchdog
	if !w.On || w.Detect <= 0 {
		return
	}
	ms := func(n int32) engine.Time { return engine.Time(n) * engine.Millisecond }
	c.Watchdog = engine.Watchdog{Poll: ms(w.Poll), Detect: ms(w.Detect), Restore: ms(cmp.Or(max(w.Restore, 0), w.Detect))}
	if w.Poll <= 0 {
		c.Watchdog.Poll = c.Watchdog.Detect / 2
		b.assume.say("the watchdog looks twice in its detection time where its interval is not known", b.name(i))
	}
	switch w.Action {
	case intent.ActionDrop:
		c.Watchdog.Action = engine.WatchdogDrop
	case intent.ActionForward:
		c.Watchdog.Action = engine.WatchdogForward
	default:
		c.Watchdog.Action = engine.WatchdogAlert
	}
	for p := range c.Obeys {
		if w.Skips&(1<<p) == 0 {
			c.Watchdog.Queues |= c.Obeys[p]
		}
	}
}
