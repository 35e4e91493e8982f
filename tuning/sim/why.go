package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// why says what follows from the numbers, and why nothing happened where nothing did.
func (r *Result) why() []string {
	var all []string
	for _, about := range []func() []string{
		r.whyEnd, r.whyBusy, r.whyUneven, r.whyNotes, r.whyClass, r.whyMTU, r.whyDrops, r.whyMarks, r.whyNotices, r.whyPauses, r.whyRoot, r.whySilent, r.whyUnheard, r.whyWatchdog, r.whyUnbegun, r.whyUnfinished,
	} {
		all = append(all, about()...)
	}
	return all
}

// few is how many places a sentence names.
const few = 3

func (r *Result) whyEnd() []string {
	if r.raw.End == engine.EndDone && r.raw.Span == 0 {
		return []string{fmt.Sprintf("all traffic had ended after %s, within the warm-up of %s: nothing was measured, make the warm-up shorter", toDuration(r.raw.At), toDuration(r.setup.Config.Measure))}
	}
	if len(r.End.Stuck) == 0 && (r.raw.End == engine.EndStop || r.raw.End == engine.EndDone) {
		return nil
	}
	return []string{r.End.Words}
}

// whyNotes says what does not work whatever the traffic.
func (r *Result) whyNotes() []string {
	return append(r.setup.without.sentences(func(what, where string) string { return what + " on " + where }), r.setup.notes...)
}

// carries reports whether a port took in or sent anything.
func (r *Result) carries(i int) bool {
	return r.raw.Ports[i].TxFrames > 0 || r.raw.Ports[r.setup.Config.Ports[i].Peer].TxFrames > 0
}

// places are ports that do the same.
type places struct {
	order []string
	at    map[string][]string
}

func (p *places) add(what, place string) {
	if p.at == nil {
		p.at = map[string][]string{}
	}
	if p.at[what] == nil {
		p.order = append(p.order, what)
	}
	if slices.Contains(p.at[what], place) {
		return
	}
	p.at[what] = append(p.at[what], place)
}

func (p *places) sentences(format func(what, where string) string) []string {
	var all []string
	for _, what := range p.order {
		ps := p.at[what]
		where := ps[0]
		if n := len(ps) - 1; n > 0 {
			where += fmt.Sprintf(" and %s", diag.Count(n, "more port"))
		}
		all = append(all, format(what, where))
	}
	return all
}

// whyClass names ports that put a code point elsewhere than most do.
func (r *Result) whyClass() []string {
	s := r.setup
	var wrong places
	for m, dscp := range s.marks {
		want := int(s.classes.priority[dscp])
		for i := range s.ports {
			if s.Config.Ports[i].Switch == engine.None || !r.carries(i) {
				continue
			}
			pol := &s.ports[i].pol
			c, tc := s.Config.Ports[i].Classify[m], classOf(pol, dscp)
			strays := s.classes.lossless>>want&1 != 0 && int(c.Group) != want // what it holds pauses another priority, or none
			if tc == want && int(c.Queue) == queueOf(pol, want) && !strays {
				continue
			}
			wrong.add(fmt.Sprintf("dscp %d is of class %s, and travels as traffic class %d, in queue %d and priority group %d (trust %s)",
				dscp, s.classes.of(want), tc, c.Queue, c.Group, pol.Trust), s.name(i))
		}
	}
	return wrong.sentences(func(what, where string) string { return what + ", from " + where + " on" })
}

// name is a port as people write it.
func (s *Setup) name(p int) string { return s.place(p, 0).String() }

// whyMTU names ports that take no full packets.
func (r *Result) whyMTU() []string {
	s := r.setup
	var small places
	for i := range s.ports {
		n := r.raw.Ports[i].Drops[engine.DropMTU]
		if n == 0 {
			continue
		}
		payload := int32(0)
		for j := range s.Config.Flows {
			payload = max(payload, s.Config.Flows[j].Payload)
		}
		size := payload + s.Config.Transport.Header + rethHeader
		small.add(fmt.Sprintf("frames of %d B are longer than the %s that it takes: messages of more than %d B never arrive, smaller ones do",
			size, s.ports[i].pol.MTU.Exact(), max(s.Config.Ports[i].MTU-s.Config.Transport.Header, 0)), s.name(i))
	}
	return small.sentences(func(what, where string) string { return where + ": " + what })
}

