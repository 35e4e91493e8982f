package tuning

import (
	"context"
	"math"
	"testing"
)

// TestPFCLadder: without ECN the thresholds of PFC go down by halves from their top, be they a part of what is free or a size; the least
// that keeps goodput is where starts begin.
func TestPFCLadder(t *testing.T) {
	for _, x := range []struct {
		v     Variable
		floor float64
	}{
		{Variable{Name: "alpha", Of: Factor, Low: 1. / 64, High: 4, Step: 2}, 1. / 8},
		{Variable{Name: "xoff", Of: Size, Low: 10e3, High: 8e6, Step: 2}, 1e6},
		{Variable{Name: "xoff@leaf", Of: Size, Low: 10e3, High: 8e6, Step: 2}, 1e6},
	} {
		s := plane(1, 0.25, "marks")
		s.Vars = append(s.Vars, x.v)
		s.Base = Setting{0, x.v.High}
		s.Unmarked = func(in Setting) Setting { return Setting{-10, in[1]} }
		var asked float64
		s.Starts = func(floor Setting) []Start {
			asked = floor[1]
			return nil
		}
		e := experiment(s)
		e.Looks = Looks{First: 4, Most: 6, Polish: 6, Confirm: 4}
		top, _ := x.v.threshold()
		knee := func(in Setting) float64 { return -0.2 * max(0, math.Log2(top/8/in[1])) } // goodput falls below an eighth of the top
		if _, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.001, f: knee}}, &memory{}, nil); err != nil {
			t.Fatal(err)
		}
		if asked != x.floor {
			t.Errorf("%s: the floor is %g, want %g", x.v.Name, asked, x.floor)
		}
	}
}
