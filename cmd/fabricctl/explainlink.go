package main

import (
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// explainNeighbour is the other end of a link.
type explainNeighbour struct {
	Device string          `json:"device"`
	Port   string          `json:"port"`
	Iface  string          `json:"interface,omitempty"`
	State  string          `json:"state"`
	Values []explainBeside `json:"values"` // what both ends speak about
}

// explainBeside is one value at both ends, each "none" where its end has no such thing.
type explainBeside struct {
	Field    intent.Field `json:"field"`
	Label    string       `json:"name"`
	Priority int          `json:"priority"`
	Here     string       `json:"here"`
	There    string       `json:"there"`
	Differs  bool         `json:"differs,omitempty"`
}

// peer is the other end of a port; nil where there is none.
func (x *explainer) peer(p *intent.Port) (*intent.Device, *intent.Port) {
	d := x.index[p.Peer]
	if d == nil || d.State == intent.Absent {
		return nil, nil
	}
	q := d.Port(p.PeerPort)
	if q == nil {
		return nil, nil
	}
	return d, q
}

// neighbour compares the ends of a port's link in the areas that both speak about.
func (x *explainer) neighbour(d *intent.Device, p *intent.Port) *explainNeighbour {
	peer, q := x.peer(p)
	if q == nil {
		return nil
	}
	n := &explainNeighbour{Device: peer.Name, Port: q.Name, Iface: q.Iface, State: worseState(peer.State, q.State).String(), Values: []explainBeside{}}
	here, there := intent.Effective(d, p), intent.Effective(peer, q)
	both := here.Known & there.Known
	differs := map[intent.Field]bool{}
	for _, v := range intent.Differences(&here, &there) {
		differs[v.Field] = true
	}
	if d.Host != peer.Host {
		both &^= intent.AreaSet(intent.AreaBuffer) // each end has buffers of its own kind, and is told of its own cable
	}
	here, there = here.Only(both), there.Only(both)
	at := map[string]int{}
	for _, v := range intent.Values(&here) {
		at[v.Label] = len(n.Values)
		n.Values = append(n.Values, explainBeside{v.Field, v.Label, v.Priority, v.Text, "none", true})
	}
	for _, v := range intent.Values(&there) {
		i, ok := at[v.Label]
		if !ok {
			n.Values = append(n.Values, explainBeside{v.Field, v.Label, v.Priority, "none", v.Text, true})
			continue
		}
		b := &n.Values[i]
		b.There, b.Differs = v.Text, v.Text != b.Here
		switch {
		case strings.HasPrefix(string(v.Field), "class."):
			b.Differs = differs[v.Field] // not where one end has no groups of its own
		case strings.HasPrefix(string(v.Field), "weight.") && d.Host != peer.Host:
			b.Differs = percents(&here) != percents(&there) // a NIC has percents
		case v.Field == "mtu" && d.Host != peer.Host:
			b.Label, b.Differs = "mtu (frames, netdev)", false // two quantities: the linter compares them
		}
	}
	if x.priority >= 0 {
		kept := n.Values[:0]
		for _, v := range n.Values {
			if v.Priority == x.priority {
				kept = append(kept, v)
			}
		}
		n.Values = kept
	}
	return n
}

// worseState is the state of a port on a device.
func worseState(device, port intent.State) intent.State {
	if device != intent.Active {
		return device
	}
	return port
}

// percents are how a policy shares a link among the queues with a weight, and which are strict.
func percents(p *intent.Policy) [8]int {
	var w [8]int
	for i, q := range p.Queues {
		if w[i] = int(q.Weight); q.Used && !q.Strict {
			w[i] = max(w[i], 1)
		}
	}
	w = intent.Percents(w)
	for i, q := range p.Queues {
		if q.Strict {
			w[i] = -1
		}
	}
	return w
}
