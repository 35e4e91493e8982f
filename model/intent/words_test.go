package intent

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDifferencesOfThePath says of the way of a priority only what is different, and nothing that follows from PFC.
func TestDifferencesOfThePath(t *testing.T) {
	known := AreaSet(AreaMaps) | AreaSet(AreaPFC) | AreaSet(AreaScheduler)
	policy := func(edit func(*Policy)) *Policy {
		p := &Policy{Known: known}
		for i := range p.TCQueue {
			p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
		}
		p.Queues[3] = Queue{Used: true, Lossless: true}
		p.TCPG[3] = 3
		edit(p)
		return p
	}
	want := policy(func(*Policy) {})
	for _, c := range []struct {
		name string
		live *Policy
		says []string
	}{
		{"the same", policy(func(*Policy) {}), nil},
		{"PFC off, and its group with it", policy(func(p *Policy) { p.Queues[3].Lossless, p.TCPG[3] = false, 0 }), []string{"priority 3 pfc: off → on"}},
		{"the wrong group", policy(func(p *Policy) { p.TCPG[3] = 0 }), []string{"priority 3 path: pg 0 → pg 3"}},
		{"PFC off, in its group", policy(func(p *Policy) { p.Queues[3].Lossless = false }), []string{"priority 3 pfc: off → on"}},
		{"another queue", policy(func(p *Policy) { p.TCQueue[3], p.PFCQueue[3] = 4, 4 }), []string{"priority 3 path: queue 4 → queue 3"}},
		{"a pause that stops another queue", policy(func(p *Policy) { p.PFCQueue[3] = 0 }), []string{"priority 3 path: pause 0 → pause 3"}},
		{"no maps", policy(func(p *Policy) { p.TCQueue[3], p.PFCQueue[3], p.TCPG[3] = Unmapped, Unmapped, Unmapped }), []string{
			"priority 3 path: none → queue 3",
		}},
		{"not in use", policy(func(p *Policy) { p.Queues[3], p.TCPG[3] = Queue{}, 0 }), []string{"priority 3 pfc: off → on", "priority 3 scheduling: none → weighted", "priority 3 path: none → queue 3"}},
		{"PFC not known", policy(func(p *Policy) { p.Known &^= AreaSet(AreaPFC); p.Queues[3].Lossless, p.TCPG[3] = false, 0 }), []string{"priority 3 pfc: not known → on"}},
	} {
		var says []string
		for _, d := range Differences(c.live, want) {
			says = append(says, fmt.Sprintf("%s: %s → %s", d.Label, d.Before, d.After))
		}
		if d := cmp.Diff(c.says, says); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
