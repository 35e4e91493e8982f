package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// A row of more boxes than wide is folded: first pods that are alike, then devices that are. What then is still wider
// than widest becomes one box whose devices are not alike.
const (
	wide   = 16
	widest = 24
)

// plan is which devices stand in which box.
type plan struct {
	net    *intent.Net
	wires  []wire
	near   [][]int  // wires of each device
	alike  []int    // devices of the same number look alike, whatever they are named
	pods   []string // of each device; a host has that of its leaves
	single []bool   // devices with a box of their own in any case
	box    []int    // of each device, -1 for those that are not drawn
	boxes  []box
}

// box is one box of the picture: a device, or several that are alike.
type box struct {
	devices []int
	tier    int
	pod     string
	plane   string
	like    string // what its devices are like, and which has a box of its own; "" if none has
	mixed   bool   // its devices are not alike
	pods    []string
}

// fold decides on the boxes. look says what sets a device apart besides what it is and its links.
func fold(n *intent.Net, ws []wire, shown []bool, look []string, single []bool) *plan {
	p := &plan{net: n, wires: ws, near: make([][]int, len(n.Devices)), single: single, box: make([]int, len(n.Devices))}
	for i, w := range ws {
		p.near[w.low] = append(p.near[w.low], i)
		p.near[w.high] = append(p.near[w.high], i)
	}
	p.pods = p.podsOf()
	p.alike = p.refine(look)
	for i := range p.box {
		p.box[i] = -1
		if d := &n.Devices[i]; shown[i] && !d.Host {
			p.put(box{devices: []int{i}, tier: d.Tier, pod: p.pods[i], plane: d.Plane})
		}
	}
	p.hosts(shown)
	for _, step := range []func() bool{p.foldPods, p.foldAlike, p.foldRest} {
		if p.broadest() > wide && step() {
			p.compact(false)
			p.hosts(shown) // what they hang on has changed
		}
	}
	if p.foldHosts() {
		p.compact(true)
	}
	return p
}

func (p *plan) put(b box) {
	for _, i := range b.devices {
		p.box[i] = len(p.boxes)
	}
	p.boxes = append(p.boxes, b)
}

// other is the far end of a wire.
func (p *plan) other(w, device int) int {
	if p.wires[w].low == device {
		return p.wires[w].high
	}
	return p.wires[w].low
}

// podsOf is the pod of each device. A host has the one that all its leaves are in.
func (p *plan) podsOf() []string {
	pods := make([]string, len(p.net.Devices))
	for i := range p.net.Devices {
		pods[i] = p.net.Devices[i].Pod
	}
	for i := range p.net.Devices {
		if !p.net.Devices[i].Host || len(p.near[i]) == 0 {
			continue
		}
		pod := p.net.Devices[p.other(p.near[i][0], i)].Pod
		for _, w := range p.near[i] {
			if p.net.Devices[p.other(w, i)].Pod != pod {
				pod = ""
			}
		}
		pods[i] = pod
	}
	return pods
}

// refine numbers devices so that two have the same number only when they are the same but for their names, and so are
// their neighbours, and theirs: colours are refined until nothing changes any more.
func (p *plan) refine(look []string) []int {
	colours, words := map[string]int{}, make([]string, len(p.net.Devices))
	for i := range p.net.Devices {
		d := &p.net.Devices[i]
		words[i] = fmt.Sprintf("%d|%s|%s|%s|%s", d.Tier, d.Role, d.Platform, d.State, look[i])
		if p.single[i] {
			words[i] += "|" + d.Name
		}
	}
	kinds := map[strand]int{}
	for _, w := range p.wires {
		if _, ok := kinds[w.strand]; !ok {
			kinds[w.strand] = len(kinds)
		}
	}
	at := make([]int, len(words))
	for before := 0; ; {
		clear(colours)
		for i, w := range words {
			if _, ok := colours[w]; !ok {
				colours[w] = len(colours)
			}
			at[i] = colours[w]
		}
		if len(colours) == before {
			return at
		}
		before = len(colours)
		for i := range words {
			ends := make([]string, len(p.near[i]))
			for j, w := range p.near[i] {
				ends[j] = fmt.Sprintf("%d.%d.%d", kinds[p.wires[w].strand], bit(p.wires[w].low == i), at[p.other(w, i)])
			}
			slices.Sort(ends)
			words[i] = itoa(at[i]) + "|" + strings.Join(ends, " ")
		}
	}
}

// hosts puts hosts that are alike and hang on the same boxes into one.
func (p *plan) hosts(shown []bool) {
	index := map[string]int{}
	for i := range p.net.Devices {
		d := &p.net.Devices[i]
		if !d.Host || !shown[i] || p.box[i] >= 0 {
			continue
		}
		key := itoa(p.alike[i])
		on := map[int]bool{}
		for _, w := range p.near[i] {
			if b := p.box[p.other(w, i)]; b >= 0 && !on[b] {
				on[b] = true
			}
		}
		ups := make([]int, 0, len(on))
		for b := range on {
			ups = append(ups, b)
		}
		slices.Sort(ups)
		key += fmt.Sprint(ups)
		if at, ok := index[key]; ok {
			p.boxes[at].devices = append(p.boxes[at].devices, i)
			p.box[i] = at
			if p.boxes[at].pod != p.pods[i] {
				p.boxes[at].pod = ""
			}
			continue
		}
		index[key] = len(p.boxes)
		p.put(box{devices: []int{i}, tier: d.Tier, pod: p.pods[i], plane: d.Plane})
	}
}

