package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// knownGraph is one graph with a known answer, as reference tables give it.
type knownGraph struct {
	ID    string `yaml:"id"`
	Paths []struct {
		Class any      `yaml:"class"` // one, or one for each link
		Nodes []string `yaml:"nodes"`
	} `yaml:"paths"`
	Want struct {
		Nodes   int      `yaml:"bdg_nodes"`
		Edges   int      `yaml:"bdg_edges"`
		Count   int      `yaml:"scc_count"`
		Largest int      `yaml:"largest_scc"`
		Links   []string `yaml:"scc_links"`
	} `yaml:"expect"`
}

// model is the graph as an operator would write it: devices, links, and the routes alone.
func (g knownGraph) model() string {
	var devices, links, list strings.Builder
	inner, seen := map[string]bool{}, map[string]bool{}
	for _, p := range g.Paths {
		for _, n := range p.Nodes[1 : len(p.Nodes)-1] {
			inner[n] = true
		}
	}
	for _, p := range g.Paths {
		for i, n := range p.Nodes {
			kind := "role: host, platform: linux/generic"
			if inner[n] {
				kind = "role: leaf, platform: sonic/sn5600"
			}
			if !seen[n] {
				fmt.Fprintf(&devices, "    - {name: %s, %s}\n", n, kind)
			}
			seen[n] = true
			if i == 0 {
				continue
			}
			a, b := p.Nodes[i-1], n
			if !seen[a+" "+b] {
				fmt.Fprintf(&links, "      - {a: \"%s:to-%s\", b: \"%s:to-%s\", speed: 100Gbps, cable: 5m}\n", a, b, b, a)
				seen[a+" "+b], seen[b+" "+a] = true, true
			}
		}
		class := strings.NewReplacer("[", "[c", " ", ", c").Replace(fmt.Sprint(p.Class))
		if !strings.HasPrefix(class, "[") {
			class = "c" + class
		}
		fmt.Fprintf(&list, "    - {path: [%s], class: %s}\n", strings.Join(p.Nodes, ", "), class)
	}
	classes := ""
	for i := range 8 {
		if i == 0 || i == 6 {
			continue
		}
		classes += fmt.Sprintf("  - {name: c%d, dscp: [%d], priority: %d, lossless: true, ecn: off}\n", i, 8*i, i)
	}
	return "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: known}\ntopology:\n  routing: listed\n  devices:\n" + devices.String() +
		"  links:\n    list:\n" + links.String() + "  routes:\n" + list.String() + "mtu: {fabric: 9216B, host: 9000B}\nclasses:\n" + classes +
		"  - {name: cnp, role: cnp, dscp: [46], priority: 6, scheduling: strict}\n  - {name: default, dscp: rest, priority: 0}\n" +
		"pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}\n"
}

// TestDeadlockKnownAnswers writes the graphs with known answers as models and asks the command.
func TestDeadlockKnownAnswers(t *testing.T) {
	text, err := os.ReadFile("../../model/routes/testdata/cbd_topologies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Topologies []knownGraph `yaml:"topologies"`
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, g := range doc.Topologies {
		t.Run(g.ID, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "known.yaml")
			if err := os.WriteFile(file, []byte(g.model()), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs strings.Builder
			sys := quiet()
			sys.out, sys.err = &out, &errs
			code := run(t.Context(), []string{"deadlock", "-f", file, "-o", "json"}, sys)
			var got deadlockJSON
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("%v\n%s\n%s", err, errs.String(), g.model())
			}
			largest, links := 0, []string{}
			for _, c := range got.Components {
				largest = max(largest, c.Size)
				links = append(links, c.Links...)
			}
			slices.Sort(links)
			slices.Sort(g.Want.Links)
			if got.Buffers != g.Want.Nodes || got.Edges != g.Want.Edges || len(got.Components) != g.Want.Count || largest != g.Want.Largest ||
				!slices.Equal(links, g.Want.Links) || (code == exitError) != (g.Want.Count > 0) {
				t.Errorf("got %d buffers, %d edges, %d components, largest %d: %v, exit %d; want %+v", got.Buffers, got.Edges, len(got.Components), largest, links, code, g.Want)
			}
		})
	}
}

// TestDeadlockPictures: the pictures of the documentation are what the command draws of the examples; -update draws them anew.
func TestDeadlockPictures(t *testing.T) {
	for _, name := range []string{"ring", "bounce"} {
		drawn := filepath.Join(t.TempDir(), name+".svg")
		if code := run(t.Context(), []string{"deadlock", "-f", "../../examples/deadlock/" + name + ".yaml", "--out", drawn}, quiet()); code != exitError {
			t.Fatalf("%s: exit %d, want %d", name, code, exitError)
		}
		got, err := os.ReadFile(drawn)
		if err != nil {
			t.Fatal(err)
		}
		file := "../../docs/deadlock-" + name + ".svg"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what deadlock draws of examples/deadlock/%s.yaml (%v); go test -run TestDeadlockPictures -update draws it anew", file, name, err)
		}
	}
}
