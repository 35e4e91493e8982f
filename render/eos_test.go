package render

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	eosswitch "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosTestTarget is a 64-port leaf. Maps and watchdog are one for the device: each follows from what all its policies
// share, so that sites never disagree.
func eosTestTarget() target {
	return target{
		dialect: &eos, model: "eos/7060x6", iface: func(n int) string { return fmt.Sprintf("Ethernet%d/1", n+1) },
		areas: intent.SwitchAreas,
		adjust: func(t *rapid.T, _ *intent.Device, p *intent.Policy) {
			p.MTU = min(p.MTU, 9214)
			for i := range p.Queues {
				p.Queues[i].Weight = min(p.Queues[i].Weight, 25) // percent: of four classes at most
			}
			p.Pause = rapid.SampledFrom([]intent.Pause{{}, {}, {Send: true}, {Receive: true}, {Send: true, Receive: true}}).Draw(t, "pause")
			var named []uint8
			for i, q := range p.Queues {
				if q.Used {
					named = append(named, uint8(i))
				}
			}
			for i := range p.DSCP {
				p.DSCP[i] = named[i*len(named)/64]
			}
			if len(named) == 3 { // and the map to queues is crossed on some devices
				p.TCQueue[named[1]], p.TCQueue[named[2]] = named[2], named[1]
			}
			if p.Watchdog.On {
				p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 410, Poll: 95, Action: intent.ActionDrop}
			}
		},
	}
}

func TestEOSProperties(t *testing.T) { checkProperties(t, eosTestTarget()) }

// typed is what is typed for lines, without the "exit"s: the emulated switch leaves modes by itself when it is typed
// into without a terminal.
func typed(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Text != "exit" {
			b.WriteString(l.Text + "\n")
		}
	}
	return b.String()
}

// TestEOSTyped types what Lines says into the emulated switch, which knows nothing of this package: it must take
// every line and end in what the model wants, and undo must bring the old configuration back.
func TestEOSTyped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := eosTestTarget()
		d := drawDevice(t, x)
		sw, err := eosswitch.New(eosswitch.Options{Hostname: "leaf1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := sw.Type("interface Ethernet1/1\nno switchport\ndescription to spine ! one\nqos profile other\nuc-tx-queue 1\nno priority"); err != nil {
			t.Fatal(err)
		}
		steps := []intent.Device{d, remodel(t, x, d)}
		own := eos.Owns(d, Facts{})
		for _, d := range steps {
			before := sw.Running()
			live, _ := eos.Parse([]byte(before))
			want := rendered(t, x, d).Filter(own)
			cs := Diff(&eos, Facts{}, live.Filter(own), want)
			if err := sw.Type(typed(eos.Lines(live, cs))); err != nil {
				t.Fatalf("the switch refuses: %v", err)
			}
			after, l := eos.Parse([]byte(sw.Running()))
			if len(l) > 0 {
				t.Fatalf("findings on what the switch shows: %v", l)
			}
			if again := Diff(&eos, Facts{}, after.Filter(own), want); len(again) > 0 {
				t.Fatalf("the switch shows something else: %s\n%s", changes(again), sw.Running())
			}
			if err := sw.Type(typed(eos.Lines(after, Undo(cs)))); err != nil {
				t.Fatalf("the switch refuses to undo: %v", err)
			}
			back, _ := eos.Parse([]byte(sw.Running()))
			interfaces := func(k Key) bool { return !strings.HasPrefix(k.Object, eosInterfaceMode) } // they stay
			mustEqual(t, "after undo", live.Filter(interfaces), back.Filter(interfaces))
			if err := sw.Type(typed(eos.Lines(back, cs))); err != nil {
				t.Fatal(err)
			}
		}
		sw2, err := eosswitch.New(eosswitch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := rendered(t, x, steps[1])
		if err := sw2.Boot(string(eos.Text(want))); err != nil {
			t.Fatalf("the switch refuses Text: %v", err)
		}
		after, _ := eos.Parse([]byte(sw2.Running()))
		if again := Diff(&eos, Facts{}, after.Filter(own), want.Filter(own)); len(again) > 0 {
			t.Fatalf("booted from Text, the switch shows something else: %s", changes(again))
		}
	})
}

// eosLeaf is a small leaf with everything: two sites, three classes, watchdog.
func eosLeaf() intent.Device {
	var p intent.Policy
	p.Known, p.MTU, p.Trust = intent.SwitchAreas, 9214, intent.TrustDSCP
	for i := range 8 {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	p.DSCP[26], p.DSCP[48] = 3, 6
	p.TCPG[3] = 3
	p.Queues[0] = intent.Queue{Used: true, Weight: 40}
	p.Queues[3] = intent.Queue{Used: true, Weight: 60, Lossless: true, ECN: intent.ECN{On: true, Kmin: 800_000, Kmax: 3_200_000, Pmax: 20 * units.OnePercent}}
	p.Queues[6] = intent.Queue{Used: true, Strict: true}
	p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 400, Poll: 100, Action: intent.ActionDrop}
	storage := p
	storage.Queues[3].ECN.Kmin = 400_000
	d := intent.Device{Name: "leaf1", Fabric: "pod1", Platform: "eos/7060x6", Classes: [8]string{0: "default", 3: "training", 6: "cnp"}}
	var own intent.Manage
	for i := range own {
		own[i] = intent.Own
	}
	for i, site := range []string{"leaf", "leaf", "leaf.storage"} {
		pol := p
		if site == "leaf.storage" {
			pol = storage
		}
		d.Ports = append(d.Ports, intent.Port{
			Name: fmt.Sprintf("downlink-%d", i+1), Iface: fmt.Sprintf("Ethernet%d/1", i+1), Site: site,
			Manage: own, Policy: d.Intern(pol),
		})
	}
	return d
}

