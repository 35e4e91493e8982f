//go:build vm

package netlink

import (
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/render"
)

// real is a device on the whole virtual machine, with its real files.
func real(t *testing.T) *Device {
	t.Helper()
	links, err := Dial()
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Name: "vm", Root: "/", Links: links})
	t.Cleanup(func() { d.Close() })
	return d
}

// NICs with a PCI address, as discovery meets them on a server.
func TestVMNICFacts(t *testing.T) {
	f, _, err := real(t).Facts(t.Context())
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
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, "dcb3: driver dcbtest, PCI 0000:00:13.0 (1b36:0005)") {
		t.Errorf("notes:\n%s", notes)
	}
}

// The MTU of a NIC whose driver has a limit, and of a VLAN on it, by us and by ip.
func TestVMNICMTU(t *testing.T) {
	d := real(t)
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
	if err == nil || !strings.Contains(err.Error(), "dcb0.100, with MTU 9000, rides on it") {
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
