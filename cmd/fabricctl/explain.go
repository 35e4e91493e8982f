package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

type explainJSON struct {
	Schema   string        `json:"schema"`
	Fabric   string        `json:"fabric"`
	FabricAt *originJSON   `json:"fabric_origin,omitempty"`
	Device   string        `json:"device"`
	Platform string        `json:"platform"`
	Role     string        `json:"role"`
	State    string        `json:"state"`
	Pod      string        `json:"pod,omitempty"`
	Plane    string        `json:"plane,omitempty"`
	Group    string        `json:"group,omitempty"`           // redundancy group
	Unused   *int          `json:"unused_priority,omitempty"` // asked for, and no class of the model has it
	Reach    *explainReach `json:"reach,omitempty"`           // how the device is reached; only for a device as a whole
	Ports    []explainPort `json:"ports"`
	Apps     []explainApp  `json:"applications,omitempty"`     // who marks for the classes in question
	Later    []explainLeaf `json:"not_rendered_yet,omitempty"` // of the classes in question
}

// explainApp is a row of the marking table.
type explainApp struct {
	Name     string      `json:"name"`
	Business string      `json:"business,omitempty"`
	Class    string      `json:"class"`
	DSCP     uint8       `json:"dscp"`
	Origin   *originJSON `json:"origin,omitempty"`
}

// explainLeaf is a value of the model that nothing is rendered from yet.
type explainLeaf struct {
	Path   string      `json:"path"`
	Value  string      `json:"value"`
	Origin *originJSON `json:"origin,omitempty"`
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
	Breakout int            `json:"breakout,omitempty"`
	Peer     string         `json:"peer,omitempty"`
	PeerPort string         `json:"peer_port,omitempty"`
	Speed    string         `json:"speed,omitempty"`
	Cable    string         `json:"cable,omitempty"`
	Site     string         `json:"site"`
	State    string         `json:"state"`
	Manage   []string       `json:"owned"`
	Values   []explainValue `json:"values"`
}

type explainValue struct {
	intent.Value
	Origin *originJSON `json:"origin,omitempty"`
}

type originJSON struct {
	Kind string     `json:"kind"`
	Pos  diag.Pos   `json:"pos,omitzero"`
	Ref  string     `json:"ref,omitempty"`
	Over []diag.Pos `json:"over,omitempty"`
}

func (a *app) newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain DEVICE[:PORT[:PRIORITY]]",
		Short: "Say every effective value of a port, and which line or default it comes from",
		Long: `Print what the model asks of a device, one of its ports or one priority of a port: each value, the line that won, and
the lines it won over. For a device it says first how it is reached: address, jump hosts, where the credentials are. PORT is the model's name or the device's. Values of the classes that no target renders yet
stand at the end.`,
		Example: "  fabricctl explain -f fabric.yaml leaf1:downlink-1:3\n  fabricctl explain -f fabric.yaml -o json leaf1:Ethernet8",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("explain wants one DEVICE[:PORT[:PRIORITY]]")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			m, err := a.mustLoad()
			if err != nil {
				return err
			}
			dev, ports, priority, err := resolveRef(m.net, args[0])
			if err != nil {
				return err
			}
			r := explain(dev, ports, priority)
			if !strings.Contains(args[0], ":") {
				r.Reach = reachOf(m.fabric.Endpoints[dev.Name], dev)
			}
			r.about(m.fabric, dev, priority)
			if json {
				return a.printJSON(r)
			}
			printExplain(a.sys.out, r)
			return nil
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
	if p := dev.Port(rest); p != nil {
		return dev, []intent.Port{*p}, -1, nil
	}
	priority = -1
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		n, err := strconv.Atoi(rest[i+1:])
		if err != nil || n < 0 || n > 7 {
			return nil, nil, 0, usage("%q is not a priority: want 0 to 7", rest[i+1:])
		}
		rest, priority = rest[:i], n
	}
	p := dev.Port(rest)
	if p == nil {
		names := make([]portName, len(dev.Ports))
		for i, q := range dev.Ports {
			names[i] = portName{q.Name, q.Iface}
		}
		return nil, nil, 0, noPort(name, rest, names)
	}
	return dev, []intent.Port{*p}, priority, nil
}

