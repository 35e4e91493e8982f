package infer

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// draft is a model in the making.
type draft struct {
	net     *intent.Net
	roles   []string // of devices, from the top of the fabric down
	ports   []vote   // of switches that count: known to do something, and not unused
	nics    []vote   // of hosts that were read
	classes []class  // in the order in which they are written
	nccl    intent.NCCL

	ncclWhole bool // hosts tell all of their NCCL files

	mtu     placement[units.Bytes] // of switches
	hostMTU placement[units.Bytes] // of hosts
	words   placement[nicWords]    // of hosts
	ecn     [8]placement[intent.ECN]
	buffers [8]placement[intent.Buffer] // of lossless classes; zero where the device makes them
	shares  placement[[8]uint8]
	weights bool // shares are relative weights: somewhere they add up to more than 100
	dog     placement[intent.Watchdog]
	mtuSeen bool // some switch port told its MTU
	nicSeen bool // some host did

	undo   map[int]func(rule string) // by line of the text: takes an override of a device or port back
	broken map[string]string         // by device: the rule that an override would break
	found  *diag.List

	suggested []Suggestion
}

// vote is one port that has a say in what the model is.
type vote struct {
	dev  *intent.Device
	port *intent.Port
	pol  *intent.Policy
}

// class is one class of the model.
type class struct {
	name     string
	guess    string // why the name or role is a guess, "" if it is none
	priority uint8
	dscp     []int // empty for rest
	rest     bool
	cnp      bool
	lossless bool
	used     bool // it has a scheduler
	strict   bool
}

func draftOf(n *intent.Net, found *diag.List) *draft {
	d := &draft{net: n, found: found, broken: map[string]string{}}
	for i := range n.Devices {
		dev := &n.Devices[i]
		if !slices.Contains(d.roles, dev.Role) {
			d.roles = append(d.roles, dev.Role)
		}
		for j := range dev.Ports {
			v := vote{dev, &dev.Ports[j], dev.PolicyOf(&dev.Ports[j])}
			switch {
			case v.pol.Known == 0 || v.port.Role == "unused":
			case dev.Host:
				d.nics = append(d.nics, v)
			default:
				d.ports = append(d.ports, v)
			}
		}
	}
	slices.SortFunc(d.roles, roleOrder)
	d.findClasses()
	d.findNCCL()
	return d
}

// majority is what most of the votes say, and how many do; of two that are equally common the one that is met first.
func majority[V comparable](votes []vote, says func(vote) (V, bool)) (most V, n, of int) {
	counts := map[V]int{}
	var order []V
	for _, v := range votes {
		x, ok := says(v)
		if !ok {
			continue
		}
		if counts[x] == 0 {
			order = append(order, x)
		}
		counts[x]++
		of++
	}
	for _, x := range order {
		if counts[x] > n {
			most, n = x, counts[x]
		}
	}
	return most, n, of
}

// inside leaves out border ports, where lossless ends by their role.
func inside(votes []vote) []vote {
	return slices.DeleteFunc(slices.Clone(votes), func(v vote) bool { return v.port.Role == "border" })
}

// scheduling is how a queue is served, without its share.
type scheduling struct{ used, strict bool }

// findClasses makes a class of each priority that a code point leads to on most ports.
func (d *draft) findClasses() {
	dscp, _, voted := majority(d.ports, func(v vote) ([64]uint8, bool) {
		return v.pol.DSCP, v.pol.Known.Has(intent.AreaMaps)
	})
	if voted == 0 {
		for i := range dscp {
			dscp[i] = intent.Unmapped
		}
	}
	var points [8][]int
	for p, tc := range dscp {
		if tc < 8 {
			points[tc] = append(points[tc], p)
		}
	}
	rest := 0
	for prio := range points {
		if len(points[prio]) > len(points[rest]) {
			rest = prio
		}
	}
	if len(points[rest]) == 0 {
		d.found.Add(diag.Finding{
			Rule: "no-maps", Severity: diag.Warning, Msg: "no port maps code points to traffic classes: the model has one class for all of them",
			Hint: "add the classes that the fabric is to have",
		})
	}
	for prio := range points {
		c := class{priority: uint8(prio), dscp: points[prio], rest: prio == rest}
		c.lossless, _, _ = majority(inside(d.ports), func(v vote) (bool, bool) {
			return v.pol.Queues[prio].Lossless, v.pol.Known.Has(intent.AreaPFC)
		})
		s, _, _ := majority(d.ports, func(v vote) (scheduling, bool) {
			return scheduling{v.pol.Queues[prio].Used, v.pol.Queues[prio].Strict}, v.pol.Known.Has(intent.AreaScheduler)
		})
		c.used, c.strict = s.used, s.strict
		if len(c.dscp) > 0 || c.rest {
			d.classes = append(d.classes, c)
		} else {
			d.unreached(prio, c)
		}
	}
	d.nameClasses()
	slices.SortStableFunc(d.classes, func(a, b class) int {
		rank := func(c class) int {
			switch {
			case c.rest:
				return 2
			case c.lossless:
				return 0
			}
			return 1
		}
		return cmp.Or(rank(a)-rank(b), int(a.priority)-int(b.priority))
	})
}