// edit is eosLeaf after f. Policies 0 and 1 are those of the sites leaf and leaf.storage.
func edit(f func(d *intent.Device)) intent.Device {
	d := eosLeaf()
	f(&d)
	return d
}

func TestEOSGolden(t *testing.T) {
	d := eosLeaf()
	want, l := eos.Render(d, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	checkGolden(t, "eos-leaf.txt", eos.Text(want))

	sample := parsed(t, read(t, "eos-sample.txt"))
	own := eos.Owns(d, Facts{})
	for name, step := range map[string]struct{ live, want Config }{
		"eos-lines-first.txt":  {sample, want},
		"eos-lines-edit.txt":   {want, must(t, edit(func(d *intent.Device) { d.Policies[0].Queues[3].ECN.Kmax = 3_000_000 }))},
		"eos-lines-strict.txt": {want, must(t, edit(func(d *intent.Device) { d.Policies[0].Queues[0] = intent.Queue{Used: true, Strict: true} }))},
		"eos-lines-give-back.txt": {want, must(t, edit(func(d *intent.Device) { // no class is lossless, one site is no more
			for i := range d.Policies {
				d.Policies[i].Queues[3] = intent.Queue{Used: true, Weight: 60}
				d.Policies[i].TCPG[3] = 0
			}
			d.Ports[2].Site, d.Ports[2].Policy = d.Ports[0].Site, d.Ports[0].Policy
		}))},
		"eos-lines-remove.txt": {want, nil},
	} {
		cs := Diff(&eos, Facts{}, step.live.Filter(own), step.want.Filter(own))
		checkGolden(t, name, listing(eos.Lines(step.live, cs)))
	}
}

// listing shows lines as typed, mode lines with ">" and the number of settings that each carries.
func listing(lines []Line) []byte {
	var b strings.Builder
	depth := 0
	for _, l := range lines {
		if l.Text == "exit" {
			depth--
		}
		mark := "  "
		if l.Mode {
			mark = "> "
		}
		fmt.Fprintf(&b, "%2d %s%s%s\n", len(l.Keys), mark, strings.Repeat("   ", max(depth, 0)), l.Text)
		if l.Mode && l.Text != "exit" {
			depth++
		}
	}
	return []byte(b.String())
}

// TestEOSLinesCarryAll: each change is carried by exactly one line, modes are left as often as they are entered.
func TestEOSLinesCarryAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, _, _, cs := step(t, eosTestTarget())
		var want, got []string
		for _, c := range cs {
			if !strings.HasPrefix(c.Key.Object, eosInterfaceMode) {
				want = append(want, c.Key.String())
			}
		}
		depth := 0
		for _, l := range eos.Lines(live, cs) {
			for _, k := range l.Keys {
				got = append(got, k.String())
			}
			switch {
			case l.Text == "exit":
				depth--
			case l.Mode:
				depth++
			}
			if depth < 0 || !l.Mode && len(l.Keys) == 0 || strings.HasPrefix(l.Text, eosAllOff) || strings.HasPrefix(l.Text, "no interface") {
				t.Fatalf("line %q at depth %d carries %v", l.Text, depth, l.Keys)
			}
		}
		if depth != 0 {
			t.Fatalf("%d modes are not left", depth)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("keys (-changed +carried):\n%s", diff)
		}
	})
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parsed(t testing.TB, text []byte) Config {
	t.Helper()
	c, l := eos.Parse(text)
	if len(l) > 0 {
		t.Fatalf("findings: %v", l)
	}
	return c
}

func must(t testing.TB, d intent.Device) Config {
	t.Helper()
	c, l := eos.Render(d, Facts{})
	if len(l) > 0 {
		t.Fatalf("findings: %v", l)
	}
	return c
}

// TestEOSWeights: weights that are no percentages cannot be said.
func TestEOSWeights(t *testing.T) {
	d := eosLeaf()
	d.Policies = slices.Clone(d.Policies)
	for i := range d.Policies {
		d.Policies[i].Queues[0].Weight = 60
	}
	_, l := eosRender(d, Facts{})
	if i := slices.IndexFunc(l, func(f diag.Finding) bool { return f.Rule == "not-expressible" }); i < 0 || !strings.Contains(l[i].Msg, "add up to 120") || l[i].Hint != "lower the weights by 20 together" {
		t.Error(l)
	}
}