// whyDrops explains the worst drops.
func (r *Result) whyDrops() []string {
	if len(r.Drops) == 0 {
		return []string{"no packet was dropped"}
	}
	var all []string
	for i := range r.Drops {
		d := &r.Drops[i]
		if d.Reason == reasons()[engine.DropMTU] {
			continue
		}
		if len(all) == few {
			all = append(all, fmt.Sprintf("packets were dropped at %s besides", diag.Count(len(r.Drops)-i, "place")))
			break
		}
		all = append(all, r.whyDrop(d))
	}
	return all
}

func (r *Result) whyDrop(d *Drop) string {
	say := fmt.Sprintf("%s dropped %s (%s)", d.Place, diag.Count(int(d.Packets), "packet"), d.Reason)
	if d.Queue < 0 {
		return say
	}
	say = fmt.Sprintf("%s dropped %s of priority %d (%s)", d.Place, diag.Count(int(d.Packets), "packet"), d.Queue, d.Reason)
	i := r.setup.portNamed(d.Place)
	if i < 0 {
		return say
	}
	c, g := &r.setup.Config.Ports[i], &r.raw.Ports[i].Groups[d.Queue]
	group := &c.Groups[d.Queue]
	switch d.Reason {
	case reasons()[engine.DropHeadroom]:
		frame := units.Bytes(c.MTU)
		if frame == 0 || frame > largestFrame {
			frame = units.Bytes(largestFrame)
		}
		cable := units.Length(int64(c.Delay) * int64(units.Metre) / int64(perMetre))
		need := derive.PhysicsMin(derive.Link{Speed: units.BitRate(c.Rate), Cable: cable, Frame: frame}).Xoff
		wait := units.Bytes(int64(c.Reaction) / 1000 * (c.Rate / 1_000_000) / 8 / 1000)
		say += fmt.Sprintf(": its headroom of %s was full (%s used); with frames of %s the link needs %s, and %s more until the neighbour stops",
			units.Bytes(group.Headroom), units.Bytes(g.HeadroomMax), frame, about(need), about(wait))
	case reasons()[engine.DropIngress]:
		say += fmt.Sprintf(": priority group %d is not lossless there, and what it may take of the pool was full", d.Queue)
	case reasons()[engine.DropEgress]:
		say += fmt.Sprintf(": priority %d is lossy there, and its queue held %s", d.Queue, about(units.Bytes(r.raw.Ports[i].Queues[d.Queue].Max)))
	}
	return say
}

// portNamed finds a port by its place, or -1.
func (s *Setup) portNamed(p Place) int {
	for i := range s.ports {
		if q := s.place(i, p.Queue); q.Device == p.Device && q.Port == p.Port {
			return i
		}
	}
	return -1
}

// whyMarks says why nothing was marked.
func (r *Result) whyMarks() []string {
	if r.Totals.Marked > 0 {
		return nil
	}
	if r.setup.options.NoMarks {
		return []string{"no packet was marked: marking was left out on request"}
	}
	for i := range r.Queues { // the fullest first
		if q := &r.Queues[i]; q.Kmin > 0 {
			if q.Max <= q.Kmin {
				return []string{fmt.Sprintf("no packet was marked: the fullest queue that marks is %s queue %d with %s at most, and its kmin is %s: no mark was possible", q.Place, q.Queue, about(q.Max), q.Kmin)}
			}
			if r.unaware(q) {
				return []string{fmt.Sprintf("no packet was marked, although %s queue %d held %s at most and its kmin is %s: what passed it says that its ends know no ECN, since congestion control is off", q.Place, q.Queue, about(q.Max), q.Kmin)}
			}
			return []string{fmt.Sprintf("no packet was marked, although %s queue %d held %s at most and its kmin is %s: the part above it was too short for its pmax", q.Place, q.Queue, about(q.Max), q.Kmin)}
		}
	}
	if len(r.Queues) == 0 {
		return []string{"no packet was marked: no queue held anything"}
	}
	q := &r.Queues[0]
	return []string{fmt.Sprintf("no packet was marked: no queue that the traffic passed marks (ECN is off); the fullest is %s queue %d with %s", q.Place, q.Queue, about(q.Max))}
}

