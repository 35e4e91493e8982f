package render

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/units"
)

// HostNIC is what a host says about one of its network interfaces that has hardware below it, in Facts.NICs.
type HostNIC struct {
	Name          string `json:"name"`                     // of the network interface
	PCI           string `json:"pci,omitempty"`            // its address: 0000:17:00.0
	Model         string `json:"model,omitempty"`          // PCI vendor and device: 15b3:1021
	Port          int    `json:"port,omitempty"`           // physical port of the adapter, from 1; 0 = not known
	Driver        string `json:"driver,omitempty"`         //
	DriverVersion string `json:"driver_version,omitempty"` //
	Firmware      string `json:"firmware,omitempty"`       //
	OutOfTree     bool   `json:"out_of_tree,omitempty"`    // the driver is its vendor's, not the kernel's own

	Personality string `json:"personality,omitempty"` // name in the catalog; "generic" when none fits
	RDMA        string `json:"rdma,omitempty"`        // RDMA device: mlx5_0; "" = none
	RDMAPort    int    `json:"rdma_port,omitempty"`   // port of it, from 1
	Bond        string `json:"bond,omitempty"`        // the bond that it is a slave of; "" = none
	VFOf        string `json:"vf_of,omitempty"`       // the physical function's interface, or its PCI address, when this is a virtual one
	DPU         string `json:"dpu,omitempty"`         // why QoS is not this host's to set; "" = it is

	NUMA int      `json:"numa"`           // node; -1 = not known
	GPUs []string `json:"gpus,omitempty"` // PCI addresses of the accelerators on the same NUMA node, the nearest first

	Addresses []string `json:"addresses,omitempty"` // IP prefixes on it, on its VLANs and on its bond
	GID       int      `json:"gid"`                 // index of the RoCE v2 GID of its IPv4 address; -1 = none
	GIDWhy    string   `json:"gid_why,omitempty"`   // why there is none, or that there are more
	QPs       int      `json:"qps"`                 // queue pairs of running programs; -1 = not known
	MaxQP     int      `json:"max_qp,omitempty"`    // 0 = not known
	MaxCQ     int      `json:"max_cq,omitempty"`    // 0 = not known

	Management bool     `json:"management,omitempty"` // carries the default route or the session that asks
	Knobs      []string `json:"knobs,omitempty"`      // what answered: pfc, ets, app, pause, roce.tos, cc.ai_rate, …; sorted
	Link       HostLink `json:"link,omitzero"`
}

// HostLink is a NIC's cable and slot.
type HostLink struct {
	Up    bool          `json:"up,omitempty"`    // it has a carrier
	Speed units.BitRate `json:"speed,omitempty"` // 0 = not known

	PCIeSpeed    string `json:"pcie_speed,omitempty"`     // as the kernel says it: 32.0 GT/s PCIe
	PCIeMaxSpeed string `json:"pcie_max_speed,omitempty"` //
	PCIeWidth    int    `json:"pcie_width,omitempty"`     // lanes
	PCIeMaxWidth int    `json:"pcie_max_width,omitempty"` //
}

// Equal compares all that two NICs say.
func (n HostNIC) Equal(o HostNIC) bool {
	return n.Name == o.Name && n.PCI == o.PCI && n.Model == o.Model && n.Port == o.Port &&
		n.Driver == o.Driver && n.DriverVersion == o.DriverVersion && n.Firmware == o.Firmware && n.OutOfTree == o.OutOfTree &&
		n.Personality == o.Personality && n.RDMA == o.RDMA && n.RDMAPort == o.RDMAPort &&
		n.Bond == o.Bond && n.VFOf == o.VFOf && n.DPU == o.DPU && n.NUMA == o.NUMA && slices.Equal(n.GPUs, o.GPUs) &&
		slices.Equal(n.Addresses, o.Addresses) && n.GID == o.GID && n.GIDWhy == o.GIDWhy &&
		n.QPs == o.QPs && n.MaxQP == o.MaxQP && n.MaxCQ == o.MaxCQ &&
		n.Management == o.Management && slices.Equal(n.Knobs, o.Knobs) && n.Link == o.Link
}

// Has reports whether the NIC answered for that knob.
func (n HostNIC) Has(knob string) bool { return slices.Contains(n.Knobs, knob) }

// NIC is the NIC with that interface name.
func (f Facts) NIC(name string) (HostNIC, bool) {
	i := slices.IndexFunc(f.NICs, func(n HostNIC) bool { return n.Name == name })
	if i < 0 {
		return HostNIC{}, false
	}
	return f.NICs[i], true
}
