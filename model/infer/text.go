package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// writer writes YAML by lines.
type writer struct {
	strings.Builder
	said diag.List
	n    int // lines written
}

func (w *writer) line(indent int, format string, a ...any) {
	w.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(w, format, a...)
	w.WriteByte('\n')
	w.n += 1 + strings.Count(format, "\n")
}

// text is the Fabric document, with a Profile document before it for each platform that fabricctl does not know.
func (d *draft) text(name string) (string, diag.List) {
	w := &writer{}
	d.undo, d.suggested = map[int]func(string){}, nil
	w.line(0, "# What the devices did when fabricctl import read them. Nothing here is owned: plan compares, and writes nothing.")
	d.writeProfiles(w)
	w.line(0, "apiVersion: %s\nkind: Fabric\nmetadata: {name: %s}", model.APIVersion, model.Scalar(name))
	d.writeTopology(w)
	d.writeMTU(w)
	d.writeClasses(w)
	switch dog := d.dog[place{}]; {
	case dog.On:
		w.line(0, "pfc_watchdog: {%s}", dogFields(intent.Watchdog{}, dog))
	case d.hasLossless():
		d.suggest(w, 0, Suggestion{Rule: "watchdog-on", Text: "pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}"},
			"the switches have none in common, and one stuck neighbour stops a lossless fabric")
	}
	d.writeNCCL(w)
	d.writeHosts(w)
	w.line(0, "# To let fabricctl write an area, own it, one at a time: {switches: {ecn: own}, hosts: observe}.")
	w.line(0, "manage: {switches: observe, hosts: observe}")
	d.writeOverrides(w)
	return w.String(), w.said
}

func (d *draft) byPoint(dscp uint8) string {
	i := slices.IndexFunc(d.classes, func(c class) bool { return !c.rest && slices.Contains(c.dscp, int(dscp)) })
	return d.classes[i].name
}

// writeProfiles describes platforms that are not in the catalog by nothing but their name.
func (d *draft) writeProfiles(w *writer) {
	var unknown []string
	for i := range d.net.Devices {
		if dev := &d.net.Devices[i]; dev.Profile.Name == "" && !slices.Contains(unknown, dev.Platform) {
			unknown = append(unknown, dev.Platform)
		}
	}
	slices.Sort(unknown)
	for _, p := range unknown {
		w.line(0, "# fabricctl knows nothing of this hardware: fill in what the vendor says, or name a platform that it knows.")
		w.line(0, "apiVersion: %s\nkind: Profile\nmetadata: {name: %s}", model.APIVersion, model.Scalar(p))
		w.line(0, "platform: {source: what the device calls itself, confidence: low}\n---")
	}
	if len(unknown) > 0 {
		w.said.Warningf("platform", noPos, "fill in the Profile in the document, or name the platform under devices.NAME.platform in the inventory",
			"no profile is known for %s: limits of the hardware are not checked", strings.Join(unknown, ", "))
	}
}

