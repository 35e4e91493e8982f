package sshcli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/observe"
)

// eosCounters are EOS's counters, as JSON: at most eight lines. Only members that published tools read are read: the ANTA
// test suite's (pause frames of a port, marks, drops of queues, discards) and Meta's switch tests (pause frames of a
// priority, the watchdog). EOS counts no time of pauses; watermarks are LANZ's, and not read. The numbers of a traffic class
// and of its queue are taken to be the same. Not tried on a switch of ours.
func eosCounters() []tally {
	return []tally{
		{
			lines:  []string{"show priority-flow-control counters detail | json"},
			counts: []observe.Name{observe.PFCRx, observe.PFCTx, observe.WatchdogStuck, observe.WatchdogFreed}, // the watchdog's are read against it
			take: func(_ int, answer string, found map[observe.Port]uint64) error {
				var doc struct {
					Interfaces map[string]struct {
						Priorities map[string]struct {
							Rx eosCount `json:"rxFrames"`
							Tx eosCount `json:"txFrames"`
						} `json:"priorities"`
					} `json:"interfaces"`
				}
				if err := eosJSON(answer, &doc); err != nil {
					return err
				}
				for port, x := range doc.Interfaces {
					for p, n := range x.Priorities {
						n.Rx.each(found, port, observe.PFCRx, p)
						n.Tx.each(found, port, observe.PFCTx, p)
					}
				}
				return nil
			},
		},
		{
			lines:  []string{"show priority-flow-control counters | json"},
			counts: []observe.Name{observe.PFCRx, observe.PFCTx},
			take: func(_ int, answer string, found map[observe.Port]uint64) error {
				var doc struct {
					Interfaces map[string]struct {
						Rx eosCount `json:"rxFrames"`
						Tx eosCount `json:"txFrames"`
					} `json:"interfaceCounters"`
				}
				if err := eosJSON(answer, &doc); err != nil {
					return err
				}
				for port, n := range doc.Interfaces {
					n.Rx.put(found, port, observe.PFCRx)
					n.Tx.put(found, port, observe.PFCTx)
				}
				return nil
			},
		},
		{
			lines:  []string{"show priority-flow-control counters watchdog | json"},
			counts: []observe.Name{observe.WatchdogStuck, observe.WatchdogFreed},
			take:   func(_ int, answer string, found map[observe.Port]uint64) error { return eosWatchdog(answer, found) },
		},
		{
			lines:  []string{"show qos interfaces ecn counters queue | json"},
			counts: []observe.Name{observe.ECNMarked},
			take: func(_ int, answer string, found map[observe.Port]uint64) error {
				var doc struct {
					Interfaces map[string]struct {
						Queues map[string]eosCount `json:"queueCounters"` // "-" where the queue is not told to count
					} `json:"intfQueueCounters"`
				}
				if err := eosJSON(answer, &doc); err != nil {
					return err
				}
				for port, x := range doc.Interfaces {
					for q, n := range x.Queues {
						n.each(found, port, observe.ECNMarked, q)
					}
				}
				return nil
			},
		},
		{
			lines:  []string{"show interfaces counters queue detail | json", "show interfaces counters queue drops | json"}, // Trident and its kin, Jericho
			counts: []observe.Name{observe.DropOut, observe.TxPackets, observe.TxBytes},
			take: func(i int, answer string, found map[observe.Port]uint64) error {
				if i == 0 {
					return eosQueues(answer, found)
				}
				return eosVirtualQueues(answer, found)
			},
		},
		{
			lines:  []string{"show interfaces counters discards | json"},
			counts: []observe.Name{observe.PortDropIn, observe.PortDropOut},
			take: func(_ int, answer string, found map[observe.Port]uint64) error {
				var doc struct {
					Interfaces map[string]struct {
						In  eosCount `json:"inDiscards"`
						Out eosCount `json:"outDiscards"`
					} `json:"interfaces"`
				}
				if err := eosJSON(answer, &doc); err != nil {
					return err
				}
				for port, n := range doc.Interfaces {
					n.In.put(found, port, observe.PortDropIn)
					n.Out.put(found, port, observe.PortDropOut)
				}
				return nil
			},
		},
		{
			lines:  []string{"show interfaces counters | json"},
			counts: []observe.Name{observe.PortRxBytes, observe.PortTxBytes},
			take: func(_ int, answer string, found map[observe.Port]uint64) error {
				var doc struct {
					Interfaces map[string]struct {
						In  eosCount `json:"inOctets"`
						Out eosCount `json:"outOctets"`
					} `json:"interfaces"`
				}
				if err := eosJSON(answer, &doc); err != nil {
					return err
				}
				for port, n := range doc.Interfaces {
					n.In.put(found, port, observe.PortRxBytes)
					n.Out.put(found, port, observe.PortTxBytes)
				}
				return nil
			},
		},
	}
}

// eosCount is a number, or text that is one. Anything else is none.
type eosCount struct {
	n  uint64
	ok bool
}

// UnmarshalJSON never fails: what is not a number of packets is no counter.
func (c *eosCount) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(b), `"`), 10, 64)
	c.n, c.ok = n, err == nil
	return nil
}

// add is the sum of two counters; what one of them does not have counts nothing, and two that have none have none.
func (c eosCount) add(o eosCount) eosCount {
	sum, carry := bits.Add64(c.n, o.n, 0)
	return eosCount{sum, (c.ok || o.ok) && carry == 0}
}

