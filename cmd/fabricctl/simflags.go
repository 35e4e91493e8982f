package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// simFlags are what sim is asked for.
type simFlags struct {
	login            loginFlags
	workload, faults []string
	hosts, watch     []string
	class, trace     string
	duration, warmup units.Duration
	sample           units.Duration
	seed             uint64
	seeds            int
	live, details    bool
	noPFC, noECN     bool
	entry            bool
	series, flows    string
	plot             string
	grid             *sim.Grid
	best             int
}

func (o *simFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVarP(&o.workload, "workload", "w", nil, "what traffic: incast:8, parts joined by +, or a YAML file; repeat to add parts")
	f.StringVar(&o.class, "class", "", "class of the parts that name none (default: that of the hosts' RDMA connections)")
	f.StringSliceVar(&o.hosts, "hosts", nil, "hosts that take part where a part names none: a,b or host1..host8")
	f.StringVar(&o.trace, "trace", "", "flows of this CSV file too: start,src,dst,class,bytes")
	f.Var(&span{&o.duration}, "duration", "how long is measured, such as 10ms (default 10ms)")
	f.Var(&span{&o.warmup}, "warmup", "before it is measured (default 1ms where a flow never ends)")
	f.Uint64Var(&o.seed, "seed", 1, "of random numbers; the same seed gives the same run")
	f.IntVar(&o.seeds, "seeds", 1, "how many seeds to run, from --seed on")
	f.Var(&gridFlag{&o.grid}, "grid", "marking ramps to compare, as kmin=100KB/400KB,kmax=1.6MB,pmax=1%/10%: a fluid model ranks them, and the first are run")
	f.IntVar(&o.best, "best", usualBest, "how many settings of --grid are run packet by packet, besides the one that there is")
	f.StringArrayVar(&o.faults, "fault", nil, "break something: storm:HOST,from=2ms,to=5ms, slow:HOST,rate=40Gbps or down:DEVICE:PORT; repeat for more")
	f.BoolVar(&o.live, "live", false, "simulate what the devices hold; they are read, and nothing is written")
	f.BoolVar(&o.noPFC, "no-pfc", false, "nobody pauses: what congestion control does alone")
	f.BoolVar(&o.noECN, "no-ecn", false, "no switch marks: what PFC does alone")
	f.BoolVar(&o.entry, "mark-on-entry", false, "switches mark packets as they join a queue, not as they leave it")
	f.StringArrayVar(&o.watch, "watch", nil, "queue in --plot and --series: DEVICE:PORT[:QUEUE]; repeat for more (default: those that the workload fills)")
	f.Var(&span{&o.sample}, "sample", "time between two rows of --plot and --series, and of the series in -o json, which has none without (default: a thousandth of the run)")
	f.StringVar(&o.plot, "plot", "", "draw queues, rates and pauses over time into this SVG file")
	f.StringVar(&o.series, "series", "", "write the same as a table into this CSV file")
	f.StringVar(&o.flows, "flows", "", "write every flow into this CSV file")
	f.BoolVar(&o.details, "details", false, "list every flow, queue, pause and buffer")
	o.login.register(c)
}

// span is a flag for a time with a unit.
type span struct{ to *units.Duration }

func (s *span) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return s.to.String()
}

func (s *span) Set(text string) error {
	d, err := units.ParseDuration(text)
	if err != nil {
		return err
	}
	if d <= 0 {
		return &units.Error{Text: text, What: "is no time to simulate", Hint: "write more than 0, such as 10ms"}
	}
	*s.to = d
	return nil
}

func (s *span) Type() string { return "time" }

// mostSeeds is how many runs a call may ask for; each result is kept until the end.
const mostSeeds = 1000

