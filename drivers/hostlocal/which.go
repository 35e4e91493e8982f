package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// WhichError is that the machine is none of the hosts of a model, or that it may be several.
type WhichError struct {
	Says   string   // what the machine says of itself
	Hosts  []string // those that it may be; none when it is none of them
	Whence string   // what they have in common with it
}

func (e *WhichError) Error() string {
	if len(e.Hosts) == 0 {
		return "this machine is none of the hosts of the model: " + e.Says
	}
	return fmt.Sprintf("this machine may be %s by its %s: %s", strings.Join(e.Hosts, " or "), e.Whence, e.Says)
}

// Which is the host of a model that a machine is, by the first of these that fits any: its serial number, an address that
// the inventory gives, its hostname, the PCI addresses of its NICs. Where the inventory gives a serial number or a
// hostname that is not the machine's, the host is another. The error is a *WhichError.
func Which(n *intent.Net, f render.Facts, addresses []netip.Prefix) (name, by string, err error) {
	var hosts []*intent.Device
	for i := range n.Devices {
		d := &n.Devices[i]
		if !d.Host || d.OS() != "linux" || d.State == intent.Absent {
			continue
		}
		err := drivers.Identity{Name: d.Name, Serial: d.Serial, Hostname: d.Hostname}.Is(f)
		if who := (*drivers.IdentityError)(nil); errors.As(err, &who) && (who.Key == "serial" || d.Hostname != "") {
			continue
		}
		hosts = append(hosts, d)
	}
	says := []string{"hostname " + f.Hostname}
	if f.Serial != "" {
		says = append(says, "serial number "+f.Serial)
	}
	if pcis := pciOf(f); len(pcis) > 0 {
		says = append(says, "NICs at "+strings.Join(pcis, ", "))
	}
	for _, mark := range []struct {
		by   string
		fits func(*intent.Device) bool
	}{
		{"serial number", func(d *intent.Device) bool { return d.Serial != "" && d.Serial == f.Serial }},
		{"address", func(d *intent.Device) bool { return hasAddress(d, addresses) }},
		{"hostname", func(d *intent.Device) bool {
			return drivers.Identity{Name: d.Name, Hostname: d.Hostname}.Is(render.Facts{Hostname: f.Hostname}) == nil && f.Hostname != ""
		}},
		{"NICs", func(d *intent.Device) bool { return hasNICs(d, f) }},
	} {
		var names []string
		for _, d := range hosts {
			if mark.fits(d) {
				names = append(names, d.Name)
			}
		}
		switch len(names) {
		case 0:
		case 1:
			return names[0], mark.by, nil
		default:
			return "", "", &WhichError{Says: strings.Join(says, ", "), Hosts: names, Whence: mark.by}
		}
	}
	return "", "", &WhichError{Says: strings.Join(says, ", ")}
}

func pciOf(f render.Facts) []string {
	var out []string
	for _, n := range f.NICs {
		if n.PCI != "" && !slices.Contains(out, n.PCI) {
			out = append(out, n.PCI)
		}
	}
	return out
}

// hasAddress reports whether the inventory reaches d at one of the addresses, or gives one to a NIC of it.
func hasAddress(d *intent.Device, addresses []netip.Prefix) bool {
	has := func(text string) bool {
		if p, err := netip.ParsePrefix(text); err == nil {
			text = p.Addr().String()
		} else if p, err := netip.ParseAddrPort(text); err == nil {
			text = p.Addr().String()
		}
		a, err := netip.ParseAddr(text)
		return err == nil && !a.IsLoopback() && slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Addr().Unmap() == a.Unmap() })
	}
	return has(d.Address) || slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return p.IP != "" && has(p.IP) })
}

// hasNICs reports whether the inventory binds the NICs of d by PCI address, and the machine has all of them.
func hasNICs(d *intent.Device, f render.Facts) bool {
	have, some := pciOf(f), false
	for _, p := range d.Ports {
		if p.PCI == "" {
			continue
		}
		some = true
		if !slices.Contains(have, p.PCI) {
			return false
		}
	}
	return some
}

// Find is Which for the machine that the process runs on.
func (m Machine) Find(ctx context.Context, n *intent.Net) (name, by string, err error) {
	dev, err := m.Direct()
	if err != nil {
		return "", "", err
	}
	defer dev.Close()
	f, _, err := dev.Facts(ctx)
	if err != nil {
		return "", "", fmt.Errorf("this machine: %w", err)
	}
	addresses, err := dev.Addresses(ctx)
	if err != nil {
		return "", "", fmt.Errorf("this machine: addresses: %w", err)
	}
	return Which(n, f, addresses)
}