// unaware reports whether all traffic for a queue comes from ends that know no congestion marks.
func (r *Result) unaware(q *Queue) bool {
	s := r.setup
	at := s.portNamed(q.Place)
	for i := range s.Config.Flows {
		m := s.Config.Flows[i].Mark
		if at >= 0 && int(s.Config.Ports[at].Classify[m].Queue) == q.Queue && s.Config.NotECT>>m&1 == 0 {
			return false
		}
	}
	return at >= 0
}

// whyNotices says why senders were not told of congestion, or did nothing about it.
func (r *Result) whyNotices() []string {
	all := r.whyNoticeClass()
	var arrived, got, cuts uint64
	for i := range r.Flows {
		arrived += r.Flows[i].Marked
		got += r.Flows[i].CNPs
		cuts += r.Flows[i].Cuts
	}
	switch {
	case r.Totals.Marked == 0:
		all = append(all, "no CNP was sent: no packet was marked")
	case r.Totals.CNPs == 0 && arrived == 0:
		all = append(all, fmt.Sprintf("no CNP was sent: of %s none has arrived", diag.Count(int(r.Totals.Marked), "marked packet")))
	case r.Totals.CNPs == 0:
		all = append(all, fmt.Sprintf("no CNP was sent, although %s marked: congestion control is off at the receivers", diag.Plural(int(r.Totals.Marked), "packet was", "packets were")))
	case got < r.Totals.CNPs*9/10:
		all = append(all, fmt.Sprintf("of %d CNPs sent only %d arrived: the others were dropped, or waited with data", r.Totals.CNPs, got))
	case cuts == 0:
		all = append(all, fmt.Sprintf("%s arrived and no rate was cut: congestion control is off at the senders", diag.Count(int(got), "CNP")))
	}
	return all
}

// whyNoticeClass names NICs whose notifications travel with data.
func (r *Result) whyNoticeClass() []string {
	s := r.setup
	var wrong places
	for i := range s.nics {
		dscp := s.marks[s.Config.NICs[i].CNPMark]
		if p := int(s.classes.priority[dscp]); s.classes.cnp >= 0 && p != s.classes.cnp {
			wrong.add(fmt.Sprintf("carry dscp %d, which is of class %s and not of %s: they wait where data waits", dscp, s.classes.of(p), s.classes.of(s.classes.cnp)), s.name(s.nics[i].port))
		}
	}
	return wrong.sentences(func(what, where string) string { return "notifications of " + where + " " + what })
}

// whyPauses says why nothing was paused.
func (r *Result) whyPauses() []string {
	if r.Totals.Pauses > 0 {
		return nil
	}
	if r.setup.options.NoPause {
		return []string{"no pause was sent: PFC was left out on request"}
	}
	best := -1
	for i := range r.Buffers {
		if b := &r.Buffers[i]; b.Threshold > 0 && (best < 0 || b.Max > r.Buffers[best].Max) {
			best = i
		}
	}
	if len(r.Buffers) == 0 {
		return []string{"no pause was sent: no buffer of a switch held anything"}
	}
	if best < 0 {
		return []string{"no pause was sent: no priority group that the traffic came in by is lossless"}
	}
	b := &r.Buffers[best]
	return []string{fmt.Sprintf("no pause was sent: the fullest lossless group is priority %d of %s with %s at most, and alone it pauses at %s", b.Queue, b.Place, about(b.Max), about(b.Threshold))}
}

