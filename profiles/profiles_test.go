package profiles

import (
	"regexp"
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
		case p.Iface != "" && (strings.Count(p.Iface, "%d") != 1 || p.IfaceStep < 1):
			t.Errorf("%s: interface pattern %q step %d", n, p.Iface, p.IfaceStep)
		case strings.HasPrefix(n, "eos/") && p.TxQueue == "":
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

func TestWith(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	d := c.With(Platform{Name: "sonic/mine", ASIC: "x"}, Platform{Name: "sonic/sn5600", ASIC: "changed"})
	if p, _ := d.Platform("sonic/sn5600"); p.ASIC != "changed" {
		t.Error("a platform given again must win")
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

// TestFamilies: the family that a platform row claims is the one that the updater's list gives its SKU, and a row whose
// SKU the list does not name claims none.
func TestFamilies(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, n := range c.Names() {
		p, _ := c.Platform(n)
		sku, ok := strings.CutPrefix(p.Source, "sonic-buildimage ")
		if !ok {
			continue
		}
		seen++
		if family, _ := GCUFamily(sku); family != p.GCUFamily {
			t.Errorf("%s: says %q, but the list has %s as %q", n, p.GCUFamily, sku, family)
		}
	}
	if seen < 20 {
		t.Errorf("only %d rows name a SKU", seen)
	}
}
