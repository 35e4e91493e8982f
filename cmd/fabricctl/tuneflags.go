package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// The runners of --runner.
const (
	runnerSim      = "sim"
	runnerLab      = "lab"
	runnerPerftest = "perftest"
)

// tuneFlags are what tune run is asked for.
type tuneFlags struct {
	class, scope     string
	variables        []string
	external         string // file
	workload         string
	hosts, ports     []string // that belong to the experiment
	duration, warmup units.Duration
	runner           string
	method           string
	objective        tuning.Objective
	tied             bool // its tie was given
	paused           units.Percent
	pausing          pauseLimit
	budget           tuning.Budget
	maxTime          time.Duration
	window           window
	seed             uint64
	looks            looksFlag
	confirm, rounds  int
	pfcOnly, persist bool
	flaps, jobs      bool
	unverified       bool
	gate             string
	perftest         perftestFlags
	parallel         int // runs at once in the simulator; 0 = one for each processor
	yes, dry, write  bool
}

func (o *tuneFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.class, "class", "", "lossless class that is tuned (default: the only one there is)")
	f.StringSliceVar(&o.variables, "variables", nil, "what is moved, in this order (default alpha,kmax,kmin/kmax,pmax); docs/tuning.md has all")
	f.StringVar(&o.external, "external", "", "YAML file of variables that no dialect has: one command sets, one reads back; alone, nothing else is moved")
	f.StringVar(&o.scope, "scope", "", "part of the fabric whose values are moved: a role or tier such as leaf (default: all of it)")
	f.StringVarP(&o.workload, "workload", "w", "", "what traffic a setting is judged by: a standard load (ap, a, b, c), parts joined by + as sim takes them, or a YAML file")
	f.StringVar(&o.runner, "runner", runnerSim, "who makes the runs: sim, lab (an emulated fabric) or perftest (verbs tests on the hosts)")
	f.StringVar(&o.method, "method", string(tuning.OFAT), "how settings are looked for: ofat (one variable at a time), nelder-mead or grid")
	f.Float64Var(&o.objective.Exchange, "exchange", 0.1, "how much of p99.9 is worth how much of goodput: J = ln goodput - exchange * ln p99.9")
	f.BoolVar(&o.objective.Lexicographic, "lexicographic", false, "goodput first, and p99.9 only among those within --tie of the best")
	f.Var(&tie{&o.objective.Tie, &o.tied}, "tie", "differences up to here keep what is there (default 0.005 of J, with --lexicographic 0.01 of ln goodput)")
	f.Var(&share{&o.paused}, "max-paused", "part of the time that no port towards a host may stand still for longer, such as 20% (default: no ceiling)")
	f.Var(&o.pausing, "max-host-pause", "part of the time for which a host may stop its switch before an experiment that writes devices ends, such as 5%, or off (default 20%)")
	f.IntVar(&o.budget.Runs, "max-runs", 780, "runs at most, those of the confirmation too (0 = no limit)")
	f.DurationVar(&o.maxTime, "max-time", 0, "time at most, such as 2h (0 = no limit)")
	f.Var(&o.window, "window", "time of day in which devices may be written, such as 22:00-04:00 (local time); the baseline is back before it ends")
	f.Uint64Var(&o.seed, "seed", 1, "of random numbers: the same seed asks for the same runs")
	f.Var(&o.looks, "looks", "how often arms are compared: runs of each before the first look, between two, and at most (default 6,2,16, and at most 20 at the end)")
	f.IntVar(&o.confirm, "confirm", 20, "pairs of runs on fresh seeds that confirm the result; up to four times as many where runs vary much")
	f.IntVar(&o.rounds, "rounds", 4, "cycles over all variables at most")
	f.Var(&span{&o.duration}, "duration", "how long is measured in a run (default: as the workload says)")
	f.Var(&span{&o.warmup}, "warmup", "before it is measured (default: as the workload says)")
	f.StringSliceVar(&o.hosts, "test-hosts", nil, "hosts that belong to the experiment, a,b or host1..host8: the load is between them, and others are not to be disturbed (default: all)")
	f.StringSliceVar(&o.ports, "test-ports", nil, "switch ports that belong to the experiment too, whatever is behind them: DEVICE:PORT")
	f.BoolVar(&o.pfcOnly, "allow-pfc-only", false, "allow the phase in which switches do not mark, on devices too: only where no lossless traffic of others passes")
	f.BoolVar(&o.persist, "persist-trials", false, "allow trials on devices that keep each write over a reboot")
	f.BoolVar(&o.flaps, "allow-flaps", false, "allow trials that take ports down and up")
	f.BoolVar(&o.jobs, "allow-jobs", false, "of those, allow the ones that kill live queue pairs of running jobs")
	f.BoolVar(&o.unverified, "accept-unverified", false, "allow writing to platforms not tried on a real device")
	f.StringVar(&o.gate, "gate", "", "YAML file of a program that has the last word on the result, such as nccl-tests or a step of a training")
	o.perftest.register(c)
	f.BoolVar(&o.write, "write", false, "write a result that was confirmed into the files of the model, as tune diff shows it")
	f.BoolVar(&o.dry, "dry-run", false, "say what would be moved, written and risked, and end")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
}

