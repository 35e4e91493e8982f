package hostlocal

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// A machine is found by what it has alone, and what several hosts have is said.
func TestWhich(t *testing.T) {
	host := func(name string, change func(*intent.Device)) intent.Device {
		d := intent.Device{Name: name, Platform: "linux/generic", Host: true}
		if change != nil {
			change(&d)
		}
		return d
	}
	n := &intent.Net{Devices: []intent.Device{
		host("leaf1", func(d *intent.Device) { d.Host = false }),
		host("h1", func(d *intent.Device) { d.Serial, d.Address = "S1", "10.0.0.1:22" }),
		host("h2", func(d *intent.Device) { d.Hostname = "gpu-2.example.net" }),
		host("h3", func(d *intent.Device) { d.Ports = []intent.Port{{PCI: "0000:17:00.0", IP: "192.168.1.3/31"}} }),
		host("h4", func(d *intent.Device) { d.Ports = []intent.Port{{PCI: "0000:17:00.0"}} }),
		host("gone", func(d *intent.Device) { d.State = intent.Absent }),
	}}
	at := func(s ...string) (out []netip.Prefix) {
		for _, x := range s {
			out = append(out, netip.MustParsePrefix(x))
		}
		return out
	}
	nic := []render.HostNIC{{Name: "a", PCI: "0000:17:00.0"}}
	for _, x := range []struct {
		name      string
		f         render.Facts
		addresses []netip.Prefix
		want, by  string
		err       string
	}{
		{name: "serial number before the name", f: render.Facts{Serial: "S1", Hostname: "h2"}, want: "h1", by: "serial number"},
		{name: "address", f: render.Facts{Hostname: "x"}, addresses: at("172.16.0.9/24", "10.0.0.1/24"), want: "h1", by: "address"},
		{name: "another serial number", f: render.Facts{Serial: "S9", Hostname: "h1"}, addresses: at("10.0.0.1/24"), err: "none of the hosts of the model: hostname h1, serial number S9"},
		{name: "address of a NIC", f: render.Facts{Hostname: "x"}, addresses: at("192.168.1.3/31"), want: "h3", by: "address"},
		{name: "hostname, in short", f: render.Facts{Hostname: "GPU-2"}, want: "h2", by: "hostname"},
		{name: "another domain", f: render.Facts{Hostname: "gpu-2.example.com"}, err: "none of the hosts"},
		{name: "name", f: render.Facts{Hostname: "h4", NICs: nic}, want: "h4", by: "hostname"},
		{name: "two by their NICs", f: render.Facts{Hostname: "x", NICs: nic}, err: "may be h3 or h4 by its NICs: hostname x, NICs at 0000:17:00.0"},
		{name: "a switch is none", f: render.Facts{Hostname: "leaf1"}, err: "none of the hosts"},
		{name: "an absent one is none", f: render.Facts{Hostname: "gone"}, err: "none of the hosts"},
	} {
		name, by, err := Which(n, x.f, x.addresses)
		var which *WhichError
		if name != x.want || by != x.by || (err != nil) != (x.err != "") || err != nil && (!strings.Contains(err.Error(), x.err) || !errors.As(err, &which)) {
			t.Errorf("%s: %q by %q, %v", x.name, name, by, err)
		}
	}
}
