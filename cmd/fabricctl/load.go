package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

// loaded is a model with all that can be said about it without touching a device.
type loaded struct {
	fabric   *model.Fabric
	net      *intent.Net // nil when the model has errors
	findings diag.List
	digest   func() string // of the model, found once
}

// emulated reports whether a device is one of the lab.
func (m loaded) emulated(device string) bool {
	e := m.fabric.Endpoints[device]
	return e != nil && e.Lab.V
}

// load reads layers, resolves, lints and acknowledges. It renders too when asked: what a target cannot express is a
// finding like any other. A large model takes seconds, and the end of ctx ends the call at once.
func (a *app) load(ctx context.Context, layers []string) (loaded, error) {
	return a.loadFor(ctx, layers, false)
}

// loadFor is load. The digest, which takes its time, is found beside the rest when it is needed soon.
func (a *app) loadFor(ctx context.Context, layers []string, digest bool) (loaded, error) {
	if len(layers) == 0 {
		return loaded{}, fail(exitUsage, "for example: -f fabric.yaml -f inventory.yaml; fabricctl init writes a first one", "no model given")
	}
	m, err := within(ctx, func() loaded { return a.loadWhole(layers, digest) })
	if err != nil {
		return m, interrupted(ctx, fmt.Errorf("the model was still being read; nothing was done: %w", err))
	}
	return m, nil
}

// within is what f returns, unless ctx ends first: the program is then about to end, and the rest of f with it. f may
// have no effects.
func within[T any](ctx context.Context, f func() T) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// loadWhole is loadFor. It takes the time that it takes, and has no effects.
func (a *app) loadWhole(layers []string, digest bool) loaded {
	hardware, l := a.hardware()
	if l.HasErrors() {
		none := new(model.Fabric)
		return loaded{fabric: none, findings: l, digest: none.Digest}
	}
	f, l := model.Load(osFS{}, append(hardware, layers...)...)
	m := loaded{fabric: f, findings: l, digest: sync.OnceValue(f.Digest)}
	if l.HasErrors() {
		m.findings.Add(besides(f, l)...)
		m.findings = strangers(f, m.findings)
		return m
	}
	if digest {
		go m.digest()
	}
	net, more := intent.Resolve(f)
	m.findings.Add(more...)
	if !more.HasErrors() {
		m.net = net
		rendered := ahead(func() ([]diag.List, error) { return inexpressible(net), nil })
		m.findings.Add(lint.Check(net, f)...)
		found, _ := rendered()
		m.findings.Add(renderFindings(net, m.findings, found)...)
		m.findings = lint.Weigh(net, m.findings)
	}
	m.findings = strangers(f, f.Acknowledge(m.findings))
	return m
}

// besides is what the linter says about a model with errors, as far as it does not follow from them.
func besides(f *model.Fabric, found diag.List) diag.List {
	d := f.Doubts(found)
	if d.All {
		return nil
	}
	net, _ := intent.Resolve(f)
	var unknown intent.Areas
	if d.MTU {
		unknown |= intent.AreaSet(intent.AreaMTU)
	}
	if d.Watchdog {
		unknown |= intent.AreaSet(intent.AreaWatchdog)
	}
	net.Forget(unknown)
	l := slices.DeleteFunc(lint.Weigh(net, lint.Check(net, f)), d.Touches)
	return slices.DeleteFunc(f.Acknowledge(l), func(x diag.Finding) bool { return x.Rule == "acknowledge" }) // unused is not certain
}

// watchdogTimes is the rule about times of a watchdog that do not fit together. Systems refuse each of them once more, in
// words of their own.
const watchdogTimes = "watchdog-on"

