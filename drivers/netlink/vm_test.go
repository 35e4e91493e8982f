//go:build vm

package netlink

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// Tests in the virtual machines of tools/vm. A user describes the test driver as any driver that nobody knows.
const testDriver = `apiVersion: fabricctl/v1
kind: Profile
metadata: {name: dcbtest}
personality:
  description: the test driver of tools/vm
  status: managed
  drivers: [dcbtest]
  app: settable
  app_effect: none
  app_entries: used
  app_replace: add-then-delete
  ets: settable
  ets_effect: none
  traffic_classes: 8
  tsa: [strict, ets]
  pfc: settable
  pfc_effect: link-flap
  pfc_delay: stored
  buffer: settable
  buffer_effect: none
  dcbx: settable
  dcbx_effect: none
  dcbx_own: host-ieee
  dcbx_foreign: [no-host, lld-managed, cee]
  lldp_flag: fw-lldp-agent
  pause_autoneg: true
  mtu_effect: none
  pause_effect: none
  ring_effect: port-reset
  fec_effect: link-flap
  source: its source in this repository
  confidence: high
---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: virtio}
personality:
  description: a virtual NIC
  status: managed
  drivers: [virtio_net]
  mtu_effect: none
  source: the machine of tools/vm
  confidence: high
`

// whole is a device on the whole virtual machine, with its real files but for those that it keeps of its own.
func whole(t *testing.T) *Device {
	t.Helper()
	cat, found := model.LoadCatalog(fstest.MapFS{"nics.yaml": {Data: []byte(testDriver)}}, "nics.yaml")
	if len(found) > 0 {
		t.Fatal(found)
	}
	d, err := Open(Config{Name: "vm", Catalog: cat})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// program runs a program that has to succeed.
func program(t *testing.T, words string) string {
	t.Helper()
	w := strings.Fields(words)
	out, err := exec.Command(witness.Tool(t, w[0]), w[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", words, err, out)
	}
	return string(out)
}

// rebind takes the driver off a NIC and binds it again, which is where it starts from.
func rebind(t *testing.T, dev string) {
	t.Helper()
	pci, err := filepath.EvalSymlinks("/sys/class/net/" + dev + "/device")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"unbind", "bind"} {
		poke(t, "/sys/bus/pci/drivers/dcbtest/"+f, filepath.Base(pci))
	}
}

func poke(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func peek(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// debug is a file of the test driver's that says how it behaves.
func debug(dev, file string) string { return "/sys/kernel/debug/dcbtest/" + dev + "/" + file }

// towards is the changes that lead from what the machine holds to want, whose keys are "scope field" of a NIC; "" is absent.
func towards(t *testing.T, d *Device, dev string, want map[string]string) []render.Change {
	t.Helper()
	live, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var cs []render.Change
	for k, v := range want {
		scope, field, _ := strings.Cut(k, " ")
		c := render.Change{Op: render.Modify, Key: render.Key{Scope: scope, Object: dev, Field: field}, After: &v}
		if c.Before = value(live, c.Key); c.Before == nil {
			c.Op = render.Add
		}
		if v == "" {
			c.Op, c.After = render.Remove, nil
		}
		if word(c.Before) != word(c.After) {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b render.Change) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return cs
}

// table begins the table called name of docs/evidence/hosts.md, and adds rows to it.
func table(t *testing.T, name string, head ...string) (row func(cells ...string)) {
	t.Helper()
	path := filepath.Join(os.Getenv("FABRICCTL_OUT"), name+".md")
	text := "Linux " + peek(t, "/proc/sys/kernel/osrelease") + ".\n\n"
	row = func(cells ...string) {
		text += "| " + strings.Join(cells, " | ") + " |\n"
		poke(t, path, text)
	}
	row(head...)
	text += strings.Repeat("|---", len(head)) + "|\n"
	return row
}

// NICs with a PCI address, as discovery meets them on a server.
func TestVMNICFacts(t *testing.T) {
	f, _, err := whole(t).Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Hostname != "vm-nic" || f.Model != "1b36:0005" || !strings.HasPrefix(f.Version, "6.") {
		t.Errorf("hostname %q, model %q, version %q", f.Hostname, f.Model, f.Version)
	}
	for pci, want := range map[string]string{"0000:00:10.0": "dcb0", "0000:00:11.0": "dcb1", "0000:00:12.0": "dcb2", "0000:00:13.0": "dcb3"} {
		if f.Aliases[pci] != want {
			t.Errorf("%s leads to %q, want %s; all: %v", pci, f.Aliases[pci], want, f.Aliases)
		}
	}
	i := slices.IndexFunc(f.NICs, func(n render.HostNIC) bool { return n.Name == "dcb2" })
	if i < 0 {
		t.Fatalf("no dcb2 in %+v", f.NICs)
	}
	n := f.NICs[i]
	if n.Driver != "dcbtest" || n.Firmware != "22.41.1000" || n.Personality != "dcbtest" || n.PCI != "0000:00:12.0" || n.OutOfTree {
		t.Errorf("dcb2: %+v", n)
	}
	knobs := []string{"app", "buffer", "dcbx", "ets", "fec", "flag.fw-lldp-agent", "maxrate", "pause", "pfc", "ring"}
	for _, k := range knobs {
		if !slices.Contains(n.Knobs, k) {
			t.Errorf("dcb2 answers %v, without %s", n.Knobs, k)
		}
	}
}

// All settings of a host on a kernel: written, seen by dcb, ethtool and ip, written once and not twice, and taken back to
// what was there before.
func TestVMNICCommit(t *testing.T) {
	const dev = "dcb2"
	rebind(t, dev)
	d := whole(t)
	before, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cs := towards(t, d, dev, losslessHost())
	if err := d.Commit(t.Context(), "all", cs, 0); err != nil {
		t.Fatal(err)
	}
	row := table(t, "host", "setting", "value", "command", "it shows")
	for _, w := range witnesses() {
		if out := program(t, w.command); !strings.Contains(out, w.shows) {
			t.Errorf("%s does not show %q:\n%s", w.command, w.shows, out)
		}
		row(w.cells()...)
	}
	sets := peek(t, debug(dev, "sets"))
	if again := towards(t, d, dev, losslessHost()); len(again) > 0 {
		t.Errorf("it is not all there: %v", again)
	}
	if err := d.Commit(t.Context(), "again", cs, 0); err != nil {
		t.Errorf("a commit of what is there: %v", err)
	}
	if now := peek(t, debug(dev, "sets")); now != sets {
		t.Errorf("nothing differed, and the driver was called %s times, then %s", sets, now)
	}
	if err := d.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	after, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := render.Diff(d.dialect, render.Facts{}, after, before); len(diff) > 0 {
		t.Errorf("after it is taken back there is a difference: %v", diff)
	}
}

// What a driver says it did and did not do is said by us.
func TestVMNICDiffers(t *testing.T) {
	const dev = "dcb2"
	for _, x := range []struct{ file, object, setting, value string }{
		{"missing", "pfc", "pfc priorities", "3"},
		{"lie", "pfc", "pfc priorities", "3"},
		{"lie", "app", "app dscp 26", "3"},
		{"lie", "ets", "ets prio-tc", "0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"},
		{"lie", "buffer", "buffer sizes", "0:65536 1:131072 2:0 3:0 4:0 5:0 6:0 7:0"},
		{"lie", "dcbx", "dcbx mode", "host ieee"},
	} {
		rebind(t, dev)
		if x.object == "dcbx" {
			program(t, "dcb dcbx set dev "+dev+" ieee") // without host
		}
		poke(t, debug(dev, x.file), x.object)
		d := whole(t)
		err := d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{x.setting: x.value}), 0)
		if differs := (*drivers.DiffersError)(nil); !errors.As(err, &differs) || !strings.Contains(err.Error(), "applied-but-differs") {
			t.Errorf("%s %s: %v", x.file, x.object, err)
		}
	}
	// Refused, with the driver's word for it; and done with a status that says neither.
	rebind(t, dev)
	d := whole(t)
	poke(t, debug(dev, "refuse"), "ets")
	err := d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"ets willing": "on"}), 0)
	if refused := (*drivers.RejectedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a driver that is busy: %v", err)
	}
	poke(t, debug(dev, "refuse"), "\n")
	poke(t, debug(dev, "odd"), "app")
	poke(t, debug(dev, "answer"), "2")
	if err := d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"app dscp 26": "3", "app dscp 48": "6"}), 0); err != nil {
		t.Errorf("a driver that answers 2: %v", err)
	}
	poke(t, debug(dev, "odd"), "\n")
	poke(t, debug(dev, "replace"), "Y")
	if err := d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"app dscp 26": "4", "app dscp 48": ""}), 0); err != nil {
		t.Errorf("a driver that replaces by itself: %v", err)
	}
	if out := program(t, "dcb -N app show dev dcb2"); !strings.Contains(out, "dscp-prio 26:4 \n") {
		t.Errorf("dcb shows %s", out)
	}
}

