package model

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// hw is a Profile document of one section.
func hw(name, section string) string {
	return "---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: " + name + "}\n" + section + "\n"
}

const from = ", source: me, confidence: low}"

// TestHardwareFindings holds one small model per thing that is refused of hardware. The golden shows each finding and the
// text at its position.
func TestHardwareFindings(t *testing.T) {
	nic := func(model string) string { return with(t, "netdevs: [rdma0]", "netdevs: [rdma0], nic: "+model) }
	var b strings.Builder
	for _, x := range []struct{ name, model string }{
		{"a NIC that is known", nic("connectx-7")},
		{"unknown NIC", nic("conectx-7")},
		{"unknown NIC in the inventory", base + inventory("  host1: {nics: [{netdev: rdma0, model: e801}]}\n")},
		{"NIC of a Profile", nic("mine") + hw("mine", "nic: {rocev2: true, speeds: [400Gbps]"+from)},
		{"NIC that speaks iWARP", strings.ReplaceAll(nic("x722"), "400Gbps", "10Gbps")},
		{"NIC that speaks something else", nic("efa")},
		{"NIC too slow", nic("connectx-6")},
		{"NIC with few priorities", strings.ReplaceAll(strings.Replace(nic("e810"), "scheduling: strict}", "scheduling: strict}\n  - {name: storage, dscp: [12], priority: 2, lossless: true}", 1), "400Gbps", "100Gbps")},
		{"NIC with small frames", nic("mine") + hw("mine", "nic: {rocev2: true, max_mtu: 4200B"+from)},
		{"switch too slow", strings.ReplaceAll(base, "{count: 1, platform: sonic/sn5600}", "{count: 1, platform: sonic/sn4600c}")},
		{"corrected by a Profile", strings.ReplaceAll(base, "{count: 1, platform: sonic/sn5600}", "{count: 1, platform: sonic/sn4600c}") + hw("sonic/sn4600c", "platform: {speed: 400Gbps"+from)},
		{"nothing described", base + hw("sonic/x", "")},
		{"two things described", base + hw("x", "asic: {cell: 96B"+from+"\nnic: {rocev2: true"+from)},
		{"name of no platform", base + hw("x", "platform: {max_mtu: 9000B"+from)},
		{"name of no NIC", base + hw("a/b", "nic: {rocev2: true"+from)},
		{"word of another system", base + hw("sonic/x", "platform: {tx_queue: tx-queue"+from)},
		{"unknown ASIC", base + hw("sonic/x", "platform: {asic: spectrum4"+from)},
		{"ASIC of another document", base + hw("sonic/x", "platform: {asic: chip"+from) + hw("chip", "asic: {cell: 100B"+from)},
		{"number without a unit", base + hw("chip", "asic: {cell: 100"+from)},
		{"fact without a value", base + hw("chip", "asic: {cell: {source: x}"+from)},
		{"misspelt fact", base + hw("chip", "asic: {cel: 100B"+from)},
		{"misspelt part of a fact", base + hw("chip", "asic: {cell: {value: 100B, surce: x}"+from)},
		{"no source", base + hw("chip", "asic: {cell: 100B, confidence: low}")},
		{"no word about RoCE", base + hw("mine", "nic: {ports: 2"+from)},
		{"not a PCI id", base + hw("mine", "nic: {rocev2: true, pci: [15B3:1021]"+from)},
		{"a list is needed", base + hw("mine", "nic: {rocev2: true, speeds: 100Gbps"+from)},
		{"an empty list", base + hw("mine", "nic: {rocev2: true, speeds: [], pci: {value: [], source: x}"+from)},
		{"three numbers in a name", base + hw("sonic/x", "platform: {iface: \"E%d/%d/%d\""+from)},
		{"two rows for one port", base + hw("sonic/x", "platform: {headroom: [{speed: 100Gbps, cable: 5m, xoff: 30KB, alpha: 1}, {speed: 100Gbps, cable: 5m, xoff: 31KB, alpha: 1}]"+from)},
		{"a row with two thresholds", base + hw("sonic/x", "platform: {headroom: {value: [{speed: 100Gbps, cable: 5m, xoff: 30KB, alpha: 1, static: 9KB}], confidence: high}"+from)},
		{"a row without a threshold", base + hw("sonic/x", "platform: {headroom: [{speed: 100Gbps, cable: 5m, xoff: 30KB}]"+from)},
		{"a row for no cable", base + hw("sonic/x", "platform: {headroom: [{speed: 100Gbps, cable: 0m, xoff: 0B, alpha: 1}, {speed: 0Gbps, cable: 5m, xoff: 30KB, alpha: 1}]"+from)},
		{"a row without headroom", base + hw("sonic/x", "platform: {headroom: [{speed: 100Gbps, cable: 5m, xof: 30KB, alpha: 1}]"+from)},
		{"a row in words", base + hw("sonic/x", "platform: {headroom: [100Gbps 5m 30KB]"+from)},
		{"part of a byte", base + hw("chip", "asic: {mac_phy_delay: 0.8KB"+from)},
		{"a personality that is whole", base + hw("mine", "personality: {status: managed, drivers: [mine], cc.ai_rate: {paths: [\"/sys/class/net/{netdev}/cc/ai\"], max: 100, effect: none}"+from)},
		{"a personality that fits nothing", base + hw("mine", "personality: {status: managed"+from)},
		{"a personality without a reason", base + hw("mine", "personality: {status: unsupported, drivers: [mine]"+from)},
		{"classes without a number of them", base + hw("mine", "personality: {status: managed, drivers: [mine], app_priority_is_tc: true"+from)},
		{"a map of no code points", base + hw("mine", "personality: {status: managed, drivers: [mine], app_default: [\"31-24:3\", \"0-63:8\"]"+from)},
		{"a knob of the whole machine", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {paths: [/proc/sys/kernel/core_pattern], write: \"|/tmp/x {value}\", max: 9, effect: none}"+from)},
		{"a knob that leads away", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {paths: [\"/sys/class/net/{netdev}/../../../etc/passwd\", \"/sys/bus/pci/devices/{pci}/driver/unbind\", \"/sys/class/net/{netdev}/device/cc\"], max: 9, effect: none}"+from)},
		{"a knob that makes directories anywhere", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {paths: [\"/sys/class/net/{netdev}/tos\"], mkdir: /etc/cron.d, max: 9, effect: none}"+from)},
		{"a knob with a shell", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {command: [/bin/sh, \"-c\", \"reboot; true\"]}"+from)},
		{"a knob of two kinds", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {command: [/usr/bin/x], paths: [\"/sys/class/net/{netdev}/tos\"], max: 9}"+from)},
		{"a knob that nobody may write", base + hw("mine", "personality: {status: managed, drivers: [mine], roce.tos: {paths: [\"/sys/class/net/{netdev}/tos\"], read: \"(a)(b\", max: 9}"+from)},
		{"a knob of nothing", base + hw("mine", "personality: {status: managed, drivers: [mine], cc.ai_rat: {paths: [\"/sys/class/net/{netdev}/x\"]}, roce.tos: {pahts: []}"+from)},
		{"a row of the matrix", base + hw("r1", "compat: {nics: [connectx-7], firmware: [\"< 28.43\"], grade: warn, says: is old"+from)},
		{"a row about every NIC", base + hw("r1", "compat: {grade: bad, says: is bad"+from)},
		{"a row about no NIC", base + hw("r1", "compat: {nics: [conectx-7], grade: bad, says: is bad"+from)},
		{"a row with versions in words", base + hw("r1", "compat: {drivers: [x], kernel: [6.12, newest], grade: fine"+from)},
		{"one fact twice in a layer", base + hw("chip", "asic: {cell: 100B"+from) + hw("chip", "asic: {cell: 200B"+from)},
	} {
		_, l := Load(files("m.yaml", x.model), "m.yaml")
		fmt.Fprintf(&b, "== %s\n", x.name)
		for _, f := range l {
			if f.Severity == diag.Info {
				continue
			}
			fmt.Fprintln(&b, f)
			if src := strings.Split(x.model, "\n"); f.Pos.Line > 0 {
				at := src[f.Pos.Line-1][f.Pos.Col-1:]
				fmt.Fprintf(&b, "    | %s\n", at[:min(len(at), 40)])
			}
		}
	}
	golden(t, "hardware", withoutRows(b.String()))
}

// withoutRows is text without the line numbers of built-in data, which move whenever a row is added.
func withoutRows(text string) string {
	return regexp.MustCompile(`(profiles/data/[a-z/-]+\.yaml):[0-9]+:[0-9]+`).ReplaceAllString(text, "$1:LINE")
}

// TestProfileLayers: a fact wins over the layers below it and over what is built in, keeps its own source, and knows
// what it replaced; facts that a layer does not state stay, with the source that they had.
func TestProfileLayers(t *testing.T) {
	fsys := fstest.MapFS{
		"low.yaml":  {Data: []byte(hw("sonic/sn5600", "platform: {max_mtu: 9100B, ports: 65, source: the rack, confidence: medium}"))},
		"high.yaml": {Data: []byte(hw("sonic/sn5600", "platform: {max_mtu: {value: 9000B, source: a label, confidence: high}, source: a guess, confidence: low}") + hw("spectrum-4", "asic: {cell: 200B, source: a guess, confidence: low}"))},
	}
	cat, l := LoadCatalog(fsys, "low.yaml", "high.yaml")
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	p, _ := cat.Platform("sonic/sn5600")
	if p.MaxMTU != 9000 || p.Ports != 65 || p.Cell != 200 || p.Lanes != 8 || p.Source != "a guess" {
		t.Errorf("%+v", p)
	}
	e, _ := cat.Entry(profiles.KindPlatform, "sonic/sn5600")
	var got []string
	for _, key := range []string{"max_mtu", "ports"} {
		f, _ := e.Fact(key)
		for at := &f; at != nil; at = at.Over {
			got = append(got, fmt.Sprintf("%s %s (%s, %s) %s", key, at.Text(), at.Source, at.Confidence, at.Pos.File))
		}
	}
	want := []string{
		"max_mtu 9000B (a label, high) high.yaml", "max_mtu 9100B (the rack, medium) low.yaml", "max_mtu 9216B (sonic-port.yang, high) profiles/data/platforms/sonic-nvidia.yaml",
		"ports 65 (the rack, medium) low.yaml", "ports 64 (sonic-buildimage ACS-SN5600, high) profiles/data/platforms/sonic-nvidia.yaml",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoadProfiles: a directory of hardware holds nothing else.
func TestLoadProfiles(t *testing.T) {
	fsys := fstest.MapFS{
		"d/a.yaml": {Data: []byte(hw("chip", "asic: {cell: 100B"+from))},
		"d/b.yaml": {Data: []byte(inventory("  leaf1: {address: 10.0.0.1}\n"))},
		"e/a.yaml": {Data: []byte(hw("chip", "asic: {cell: 100B"+from))},
	}
	if _, l := LoadProfiles(fsys, "d"); !strings.Contains(lines(l), "d/b.yaml:2:1: error: document: a directory of profiles holds documents of kind Profile alone") {
		t.Errorf("got %s", lines(l))
	}
	cat, l := LoadProfiles(fsys, "e")
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	if a, ok := cat.ASIC("chip"); !ok || a.Cell != 100 {
		t.Errorf("%+v", a)
	}
	if cat, _ := LoadCatalog(fsys); len(cat.NamesOf(profiles.KindNIC)) < 20 {
		t.Error("no layers are the built-in catalog")
	}
}

// TestHeadroomOfProfile: a table that a user gives is the platform's, and takes the place of one that is built in.
func TestHeadroomOfProfile(t *testing.T) {
	row := "{speed: 400Gbps, cable: 5m, size: 1248B, xon: 2288B, xoff: 307848B, alpha: 1/8, xon_offset: 2496B}"
	m := base + hw("sonic/sn5600", "platform: {lossless_pool: 60MB, headroom_pool: 20MB, headroom: ["+row+"]"+from) +
		hw("spectrum-4", "asic: {ecn_step: 192B, ecn_apart: true, mac_phy_delay: 0.5KiB, max_lossless: 2"+from)
	f, l := Load(files("m.yaml", m), "m.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	p, _ := f.Catalog.Platform("sonic/sn5600")
	want := profiles.HeadroomRow{
		Speed: 400 * units.Gbps, Cable: 5 * units.Metre, Size: 1248, Xon: 2288, Xoff: 307_848, Alpha: units.Ratio{Num: 1, Den: 8}, XonOffset: 2496,
	}
	if len(p.Headroom) != 1 || p.Headroom[0] != want || p.Pools(false) != (profiles.Pools{Lossless: 60 * units.MB, Headroom: 20 * units.MB, Egress: p.Pool.Egress, EgressAlpha: p.Pool.EgressAlpha}) {
		t.Errorf("headroom %v, pools %+v", p.Headroom, p.Pools(false))
	}
	if c := p.Chip; c.ECNStep != 192 || !c.ECNApart || c.MACPHYDelay != (units.Ratio{Num: 512, Den: 1}) || c.MaxLossless != 2 || c.TileDelay != 120*units.Nanosecond {
		t.Errorf("chip %+v", c)
	}
	e, _ := f.Catalog.Entry(profiles.KindPlatform, "sonic/sn5600")
	if fact, _ := e.Fact("headroom"); fact.Over == nil || len(fact.Over.Values) != 24 || fact.Source != "me" {
		t.Errorf("the table does not know which it replaced: %+v", fact)
	}
}
