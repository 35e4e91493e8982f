package tuning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// loadPrefix begins the names of variables of the load itself: "workload.depth", or of one of its parts "workload.depth@victim".
// Such a variable has neither a path nor a command: WorkloadAt puts its value into the workload of a trial.
const loadPrefix = "workload."

// usualMessage is the size of a message where the workload gives none, as verbs tests have it.
const usualMessage = 64 * units.KiB

// loadKnob is what may be moved of a part of a workload.
type loadKnob struct {
	Variable // its name without the prefix
	usual    float64
	get      func(*observe.Part) float64 // 0 = the part does not say
	set      func(*observe.Part, float64)
}

func loadKnobs() []loadKnob {
	return []loadKnob{
		{
			Variable{Name: "depth", Doc: "messages of a queue pair under way at most", Of: Number, Low: 1, High: 1024, Ladder: []float64{1, 4, 16, 64, 256, 1024}, Whole: true, Step: 2, Fine: 1.25},
			128, func(p *observe.Part) float64 { return float64(p.Depth) }, func(p *observe.Part, v float64) {
				if p.Depth = int(v); p.Message == 0 {
					p.Message = usualMessage // a depth counts messages of a size
				}
			},
		},
		{
			Variable{Name: "qps", Doc: "queue pairs of each pair of hosts", Of: Number, Low: 1, High: 256, Ladder: []float64{1, 4, 16, 64, 256}, Whole: true, Step: 2, Fine: 1.25},
			1, func(p *observe.Part) float64 { return float64(p.QPs) }, func(p *observe.Part, v float64) { p.QPs = int(v) },
		},
		{
			Variable{Name: "size", Doc: "bytes of a message", Of: Size, Low: 4096, High: 8 << 20, Ladder: []float64{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20}, Whole: true, Step: 2, Fine: 1.25},
			float64(usualMessage), func(p *observe.Part) float64 { return float64(p.Message) }, func(p *observe.Part, v float64) { p.Message = units.Bytes(v) },
		},
	}
}

// IsWorkload reports whether the variable is one of the load itself, and of nothing that a device holds.
func (v *Variable) IsWorkload() bool { return strings.HasPrefix(v.Name, loadPrefix) }

// WorkloadVariable is the variable of a workload that a name stands for, and where it is now. Without a part behind an @ it moves all
// parts that send without pauses and are not there for their latency, which then have to agree.
func WorkloadVariable(name string, w *observe.Workload) (v Variable, now float64, err error) {
	k, parts, err := loadKnobOf(name, w)
	if err != nil {
		return v, 0, err
	}
	for i, p := range parts {
		x := k.get(&w.Parts[p])
		if x == 0 {
			x = k.usual
		}
		if i > 0 && x != now {
			return v, 0, fmt.Errorf("%s: the parts of the workload differ in it; name one of them: %s@%s", name, name, w.Label(p))
		}
		now = x
	}
	v = k.Variable
	v.Name = name
	v.Low, v.High = min(v.Low, now), max(v.High, now)
	return v, now, nil
}

// loadKnobOf is what a name stands for, and the parts of w that it moves.
func loadKnobOf(name string, w *observe.Workload) (k loadKnob, parts []int, err error) {
	what, label, one := strings.Cut(strings.TrimPrefix(name, loadPrefix), "@")
	knobs := loadKnobs()
	i := slices.IndexFunc(knobs, func(k loadKnob) bool { return k.Name == what })
	if i < 0 || !strings.HasPrefix(name, loadPrefix) {
		return k, nil, fmt.Errorf("%q is not a variable of a workload: there are workload.depth, workload.qps and workload.size, and of one part workload.depth@PART", name)
	}
	var labels []string
	for j := range w.Parts {
		p := &w.Parts[j]
		steady := !p.Latency && p.Kind != observe.Probe && p.Kind != observe.Background && p.Kind != observe.Trace
		if steady {
			labels = append(labels, w.Label(j))
		}
		if steady && (!one || w.Label(j) == label) {
			parts = append(parts, j)
		}
	}
	if len(parts) == 0 {
		has := "no part of the workload has it"
		if len(labels) > 0 {
			has = fmt.Sprintf("no such part of the workload has it: there is %s", strings.Join(labels, ", "))
		}
		return k, nil, fmt.Errorf("%s: %s", name, has)
	}
	return knobs[i], parts, nil
}

// WorkloadAt is w with what a setting says of the load itself; w stays as it is.
func WorkloadAt(w observe.Workload, vars []Variable, s Setting) observe.Workload {
	copied := false
	for i := range vars {
		if !vars[i].IsWorkload() || i >= len(s) {
			continue
		}
		k, parts, err := loadKnobOf(vars[i].Name, &w)
		if err != nil {
			continue // it was refused when the space was made
		}
		if !copied {
			w.Parts, copied = slices.Clone(w.Parts), true
		}
		for _, p := range parts {
			k.set(&w.Parts[p], s[i])
		}
	}
	return w
}
