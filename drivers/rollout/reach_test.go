package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
)

// opened makes f say which devices were dialled, in the order in which they were.
func (f *fabric) opened() chan string {
	names, open := make(chan string, 32), f.e.Open
	f.e.Open = func(ctx context.Context, device string) (drivers.Device, error) {
		d, err := open(ctx, device)
		names <- device
		return d, err
	}
	return names
}

// The first switches of a run, as many as are worked on at a time, are reached while its plan is on its way to the
// disk; none is written to before it is there.
func TestFirstAreReachedEarly(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "s3", "h1")
	f.e.Parallel = 2
	p := f.plan(t)
	names := f.opened()
	var meanwhile []string
	var mu sync.Mutex
	var fsyncs, writes int
	f.e.Hook = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point == "device.commit.before" {
			writes++
		}
		if point != "journal.fsync.before" {
			return
		}
		if fsyncs++; fsyncs != 2 { // the first one is of the empty file
			return
		}
		for range 2 {
			select {
			case n := <-names:
				meanwhile = append(meanwhile, n)
			case <-time.After(time.Minute):
				t.Error("nobody was dialled")
			}
		}
		if n := len(names); n+writes > 0 {
			t.Errorf("%d devices more were dialled, %d written to", n, writes)
		}
	}
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	slices.Sort(meanwhile)
	if d := cmp.Diff([]string{"s1", "s2"}, meanwhile); d != "" {
		t.Errorf("dialled before the plan was on the disk (-want +got):\n%s", d)
	}
	for n, b := range f.boxes {
		if b.unclosed != 0 {
			t.Errorf("%s: %d connections are open", n, b.unclosed)
		}
	}
}

// A run that cannot begin leaves no connection behind, and reaches nobody while somebody else has the lease.
func TestReachedForNothing(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	p := f.plan(t)
	names := f.opened()
	f.e.NewID = func() string { return "run-1" }
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	for len(names) > 0 {
		<-names
	}
	if _, err := f.e.Apply(context.Background(), p, leave); !errors.Is(err, syscall.EEXIST) || len(names) > 0 { // the journal is there
		t.Errorf("%v, %d devices dialled", err, len(names))
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := f.e.reachFirst(ctx, p.waves(false)[0])
	if n := <-names; n != "s1" {
		t.Errorf("%s was dialled", n)
	}
	e.close()
	if _, ok := e.take("s1"); ok || f.boxes["s1"].unclosed != 0 {
		t.Errorf("after close: taken %v, %d connections open", ok, f.boxes["s1"].unclosed)
	}
}

// A host is not reached early: a driver may bring it a program first, and nothing may come to it before the plan is on
// the disk. Nor is a device to which the plan left a connection open.
func TestNotReachedEarly(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1")
	f.flavour(flavour{persists: true, guarded: true})
	f.e.Parallel = 8
	p := f.plan(t)
	for _, w := range p.waves(false) {
		e := f.e.reachFirst(context.Background(), w)
		if len(e.wait) > 0 {
			t.Errorf("%s is reached early", w[0].Name)
		}
		e.close()
	}
	f.e.Lines.Close()
}
