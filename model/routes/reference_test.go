package routes

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
)

// known is the graphs with known answers: paths of named nodes, with one class or one for each link.
type known struct {
	Topologies []struct {
		ID    string `yaml:"id"`
		Paths []path `yaml:"paths"`
		Want  answer `yaml:"expect"`
	} `yaml:"topologies"`
}

type path struct {
	Class classes  `yaml:"class"`
	Nodes []string `yaml:"nodes"`
}

// classes is one class, or one for each link.
type classes []uint8

func (c *classes) UnmarshalYAML(n *yaml.Node) error {
	var one uint8
	if n.Kind == yaml.ScalarNode {
		err := n.Decode(&one)
		*c = classes{one}
		return err
	}
	return n.Decode((*[]uint8)(c))
}

type answer struct {
	Cyclic  bool     `yaml:"cyclic"`
	Nodes   int      `yaml:"bdg_nodes"`
	Edges   int      `yaml:"bdg_edges"`
	Count   int      `yaml:"scc_count"`
	Largest int      `yaml:"largest_scc"`
	Links   []string `yaml:"scc_links"`
}

// netOf is a Net with the links that paths take, and only their routes. Nodes at the ends of paths are hosts. All
// priorities are lossless everywhere.
func netOf(paths []path) *intent.Net {
	b := newBuilder()
	b.net.Routing = intent.Listed
	inner := map[string]bool{}
	for _, p := range paths {
		for _, n := range p.Nodes[1 : len(p.Nodes)-1] {
			inner[n] = true
		}
	}
	linked := map[[2]string]bool{}
	for _, p := range paths {
		r := intent.Route{End: p.Nodes[len(p.Nodes)-1]}
		for i, n := range p.Nodes[:len(p.Nodes)-1] {
			next := p.Nodes[i+1]
			for _, name := range []string{n, next} {
				tier := 1
				if !inner[name] {
					tier = 0
				}
				b.device(name, tier)
			}
			if !linked[[2]string{n, next}] {
				linked[[2]string{n, next}], linked[[2]string{next, n}] = true, true
				b.link(n, next, 0xff)
			}
			r.Hops = append(r.Hops, intent.Hop{Device: n, Priority: p.Class[min(i, len(p.Class)-1)]})
		}
		b.net.Routes = append(b.net.Routes, r)
	}
	return b.done()
}

func answerOf(r Report) answer {
	a := answer{Nodes: r.Buffers, Edges: r.Edges, Count: len(r.Components), Cyclic: len(r.Components) > 0, Links: []string{}}
	for _, c := range r.Components {
		a.Largest = max(a.Largest, c.Size)
		for _, b := range c.Buffers {
			a.Links = append(a.Links, b.String())
		}
	}
	slices.Sort(a.Links)
	return a
}

func TestKnownAnswers(t *testing.T) {
	text, err := os.ReadFile("testdata/cbd_topologies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc known
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Topologies) < 10 {
		t.Fatalf("%d graphs", len(doc.Topologies))
	}
	witness.Agree(t, "cbd_topologies.yaml", len(doc.Topologies))
	for _, k := range doc.Topologies {
		want := k.Want
		slices.Sort(want.Links)
		if d := cmp.Diff(want, answerOf(Check(netOf(k.Paths)))); d != "" {
			t.Errorf("%s (-want +got):\n%s", k.ID, d)
		}
	}
}
