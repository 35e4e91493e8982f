package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosBundle are the areas that one service-profile carries.
var eosBundle = []intent.Area{intent.AreaMaps, intent.AreaPFC, intent.AreaECN, intent.AreaScheduler, intent.AreaWatchdog}

// eosRender writes one qos profile per site, the maps and watchdog defaults of the device, and the binding, MTU and
// mark counters of each port. Ports that are absent or not bound to an interface ask for nothing. Active ports come
// first, so that they are the ones that decide what the whole device does.
func eosRender(d intent.Device, f Facts) (Config, diag.List) {
	b := &eosBuilder{d: &d, f: f, at: map[Key]int{}, by: map[Key]*intent.Port{}, heard: map[eosAlike]bool{}}
	ports := make([]*intent.Port, 0, len(d.Ports))
	for i := range d.Ports {
		if p := &d.Ports[i]; p.State != intent.Absent && p.Iface != "" {
			ports = append(ports, p)
		}
	}
	slices.SortStableFunc(ports, func(a, b *intent.Port) int {
		return cmp.Compare(min(a.State, intent.Planned), min(b.State, intent.Planned))
	})
	for _, p := range ports {
		b.p, b.pol = p, d.PolicyOf(p)
		b.profile, b.adopted = eosProfile(&d, f, rampSite(p))
		b.port()
	}
	b.shared()
	return b.c.Sorted(), b.l.Sort()
}

// eosBuilder collects the settings of a device; p, pol and profile are those of the port in hand.
type eosBuilder struct {
	d       *intent.Device
	f       Facts
	p       *intent.Port
	pol     *intent.Policy
	profile string // mode line
	adopted bool   // profile is somebody else's
	c       Config
	at      map[Key]int
	by      map[Key]*intent.Port
	l       diag.List
	heard   map[eosAlike]bool
	quiet   bool // a port like this one was heard: its findings would only repeat
}

// eosAlike is what ports have in common whose findings are the same.
type eosAlike struct {
	site   string
	policy int32
	state  intent.State
	manage intent.Manage
}

func (b *eosBuilder) origin(field string) *model.Origin {
	return b.d.Origin(b.p, intent.Field(field))
}

// put adds a setting. Two values for one key cannot both be had: EOS has one of it for the device, or the site has
// one profile.
func (b *eosBuilder) put(scope, object, field, value, from string) {
	k := Key{scope, object, field}
	o := b.origin(from)
	i, ok := b.at[k]
	if !ok {
		b.at[k], b.by[k] = len(b.c), b.p
		b.c = append(b.c, Setting{k, value, o})
		return
	}
	if b.c[i].Value == value || b.quiet {
		return
	}
	first := b.by[k]
	x := diag.Finding{
		Rule: "one-value", Severity: diag.Info, Pos: o.At(), At: b.d.Name + ":" + k.String(),
		Msg: fmt.Sprintf("%s can have one value only on %s: %s asks for %q, %s for %q", k, b.d.Name,
			first.Name, b.c[i].Value, b.p.Name, value),
		Hint: fmt.Sprintf("give %s and %s the same value", first.Name, b.p.Name),
	}
	if pos := b.c[i].From.At(); !pos.IsZero() {
		x.Related = []diag.Related{{Pos: pos, Msg: first.Name + " asks here"}}
	}
	if area, ok := eosArea(k); ok && eosActsOn(first, area) && eosActsOn(b.p, area) {
		x.Severity = diag.Error
	}
	b.l.Add(x)
}

// eosActsOn reports whether the model writes the area on p now.
func eosActsOn(p *intent.Port, a intent.Area) bool {
	return p.State == intent.Active && p.Manage[a] == intent.Own
}

// refuse says that EOS cannot be told what the port in hand asks for.
func (b *eosBuilder) refuse(from, hint, format string, a ...any) {
	b.say("not-expressible", diag.Error, from, hint, format, a...)
}

func (b *eosBuilder) say(rule string, s diag.Severity, from, hint, format string, a ...any) {
	if b.quiet {
		return
	}
	b.l.Add(diag.Finding{
		Rule: rule, Severity: s, Pos: b.origin(from).At(), At: b.d.Name + ":" + b.p.Name,
		Hint: hint, Msg: fmt.Sprintf("%s %s: ", b.d.Name, b.p.Name) + fmt.Sprintf(format, a...),
	})
}

