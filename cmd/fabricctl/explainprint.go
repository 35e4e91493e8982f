package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// page is how wide what explain prints is, where no word is longer.
const page = 80

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
	for _, g := range foldPorts(r.Ports) {
		printPort(w, r, g)
	}
	r.Budget.print(w, r.Device)
	if len(r.Apps) > 0 {
		fmt.Fprintln(w, "\nwho marks what:")
	}
	for _, a := range r.Apps {
		who := a.Name
		if a.Business != "" {
			who += " (" + a.Business + ")"
		}
		sourced(w, 2, who, fmt.Sprintf("dscp %d, class %s", a.DSCP, a.Class), a.Origin.String())
	}
}

// portGroup is ports that have everything in common but their names, and those of what they are linked to.
type portGroup struct {
	explainPort // of the first
	ports       []string
	ifaces      []string
	peers       []string // device:port
}

// foldPorts groups ports that are alike, in the order of their first.
func foldPorts(ports []explainPort) []portGroup {
	index := map[string]int{}
	var groups []portGroup
	for _, p := range ports {
		k := p
		k.Port, k.Iface, k.IfaceAt, k.PCI, k.Peer, k.PeerPort = "", "", nil, "", "", ""
		k.RDMA, k.IP, k.IPAt = "", "", nil
		if k.Neighbour != nil {
			n := *k.Neighbour
			n.Device, n.Port, n.Iface = "", "", ""
			k.Neighbour = &n
		}
		key, err := json.Marshal(k)
		i, ok := index[string(key)]
		if !ok || err != nil {
			i = len(groups)
			index[string(key)] = i
			groups = append(groups, portGroup{explainPort: p})
		}
		g := &groups[i]
		g.ports = append(g.ports, p.Port)
		if p.Iface != "" {
			g.ifaces = append(g.ifaces, p.Iface)
		}
		if p.Peer != "" {
			g.peers = append(g.peers, p.Peer+":"+p.PeerPort)
		}
	}
	return groups
}

// printPort writes all about ports that are alike, in less words where it is not the only port.
func printPort(w io.Writer, r explainJSON, p portGroup) {
	device, whole := r.Device, len(r.Ports) == 1
	title := device + ":" + p.Port
	if len(p.ports) > 1 {
		title = fmt.Sprintf("%s: %d ports alike, %s", device, len(p.ports), show.Spans(p.ports))
	}
	if len(p.ifaces) > 0 {
		title += " (" + show.Spans(p.ifaces) + ")"
	}
	if len(p.peers) > 0 {
		title += " to " + show.Spans(p.peers)
	}
	fmt.Fprintln(w)
	flow(w, 0, 2, title)
	printPortFacts(w, p)
	printValues(w, p.Values, r.Classes)
	printHeadroom(w, p.explainPort, r.Host, whole)
	for _, x := range p.Pause {
		x.print(w)
	}
	p.Neighbour.print(w, p, whole)
}

// printValues writes what is of no priority, and then the priorities one by one.
func printValues(w io.Writer, vs []explainValue, classes []explainClass) {
	write := func(indent int, v explainValue) {
		sourced(w, indent, shortLabel(v.Label, v.Priority), v.Text, v.Origin.String())
		if v.Effective != "" {
			sourced(w, indent, "  in effect", v.Effective, "")
		}
	}
	of := map[int][]explainValue{}
	for _, v := range vs {
		if v.Priority < 0 || v.Priority > 7 {
			write(2, v)
			continue
		}
		of[v.Priority] = append(of[v.Priority], v)
	}
	for priority := range 8 {
		if len(of[priority]) > 0 {
			fmt.Fprintf(w, "  priority %d%s\n", priority, className(classes, priority))
		}
		for _, v := range of[priority] {
			write(4, v)
		}
	}
}

// className is ", class training", or nothing.
func className(classes []explainClass, priority int) string {
	for _, c := range classes {
		if c.Priority == priority {
			return ", class " + c.Class
		}
	}
	return ""
}

// shortLabel is the name of a value below the heading of its priority.
func shortLabel(label string, priority int) string {
	n := strconv.Itoa(priority)
	if s, ok := strings.CutPrefix(label, "priority "+n+" "); ok {
		return s
	}
	return strings.TrimSuffix(label, " of priority "+n)
}

