package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// held is what a box holds at one moment, as its dialect reads it.
type held struct {
	config   render.Config
	facts    render.Facts
	down     func(iface string) bool // the interface carries nothing: it was shut down, or lost its link
	findings diag.List
}

// read is a device as its box was read, and what the box said then: as long as it says that, the device is as it was.
type read struct {
	said     string
	dev      intent.Device
	down     func(iface string) bool
	findings diag.List
}

// Net is the fabric as its devices hold it now: the text of each is parsed and lifted as that of a real device is. Names,
// cabling and hardware are those of the start; ports that were shut down are in maintenance, and so is what they are cabled
// to. Findings say what was not understood. Devices are read one after the other, each as it is at one moment; one that says what it
// said before is not parsed again.
func (l *Lab) Net() (*intent.Net, diag.List, error) {
	var findings diag.List
	net := l.identity.With(make([]intent.Device, 0, len(l.identity.Devices)))
	down := map[[2]string]bool{} // by device and port of the model
	for i := range l.identity.Devices {
		dev := &l.identity.Devices[i]
		r, err := l.read(dev)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dev.Name, err)
		}
		findings.Add(r.findings...)
		d := r.dev
		d.Ports = slices.Clone(d.Ports)
		net.Devices = append(net.Devices, d)
		for _, p := range dev.Ports {
			if r.down(p.Iface) {
				down[[2]string{dev.Name, p.Name}], down[[2]string{p.Peer, p.PeerPort}] = true, true
			}
		}
	}
	for i := range net.Devices {
		dev := &net.Devices[i]
		for j := range dev.Ports {
			if p := &dev.Ports[j]; p.State == intent.Active && down[[2]string{dev.Name, p.Name}] {
				p.State = intent.Maintenance
			}
		}
	}
	return net, findings.Sort(), nil
}

// read is what the box of a device holds now.
func (l *Lab) read(dev *intent.Device) (*read, error) {
	box := l.boxes[dev.Name]
	said, err := saidBy(box)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	r := l.reads[dev.Name]
	l.mu.Unlock()
	if r != nil && r.said == said {
		return r, nil
	}
	h, err := readBox(box, dev, said)
	if err != nil {
		return nil, err
	}
	h.facts.Hostname = dev.Name
	dialect := render.ByOS(dev.OS())
	policies, more := dialect.Lift(h.config, h.facts)
	r = &read{said: said, dev: dialect.Joined(*dev, h.config, policies), down: h.down}
	for _, f := range slices.Concat(h.findings, more) {
		if f.Severity > diag.Info {
			r.findings.Add(f)
		}
	}
	l.mu.Lock()
	l.reads[dev.Name] = r
	l.mu.Unlock()
	return r, nil
}

// saidBy is all that a box says of what it holds: of a host, its facts in one line of JSON, and its settings in another.
func saidBy(b Box) (string, error) {
	switch b := b.(type) {
	case *eos.Switch:
		return b.Running(), nil
	case *sonic.Switch:
		return b.Held(), nil
	case *host.Host:
		facts, settings, err := b.Look()
		return string(facts) + "\n" + string(settings), err
	}
	return "", fmt.Errorf("the lab cannot read what a %T holds", b)
}

// readBox makes of what a box said what its dialect reads in it.
func readBox(b Box, dev *intent.Device, said string) (held, error) {
	switch b.(type) {
	case *eos.Switch:
		return readText(dev, said, func(c render.Config, iface string) bool {
			_, shut := c.Find(render.Key{Scope: "interface " + iface, Object: "shutdown"})
			return shut
		}), nil
	case *sonic.Switch:
		return readText(dev, said, func(c render.Config, iface string) bool { return c.Get("PORT", iface, "admin_status") == "down" }), nil
	}
	return readHost(dev, said)
}

func readText(dev *intent.Device, text string, down func(c render.Config, iface string) bool) held {
	c, findings := render.ByOS(dev.OS()).Parse([]byte(text))
	return held{config: c, findings: findings, down: func(iface string) bool { return down(c, iface) }}
}

// readHost takes what the host's own agent would say.
func readHost(dev *intent.Device, said string) (held, error) {
	var h held
	facts, settings, _ := strings.Cut(said, "\n")
	var config []struct {
		Key   render.Key
		Value string
	}
	if err := errors.Join(json.Unmarshal([]byte(facts), &h.facts), json.Unmarshal([]byte(settings), &config)); err != nil {
		return held{}, err
	}
	for _, s := range config {
		h.config = append(h.config, render.Setting{Key: s.Key, Value: s.Value})
	}
	h.config.Sorted()
	for i := range h.facts.NICs {
		n := &h.facts.NICs[i]
		p := catalogOf(dev).Personality(n.Driver, n.Model)
		n.Personality = p.Name
		if !slices.ContainsFunc(h.facts.Personalities, func(o profiles.Personality) bool { return o.Name == p.Name }) {
			h.facts.Personalities = append(h.facts.Personalities, p)
		}
	}
	h.down = func(iface string) bool {
		n, ok := h.facts.NIC(iface)
		return ok && !n.Link.Up
	}
	return h, nil
}

// identities are the devices that a lab starts, without anything that only a model knows: names, places, cabling and
// hardware, and of a host's ports the names that its kernel gives them.
func identities(net *intent.Net) *intent.Net {
	out := net.With(nil)
	for i := range net.Devices {
		if net.Devices[i].State == intent.Absent {
			continue
		}
		d := intent.Join(net.Devices[i], nil)
		d.Manage, d.RoCE, d.NCCL, d.Origins = intent.Manage{}, 0, intent.HostNCCL{}, nil
		for j := range d.Ports {
			d.Ports[j].Iface, d.Ports[j].Manage = portOf(&d, j), intent.Manage{}
		}
		out.Devices = append(out.Devices, d)
	}
	return out
}