// take takes the global flags that mean something of their own here.
func (o *tuneFlags) take(c *cobra.Command, a *app) {
	if c.Flags().Changed("parallel") {
		o.parallel = a.parallel
	}
}

// check refuses flags that make no sense or contradict each other, before any work is done.
func (o *tuneFlags) check() error {
	if err := oneOf("--runner", o.runner, runnerSim, runnerLab, runnerPerftest); err != nil {
		return err
	}
	if err := oneOf("--method", o.method, string(tuning.OFAT), string(tuning.NelderMead), string(tuning.FullGrid)); err != nil {
		return err
	}
	x := o.objective.Exchange
	switch {
	case math.IsNaN(x) || x < 0 || x > 10:
		return usage("--exchange %v: want 0 (goodput alone) to 10", x)
	case o.tied && (o.objective.Tie <= 0 || o.objective.Tie > 1):
		return usage("--tie %v: want more than 0, and at most 1; 0.005 is the same as 0.5%%", o.objective.Tie)
	case o.confirm < 4 || o.confirm > tuning.MostConfirm:
		return usage("--confirm %d: want 4 to %d pairs", o.confirm, tuning.MostConfirm)
	case o.rounds < 1 || o.rounds > 100:
		return usage("--rounds %d: want 1 to 100", o.rounds)
	case o.budget.Runs < 0:
		return usage("--max-runs %d: want a number from 0 on", o.budget.Runs)
	case o.budget.Runs > 0 && o.budget.Runs < o.leastRuns():
		return usage("--max-runs %d: want at least %d, for the baseline and a confirmation of %s, or 0 for no limit", o.budget.Runs, o.leastRuns(), diag.Count(o.confirm, "pair"))
	case o.maxTime < 0 || o.maxTime > 0 && o.maxTime < leastTime:
		return usage("--max-time %s: want a time of %s or more, such as 2h, or 0 for no limit", o.maxTime, leastTime)
	}
	if err := o.perftest.check(); err != nil {
		return err
	}
	return o.checkLive()
}

// leastTime is how much time an experiment has at least: there is nothing that is measured in less.
const leastTime = time.Second

// leastRuns is how many runs it takes to say anything: those of the baseline, and pairs that confirm.
func (o *tuneFlags) leastRuns() int {
	return tuning.LeastRuns(tuning.Looks{First: o.looks.first, Confirm: o.confirm}, o.rejects())
}

// rejects reports whether runs may be rejected: what is simulated comes out as it comes out.
func (o *tuneFlags) rejects() bool { return o.runner == runnerPerftest }

// checkLive refuses flags for devices where none is written.
func (o *tuneFlags) checkLive() error {
	if o.runner != runnerPerftest && o.external != "" {
		return usage("--external is for --runner perftest: what is simulated knows nothing of what is set elsewhere")
	}
	if o.runner != runnerPerftest && o.perftest != (perftestFlags{}) {
		return usage("--test-port, --slow-hosts, --rdma-cm and --settle are for --runner perftest")
	}
	if o.runner != runnerSim {
		if o.pausing.given && !tuning.OfModel(o.variables, o.external != "") {
			return fail(exitUsage, "leave it out", "--max-host-pause ends an experiment that writes devices, and what is moved here is on none; nothing was done")
		}
		return nil
	}
	for _, x := range []struct {
		flag  string
		given bool
	}{
		{"--persist-trials", o.persist},
		{"--allow-flaps", o.flaps},
		{"--allow-jobs", o.jobs},
		{"--accept-unverified", o.unverified},
		{"--window", o.window.set},
		{"--gate", o.gate != ""},
		{"--max-host-pause", o.pausing.given},
		{"--test-ports", len(o.ports) > 0},
	} {
		if x.given {
			return usage("%s is for devices, and --runner sim writes none", x.flag)
		}
	}
	return nil
}

// oneOf refuses a word that a flag does not take, with the nearest that it does.
func oneOf(flag, word string, words ...string) error {
	if slices.Contains(words, word) {
		return nil
	}
	want := words[len(words)-1]
	if n := len(words); n > 1 {
		want = strings.Join(words[:n-1], ", ") + " or " + want
	}
	return usage("%s %s: want %s", flag, word, want)
}

