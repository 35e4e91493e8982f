package lint_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
)

// TestLosslessProtected: what a switch does is held against the classes of the model, where enough of it is known.
func TestLosslessProtected(t *testing.T) {
	_, good := examples(t, "lossless-protected")
	const because = "class training is lossless, but its dscp 26 leads to priority "
	for name, c := range map[string]struct {
		edit func(*intent.Policy)
		role string
		want []string
	}{
		"as the model asks": {edit: func(*intent.Policy) {}},
		"the maps lead elsewhere": {
			edit: func(p *intent.Policy) { p.DSCP[26] = 4 },
			want: []string{`fabric.yaml:14:12: error: lossless-protected: ` + because + `4 on leaf1:downlink-1, where PFC is on for priority 3: a full buffer drops it
    hint: map dscp 26 to priority 3 on leaf1:downlink-1`},
		},
		"PFC is elsewhere": {
			edit: func(p *intent.Policy) { p.Queues[3].Lossless, p.Queues[4].Lossless = false, true },
			want: []string{`fabric.yaml:16:15: error: lossless-protected: ` + because + `3 on leaf1:downlink-1, where PFC is on for priority 4: a full buffer drops it
    hint: switch PFC on for priority 3 on leaf1:downlink-1`},
		},
		"both are elsewhere, and do not meet": {
			edit: func(p *intent.Policy) { p.Queues[3].Lossless, p.DSCP[26] = false, 4 },
			want: []string{`fabric.yaml:14:12: error: lossless-protected: ` + because + `4 on leaf1:downlink-1, where PFC is on for no priority: a full buffer drops it
    hint: map dscp 26 to priority 3, and switch PFC on for it, on leaf1:downlink-1`},
		},
		"both are elsewhere, together": {edit: func(p *intent.Policy) { p.DSCP[26], p.Queues[3].Lossless, p.Queues[4].Lossless = 4, false, true }},
		"nothing maps it": {
			edit: func(p *intent.Policy) { p.DSCP[26] = intent.Unmapped },
			want: []string{`fabric.yaml:14:12: error: lossless-protected: class training is lossless, but its dscp 26 leads to no priority on leaf1:downlink-1, where PFC is on for priority 3: a full buffer drops it
    hint: map dscp 26 to priority 3 on leaf1:downlink-1`},
		},
		"a border port":      {edit: func(p *intent.Policy) { p.Queues[3].Lossless = false }, role: "border"},
		"PFC is not known":   {edit: func(p *intent.Policy) { *p = p.Only(intent.AreaSet(intent.AreaMaps)) }},
		"maps are not known": {edit: func(p *intent.Policy) { p.DSCP[26] = 4; *p = p.Only(intent.AreaSet(intent.AreaPFC)) }},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(good.model)}}, "fabric.yaml")
			n, _ := intent.Resolve(f)
			edit(n, "leaf1", "downlink-1", c.edit)
			if p := n.Device("leaf1").Port("downlink-1"); c.role != "" {
				p.Role = c.role
			}
			var got []string
			for _, x := range lint.Check(n, routed(f)) {
				if x.Rule == "lossless-protected" {
					got = append(got, x.String())
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
