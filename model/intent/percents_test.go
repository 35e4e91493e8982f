package intent

import "testing"

func TestPercents(t *testing.T) {
	for _, tt := range [][2][8]int{
		{{40, 60}, {40, 60}},
		{{1, 1, 1}, {34, 33, 33}},
		{{1, 200}, {1, 99}},
		{{1, 1, 1, 250}, {1, 1, 1, 97}},
		{{7, 0, 7}, {50, 0, 50}},
		{},
	} {
		if got := Percents(tt[0]); got != tt[1] {
			t.Errorf("%v: %v, want %v", tt[0], got, tt[1])
		}
	}
	for i := range 500 { // every sum is a hundred, whatever the weights
		var w [8]int
		n := 1 + i%8
		for j := range n {
			w[j] = 1 + (i*37+j*j*101)%255
		}
		sum := 0
		for j, x := range Percents(w) {
			if sum += x; (x > 0) != (w[j] > 0) {
				t.Fatalf("%v: %v", w, Percents(w))
			}
		}
		if sum != 100 {
			t.Fatalf("%v: %v", w, Percents(w))
		}
	}
}