// tie is a flag for a difference in natural logarithms, or in percent.
type tie struct {
	to    *float64
	given *bool
}

func (t *tie) String() string {
	if t.to == nil || !*t.given {
		return ""
	}
	return strconv.FormatFloat(*t.to, 'g', -1, 64)
}

func (t *tie) Set(text string) error {
	bad := &units.Error{Text: text, What: "is no difference", Hint: "write 0.5%, or 0.005"}
	number, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return bad
	}
	if percent {
		x /= 100
	}
	*t.to, *t.given = x, true
	return nil
}

func (t *tie) Type() string { return "difference" }

// share is a flag for a part of a whole.
type share struct{ to *units.Percent }

func (s *share) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return s.to.String()
}

func (s *share) Set(text string) error {
	p, err := units.ParsePercent(text)
	if err != nil {
		return err
	}
	if p <= 0 || p > 100*units.OnePercent {
		return &units.Error{Text: text, What: "is no part of a whole", Hint: "write more than 0% and at most 100%"}
	}
	*s.to = p
	return nil
}

func (s *share) Type() string { return "share" }

// usualHostPause is how much of the time a host may stop its switch on devices, unless somebody says otherwise: ten times of what makes a host the
// bottleneck of a baseline, so that no host is taken for a fault that is merely loaded, and a fifth of what its port could carry. Whoever
// sends to it, or past it, feels that.
const usualHostPause = 20 * units.OnePercent

// pauseLimit is a flag for the part of the time that a host may stop its switch, or "off".
type pauseLimit struct {
	most  units.Percent // 0 = it is not looked at
	given bool
}

// limit is the part of 1 beyond which an experiment ends that writes devices; 0 = it is not looked at.
func (l *pauseLimit) limit(writes bool) float64 {
	if writes && !l.given {
		return part1(usualHostPause)
	}
	return part1(l.most)
}

func (l *pauseLimit) String() string {
	switch {
	case !l.given:
		return ""
	case l.most == 0:
		return "off"
	}
	return l.most.String()
}

func (l *pauseLimit) Set(text string) error {
	most := units.Percent(0)
	if text != "off" && text != "0" && text != "0%" {
		if err := (&share{&most}).Set(text); err != nil {
			return err
		}
	}
	*l = pauseLimit{most, true}
	return nil
}

func (l *pauseLimit) Type() string { return "share" }

// looksFlag is FIRST,EVERY,MOST.
type looksFlag struct{ first, every, most int }

func (l *looksFlag) String() string {
	if *l == (looksFlag{}) {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d", l.first, l.every, l.most)
}

func (l *looksFlag) Set(text string) error {
	parts := strings.Split(text, ",")
	n := make([]int, len(parts))
	for i, p := range parts {
		v, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil {
			return &units.Error{Text: text, What: "is not three numbers", Hint: "write --looks 6,2,16"}
		}
		n[i] = v
	}
	if len(n) != 3 || n[0] < 2 || n[1] < 1 || n[2] < n[0] || n[2] > mostSeeds {
		return &units.Error{Text: text, What: "is not how often arms can be compared", Hint: "write --looks 6,2,16: 6 runs (at least 2) before the first look, 2 more (at least 1) before each next, 16 at most"}
	}
	*l = looksFlag{n[0], n[1], n[2]}
	return nil
}

func (l *looksFlag) Type() string { return "first,every,most" }

// window is a time of day in which an experiment may write.
type window struct {
	from, to time.Duration // since midnight; to before from is on the next day
	set      bool
}

func (w *window) String() string {
	if !w.set {
		return ""
	}
	clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
	return clock(w.from) + "-" + clock(w.to)
}

func (w *window) Set(text string) error {
	bad := &units.Error{Text: text, What: "is no time of day", Hint: "write --window 22:00-04:00"}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return bad
	}
	clock := func(s string) (time.Duration, bool) {
		t, err := time.Parse("15:04", s)
		return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
	}
	a, fine := clock(from)
	b, good := clock(to)
	if !fine || !good || a == b {
		return bad
	}
	*w = window{from: a, to: b, set: true}
	return nil
}

func (w *window) Type() string { return "from-to" }

// left is how long the window is open from now on; 0 = it is shut.
func (w *window) left(now time.Time) time.Duration {
	y, m, d := now.Date()
	at := now.Sub(time.Date(y, m, d, 0, 0, 0, 0, now.Location()))
	switch {
	case w.from < w.to && w.from <= at && at < w.to:
		return w.to - at
	case w.from > w.to && at >= w.from:
		return 24*time.Hour - at + w.to
	case w.from > w.to && at < w.to:
		return w.to - at
	}
	return 0
}
