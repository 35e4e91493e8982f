package profiles

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCatalog holds every row to what rendering and lint rely on.
func TestCatalog(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[a-z0-9]+/[a-z0-9-]+$`)
	for _, n := range c.Names() {
		p, ok := c.Platform(n)
		switch {
		case !ok || p.Name != n || !name.MatchString(n):
			t.Errorf("%s: not found under its own name, or a bad name", n)
		case p.Source == "" || p.Description == "":
			t.Errorf("%s: no source or no description", n)
		case p.Confidence != "high" && p.Confidence != "medium" && p.Confidence != "low":
			t.Errorf("%s: confidence %q", n, p.Confidence)
		case p.Verified:
			t.Errorf("%s: verified, but nothing was tried on a real device", n)
		case p.Iface != "" && p.IfaceStep < 1:
			t.Errorf("%s: interface pattern %q step %d", n, p.Iface, p.IfaceStep)
		case p.OS() == "eos" && p.Words["tx_queue"] == "":
			t.Errorf("%s: no word for an egress queue", n)
		case strings.HasPrefix(n, "sonic/") && p.MaxMTU != 9216:
			t.Errorf("%s: largest MTU %s, but the YANG model says 9216B", n, p.MaxMTU)
		}
	}
}

func TestPort(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		platform string
		port     int
		want     string
	}{
		{"sonic/sn5600", 0, "Ethernet0"},
		{"sonic/sn5600", 3, "Ethernet24"},
		{"sonic/sn4600c", 2, "Ethernet8"},
		{"eos/7060x6", 0, "Ethernet1/1"},
		{"eos/7060x6", 9, "Ethernet10/1"},
		{"linux/generic", 0, ""},
	} {
		p, ok := c.Platform(x.platform)
		if got := p.Port(x.port); !ok || got != x.want {
			t.Errorf("%s port %d: got %q, want %q", x.platform, x.port, got, x.want)
		}
	}
}

func TestSplit(t *testing.T) {
	sonic := Platform{Iface: "Ethernet%d", IfaceStep: 8, Lanes: 8, Breakouts: []int{2, 4, 8}}
	eos := Platform{Iface: "Ethernet%d/%d", IfaceFirst: 1, IfaceStep: 1, Lanes: 8, Breakouts: []int{2, 4}}
	for _, x := range []struct {
		p                 Platform
		port, parts, part int
		want              string
	}{
		{sonic, 3, 1, 0, "Ethernet24"},
		{sonic, 3, 2, 1, "Ethernet28"},
		{sonic, 0, 4, 3, "Ethernet6"},
		{sonic, 0, 8, 7, "Ethernet7"},
		{sonic, 0, 16, 0, ""}, // not listed
		{sonic, 0, 2, 2, ""},  // there is no third half
		{eos, 0, 1, 0, "Ethernet1/1"},
		{eos, 9, 2, 1, "Ethernet10/5"},
		{eos, 9, 4, 3, "Ethernet10/7"},
		{Platform{Iface: "Ethernet%d", IfaceStep: 1, Lanes: 4, Breakouts: []int{4}}, 0, 4, 1, ""}, // Ethernet1 is the next port
		{Platform{Iface: "Ethernet%d", IfaceStep: 4, Lanes: 4, Breakouts: []int{3}}, 0, 3, 1, ""}, // lanes do not divide
		{Platform{}, 0, 1, 0, ""},
	} {
		if got, ok := x.p.Split(x.port, x.parts, x.part); got != x.want || ok != (x.want != "") {
			t.Errorf("%s port %d, part %d of %d: got %q %v, want %q", x.p.Iface, x.port, x.part, x.parts, got, ok, x.want)
		}
	}
}

func TestWith(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	d := c.With(
		Entry{Kind: KindPlatform, Name: "sonic/mine", Facts: []Fact{{Key: "asic", Values: []string{"spectrum-1"}}}},
		Entry{Kind: KindPlatform, Name: "sonic/sn5600", Facts: []Fact{{Key: "max_mtu", Values: []string{"9000B"}, Source: "me"}}},
		Entry{Kind: KindASIC, Name: "spectrum-1", Facts: []Fact{{Key: "cell", Values: []string{"100B"}}}},
	)
	switch p, _ := d.Platform("sonic/sn5600"); {
	case p.MaxMTU != 9000:
		t.Error("a fact given again must win")
	case p.ASIC != "spectrum-4" || p.Cell != 192:
		t.Error("the other facts must stay")
	}
	if p, _ := d.Platform("sonic/mine"); p.Cell != 100 {
		t.Errorf("the cell of sonic/mine is %s, want that of the changed ASIC", p.Cell)
	}
	e, _ := d.Entry(KindPlatform, "sonic/sn5600")
	if f, ok := e.Fact("max_mtu"); !ok || f.Source != "me" || f.Over == nil || f.Over.Text() != "9216B" {
		t.Errorf("the fact that won must know the one that lost: %+v", f)
	}
	if p, _ := c.Platform("sonic/sn5600"); p.ASIC != "spectrum-4" {
		t.Error("With changed its receiver")
	}
	if _, ok := c.Platform("sonic/mine"); ok {
		t.Error("With changed its receiver")
	}
}

func TestGCUFamily(t *testing.T) {
	for sku, want := range map[string]string{
		"ACS-SN5600": "spc4", "Mellanox-SN5600-V256": "spc4", "Mellanox-SN4600C-C64": "spc3", "ACS-MSN4700": "spc3",
		"Mellanox-SN3800-D112C8": "spc2", "ACS-MSN2700": "spc1", "ACS-SN5640": "spc5",
		"Arista-7060X6-64PE": "th5", "Arista-7060X6-64PE-C256S2": "th5", "Nokia-IXR7220-H5-64D": "th5", // Broadcom: a part is enough
		"Arista-7060CX-32S-C32": "th", "Arista-7260CX3-C64": "th2", "Arista-7050CX3-32S-C32": "td3",
		"ACS-SN5600-X": "", "Mellanox-SN4600C": "", "V682-48y8c": "", "SONiC-VM": "", "": "", // Mellanox: exact or nothing
	} {
		got, ok := GCUFamily(sku)
		if got != want || ok != (want != "") {
			t.Errorf("%q: got %q %v, want %q", sku, got, ok, want)
		}
	}
}

func TestGCUPermits(t *testing.T) {
	const new, old = "SONiC.20260531.12", "SONiC.20181130.01"
	for _, x := range []struct {
		sku, version, table, field, op string
		want                           bool
		why                            string
	}{
		{"ACS-SN5600", new, "WRED_PROFILE", "green_min_threshold", "replace", true, ""},
		{"ACS-SN5600", new, "PFC_WD", "detection_time", "add", true, ""},
		{"ACS-SN5600", new, "PFC_WD", "", "remove", true, ""},
		{"ACS-SN5600", new, "PFC_WD", "POLL_INTERVAL", "replace", true, ""},
		{"ACS-SN5600", new, "PFC_WD", "POLL_INTERVAL", "remove", false, "never removes"},
		{"ACS-SN5600", old, "PFC_WD", "action", "add", false, "needs an image of 20221100 or later on spc4; this one is of 20181130"},
		{"ACS-MSN2700", old, "PFC_WD", "action", "add", true, ""},
		{"SONiC-VM", new, "PFC_WD", "action", "add", false, `does not know HwSKU "SONiC-VM"`},
		{"ACS-SN5600", new, "BUFFER_PROFILE", "dynamic_th", "replace", true, ""},
		{"ACS-SN5600", new, "BUFFER_PROFILE", "dynamic_th", "add", false, "permits no add of BUFFER_PROFILE dynamic_th on any platform"},
		{"ACS-SN5600", new, "BUFFER_PROFILE", "xon", "replace", false, "on any platform"},
		{"ACS-SN5600", new, "BUFFER_PROFILE", "", "add", true, ""},
		{"ACS-SN5600", new, "BUFFER_PROFILE", "", "remove", true, ""},
		{"Force10-S6000", new, "BUFFER_PROFILE", "xoff", "replace", false, "on td2"},
		{"ACS-MSN2700", new, "BUFFER_PROFILE", "packet_discard_action", "add", false, "on spc1"},
		{"ACS-SN5600", new, "BUFFER_POOL", "size", "replace", false, "on any platform"},
		{"ACS-SN5600", "SONiC.master.123-abcdef012", "PFC_WD", "action", "add", true, "holds no image date"},
		{"ACS-SN5600", "SONiC.202405.7", "PFC_WD", "action", "add", true, ""},
		{"ACS-SN5600", "", "PFC_WD", "action", "add", true, "holds no image date"},
	} {
		ok, why := GCUPermits(x.sku, x.version, x.table, x.field, x.op)
		if ok != x.want || !strings.Contains(why, x.why) || x.why == "" && why != "" {
			t.Errorf("%s %s %s %s %s: got %v %q, want %v %q", x.sku, x.version, x.op, x.table, x.field, ok, why, x.want, x.why)
		}
	}
}

// TestFamilies: the SKU of every platform whose family matters is one that the updater's list knows, or is known not to be.
func TestFamilies(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range c.Names() {
		if p, _ := c.Platform(n); p.Words["hwsku"] != "" {
			got[n], _ = GCUFamily(p.Words["hwsku"])
		}
	}
	for n, want := range map[string]string{
		"sonic/sn5600": "spc4", "sonic/sn4700": "spc3", "sonic/sn3800": "spc2", "sonic/sn2700": "spc1", "sonic/7060cx-32s": "th",
		"sonic/7050cx3-32s": "td3", "sonic/7260cx3-64": "th2", "sonic/7060x6-64pe": "th5", "sonic/ixr7220-h5-64d": "th5",
		"sonic/z9332f": "", "sonic/vs": "",
	} {
		if f, ok := got[n]; !ok || f != want {
			t.Errorf("%s: the updater's list has it as %q, want %q", n, f, want)
		}
	}
}

// TestEveryFact: each fact has a source and a confidence, each kind has entries, and a PCI id stands for one NIC unless
// its entry says otherwise.
func TestEveryFact(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, k := range Kinds() {
		if least := map[Kind]int{KindPersonality: 15, KindCompat: 10}[k]; len(c.NamesOf(k)) < cmp.Or(least, 20) {
			t.Errorf("only %d of kind %s", len(c.NamesOf(k)), k)
		}
		for _, n := range c.NamesOf(k) {
			if r := c.find(k, n); r.err != nil || r.entry.Name != n {
				t.Errorf("%s %s: the row reads as %q: %v", k, n, r.entry.Name, r.err)
			}
			e, _ := c.Entry(k, n)
			for _, f := range e.Facts {
				about := f.Key == "source" || f.Key == "confidence"
				if !about && (f.Source == "" || !slices.Contains(confidences(), f.Confidence)) || f.Pos.Line == 0 || f.Text() == "" {
					t.Errorf("%s %s: %s is %q, from %q, confidence %q, at %s", k, n, f.Key, f.Text(), f.Source, f.Confidence, f.Pos)
				}
			}
		}
	}
	for _, n := range c.Names() {
		p, _ := c.Platform(n)
		if _, ok := c.ASIC(p.ASIC); p.ASIC != "" && !ok {
			t.Errorf("%s: there is no ASIC %s", n, p.ASIC)
		}
		for _, parts := range p.Breakouts {
			if _, ok := p.Split(0, parts, parts-1); !ok {
				t.Errorf("%s: split into %d, but the parts have no names", n, parts)
			}
		}
	}
	for _, n := range c.NamesOf(KindNIC) {
		nic, _ := c.NIC(n)
		if !slices.IsSorted(nic.Speeds) {
			t.Errorf("%s: speeds %v do not ascend", n, nic.Speeds)
		}
		for _, id := range nic.PCI {
			if o := owner[id]; o != "" && !strings.Contains(strings.Join(nic.Traps, " ")+strings.Join(mustNIC(c, o).Traps, " "), "PCI id") {
				t.Errorf("%s is the PCI id of %s and of %s", id, o, n)
			}
			owner[id] = n
		}
	}
}

func mustNIC(c *Catalog, name string) NIC {
	n, _ := c.NIC(name)
	return n
}

// TestStrict: the reader of the embedded files refuses what the reader of user documents refuses, each with its line.
func TestStrict(t *testing.T) {
	for _, x := range []struct{ row, want string }{
		{"{name: a, rocev2: true, source: s, confidence: high}", ""},
		{"{name: a, rocev2: true, source: s}", "f:1: a has no confidence"},
		{"{name: a, source: s, confidence: high}", "f:1: a has no rocev2"},
		{"{name: a, rocev2: yes, source: s, confidence: high}", `f:1: rocev2: "yes" is not true or false`},
		{"{name: a, rocev2: true, rocev2: true, source: s, confidence: high}", "f:1: rocev2 is given twice"},
		{"{name: a, rocev2: true, prots: 2, source: s, confidence: high}", "f:1: prots is no field of a nic"},
		{"{name: a, rocev2: true, ports: 02, source: s, confidence: high}", `f:1: ports: "02" is not a number from 1 to 64`},
		{"{name: a, rocev2: true, max_mtu: 9000, source: s, confidence: high}", "needs a unit"},
		{"{name: a, rocev2: true, speeds: 100Gbps, source: s, confidence: high}", "f:1: speeds wants a list"},
		{"{name: a, rocev2: true, speeds: [], source: s, confidence: high}", "f:1: speeds is empty"},
		{"{name: a, rocev2: true, pci: [15B3:1021], source: s, confidence: high}", "is not a PCI id"},
		{"{name: a, rocev2: {value: true, surce: x}, source: s, confidence: high}", "f:1: rocev2.surce is not value, source or confidence"},
		{"{name: a, rocev2: {source: x}, source: s, confidence: high}", "f:1: rocev2 has no value"},
		{"{name: a, rocev2: {value: true, confidence: sure}, source: s, confidence: high}", `f:1: rocev2: confidence "sure"`},
		{"{name: a, rocev2: true, source: {value: s}, confidence: high}", "f:1: source wants a single value"},
		{"a", "f:1: want a mapping"},
	} {
		rs, err := rowsOf(KindNIC, "f", "- "+x.row)
		for _, r := range rs {
			_, e := r.parse()
			err = errors.Join(err, e)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", x.row, got, x.want)
		}
	}
}
