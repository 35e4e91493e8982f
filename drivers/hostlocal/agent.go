package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers/netlink"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// How often the agent looks, and how long it may take.
const (
	lookEvery = time.Minute     // without an event: DCBX modes and what lies in files send none
	settle    = 2 * time.Second // after an event, for those that follow it
	settleMax = 10 * time.Second
	lookTime  = 2 * time.Minute
)

// Agent keeps a host as its file says. It looks at the machine when the kernel says that something happened, and every minute.
// What differs and can be repaired without anybody noticing is repaired; the rest is said, in the log, in metrics, and in a
// report for status. Holds are kept, other owners are left alone, and a setting that does not stay repaired is given up for
// a while. Its fields are set once by the caller.
type Agent struct {
	Machine Machine
	Load    func() (*File, error)                // the host file
	Engine  func(*File) (*rollout.Engine, error) // plans and applies a host file on the machine
	Always  bool                                 // repair what makes links flap too, where no job runs over them
	Accept  bool                                 // write to platforms that nobody has tried
	Metrics string                               // file for metrics; "" writes none
	Notify  Notifier
	Log     *slog.Logger
}

// keeper is an agent at work. One goroutine has it.
type keeper struct {
	Agent
	file    *File
	loadErr error // why the file on disk is not the one in force; nil when it is
	net     *intent.Net
	engine  *rollout.Engine
	names   map[string]bool // interfaces that events may be about
	grudges grudges
	counts  counts
	last    *look
	told    string // the sentence that was logged last
}

// counts are what happened since the start.
type counts struct {
	looks, repairs, failed int
	events                 map[string]int
}

// look is what one look at the machine came to.
type look struct {
	at       time.Time
	facts    render.Facts
	readable bool
	drift    []render.Change // what still differs
	class    map[render.Key]render.RiskClass
	held     int
	owners   int
	waits    bool   // a change waits to be confirmed
	refused  string // why nothing may be written
	says     string
	bad      bool // it needs somebody's attention
}

// Run works until ctx ends, which is no error. reload asks for the file to be read again. events may be closed when there
// are no more of them; the agent then looks every minute alone.
func (a Agent) Run(ctx context.Context, events <-chan Event, reload <-chan os.Signal) error {
	if err := os.MkdirAll(a.Machine.State, 0o700); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	unlock, err := journal.Lock(ctx, filepath.Join(a.Machine.State, netlink.AgentLock), "fabricctl-host agent", 0)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	defer unlock()
	k := &keeper{Agent: a, counts: counts{events: map[string]int{}}, grudges: grudges{}}
	if err := k.load(); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	k.look(ctx)
	k.notify("READY=1")
	err = k.keep(ctx, events, reload)
	k.notify("STOPPING=1")
	return err
}

// keep is the loop of the agent.
func (k *keeper) keep(ctx context.Context, events <-chan Event, reload <-chan os.Signal) error {
	due := time.NewTimer(lookEvery)
	defer due.Stop()
	var beat <-chan time.Time
	if k.Notify.Every > 0 {
		t := time.NewTicker(k.Notify.Every / 2)
		defer t.Stop()
		beat = t.C
	}
	var first time.Time // event since the last look
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-beat:
			k.notify("WATCHDOG=1")
		case <-reload:
			if err := k.load(); err != nil {
				k.loadErr = err
				k.Log.Error("the host file is not taken over; the one before stays in force", "error", err)
			}
			due.Reset(0)
		case e, ok := <-events:
			if !ok {
				k.Log.Error("the kernel says no more what happens: looking every minute alone")
				events = nil
				continue
			}
			k.counts.events[e.Kind]++
			if !k.concerns(e) {
				continue
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			due.Reset(min(settle, max(settleMax-now.Sub(first), 0)))
		case <-due.C:
			first = time.Time{}
			k.look(ctx)
			due.Reset(lookEvery)
		}
	}
}

// concerns reports whether an event may be about what is kept: links come and go on hosts with containers.
func (k *keeper) concerns(e Event) bool {
	return e.Kind != "link" && e.Kind != "gone" || e.Iface == "" || k.names[e.Iface]
}

