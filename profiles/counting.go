package profiles

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Where a NIC's counters are shown.
const (
	ByEthtool = "ethtool" // ethtool -S
	ByRDMA    = "rdma"    // the hw_counters of its RDMA device: rdma statistic show
	ByDCB     = "dcb"     // dcbnl's PFC: requests are pauses sent, indications received
)

// Counting is where a driver counts what a canonical name stands for. Its text is NAME=WHERE:AS or NAME=WHERE:AS*UNIT:
// "pfc.paused_ns.{priority}=ethtool:rx_prio{priority}_pause_duration*1000".
type Counting struct {
	Name  string // canonical, with {priority} where there is one for each
	Where string // ByEthtool, ByRDMA or ByDCB
	As    string // the driver's name, with {priority} where Name has it
	Unit  uint32 // how many of the canonical unit one of the driver's is; 0 = 1
}

// CounterNames are the canonical names of what a NIC may count, with {priority} where there is one for each: those of package
// model/observe that are not of a switch alone.
func CounterNames() []string {
	each := []string{"pfc.rx", "pfc.tx", "pfc.paused_ns", "pfc.pausing_ns", "drop", "drop.in", "drop.out", "tx.packets", "tx.bytes", "rx.packets", "rx.bytes"}
	for i := range each {
		each[i] += "." + inPriority
	}
	return append(each,
		"port.tx.packets", "port.tx.bytes", "port.rx.packets", "port.rx.bytes", "port.drop.in", "port.drop.out", "port.errors", "port.oversize",
		"link-pause.rx", "link-pause.tx",
		"cnp.sent", "cnp.received", "cnp.handled", "cnp.ignored", "ecn.received",
		"rdma.out-of-seq", "rdma.nak", "rdma.timeout", "rdma.duplicate", "rdma.no-wqe", "rdma.retry-exceeded", "rdma.adaptive",
		"nic.no-buffer", "nic.pause-storm",
	)
}

var countingAs = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// ParseCounting reads the text of a Counting.
func ParseCounting(text string) (Counting, error) {
	name, from, _ := strings.Cut(text, "=")
	where, as, _ := strings.Cut(from, ":")
	as, unit, scaled := strings.Cut(as, "*")
	c := Counting{Name: name, Where: where, As: as}
	n, err := strconv.ParseUint(unit, 10, 32)
	ok := !scaled || err == nil && n > 1 && strconv.FormatUint(n, 10) == unit
	c.Unit = uint32(n)
	switch {
	case !countingAs.MatchString(strings.Replace(as, inPriority, "0", 1)) || !ok:
		return Counting{}, fmt.Errorf("%q is not a counter such as pfc.rx.{priority}=ethtool:rx_prio{priority}_pause", shorten(text))
	case !slices.Contains(CounterNames(), name):
		return Counting{}, fmt.Errorf("%q is not the name of a counter of a NIC", shorten(name))
	case !slices.Contains([]string{ByEthtool, ByRDMA, ByDCB}, where):
		return Counting{}, fmt.Errorf("%q is not where counters are shown: ethtool, rdma or dcb", shorten(where))
	case where == ByDCB && as != "requests" && as != "indications":
		return Counting{}, fmt.Errorf("dcb counts requests and indications, and no %q", shorten(as))
	case c.Each() != (strings.Contains(as, inPriority) || where == ByDCB):
		return Counting{}, fmt.Errorf("%q has {priority} on one side alone", shorten(text))
	}
	return c, nil
}

// Each reports whether there is one for each priority.
func (c Counting) Each() bool { return strings.HasSuffix(c.Name, "."+inPriority) }

// Count reads counters by their canonical names: those that want accepts, by asking get for the driver's own, of a priority
// where there is one for each, else of -1. Where several are the same counter, the first that is there counts. What get does
// not have is not in the result, and neither is what does not fit once it is in the canonical unit.
func (p Personality) Count(want func(name string) bool, get func(where, as string, priority int) (uint64, bool)) map[string]uint64 {
	out := map[string]uint64{}
	for _, c := range p.Counters {
		for priority := range 8 {
			name, as, at := c.Name, c.As, -1
			if c.Each() {
				digit := strconv.Itoa(priority)
				name, as, at = strings.Replace(name, inPriority, digit, 1), strings.Replace(as, inPriority, digit, 1), priority
			} else if priority > 0 {
				break
			}
			if _, done := out[name]; done || !want(name) {
				continue
			}
			if v, ok := get(c.Where, as, at); ok {
				if over, scaled := bits.Mul64(v, uint64(max(c.Unit, 1))); over == 0 {
					out[name] = scaled
				}
			}
		}
	}
	return out
}
