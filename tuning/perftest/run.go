package perftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// Raw is what one side of a test has printed.
type Raw struct {
	Part    string `json:"part"`
	Side    string `json:"side"` // "server" or "client"
	Host    string `json:"host"`
	Command string `json:"command"`
	Status  int    `json:"status"` // negative: it was not seen to end by itself
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
}

// Rejection is why the numbers of a run must not be used.
type Rejection struct {
	Code Code
	Why  string // in words, with whose it is
	Host bool   // a host was what limited it, and not the fabric
}

// Result is what came of a run.
type Result struct {
	observe.Observation
	Raw      []Raw      // of all tests that were begun
	Rejected *Rejection // nil = its numbers may be used
	Left     []Process  // that could not be ended
}

// Why a run ends before its tests do.
var (
	errLate   = errors.New("it did not end in time")
	errBroken = errors.New("another test of the run has failed")
)

// How long is waited for what.
const (
	listenStep = 50 * time.Millisecond
	nameTime   = 2 * time.Second  // for a process to say who it is, though the run is over
	cleanTime  = 20 * time.Second // to end processes once the run is over
	hostSpare  = 5                // seconds after which a host ends a test, beyond when we have given it up
	cmTries    = 20               // of a client by rdma_cm, whose server cannot be seen to listen
)

// Run carries out a plan. It returns once all processes that it has begun have ended, or could not be ended, which Result.Left then
// says. A test that hangs, fails or measures nonsense is a Result with Rejected; an error is a *Refused or a *Silent, or the end of ctx, after which
// the result still says what was left.
//
// Before the first run of a latency test under load, one of few messages is made and not counted: it says how many fit.
func (s *Session) Run(ctx context.Context, plan *Plan) (res Result, err error) {
	if err := s.installed(ctx, plan); err != nil {
		return res, err
	}
	if !s.measured(plan) {
		if res, err = s.once(ctx, plan); err != nil || res.Rejected != nil && res.Rejected.Code != Unloaded || !s.measured(plan) {
			return res, err
		}
	}
	return s.once(ctx, plan)
}

// once makes one run.
func (s *Session) once(ctx context.Context, plan *Plan) (res Result, err error) {
	ready, err := s.prepare(ctx, plan)
	if err != nil {
		return res, err
	}
	before, err := s.sense(ctx)
	if err != nil {
		return res, err
	}
	r := newRun(s, plan, ready)
	s.ran = true
	r.carryOut(ctx)
	res.Raw = r.raw()
	if res.Left, err = r.clean(ctx); err != nil || ctx.Err() != nil {
		return res, cmp.Or(context.Cause(ctx), err)
	}
	if len(res.Left) > 0 {
		return res, &Silent{res.Left[0].Host, fmt.Errorf("%s could not be ended: kill -9 %d there", res.Left[0], res.Left[0].PID)}
	}
	after, err := s.sense(ctx)
	if err != nil {
		return res, err
	}
	res.Before, res.After = before, after
	r.judge(&res)
	return res, nil
}

func (s *Session) sense(ctx context.Context) (map[string]observe.Counters, error) {
	if s.o.Sense == nil {
		return nil, nil
	}
	c, err := s.o.Sense(ctx, s.ran)
	s.ran = s.ran && err != nil
	return c, err
}

// run is one run of a plan.
type run struct {
	*Session
	plan  *Plan
	limit time.Duration // of each test, by our clock
	sides []*side       // two for each pair: the server, the client

	mu    sync.Mutex
	first *side // that has failed before any other
	why   error // for which the run was ended
}

// side is one side of a test.
type side struct {
	pair   *ready
	test   *Test
	server bool
	argv   Argv

	mu      sync.Mutex
	process *Process
	ended   bool
	begun   time.Time // when it was
	at      time.Time // when it ended
	out     Output
	err     error         // why its end was not seen
	done    chan struct{} // closed when it has ended, or is not waited for any more
}

func (x *side) host() string {
	if x.server {
		return x.pair.Server.Host
	}
	return x.pair.Client.Host
}

