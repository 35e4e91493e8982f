package conform

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Counting is a device with counters, for the cases about Sensor.
type Counting struct {
	// Set makes the device hold these counters and no others.
	Set func(map[observe.Port]uint64)
	// Values are some that it can hold and show as they are, of two interfaces at least.
	Values map[observe.Port]uint64
	// Junk are ways in which it answers nonsense to whoever asks for counters, by what is wrong with it: not a number, too
	// large a one, terminal escapes. It answers nothing true then, or only what Values has.
	Junk map[string]func()
	// Asked counts the questions that it has heard, and Most is how many one Sense may ask.
	Asked func() int
	Most  int
}

// sense has to succeed.
func (c *call) sense(d drivers.Sensor, names ...observe.Name) observe.Counters {
	c.Helper()
	got, err := d.Sense(c.ctx(), names)
	if err != nil {
		c.Fatalf("sense: %v", err)
	}
	return got
}

// sensed is the device as a Sensor, with what the Subject says of its counters.
func (c *call) sensed() (drivers.Sensor, Counting) {
	c.Helper()
	sn, ok := c.open().(drivers.Sensor)
	c.need(ok, "Sensor")
	c.need(c.s.Counting != nil, "Counting")
	return sn, *c.s.Counting
}

// sensor: a counter that the device does not have is missing, not zero and not an error.
func sensor(c *call) {
	d := c.open()
	sn, ok := d.(drivers.Sensor)
	c.need(ok, "Sensor")
	const unheard = observe.Name("conform.no.such.counter")
	c.noWrites("sense", func() {
		for p := range c.sense(sn, unheard).Values {
			c.Errorf("sense: %s has a value for %s, which is not what was asked for", p.Iface, p.Name)
		}
	})
}

// sensorTells: what the device has counted comes through as it is, all of it or what is asked for; what it stops to have is
// not there any more; and it takes no more questions than it is said to.
func sensorTells(c *call) {
	sn, n := c.sensed()
	n.Set(n.Values)
	names, ifaces := namesOf(n.Values), map[string]bool{}
	for p := range n.Values {
		ifaces[p.Iface] = true
	}
	if len(ifaces) < 2 || len(names) < 2 {
		c.Fatalf("the subject counts %d names on %d interfaces, want two of each at least", len(names), len(ifaces))
	}
	c.noWrites("sense", func() {
		asked := n.Asked()
		all := c.sense(sn)
		if asked = n.Asked() - asked; asked > n.Most {
			c.Errorf("sense asked %d questions, at most %d are said", asked, n.Most)
		}
		if all.At.IsZero() {
			c.Error("sense: a reading without a time")
		}
		for p, v := range n.Values {
			if got, ok := all.Values[p]; !ok || got != v {
				c.Errorf("sense: %s of %s is %d (there: %v), want %d", p.Name, p.Iface, got, ok, v)
			}
		}
		c.same("asked for by name", n.Values, c.sense(sn, names...).Values)
		one := names[0]
		c.same("one asked for", pick(n.Values, func(p observe.Port) bool { return p.Name == one }), c.sense(sn, one).Values)
		less := pick(n.Values, func(p observe.Port) bool { return p.Name != one })
		n.Set(less)
		c.same("one counted no more", less, c.sense(sn, names...).Values)
		n.Set(nil)
		c.same("nothing counted", nil, c.sense(sn, names...).Values)
	})
}

// namesOf are the names of counters, sorted.
func namesOf(values map[observe.Port]uint64) []observe.Name {
	set := map[observe.Name]bool{}
	for p := range values {
		set[p.Name] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func pick(values map[observe.Port]uint64, keep func(observe.Port) bool) map[observe.Port]uint64 {
	out := maps.Clone(values)
	maps.DeleteFunc(out, func(p observe.Port, _ uint64) bool { return !keep(p) })
	return out
}

func (c *call) same(what string, want, got map[observe.Port]uint64) {
	c.Helper()
	for p, v := range want {
		if g, ok := got[p]; !ok || g != v {
			c.Errorf("%s: %s of %s is %d (there: %v), want %d", what, p.Name, p.Iface, g, ok, v)
		}
	}
	for p, v := range got {
		if _, ok := want[p]; !ok {
			c.Errorf("%s: %s of %s is %d, and nothing was counted", what, p.Name, p.Iface, v)
		}
	}
}

// sensorJunk: nonsense is an error or nothing, and no number; the device is as readable afterwards as before.
func sensorJunk(t *testing.T, mk func(*testing.T) Subject) {
	first := &call{T: t, s: mk(t)}
	_, n := first.sensed()
	first.need(len(n.Junk) > 0, "Junk")
	for _, name := range slices.Sorted(maps.Keys(n.Junk)) {
		t.Run(name, func(t *testing.T) {
			c := &call{T: t, s: mk(t)}
			sn, n := c.sensed()
			n.Set(n.Values)
			n.Junk[name]()
			got, err := sn.Sense(c.ctx(), namesOf(n.Values))
			if err != nil {
				c.tells(err, "sense")
			}
			for p, v := range got.Values {
				if was, ok := n.Values[p]; !ok || was != v {
					c.Errorf("sense: %s of %s is %d, and was never counted", p.Name, p.Iface, v)
				}
			}
			c.read(c.open())
		})
	}
}

// sensorEnds: a reading ends with its context, whether that has ended before or ends while the device takes its time.
func sensorEnds(c *call) {
	sn, n := c.sensed()
	n.Set(n.Values)
	ended, cancel := context.WithCancel(c.ctx())
	cancel()
	_, err := sn.Sense(ended, nil)
	c.is(err, context.Canceled, "sense with an ended context")
	c.need(c.s.Slow != nil, "Slow")
	sn, _ = c.sensed()
	c.s.Slow(time.Hour)
	ctx, cancel := context.WithTimeout(c.ctx(), 50*time.Millisecond)
	defer cancel()
	_, err = sn.Sense(ctx, nil)
	c.is(err, context.DeadlineExceeded, "sense of a slow device")
	c.s.Slow(0)
	c.read(c.open())
}
