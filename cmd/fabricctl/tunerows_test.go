package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

var tunedPath = filepath.Join("testdata", "tune", "matrix.json")

func readTuned(tb testing.TB) (rows []*matrixRow) {
	tb.Helper()
	b, err := os.ReadFile(tunedPath)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		tb.Fatal(err)
	}
	return rows
}

// commitNow is the commit that is checked out.
func commitNow(tb testing.TB) string {
	tb.Helper()
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=7").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(commit))
}

// keepTuned puts a row in the place of the one before it.
func keepTuned(tb testing.TB, r *matrixRow) {
	tb.Helper()
	lock, err := os.OpenFile(tunedPath, os.O_RDWR|os.O_CREATE, 0o644) // several loads are tuned side by side
	if err != nil {
		tb.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		tb.Fatal(err)
	}
	order := func(a, b *matrixRow) int {
		return cmp.Or(cmp.Compare(a.Runner, b.Runner)*-1, cmp.Compare(a.Load, b.Load), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Seed, b.Seed))
	}
	rows := append(slices.DeleteFunc(readTuned(tb), func(o *matrixRow) bool { return order(o, r) == 0 }), r)
	slices.SortFunc(rows, order)
	b := []byte("[")
	for i, r := range rows { // a line for each
		line, err := json.Marshal(r)
		if err != nil {
			tb.Fatal(err)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, '\n'), line...)
	}
	if err := os.WriteFile(tunedPath, append(b, "\n]\n"...), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// matrixSum is what came of one load from one start, over seeds.
type matrixSum struct {
	seeds, met, hard, same int
	gained                 int     // seeds with a change that is surely worth it: from a good start, which then was none
	worst                  float64 // J
	goodput                float64 // the least
	runs                   int     // the most
	cpu                    float64 // the mean
	good, near             bool    // the start was good already, or nearly
	gain                   float64 // the least, in J against the start
}

func matrixSumOf(rs []*matrixRow) matrixSum {
	s := matrixSum{seeds: len(rs), worst: math.Inf(1), goodput: math.Inf(1), good: rs[0].Good, gain: math.Inf(1)}
	s.near = slices.ContainsFunc(badStarts(rs[0].Load), func(b badStart) bool { return b.near && b.name == rs[0].Start })
	for _, r := range rs {
		if r.met() {
			s.met++
		}
		if r.hard() {
			s.hard++
		}
		switch {
		case r.Same:
			s.same++
		case r.Gain >= 0.02:
			s.gained++
		}
		s.worst, s.goodput, s.runs = min(s.worst, r.J), min(s.goodput, r.Goodput), max(s.runs, r.Runs)
		s.gain = min(s.gain, r.Gain)
		s.cpu += r.CPU / float64(len(rs))
	}
	return s
}

// enough reports whether eight of ten are as good as is asked for, and none is bad: from a good start, that nothing is changed and nothing for
// the worse, unless it was not that good and 2 % J were found. From a start that is nearly good, seven of ten are enough: a gain of 1 %
// does not show on as many pairs as there are.
func (s *matrixSum) enough() bool {
	const most, little = -0.05, -0.01
	if s.good {
		return 10*(s.same+s.gained) >= 8*s.seeds && s.gain >= little
	}
	share := 8
	if s.near {
		share = 7
	}
	return 10*s.met >= share*s.seeds && s.worst >= most
}

// matrixPage is where the table of the matrix stands, between matrixMark and matrixEnd.
const (
	matrixPage = "../../docs/evidence/tuning.md"
	matrixMark = "<!-- The tables below are made of cmd/fabricctl/testdata/tune: go test -run TestTuneMatrixPage -update ./cmd/fabricctl -->"
	matrixEnd  = "<!-- end of tables -->"
)

// TestTuneMatrixPage: the tables of the page are what the kept rows come to; -update writes them anew.
func TestTuneMatrixPage(t *testing.T) {
	b, err := os.ReadFile(matrixPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(b), matrixMark)
	old, tail, ended := strings.Cut(rest, matrixEnd)
	if !found || !ended {
		t.Fatalf("%s does not say where the tables go", matrixPage)
	}
	var table strings.Builder
	matrixTables(t, &table)
	if *update {
		if err := os.WriteFile(matrixPage, []byte(head+matrixMark+"\n"+table.String()+matrixEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != "\n"+table.String() {
		t.Errorf("%s is not what the rows come to; go test -run TestTuneMatrixPage -update writes it anew", matrixPage)
	}
}

// matrixStart is what rows have in common that differ by their seed.
type matrixStart struct{ runner, load, from string }

// byStart groups rows, and lists the groups in their order.
func byStart(rows []*matrixRow) (groups map[matrixStart][]*matrixRow, order []matrixStart) {
	groups = map[matrixStart][]*matrixRow{}
	for _, r := range rows {
		k := matrixStart{r.Runner, r.Load, r.Start}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	return groups, order
}

// TestTuneMatrixRows: the rows that are kept are all there, as good as is asked for, and the same on emulated fabrics as on the simulator.
func TestTuneMatrixRows(t *testing.T) {
	groups, _ := byStart(readTuned(t))
	for k, rs := range groups {
		if s := matrixSumOf(rs); !s.enough() || s.seeds != 10 || s.runs > mostRuns {
			t.Errorf("%+v: %+v", k, s)
		}
		if k.runner == "sim" {
			continue
		}
		same := groups[matrixStart{"sim", k.load, k.from}]
		if len(same) != len(rs) {
			t.Errorf("%+v: %d rows, and %d of the simulator", k, len(rs), len(same))
			continue
		}
		for i, r := range rs {
			if o := same[i]; r.Seed != o.Seed || r.Runs != o.Runs || r.Verdict != o.Verdict || r.Setting != o.Setting || r.judgement != o.judgement {
				t.Errorf("%+v, and on the simulator %+v", *r, *o)
			}
		}
	}
	for _, load := range []string{"ap", "a", "b", "c"} {
		for _, b := range badStarts(load) {
			for _, runner := range []string{"sim", "lab"} {
				if groups[matrixStart{runner, load, b.name}] == nil {
					t.Errorf("there are no rows of %s from %s on %s", load, b.name, runner)
				}
			}
		}
	}
}

func matrixTables(t *testing.T, to *strings.Builder) {
	rows := readTuned(t)
	groups, keys := byStart(rows)
	commits := map[string]bool{}
	for _, r := range rows {
		commits[r.Commit] = true
	}
	fmt.Fprintf(to, "\nCommits %s.\n", strings.Join(slices.Sorted(maps.Keys(commits)), ", "))
	to.WriteString("\n| runner | load | from | seeds that meet it | worst J | least goodput | most runs | CPU-s | harder bar |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, k := range keys {
		if s := matrixSumOf(groups[k]); !s.good {
			fmt.Fprintf(to, "| %s | %s | %s | %d of %d | %+.1f%% | %.1f%% | %d | %.1f | %d of %d |\n", k.runner, k.load, k.from, s.met, s.seeds, 100*s.worst, 100*s.goodput, s.runs, s.cpu, s.hard, s.seeds)
		}
	}
	to.WriteString("\nFrom good settings:\n\n| runner | load | from | seeds that change nothing | least gain in J | most runs |\n|---|---|---|---|---|---|\n")
	for _, k := range keys {
		if s := matrixSumOf(groups[k]); s.good {
			fmt.Fprintf(to, "| %s | %s | %s | %d of %d | %+.1f%% | %d |\n", k.runner, k.load, k.from, s.same, s.seeds, 100*s.gain, s.runs)
		}
	}
	to.WriteString("\nEach seed:\n\n| runner | load | from | seed | runs | J against the best of the reference | goodput | p99.9 | met | setting |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		met := "yes"
		if !r.met() {
			met = "no"
		}
		fmt.Fprintf(to, "| %s | %s | %s | %d | %d | %+.1f%% (%+.1f to %+.1f) | %.1f%% | %.2f | %s | %s |\n", r.Runner, r.Load, r.Start, r.Seed, r.Runs, 100*r.J, 100*r.JLow, 100*r.JHigh, 100*r.Goodput, r.Tail, met, r.Setting)
	}
	to.WriteString("\nThe reference, its best by J on the seeds that choose, and how it did on those that judge:\n\n| load | commit | alpha | kmax | kmin/kmax | pmax | goodput | p99.9 |\n|---|---|---|---|---|---|---|---|\n")
	for _, name := range []string{"ap", "a", "b", "c"} {
		if _, err := os.Stat(referencePath(name)); err != nil {
			continue
		}
		ref := readReference(t, name)
		a := ref.best()
		r := judgedOf(a.Judge)
		fmt.Fprintf(to, "| %s | %s | %g | %s | %g | %g%% | %.1f Gbps | %.0f us |\n", name, ref.Commit, a.Alpha, units.Bytes(a.Kmax), a.Ratio, 100*a.Pmax, stats.Mean(r.good)/1e9, 1e6*math.Exp(stats.Mean(logsOf(r.tail))))
	}
}