// printPortFacts writes what a port is, as far as the model says more than its link.
func printPortFacts(w io.Writer, p portGroup) {
	if p.IfaceAt != nil && len(p.ifaces) == 1 {
		sourced(w, 2, "interface", p.Iface, p.IfaceAt.String())
	}
	sourced(w, 2, "speed, cable", strings.Trim(p.Speed+", "+p.Cable, ", "), "")
	sourced(w, 2, "state, site", p.State+", "+p.Site, "")
	sourced(w, 2, "role", p.Role, p.RoleAt.String())
	var nic []string
	for _, x := range []struct {
		set  bool
		text string
	}{{p.NIC != "", p.NIC}, {p.PCI != "" && p.PCI != p.Iface, p.PCI}, {p.RDMA != "" && len(p.ports) == 1, p.RDMA}, {p.Bond != "", p.Bond}, {p.Rail > 0, "rail " + strconv.Itoa(p.Rail)}} {
		if x.set {
			nic = append(nic, x.text)
		}
	}
	if len(nic) > 0 {
		sourced(w, 2, "nic", strings.Join(nic, ", "), "")
	}
	if p.IP != "" && len(p.ports) == 1 {
		sourced(w, 2, "address", p.IP, p.IPAt.String())
	}
	if len(p.Carries) > 0 {
		sourced(w, 2, "carries", strings.Join(p.Carries, " "), "")
	}
	if p.Breakout > 1 {
		sourced(w, 2, "breakout", fmt.Sprintf("one of %d links of a physical port", p.Breakout), "")
	}
	owned := strings.Join(p.Manage, " ")
	if owned == "" {
		owned = "nothing: observed, never written"
	}
	sourced(w, 2, "owned", owned, "")
}

// printHeadroom writes the ways to a port's headroom: their terms where whole says so, or for the one that is taken.
func printHeadroom(w io.Writer, p explainPort, host, whole bool) {
	at := strings.Trim(p.Speed+", "+p.Cable, ", ")
	switch {
	case len(p.Headroom) == 0:
		return
	case host:
		fmt.Fprintf(w, "\n  headroom that the adapter needs for a lossless priority at %s\n", at)
		if !slices.ContainsFunc(p.Headroom, func(h explainHeadroom) bool { return h.Model == string(derive.ModelMLX5NIC) }) {
			flow(w, 4, 4, "what it keeps by itself is not known: "+map[bool]string{true: "the model does not name it (nic)", false: "of " + p.NIC + " no formula is public"}[p.NIC == ""])
		}
	default:
		fmt.Fprintf(w, "\n  headroom of a lossless priority at %s, by each model\n", at)
		if !slices.ContainsFunc(p.Headroom, func(h explainHeadroom) bool { return h.Taken != "" }) {
			flow(w, 4, 4, "what the device keeps is not known: fabricctl says nothing about buffers here")
		}
	}
	for _, h := range p.Headroom {
		line := "    " + show.Pad(h.Model, 14) + right(h.Bytes.String(), 10)
		if h.Taken != "" {
			line = "  * " + line[4:] + "  " + map[string]string{"auto": "headroom: auto takes it", "driver": "its driver does it by itself"}[h.Taken]
		}
		fmt.Fprintln(w, line)
		if h.Note != "" && h.Taken != "driver" {
			flow(w, 6, 6, h.Note)
		}
		if !whole && h.Taken == "" {
			continue
		}
		for _, t := range h.Terms {
			printTerm(w, t.Name, t.Bytes, t.Formula)
		}
		if h.Bytes > h.Xoff {
			printTerm(w, "rounding", (h.Bytes - h.Xoff).String(), "up to buffer cells")
		}
		if h.XonFormula != "" {
			printTerm(w, "its xon", h.Xon.String(), h.XonFormula)
		}
		if h.SizeFormula != "" {
			printTerm(w, "its size", h.Size.String(), h.SizeFormula)
		}
		flow(w, 6, 8, "from "+h.Source)
	}
}

func printTerm(w io.Writer, name, bytes, formula string) {
	flow(w, 6, 40, show.Pad(name, 22)+right(bytes, 10)+"  "+formula)
}

// print writes where a priority pauses.
func (x explainPause) print(w io.Writer) {
	fmt.Fprintf(w, "\n  pause of priority %d, by how many groups are congested at once\n", x.Priority)
	head := "    " + right("groups", 6) + right("each holds", 14) + right("all hold", 14) + right("pool left", 14)
	if x.Kmin > 0 {
		head += right("ecn starts", 14)
	}
	fmt.Fprintln(w, head)
	for _, at := range x.Points {
		line := "    " + right(strconv.Itoa(at.Groups), 6) + right(about(at.Each), 14) + right(about(at.Sum), 14) + right(about(at.Left), 14)
		if x.Kmin > 0 {
			line += right(leadText(at.Sum, x.Kmin), 14)
		}
		fmt.Fprintln(w, line)
	}
	if x.Kmin > 0 {
		fmt.Fprintf(w, "    ecn starts at kmin, %s: so far before all of them together pause\n", x.Kmin)
	}
}

