package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// flow is what stands behind a flow of the engine.
type flow struct {
	part     int
	dscp     uint8
	priority int
	from, to int // NICs, as data goes
	latency  bool
}

// mostFlows is the most flows of a run.
const mostFlows = 1 << 20

// span decides how long the run is: as asked for, or else long enough for what never ends by itself, and as long as it
// takes for what does.
func (b *builder) span() {
	usual, warm := units.Duration(100*units.Millisecond), units.Duration(0)
	if b.workload.Endless() {
		usual, warm = DefaultDuration, DefaultWarmup
	}
	b.measured = cmp.Or(b.options.Duration, b.workload.Duration, usual)
	b.warmup = cmp.Or(b.options.Warmup, b.workload.Warmup, warm)
	if b.measured < 0 || b.warmup < 0 || b.measured > LongestRun || b.warmup > LongestRun {
		b.found.Errorf("sim-duration", diag.Pos{}, "simulate at most "+LongestRun.String(), "%s after %s of warm-up is out of range", b.measured, b.warmup)
		return
	}
	for _, f := range b.options.Faults {
		if end := b.warmup + b.measured; f.From >= end {
			b.found.Warningf("sim-fault", diag.Pos{}, "let it begin earlier, or measure for longer", "fault %s: it begins when the run is over, which ends after %s", f, end)
		}
	}
	b.Config.Measure = toTime(b.warmup)
	b.Config.Stop = toTime(b.warmup + b.measured)
	b.Config.Sample = toTime(b.options.Sample)
	b.Config.Audit = b.options.Audit
}

// LongestRun is the longest time that can be simulated.
const LongestRun = 100 * units.Second

// traffic makes the flows of the workload.
func (b *builder) traffic() {
	b.everyone = b.hosts()
	for i := range b.workload.Parts {
		e := expander{builder: b, at: i, part: &b.workload.Parts[i], label: b.workload.Label(i), draw: drawFor(b.seed, uint64(i+1))}
		before := len(b.flows)
		e.expand()
		if b.found.HasErrors() {
			return
		}
		if len(b.flows) == before && before > 0 {
			b.found.Warningf("sim-no-flows", diag.Pos{}, "simulate for longer, or start it earlier", "%s: nothing of it starts within %s", e.label, b.warmup+b.measured)
		}
	}
	if !slices.ContainsFunc(b.Config.Flows, func(f engine.Flow) bool { return f.After != engine.None || f.Start < b.Config.Stop }) {
		b.found.Errorf("sim-no-flows", diag.Pos{}, "simulate for longer, or start earlier", "nothing starts within %s", b.warmup+b.measured)
	}
}

// expander makes the flows of one part.
type expander struct {
	*builder
	at       int
	part     *observe.Part
	label    string
	draw     *draw
	priority int // of the class that it names, or -1
	hosts    []host
	cached   map[[2]int][]lane // by places in hosts
}

func (e *expander) expand() {
	e.priority = -1
	if e.part.Class != "" {
		p, ok := e.classes.find(e.part.Class)
		if !ok {
			e.found.Errorf("sim-no-class", diag.Pos{}, e.hintNames(e.part.Class, e.classes.names()), "%s: the fabric has no class %s", e.label, e.part.Class)
			return
		}
		e.priority = p
	}
	if e.part.Kind == observe.Trace {
		e.trace()
		return
	}
	if e.hosts = e.choose(e.part, e.label, e.priority); e.hosts == nil {
		if !e.found.HasErrors() {
			e.found.Errorf("sim-no-host", diag.Pos{}, "leave rail out, or name hosts that have it", "%s: no host takes part", e.label)
		}
		return
	}
	switch e.part.Kind {
	case observe.Background:
		e.background()
	case observe.Probe:
		e.probes()
	case observe.Ring:
		e.ring()
	default:
		e.bursts()
	}
}

// need reports whether at least n hosts take part.
func (e *expander) need(n int) bool {
	if len(e.hosts) >= n {
		return true
	}
	most := len(e.hosts)
	if e.part.Kind == observe.Pairs {
		most /= 2
	}
	if len(e.hosts) < 2 || e.part.N <= most {
		most = 0
	}
	hint := atMost(most)
	e.found.Errorf("sim-few-hosts", diag.Pos{}, hint, "%s needs %d hosts, and %d take part", e.part.String(), n, len(e.hosts))
	return false
}

// atMost is the hint where a part asks for more hosts, or pairs of them, than there are; 0 = asking for fewer would not help.
func atMost(n int) string {
	if n < 1 {
		return "let more hosts take part"
	}
	return fmt.Sprintf("ask for at most %d", n)
}

