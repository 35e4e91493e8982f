package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

func (a *app) newTune() *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "Look for better settings by experiment, one variable at a time, with evidence",
		Long: `Look for better settings of a lossless class by experiment: PFC and ECN thresholds are moved one at a time, a load is run under
each setting, and statistics decide whether one is better. Everything is written down in a journal in the state directory, from which an
experiment is shown, replayed, resumed, reported and written into the model (docs/tuning.md). RUN of these verbs is its id, the beginning of that
where no other begins so, or last.`,
		SuggestionsMinimumDistance: 2,
		Args:                       wantVerb,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newTuneRun(), a.newTuneResume(), a.newTuneReplay(), a.newTuneList(), a.newTuneShow(), a.newTuneReport(), a.newTuneDiff(), a.newTuneVariables())
	return c
}

func (a *app) newTuneRun() *cobra.Command {
	var o tuneFlags
	names, docs := tuning.Standards()
	loads := ""
	for i := range names {
		loads += fmt.Sprintf("  %-4s %s\n", names[i], docs[i])
	}
	c := &cobra.Command{
		Use:   "run",
		Short: "Run an experiment: which settings are best for this load",
		Long: `Run an experiment on the model's fabric: what the model holds is the baseline; PFC alone shows how small xoff may be; formulas and
ladders over the full range find the region; fine steps find the place; and a comparison with the baseline on fresh seeds confirms it. A setting
that makes validate report an error is never tried, and one that loses packets of a lossless class never wins. "No difference", "this
variable does nothing here" and "not the fabric: the host is slow" are answers too. Without --workload, the load is as ap below, with the
hosts that there are; with --runner perftest without bursts, which verbs tests cannot make.

Standard loads of --workload:
` + loads + `
With --runner sim nothing but the model is needed, and no device is contacted; runs are made on all processors, or as many at once as
--parallel says, which changes no decision. --runner lab and perftest write to devices, through the
same engine as apply: what will be written, what it costs and which ports share what is edited is shown first, and asked for unless --yes is
given. The devices must hold what the model says ("apply first"). When the experiment ends, however it ends, the baseline is restored; a trial
that cannot be taken back by itself is taken back by the next start of tune.

Exit 0 when the experiment has ended, whatever the answer: a budget that was used up is an end too, and -o json says what came of it. Exit 4
when it was refused, a limit tripped or --gate failed (the baseline is back), 5 when the baseline is not back, 130 on Ctrl-C (it is back).`,
		Example: "  fabricctl tune run -f examples/bench-ap --workload ap\n" +
			"  fabricctl tune run -f fabric.yaml --workload 'incast:8,size=64KiB + victim + probe' --max-runs 300 -o json\n" +
			"  fabricctl tune run -f fabric.yaml --variables kmax,alpha --scope leaf --dry-run\n" +
			"  fabricctl tune run -f fabric.yaml -f inventory.yaml --runner perftest --test-hosts host1..host4 --max-time 2h",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.take(c, a)
			return a.runTune(c.Context(), o)
		},
	}
	o.register(c)
	return c
}

// experiment is a tuning experiment that is ready to begin.
type experiment struct {
	model loaded
	flags tuneFlags
	exp   tuning.Experiment
	lab   tuning.Lab
	gate  *tuning.Gate // nil: none
	hold  *tuneHold    // of the fabric, where devices are not written; nil before it is attached
	scant string       // why its budget may be too small to compare anything; "" = it is not
}

func (a *app) runTune(ctx context.Context, o tuneFlags) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if a.readOnly && o.runner != runnerSim {
		return fail(exitRefused, "leave --read-only out, or tune with --runner sim", "tune run: %w", drivers.ErrReadOnly)
	}
	x, err := a.experiment(ctx, o, nil)
	if err != nil {
		return err
	}
	if o.dry {
		if json {
			return a.printJSON(x.plan())
		}
		printTunePlan(a.sys.out, x)
		return nil
	}
	printTunePlan(a.sys.err, x)
	if err := a.agree(ctx, x); err != nil {
		return err
	}
	id := rollout.NewRunID(time.Now())
	return a.thenWrite(ctx, o.write, id, a.carryOut(ctx, x, id, nil, json))
}

