package intent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/units"
)

func TestCompareNames(t *testing.T) {
	want := []string{"Ethernet0", "Ethernet8", "Ethernet16", "leaf", "leaf1", "leaf01", "leaf2", "leaf10", "leaf10-a", "spine1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNames)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	name := rapid.StringMatching(`[a-c0-2]{0,6}`)
	rapid.Check(t, func(t *rapid.T) { // a strict weak order over all names
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if (CompareNames(a, b) < 0) != (CompareNames(b, a) > 0) || (CompareNames(a, b) == 0) != (a == b) {
			t.Fatalf("%q, %q", a, b)
		}
		if CompareNames(a, b) < 0 && CompareNames(b, c) < 0 && CompareNames(a, c) >= 0 {
			t.Fatalf("%q < %q < %q, but not the first before the last", a, b, c)
		}
	})
}

// device is one with a port per MTU.
func device(name string, mtus ...int64) Device {
	d := Device{Name: name}
	for i, m := range mtus {
		d.Ports = append(d.Ports, Port{
			Name: string(rune('a' + i)), Iface: "eth" + string(rune('0'+i)), Policy: d.Intern(Policy{Known: AreaSet(AreaMTU), MTU: units.Bytes(m)}),
		})
	}
	return d
}

func TestMix(t *testing.T) {
	old := &Net{Devices: []Device{device("leaf1", 1500), device("leaf2", 1500), device("leaf9", 1500)}}
	want := &Net{Fabric: "f", Devices: []Device{device("leaf1", 9000), device("leaf2", 9000), device("leaf10", 9000)}}
	m := Mix(old, want, func(d string) bool { return d == "leaf2" })
	got := map[string]int64{}
	var order []string
	for _, d := range m.Devices {
		got[d.Name] = int64(d.PolicyOf(&d.Ports[0]).MTU)
		order = append(order, d.Name)
	}
	if d := cmp.Diff(map[string]int64{"leaf1": 1500, "leaf2": 9000, "leaf9": 1500, "leaf10": 9000}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"leaf1", "leaf2", "leaf9", "leaf10"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if old.Devices[0].PolicyOf(&old.Devices[0].Ports[0]).MTU != 1500 || len(want.Devices) != 3 {
		t.Error("an input was changed")
	}
}

func TestJoin(t *testing.T) {
	d := device("leaf1", 9000, 9000)
	live := Policy{Known: AreaSet(AreaMTU), MTU: 1500}
	j := Join(d, map[string]Policy{"eth0": live})
	if *j.PolicyOf(&j.Ports[0]) != live {
		t.Errorf("%+v", j.PolicyOf(&j.Ports[0]))
	}
	if p := j.PolicyOf(&j.Ports[1]); p.Known != 0 {
		t.Errorf("a port that the device does not show knows %+v", p)
	}
	if d.PolicyOf(&d.Ports[0]).MTU != 9000 {
		t.Error("the input was changed")
	}
}

// What a source does not know is neither compared nor called off.
func TestOnlyAndDifferences(t *testing.T) {
	want := Policy{Known: SwitchAreas, MTU: 9216, Trust: TrustDSCP}
	want.Queues[3] = Queue{Used: true, Lossless: true, Weight: 60, ECN: ECN{On: true, Kmin: 800_000, Kmax: 3_200_000, Pmax: 200_000}}
	if got := want.Only(AreaSet(AreaPFC)); got.MTU != 0 || !got.Queues[3].Lossless || got.Queues[3].Used || got.Queues[3].ECN.On {
		t.Errorf("%+v", got)
	}
	if ds := Differences(&want, &want); len(ds) > 0 {
		t.Errorf("with itself: %v", ds)
	}
	live := want
	live.Queues[3].Lossless = false
	live.Queues[3].ECN.Kmin = 400_000
	labels := func(ds []Difference) (s []string) {
		for _, d := range ds {
			s = append(s, d.Label+": "+d.Before+" → "+d.After)
		}
		return s
	}
	if d := cmp.Diff([]string{"priority 3 pfc: off → on", "priority 3 kmin: 400KB → 800KB"}, labels(Differences(&live, &want))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	blind := live.Only(AreaSet(AreaPFC))
	got := labels(Differences(&blind, &want))
	if got[0] != "priority 3 pfc: off → on" || !slices.Contains(got, "priority 3 kmin: not known → 800KB") || slices.Contains(got, "priority 3 kmin: none → 800KB") {
		t.Errorf("%q", got)
	}
	if ds := Differences(&want, &blind); len(ds) != 1 {
		t.Errorf("what the second does not know: %v", ds)
	}
}

func TestRanges(t *testing.T) {
	for want, ns := range map[string][]int{"": nil, "3": {3}, "0-1": {0, 1}, "0-7,26,48-63": append(append(seq(0, 7), 26), seq(48, 63)...)} {
		if got := Ranges(ns); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func seq(a, b int) (s []int) {
	for ; a <= b; a++ {
		s = append(s, a)
	}
	return s
}

// Journals and plan files name areas, so that a new area does not change what an old one owns.
func TestAreasByName(t *testing.T) {
	m := Manage{AreaMTU: Own, AreaECN: Own, AreaNCCL: Ignore}
	b, err := json.Marshal(m)
	if want := `{"own":"mtu ecn","ignore":"host-nccl"}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	var again Manage
	if err := json.Unmarshal(b, &again); err != nil || again != m {
		t.Errorf("got %v, %v", again, err)
	}
	if b, _ := json.Marshal(Policy{Known: AreaSet(AreaPFC)}); !strings.Contains(string(b), `"Known":"pfc"`) {
		t.Errorf("got %s", b)
	}
	if err := json.Unmarshal([]byte(`{"own":"mtu moons"}`), &again); err == nil {
		t.Error("an unknown area was read")
	}
}

// A buffer is shown in the words of a plan, and where the device fills it in nothing is shown that nobody asked for.
func TestBufferWords(t *testing.T) {
	ask := Policy{Known: AreasOf("sonic"), Cable: 40 * units.Metre}
	ask.Queues[3] = Queue{Lossless: true, Buffer: Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 2}, Headroom: 196 * units.KB, Xon: 19456}}
	own := ask
	own.Cable, own.Queues[3].Buffer = 5*units.Metre, Buffer{On: true, Device: true}
	var got []string
	for _, d := range Differences(&own, &ask) {
		got = append(got, d.Label+": "+d.Before+" -> "+d.After)
	}
	want := []string{
		"priority 3 pause threshold: the device's own -> alpha 1/2",
		"priority 3 headroom: the device's own -> 196KB",
		"priority 3 xon: none -> 19456B",
		"cable: 5m -> 40m",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
