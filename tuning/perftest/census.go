package perftest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// census is what devices have counted while a run took place.
type census struct {
	plan   *Plan
	pairs  []*ready
	rates  []float64                 // of each pair, bits per second of payload, both directions where there are two
	change map[string]observe.Change // by device
}

// Shares from which counters say something.
const (
	countedShare = 0.5  // of what was measured has to be counted at all: else counters are older than the run
	classShare   = 0.9  // of what was measured has to be counted with the class
	pausingShare = 0.01 // of the time a host may stop its switch
	pausingRate  = 100  // frames in a second, where no time is counted: one stops a link of 100 Gbit/s for 0.3 ms at most
)

// sender is what one NIC has to have sent.
type sender struct {
	end    End
	to     []End
	bytes  [8]float64 // of payload, by priority
	labels [8]string  // "DSCP 26 of class training"
}

// senders are the NICs that send, in the order of the pairs.
func (c *census) senders() (out []*sender) {
	for i, p := range c.pairs {
		if p.Latency {
			continue
		}
		ways := p.data()
		for _, way := range ways {
			j := slices.IndexFunc(out, func(s *sender) bool { return s.end == way[0] })
			if j < 0 {
				j = len(out)
				out = append(out, &sender{end: way[0]})
			}
			s := out[j]
			s.to = append(s.to, way[1])
			if p.Priority >= 0 && p.Priority < 8 {
				s.bytes[p.Priority] += c.rates[i] / float64(len(ways)) / 8 * c.plan.Duration.Seconds()
				s.labels[p.Priority] = fmt.Sprintf("DSCP %d of class %s", p.ToS>>2, p.Class)
			}
		}
	}
	return out
}

// wrongClass is the rejection of a run whose bytes went by another priority than that of their class: what the sender's NIC has sent says so, or where it
// does not count by priority, what its switch has received from it. Who cannot be judged is said to note.
func (c *census) wrongClass(note func(string)) *Rejection {
	for _, s := range c.senders() {
		at := s.end.Host
		sent, ok := c.byPriority(at, s.end.Iface, observe.TxBytes)
		if !ok || !enough(sent, s.bytes) {
			if by, known := c.byPriority(s.end.Switch, s.end.SwitchIface, observe.RxBytes); known {
				sent, ok, at = by, true, s.end.Switch
			}
		}
		switch {
		case !ok:
			note(fmt.Sprintf("which class carried what %s sent is not known: neither it nor its switch counts by priority", s.end.Host))
			continue
		case !enough(sent, s.bytes):
			note(fmt.Sprintf("which class carried what %s sent is not known: the counters of %s are older than the run", s.end.Host, at))
			continue
		}
		for p, want := range s.bytes {
			if want == 0 || sent[p] >= classShare*want {
				continue
			}
			most := 0
			for q := range sent {
				if sent[q] > sent[most] {
					most = q
				}
			}
			return &Rejection{Class, fmt.Sprintf("%s has counted %s of %s with priority %d, where %s belongs, and %s with priority %d: look at the host's map from DSCP to priority, and at what its driver forces",
				at, amount(sent[p]), s.end.Host, p, s.labels[p], amount(sent[most]), most), false}
		}
	}
	return nil
}

func amount(bytes float64) units.Bytes { return units.Bytes(bytes) }

// enough reports whether all that was counted is most of what has to be there.
func enough(sent, want [8]float64) bool {
	var a, b float64
	for p := range sent {
		a, b = a+sent[p], b+want[p]
	}
	return a >= countedShare*b
}

// byPriority is what an interface has counted of each priority; ok is false where it counts none.
func (c *census) byPriority(device, iface string, n observe.Name) (out [8]float64, ok bool) {
	change, known := c.change[device]
	if !known || iface == "" {
		return out, false
	}
	for p := range out {
		if v, counted := change.Get(iface, n.Of(p)); counted {
			out[p], ok = float64(v), true
		}
	}
	return out, ok
}

// slowHost is the rejection of a run in which a receiver was what limited it: it has stopped its switch, or had no room for what arrived.
func (c *census) slowHost() *Rejection {
	span := c.plan.Duration + 2*c.plan.Margin
	for _, p := range c.pairs {
		for _, way := range p.data() {
			e := way[1]
			change, ok := c.change[e.Host]
			if !ok {
				continue
			}
			var why []string
			if ns, ok := change.Get(e.Iface, observe.PFCPausing.Of(p.Priority)); ok {
				if share := float64(ns) / float64(span); share > pausingShare {
					why = append(why, fmt.Sprintf("it has stopped its switch for %.1f%% of the time", 100*share))
				}
			} else if frames, ok := change.Get(e.Iface, observe.PFCTx.Of(p.Priority)); ok && float64(frames) > pausingRate*span.Seconds() {
				why = append(why, fmt.Sprintf("it has sent %d pauses in %s", frames, span.Round(time.Second)))
			}
			if n, ok := change.Get(e.Iface, observe.NoBuffer); ok && n > 0 {
				why = append(why, fmt.Sprintf("its NIC had no buffer for %d packets", n))
			}
			if n, ok := change.Get(e.Iface, observe.NoReceiveWQE); ok && n > 0 {
				why = append(why, fmt.Sprintf("%d packets found no receive posted", n))
			}
			if len(why) > 0 {
				return &Rejection{Host, fmt.Sprintf("%s, which receives, was the bottleneck: %s", e.Host, strings.Join(why, ", ")), true}
			}
		}
	}
	return nil
}
