package sim

import (
	"cmp"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// Observation is the result as tuning and the lab read it, whoever has measured. Counters begin at zero when the warm-up ends,
// at the time 0 of Unix.
func (r *Result) Observation() observe.Observation {
	goodput := float64(r.Totals.Goodput)
	o := observe.Observation{
		Workload: r.setup.workload, Goodput: &goodput, Notes: append(append([]string{}, r.Why...), r.Assumed...),
		Before: map[string]observe.Counters{}, After: map[string]observe.Counters{},
	}
	o.Parts = map[string]float64{}
	for i := range r.Parts {
		p := &r.Parts[i]
		o.Parts[p.Name] = float64(p.Goodput)
		if o.Fairness == nil && p.Fairness > 0 {
			o.Fairness = &p.Fairness
		}
	}
	r.latency(&o)
	const each = 150 // counters of a port, or a few less
	ports := map[string]int{}
	for i := range r.raw.Ports {
		ports[r.setup.ports[i].dev.Name]++
	}
	for i := range r.raw.Ports {
		d := r.setup.ports[i].dev.Name
		if _, ok := o.After[d]; !ok {
			at := time.Unix(0, int64(r.Warmup)).UTC()
			o.Before[d] = observe.Counters{At: at, Values: make(map[observe.Port]uint64, each*ports[d])}
			o.After[d] = observe.Counters{At: at.Add(time.Duration(r.Measured)), Values: make(map[observe.Port]uint64, each*ports[d])}
		}
		r.count(i, o.Before[d].Values, o.After[d].Values)
	}
	return o
}

// latency puts together the times of all parts that measure latency, or else the completion times of all that end.
func (r *Result) latency(o *observe.Observation) {
	measured := false
	for i := range r.Parts {
		measured = measured || r.Parts[i].measured
	}
	var all engine.Histogram
	for i := range r.Parts {
		if r.Parts[i].measured == measured {
			all.Merge(&r.Parts[i].counted)
		}
	}
	if all.Total == 0 {
		return
	}
	q := func(p float64) *time.Duration {
		d := time.Duration(all.Quantile(p))
		return &d
	}
	o.P50, o.P99, o.P999 = q(0.5), q(0.99), q(0.999)
	o.Latency = buckets(&all)
}

// Counted are the times behind g.Latency where the part measures it, else those behind g.Completion, counted.
func (g *Group) Counted() []observe.Bucket { return buckets(&g.counted) }

func buckets(h *engine.Histogram) (bs []observe.Bucket) {
	for b, n := range h.Counts {
		if n > 0 {
			bs = append(bs, observe.Bucket{From: time.Duration(engine.LowerEdge(b)), Count: n})
		}
	}
	return bs
}

// count adds the counters of a port.
func (r *Result) count(i int, before, after map[observe.Port]uint64) {
	s := r.setup
	x, peer := &r.raw.Ports[i], &r.raw.Ports[s.Config.Ports[i].Peer]
	iface := cmp.Or(s.ports[i].port.Iface, s.ports[i].port.Name)
	put := func(n observe.Name, v uint64) {
		p := observe.Port{Iface: iface, Name: n}
		after[p] = v
		if d, _ := observe.Describe(n); !d.Gauge {
			before[p] = 0
		}
	}
	nic := s.Config.Ports[i].Switch == engine.None
	var in, out uint64
	for p := range 8 {
		g, q, from := &x.Groups[p], &x.Queues[p], &peer.Queues[p]
		put(observe.PFCTx.Of(p), g.PausesSent+g.ResumesSent+g.RefreshesSent)
		put(observe.PFCRx.Of(p), peer.Groups[p].PausesSent+peer.Groups[p].ResumesSent+peer.Groups[p].RefreshesSent)
		put(observe.PFCPaused.Of(p), nanoseconds(g.Paused))
		put(observe.PFCPausing.Of(p), nanoseconds(peer.Groups[p].Paused))
		put(observe.TxPackets.Of(p), q.TxFrames)
		put(observe.TxBytes.Of(p), q.TxBytes)
		put(observe.RxPackets.Of(p), from.TxFrames)
		put(observe.RxBytes.Of(p), from.TxBytes)
		put(observe.Drop.Of(p), g.Drops+q.Drops)
		put(observe.DropIn.Of(p), g.Drops)
		in, out = in+g.Drops, out+q.Drops
		if nic {
			continue
		}
		put(observe.DropOut.Of(p), q.Drops)
		put(observe.ECNMarked.Of(p), q.Marked)
		put(observe.QueueWatermark.Of(p), uint64(q.Max))
		put(observe.GroupWatermark.Of(p), uint64(g.Max))
		put(observe.RoomWatermark.Of(p), uint64(g.HeadroomMax))
		if w := s.Config.Ports[i].Watchdog; w.Action != engine.WatchdogOff && w.Queues&(1<<p) != 0 {
			put(observe.WatchdogStuck.Of(p), q.Stuck)
			put(observe.WatchdogFreed.Of(p), q.Restored)
		}
	}
	put(observe.PortTxPackets, x.TxFrames)
	put(observe.PortTxBytes, x.TxBytes)
	put(observe.PortRxPackets, peer.TxFrames)
	put(observe.PortRxBytes, peer.TxBytes)
	put(observe.PortDropIn, in)
	put(observe.PortDropOut, out)
	put(observe.PortOversize, x.Drops[engine.DropMTU])
	if nic {
		r.countNIC(i, put)
	}
}

func nanoseconds(t engine.Time) uint64 { return uint64(toDuration(t)) }

// countNIC adds what only NICs count.
func (r *Result) countNIC(port int, put func(observe.Name, uint64)) {
	var marked, handled, naks, timeouts uint64
	for n := range r.setup.nics {
		if r.setup.nics[n].port != port {
			continue
		}
		for _, i := range r.setup.flowsOf[n] {
			f, x := &r.setup.flows[i], &r.raw.Flows[i]
			if f.to == n {
				marked += x.Marked
			}
			if f.from == n {
				handled, naks, timeouts = handled+x.CNPs, naks+x.NACKs, timeouts+x.Timeouts
			}
		}
		raw := &r.raw.NICs[n]
		put(observe.CNPSent, raw.CNPsSent)
		put(observe.OutOfSequence, raw.OutOfSeq)
		put(observe.Duplicates, raw.Duplicate)
	}
	put(observe.ECNReceived, marked)
	put(observe.CNPHandled, handled)
	put(observe.NAKReceived, naks)
	put(observe.AckTimeouts, timeouts)
	put(observe.NoBuffer, r.raw.Ports[port].Drops[engine.DropNIC])
}