// load takes the host file over.
func (k *keeper) load() error {
	f, err := k.Load()
	if err != nil {
		return err
	}
	net, err := f.Net()
	if err != nil {
		return err
	}
	e, err := k.Engine(f)
	if err != nil {
		return err
	}
	if k.file != nil && f.Device.Name != k.file.Device.Name {
		return fmt.Errorf("it is of %s, and this is %s: start the agent anew", f.Device.Name, k.file.Device.Name)
	}
	k.file, k.net, k.engine, k.loadErr, k.names = f, net, e, nil, map[string]bool{}
	for _, p := range f.Device.Ports {
		k.names[p.Iface] = p.Iface != ""
	}
	return nil
}

// notify tells the service manager. Nothing depends on it.
func (k *keeper) notify(lines ...string) {
	if err := k.Notify.tell(lines...); err != nil {
		k.Log.Debug("the service manager was not told", "error", err)
	}
}

// look looks at the machine, repairs what may be, and says what it found.
func (k *keeper) look(ctx context.Context) {
	ctx, stop := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("the look took longer than %s", lookTime))
	defer stop()
	k.counts.looks++
	if err := k.Machine.Expire(ctx); err != nil && ctx.Err() == nil {
		k.Log.Error("a change whose time is over was not taken back", "error", err)
	}
	l, full := k.plan(ctx)
	if ctx.Err() == nil || l.readable {
		k.repair(ctx, l, full)
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the end; what was found half is not said
	}
	k.say(l)
}

// plan is the machine as it is, and what would bring it to the file.
func (k *keeper) plan(ctx context.Context) (*look, *rollout.Plan) {
	l := &look{at: time.Now(), class: map[render.Key]render.RiskClass{}}
	p, err := k.engine.Plan(ctx, k.net, rollout.PlanOptions{Model: k.file.Model})
	if err != nil {
		l.says, l.bad = "cannot be read: "+diag.OneLine(err.Error()), true
		return l, nil
	}
	d := &p.Devices[0]
	l.facts, l.owners = d.Facts, len(d.Facts.Owners)
	for _, n := range d.Facts.NICs {
		k.names[n.Name] = true
	}
	if d.Left != nil {
		l.held = d.Left.Ops.Total()
	}
	switch {
	case d.Error != "":
		l.says, l.bad = "cannot be read: "+d.Error, true
		return l, nil
	case d.Blocked:
		l.readable = true
		l.refused = "nothing may be written"
		if i := slices.IndexFunc(d.Findings, func(f diag.Finding) bool { return f.Severity == diag.Error }); i >= 0 {
			l.refused = d.Findings[i].Msg
		}
		return l, nil
	}
	l.readable = true
	for _, s := range d.Steps {
		l.drift = append(l.drift, s.Changes...)
	}
	for _, c := range l.drift {
		l.class[c.Key] = riskOf(c, d.Facts)
	}
	return l, p
}

// riskOf is what one change alone does to traffic.
func riskOf(c render.Change, f render.Facts) render.RiskClass {
	worst := render.Hitless
	for _, r := range render.Linux().Risk(nil, []render.Change{c}, f) {
		worst = max(worst, r.Class)
	}
	return worst
}

// repair carries out what may be, and leaves in l what still differs.
func (k *keeper) repair(ctx context.Context, l *look, full *rollout.Plan) {
	if full == nil || len(l.drift) == 0 {
		k.grudges.forgive(l.at)
		return
	}
	if l.waits = k.Machine.waits(); l.waits {
		return // it may be what differs
	}
	o := rollout.PlanOptions{
		Model: k.file.Model, Harmless: !k.Always, Spare: func(c render.Change) bool { return k.grudges.bears(c.Key, l.at) },
	}
	p, err := k.engine.Plan(ctx, k.net, o)
	if err == nil && k.Always {
		if n, known := p.Devices[0].Jobs(); n > 0 || !known { // nobody gives the agent leave to kill jobs
			o.Harmless = true
			p, err = k.engine.Plan(ctx, k.net, o)
		}
	}
	if err != nil || len(p.Devices[0].Steps) == 0 {
		return
	}
	r, err := k.engine.Apply(ctx, p, rollout.ApplyOptions{AllowDisruptive: k.Always, AcceptUnverified: k.Accept})
	var changes []render.Change
	for _, s := range p.Devices[0].Steps {
		changes = append(changes, s.Changes...)
	}
	if why := failure(r, err); why != "" {
		k.counts.failed++
		k.Log.Error("a repair failed", "settings", settings(changes), "why", why)
		l.says, l.bad = "a repair failed: "+why, true
		k.grudges.note(changes, l.at)
		return
	}
	k.counts.repairs += len(changes)
	k.Log.Warn("repaired", "run", r.ID, "settings", settings(changes))
	for _, key := range k.grudges.note(changes, l.at) {
		k.Log.Error("a setting does not stay as it was repaired: somebody else sets it, or the driver does; it is left alone for a while",
			"setting", key.String(), "until", k.grudges[key].until.UTC().Format(time.RFC3339))
	}
	l.drift = slices.DeleteFunc(l.drift, func(c render.Change) bool {
		return slices.ContainsFunc(changes, func(o render.Change) bool { return o.Key == c.Key })
	})
	k.prune()
}

