package engine_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// played is a recorded run as we computed it.
type played struct {
	*laid
	*engine.Result
	Pauses []pause // in the order in which they were obeyed
}

// pause is a pause or resume that a port obeyed.
type pause struct {
	At   engine.Time
	Port int
	On   bool
}

func (r *recorded) play(t testing.TB, seed uint64, change ...func(*engine.Config)) *played {
	t.Helper()
	l, err := r.In.lay(seed)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	p := &played{laid: l}
	l.Config.Pauses = func(at engine.Time, port, priority int, on bool) {
		if priority == dataPriority {
			p.Pauses = append(p.Pauses, pause{at, port, on})
		}
	}
	for _, c := range change {
		c(l.Config)
	}
	if p.Result, err = engine.Run(t.Context(), l.Config); err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	return p
}

// deterministic says that chance decides nothing in a run: the reference marked no packet.
func (r *recorded) deterministic() bool { return r.Row != nil && r.Row["ecn_marks"] == "0" }

// totals is our run in the columns of runs.csv, in its units.
func (p *played) totals(in *input) map[string]float64 {
	m := map[string]float64{"sim_ns": ns(p.At)}
	var fct []float64
	var bytes int64
	first, last := engine.Time(-1), engine.Time(0)
	for i := range p.Result.Flows {
		f := &p.Result.Flows[i]
		if f.Done {
			fct = append(fct, ns(f.Completion))
		}
		bytes += p.Config.Flows[i].Bytes
		m["nacks"] += float64(f.NACKs)
		m["gobackn_bytes"] += float64(f.ResentBytes)
		m["data_pkts_sent"] += float64(f.Sent)
		m["cnp_rx"] += float64(f.CNPs)
		m["rate_decrease_events"] += float64(f.Cuts)
		if start := p.Config.Flows[i].Start; first < 0 || start < first {
			first = start
		}
		last = max(last, p.Config.Flows[i].Start+f.Completion)
	}
	n := len(fct)
	m["flows"], m["finished"] = float64(len(p.Result.Flows)), float64(n)
	if n > 0 {
		slices.Sort(fct)
		sum := 0.0
		for _, v := range fct {
			sum += v
		}
		m["fct_min_ns"], m["fct_mean_ns"], m["fct_max_ns"] = fct[0], sum/float64(n), fct[n-1]
		m["fct_p50_ns"], m["fct_p99_ns"] = fct[n/2], fct[min(n-1, n*99/100)]
	}
	if n == len(p.Result.Flows) {
		m["agg_goodput_gbps_if_all_done"] = float64(bytes) * 8 / ns(last-first)
	}
	if in.Config.Half > 0 {
		for i := range p.Result.Flows { // each was rounded before they were added up
			v := float64(p.Result.Flows[i].Acked-p.ackedAt(since(in.Config.Half), i)) * 8 / ns(p.At-since(in.Config.Half))
			m["agg_goodput_gbps_second_half"] += math.Round(v*1e3) / 1e3
		}
	}
	p.addPorts(m, in.Config.ECN != 0)
	p.addPauses(m)
	p.busiest(m)
	return m
}

func ns(t engine.Time) float64 { return float64(t) / float64(engine.Nanosecond) }

// ackedAt is what all flows together had acknowledged at a time that there is a sample of.
func (p *played) ackedAt(at engine.Time, of ...int) (sum int64) {
	for i := range p.Series {
		if s := &p.Series[i]; s.At == at {
			for f, v := range s.Acked {
				if len(of) == 0 || slices.Contains(of, f) {
					sum += v
				}
			}
		}
	}
	return sum
}

func (p *played) rateAt(at engine.Time, flow int) int64 {
	for i := range p.Series {
		if p.Series[i].At == at {
			return p.Series[i].Rates[flow]
		}
	}
	return 0
}

func (p *played) addPorts(m map[string]float64, marking bool) {
	for i := range p.Result.Ports {
		r, atSwitch := &p.Result.Ports[i], p.Config.Ports[i].Switch != engine.None
		g, q := &r.Groups[dataPriority], &r.Queues[dataPriority]
		tx := float64(r.TxFrames + g.PausesSent + g.ResumesSent)
		m["tx_all_ports"] += tx
		m["pause_sent"] += float64(g.PausesSent)
		m["resume_sent"] += float64(g.ResumesSent)
		if atSwitch {
			m["tx_switch_ports"] += tx
			m["pause_rx_at_switches"] += float64(g.PausesReceived)
			for _, d := range r.Drops {
				m["drops"] += float64(d)
			}
			m["headroom_max_bytes"] = max(m["headroom_max_bytes"], float64(g.HeadroomMax))
			m["ecn_marks"] += float64(q.Marked)
			if marking {
				m["data_and_lowprio_switch_dequeues"] += float64(r.TxFrames)
			}
		} else {
			m["pause_rx_at_hosts"] += float64(g.PausesReceived)
		}
	}
	for i := range p.Result.Switches {
		m["shared_max_bytes"] = max(m["shared_max_bytes"], float64(p.Result.Switches[i].SharedMax[0]))
	}
}

// addPauses counts times from pause to resume; one that lasts at the end is in neither.
func (p *played) addPauses(m map[string]float64) {
	since := map[int]engine.Time{}
	for _, e := range p.Pauses {
		begun, stopped := since[e.Port]
		switch {
		case e.On && !stopped:
			since[e.Port] = e.At
		case !e.On && stopped:
			m["pause_total_ns"] += ns(e.At - begun)
			m["pause_longest_ns"] = max(m["pause_longest_ns"], ns(e.At-begun))
			delete(since, e.Port)
		}
	}
}

// queueColumns is a queue as queues.csv has it.
func queueColumns(q *engine.QueueResult) map[string]float64 {
	return map[string]float64{
		"mean_bytes": q.Mean, "p50_kB": float64(q.P50 / 1000), "p95_kB": float64(q.P95 / 1000), "p99_kB": float64(q.P99 / 1000), "max_bytes": float64(q.Max),
	}
}

// busiest adds the switch's queue that is the longest in the mean, under the names of runs.csv. Which one that is, is chance too.
func (p *played) busiest(m map[string]float64) {
	best := -1.0
	for _, at := range slices.SortedFunc(maps.Keys(p.ports), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		i := p.ports[at]
		if q := &p.Result.Ports[i].Queues[dataPriority]; p.Config.Ports[i].Switch != engine.None && q.Mean > best {
			best = q.Mean
			m["bq_switch"], m["bq_port"] = float64(at[0]), float64(at[1])
			for name, v := range queueColumns(q) {
				m["bq_"+name] = v
			}
		}
	}
}

// flow finds a recorded flow by what names it.
func (p *played) flow(t testing.TB, r row) int {
	t.Helper()
	for i := range p.Config.Flows {
		f := &p.Config.Flows[i]
		if p.hosts[f.Src] == r.int(t, "src") && p.hosts[f.Dst] == r.int(t, "dst") && (r["sport"] == "" || strconv.Itoa(int(f.SourcePort)) == r["sport"]) {
			return i
		}
	}
	t.Fatalf("no such flow: %v", r)
	return 0
}
