package picture

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Sheet is what a drawing shows besides the topology. The zero Sheet is a plain picture.
type Sheet struct {
	Digest   string    // of the model, "" when there is none
	Findings diag.List // those that are neither acknowledged nor infos are drawn at their devices
	Cycle    []Hop     // drawn strongly, in this order, and everything else grey; nil in a picture without one
	Caption  string    // a line below the title, "" for none
	NoHosts  bool      // leave out what no cycle goes through of hosts and their links
}

// Hop is one directed link of a cycle: the one that leaves Device by Port. A hop that the Net does not have is listed, and
// not drawn.
type Hop struct {
	Device   string
	Port     string // the model's name, or the device's
	Priority int
	Class    string // name of the priority's class, "" if it has none
}

// mark is what findings say of one device: their numbers in the list.
type marks map[string][]int

// drawn reports whether a finding is drawn: one that somebody has to act on.
func drawn(f diag.Finding) bool { return f.Severity != diag.Info && f.Ack == "" }

// marksOf puts findings at the devices that they are about.
func marksOf(l diag.List) marks {
	m := marks{}
	for i, f := range l {
		if !drawn(f) {
			continue
		}
		for _, d := range about(f) {
			m[d] = append(m[d], i)
		}
	}
	return m
}

// about is the devices of a finding.
func about(f diag.Finding) []string {
	if len(f.Devices) > 0 || f.At == "" {
		return f.Devices
	}
	d, _, _ := strings.Cut(f.At, ":")
	return []string{d}
}

// tally is how often a rule found something.
type tally struct {
	rule     string
	severity diag.Severity // the worst
	findings []int
}

// tallies counts findings by rule, the worst rules first.
func tallies(l diag.List, at []int) []tally {
	index := map[string]int{}
	var ts []tally
	for _, i := range at {
		f := l[i]
		j, ok := index[f.Rule]
		if !ok {
			j = len(ts)
			index[f.Rule] = j
			ts = append(ts, tally{rule: f.Rule})
		}
		ts[j].severity = max(ts[j].severity, f.Severity)
		ts[j].findings = append(ts[j].findings, i)
	}
	slices.SortFunc(ts, func(a, b tally) int {
		return cmp.Or(int(b.severity)-int(a.severity), strings.Compare(a.rule, b.rule))
	})
	return ts
}

// span names one device or more in few words: "host1 – host8", or "host1 … host9" when not all between are meant.
func span(names []string) string {
	last := names[len(names)-1]
	if len(names) > 2 && contiguous(names) {
		return names[0] + " – " + last
	}
	if len(names) <= 4 {
		if all := strings.Join(names, ", "); columns(all) <= 28 || len(names) < 3 {
			return all
		}
	}
	return names[0] + " … " + last
}

// contiguous reports whether names count up by one.
func contiguous(names []string) bool {
	stem, first, ok := numbered(names[0])
	for i, name := range names {
		s, n, numbered := numbered(name)
		if !ok || !numbered || s != stem || n != first+i {
			return false
		}
	}
	return true
}

// numbered splits a name into its beginning and the number at its end.
func numbered(name string) (stem string, n int, ok bool) {
	stem = strings.TrimRight(name, "0123456789")
	digits := name[len(stem):]
	if digits == "" || len(digits) > 9 {
		return name, 0, false
	}
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return stem, n, true
}

// howMany counts devices of a role, and other things.
func howMany(n int, noun string) string {
	if noun == "storage" {
		noun = "storage host"
	}
	return diag.Count(n, noun)
}

// sortNames orders names as people do.
func sortNames(names []string) { slices.SortFunc(names, intent.CompareNames) }
