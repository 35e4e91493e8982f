package hostlocal

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// The agent's tests run in a bubble of package synctest: its clock is theirs, and nothing waits for real.

const agentModel = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: sonic/sn5600}
  hosts:  {per_leaf: 1, nic: connectx-7, rails: 1, carries: [rdma], netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf:  {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9216B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, bandwidth: 60%, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
applications:
  - {name: nccl, business: training, class: training}
manage: {hosts: {mtu: own, host-nccl: own}}
`

// fileOf is the host file of a model.
func fileOf(t testing.TB, text string) *File {
	t.Helper()
	f, l := model.Load(fstest.MapFS{"m.yaml": {Data: []byte(text)}}, "m.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatal(l)
	}
	return FileOf(*n.Device("host1"), f.Digest(), "test", true)
}

// box is a host of the tests: settings by key.
type box struct {
	mu      sync.Mutex
	live    map[render.Key]string
	facts   render.Facts
	broken  error // of every read
	refuses error // of every commit
	holds   []journal.Hold
	commits int
	reads   int
}

func (b *box) open(context.Context, string) (drivers.Device, error) { return boxDevice{b}, nil }

type boxDevice struct{ b *box }

func (d boxDevice) Close() error { return nil }

func (d boxDevice) Facts(context.Context) (render.Facts, drivers.Caps, error) {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	return d.b.facts, drivers.Caps{PersistsOnCommit: true}, d.b.broken
}

func (d boxDevice) Read(context.Context) (render.Config, error) {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.b.reads++
	var c render.Config
	for k, v := range d.b.live {
		c = append(c, render.Setting{Key: k, Value: v})
	}
	return c.Sorted(), d.b.broken
}

func (d boxDevice) Holds(context.Context) ([]journal.Hold, error) { return d.b.holds, nil }

func (d boxDevice) Commit(_ context.Context, _ drivers.TxID, cs []render.Change, _ time.Duration) error {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	d.b.commits++
	if d.b.refuses != nil {
		return d.b.refuses
	}
	for _, c := range cs {
		if c.After == nil {
			delete(d.b.live, c.Key)
		} else {
			d.b.live[c.Key] = *c.After
		}
	}
	return nil
}

func (b *box) set(k render.Key, v string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.live[k] = v
}

func (b *box) get(k render.Key) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live[k]
}

// do is for what the agent may look at meanwhile.
func (b *box) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *box) count() (reads, commits int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads, b.commits
}

var (
	mtuKey = render.Key{Scope: "link", Object: "rdma0", Field: "mtu"}
	tcKey  = render.Key{Scope: "nccl", Object: "/etc/nccl.conf", Field: "NCCL_IB_TC"}
	hcaKey = render.Key{Scope: "nccl", Object: "/etc/nccl.conf", Field: "NCCL_IB_HCA"}
)

// stage is an agent at work on a box.
type stage struct {
	*box
	t      *testing.T
	dir    string
	log    *bytes.Buffer
	logMu  *sync.Mutex
	events chan Event
	reload chan os.Signal
	told   []string // lines to the service manager
	stop   func() error
	file   *File
	bad    error // of the host file
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// play starts an agent on a box that is as the file says but for what change does.
func play(t *testing.T, change func(*stage, *Agent)) *stage {
	t.Helper()
	s := &stage{
		t: t, dir: t.TempDir(), log: new(bytes.Buffer), logMu: new(sync.Mutex), events: make(chan Event), reload: make(chan os.Signal, 1), file: fileOf(t, agentModel),
		box: &box{live: map[render.Key]string{mtuKey: "9000", tcKey: "104", hcaKey: "=mlx5_0:1"}, facts: render.Facts{Hostname: "host1", Version: "6.12", NICs: []render.HostNIC{{Name: "rdma0", Driver: "mlx5_core", RDMA: "mlx5_0", GID: 3, QPs: -1}}}},
	}
	log := slog.New(slog.NewTextHandler(lockedWriter{s.logMu, s.log}, nil))
	ids := 0
	a := Agent{
		Machine: Machine{State: filepath.Join(s.dir, "state"), Version: "test", Kernel: netlink.Config{Root: s.dir, Links: noLinks{}}}, Accept: true, Metrics: filepath.Join(s.dir, "m.prom"), Log: log,
		Load: func() (*File, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.file, s.bad
		},
		Engine: func(*File) (*rollout.Engine, error) {
			return &rollout.Engine{
				Open: s.open, Dialect: Dialect, StateDir: filepath.Join(s.dir, "state"), Tool: "test", Now: time.Now, Log: log,
				NewID: func() string {
					ids++
					return RunPrefix + time.Now().Format("060102-150405") + "-" + strings.Repeat("0", 7) + string(rune('a'+ids%26))
				},
			}, nil
		},
		Notify: Notifier{Every: 30 * time.Second, Send: func(d string) error {
			s.do(func() { s.told = append(s.told, d) })
			return nil
		}},
	}
	if change != nil {
		change(s, &a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, s.events, s.reload) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	synctest.Wait()
	return s
}

type noLinks struct{ netlink.Links }

func (noLinks) Close() error                                 { return nil }
func (noLinks) List(context.Context) ([]netlink.Link, error) { return nil, nil }

// after lets time pass.
func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) says(words ...string) {
	s.t.Helper()
	s.logMu.Lock()
	defer s.logMu.Unlock()
	for _, w := range words {
		if !strings.Contains(s.log.String(), w) {
			s.t.Errorf("the log does not say %q:\n%s", w, s.log)
		}
	}
}

// metric is the value of a sample.
func (s *stage) metric(sample string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "m.prom"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), sample+" "); ok {
			return v
		}
	}
	return "absent"
}

func (s *stage) metrics(want map[string]string) {
	s.t.Helper()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got := s.metric(k); got != want[k] {
			s.t.Errorf("%s is %s, want %s", k, got, want[k])
		}
	}
}

func run(t *testing.T, name string, change func(*stage, *Agent), f func(*testing.T, *stage)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := play(t, change)
			f(t, s)
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestAgent(t *testing.T) {
	run(t, "in step", nil, func(t *testing.T, s *stage) {
		s.after(10 * time.Minute)
		reads, commits := s.count()
		if commits > 0 || reads != 11 {
			t.Errorf("%d reads and %d commits in ten minutes without an event", reads, commits)
		}
		s.says("the host is as its file says")
		s.metrics(map[string]string{
			"fabricctl_host_readable": "1", `fabricctl_host_drift_settings{risk="hitless"}`: "0", "fabricctl_agent_looks_total": "11",
			`fabricctl_nic_gid_index{nic="rdma0"}`: "3", `fabricctl_nic_live_queue_pairs{nic="rdma0"}`: "absent", "fabricctl_host_repairs_stopped": "0",
		})
		if !slices.Contains(s.told, "READY=1") || !slices.Contains(s.told, "STATUS=the host is as its file says") {
			t.Errorf("told %q", s.told)
		}
		beats := 0
		for _, x := range s.told {
			if x == "WATCHDOG=1" {
				beats++
			}
		}
		if beats < 38 || beats > 41 { // every 15 s of 600
			t.Errorf("%d beats", beats)
		}
		if err := s.stop(); err != nil || s.told[len(s.told)-1] != "STOPPING=1" {
			t.Errorf("%v, told %q", err, s.told[len(s.told)-1])
		}
	})
	run(t, "a harmless drift is repaired two seconds after the event", nil, func(t *testing.T, s *stage) {
		s.set(tcKey, "0")
		s.events <- Event{"dcb", "rdma0"}
		s.after(1900 * time.Millisecond)
		if s.get(tcKey) != "0" {
			t.Error("repaired at once")
		}
		s.after(200 * time.Millisecond)
		if v := s.get(tcKey); v != "104" {
			t.Errorf("NCCL_IB_TC is %s", v)
		}
		s.says("repaired", "NCCL_IB_TC 104")
		s.metrics(map[string]string{"fabricctl_host_repaired_settings_total": "1", `fabricctl_agent_events_total{kind="dcb"}`: "1"})
	})
	run(t, "events that follow each other are one look, and wait no longer than ten seconds", nil, func(t *testing.T, s *stage) {
		before, _ := s.count()
		for range 12 {
			s.events <- Event{"device", ""}
			s.after(time.Second)
		}
		if reads, _ := s.count(); reads != before+1 {
			t.Errorf("%d looks in twelve seconds of events", reads-before)
		}
	})
	run(t, "links of containers are nobody's", nil, func(t *testing.T, s *stage) {
		before, _ := s.count()
		s.events <- Event{"link", "veth1234"}
		s.after(5 * time.Second)
		if reads, _ := s.count(); reads != before {
			t.Error("it looked")
		}
		s.events <- Event{"lost", ""}
		s.after(5 * time.Second)
		if reads, _ := s.count(); reads != before+1 {
			t.Error("it did not look after events were lost")
		}
	})
	run(t, "what makes the link flap is said and left", nil, func(t *testing.T, s *stage) {
		s.set(mtuKey, "1500")
		s.set(tcKey, "0")
		s.after(time.Minute)
		if m, tc := s.get(mtuKey), s.get(tcKey); m != "1500" || tc != "104" {
			t.Errorf("mtu %s, NCCL_IB_TC %s", m, tc)
		}
		s.says("1 setting differs: not repaired, flap")
		s.metrics(map[string]string{`fabricctl_host_drift_settings{risk="flap"}`: "1", `fabricctl_host_setting_differs{object="rdma0",setting="link mtu"}`: "1"})
		r, err := Machine{State: filepath.Join(s.dir, "state")}.LastReport()
		if err != nil || r.Drift != 1 || r.Repairs != 1 {
			t.Errorf("report %+v, %v", r, err)
		}
	})
	run(t, "unless it is to be", func(_ *stage, a *Agent) { a.Always = true }, func(t *testing.T, s *stage) {
		s.do(func() { s.facts.NICs = []render.HostNIC{{Name: "rdma0", RDMA: "mlx5_0"}} })
		s.set(mtuKey, "1500")
		s.after(time.Minute)
		if m := s.get(mtuKey); m != "9000" {
			t.Errorf("mtu %s", m)
		}
	})
	run(t, "a fight is given up", nil, func(t *testing.T, s *stage) {
		for range 3 {
			s.set(tcKey, "0")
			s.after(time.Minute)
		}
		s.says("does not stay as it was repaired")
		s.set(tcKey, "0")
		s.after(5 * time.Minute)
		if s.get(tcKey) != "0" {
			t.Error("it goes on")
		}
		s.metrics(map[string]string{"fabricctl_host_given_up_settings": "1", "fabricctl_host_repaired_settings_total": "3"})
		s.after(6 * time.Minute)
		if s.get(tcKey) != "104" {
			t.Error("it was given up for good")
		}
	})
	run(t, "a hold is kept", func(s *stage, _ *Agent) {
		s.holds = []journal.Hold{{Fabric: "pod1", Device: "host1", Until: time.Now().Add(time.Hour), Reason: "tests"}}
		s.live[tcKey] = "0"
	}, func(t *testing.T, s *stage) {
		s.after(10 * time.Minute)
		if s.get(tcKey) != "0" {
			t.Error("it was repaired")
		}
		s.metrics(map[string]string{"fabricctl_host_held_settings": "1"})
	})
	run(t, "another owner stops repairs", func(s *stage, _ *Agent) {
		s.facts.Owners = []string{"lldpad runs: systemctl disable --now lldpad"}
		s.live[tcKey] = "0"
	}, func(t *testing.T, s *stage) {
		s.after(10 * time.Minute)
		if s.get(tcKey) != "0" {
			t.Error("it was repaired")
		}
		s.says("repairs are stopped: ", "systemctl disable --now lldpad")
		s.metrics(map[string]string{"fabricctl_host_repairs_stopped": "1", "fabricctl_host_competing_owners": "1", `fabricctl_host_drift_settings{risk="hitless"}`: "absent"})
		s.do(func() { s.facts.Owners = nil })
		s.after(time.Minute)
		if s.get(tcKey) != "104" {
			t.Error("it was not repaired when the other was gone")
		}
	})
	run(t, "a machine that cannot be read", func(s *stage, _ *Agent) { s.broken = errors.New("no buffer space") }, func(t *testing.T, s *stage) {
		s.says("cannot be read", "no buffer space")
		s.metrics(map[string]string{"fabricctl_host_readable": "0", `fabricctl_host_drift_settings{risk="hitless"}`: "absent"})
	})
	run(t, "a repair that fails", func(s *stage, _ *Agent) { s.refuses = errors.New("device busy"); s.live[tcKey] = "0" }, func(t *testing.T, s *stage) {
		s.says("a repair failed", "device busy")
		s.metrics(map[string]string{"fabricctl_host_repair_failures_total": "1", `fabricctl_host_drift_settings{risk="hitless"}`: "1"})
		s.after(time.Hour)
		if _, n := s.count(); n > 20 {
			t.Errorf("%d attempts in an hour", n)
		}
	})
	run(t, "a new file", nil, func(t *testing.T, s *stage) {
		next := fileOf(t, strings.Replace(agentModel, "dscp: [26]", "dscp: [34]", 1))
		s.do(func() { s.file = next })
		s.reload <- syscall.SIGHUP
		s.after(time.Second)
		if v := s.get(tcKey); v != "136" {
			t.Errorf("NCCL_IB_TC is %s", v)
		}
		s.do(func() { s.bad = errors.New("it is not JSON") })
		s.reload <- syscall.SIGHUP
		s.after(time.Minute)
		s.says("the one before stays in force")
		s.metrics(map[string]string{"fabricctl_agent_host_file_rejected": "1"})
		s.do(func() { s.bad = nil })
		s.reload <- syscall.SIGHUP
		s.after(time.Second)
		s.metrics(map[string]string{"fabricctl_agent_host_file_rejected": "0"})
	})
	run(t, "without events it looks every minute", nil, func(t *testing.T, s *stage) {
		close(s.events)
		s.set(tcKey, "0")
		s.after(time.Minute)
		if s.get(tcKey) != "104" {
			t.Error("it was not repaired")
		}
	})
}

// The process that was to take a change back may be gone, with a reboot say, and the time not over when the agent starts.
func TestAgentTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(s *stage, _ *Agent) {
			conf := filepath.Join(s.dir, "etc", "nccl.conf")
			pending := filepath.Join(s.dir, "state", "pending", "tx1.json")
			for path, text := range map[string]string{
				conf: "A=2\n",
				pending: `{"tx":"tx1","state":"timed","deadline":"` + time.Now().Add(5*time.Minute).Format(time.RFC3339) + `",
					"undo":[{"op":"modify","key":["nccl","/etc/nccl.conf","A"],"before":"2","after":"1"}]}`,
			} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
		})
		holds := func() string {
			b, err := os.ReadFile(filepath.Join(s.dir, "etc", "nccl.conf"))
			if err != nil {
				t.Error(err)
			}
			return string(b)
		}
		s.box.set(tcKey, "96")
		s.after(4 * time.Minute)
		if got := holds(); got != "A=2\n" {
			t.Errorf("before its time: %q", got)
		}
		if _, commits := s.box.count(); commits != 0 {
			t.Errorf("%d repairs while a change waits to be confirmed", commits)
		}
		s.says("1 setting differs: nothing is repaired while a change waits to be confirmed")
		s.after(3 * time.Minute)
		if got := s.box.get(tcKey); got != "104" {
			t.Errorf("not repaired afterwards: %s", got)
		}
		if got := holds(); got != "A=1\n" {
			t.Errorf("after its time: %q\n%s", got, s.log)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A second agent on a machine says who is the first.
func TestAgentAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(t, nil)
		second := Agent{Machine: Machine{State: filepath.Join(s.dir, "state")}}
		err := second.Run(t.Context(), nil, nil)
		var busy *journal.BusyError
		if !errors.As(err, &busy) || !strings.Contains(err.Error(), "fabricctl-host agent") {
			t.Errorf("%v", err)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}