// experiment makes an experiment of flags and the model. Where devices will be written they are read, and external variables are; nothing is
// changed, but for what a dead experiment has left. h is that which is to be resumed; nil for a new one.
func (a *app) experiment(ctx context.Context, o tuneFlags, h *tuning.History) (*experiment, error) {
	m, err := a.load(ctx, a.fabric)
	if err != nil {
		return nil, err
	}
	a.printLoaded(m)
	if m.net == nil {
		return nil, m.refused()
	}
	class, err := tunedClass(m.net, o.class)
	if err != nil {
		return nil, err
	}
	w, err := o.load(m.net, class)
	if err != nil {
		return nil, err
	}
	if err := o.portsIn(m.net); err != nil {
		return nil, err
	}
	x := &experiment{model: m, flags: o}
	if o.runner == runnerPerftest { // what verbs tests cannot have is said before anybody is asked anything
		if _, err := (&perftestRunner{net: m.net, flags: o.perftest}).plan(w, o.seed); err != nil {
			return nil, err
		}
	}
	if o.gate != "" {
		if x.gate, err = readGate(o.gate); err != nil {
			return nil, err
		}
	}
	if x.live() && !o.dry {
		if err := a.takeBackDead(ctx, m); err != nil {
			return nil, err
		}
	}
	var was map[string]float64
	if h != nil {
		was = h.Begin.Externals
	} else if x.live() && !o.dry {
		if err := a.knobsBack(ctx, m.net.Fabric); err != nil {
			return nil, err
		}
	}
	space, knobs, err := a.tuneSpace(ctx, m, class, w, o, was)
	if err != nil {
		return nil, err
	}
	if o.runner != runnerPerftest && h == nil { // an experiment whose every run would be refused is not begun
		if _, err := sim.Build(m.net, w, sim.Options{}, o.seed); err != nil {
			return nil, a.simRefused(ctx, err)
		}
	}
	x.exp = tuning.Experiment{
		Context: tuning.Context{
			Fabric: m.net.Fabric, Digest: m.digest(), Version: toolVersion(), Runner: o.runner, Emulated: o.runner != runnerSim && allLab(m, m.net), Command: a.args, Layers: a.fabric, Class: class,
		},
		Space: space, Workload: w, Sight: tuning.SightOf(m.net), Objective: o.objective, Budget: o.budget, Method: tuning.Method(o.method), Seed: o.seed,
		Looks:    tuning.Looks{First: o.looks.first, Every: o.looks.every, Most: o.looks.most, Polish: o.looks.most, Confirm: o.confirm},
		Parallel: 1, Rejects: o.rejects(), PFCAlone: o.pfcOnly || o.runner == runnerSim, Rounds: o.rounds, Now: time.Now,
	}
	x.exp.Objective.PausedMost, x.exp.Limits.Pausing = part1(o.paused), o.pausing.limit(x.writes())
	x.exp.Budget.Time = units.Duration(o.maxTime)
	if knobs != nil {
		x.lab.Knobs = knobs
	}
	if err := x.within(time.Now()); err != nil {
		return nil, err
	}
	if !x.live() {
		x.lab.Runner = newSimRunner(m.fabric, sim.Options{}, class)
		x.exp.Parallel = cmp.Or(o.parallel, runtime.GOMAXPROCS(0))
	}
	if err := a.tuneCosts(ctx, x); err != nil {
		return nil, err
	}
	if h == nil {
		if err := x.sufficient(ctx); err != nil {
			return nil, err
		}
	}
	return x, o.allowed(space.Vars)
}

// part1 is a share as a part of 1.
func part1(p units.Percent) float64 { return float64(p) / float64(100*units.OnePercent) }

// tunedClass is the class that is tuned: the one that was named, or the only lossless one.
func tunedClass(net *intent.Net, name string) (string, error) {
	lossless := slices.Sorted(func(yield func(string) bool) {
		for c := range promised(net) {
			if !yield(c) {
				return
			}
		}
	})
	switch {
	case name != "":
		return name, nil // the space knows what is wrong with it
	case len(lossless) == 0:
		return "", nil // nor does it matter, where what is moved is not of the model
	case len(lossless) > 1:
		return "", usage("there are several lossless classes: give --class %s", strings.Join(lossless, " or --class "))
	}
	return lossless[0], nil
}