func newRun(s *Session, plan *Plan, pairs []ready) *run {
	r := &run{Session: s, plan: plan, limit: s.o.Setup + plan.Duration + 2*plan.Margin + lead(s, plan)}
	for i := range pairs {
		p := &pairs[i]
		r.sides = append(r.sides, &side{pair: p, test: &p.server, server: true, argv: p.serve, done: make(chan struct{})})
		r.sides = append(r.sides, &side{pair: p, test: &p.Test, argv: p.connect, done: make(chan struct{})})
	}
	return r
}

// lead is how long latency tests begin after the others, so that they measure under load.
func lead(s *Session, plan *Plan) time.Duration {
	latency := func(p Pair) bool { return p.Latency }
	both := slices.ContainsFunc(plan.Pairs, latency) && slices.ContainsFunc(plan.Pairs, func(p Pair) bool { return !p.Latency })
	if s.o.Instant || !both {
		return 0
	}
	return plan.Margin + time.Second
}

// carryOut runs the tests until all have ended, one has failed, or the time is over.
func (r *run) carryOut(parent context.Context) {
	ctx, stop := context.WithTimeoutCause(parent, r.limit, errLate)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var servers, clients sync.WaitGroup
	for _, x := range r.sides {
		if x.server {
			servers.Go(func() { r.begin(ctx, cancel, x) })
		}
	}
	servers.Wait()
	if r.listen(ctx, cancel) {
		for _, x := range r.sides {
			if x.server {
				continue
			}
			clients.Go(func() {
				if x.pair.Latency && r.o.Pause(ctx, lead(r.Session, r.plan)) != nil {
					x.stop(context.Cause(ctx))
					return
				}
				r.connect(ctx, cancel, x)
			})
		}
		clients.Wait()
	} else {
		for _, x := range r.sides {
			if !x.server {
				x.stop(errBroken)
			}
		}
	}
	for _, x := range r.sides { // servers end with their clients
		x.wait(ctx)
	}
	r.mu.Lock()
	r.why = context.Cause(ctx)
	r.mu.Unlock()
}

// stop notes that a side did not come to an end.
func (x *side) stop(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil && !x.ended {
		x.err, x.out.Status = err, -1
	}
	select {
	case <-x.done:
	default:
		close(x.done)
	}
}

// command is what a host is given: the shell says who it is and becomes timeout, which ends the test should nobody else.
func (r *run) command(x *side) string {
	seconds := int(r.limit/time.Second) + hostSpare
	return "exec sh -c " + quote(fmt.Sprintf("echo %s; %s; exec timeout -k %d %d %s", mark, whoAmI, hostSpare, seconds, x.argv))
}

// begin starts a side, and goes on once it is known and written down who it is. Its end is waited for apart.
func (r *run) begin(ctx context.Context, cancel context.CancelCauseFunc, x *side) {
	if ctx.Err() != nil {
		x.stop(context.Cause(ctx))
		return
	}
	var id identity
	x.begun = r.o.Now()
	// Who was begun has to be known, or nobody could end it: the end of ctx leaves a moment for that.
	known, forget := context.WithCancelCause(context.WithoutCancel(ctx))
	late := context.AfterFunc(ctx, func() {
		t := time.NewTimer(nameTime)
		defer t.Stop()
		select {
		case <-t.C:
			forget(context.Cause(ctx))
		case <-known.Done():
		}
	})
	running, err := r.o.Exec.Start(known, x.host(), r.command(x), id.line)
	late()
	context.AfterFunc(ctx, func() { forget(context.Cause(ctx)) })
	if err == nil && id.p.PID == 0 {
		err = errors.New("it does not say what process it is: /proc cannot be read")
	}
	if err == nil {
		p := id.p
		p.Host, p.Command = x.host(), x.argv.String()
		x.mu.Lock()
		x.process = &p
		x.mu.Unlock()
		err = r.o.Ledger.began(p)
	}
	if err != nil {
		x.stop(err)
		r.fail(cancel, x)
		return
	}
	go func() {
		out, err := running.Wait()
		if x.end(out, err, r.o.Now()) && (err != nil || out.Status != 0) {
			r.fail(cancel, x)
		}
		x.stop(err)
	}()
}

