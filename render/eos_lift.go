package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosLift says how each Ethernet interface behaves. What stands on the interface wins over its service-profile, line
// by line. EOS has no map from traffic class to priority group and none from pause to queue: a lossless class is
// accounted in the group of its number, the others in group 0, and pause of a priority stops the queue of that
// number.
//
// A port without an mtu line, or with marking thresholds in a unit of unknown size (kbytes, segments, time), has that
// area unknown.
func eosLift(c Config, f Facts) (map[string]intent.Policy, diag.List) {
	l := &eosLifter{c: c, host: f.Hostname, mixed: map[[2]int]bool{}, out: map[string]intent.Policy{}}
	l.device()
	for _, s := range c {
		name, ok := strings.CutPrefix(s.Key.Object, eosInterfaceMode)
		if ok && s.Key.Scope == "" && s.Value == "" && eosEthernet.MatchString(name) {
			l.out[name] = l.port(s.Key.Object)
		}
	}
	if len(l.noMTU) > 0 {
		slices.SortFunc(l.noMTU, intent.CompareNames)
		l.say(diag.Info, Key{}, "no mtu line on %s: the platform's default holds, which is not known", strings.Join(l.noMTU, ", "))
	}
	return l.out, l.l.Sort()
}

type eosLifter struct {
	c     Config
	host  string
	base  intent.Policy // what the whole device shares
	off   bool          // priority-flow-control all off
	noMTU []string
	mixed map[[2]int]bool // lossless priorities and other traffic classes of their queue, said already
	out   map[string]intent.Policy
	l     diag.List
}

func (l *eosLifter) say(s diag.Severity, k Key, format string, a ...any) {
	at := l.host
	if k != (Key{}) {
		at = strings.TrimPrefix(at+":"+k.String(), ":")
	}
	l.l.Add(diag.Finding{Rule: "lift", Severity: s, At: at, Msg: fmt.Sprintf(format, a...)})
}

// device reads the maps, which hold for every port.
func (l *eosLifter) device() {
	for i := range l.base.DSCP {
		l.base.DSCP[i] = l.class(Key{"", eosDSCP(i), ""}, eosDefaultTC(i))
	}
	for i := range l.base.TCQueue {
		l.base.TCQueue[i] = l.class(Key{"", eosTC(i), ""}, i)
		l.base.PFCQueue[i] = uint8(i)
	}
	if l.stands("", eosAllOff) {
		l.off = true
		l.say(diag.Warning, Key{"", eosAllOff, ""}, "PFC is off on every port of the device, whatever ports and profiles say")
	}
}

func (l *eosLifter) class(k Key, byDefault int) uint8 {
	v, ok := l.c.Find(k)
	switch {
	case !ok:
		return uint8(byDefault)
	case eosIsClass(v):
		return v[0] - '0'
	}
	l.say(diag.Warning, k, "%q is not a number from 0 to 7", v)
	return intent.Unmapped
}

// stands reports whether a line without a value is there.
func (l *eosLifter) stands(scope, line string) bool {
	v, ok := l.c.Find(Key{scope, line, ""})
	return ok && v == ""
}

// first is the value of an object in the first of the scopes that has it.
func (l *eosLifter) first(scopes []string, object, field string) (string, Key, bool) {
	for _, s := range scopes {
		k := Key{s, object, field}
		if v, ok := l.c.Find(k); ok {
			return v, k, true
		}
	}
	return "", Key{}, false
}

func (l *eosLifter) port(mode string) intent.Policy {
	scope := eosInside("", mode)
	p := l.base
	p.Known = intent.SwitchAreas
	levels := []string{scope} // the interface, then its profile
	if name, ok := l.c.Find(Key{scope, eosBinding, ""}); ok {
		if profile := eosProfileMode + name; l.stands("", profile) {
			levels = append(levels, eosInside("", profile))
		} else {
			l.say(diag.Warning, Key{scope, eosBinding, ""}, "there is no qos profile %s", name)
		}
	}
	l.mtu(scope, mode, &p)
	l.trust(levels, &p)
	pfc, _, _ := l.first(levels, eosPFC, "")
	for i := range p.Queues {
		v, _, _ := l.first(levels, eosNoDrop(i), "")
		p.Queues[i].Lossless = pfc == "on" && v == "no-drop" && !l.off
		if p.Queues[i].Lossless {
			p.TCPG[i] = uint8(i)
		}
		l.queue(levels, i, &p)
	}
	p.Pause = intent.Pause{Send: l.pause(scope, eosSend), Receive: l.pause(scope, eosReceive)}
	p.Watchdog = l.watchdog(levels)
	l.together(&p)
	return p
}

