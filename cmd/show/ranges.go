package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Most is how many names or runs of names are written out.
const Most = 12

// PortList is ports in their natural order, many of a kind as "Ethernet[0-248 by 8]", with their number when there are
// many. No ports are the device as a whole.
func PortList(ports []string) string {
	if len(ports) == 0 {
		return "device"
	}
	return Counted(ports, "port", "")
}

// NameList is portList for devices.
func NameList(names []string) string { return Counted(names, "device", "") }

// Counted is names, and in brackets their number when there are many, and what else is to stand there.
func Counted(names []string, noun, what string) string {
	const few = 6
	var brackets []string
	if len(names) > few {
		brackets = append(brackets, diag.Count(len(names), noun))
	}
	if what != "" {
		brackets = append(brackets, what)
	}
	s := Spans(names)
	if len(brackets) > 0 {
		s += " (" + strings.Join(brackets, ", ") + ")"
	}
	return s
}

// Spans is names in their natural order. Names that differ in numbers alone are family as cluster tools write them,
// "pod[1-2]-leaf[1-4]", which stands for every combination and for nothing else. Of very many the rest is counted.
func Spans(names []string) string {
	var words []string
	rest, room := 0, Most
	for _, f := range fold(names) {
		if cost := f.cost(); cost <= room {
			room -= cost
			words = append(words, f.words()...)
		} else {
			room = 0
			rest += f.size()
		}
	}
	switch {
	case rest > 0 && len(words) == 0:
		f := fold(names)[0] // one kind of name, with numbers in no order
		words, rest = f.cut(Most), rest-Most
		fallthrough
	case rest > 0:
		words = append(words, fmt.Sprintf("… and %d more", rest))
	}
	return strings.Join(words, ", ")
}

// family is a set of names that are alike but for numbers: text and sets of numbers in turn, text[0] nums[0] text[1] …
// text[n]. It stands for every combination.
type family struct {
	text []string
	nums [][]int // each sorted, without duplicates
}

// fold puts names in their natural order and joins those that differ in numbers alone, the last number first, so that
// no name is said that was not given.
func fold(names []string) []family {
	names = slices.Compact(slices.SortedFunc(slices.Values(names), intent.CompareNames))
	fs := make([]family, 0, len(names))
	dims := 0
	for _, n := range names {
		f := takeApart(n)
		fs = append(fs, f)
		dims = max(dims, len(f.nums))
	}
	for d := dims - 1; d >= 0; d-- {
		fs = foldAt(fs, d)
	}
	return fs
}

// foldAt joins what is the same but for number d.
func foldAt(fs []family, d int) []family {
	at := map[string]int{}
	var out []family
	for _, f := range fs {
		if d >= len(f.nums) {
			out = append(out, f)
			continue
		}
		key := f.without(d)
		i, ok := at[key]
		if !ok {
			at[key] = len(out)
			out = append(out, f)
			continue
		}
		out[i].nums[d] = append(out[i].nums[d], f.nums[d]...)
	}
	for _, f := range out {
		if d < len(f.nums) {
			slices.Sort(f.nums[d])
		}
	}
	return out
}

// without is what has to be the same for names to be joined at number d.
func (f family) without(d int) string {
	var b strings.Builder
	for i, t := range f.text {
		fmt.Fprintf(&b, "%q", t)
		if i < len(f.nums) && i != d {
			fmt.Fprint(&b, f.nums[i])
		}
	}
	return b.String()
}

// takeApart cuts a name at its numbers. Numbers with a zero in front, and very long ones, are text.
func takeApart(name string) family {
	f := family{text: []string{""}}
	for rest := name; rest != ""; {
		end := strings.IndexFunc(rest, func(r rune) bool { return IsDigit(r) != IsDigit(rune(rest[0])) })
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		rest = rest[end:]
		if n, err := strconv.Atoi(word); err == nil && strconv.Itoa(n) == word {
			f.nums = append(f.nums, []int{n})
			f.text = append(f.text, "")
			continue
		}
		f.text[len(f.text)-1] += word
	}
	return f
}

// IsDigit reports whether r is one of the ten digits of ASCII.
func IsDigit(r rune) bool { return '0' <= r && r <= '9' }

// size is how many names f stands for.
func (f family) size() int {
	n := 1
	for _, s := range f.nums {
		n *= len(s)
	}
	return n
}

// cost is how many runs of numbers have to be written out.
func (f family) cost() int {
	n := 1
	for _, s := range f.nums {
		n = max(n, len(runsOf(s)))
	}
	return n
}

// words is f: up to two names each for itself, more in one word.
func (f family) words() []string {
	if f.size() <= 2 {
		return f.cut(2)
	}
	var b strings.Builder
	for i, t := range f.text {
		b.WriteString(t)
		switch {
		case i >= len(f.nums):
		case len(f.nums[i]) == 1:
			b.WriteString(strconv.Itoa(f.nums[i][0]))
		default:
			b.WriteString("[" + strings.Join(runsOf(f.nums[i]), ",") + "]")
		}
	}
	return []string{b.String()}
}

// cut is the first names of f, at most n.
func (f family) cut(n int) []string {
	names := []string{""}
	for i, t := range f.text {
		var next []string
		for _, name := range names {
			if i >= len(f.nums) {
				next = append(next, name+t)
				continue
			}
			for _, x := range f.nums[i] {
				next = append(next, name+t+strconv.Itoa(x))
			}
		}
		names = next[:min(n, len(next))]
	}
	return names
}

// runsOf writes sorted numbers: two and more that count up by one as "1-4", three and more by another step as
// "0-248 by 8".
func runsOf(nums []int) []string {
	var out []string
	for i := 0; i < len(nums); {
		n := 1
		for i+n < len(nums) && nums[i+n]-nums[i+n-1] == nums[i+1]-nums[i] {
			n++
		}
		by := 0
		if n > 1 {
			by = nums[i+1] - nums[i]
		}
		if by != 1 && (n == 2 || n == 3 && by < 4) { // as short one by one
			n = 1
		}
		switch s := strconv.Itoa(nums[i]); {
		case n == 1:
			out = append(out, s)
		case by == 1:
			out = append(out, fmt.Sprintf("%s-%d", s, nums[i+n-1]))
		default:
			out = append(out, fmt.Sprintf("%s-%d by %d", s, nums[i+n-1], by))
		}
		i += n
	}
	return out
}