// end notes how a side has ended; false when it is not waited for any more.
func (x *side) end(out Output, err error, at time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return false
	}
	if x.out, x.ended, x.at, x.err = out, err == nil, at, err; err != nil {
		x.out.Status = -1
	}
	return true
}

// outcome is how a side has ended, as far as it has.
func (x *side) outcome() (out Output, ended bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out, x.ended, x.err
}

// fail ends the run for the sake of the side that has failed first.
func (r *run) fail(cancel context.CancelCauseFunc, x *side) {
	r.mu.Lock()
	if r.first == nil && r.why == nil {
		r.first = x
	}
	r.mu.Unlock()
	cancel(errBroken)
}

// connect runs a client to its end. By rdma_cm nobody can be seen to listen, so one that finds nobody is begun again.
func (r *run) connect(ctx context.Context, cancel context.CancelCauseFunc, x *side) {
	if !x.pair.RDMACM {
		r.begin(ctx, cancel, x)
		x.wait(ctx)
		return
	}
	for try := 1; ; try++ {
		held := func(error) {} // what fails for want of a server may be begun again
		r.begin(ctx, held, x)
		x.wait(ctx)
		out, ended, _ := x.outcome()
		rep, err := Parse(out.Stdout, out.Stderr, nil, out.Status)
		again := ended && out.Status != 0 && err == nil && slices.ContainsFunc(rep.Notes, func(n Note) bool { return n.Code == NoServer })
		if !again || try == cmTries || r.o.Pause(ctx, 4*listenStep) != nil || r.o.Ledger.ended(*x.process) != nil {
			if !ended || out.Status != 0 {
				cancel(errBroken)
			}
			return
		}
		r.mu.Lock()
		if r.first == x {
			r.first = nil
		}
		r.mu.Unlock()
		x.process, x.ended, x.out, x.err, x.done = nil, false, Output{}, nil, make(chan struct{})
	}
}

// wait waits for the end of a side, or of ctx.
func (x *side) wait(ctx context.Context) {
	select {
	case <-x.done:
	case <-ctx.Done():
		x.stop(context.Cause(ctx))
	}
}

// listen waits until every server listens at its port, by the kernel's own table: what a server prints comes when it ends. It
// reports whether they do.
func (r *run) listen(ctx context.Context, cancel context.CancelCauseFunc) bool {
	waiting := map[string][]*side{}
	for _, x := range r.sides {
		if x.server && !x.pair.RDMACM {
			waiting[x.host()] = append(waiting[x.host()], x)
		}
	}
	var wg sync.WaitGroup
	for host, sides := range waiting {
		wg.Go(func() {
			for ctx.Err() == nil {
				ports, err := listening(ctx, r.o.Exec, host)
				if err != nil {
					sides[0].stop(err)
					r.fail(cancel, sides[0])
					return
				}
				if !slices.ContainsFunc(sides, func(x *side) bool { return !ports[x.pair.Port] }) {
					return
				}
				if r.o.Pause(ctx, listenStep) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err() == nil
}

// clean ends what has not ended, whatever has become of ctx, and says what could not be ended.
func (r *run) clean(ctx context.Context) (left []Process, err error) {
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), cleanTime, errLate)
	defer stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, x := range r.sides {
		x.mu.Lock()
		p, ended := x.process, x.ended
		x.mu.Unlock()
		if p == nil {
			continue
		}
		wg.Go(func() {
			var failed error
			if !ended {
				_, failed = r.end(ctx, *p)
			}
			if failed == nil {
				failed = r.o.Ledger.ended(*p)
				mu.Lock()
				err = cmp.Or(err, failed)
				mu.Unlock()
				return
			}
			mu.Lock()
			left = append(left, *p)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.SortFunc(left, func(a, b Process) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID)) })
	return left, err
}

func (r *run) raw() (out []Raw) {
	for _, x := range r.sides {
		x.mu.Lock()
		if x.process != nil {
			name := "client"
			if x.server {
				name = "server"
			}
			out = append(out, Raw{x.pair.Part, name, x.host(), x.argv.String(), x.out.Status, string(x.out.Stdout), string(x.out.Stderr)})
		}
		x.mu.Unlock()
	}
	return out
}
