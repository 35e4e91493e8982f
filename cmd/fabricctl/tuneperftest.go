package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/perftest"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// perftestFlags are how verbs tests are run on hosts.
type perftestFlags struct {
	port   int
	slow   bool
	rdmaCM bool
	settle time.Duration
}

func (o *perftestFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.port, "test-port", 0, "with --runner perftest: TCP port of the first pair of hosts, the next has the next (default 18600)")
	f.BoolVar(&o.slow, "slow-hosts", false, "with --runner perftest: use what hosts measure whose CPU is busy or whose clock is not at its highest, and send again after a second only, as for virtual machines with RDMA in software")
	f.BoolVar(&o.rdmaCM, "rdma-cm", false, "with --runner perftest: connect by rdma_cm (-R -T), for drivers that do not take the class otherwise")
	f.DurationVar(&o.settle, "settle", 0, "with --runner perftest: how long after a run counters are read, for devices whose counters are old (default 11s with real SONiC, else none)")
}

// check refuses what cannot be.
func (o *perftestFlags) check() error {
	switch {
	case o.port < 0 || o.port > 65535:
		return usage("--test-port %d: want a TCP port, from 1 to 65535", o.port)
	case o.settle < 0:
		return usage("--settle %s: want a time, or 0 for the usual one", o.settle)
	}
	return nil
}

// perftestRunner makes runs of verbs tests on the hosts of a model. It is used by one goroutine.
type perftestRunner struct {
	net      *intent.Net
	flags    perftestFlags
	hosts    *testHosts
	counters *senses
	ledger   *perftest.Ledger
	session  *perftest.Session
	dir      string // for outputs; "" = they are not kept
	notes    []string
}

// newPerftestRunner makes runs on the hosts of m that take part in w, and keeps what tests print below dir. It has asked all of them for what they need when it
// returns, and has ended what an earlier run had left, which said tells; it has changed nothing else. Close ends it.
func (a *app) newPerftestRunner(ctx context.Context, m loaded, w observe.Workload, seed uint64, o perftestFlags, dir string) (_ *perftestRunner, said []string, err error) {
	r := &perftestRunner{net: m.net, flags: o, dir: dir}
	plan, err := r.plan(w, seed)
	if err != nil {
		return nil, nil, err
	}
	if said, err = r.ready(ctx, a, m, plan); err != nil {
		return nil, said, errors.Join(err, r.Close())
	}
	return r, said, nil
}

// ready finds out whether the devices of a plan can do what it needs, and ends what an earlier run had left.
func (r *perftestRunner) ready(ctx context.Context, a *app, m loaded, plan *perftest.Plan) (said []string, err error) {
	d := a.dialler(m.fabric, m.net)
	names := perftestDevices(m, plan)
	r.hosts, r.counters = d.testHosts(), d.senses(names)
	if slices.ContainsFunc(names, func(n string) bool { return m.net.Device(n).OS() == "sonic" && !m.emulated(n) }) && r.flags.settle == 0 {
		r.flags.settle = 11 * time.Second // SONiC copies the counters of queues from the ASIC each 10 s
	}
	state, err := a.state()
	if err != nil {
		return nil, err
	}
	var left []perftest.Process
	if r.ledger, left, err = perftest.OpenLedger(filepath.Join(state, "tune", m.net.Fabric+".processes"), journal.Options{Now: time.Now}); err != nil {
		return nil, fail(exitError, "", "%w; nothing was begun on any host", err)
	}
	c := perftest.Config{Exec: r.hosts, Sense: r.sense, Ledger: r.ledger, Port: r.flags.port, AnyClock: r.flags.slow}
	c.Instant = !slices.ContainsFunc(plan.Pairs, func(p perftest.Pair) bool { return !m.emulated(p.Client.Host) || !m.emulated(p.Server.Host) })
	c.Limits = r.flags.limits()
	r.session = perftest.New(c)
	said = r.session.Leftovers(ctx, left)
	if err := r.session.Check(ctx, plan); err != nil {
		return said, perftestRefused(ctx, err)
	}
	if r.notes, err = r.counters.first(ctx); err != nil {
		return said, interrupted(ctx, err)
	}
	return said, nil
}

// tool is what makes the runs, with its version: "perftest 6.06".
func (r *perftestRunner) tool() string {
	return strings.TrimSpace("perftest " + r.session.Version())
}

// perftestRefused is the error of hosts that cannot run tests.
func perftestRefused(ctx context.Context, err error) error {
	if x, ok := errors.AsType[*perftest.Refused](err); ok {
		return fail(exitError, x.Hint, "%w; nothing was begun on any host", err)
	}
	return interrupted(ctx, err)
}

// perftestDevices are the devices whose counters are read: the hosts that take part, and the switches that can be reached.
func perftestDevices(m loaded, plan *perftest.Plan) []string {
	var names []string
	for i := range m.net.Devices {
		d := &m.net.Devices[i]
		part := !d.Host || slices.ContainsFunc(plan.Pairs, func(p perftest.Pair) bool { return p.Client.Host == d.Name || p.Server.Host == d.Name })
		if e := m.fabric.Endpoints[d.Name]; part && d.State == intent.Active && e != nil && e.Address.Set {
			names = append(names, d.Name)
		}
	}
	return names
}