func (b *eosBuilder) port() {
	b.quiet = false
	if !eosEthernet.MatchString(b.p.Iface) {
		b.refuse("", "bind the port to an interface such as Ethernet1/1", "%q is not the name of an EOS Ethernet interface", b.p.Iface)
		return
	}
	alike := eosAlike{b.p.Site, b.p.Policy, b.p.State, b.p.Manage}
	b.quiet, b.heard[alike] = b.heard[alike], true
	scope := eosPort(b.p.Iface)
	b.put("", scope, "", "", "")
	known := b.pol.Known
	if known.Has(intent.AreaMTU) {
		b.mtu(scope)
	}
	if known&intent.AreaSet(eosBundle...) == 0 {
		return
	}
	if known.Has(intent.AreaPFC) {
		b.pause(scope)
	}
	b.bundle()
	b.put(scope, eosBinding, "", b.profile[len(eosProfileMode):], "")
	b.put("", b.profile, "", "", "")
	if known.Has(intent.AreaMaps) {
		b.maps()
	}
	b.shares()
	for i := range b.pol.Queues {
		b.queue(scope, i)
	}
	if known.Has(intent.AreaWatchdog) && b.pol.Watchdog.On {
		b.watchdog()
	}
}

// mtu writes the model's L2 size as it is. On routed ports EOS counts the IP packet (not verified), so that the port
// then takes frames 14 bytes longer than asked, never shorter.
func (b *eosBuilder) mtu(scope string) {
	if limit := b.d.Profile.MaxMTU; limit > 0 && b.pol.MTU > limit {
		b.refuse("mtu", fmt.Sprintf("lower mtu.fabric to at most %s", limit), "mtu %s is above the largest of %s, %s", b.pol.MTU, b.d.Platform, limit)
		return
	}
	b.put(scope, eosMTU, "", strconv.FormatInt(int64(b.pol.MTU), 10), "mtu")
}

// pause writes 802.3x link pause where it is on; it is off without a line (not verified for every platform).
func (b *eosBuilder) pause(scope string) {
	if b.pol.Pause.Send {
		b.put(scope, eosSend, "", "on", "pause")
	}
	if b.pol.Pause.Receive {
		b.put(scope, eosReceive, "", "on", "pause")
	}
}

// bundle refuses to bind a profile of ours where the model owns only a part of what it carries: the binding would
// write the rest. An adopted profile is already bound and is edited in the owned areas alone. Which one it is shows
// when the device is planned.
func (b *eosBuilder) bundle() {
	if b.p.State != intent.Active || b.adopted {
		return
	}
	var own, other []string
	for _, a := range eosBundle {
		if b.p.Manage[a] == intent.Own {
			own = append(own, a.String())
		} else {
			other = append(other, a.String())
		}
	}
	if len(own) == 0 || len(other) == 0 {
		return
	}
	b.say(NeedsAdoption, diag.Error, "",
		"plan and apply with --adopt to edit the service-profile that these ports bind now, if no other port binds it; or "+ownTogether,
		"a service-profile carries %s, which the model owns, together with %s, which it does not: only one that is bound already can be edited in part",
		strings.Join(own, ", "), strings.Join(other, ", "))
}

// shared refuses what would be written by half because ports that share it do not agree who writes it: the maps and
// the watchdog's timers, which are the device's, and the areas of an adopted profile.
func (b *eosBuilder) shared() {
	if b.d.State != intent.Active {
		return
	}
	said := b.agree("for the whole device", []intent.Area{intent.AreaMaps, intent.AreaWatchdog}, eosCounts)
	done := map[string]bool{}
	for _, p := range b.d.Ports {
		profile, adopted := eosProfile(b.d, b.f, rampSite(&p))
		if !adopted || done[profile] {
			continue
		}
		done[profile] = true
		areas := slices.DeleteFunc(slices.Clone(eosBundle), said.Has)
		b.agree("for all ports that bind "+profile, areas, func(p intent.Port) bool {
			of, _ := eosProfile(b.d, b.f, rampSite(&p))
			return of == profile && p.State == intent.Active && p.Iface != "" && p.Role != "unused"
		})
	}
}