// The firmware's LLDP agent has the settings: that is said, nothing is written under its eyes, and a commit that turns it
// off first goes through, and goes back.
func TestVMNICOwner(t *testing.T) {
	const dev = "dcb2"
	rebind(t, dev)
	program(t, "ethtool --set-priv-flags dcb2 fw-lldp-agent on")
	d := whole(t)
	f, _, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const note = `dcb2: its firmware rules QoS (DCBX mode is "lld-managed ieee", without host)`
	if !slices.Contains(f.Notes, note) || len(f.Owners) > 0 { // no owner: we know how to take it over
		t.Errorf("owners %v, notes:\n%s", f.Owners, strings.Join(f.Notes, "\n"))
	}
	err = d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"pfc priorities": "3"}), 0)
	if err == nil || peek(t, debug(dev, "sets")) != "0" {
		t.Errorf("a set under the firmware's eyes: %v, and the driver was called %s times", err, peek(t, debug(dev, "sets")))
	}
	cs := towards(t, d, dev, losslessHost())
	if err := d.Commit(t.Context(), "all", cs, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	if out := program(t, "ethtool --show-priv-flags dcb2"); !strings.Contains(out, "fw-lldp-agent     : on") {
		t.Errorf("after it is taken back ethtool shows\n%s", out)
	}
}