// bursts makes the flows of a part that comes once, or again and again.
func (e *expander) bursts() {
	pairs := e.pairs()
	every := int64(e.part.Every)
	swing := every * int64(e.part.Jitter) / int64(100*units.OnePercent)
	end := int64(e.warmup + e.measured)
	t := int64(e.part.Start)
	for n := 0; t < end && (e.part.Count == 0 || n < e.part.Count) && !e.found.HasErrors(); n++ {
		if e.part.Random && n > 0 {
			pairs = e.pairs()
		}
		for _, p := range pairs {
			e.pair(p[0], p[1], units.Duration(t))
		}
		if every == 0 {
			return
		}
		if t += every; swing > 0 {
			t += e.draw.below(2*swing+1) - swing
		}
	}
}

// pairs says who sends to whom, as places in e.hosts.
func (e *expander) pairs() [][2]int {
	switch e.part.Kind {
	case observe.Single, observe.Incast:
		return e.incast()
	case observe.Pairs:
		return e.halves()
	case observe.AllToAll:
		return e.everyPair()
	case observe.Permutation:
		return e.permutation()
	case observe.Victim:
		return e.victims()
	}
	return nil
}

// receiver is the place of the host that receives: the one that the part names, or else the first.
func (e *expander) receiver(usual int) (int, bool) {
	if e.part.To == "" {
		return usual, true
	}
	if i := slices.IndexFunc(e.hosts, func(h host) bool { return h.name == e.part.To }); i >= 0 {
		return i, true
	}
	one := *e.part
	one.Hosts = []string{e.part.To}
	more := e.choose(&one, e.label, e.priority)
	if len(more) == 0 {
		return 0, false
	}
	e.hosts = append(e.hosts, more[0])
	return len(e.hosts) - 1, true
}