// pause reads one direction of 802.3x link pause; what is negotiated may be on.
func (l *eosLifter) pause(scope, object string) bool {
	v := l.c.Get(scope, object, "")
	return v == "on" || v == "desired"
}

// together says which traffic classes share the queue of a lossless priority: pause stops them too, and what they
// send is not lossless all the way.
func (l *eosLifter) together(p *intent.Policy) {
	for _, prio := range p.Lossless() {
		for tc, q := range p.TCQueue {
			at := [2]int{prio, tc}
			if tc == prio || q != p.TCQueue[prio] || q > 7 || l.mixed[at] {
				continue
			}
			l.mixed[at] = true
			if slices.Contains(p.DSCP[:], uint8(tc)) {
				l.say(diag.Warning, Key{"", eosTC(tc), ""}, "traffic class %d shares tx-queue %d with lossless priority %d", tc, q, prio)
			} else {
				l.say(diag.Info, Key{"", eosTC(tc), ""}, "traffic class %d shares tx-queue %d with lossless priority %d; no code point leads to it", tc, q, prio)
			}
		}
	}
}

func (l *eosLifter) mtu(scope, mode string, p *intent.Policy) {
	k := Key{scope, eosMTU, ""}
	v, ok := l.c.Find(k)
	n, err := strconv.ParseUint(v, 10, 31)
	switch {
	case !ok:
		l.noMTU = append(l.noMTU, strings.TrimPrefix(mode, eosInterfaceMode))
	case err != nil:
		l.say(diag.Warning, k, "%q is not a size in bytes", v)
	default:
		p.MTU = units.Bytes(n)
		return
	}
	p.Known &^= intent.AreaSet(intent.AreaMTU)
}

// trust: routed ports trust DSCP unless told otherwise, switched ones the CoS of the tag (not verified).
func (l *eosLifter) trust(levels []string, p *intent.Policy) {
	v, k, ok := l.first(levels, eosTrust, "")
	routed := l.stands(levels[0], "no switchport")
	switch {
	case v == "dscp" || !ok && routed:
		p.Trust = intent.TrustDSCP
	case v == "cos" || !ok:
		p.Trust = intent.TrustPCP
	case v == "no":
		p.Trust = intent.TrustNone
	default:
		l.say(diag.Warning, k, "trust %q is not known", v)
	}
}

// queue reads the queue of priority i. It is used when a line gives it a priority or a share.
func (l *eosLifter) queue(levels []string, i int, p *intent.Policy) {
	x := &p.Queues[i]
	if p.TCQueue[i] > 7 {
		return
	}
	var scopes []string
	for n, level := range levels {
		for _, word := range []string{"uc-tx-queue", "tx-queue"} {
			line := fmt.Sprintf("%s %d", word, p.TCQueue[i])
			if n == 0 || l.stands(level, line) {
				scopes = append(scopes, eosInside(level, line))
			}
		}
	}
	priority, k, scheduled := l.first(scopes, eosPriority, "")
	if scheduled && priority != "strict" && priority != "no" {
		l.say(diag.Warning, k, "priority %q is not known", priority)
	}
	x.Strict = priority == "strict"
	if v, k, ok := l.first(scopes, eosShare, ""); ok {
		n, err := strconv.ParseUint(v, 10, 8)
		if err != nil {
			l.say(diag.Warning, k, "%q is not a share in percent", v)
		}
		x.Weight = uint8(n)
		scheduled = true
	}
	l.ecn(scopes, x, p)
	x.Used = scheduled
	if (x.Used || x.ECN.On) && priority == "" {
		l.say(diag.Info, Key{scopes[len(scopes)-1], eosPriority, ""}, "neither strict nor \"no priority\": EOS's default holds, which is not certain")
	}
	for _, s := range scopes {
		x.Drop = x.Drop || l.drops(s)
	}
}

// drops reports whether a queue has a line for early drops.
func (l *eosLifter) drops(scope string) bool {
	i, _ := slices.BinarySearchFunc(l.c, Key{scope, "random-detect drop ", ""}, func(s Setting, k Key) int { return s.Key.Compare(k) })
	return i < len(l.c) && l.c[i].Key.Scope == scope && eosIsDrop(l.c[i].Key.Object)
}

