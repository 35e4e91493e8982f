package intent

import "github.com/fabricctl/fabricctl/model"

// Way is how our own connection gets to a device: over a network of its own, which is the zero Way, or through ports that
// the model configures, so that a change of theirs may cut it.
type Way struct {
	InBand bool   `json:",omitempty"`
	Port   string `json:",omitempty"` // the model's name of the port that it takes; "" when any may
	Hops   int    `json:",omitempty"` // links between the device and where we come in; 0 when that is not known
}

// ways fills in how devices are reached that are managed in-band. We are taken to come in through the switches with a
// border port, or, where there is none, through the switches that have a management network of their own.
func (n *Net) ways(f *model.Fabric) {
	any := false
	for i := range n.Devices {
		d := &n.Devices[i]
		if e := f.Endpoints[d.Name]; e != nil && e.Management.V == model.InBand {
			d.Way = Way{InBand: true, Port: e.ManagementPort.V}
			any = true
		}
	}
	if !any {
		return
	}
	hops := map[string]int{}
	var next []*Device
	enter := func(is func(*Device) bool) {
		for i := range n.Devices {
			if d := &n.Devices[i]; !d.Host && d.State == Active && is(d) {
				hops[d.Name] = 0
				next = append(next, d)
			}
		}
	}
	enter(func(d *Device) bool { return d.hasBorder() })
	if len(next) == 0 {
		enter(func(d *Device) bool { return !d.Way.InBand })
	}
	for len(next) > 0 {
		d := next[0]
		next = next[1:]
		for i := range d.Ports {
			peer := n.Device(d.Ports[i].Peer)
			if peer == nil {
				continue
			}
			if _, seen := hops[peer.Name]; seen {
				continue
			}
			hops[peer.Name] = hops[d.Name] + 1
			if !peer.Host { // a host forwards nothing
				next = append(next, peer)
			}
		}
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Way.InBand {
			d.Way.Hops = hops[d.Name]
		}
	}
}

// hasBorder reports whether a port of d leads out of the fabric.
func (d *Device) hasBorder() bool {
	for i := range d.Ports {
		if d.Ports[i].Role == "border" && d.Ports[i].State == Active {
			return true
		}
	}
	return false
}