func explain(dev *intent.Device, ports []intent.Port, priority int) explainJSON {
	r := explainJSON{
		Schema: "fabricctl/explain/v1", Device: dev.Name, Platform: dev.Platform, Role: dev.Role, State: dev.State.String(),
		Pod: dev.Pod, Plane: dev.Plane, Group: dev.Group, Ports: []explainPort{},
	}
	if priority >= 0 && dev.Classes[priority] == "" {
		r.Unused = &priority
	}
	for i := range ports {
		p := &ports[i]
		e := explainPort{
			Port: p.Name, Iface: p.Iface, IfaceAt: origin(p.IfaceAt), Role: p.Role, RoleAt: origin(p.RoleAt), Carries: p.Carries.Words(), Bond: p.Bond, Rail: p.Rail,
			NIC: p.NIC, Breakout: p.Breakout, Peer: p.Peer, PeerPort: p.PeerPort, Site: p.Site, State: p.State.String(),
			Manage: []string{}, Values: []explainValue{},
		}
		if p.Speed > 0 {
			e.Speed = p.Speed.String()
		}
		if p.Cable > 0 {
			e.Cable = p.Cable.String()
		}
		owned := p.Manage.Owned() & dev.PolicyOf(p).Known
		for area := range intent.NumAreas {
			if owned.Has(area) {
				e.Manage = append(e.Manage, area.String())
			}
		}
		for _, v := range intent.Values(dev.PolicyOf(p)) {
			if priority < 0 || v.Priority == priority {
				e.Values = append(e.Values, explainValue{v, origin(dev.Origin(p, v.Field))})
			}
		}
		if p.Role == "border" {
			e.Values = append(e.Values, ended(dev, p, priority)...)
		}
		if dev.RoCE > 0 && priority < 0 {
			v := intent.Value{Field: "roce", Label: "rdma mtu to carry", Text: dev.RoCE.String(), Priority: -1}
			e.Values = append(e.Values, explainValue{v, origin(dev.Origin(p, v.Field))})
		}
		r.Ports = append(r.Ports, e)
	}
	return r
}

// about adds what only the model knows.
func (r *explainJSON) about(f *model.Fabric, dev *intent.Device, priority int) {
	r.Fabric, r.FabricAt = f.Name.V, origin(f.Name.From)
	r.Apps, r.Later = markers(f, dev, priority), later(f, dev, priority)
}

