package render

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// linuxRenderer collects what a host is asked.
type linuxRenderer struct {
	d      *intent.Device
	f      Facts
	config Config
	at     map[Key]int
	by     []asking    // who asks for a setting of config, at the same index
	mapped []*linuxNIC // whose app table is rendered
	nics   []*linuxNIC
	found  diag.List
}

// asking are the ports that ask for one setting; nearly always it is one.
type asking struct {
	first *intent.Port
	more  []*intent.Port
}

// linuxNIC is a port that is bound to an interface.
type linuxNIC struct {
	*linuxRenderer
	linuxCard
	port   *intent.Port
	policy *intent.Policy
}

// linuxRender asks nothing for NICs that are absent or not bound to a link. One that is bound by its PCI address gets
// its name from the host, in the plan; without the host's facts its knobs are left out.
//
// What the NIC cannot do is an error where a line of the model asks for it and the area is owned, and else said.
func linuxRender(d intent.Device, f Facts) (Config, diag.List) {
	r := linuxRendered(&d, f)
	return r.config.Sorted(), r.found.Sort()
}

func linuxRendered(d *intent.Device, f Facts) *linuxRenderer {
	const most = 96 // settings of a NIC with all code points
	r := &linuxRenderer{d: d, f: f, at: make(map[Key]int, most*len(d.Ports))}
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.State == intent.Absent || p.Iface == "" {
			continue
		}
		n := &linuxNIC{linuxRenderer: r, linuxCard: linuxCardOf(d, p, f), port: p, policy: d.PolicyOf(p)}
		switch isPCI := linuxPCI.MatchString(p.Iface); {
		case isPCI && f.Hostname == "":
			n.bound("", "the host alone knows which interface has PCI address %s: its settings are in the plan, and not rendered here", p.Iface)
			r.nics = append(r.nics, n)
			continue
		case isPCI:
			n.refuse(nil, "", "the host has no network interface with PCI address %s", p.Iface)
			continue
		case !linuxIsLink(p.Iface):
			n.refuse(nil, "", "%q is not the name of a Linux network interface", p.Iface)
			continue
		}
		r.nics = append(r.nics, n)
		n.render()
	}
	r.nccl()
	return r
}

func (n *linuxNIC) render() {
	link := n.port.Iface
	if n.policy.Known.Has(intent.AreaMTU) {
		mtu := strconv.FormatInt(int64(n.policy.MTU), 10)
		n.put(linuxMTU(link), mtu, "mtu")
		if n.said != nil && n.said.Bond != "" {
			n.put(linuxMTU(n.said.Bond), mtu, "mtu")
		}
	}
	n.system()
	if why, hint := n.closed(n.port); why != "" {
		n.shut(why, hint)
		return
	}
	n.dcb()
	n.roce()
	n.congestion()
}

// shut says once why nothing of a NIC but its MTU is set.
func (n *linuxNIC) shut(why, hint string) {
	const areas = linuxDCB | intent.Areas(1<<intent.AreaRoCE|1<<intent.AreaCC)
	severity := diag.Info
	switch {
	case n.port.Manage.Owned()&areas&n.policy.Known == 0:
	case n.bare: // perhaps the host has no such interface, which the plan says
		severity = diag.Warning
	default:
		severity = diag.Error
	}
	if n.policy.Known&areas != 0 {
		n.say("not-expressible", severity, n.port.IfaceAt, hint, "%s %s: %s", n.d.Name, n.port.Name, why)
	}
}

func (n *linuxNIC) owns(a intent.Area) bool {
	return n.d.State == intent.Active && n.port.State == intent.Active && n.port.Manage[a] == intent.Own
}

func (n *linuxNIC) say(rule string, severity diag.Severity, o *model.Origin, hint, format string, a ...any) {
	n.found.Add(diag.Finding{Rule: rule, Severity: severity, Pos: o.At(), At: n.d.Name + ":" + n.port.Name, Msg: fmt.Sprintf(format, a...), Hint: hint})
}

// bound says what only the host knows.
func (n *linuxNIC) bound(hint, format string, a ...any) {
	n.found.Add(diag.Finding{Rule: "bound-on-host", Severity: diag.Info, At: n.d.Name + ":" + n.port.Name, Msg: fmt.Sprintf(format, a...), Hint: hint})
}

// refuse is a value that cannot be, wherever it is owned.
func (n *linuxNIC) refuse(o *model.Origin, hint, format string, a ...any) {
	n.say("not-expressible", diag.Error, o, hint, "%s %s: "+format, append([]any{n.d.Name, n.port.Name}, a...)...)
}

// cannot says that the NIC cannot do what classes ask: an error where we own it.
func (n *linuxNIC) cannot(area intent.Area, field intent.Field, hint, format string, a ...any) {
	n.unable(n.owns(area), area, field, hint, format, a...)
}

