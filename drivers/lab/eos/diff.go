package eos

import (
	"fmt"
	"strings"
)

// diff is a unified diff with three lines of context, empty when a and b are equal.
func diff(fromName, toName, from, to string) string {
	if from == to {
		return ""
	}
	a, b := strings.Split(strings.TrimSuffix(from, "\n"), "\n"), strings.Split(strings.TrimSuffix(to, "\n"), "\n")
	ops := edits(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", fromName, toName)
	for i := 0; i < len(ops); {
		if ops[i].op == ' ' {
			i++
			continue
		}
		first, last := max(0, i-3), i
		for j := i; j < len(ops) && j <= last+6; j++ {
			if ops[j].op != ' ' {
				last = j
			}
		}
		end := min(len(ops), last+4)
		var na, nb int
		for _, o := range ops[first:end] {
			if o.op != '+' {
				na++
			}
			if o.op != '-' {
				nb++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", ops[first].a+1, na, ops[first].b+1, nb)
		for _, o := range ops[first:end] {
			out.WriteString(string(o.op) + o.text + "\n")
		}
		i = end
	}
	return out.String()
}

type edit struct {
	op   byte // ' ', '-', '+'
	text string
	a, b int // where it stands in either
}

// edits is a shortest line edit script, by longest common subsequence after equal ends are set aside.
func edits(a, b []string) []edit {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	x, y := a[pre:len(a)-post], b[pre:len(b)-post]
	lcs := make([][]int, len(x)+1)
	for i := range lcs {
		lcs[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				lcs[i][j] = lcs[i+1][j+1] + 1
			} else {
				lcs[i][j] = max(lcs[i+1][j], lcs[i][j+1])
			}
		}
	}
	var out []edit
	i, j := 0, 0
	put := func(op byte, text string) {
		out = append(out, edit{op, text, i, j})
		if op != '+' {
			i++
		}
		if op != '-' {
			j++
		}
	}
	for i < len(a) || j < len(b) {
		p, q := i-pre, j-pre
		switch {
		case p < 0 || p >= len(x) && q >= len(y) || p < len(x) && q < len(y) && x[p] == y[q]:
			put(' ', a[i])
		case q >= len(y) || p < len(x) && lcs[p+1][q] >= lcs[p][q+1]:
			put('-', a[i])
		default:
			put('+', b[j])
		}
	}
	return out
}
