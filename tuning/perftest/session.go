package perftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// Config is what a Session works with.
type Config struct {
	Exec   Exec
	Ledger *Ledger // nil = nobody remembers what was begun

	// Sense reads the counters of all devices, by their names; ran is whether tests have run since the last reading. Nil = nobody counts.
	Sense func(ctx context.Context, ran bool) (map[string]observe.Counters, error)

	Port   int    // TCP, of the first pair; the next has the next. 0 = 18600
	Limits Limits // zero values are those of Usual

	// AnyClock says that the clock by which a CPU counts need not be sure: a run is used that says so, with a note.
	AnyClock bool

	// Instant says that tests take no time, as on emulated hosts: latency tests begin with the others, instead of once those are under
	// way, and how long anything took says nothing.
	Instant bool

	Setup time.Duration                                    // that a test may take beside what it measures; 0 = 30 s
	Now   func() time.Time                                 // nil = time.Now
	Pause func(ctx context.Context, d time.Duration) error // waits; nil = for real
}

// firstPort is the usual TCP port of the first pair.
const firstPort = 18600

// Refused is why nothing of a plan was begun: a host that lacks something. Nothing was changed.
type Refused struct {
	Host string
	What string
	Hint string // "" = none
}

func (r *Refused) Error() string { return r.Host + ": " + r.What }

// Silent is a host that cannot be talked to any more.
type Silent struct {
	Host string
	Err  error
}

func (s *Silent) Error() string { return s.Host + ": " + s.Err.Error() }

// Unwrap is what happened.
func (s *Silent) Unwrap() error { return s.Err }

// Session runs plans of verbs tests on hosts, one after the other.
type Session struct {
	o       Config
	version string            // of perftest on all hosts that were asked
	asked   map[string]bool   // hosts and tools
	ran     bool              // tests have run since counters were read
	paces   map[string][]pace // of the last runs of a latency test, by pair
}