func (d *draft) writeTopology(w *writer) {
	w.line(0, "topology:")
	w.line(1, "devices:")
	byRole := slices.Clone(d.net.Devices)
	slices.SortStableFunc(byRole, func(a, b intent.Device) int { return roleOrder(a.Role, b.Role) })
	for i := range byRole {
		dev := &byRole[i]
		w.line(2, "- name: %s", model.Scalar(dev.Name))
		w.line(3, "role: %s", model.Scalar(dev.Role))
		w.line(3, "platform: %s", model.Scalar(dev.Platform))
		if len(dev.Ports) == 0 {
			continue
		}
		w.line(3, "ports:")
		for _, p := range dev.Ports {
			fields := "name: " + model.Scalar(p.Name)
			if p.Iface != "" {
				fields += ", iface: " + model.Scalar(p.Iface)
			}
			fields += ", role: " + p.Role
			if p.Speed > 0 {
				fields += ", speed: " + p.Speed.String()
			}
			for _, x := range []struct{ key, name string }{{"bond", p.Bond}, {"nic", p.NIC}, {"rdma", p.RDMA}} {
				if x.name != "" {
					fields += ", " + x.key + ": " + model.Scalar(x.name)
				}
			}
			w.line(4, "- {%s}", fields)
		}
	}
	var links []string
	done := map[end]bool{}
	for _, dev := range byRole {
		for _, p := range dev.Ports {
			a, b := end{dev.Name, p.Name}, end{p.Peer, p.PeerPort}
			if p.Peer != "" && !done[a] {
				done[b] = true
				cable := ""
				if l := d.told(a, b); l > 0 {
					cable = ", cable: " + l.String()
				}
				links = append(links, fmt.Sprintf("- {a: %q, b: %q%s}", b, a, cable))
			}
		}
	}
	if len(links) > 0 {
		w.line(1, "links:")
		w.line(2, "list:")
		for _, l := range links {
			w.line(3, "%s", l)
		}
	}
}

// untold is the length that mlx5 takes cables to have where nobody says it.
const untold = 7 * units.Metre

// told is the longer one of the cables that the ends of a link were told; 0 where nobody was.
func (d *draft) told(ends ...end) units.Length {
	var longest units.Length
	for _, e := range ends {
		if dev := d.net.Device(e.device); dev != nil {
			if p := dev.Port(e.port); p != nil {
				if told := dev.PolicyOf(p).Cable; !dev.Host || told != untold {
					longest = max(longest, told)
				}
			}
		}
	}
	return longest
}

// Sizes that stand in the document where no device told its own. They are said to be guesses, and change nothing while
// nothing is owned.
const (
	guessMTU     units.Bytes = 9216
	guessHostMTU units.Bytes = 1500
)

func (d *draft) writeMTU(w *writer) {
	var fields, guesses []string
	hosts, switches := false, false
	for i := range d.net.Devices {
		hosts, switches = hosts || d.net.Devices[i].Host, switches || !d.net.Devices[i].Host
	}
	if switches {
		v := d.mtu[place{}]
		if !d.mtuSeen {
			v = guessMTU
			guesses = append(guesses, "fabric")
		}
		fields = append(fields, "fabric: "+exact(v))
	}
	if hosts {
		v := d.hostMTU[place{}]
		if !d.nicSeen {
			v = guessHostMTU
			guesses = append(guesses, "host")
		}
		fields = append(fields, "host: "+exact(v))
	}
	note := ""
	for _, g := range guesses {
		what := "switch port told its MTU"
		if g == "host" {
			what = "host was read"
		}
		w.said.Infof("mtu-guess", noPos, "write what it is to be", "no %s: mtu.%s is a guess", what, g)
		note = "   # a guess where nothing was read: " + strings.Join(guesses, ", ")
	}
	w.line(0, "mtu: {%s}%s", strings.Join(fields, ", "), note)
}

// exact is a size in bytes: MTUs are known by their numbers.
func exact(b units.Bytes) string { return fmt.Sprintf("%dB", int64(b)) }

// share is a weight as the model says it.
func (d *draft) share(n uint8) string {
	if d.weights {
		return fmt.Sprintf("weight: %d", n)
	}
	return fmt.Sprintf("bandwidth: %d%%", n)
}

