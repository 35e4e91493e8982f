package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Counting asks Live for counters too.
type Counting struct {
	During time.Duration // between two readings, of which the difference is told; 0 = one reading, as the counters stand
}

// Counters are what a device has counted on the interfaces of the model, by canonical names.
type Counters struct {
	At         time.Time      `json:"at,omitzero"`             // of the last reading
	During     string         `json:"during,omitempty"`        // time between two readings, whose difference the values are
	Interfaces []Counted      `json:"interfaces,omitempty"`    // in the order of the model
	Lacks      []observe.Name `json:"not_available,omitempty"` // what a device of this kind may count, and none of these interfaces does
	Notes      []string       `json:"notes,omitempty"`         // what a reader of the numbers has to know
	Error      string         `json:"error,omitempty"`         // why there are none
}

// Counted is one interface.
type Counted struct {
	Iface  string                  `json:"iface"`
	Port   string                  `json:"port"` // of the model
	Values map[observe.Name]uint64 `json:"values"`
}

// counted is what was read of a device.
type counted struct {
	at     time.Time
	during time.Duration
	values map[observe.Port]uint64
	notes  []string
	err    error
}

// count reads counters: what they hold, or what was added between two readings.
func count(ctx context.Context, dev *drivers.View, o Counting) (c counted) {
	first, err := dev.Sense(ctx, nil)
	if err != nil || o.During <= 0 {
		return counted{at: first.At, values: first.Values, err: err}
	}
	if err := wait(ctx, o.During); err != nil {
		return counted{err: fmt.Errorf("waiting for the second reading: %w", err)}
	}
	second, err := dev.Sense(ctx, nil)
	if err != nil {
		return counted{err: fmt.Errorf("second reading: %w", err)}
	}
	d := observe.Delta(first, second)
	c = counted{at: second.At, during: d.Elapsed, values: d.Values, notes: d.Notes()}
	for when, ports := range map[string][]observe.Port{"at the second reading": d.New, "at the first reading": d.Gone} {
		if len(ports) > 0 {
			c.notes = append(c.notes, fmt.Sprintf("%s only there %s, and left out: %s of %s and what follows it", diag.Count(len(ports), "counter"), when, ports[0].Name, ports[0].Iface))
		}
	}
	slices.Sort(c.notes)
	return c
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Uncounted reports whether the counters of a device were asked for and not read, though it has some.
func (r *Report) Uncounted() bool {
	return slices.ContainsFunc(r.Devices, func(d Device) bool { return d.Counters != nil && d.Counters.Error != "" })
}

// tell puts what was counted on the interfaces of the model into the report.
func (d *Device) tell(bound *intent.Device, c counted) {
	d.Counters = &Counters{At: c.at, Notes: c.notes}
	if c.during != 0 {
		d.Counters.During = c.during.String()
	}
	switch {
	case errors.Is(c.err, errors.ErrUnsupported):
		d.Counters.Notes = []string{"fabricctl reads no counters on this kind of device"}
		return
	case c.err != nil:
		d.Counters.Error = c.err.Error()
		return
	}
	has := map[observe.Name]bool{}
	by := map[string]map[observe.Name]uint64{}
	for p, v := range c.values {
		if by[p.Iface] == nil {
			by[p.Iface] = map[observe.Name]uint64{}
		}
		by[p.Iface][p.Name] = v
	}
	for _, p := range bound.Ports {
		values := by[p.Iface]
		if p.Iface == "" || values == nil || p.State == intent.Absent {
			continue
		}
		d.Counters.Interfaces = append(d.Counters.Interfaces, Counted{p.Iface, p.Name, maps.Clone(values)})
		for n := range values {
			base, _ := n.Split()
			has[base] = true
		}
		delete(by, p.Iface) // the same interface twice is one
	}
	for _, n := range observe.Counted() {
		if !has[n.Name] && mayCount(d.Host, n.Name) {
			d.Counters.Lacks = append(d.Counters.Lacks, n.Name)
		}
	}
}

// mayCount reports whether it is worth saying that a host, or a switch, lacks a counter: marks, watermarks and the watchdog
// are of switches, notifications and RDMA of hosts.
func mayCount(host bool, n observe.Name) bool {
	of := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(n), p) })
	}
	if host {
		return !of("watermark.", "watchdog.", "ecn.marked", "drop")
	}
	return !of("cnp.", "rdma.", "nic.", "ecn.received", "rx.")
}
