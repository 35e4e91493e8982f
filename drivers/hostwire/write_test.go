package hostwire

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// timedBox is a box with transactions, and with jobs to look after.
type timedBox struct {
	box
	txs   []drivers.Tx
	ended []string
	allow []bool
}

func (b *timedBox) Pending(context.Context) ([]drivers.Tx, error) { return b.txs, b.err }
func (b *timedBox) Confirm(_ context.Context, tx drivers.TxID) error {
	b.ended = append(b.ended, "confirm "+string(tx))
	return b.err
}

func (b *timedBox) Abort(_ context.Context, tx drivers.TxID) error {
	b.ended = append(b.ended, "abort "+string(tx))
	return b.err
}
func (b *timedBox) AllowJobs(yes bool) { b.allow = append(b.allow, yes) }

// held is Holds in memory.
type held struct{ hs []journal.Hold }

func (x *held) Hold(_ context.Context, h journal.Hold) (*journal.Hold, error) {
	was, err := x.Release(context.Background(), h.Fabric, h.Device, h.Port)
	x.hs = append(x.hs, h)
	return was, err
}

func (x *held) Release(_ context.Context, fabric, device, port string) (*journal.Hold, error) {
	for i, h := range x.hs {
		if h.Fabric == fabric && h.Device == device && h.Port == port {
			x.hs = append(x.hs[:i], x.hs[i+1:]...)
			return &h, nil
		}
	}
	return nil, nil
}
func (x *held) List(context.Context) ([]journal.Hold, error) { return x.hs, nil }

// talk connects a client to a host.
func talk(t *testing.T, h Host) *Client {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		_ = Serve(context.Background(), far, far, h, Hello{Version: "v1"})
		far.Close()
	}()
	c, err := NewClient(t.Context(), "host1", near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestTimedTransactions(t *testing.T) {
	dev := &timedBox{txs: []drivers.Tx{{ID: "run-t1", State: drivers.TxTimed, Deadline: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}, {ID: "run-t2", State: drivers.TxOpen}}}
	c := talk(t, Host{Device: dev})
	timer, ok := c.Timer()
	if !ok {
		t.Fatal("the hello does not say confirm")
	}
	txs, err := timer.Pending(t.Context())
	if diff := cmp.Diff(dev.txs, txs); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := errors.Join(timer.Confirm(t.Context(), "run-t1"), timer.Abort(t.Context(), "run-t2")); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"confirm run-t1", "abort run-t2"}, dev.ended); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if plain := talk(t, Host{Device: &box{}}); plain.hello.Confirm {
		t.Error("a device without a timer says that it has one")
	}
}

