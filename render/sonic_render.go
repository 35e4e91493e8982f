package render

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// sonicRender writes what d asks for on every port that is active and bound to an interface. Ports of one override site
// with one policy and equal links share their objects and differ in the rows that bind them, so the work is linear in the bindings, and
// what they have in common is done once.
func sonicRender(d intent.Device, f Facts) (Config, diag.List) {
	b := sonicBuilder{d: &d, names: f.Names, done: map[sonicKind]span{}}
	for i := range d.Ports {
		p := &d.Ports[i]
		switch {
		case sonicModelled(p):
			k := sonicKind{p.Site, p.Policy, p.Speed, p.Cable, p.Ramps}
			if same, ok := b.done[k]; ok {
				b.like(same, p)
				continue
			}
			from, own := len(b.puts), b.own
			b.port(p, d.PolicyOf(p))
			b.done[k] = span{from, len(b.puts), b.own - own}
		case p.State == intent.Active && p.Iface != "":
			b.cannot(p, "", "", "%s of %s is bound to %q; SONiC names ports Ethernet and a number", p.Name, d.Name, p.Iface)
		}
	}
	return b.config(), b.findings.Sort()
}

// sonicBuilder collects settings, one value per key.
type sonicBuilder struct {
	d        *intent.Device
	names    Names
	puts     []sonicPut
	own      int                // how many of them are in a port's own rows
	done     map[sonicKind]span // the puts of the first port of each kind
	findings diag.List
}

// sonicKind is what decides all that a port asks for, but the port's own name.
type sonicKind struct {
	site   string
	policy int32
	speed  units.BitRate // speed and cable are part of the names of what follows from them
	cable  units.Length
	ramps  uint8
}

// span is a part of the puts, and how many of them are in a port's own rows.
type span struct{ from, to, own int }

// sonicPut is one wish of one port.
type sonicPut struct {
	key    Key
	value  string
	from   *model.Origin
	port   *intent.Port
	suffix string // of the row after the port's name, "|3" for a queue
	own    bool   // the row is the port's own, not a shared object
	field  bool   // not the row but the field is named after the port
}

// put sets one field of a shared object for p.
func (b *sonicBuilder) put(p *intent.Port, table, row, field, value string, origin intent.Field) {
	b.puts = append(b.puts, sonicPut{
		key: Key{table, row, field}, value: value, from: b.d.Origin(p, origin), port: p,
	})
}

// bind sets one field of a row of p's own: its name and a suffix.
func (b *sonicBuilder) bind(p *intent.Port, table, suffix, field, value string, origin intent.Field) {
	b.put(p, table, p.Iface+suffix, field, value, origin)
	last := &b.puts[len(b.puts)-1]
	last.suffix, last.own = suffix, true
	b.own++
}

// like gives p the rows that a port of the same kind has.
func (b *sonicBuilder) like(same span, p *intent.Port) {
	row, suffix := p.Iface, ""
	if cap(b.puts)-len(b.puts) < same.own {
		b.puts = slices.Grow(b.puts, same.own*len(b.d.Ports)) // nearly all ports are alike
	}
	b.own += same.own
	for _, x := range b.puts[same.from:same.to] {
		if !x.own {
			continue
		}
		x.port = p
		if x.field {
			x.key.Field = p.Iface
			b.puts = append(b.puts, x)
			continue
		}
		if x.suffix != suffix {
			row, suffix = p.Iface+x.suffix, x.suffix
		}
		x.key.Object = row
		b.puts = append(b.puts, x)
	}
}

// config is what was put, sorted, with the first of several wishes for a key. A different one is a finding, once per
// object.
func (b *sonicBuilder) config() Config {
	order := make([]int32, len(b.puts)) // what is put is large, and stays where it is
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		if c := b.puts[i].key.Compare(b.puts[j].key); c != 0 {
			return c
		}
		return int(i - j)
	})
	config := make(Config, 0, len(b.puts))
	clash := map[Key]bool{}
	var first *sonicPut
	for _, i := range order {
		x := &b.puts[i]
		if first == nil || x.key != first.key {
			first = x
			config = append(config, Setting{Key: x.key, Value: x.value, From: x.from})
		} else if o := x.key.Whole(); x.value != first.value && !clash[o] {
			clash[o] = true
			b.twoValues(first, x)
		}
	}
	return config
}

