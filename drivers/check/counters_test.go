package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model/observe"
)

// counter is a box with counters: one answer after the other.
type counter struct {
	box
	answers []observe.Counters
	fails   error
	asked   *int
}

func (c counter) Sense(context.Context, []observe.Name) (observe.Counters, error) {
	*c.asked++
	if *c.asked > len(c.answers) {
		return observe.Counters{}, c.fails
	}
	a := c.answers[*c.asked-1]
	a.At = time.Now()
	return a, nil
}

// TestCounting reads one device once and twice. Interfaces that the model does not have are left out, and what a device lacks
// is listed.
func TestCounting(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	port := func(iface string, name observe.Name) observe.Port { return observe.Port{Iface: iface, Name: name} }
	iface := n.Device("spine1").Ports[0].Iface
	other := n.Device("spine1").Ports[1].Iface
	first := observe.Counters{Values: map[observe.Port]uint64{port(iface, "pfc.rx.3"): 5, port(other, "pfc.rx.3"): 9, port("Management0", "pfc.rx.3"): 1, port(iface, "ecn.marked.3"): 0}}
	second := observe.Counters{Values: map[observe.Port]uint64{port(iface, "pfc.rx.3"): 12, port(other, "pfc.rx.3"): 2, port(iface, "drop.out.3"): 1}}
	look := func(during time.Duration, fails error, answers ...observe.Counters) (*check.Counters, *check.Report) {
		t.Helper()
		var asked int
		r, err := check.Live(context.Background(), n, f, check.Options{Parallel: 1, Counting: &check.Counting{During: during}, Open: func(_ context.Context, name string) (*drivers.View, error) {
			if name == "spine1" {
				return drivers.ViewOf(name, counter{boxes[name], answers, fails, &asked}), nil
			}
			return drivers.ViewOf(name, boxes[name]), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Devices {
			d := &r.Devices[i]
			if d.Name == "spine1" {
				return d.Counters, r
			}
			if d.Error == "" && !d.Skipped && (d.Counters == nil || len(d.Counters.Notes) != 1 || d.Counters.Error != "") {
				t.Errorf("%s has no counters: %+v", d.Name, d.Counters)
			}
		}
		return nil, r
	}
	synctest.Test(t, func(t *testing.T) {
		c, r := look(0, nil, first)
		if len(c.Interfaces) != 2 || c.Interfaces[0].Values["pfc.rx.3"] != 5 || c.Interfaces[0].Iface != iface || c.Interfaces[0].Port == "" || c.During != "" || r.Uncounted() {
			t.Errorf("%+v", c)
		}
		lacks := fmt.Sprint(c.Lacks)
		if !strings.Contains(lacks, "pfc.tx") || strings.Contains(lacks, "pfc.rx") || strings.Contains(lacks, "cnp.") {
			t.Error(lacks)
		}
		c, _ = look(10*time.Second, nil, first, second)
		want := []check.Counted{{Iface: iface, Port: c.Interfaces[0].Port, Values: map[observe.Name]uint64{"pfc.rx.3": 7}}}
		if d := cmp.Diff(want, c.Interfaces); d != "" || c.During != "10s" {
			t.Errorf("in %s (-want +got):\n%s", c.During, d)
		}
		notes := []string{
			"1 counter only there at the second reading, and left out: drop.out.3 of " + iface + " and what follows it",
			"2 counters only there at the first reading, and left out: ecn.marked.3 of " + iface + " and what follows it",
			"the counters of " + other + " began anew between the readings (pfc.rx.3 fell from 9 to 2): they were cleared or wrapped, or the device was restarted",
		}
		if d := cmp.Diff(notes, c.Notes); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		for answers, say := range map[int]string{0: "no route", 1: "second reading: no route"} {
			c, r := look(time.Second, errors.New("no route"), []observe.Counters{first}[:answers]...)
			if c.Error != say || !r.Uncounted() || r.Unread() {
				t.Errorf("%q, want %q", c.Error, say)
			}
		}
	})
}

// A reading that waits ends with its context.
func TestCountingEnds(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errors.New("--timeout is over"))
		defer cancel()
		r, err := check.Live(ctx, n, f, check.Options{Parallel: len(boxes), Counting: &check.Counting{During: time.Hour}, Open: func(_ context.Context, name string) (*drivers.View, error) {
			return drivers.ViewOf(name, counter{boxes[name], make([]observe.Counters, 2), nil, new(int)}), nil
		}})
		if err != nil || !r.Uncounted() || !strings.Contains(r.Devices[0].Counters.Error, "waiting for the second reading: --timeout is over") {
			t.Errorf("%v %+v", err, r.Devices[0].Counters)
		}
	})
}
