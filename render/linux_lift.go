package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// linuxLifter reads the behaviour of one link.
type linuxLifter struct {
	linuxCard
	c    Config
	link string
	p    intent.Policy
	say  func(k Key, format string, a ...any)
}

// linuxLift: every link behaves as its knobs and the NCCL file say. An area is known where there is something of it, or
// where all knobs were read and there is none.
func linuxLift(c Config, f Facts) (map[string]intent.Policy, diag.List) {
	var l diag.List
	say := func(k Key, format string, a ...any) {
		l.Add(diag.Finding{Rule: "lift", Severity: diag.Warning, At: strings.TrimPrefix(f.Hostname+":"+k.String(), ":"), Msg: fmt.Sprintf(format, a...)})
	}
	nccl, devices := linuxLiftNCCL(c, say)
	memlock, limited := c.Find(linuxMemlock)
	if limited && memlock != "unlimited" {
		say(linuxMemlock, "%q is not unlimited", memlock)
	}
	linuxStrangers(devices, f, say)
	out := map[string]intent.Policy{}
	for _, s := range c {
		if s.Key.Scope == "nccl" || s.Key.Scope == "limit" {
			continue
		}
		link := s.Key.Object
		if _, done := out[link]; done {
			continue
		}
		x := linuxLifter{linuxCard: f.personality(link), c: c, link: link, say: say}
		x.p = intent.Policy{Known: intent.AreaSet(intent.AreaNCCL), NCCL: nccl}
		x.p.NCCL.HCA = nccl.On && len(devices) > 0 && (x.said == nil || slices.Contains(devices, x.device()))
		if x.said != nil && x.p.NCCL.GID == int16(x.said.GID)+1 && x.said.GID >= 0 {
			x.p.NCCL.GID = intent.GIDOfHost
		}
		x.lift(memlock == "unlimited")
		out[link] = x.p
	}
	return out, l.Sort()
}

// linuxStrangers says which RDMA devices of the NCCL file the host does not have.
func linuxStrangers(devices []string, f Facts, say func(k Key, format string, a ...any)) {
	if len(f.NICs) == 0 {
		return
	}
	for _, name := range devices {
		if !slices.ContainsFunc(f.NICs, func(n HostNIC) bool { c := linuxCard{said: &n}; return c.device() == name || n.RDMA == name }) {
			say(ncclKey(ncclHCA), "the host has no RDMA device %q", name)
		}
	}
}

// value is a knob of the link; ok is false when it has none.
func (x *linuxLifter) value(scope, field string) (v string, ok bool) {
	return x.c.Find(Key{scope, x.link, field})
}

// number reads a knob that is a number below a limit.
func (x *linuxLifter) number(scope, field string, limit uint64, set func(n uint64)) {
	v, ok := x.value(scope, field)
	if !ok {
		return
	}
	if n, ok := linuxNumber(v, limit); ok {
		set(n)
	} else {
		x.say(Key{scope, x.link, field}, "%q is not a number below %d", v, limit)
	}
}

func (x *linuxLifter) lift(memlock bool) {
	if v, ok := x.value("link", "mtu"); ok {
		if n, ok := linuxNumber(v, 1<<31); ok {
			x.p.MTU = units.Bytes(n)
			x.p.Known |= intent.AreaSet(intent.AreaMTU)
		} else {
			x.say(linuxMTU(x.link), "%q is not a size in bytes", v)
		}
	}
	x.dcb()
	x.marking()
	x.congestion()
	x.system(memlock)
}

// read reports whether knobs of these scopes were read: then those that are not there are not said, and not merely not
// known. A text that has anything of DCB is one with all knobs.
func (x *linuxLifter) read(scopes ...string) bool {
	if x.said == nil {
		return x.p.Known&linuxDCB != 0
	}
	return slices.ContainsFunc(x.said.Knobs, func(k string) bool {
		scope, _, _ := strings.Cut(k, ".")
		return slices.Contains(scopes, scope)
	})
}

