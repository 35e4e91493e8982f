package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// TestExplainFlow: text goes on below its column where a page ends, and a word that is too long stays whole.
func TestExplainFlow(t *testing.T) {
	for _, c := range []struct {
		first, rest int
		text, want  string
	}{
		{2, 4, "short", "  short\n"},
		{0, 4, strings.Repeat("word ", 20), strings.TrimSpace(strings.Repeat("word ", 16)) + "\n    word word word word\n"},
		{6, 40, "name " + strings.Repeat("x", 90) + " end", "      name " + strings.Repeat("x", 90) + "\n" + strings.Repeat(" ", 40) + "end\n"},
		{0, 4, strings.Repeat("é", 80), strings.Repeat("é", 80) + "\n"},
		{0, 24, strings.Repeat("x", 100), strings.Repeat("x", 100) + "\n"},
	} {
		var b bytes.Buffer
		flow(&b, c.first, c.rest, c.text)
		if d := cmp.Diff(c.want, b.String()); d != "" {
			t.Errorf("flow(%d, %d, %.20q) (-want +got):\n%s", c.first, c.rest, c.text, d)
		}
	}
}

// TestExplainSourced: where a value is from stands beside it as long as a page has room, and else below.
func TestExplainSourced(t *testing.T) {
	var b bytes.Buffer
	sourced(&b, 2, "mtu", "9216B", "fabric.yaml:1:2")
	sourced(&b, 4, "pfc", "on", strings.Repeat("p", 50)+":1:2")
	sourced(&b, 4, "pfc", "on", strings.Repeat("p", 60)+":1:2, over x:1")
	sourced(&b, 2, "owned", "nothing", "")
	want := "  mtu                 9216B                   fabric.yaml:1:2\n" +
		"    pfc               on  " + strings.Repeat("p", 50) + ":1:2\n" +
		"    pfc               on\n" + strings.Repeat(" ", 24) + strings.Repeat("p", 60) + ":1:2,\n" + strings.Repeat(" ", 24) + "over x:1\n" +
		"  owned               nothing\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAbout: three digits, in the unit that keeps them above 1.
func TestAbout(t *testing.T) {
	for in, want := range map[units.Bytes]string{
		0: "0B", 999: "999B", 1000: "1.00KB", 9_994: "9.99KB", 99_949: "99.9KB", 99_950: "100KB", 999_499: "999KB", 999_500: "1.00MB",
		13_333_333: "13.3MB", 160_000_000: "160MB", 2_500_000_000: "2.50GB",
	} {
		if got := about(in); got != want {
			t.Errorf("%d: %s, want %s", in, got, want)
		}
	}
	if got := lead(500_000, 800_000); got != "-300KB" {
		t.Errorf("kmin above the pause: %s", got)
	}
	if got := leadText(500_000, 800_000); got != "300KB late" {
		t.Errorf("kmin above the pause: %s", got)
	}
}

// TestExplainRef: a port is found by each of its names, and what is no priority is said to be none only behind a port.
func TestExplainRef(t *testing.T) {
	net := &intent.Net{Devices: []intent.Device{
		{Name: "h1", Host: true, Ports: []intent.Port{{Name: "nic-1", Iface: "0000:17:00.0", PCI: "0000:17:00.0"}, {Name: "nic-2", Iface: "rdma1", PCI: "0000:AA:00.0"}}},
		{Name: "leaf1", Ports: []intent.Port{{Name: "up-1", Iface: "et-0/0/1:2"}}},
	}}
	for ref, want := range map[string]string{
		"h1:nic-1": "nic-1", "h1:0000:17:00.0": "nic-1", "h1:17:00.0": "nic-1", "h1:17:00.0:3": "nic-1 3", "h1:0000:17:00.0:7": "nic-1 7", "h1:rdma1": "nic-2", "h1:0000:aa:00.0": "nic-2", "h1:AA:00.0:3": "nic-2 3",
		"h1:18:00.0": `h1 has no port "18:00.0"`, "h1:nic-1:8": `"8" is not a priority: want 0 to 7`, "h1:nic-1:x": `"x" is not a priority: want 0 to 7`,
		"leaf1:et-0/0/1:2": "up-1", "leaf1:et-0/0/1:2:3": "up-1 3", "leaf1:0000:17:00.0": `leaf1 has no port "0000:17:00.0"`,
	} {
		_, ports, priority, err := resolveRef(net, ref)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		default:
			got = ports[0].Name
			if priority >= 0 {
				got += " " + string(rune('0'+priority))
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}

// TestExplainTaken: on a switch whose buffers are spoken about auto takes a headroom, on a host its driver does.
func TestExplainTaken(t *testing.T) {
	auto, nic := intent.Choice{Auto: true}, intent.Choice{Headroom: derive.Headroom{Model: derive.ModelMLX5NIC}}
	for _, c := range []struct {
		host   bool
		known  intent.Areas
		choice intent.Choice
		want   string
	}{
		{false, intent.AreaSet(intent.AreaBuffer), auto, "auto"},
		{false, intent.SwitchAreas, auto, ""},
		{true, intent.HostAreas, auto, ""},
		{true, intent.HostAreas, nic, "driver"},
		{false, intent.AreaSet(intent.AreaBuffer), nic, ""},
	} {
		d := &intent.Device{Host: c.host, Policies: []intent.Policy{{Known: c.known}}}
		if got := takenBy(d, &intent.Port{}, c.choice); got != c.want {
			t.Errorf("host %v, knows %v, %s: %q, want %q", c.host, c.known.Names(), c.choice.Model, got, c.want)
		}
	}
}

// TestExplainBuffers: what the device fills in is in effect and not asked for, pauses and marking are weighed, the budget
// adds up, ports that are alike are one block, and nothing that can be broken is wider than a page.
func TestExplainBuffers(t *testing.T) {
	row := profiles.HeadroomRow{Speed: 400 * units.Gbps, Cable: 5 * units.Metre, Size: 19456, Xon: 19456, Xoff: 200_000, Alpha: units.Ratio{Num: 1, Den: 2}}
	leaf := intent.Device{
		Name: "leaf1", Platform: "sonic/box", Classes: [8]string{3: "training"}, Pools: intent.Pools{Shared: 30 * units.MB, Headroom: 10 * units.MB},
		Profile: profiles.Platform{Name: "sonic/box", Cell: 192, Headroom: []profiles.HeadroomRow{row}},
	}
	pol := intent.Policy{Known: intent.SwitchAreas | intent.AreaSet(intent.AreaBuffer), MTU: 9216, Cable: 5 * units.Metre}
	pol.Queues[3] = intent.Queue{Used: true, Lossless: true, ECN: intent.ECN{On: true, Kmin: 800 * units.KB, Kmax: 3200 * units.KB}, Buffer: intent.Buffer{On: true, Device: true}}
	for _, name := range []string{"down-1", "down-2", "down-3"} {
		leaf.Ports = append(leaf.Ports, intent.Port{
			Name: name, Iface: "Ethernet" + name[5:], Peer: "h" + name[5:], PeerPort: "nic-1", Role: "host", Speed: 400 * units.Gbps, Cable: 5 * units.Metre, Policy: leaf.Intern(pol),
		})
	}
	host := intent.Device{Name: "h1", Host: true, Platform: "linux/generic", Ports: []intent.Port{{Name: "nic-1", Peer: "leaf1", PeerPort: "down-1", Speed: 400 * units.Gbps, Cable: 5 * units.Metre}}}
	host.Ports[0].Policy = host.Intern(intent.Policy{Known: intent.AreaSet(intent.AreaMTU, intent.AreaNCCL), MTU: 9000})
	f, _ := model.Load(examples.FS, "small")
	net := &intent.Net{Devices: []intent.Device{host, leaf}}

	r := newExplainer(f, net, -1).device(&net.Devices[1], leaf.Ports)
	values := map[intent.Field]explainValue{}
	for _, v := range r.Ports[0].Values {
		values[v.Field] = v
	}
	if v := values["headroom.3"]; v.Text != "the device's own" || v.Effective != "200064B" {
		t.Errorf("headroom: %q, in effect %q", v.Text, v.Effective)
	}
	if v := values["xon.3"]; v.Text != "not asked for" || v.Effective != "19456B" || v.Origin == nil {
		t.Errorf("xon: %+v", v)
	}
	want := []explainPausePoint{
		{1, 10 * units.MB, 10 * units.MB, 20 * units.MB, "9.2MB"},
		{4, 5 * units.MB, 20 * units.MB, 10 * units.MB, "19.2MB"},
		{16, 1_666_666, 26_666_666, 3_333_333, "25866666B"},
	}
	if d := cmp.Diff(want, r.Ports[0].Pause[0].Points); d != "" {
		t.Errorf("pause points (-want +got):\n%s", d)
	}
	if b := r.Budget; b == nil || b.Groups != 3 || b.Headroom != 3*200_064 || b.Shared != 30*units.MB {
		t.Errorf("budget: %+v", b)
	}
	if n := r.Ports[0].Neighbour; n == nil || len(n.Values) != 1 || n.Values[0].There != "9000B" || n.Values[0].Differs {
		t.Errorf("neighbour: %+v", n)
	}
	var b bytes.Buffer
	printExplain(&b, r)
	for _, w := range []string{"leaf1: 2 ports alike, down-2, down-3 (Ethernet2, Ethernet3) to h2:nic-1,\n  h3:nic-1\n", "  * table", "26.7MB", "25.9MB early", "with 3 lossless groups on ports in use\n"} {
		if !strings.Contains(b.String(), w) {
			t.Errorf("%q is missing in\n%s", w, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > page+1 {
			t.Errorf("wider than a page: %q", line)
		}
	}
	if h := newExplainer(f, net, -1).device(&net.Devices[0], host.Ports); len(h.Ports[0].Headroom) == 0 || h.Budget != nil {
		t.Errorf("a host needs headroom where its switch is lossless: %+v", h)
	}
	if h := newExplainer(f, net, 4).device(&net.Devices[0], host.Ports); len(h.Ports[0].Headroom) != 0 {
		t.Errorf("and none for a priority that is lossy: %+v", h.Ports[0].Headroom)
	}
}

// TestExplainWords: who stands behind a value is said once, the makers' ratio says what it is of, and a chip that is smaller
// than its published pools is not called its buffer without a word.
func TestExplainWords(t *testing.T) {
	from := origin(&model.Origin{Kind: model.FromPublished, Ref: "published: HPCC evaluation"})
	if got := from.String(); got != "published: HPCC evaluation" {
		t.Errorf("origin %q", got)
	}
	var w strings.Builder
	(&explainBudget{Groups: 16, Buffer: 64 * units.MB, Shared: 66_394_076, HeadroomPool: 27_200_352, Headroom: 2_253_488, Ratio: 0.0828, Published: 0.88}).print(&w, "leaf1")
	want := `
buffer of leaf1, with 16 lossless groups on ports in use
  packet buffer         64.0MB  of the chip, as published; the published pools
                                are larger, so one of these figures is not what
                                it seems, and nothing is judged by it
  lossless pool         66.4MB  groups compete for it below their pause
                                thresholds
  headroom pool         27.2MB  what arrives after pauses, shared by all groups
  headroom              2.25MB  of all groups together: 0.0828 times the pool
                                (its makers' table: up to 0.88 times, with 2
                                groups on each port and cables of 300m)
`
	if d := cmp.Diff(want, w.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