// Ethtool's objects by us and by ethtool.
func TestVMNICEthtool(t *testing.T) {
	const dev = "dcb1"
	rebind(t, dev)
	d := whole(t)
	read := func(k string) string {
		live, err := d.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		scope, field, _ := strings.Cut(k, " ")
		v, _ := live.Find(render.Key{Scope: scope, Object: dev, Field: field})
		return v
	}
	for words, want := range map[string][2]string{
		"ethtool -A dcb1 rx off tx on":                        {"pause receive", "off"},
		"ethtool -G dcb1 rx 2048 tx 512":                      {"ring rx", "2048"},
		"ethtool --set-fec dcb1 encoding baser":               {"fec mode", "baser"},
		"ethtool --set-priv-flags dcb1 fw-lldp-agent on":      {"flag fw-lldp-agent", "on"},
		"ethtool --set-priv-flags dcb1 link-down-on-close on": {"pause send", "on"}, // another flag: nothing of ours
	} {
		program(t, words)
		if got := read(want[0]); got != want[1] {
			t.Errorf("%s: we read %s %q", words, want[0], got)
		}
	}
	// A size that the driver rounds up without a word.
	rebind(t, dev)
	err := d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"ring rx": "3000"}), 0)
	if differs := (*drivers.DiffersError)(nil); !errors.As(err, &differs) || differs.Reads != "4096" {
		t.Errorf("a ring of 3000: %v", err)
	}
	err = d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"ring rx": "9000"}), 0)
	if err == nil || !strings.Contains(err.Error(), "8192") {
		t.Errorf("a ring of 9000: %v", err)
	}
	err = d.Commit(t.Context(), "x", towards(t, d, dev, map[string]string{"fec mode": "llrs"}), 0)
	if err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("FEC that it has not: %v", err)
	}
}

// A card of two ports with four traffic classes, two of which may be paused, as E810 is: found, and refused as it refuses.
func TestVMNICSmallCard(t *testing.T) {
	program(t, "rmmod dcbtest")
	program(t, "insmod /modules/dcbtest.ko ports=2 ets_cap=4 pfc_cap=2 total_buffer=65536 fw_lldp=1 pause_excludes_pfc=1")
	t.Cleanup(func() {
		program(t, "rmmod dcbtest")
		program(t, "insmod /modules/dcbtest.ko")
	})
	d := whole(t)
	f, _, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{}
	for _, n := range f.NICs {
		if n.PCI == "0000:00:11.0" {
			ports[n.Name] = n.Port
		}
	}
	if len(ports) != 2 || ports["dcb3"] != 2 || f.Aliases["0000:00:11.0"] != "" || !strings.Contains(strings.Join(f.Notes, "\n"), "PCI 0000:00:11.0 has several links, name the one that is meant: dcb2, dcb3") {
		t.Errorf("ports of one card: %v, it leads to %q, notes:\n%s", ports, f.Aliases["0000:00:11.0"], strings.Join(f.Notes, "\n"))
	}
	commit := func(want map[string]string) error {
		return d.Commit(t.Context(), "x", towards(t, d, "dcb2", want), 0)
	}
	if err := commit(map[string]string{"flag fw-lldp-agent": "off", "dcbx mode": "host ieee", "pfc priorities": "3 4"}); err != nil {
		t.Errorf("take it from the firmware and pause two: %v", err)
	}
	for _, x := range []struct {
		want map[string]string
		says string
	}{
		{map[string]string{"pfc priorities": "3 4 5"}, "invalid for this device"},
		{map[string]string{"ets prio-tc": "0:0 1:1 2:2 3:3 4:4 5:0 6:0 7:0"}, "invalid for this device"},
		{map[string]string{"buffer sizes": "0:65536 1:1 2:0 3:0 4:0 5:0 6:0 7:0"}, "invalid for this device"},
		{map[string]string{"pause receive": "off"}, "not supported"},
	} {
		before := towards(t, d, "dcb2", x.want)
		if err := commit(x.want); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: %v", x.want, err)
		}
		if after := towards(t, d, "dcb2", x.want); len(after) != len(before) {
			t.Errorf("%v was refused, and then %v is left to do", x.want, after)
		}
	}
}

