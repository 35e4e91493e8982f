package sim

import (
	"fmt"
	"math"

	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// sentences say what comes of a grid, and what it does not show.
func (r *GridResult) sentences() (all []string) {
	say := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	var now, fast, short *GridRow
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Packets == nil {
			continue
		}
		if x.Now {
			now = x
		}
		if x.Packets.Lossless.Mean > 0 || len(x.Packets.Ends) > 0 {
			continue
		}
		if fast == nil || x.Packets.Goodput.Mean > fast.Packets.Goodput.Mean {
			fast = x
		}
		if short == nil || x.Packets.Mean.Mean < short.Packets.Mean.Mean {
			short = x
		}
	}
	if now != nil && fast != nil {
		say("packet by packet, %s has the most goodput: %s", fast, against(fast, now, fast.Packets.Goodput, now.Packets.Goodput))
		say("packet by packet, %s has the shortest queue: %s", short, against(short, now, short.Packets.Mean, now.Packets.Mean))
	}
	if fast == nil && now != nil {
		say("every setting that was run loses packets of lossless classes, or stands still: marking is not what is wrong")
	}
	if len(r.Seeds) == 1 {
		say("one seed: how far figures are apart by chance is not known; --seeds 5 shows it")
	}
	return all
}

// String is the setting in words.
func (x *GridRow) String() string {
	s := fmt.Sprintf("kmin %s, kmax %s, pmax %s", x.Kmin, x.Kmax, x.Pmax)
	if x.Now {
		s += " (as now)"
	}
	return s
}

// against compares a figure with the one that there is now. What differs by less than twice the spread of the seeds is not told apart.
func against(x, now *GridRow, a, b GridFigure) string {
	if x == now {
		return "none is better than what there is"
	}
	if b.Mean == 0 {
		return "now there is none"
	}
	s := fmt.Sprintf("%+.1f%% against now", 100*(a.Mean-b.Mean)/b.Mean)
	if math.Abs(a.Mean-b.Mean) < 2*math.Hypot(a.SD, b.SD) {
		s += ", which is less than the seeds are apart"
	}
	return s
}

// Doubts are the doubts that some row has, in the order of the rows.
func (r *GridResult) Doubts() (all []fluid.Doubt) {
	seen := map[fluid.Doubt]bool{}
	for i := range r.Rows {
		if f := r.Rows[i].Fluid; f != nil {
			for _, d := range f.doubts {
				if !seen[d] {
					seen[d] = true
					all = append(all, d)
				}
			}
		}
	}
	return all
}
