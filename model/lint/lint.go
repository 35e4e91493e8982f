// Package lint judges an intent.Net: the agreement that a fabric needs to be lossless, as a table of rules. The same
// rules judge what a model asks for (Resolve), what devices hold (Lift and Join) and every state in between (Mix).
//
// A rule is a file with a row in Rules and a page in pages/. It looks at what is known and not ignored, it lets only
// active devices and ports fail (what is planned or in maintenance is info), and it reports causes, not ports: one
// finding for a value that is wrong on forty ports, with the position of the value to change.
package lint

import (
	"cmp"
	"embed"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// Rule is one row of the table.
type Rule struct {
	ID       string        // lower case, part of the output that users and pipelines rely on
	Title    string        // one line, what has to hold
	Severity diag.Severity // of a finding on active ports
	Areas    intent.Areas  // what its errors are about; none for rules of the document alone, which no area softens
	Run      func(*Pass)   // reports through the Pass
}

// Rules is the table, sorted by ID.
func Rules() []Rule {
	return []Rule{
		arpComplete,
		bdgAcyclic, bondSame, border, bufferSum, cableUnknown, ccAlgorithm, ccOnLossless, chainConsistent, cnpClass, cnpDSCPNIC, dscpTotal, ecnBeforePFC, ecnBeforePFCWorst, ecnDCTCP, ecnExpressible,
		ecnGranularity, ecnKmaxBelowPFC, ecnNeverMarks, ecnOnLossless, ecnOrder, ecnSame, ecnScale, headroomAlphaSame, headroomEffect,
		headroomPhys, headroomStd, headroomSum, hostMapping, incastFirst, losslessProtected, marking, mtuPath,
		mtuRoCE, ncclGID, ncclModel, ncclPatience, nicBuffer, nicSubnet, oversubscription, pfcNotGlobalPause, pfcPrioCount, pfcSymmetry, pmaxSufficient, railSubnet, roceMarking, sharedPort, sharedPriority,
		trustDSCP, unevenUplinks, watchdogGtPause, watchdogOn, watchdogSet, wredOnLossless, xonBelowXoff, xonNoUnderrun,
	}
}

// Check runs all rules over n. f is the model that n belongs to, and nil when there is none; it lets hints and
// positions be more exact. Acknowledgements are not applied: that is Fabric.Acknowledge, over all findings together.
// Check is linear in the number of ports, and neither n nor f is changed.
func Check(n *intent.Net, f *model.Fabric) diag.List { return check(n, f, Rules()) }

// CheckOf is Check with those rules alone whose errors are about some of the areas: what an edit of nothing else can break.
func CheckOf(areas intent.Areas, n *intent.Net, f *model.Fabric) diag.List {
	return check(n, f, slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Areas&areas == 0 }))
}

func check(n *intent.Net, f *model.Fabric, rules []Rule) diag.List {
	whole := newPass(n, f)
	found := make([]diag.List, len(rules))
	var next atomic.Int32
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxPasses) {
		wg.Go(func() {
			p := *whole
			for i := int(next.Add(1)) - 1; i < len(rules); i = int(next.Add(1)) - 1 {
				p.rule, p.found = rules[i], nil
				p.rule.Run(&p)
				found[i] = p.found
			}
		})
	}
	wg.Wait()
	var l diag.List
	for _, x := range found {
		l.Add(x...)
	}
	return l.Sort()
}

// maxPasses is how many rules run at the same time. What several rules ask is found once by each pass, so that more of
// them do more work.
const maxPasses = 4

// Weigh makes an error of a rule a warning as long as the model owns none of the rule's areas on any port of n. Nothing
// is written from such an area, and the fabric may run like that already; from the first port that owns one of them on,
// the error is one everywhere, since the agreement is the whole fabric's. Findings of other sources, and of rules about
// the document alone, stay as they are.
func Weigh(n *intent.Net, l diag.List) diag.List {
	var owned intent.Areas
	for i := range n.Devices {
		for j := range n.Devices[i].Ports {
			owned |= n.Devices[i].Ports[j].Manage.Owned()
		}
	}
	about := map[string]intent.Areas{}
	for _, r := range Rules() {
		about[r.ID] = r.Areas
	}
	l = slices.Clone(l)
	for i := range l {
		if a := about[l[i].Rule]; l[i].Severity == diag.Error && a != 0 && a&owned == 0 {
			l[i].Severity = diag.Warning
			l[i].Msg += "; an error once " + strings.Join(a.Names(), " or ") + " is owned"
		}
	}
	return l
}

