package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// The test dialect: "port|p1|mtu", "port|p1|profile" (points at "prof|NAME"), "prof|NAME|" and "prof|NAME|kmin",
// "watch|p1|time" in a phase of its own. Objects called ours-* and ports p1…p9 are owned; everything else is not.
// A value of kmin is the same as its rounding to tens, and an mtu of 1500 is the default.
func testDialect(want map[string]render.Config) *render.Dialect {
	return &render.Dialect{
		OS: "test",
		Owns: func(d intent.Device, f render.Facts) func(render.Key) bool {
			return func(k render.Key) bool {
				switch k.Scope {
				case "prof":
					return strings.HasPrefix(k.Object, "ours-") || slices.Contains(slices.Collect(maps.Values(f.Names)), k.Object)
				case "port", "watch":
					p := d.Port(k.Object)
					return strings.HasPrefix(k.Object, "p") && (p == nil || p.State == intent.Active)
				}
				return false
			}
		},
		Render: func(d intent.Device, f render.Facts) (render.Config, diag.List) {
			var c render.Config
			for _, s := range want[d.Name] {
				if s.Key.Scope == "prof" {
					s.Key.Object = f.Names.Name("prof", s.Key.Object)
				}
				if s.Key.Field == "profile" {
					s.Value = f.Names.Name("prof", s.Value)
				}
				c = append(c, s)
			}
			return c.Sorted(), nil
		},
		Lift: func(c render.Config, f render.Facts) (map[string]intent.Policy, diag.List) {
			m := map[string]intent.Policy{}
			for _, s := range c {
				if s.Key.Scope == "port" && s.Key.Field == "" {
					p := intent.Policy{Known: intent.AreaSet(intent.AreaMTU), MTU: 1500}
					if n, err := strconv.Atoi(c.Get("port", s.Key.Object, "mtu")); err == nil {
						p.MTU = units.Bytes(n)
					}
					m[s.Key.Object] = p
				}
			}
			return m, nil
		},
		Refs: func(k render.Key, v string) []render.Key {
			if k.Field == "profile" {
				return []render.Key{{Scope: "prof", Object: v}}
			}
			return nil
		},
		Phase: func(c render.Change) int {
			if c.Key.Scope == "watch" {
				return 1
			}
			return 0
		},
		Same: func(k render.Key, a, b *string, f render.Facts) bool { return spelled(k, a) == spelled(k, b) },
		Risk: func(live render.Config, cs []render.Change, f render.Facts) []render.Risk {
			var r render.Risk
			for _, c := range cs {
				switch c.Key.Field {
				case "mtu":
					r.Class, r.Why = max(r.Class, render.Flap), "an mtu change flaps the port"
					r.Ports = append(r.Ports, c.Key.Object)
					for _, n := range f.NICs {
						if n.Name == c.Key.Object && r.Jobs >= 0 {
							r.Jobs += n.QPs
						}
					}
				case "impossible":
					r.Class, r.Why = render.Refused, "the device has no such thing"
				}
			}
			if r.Class == render.Hitless {
				return nil
			}
			return []render.Risk{r}
		},
	}
}

func spelled(k render.Key, v *string) string {
	switch {
	case v == nil && k.Field == "mtu":
		return "1500"
	case v == nil:
		return "\x00absent"
	case k.Field == "kmin":
		return (*v)[:max(len(*v)-1, 0)] + "0"
	}
	return *v
}

// conf is a configuration from lines "scope object field value".
func conf(lines ...string) render.Config {
	var c render.Config
	for _, l := range lines {
		w := append(strings.Fields(l), "", "", "")
		k := render.Key{Scope: w[0], Object: w[1], Field: w[2]}
		if k.Field == "-" {
			k.Field = ""
		}
		c = append(c, render.Setting{Key: k, Value: w[3]})
	}
	return c.Sorted()
}