// broadest is the number of boxes in the row that has most.
func (p *plan) broadest() int {
	n, most := map[int]int{}, 0
	for _, b := range p.boxes {
		n[b.tier]++
		most = max(most, n[b.tier])
	}
	return most
}

// foldPods leaves the first of pods that are alike, and makes the others one box.
func (p *plan) foldPods() bool {
	members := map[string][]int{}
	var names []string
	for i, pod := range p.pods {
		if pod != "" && p.box[i] >= 0 {
			if members[pod] == nil {
				names = append(names, pod)
			}
			members[pod] = append(members[pod], i)
		}
	}
	sortNames(names)
	same := map[string][]string{}
	var order []string
	for _, pod := range names {
		colours := make([]int, len(members[pod]))
		for j, i := range members[pod] {
			colours[j] = p.alike[i]
		}
		slices.Sort(colours)
		key := fmt.Sprint(colours)
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], pod)
	}
	folded := false
	for _, key := range order {
		pods := same[key]
		if len(pods) < 2 {
			continue
		}
		folded = true
		b := box{like: pods[0], pods: pods[1:], pod: pods[1]}
		for _, pod := range b.pods {
			for _, i := range members[pod] {
				b.devices = append(b.devices, i)
				b.tier = max(b.tier, p.net.Devices[i].Tier)
			}
		}
		p.put(b)
	}
	return folded
}

// group is what boxes of a row must share to become one.
type group struct {
	tier       int
	alike      int // 0 for boxes that need not be alike
	role       string
	pod, plane string
}

// foldAlike leaves the first few of switches that are alike, in rows that are too wide, and makes the others one box.
func (p *plan) foldAlike() bool {
	return p.foldRows(wide, 3, func(b box) (group, bool) {
		d := &p.net.Devices[b.devices[0]]
		return group{b.tier, 1 + p.alike[b.devices[0]], d.Role, b.pod, b.plane}, len(b.devices) == 1 && !d.Host
	})
}

// foldRest leaves some of a row of switches that is too wide and not alike, and makes the rest one box.
func (p *plan) foldRest() bool {
	return p.foldRows(widest, widest/2, func(b box) (group, bool) {
		d := &p.net.Devices[b.devices[0]]
		return group{tier: b.tier, role: d.Role}, b.pods == nil && !p.single[b.devices[0]] && !d.Host
	})
}

// foldHosts does the same to hosts.
func (p *plan) foldHosts() bool {
	return p.foldRows(widest, widest/2, func(b box) (group, bool) {
		d := &p.net.Devices[b.devices[0]]
		return group{tier: b.tier, role: d.Role}, b.pods == nil && !p.single[b.devices[0]] && d.Host
	})
}

// foldRows makes one box of the boxes of a group, except for the first keep or what there is room for, in rows of more
// than limit boxes. groupOf says which group a box is in, and whether it may be folded.
func (p *plan) foldRows(limit, keep int, groupOf func(box) (group, bool)) bool {
	count, members := map[int]int{}, map[group][]int{}
	for _, b := range p.boxes {
		count[b.tier]++
	}
	var order []group
	for i, b := range p.boxes {
		g, ok := groupOf(b)
		if !ok || count[b.tier] <= limit {
			continue
		}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], i)
	}
	kinds := map[int]int{}
	for _, g := range order {
		kinds[g.tier]++
	}
	folded := false
	for _, g := range order {
		keep := max(1, min(keep, limit/kinds[g.tier]-1))
		if len(members[g]) <= keep+1 {
			continue
		}
		folded = true
		b := box{tier: g.tier, pod: g.pod, plane: g.plane, mixed: g.alike == 0}
		if !b.mixed {
			b.like = p.net.Devices[p.boxes[members[g][0]].devices[0]].Name
		}
		for _, i := range members[g][keep:] {
			b.devices = append(b.devices, p.boxes[i].devices...)
		}
		p.put(b)
	}
	return folded
}

// compact drops the boxes that nothing is in any more, and those of hosts unless they are to be kept.
func (p *plan) compact(hosts bool) {
	old, at := p.boxes, p.box
	p.boxes, p.box = nil, make([]int, len(at))
	for i := range p.box {
		p.box[i] = -1
	}
	for j, b := range old {
		b.devices = slices.DeleteFunc(slices.Clone(b.devices), func(i int) bool { return at[i] != j })
		if len(b.devices) > 0 && (hosts || b.pods != nil || !p.net.Devices[b.devices[0]].Host) {
			p.put(b)
		}
	}
}