//go:embed pages/*.md
var pages embed.FS

// Page is the rule's page as Markdown: why, source, an example that fails and one that passes.
func Page(id string) (string, bool) {
	if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == id }) {
		return "", false
	}
	b, err := pages.ReadFile("pages/" + id + ".md")
	return string(b), err == nil
}

// Pass is one run of one rule.
type Pass struct {
	Net    *intent.Net
	Fabric *model.Fabric // nil when there is no model
	Places []Place       // by device, in order of the Net
	Links  []Link        // each link once

	rule   Rule
	found  diag.List
	groups pauses // what pauses has found
	asked  answers
}

// Place is all ports of one device that are alike for a rule: same policy, override site, role, state, ownership, NIC,
// load, speed, cable and share of a physical port. Port is the first of them.
type Place struct {
	Device *intent.Device
	Port   *intent.Port
	Policy *intent.Policy
	Ports  int  // how many ports
	Linked bool // the port has a peer in the Net
	Active bool // device and port are active
}

// Knows reports whether a rule may look at area a here: the source speaks about it, and nobody said to ignore it.
func (pl Place) Knows(a intent.Area) bool {
	return pl.Policy.Known.Has(a) && pl.Port.Manage[a] != intent.Ignore
}

// Origin is where the value of field came from; nil when nobody knows.
func (pl Place) Origin(field intent.Field) *model.Origin {
	return pl.Device.Origin(pl.Port, field)
}

// String is device:port.
func (pl Place) String() string { return pl.Device.Name + ":" + cmp.Or(pl.Port.Name, pl.Port.Iface) }

// Link is both ends of a link that the Net has.
type Link struct{ A, B Place }

// hostLinks yields the links that hosts send RDMA over, each with the host's end first.
func (p *Pass) hostLinks(yield func(host, leaf Place) bool) {
	for _, l := range p.Links {
		host, leaf := l.A, l.B
		if leaf.Device.Host {
			host, leaf = leaf, host
		}
		if host.Device.Host && !leaf.Device.Host && rdma(host.Port) && !yield(host, leaf) {
			return
		}
	}
}

func newPass(n *intent.Net, f *model.Fabric) *Pass {
	p := &Pass{Net: n, Fabric: f}
	known := make(map[string]bool, len(n.Devices))
	for i := range n.Devices {
		known[n.Devices[i].Name] = true
	}
	var all []Place
	for i := range n.Devices {
		all = p.addDevice(&n.Devices[i], known, all)
	}
	p.addLinks(all)
	return p
}

// addDevice adds the places of d to p, and each of its ports to all.
func (p *Pass) addDevice(d *intent.Device, known map[string]bool, all []Place) []Place {
	type alike struct {
		policy int32
		site   string
		role   string
		state  intent.State
		manage intent.Manage
		linked bool
		nic    string
		loads  model.Carries
		speed  units.BitRate
		cable  units.Length
		split  int
	}
	index := map[alike]int{}
	for i := range d.Ports {
		port := &d.Ports[i]
		if d.State == intent.Absent || port.State == intent.Absent || port.Role == "unused" {
			continue
		}
		pl := Place{
			Device: d, Port: port, Policy: d.PolicyOf(port), Ports: 1, Linked: known[port.Peer],
			Active: d.State == intent.Active && port.State == intent.Active,
		}
		all = append(all, pl)
		k := alike{port.Policy, port.Site, port.Role, port.State, port.Manage, pl.Linked, port.NIC, port.Carries, port.Speed, port.Cable, port.Breakout}
		if at, ok := index[k]; ok {
			p.Places[at].Ports++
			continue
		}
		index[k] = len(p.Places)
		p.Places = append(p.Places, pl)
	}
	return all
}

// addLinks pairs up ports that name each other; the end whose name comes first is A.
func (p *Pass) addLinks(all []Place) {
	type end struct{ device, port string }
	index := make(map[end]int, len(all))
	for i, pl := range all {
		index[end{pl.Device.Name, pl.Port.Name}] = i
	}
	for i, a := range all {
		j, ok := index[end{a.Port.Peer, a.Port.PeerPort}]
		if ok && i < j && all[j].Port.Peer == a.Device.Name && all[j].Port.PeerPort == a.Port.Name {
			p.Links = append(p.Links, Link{a, all[j]})
		}
	}
}
