package units

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Error is a quantity that was refused.
type Error struct {
	Text string // what was written
	What string // what is wrong with it, continuing a sentence that starts with the text
	Hint string // what to write instead
}

// Error is the text and what is wrong with it; the hint is kept apart.
func (e *Error) Error() string { return strconv.Quote(e.Text) + " " + e.What }

// quantity is what parse needs to know about one type.
type quantity struct {
	noun    string // "size"
	example string // the unit to suggest for a bare number
	such    string // a quantity of the kind, for hints
	units   []unit
	limit   int64 // largest value in the base unit
}

// parse reads a non-negative decimal number directly followed by a unit, exactly.
func parse(s string, q quantity) (int64, error) {
	refuse := func(what, hint string) (int64, error) { return 0, &Error{Text: clip(s), What: what, Hint: hint} }
	num, name := splitNumber(s)
	if num == "" {
		return refuseNumber(s, q, refuse)
	}
	if trimmed := strings.TrimLeft(name, " \t"); trimmed != name {
		return refuse("has a space before the unit", "write "+num+trimmed)
	}
	if whole, _, _ := strings.Cut(num, "."); len(whole) > 1 && whole[0] == '0' {
		return refuse("starts with a zero", "write "+strings.TrimLeft(whole[:len(whole)-1], "0")+whole[len(whole)-1:]+num[len(whole):]+name)
	}
	if name == "" {
		if q.example == "%" && strings.HasPrefix(num, "0.") {
			return refuse("needs a unit", "write a share in percent, such as 20% for 0.2")
		}
		return refuse("needs a unit", num+" needs a unit: "+num+q.example)
	}
	for _, u := range q.units {
		if u.name != name {
			continue
		}
		if n, err := strconv.ParseInt(num, 10, 64); err == nil && n <= q.limit/u.size {
			return n * u.size, nil // nearly always; what follows is as exact, and slower
		}
		v, exact := scale(num, u.size)
		switch {
		case !exact:
			base := q.units[0]
			return refuse("is finer than fabricctl can hold", "the smallest step is "+decimal(1, base.size)+base.name)
		case v > uint64(q.limit):
			return refuse("is too large for a "+q.noun, "")
		}
		return int64(v), nil
	}
	what, hint := wrongUnit(num, name, q)
	return refuse(what, hint)
}

// refuseNumber explains a text that does not start with a number.
func refuseNumber(s string, q quantity, refuse func(what, hint string) (int64, error)) (int64, error) {
	rest, negative := strings.CutPrefix(s, "-")
	switch num, _ := splitNumber(rest); {
	case negative && num != "":
		return refuse("is negative", "a "+q.noun+" is zero or more")
	case strings.HasPrefix(s, "+"):
		return refuse("has a sign", "write "+clip(s[1:]))
	case strings.HasPrefix(s, "."):
		return refuse("starts with a point", "write 0"+clip(s))
	case s == "":
		return refuse("is empty", "write a number with a unit, such as "+q.such)
	}
	return refuse("is not a "+q.noun, "write a number with a unit, such as "+q.such)
}

// wrongUnit explains a unit that the quantity does not have.
func wrongUnit(num, name string, q quantity) (what, hint string) {
	if strings.HasPrefix(name, ",") {
		return "has a comma", "write the decimal point: " + num + "." + clip(name[1:])
	}
	if strings.HasPrefix(name, "_") || strings.HasPrefix(name, "'") {
		return "has a digit separator", "write the number without separators"
	}
	if strings.HasPrefix(name, ".") {
		return "has a stray point", ""
	}
	if b, ok := strings.CutSuffix(strings.ReplaceAll(name, "B/s", "Bps"), "Bps"); ok && len(b) <= 1 {
		same := ""
		if v, exact := scale(num, 8); exact && v != most {
			same = ": " + strconv.FormatUint(v, 10) + b + "bps"
		}
		return "is in bytes per second", "rates are in bits per second" + same
	}
	if q.noun == "time" && name == "m" {
		return "uses m, which is metres", "write " + num + "min for minutes, " + num + "ms for milliseconds"
	}
	if q.noun == "size" && (name == "kb" || name == "Kb" || name == "kB" || name == "k" || name == "K") {
		return "uses " + name + ", which may mean bits or bytes, 1000 or 1024", "write " + num + "KB (1000 bytes) or " + num + "KiB (1024 bytes)"
	}
	for _, u := range q.units {
		if strings.EqualFold(u.name, name) || strings.EqualFold(strings.TrimSuffix(u.name, "bps"), name) ||
			strings.EqualFold(strings.TrimSuffix(u.name, "B"), name) && q.noun == "size" {
			return "uses " + clip(name) + ", which is not a unit of " + q.noun, "write " + num + u.name
		}
	}
	if bits := strings.TrimRight(strings.NewReplacer("/", "", "it", "").Replace(name), "eEbBs"); q.noun == "rate" && len(bits) == 1 && strings.Contains("KMGT", strings.ToUpper(bits)) {
		return "uses " + strconv.Quote(clip(name)) + ", which is not a unit of rate", "write " + num + strings.ToUpper(bits) + "bps"
	}
	if len(q.units) == 1 {
		return "uses " + strconv.Quote(clip(name)) + ", which is not a unit of " + q.noun, "write a " + q.noun + " such as " + q.such
	}
	names := make([]string, len(q.units))
	for i, u := range q.units {
		names[i] = u.name
	}
	return "uses " + strconv.Quote(clip(name)) + ", which is not a unit of " + q.noun, "use " + strings.Join(names, ", ")
}