// New is a session. It talks to nobody yet.
func New(o Config) *Session {
	o.Port = cmp.Or(o.Port, firstPort)
	o.Setup = cmp.Or(o.Setup, 30*time.Second)
	o.Limits = o.Limits.or(Usual())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	return &Session{o: o, asked: map[string]bool{}, paces: map[string][]pace{}}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Check asks hosts whether they have what a plan needs, and begins nothing: the tools, all of the same version, a GID for each NIC, and free TCP ports. What
// is wrong with several hosts is joined, each a *Refused or a *Silent.
func (s *Session) Check(ctx context.Context, plan *Plan) error {
	if err := s.installed(ctx, plan); err != nil {
		return err
	}
	_, err := s.prepare(ctx, plan)
	return err
}

// Version is that of perftest on the hosts that Check has asked, as it says; "" = it is not known.
func (s *Session) Version() string { return s.version }

// installed asks hosts once whether they have the tools, all of the same version.
func (s *Session) installed(ctx context.Context, plan *Plan) error {
	hosts := plan.hosts()
	errs := make([]error, len(hosts))
	versions := make([]string, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		tools := plan.tools(h)
		if key := h + " " + strings.Join(tools, " "); !s.asked[key] {
			s.asked[key] = true
			wg.Go(func() { versions[i], errs[i] = s.tools(ctx, h, tools) })
		}
	}
	wg.Wait()
	err := errors.Join(errs...)
	for i, v := range versions {
		if s.version == "" {
			s.version = v
		}
		if v != "" && v != s.version && err == nil {
			err = &Refused{hosts[i], fmt.Sprintf("perftest is version %s here, and %s on others", v, s.version), "install the same version of perftest on all hosts"}
		}
	}
	if err != nil {
		clear(s.asked)
	}
	return err
}

// tools asks a host for the programs that it needs, and for their version.
func (s *Session) tools(ctx context.Context, host string, names []string) (version string, err error) {
	said, _, err := ask(ctx, s.o.Exec, host, "command -v "+strings.Join(names, "; command -v "))
	if err != nil {
		return "", &Silent{host, err}
	}
	for _, n := range names {
		if slices.ContainsFunc(strings.Fields(said), func(w string) bool { return w == n || strings.HasSuffix(w, "/"+n) }) {
			continue
		}
		hint := "install perftest (package perftest of most distributions, or of the NIC's vendor)"
		if n == "timeout" {
			hint = "install coreutils: every test is begun under timeout, so that it ends whatever becomes of us"
		}
		return "", &Refused{host, n + " is not installed, or not in the path of this login", hint}
	}
	for _, n := range names {
		if n == "timeout" {
			continue
		}
		said, _, err := ask(ctx, s.o.Exec, host, n+" --version")
		if err != nil {
			return "", &Silent{host, err}
		}
		_, v, ok := strings.Cut(said, "Version: ")
		if version, _, _ = strings.Cut(v, "\n"); !ok {
			version = ""
		}
		version = printable([]byte(version))
		break
	}
	return version, nil
}

// ready is a pair with all that its commands need.
type ready struct {
	Pair
	server         Test // the server's, which has a device and a GID of its own
	address        string
	serve, connect Argv
}

// key tells one pair of a plan from the others.
func (r *ready) key() string {
	return r.Part + "|" + r.Client.Host + r.Client.Iface + "|" + r.Server.Host + r.Server.Iface
}

// prepare finds devices, GIDs and ports as they are now: they may have moved since the last run.
func (s *Session) prepare(ctx context.Context, plan *Plan) (_ []ready, err error) {
	hosts := plan.hosts()
	tables := make([][]gid, len(hosts))
	ports := make([]map[int]bool, len(hosts))
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() { tables[i], ports[i], errs[i] = s.look(ctx, h) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	at := func(h string) int { return slices.Index(hosts, h) }
	out := make([]ready, len(plan.Pairs))
	for i := range plan.Pairs {
		r := &out[i]
		r.Pair = plan.Pairs[i]
		client, why := pick(tables[at(r.Client.Host)], &r.Client)
		if why != "" {
			return nil, &Refused{r.Client.Host, why, ""}
		}
		server, why := pick(tables[at(r.Server.Host)], &r.Server)
		if why != "" {
			return nil, &Refused{r.Server.Host, why, ""}
		}
		if client.address.Is4() != server.address.Is4() {
			return nil, &Refused{r.Client.Host, fmt.Sprintf("has %s, and %s has %s: a GID of IPv4 does not talk to one of IPv6", client.address, r.Server.Host, server.address), ""}
		}
		r.Port = s.o.Port + i
		if ports[at(r.Server.Host)][r.Port] {
			return nil, &Refused{r.Server.Host, fmt.Sprintf("something listens at TCP port %d already, which a test would need", r.Port), fmt.Sprintf("find it with ss -ltnp 'sport = :%d', or begin at another port", r.Port)}
		}
		if r.Latency && r.Duration == 0 {
			r.Iterations = s.fitting(r, plan)
		}
		r.server = r.Test
		r.Device, r.IBPort, r.GID = client.device, client.port, client.index
		r.server.Device, r.server.IBPort, r.server.GID = server.device, server.port, server.index
		if r.address = server.address.String(); server.address.IsLinkLocalUnicast() {
			r.address = r.Server.Name
		}
		if r.serve, err = r.server.Serve(); err != nil {
			return nil, &Refused{r.Server.Host, err.Error(), ""}
		}
		if r.connect, err = r.Connect(r.address); err != nil {
			return nil, &Refused{r.Client.Host, err.Error(), ""}
		}
	}
	return out, nil
}

// look reads the GID tables of a host, and the ports that something listens at.
func (s *Session) look(ctx context.Context, host string) (table []gid, ports map[int]bool, err error) {
	said, _, err := ask(ctx, s.o.Exec, host, "ls /sys/class/infiniband")
	if err != nil {
		return nil, nil, &Silent{host, err}
	}
	devices := slices.DeleteFunc(strings.Fields(said), func(d string) bool { return !plainWord(d, "_-.") || len(d) > 63 })
	if len(devices) == 0 {
		return nil, nil, &Refused{host, "it has no RDMA device: /sys/class/infiniband is empty", "load the NIC's RDMA driver, or rdma_rxe with rdma link add"}
	}
	if said, _, err = ask(ctx, s.o.Exec, host, gidCommand(devices)); err != nil {
		return nil, nil, &Silent{host, err}
	}
	table = readGIDs(said)
	if ports, err = listening(ctx, s.o.Exec, host); err != nil {
		return nil, nil, &Silent{host, err}
	}
	return table, ports, nil
}

// Leftovers ends what an earlier session has begun and not ended, and says what it did: a process whose number and start are those that were written down, and
// nothing else.
func (s *Session) Leftovers(ctx context.Context, left []Process) (said []string) {
	for _, p := range left {
		switch was, err := s.end(ctx, p); {
		case err != nil:
			said = append(said, fmt.Sprintf("%s was left by an earlier run, and may run still: %v", p, err))
			continue
		case was:
			said = append(said, fmt.Sprintf("%s was left by an earlier run, and was ended", p))
		}
		if err := s.o.Ledger.ended(p); err != nil {
			said = append(said, err.Error())
		}
	}
	return said
}

// Waits for a process to end after a signal, in steps.
const (
	killStep  = 100 * time.Millisecond
	killSteps = 30
)

// end ends a process if it is there: first as timeout would, then for good, with the group that it leads. was is whether it was there.
func (s *Session) end(ctx context.Context, p Process) (was bool, err error) {
	is, err := alive(ctx, s.o.Exec, p)
	if err != nil || !is {
		return false, err
	}
	for _, kill := range []string{fmt.Sprintf("kill -s TERM %d", p.PID), fmt.Sprintf("kill -s KILL -- -%d; kill -s KILL %d", p.PID, p.PID)} {
		if _, _, err := ask(ctx, s.o.Exec, p.Host, kill); err != nil {
			return true, err
		}
		for range killSteps {
			if is, err = alive(ctx, s.o.Exec, p); err != nil || !is {
				return true, err
			}
			if err := s.o.Pause(ctx, killStep); err != nil {
				return true, err
			}
		}
	}
	return true, fmt.Errorf("SIGKILL has not ended it: it hangs in the kernel, as where a link is down; on %s run kill -9 %d, or restart the host", p.Host, p.PID)
}

// pace is how a latency test has gone.
type pace struct {
	trip  time.Duration // of a message
	setup time.Duration // beside its messages
}

// How many messages a latency test has.
const (
	usualFew    = 1000   // of tests that take no time
	mostSamples = 50_000 // all of which are printed, and kept
	lastPaces   = 6
)

// fitting is how many messages of a latency test fit: as many as take six tenths of what is left of the load's time at the slowest
// of its last runs. While that is not known, it is as few as may be used.
func (s *Session) fitting(r *ready, plan *Plan) int {
	if s.o.Instant {
		return usualFew
	}
	few := max(s.o.Limits.Messages, leastMessages)
	var slow pace
	for _, p := range s.paces[r.key()] {
		slow = pace{max(slow.trip, p.trip), max(slow.setup, p.setup)}
	}
	if slow.trip == 0 {
		return int(few)
	}
	left := plan.Duration + 2*plan.Margin - lead(s, plan) - slow.setup
	return int(min(max(6*int64(left)/10/int64(slow.trip), few), mostSamples))
}

// fit remembers how a latency test has gone that took so long.
func (s *Session) fit(r *ready, w *Row, took time.Duration) {
	trip := w.Mean.V
	if r.Op != Read {
		trip *= 2
	}
	if trip <= 0 {
		return
	}
	ps := append(s.paces[r.key()], pace{trip, max(took-time.Duration(w.Iterations)*trip, 0)})
	s.paces[r.key()] = ps[max(len(ps)-lastPaces, 0):]
}

// measured reports whether it is known how long a message of each latency test takes.
func (s *Session) measured(plan *Plan) bool {
	return s.o.Instant || !slices.ContainsFunc(plan.Pairs, func(p Pair) bool {
		return p.Latency && p.Duration == 0 && len(s.paces[(&ready{Pair: p}).key()]) == 0
	})
}

// named are the hosts of a map, in order.
func named[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
