package engine

import "math/bits"

// The random numbers of the reference, with Compat: MRG32k3a of L'Ecuyer (Operations Research 47, 1999), cut into streams of
// 2^127 numbers and those into substreams of 2^76 (L'Ecuyer, Simard, Chen and Kelton, Operations Research 50, 2002). Each
// draw is the first number of a stream of its own, in the order in which they are drawn; the substream is the seed.
const (
	mrg1, mrg2  = 4294967087, 4294944443
	streamsNode = 6 // streams that each node of the reference takes before anything is drawn
	streamsBase = 2 // and those that others take
)

type matrix [3][3]uint64

// The steps of both halves of the generator.
func steps() (a, b matrix) {
	return matrix{{0, 1, 0}, {0, 0, 1}, {mrg1 - 810728, 1403580, 0}}, matrix{{0, 1, 0}, {0, 0, 1}, {mrg2 - 1370589, 0, 527612}}
}

// streams is where the next stream begins, and the step from one to the next.
type streams struct {
	a, b         [3]uint64
	stepA, stepB matrix
}

// newStreams is streams for a fabric of so many nodes.
func newStreams(nodes int, seed uint64) *streams {
	a, b := steps()
	s := &streams{a: [3]uint64{1, 1, 1}, b: [3]uint64{1, 1, 1}, stepA: a.doubled(127, mrg1), stepB: b.doubled(127, mrg2)}
	sub1, sub2 := a.doubled(76, mrg1), b.doubled(76, mrg2)
	s.a, s.b = sub1.power(seed, mrg1).apply(s.a, mrg1), sub2.power(seed, mrg2).apply(s.b, mrg2)
	first := uint64(streamsNode*nodes + streamsBase)
	s.a, s.b = s.stepA.power(first, mrg1).apply(s.a, mrg1), s.stepB.power(first, mrg2).apply(s.b, mrg2)
	return s
}

// next is the first number of the next stream, above 0 and below 1.
func (s *streams) next() float64 {
	a, b := steps()
	x, y := a.row(2, s.a, mrg1), b.row(2, s.b, mrg2)
	d := x - y
	if x <= y {
		d += mrg1
	}
	s.a, s.b = s.stepA.apply(s.a, mrg1), s.stepB.apply(s.b, mrg2)
	return float64(d) * (1.0 / (mrg1 + 1))
}

// row is one row of m times v, modulo mod.
func (m *matrix) row(i int, v [3]uint64, mod uint64) (sum uint64) {
	for k := range v {
		sum += m[i][k] * v[k] % mod
	}
	return sum % mod
}

func (m matrix) apply(v [3]uint64, mod uint64) (out [3]uint64) {
	for i := range out {
		out[i] = m.row(i, v, mod)
	}
	return out
}

func (m matrix) times(by matrix, mod uint64) (out matrix) {
	for j := range 3 {
		column := m.apply([3]uint64{by[0][j], by[1][j], by[2][j]}, mod)
		for i := range 3 {
			out[i][j] = column[i]
		}
	}
	return out
}

// doubled is m to the power of 2^n.
func (m matrix) doubled(n int, mod uint64) matrix {
	for range n {
		m = m.times(m, mod)
	}
	return m
}

func (m matrix) power(n, mod uint64) matrix {
	out := matrix{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	for i := bits.Len64(n) - 1; i >= 0; i-- {
		out = out.times(out, mod)
		if n>>i&1 != 0 {
			out = out.times(m, mod)
		}
	}
	return out
}
