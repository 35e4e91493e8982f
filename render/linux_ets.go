package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// linuxClasses is ETS as dcbnl has it: the traffic class of each priority, and how each class is sent.
type linuxClasses struct {
	tc    [8]uint8
	tsa   [8]string // "strict", "ets", "vendor"
	share [8]int    // percent of what the strict ones leave, of those with "ets"
}

// ets asks for the traffic classes of priorities, and for their order and shares. A NIC with fewer classes than there are
// priorities gives the lossless ones and the CNPs a class each, then the others as far as classes go; the rest share the
// first with the default.
func (n *linuxNIC) ets() {
	if !n.has("ets") {
		n.cannot(intent.AreaScheduler, n.scheduled(), "", "%s has no ETS: all priorities share what is sent", n.name(n.port))
		return
	}
	var c linuxClasses
	if n.classes() == 8 || n.AppPriorityIsTC {
		c.tc = n.policy.TCQueue
		for i, tc := range c.tc {
			switch {
			case i >= n.classes(): // no code point leads there, and the driver leaves these priorities where they are
				c.tc[i] = 0
			case tc > 7: // unmapped
				c.tc[i] = uint8(i)
			}
			if int(c.tc[i]) >= n.classes() { // nothing is sent with a priority that is no class: it reads as the first
				c.tc[i] = 0
			}
		}
	} else {
		c.tc = n.packed()
	}
	link := n.port.Iface
	if n.policy.Known.Has(intent.AreaMaps) {
		n.put(linuxKey("ets", link, "prio-tc"), linuxPairs(c.tc), "trust")
	}
	if n.policy.Known.Has(intent.AreaScheduler) {
		n.schedule(&c)
		n.put(linuxKey("ets", link, "tsa"), linuxPairs(c.tsa), n.scheduled())
		n.put(linuxKey("ets", link, "bandwidth"), linuxPairs(c.share), n.scheduled())
		n.put(linuxKey("ets", link, "willing"), "off", n.scheduled())
	}
}

// scheduled is the field by which findings about all queues are placed: that of the first that the model schedules.
func (n *linuxNIC) scheduled() intent.Field {
	i := slices.IndexFunc(n.policy.Queues[:], func(q intent.Queue) bool { return q.Used })
	return intent.Field("weight." + strconv.Itoa(max(i, 0)))
}

// packed gives priorities the few traffic classes that there are.
func (n *linuxNIC) packed() [8]uint8 {
	classes, needs := n.classes(), []int{}
	var rest []int
	home := -1 // the first lossy priority, which has class 0 and shares it
	for i, q := range n.policy.Queues {
		name := n.d.Classes[i]
		switch cnp := name != "" && name == n.d.CNP; {
		case q.Lossless || cnp:
			needs = append(needs, i)
		case name == "" && !q.Used:
		case home < 0:
			home = i
		default:
			rest = append(rest, i)
		}
	}
	if len(needs) > classes-1 {
		n.cannot(intent.AreaScheduler, intent.Field("class."+strconv.Itoa(needs[classes-1])), fmt.Sprintf("let the model have at most %d lossless and CNP classes on such hosts", classes-1),
			"%s has %d traffic classes: the lossless priorities and the CNPs need %d, and the others one more", n.name(n.port), classes, len(needs))
		needs = needs[:classes-1]
	}
	own := append(slices.Clone(needs), rest[:min(len(rest), classes-1-len(needs))]...)
	if together := rest[len(own)-len(needs):]; len(together) > 0 && home >= 0 {
		n.say("not-expressible", diag.Info, n.d.Origin(n.port, n.scheduled()), "", "%s has %d traffic classes: priorities %s share one", n.name(n.port), classes, intent.Ranges(append([]int{home}, together...)))
	}
	slices.Sort(own)
	var tc [8]uint8
	for i, priority := range own {
		tc[priority] = uint8(i + 1)
	}
	return tc
}

// schedule says how each traffic class is sent, by the priorities in it.
func (n *linuxNIC) schedule(c *linuxClasses) {
	var weight [8]int
	for i := range c.tsa {
		c.tsa[i] = n.idle()
	}
	for i, q := range n.policy.Queues {
		tc := c.tc[i]
		switch {
		case !q.Used:
		case q.Strict && c.tsa[tc] != "ets":
			c.tsa[tc] = "strict"
		case !q.Strict:
			c.tsa[tc] = "ets"
			weight[tc] += max(int(q.Weight), 1)
		}
	}
	c.share = intent.Percents(weight)
	if c.share != weight {
		var was, is []string
		for i, w := range weight {
			if w > 0 {
				was, is = append(was, strconv.Itoa(w)), append(is, strconv.Itoa(c.share[i])+"%")
			}
		}
		n.say("not-expressible", diag.Info, n.d.Origin(n.port, n.scheduled()), "", "ETS has percents: the weights %s are %s on %s", strings.Join(was, ", "), strings.Join(is, ", "), n.name(n.port))
	}
}
