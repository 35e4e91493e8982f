// Package fluid solves DCQCN and the queues that it fills as differential equations: flows are rates, queues are levels,
// and marks are probabilities. It answers in milliseconds where a load comes to rest, whether it comes to rest at all, and
// how long that takes, which is what a grid of settings is screened by before package engine moves packets for the few that
// are left.
//
// Two kinds of reaction points are known. The equations as published are those of one whose timer cuts the rate each tau if there were
// marks since its last tick; where NICs cut at notifications that keep a distance of tau, use Model.Spaced, which is ours.
//
// What it cannot see it says (Doubt): single packets, the burst of those who start at line rate, pauses, paths that collide,
// and lost packets. Three questions have answers of their own: Solve follows a load through time, RestOf finds its point of
// rest and how far that is from swinging, and PauseCycle is what PFC does alone, without DCQCN. Screen asks the first two of
// many settings and ranks them.
//
// The equations are those of Zhu, Ghobadi, Misra, Padhye: ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY,
// CoNEXT'16, sections 3.1 and 3.2, with rates in packets per second; "eq. 5" in this package is equation 5 there. All is pure.
package fluid

import (
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
)

// Model is a load on links that may be too slow for it.
type Model struct {
	DCQCN   derive.DCQCN  // of every sender; a ByteCounter of 0 means that time alone raises rates
	Spaced  bool          // each notification cuts, and comes a CNPInterval after the last: NICs. Else as published: a timer cuts if marks came since its last tick
	Gain    float64       // g, the weight of a new mark in alpha: 1/256 in the paper
	MinRate units.BitRate // below which no cut goes; it is at least a packet a second
	Links   []Link
	Flows   []Flow
}

// Link is a queue in front of a wire.
type Link struct {
	Speed units.BitRate
	Ramp  derive.Ramp // above Kmax all is marked
	Queue units.Bytes // that stands in it at the start
	Pause units.Bytes // at which PFC would stop its senders; 0 = never. With n of them, n times the threshold of one
}

// Flow is senders that are alike and move as one.
type Flow struct {
	Count    int            // of them
	Path     []int          // links, in the order in which they are crossed, which is ascending
	Line     units.BitRate  // of the NIC, which no rate exceeds
	Rate     units.BitRate  // at the start; 0 = Line
	Target   units.BitRate  // at the start; 0 = Rate
	Alpha    float64        // at the start; 0 = 1
	Start    units.Duration // when it begins to send
	Feedback units.Duration // from the mark, which is made when a packet leaves the queue, to the reaction of its sender: tau*
}

// Equal is the load that the theory is about: n senders with the link's speed on one link.
func Equal(d derive.DCQCN, n int, l Link, feedback units.Duration) Model {
	return Model{DCQCN: d, Gain: 1. / 256, Links: []Link{l}, Flows: []Flow{{Count: n, Path: []int{0}, Line: l.Speed, Feedback: feedback}}}
}

// longest is the longest feedback time: what is on its way is remembered step by step.
const longest = units.Second

// validate says what makes no sense.
func (m Model) validate() error {
	d := m.DCQCN
	switch {
	case d.CNPInterval <= 0 || d.AlphaTimer <= 0 || d.RateTimer <= 0 || d.ByteCounter < 0 || d.Recovery <= 0 || d.Increase <= 0 || d.Packet <= 0:
		return fmt.Errorf("parameters of DCQCN must be above zero: %+v", d)
	case !(m.Gain > 0 && m.Gain < 1):
		return fmt.Errorf("a gain of %v is not between 0 and 1", m.Gain)
	case m.MinRate < 0:
		return fmt.Errorf("a least rate of %s is below zero", m.MinRate)
	case len(m.Links) == 0 || len(m.Flows) == 0:
		return errors.New("no links or no flows")
	}
	for i, l := range m.Links {
		if err := l.validate(); err != nil {
			return fmt.Errorf("link %d: %w", i, err)
		}
	}
	for i, f := range m.Flows {
		if err := f.validate(len(m.Links)); err != nil {
			return fmt.Errorf("flow %d: %w", i, err)
		}
	}
	return nil
}

func (l Link) validate() error {
	switch r := l.Ramp; {
	case l.Speed <= 0:
		return fmt.Errorf("a speed of %s", l.Speed)
	case r.Kmin < 0 || r.Kmax < r.Kmin:
		return fmt.Errorf("a ramp from %s to %s", r.Kmin, r.Kmax)
	case r.Pmax < 0 || r.Pmax > 100*units.OnePercent:
		return fmt.Errorf("a marking probability of %s", r.Pmax)
	case l.Queue < 0 || l.Pause < 0:
		return fmt.Errorf("a queue of %s, pauses at %s", l.Queue, l.Pause)
	}
	return nil
}

func (f Flow) validate(links int) error {
	switch {
	case f.Count <= 0:
		return fmt.Errorf("%d senders", f.Count)
	case f.Line <= 0 || f.Rate < 0 || f.Rate > f.Line || f.Target < 0 || f.Target > f.Line:
		return fmt.Errorf("rate %s and target %s, of a line of %s", f.Rate, f.Target, f.Line)
	case !(f.Alpha >= 0 && f.Alpha <= 1):
		return fmt.Errorf("an alpha of %v", f.Alpha)
	case f.Start < 0 || f.Feedback < 0 || f.Feedback > longest:
		return fmt.Errorf("a start at %s, feedback after %s: at most %s", f.Start, f.Feedback, longest)
	case len(f.Path) == 0:
		return errors.New("it crosses no link")
	}
	for i, l := range f.Path {
		if l < 0 || l >= links {
			return fmt.Errorf("link %d of %d", l, links)
		}
		if i > 0 && l <= f.Path[i-1] {
			return fmt.Errorf("link %d after link %d: links are numbered in the order of the traffic", l, f.Path[i-1])
		}
	}
	return nil
}