// agree says in which of the areas some of the ports that share a thing are written and another is not.
func (b *eosBuilder) agree(what string, areas []intent.Area, sharing func(intent.Port) bool) (said intent.Areas) {
	type pair struct{ by, not string }
	var pairs []pair
	split := map[pair][]string{}
	for _, a := range areas {
		var x pair
		for i := range b.d.Ports {
			switch p := &b.d.Ports[i]; {
			case !sharing(*p):
			case p.Manage[a] != intent.Own:
				x.not = cmp.Or(x.not, p.Name)
			case p.State == intent.Active && p.Iface != "" && eosAsks(b.d.PolicyOf(p), a):
				x.by = cmp.Or(x.by, p.Name)
			}
		}
		if x.by == "" || x.not == "" {
			continue
		}
		if said |= intent.AreaSet(a); split[x] == nil {
			pairs = append(pairs, x)
		}
		split[x] = append(split[x], a.String())
	}
	for _, x := range pairs {
		names := strings.Join(split[x], " and ")
		b.l.Add(diag.Finding{
			Rule: "not-expressible", Severity: diag.Error, At: b.d.Name + ":" + x.not,
			Msg: fmt.Sprintf("%s: the model owns %s on %s and not on %s; on EOS that is one thing %s, and would be written by half",
				b.d.Name, names, x.by, x.not, what),
			Hint: fmt.Sprintf("own %s on %s too, or on no port of %s", names, x.not, b.d.Name),
		})
	}
	return said
}

// eosAsks reports whether a policy has lines in an area that ports share.
func eosAsks(p *intent.Policy, a intent.Area) bool {
	return p.Known.Has(a) && (a != intent.AreaWatchdog || p.Watchdog.On)
}

func (b *eosBuilder) maps() {
	if b.pol.Trust != intent.TrustDSCP {
		b.refuse("trust", "", "trust %s: only DSCP is rendered", b.pol.Trust)
	} else {
		b.put(b.profile, eosTrust, "", "dscp", "trust")
	}
	var unmapped []int
	for i, tc := range b.pol.DSCP {
		if tc > 7 {
			unmapped = append(unmapped, i)
			continue
		}
		b.put("", eosDSCP(i), "", strconv.Itoa(int(tc)), fmt.Sprintf("dscp.%d", i))
	}
	if len(unmapped) > 0 {
		b.refuse("", "add a class with dscp: rest", "EOS puts every code point in a traffic class, and the model names none for %v", unmapped)
	}
	for tc, q := range b.pol.TCQueue {
		used := b.pol.Queues[tc].Used
		switch {
		case q > 7 && used:
			b.refuse("", "", "traffic class %d has no queue, on EOS each has one", tc)
		case q <= 7 && (used || int(q) != tc):
			b.put("", eosTC(tc), "", strconv.Itoa(int(q)), fmt.Sprintf("class.%d", tc))
		}
		pg := 0
		if b.pol.Queues[tc].Lossless {
			pg = tc
		}
		if int(b.pol.TCPG[tc]) != pg || int(b.pol.PFCQueue[tc]) != tc {
			b.refuse("", "", "traffic class %d in priority group %d, pause of priority %d on queue %d: EOS has no map for either and uses %d and %d",
				tc, b.pol.TCPG[tc], tc, b.pol.PFCQueue[tc], pg, tc)
		}
	}
}

// queue writes priority i: its queue in the profile, no-drop, and the counter of marks on the port.
func (b *eosBuilder) queue(port string, i int) {
	x, known := &b.pol.Queues[i], b.pol.Known
	q := i
	if known.Has(intent.AreaMaps) && b.pol.TCQueue[i] <= 7 {
		q = int(b.pol.TCQueue[i])
	}
	line := fmt.Sprintf("%s %d", eosQueueWord(b.d), q)
	scope := eosInside(eosInside("", b.profile), line)
	if x.Used && known.Has(intent.AreaScheduler) {
		b.put(b.profile, line, "", "", fmt.Sprintf("class.%d", i))
		b.schedule(scope, i)
	}
	if x.Lossless && known.Has(intent.AreaPFC) {
		from := fmt.Sprintf("lossless.%d", i)
		b.put(b.profile, eosPFC, "", "on", from)
		b.put(b.profile, eosNoDrop(i), "", "no-drop", from)
	}
	if !known.Has(intent.AreaECN) {
		return
	}
	if x.Drop {
		b.refuse("", "", "priority %d drops by WRED: its thresholds are not in the model", i)
	}
	if x.ECN.On {
		b.put(b.profile, line, "", "", fmt.Sprintf("class.%d", i))
		b.ecn(scope, eosInside(port, line), i)
	}
}

// shares refuses weights that are no percentages.
func (b *eosBuilder) shares() {
	total, last := 0, 0
	for i, q := range b.pol.Queues {
		if q.Weight > 0 && q.Weight <= 100 && !q.Strict { // others are refused one by one
			total, last = total+int(q.Weight), i
		}
	}
	if total > 100 && b.pol.Known.Has(intent.AreaScheduler) {
		b.refuse(fmt.Sprintf("weight.%d", last), fmt.Sprintf("lower the weights by %d together", total-100),
			"the weights of the classes add up to %d; EOS takes percent of the bandwidth, at most 100 together", total)
	}
}

