package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// judge compares what a device holds with the steps of its plan. It is pure: everything it knows comes from the plan
// and the facts.
type judge struct {
	d     *render.Dialect
	f     render.Facts
	own   func(render.Key) bool
	dev   intent.Device // what the model asks for, to name what moved
	steps []Step
}

func newJudge(d *render.Dialect, f render.Facts, dev intent.Device, steps []Step) judge {
	byKey := d.Owns(dev, f)
	planned := map[render.Key]bool{} // the plan owned what it changes, when it saw the values
	for _, s := range steps {
		for _, c := range s.Changes {
			planned[c.Key] = true
		}
	}
	own := func(k render.Key) bool { return byKey(k) || planned[k] } // nearly all that is planned is owned by its key too
	return judge{d: d, f: f, own: own, dev: dev, steps: steps}
}

// fingerprint is a digest of owned settings. A setting that says what its absence says does not count, so that a device
// which starts to show a default has not changed.
func (j *judge) fingerprint(owned render.Config) string {
	return j.digest(owned, nil, func(render.Key) bool { return true })
}

// print is the fingerprint of what we own of live once cs are carried out. Each value that the dialect calls the same as
// one of the steps' values is taken as the step writes it: a threshold that the hardware rounded is the threshold that
// was asked for.
func (j *judge) print(live render.Config, cs []render.Change) string {
	var all []render.Change
	for _, s := range j.steps { // we own what they change
		for _, c := range s.Changes {
			now := value(live, c.Key)
			for _, v := range []*string{c.After, c.Before} {
				if now != nil && v != nil && j.d.Same(c.Key, now, v, j.f) {
					if *now != *v {
						all = append(all, render.Change{Key: c.Key, After: v})
					}
					break
				}
			}
		}
	}
	return j.digest(live, append(all, cs...), j.own)
}

// digest is that of c after cs, as far as own says. It makes no copy: a switch has thousands of settings.
func (j *judge) digest(c render.Config, cs []render.Change, own func(render.Key) bool) string {
	h := sha256.New()
	lines := make([]byte, 0, 8<<10) // handed on when nearly full
	render.Walk(c, cs, func(part render.Config) {
		for i := range part {
			s := &part[i]
			if !own(s.Key) || s.Key.Field != "" && j.d.Same(s.Key, &s.Value, nil, j.f) {
				continue
			}
			for _, part := range [...]string{s.Key.Scope, s.Key.Object, s.Key.Field, s.Value} {
				lines = append(diag.AppendQuoted(lines, part), ' ')
			}
			lines[len(lines)-1] = '\n'
			if len(lines) > 7<<10 {
				h.Write(lines) // never fails
				lines = lines[:0]
			}
		}
	})
	h.Write(lines)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func value(c render.Config, k render.Key) *string {
	if v, ok := c.Find(k); ok {
		return &v
	}
	return nil
}

// place is where a device stands with respect to one step.
type place struct {
	todo  []render.Change // still at Before
	moved []render.Change // at neither Before nor After
	all   int             // changes of the step
	rest  bool            // every other owned setting is as planned
}

func (p place) touchedBefore() bool { return len(p.moved) == 0 && len(p.todo) == p.all }
func (p place) touchedAfter() bool  { return len(p.moved) == 0 && len(p.todo) == 0 }
func (p place) after() bool         { return p.rest && p.touchedAfter() }

// undone reports whether live shows nothing of step i any more, or only what the device never lets go of.
func (j *judge) undone(live render.Config, i int) bool {
	todo, moved := render.Remaining(j.d, j.f, live, j.steps[i].Undo)
	return len(todo)+len(moved) == 0
}

// old reports whether live shows nothing of any step any more.
func (j *judge) old(live render.Config) bool {
	for i := range j.steps {
		if !j.undone(live, i) {
			return false
		}
	}
	return true
}

// fresh reports whether live shows all that the steps ask for, whatever else it holds.
func (j *judge) fresh(live render.Config) bool {
	for i := range j.steps {
		if !j.look(live, i).touchedAfter() {
			return false
		}
	}
	return true
}

// dangling names an object that undoing what live shows of the steps would remove although another setting points at
// it, and that setting; "" when there is none.
func (j *judge) dangling(live render.Config) string {
	after := live
	removed := map[render.Key]bool{}
	for i := len(j.steps) - 1; i >= 0; i-- {
		if j.undone(live, i) {
			continue
		}
		todo, _ := render.Remaining(j.d, j.f, after, j.steps[i].Undo) // without what the device never lets go of
		after = render.Apply(after, todo)
		for _, c := range todo {
			if c.After == nil {
				removed[c.Key.Whole()] = true
			}
		}
	}
	for _, s := range after {
		delete(removed, s.Key.Whole())
	}
	for _, s := range after {
		for _, r := range j.d.Refs(s.Key, s.Value) {
			if removed[r] {
				return fmt.Sprintf("%s would be removed, and %s, which is not part of this run, uses it", r, s.Key)
			}
		}
	}
	return ""
}

// leftovers are the values that undoing step i would remove and the device keeps.
func (j *judge) leftovers(live render.Config, i int) []render.Change {
	var out []render.Change
	for _, c := range j.steps[i].Undo {
		if now := value(live, c.Key); c.After == nil && now != nil {
			out = append(out, render.Change{Key: c.Key, After: now})
		}
	}
	return out
}

// look places live at step i.
func (j *judge) look(live render.Config, i int) place {
	s := &j.steps[i]
	todo, moved := render.Remaining(j.d, j.f, live, s.Changes)
	rest := j.print(live, s.Changes) == s.After
	return place{todo: todo, moved: moved, all: len(s.Changes), rest: rest}
}

// position is the number of steps that are in force; half says that the next one is in force in part. ok is false
// when the device holds something that no moment of the plan explains.
func (j *judge) position(live render.Config) (n int, half, ok bool) {
	if last := len(j.steps) - 1; j.look(live, last).after() {
		return len(j.steps), false, true
	}
	for i := len(j.steps) - 1; i >= 0; i-- {
		if p := j.look(live, i); p.rest && len(p.moved) == 0 {
			return i, len(p.todo) < p.all, true
		}
	}
	return 0, false, false
}

// strangers are the settings of the steps that hold neither what they held before the run nor what it asks for:
// somebody else's values. Each key stands in one change of one step (check).
func (j *judge) strangers(live render.Config) []render.Change {
	var out []render.Change
	for _, s := range j.steps {
		_, moved := render.Remaining(j.d, j.f, live, s.Changes)
		for _, c := range moved {
			out = append(out, render.Change{Key: c.Key, Before: c.After, After: value(live, c.Key)})
		}
	}
	return out
}

// moved names, in one line, what live holds that is not as after n steps.
func (j *judge) moved(live render.Config, n int) string {
	expect, _ := j.d.Render(j.dev, j.f)
	expect = expect.Filter(j.own)
	for _, s := range slices.Backward(j.steps[n:]) {
		expect = render.Apply(expect, s.Undo)
	}
	return list(render.Diff(j.d, j.f, expect, live.Filter(j.own)))
}

// list is changes as "key: a, was b" in one line, cut after three.
func list(cs []render.Change) string {
	var b strings.Builder
	for i, c := range cs {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(cs)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		io.WriteString(&b, c.Key.String()+" is "+shown(c.After)+", was "+shown(c.Before))
	}
	return b.String()
}

func shown(v *string) string {
	if v == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *v)
}
