package perftest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// Plan is tests that take place at the same time: a workload, as far as verbs tests can have it.
type Plan struct {
	Pairs    []Pair
	Duration time.Duration // that is measured, whole seconds
	Margin   time.Duration // before and after it
}

// Pair is one test of a plan. Of its Test, the device, its port, the GID, the TCP port and how many messages a latency test
// has are filled in by the Session.
type Pair struct {
	Part           string // of the workload, by its label
	Client, Server End    // the client begins the test, and has its result
	Test
	Class    string
	Priority int // that the class has
}

// End is the NIC of a host that takes part, as the model has it. What finds its RDMA device is the address, or the interface
// where there is none.
type End struct {
	Host    string
	Name    string     // by which other hosts know it; used where its GID is a link-local address
	Iface   string     // of the kernel; "" = not known
	Bond    string     // that it is a member of; "" = none
	RDMA    string     // device; "" = whichever has the GID
	Address netip.Addr // on the fabric; not valid = not known

	Switch, SwitchIface string // at the other end of its link; "" = not known
}

// data are the ends of a pair as data goes, and back where it does too.
func (p *Pair) data() [][2]End {
	to := [2]End{p.Client, p.Server}
	if p.Op == Read {
		to = [2]End{p.Server, p.Client}
	}
	if p.Bidirectional {
		return [][2]End{to, {to[1], to[0]}}
	}
	return [][2]End{to}
}

// Lane is who sends to whom, as whoever knows the fabric says: data goes From an end To another.
type Lane struct {
	Part     int // of the workload
	From, To End
	DSCP     uint8
	Class    string
	Priority int
	Back     bool // the way back of a part with both directions
}

// Settings are what a workload does not say of its tests.
type Settings struct {
	RDMACM   bool // connect by rdma_cm
	AnyClock bool // say nothing of a CPU whose clock is not at its highest (-F)
	Patient  bool // wait more than a second for an acknowledgement: hosts that answer late would be sent everything twice
	CPU      bool // measure the CPU's load
}

// usual are what a workload has in whole seconds where it does not say.
const (
	usualDuration = 5 * time.Second
	usualMargin   = time.Second
)

// patience is 4.096 us * 2^18 = 1.07 s.
const patience = 18

// Express says what of a workload verbs tests cannot do, as an *observe.Error; nil = nothing. They send without a pause, for whole
// seconds, from when they begin until all end.
func Express(w *observe.Workload) error {
	if err := w.Check(); err != nil {
		return err
	}
	refuse := func(text, what, hint string) error { return &observe.Error{Text: text, What: what, Hint: hint} }
	if d := time.Duration(w.Duration); d%time.Second != 0 {
		return refuse("for "+w.Duration.String(), "is not whole seconds, which verbs tests measure for", "write for=5s, or more")
	}
	for i := range w.Parts {
		p, label := &w.Parts[i], w.Label(i)
		switch p.Kind {
		case observe.Ring:
			return refuse(label, "has steps that wait for one another, which verbs tests do not", "use permutation, and a training's own launcher as the gate")
		case observe.Background:
			return refuse(label, "has flows at drawn times, which verbs tests do not", "use pairs or permutation")
		case observe.Trace:
			return refuse(label, "has flows at given times, which verbs tests do not", "use pairs, incast or permutation")
		}
		switch {
		case p.Every > 0 && p.Kind != observe.Probe, p.Random:
			return refuse(label, "has bursts, and verbs tests send without a pause", "leave out every, jitter, count and random; more senders or queue pairs (qps) fill queues as well")
		case p.Bytes > 0 && p.Kind != observe.Probe:
			return refuse(label, "has flows that end, and verbs tests are measured for a time", "leave out bytes; size=64KiB is that of a message")
		case p.Start > 0 || p.Spread > 0:
			return refuse(label, "begins later than the others, and verbs tests begin together", "leave out start and spread")
		}
	}
	return nil
}

// Once is the workload for whoever counts its lanes: of probes, which are drawn for as long as a run takes, one of each pair.
func Once(w observe.Workload) observe.Workload {
	w.Parts = slices.Clone(w.Parts)
	for i := range w.Parts {
		if p := &w.Parts[i]; p.Kind == observe.Probe {
			p.Count = 1
		}
	}
	w.Duration, w.Warmup = 0, 0
	return w
}

// NewPlan makes the tests of a workload. A workload that Express refuses is refused.
func NewPlan(w *observe.Workload, lanes []Lane, s Settings) (Plan, error) {
	if err := Express(w); err != nil {
		return Plan{}, err
	}
	plan := Plan{Duration: cmp.Or(time.Duration(w.Duration), usualDuration), Margin: usualMargin}
	if warm := time.Duration(w.Warmup); warm > plan.Margin {
		plan.Margin = (warm + time.Second - 1).Truncate(time.Second)
	}
	for _, l := range lanes {
		if l.Back {
			continue // it is the other direction of one that is there
		}
		part := &w.Parts[l.Part]
		p := Pair{Part: w.Label(l.Part), Client: l.From, Server: l.To, Class: l.Class, Priority: l.Priority}
		p.Test = Test{
			Op: Write, Latency: part.Latency || part.Kind == observe.Probe, Bidirectional: part.Both, QPs: part.QPs, Depth: part.Depth,
			Size: cmp.Or(part.Message, 64*units.KiB), MTU: part.MTU, ToS: l.DSCP << 2, RDMACM: s.RDMACM, AnyClock: s.AnyClock,
		}
		if s.Patient {
			p.AckTimeout = patience
		}
		switch part.Op {
		case observe.OpRead:
			p.Op, p.Client, p.Server = Read, l.To, l.From
		case observe.OpSend:
			p.Op = Send
		}
		if p.Latency {
			p.Size, p.Depth, p.QPs, p.Samples = cmp.Or(part.Message, part.Bytes, 2), 0, 0, true
		} else {
			p.Duration, p.Margin, p.CPU = plan.Duration, plan.Margin, s.CPU
		}
		if p.Client.Host == p.Server.Host {
			return Plan{}, &observe.Error{Text: p.Part, What: fmt.Sprintf("has %s send to itself, which never reaches the fabric", p.Client.Host), Hint: "name other hosts"}
		}
		plan.Pairs = append(plan.Pairs, p)
	}
	if len(plan.Pairs) == 0 {
		return Plan{}, &observe.Error{Text: w.String(), What: "has no pair of hosts"}
	}
	return plan, nil
}

// hosts are those that take part, each once, in the order of their names.
func (p *Plan) hosts() []string {
	var out []string
	for i := range p.Pairs {
		out = append(out, p.Pairs[i].Client.Host, p.Pairs[i].Server.Host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tools are the programs that a host needs.
func (p *Plan) tools(host string) []string {
	out := []string{"timeout"}
	for i := range p.Pairs {
		if x := &p.Pairs[i]; x.Client.Host == host || x.Server.Host == host {
			out = append(out, x.name())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
