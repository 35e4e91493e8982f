package model

import (
	"slices"
	"strings"
)

// Closest is the word of list that was probably meant, or "": one slip in a short word, two in a longer one, a third of
// the letters in a long one. Ties go to the first.
func Closest(word string, list []string) string {
	slips := max(1, len(word)/3)
	if len(word) >= 5 {
		slips = max(2, slips)
	}
	best, bestDistance := "", 1+slips
	if len(word) > maxName {
		return ""
	}
	for _, w := range list {
		if d := distance(fold(word), fold(w)); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// fold makes spellings equal that people mix up.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between a and b (optimal string
// alignment).
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// didYouMean is a hint that names the closest word, or else the words there are.
func didYouMean(word string, list []string) string {
	if w := Closest(word, list); w != "" {
		return "did you mean " + w + "?"
	}
	return known(list)
}

// PlatformHint says which platform of names was probably meant: one of the same operating system where it has any.
func PlatformHint(name string, names []string) string {
	os, _, _ := strings.Cut(name, "/")
	same := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, os+"/") })
	for _, n := range same {
		if strings.HasPrefix(n, name) && name != os {
			return "did you mean " + n + "?"
		}
	}
	if len(same) == 0 {
		same = names
	}
	return didYouMean(name, same)
}

// known lists words for a hint, not too many.
func known(list []string) string {
	const most = 12
	if len(list) == 0 {
		return ""
	}
	l := slices.Clone(list)
	slices.Sort(l)
	if len(l) > most {
		return "known are " + strings.Join(l[:most], ", ") + ", …"
	}
	return "known are " + strings.Join(l, ", ")
}