// load is the workload of the flags: a standard one, a text, a file, or the usual one.
func (o *tuneFlags) load(net *intent.Net, class string) (observe.Workload, error) {
	hosts, err := o.among(net)
	if err != nil {
		return observe.Workload{}, err
	}
	w, standard, err := tuning.Standard(o.workload, hosts)
	switch {
	case o.workload == "" && o.runner == runnerPerftest:
		w, err = tuning.Steady(hosts)
	case o.workload == "":
		w, err = tuning.Usual(hosts, hostSpeed(net))
	case !standard:
		if w, err = readWorkload(o.workload); err != nil {
			return w, orStandard(o.workload, err)
		}
	}
	if err != nil {
		return w, fail(exitUsage, "give a --workload that fits, such as incast", "%w; nothing was done", err)
	}
	for i := range w.Parts {
		p := &w.Parts[i]
		if p.Class == "" && p.DSCP == nil {
			p.Class = class
		}
		if len(p.Hosts) == 0 && p.Kind != observe.Trace && p.Kind != observe.Victim {
			p.Hosts = o.hosts
		}
	}
	w.Duration, w.Warmup = cmp.Or(o.duration, w.Duration), cmp.Or(o.warmup, w.Warmup)
	if err := w.Check(); err != nil {
		return w, badWorkload(err)
	}
	return w, o.lasts(&w)
}

// A run that is simulated is measured for at least as long as a few packets take to cross a fabric and back.
const leastRun = 10 * units.Microsecond

// lasts refuses a run in which nothing can be measured, or that would never end. What verbs tests take, who makes their plan knows.
func (o *tuneFlags) lasts(w *observe.Workload) error {
	if o.runner == runnerPerftest {
		return nil
	}
	for _, x := range []struct {
		what, hint  string
		d, from, to units.Duration
	}{
		{"a run is measured for", "write --duration 5ms", w.Duration, leastRun, sim.LongestRun},
		{"a run is warmed up for", "write --warmup 2ms", w.Warmup, 0, sim.LongestRun},
	} {
		if x.d != 0 && (x.d < x.from || x.d > x.to) {
			return fail(exitUsage, x.hint, "%s %s, and what is simulated can have %s to %s; nothing was done", x.what, x.d, x.from, x.to)
		}
	}
	return nil
}

// orStandard adds the standard loads to the hint at a word that is none, nor a part of a load.
func orStandard(text string, err error) error {
	var e *exitErr
	if strings.ContainsAny(text, ":,+=. ") || !errors.As(err, &e) {
		return err
	}
	names, _ := tuning.Standards()
	return fail(e.code, e.hint+"; or a standard load: "+strings.Join(names, ", "), "%w", e.err)
}

// among are the hosts that belong to an experiment: those that were named, or all that are in service.
func (o *tuneFlags) among(net *intent.Net) ([]string, error) {
	var all []string
	for i := range net.Devices {
		if d := &net.Devices[i]; d.Host && d.State == intent.Active {
			all = append(all, d.Name)
		}
	}
	slices.SortFunc(all, intent.CompareNames)
	if len(o.hosts) == 0 {
		return all, nil
	}
	var some []string
	for _, word := range o.hosts {
		from, to, several := strings.Cut(word, "..")
		if !several {
			to = from
		}
		i, j := slices.Index(all, from), slices.Index(all, to)
		for _, name := range []string{from, to} {
			if !slices.Contains(all, name) {
				return nil, noTestHost(net, name)
			}
		}
		if j < i {
			return nil, usage("--test-hosts %s: %s is before %s", word, to, from)
		}
		some = append(some, all[i:j+1]...)
	}
	return some, nil
}

// noTestHost says why a name is no host to test with.
func noTestHost(net *intent.Net, name string) error {
	switch d := net.Device(name); {
	case d == nil:
		return fmt.Errorf("--test-hosts: %w", noDevice(net, name))
	case !d.Host:
		return usage("--test-hosts: %s is a switch", name)
	}
	return usage("--test-hosts: %s is not active", name)
}

// portsIn wants each of --test-ports to be a port of the model, by our name or the device's own.
func (o *tuneFlags) portsIn(net *intent.Net) error {
	for _, word := range o.ports {
		name, port, _ := strings.Cut(word, ":")
		d := net.Device(name)
		if d == nil {
			return fmt.Errorf("--test-ports: %w", noDevice(net, name))
		}
		if !slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return port != "" && (p.Name == port || p.Iface == port) }) {
			return fail(exitError, "write DEVICE:PORT; fabricctl graph shows the ports", "--test-ports: %s has no port %q", name, port)
		}
	}
	return nil
}

// hostSpeed is the speed of the links of most hosts; 0 where there are none.
func hostSpeed(net *intent.Net) units.BitRate {
	count := map[units.BitRate]int{}
	best := units.BitRate(0)
	for i := range net.Devices {
		if d := &net.Devices[i]; d.Host {
			for j := range d.Ports {
				s := d.Ports[j].Speed
				if count[s]++; count[s] > count[best] || count[s] == count[best] && s > best {
					best = s
				}
			}
		}
	}
	return best
}
