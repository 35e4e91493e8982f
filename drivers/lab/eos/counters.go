package eos

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/observe"
)

// The JSON of the commands that show counters. Members are those that published tools read of EOS 4.2x and 4.3x (the ANTA
// test suite's, among others); no answer of a switch of ours was at hand.

// counter is what was counted; name has a "*" where at stands, -1 for none. The caller holds the lock.
func (s *Switch) counter(port, name string, at int) (uint64, bool) {
	if at >= 0 {
		name = strings.Replace(name, "*", strconv.Itoa(at), 1)
	}
	return s.Value(port, observe.Name(name))
}

// fields adds what was counted of names to what EOS calls them.
func (s *Switch) fields(port string, at int, names map[string]string) map[string]any {
	out := map[string]any{}
	for field, name := range names {
		if v, ok := s.counter(port, name, at); ok {
			out[field] = v
		}
	}
	return out
}

// each is of(port) by port, without the ports of which there is nothing.
func (s *Switch) each(of func(port string) map[string]any) map[string]any {
	out := map[string]any{}
	for _, p := range s.opt.Ports {
		if m := of(p); len(m) > 0 {
			out[p] = m
		}
	}
	return out
}

// shows answers a command that shows counters. The caller holds the lock.
func (s *Switch) shows(command string, answer func() map[string]any) string {
	s.counters.Shows++
	if s.faults.Counters != nil {
		if text := s.faults.Counters(command); text != "" {
			return text
		}
	}
	if hits(s.faults.NoCounters, command) {
		return invalid
	}
	b, err := json.MarshalIndent(answer(), "", "    ")
	if err != nil {
		return fmt.Sprintf("%% %v", err)
	}
	return string(b) + "\n"
}

// counterCommands are the rows of the command table.
func counterCommands() []command {
	var out []command
	for _, c := range []struct {
		show   string
		answer func(*Switch) map[string]any
	}{
		{"show priority-flow-control counters", (*Switch).pauseFrames},
		{"show priority-flow-control counters detail", (*Switch).pauseFramesByPriority},
		{"show priority-flow-control counters watchdog", (*Switch).watchdogEvents},
		{"show qos interfaces ecn counters queue", (*Switch).marks},
		{"show interfaces counters discards", (*Switch).discards},
		{"show interfaces counters", (*Switch).octets},
	} {
		out = append(out, command{anywhere, c.show + " PIPE json", func(h *shell, _ *match) string {
			return h.sw.shows(c.show, func() map[string]any { return c.answer(h.sw) })
		}})
	}
	// What a queue dropped is shown by one command or by the other, as the chip has its queues.
	for _, c := range []struct {
		show   string
		voq    bool
		answer func(*Switch) map[string]any
	}{
		{"show interfaces counters queue detail", false, (*Switch).egressQueues},
		{"show interfaces counters queue drops", true, (*Switch).virtualQueues},
	} {
		out = append(out, command{anywhere, c.show + " PIPE json", func(h *shell, _ *match) string {
			if h.sw.opt.VirtualQueues != c.voq {
				h.sw.counters.Shows++
				return invalid
			}
			return h.sw.shows(c.show, func() map[string]any { return c.answer(h.sw) })
		}})
	}
	return out
}

// pauseFrames are those of all priorities together.
func (s *Switch) pauseFrames() map[string]any {
	return map[string]any{"interfaceCounters": s.each(func(port string) map[string]any {
		out := map[string]any{}
		for field, name := range map[string]string{"rxFrames": "pfc.rx.*", "txFrames": "pfc.tx.*"} {
			var sum uint64
			var any bool
			for p := range 8 {
				v, ok := s.counter(port, name, p)
				sum, any = sum+v, any || ok
			}
			if any {
				out[field] = sum
			}
		}
		return out
	})}
}

func (s *Switch) pauseFramesByPriority() map[string]any {
	return map[string]any{"interfaces": s.each(func(port string) map[string]any {
		priorities := map[string]any{}
		for p := range 8 {
			if m := s.fields(port, p, map[string]string{"rxFrames": "pfc.rx.*", "txFrames": "pfc.tx.*"}); len(m) > 0 {
				priorities[strconv.Itoa(p)] = m
			}
		}
		if len(priorities) == 0 {
			return nil
		}
		return map[string]any{"priorities": priorities}
	})}
}

