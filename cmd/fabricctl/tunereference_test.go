package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// The reference that tuning is held to: all settings of a grid, with a few seeds each, and the best of them by goodput, by latency
// and by both, with more. Of these the best is chosen on some seeds and judged on others.
const (
	gridSeeds, gridFirst     = 5, 1001
	chooseSeeds, chooseFirst = 20, 2001
	judgeSeeds, judgeFirst   = 20, 3001
	referenceBest            = 50 // by each of the three
)

// The grid. Kmax is at 100Gbps, and in proportion at other speeds.
var (
	gridAlpha = []float64{1. / 32, 1. / 16, 1. / 8, 1. / 4, 1. / 2, 1, 4}
	gridKmax  = []float64{50e3, 100e3, 200e3, 400e3, 800e3, 1600e3, 3200e3}
	gridRatio = []float64{0.1, 0.5, 0.9}
	gridPmax  = []float64{0.1, 1}
)

// reference is what a grid came to. Goodput is in Mbit/s and p99.9 in ns, as the simulator has them.
type reference struct {
	Workload string         `json:"workload"`
	Commit   string         `json:"commit"` // of the simulator that made it
	Arms     []referenceArm `json:"arms"`
}

type referenceArm struct {
	Alpha, Kmax, Ratio, Pmax float64
	Grid                     [2][]int64 // goodput and p99.9, by seed
	Choose, Judge            [2][]int64 `json:",omitempty"` // of the best alone
}

// chosenJ is J by the seeds on which the best is chosen.
func (a *referenceArm) chosenJ() float64 {
	if len(a.Choose[0]) == 0 {
		return math.Inf(-1)
	}
	return stats.Mean(judgedOf(a.Choose).j())
}

// best is the arm with the best J by these.
func (r *reference) best() referenceArm {
	return slices.MaxFunc(r.Arms, func(a, b referenceArm) int { return cmp.Compare(a.chosenJ(), b.chosenJ()) })
}

// rows are runs as the reference keeps them.
func (r *judged) rows() (out [2][]int64) {
	for i := range r.good {
		out[0], out[1] = append(out[0], int64(math.Round(r.good[i]/1e6))), append(out[1], int64(math.Round(r.tail[i]*1e9)))
	}
	return out
}

// judgedOf are runs that the reference has kept.
func judgedOf(rows [2][]int64) *judged {
	r := &judged{}
	for i := range rows[0] {
		r.good, r.tail = append(r.good, float64(rows[0][i])*1e6), append(r.tail, float64(rows[1][i])/1e9)
	}
	return r
}

// speed is how many times 100Gbps the links of a workload's fabric have.
func speedOf(name string) float64 {
	if name == "b" {
		return 4
	}
	return 1
}

func referencePath(name string) string {
	return filepath.Join("testdata", "tune", "reference-"+name+".json.gz")
}

func readReference(tb testing.TB, name string) *reference {
	tb.Helper()
	b, err := os.ReadFile(referencePath(name))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	if b, err = io.ReadAll(z); err != nil {
		tb.Fatal(err)
	}
	r := &reference{}
	if err := json.Unmarshal(b, r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestTuneReference: the reference is what this simulator comes to, as far as a few of its arms say. With FABRICCTL_TUNE_REFERENCE, the
// name of the commit, all of it is made anew, which takes half an hour.
func TestTuneReference(t *testing.T) {
	commit := os.Getenv("FABRICCTL_TUNE_REFERENCE")
	for _, name := range []string{"ap", "b", "c", "a"} {
		t.Run(name, func(t *testing.T) {
			l := loadOf(t, name)
			if commit != "" {
				writeReference(t, l, commit)
				return
			}
			if _, err := os.Stat(referencePath(name)); err != nil {
				t.Skipf("the reference has not been made: %v", err)
			}
			ref := readReference(t, name)
			if n := len(gridAlpha) * len(gridKmax) * len(gridRatio) * len(gridPmax); len(ref.Arms) != n {
				t.Fatalf("%d arms, want %d", len(ref.Arms), n)
			}
			const some = 60
			for i := 0; i < len(ref.Arms); i += some {
				a := &ref.Arms[i]
				got := l.run(t, l.setting(t, a.Alpha, a.Kmax, a.Ratio, a.Pmax), gridFirst, 1).rows()
				if got[0][0] != a.Grid[0][0] || got[1][0] != a.Grid[1][0] {
					t.Errorf("alpha %g kmax %g kmin/kmax %g pmax %g: %v, and the reference has %v; make it anew: FABRICCTL_TUNE_REFERENCE=$(git rev-parse --short HEAD) go test -run TestTuneReference -timeout 2h ./cmd/fabricctl",
						a.Alpha, a.Kmax, a.Ratio, a.Pmax, got, a.Grid)
				}
			}
		})
	}
}

// rivals are the arms that can be the best, or better than what is: by goodput and latency together, and by goodput alone. One that has
// 1 % more goodput and 10 % less latency than something within 2 % J of the best is among the first of these.
func (r *reference) rivals() map[int]bool {
	var at []int
	var runs []*judged
	for i := range r.Arms {
		if a := &r.Arms[i]; len(a.Choose[0]) > 0 {
			at, runs = append(at, i), append(runs, judgedOf(a.Choose))
		}
	}
	out := map[int]bool{}
	for _, i := range byMean(len(at), func(i int) float64 { return stats.Mean(runs[i].j()) })[:rivalsByJ] {
		out[at[i]] = true
	}
	for _, i := range byMean(len(at), func(i int) float64 { return stats.Mean(runs[i].good) })[:rivalsByGoodput] {
		out[at[i]] = true
	}
	return out
}

// How many are judged.
const rivalsByJ, rivalsByGoodput = 25, 10

func writeReference(t *testing.T, l *tuneLoad, commit string) {
	ref := &reference{Workload: l.workload.String(), Commit: commit}
	var runs []*judged
	for _, alpha := range gridAlpha {
		for _, kmax := range gridKmax {
			for _, ratio := range gridRatio {
				for _, pmax := range gridPmax {
					a := referenceArm{Alpha: alpha, Kmax: kmax * speedOf(l.name), Ratio: ratio, Pmax: pmax}
					r := l.run(t, l.setting(t, a.Alpha, a.Kmax, a.Ratio, a.Pmax), gridFirst, gridSeeds)
					a.Grid = r.rows()
					ref.Arms, runs = append(ref.Arms, a), append(runs, r)
				}
			}
		}
	}
	best := map[int]bool{}
	for _, by := range []func(int) float64{
		func(i int) float64 { return stats.Mean(runs[i].good) },
		func(i int) float64 { return -stats.Mean(logsOf(runs[i].tail)) },
		func(i int) float64 { return stats.Mean(runs[i].j()) },
	} {
		for _, i := range byMean(len(runs), by)[:referenceBest] {
			best[i] = true
		}
	}
	for i := range ref.Arms {
		if a := &ref.Arms[i]; best[i] {
			a.Choose = l.run(t, l.setting(t, a.Alpha, a.Kmax, a.Ratio, a.Pmax), chooseFirst, chooseSeeds).rows()
		}
	}
	for i := range ref.rivals() {
		a := &ref.Arms[i]
		a.Judge = l.run(t, l.setting(t, a.Alpha, a.Kmax, a.Ratio, a.Pmax), judgeFirst, judgeSeeds).rows()
	}
	b, err := json.Marshal(ref)
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(referencePath(l.name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(referencePath(l.name), z.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