// renderFindings are what the targets cannot express, each once with the number of devices that say it. A value that is
// said to be wrong already is not said to be wrong again. Nothing stops where nothing is owned: it is a warning. rendered
// are the findings of each device.
func renderFindings(net *intent.Net, said diag.List, rendered []diag.List) diag.List {
	wrong := map[diag.Pos]bool{}
	for _, f := range said {
		if f.Severity != diag.Error {
			continue
		}
		wrong[f.Pos] = !f.Pos.IsZero()
		if f.Rule == watchdogTimes {
			for _, r := range f.Related {
				wrong[r.Pos] = true
			}
		}
	}
	type same struct {
		rule, msg string
		pos       diag.Pos
	}
	var l diag.List
	first, ports, devices := map[same]int{}, map[int]int{}, map[int]int{} // where it stands in l; on how many it is besides
	last := map[int]int{}
	for i, found := range rendered {
		owns := slices.ContainsFunc(net.Devices[i].Ports, func(p intent.Port) bool { return p.Manage.Owned() != 0 })
		for _, f := range found {
			if f.Rule == render.NeedsAdoption || !owns {
				f.Severity = min(f.Severity, diag.Warning) // the plan decides it, or there is none
			}
			k := same{f.Rule, unplaced(&net.Devices[i], f), f.Pos}
			at, again := first[k]
			switch {
			case wrong[f.Pos]:
			case again && (!f.Pos.IsZero() || k.msg != f.Msg):
				l[at].Msg = k.msg
				ports[at]++
				if last[at] != i {
					devices[at]++
				}
				last[at] = i
			default:
				first[k], last[len(l)] = len(l), i
				l.Add(f)
			}
		}
	}
	for at, n := range ports {
		device, _, _ := strings.Cut(l[at].At, ":")
		if devices[at] > 0 {
			l[at].Msg += fmt.Sprintf(" (on %s and %d more)", device, devices[at])
		} else {
			l[at].Msg += fmt.Sprintf(" (on %d ports of %s)", n+1, device)
		}
	}
	return l
}

// unplaced is what a finding says, without the device and port that it may begin with, and without the name that a host has
// for the NIC.
func unplaced(d *intent.Device, f diag.Finding) string {
	msg := strings.TrimPrefix(f.Msg, strings.Replace(f.At, ":", " ", 1)+": ")
	_, port, _ := strings.Cut(f.At, ":")
	if p := d.Port(port); d.Host && p != nil && p.Iface != "" {
		if rest, ok := strings.CutPrefix(msg, p.Iface+" "); ok {
			return "the NIC " + rest
		}
	}
	return msg
}

// inexpressible are the findings of rendering each device, on all processors.
func inexpressible(net *intent.Net) []diag.List {
	found := make([]diag.List, len(net.Devices))
	var shared render.Shared
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range net.Devices {
		dev := &net.Devices[i]
		d := render.ByOS(dev.OS())
		if d == nil || dev.State == intent.Absent {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, found[i] = shared.Render(d, dev, render.Facts{})
		})
	}
	wg.Wait()
	return found
}

// mustLoad is load for verbs that need a model without errors: findings go to stderr, errors end the call.
// Warnings of settled rules are not repeated: what comes says them better, and is a plan, which needs the digest.
func (a *app) mustLoad(ctx context.Context, settled ...string) (loaded, error) {
	m, err := a.loadFor(ctx, a.fabric, len(settled) > 0)
	if err != nil {
		return m, err
	}
	a.printLoaded(m, settled...)
	return m, m.refused()
}

// printLoaded writes to stderr what somebody has to know before a verb goes on.
func (a *app) printLoaded(m loaded, settled ...string) {
	shown := slices.DeleteFunc(slices.Clone(m.findings), func(f diag.Finding) bool {
		return f.Severity == diag.Info || f.Ack != "" || f.Severity == diag.Warning && slices.Contains(settled, f.Rule)
	})
	show.Findings(a.sys.err, shown)
}

// refused is an error when the model has errors.
func (m loaded) refused() error {
	if m.findings.HasErrors() {
		return fail(exitError, "", "the model has %s; nothing was done", diag.Count(m.findings.Count(diag.Error), "error"))
	}
	return nil
}

type findingsJSON struct {
	Schema   string    `json:"schema"`
	Layers   []string  `json:"layers"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Infos    int       `json:"infos"`
	Findings diag.List `json:"findings"`
}

func (a *app) newValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Check a model and report every finding at once",
		Long: `Load the layers (PATHs, after any -f), resolve and lint them, and try to render every device. All findings are
printed, sorted by position. No device is contacted. Exit 1 when a finding is an error.

For pipelines: -o sarif is for code scanning, -o junit for test reports, and -o github writes the annotations of a
pull request, from within a GitHub workflow.`,
		Example: "  fabricctl validate fabric.yaml inventory.yaml\n  fabricctl validate -o sarif pod1/ > findings.sarif",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			if _, err := a.wants(findingFormats()...); err != nil {
				return err
			}
			layers := append(slices.Clone(a.fabric), args...)
			if slices.Contains(layers, "") {
				return fail(exitUsage, "is a variable of the shell not set?", "a PATH is given, and empty")
			}
			m, err := a.load(ctx, layers)
			if err != nil {
				return err
			}
			return a.printValidation(layers, m.findings)
		},
	}
}