func (d *draft) writeClasses(w *writer) {
	w.line(0, "classes:")
	for i := range d.classes {
		c := &d.classes[i]
		w.line(1, "- name: %s", c.name)
		if c.cnp {
			w.line(2, "role: cnp   # %s", c.guess)
		}
		if c.rest {
			w.line(2, "dscp: rest")
		} else {
			w.line(2, "dscp: [%s]", points(c.dscp))
		}
		w.line(2, "priority: %d", c.priority)
		if c.lossless {
			w.line(2, "lossless: true")
		}
		switch e, seen := d.ecn[c.priority][place{}]; {
		case e.On:
			w.line(2, "ecn: {%s}", ecnFields(intent.ECN{}, e))
		case seen && c.lossless:
			w.line(2, "ecn: off")
		}
		if b := d.buffers[c.priority][place{}]; b.On {
			w.line(2, "pfc: {%s}", bufferFields(b))
		}
		before := w.n
		switch share := d.shares[place{}][c.priority]; {
		case c.strict:
			w.line(2, "scheduling: strict")
		case !c.used:
			w.line(2, "scheduling: none")
		case share > 0:
			w.line(2, "%s", d.share(share))
		}
		if c.cnp && !c.strict && !c.rest && !c.lossless {
			d.suggest(w, 2, Suggestion{Rule: "cnp-class", Text: "scheduling: strict", Replaces: w.n - before}, "notifications that wait behind data come too late")
		}
	}
}

// suggest writes a line that is not in force, and why it should be. It is not what the devices do.
func (d *draft) suggest(w *writer, indent int, s Suggestion, why string) {
	s.Line = w.n + 1
	d.suggested = append(d.suggested, s)
	instead := ""
	if s.Replaces > 0 {
		instead = ", in place of the line above"
	}
	w.line(indent, "# %s   # suggested%s: %s", s.Text, instead, why)
}

func (d *draft) hasLossless() bool {
	return slices.ContainsFunc(d.classes, func(c class) bool { return c.lossless })
}

// points writes code points as a list with ranges; the first stays the first.
func points(ps []int) string {
	first := ""
	if len(ps) > 1 && !slices.IsSorted(ps) {
		first, ps = fmt.Sprint(ps[0])+", ", ps[1:]
	}
	return first + strings.ReplaceAll(intent.Ranges(ps), ",", ", ")
}

// ecnFields are the fields of a ramp that differ from the one above.
func ecnFields(above, e intent.ECN) string {
	var fs []string
	add := func(key string, same bool, v fmt.Stringer) {
		if !above.On || !same {
			fs = append(fs, key+": "+v.String())
		}
	}
	add("kmin", e.Kmin == above.Kmin, e.Kmin)
	add("kmax", e.Kmax == above.Kmax, e.Kmax)
	add("pmax", e.Pmax == above.Pmax, e.Pmax)
	return strings.Join(fs, ", ")
}

// bufferFields are the fields of a buffer. Overrides give all of them: they belong together.
func bufferFields(b intent.Buffer) string {
	threshold := exact(b.Static)
	if b.Alpha != (units.Ratio{}) {
		threshold = "{alpha: " + b.Alpha.String() + "}"
	}
	return fmt.Sprintf("xoff: %s, headroom: %s, xon: %s, xon_offset: %s, reserved: %s",
		threshold, exact(b.Headroom), exact(b.Xon), exact(b.XonOffset), exact(b.Reserved))
}

// dogFields are the fields of a watchdog that differ from the one above.
func dogFields(above, w intent.Watchdog) string {
	var fs []string
	add := func(key string, same bool, v string) {
		if !above.On || !same {
			fs = append(fs, key+": "+v)
		}
	}
	add("detect", w.Detect == above.Detect, fmt.Sprintf("%dms", w.Detect))
	add("restore", w.Restore == above.Restore, fmt.Sprintf("%dms", w.Restore))
	if w.Poll > 0 {
		add("poll", w.Poll == above.Poll, fmt.Sprintf("%dms", w.Poll))
	}
	add("action", w.Action == above.Action, w.Action.String())
	return strings.Join(fs, ", ")
}

