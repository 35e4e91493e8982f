package picture

import (
	"cmp"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Distances in pixels.
const (
	boxGap   = 18
	blockGap = 46 // between pods
)

// spot is where a box stands: the middle of its upper edge, and its size.
type spot struct{ x, y, w, h int }

// row is the boxes of a tier, from left to right.
type row struct {
	tier  int
	boxes []int
}

// block is a part of the picture that is laid out by itself: a pod, or what no pod has.
type block struct {
	pod  string
	rows []row // the highest first
	w    int
}

// layout places boxes from left to right. w has their widths, and the result their middles, with the width of all.
func (p *plan) layout(w []int) (xs []int, width int) {
	xs = make([]int, len(p.boxes))
	blocks, shared := p.blocks()
	near := p.boxNeighbours()
	for i := range blocks {
		b := &blocks[i]
		b.w = p.arrange(b.rows, xs, w, near)
		for _, r := range b.rows {
			for _, j := range r.boxes {
				xs[j] += width
			}
		}
		width += b.w + blockGap
	}
	width -= blockGap
	done := map[int]bool{}
	for _, b := range blocks {
		for _, r := range b.rows {
			for _, j := range r.boxes {
				done[j] = true
			}
		}
	}
	slices.Reverse(shared) // from the pods upwards
	for _, r := range shared {
		place(r.boxes, xs, w, wishes(r.boxes, xs, near, done, width/2))
		for _, j := range r.boxes {
			done[j] = true
		}
	}
	return settle(xs, w)
}

// settle moves everything so that the leftmost edge is at 0.
func settle(xs, w []int) ([]int, int) {
	left, right := 0, 0
	for i, x := range xs {
		if l := x - w[i]/2; i == 0 || l < left {
			left = l
		}
		if r := x + (w[i]+1)/2; i == 0 || r > right {
			right = r
		}
	}
	for i := range xs {
		xs[i] -= left
	}
	return xs, right - left
}

// blocks divides the boxes into pods, and rows that no pod has a part in, both from top to bottom.
func (p *plan) blocks() (blocks []block, shared []row) {
	inPod := map[int]bool{} // tiers
	for _, b := range p.boxes {
		if b.pod != "" {
			inPod[b.tier] = true
		}
	}
	rows, common := map[string]map[int][]int{}, map[int][]int{}
	for i, b := range p.boxes {
		if len(inPod) > 0 && !inPod[b.tier] {
			common[b.tier] = append(common[b.tier], i)
			continue
		}
		if rows[b.pod] == nil {
			rows[b.pod] = map[int][]int{}
			blocks = append(blocks, block{pod: b.pod})
		}
		rows[b.pod][b.tier] = append(rows[b.pod][b.tier], i)
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(bit(a.pod == "")-bit(b.pod == ""), intent.CompareNames(a.pod, b.pod))
	})
	for i := range blocks {
		blocks[i].rows = p.sorted(rows[blocks[i].pod])
	}
	return blocks, p.sorted(common)
}

// sorted puts rows in order, and their boxes by plane and name.
func (p *plan) sorted(tiers map[int][]int) []row {
	var rows []row
	for tier, boxes := range tiers {
		slices.SortFunc(boxes, func(a, b int) int {
			x, y := p.boxes[a], p.boxes[b]
			return cmp.Or(
				intent.CompareNames(x.plane, y.plane), bit(x.mixed)-bit(y.mixed),
				intent.CompareNames(p.net.Devices[x.devices[0]].Name, p.net.Devices[y.devices[0]].Name),
			)
		})
		rows = append(rows, row{tier, boxes})
	}
	slices.SortFunc(rows, func(a, b row) int { return b.tier - a.tier })
	return rows
}

// boxNeighbours are the boxes that each box is linked to.
func (p *plan) boxNeighbours() [][]int {
	near := make([][]int, len(p.boxes))
	for _, w := range p.wires {
		a, b := p.box[w.low], p.box[w.high]
		if a >= 0 && b >= 0 && a != b && !slices.Contains(near[a], b) {
			near[a] = append(near[a], b)
			near[b] = append(near[b], a)
		}
	}
	return near
}

