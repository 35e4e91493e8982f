package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/witness"
)

const ttl = 10 * time.Minute

// at is a clock that tests move by hand.
type at struct{ atomic.Int64 }

func (a *at) now() time.Time       { return clock().Add(time.Duration(a.Load())) }
func (a *at) pass(d time.Duration) { a.Add(int64(d)) }
func (a *at) options() Options     { return Options{Now: a.now} }
func elsewhere(run string) Holder  { return Holder{Owner: "eve@far", Host: "far", PID: 1, Run: run} }

func takes(t *testing.T, dir string, h Holder, o Options) *Held {
	t.Helper()
	l, err := Acquire(context.Background(), dir, "pod1", h, ttl, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLeaseLife(t *testing.T) {
	ctx, dir, c := context.Background(), tempDir(t), &at{}
	a := takes(t, dir, Self("run-a"), c.options())
	if a.Lease().Fence != 1 {
		t.Errorf("first fence %d", a.Lease().Fence)
	}
	var held *HeldError
	_, err := Acquire(ctx, dir, "pod1", elsewhere("run-b"), ttl, c.options())
	if !errors.As(err, &held) || held.Lease.Run != "run-a" {
		t.Errorf("second holder: %v", err)
	}
	if _, err := Acquire(ctx, dir, "pod2", Self("run-x"), ttl, c.options()); err != nil {
		t.Errorf("another fabric: %v", err)
	}
	c.pass(ttl / 4)
	if err := a.Check(ctx); err != nil || a.Lease().Expires != clock().Add(ttl) {
		t.Errorf("early check: %v, expires %v", err, a.Lease().Expires)
	}
	c.pass(ttl / 4)
	if err := a.Check(ctx); err != nil || a.Lease().Expires != c.now().Add(ttl) {
		t.Errorf("a check at half time must renew: %v, expires %v", err, a.Lease().Expires)
	}
	if l, _ := ReadLease(LeasePath(dir, "pod1")); l.Renewed != c.now() {
		t.Errorf("renewed at %v", l.Renewed)
	}
	for _, x := range []struct {
		h            Holder
		alive, known bool
	}{{Self("a"), true, true}, {Holder{Host: Self("").Host, Boot: Self("").Boot, PID: 1 << 30}, false, true}, {elsewhere("b"), true, false}} {
		if alive, known := (Lease{Holder: x.h}).Alive(); known != x.known || alive != x.alive {
			t.Errorf("%+v: alive %v, known %v", x.h, alive, known)
		}
	}
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := a.Check(ctx); !errors.Is(err, ErrFenced) {
		t.Errorf("after release: %v", err)
	}
	b := takes(t, dir, elsewhere("run-b"), c.options())
	if b.Lease().Fence != 2 {
		t.Errorf("the fence went from 1 to %d over a release", b.Lease().Fence)
	}
	ls, err := Leases(dir)
	if err != nil || len(ls) != 2 || ls[0].Name != "pod1" || ls[1].Name != "pod2" {
		t.Errorf("list: %+v, %v", ls, err)
	}
}

func TestExpiredHolderIsFencedOut(t *testing.T) {
	ctx, dir, c := context.Background(), tempDir(t), &at{}
	a := takes(t, dir, elsewhere("run-a"), c.options())
	c.pass(ttl + time.Second)
	if err := a.Check(ctx); err != nil {
		t.Errorf("late, but nobody took it: %v", err)
	}
	c.pass(ttl + time.Second)
	b := takes(t, dir, elsewhere("run-b"), c.options())
	for name, f := range map[string]func(context.Context) error{"check": a.Check, "renew": a.Renew, "release": a.Release} {
		if err := f(ctx); !errors.Is(err, ErrFenced) {
			t.Errorf("%s of the old holder: %v", name, err)
		}
	}
	if err := b.Check(ctx); err != nil {
		t.Errorf("the new holder suffers from the old one: %v", err)
	}
}

// TestKeep: a lease that is kept outlives its time, whoever keeps it hears when it is gone, and stop ends that.
func TestKeep(t *testing.T) {
	dir := tempDir(t)
	synctest.Test(t, func(t *testing.T) {
		a, err := Acquire(t.Context(), dir, "pod1", Self("run-a"), ttl, Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		var told atomic.Int32
		stop := a.Keep(t.Context(), func(error) { told.Add(1) })
		time.Sleep(3 * ttl)
		synctest.Wait()
		if now := time.Now(); told.Load() != 0 || !a.Lease().Expires.After(now) {
			t.Errorf("at %v it expires at %v, and somebody was told %d times", now, a.Lease().Expires, told.Load())
		}
		if _, err := Break(t.Context(), a.path, a.Lease(), Options{Now: time.Now}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		synctest.Wait()
		if told.Load() == 0 {
			t.Error("nobody was told that it is gone")
		}
		stop()
		n := told.Load()
		if time.Sleep(ttl); told.Load() != n {
			t.Error("it goes on after stop")
		}
	})
}

func TestBreak(t *testing.T) {
	ctx, dir, c := context.Background(), tempDir(t), &at{}
	a := takes(t, dir, elsewhere("run-a"), c.options())
	path := LeasePath(dir, "pod1")
	was, err := Break(ctx, path, a.Lease(), c.options())
	if err != nil || was.Run != "run-a" {
		t.Errorf("broke %+v, %v", was, err)
	}
	if err := a.Check(ctx); !errors.Is(err, ErrFenced) {
		t.Errorf("holder of a broken lease: %v", err)
	}
	if b := takes(t, dir, elsewhere("run-b"), c.options()); b.Lease().Fence != 3 {
		t.Errorf("fence %d after a break, want 3", b.Lease().Fence)
	}
	for _, bad := range []string{"", "{", `{"fence":0}`, `{"fence":18446744073709551615}`, "null", "\x00\xff"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(ctx, dir, "pod1", elsewhere("run-c"), ttl, c.options()); err == nil {
			t.Errorf("%q was taken for a lease", bad)
		}
		if _, err := Leases(dir); err == nil {
			t.Errorf("%q was listed as a lease", bad)
		}
		if _, err := Break(ctx, path, a.Lease(), c.options()); !errors.Is(err, ErrOtherLease) {
			t.Errorf("break of %q, which was not seen: %v", bad, err)
		}
		if _, err := Break(ctx, path, Lease{}, c.options()); err != nil {
			t.Errorf("break of %q: %v", bad, err)
		}
		if l := takes(t, dir, elsewhere("run-c"), c.options()); l.Lease().Fence <= 3 || l.Lease().Name != "pod1" {
			t.Errorf("after repair of %q: %+v", bad, l.Lease())
		}
	}
	if _, err := Break(ctx, LeasePath(dir, "none"), Lease{}, c.options()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("break of nothing: %v", err)
	}
}

// What was seen is what is broken: a lease that was given back meanwhile, and one that somebody else has taken since, are left alone.
func TestBreakOfAnother(t *testing.T) {
	ctx, dir, c := context.Background(), tempDir(t), &at{}
	a := takes(t, dir, elsewhere("run-a"), c.options())
	seen := a.Lease()
	if err := a.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if was, err := Break(ctx, a.path, seen, c.options()); !errors.Is(err, ErrOtherLease) || was.Free != "released" {
		t.Errorf("broke %+v, %v", was, err)
	}
	b := takes(t, dir, elsewhere("run-b"), c.options())
	for _, seen := range []Lease{seen, {}} {
		if was, err := Break(ctx, a.path, seen, c.options()); !errors.Is(err, ErrOtherLease) || was.Run != "run-b" {
			t.Errorf("broke %+v, %v", was, err)
		}
	}
	if err := b.Check(ctx); err != nil {
		t.Errorf("who has taken it since: %v", err)
	}
	if err := b.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Break(ctx, a.path, b.l, c.options()); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for _, bad := range []string{"", "a/b", "../x", "/"} {
		if _, err := Acquire(context.Background(), tempDir(t), bad, Self("r"), ttl, (&at{}).options()); err == nil {
			t.Errorf("%q was taken for a name", bad)
		}
	}
}

// Of many that want it at once, one gets it.
func TestOneWinner(t *testing.T) {
	dir, c := tempDir(t), &at{}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			_, err := Acquire(context.Background(), dir, "pod1", elsewhere(fmt.Sprint(i)), ttl, c.options())
			var held *HeldError
			if err == nil {
				won.Add(1)
			} else if !errors.As(err, &held) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d holders at once", won.Load())
	}
}

func TestGuardHonoursContext(t *testing.T) {
	dir, c := tempDir(t), &at{}
	inside, leave := make(chan bool), make(chan bool)
	o := c.options()
	o.Hook = func(p string) {
		if p == "lease.fsync.before" {
			inside <- true
			<-leave
		}
	}
	done := make(chan error)
	go func() {
		_, err := Acquire(context.Background(), dir, "pod1", elsewhere("a"), ttl, o)
		done <- err
	}()
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Acquire(ctx, dir, "pod1", elsewhere("b"), ttl, c.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A process killed with -9 leaves a lease that this host can take at once, and another host after its time.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("JOURNAL_TEST_HOLD"); dir != "" {
		if _, err := Acquire(context.Background(), dir, "pod1", Self("doomed"), ttl, Options{Now: clock}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	dir := tempDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHolder$")
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "held\n" {
		t.Fatalf("child said %q", line)
	}
	var held *HeldError
	if _, err := Acquire(context.Background(), dir, "pod1", Self("b"), ttl, Options{Now: clock}); !errors.As(err, &held) {
		t.Fatalf("while the holder lives: %v", err)
	}
	l, err := ReadLease(LeasePath(dir, "pod1"))
	if err != nil {
		t.Fatal(err)
	}
	if l.Boot == "" || l.Start == "" {
		witness.Missing(t, "this system does not show its boot id: only the time ends such a lease")
	}
	reused := l
	reused.Start = "1"
	if !l.Held(clock()) || reused.Held(clock()) {
		t.Error("a pid that was given to another process is not told apart")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out) // ends with the process, which nobody has waited for yet
	for state, _ := process(l.PID); state != "Z"; state, _ = process(l.PID) {
		runtime.Gosched()
	}
	if l.Held(clock()) {
		t.Error("a zombie holds the lease")
	}
	cmd.Wait()
	far := l
	far.Host = "far"
	if !far.Held(clock()) || far.Held(clock().Add(ttl)) {
		t.Error("a pid of another host was judged here")
	}
	if b := takes(t, dir, Self("b"), Options{Now: clock}); b.Lease().Fence != 2 {
		t.Errorf("fence %d", b.Lease().Fence)
	}
}

// Whatever happens, fences grow from holder to holder and at most one holder passes its Check.
func TestLeaseProperty(t *testing.T) {
	root := tempDir(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ctx, dir, c := context.Background(), filepath.Join(root, fmt.Sprint(n)), &at{}
		var all []*Held
		last := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				h, err := Acquire(ctx, dir, "pod1", elsewhere(fmt.Sprint(len(all))), ttl, c.options())
				if err != nil {
					return
				}
				if h.Lease().Fence <= last {
					t.Fatalf("fence %d after %d", h.Lease().Fence, last)
				}
				last = h.Lease().Fence
				all = append(all, h)
			},
			"pass": func(t *rapid.T) { c.pass(time.Duration(rapid.IntRange(0, 12).Draw(t, "minutes")) * time.Minute) },
			"break": func(t *rapid.T) {
				seen, _ := ReadLease(LeasePath(dir, "pod1"))
				Break(ctx, LeasePath(dir, "pod1"), seen, c.options())
			},
			"release": func(t *rapid.T) {
				if len(all) > 0 {
					rapid.SampledFrom(all).Draw(t, "who").Release(ctx)
				}
			},
			"": func(t *rapid.T) {
				ok := 0
				for i, h := range all {
					if h.Check(ctx) == nil {
						ok++
						if i != len(all)-1 {
							t.Fatal("an old holder passed its check")
						}
					}
				}
				if ok > 1 {
					t.Fatalf("%d holders passed", ok)
				}
			},
		})
	})
}