// incast is N hosts, or one, that send to one host.
func (e *expander) incast() [][2]int {
	n := max(e.part.N, 0)
	single := e.part.Kind == observe.Single
	if single {
		n = 1
	}
	to, ok := e.receiver(0)
	if !ok || !e.need(2) {
		return nil
	}
	if e.part.Random {
		to = int(e.draw.below(int64(len(e.hosts))))
	}
	var order []int
	switch {
	case single && e.part.To == "" && !e.part.Random: // from the first to the second that is named, or to the farthest
		from := 0
		to = e.spread(e.hosts, from)[0]
		if len(e.part.Hosts) > 0 {
			to = 1
		}
		order = []int{from}
	case len(e.part.Hosts) > 0:
		for i := range e.hosts {
			if i != to {
				order = append(order, i)
			}
		}
	default:
		order = e.spread(e.hosts, to)
	}
	if e.part.Random {
		e.draw.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	if e.part.Across {
		order = slices.DeleteFunc(order, func(i int) bool { return e.together(&e.hosts[i], &e.hosts[to]) })
	}
	if n == 0 {
		n = len(order)
	}
	if len(order) < n || n == 0 {
		e.found.Errorf("sim-few-hosts", diag.Pos{}, atMost(len(order)),
			"%s needs %s that send to %s, and there are %d", e.part.String(), diag.Count(max(n, 1), "host"), e.hosts[to].name, len(order))
		return nil
	}
	var ps [][2]int
	for _, i := range order[:n] {
		ps = append(ps, [2]int{i, to})
	}
	return ps
}

// halves pairs the first half of the hosts with the second.
func (e *expander) halves() [][2]int {
	half := len(e.hosts) / 2
	n := cmp.Or(e.part.N, half)
	if !e.need(2 * max(n, 1)) {
		return nil
	}
	order := make([]int, len(e.hosts))
	for i := range order {
		order[i] = i
	}
	if e.part.Random {
		e.draw.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	var ps [][2]int
	for i := range half {
		if p := [2]int{order[i], order[i+half]}; len(ps) < n && (!e.part.Across || !e.together(&e.hosts[p[0]], &e.hosts[p[1]])) {
			ps = append(ps, p)
		}
	}
	if len(ps) < n && e.part.N > 0 || len(ps) == 0 {
		e.found.Errorf("sim-few-hosts", diag.Pos{}, atMost(len(ps)), "%s: there are %d such pairs", e.part.String(), len(ps))
	}
	return ps
}

func (e *expander) everyPair() [][2]int {
	n := cmp.Or(e.part.N, len(e.hosts))
	if !e.need(max(n, 2)) {
		return nil
	}
	var ps [][2]int
	for k := 1; k < n; k++ {
		for i := range n {
			if j := (i + k) % n; !e.part.Across || !e.together(&e.hosts[i], &e.hosts[j]) {
				ps = append(ps, [2]int{i, j})
			}
		}
	}
	return ps
}

// permutation draws a circle of hosts, in which each sends to the next. With Across, hosts of one switch stand beside each
// other in the circle, and each sends as far ahead as the most hosts of a switch.
func (e *expander) permutation() [][2]int {
	n := cmp.Or(e.part.N, len(e.hosts))
	if !e.need(max(n, 2)) {
		return nil
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	e.draw.shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	ahead := 1
	if e.part.Across {
		rank, size := map[int]int{}, map[int]int{}
		leaf := func(i int) int { return e.nics[e.hosts[i].points[0].nics[0]].leaf }
		for _, i := range order {
			if _, seen := rank[leaf(i)]; !seen {
				rank[leaf(i)] = len(rank)
			}
			size[leaf(i)]++
			ahead = max(ahead, size[leaf(i)])
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rank[leaf(i)], rank[leaf(j)]) })
	}
	ps := make([][2]int, n)
	for i := range order {
		ps[i] = [2]int{order[i], order[(i+ahead)%n]}
		if e.part.Across && e.together(&e.hosts[ps[i][0]], &e.hosts[ps[i][1]]) {
			e.found.Errorf("sim-few-hosts", diag.Pos{}, "leave across out", "%s: more than half of the hosts have a switch in common with %s", e.part.String(), e.hosts[ps[i][0]].name)
			return nil
		}
	}
	return ps
}

// victims are flows that share nothing with the others but their sender: to the hosts that receive the least, near first.
func (e *expander) victims() [][2]int {
	n := max(e.part.N, 1)
	got := make([]int, len(e.hosts))
	var senders []int
	place := func(nic int) int {
		dev := e.deviceOf(nic)
		return slices.IndexFunc(e.hosts, func(h host) bool { return h.dev == dev })
	}
	for i := range e.flows {
		f := &e.flows[i]
		if to := place(f.to); to >= 0 {
			got[to]++
		}
		if from := place(f.from); from >= 0 && !slices.Contains(senders, from) && len(senders) < n {
			senders = append(senders, from)
		}
	}
	if len(senders) == 0 {
		e.found.Errorf("sim-victim", diag.Pos{}, "write a part before it, such as incast:8", "%s: no host of it sends in a part before it", e.part.String())
		return nil
	}
	var ps [][2]int
	for i := range n {
		from, best := senders[i%len(senders)], -1
		near := func(j int) int {
			if e.together(&e.hosts[from], &e.hosts[j]) != e.part.Across {
				return 0
			}
			return 1
		}
		for j := range e.hosts {
			if j == from || e.part.Across && near(j) > 0 {
				continue
			}
			if best < 0 || cmp.Or(cmp.Compare(got[j], got[best]), cmp.Compare(near(j), near(best))) < 0 {
				best = j
			}
		}
		if best < 0 {
			e.need(len(e.hosts) + 1)
			return nil
		}
		got[best]++
		ps = append(ps, [2]int{from, best})
	}
	return ps
}

// deviceOf is the device of a NIC, by its place in the Net.
func (b *builder) deviceOf(nic int) int { return b.at[b.ports[b.nics[nic].port].dev.Name] }

// probeBytes and probeEvery are what probes are unless the part says so; a background's flows have backgroundBytes and its load is
// backgroundLoad.
const (
	probeBytes      = units.KB
	probeEvery      = 2 * units.Microsecond
	backgroundBytes = 64 * units.KB
	backgroundLoad  = 30 * units.OnePercent
)

// drawnPair is a sender and a receiver.
func (e *expander) drawnPair(from int) (x, y int, ok bool) {
	for range 1000 {
		x, y = from, int(e.draw.below(int64(len(e.hosts))))
		if from < 0 {
			x = int(e.draw.below(int64(len(e.hosts))))
		}
		if x != y && (!e.part.Across || !e.together(&e.hosts[x], &e.hosts[y])) {
			return x, y, true
		}
	}
	e.found.Errorf("sim-few-hosts", diag.Pos{}, "leave across out", "%s: hosts without a switch in common were not found", e.part.String())
	return 0, 0, false
}

func (e *expander) probes() {
	to, ok := e.receiver(-1)
	if !ok || !e.need(2) {
		return
	}
	every := int64(cmp.Or(e.part.Every, probeEvery))
	end := int64(e.warmup + e.measured)
	t := int64(e.part.Start)
	for n := 0; e.part.Count == 0 || n < e.part.Count; n++ {
		if t += e.draw.waiting(every); t >= end {
			return
		}
		x, y, ok := e.drawnPair(-1)
		if !ok {
			return
		}
		for to >= 0 && x == to {
			x = int(e.draw.below(int64(len(e.hosts))))
		}
		if to >= 0 {
			y = to
		}
		e.pair(x, y, units.Duration(t))
		if e.found.HasErrors() {
			return
		}
	}
}

// longestWait is the longest mean time that background's flows are apart, in ns: in no run is there more than one of them then.
const longestWait = 1 << 50

func (e *expander) background() {
	if !e.need(2) {
		return
	}
	bytes := int64(cmp.Or(e.part.Bytes, backgroundBytes))
	load := int64(cmp.Or(e.part.Load, backgroundLoad))
	end := int64(e.warmup + e.measured)
	for i := range e.hosts {
		rate := e.Config.Ports[e.nics[e.hosts[i].points[0].nics[0]].port].Rate / 1000 * load / int64(100*units.OnePercent) // kbit/s
		if rate == 0 {
			continue
		}
		mean := int64(min(float64(bytes)*8e6/float64(rate), longestWait)) // ns
		for t := int64(e.part.Start); ; {
			if t += e.draw.waiting(max(mean, 1)); t >= end {
				break
			}
			_, y, ok := e.drawnPair(i)
			if !ok {
				return
			}
			if e.pair(i, y, units.Duration(t)); e.found.HasErrors() {
				return
			}
		}
	}
}

// ring is an all-reduce: 2(n-1) steps, in each of which every host sends a part of the data to the next one, once it has
// received the part of the step before. Without a size, each host just sends to the next.
func (e *expander) ring() {
	n := len(e.hosts)
	if !e.need(2) {
		return
	}
	steps := cmp.Or(e.part.N, 2*(n-1))
	one := *e.part
	if e.part.Bytes == 0 {
		steps = 1
	} else {
		one.Bytes = (e.part.Bytes + units.Bytes(n) - 1) / units.Bytes(n)
	}
	whole := e.part
	e.part = &one
	defer func() { e.part = whole }()
	before := make([][]int, n) // flows of the step before, by sender
	for range steps {
		now := make([][]int, n)
		for i := range n {
			first := len(e.flows)
			prev := before[(i+n-1)%n]
			e.chained(i, (i+1)%n, prev)
			for k := first; k < len(e.flows); k++ {
				now[i] = append(now[i], k)
			}
			if e.found.HasErrors() {
				return
			}
		}
		before = now
	}
}

// chained makes the flows of a pair, each waiting for the one of prev in the same place.
func (e *expander) chained(x, y int, prev []int) {
	first := len(e.flows)
	e.pair(x, y, e.part.Start)
	for k := first; k < len(e.flows) && len(prev) > 0; k++ {
		f := &e.Config.Flows[k]
		f.After, f.Start = prev[min(k-first, len(prev)-1)], 0
	}
}

// trace makes the flows that a file lists.
func (e *expander) trace() {
	for i := range e.part.Flows {
		t := &e.part.Flows[i]
		one := *e.part
		one.Class, one.Bytes, one.Flows = cmp.Or(t.Class, e.part.Class), t.Bytes, nil
		e2 := *e
		e2.cached = nil
		e2.part, e2.priority = &one, e.priority
		if t.Class != "" {
			p, ok := e.classes.find(t.Class)
			if !ok {
				e.found.Errorf("sim-no-class", diag.Pos{}, e.hintNames(t.Class, e.classes.names()), "%s: flow %d: the fabric has no class %s", e.label, i+1, t.Class)
				return
			}
			e2.priority = p
		}
		x, ok := e2.end(t.Src)
		if !ok {
			return
		}
		y, ok := e2.end(t.Dst)
		if !ok {
			return
		}
		if x.dev == y.dev {
			e.found.Errorf("sim-trace", diag.Pos{}, "", "%s: flow %d goes from %s to itself", e.label, i+1, t.Src)
			return
		}
		e2.hosts = []host{x, y}
		if e2.pair(0, 1, t.Start); e.found.HasErrors() {
			return
		}
	}
}

// end is a host of a trace, with all its points or with the one of a NIC port.
func (e *expander) end(s string) (host, bool) {
	name, nic := cutName(s)
	one := *e.part
	one.Hosts = []string{name}
	hs := e.choose(&one, e.label, e.priority)
	if len(hs) == 0 {
		return host{}, false
	}
	if nic == "" {
		return hs[0], true
	}
	return e.withNIC(name, nic, e.label)
}