func (b *sonicBuilder) twoValues(old, now *sonicPut) {
	var related []diag.Related
	if pos := old.from.At(); !pos.IsZero() {
		related = []diag.Related{{Pos: pos, Msg: "the other value"}}
	}
	b.findings.Add(diag.Finding{
		Rule: "one-value", Severity: diag.Error, Pos: now.from.At(), At: b.d.Name + ":" + now.port.Name,
		Msg: fmt.Sprintf("port %s asks for %s of %s in %s %s, port %s for %s; %s has one for both",
			now.port.Name, now.value, now.key.Field, now.key.Scope, now.key.Object, old.port.Name, old.value, b.d.Name),
		Hint: "give both ports the same value, or put the override where each port has its own", Related: related,
	})
}

// cannot reports what SONiC has no words for.
func (b *sonicBuilder) cannot(p *intent.Port, origin intent.Field, hint, format string, a ...any) {
	b.findings.Add(diag.Finding{
		Rule: "not-expressible", Severity: diag.Error, Pos: b.d.Origin(p, origin).At(), At: b.d.Name + ":" + p.Site,
		Msg: fmt.Sprintf(format, a...), Hint: hint,
	})
}

// number puts v when SONiC takes it.
func (b *sonicBuilder) number(p *intent.Port, table, row, field string, v, lo, hi int64, origin intent.Field) {
	if b.takes(p, table, v, lo, hi, origin) {
		b.put(p, table, row, field, strconv.FormatInt(v, 10), origin)
	}
}

// bindNumber is number for p's own row.
func (b *sonicBuilder) bindNumber(p *intent.Port, table, field string, v, lo, hi int64, origin intent.Field) {
	if b.takes(p, table, v, lo, hi, origin) {
		b.bind(p, table, "", field, strconv.FormatInt(v, 10), origin)
	}
}

func (b *sonicBuilder) takes(p *intent.Port, table string, v, lo, hi int64, origin intent.Field) bool {
	if v < lo || v > hi {
		show := func(v int64) string { return strconv.FormatInt(v, 10) }
		if table == "PFC_WD" { // in milliseconds
			show = func(v int64) string { return (units.Duration(v) * units.Millisecond).String() }
		}
		b.cannot(p, origin, fmt.Sprintf("choose %s to %s", show(lo), show(hi)),
			"%s is %s; SONiC takes %s to %s in %s", origin, show(v), show(lo), show(hi), table)
		return false
	}
	return true
}

// object is the name of the object of a table that serves p: its own, or the adopted one.
func (b *sonicBuilder) object(p *intent.Port, table string, class ...string) string {
	parts := append([]string{p.Site}, class...)
	return b.names.Name(table, objectName(sonicNameLimit, sonicNameRune, b.d.Fabric, parts...))
}

func (b *sonicBuilder) port(p *intent.Port, pol *intent.Policy) {
	if pol.Known.Has(intent.AreaMTU) {
		b.bindNumber(p, "PORT", "mtu", int64(pol.MTU), 68, 9216, "mtu")
	}
	if pol.Known.Has(intent.AreaMaps) {
		b.maps(p, pol)
	}
	if pol.Known.Has(intent.AreaPFC) {
		b.priorities(p, pol, "pfc_enable", true)
		if pol.Pause != (intent.Pause{}) {
			b.cannot(p, "pause", "", "link pause (802.3x) is to be on (%s); SONiC's configuration has no field for it", pol.Pause)
		}
	}
	for tc, class := range b.d.Classes {
		if class == "" {
			b.unnamed(p, pol, tc)
			continue
		}
		row := "|" + strconv.Itoa(sonicQueueOf(pol, tc))
		if pol.Known.Has(intent.AreaScheduler) && pol.Queues[tc].Used {
			b.scheduler(p, row, class, tc, pol.Queues[tc])
		}
		if pol.Known.Has(intent.AreaECN) {
			b.ecn(p, row, class, tc, pol.Queues[tc])
		}
		if pol.Known.Has(intent.AreaBuffer) {
			b.buffer(p, pol, class, tc)
		}
	}
	if pol.Known.Has(intent.AreaBuffer) {
		b.cable(p, pol.Cable)
	}
	if pol.Known.Has(intent.AreaWatchdog) {
		b.priorities(p, pol, "pfcwd_sw_enable", pol.Watchdog.On)
		b.watchdog(p, pol.Watchdog)
	}
}

