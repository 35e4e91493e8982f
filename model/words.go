package model

import (
	"slices"
	"strconv"
	"strings"
)

// Closest is the word of list that was probably meant, or "": one slip in a short word, two in a longer one, a third of
// the letters in a long one, and never all of them; or else the only one that begins alike. Ties go to the first.
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
		if d := distance(fold(word), fold(w)); d < bestDistance && d < len(word) {
			best, bestDistance = w, d
		}
	}
	if best == "" {
		return begun(fold(word), list)
	}
	return best
}

// begun is the only word of list that begins like word, by three letters at least and two thirds of the shorter one.
func begun(word string, list []string) (found string) {
	for _, w := range list {
		f := fold(w)
		n := 0
		for n < min(len(word), len(f)) && word[n] == f[n] {
			n++
		}
		if n < 3 || 3*n < 2*min(len(word), len(f)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = w
	}
	return found
}

// sure reports whether word is so much like w that w is named although it belongs elsewhere: one slip in five letters.
func sure(word, w string) bool { return distance(fold(word), fold(w)) <= max(1, len(word)/5) }

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

// PlatformHint says which platform of names was probably meant: one of the same operating system where it has any, or
// of the same model where no system is named.
func PlatformHint(name string, names []string) string {
	os, box, whole := strings.Cut(name, "/")
	var systems, same, models []string
	for _, n := range names {
		system, m, _ := strings.Cut(n, "/")
		if !slices.Contains(systems, system) {
			systems = append(systems, system)
		}
		if system == os {
			same = append(same, n)
		}
		if strings.EqualFold(m, box) || !whole && strings.EqualFold(m, name) {
			models = append(models, n)
		}
	}
	for _, n := range same {
		if strings.HasPrefix(n, name) && name != os {
			return "did you mean " + n + "?"
		}
	}
	slices.Sort(systems)
	w := Closest(name, names)
	switch {
	case len(same) > 0:
		if near := Closest(name, same); near != "" && sure(strings.TrimPrefix(name, os), strings.TrimPrefix(near, os)) {
			return "did you mean " + near + "?"
		}
		return known(same)
	case len(models) > 0:
		return "did you mean " + strings.Join(models, " or ") + "?"
	case w != "" && sure(name, w):
		return "did you mean " + w + "?"
	}
	return "a platform is SYSTEM/MODEL, such as sonic/sn5600, and the systems are " + strings.Join(systems, ", ") + "; fabricctl profiles lists all"
}

// nicHint says which NIC of names was probably meant, also by the short names that people give them (cx7, bf3).
func nicHint(name string, names []string) string {
	short := fold(name)
	for _, s := range [][2]string{{"mellanox", ""}, {"nvidia", ""}, {"broadcom", ""}, {"intel", ""}, {"mcx", "connectx"}, {"cx", "connectx"}, {"bf", "bluefield"}} {
		if rest, ok := strings.CutPrefix(short, s[0]); ok {
			short = s[1] + rest
		}
	}
	for _, n := range names {
		if fold(n) == short {
			return "did you mean " + n + "?"
		}
	}
	if w := Closest(name, names); w != "" {
		return "did you mean " + w + "?"
	}
	return "names are such as connectx-7 or bcm57508; fabricctl profiles lists them"
}

// runs are names in their order, those that differ in their last number alone in one: "leaf1 to leaf4".
func runs(names []string) []string {
	names = slices.Clone(names)
	slices.SortFunc(names, CompareNames)
	number := func(s string) (stem string, n int) {
		stem = strings.TrimRight(s, "0123456789")
		if n, err := strconv.Atoi(s[len(stem):]); err == nil && strconv.Itoa(n) == s[len(stem):] {
			return stem, n
		}
		return s, -1
	}
	var out []string
	for i := 0; i < len(names); {
		stem, first := number(names[i])
		j := i + 1
		for ; j < len(names); j++ {
			if s, n := number(names[j]); first < 0 || s != stem || n != first+j-i {
				break
			}
		}
		if j-i > 2 {
			out = append(out, names[i]+" to "+names[j-1])
		} else {
			out = append(out, names[i:j]...)
		}
		i = j
	}
	return out
}

// known lists words for a hint, not too many.
func known(list []string) string {
	const most = 14
	if len(list) == 0 {
		return ""
	}
	l := runs(list)
	if len(l) > most {
		return "known are " + strings.Join(l[:most], ", ") + ", …"
	}
	return "known are " + strings.Join(l, ", ")
}
