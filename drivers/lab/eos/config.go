package eos

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// config is what a switch holds: lines by the place they take, in nested modes, and the two maps that EOS shows only
// where they differ from its defaults.
type config struct {
	root *node
	dscp [64]uint8 // traffic class of each code point
	tcq  [8]uint8  // transmit queue of each traffic class
}

// node is one mode: "interface Ethernet1/1", or the whole configuration for the root.
type node struct {
	rank  int              // where the mode stands in its parent
	lines map[string]line  // by slot: "mtu", "priority-flow-control priority 3"
	modes map[string]*node // by header: "uc-tx-queue 3"
}

type line struct {
	rank int
	text string
}

func newNode(rank int) *node {
	return &node{rank: rank, lines: map[string]line{}, modes: map[string]*node{}}
}

// factoryConfig is a switch out of the box: DSCP 0-7 in class 1 and 8-15 in class 0 (the inverted low end of EOS), the
// others in class DSCP/8, traffic class n on queue n. Ports that exist are always shown.
func factoryConfig(hostname string, ports []string) *config {
	c := &config{root: newNode(0)}
	for i := range c.dscp {
		c.dscp[i] = defaultClass(i)
	}
	for i := range c.tcq {
		c.tcq[i] = uint8(i)
	}
	c.root.lines["hostname"] = line{rankHostname, "hostname " + hostname}
	for _, p := range ports {
		c.root.modes["interface "+p] = newNode(rankInterface)
	}
	return c
}

func defaultClass(dscp int) uint8 {
	switch dscp / 8 {
	case 0:
		return 1
	case 1:
		return 0
	}
	return uint8(dscp / 8)
}

func (n *node) clone() *node {
	c := &node{rank: n.rank, lines: maps.Clone(n.lines), modes: make(map[string]*node, len(n.modes))}
	for k, m := range n.modes {
		c.modes[k] = m.clone()
	}
	return c
}

func (c *config) clone() *config {
	return &config{root: c.root.clone(), dscp: c.dscp, tcq: c.tcq}
}

// at is the node of a mode path, nil when it is not there.
func (c *config) at(path []string) *node {
	n := c.root
	for _, header := range path {
		if n = n.modes[header]; n == nil {
			return nil
		}
	}
	return n
}

// hostname is the name that prompts show.
func (c *config) hostname() string {
	return strings.TrimPrefix(c.root.lines["hostname"].text, "hostname ")
}

// text is the configuration as show running-config prints it, without its head and its final "end".
func (c *config) text() string {
	var b strings.Builder
	root := c.root.clone()
	for tc := range 8 {
		var ds []string
		for d, t := range c.dscp {
			if int(t) == tc && t != defaultClass(d) {
				ds = append(ds, strconv.Itoa(d))
			}
		}
		if len(ds) > 0 {
			s := "qos map dscp " + strings.Join(ds, " ") + " to traffic-class " + strconv.Itoa(tc)
			root.lines[s] = line{rankDSCP, s}
		}
		if int(c.tcq[tc]) != tc {
			s := "qos map traffic-class " + strconv.Itoa(tc) + " to tx-queue " + strconv.Itoa(int(c.tcq[tc]))
			root.lines[s] = line{rankTCQueue, s}
		}
	}
	root.write(&b, 0, false)
	return b.String()
}

// write prints lines and modes by rank, then name, with "!" around modes as EOS does. A queue of an interface that
// holds no line is at its defaults, and those are not shown; a queue of a profile is a thing of its own.
func (n *node) write(b *strings.Builder, depth int, inInterface bool) {
	type item struct {
		rank int
		name string
		text string
		mode *node
	}
	items := make([]item, 0, len(n.lines)+len(n.modes))
	for k, l := range n.lines {
		items = append(items, item{l.rank, k, l.text, nil})
	}
	for k, m := range n.modes {
		if inInterface && len(m.lines)+len(m.modes) == 0 {
			continue
		}
		items = append(items, item{m.rank, k, k, m})
	}
	slices.SortFunc(items, func(x, y item) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), compareNatural(x.name, y.name))
	})
	indent := strings.Repeat("   ", depth)
	afterMode := false
	for i, it := range items {
		group := depth == 0 && i > 0 && items[i-1].rank != it.rank
		if it.mode != nil && (i > 0 || depth > 0) || afterMode || group {
			b.WriteString(indent + "!\n")
		}
		b.WriteString(indent + it.text + "\n")
		if afterMode = it.mode != nil; afterMode {
			it.mode.write(b, depth+1, depth == 0 && strings.HasPrefix(it.name, "interface "))
		}
	}
}

// compareNatural orders runs of digits as numbers: Ethernet2/1 before Ethernet10/1.
func compareNatural(a, b string) int {
	number := func(s string) (int, string) {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' && i < 9 {
			i++
		}
		v, _ := strconv.Atoi(s[:i])
		return v, s[i:]
	}
	for a != "" && b != "" {
		x, ra := number(a)
		y, rb := number(b)
		if len(ra) < len(a) && len(rb) < len(b) {
			if x != y {
				return cmp.Compare(x, y)
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}