// whyRoot follows the pauses of the port that was stopped for longest to where they begin: to a NIC that takes in too little, or to
// a switch none of whose own ports is stopped for nearly as long.
func (r *Result) whyRoot() []string {
	s := r.setup
	if len(r.Pauses) == 0 || r.Pauses[0].Paused == 0 {
		return nil
	}
	worst := &r.Pauses[0]
	at, p := s.portNamed(worst.Place), worst.Queue
	say := fmt.Sprintf("%s was paused most, %.3g%% of the time", worst.Place, 100*worst.Part)
	for range len(s.switches) + 1 {
		peer := s.Config.Ports[at].Peer
		sw := s.Config.Ports[peer].Switch
		if sw == engine.None {
			return []string{fmt.Sprintf("%s: that begins at %s, which takes in less than it is sent", say, s.name(peer))}
		}
		next, queue := -1, -1
		for i := range s.ports {
			x := &r.raw.Ports[i]
			if s.Config.Ports[i].Switch != sw || i == peer {
				continue
			}
			if t := x.Groups[p].Paused; t > r.raw.Ports[at].Groups[p].Paused/4 && (next < 0 || t > r.raw.Ports[next].Groups[p].Paused) {
				next = i
			}
			if q := queueOf(&s.ports[i].pol, p); queue < 0 || x.Queues[q].Max > r.raw.Ports[queue].Queues[queueOf(&s.ports[queue].pol, p)].Max {
				queue = i
			}
		}
		if next < 0 {
			if queue < 0 {
				return []string{say}
			}
			q := queueOf(&s.ports[queue].pol, p)
			return []string{fmt.Sprintf("%s: that begins at %s, whose fullest queue is %s queue %d with %s at most", say, s.switches[sw].Name, s.name(queue), q, about(units.Bytes(r.raw.Ports[queue].Queues[q].Max)))}
		}
		at = next
	}
	return []string{say + ", and the pauses go around in a circle"}
}

// busyPart is the part of the time for which a port sent.
func (r *Result) busyPart(i int) float64 {
	x, c := &r.raw.Ports[i], r.setup.Config
	return part(wire(int64(x.TxBytes)+int64(x.TxFrames)*int64(c.Overhead), c.Ports[i].Rate), r.raw.Span)
}

// whyUneven names the switch whose ways up are used least evenly, where one of them is full: flows have hashed to the same way.
func (r *Result) whyUneven() []string {
	s := r.setup
	least, most := make([]int, len(s.switches)), make([]int, len(s.switches)) // ports by switch, and 1 more
	for i := range s.ports {
		sw, peer := s.Config.Ports[i].Switch, s.Config.Ports[s.Config.Ports[i].Peer].Switch
		if sw == engine.None || peer == engine.None || s.switches[peer].Tier <= s.switches[sw].Tier {
			continue
		}
		if least[sw] == 0 || r.busyPart(i) < r.busyPart(least[sw]-1) {
			least[sw] = i + 1
		}
		if most[sw] == 0 || r.busyPart(i) > r.busyPart(most[sw]-1) {
			most[sw] = i + 1
		}
	}
	worst, say := 0.5, ""
	for sw := range s.switches {
		if most[sw] == 0 || r.busyPart(most[sw]-1) < busy {
			continue
		}
		low, high := r.busyPart(least[sw]-1), r.busyPart(most[sw]-1)
		if ratio := low / high; ratio < worst {
			worst = ratio
			say = fmt.Sprintf("ways up from %s are used unevenly: %s for %.3g%% of the time and %s for %.3g%%, since flows have hashed to the same way",
				s.switches[sw].Name, s.name(most[sw]-1), 100*high, s.name(least[sw]-1), 100*low)
		}
	}
	if say == "" {
		return nil
	}
	return []string{say}
}

// busy is the part of the time from which on a link is said to be what limits.
const busy = 0.9

// whyBusy names the busiest link, if it limits.
func (r *Result) whyBusy() []string {
	s := r.setup
	best, most := -1, 0.0
	full := 0
	for i := range s.ports {
		part := r.busyPart(i)
		if part > most {
			best, most = i, part
		}
		if part >= busy {
			full++
		}
	}
	if best < 0 || most < busy {
		return nil
	}
	say := fmt.Sprintf("%s sent for %.3g%% of the time: its link of %s is what limits", s.name(best), 100*most, units.BitRate(s.Config.Ports[best].Rate))
	if full > 1 {
		say += fmt.Sprintf(", and %s nearly as full", diag.Plural(full-1, "other is", "others are"))
	}
	return []string{say}
}