// lacks says that the NIC has no place for a value: an error where we own it and a line of the model asks for it. A device
// of a journal or a plan file has no lines any more, and what is not expressible has been said then.
func (n *linuxNIC) lacks(area intent.Area, field intent.Field, hint, format string, a ...any) {
	o := n.d.Origin(n.port, field)
	n.unable(n.owns(area) && o != nil && o.Kind == model.FromLine, area, field, hint, format, a...)
}

func (n *linuxNIC) unable(fails bool, area intent.Area, field intent.Field, hint, format string, a ...any) {
	severity := diag.Info
	if fails {
		severity = diag.Error
		hint = cmp.Or(hint, fmt.Sprintf("take a NIC that can, or do not own %s there", area))
	}
	o := n.d.Origin(n.port, field)
	n.say("not-expressible", severity, o, hint, "%s %s: "+format, append([]any{n.d.Name, n.port.Name}, a...)...)
}

// put asks for a key. Two NICs that share one may not differ.
func (n *linuxNIC) put(k Key, v string, field intent.Field) {
	r, o := n.linuxRenderer, n.d.Origin(n.port, field)
	j, ok := r.at[k]
	if !ok {
		r.at[k] = len(r.config)
		r.config, r.by = append(r.config, Setting{k, v, o}), append(r.by, asking{first: n.port})
		return
	}
	r.by[j].more = append(r.by[j].more, n.port)
	if was := r.config[j].Value; was != v {
		first := r.by[j].first.Name
		n.say("one-value", diag.Error, o, fmt.Sprintf("give %s and %s the same value", first, n.port.Name),
			"%s has one value on %s: %s asks for %s, %s for %s", k, n.d.Name, first, was, n.port.Name, v)
	}
}

// knob asks for a knob if the NIC has it.
func (n *linuxNIC) knob(name string, k Key, v string, field intent.Field) {
	if n.has(name) {
		n.put(k, v, field)
		return
	}
	areas := linuxAreas(k)
	n.lacks(intent.Area(bits.TrailingZeros(uint(areas))), field, "", "%s has no knob for %s, which is to be %s", n.name(n.port), linuxLabel(k), v)
}

// dcb asks for what the kernel's Data Center Bridging sets, and who may set it.
func (n *linuxNIC) dcb() {
	p, link := n.policy, n.port.Iface
	if p.Known&linuxDCB == 0 {
		return
	}
	if !n.has("app") && !n.has("pfc") && !n.has("ets") {
		area := slices.IndexFunc([]intent.Area{intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler}, n.owns)
		n.cannot([]intent.Area{intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler}[max(area, 0)], "trust",
			"take a NIC that has it, or own only mtu and host-nccl there", "%s has no Data Center Bridging: no map of code points, no PFC, no ETS", n.name(n.port))
		return
	}
	n.together()
	if n.has("dcbx") {
		n.put(linuxKey("dcbx", link, "mode"), "host ieee", "trust")
	}
	if n.LLDPFlag != "" && n.has("flag."+n.LLDPFlag) {
		n.put(linuxKey("flag", link, n.LLDPFlag), "off", "trust")
	}
	if p.Known.Has(intent.AreaMaps) {
		n.maps()
	}
	if p.Known&intent.AreaSet(intent.AreaMaps, intent.AreaScheduler) != 0 {
		n.ets()
	}
	if p.Known.Has(intent.AreaPFC) {
		n.pfc()
	}
	if p.Known.Has(intent.AreaBuffer) {
		n.buffer()
	}
}

// together refuses to own a part of what the driver sets as one.
func (n *linuxNIC) together() {
	own := func(as ...intent.Area) bool {
		return !slices.ContainsFunc(as, func(a intent.Area) bool { return !n.owns(a) })
	}
	hint := "own maps, pfc and scheduler together there, or none of them"
	switch {
	case n.owns(intent.AreaMaps) && slices.Contains(n.AppResets, profiles.ObjectETS) && !own(intent.AreaScheduler):
		n.refuse(nil, hint, "the first code point that %s maps sets its ETS back, and scheduler is not owned", n.name(n.port))
	case n.owns(intent.AreaMaps) && slices.Contains(n.AppResets, profiles.ObjectPFC) && !own(intent.AreaPFC):
		n.refuse(nil, hint, "the first code point that %s maps sets its PFC back, and pfc is not owned", n.name(n.port))
	case n.owns(intent.AreaPFC) && n.PFCByTC && !own(intent.AreaMaps, intent.AreaScheduler):
		n.refuse(nil, hint, "%s pauses traffic classes, not priorities, and which priorities they hold is not owned", n.name(n.port))
	}
}