// arrange places the rows of a block: the broadest evenly, the others as near as they can be to what they are linked to.
// The result is the block's width, whose left edge is at 0.
func (p *plan) arrange(rows []row, xs, w []int, near [][]int) int {
	breadth := func(r row) int {
		sum := -boxGap
		for _, j := range r.boxes {
			sum += w[j] + boxGap
		}
		return sum
	}
	// Boxes of hosts stand below their switches, in the order of those.
	order := make([]int, len(p.boxes))
	for _, r := range rows {
		if r.tier > 0 {
			for k, j := range r.boxes {
				order[j] = 1000 * (2*k + 1) / len(r.boxes)
			}
		}
	}
	for _, r := range rows {
		if r.tier == 0 {
			slices.SortStableFunc(r.boxes, func(a, b int) int { return average(near[a], order) - average(near[b], order) })
		}
	}
	first := 0
	for i, r := range rows {
		if breadth(r) > breadth(rows[first]) {
			first = i
		}
	}
	at := 0
	done := map[int]bool{}
	for _, j := range rows[first].boxes {
		xs[j] = at + w[j]/2
		at += w[j] + boxGap
		done[j] = true
	}
	width := breadth(rows[first])
	step := func(r row) {
		place(r.boxes, xs, w, wishes(r.boxes, xs, near, done, width/2))
		for _, j := range r.boxes {
			done[j] = true
		}
	}
	for i := first - 1; i >= 0; i-- {
		step(rows[i])
	}
	for i := first + 1; i < len(rows); i++ {
		step(rows[i])
	}
	left, right := 0, width
	for _, r := range rows {
		for _, j := range r.boxes {
			left, right = min(left, xs[j]-w[j]/2), max(right, xs[j]+(w[j]+1)/2)
		}
	}
	for _, r := range rows {
		for _, j := range r.boxes {
			xs[j] -= left
		}
	}
	return right - left
}

func average(at, values []int) int {
	sum := 0
	for _, i := range at {
		sum += values[i]
	}
	return sum / max(len(at), 1)
}

// wishes is where boxes would like to be: in the middle of what they are linked to and stands already.
func wishes(boxes, xs []int, near [][]int, done map[int]bool, otherwise int) []int {
	ws := make([]int, len(boxes))
	for k, j := range boxes {
		var at []int
		for _, b := range near[j] {
			if done[b] {
				at = append(at, b)
			}
		}
		ws[k] = otherwise
		if len(at) > 0 {
			ws[k] = average(at, xs)
		}
	}
	return ws
}

// place puts boxes side by side, as near as they can be to where they would like to be: the places with the smallest sum
// of squared distances that keep order and gaps. Neighbours that want to be too close are pooled, and their middle stands
// where it is best for all of them (pool adjacent violators: Barlow et al., Statistical Inference under Order
// Restrictions, 1972).
func place(boxes, xs, w, wish []int) {
	type pool struct{ sum, n, from int } // of wishes less offsets
	offset := make([]int, len(boxes))
	var pools []pool
	for k, j := range boxes {
		if k > 0 {
			offset[k] = offset[k-1] + (w[boxes[k-1]]+1)/2 + boxGap + (w[j]+1)/2
		}
		pools = append(pools, pool{wish[k] - offset[k], 1, k})
		for len(pools) > 1 {
			a, b := pools[len(pools)-2], pools[len(pools)-1]
			if a.sum*b.n < b.sum*a.n {
				break
			}
			pools = append(pools[:len(pools)-2], pool{a.sum + b.sum, a.n + b.n, a.from})
		}
	}
	for i, q := range pools {
		to := len(boxes)
		if i+1 < len(pools) {
			to = pools[i+1].from
		}
		for k := q.from; k < to; k++ {
			xs[boxes[k]] = floorDiv(q.sum, q.n) + offset[k]
		}
	}
}

// floorDiv is a/b rounded down, so that what is the same distance to the left and to the right is rounded the same way.
func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}