// Leave to kill jobs is that of the connection, and goes with each commit.
func TestLeaveTravels(t *testing.T) {
	dev := &timedBox{}
	c := talk(t, Host{Device: dev})
	for _, yes := range []bool{false, true} {
		c.AllowJobs = yes
		if err := c.Commit(t.Context(), "tx", nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]bool{false, true}, dev.allow); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDifferenceTravels(t *testing.T) {
	want := &drivers.DiffersError{Device: "host1", Sent: "pfc|rdma0|priorities 3", Reads: "none"}
	c := talk(t, Host{Device: &box{err: &drivers.DiffersError{Sent: want.Sent, Reads: want.Reads}}})
	err := c.Commit(t.Context(), "tx", nil, 0)
	if got, ok := errors.AsType[*drivers.DiffersError](err); !ok || *got != *want {
		t.Errorf("got %#v", err)
	}
	if got, ok := errors.AsType[*drivers.RejectedError](err); !ok || got.Sentence != "applied-but-differs: acknowledged, but reads none" {
		t.Errorf("got %#v", err)
	}
}

func TestKnow(t *testing.T) {
	var got []string
	c := talk(t, Host{Device: &box{}, Know: func(_ context.Context, ps []json.RawMessage) error {
		for _, p := range ps {
			got = append(got, string(p))
		}
		return errors.New("no such driver")
	}})
	if err := c.Know(t.Context(), []json.RawMessage{[]byte(`{"name":"xsc"}`), []byte(`{"name":"own"}`)}); err == nil || err.Error() != "host1: no such driver" {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{`{"name":"xsc"}`, `{"name":"own"}`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is held on the host is left alone, whoever asks; what has begun is brought to its end.
func TestHeldOnHost(t *testing.T) {
	dir := HoldDir{Path: filepath.Join(t.TempDir(), "state", "holds"), Now: time.Now}
	dev := &timedBox{}
	c := talk(t, Host{Device: dev, Holds: dir})
	mtu := func(link string) []render.Change {
		return []render.Change{{Op: render.Modify, Key: render.Key{Scope: "link", Object: link, Field: "mtu"}, Before: new("1500"), After: new("9000")}}
	}
	port := journal.Hold{Fabric: "pod1", Device: "host1", Port: "nic-1", Iface: "rdma0", Owner: "eve@noc", Since: time.Now(), Until: time.Now().Add(time.Hour), Reason: "cable"}
	if was, err := c.Hold(t.Context(), port); was != nil || err != nil {
		t.Fatal(was, err)
	}
	if err := c.Commit(t.Context(), "tx", mtu("rdma0"), 0); !errors.Is(err, drivers.ErrHeld) || !strings.Contains(err.Error(), "host1:nic-1 of fabric pod1 is held until") {
		t.Errorf("the held port: %v", err)
	}
	timer, _ := c.Timer()
	if err := errors.Join(c.Commit(t.Context(), "tx", mtu("rdma1"), 0), timer.Confirm(t.Context(), "tx")); err != nil {
		t.Errorf("beside it: %v", err)
	}
	again := port
	again.Reason = "cable, again"
	if was, err := c.Hold(t.Context(), again); err != nil || was == nil || was.Reason != "cable" {
		t.Errorf("once more: %v, %v", was, err)
	}
	whole := port
	whole.Fabric, whole.Port, whole.Iface = "pod2", "", ""
	if _, err := c.Hold(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if hs, err := c.Holds(t.Context()); err != nil || len(hs) != 2 || hs[0].Fabric != "pod1" || hs[1].Fabric != "pod2" {
		t.Errorf("%+v, %v", hs, err)
	}
	if err := c.Commit(t.Context(), "tx", mtu("rdma1"), 0); !errors.Is(err, drivers.ErrHeld) {
		t.Errorf("a held host: %v", err)
	}
	if was, err := c.Release(t.Context(), "pod2", "host1", ""); err != nil || was == nil {
		t.Errorf("release: %v, %v", was, err)
	}
	if was, err := c.Release(t.Context(), "pod2", "host1", ""); err != nil || was != nil {
		t.Errorf("release once more: %v, %v", was, err)
	}
	later := HoldDir{Path: dir.Path, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }}
	if hs, err := later.List(t.Context()); err != nil || len(hs) > 0 {
		t.Errorf("when the time is over: %v, %v", hs, err)
	}
	if _, err := later.Hold(t.Context(), port); err == nil || !strings.Contains(err.Error(), "by the clock of the host") {
		t.Errorf("a hold that is over: %v", err)
	}
	port.Device, port.Until = "host2", time.Now().Add(9*time.Hour)
	if _, err := later.Hold(t.Context(), port); err != nil {
		t.Fatal(err)
	}
	if all, err := journal.AllHolds(dir.Path); err != nil || len(all) != 2 || len(all[0].Holds) != 1 || len(all[1].Holds) != 0 {
		t.Errorf("what has run out stays: %+v, %v", all, err)
	}
}

// A laptop that waits is heard, however long the write takes; one that is silent stops it after half a minute.
func TestSilenceStopsAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := &box{commit: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Minute):
				return nil
			}
		}}
		c := talk(t, Host{Device: dev})
		if err := c.Commit(t.Context(), "tx", nil, 0); err != nil {
			t.Errorf("with somebody there: %v", err)
		}
		began := time.Now()
		r, err := c.exchange(request{ID: 77, Op: "commit"}) // without the sign of life of Commit
		if err != nil || r.Error == nil || r.Error.Code != "silent" || time.Since(began) != Silence {
			t.Errorf("with nobody there: %+v after %v, %v", r.Error, time.Since(began), err)
		}
		time.Sleep(time.Hour) // who does nothing may be silent
		if _, err := c.Read(t.Context()); err != nil {
			t.Error(err)
		}
		c.Close()
	})
}

// A window that is too long to be counted is refused: it must not become none.
func TestEndlessWindow(t *testing.T) {
	b := &timedBox{}
	c := talk(t, Host{Device: b})
	err := c.Commit(t.Context(), "tx1", nil, math.MaxInt64)
	if !errors.Is(err, ErrProtocol) || len(b.allow) > 0 {
		t.Errorf("got %v after %d commits", err, len(b.allow))
	}
}
