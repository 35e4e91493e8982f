package sim

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// pair makes the flows between two hosts of the part: on each rail, for each queue pair, and back again where the part asks
// for that.
func (e *expander) pair(x, y int, start units.Duration) {
	key := [2]int{x, y}
	ls, known := e.cached[key]
	if !known {
		ls = e.lanes(&e.hosts[x], &e.hosts[y])
		if e.cached == nil {
			e.cached = map[[2]int][]lane{}
		}
		e.cached[key] = ls
	}
	for _, l := range ls {
		for range max(e.part.QPs, 1) {
			t := start
			if e.part.Spread > 0 {
				t += units.Duration(e.draw.below(int64(e.part.Spread) + 1))
			}
			e.flow(l.from, l.to, t)
			if e.part.Both {
				e.flow(l.to, l.from, t)
			}
			if len(e.flows) > mostFlows {
				e.found.Errorf("sim-flows", diag.Pos{}, "make flows larger or rarer, or simulate for less long", "%s needs more than %d flows", e.part.String(), mostFlows)
			}
			if e.found.HasErrors() {
				return
			}
		}
	}
}

// latencyBytes is the size of a message of a latency test unless the part says so, as perftest has it.
const latencyBytes = 2

// flow adds a flow that one point opens to another.
func (e *expander) flow(from, to *point, start units.Duration) {
	src, dst := from.nics[0], to.nics[0]
	if n := len(from.nics); n > 1 {
		src = from.nics[e.draw.below(int64(n))]
	}
	if n := len(to.nics); n > 1 {
		dst = to.nics[e.draw.below(int64(n))]
	}
	f := flow{part: e.at, from: src, to: dst, latency: e.part.Latency || e.part.Kind == observe.Probe}
	sender := from
	if e.part.Op == observe.OpRead {
		f.from, f.to, sender = dst, src, to
	}
	if !e.point(&f, sender) || !e.reach(src, dst) || !e.reach(dst, src) {
		return
	}
	x, y := &e.ports[e.nics[f.from].port], &e.ports[e.nics[f.to].port]
	ect, notified := e.reacts(&f, f.from), e.reacts(&f, f.to)
	c := engine.Flow{
		Src: src, Dst: dst, Bytes: int64(e.part.Bytes), Start: toTime(start), After: engine.None, Mark: e.mark(f.dscp, ect),
		Class: int8(queueOf(&x.pol, e.sentAs(x, f.dscp))), Answers: 1 + int8(queueOf(&y.pol, e.sentAs(y, f.dscp))), Payload: e.payload(src, dst), Message: int64(e.part.Message), Depth: int32(e.part.Depth),
		SourcePort: 49152 + uint16(e.draw.below(1<<14)), Read: e.part.Op == observe.OpRead, Unnoticed: !notified,
	}
	switch {
	case e.part.Latency:
		c.Message, c.Depth = cmp.Or(c.Message, latencyBytes), 1
	case e.part.Kind == observe.Probe:
		c.Bytes = cmp.Or(c.Bytes, int64(probeBytes))
	case e.part.Kind == observe.Background:
		c.Bytes = cmp.Or(c.Bytes, int64(backgroundBytes))
	}
	e.Config.Flows = append(e.Config.Flows, c)
	e.Config.ToStop = e.Config.ToStop || c.Bytes == 0
	e.flows = append(e.flows, f)
}

// reacts reports whether congestion control is on at an end of a flow, and notes where it is not.
func (e *expander) reacts(f *flow, nic int) bool {
	at := e.nics[nic].port
	if e.controlled(&e.ports[at], f.dscp) {
		return true
	}
	e.without.add(fmt.Sprintf("congestion control is off for class %s", e.classes.of(f.priority)), e.name(at))
	return false
}

// point decides the code point of a flow: the part's own, else that of its class, else that of the connections of the host that
// sends; unless the sender's driver forces one on all.
func (e *expander) point(f *flow, sender *point) bool {
	f.dscp = sender.dscp
	switch {
	case sender.force:
		if e.part.DSCP != nil && *e.part.DSCP != sender.dscp {
			e.assume.say(fmt.Sprintf("the driver forces dscp %d on connections that ask for %d", sender.dscp, *e.part.DSCP), e.name(e.nics[sender.nics[0]].port))
		}
	case e.part.DSCP != nil:
		f.dscp = *e.part.DSCP
	case e.priority >= 0 && int(e.classes.priority[sender.dscp]) != e.priority:
		d, ok := e.classes.point(e.priority)
		if !ok {
			e.found.Errorf("sim-no-class", diag.Pos{}, "map a code point to it", "%s: no code point leads to class %s", e.label, e.classes.of(e.priority))
			return false
		}
		f.dscp = d
	}
	f.priority = int(e.classes.priority[f.dscp])
	return true
}