// whySilent names ports that take in a class which is lossless on most ports, and pause nobody for it.
func (r *Result) whySilent() []string {
	s := r.setup
	if s.options.NoPause {
		return nil
	}
	var silent places
	held := map[string]int64{}
	for m, dscp := range s.marks {
		p := int(s.classes.priority[dscp])
		if s.classes.lossless&(1<<p) == 0 {
			continue
		}
		for i := range s.ports {
			c := &s.Config.Ports[i]
			if c.Switch == engine.None || classOf(&s.ports[i].pol, dscp) != p { // a wrong map has its own sentence
				continue
			}
			g := c.Classify[m].Group
			if g < 0 || c.Groups[g].Lossless || r.raw.Ports[i].Groups[g].Max == 0 {
				continue
			}
			class := s.classes.of(p)
			silent.add(class, s.name(i))
			held[class] = max(held[class], r.raw.Ports[i].Groups[g].Max)
		}
	}
	return silent.sentences(func(class, where string) string {
		return fmt.Sprintf("no pause can come from %s for class %s, which is lossless on most ports: what finds no room there is lost (%s held at most)", where, class, about(units.Bytes(held[class])))
	})
}

// whyUnheard names ports that were paused and did not stop.
func (r *Result) whyUnheard() []string {
	s := r.setup
	var deaf places
	for i := range s.ports {
		for p := range 8 {
			g, peer := &r.raw.Ports[i].Groups[p], s.Config.Ports[i].Peer
			if g.PausesSent+g.RefreshesSent == 0 {
				continue
			}
			queue := queueOf(&s.ports[peer].pol, p)
			switch obeys := s.Config.Ports[peer].Obeys[p]; {
			case obeys == 0:
				deaf.add(fmt.Sprintf("does not obey pauses of priority %d, which it was sent: PFC is off there, or leads to no queue", p), s.name(peer))
			case obeys>>queue&1 == 0 && s.Config.Ports[peer].Switch != engine.None:
				deaf.add(fmt.Sprintf("stops queue %d when priority %d is paused, and class %s is in queue %d", bits.TrailingZeros8(obeys), p, s.classes.of(p), queue), s.name(peer))
			}
		}
	}
	r.unheard(&deaf)
	return deaf.sentences(func(what, where string) string { return where + " " + what })
}

// unheard adds the NICs that send from another queue than the pauses stop which their switch has sent for it: hosts with other maps than their
// leaves. Data goes by the queue of the sender, acknowledgements and requests by that of the other end.
func (r *Result) unheard(deaf *places) {
	type sent struct {
		nic         int
		mark, queue int8
	}
	s := r.setup
	seen := map[sent]bool{}
	for i := range s.Config.Flows {
		f := &s.Config.Flows[i]
		from, to := f.Src, f.Dst
		if f.Read {
			from, to = to, from
		}
		for _, x := range []sent{{from, f.Mark, f.Class}, {to, f.Mark, f.Answers - 1}} {
			if seen[x] {
				continue
			}
			seen[x] = true
			port := s.Config.NICs[x.nic].Port
			at := s.Config.Ports[port].Peer
			p := s.Config.Ports[at].Classify[x.mark].Group
			if p < 0 || r.raw.Ports[at].Groups[p].PausesSent+r.raw.Ports[at].Groups[p].RefreshesSent == 0 {
				continue
			}
			if obeys := s.Config.Ports[port].Obeys[p]; obeys != 0 && obeys>>x.queue&1 == 0 {
				deaf.add(fmt.Sprintf("sends dscp %d in queue %d, where a pause of priority %d, which it is of at the switch, stops queue %d: no headroom is enough for it",
					s.marks[x.mark], x.queue, p, bits.TrailingZeros8(obeys)), s.name(port))
			}
		}
	}
}

