package picture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

const gbps = 1_000_000_000

// wired is a net of two leaves on one spine; leaf2 has a planned host and a border port.
func wired() *intent.Net {
	port := func(name, peer, peerPort string, speed units.BitRate, change func(*intent.Port)) intent.Port {
		p := intent.Port{Name: name, Peer: peer, PeerPort: peerPort, Speed: speed * gbps, Role: "fabric"}
		if change != nil {
			change(&p)
		}
		return p
	}
	rail := func(n int) func(*intent.Port) { return func(p *intent.Port) { p.Role, p.Rail = "nic", n } }
	n := &intent.Net{Fabric: `a "b" \c`, Devices: []intent.Device{
		{Name: "h1", Role: "host", Host: true, Ports: []intent.Port{port("n1", "leaf1", "d1", 400, rail(1)), port("n2", "leaf2", "d1", 400, rail(2))}},
		{Name: "h2", Role: "host", Host: true, State: intent.Planned, Ports: []intent.Port{port("n1", "leaf1", "d2", 400, rail(1))}},
		{Name: "h3", Role: "host", Host: true, State: intent.Absent, Ports: []intent.Port{port("n1", "leaf1", "d3", 400, rail(1))}},
		{Name: "leaf1", Role: "leaf", Tier: 1, Group: "g", Ports: []intent.Port{
			port("d1", "h1", "n1", 400, nil), port("d2", "h2", "n1", 400, nil), port("d3", "h3", "n1", 400, nil), port("s", "leaf2", "s", 400, func(p *intent.Port) { p.Role = "peer-link" }),
			port("u1", "spine", "d1", 100, nil), port("u2", "spine", "d2", 100, nil),
		}},
		{Name: "leaf2", Role: "leaf", Tier: 1, Group: "g", Ports: []intent.Port{
			port("d1", "h1", "n2", 400, nil), port("out", "", "", 100, func(p *intent.Port) { p.Role = "border" }),
			port("s", "leaf1", "s", 400, func(p *intent.Port) { p.Role = "peer-link" }), port("u1", "spine", "d3", 400, nil),
		}},
		{Name: "spine", Role: "spine", Tier: 2, Ports: []intent.Port{port("d1", "leaf1", "u1", 100, nil), port("d2", "leaf1", "u2", 100, nil), port("d3", "leaf2", "u1", 400, nil)}},
	}}
	return n
}

func TestOf(t *testing.T) {
	g := Of(wired())
	var got []string
	for _, l := range g.Links {
		got = append(got, l.A.Device+":"+l.A.Port+" "+l.B.Device+":"+l.B.Port+" "+l.Role)
	}
	want := []string{"h1:n1 leaf1:d1 fabric", "h1:n2 leaf2:d1 fabric", "h2:n1 leaf1:d2 fabric", "leaf1:s leaf2:s peer-link", "leaf1:u1 spine:d1 fabric", "leaf1:u2 spine:d2 fabric", "leaf2:u1 spine:d3 fabric"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
	fanouts := []Fanout{
		{"leaf1", "leaf", Side{1, 400 * gbps}, Side{2, 200 * gbps}, 2}, // what is planned does not count
		{"leaf2", "leaf", Side{1, 400 * gbps}, Side{1, 400 * gbps}, 1},
	}
	if d := cmp.Diff(fanouts, g.Fanouts); d != "" {
		t.Errorf("fanouts (-want +got):\n%s", d)
	}
	rails := []Rail{{1, []string{"leaf1"}, 400 * gbps, 200 * gbps, 2}, {2, []string{"leaf2"}, 400 * gbps, 400 * gbps, 1}}
	if d := cmp.Diff(rails, g.Rails); d != "" {
		t.Errorf("rails (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Exit{{"leaf2", "out", "", 100 * gbps}}, g.Exits); d != "" {
		t.Errorf("exits (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Group{{"g", []string{"leaf1", "leaf2"}}}, g.Groups); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
}

// TestDot: links between the same two devices are one line, hosts can be left out, and names are quoted.
func TestDot(t *testing.T) {
	const want = `graph "a \"b\" \\c" {
  rankdir=TB; label="Fabric a \"b\" \\c, model 0123456789ab"; labelloc=t; node [shape=box]; edge [fontsize=10];
  { rank=same;
    "spine" [label="spine\n"];
  }
  { rank=same;
    "leaf1" [label="leaf1\n\necn-order ×2", color=red, fontcolor=red, penwidth=3];
    "leaf2" [label="leaf2\n"];
  }
  "leaf2" -- "leaf1" [label="400Gbps", constraint=false, style=dotted];
  "spine" -- "leaf1" [label="2 x 100Gbps", style=dotted];
  "spine" -- "leaf2" [label="400Gbps\nlossless 3 training"];
  "outside 1" [label="outside", shape=plaintext];
  "outside 1" -- "leaf2" [label="out"];
}
`
	n := wired()
	n.Devices[4].Policies = []intent.Policy{{}, {Known: intent.AreaSet(intent.AreaPFC)}}
	n.Devices[4].Policies[1].Queues[3].Lossless, n.Devices[4].Classes[3], n.Devices[4].Ports[3].Policy = true, "training", 1
	found := diag.List{
		{Rule: "ecn-order", Severity: diag.Error, Devices: []string{"leaf1"}},
		{Rule: "ecn-order", Severity: diag.Warning, Devices: []string{"leaf1"}},
		{Rule: "mtu-path", Severity: diag.Warning, Devices: []string{"leaf2"}, Ack: "known"},
		{Rule: "watchdog-on", Severity: diag.Info, Devices: []string{"leaf2"}},
	}
	got := Dot(n, Sheet{NoHosts: true, Digest: "0123456789abcdef", Findings: found})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestGraphviz lets Graphviz read what we write for it.
func TestGraphviz(t *testing.T) {
	dot := witness.Tool(t, "dot")
	hostile := wired()
	hostile.Devices[3].Platform = "\x00\x1b[2J\\\"];\n\u202e"
	drawings := map[string]string{"hostile names": Dot(hostile, Sheet{Caption: `"];\`}), "cycle": Dot(wired(), Sheet{Cycle: []Hop{{"leaf1", "u1", 3, "x"}, {"spine", "d1", 3, ""}}})}
	for _, e := range examples.Models() {
		f, _ := model.Load(examples.FS, e.Layers...)
		n, _ := intent.Resolve(f)
		drawings[e.Name] = Dot(n, Sheet{})
	}
	for name, text := range drawings {
		c := exec.Command(dot, "-Tcanon")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
