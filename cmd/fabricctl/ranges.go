package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// most is how many names or runs of names are written out.
const most = 12

// portList is ports in their natural order, runs as first-last, with their number when there are many. No ports are
// the device as a whole.
func portList(ports []string) string {
	if len(ports) == 0 {
		return "device"
	}
	return counted(ports, "port", "")
}

// nameList is portList for devices.
func nameList(names []string) string { return counted(names, "device", "") }

// counted is names, and in brackets their number when there are many, and what else is to stand there.
func counted(names []string, noun, what string) string {
	const few = 6
	var brackets []string
	if len(names) > few {
		brackets = append(brackets, count(len(names), noun))
	}
	if what != "" {
		brackets = append(brackets, what)
	}
	s := spans(names)
	if len(brackets) > 0 {
		s += " (" + strings.Join(brackets, ", ") + ")"
	}
	return s
}

// spans is names in their natural order, three or more that count up as first-last. Of very many the rest is counted.
func spans(names []string) string {
	var words []string
	rest := 0
	for i, r := range runsOf(names) {
		if i < most {
			words = append(words, r.String())
		} else {
			rest += r.n
		}
	}
	if rest > 0 {
		words = append(words, fmt.Sprintf("… and %d more", rest))
	}
	return strings.Join(words, ", ")
}

// span is n names that differ in one number, which grows by step.
type span struct {
	first, last string
	n, step     int
}

func (r span) String() string {
	switch {
	case r.n == 1:
		return r.first
	case r.step == 1:
		return r.first + "-" + r.last
	}
	return fmt.Sprintf("%s-%s by %d", r.first, r.last, r.step)
}

// runsOf puts names in their natural order and joins three or more that count up.
func runsOf(names []string) []span {
	names = slices.SortedFunc(slices.Values(names), intent.CompareNames)
	var runs []span
	for i := 0; i < len(names); {
		n, by := 1, step{}
		for i+n < len(names) {
			s, ok := stepOf(names[i+n-1], names[i+n])
			if !ok || n > 1 && s != by {
				break
			}
			by = s
			n++
		}
		if n < 3 {
			n, by = 1, step{}
		}
		runs = append(runs, span{names[i], names[i+n-1], n, by.by})
		i += n
	}
	return runs
}

// step is the place of a number in a name, counted in numbers, and how much it grows.
type step struct{ at, by int }

// stepOf says in which number b is above a, when nothing else differs. Numbers with a zero in front are text.
func stepOf(a, b string) (step, bool) {
	x, y := words(a), words(b)
	if len(x) != len(y) {
		return step{}, false
	}
	s := step{at: -1}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		m, err := strconv.Atoi(x[i])
		n, err2 := strconv.Atoi(y[i])
		if err != nil || err2 != nil || s.at >= 0 || n <= m || strconv.Itoa(m) != x[i] || strconv.Itoa(n) != y[i] {
			return step{}, false
		}
		s = step{i, n - m}
	}
	return s, s.at >= 0
}

// words cuts a name where digits begin or end.
func words(s string) []string {
	var out []string
	for len(s) > 0 {
		end := strings.IndexFunc(s, func(r rune) bool { return isDigit(r) != isDigit(rune(s[0])) })
		if end < 0 {
			end = len(s)
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }
