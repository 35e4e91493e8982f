package rollout

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/render"
)

// Later is what runs that came later have made of an unfinished one, by the journals of all of them.
type Later struct {
	Runs    []string `json:"runs"`              // those that have something in force on devices of it, or may have, oldest first
	Devices []string `json:"devices,omitempty"` // where one of them is in force in its place
	Unknown []string `json:"unknown,omitempty"` // where one of them did not come to its end, or left something out for a hold: what there is of either is not known
	Left    []string `json:"left,omitempty"`    // where none of them is: it is as it was left
}

// Whole reports whether nothing of the unfinished run is in force any more. Of a nil Later it is false: nobody came later.
func (l *Later) Whole() bool { return l != nil && len(l.Unknown)+len(l.Left) == 0 }

// LaterOf is what later runs have made of run id, nil when there are none. Each journal of the state directory is read once.
func LaterOf(stateDir, id string, now time.Time) (*Later, error) {
	var all []trace
	err := each(stateDir, now, func(_ string, h *History, err error) {
		if err == nil {
			all = append(all, h.trace())
		}
	})
	slices.SortStableFunc(all, earlier)
	i := slices.IndexFunc(all, func(t trace) bool { return t.id == id })
	if err != nil || i < 0 {
		return nil, err
	}
	return all[i].later(all), nil
}

// Later is LaterOf a run of the engine's state directory; nil too for one that died before it began with a device, and for
// a trial that nobody else can have come after.
func (e *Engine) Later(id string) (*Later, error) {
	st, err := load(e.StateDir, id)
	if err != nil || len(st.attempts) == 0 || e.alone(st) {
		return nil, err
	}
	return LaterOf(e.StateDir, id, e.Now())
}

// each reads the runs of a state directory one after the other.
func each(stateDir string, now time.Time, f func(id string, h *History, err error)) error {
	entries, err := os.ReadDir(runsDir(stateDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("runs: %w", err)
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && idPattern.MatchString(id) {
			h, err := Show(stateDir, id, now)
			f(id, h, err)
		}
	}
	return nil
}

// trace is what a run has left on devices, by its journal: what is to be known of it beside other runs. It is small: there may be
// hundreds.
type trace struct {
	id      string
	started time.Time
	plan    *Plan // what sameBox looks at, of the devices in stands
	stands  []standing
}

// standing is a device on which something of a run is in force, or may be.
type standing struct {
	device string
	sent   bool // something was sent to it; else it was found so
	whole  bool // it holds all that the model asked for
}

// earlier orders runs by when they began.
func earlier(x, y trace) int { return x.started.Compare(y.started) }

// trace is what h has left.
func (h *History) trace() trace {
	t := trace{id: h.ID, started: h.Started, plan: &Plan{Fabric: h.Fabric}}
	if len(h.Attempts) == 0 {
		return t
	}
	held := h.Plan.LeftOut()
	for _, x := range h.Attempts[len(h.Attempts)-1].Results {
		if x.Steps == 0 || x.Outcome == Unchanged || x.Outcome == RolledBack {
			continue
		}
		t.stands = append(t.stands, standing{x.Device, h.sent[x.Device], x.Outcome == Applied && !slices.Contains(held, x.Device)})
		if d := h.Plan.Device(x.Device); d != nil {
			t.plan.Devices = append(t.plan.Devices, DevicePlan{Name: d.Name, Facts: render.Facts{Serial: d.Facts.Serial, Hostname: d.Facts.Hostname, Model: d.Facts.Model}})
		}
	}
	return t
}

// over is where, of some devices of a plan, something of a run stands.
func (t *trace) over(plan *Plan, devices map[string]bool) (on []standing) {
	for _, s := range t.stands {
		if devices[s.device] && sameBox(plan, t.plan, s.device) {
			on = append(on, s)
		}
	}
	return on
}

// later is what those of some runs, oldest first, that came later have made of t; nil when there are none.
func (t *trace) later(runs []trace) *Later {
	sent := map[string]bool{}
	for _, s := range t.stands {
		if s.sent {
			sent[s.device] = true
		}
	}
	var l Later
	whole := map[string]bool{}
	for i := range runs {
		x := &runs[i]
		if !x.started.After(t.started) {
			continue
		}
		on := x.over(t.plan, sent)
		if len(on) > 0 {
			l.Runs = append(l.Runs, x.id)
		}
		for _, s := range on {
			whole[s.device] = whole[s.device] || s.whole
		}
	}
	if len(l.Runs) == 0 {
		return nil
	}
	for _, device := range slices.Sorted(maps.Keys(sent)) {
		list := &l.Left
		if is, known := whole[device]; is {
			list = &l.Devices
		} else if known {
			list = &l.Unknown
		}
		*list = append(*list, device)
	}
	return &l
}
