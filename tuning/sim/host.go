package sim

import (
	"fmt"
	"net/netip"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// What is assumed of transport where no source says more: an acknowledgement for so many packets, no second NAK for a hole
// within this, and the time-out of perftest (4.096 us * 2^14).
const (
	ackEvery       = 4
	nakGap         = 500 * engine.Microsecond
	usualTimeout   = 14
	timeoutUnit    = 4096 * engine.Nanosecond
	longestTimeout = 31
)

// nicsBuilt makes the NICs, and what all connections have in common.
func (b *builder) nicsBuilt() {
	cfg := b.Config
	cfg.NICs = make([]engine.NIC, len(b.nics))
	ip := ipv4Header
	timeout := uint8(0)
	for i := range b.nics {
		x := &b.ports[b.nics[i].port]
		c := &cfg.NICs[i]
		c.Port = b.nics[i].port
		c.Address = 10<<24 | uint32(i+1)
		if a, err := netip.ParsePrefix(x.port.IP); err == nil {
			if a.Addr().Is4() {
				v4 := a.Addr().As4()
				c.Address = uint32(v4[0])<<24 | uint32(v4[1])<<16 | uint32(v4[2])<<8 | uint32(v4[3])
			} else {
				ip = ipv6Header
			}
		}
		if n := x.pol.NCCL; n.On {
			timeout = max(timeout, n.Timeout)
		}
		b.notices(i)
		b.react(i)
	}
	header := int32(etherHeader + ip + roceHeader)
	if timeout == 0 {
		timeout = usualTimeout
	}
	cfg.Overhead = frameOverhead
	cfg.Transport = engine.Transport{
		AckSize: max(header+aethHeader, smallestFrame), CNPSize: max(header+cnpPayload, smallestFrame), PauseSize: pauseFrame,
		Header: header, AckEvery: ackEvery, RTO: timeoutUnit << min(timeout, longestTimeout), NackGap: nakGap,
	}
	b.assume.say(fmt.Sprintf("an acknowledgement for %d packets, a time-out of %s", ackEvery, lasting(toDuration(cfg.Transport.RTO))), "")
}

// catalog is where the NICs of a host are described.
func (b *builder) catalog(d *intent.Device) *profiles.Catalog {
	if d.Catalog != nil {
		return d.Catalog
	}
	c, _ := profiles.Default() // an error is one of the built-in data, which is tested
	return c
}

// adapter is what is known of a port's NIC.
func (b *builder) adapter(x *port) profiles.NIC {
	if c := b.catalog(x.dev); c != nil && x.port.NIC != "" {
		n, _ := c.NIC(x.port.NIC)
		return n
	}
	return profiles.NIC{}
}

// usualCNP is the code point of congestion notifications of most adapters.
const usualCNP = 48

// notices sets up how a NIC notifies senders of congestion.
func (b *builder) notices(i int) {
	x, c := &b.ports[b.nics[i].port], &b.Config.NICs[i]
	dscp := uint8(usualCNP)
	switch n := b.adapter(x); {
	case x.pol.CC.On && x.pol.CC.HasCNP:
		dscp = x.pol.CC.CNPDSCP & 63
	case n.DefaultCNPDSCP.OK:
		dscp = n.DefaultCNPDSCP.V
		b.assume.say(fmt.Sprintf("notifications with dscp %d, as %s sends them unless told otherwise", dscp, n.Name), b.name(c.Port))
	default:
		b.assume.say(fmt.Sprintf("notifications with dscp %d where the NIC does not say", dscp), b.name(c.Port))
	}
	c.CNPMark = b.mark(dscp, false)
	c.CNPClass = int8(queueOf(&x.pol, b.sentAs(x, dscp)))
	if x.pol.CC.On && x.pol.CC.HasCNP {
		c.CNPClass = int8(queueOf(&x.pol, int(x.pol.CC.CNPPriority&7)))
	}
}

// sentAs is the traffic class from which a NIC sends packets with a code point. Where it does not trust them, the priority of a
// connection is the upper bits of its ToS byte.
func (b *builder) sentAs(x *port, dscp uint8) int {
	if x.pol.Trust == intent.TrustPCP {
		return int(dscp >> 3)
	}
	return classOf(&x.pol, dscp)
}

// markKey is what a packet says that switches look at: its code point, and whether its ends know congestion marks.
type markKey struct {
	dscp    uint8
	capable bool
}

// mark is the engine's number of a code point, which all ports are told what to do with.
func (b *builder) mark(dscp uint8, capable bool) int8 {
	key := markKey{dscp, capable}
	if m, ok := b.markOf[key]; ok {
		return m
	}
	if len(b.marks) == engine.NumMarks {
		b.found.Errorf("sim-code-points", diag.Pos{}, fmt.Sprintf("use at most %d in one run", engine.NumMarks),
			"dscp %d is one more kind of packet than the %d that a run tells apart: code points, with congestion control and without, notifications included", dscp, engine.NumMarks)
		return 0
	}
	m := int8(len(b.marks))
	b.marks = append(b.marks, dscp)
	b.markOf[key] = m
	if !capable {
		b.Config.NotECT |= 1 << m
	}
	for i := range b.ports {
		pol := &b.ports[i].pol
		tc := classOf(pol, dscp)
		b.Config.Ports[i].Classify[m] = engine.Class{Group: int8(groupOf(pol, tc)), Queue: int8(queueOf(pol, tc))}
	}
	return m
}

// mlx5 are the parameters of adapters with the mlx5 driver for which nothing is said, by the names of profiles.CCParams: what
// mlxconfig shows of a ConnectX-6 where that is a matter of time, and for the rates what simulations of these adapters use
// (HPCC, SIGCOMM'19), where the steps grow with the speed of the link, from 25 Gbit/s, and no byte counter is on. The
// smallest rate is ours.
func mlx5(name string, speed int64) int64 {
	const base = int64(25 * units.Gbps)
	switch name {
	case "time_reset":
		return 300
	case "threshold":
		return 1
	case "ai_rate":
		return max(5*speed/base, 1)
	case "hai_rate":
		return max(50*speed/base, 1)
	case "min_rate":
		return 100
	case "dce_tcp_g":
		return 1019
	case "dce_tcp_rtt":
		return 1
	case "rate_reduce_monitor_period":
		return 4
	case "min_time_between_cnps":
		return 4
	}
	return 0
}

// controlled reports whether congestion control is on at a NIC for packets with a code point.
func (b *builder) controlled(x *port, dscp uint8) bool {
	cc := &x.pol.CC
	return !x.pol.Known.Has(intent.AreaCC) || !cc.On || cc.Priorities&(1<<b.sentAs(x, dscp)) != 0
}

// react sets up how a NIC's flows react to notifications.
func (b *builder) react(i int) {
	x, c := &b.ports[b.nics[i].port], &b.Config.NICs[i]
	where := b.name(c.Port)
	cc := &x.pol.CC
	if x.pol.Known.Has(intent.AreaCC) && cc.On && cc.Priorities == 0 {
		return
	}
	if !x.pol.Known.Has(intent.AreaCC) || !cc.On {
		b.assume.say("congestion control on, for all priorities, where a NIC does not say", where)
	}
	if cc.Algorithm != intent.AlgorithmDCQCN && cc.Algorithm != intent.AlgorithmNotSaid {
		b.assume.say(fmt.Sprintf("DCQCN in place of %s, which is not simulated", cc.Algorithm), where)
	}
	family := b.adapter(x).CCFamily
	if family == "" && x.port.NIC == "" {
		family = "mlx5"
		b.assume.say("congestion control as on adapters with the mlx5 driver where no NIC is named", where)
	}
	if family != "mlx5" {
		b.paper(c)
		b.assume.say("the parameters of the DCQCN paper where the adapter's own are not public", where)
		return
	}
	said, speed := true, b.Config.Ports[c.Port].Rate
	get := func(name string) int64 {
		if n, ok := cc.Param(profiles.CCIndex(name)); ok {
			return int64(n)
		}
		said = false
		return mlx5(name, speed)
	}
	us := func(name string) engine.Time { return engine.Time(get(name)) * engine.Microsecond }
	mbps := func(name string) int64 { return get(name) * int64(units.Mbps) }
	c.CNPGap = us("min_time_between_cnps")
	c.React = engine.Reaction{
		On: true, AlphaTimer: max(us("dce_tcp_rtt"), engine.Microsecond), CutTimer: max(us("rate_reduce_monitor_period"), engine.Microsecond),
		RateTimer: max(us("time_reset"), engine.Microsecond), ByteCounter: get("byte_reset"), FastRecovery: int(get("threshold")),
		G: float64(1024-get("dce_tcp_g")) / 1024, AI: mbps("ai_rate"), HAI: mbps("hai_rate"), MinRate: min(max(mbps("min_rate"), int64(units.Mbps)), speed),
		ClampTarget: get("clamp_tgt_rate") != 0,
	}
	if !said {
		b.assume.say(fmt.Sprintf("steps of %dMbps and %dMbps, a lowest rate of %s and no byte counter at %s where parameters of congestion control are not said",
			mlx5("ai_rate", speed), mlx5("hai_rate", speed), units.BitRate(c.React.MinRate), units.BitRate(speed)), where)
	}
	for _, name := range []string{"max_rate", "rate_to_set_on_first_cnp"} {
		if n, ok := cc.Param(profiles.CCIndex(name)); ok && n != 0 {
			b.assume.say(name+" has no effect here: it is not simulated", where)
		}
	}
}

// What the paper does not give: the hyper increase, and the lowest rate.
const (
	paperHAI = 200 * units.Mbps
	paperMin = 10 * units.Mbps
)

// paper gives a NIC the parameters of the DCQCN paper, see derive.PaperDCQCN.
func (b *builder) paper(c *engine.NIC) {
	p := derive.PaperDCQCN()
	c.CNPGap = toTime(p.CNPInterval)
	c.React = engine.Reaction{
		On: true, CutOnCNP: true, AlphaTimer: toTime(p.AlphaTimer), CutTimer: toTime(p.CNPInterval), RateTimer: toTime(p.RateTimer),
		ByteCounter: int64(p.ByteCounter), FastRecovery: p.Recovery, G: 1.0 / 256, AI: int64(p.Increase), HAI: int64(paperHAI), MinRate: int64(paperMin),
	}
}

// slowBuffer is what a slow or storming NIC keeps of each priority unless its fault says so.
const slowBuffer = units.MB

// breakNICs gives NICs their faults.
func (b *builder) breakNICs() {
	for _, f := range b.options.Faults {
		if f.Kind == Down {
			continue
		}
		hit := false
		for _, n := range b.nicsOf[b.at[f.Device]] {
			x, c := &b.ports[b.nics[n].port], &b.Config.NICs[n]
			if f.Port != "" && x.port != x.dev.Port(f.Port) {
				continue
			}
			hit = true
			var lossless uint8
			for p := range x.pol.Queues {
				if x.pol.Queues[p].Lossless {
					lossless |= 1 << p
				}
			}
			if f.Kind == Slow {
				keep := int64(f.Buffer)
				if keep == 0 {
					keep = int64(slowBuffer)
				}
				c.Drain, c.Buffer, c.Xoff, c.Xon = int64(f.Rate), keep, keep/2, keep/4
				continue
			}
			s := engine.Storm{From: toTime(f.From), To: toTime(f.To), Priorities: f.Priorities}
			if s.To == 0 {
				s.To = endless
			}
			if s.Priorities == 0 {
				s.Priorities = lossless
			}
			c.Storms = append(c.Storms, s)
			if c.Buffer == 0 {
				c.Buffer = int64(slowBuffer) // for what is on its way until its pauses are obeyed
			}
		}
		if !hit {
			b.found.Errorf("sim-fault", diag.Pos{}, "name a host with an active link", "fault %s: %s has no NIC there", f, f.Device)
		}
	}
}
