package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

type explainJSON struct {
	Schema   string         `json:"schema"`
	Fabric   string         `json:"fabric"`
	FabricAt *originJSON    `json:"fabric_origin,omitempty"`
	Device   string         `json:"device"`
	Platform string         `json:"platform"`
	Role     string         `json:"role"`
	State    string         `json:"state"`
	Pod      string         `json:"pod,omitempty"`
	Plane    string         `json:"plane,omitempty"`
	Group    string         `json:"group,omitempty"` // redundancy group
	Host     bool           `json:"host,omitempty"`
	Classes  []explainClass `json:"classes"`
	Unused   *int           `json:"unused_priority,omitempty"` // asked for, and no class of the model has it
	Reach    *explainReach  `json:"reach,omitempty"`           // how the device is reached; only for a device as a whole
	Ports    []explainPort  `json:"ports"`
	Budget   *explainBudget `json:"budget,omitempty"`       // of the device's buffer
	Apps     []explainApp   `json:"applications,omitempty"` // who marks for the classes in question
}

// explainClass is a priority that the model names.
type explainClass struct {
	Priority int    `json:"priority"`
	Class    string `json:"class"`
}

// explainApp is a row of the marking table.
type explainApp struct {
	Name     string      `json:"name"`
	Business string      `json:"business,omitempty"`
	Class    string      `json:"class"`
	DSCP     uint8       `json:"dscp"`
	Origin   *originJSON `json:"origin,omitempty"`
}

type explainPort struct {
	Port     string         `json:"port"`
	Iface    string         `json:"interface,omitempty"`
	IfaceAt  *originJSON    `json:"interface_origin,omitempty"`
	Role     string         `json:"role,omitempty"`
	RoleAt   *originJSON    `json:"role_origin,omitempty"`
	Carries  []string       `json:"carries,omitempty"`
	Bond     string         `json:"bond,omitempty"`
	Rail     int            `json:"rail,omitempty"` // from 1
	NIC      string         `json:"nic,omitempty"`
	PCI      string         `json:"pci,omitempty"`
	RDMA     string         `json:"rdma,omitempty"`    // name of the RDMA device
	IP       string         `json:"address,omitempty"` // on the fabric, with the length of its prefix
	IPAt     *originJSON    `json:"address_origin,omitempty"`
	Breakout int            `json:"breakout,omitempty"`
	Peer     string         `json:"peer,omitempty"`
	PeerPort string         `json:"peer_port,omitempty"`
	Speed    string         `json:"speed,omitempty"`
	Cable    string         `json:"cable,omitempty"`
	Site     string         `json:"site"`
	State    string         `json:"state"`
	Manage   []string       `json:"owned"`
	Values   []explainValue `json:"values"`

	Headroom  []explainHeadroom `json:"headroom,omitempty"`  // what a lossless priority needs, by each model
	Pause     []explainPause    `json:"pause,omitempty"`     // of each lossless priority
	Neighbour *explainNeighbour `json:"neighbour,omitempty"` // the other end of the link
}

type explainValue struct {
	intent.Value
	Effective string      `json:"effective,omitempty"` // what the hardware makes of it, where that differs
	Origin    *originJSON `json:"origin,omitempty"`
}

type originJSON struct {
	Kind   string        `json:"kind"`
	Pos    diag.Pos      `json:"pos,omitzero"`
	Ref    string        `json:"ref,omitempty"`
	Over   []diag.Pos    `json:"over,omitempty"`
	Inputs []*originJSON `json:"inputs,omitempty"` // of a formula
}

func (a *app) newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain DEVICE[:PORT[:PRIORITY]]",
		Short: "Say every effective value of a port, where it comes from, and the arithmetic behind it",
		Long: `Print what the model asks of a device, one of its ports or one priority of a port: each value, what the hardware makes of it,
the line, profile, publication or formula that it is from, and the lines that it won over. PORT is the model's name or the
device's: of a host a netdev or a PCI address too.

For lossless priorities it shows the headroom by each model that applies, term by term, and which one headroom: auto takes;
where pauses begin when 1, 4 and 16 priority groups are congested, and how far below that ECN marks; and what the device has
promised of its buffer. The other end of the link stands beside it, with what differs marked; the linter says what must not.

For a device it says first how it is reached: address, jump hosts, where the credentials are. Ports that are alike are
shown once; -o json has each. A model with errors is explained too, as far as it is understood, with exit 1. No device is
contacted.`,
		Example: "  fabricctl explain -f fabric.yaml leaf1:downlink-1:3\n  fabricctl explain -f fabric.yaml host1:nic-1\n  fabricctl explain -f fabric.yaml -o json leaf1:Ethernet8",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("explain wants one DEVICE[:PORT[:PRIORITY]]")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			m, err := a.load(ctx, a.fabric)
			if err != nil {
				return err
			}
			a.printLoaded(m)
			if m.net == nil {
				return m.refused()
			}
			dev, ports, priority, err := resolveRef(m.net, args[0])
			if err != nil {
				return err
			}
			r := newExplainer(m.fabric, m.net, priority).device(dev, ports)
			if !strings.Contains(args[0], ":") {
				r.Reach = reachOf(m.fabric.Endpoints[dev.Name], dev)
			}
			if json {
				err = a.printJSON(r)
			} else {
				printExplain(a.sys.out, r)
			}
			if m.findings.HasErrors() {
				err = cmp.Or(err, fail(exitError, "", "the model has %s, and is explained as it stands", diag.Count(m.findings.Count(diag.Error), "error")))
			}
			return err
		},
	}
}

