package intent

import "testing"

// Each value that people are shown belongs to the area whose knowledge it needs: without that area it is not shown.
func TestFieldArea(t *testing.T) {
	p := Policy{
		Known: SwitchAreas | HostAreas, MTU: 9000, Trust: TrustDSCP,
		Watchdog: Watchdog{On: true, Detect: 1, Restore: 2, Poll: 3, Action: ActionDrop},
		NCCL:     NCCL{On: true, TrafficClass: 104, Timeout: 22, RetryCount: 7},
	}
	p.Queues[3] = Queue{Used: true, Lossless: true, Weight: 40, ECN: ECN{On: true, Kmin: 1, Kmax: 2, Pmax: 3}, Drop: true}
	p.Queues[6] = Queue{Used: true, Strict: true}
	seen := map[Area]bool{}
	for _, v := range Values(&p) {
		a, ok := v.Field.Area()
		if !ok {
			t.Errorf("%s has no area", v.Field)
			continue
		}
		seen[a] = true
		less := p.Only(p.Known &^ AreaSet(a))
		for _, w := range Values(&less) {
			if w.Field == v.Field && w.Text == v.Text {
				t.Errorf("%s is of area %s, but is known without it", v.Field, a)
			}
		}
	}
	for a := range NumAreas {
		if p.Known.Has(a) && !seen[a] {
			t.Errorf("no value is of area %s", a)
		}
	}
	if _, ok := Field("nonsense").Area(); ok {
		t.Error("nonsense has an area")
	}
}
