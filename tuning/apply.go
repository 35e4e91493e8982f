package tuning

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// apply brings devices and knobs to what a trial means, where they are not there already.
func (t *tuner) apply(ctx context.Context, trial *Trial) error {
	if !t.moves {
		return nil
	}
	key := trial.Setting.Key()
	if t.applied == key {
		return t.hold(ctx, trial)
	}
	if err := t.log.Append(recApply, trial); err != nil {
		return err
	}
	t.touched, t.applied = true, ""
	if t.lab.Bench != nil {
		if err := t.lab.Bench.Apply(ctx, trial.Change.Patch); err != nil {
			return fmt.Errorf("trial %d: %w", trial.N, err)
		}
	}
	for _, x := range trial.Change.External {
		v := variable(t.vars, x.Variable)
		if v == nil || t.lab.Knobs == nil {
			return fmt.Errorf("trial %d: nobody sets %s", trial.N, x.Variable)
		}
		if err := t.lab.Knobs.Set(ctx, v, x.Value); err != nil {
			return fmt.Errorf("trial %d: %s: %w", trial.N, x.Variable, err)
		}
	}
	t.applied = key
	return nil
}

// hold has the bench keep the setting that it has: devices may be about to take it back.
func (t *tuner) hold(ctx context.Context, trial *Trial) error {
	if t.lab.Bench == nil {
		return nil
	}
	err := t.lab.Bench.Apply(ctx, trial.Change.Patch)
	if err == nil {
		return nil
	}
	t.applied = ""
	if e := t.log.Append(recApply, trial); e != nil { // of this trial the journal has nothing yet, and may be told that it was refused
		return e
	}
	return fmt.Errorf("trial %d: %w", trial.N, err)
}

func variable(vars []Variable, name string) *Variable {
	i := slices.IndexFunc(vars, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &vars[i]
}

// readExternals reads what external variables are before any is moved.
func (t *tuner) readExternals(ctx context.Context, b *Begin) error {
	for i := range t.vars {
		v := &t.vars[i]
		if v.External == nil {
			continue
		}
		if t.lab.Knobs == nil {
			return fmt.Errorf("nobody reads %s", v.Name)
		}
		x, err := t.lab.Knobs.Get(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		if t.externals == nil {
			t.externals = map[string]float64{}
		}
		t.externals[v.Name] = x
	}
	b.Externals = t.externals
	return nil
}

// restore brings the baseline back, and says what is not as it was.
func (t *tuner) restore(ctx context.Context, why string) (left string) {
	if !t.touched {
		return ""
	}
	left = bringBack(ctx, t.vars, t.externals, t.lab, t.log, why)
	if left == "" {
		t.tell(Event{Notice: "the baseline is back"})
	} else {
		t.tell(Event{Notice: "the baseline is not back: " + left})
	}
	return left
}

// Recover brings back the baseline of an experiment whose process is gone, as its journal knows it, and writes that down. It returns
// what is not as it was; "" when all is.
func Recover(ctx context.Context, h *History, lab Lab, log Log) (left string) {
	if !h.Touched {
		return ""
	}
	return bringBack(ctx, h.Begin.Vars, h.Begin.Externals, lab, log, "the process that ran the experiment is gone")
}

// bringBack restores devices first and knobs after, all of them whatever fails, and not ended by ctx. A journal that cannot be written
// keeps nothing from being restored.
func bringBack(ctx context.Context, vars []Variable, externals map[string]float64, lab Lab, log Log, why string) string {
	ctx = context.WithoutCancel(ctx)
	var left []string
	if err := log.Append(recRestore, Restore{Why: why}); err != nil {
		why += "; the journal could not be written: " + err.Error()
	}
	if lab.Bench != nil {
		if err := lab.Bench.Restore(ctx); err != nil {
			left = append(left, err.Error())
		}
	}
	for i := range vars {
		v := &vars[i]
		was, ok := externals[v.Name]
		if !ok {
			continue
		}
		if lab.Knobs == nil {
			left = append(left, fmt.Sprintf("%s: nobody sets it back to %v", v.Name, was))
			continue
		}
		if err := lab.Knobs.Set(ctx, v, was); err != nil {
			left = append(left, fmt.Sprintf("%s: it was %v: %v", v.Name, was, err))
		}
	}
	words := strings.Join(left, "; ")
	_ = log.Append(recRestore, Restore{Why: why, Done: words == "", Left: words}) // nor can the end be written then, and its error is returned
	return words
}