// ecn reads a marking ramp. Its line is one: all fields are taken from the first scope that has any.
func (l *eosLifter) ecn(scopes []string, x *intent.Queue, p *intent.Policy) {
	i := slices.IndexFunc(scopes, func(s string) bool {
		return slices.ContainsFunc(eosCompounds[0].fields, func(f compoundField) bool {
			_, ok := l.c.Find(Key{s, eosECN, f.name})
			return ok
		})
	})
	if i < 0 {
		return
	}
	at := Key{scopes[i], eosECN, ""}
	get := func(field string) (string, bool) { return l.c.Find(Key{at.Scope, at.Object, field}) }
	x.ECN.On = true
	threshold := func(field string, to *units.Bytes) {
		v, ok := get(field)
		n, unit, _ := strings.Cut(v, " ")
		b, err := strconv.ParseUint(n, 10, 62)
		switch {
		case !ok:
			l.say(diag.Warning, at, "there is no %s", field)
		case err != nil:
			l.say(diag.Warning, at, "%s %q is not a number and a unit", field, v)
		case unit != "bytes":
			l.say(diag.Warning, at, "%s %s: the size of this unit is not known for certain; thresholds in bytes can be compared", field, v)
		default:
			*to = units.Bytes(b)
			return
		}
		p.Known &^= intent.AreaSet(intent.AreaECN)
	}
	threshold("minimum-threshold", &x.ECN.Kmin)
	threshold("maximum-threshold", &x.ECN.Kmax)
	if v, ok := get("max-mark-probability"); !ok {
		l.say(diag.Warning, at, "there is no max-mark-probability: EOS's default holds, which is not known")
		p.Known &^= intent.AreaSet(intent.AreaECN)
	} else if n, err := strconv.ParseUint(v, 10, 8); err != nil || n > 100 {
		l.say(diag.Warning, at, "max-mark-probability %q is not a percentage", v)
		p.Known &^= intent.AreaSet(intent.AreaECN)
	} else {
		x.ECN.Pmax = units.Percent(n) * units.OnePercent
	}
	switch v, ok := get("weight"); {
	case !ok:
		l.say(diag.Info, at, "no weight: whether marking follows the queue or its average is the platform's default, which is not known")
	case v != "0":
		l.say(diag.Warning, at, "weight %s: marking follows an average of the queue, weight 0 would follow the queue itself", v)
	}
	if !slices.ContainsFunc(scopes, func(s string) bool { return l.stands(s, eosCount) }) {
		l.say(diag.Info, Key{scopes[0], eosCount, ""}, "marks of this queue are not counted")
	}
}

// watchdog is on where its line stands, on the interface or in the profile. Ports without the line may be watched by
// default once the device's timers are set (not verified); they are taken as not watched.
func (l *eosLifter) watchdog(levels []string) (w intent.Watchdog) {
	v, k, on := l.first(levels, eosWatchdog, "")
	switch {
	case !on || v == "no":
		return w
	case v != "":
		l.say(diag.Warning, k, "%q is not a way to switch the watchdog", v)
		return w
	}
	w.On = true
	timer := func(field, object string) int32 {
		v, at, ok := l.first(levels, eosTimer, field)
		if !ok {
			at = Key{"", object, ""}
			if v, ok = l.c.Find(at); !ok {
				l.say(diag.Warning, k, "the watchdog is on without %q, on the port or for the device", field)
				return 0
			}
		}
		if v == "auto" && field == "polling-interval" {
			l.say(diag.Info, at, "polling-interval auto: the interval is EOS's choice")
			return 0
		}
		ms, ok := eosToMillis(v)
		if !ok {
			l.say(diag.Warning, at, "%q is not a number of seconds, in whole milliseconds", v)
		}
		return ms
	}
	w.Detect = timer("timeout", eosTimeout)
	w.Restore = timer("recovery-time", eosRecovery)
	w.Poll = timer("polling-interval", eosPolling)
	action, at, ok := l.first(levels, eosPortAct, "")
	if !ok {
		at = Key{"", eosAction, ""}
		action, ok = l.c.Find(at)
	}
	switch {
	case action == "drop":
		w.Action = intent.ActionDrop
	case !ok:
		l.say(diag.Warning, k, "the watchdog is on without an action: EOS's default holds, which takes the port down (errdisable, not verified)")
	default:
		l.say(diag.Warning, at, "watchdog action %q is none of those that the model has", action)
	}
	return w
}

// eosToMillis reads a number of seconds exactly.
func eosToMillis(s string) (int32, bool) {
	whole, frac, _ := strings.Cut(eosNormal(eosTimeout, "", s), ".")
	if !eosSeconds.MatchString(s) || len(frac) > 3 {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 31)
	return int32(n), err == nil
}