// unreached says that a priority is set up, but no code point leads to it: a model's classes are what traffic marks.
func (d *draft) unreached(prio int, c class) {
	marks, _, _ := majority(d.ports, func(v vote) (bool, bool) { return v.pol.Queues[prio].ECN.On, v.pol.Known.Has(intent.AreaECN) })
	var what []string
	for _, x := range []struct {
		is   bool
		word string
	}{{c.lossless, "lossless"}, {c.used, "scheduled"}, {marks, "marked"}} {
		if x.is {
			what = append(what, x.word)
		}
	}
	if len(what) == 0 {
		return
	}
	f := diag.Finding{
		Rule: "priority-without-traffic", Severity: diag.Info,
		Msg:  fmt.Sprintf("priority %d is %s on most ports, but no code point leads to it: the model does not name it, and so it is never written", prio, join(what)),
		Hint: "give it a class with its code points if traffic comes there another way",
	}
	if c.lossless {
		f.Severity = diag.Warning
	}
	d.found.Add(f)
}

func join(words []string) string {
	if len(words) < 2 {
		return words[0]
	}
	return fmt.Sprintf("%s and %s", words[0], words[1])
}

// cnpPoint is the code point of congestion notifications unless somebody chose another: the NICs' default.
const cnpPoint = 48

// nameClasses finds the class of congestion notifications and gives the classes names.
func (d *draft) nameClasses() {
	at := slices.IndexFunc(d.classes, func(c class) bool { return slices.Contains(c.dscp, cnpPoint) })
	why := fmt.Sprintf("a guess: code point %d is the NICs' default for notifications", cnpPoint)
	if at < 0 || d.classes[at].lossless {
		at = slices.IndexFunc(d.classes, func(c class) bool { return c.strict && !c.lossless })
		why = "a guess: it is strict, and not lossless"
	}
	if at < 0 {
		at = slices.IndexFunc(d.classes, func(c class) bool { return c.rest })
		why = "a guess: nothing tells where notifications go"
	}
	d.classes[at].cnp, d.classes[at].guess = true, why
	for i := range d.classes {
		switch c := &d.classes[i]; {
		case c.rest:
			c.name = "default"
		case c.cnp && c.strict:
			c.name = "cnp"
		case c.lossless:
			c.name = fmt.Sprintf("lossless-%d", c.priority)
		default:
			c.name = fmt.Sprintf("class-%d", c.priority)
		}
	}
	c := d.classes[at]
	f := diag.Finding{Rule: "class-guess", Severity: diag.Info, Msg: fmt.Sprintf("class %s (priority %d) has role: cnp; %s", c.name, c.priority, why), Hint: "say which class carries notifications, and give the classes names that mean something"}
	if c.rest {
		f.Severity, f.Hint = diag.Warning, "give notifications a class of their own, strict and not lossless"
		f.Msg = "no class is for congestion notifications alone: the model has them in class default; " + why
	}
	d.found.Add(f)
}

// findNCCL is what most hosts that have an NCCL file tell it, if its traffic class is one of a class of the model.
func (d *draft) findNCCL() {
	n, _, _ := majority(d.nics, func(v vote) (intent.NCCL, bool) { return v.pol.NCCL, v.pol.Known.Has(intent.AreaNCCL) && v.pol.NCCL.On })
	if !n.On {
		return
	}
	d.ncclWhole = slices.ContainsFunc(d.nics, func(v vote) bool { return v.pol.Known.Has(intent.AreaRoCE) })
	for i := range d.classes {
		c := &d.classes[i]
		if at := slices.Index(c.dscp, int(n.TrafficClass>>2)); at >= 0 && !c.rest {
			c.dscp = append([]int{c.dscp[at]}, slices.Delete(slices.Clone(c.dscp), at, at+1)...) // NCCL uses the first one
			d.nccl = n
		}
	}
}