// leadText is how far before the pause marking starts.
func leadText(pause, kmin units.Bytes) string {
	if kmin >= pause {
		return about(kmin-pause) + " late"
	}
	return about(pause-kmin) + " early"
}

// print writes the other end of a link beside this one.
func (n *explainNeighbour) print(w io.Writer, p portGroup, whole bool) {
	if n == nil || len(n.Values) == 0 {
		return
	}
	differ := 0
	for _, v := range n.Values {
		differ += map[bool]int{true: 1}[v.Differs]
	}
	name := n.Device + ":" + n.Port
	if len(p.ports) > 1 {
		name = "each"
	}
	if n.Iface != "" && len(p.ports) == 1 {
		name += " (" + n.Iface + ")"
	}
	fmt.Fprintf(w, "\n  the other end, %s, %s: ", name, n.State)
	if differ == 0 {
		fmt.Fprintln(w, "nothing differs")
	} else {
		fmt.Fprintln(w, diag.Plural(differ, "value differs", "values differ"))
	}
	if !whole && differ == 0 {
		return
	}
	fmt.Fprintln(w, "    "+show.Pad("", 28)+show.Pad("here", 24)+"there")
	for _, v := range n.Values {
		if whole || v.Differs {
			mark := "  "
			if v.Differs {
				mark = "! "
			}
			fmt.Fprintln(w, strings.TrimRight("  "+mark+show.Pad(v.Label, 28)+show.Pad(v.Here, 24)+v.There, " "))
		}
	}
}

// print writes what a device promises of its buffer.
func (b *explainBudget) print(w io.Writer, device string) {
	if b == nil {
		return
	}
	fmt.Fprintf(w, "\nbuffer of %s, with %s on ports in use\n", device, diag.Count(b.Groups, "lossless group"))
	size := func(name string, v units.Bytes, more string) {
		if v > 0 {
			flow(w, 2, 32, show.Pad(name, 20)+right(about(v), 8)+"  "+more)
		}
	}
	chip := "of the chip"
	if b.Buffer < derive.Add(b.Shared, b.HeadroomPool) {
		chip += ", as published; the published pools are larger, so one of these figures is not what it seems, and nothing is judged by it"
	}
	size("packet buffer", b.Buffer, chip)
	size("lossless pool", b.Shared, "groups compete for it below their pause thresholds")
	switch {
	case b.Dedicated:
		size("headroom", b.Headroom, "of all groups together, each its own")
	default:
		size("headroom pool", b.HeadroomPool, "what arrives after pauses, shared by all groups")
		more := fmt.Sprintf("of all groups together: %.3g times the pool", b.Ratio)
		if b.Published > 0 {
			more += fmt.Sprintf(" (its makers' table: up to %.3g times, with 2 groups on each port and cables of 300m)", b.Published)
		}
		size("headroom", b.Headroom, more)
	}
	size("reserved", b.Reserved, "what groups have to themselves besides")
	size("egress pool", b.Egress, "of lossless queues at the egress")
	size("promised", b.Promised, "pools, headroom that is a group's own, and reserves")
	if b.Empty > 0 {
		flow(w, 2, 4, diag.Count(b.Empty, "group")+" without headroom in effect: what arrives after a pause is lost there")
	}
	if b.Unknown > 0 {
		flow(w, 2, 4, diag.Count(b.Unknown, "group")+" not counted: the device takes their sizes from a table that is not known")
	}
}

// sourced writes a value: its name, its text, and where it is from, beside it where a page has room and else below.
func sourced(w io.Writer, indent int, name, text, from string) {
	line := strings.Repeat(" ", indent) + show.Pad(name, 22-indent) + text
	room := page - utf8.RuneCountInString(from)
	switch n := utf8.RuneCountInString(line) + 2; {
	case from == "":
		flow(w, 0, 22, line)
	case n <= room:
		fmt.Fprintln(w, show.Pad(line, min(46, max(n, room/4*4)))+from) // in few different columns
	default:
		flow(w, 0, 22, line)
		flow(w, 24, 24, from)
	}
}

// flow writes text that begins at a column, and goes on at another where it is wider than a page.
func flow(w io.Writer, first, rest int, text string) {
	text = strings.Repeat(" ", first) + text
	for utf8.RuneCountInString(text) > page {
		at := 0
		for i, n := 0, 0; i < len(text); n++ { // the last space on the page, after what the line begins with
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == ' ' && n > rest && (n <= page || at == 0) {
				at = i
			}
			i += size
		}
		if at == 0 {
			break
		}
		fmt.Fprintln(w, text[:at])
		text = strings.Repeat(" ", rest) + strings.TrimLeft(text[at:], " ")
	}
	fmt.Fprintln(w, strings.TrimRight(text, " "))
}

// right is s at the right of a column.
func right(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}
