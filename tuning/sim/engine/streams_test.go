package engine

import (
	"math"
	"math/bits"
	"testing"
)

// The first number of MRG32k3a with all six words 12345 is published: 0.1270111220... (L'Ecuyer's example of RngStreams).
func TestStreamsFirst(t *testing.T) {
	a, b := steps()
	s := streams{a: [3]uint64{12345, 12345, 12345}, b: [3]uint64{12345, 12345, 12345}, stepA: a, stepB: b}
	if got := s.next(); math.Abs(got-0.12701112204657714) > 1e-15 {
		t.Errorf("the first number is %v", got)
	}
}

// A power of a step is as many steps, one by one.
func TestStreamsPower(t *testing.T) {
	a, b := steps()
	for _, n := range []uint64{0, 1, 2, 3, 64, 1000} {
		x, y := [3]uint64{1, 2, 3}, [3]uint64{4, 5, 6}
		wantX, wantY := x, y
		for range n {
			wantX, wantY = a.apply(wantX, mrg1), b.apply(wantY, mrg2)
		}
		if got := a.power(n, mrg1).apply(x, mrg1); got != wantX {
			t.Errorf("%d steps of the first half lead to %v, want %v", n, got, wantX)
		}
		if got := b.power(n, mrg2).apply(y, mrg2); got != wantY {
			t.Errorf("%d steps of the second half lead to %v, want %v", n, got, wantY)
		}
		if k := bits.Len64(n) - 1; k >= 0 && n == 1<<k {
			if got := a.doubled(k, mrg1).apply(x, mrg1); got != wantX {
				t.Errorf("doubled %d times: %v, want %v", k, got, wantX)
			}
		}
	}
}
