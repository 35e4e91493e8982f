package observe

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Describe finds what a name stands for, with or without a priority; ok is false for one that is not canonical.
func Describe(n Name) (c Counter, ok bool) {
	base, priority := n.Split()
	c, ok = described()[base]
	return c, ok && (priority < 0 || c.Each)
}

// described is Counted by name, made once: readings have thousands of counters.
var described = sync.OnceValue(func() map[Name]Counter {
	m := map[Name]Counter{}
	for _, c := range Counted() {
		m[c.Name] = c
	}
	return m
})

// Wanted is whether a counter is among names; without names every one is.
func Wanted(names []Name) func(Name) bool {
	if len(names) == 0 {
		return func(Name) bool { return true }
	}
	set := make(map[Name]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return func(n Name) bool { return set[n] }
}

// Change is what became of the counters of one device between two readings.
type Change struct {
	Elapsed time.Duration   // between the readings, by the clock of whoever read
	Values  map[Port]uint64 // what was added; of a gauge what it is at the end
	Fell    []Fall          // counters that are less than they were: cleared, wrapped, or the device was restarted
	Gone    []Port          // counters that are not there any more
	New     []Port          // counters that were not there before: how much of their value is new is not known
}

// Fall is a counter that is less than it was.
type Fall struct {
	Port
	Before, After uint64
}

// Delta compares two readings of the same device. A counter that fell says that the counters of its interface began anew at
// some time between, so none of them is in Values: what they count since is less than what happened, and by how much
// nobody knows. Neither are counters in Values that one reading lacks.
func Delta(before, after Counters) Change {
	c := Change{Elapsed: after.At.Sub(before.At), Values: make(map[Port]uint64, len(after.Values))}
	anew := map[string]bool{}
	for p, v := range after.Values {
		was, ok := before.Values[p]
		if d, _ := Describe(p.Name); d.Gauge {
			c.Values[p] = v
			continue
		}
		switch {
		case !ok:
			c.New = append(c.New, p)
		case v < was:
			c.Fell = append(c.Fell, Fall{p, was, v})
			anew[p.Iface] = true
		default:
			c.Values[p] = v - was
		}
	}
	for p := range before.Values {
		if _, ok := after.Values[p]; !ok {
			c.Gone = append(c.Gone, p)
		}
	}
	maps.DeleteFunc(c.Values, func(p Port, _ uint64) bool {
		d, _ := Describe(p.Name)
		return anew[p.Iface] && !d.Gauge
	})
	slices.SortFunc(c.Fell, func(a, b Fall) int { return a.Compare(b.Port) })
	slices.SortFunc(c.Gone, Port.Compare)
	slices.SortFunc(c.New, Port.Compare)
	return c
}

// Get reads what was added to a counter; ok is false where that is not known.
func (c Change) Get(iface string, n Name) (v uint64, ok bool) {
	v, ok = c.Values[Port{iface, n}]
	return v, ok
}

// Notes are a sentence for each interface whose counters cannot be compared, and one where the clock went back.
func (c Change) Notes() []string {
	var out []string
	for i, f := range c.Fell {
		if i == 0 || c.Fell[i-1].Iface != f.Iface {
			out = append(out, fmt.Sprintf("the counters of %s began anew between the readings (%s fell from %d to %d): they were cleared or wrapped, or the device was restarted",
				f.Iface, f.Name, f.Before, f.After))
		}
	}
	if c.Elapsed < 0 {
		out = append(out, fmt.Sprintf("the second reading is %s older than the first: the clock was set, or they were exchanged", -c.Elapsed))
	}
	return out
}

// Compare orders by interface, then by name.
func (p Port) Compare(q Port) int {
	return cmp.Or(cmp.Compare(p.Iface, q.Iface), cmp.Compare(p.Name, q.Name))
}

// Add counts from on top of to, which is not nil: of a gauge the larger value stands.
func Add(to, from map[Port]uint64) {
	for p, v := range from {
		if d, _ := Describe(p.Name); d.Gauge {
			to[p] = max(to[p], v)
			continue
		}
		if to[p] += v; to[p] < v {
			to[p] = math.MaxUint64
		}
	}
}

// Clear sets all counters to 0, as a restart does.
func Clear(values map[Port]uint64) {
	for p := range values {
		values[p] = 0
	}
}