// ended are the priorities that are lossless elsewhere and not at a border port, with the reason.
func ended(dev *intent.Device, p *intent.Port, priority int) []explainValue {
	var vs []explainValue
	for i := range dev.Classes {
		field := intent.Field("lossless." + strconv.Itoa(i))
		if o := dev.Origin(p, field); o != nil && len(o.Lost) > 0 && o.Kind == model.FromDefault && (priority < 0 || priority == i) {
			vs = append(vs, explainValue{intent.Value{Field: field, Label: fmt.Sprintf("priority %d pfc", i), Text: "none", Priority: i}, origin(o)})
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

// later are the values of the device's classes, or of one priority's class, that nothing is rendered from yet.
func later(f *model.Fabric, dev *intent.Device, priority int) []explainLeaf {
	var ls []explainLeaf
	for _, l := range f.Leaves() {
		if !l.Later {
			continue
		}
		for p, class := range dev.Classes {
			if class != "" && (priority < 0 || p == priority) && strings.HasPrefix(l.Path, "classes."+class+".") {
				ls = append(ls, explainLeaf{l.Path, l.Text, origin(l.From)})
			}
		}
	}
	return ls
}

func origin(o *model.Origin) *originJSON {
	if o == nil {
		return nil
	}
	return &originJSON{Kind: o.Kind.String(), Pos: o.Pos, Ref: o.Ref, Over: o.Lost}
}

func (o *originJSON) String() string {
	if o == nil {
		return ""
	}
	s := o.Pos.String()
	if o.Ref != "" {
		s = strings.TrimSpace(s + " " + o.Kind + ": " + o.Ref)
	}
	for i, p := range o.Over {
		s += [2]string{", over ", ", "}[min(i, 1)] + p.String()
	}
	return s
}

func printExplain(w io.Writer, r explainJSON) {
	fmt.Fprintf(w, "%s: %s, %s, %s", r.Device, r.Role, r.Platform, r.State)
	for _, s := range []string{r.Pod, r.Plane} {
		if s != "" {
			fmt.Fprintf(w, ", %s", s)
		}
	}
	if r.Group != "" {
		fmt.Fprintf(w, ", redundancy group %s", r.Group)
	}
	fmt.Fprintf(w, "\nfabric %s, %s\n", r.Fabric, r.FabricAt)
	if r.Unused != nil {
		fmt.Fprintf(w, "no class of the model uses priority %d: what the device does with it is left as it is\n", *r.Unused)
	}
	r.Reach.print(w)
	for _, p := range r.Ports {
		fmt.Fprintf(w, "\n%s:%s", r.Device, p.Port)
		if p.Iface != "" {
			fmt.Fprintf(w, " (%s)", p.Iface)
		}
		if p.Peer != "" {
			fmt.Fprintf(w, " to %s:%s", p.Peer, p.PeerPort)
		}
		fmt.Fprintln(w)
		if p.IfaceAt != nil && p.Iface != "" {
			fmt.Fprintln(w, "  "+pad("interface", 25)+pad(p.Iface, 24)+p.IfaceAt.String())
		}
		fmt.Fprintf(w, "  %-24s %s\n", "speed, cable", strings.Trim(p.Speed+", "+p.Cable, ", "))
		fmt.Fprintf(w, "  %-24s %s\n", "state, override site", p.State+", "+p.Site)
		printPortFacts(w, p)
		owned := strings.Join(p.Manage, " ")
		if owned == "" {
			owned = "nothing: observed, never written"
		}
		fmt.Fprintf(w, "  %-24s %s\n", "owned", owned)
		for _, v := range p.Values {
			fmt.Fprintln(w, strings.TrimRight("  "+pad(v.Label, 25)+pad(v.Text, 24)+v.Origin.String(), " "))
		}
	}
	if len(r.Apps) > 0 {
		fmt.Fprintln(w, "\nwho marks what:")
	}
	for _, a := range r.Apps {
		who := a.Name
		if a.Business != "" {
			who += " (" + a.Business + ")"
		}
		fmt.Fprintln(w, "  "+pad(who, 25)+pad(fmt.Sprintf("dscp %d, class %s", a.DSCP, a.Class), 24)+a.Origin.String())
	}
	if len(r.Later) > 0 {
		fmt.Fprintln(w, "\nread and checked, not rendered yet:")
	}
	for _, l := range r.Later {
		fmt.Fprintln(w, "  "+pad(l.Path, 33)+pad(l.Value, 21)+l.Origin.String())
	}
}

// printPortFacts writes what a port is, as far as the model says more than its link.
func printPortFacts(w io.Writer, p explainPort) {
	role := p.Role
	if p.RoleAt != nil {
		role = pad(role, 24) + p.RoleAt.String()
	}
	fmt.Fprintf(w, "  %-24s %s\n", "role", role)
	var nic []string
	for _, x := range []struct {
		set  bool
		text string
	}{{p.NIC != "", p.NIC}, {p.Bond != "", p.Bond}, {p.Rail > 0, "rail " + strconv.Itoa(p.Rail)}} {
		if x.set {
			nic = append(nic, x.text)
		}
	}
	if len(nic) > 0 {
		fmt.Fprintf(w, "  %-24s %s\n", "nic", strings.Join(nic, ", "))
	}
	if len(p.Carries) > 0 {
		fmt.Fprintf(w, "  %-24s %s\n", "carries", strings.Join(p.Carries, " "))
	}
	if p.Breakout > 1 {
		fmt.Fprintf(w, "  %-24s one of %d links of a physical port\n", "breakout", p.Breakout)
	}
}