// splitNumber cuts s after its leading decimal number: digits, and a point with more digits.
func splitNumber(s string) (num, rest string) {
	i := digits(s)
	if i == 0 {
		return "", s
	}
	if i < len(s) && s[i] == '.' {
		if n := digits(s[i+1:]); n > 0 {
			i += 1 + n
		}
	}
	return s[:i], s[i:]
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// most is what scale returns for whatever is not smaller.
const most = math.MaxUint64

// scale is num times size, at most most, and whether that is a whole number. Size is positive. A number with more than 19 decimals
// counts as none: that is more than any quantity has.
func scale(num string, size int64) (v uint64, exact bool) {
	whole, frac, _ := strings.Cut(num, ".")
	frac = strings.TrimRight(frac, "0")
	if len(frac) > 19 { // 10^19 is the last power of ten in 64 bits
		return 0, false
	}
	ten := uint64(1)
	for range frac {
		ten *= 10
	}
	part, _ := strconv.ParseUint("0"+frac, 10, 64)
	hi, lo := bits.Mul64(part, uint64(size))
	part, rest := bits.Div64(hi, lo, ten) // part was below ten, so it is below size now
	n, err := strconv.ParseUint(whole, 10, 64)
	hi, lo = bits.Mul64(n, uint64(size))
	if v, more := bits.Add64(lo, part, 0); err == nil && hi+more == 0 {
		return v, rest == 0
	}
	return most, rest == 0
}

// format writes v in unit u when v is at least one u and needs no more decimals than given.
func format(v int64, u unit, decimals int) (string, bool) {
	if v < u.size {
		return "", false
	}
	step := u.size
	for range decimals {
		step /= 10
	}
	if v%step != 0 {
		return "", false
	}
	return decimal(v/step, u.size/step) + u.name, true
}

// decimal is v divided by one, a power of ten, without trailing zeros.
func decimal(v, one int64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	s := strconv.FormatInt(v/one, 10)
	if rest := v % one; rest != 0 {
		frac := strconv.FormatInt(one+rest, 10)[1:]
		s += "." + strings.TrimRight(frac, "0")
	}
	return sign + s
}

// clip keeps texts in messages short.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// ParseRatio reads a positive fraction ("1/2") or whole number ("4"), and reduces it.
func ParseRatio(s string) (Ratio, error) {
	refuse := func(what, hint string) (Ratio, error) { return Ratio{}, &Error{Text: clip(s), What: what, Hint: hint} }
	a, b, fraction := strings.Cut(s, "/")
	if !fraction {
		b = "1"
	}
	if digits(a) != len(a) || digits(b) != len(b) || a == "" || b == "" {
		if num, rest := splitNumber(s); num == s && rest == "" && strings.Contains(s, ".") {
			whole, frac, _ := strings.Cut(s, ".")
			if n, err := strconv.ParseInt(whole+frac, 10, 32); err == nil && n > 0 && len(frac) < 10 {
				r, _ := ParseRatio(strconv.FormatInt(n, 10) + "/1" + strings.Repeat("0", len(frac)))
				return refuse("is a decimal number", "write the fraction: "+r.String())
			}
		}
		return refuse("is not a fraction", "write a/b or a whole number, such as 1/2 or 4")
	}
	num, err1 := strconv.ParseInt(a, 10, 32)
	den, err2 := strconv.ParseInt(b, 10, 32)
	switch {
	case err1 != nil || err2 != nil:
		return refuse("is too large for a fraction", "")
	case num == 0 || den == 0:
		return refuse("is not a positive fraction", "write a/b with both above zero")
	}
	for x, y := num, den; ; x, y = y, x%y {
		if y == 0 {
			return Ratio{Num: int32(num / x), Den: int32(den / x)}, nil
		}
	}
}