// watchdogEvents leaves out what had none yet, as the switch does.
func (s *Switch) watchdogEvents() map[string]any {
	return map[string]any{"interfaces": s.each(func(port string) map[string]any {
		queues := map[string]any{}
		for q := range 8 {
			if v, _ := s.counter(port, "watchdog.stuck.*", q); v > 0 {
				queues[strconv.Itoa(q)] = s.fields(port, q, map[string]string{"stuckCount": "watchdog.stuck.*", "recoveryCount": "watchdog.freed.*"})
			}
		}
		if len(queues) == 0 {
			return nil
		}
		return map[string]any{"txQueues": queues}
	})}
}

// marks is text, and "-" for a queue that is not told to count them.
func (s *Switch) marks() map[string]any {
	return map[string]any{"intfQueueCounters": s.each(func(port string) map[string]any {
		queues := map[string]any{}
		for q := range 8 {
			queues[strconv.Itoa(q)] = "-"
			if v, ok := s.counter(port, "ecn.marked.*", q); ok && s.countsMarks(port, q) {
				queues[strconv.Itoa(q)] = strconv.FormatUint(v, 10)
			}
		}
		return map[string]any{"queueCounters": queues}
	})}
}

// countsMarks reports whether a queue has "random-detect ecn count", of its own or by its port's profile.
func (s *Switch) countsMarks(port string, q int) bool {
	modes := []string{"interface " + port}
	if n := s.running.at(modes); n != nil {
		if profile, ok := strings.CutPrefix(n.lines["service-profile"].text, "service-profile "); ok {
			modes = append(modes, "qos profile "+profile)
		}
	}
	for _, mode := range modes {
		n := s.running.at([]string{mode, s.opt.TxQueue + " " + strconv.Itoa(q)})
		if n == nil {
			continue
		}
		if _, ok := n.lines["random-detect ecn count"]; ok {
			return true
		}
	}
	return false
}

func (s *Switch) discards() map[string]any {
	var in, out uint64
	ports := s.each(func(port string) map[string]any {
		rx, _ := s.counter(port, "port.drop.in", -1)
		tx, _ := s.counter(port, "port.drop.out", -1)
		in, out = in+rx, out+tx
		return s.fields(port, -1, map[string]string{"inDiscards": "port.drop.in", "outDiscards": "port.drop.out"})
	})
	return map[string]any{"interfaces": ports, "inDiscardsTotal": in, "outDiscardsTotal": out}
}

func (s *Switch) octets() map[string]any {
	return map[string]any{"interfaces": s.each(func(port string) map[string]any {
		return s.fields(port, -1, map[string]string{"inOctets": "port.rx.bytes", "outOctets": "port.tx.bytes"})
	})}
}

// byClass is of(class) by "TC3".
func (s *Switch) byClass(port string, of func(tc int) map[string]any) map[string]any {
	classes := map[string]any{}
	for tc := range 8 {
		if m := of(tc); len(m) > 0 {
			classes["TC"+strconv.Itoa(tc)] = m
		}
	}
	if len(classes) == 0 {
		return nil
	}
	return map[string]any{"trafficClasses": classes}
}

func (s *Switch) egressQueues() map[string]any {
	return map[string]any{"egressQueueCounters": map[string]any{"interfaces": s.each(func(port string) map[string]any {
		classes := s.byClass(port, func(tc int) map[string]any {
			m := s.fields(port, tc, map[string]string{"enqueuedPackets": "tx.packets.*", "enqueuedBytes": "tx.bytes.*", "droppedPackets": "drop.out.*"})
			if len(m) == 0 {
				return nil
			}
			return map[string]any{"dropPrecedences": map[string]any{"DP0": m}}
		})
		if classes == nil {
			return nil
		}
		return map[string]any{"ucastQueues": classes}
	})}}
}

// virtualQueues drop before the fabric of the chip; what is dropped behind it is counted apart, and is none here.
func (s *Switch) virtualQueues() map[string]any {
	return map[string]any{"interfaces": s.each(func(port string) map[string]any {
		return s.byClass(port, func(tc int) map[string]any {
			v, ok := s.counter(port, "drop.out.*", tc)
			if !ok {
				return nil
			}
			dropped := func(n uint64) map[string]any {
				return map[string]any{"countersSum": map[string]any{"droppedPackets": n}}
			}
			return map[string]any{"ingressVoqCounters": dropped(v), "egressQueueCounters": dropped(0)}
		})
	})}
}