// eosIface is an interface as EOS writes its name.
var eosIface = regexp.MustCompile(`^[A-Z][A-Za-z-]{1,20}[0-9][0-9/.]{0,20}$`)

// each notes a counter of one priority of an interface.
func (c eosCount) each(found map[observe.Port]uint64, iface string, name observe.Name, priority string) {
	if len(priority) == 1 && priority[0] >= '0' && priority[0] <= '7' {
		c.put(found, iface, name.Of(int(priority[0]-'0')))
	}
}

// put notes a counter of an interface.
func (c eosCount) put(found map[observe.Port]uint64, iface string, name observe.Name) {
	if c.ok && eosIface.MatchString(iface) {
		found[observe.Port{Iface: iface, Name: name}] = c.n
	}
}

// eosJSON reads an answer.
func eosJSON(answer string, doc any) error {
	var said struct {
		Errors []string `json:"errors"`
	}
	if err := json.Unmarshal([]byte(answer), &said); err == nil && len(said.Errors) > 0 {
		return errors.New("the device says: " + said.Errors[0])
	}
	var shape *json.UnmarshalTypeError
	switch err := json.Unmarshal([]byte(answer), doc); {
	case errors.As(err, &shape):
		return fmt.Errorf("JSON %s where %s should stand", shape.Value, cmp.Or(shape.Field, "an object"))
	case err != nil:
		return errors.New("the answer is not JSON")
	}
	return nil
}

// eosWatchdog reads the events of the watchdog. A queue is listed from its first event on: a priority that has counters of
// pause frames and is not listed has had none.
func eosWatchdog(answer string, found map[observe.Port]uint64) error {
	var doc struct {
		Interfaces map[string]struct {
			Queues map[string]struct {
				Stuck eosCount `json:"stuckCount"`
				Freed eosCount `json:"recoveryCount"`
			} `json:"txQueues"`
		} `json:"interfaces"`
	}
	if err := eosJSON(answer, &doc); err != nil {
		return err
	}
	if doc.Interfaces == nil {
		return errors.New("there are no interfaces in it")
	}
	none := map[observe.Port]uint64{}
	for p := range found {
		if base, priority := p.Name.Split(); base == observe.PFCRx && priority >= 0 {
			none[observe.Port{Iface: p.Iface, Name: observe.WatchdogStuck.Of(priority)}] = 0
			none[observe.Port{Iface: p.Iface, Name: observe.WatchdogFreed.Of(priority)}] = 0
		}
	}
	for port, x := range doc.Interfaces {
		for q, n := range x.Queues {
			delete(none, observe.Port{Iface: port, Name: observe.WatchdogStuck + "." + observe.Name(q)})
			delete(none, observe.Port{Iface: port, Name: observe.WatchdogFreed + "." + observe.Name(q)})
			n.Stuck.each(found, port, observe.WatchdogStuck, q)
			n.Freed.each(found, port, observe.WatchdogFreed, q)
		}
	}
	for p := range none {
		found[p] = 0
	}
	return nil
}

// eosQueues reads unicast queues: what entered them is what they sent, but for what they hold.
func eosQueues(answer string, found map[observe.Port]uint64) error {
	var doc struct {
		Egress struct {
			Interfaces map[string]struct {
				Unicast struct {
					Classes map[string]struct {
						Precedences map[string]struct {
							Packets eosCount `json:"enqueuedPackets"`
							Bytes   eosCount `json:"enqueuedBytes"`
							Dropped eosCount `json:"droppedPackets"`
						} `json:"dropPrecedences"`
					} `json:"trafficClasses"`
				} `json:"ucastQueues"`
			} `json:"interfaces"`
		} `json:"egressQueueCounters"`
	}
	if err := eosJSON(answer, &doc); err != nil {
		return err
	}
	for port, x := range doc.Egress.Interfaces {
		for class, y := range x.Unicast.Classes {
			var packets, octets, dropped eosCount
			for _, n := range y.Precedences {
				packets, octets, dropped = packets.add(n.Packets), octets.add(n.Bytes), dropped.add(n.Dropped)
			}
			q, ok := strings.CutPrefix(class, "TC")
			if !ok {
				continue
			}
			packets.each(found, port, observe.TxPackets, q)
			octets.each(found, port, observe.TxBytes, q)
			dropped.each(found, port, observe.DropOut, q)
		}
	}
	return nil
}

// eosVirtualQueues reads what was dropped for a port before the fabric of the chip and behind it.
func eosVirtualQueues(answer string, found map[observe.Port]uint64) error {
	type sum struct {
		Sum struct {
			Dropped eosCount `json:"droppedPackets"`
		} `json:"countersSum"`
	}
	var doc struct {
		Interfaces map[string]struct {
			Classes map[string]struct {
				In  sum `json:"ingressVoqCounters"`
				Out sum `json:"egressQueueCounters"`
			} `json:"trafficClasses"`
		} `json:"interfaces"`
	}
	if err := eosJSON(answer, &doc); err != nil {
		return err
	}
	for port, x := range doc.Interfaces {
		for class, n := range x.Classes {
			if q, ok := strings.CutPrefix(class, "TC"); ok {
				n.In.Sum.Dropped.add(n.Out.Sum.Dropped).each(found, port, observe.DropOut, q)
			}
		}
	}
	return nil
}