// dcb reads the app table, ETS, PFC and the buffers.
func (x *linuxLifter) dcb() {
	p := &x.p
	pfc, hasPFC := x.value("pfc", "priorities")
	tsa, hasETS := x.value("ets", "tsa")
	for i := range p.TCQueue {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	if hasPFC {
		p.Known |= intent.AreaSet(intent.AreaPFC)
		bits, ok := linuxParseSet(pfc)
		if !ok {
			x.say(Key{"pfc", x.link, "priorities"}, "%q is not a list of priorities", pfc)
		}
		for i := range p.Queues {
			if bits&(1<<i) != 0 {
				p.Queues[i].Lossless, p.TCPG[i] = true, uint8(i)
			}
		}
		p.Pause = intent.Pause{Send: x.on("pause", "send"), Receive: x.on("pause", "receive")}
		x.on("pause", "autoneg")
	}
	if v, ok := x.value("ets", "prio-tc"); ok || hasETS {
		ns, ok := linuxNumbers(v, 8)
		if !ok {
			x.say(Key{"ets", x.link, "prio-tc"}, "%q does not give each priority a traffic class", v)
		}
		for i, tc := range ns {
			p.TCQueue[i], p.PFCQueue[i] = uint8(tc), uint8(tc)
		}
	}
	x.maps(hasPFC || hasETS)
	if hasETS {
		p.Known |= intent.AreaSet(intent.AreaScheduler)
		x.ets(tsa)
	}
	x.owner()
	x.buffers(hasPFC)
	if !p.Known.Has(intent.AreaMaps) { // an area that is not known is zero
		*p = p.Only(p.Known)
	}
}

func (x *linuxLifter) on(scope, field string) bool {
	v, ok := x.value(scope, field)
	if ok && v != "on" && v != "off" {
		x.say(Key{scope, x.link, field}, "%q is not on or off", v)
	}
	return v == "on"
}

// owner says who else sets DCB.
func (x *linuxLifter) owner() {
	if v, ok := x.value("dcbx", "mode"); ok && !linuxHostRules(v) {
		x.say(Key{"dcbx", x.link, "mode"}, "DCBX is in mode %s: firmware, or a daemon, sets DCB here", v)
	}
	for _, s := range x.c { // a driver has one at most
		if s.Key.Scope == "flag" && s.Key.Object == x.link && s.Value != "off" {
			x.say(s.Key, "the firmware's LLDP agent is %s: it sets DCB here", s.Value)
		}
	}
	if x.on("ets", "willing") {
		x.say(Key{"ets", x.link, "willing"}, "ETS is willing: it is the switch's where something on the host speaks DCBX")
	}
}

// ets reads how priorities are sent. A strict one that no code point leads to, where code points decide, is idle: drivers
// have no other word for it.
func (x *linuxLifter) ets(tsa string) {
	kinds, ok := linuxSplit(tsa)
	if !ok {
		x.say(Key{"ets", x.link, "tsa"}, "%q does not say how each traffic class is sent", tsa)
	}
	var share [8]uint32
	v, _ := x.value("ets", "bandwidth")
	if share, ok = linuxNumbers(v, 101); !ok {
		x.say(Key{"ets", x.link, "bandwidth"}, "%q does not give each traffic class a percentage", v)
	}
	for i := range x.p.Queues {
		q, tc := &x.p.Queues[i], x.p.TCQueue[i]
		switch kinds[tc] {
		case "strict":
			q.Used = x.p.Trust != intent.TrustDSCP || q.Lossless || slices.Contains(x.p.DSCP[:], uint8(i))
			q.Strict = q.Used
		case "ets":
			q.Used, q.Weight = true, uint8(share[tc])
		case "vendor", "":
		default:
			x.say(Key{"ets", x.link, "tsa"}, "priority %d is sent in a way that the model does not have: %s", i, kinds[tc])
		}
	}
}

// maps reads the app table. Without an entry for a code point nothing is trusted but the tag; with one, those without go
// where the driver sends them.
func (x *linuxLifter) maps(dcb bool) {
	p, some := &x.p, false
	for d := range p.DSCP {
		p.DSCP[d] = intent.Unmapped
		v, ok := x.value("app", linuxDSCP("", d).Field)
		if !ok {
			continue
		}
		some = true
		if n, ok := linuxNumber(v, 8); ok {
			p.DSCP[d] = uint8(n)
		} else {
			x.say(linuxDSCP(x.link, d), "%q is not one priority", v)
		}
	}
	switch {
	case some:
		p.Trust = intent.TrustDSCP
		for d := range p.DSCP {
			if v := x.Default(d); v != "" && p.DSCP[d] == intent.Unmapped {
				n, _ := linuxNumber(v, 8)
				p.DSCP[d] = uint8(n)
			}
		}
	case !dcb && (x.said == nil || !x.has("app")):
		return
	default:
		p.Trust = intent.TrustPCP
	}
	p.Known |= intent.AreaSet(intent.AreaMaps)
}

func (x *linuxLifter) marking() {
	mode, ok := x.value("roce", "mode")
	x.p.RoCE.TrafficClass = -1
	if ok {
		x.p.RoCE.On = true
		if mode == "v1" || mode == "v2" {
			x.p.RoCE.Mode = mode[1] - '0'
		} else {
			x.say(Key{"roce", x.link, "mode"}, "%q is not v1 or v2", mode)
		}
	}
	x.number("roce", "tos", 256, func(n uint64) { x.p.RoCE.On, x.p.RoCE.ToS = true, uint8(n) })
	if v, _ := x.value("roce", "traffic-class"); v != "-1" {
		x.number("roce", "traffic-class", 256, func(n uint64) { x.p.RoCE.On, x.p.RoCE.TrafficClass = true, int16(n) })
	}
	if !x.p.RoCE.On {
		x.p.RoCE = intent.RoCE{}
	}
	if x.p.RoCE.On || x.read("roce") {
		x.p.Known |= intent.AreaSet(intent.AreaRoCE)
	}
}

// congestion reads congestion control. A driver without a switch for each priority runs it on all of them, which counts
// where there are lossless ones.
func (x *linuxLifter) congestion() {
	cc, algorithm := &x.p.CC, false
	if v, ok := x.value("cc", "algorithm"); ok {
		algorithm = true
		if cc.Algorithm, ok = intent.ParseAlgorithm(v); !ok {
			x.say(Key{"cc", x.link, "algorithm"}, "%q is not an algorithm that the model knows", v)
		}
	}
	var all uint8
	for i, q := range x.p.Queues {
		if q.Lossless {
			all |= 1 << i
		}
	}
	if all == 0 {
		all = 0xff
	}
	switch v, ok := x.value("cc", "enable"); {
	case !ok, v == "on":
		cc.On, cc.Priorities = ok || algorithm, all
	case v == "off":
		cc.On = true
	default:
		cc.On = true
		if cc.Priorities, ok = linuxParseSet(v); !ok {
			x.say(Key{"cc", x.link, "enable"}, "%q is not a list of priorities", v)
		}
	}
	x.number("cc", "cnp-dscp", 64, func(n uint64) { cc.On, cc.HasCNP, cc.CNPDSCP = true, true, uint8(n) })
	x.number("cc", "cnp-priority", 8, func(n uint64) { cc.On, cc.HasCNP, cc.CNPPriority = true, true, uint8(n) })
	for i, p := range profiles.CCParams() {
		x.number("cc", p.Name, 1<<32-1, func(n uint64) { cc.On = true; cc.SetParam(i, uint32(n)) })
	}
	if !cc.On {
		*cc = intent.Congestion{}
	}
	if cc.On || x.read("cc") {
		x.p.Known |= intent.AreaSet(intent.AreaCC)
	}
}

func (x *linuxLifter) system(memlock bool) {
	s := &x.p.System
	s.Memlock = memlock
	defer func() {
		if *s != (intent.System{}) || x.read("pci", "irq", "ring", "fec") {
			x.p.Known |= intent.AreaSet(intent.AreaSystem)
		}
	}()
	x.number("pci", "max-read-request", 1<<16, func(n uint64) { s.ReadRequest = units.Bytes(n) })
	x.number("ring", "rx", 1<<32, func(n uint64) { s.RingRX = uint32(n) })
	x.number("ring", "tx", 1<<32, func(n uint64) { s.RingTX = uint32(n) })
	if v, ok := x.value("irq", "affinity"); ok {
		first, _, _ := strings.Cut(v, " ") // "local spread" where the host is one node
		switch first {
		case intent.IRQLocal.String():
			s.IRQ = intent.IRQLocal
		case intent.IRQSpread.String():
			s.IRQ = intent.IRQSpread
		default:
			s.IRQ = intent.IRQOther
		}
	}
	if v, ok := x.value("fec", "mode"); ok {
		if s.FEC, ok = intent.ParseFEC(v); !ok {
			x.say(Key{"fec", x.link, "mode"}, "%s is not one way of correcting errors", strconv.Quote(v))
		}
	}
}
