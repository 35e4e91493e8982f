package sim

// Lane is who sends to whom in a run, by the model's names: for runners that have hosts do what a simulation would.
type Lane struct {
	Part             int // of the workload
	Src, SrcPort     string
	Dst, DstPort     string // as data goes: of a read, Src is who is read from
	DSCP             uint8
	Priority         int // that the code point has
	Class            string
	Flows            int  // between the two: queue pairs, or times that it came up in what was drawn
	Latency, Reverse bool // Reverse: a lane of a part with both directions, back from the one before
}

// Lanes are the pairs of the workload, by part, each once and in the order in which they first come up.
func (s *Setup) Lanes() []Lane {
	type key struct{ part, from, to int }
	at := map[key]int{}
	var out []Lane
	for i := range s.flows {
		f := &s.flows[i]
		k := key{f.part, f.from, f.to}
		if j, seen := at[k]; seen {
			out[j].Flows++
			continue
		}
		x, y := &s.ports[s.nics[f.from].port], &s.ports[s.nics[f.to].port]
		_, back := at[key{f.part, f.to, f.from}]
		at[k] = len(out)
		out = append(out, Lane{
			Part: f.part, Src: x.dev.Name, SrcPort: x.port.Name, Dst: y.dev.Name, DstPort: y.port.Name, DSCP: f.dscp,
			Priority: f.priority, Class: s.classes.of(f.priority), Flows: 1, Latency: f.latency, Reverse: back && s.workload.Parts[f.part].Both,
		})
	}
	return out
}
