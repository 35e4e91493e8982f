package lab

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/intent"
)

// wiring is who is cabled to whom, for LLDP. Only what a device says of itself over LLDP is kept.
type wiring map[string]map[string]card // by device, then by port of the model

// card is what one port sends out: its device and itself.
type card struct {
	iface    string // the device's own name of the port
	mac      [6]byte
	system   string
	portID   string
	isMAC    bool // portID is a MAC address
	descr    string
	forwards bool
}

// wire makes the cards of all ports that have a name on their device.
func wire(n *intent.Net) wiring {
	w := wiring{}
	for i := range n.Devices {
		dev := &n.Devices[i]
		cards := map[string]card{}
		named := 0
		for j, p := range dev.Ports {
			iface := portOf(dev, j)
			if iface == "" {
				continue
			}
			named++
			if p.State == intent.Absent || dev.State == intent.Absent {
				continue
			}
			c := card{iface: iface, mac: [6]byte{2, 0, byte(i >> 8), byte(i), 0, 1}, system: dev.Name, portID: iface, descr: iface, forwards: !dev.Host}
			switch dev.OS() {
			case "sonic": // sends the front panel's name as the port id and its own as the description
				c.portID = fmt.Sprintf("etp%d", named)
			case "linux":
				c.portID, c.isMAC = fmt.Sprintf("02:00:%02x:%02x:01:%02x", i>>8&0xff, i&0xff, j&0xff), true
			}
			cards[p.Name] = c
		}
		w[dev.Name] = cards
	}
	return w
}

// portOf is how a device calls its j-th port.
func portOf(dev *intent.Device, j int) string {
	iface := dev.Ports[j].Iface
	if dev.Host && (iface == "" || strings.Contains(iface, ":")) { // nothing, or a PCI address, says what the kernel calls it
		return fmt.Sprintf("rdma%d", j)
	}
	return iface
}

// each calls f with every port of dev that hears somebody, and with what it hears.
func (w wiring) each(dev *intent.Device, f func(port string, heard card)) {
	for _, p := range dev.Ports {
		mine, ok := w[dev.Name][p.Name]
		theirs, linked := w[p.Peer][p.PeerPort]
		if ok && linked {
			f(mine.iface, theirs)
		}
	}
}

func (w wiring) sonic(dev *intent.Device) (out []sonic.Neighbour) {
	w.each(dev, func(port string, c card) {
		chassis := fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", c.mac[0], c.mac[1], c.mac[2], c.mac[3], c.mac[4], c.mac[5])
		out = append(out, sonic.Neighbour{Port: port, Chassis: chassis, System: c.system, PortID: c.portID, MAC: c.isMAC, Descr: c.descr, Forwards: c.forwards})
	})
	return out
}

func (w wiring) eos(dev *intent.Device) (out []eos.Neighbour) {
	w.each(dev, func(port string, c card) {
		chassis := fmt.Sprintf("%02x%02x.%02x%02x.%02x%02x", c.mac[0], c.mac[1], c.mac[2], c.mac[3], c.mac[4], c.mac[5])
		out = append(out, eos.Neighbour{Port: port, Chassis: chassis, System: c.system, PortID: c.portID, MAC: c.isMAC, Descr: c.descr, Forwards: c.forwards})
	})
	return out
}