// failure is why a repair was not carried out; "" when it was.
func failure(r *rollout.Run, err error) string {
	if err != nil {
		return diag.OneLine(err.Error())
	}
	for _, x := range r.Results {
		if x.Outcome != rollout.Applied && x.Outcome != rollout.Unchanged || x.Cause != rollout.None {
			return strings.TrimSuffix(string(x.Outcome)+": "+diag.OneLine(x.Message), ": ")
		}
	}
	return ""
}

// settings are changes as a list for a log.
func settings(cs []render.Change) []string {
	var out []string
	for _, c := range cs {
		s := c.Key.String() + " "
		if c.After == nil {
			s += "absent"
		} else {
			s += *c.After
		}
		out = append(out, diag.Line(s))
	}
	return out
}

// say tells everybody what a look came to: the log when that is news, metrics, the report and the service manager each time.
func (k *keeper) say(l *look) {
	k.last = l
	l.conclude(k.loadErr)
	if l.says != k.told {
		k.told = l.says
		if l.bad {
			k.Log.Error(l.says, "settings", settings(l.drift))
		} else {
			k.Log.Info(l.says)
		}
	}
	k.notify(status(l.says))
	report := Report{Time: l.at.UTC(), PID: os.Getpid(), Drift: len(l.drift), Says: l.says, Repairs: k.counts.repairs, Failed: k.counts.failed}
	if err := k.Machine.leave(report); err != nil {
		k.Log.Error("the report for status was not written", "error", err)
	}
	if k.Metrics != "" {
		if err := writeFile(k.Metrics, []byte(exposition(k.metrics())), 0o644); err != nil {
			k.Log.Error("the metrics were not written", "error", err)
		}
	}
}

// conclude puts a look into a sentence.
func (l *look) conclude(loadErr error) {
	switch {
	case l.says != "":
	case l.refused != "":
		l.says, l.bad = "repairs are stopped: "+diag.OneLine(l.refused), true
	case len(l.drift) > 0 && l.waits:
		l.says = differs(len(l.drift)) + ": nothing is repaired while a change waits to be confirmed"
	case len(l.drift) > 0:
		worst := render.Hitless
		for _, c := range l.drift {
			worst = max(worst, l.class[c.Key])
		}
		l.says, l.bad = fmt.Sprintf("%s: not repaired, %s", differs(len(l.drift)), worst), true
		if worst == render.Hitless {
			l.says = differs(len(l.drift)) + ": given up for a while"
		}
	case l.held > 0:
		l.says = differs(l.held) + " and held"
	default:
		l.says = "the host is as its file says"
	}
	if loadErr != nil {
		l.says, l.bad = l.says+"; the host file on disk is not in force: "+diag.OneLine(loadErr.Error()), true
	}
}

func differs(n int) string {
	if n == 1 {
		return "1 setting differs"
	}
	return fmt.Sprintf("%d settings differ", n)
}

// keptRuns is how many journals of its own repairs the agent keeps.
const keptRuns = 100

// RunPrefix begins the ids of the agent's runs.
const RunPrefix = "agent-"

// prune removes the oldest journals of repairs. An id sorts by its time.
func (k *keeper) prune() {
	own, err := filepath.Glob(filepath.Join(k.Machine.State, "runs", RunPrefix+"*.jsonl"))
	if err != nil || len(own) <= keptRuns {
		return
	}
	slices.Sort(own)
	for _, path := range own[:len(own)-keptRuns] {
		if err := os.Remove(path); err != nil {
			k.Log.Debug("an old journal stays", "error", err)
		}
	}
}
