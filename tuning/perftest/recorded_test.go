package perftest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
)

var update = flag.Bool("update", false, "write golden files")

// process is one side of a recording of real perftest 6.06 on two hosts with soft-RoCE.
type process struct {
	Role, Cmd, Stdout, Stderr string
	ExitCode                  int `json:"exit_code"`
	file                      []byte
}

// name is of the recording, and then of the process.
type name struct{ recording, role string }

func recordings(t testing.TB) map[name]process {
	t.Helper()
	paths, err := filepath.Glob("testdata/recorded/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[name]process{}
	for _, path := range paths {
		if strings.HasSuffix(path, ".r.json") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var rec struct {
			Name      string
			Processes []process
		}
		if err := json.Unmarshal(b, &rec); err != nil {
			t.Fatal(path, err)
		}
		for _, p := range rec.Processes {
			p.file, _ = os.ReadFile("testdata/recorded/" + rec.Name + "." + p.Role + ".r.json")
			all[name{rec.Name, p.Role}] = p
		}
	}
	return all
}

var tool = regexp.MustCompile(`\bib_(write|read|send)_(bw|lat)\b`)

// commanded is the test that a recorded command line asks for; what was left out is what it has turned out to be.
func commanded(cmd string, r *Report) Test {
	t := Test{Device: "rxe0", GID: max(r.GID, 0), RDMACM: strings.Contains(cmd, " -R"), Bidirectional: strings.Contains(cmd, " -b"), ToS: uint8(max(r.ToS, 0))}
	if m := tool.FindStringSubmatch(cmd); m != nil {
		t.Op = map[string]Op{"write": Write, "read": Read, "send": Send}[m[1]]
		t.Latency = m[2] == "lat"
	}
	t.Size = 65536
	if t.Latency {
		t.Size = 2
	}
	words := strings.Fields(cmd)
	for i, w := range words[:len(words)-1] {
		n, err := strconv.Atoi(words[i+1])
		if w == "-d" {
			t.Device = words[i+1]
		}
		if err != nil {
			continue
		}
		switch w {
		case "-s":
			t.Size = units.Bytes(n)
		case "-q":
			t.QPs = n
		case "-D":
			t.Duration = time.Duration(n-2*(n/4)) * time.Second // the margin is a quarter, in whole seconds
		case "-n":
			t.Iterations = n
		case "-m":
			t.MTU = units.Bytes(n)
		case "-x":
			t.GID = n
		}
	}
	return t
}

// soft are limits for soft-RoCE in an emulated CPU.
var soft = Limits{Messages: 40, Time: time.Second}

func (p process) parse(t *testing.T) Report {
	t.Helper()
	r, err := Parse([]byte(p.Stdout), []byte(p.Stderr), p.file, p.ExitCode)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe is a report in words, for the golden.
func describe(r *Report) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	line("rc %d, title %q, %s latency=%t bidirectional=%t server=%t", r.RC, r.Title, r.Op, r.Latency, r.Bidirectional, r.Server)
	line("%+v", r.Head)
	for _, q := range r.Local {
		line("local %#x %#x %s", q.Number, q.PSN, q.GID)
	}
	for _, q := range r.Remote {
		line("remote %#x %#x %s", q.Number, q.PSN, q.GID)
	}
	for i := range r.Rows {
		line("row %s", words(&r.Rows[i]))
	}
	if r.File != nil {
		line("file %s", words(r.File))
	}
	if len(r.Samples) > 0 {
		line("%d samples from %s to %s", len(r.Samples), r.Samples[0], r.Samples[len(r.Samples)-1])
	}
	for _, c := range r.Counts {
		line("counted %s %d", c.Name, c.Delta)
	}
	if r.Bare.Set {
		line("bare %g", r.Bare.V)
	}
	for _, n := range r.Notes {
		line("note %s: %q", n.Code, n.Line)
	}
	return b.String()
}

func words(w *Row) string {
	s := fmt.Sprintf("%d bytes x %d", int64(w.Size), w.Iterations)
	if w.Cut {
		s += " cut"
	}
	val := func(name string, set bool, v, step any) {
		if set {
			s += fmt.Sprintf(", %s %v±%v", name, v, step)
		}
	}
	val("peak", w.Peak.Set, int64(w.Peak.V), int64(w.Peak.Step))
	val("average", w.Average.Set, int64(w.Average.V), int64(w.Average.Step))
	val("rate", w.Rate.Set, w.Rate.V, w.Rate.Step)
	g := w.Goodput()
	val("goodput", g.Set, int64(g.V), int64(g.Step))
	for _, x := range []struct {
		name string
		v    Value[time.Duration]
	}{{"min", w.Min}, {"max", w.Max}, {"typical", w.Typical}, {"mean", w.Mean}, {"stdev", w.Stdev}, {"p99", w.P99}, {"p99.9", w.P999}} {
		val(x.name, x.v.Set, x.v.V, x.v.Step)
	}
	val("turns", w.Turns.Set, w.Turns.V, w.Turns.Step)
	val("cpu", w.CPU.Set, w.CPU.V, w.CPU.Step)
	return s
}

// TestRecorded reads all recordings; the golden says what was read and how it is judged.
func TestRecorded(t *testing.T) {
	all := recordings(t)
	var b strings.Builder
	for _, n := range slices.SortedFunc(maps.Keys(all), func(a, b name) int { return strings.Compare(a.recording+"."+a.role, b.recording+"."+b.role) }) {
		p := all[n]
		if n.role == "tcpdump" {
			continue
		}
		r := p.parse(t)
		fmt.Fprintf(&b, "%s %s: %s\n%s", n.recording, n.role, p.Cmd, describe(&r))
		test := commanded(p.Cmd, &r)
		for _, f := range r.Judge(&test, soft) {
			verb := "tells"
			if f.Reject {
				verb = "rejects"
			}
			fmt.Fprintf(&b, "  %s %s: %s (%q)\n", verb, f.Code, f.Why, f.Line)
		}
	}
	golden(t, "testdata/recorded.golden", b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, d)
	}
}
