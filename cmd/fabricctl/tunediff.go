package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// around is how many lines a diff shows before and after a change.
const around = 3

// patchName is a file as a diff names it: from the top of its repository, where it is in one.
func patchName(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return filepath.ToSlash(file)
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if rel, err := filepath.Rel(dir, abs); err == nil {
				return filepath.ToSlash(rel)
			}
		}
		if dir == filepath.Dir(dir) {
			return strings.TrimLeft(filepath.ToSlash(filepath.Clean(file)), "/")
		}
	}
}

// unified is the difference of two texts as a unified diff; "" when there is none.
func unified(name string, before, after []byte) string {
	script := lineDiff(linesOf(before), linesOf(after))
	var b strings.Builder
	for from := 0; from < len(script); {
		first := slices.IndexFunc(script[from:], func(e lineEdit) bool { return e.op != ' ' })
		if first < 0 {
			break
		}
		first += from
		last := first // of a hunk: the next change is further than two contexts behind it
		for i := first; i < len(script) && i <= last+2*around; i++ {
			if script[i].op != ' ' {
				last = i
			}
		}
		lo, hi := max(first-around, from), min(last+around+1, len(script))
		if b.Len() == 0 {
			fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", name, name)
		}
		writeHunk(&b, script[lo:hi])
		from = hi
	}
	return b.String()
}

// writeHunk writes neighbouring lines with what became of them.
func writeHunk(b *strings.Builder, hunk []lineEdit) {
	old, now := 0, 0
	for _, e := range hunk {
		if e.op != '+' {
			old++
		}
		if e.op != '-' {
			now++
		}
	}
	// Of a side without lines, the line before is named.
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", hunk[0].old+min(old, 1), old, hunk[0].now+min(now, 1), now)
	for _, e := range hunk {
		b.WriteByte(e.op)
		b.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// linesOf are the lines of a text with their ends.
func linesOf(b []byte) []string {
	var lines []string
	for l := range bytes.Lines(b) {
		lines = append(lines, string(l))
	}
	return lines
}

// lineEdit is a line that stays, goes or comes, with how many lines are before it in both texts.
type lineEdit struct {
	op       byte // ' ', '-' or '+'
	line     string
	old, now int
}

// lineDiff is a shortest way from a to b (E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986). What goes
// stands before what comes.
func lineDiff(a, b []string) []lineEdit {
	var trace []map[int]int // for each number of edits, how far each diagonal reaches in a
	reach := map[int]int{1: 0}
	for d := 0; ; d++ {
		trace = append(trace, maps.Clone(reach))
		for k := -d; k <= d; k += 2 {
			x := reach[k-1] + 1
			if k == -d || k != d && reach[k-1] < reach[k+1] {
				x = reach[k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[k] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(trace, a, b)
			}
		}
	}
}

// walkBack is the way that a trace has found, from the beginning.
func walkBack(trace []map[int]int, a, b []string) []lineEdit {
	var out []lineEdit
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		reach := trace[d]
		k := x - y
		from := k - 1
		if k == -d || k != d && reach[k-1] < reach[k+1] {
			from = k + 1
		}
		fx := reach[from]
		fy := fx - from
		for x > max(fx, 0) && y > max(fy, 0) {
			x, y = x-1, y-1
			out = append(out, lineEdit{' ', a[x], x, y})
		}
		switch {
		case d == 0:
		case x > fx:
			x--
			out = append(out, lineEdit{'-', a[x], x, y})
		default:
			y--
			out = append(out, lineEdit{'+', b[y], x, y})
		}
	}
	slices.Reverse(out)
	return out
}