func text(c render.Config) string {
	var b strings.Builder
	for _, s := range c {
		fmt.Fprintf(&b, "%s=%s\n", s.Key, s.Value)
	}
	return b.String()
}

// box is an in-memory device. Its faults are counted down: a fault for commit 2 is for the second commit.
type box struct {
	mu       sync.Mutex
	name     string
	d        *render.Dialect
	facts    render.Facts
	caps     drivers.Caps
	timer    bool // Confirmer
	saver    bool // Saver
	guarded  bool // Guarded
	running  render.Config
	startup  render.Config
	timed    map[drivers.TxID]render.Config // what to go back to
	opened   map[drivers.TxID]bool
	commits  int // that reached the device
	writes   int // of any kind
	reads    int
	opens    int
	dead     bool // the other side of a simulated process death: nothing more arrives
	unclosed int

	onCommit func(n int, cs []render.Change) fault
	onOpen   func(n int) error
	onRead   func(n int) error
	onSave   func() (skip bool, err error)
	onConf   func(tx drivers.TxID) (skip bool, err error)
	onAbort  func(tx drivers.TxID) (skip bool, err error)
}

// fault is what a commit does wrong.
type fault struct {
	before error                       // fails, and nothing is written
	keep   func(int) bool              // which changes are really written; nil = all
	after  error                       // fails after writing
	stall  bool                        // waits for the end of the context before answering
	then   func(*box)                  // happens right after the write
	write  func(render.Change) *string // another value than asked
}

func newBox(name string, d *render.Dialect, running render.Config) *box {
	return &box{
		name: name, d: d, running: running, startup: running, timed: map[drivers.TxID]render.Config{},
		opened: map[drivers.TxID]bool{}, facts: render.Facts{Hostname: name, Serial: "S-" + name, Version: "1"},
	}
}

// clone is the same device with the same state and no faults.
func (b *box) clone() *box {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := newBox(b.name, b.d, slices.Clone(b.running))
	c.facts, c.caps, c.timer, c.saver, c.guarded, c.startup = b.facts, b.caps, b.timer, b.saver, b.guarded, slices.Clone(b.startup)
	c.timed, c.opened = maps.Clone(b.timed), maps.Clone(b.opened)
	return c
}

// expire lets the confirm timer run out.
func (b *box) expire() {
	for tx, old := range b.timed {
		b.running = old
		delete(b.timed, tx)
	}
}

func (b *box) open(ctx context.Context) (drivers.Device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opens++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.onOpen != nil {
		if err := b.onOpen(b.opens); err != nil {
			return nil, err
		}
	}
	b.unclosed++
	c := &conn{b: b}
	switch {
	case b.timer && b.saver:
		return struct {
			*conn
			confirms
			saves
		}{c, confirms{c}, saves{c}}, nil
	case b.timer:
		return struct {
			*conn
			confirms
		}{c, confirms{c}}, nil
	case b.saver && b.guarded:
		return struct {
			*conn
			saves
			guards
		}{c, saves{c}, guards{c}}, nil
	case b.saver:
		return struct {
			*conn
			saves
		}{c, saves{c}}, nil
	case b.guarded:
		return struct {
			*conn
			guards
		}{c, guards{c}}, nil
	}
	return c, nil
}

type conn struct {
	b      *box
	closed bool
}

var errClosed = errors.New("the connection is closed")

func (c *conn) enter(ctx context.Context) error {
	switch {
	case c.closed:
		return errClosed
	case c.b.dead:
		return errors.New("a dead process reached the device")
	}
	return ctx.Err()
}

func (c *conn) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	return c.b.facts, c.b.caps, c.enter(ctx)
}

func (c *conn) Read(ctx context.Context) (render.Config, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	c.b.reads++
	if c.b.onRead != nil {
		if err := c.b.onRead(c.b.reads); err != nil {
			return nil, err
		}
	}
	return slices.Clone(c.b.running), nil
}

