package tuning

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// quantityNames are the words for quantities, in their order.
func quantityNames() []string {
	return []string{"number", "factor", "size", "share", "ratio", "rate", "time"}
}

// String is the word for q, as journals and results have it.
func (q Quantity) String() string {
	if names := quantityNames(); int(q) < len(names) {
		return names[q]
	}
	return "quantity " + strconv.Itoa(int(q))
}

// MarshalText writes String.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads a word for a quantity.
func (q *Quantity) UnmarshalText(b []byte) error {
	i := slices.Index(quantityNames(), string(b))
	if i < 0 {
		return fmt.Errorf("%q is no quantity: want %s", b, strings.Join(quantityNames(), ", "))
	}
	*q = Quantity(i)
	return nil
}

// Text is a value of v as people and YAML write it: 1/8, 1.6MB, 10%. Values that no model can hold are rounded to the nearest that
// one can.
func (v *Variable) Text(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	switch v.Of {
	case Factor:
		return factorText(x)
	case Size:
		return units.Bytes(math.Round(x)).String()
	case Share:
		return units.Percent(math.Round(x * 100 * float64(units.OnePercent))).String()
	case Rate:
		return units.BitRate(math.Round(x)).String()
	case Time:
		return units.Duration(math.Round(x * float64(units.Second))).String()
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// factorText is 1/8 of 0.125, 2 of 2, 3/16 of 0.1875, and a decimal where no fraction of a power of two is meant.
func factorText(x float64) string {
	for den := 1.0; den <= 1024; den *= 2 {
		if num := x * den; num == math.Trunc(num) && num > 0 && num <= math.MaxInt32 {
			return units.Ratio{Num: int32(num), Den: int32(den)}.String()
		}
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// SettingText is "alpha 1/8, kmax 1.6MB": a value of each variable, in order.
func SettingText(vars []Variable, s Setting) string {
	var parts []string
	for i := range min(len(vars), len(s)) {
		parts = append(parts, vars[i].Name+" "+vars[i].Text(s[i]))
	}
	return strings.Join(parts, ", ")
}