// A bond: its NICs are configured, its MTU is theirs.
func TestVMNICBond(t *testing.T) {
	for _, c := range []string{"ip link add bond1 type bond mode 802.3ad", "ip link set dcb0 down", "ip link set dcb1 down", "ip link set dcb0 master bond1", "ip link set dcb1 master bond1", "ip link set bond1 up"} {
		program(t, c)
	}
	t.Cleanup(func() {
		program(t, "ip link del bond1")
		for _, dev := range []string{"dcb0", "dcb1"} {
			rebind(t, dev)
		}
	})
	d := whole(t)
	f, _, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bonds := map[string]string{}
	for _, n := range f.NICs {
		bonds[n.Name] = n.Bond
	}
	if bonds["dcb0"] != "bond1" || bonds["dcb1"] != "bond1" || bonds["dcb2"] != "" {
		t.Errorf("bonds of NICs: %v", bonds)
	}
	cs := slices.Concat(
		[]render.Change{mtu("bond1", "1500", "9000"), mtu("dcb0", "1500", "9000"), mtu("dcb1", "1500", "9000")},
		towards(t, d, "dcb0", map[string]string{"pfc priorities": "3"}), towards(t, d, "dcb1", map[string]string{"pfc priorities": "3"}))
	if err := d.Commit(t.Context(), "x", cs, 0); err != nil {
		t.Error(err)
	}
	if m := shown(t); m["bond1"] != 9000 || m["dcb0"] != 9000 || m["dcb1"] != 9000 {
		t.Errorf("ip shows %v", m)
	}
	if out := program(t, "dcb pfc show dev dcb1 prio-pfc"); !strings.Contains(out, "3:on") {
		t.Errorf("dcb shows %s", out)
	}
	if err := d.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Error(err)
	}
	if m := shown(t); m["bond1"] != 1500 || m["dcb0"] != 1500 || m["dcb1"] != 1500 {
		t.Errorf("after it is taken back ip shows %v", m)
	}
}

// The MTU of a NIC whose driver has a limit, and of a VLAN on it, by us and by ip.
func TestVMNICMTU(t *testing.T) {
	d := whole(t)
	ip(t, "link", "add", "link", "dcb0", "name", "dcb0.100", "type", "vlan", "id", "100")
	t.Cleanup(func() {
		ip(t, "link", "del", "dcb0.100")
		ip(t, "link", "set", "dcb0", "mtu", "1500")
	})
	if err := d.Commit(t.Context(), "up", []render.Change{mtu("dcb0", "1500", "9000"), mtu("dcb0.100", "1500", "9000")}, 0); err != nil {
		t.Fatal(err)
	}
	if m := shown(t); m["dcb0"] != 9000 || m["dcb0.100"] != 9000 {
		t.Errorf("ip shows %v", m)
	}
	err := d.Commit(t.Context(), "too much", []render.Change{mtu("dcb1", "1500", "9979")}, 0)
	if err == nil || !strings.Contains(err.Error(), "the driver takes 68 to 9978") {
		t.Errorf("over the driver's limit: %v", err)
	}
	err = d.Commit(t.Context(), "below a VLAN", []render.Change{mtu("dcb0", "9000", "1500")}, 0)
	if err == nil || !strings.Contains(err.Error(), "dcb0.100") {
		t.Errorf("below what rides on it: %v", err)
	}
	ip(t, "link", "set", "dcb1", "mtu", "4200")
	live, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := live.Find(mtuKey("dcb1")); v != "4200" {
		t.Errorf("ip set dcb1 to 4200, we read %s", v)
	}
	ip(t, "link", "set", "dcb1", "mtu", "1500")
}
