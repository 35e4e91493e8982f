package observe

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func read(at int64, values map[Port]uint64) Counters {
	return Counters{At: time.Unix(at, 0), Values: values}
}

func TestDelta(t *testing.T) {
	before := read(100, map[Port]uint64{
		{"p1", "pfc.rx.3"}: 10, {"p1", "ecn.marked.3"}: 5, {"p1", "watermark.queue.3"}: 900,
		{"p2", "pfc.rx.3"}: 10, {"p2", "ecn.marked.3"}: 5, {"p2", "watermark.queue.3"}: 900,
		{"p3", "pfc.rx.3"}: 10,
	})
	after := read(103, map[Port]uint64{
		{"p1", "pfc.rx.3"}: 17, {"p1", "ecn.marked.3"}: 5, {"p1", "watermark.queue.3"}: 300, {"p1", "drop.3"}: 4,
		{"p2", "pfc.rx.3"}: 12, {"p2", "ecn.marked.3"}: 1, {"p2", "watermark.queue.3"}: 300,
	})
	got := Delta(before, after)
	want := Change{
		Elapsed: 3 * time.Second,
		Values:  map[Port]uint64{{"p1", "pfc.rx.3"}: 7, {"p1", "ecn.marked.3"}: 0, {"p1", "watermark.queue.3"}: 300, {"p2", "watermark.queue.3"}: 300},
		Fell:    []Fall{{Port{"p2", "ecn.marked.3"}, 5, 1}},
		Gone:    []Port{{"p3", "pfc.rx.3"}},
		New:     []Port{{"p1", "drop.3"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	notes := []string{"the counters of p2 began anew between the readings (ecn.marked.3 fell from 5 to 1): they were cleared or wrapped, or the device was restarted"}
	if d := cmp.Diff(notes, got.Notes()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if v, ok := got.Get("p1", "pfc.rx.3"); v != 7 || !ok {
		t.Error(v, ok)
	}
	if _, ok := got.Get("p1", "drop.3"); ok {
		t.Error("a counter that was not there before has a difference")
	}
	back := Delta(after, read(100, nil)).Notes()
	if len(back) != 1 || !strings.Contains(back[0], "is 3s older") {
		t.Error(back)
	}
}

// A device that was restarted and counts on is noticed as long as one of an interface's counters is below what it was.
func TestDeltaOfNothing(t *testing.T) {
	c := Delta(Counters{}, Counters{})
	if len(c.Values)+len(c.Fell)+len(c.Gone)+len(c.New)+len(c.Notes()) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestDescribe(t *testing.T) {
	seen := map[Name]bool{}
	for _, c := range Counted() {
		if seen[c.Name] || c.Unit == "" || c.Doc == "" || c.Gauge != strings.HasPrefix(string(c.Name), "watermark.") {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
	for n, want := range map[Name]bool{
		"pfc.rx.3": true, "pfc.rx": true, "pfc.rx.8": false, "pfc.rx.33": false, "cnp.sent": true, "cnp.sent.3": false, "port.rx.bytes": true, "": false, "pfc.3": false,
	} {
		if _, ok := Describe(n); ok != want {
			t.Errorf("%q: %v", n, ok)
		}
	}
	want := Wanted([]Name{"pfc.rx.3"})
	if !want("pfc.rx.3") || want("pfc.rx.4") || !Wanted(nil)("pfc.rx.4") {
		t.Error("Wanted")
	}
}

// Counts add up and do not wrap, gauges keep the largest value, and a restart begins anew.
func TestAddAndClear(t *testing.T) {
	a, b, gauge := Port{"e1", PFCRx.Of(3)}, Port{"e1", PortTxBytes}, Port{"e1", QueueWatermark.Of(3)}
	to := map[Port]uint64{a: 1, b: math.MaxUint64 - 1, gauge: 10}
	Add(to, map[Port]uint64{a: 2, b: 5, gauge: 7})
	Add(to, map[Port]uint64{gauge: 12, {"e2", PortErrors}: 0})
	want := map[Port]uint64{a: 3, b: math.MaxUint64, gauge: 12, {"e2", PortErrors}: 0}
	if !maps.Equal(to, want) {
		t.Errorf("%v, want %v", to, want)
	}
	Clear(to)
	for p, v := range to {
		if v != 0 {
			t.Errorf("%v is %d", p, v)
		}
	}
	if len(to) != len(want) {
		t.Errorf("%v", to)
	}
}

func TestEndless(t *testing.T) {
	for text, want := range map[string]bool{
		"incast:8": true, "incast:8,bytes=1MB": false, "incast:8,bytes=1MB,every=1ms": true, "incast:8,bytes=1MB,every=1ms,count=3": false,
		"probe": true, "probe,count=10": false, "background": true, "single,bytes=1MB + probe": true,
	} {
		w, err := ParseWorkload(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Endless(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
