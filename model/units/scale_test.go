package units

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// scale is as exact as rational numbers are.
func TestScale(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		s := strconv.FormatUint(rnd.Uint64()>>rnd.IntN(64), 10)
		if n := rnd.IntN(20); n > 0 {
			s += "." + strings.Repeat("0", rnd.IntN(20-n+1)) + strconv.FormatUint(rnd.Uint64(), 10)[:n-n/3]
		}
		return s
	}
	for range 20000 {
		num, size := number(), int64(1)<<rnd.IntN(50)
		if rnd.IntN(2) == 0 {
			size = 1
			for range rnd.IntN(16) {
				size *= 10
			}
		}
		want, _ := new(big.Rat).SetString(num)
		want.Mul(want, new(big.Rat).SetInt64(size))
		v, exact := scale(num, size)
		if _, frac, _ := strings.Cut(num, "."); exact != want.IsInt() && len(strings.TrimRight(frac, "0")) < 20 {
			t.Fatalf("%s times %d: exact %v, want %v", num, size, exact, want.IsInt())
		}
		if whole := new(big.Int).Quo(want.Num(), want.Denom()); exact && (whole.IsUint64() && v != whole.Uint64() || !whole.IsUint64() && v != most) {
			t.Fatalf("%s times %d: %d, want %s", num, size, v, whole)
		}
	}
}
