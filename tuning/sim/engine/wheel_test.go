package engine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWheel compares a wheel with a sorted list: events near and far, many at one time, some taken out again.
func TestWheel(t *testing.T) {
	type event struct {
		at  Time
		seq uint64
		id  int32
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		const slots = 200
		horizon := Time(1) << (10 + r.IntN(20))
		w := newWheel(slots, 1+r.IntN(500), horizon)
		var list []event
		now, seq := Time(0), uint64(0)
		for step := range 5000 {
			id := int32(r.IntN(slots))
			switch held := slices.IndexFunc(list, func(e event) bool { return e.id == id }); {
			case held >= 0 != w.holds(id):
				t.Fatalf("seed %d step %d: holds(%d) is %v", seed, step, id, w.holds(id))
			case held >= 0 && r.IntN(3) == 0:
				w.clear(id)
				list = slices.Delete(list, held, held+1)
			case held < 0 && r.IntN(4) > 0:
				at := now
				switch r.IntN(4) {
				case 0:
					at += Time(r.Int64N(int64(horizon)))
				case 1:
					at += Time(r.Int64N(int64(20 * horizon)))
				case 2:
					at = now + horizon/3 // many at one time
				}
				number := seq
				if r.IntN(10) == 0 && at > now { // a number that was kept for later
					number = uint64(r.Int64N(int64(seq+1)))<<1 | 1<<63
				}
				seq++
				w.set(id, at, number)
				list = append(list, event{at, number, id})
			case len(list) > 0:
				first := slices.MinFunc(list, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
				got := w.take()
				if n := w.slots[got]; n.at != first.at || n.seq != first.seq {
					t.Fatalf("seed %d step %d: took %d at %d (%d), first is %d at %d (%d)", seed, step, got, n.at, n.seq, first.id, first.at, first.seq)
				}
				list = slices.DeleteFunc(list, func(e event) bool { return e.id == got })
				now = first.at
			}
			if w.len() != len(list) {
				t.Fatalf("seed %d step %d: %d events, want %d", seed, step, w.len(), len(list))
			}
		}
	}
}