// check refuses flags that contradict each other, and files that cannot be written, before any work is done.
func (o *simFlags) check(json bool) error {
	rows := json || o.series+o.plot != ""
	switch {
	case o.seeds < 1 || o.seeds > mostSeeds:
		return usage("--seeds %d: want 1 to %d", o.seeds, mostSeeds)
	case o.seeds > 1 && o.series+o.plot+o.flows != "":
		return usage("--plot, --series and --flows are of one run: leave out --seeds")
	case o.sample > 0 && !rows:
		return usage("--sample is the time between rows of --plot, --series and -o json, and none is asked for")
	case len(o.watch) > 0 && !rows:
		return usage("--watch names queues for --plot, --series and -o json with --sample, and none is asked for")
	case !o.live && o.login != loginFlags{}:
		return usage("nobody is logged in to without --live")
	}
	if err := o.checkGrid(); err != nil {
		return err
	}
	for _, x := range []struct{ flag, path, example string }{{"--series", o.series, "series.csv"}, {"--flows", o.flows, "flows.csv"}, {"--plot", o.plot, "sim.svg"}} {
		if x.path == "" {
			continue
		}
		if err := outFile(x.flag, x.path, x.example); err != nil {
			return err
		}
	}
	if ext := strings.ToLower(filepath.Ext(o.plot)); o.plot != "" && ext != ".svg" {
		return usage("--plot %s: want a name that ends in .svg", o.plot)
	}
	return nil
}

// job is the run that the flags ask for.
func (o *simFlags) job(net *intent.Net) (sim.Job, error) {
	w, err := o.load(net)
	if err != nil {
		return sim.Job{}, err
	}
	opts := sim.Options{Duration: o.duration, Warmup: o.warmup, NoPause: o.noPFC, NoMarks: o.noECN, Entry: o.entry}
	for _, text := range o.faults {
		f, err := sim.ParseFault(text)
		if err != nil {
			var unit *units.Error
			if errors.As(err, &unit) {
				return sim.Job{}, fail(exitUsage, unit.Hint, "%w", err)
			}
			return sim.Job{}, usage("%w", err)
		}
		opts.Faults = append(opts.Faults, f)
	}
	for _, ref := range o.watch {
		r, err := watchRef(net, ref, w)
		if err != nil {
			return sim.Job{}, err
		}
		opts.Watch = append(opts.Watch, r)
	}
	return sim.Job{Net: net, Workload: w, Options: opts, Seed: o.seed}, nil
}

// load is the workload of the flags, all parts together.
func (o *simFlags) load(net *intent.Net) (observe.Workload, error) {
	var all observe.Workload
	texts := slices.Clone(o.workload)
	if o.trace != "" {
		if strings.ContainsAny(o.trace, ",+") {
			return all, fail(exitUsage, "give the file another name", "--trace %s: a name with , or + does not fit into a workload", o.trace)
		}
		texts = append(texts, "trace:"+o.trace)
	}
	if len(texts) == 0 {
		texts = append(texts, usualWorkload(net, o.class, o.hosts))
	}
	for _, text := range texts {
		w, err := readWorkload(text)
		if err != nil {
			return all, err
		}
		all.Parts = append(all.Parts, w.Parts...)
		all.Name, all.Duration, all.Warmup = cmp.Or(all.Name, w.Name), cmp.Or(w.Duration, all.Duration), cmp.Or(w.Warmup, all.Warmup)
	}
	for i := range all.Parts {
		p := &all.Parts[i]
		if p.Class == "" && p.DSCP == nil {
			p.Class = o.class
		}
		if len(p.Hosts) == 0 && p.Kind != observe.Trace && p.Kind != observe.Victim {
			p.Hosts = o.hosts
		}
	}
	if err := all.Check(); err != nil {
		return all, badWorkload(err)
	}
	return all, nil
}

// usualWorkload is what is run when nobody asks for anything: 8 hosts to one, or all others where fewer take part, of a class and of
// the hosts that are named.
func usualWorkload(net *intent.Net, class string, hosts []string) string {
	part := observe.Part{Kind: observe.Incast, N: 8, Class: class, Hosts: hosts}
	_, err := sim.Build(net, observe.Workload{Parts: []observe.Part{part}}, sim.Options{}, 1)
	if r, ok := errors.AsType[*sim.Refused](err); ok && slices.ContainsFunc(r.Findings, func(f diag.Finding) bool { return f.Rule == "sim-few-hosts" }) {
		return "incast"
	}
	return "incast:8"
}

