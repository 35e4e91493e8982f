package model

import (
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/profiles"
)

// knobParts are the parts of a knob of a personality.
func knobParts() []field {
	var parts []field
	for _, f := range profiles.KnobFields() {
		part := field{key: f.Key, doc: f.Doc}
		if f.List {
			part.list = &field{key: f.Noun, scalar: factScalar(f)}
		} else {
			part.scalar = factScalar(f)
		}
		parts = append(parts, part)
	}
	return parts
}

// readKnob reads a knob. What makes it unusable or unsafe is reported, all of it, and then there is no knob.
func readKnob(f profiles.Field, n *node, found *diag.List) (profiles.Fact, bool) {
	if n == nil || hasBad(n) {
		return profiles.Fact{}, false
	}
	fact := profiles.Fact{Key: f.Key, Pos: n.pos(), Source: text(n.get("source")).V, Confidence: text(n.get("confidence")).V}
	parts := map[string][]string{}
	for _, part := range profiles.KnobFields() {
		v := n.get(part.Key)
		switch {
		case v == nil:
		case v.shape == listNode:
			parts[part.Key] = []string{}
			for _, item := range v.list() {
				parts[part.Key] = append(parts[part.Key], item.text)
			}
		default:
			parts[part.Key] = []string{v.text}
		}
	}
	k, err := profiles.KnobOf(parts)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			found.Errorf("profile", n.pos(), "docs/hardware.md says what a knob may be", "personality.%s: %s", f.Key, strings.TrimSpace(line))
		}
		return profiles.Fact{}, false
	}
	fact.Values = []string{k.String()}
	return fact, true
}

// runScalar is code points with the priority that they have.
func runScalar() *scalar {
	const code, priority = `([0-9]|[1-5][0-9]|6[0-3])`, `[0-7]`
	return &scalar{noun: "code points and a priority such as 24-31:3", schema: textSchema(code + "(-" + code + ")?:" + priority), parse: func(s string) (string, *problem) {
		if err := profiles.CheckRun(s); err != nil {
			return "", &problem{"value", "is not code points and a priority", "write them as 24-31:3, or 26:3 for one"}
		}
		return s, nil
	}}
}

// countScalar is where a counter is.
func countScalar() *scalar {
	schema := textSchema(`[a-z._-]+(\{priority\})?=(ethtool|rdma|dcb):[A-Za-z0-9_.{}-]{1,64}(\*[1-9][0-9]{0,9})?`)
	return &scalar{noun: "counter such as pfc.rx.{priority}=ethtool:rx_prio{priority}_pause", schema: schema, parse: func(s string) (string, *problem) {
		if _, err := profiles.ParseCounting(s); err != nil {
			hint := "write NAME=WHERE:AS, such as cnp.sent=rdma:np_cnp_sent; *1000 at the end makes microseconds nanoseconds; docs/counters.md has the names"
			name, _, _ := strings.Cut(s, "=")
			if meant := didYouMean(name, profiles.CounterNames()); meant != "" && !slices.Contains(profiles.CounterNames(), name) {
				hint = meant
			}
			return "", &problem{"value", "is not where a counter is: " + err.Error(), hint}
		}
		return s, nil
	}}
}

// boundScalar is a bound of versions.
func boundScalar() *scalar {
	const part = `([0-9]{1,9}|\*)`
	return &scalar{noun: "bound of versions such as >= 24.10", schema: textSchema("(<=|>=|<|>|=) ?" + part + "([.-]" + part + ")*"), parse: func(s string) (string, *problem) {
		if err := profiles.CheckBound(s); err != nil {
			return "", &problem{"value", "is not a bound of versions", "write >= 24.10, or < *.43 where the first part may be anything"}
		}
		return s, nil
	}}
}

// unfitting reports what a personality or a row of the matrix lacks or says against itself.
func unfitting(cat *profiles.Catalog, h hardware, section *node, found *diag.List) {
	if h.kind == profiles.KindCompat {
		if !section.has("nics") && !section.has("drivers") {
			if e, _ := cat.Entry(h.kind, h.name); !about(e) {
				found.Errorf("profile", section.pos(), "add nics or drivers: a row about every NIC would judge all", "the row %s does not say which NICs it is about", h.name)
			}
		}
		for _, n := range section.get("nics").list() {
			if _, ok := cat.NIC(n.text); !ok {
				found.Errorf("profile", n.pos(), didYouMean(n.text, cat.NamesOf(profiles.KindNIC))+" (or describe it in a Profile with a nic section)", "unknown NIC %q", clip(n.text))
			}
		}
		return
	}
	p, ok := cat.PersonalityNamed(h.name)
	switch {
	case !ok || h.kind != profiles.KindPersonality || h.name == profiles.Generic:
	case len(p.Drivers)+len(p.PCI) == 0:
		found.Errorf("profile", section.pos(), "add drivers: [NAME], as in /sys/class/net/NETDEV/device/driver, or pci: [\"vendor:device\"]", "the personality %s fits no NIC", h.name)
	case p.Status != "" && p.Status != profiles.Managed && p.Why == "":
		found.Errorf("profile", section.pos(), "add why: one sentence that a person reads who wants to own it", "the personality %s is %s and does not say why", h.name, p.Status)
	}
	if p.AppPriorityIsTC && p.TrafficClasses == 0 {
		found.Errorf("profile", section.get("app_priority_is_tc").pos(), "add traffic_classes", "the personality %s maps to traffic classes and does not say how many there are", h.name)
	}
}

// about reports whether a row of the matrix says which NICs it is about.
func about(e profiles.Entry) bool {
	_, nics := e.Fact("nics")
	_, drivers := e.Fact("drivers")
	return nics || drivers
}