// payloads are the RDMA MTUs that there are, the largest first; roceRoom is what Linux takes off a netdev MTU before it looks
// for the one that fits (drivers/infiniband: iboe_get_mtu).
var payloads = [...]int32{4096, 2048, 1024, 512, 256}

const roceRoom = 96

// payload is how many bytes a packet of a connection carries: what both hosts agree on, by the model and by their MTUs.
func (e *expander) payload(src, dst int) int32 {
	least := int32(payloads[0])
	if e.part.MTU > 0 {
		least = min(least, int32(e.part.MTU))
	}
	for _, n := range []int{src, dst} {
		x := &e.ports[e.nics[n].port]
		if x.dev.RoCE > 0 {
			least = min(least, int32(x.dev.RoCE))
		}
		if x.pol.MTU <= 0 {
			continue
		}
		for _, p := range payloads {
			if least >= p && units.Bytes(p+roceRoom) <= x.pol.MTU {
				least = min(least, p)
				break
			}
			if p == payloads[len(payloads)-1] {
				least = p
			}
		}
	}
	return least
}

// reach reports whether there is a way from one NIC to another, and says so once where there is none.
func (e *expander) reach(from, to int) bool {
	key := [2]int{from, to}
	ok, known := e.reached[key]
	if !known {
		ok = e.leads(from, to)
		if e.reached == nil {
			e.reached = map[[2]int]bool{}
		}
		e.reached[key] = ok
		if !ok {
			hint := "look at the links between them: those of planned, absent and maintenance devices and ports carry nothing"
			if e.net.Routing == intent.Listed {
				hint = "list a route for them, or set routing: up-down"
			}
			e.found.Errorf("sim-no-way", diag.Pos{}, hint, "%s: no way leads from %s to %s", e.label, e.name(e.nics[from].port), e.name(e.nics[to].port))
		}
	}
	return ok
}

// cutName splits "host1:nic-2".
func cutName(s string) (name, nic string) {
	name, nic, _ = strings.Cut(s, ":")
	return name, nic
}

// watch decides which queues are in the rows of a series: those that were asked for, or else those at which most flows meet.
func (b *builder) watch() {
	if b.options.Sample <= 0 {
		return
	}
	for _, r := range b.options.Watch {
		at := -1
		for i := range b.ports {
			if x := &b.ports[i]; x.dev.Name == r.Device && (x.port.Name == r.Port || x.port.Iface == r.Port) {
				at = i
			}
		}
		if at < 0 || r.Queue < 0 || r.Queue > 7 {
			b.found.Errorf("sim-watch", diag.Pos{}, "write DEVICE:PORT:QUEUE of an active link", "there is no queue %d of %s:%s", r.Queue, r.Device, r.Port)
			return
		}
		b.Config.Watch = append(b.Config.Watch, engine.QueueRef{Port: at, Queue: r.Queue})
	}
	if len(b.options.Watch) == 0 {
		b.busiest()
	}
}

// busiest watches the queues towards the NICs that most flows go to.
func (b *builder) busiest() {
	type at struct{ nic, queue int }
	flows := map[at]int{}
	var order []at
	for i := range b.flows {
		f := &b.flows[i]
		in := b.Config.Ports[b.nics[f.to].port].Peer
		k := at{f.to, queueOf(&b.ports[in].pol, classOf(&b.ports[in].pol, f.dscp))}
		if flows[k] == 0 {
			order = append(order, k)
		}
		flows[k]++
	}
	for range min(most, len(order)) {
		best := -1
		for i, k := range order {
			if flows[k] > 0 && (best < 0 || flows[k] > flows[order[best]]) {
				best = i
			}
		}
		k := order[best]
		flows[k] = 0
		b.Config.Watch = append(b.Config.Watch, engine.QueueRef{Port: b.Config.Ports[b.nics[k.nic].port].Peer, Queue: k.queue})
	}
}