// schedule: without "no priority" a queue is strict; "bandwidth percent" is a weight among the others (not verified).
func (b *eosBuilder) schedule(scope string, i int) {
	x, from := &b.pol.Queues[i], fmt.Sprintf("scheduling.%d", i)
	if x.Strict {
		b.put(scope, eosPriority, "", "strict", from)
	} else {
		b.put(scope, eosPriority, "", "no", from)
	}
	switch {
	case x.Weight > 100 || x.Weight > 0 && x.Strict:
		b.refuse(fmt.Sprintf("weight.%d", i), "", "priority %d: weight %d; bandwidth is 1 to 100 percent, of a queue that is not strict", i, x.Weight)
	case x.Weight > 0:
		b.put(scope, eosShare, "", strconv.Itoa(int(x.Weight)), fmt.Sprintf("weight.%d", i))
	}
}

// eosMaxThreshold is the largest marking threshold, in bytes (AVD schema).
const eosMaxThreshold = 256_000_000

// ecn writes a marking ramp on the instantaneous queue (weight 0), and has the port count what it marks: under the
// interface, since older releases refuse the counter in a profile (not verified).
func (b *eosBuilder) ecn(scope, port string, i int) {
	e, from := b.pol.Queues[i].ECN, func(s string) string { return fmt.Sprintf("ecn.%d.%s", i, s) }
	ok := true
	threshold := func(field, name string, v units.Bytes) {
		if v < 1 || v > eosMaxThreshold {
			ok = false
			b.refuse(from(name), fmt.Sprintf("EOS takes at most %s", units.Bytes(eosMaxThreshold)), "priority %d: %s %s is outside 1B to %s", i, name, v, units.Bytes(eosMaxThreshold))
			return
		}
		b.put(scope, eosECN, field, fmt.Sprintf("%d bytes", v), from(name))
	}
	threshold("minimum-threshold", "kmin", e.Kmin)
	threshold("maximum-threshold", "kmax", e.Kmax)
	if e.Pmax%units.OnePercent != 0 || e.Pmax < units.OnePercent || e.Pmax > 100*units.OnePercent {
		ok = false
		b.refuse(from("pmax"), "give pmax in whole percent, 1% to 100%", "priority %d: pmax %s; EOS takes whole percent from 1 to 100", i, e.Pmax)
	} else {
		b.put(scope, eosECN, "max-mark-probability", strconv.Itoa(int(e.Pmax/units.OnePercent)), from("pmax"))
	}
	if ok {
		b.put(scope, eosECN, "weight", "0", from("kmin"))
		b.put(port, eosCount, "", "", from("kmin"))
	}
}

// watchdog writes the timers of the device, in seconds. Ranges: 0.01 to 60 in steps of 0.01 for detection and
// restoration, 0.005 to 30 in steps of 0.001 for polling (not verified).
func (b *eosBuilder) watchdog() {
	w := b.pol.Watchdog
	timer := func(object, name string, ms, lo, hi, step int32) {
		if ms < lo || ms > hi || ms%step != 0 {
			b.refuse("watchdog."+name, "", "watchdog %s of %dms: EOS takes %dms to %dms in steps of %dms", name, ms, lo, hi, step)
			return
		}
		b.put("", object, "", eosMillis(ms), "watchdog."+name)
	}
	b.put(b.profile, eosWatchdog, "", "", "watchdog.detect")
	timer(eosTimeout, "detect", w.Detect, 10, 60_000, 10)
	timer(eosRecovery, "restore", w.Restore, 10, 60_000, 10)
	if w.Poll > 0 { // 0 is EOS's choice
		timer(eosPolling, "poll", w.Poll, 5, 30_000, 1)
	}
	if most := min(w.Detect, w.Restore) / 2; w.Poll > most {
		b.say("watchdog-polling", diag.Warning, "watchdog.poll", fmt.Sprintf("lower poll to at most %dms", most),
			"poll %dms is above half of the shorter of detect %dms and restore %dms; EOS then polls at an interval of its own",
			w.Poll, w.Detect, w.Restore)
	}
	if w.Action != intent.ActionDrop {
		b.refuse("watchdog.action", "use action: drop", "watchdog action %s has no certain name on EOS, drop has", w.Action)
		return
	}
	b.put("", eosAction, "", "drop", "watchdog.action")
}

// eosMillis writes milliseconds as seconds, the shortest way.
func eosMillis(ms int32) string {
	return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64)
}
