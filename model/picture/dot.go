package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Dot is the topology in the language of Graphviz, the highest tier at the top, with links between the same two devices
// in one line. hosts says whether hosts are drawn.
func (g Graph) Dot(hosts bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s {\n  rankdir=TB; node [shape=box]; edge [fontsize=10];\n", quote(g.Fabric))
	tier := -1
	for _, t := range g.Tiers {
		if t.Tier == 0 && !hosts {
			continue
		}
		if t.Tier != tier {
			if tier >= 0 {
				b.WriteString("  }\n")
			}
			tier = t.Tier
			b.WriteString("  { rank=same;\n")
		}
		for _, d := range t.Devices {
			fmt.Fprintf(&b, "    %s [label=%s];\n", quote(d), quote(d+"\n"+t.Platform))
		}
	}
	if tier >= 0 {
		b.WriteString("  }\n")
	}
	for _, e := range g.edges(hosts) {
		style := ""
		if e.role == "peer-link" {
			style = ", constraint=false, style=dashed"
		}
		fmt.Fprintf(&b, "  %s -- %s [label=%s%s];\n", quote(e.upper), quote(e.lower), quote(e.label()), style)
	}
	for i, x := range g.Exits {
		id := quote(fmt.Sprintf("outside %d", i+1))
		fmt.Fprintf(&b, "  %s [label=\"outside\", shape=plaintext];\n  %s -- %s [label=%s];\n", id, id, quote(x.Device), quote(x.Port))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotEdge is all links of one speed and role between two devices.
type dotEdge struct {
	upper, lower, speed, role string
	n                         int
}

func (e dotEdge) label() string {
	if e.n > 1 {
		return fmt.Sprintf("%d x %s", e.n, e.speed)
	}
	return e.speed
}

// edges are the links as they are drawn, by their upper and then their lower end.
func (g Graph) edges(hosts bool) []dotEdge {
	var es []dotEdge
	at := map[dotEdge]int{}
	for _, l := range g.Links {
		if l.A.tier == 0 && !hosts {
			continue
		}
		e := dotEdge{upper: l.B.Device, lower: l.A.Device, role: l.Role}
		if l.Speed > 0 {
			e.speed = l.Speed.String()
		}
		i, ok := at[e]
		if !ok {
			i = len(es)
			at[e] = i
			es = append(es, e)
		}
		es[i].n++
	}
	slices.SortStableFunc(es, func(a, b dotEdge) int {
		if c := intent.CompareNames(a.upper, b.upper); c != 0 {
			return c
		}
		return intent.CompareNames(a.lower, b.lower)
	})
	return es
}

// quote is s as a quoted identifier of the dot language, where a line break is written \n.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