// resolveRef splits DEVICE[:PORT[:PRIORITY]]; priority is -1 when none is given. An interface name may hold colons, so
// the port is everything between the first colon and a last one that is followed by a priority.
func resolveRef(net *intent.Net, ref string) (dev *intent.Device, ports []intent.Port, priority int, err error) {
	name, rest, hasPort := strings.Cut(ref, ":")
	if dev = net.Device(name); dev == nil {
		return nil, nil, 0, noDevice(net, name)
	}
	if !hasPort {
		return dev, dev.Ports, -1, nil
	}
	if p := portOf(dev, rest); p != nil {
		return dev, []intent.Port{*p}, -1, nil
	}
	port, last := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		port, last = rest[:i], rest[i+1:]
	}
	p := portOf(dev, port)
	if p == nil {
		names := make([]portName, len(dev.Ports))
		for i, q := range dev.Ports {
			names[i] = portName{q.Name, q.Iface}
		}
		return nil, nil, 0, noPort(name, rest, names)
	}
	n, err := strconv.Atoi(last)
	if err != nil || n < 0 || n > 7 {
		return nil, nil, 0, usage("%q is not a priority: want 0 to 7", last)
	}
	return dev, []intent.Port{*p}, n, nil
}

// portOf finds a port by the model's name or the device's; a host's by its PCI address too, with or without its domain.
func portOf(dev *intent.Device, name string) *intent.Port {
	if p := dev.Port(name); p != nil || !dev.Host {
		return p
	}
	name = strings.ToLower(name)
	for i := range dev.Ports {
		if pci := strings.ToLower(dev.Ports[i].PCI); pci != "" && (pci == name || pci == "0000:"+name) {
			return &dev.Ports[i]
		}
	}
	return nil
}

// explainer says where values come from.
type explainer struct {
	fabric   *model.Fabric
	net      *intent.Net
	index    map[string]*intent.Device
	priority int // or -1 for all
}

func newExplainer(f *model.Fabric, net *intent.Net, priority int) *explainer {
	x := &explainer{fabric: f, net: net, index: make(map[string]*intent.Device, len(net.Devices)), priority: priority}
	for i := range net.Devices {
		x.index[net.Devices[i].Name] = &net.Devices[i]
	}
	return x
}

// device is what there is to say about some ports of a device.
func (x *explainer) device(dev *intent.Device, ports []intent.Port) explainJSON {
	r := explainJSON{
		Schema: "fabricctl/explain/v1", Fabric: x.fabric.Name.V, FabricAt: origin(x.fabric.Name.From), Device: dev.Name, Platform: dev.Platform,
		Role: dev.Role, State: dev.State.String(), Pod: dev.Pod, Plane: dev.Plane, Group: dev.Group, Host: dev.Host, Classes: []explainClass{}, Ports: []explainPort{},
		Apps: markers(x.fabric, dev, x.priority), Budget: budgetOf(dev),
	}
	if x.priority >= 0 && dev.Classes[x.priority] == "" {
		r.Unused = &x.priority
	}
	for i, name := range dev.Classes {
		if name != "" {
			r.Classes = append(r.Classes, explainClass{i, name})
		}
	}
	for i := range ports {
		r.Ports = append(r.Ports, x.port(dev, &ports[i]))
	}
	return r
}

func (x *explainer) port(dev *intent.Device, p *intent.Port) explainPort {
	e := explainPort{
		Port: p.Name, Iface: p.Iface, IfaceAt: origin(p.IfaceAt), Role: p.Role, RoleAt: origin(p.RoleAt), Carries: p.Carries.Words(), Bond: p.Bond, Rail: p.Rail,
		NIC: p.NIC, PCI: p.PCI, RDMA: p.RDMA, IP: p.IP, IPAt: origin(p.IPAt), Breakout: p.Breakout, Peer: p.Peer, PeerPort: p.PeerPort, Site: p.Site, State: p.State.String(),
		Manage: []string{}, Values: []explainValue{},
	}
	if p.Speed > 0 {
		e.Speed = p.Speed.String()
	}
	if p.Cable > 0 {
		e.Cable = p.Cable.String()
	}
	e.Manage = append(e.Manage, (p.Manage.Owned() & dev.PolicyOf(p).Known).Names()...)
	effective := intent.Effective(dev, p)
	e.Values = append(e.Values, x.values(dev, p, &effective)...)
	if p.Role == "border" {
		e.Values = append(e.Values, ended(dev, p, x.priority)...)
	}
	if x.priority < 0 {
		e.Values = append(e.Values, ownNCCL(dev, p)...)
	}
	if dev.RoCE > 0 && x.priority < 0 {
		v := intent.Value{Field: "roce", Label: "rdma mtu to carry", Text: dev.RoCE.String(), Priority: -1}
		e.Values = append(e.Values, explainValue{Value: v, Origin: origin(dev.Origin(p, v.Field))})
	}
	e.Headroom = x.headroomsOf(dev, p)
	e.Pause = x.pausesOf(dev, p, &effective)
	e.Neighbour = x.neighbour(dev, p)
	return e
}

