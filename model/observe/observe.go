// Package observe holds what is measured: the workload that was run, counters, and the observation of one run. A
// counter that a device does not have is absent, which is not zero.
package observe

import (
	"time"
)

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

// Observation is the result of one run of a workload, whoever ran it: the simulator, or real hosts. Pointers are nil when
// the quantity was not measured.
type Observation struct {
	Workload Workload
	Goodput  *float64           // bits per second of payload, sum over flows
	Parts    map[string]float64 // the same of each part of the workload, by its label
	Fairness *float64           // Jain's index over the endless flows of the first part that has some, 1/n to 1

	// Times of the parts that measure latency (probes, latency tests), or else completion times of flows of a known size.
	P50, P99, P999 *time.Duration
	Latency        []Bucket // the same times, counted; those of several runs are added, never averaged

	Before map[string]Counters // by device
	After  map[string]Counters // by device
	Notes  []string            // what a reader of the numbers has to know
	Digest string              // SHA-256 of what the runner has kept of the run, in hex; "" = nothing
}

// Bucket is how many values were at least From and below the next bucket's.
type Bucket struct {
	From  time.Duration
	Count uint64
}