func (c *conn) Close() error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.closed = true
	c.b.unclosed--
	return nil
}

func (c *conn) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	f, err := c.commit(ctx, tx, cs, within)
	if f.stall {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}

func (c *conn) commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) (fault, error) {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	var f fault
	if err := c.enter(ctx); err != nil {
		return f, err
	}
	if within > 0 && !b.timer {
		return f, drivers.ErrNoConfirm
	}
	todo, moved := render.Remaining(b.d, b.facts, b.running, cs)
	if len(moved) > 0 {
		return f, fmt.Errorf("%s: commit: %w: %s", b.name, drivers.ErrMoved, moved[0].Key)
	}
	if len(b.timed) > 0 {
		return f, fmt.Errorf("%s: another commit timer is running", b.name)
	}
	b.commits++
	b.writes++
	if b.onCommit != nil {
		f = b.onCommit(b.commits, cs)
	}
	if f.before != nil {
		return f, f.before
	}
	old := slices.Clone(b.running)
	for i, x := range todo {
		if f.keep != nil && !f.keep(i) {
			continue
		}
		if f.write != nil && x.After != nil {
			x.After = f.write(x)
		}
		b.running = render.Apply(b.running, []render.Change{x})
	}
	if within > 0 {
		b.timed[tx] = old
	}
	if b.caps.PersistsOnCommit {
		b.startup = slices.Clone(b.running)
	}
	if f.then != nil {
		f.then(b)
	}
	return f, f.after
}

type confirms struct{ c *conn }

func (x confirms) Pending(ctx context.Context) ([]drivers.Tx, error) {
	b := x.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	var txs []drivers.Tx
	for _, id := range slices.Sorted(maps.Keys(b.timed)) {
		txs = append(txs, drivers.Tx{ID: id, State: drivers.TxTimed})
	}
	for _, id := range slices.Sorted(maps.Keys(b.opened)) {
		txs = append(txs, drivers.Tx{ID: id, State: drivers.TxOpen})
	}
	return txs, x.c.enter(ctx)
}

func (x confirms) Confirm(ctx context.Context, tx drivers.TxID) error {
	b := x.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := x.c.enter(ctx); err != nil {
		return err
	}
	b.writes++
	var err error
	if b.onConf != nil {
		var skip bool
		if skip, err = b.onConf(tx); skip {
			return err
		}
	}
	if _, ok := b.timed[tx]; !ok {
		return fmt.Errorf("%s: no transaction %s waits", b.name, tx)
	}
	delete(b.timed, tx)
	return err
}

func (x confirms) Abort(ctx context.Context, tx drivers.TxID) error {
	b := x.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := x.c.enter(ctx); err != nil {
		return err
	}
	b.writes++
	var err error
	if b.onAbort != nil {
		var skip bool
		if skip, err = b.onAbort(tx); skip {
			return err
		}
	}
	if old, ok := b.timed[tx]; ok {
		b.running = old
		delete(b.timed, tx)
		return err
	}
	if !b.opened[tx] {
		return fmt.Errorf("%s: no transaction %s", b.name, tx)
	}
	delete(b.opened, tx)
	return err
}

type guards struct{ c *conn }

func (x guards) CommitIf(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration, ok func(render.Facts, render.Config) error) error {
	f, _, err := x.c.Facts(ctx)
	if err != nil {
		return err
	}
	live, err := x.c.Read(ctx)
	if err != nil {
		return err
	}
	if err := ok(f, live); err != nil {
		return err
	}
	return x.c.Commit(ctx, tx, cs, within)
}

func (x guards) Rest() {}

type saves struct{ c *conn }

func (x saves) Saved(ctx context.Context) (bool, error) {
	b := x.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.startup.Equal(b.running), x.c.enter(ctx)
}