// values are what a port is asked for and what the hardware makes of it, in the order in which people read them. What
// nobody asked for, and the device adds by itself, is among them.
func (x *explainer) values(dev *intent.Device, p *intent.Port, effective *intent.Policy) []explainValue {
	asked, made := intent.Values(dev.PolicyOf(p)), intent.Values(effective)
	in := func(vs []intent.Value, f intent.Field) int {
		return slices.IndexFunc(vs, func(v intent.Value) bool { return v.Field == f })
	}
	var vs []explainValue
	for _, v := range made {
		e := explainValue{Value: v, Origin: origin(dev.Origin(p, v.Field))}
		switch i := in(asked, v.Field); {
		case i < 0:
			e.Text, e.Effective = "not asked for", v.Text
			e.Origin = &originJSON{Kind: model.FromProfile.String(), Ref: "the device's own, from the headroom table of " + dev.Platform}
		case asked[i].Text != v.Text:
			e.Text, e.Effective = asked[i].Text, v.Text
		}
		vs = append(vs, e)
	}
	for _, v := range asked {
		if in(made, v.Field) < 0 {
			vs = append(vs, explainValue{v, "none", origin(dev.Origin(p, v.Field))})
		}
	}
	return slices.DeleteFunc(vs, func(v explainValue) bool { return x.priority >= 0 && v.Priority != x.priority })
}

// ownNCCL is what the NCCL file says of this host alone. The range is that of all its NICs.
func ownNCCL(dev *intent.Device, p *intent.Port) []explainValue {
	if pol := dev.PolicyOf(p); !pol.Known.Has(intent.AreaNCCL) || !pol.NCCL.On {
		return nil
	}
	var vs []explainValue
	add := func(field intent.Field, label, text string, from *originJSON) {
		if text != "" {
			vs = append(vs, explainValue{Value: intent.Value{Field: field, Label: label, Text: text, Priority: -1}, Origin: from})
		}
	}
	add("nccl.socket_ifname", "nccl interfaces", dev.NCCL.Socket, origin(dev.Origin(p, "nccl.socket_ifname")))
	add("nccl.address_range", "nccl address range", dev.NCCL.Range, &originJSON{Kind: model.FromFormula.String(), Ref: "the smallest prefix that holds the addresses of the NICs"})
	return vs
}

// ended are the priorities that are lossless elsewhere and not at a border port, with the reason.
func ended(dev *intent.Device, p *intent.Port, priority int) []explainValue {
	var vs []explainValue
	for i := range dev.Classes {
		field := intent.Field("lossless." + strconv.Itoa(i))
		if o := dev.Origin(p, field); o != nil && len(o.Lost) > 0 && o.Kind == model.FromDefault && (priority < 0 || priority == i) {
			vs = append(vs, explainValue{Value: intent.Value{Field: field, Label: fmt.Sprintf("priority %d pfc", i), Text: "none", Priority: i}, Origin: origin(o)})
		}
	}
	return vs
}

// markers are the applications that send in a class of the device, or in one priority's class.
func markers(f *model.Fabric, dev *intent.Device, priority int) []explainApp {
	var as []explainApp
	for _, a := range f.Apps {
		for p, class := range dev.Classes {
			if class != "" && class == a.Class.V && (priority < 0 || p == priority) {
				as = append(as, explainApp{a.Name, a.Business.V, class, a.DSCP.V, origin(a.DSCP.From)})
			}
		}
	}
	return as
}

func origin(o *model.Origin) *originJSON {
	if o == nil {
		return nil
	}
	j := &originJSON{Kind: o.Kind.String(), Pos: o.Pos, Ref: o.Ref, Over: o.Lost}
	for _, in := range o.Inputs {
		if in := origin(in); in != nil {
			j.Inputs = append(j.Inputs, in)
		}
	}
	return j
}

func (o *originJSON) String() string {
	if o == nil {
		return ""
	}
	s := o.Pos.String()
	if o.Ref != "" {
		s = strings.TrimSpace(s + " " + o.Kind + ": " + strings.TrimPrefix(o.Ref, o.Kind+": "))
	}
	of := " of "
	for _, in := range o.Inputs {
		if !in.Pos.IsZero() && in.Pos != o.Pos {
			s += of + in.Pos.String()
			of = ", "
		}
	}
	for i, p := range o.Over {
		s += [2]string{", over ", ", "}[min(i, 1)] + p.String()
	}
	return s
}