// maps gives code points their priority. A driver whose table shows only what was added gets all 64, so that it reads
// back whole; another only those that would not go where they should without an entry.
func (n *linuxNIC) maps() {
	if !n.has("app") {
		n.cannot(intent.AreaMaps, "trust", "", "%s has no table of code points: it does not trust DSCP", n.name(n.port))
		return
	}
	n.mapped = append(n.mapped, n)
	for i, name := range n.d.Classes {
		if limit := n.classes(); n.AppPriorityIsTC && i >= limit && (name != "" || n.policy.Queues[i].Used) {
			n.cannot(intent.AreaMaps, intent.Field("class."+strconv.Itoa(i)), n.free(limit),
				"%s takes a priority as one of its %d traffic classes: class %s has priority %d", n.name(n.port), limit, cmp.Or(name, "?"), i)
		}
	}
	for d, priority := range n.policy.DSCP {
		v := strconv.Itoa(int(priority))
		if priority == intent.Unmapped || n.Default(d) == v || n.AppPriorityIsTC && int(priority) >= n.classes() {
			continue
		}
		n.put(linuxDSCP(n.port.Iface, d), v, linuxCodePoints[d].field)
	}
}

// free is the advice to take a priority below a limit that no class has.
func (n *linuxNIC) free(limit int) string {
	for i := range limit {
		if n.d.Classes[i] == "" {
			return fmt.Sprintf("give it priority %d, which no class has, in the whole fabric: map, PFC and queue follow", i)
		}
	}
	return fmt.Sprintf("all priorities below %d are taken: let classes share one, or take another NIC", limit)
}

// pfc switches PFC on for the lossless priorities, and link pause off.
func (n *linuxNIC) pfc() {
	var lossless uint8
	first := 0
	for i, q := range n.policy.Queues {
		if q.Lossless && !(n.AppPriorityIsTC && i >= n.classes()) { // what maps refuses
			lossless |= 1 << i
			first = cmp.Or(first, i)
		}
	}
	field := intent.Field("lossless." + strconv.Itoa(first))
	switch most := n.PFCPriorities; {
	case !n.has("pfc"):
		if lossless != 0 {
			n.cannot(intent.AreaPFC, field, "", "%s has no PFC, and %s is lossless", n.name(n.port), intent.PriorityNames(lossless))
		}
	case most > 0 && bits.OnesCount8(lossless) > most:
		n.cannot(intent.AreaPFC, field, fmt.Sprintf("let the model have at most %d lossless classes on such hosts", most),
			"%s pauses at most %d, and %s are lossless", n.name(n.port), most, intent.PriorityNames(lossless))
	default:
		n.put(linuxKey("pfc", n.port.Iface, "priorities"), profiles.Priorities(lossless), field)
	}
	if !n.has("pause") {
		return
	}
	if n.PauseAutoneg {
		n.put(linuxKey("pause", n.port.Iface, "autoneg"), "off", "pause")
	}
	for name, on := range map[string]bool{"receive": n.policy.Pause.Receive, "send": n.policy.Pause.Send} {
		v := "off"
		if on {
			v = "on"
		}
		n.put(linuxKey("pause", n.port.Iface, name), v, "pause")
	}
}

// maxDelay is the longest cable, in metres, that the drivers take which size buffers by it.
const maxDelay = 999

// buffer tells the driver how long the cable is, where it sizes its buffers by it, and how large they are where the model
// says so.
func (n *linuxNIC) buffer() {
	p := n.policy
	if metres := (p.Cable + units.Metre - 1) / units.Metre; p.Cable > 0 && n.has("pfc") && (!n.named || n.PFCDelay == profiles.DelayMetres) {
		if metres > maxDelay {
			n.cannot(intent.AreaBuffer, "cable", "", "%s takes cables of up to %d m, this one has %s", n.name(n.port), maxDelay, p.Cable)
		} else {
			n.put(linuxKey("pfc", n.port.Iface, "delay"), strconv.FormatInt(int64(metres), 10), "cable")
		}
	}
	n.sizes()
}

// system asks for what the model says of a NIC besides its traffic.
func (n *linuxNIC) system() {
	if !n.policy.Known.Has(intent.AreaSystem) {
		return
	}
	s, link := n.policy.System, n.port.Iface
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for _, x := range []struct {
		asked    bool
		name     string
		k        Key
		v, field string
	}{
		{s.ReadRequest > 0, "pci.max-read-request", linuxKey("pci", link, "max-read-request"), number(uint64(s.ReadRequest)), "read_request"},
		{s.IRQ != intent.IRQNotSaid, "irq", linuxKey("irq", link, "affinity"), s.IRQ.String(), "irq"},
		{s.RingRX > 0, "ring", linuxKey("ring", link, "rx"), number(uint64(s.RingRX)), "rx_ring"},
		{s.RingTX > 0, "ring", linuxKey("ring", link, "tx"), number(uint64(s.RingTX)), "tx_ring"},
		{s.FEC != intent.FECNotSaid, "fec", linuxKey("fec", link, "mode"), s.FEC.String(), "fec"},
	} {
		if x.asked {
			n.knob(x.name, x.k, x.v, intent.Field("system."+x.field))
		}
	}
	if s.Memlock {
		n.put(linuxMemlock, "unlimited", "system.memlock")
	}
}
