// Package tally is what an emulated device has counted, whatever its operating system calls it.
package tally

import (
	"maps"
	"sync"

	"github.com/fabricctl/fabricctl/model/observe"
)

// Tally is counters by interface and canonical name. They are part of a device's state and under its lock, so that what it
// shows of them is of one moment. New makes one.
type Tally struct {
	mu     *sync.Mutex
	values map[observe.Port]uint64
}

// New is a tally under the lock mu, in which nothing is counted.
func New(mu *sync.Mutex) Tally { return Tally{mu: mu, values: map[observe.Port]uint64{}} }

// SetCounters replaces all that was counted. What the device's operating system or driver does not count is not shown; what
// is not given is not there, which is not zero.
func (t *Tally) SetCounters(values map[observe.Port]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.values = map[observe.Port]uint64{}
	maps.Copy(t.values, values)
}

// Counted is what was counted so far, whether it is shown or not.
func (t *Tally) Counted() map[observe.Port]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.values)
}

// AddCounters adds to what was counted; of a gauge the larger value stands.
func (t *Tally) AddCounters(values map[observe.Port]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	observe.Add(t.values, values)
}

// Value is one counter; ok is false where it is not there. The caller holds the lock.
func (t *Tally) Value(iface string, name observe.Name) (v uint64, ok bool) {
	v, ok = t.values[observe.Port{Iface: iface, Name: name}]
	return v, ok
}

// PutCounter sets one counter and leaves the others as they are. The caller holds the lock.
func (t *Tally) PutCounter(iface string, name observe.Name, v uint64) {
	t.values[observe.Port{Iface: iface, Name: name}] = v
}

// ClearCounters sets all counters to 0, as a restart does. The caller holds the lock.
func (t *Tally) ClearCounters() { observe.Clear(t.values) }
