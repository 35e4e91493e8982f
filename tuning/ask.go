package tuning

import (
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
)

// ask is what the space answers: as the journal has it, or else as the space says now, which is written down where it is not just what was
// asked.
func (t *tuner) ask(of string, in Setting, answer func(*Said)) (Said, error) {
	key := of + in.Key()
	if s, ok := t.said[key]; ok {
		return s, nil
	}
	s := Said{Of: of, In: in}
	answer(&s)
	t.said[key] = s
	if s.Out == nil && s.Starts == nil && s.Why == "" || t.lab.Runner == nil {
		return s, nil
	}
	return s, t.log.Put(recSaid, s)
}

// candidate is the arm of a setting, rounded to what there can be, or nil when that is not to be tried: it is where we are, or lint
// refuses it.
func (t *tuner) candidate(in Setting) (*arm, error) {
	out, err := t.rounded(in)
	if err != nil || out.Key() == t.cur.key {
		return nil, err
	}
	return t.checked(out)
}

// rounded is a setting as there can be one.
func (t *tuner) rounded(in Setting) (Setting, error) {
	s, err := t.ask("normal", in, func(s *Said) {
		if f := t.e.Space.Normal; f != nil {
			if out := f(in); out.Key() != in.Key() {
				s.Out = out
			}
		}
	})
	if s.Out != nil {
		return s.Out, err
	}
	return in, err
}

// checked is the arm of a setting, or nil when lint refuses it.
func (t *tuner) checked(in Setting) (*arm, error) {
	s, err := t.ask("check", in, func(s *Said) {
		if f := t.e.Space.Check; f != nil {
			for _, x := range f(in) {
				if x.Severity == diag.Error && s.Why == "" {
					s.Why = x.Rule + ": " + x.Msg
				}
			}
		}
	})
	if err != nil || s.Why == "" {
		return t.armOf(in), err
	}
	t.miss(t.words(in) + ", which lint refuses: " + s.Why)
	return nil, nil
}

// miss notes what was not tried.
func (t *tuner) miss(what string) {
	if !slices.Contains(t.untested, what) {
		t.untested = append(t.untested, what)
	}
}

// unmarked is the arm of a setting without a mark ever.
func (t *tuner) unmarked(in Setting) (*arm, error) {
	s, err := t.ask("unmarked", in, func(s *Said) {
		if f := t.e.Space.Unmarked; f != nil {
			s.Out = f(in)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case len(s.Out) != len(t.vars): // of a replay: nobody knows any more
		return nil, errTape
	}
	a, err := t.checked(s.Out)
	if a != nil {
		a.bare = true
	}
	return a, err
}

// starts are the settings that formulas give.
func (t *tuner) starts(floor Setting) ([]Start, error) {
	s, err := t.ask("starts", floor, func(s *Said) {
		if f := t.e.Space.Starts; f != nil {
			s.Starts = f(floor)
		}
	})
	return s.Starts, err
}

// with is s with a value of variable i, within its range.
func (t *tuner) with(s Setting, i int, x float64) Setting {
	v := &t.vars[i]
	x = min(max(x, v.Low), v.High)
	if v.Whole {
		x = math.Round(x)
	}
	out := slices.Clone(s)
	out[i] = x
	return out
}

// stepped is s with variable i moved by so many steps, which are factors or differences.
func (t *tuner) stepped(s Setting, i int, step, times float64) Setting {
	v := &t.vars[i]
	x := s[i] * math.Pow(step, times)
	if v.Linear {
		x = s[i] + step*times
	}
	if v.Whole && math.Round(x) == math.Round(s[i]) { // a step is a step
		x = s[i] + math.Copysign(1, times)
	}
	return t.with(s, i, x)
}