func (x saves) Save(ctx context.Context) error {
	b := x.c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := x.c.enter(ctx); err != nil {
		return err
	}
	b.writes++
	if b.onSave != nil {
		if skip, err := b.onSave(); skip || err != nil {
			return err
		}
	}
	b.startup = slices.Clone(b.running)
	return nil
}

// fabric is a set of boxes with what the model wants of them.
type fabric struct {
	want  map[string]render.Config
	boxes map[string]*box
	net   *intent.Net
	now   time.Time
	ids   int
	e     *Engine
}

// newFabric has the switches s1, s2 and the host h1, each with an old and a wanted configuration of two phases.
// breakLease breaks the lease of the fabric, whoever holds it.
func (f *fabric) breakLease(t *testing.T) {
	t.Helper()
	path := journal.LeasePath(LeasesDir(f.e.StateDir), "pod1")
	l, err := journal.ReadLease(path)
	if err == nil {
		_, err = journal.Break(context.Background(), path, l, journal.Options{Now: f.e.Now})
	}
	if err != nil {
		t.Error(err)
	}
}

func newFabric(dir string, names ...string) *fabric {
	f := &fabric{want: map[string]render.Config{}, boxes: map[string]*box{}, net: &intent.Net{Fabric: "pod1"}, now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	d := testDialect(f.want)
	for _, n := range names {
		f.want[n] = newConfig()
		f.boxes[n] = newBox(n, d, oldConfig())
		f.net.Devices = append(f.net.Devices, testDevice(n))
	}
	f.e = &Engine{
		Rules: theRules(),
		Open: func(ctx context.Context, n string) (drivers.Device, error) {
			b := f.boxes[n]
			if b == nil {
				return nil, fmt.Errorf("%s: no route to host", n)
			}
			return b.open(ctx)
		},
		Dialect: func(os string) *render.Dialect {
			if os == "test" {
				return d
			}
			return nil
		},
		StateDir: dir, Tool: "test", Parallel: 1,
		Now:   func() time.Time { return f.now },
		NewID: func() string { f.ids++; return fmt.Sprintf("run-%d", f.ids) },
		Wait:  func(context.Context, time.Duration) error { return nil },
	}
	return f
}

func testDevice(name string) intent.Device {
	d := intent.Device{Name: name, Fabric: "pod1", Platform: "test/box", Serial: "S-" + name, Host: name[0] == 'h', Profile: profiles.Platform{Verified: true}}
	d.Manage[intent.AreaMTU] = intent.Own
	d.Ports = []intent.Port{{Name: "downlink-1", Iface: "p1", Site: name, Manage: d.Manage}, {Name: "downlink-2", Iface: "p2", Site: name, Manage: d.Manage}}
	d.Intern(intent.Policy{Known: intent.AreaSet(intent.AreaMTU), MTU: 9000})
	return d
}

func oldConfig() render.Config {
	return conf("port p1 -", "port p1 mtu 1500", "port p2 -", "port p2 mtu 1400", "port p2 profile theirs", "prof theirs -", "prof theirs kmin 55",
		"watch p1 time 200", "port x1 -", "port x1 mtu 1500", "other thing a 1")
}

func newConfig() render.Config {
	return conf("port p1 -", "port p1 mtu 9000", "port p1 profile ours-a", "port p2 -", "port p2 mtu 9000", "port p2 profile ours-a", "prof ours-a -", "prof ours-a kmin 100",
		"watch p2 time 400")
}

// wanted is old with everything owned as the model wants it.
func (f *fabric) wanted(name string, old render.Config) render.Config {
	d := f.e.Dialect("test")
	own := d.Owns(intent.Device{}, render.Facts{})
	c := old.Filter(func(k render.Key) bool { return !own(k) })
	return append(slices.Clone(c), f.want[name]...).Sorted()
}

// stateDir is a directory in memory where the system has one: these tests write many small files, and what fsync does
// is not theirs to try.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rollout-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func theRules() Rules { return Rules{Check: lint.Check, Advise: lint.Advise} }