// writeOverrides writes what differs by role, device and port, and that hosts which nobody read are planned.
func (d *draft) writeOverrides(w *writer) {
	at := d.places()
	planned := map[string]bool{}
	for i := range d.net.Devices {
		if dev := &d.net.Devices[i]; dev.State == intent.Planned {
			p := place{role: dev.Role, device: dev.Name}
			if !slices.ContainsFunc(d.net.Devices, func(o intent.Device) bool { return o.Role == dev.Role && o.State != intent.Planned }) {
				p.device = ""
			}
			planned[p.role+" "+p.device] = true
			at[p] = true
		}
	}
	delete(at, place{})
	if len(at) == 0 {
		return
	}
	for p := range at { // what is above has to be there too
		for q := p.above(); q != (place{}); q = q.above() {
			at[q] = true
		}
	}
	order := make([]place, 0, len(at))
	for p := range at {
		order = append(order, p)
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(roleOrder(a.role, b.role), intent.CompareNames(a.device, b.device), intent.CompareNames(a.port, b.port))
	})
	w.line(0, "overrides:")
	for i, p := range order {
		indent := 1
		switch prev := order[max(i-1, 0)]; {
		case p.device == "":
			w.line(1, "%s:", model.Scalar(p.role))
		case p.port == "":
			if prev.device == "" {
				w.line(2, "devices:")
			}
			w.line(3, "%s:", model.Scalar(p.device))
			indent = 3
		default:
			if prev.port == "" {
				w.line(4, "ports:")
			}
			w.line(5, "%s:", model.Scalar(p.port))
			indent = 5
		}
		d.writeOverride(w, indent+1, p, planned[p.role+" "+p.device] && p.port == "")
	}
}

// undoable has the next line's override of a device or port taken back when an error points at it.
func undoable[V comparable](d *draft, w *writer, p place, m placement[V]) {
	if _, ok := m[p]; ok && p.device != "" {
		also := d.undo[w.n+1]
		d.undo[w.n+1] = func(rule string) {
			if also != nil {
				also(rule)
			}
			delete(m, p)
			d.broken[p.device] = rule
		}
	}
}

func (d *draft) writeOverride(w *writer, indent int, p place, planned bool) {
	if planned {
		w.line(indent, "state: planned   # heard over LLDP, not read")
	}
	if v, ok := d.mtu[p]; ok {
		undoable(d, w, p, d.mtu)
		w.line(indent, "mtu: {fabric: %s}", exact(v))
	}
	if v, ok := d.hostMTU[p]; ok {
		undoable(d, w, p, d.hostMTU)
		w.line(indent, "mtu: {host: %s}", exact(v))
	}
	if t, ok := d.words[p]; ok {
		undoable(d, w, p, d.words)
		w.line(indent, "%s", hostsLine(d.words.inherited(p), t))
	}
	var classes []string
	var ramps []uint8 // of each line, the priority
	for i := range d.classes {
		c := &d.classes[i]
		var fields []string
		if e, ok := d.ecn[c.priority][p]; ok {
			fields = append(fields, "ecn: {"+ecnFields(d.ecn[c.priority].inherited(p), e)+"}")
		}
		if b, ok := d.buffers[c.priority][p]; ok {
			fields = append(fields, "pfc: {"+bufferFields(b)+"}")
		}
		if s, ok := d.shares[p]; ok && s[c.priority] != d.shares.inherited(p)[c.priority] {
			fields = append(fields, d.share(s[c.priority]))
		}
		if len(fields) > 0 {
			ramps = append(ramps, c.priority)
			classes = append(classes, fmt.Sprintf("- {name: %s, %s}", c.name, strings.Join(fields, ", ")))
		}
	}
	if len(classes) > 0 {
		w.line(indent, "classes:")
		for i, c := range classes {
			undoable(d, w, p, d.ecn[ramps[i]])
			undoable(d, w, p, d.buffers[ramps[i]])
			w.line(indent+1, "%s", c)
		}
	}
	if dog, ok := d.dog[p]; ok {
		undoable(d, w, p, d.dog)
		w.line(indent, "pfc_watchdog: {%s}", dogFields(d.dog.inherited(p), dog))
	}
}