// sense reads all counters, once those of slow devices have settled after what has run.
func (r *perftestRunner) sense(ctx context.Context, ran bool) (map[string]observe.Counters, error) {
	if ran && r.flags.settle > 0 {
		t := time.NewTimer(r.flags.settle)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return r.counters.all(ctx)
}

// limits are what a test has to reach to be counted.
func (f *perftestFlags) limits() perftest.Limits {
	if f.slow {
		return perftest.Limits{Messages: 40, Time: time.Second}
	}
	return perftest.Usual()
}

// plan is the tests of a workload, between the hosts that a simulation of it would have send.
func (r *perftestRunner) plan(w observe.Workload, seed uint64) (*perftest.Plan, error) {
	refused := func(err error) error {
		if e, ok := errors.AsType[*observe.Error](err); ok {
			return fail(exitUsage, e.Hint, "--runner perftest: %w", err)
		}
		return err
	}
	if err := perftest.Express(&w); err != nil {
		return nil, refused(err)
	}
	if least := r.flags.limits().Time; w.Duration > 0 && time.Duration(w.Duration) < least {
		return nil, fail(exitUsage, fmt.Sprintf("write for=%s, or more", least), "--runner perftest: for %s is too short: tests of less than %s are not counted; nothing was done", w.Duration, least)
	}
	setup, err := sim.Build(r.net, perftest.Once(w), sim.Options{}, seed)
	if x, ok := errors.AsType[*sim.Refused](err); ok {
		var words []string
		for _, f := range x.Findings {
			if f.Severity == diag.Error {
				words = append(words, f.Msg)
			}
		}
		return nil, fail(exitError, "", "who sends to whom cannot be told: %s", strings.Join(words, "; "))
	}
	if err != nil {
		return nil, err
	}
	var lanes []perftest.Lane
	for _, l := range setup.Lanes() {
		from, err := r.end(l.Src, l.SrcPort)
		if err != nil {
			return nil, err
		}
		to, err := r.end(l.Dst, l.DstPort)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, perftest.Lane{Part: l.Part, From: from, To: to, DSCP: l.DSCP, Class: l.Class, Priority: l.Priority, Back: l.Reverse})
	}
	plan, err := perftest.NewPlan(&w, lanes, perftest.Settings{RDMACM: r.flags.rdmaCM, AnyClock: r.flags.slow, Patient: r.flags.slow, CPU: !r.flags.slow})
	if err != nil {
		return nil, refused(err)
	}
	return &plan, nil
}

// end is a NIC of the model.
func (r *perftestRunner) end(device, port string) (e perftest.End, err error) {
	d := r.net.Device(device)
	i := slices.IndexFunc(d.Ports, func(p intent.Port) bool { return p.Name == port })
	p := &d.Ports[i]
	e = perftest.End{Host: device, Name: cmp.Or(d.Hostname, device), Iface: p.Iface, Bond: p.Bond, RDMA: p.RDMA, Switch: p.Peer}
	if p.IP != "" {
		ip, err := netip.ParsePrefix(p.IP)
		if err != nil {
			return e, fmt.Errorf("%s: %w", device, err)
		}
		e.Address = ip.Addr()
	}
	if s := r.net.Device(p.Peer); s != nil {
		if j := slices.IndexFunc(s.Ports, func(x intent.Port) bool { return x.Name == p.PeerPort }); j >= 0 {
			e.SwitchIface = s.Ports[j].Iface
		}
	}
	return e, nil
}

// Run makes one run of tests.
func (r *perftestRunner) Run(ctx context.Context, t tuning.Trial) (observe.Observation, error) {
	plan, err := r.plan(t.Workload, t.Seed)
	if err != nil {
		return observe.Observation{}, err
	}
	res, err := r.session.Run(ctx, plan)
	digest, keepErr := r.keep(res.Raw)
	o := res.Observation
	o.Workload, o.Digest, o.Notes = t.Workload, digest, append(slices.Clone(r.notes), o.Notes...)
	silent, lost := errors.AsType[*perftest.Silent](err)
	dead, gone := errors.AsType[*lostDevice](err)
	refused, changed := errors.AsType[*perftest.Refused](err)
	switch {
	case ctx.Err() != nil:
		for _, p := range res.Left {
			err = errors.Join(err, fmt.Errorf("%s may run still: kill -9 %d there", p, p.PID))
		}
		return o, err
	case lost:
		return o, &tuning.Lost{Device: silent.Host, Err: silent.Err}
	case gone:
		return o, &tuning.Lost{Device: dead.device, Err: dead.err}
	case changed: // it was all right when the experiment began
		return o, &tuning.Rejected{Code: "refused", Why: refused.Error()}
	case err != nil:
		return o, err
	case keepErr != nil:
		return o, keepErr
	case res.Rejected != nil:
		return o, &tuning.Rejected{Code: string(res.Rejected.Code), Why: res.Rejected.Why, Host: res.Rejected.Host}
	}
	return o, nil
}

// keep writes what tests have printed, as a file that is named by its digest.
func (r *perftestRunner) keep(raw []perftest.Raw) (digest string, err error) {
	if r.dir == "" || len(raw) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	e := json.NewEncoder(z)
	e.SetIndent("", "  ")
	if err := errors.Join(e.Encode(raw), z.Close()); err != nil {
		return "", err
	}
	return keepRaw(r.dir, ".json.gz", b.Bytes())
}

// keepRaw writes b below dir as a file that is named by its digest, which it returns, and an ending. One that is there already is the same.
func keepRaw(dir, ending string, b []byte) (digest string, err error) {
	digest = fmt.Sprintf("%x", sha256.Sum256(b))
	path := filepath.Join(dir, digest+ending)
	if _, err := os.Stat(path); err == nil {
		return digest, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := whole.Write(path, b, 0o600); err != nil {
		return "", err
	}
	return digest, nil
}

// Close ends all connections, and the list of what was begun.
func (r *perftestRunner) Close() error {
	return errors.Join(r.hosts.Close(), r.counters.Close(), r.ledger.Close())
}
