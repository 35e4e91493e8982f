package render

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// Fitted is what the NICs of the fabric run in a host that said f, for profiles.Catalog.Fleet: those at the ports of d, and not the
// host's other ones. Without ports, as of a device that no model has, it is all of them that are known to be NICs for RDMA.
func Fitted(d intent.Device, f Facts, c *profiles.Catalog) []profiles.Fitted {
	if len(d.Ports) > 0 {
		d = d.Bind(f.Aliases)
	}
	var fleet []profiles.Fitted
	for _, n := range f.NICs {
		nic, known := c.NICOf(n.Model, n.Driver)
		if of := slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return p.Iface == n.Name }); !of && (len(d.Ports) > 0 || !known || n.VFOf != "") {
			continue
		}
		fleet = append(fleet, profiles.Fitted{Device: d.Name, Iface: n.Name, Build: profiles.Build{
			NIC: nic.Name, Driver: n.Driver, Vendor: n.OutOfTree, DriverVersion: n.DriverVersion, Firmware: n.Firmware, Kernel: f.Version,
		}})
	}
	return fleet
}
