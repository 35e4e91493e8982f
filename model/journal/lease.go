package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrFenced is returned by Check and Renew when somebody else has the lease now, or broke it. The holder must not
// write any more.
var ErrFenced = errors.New("the lease was lost")

// HeldError is returned by Acquire while somebody else holds the lease.
type HeldError struct{ Lease Lease }

func (e *HeldError) Error() string {
	l := e.Lease
	return fmt.Sprintf("%s holds the lease for run %s until %s (pid %d)", l.Owner, l.Run, l.Expires.Format(time.RFC3339), l.PID)
}

// Holder is who wants a lease.
type Holder struct {
	Owner string `json:"owner"` // user@host
	Host  string `json:"host"`
	Boot  string `json:"boot,omitempty"` // this boot of the host and this pid namespace; "" when not known
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // when the process started, in clock ticks since boot; a pid alone is used again
	Run   string `json:"run"`
}

// Self is this process as the holder of a lease for a run.
func Self(run string) Holder {
	h := Holder{PID: os.Getpid(), Run: run}
	h.Host, _ = os.Hostname()
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	h.Owner = name + "@" + h.Host
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, err2 := os.Readlink("/proc/self/ns/pid") // a pid means nothing in another container on the same host
	if err == nil && err2 == nil {
		h.Boot = strings.TrimSpace(string(boot)) + " " + ns
	}
	_, h.Start = process(h.PID)
	return h
}

// dead reports whether h is certainly gone: it lived in this boot and pid namespace of this host, and its process
// does not exist any more, waits as a zombie for its parent, or is another one that got the same pid.
func (h Holder) dead() bool {
	if !h.here() {
		return false
	}
	state, start := process(h.PID)
	return errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) || state == "Z" || start != "" && h.Start != "" && start != h.Start
}

// here reports whether h took its lease in this boot and pid namespace of this host, so that its pid means something.
func (h Holder) here() bool {
	me := Self("")
	return h.Boot != "" && h.Boot == me.Boot && h.Host == me.Host && h.PID > 0
}

// process is the state and the start time of a process, fields 3 and 22 of /proc/PID/stat (proc(5)); "" when the
// system does not show them.
func process(pid int) (state, start string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	_, rest, _ := strings.Cut(string(b[max(strings.LastIndexByte(string(b), ')'), 0):]), " ") // the name before it may hold anything
	f := strings.Fields(rest)
	if len(f) < 20 {
		return "", ""
	}
	return f[0], f[19]
}

// Lease is the content of a lease file. The file stays when a lease is released, so that Fence never goes down.
type Lease struct {
	Name string `json:"name"` // what is leased: the fabric
	Holder
	Fence    uint64    `json:"fence"`
	Acquired time.Time `json:"acquired"`
	Renewed  time.Time `json:"renewed,omitzero"` // zero = not since it was acquired, or by an older fabricctl
	Expires  time.Time `json:"expires"`
	Free     string    `json:"free,omitempty"` // "released" or "broken" when nobody holds it
}

// Held reports whether somebody holds the lease at the time now. A holder whose process is known to be gone does not.
func (l Lease) Held(now time.Time) bool {
	return l.Fence > 0 && l.Free == "" && now.Before(l.Expires) && !l.dead()
}

// Alive reports whether the process of the holder lives, where that can be known: on the host and in the boot and pid namespace
// in which it took the lease.
func (l Lease) Alive() (alive, known bool) { return !l.dead(), l.here() }

// maxFence is above every fence that counting can reach.
const maxFence = 1 << 53

// DamagedLeaseError is that of a lease file that says nothing. Break repairs it.
type DamagedLeaseError struct {
	Path string
	Name string // what is leased, by the name of the file
}

func (e *DamagedLeaseError) Error() string { return "lease file " + e.Path + " is damaged" }

// ReadLease reads a lease file. A missing one is the zero Lease. errors.As *DamagedLeaseError when it is damaged.
func ReadLease(path string) (Lease, error) {
	var l Lease
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("lease: %w", err)
	}
	if json.Unmarshal(b, &l) != nil || l.Fence == 0 || l.Fence > maxFence {
		return Lease{}, &DamagedLeaseError{Path: path, Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	}
	return l, nil
}

// Leases lists the lease files of a directory, by file name. Damaged ones come as an error beside the others.
func Leases(dir string) ([]Lease, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	var ls []Lease
	for _, p := range paths {
		l, e := ReadLease(p)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		ls = append(ls, l)
	}
	return ls, err
}

// LeasePath is the lease file of a fabric in a directory.
func LeasePath(dir, name string) string { return filepath.Join(dir, name+".json") }

// Held is a lease in our hands. It may be used by several goroutines.
type Held struct {
	path string
	ttl  time.Duration
	opt  Options

	mu sync.Mutex
	l  Lease
}

