// Package observe holds what is measured: the workload that was run, counters, and the observation of one run. A
// counter that a device does not have is absent, which is not zero.
package observe

import "time"

// Name is the canonical name of a counter: "pfc.rx.3" (frames), "ecn.marked.3" (packets), "drop.3" (packets),
// "watchdog.detected.3" (events), "mtu.dropped" (packets).
type Name string

// Port is a device's interface and one of its counters.
type Port struct {
	Iface string
	Name  Name
}

// Counters are raw counter values of one device at one time; a missing key means that the device does not have it.
type Counters struct {
	At     time.Time
	Values map[Port]uint64
}

// Get reads a counter; ok is false when the device does not have it.
func (c Counters) Get(iface string, n Name) (v uint64, ok bool) {
	v, ok = c.Values[Port{iface, n}]
	return v, ok
}

// Workload is what traffic to drive: a kind ("single", "incast", …), the class it uses, and how long.
type Workload struct {
	Kind     string
	Class    string
	Hosts    []string
	Duration time.Duration
}

// Observation is the result of one run of a workload. Pointers are nil when the quantity was not measured.
type Observation struct {
	Workload Workload
	Goodput  *float64 // bits per second, sum over flows
	P50, P99 *time.Duration
	Before   map[string]Counters // by device
	After    map[string]Counters // by device
	Notes    []string
}