// unnamed reports behaviour of a priority that no class names: there is nothing to own it by.
func (b *sonicBuilder) unnamed(p *intent.Port, pol *intent.Policy, prio int) {
	if pol.Queues[prio] != (intent.Queue{}) {
		b.cannot(p, intent.Field(fmt.Sprintf("class.%d", prio)), "name a class with this priority",
			"priority %d is configured, but no class of %s has it", prio, b.d.Name)
	}
}

// maps puts the four maps of p's site and binds them.
func (b *sonicBuilder) maps(p *intent.Port, pol *intent.Policy) {
	if pol.Trust != intent.TrustDSCP {
		b.cannot(p, "trust", "trust dscp", "trust is %s; on SONiC fabricctl classifies by DSCP only", pol.Trust)
		return
	}
	b.oneMap(p, "dscp_to_tc_map", "dscp", pol.DSCP[:])
	b.oneMap(p, "tc_to_queue_map", "class", pol.TCQueue[:])
	b.oneMap(p, "tc_to_pg_map", "class", pol.TCPG[:])
	b.oneMap(p, "pfc_to_queue_map", "class", pol.PFCQueue[:])
}

// oneMap puts a map and its binding. In a map that was adopted, entries of classes that the model does not name are
// left as they are.
func (b *sonicBuilder) oneMap(p *intent.Port, field, origin string, entries []uint8) {
	table := sonicTarget("PORT_QOS_MAP", field)
	own := b.object(p, table)
	mine := ownName(sonicNameLimit, sonicNameRune, b.d.Fabric, own)
	keep := sonicFields(b.d, table)
	for i, v := range entries {
		n := strconv.Itoa(i)
		if v == intent.Unmapped || !mine && !slices.Contains(keep, n) {
			continue
		}
		b.number(p, table, own, n, int64(v), 0, 7, intent.Field(origin+"."+n))
	}
	b.bind(p, "PORT_QOS_MAP", "", field, own, "trust")
}

// priorities puts a list of the lossless priorities, empty when on is false.
func (b *sonicBuilder) priorities(p *intent.Port, pol *intent.Policy, field string, on bool) {
	b.bind(p, "PORT_QOS_MAP", "", field, "", "")
	for i, q := range pol.Queues {
		if n := strconv.Itoa(i); on && q.Lossless && b.d.Classes[i] != "" {
			b.bind(p, "PORT_QOS_MAP", "", field+"["+n+"]", "on", intent.Field("lossless."+n))
		}
	}
}

func (b *sonicBuilder) scheduler(p *intent.Port, row, class string, tc int, q intent.Queue) {
	name, n := b.object(p, "SCHEDULER", class), strconv.Itoa(tc)
	scheduling, weight := intent.Field("scheduling."+n), intent.Field("weight."+n)
	switch {
	case q.Strict:
		b.put(p, "SCHEDULER", name, "type", "STRICT", scheduling)
	default:
		b.put(p, "SCHEDULER", name, "type", "DWRR", scheduling)
		if q.Weight > 0 {
			b.number(p, "SCHEDULER", name, "weight", int64(q.Weight), 1, 100, weight)
		}
	}
	b.bind(p, "QUEUE", row, "scheduler", name, intent.Field("class."+n))
}