// Acquire takes the lease called name in dir for ttl. It is taken over from a holder whose time is up, or whose process
// on this host is gone; from anybody else it is a *HeldError. It returns when the lease is on the disk.
func Acquire(ctx context.Context, dir, name string, h Holder, ttl time.Duration, o Options) (*Held, error) {
	if name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("lease: %q is not a name", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	held := &Held{path: LeasePath(dir, name), ttl: ttl, opt: o}
	err := guarded(ctx, held.path, func() error {
		old, err := ReadLease(held.path)
		if err != nil {
			return err
		}
		now := o.Now().UTC()
		if old.Held(now) {
			return &HeldError{Lease: old}
		}
		held.l = Lease{Name: name, Holder: h, Fence: old.Fence + 1, Acquired: now, Expires: now.Add(ttl)}
		return store(held.path, "lease", held.l, o.Hook)
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// ErrOtherLease is returned by Break when the lease is not the one any more that was to be broken.
var ErrOtherLease = errors.New("it has changed hands meanwhile")

// Break ends the lease that was seen, whoever holds it: its holder is fenced out. It returns what stands there; when that is not what was seen,
// because it was given back or taken by another run since, nothing is done (ErrOtherLease). A damaged file, which is seen as the zero
// Lease, is repaired with a fence above any that can have been in it.
func Break(ctx context.Context, path string, seen Lease, o Options) (was Lease, err error) {
	if _, err := os.Stat(path); err != nil {
		return was, fmt.Errorf("lease: %w", err)
	}
	err = guarded(ctx, path, func() error {
		next, err := ReadLease(path)
		was = next
		if next.Fence != seen.Fence || next.Free != seen.Free {
			return ErrOtherLease
		}
		if err != nil { // fences count up from 1, one per run: seconds since 1970 are above them
			next = Lease{Name: strings.TrimSuffix(filepath.Base(path), ".json"), Fence: uint64(o.Now().Unix())}
		}
		next.Fence++
		next.Free = "broken"
		return store(path, "lease", next, o.Hook)
	})
	return was, err
}

// Lease is what we hold.
func (h *Held) Lease() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.l
}

// Check makes sure that the lease is still ours, ErrFenced otherwise, and renews it when less than two thirds of its
// time are left. It is called before each write to a device.
func (h *Held) Check(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, err := ReadLease(h.path)
	if err != nil {
		return err
	}
	if err := h.ours(now); err != nil {
		return err
	}
	if h.l.Expires.Sub(h.opt.Now()) > h.ttl*2/3 {
		return nil
	}
	return h.renew(ctx)
}

// Renew extends the lease to its full time from now. A lease that ran out and that nobody took is still ours.
func (h *Held) Renew(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.renew(ctx)
}

func (h *Held) renew(ctx context.Context) error {
	return h.update(ctx, func(l *Lease) {
		l.Renewed = h.opt.Now().UTC()
		l.Expires = l.Renewed.Add(h.ttl)
	})
}

// Keep renews the lease until stop is called or ctx ends: for what may take longer than a lease lasts. failed is told when that did not work; stop returns when nobody is told any more.
func (h *Held) Keep(ctx context.Context, failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(h.ttl / 4)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if err := h.Check(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Release gives the lease back. A lease that is not ours any more is left alone, with ErrFenced.
func (h *Held) Release(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.update(ctx, func(l *Lease) { l.Free = "released" })
}

func (h *Held) ours(now Lease) error {
	switch {
	case now.Fence == h.l.Fence && now.Run == h.l.Run && now.Free == "":
		return nil
	case now.Fence == 0:
		return fmt.Errorf("%w: its file is gone: %s", ErrFenced, h.path)
	case now.Free != "":
		return fmt.Errorf("%w: it was %s", ErrFenced, now.Free)
	}
	return fmt.Errorf("%w: %s has it for run %s", ErrFenced, now.Owner, now.Run)
}

func (h *Held) update(ctx context.Context, change func(*Lease)) error {
	return guarded(ctx, h.path, func() error {
		now, err := ReadLease(h.path)
		if err != nil {
			return err
		}
		if err := h.ours(now); err != nil {
			return err
		}
		change(&now)
		if err := store(h.path, "lease", now, h.opt.Hook); err != nil {
			return err
		}
		h.l = now
		return nil
	})
}

// guarded runs f while no other process runs one for the same path. The guard is an flock, which the kernel drops
// with its process, so a kill leaves nothing behind.
func guarded(ctx context.Context, path string, f func() error) error {
	g, err := os.OpenFile(strings.TrimSuffix(path, ".json")+".guard", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	defer g.Close()
	for {
		err := syscall.Flock(int(g.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("state directory: lock %s: %w", g.Name(), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("state directory: waiting for %s, which another fabricctl is using: %w", g.Name(), context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// store replaces a file of the state directory, whole or not at all. what says what it holds, in errors and failpoints.
func store(path, what string, v any, hook Hook) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	tmp := strings.TrimSuffix(path, ".json") + ".new" // one writer at a time: guarded
	hook.at(what + ".fsync.before")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	hook.at(what + ".fsync.after")
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(err, removeIfThere(tmp)))
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
