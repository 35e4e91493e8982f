package render

import (
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// roce asks for how connections are marked that do not say it themselves.
func (n *linuxNIC) roce() {
	r, link := n.policy.RoCE, n.port.Iface
	if !n.policy.Known.Has(intent.AreaRoCE) || !r.On {
		return
	}
	n.knob("roce.mode", linuxKey("roce", link, "mode"), "v"+strconv.Itoa(int(r.Mode)), "roce.mode")
	n.knob("roce.tos", linuxKey("roce", link, "tos"), strconv.Itoa(int(r.ToS)), "roce.tos")
	if r.TrafficClass < 0 && !n.has("roce.traffic-class") {
		return // nothing forces one
	}
	n.knob("roce.traffic-class", linuxKey("roce", link, "traffic-class"), strconv.Itoa(int(r.TrafficClass)), "roce.traffic_class")
}

// congestion asks for the NIC's congestion control and the class of its CNPs. Which algorithm runs cannot be set while
// the host runs: it is compared.
func (n *linuxNIC) congestion() {
	c, link := &n.policy.CC, n.port.Iface
	if !n.policy.Known.Has(intent.AreaCC) || !c.On {
		return
	}
	put := func(field, v string, from intent.Field) {
		k, name := linuxKey("cc", link, field), "cc."+field
		if knob, ok := n.Knob(name); ok && n.has(name) && knob.Writable() && !knob.PerPriority() {
			if _, err := knob.Encode(v); err != nil {
				n.lacks(intent.AreaCC, from, "", "%s does not take %s for %s: %v", n.name(n.port), v, linuxLabel(k), err)
				return
			}
		}
		n.knob(name, k, v, from)
	}
	switch {
	case c.Algorithm == intent.AlgorithmNotSaid:
	case n.has("cc.algorithm"):
		put("algorithm", c.Algorithm.String(), "cc.algorithm")
	default: // the linter knows what the NIC is able to run
		n.say("not-expressible", diag.Info, n.d.Origin(n.port, "cc.algorithm"), "see which runs with the vendor's tools: mlxconfig, niccli",
			"%s %s: %s does not say which congestion control it runs, so %s is not compared", n.d.Name, n.port.Name, n.name(n.port), c.Algorithm)
	}
	put("enable", n.congested(c.Priorities), "cc.priorities")
	n.cnps(c, put)
	for i, p := range profiles.CCParams() {
		if v, ok := c.Param(i); ok {
			put(p.Name, strconv.FormatUint(uint64(v), 10), intent.Field("cc."+p.Name))
		}
	}
}

// congested is on which priorities the NIC reacts; some have one switch for all.
func (n *linuxNIC) congested(priorities uint8) string {
	if k, ok := n.Knob("cc.enable"); !ok || k.PerPriority() {
		return profiles.Priorities(priorities)
	}
	if priorities == 0 {
		return "off"
	}
	return "on"
}

// cnps asks for the class of the NIC's CNPs. The model speaks of it for the fabric's sake: a NIC that chooses itself is
// warned about.
func (n *linuxNIC) cnps(c *intent.Congestion, put func(field, v string, from intent.Field)) {
	if !c.HasCNP {
		return
	}
	for _, x := range []struct {
		field string
		v     uint8
		from  intent.Field
	}{{"cnp-dscp", c.CNPDSCP, "cc.cnp_dscp"}, {"cnp-priority", c.CNPPriority, "cc.cnp_priority"}} {
		if n.has("cc." + x.field) {
			put(x.field, strconv.Itoa(int(x.v)), x.from)
			continue
		}
		severity := diag.Info
		if n.owns(intent.AreaCC) {
			severity = diag.Warning
		}
		n.say("not-expressible", severity, n.d.Origin(n.port, x.from), "see to it with the vendor's tools, or acknowledge it with what its CNPs have",
			"%s %s: %s has no knob for %s: its CNPs have what its driver or firmware chose, and are to have %d", n.d.Name, n.port.Name, n.name(n.port), linuxLabel(linuxKey("cc", "", x.field)), x.v)
	}
}