// ecn puts the marking ramp of a class. SONiC marks where it would drop, so the WRED thresholds are the ramp; without
// wred_*_enable nothing is marked at all (sonic-buildimage#4545), and the updater and old agents are safest with all
// fields there.
func (b *sonicBuilder) ecn(p *intent.Port, row, class string, tc int, q intent.Queue) {
	n := strconv.Itoa(tc)
	origin := func(f string) intent.Field { return intent.Field("ecn." + n + "." + f) }
	if q.Drop {
		b.cannot(p, origin("drop"), "", "class %s drops early instead of marking; fabricctl does not configure that", class)
	}
	if !q.ECN.On {
		return
	}
	const percent, most = 10_000, 1<<63 - 1
	if q.ECN.Pmax%percent != 0 {
		lo := q.ECN.Pmax / percent
		choice := fmt.Sprintf("choose %d%%", lo+1)
		if lo > 0 { // 0% marks nothing
			choice = fmt.Sprintf("choose %d%% or %d%%", lo, lo+1)
		}
		b.cannot(p, origin("pmax"), choice,
			"pmax of class %s is %s; SONiC takes whole percent", class, q.ECN.Pmax)
	}
	if q.ECN.Kmin > q.ECN.Kmax {
		b.cannot(p, origin("kmin"), fmt.Sprintf("lower kmin to at most %s", q.ECN.Kmax),
			"kmin %s of class %s is above its kmax %s, which SONiC refuses", q.ECN.Kmin, class, q.ECN.Kmax)
	}
	parts := []string{class}
	if p.Ramps>>tc&1 == 1 {
		parts = append(parts, speedWord(p.Speed))
	}
	name := b.object(p, "WRED_PROFILE", parts...)
	b.put(p, "WRED_PROFILE", name, "ecn", "ecn_all", origin("kmin"))
	for _, c := range sonicColours() {
		b.put(p, "WRED_PROFILE", name, "wred_"+c+"_enable", "true", origin("kmin"))
		b.number(p, "WRED_PROFILE", name, c+"_min_threshold", int64(q.ECN.Kmin), 0, most, origin("kmin"))
		b.number(p, "WRED_PROFILE", name, c+"_max_threshold", int64(q.ECN.Kmax), 0, most, origin("kmax"))
		b.number(p, "WRED_PROFILE", name, c+"_drop_probability", int64(q.ECN.Pmax/percent), 0, 100, origin("pmax"))
	}
	b.bind(p, "QUEUE", row, "wred_profile", name, origin("kmin"))
}

// watchdog puts the rows of p and the polling interval of the device. Times are milliseconds.
func (b *sonicBuilder) watchdog(p *intent.Port, w intent.Watchdog) {
	if !w.On {
		return
	}
	switch w.Action {
	case intent.ActionDrop, intent.ActionForward, intent.ActionAlert:
		b.bind(p, "PFC_WD", "", "action", w.Action.String(), "watchdog.action")
	default:
		b.cannot(p, "watchdog.action", "choose drop, forward or alert", "the watchdog's action is %s", w.Action)
	}
	for _, t := range []struct {
		name   string
		v      int32
		origin intent.Field
	}{{"detect", w.Detect, "watchdog.detect"}, {"restore", w.Restore, "watchdog.restore"}} {
		if t.v < w.Poll {
			b.cannot(p, t.origin, fmt.Sprintf("raise %s to at least %dms, or lower poll", t.name, w.Poll),
				"%s %dms of the watchdog is below its poll %dms, which SONiC refuses", t.name, t.v, w.Poll)
		}
	}
	b.bindNumber(p, "PFC_WD", "detection_time", int64(w.Detect), 100, 5000, "watchdog.detect")
	b.bindNumber(p, "PFC_WD", "restoration_time", int64(w.Restore), 100, 60000, "watchdog.restore")
	if w.Poll == 0 {
		return // the image's choice
	}
	b.number(p, sonicPoll.Scope, sonicPoll.Object, sonicPoll.Field, int64(w.Poll), 100, 1000, "watchdog.poll")
}