// whyWatchdog says why the watchdog did nothing although something was paused for long.
func (r *Result) whyWatchdog() []string {
	if len(r.Watchdog) > 0 {
		w := &r.Watchdog[0]
		does := ""
		if at := r.setup.portNamed(w.Place); at >= 0 {
			switch r.setup.Config.Ports[at].Watchdog.Action {
			case engine.WatchdogDrop:
				does = ", and discards what is there for it"
			case engine.WatchdogForward:
				does = ", and sends from it in spite of pauses, which nobody on the way back is told of"
			case engine.WatchdogAlert:
				does = ", and does nothing but report it"
			}
		}
		return []string{fmt.Sprintf("the PFC watchdog found %s stuck, first of all %s queue %d%s", diag.Count(int(r.Totals.WatchdogHit), "queue"), w.Place, w.Queue, does)}
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		at := r.setup.portNamed(p.Place)
		if at < 0 || p.Host || p.Longest*2 < p.Paused || p.Part < 0.5 {
			continue
		}
		w := r.setup.Config.Ports[at].Watchdog
		if w.Action == engine.WatchdogOff {
			return []string{fmt.Sprintf("%s was paused for %s without an end, and has no PFC watchdog", p.Place, lasting(p.Longest))}
		}
		return []string{fmt.Sprintf("%s was paused for %s without an end, and its PFC watchdog acts after %s", p.Place, lasting(p.Longest), toDuration(w.Detect))}
	}
	return nil
}

// whyUnbegun says that flows were to begin later than the run lasted.
func (r *Result) whyUnbegun() []string {
	n, first := 0, -1
	for i := range r.Flows {
		if f := &r.Flows[i]; !f.Started && f.Start >= r.End.At && r.setup.Config.Flows[i].After == engine.None {
			if n++; first < 0 || f.Start < r.Flows[first].Start {
				first = i
			}
		}
	}
	if n == 0 {
		return nil
	}
	f := &r.Flows[first]
	return []string{fmt.Sprintf("%s not begun when the run ended: that of %s from %s to %s would at %s", diag.Plural(n, "flow has", "flows have"), f.Part, f.From, f.To, f.Start)}
}

// late is how many times as long as alone a flow must have taken to be called late when the run ends.
const late = 10

// whyUnfinished names a flow that should have ended in time.
func (r *Result) whyUnfinished() []string {
	n, first := 0, -1
	for i := range r.Flows {
		f := &r.Flows[i]
		if f.Started && !f.Done && f.Bytes > 0 && r.End.At-f.Start > late*f.Ideal {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == 0 {
		return nil
	}
	f := &r.Flows[first]
	return []string{fmt.Sprintf("%s not ended, which would take %s alone: %s from %s to %s has received %s of %s in %s", diag.Plural(n, "flow has", "flows have"),
		lasting(f.Ideal), f.Part, f.From, f.To, about(f.Received), f.Bytes, lasting(r.End.At-f.Start))}
}

// about is a size in three digits, as sentences have it; lasting is a time likewise.
func about(v units.Bytes) string {
	return inDigits(int64(v), []scale{{"GB", int64(units.GB)}, {"MB", int64(units.MB)}, {"KB", int64(units.KB)}, {"B", 1}})
}

func lasting(d units.Duration) string {
	return inDigits(int64(d), []scale{{"s", int64(units.Second)}, {"ms", int64(units.Millisecond)}, {"us", int64(units.Microsecond)}, {"ns", 1}})
}

// scale is a unit with its size.
type scale struct {
	name string
	size int64
}

// inDigits is v in three digits, in the largest unit that it has one of.
func inDigits(v int64, scales []scale) string {
	u := scales[len(scales)-1]
	for _, x := range scales {
		if v >= x.size {
			u = x
			break
		}
	}
	return strconv.FormatFloat(float64(threeDigits(v))/float64(u.size), 'f', -1, 64) + u.name
}

func threeDigits(v int64) int64 {
	unit := int64(1)
	for v >= 1000*unit {
		unit *= 10
	}
	return (v + unit/2) / unit * unit
}
