package sim

import (
	"math"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

func equations(t *testing.T, n *intent.Net, load string) (*Equations, error) {
	t.Helper()
	s, err := Build(n, workload(t, load), Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s.Equations()
}

// TestEquations: what the equations are made of.
func TestEquations(t *testing.T) {
	small := example(t, "small")
	e, err := equations(t, small, "incast:8,to=host1,bytes=10MB + single,hosts=host20/host21 + probe")
	if err != nil {
		t.Fatal(err)
	}
	m := e.Model
	count := 0
	for _, f := range m.Flows {
		count += f.Count
		if f.Line != 400*units.Gbps || f.Feedback < 500 || f.Feedback > 2000 {
			t.Errorf("%+v", f)
		}
	}
	want := derive.Ramp{Kmin: 800 * units.KB, Kmax: 3200 * units.KB, Pmax: 20 * units.OnePercent}
	if len(m.Links) != 1 || e.Queues[0].String() != "leaf1:Ethernet0" || e.Queues[0].Queue != 3 || m.Links[0].Ramp != want || count != 8 {
		t.Errorf("%v %+v", e.Queues, m)
	}
	if m.Spaced || m.DCQCN.CNPInterval != 4*units.Microsecond || m.DCQCN.RateTimer != 300*units.Microsecond || m.DCQCN.Packet != 4178 {
		t.Errorf("%+v", m.DCQCN)
	}
	text := strings.Join(e.Taken, "\n")
	for _, say := range []string{"probes", "nobody else overloads", "flows that end are taken to go on"} {
		if !strings.Contains(text, say) {
			t.Errorf("%q is not said:\n%s", say, text)
		}
	}
	one, err := equations(t, small, "incast:2,to=host1,hosts=host9/host10")
	if err != nil || one.Model.Links[0].Pause < 20*units.MB || one.Model.Links[0].Pause > 25*units.MB { // one port, which pauses at 22.6 MB
		t.Errorf("%v %+v", err, one)
	}
	if _, err := equations(t, small, "pairs"); err == nil || !strings.Contains(err.Error(), "no receiver gets more than its link carries") {
		t.Error(err)
	}
	off := edit(small, hosts, func(p *intent.Policy) { p.CC.Priorities = 0 })
	if _, err := equations(t, off, "incast:8"); err == nil || !strings.Contains(err.Error(), "congestion control is off") {
		t.Error(err)
	}
}

// TestEquationsAgree: of NICs that cut at notifications, the equations that are made of a fabric have the queue that packets have.
func TestEquationsAgree(t *testing.T) {
	n := edit(example(t, "small"), switches, func(p *intent.Policy) {
		p.Queues[3].ECN.Kmin, p.Queues[3].ECN.Kmax, p.Queues[3].ECN.Pmax = 400*units.KB, 3200*units.KB, 10*units.OnePercent
	})
	s, err := Build(n, workload(t, "incast:8,to=host1"), Options{Warmup: 30 * units.Millisecond, Duration: 30 * units.Millisecond}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Config.NICs {
		(&builder{Setup: *s}).paper(&s.Config.NICs[i])
	}
	e, err := s.Equations()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fluid.Solve(e.Model, fluid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theory, packets := f.Links[0].Mean, float64(r.Queues[0].Mean)
	t.Logf("equations %.0f B (%s), packets %.0f B", theory, f.Motion, packets)
	if math.Abs(packets/theory-1) > 0.15 {
		t.Errorf("equations %.0f B, packets %.0f B", theory, packets)
	}
}
