package eos

import (
	"strconv"
	"strings"
)

// kind is a kind of configuration mode; rules list the kinds they are understood in.
type kind uint8

const (
	global kind = 1 << iota
	inInterface
	inProfile
	inQueue // a transmit queue of an interface or of a profile
	inMMU   // a memory profile of the Trident family
)

// rule is one configuration command.
//
// "@" in a pattern ends the part that names the place a line takes: "mtu @ <68-9214>" is one place whatever the
// value, and "no mtu" with or without a value empties it.
type rule struct {
	in      kind
	pattern string
	rank    int
	keepNo  bool // "no X" is a line of its own, shown; only "default X" empties the place
	hidden  bool // X itself is the default, not shown
	enters  kind // the mode that the line enters
	check   func(m *match) string
	apply   func(c *config, m *match) string // lines that are kept as something else than text
	slot    int                              // words before "@"
}

// The order of running-config.
const (
	rankHostname = iota
	rankHardware
	rankMMU
	rankMMUApply
	rankDSCP
	rankTCQueue
	rankProfile
	rankWatchdog
	rankInterface
	rankRouting
)

// rules is the configuration grammar: what Arista's published designs for RDMA fabrics use, and a little around it.
// Anything else is refused, as the real one refuses what it does not know. Where the documentation gives no range,
// the bound is a wide one.
func rules(queue string) []rule {
	ports := inInterface | inProfile
	return []rule{
		{in: global, pattern: "hostname @ NAME", rank: rankHostname, check: needsValue},
		{in: global, pattern: "ip routing @", rank: rankRouting},
		{in: global, pattern: "hardware counter feature ecn out @", rank: rankHardware},

		{in: global, pattern: "qos map dscp <0-63>... to traffic-class <0-7>", apply: mapDSCP},
		{in: global, pattern: "qos map traffic-class <0-7> to tx-queue <0-7>", apply: mapTC},
		{in: global, pattern: "qos profile NAME", rank: rankProfile, enters: inProfile},

		{in: global, pattern: "priority-flow-control all off @", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog default timeout @ <0.01-60>", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog default recovery-time @ <0.01-60>", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog default polling-interval @ <0.005-30>", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog default polling-interval @ auto", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog action @ drop|no-drop|errdisable", rank: rankWatchdog},
		{in: global, pattern: "priority-flow-control pause watchdog override action @ drop", rank: rankWatchdog},

		{in: global, pattern: "interface INTF", rank: rankInterface, enters: inInterface},
		{in: inInterface, pattern: "description @ LINE"},
		{in: inInterface, pattern: "shutdown @"},
		{in: inInterface, pattern: "mtu @ <68-9214>"},
		{in: inInterface, pattern: "flowcontrol send @ on|off|desired"},
		{in: inInterface, pattern: "flowcontrol receive @ on|off|desired"},
		{in: inInterface, pattern: "speed @ WORD"},
		{in: inInterface, pattern: "switchport @", keepNo: true, hidden: true},
		{in: inInterface, pattern: "ip address @ WORD"},
		{in: inInterface, pattern: "service-profile @ NAME", rank: 1},
		{in: ports, pattern: "qos trust @ dscp|cos", keepNo: true},

		{in: ports, pattern: queue + " <0-7>", rank: 2, enters: inQueue},
		{in: inQueue, pattern: "priority @ strict", keepNo: true},
		{in: inQueue, pattern: "bandwidth percent @ <1-100>", rank: 1},
		{in: inQueue, pattern: "bandwidth guaranteed @ <1-400000000>", rank: 1},
		{in: inQueue, pattern: "random-detect ecn @ minimum-threshold <1-256000000> UNIT maximum-threshold <1-256000000> UNIT [max-mark-probability <1-100>] [weight <0-15>]", rank: 2, check: thresholds},
		{in: inQueue, pattern: "random-detect ecn count @", rank: 3},

		{in: ports, pattern: "priority-flow-control @ on", rank: 3, keepNo: true},
		{in: ports, pattern: "priority-flow-control priority <0-7> @ no-drop|drop", rank: 4},
		{in: ports, pattern: "priority-flow-control pause watchdog @", rank: 5, keepNo: true},
		{in: ports, pattern: "priority-flow-control pause watchdog port action @ drop|notify-only|errdisable", rank: 6},
		{in: ports, pattern: "priority-flow-control pause watchdog port timer @ timeout <0.01-60> polling-interval <0.005-30> recovery-time <0.01-60> [forced]", rank: 7},
		{in: ports, pattern: "priority-flow-control pause watchdog port timer @ timeout <0.01-60> polling-interval auto recovery-time <0.01-60> [forced]", rank: 7},

		{in: global, pattern: "platform trident mmu queue profile NAME", rank: rankMMU, enters: inMMU},
		{in: global, pattern: "platform trident mmu queue profile NAME apply @", rank: rankMMUApply},
		{in: inMMU, pattern: "ingress reserved @ [bytes|cells] <0-100000000>"},
		{in: inMMU, pattern: "ingress threshold @ ALPHA"},
		{in: inMMU, pattern: "ingress headroom @ [bytes|cells] <0-100000000>"},
		{in: inMMU, pattern: "ingress resume @ <0-100000000>"},
		{in: inMMU, pattern: "ingress priority-group <0-7> reserved @ [bytes|cells] <0-100000000>", rank: 1},
		{in: inMMU, pattern: "ingress priority-group <0-7> threshold @ ALPHA", rank: 1},
		{in: inMMU, pattern: "egress unicast|multicast queue <0-7> reserved @ [bytes|cells] <0-100000000>", rank: 2},
		{in: inMMU, pattern: "egress unicast|multicast queue <0-7> threshold @ ALPHA", rank: 2},
		{in: inMMU, pattern: "egress unicast|multicast queue <0-7> drop-precedence <0-2> drop-threshold @ ALPHA", rank: 2},
	}
}

func needsValue(m *match) string {
	if m.verb != set {
		return invalid
	}
	return ""
}

// thresholds refuses a marking ramp that falls. The sentence is ours: the real one was not recorded.
func thresholds(m *match) string {
	if m.verb != set || len(m.args) < 4 {
		return ""
	}
	lo, _ := strconv.ParseInt(m.args[0], 10, 64)
	hi, _ := strconv.ParseInt(m.args[2], 10, 64)
	if m.args[1] != m.args[3] || lo > hi {
		return "% Invalid threshold: minimum " + m.args[0] + " " + m.args[1] + " is not below maximum " + m.args[2] + " " + m.args[3]
	}
	return ""
}

func mapDSCP(c *config, m *match) string {
	ds := m.args
	if m.verb == set || m.words[len(m.words)-2] == "traffic-class" {
		ds = ds[:len(ds)-1]
	}
	for _, d := range ds {
		i, _ := strconv.Atoi(d)
		c.dscp[i] = defaultClass(i)
		if m.verb == set {
			c.dscp[i] = m.args[len(m.args)-1][0] - '0'
		}
	}
	return ""
}

func mapTC(c *config, m *match) string {
	tc := m.args[0][0] - '0'
	c.tcq[tc] = tc
	if m.verb == set {
		c.tcq[tc] = m.args[1][0] - '0'
	}
	return ""
}

// grammar is the compiled rules, by the one kind of mode they are looked up in.
type grammar struct {
	in    map[kind][]variant
	ports map[string]bool // the Ethernet ports that exist
}

func newGrammar(queue string, ports []string) *grammar {
	g := &grammar{in: map[kind][]variant{}, ports: map[string]bool{}}
	for _, p := range ports {
		g.ports[p] = true
	}
	rs := rules(queue)
	for i := range rs {
		r := &rs[i]
		head, tail, _ := strings.Cut(r.pattern, "@")
		r.slot = len(strings.Fields(head))
		positive, negative := head+" "+tail, []string{head, head + " " + tail}
		if strings.TrimSpace(tail) == "" {
			negative = negative[:1]
		}
		if to := strings.Index(head, " to "); r.apply != nil && to > 0 {
			negative = append(negative, head[:to])
		}
		add := func(v verb, pattern string) {
			for _, ts := range compile(pattern) {
				for k := global; k <= inMMU; k <<= 1 {
					if r.in&k != 0 {
						g.in[k] = append(g.in[k], variant{ts, r, v})
					}
				}
			}
		}
		add(set, positive)
		for _, p := range negative {
			add(negate, "no "+p)
			add(reset, "default "+p)
		}
	}
	return g
}

// place is where a user stands in a configuration: the modes entered, outermost first.
type place struct {
	path  []string
	kinds []kind
}

// config types one line at a place. A line that the mode does not know is tried in the modes around it, which leaves
// the inner ones. The sentence is empty when the line was taken.
func (g *grammar) config(c *config, at place, in []string) (place, string) {
	for depth := len(at.path); ; depth-- {
		k := global
		if depth > 0 {
			k = at.kinds[depth-1]
		}
		m, sentence := find(g.in[k], in)
		if m != nil {
			here := place{at.path[:depth:depth], at.kinds[:depth:depth]}
			return g.apply(c, here, m)
		}
		if sentence != invalid || depth == 0 {
			return at, sentence
		}
	}
}

func (g *grammar) apply(c *config, at place, m *match) (place, string) {
	r := m.rule
	if r.check != nil {
		if s := r.check(m); s != "" {
			return at, s
		}
	}
	n := c.at(at.path)
	switch {
	case n == nil: // the mode was deleted under the user's feet
		return at, invalid
	case r.apply != nil:
		return at, r.apply(c, m)
	case r.enters != 0:
		return g.mode(n, at, m)
	}
	words := m.words
	if m.verb != set {
		words = words[1:]
	}
	slot := strings.Join(words[:r.slot], " ")
	switch {
	case m.verb == set && !r.hidden:
		n.lines[slot] = line{r.rank, m.text()}
	case m.verb == negate && r.keepNo:
		n.lines[slot] = line{r.rank, "no " + slot}
	default:
		delete(n.lines, slot)
	}
	return at, ""
}

// mode enters a mode, or removes it. Ports can be reset but not removed.
func (g *grammar) mode(n *node, at place, m *match) (place, string) {
	words := m.words
	if m.verb != set {
		words = words[1:]
	}
	header := strings.Join(words, " ")
	port, isPort := strings.CutPrefix(header, "interface ")
	if isPort && strings.HasPrefix(port, "Ethernet") && (len(g.ports) > 0 && !g.ports[port] || m.verb == negate) {
		return at, invalid
	}
	switch {
	case m.verb == set:
		if n.modes[header] == nil {
			n.modes[header] = newNode(m.rule.rank)
		}
		return place{append(at.path, header), append(at.kinds, m.rule.enters)}, ""
	case isPort && g.ports[port]:
		n.modes[header] = newNode(m.rule.rank)
	default:
		delete(n.modes, header)
	}
	return at, ""
}

// fields splits a typed line. A comment ends it, except in free text.
func fields(text string) []string {
	in := strings.Fields(text)
	if len(in) > 0 && strings.HasPrefix("description", in[0]) && len(in[0]) > 2 {
		return in
	}
	for i, w := range in {
		if strings.HasPrefix(w, "!") {
			return in[:i]
		}
	}
	return in
}
