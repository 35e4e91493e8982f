package sim

// draw is a source of random numbers that is the same on every machine: splitmix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA'14).
type draw struct{ state uint64 }

// drawFor is a source of its own for each purpose of a run, so that what one part draws does not change another.
func drawFor(seed, purpose uint64) *draw {
	d := &draw{seed ^ purpose*0xd1342543de82ef95}
	d.next()
	return d
}

func (d *draw) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	x := d.state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below is a number from 0 to n-1; n is at least 1.
func (d *draw) below(n int64) int64 { return int64(d.next() % uint64(n)) }

// shuffle puts n things in a drawn order.
func (d *draw) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(d.below(int64(i+1))))
	}
}

// waiting is a time of a Poisson process with a mean, as a whole number: -ln(u) in 1/65536 of the mean, from a table of logarithms that
// is computed with integers, so that it is the same on every machine.
func (d *draw) waiting(mean int64) int64 {
	u := d.next()>>1 | 1<<62 // from 1/2 to 1 of 2^63, its halvings drawn apart
	halvings := int64(0)
	for d.next()&1 == 0 {
		halvings++
	}
	return mulShift(mean, halvings*ln2+lnHalfToOne(u))
}

// ln2 is the natural logarithm of 2 in 1/65536.
const ln2 = 45426

// lnHalfToOne is -ln(u/2^63) in 1/65536 for u from 2^62 to 2^63: squaring gives one binary digit of the logarithm after the other.
func lnHalfToOne(u uint64) int64 {
	log := int64(0) // of 2^63/u to base 2, in 2^-20
	x := u >> 31    // from 2^31 to 2^32
	for range 20 {
		x = x * x >> 32
		log <<= 1
		if x < 1<<31 {
			log |= 1
			x <<= 1
		}
	}
	return log * ln2 >> 20
}

// mulShift is a*b/65536 without overflow for what fits.
func mulShift(a, b int64) int64 { return a/65536*b + a%65536*b/65536 }