// readWorkload reads a workload from its text, or from the file that it names, and the traces in it.
func readWorkload(text string) (observe.Workload, error) {
	dir := ""
	var w observe.Workload
	var err error
	switch strings.ToLower(filepath.Ext(text)) {
	case ".yaml", ".yml", ".json":
		var b []byte
		if b, err = readTraffic(text); err != nil {
			return w, fail(exitError, "", "--workload: %w", err)
		}
		dir = filepath.Dir(text)
		w, err = observe.ReadWorkload(b)
	default:
		w, err = observe.ParseWorkload(text)
	}
	if err != nil {
		return w, badWorkload(err)
	}
	for i := range w.Parts {
		p := &w.Parts[i]
		if p.Kind != observe.Trace || len(p.Flows) > 0 {
			continue
		}
		path := p.File
		if dir != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		b, err := readTraffic(path)
		if err != nil {
			return w, fail(exitError, "", "trace: %w", err)
		}
		if p.Flows, err = observe.ParseTrace(b); err != nil {
			return w, fail(exitError, "columns are start,src,dst,class,bytes, for example: 10us,host1,host2,training,1MB", "%s: %w", path, err)
		}
	}
	return w, nil
}

// readTraffic reads a file that says what traffic to drive, no further than such a file may be long.
func readTraffic(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, observe.MaxTrace+1))
	if err == nil && len(b) > observe.MaxTrace {
		err = fmt.Errorf("%s is longer than %d MiB", path, observe.MaxTrace>>20)
	}
	return b, err
}

// badWorkload is the error of a workload that was refused, with its hint.
func badWorkload(err error) error {
	hint := "for example: parts: [{kind: incast, n: 8, bytes: 1MB}]" // of a file that is no workload
	var e *observe.Error
	if errors.As(err, &e) {
		hint = e.Hint
	}
	return fail(exitUsage, cmp.Or(hint, "for example: --workload incast:8"), "%w", err)
}

// watchRef is the queue that DEVICE:PORT[:QUEUE] names. Without a queue it is that of the workload's first class, or of the first
// class that is lossless there.
func watchRef(net *intent.Net, ref string, w observe.Workload) (sim.Ref, error) {
	if !strings.Contains(ref, ":") {
		return sim.Ref{}, usage("--watch %s: want DEVICE:PORT or DEVICE:PORT:QUEUE", ref)
	}
	dev, ports, queue, err := resolveRef(net, ref)
	if err != nil {
		return sim.Ref{}, fmt.Errorf("--watch %s: %w", ref, err)
	}
	r := sim.Ref{Device: dev.Name, Port: ports[0].Name, Queue: max(queue, 0)}
	if queue >= 0 {
		return r, nil
	}
	if l := dev.PolicyOf(&ports[0]).Lossless(); len(l) > 0 {
		r.Queue = l[0]
	}
	for q, class := range dev.Classes {
		if len(w.Parts) > 0 && w.Parts[0].Class != "" && class == w.Parts[0].Class {
			r.Queue = q
		}
	}
	return r, nil
}

// sampling is how often a row of the series is taken.
type sampling struct {
	rows    int // 0 = there is no series
	fixed   units.Duration
	span    units.Duration // of the run, where it is known
	unknown bool           // it is over when its flows have ended, and nobody knows before when that is
}

// usualRows is how many rows a series has when nobody says: a picture has about 400 columns.
const usualRows = 1000

// sampled is how often rows are taken of a run.
func (o *simFlags) sampled(job sim.Job, json bool) sampling {
	if o.series+o.plot == "" && !(json && o.sample > 0) {
		return sampling{}
	}
	s := sampling{rows: usualRows, fixed: o.sample}
	s.span = cmp.Or(job.Options.Duration, job.Workload.Duration)
	s.unknown = s.span == 0 && s.fixed == 0
	s.span += cmp.Or(job.Options.Warmup, job.Workload.Warmup, sim.DefaultWarmup)
	return s
}

// each is the time between two rows; 0 = there are none.
func (s sampling) each() units.Duration {
	switch {
	case s.rows == 0:
		return 0
	case s.fixed > 0:
		return s.fixed
	}
	return max(s.span/units.Duration(s.rows), 100*units.Nanosecond)
}
