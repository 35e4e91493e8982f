//go:build vm

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// search is an experiment of the real program on the virtual hosts.
type search struct {
	v     *verbs
	bin   string
	args  []string
	trips map[int]func() // what happens to the run of a number, once it has begun
	load  [2]string      // of the machine that emulates them all, before and after
}

// tune runs the program until the experiment has ended, and returns what its journal tells.
func (s *search) tune(t *testing.T) (id string, h *tuning.History, lines []string) {
	t.Helper()
	s.bin = filepath.Join(s.v.work, "fabricctl")
	if out, err := exec.Command("go", "build", "-o", s.bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.CommandContext(t.Context(), s.bin, s.words("tune", append([]string{"run", "--runner", "perftest", "--slow-hosts", "--exchange", "0", "--yes"}, s.args...)...)...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	begin := time.Now()
	s.load[0] = machineLoad(t)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	seen := map[int]bool{}
	for done := false; !done; {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v\n%s", err, said.String())
			}
			done = true
		case <-time.After(100 * time.Millisecond):
		}
		id, lines = s.journal(t)
		for _, l := range lines {
			var r journal.Record
			var run tuning.Trial
			if json.Unmarshal([]byte(l), &r) == nil && r.Kind == "run" && json.Unmarshal(r.Data, &run) == nil && !seen[run.N] && !done {
				seen[run.N] = true
				if f := s.trips[run.N]; f != nil {
					f()
				}
			}
		}
	}
	s.load[1] = machineLoad(t)
	t.Logf("took %s, at a load of %s before and %s after\n%s", time.Since(begin).Round(time.Second), s.load[0], s.load[1], said.String())
	records, _, err := journal.ReadFile(filepath.Join(s.v.work, "state", "tune", id+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if h, err = tuning.Read(records); err != nil {
		t.Fatal(err)
	}
	if o := h.End; o == nil || o.State != tuning.Done || o.Verdict != tuning.Better || h.Touched {
		t.Errorf("it ended as %+v", o)
	}
	s.v.idle(t)
	if out, err := exec.Command(s.bin, "tune", "replay", id, "--state-dir", filepath.Join(s.v.work, "state")).CombinedOutput(); err != nil {
		t.Errorf("the journal alone leads elsewhere: %v\n%s", err, out)
	}
	return id, h, lines
}

// machineLoad is how many processes wanted a processor in the last minute.
func machineLoad(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// words are a command line with the model, the inventory and the state of the test.
func (s *search) words(verb string, more ...string) []string {
	w := append([]string{verb}, more...)
	for _, l := range s.v.layers {
		w = append(w, "-f", l)
	}
	return append(w, "--state-dir", filepath.Join(s.v.work, "state"))
}

// journal is the lines of the one experiment that there is, as far as they are written.
func (s *search) journal(t *testing.T) (id string, lines []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.v.work, "state", "tune", "*.jsonl"))
	if len(files) != 1 {
		return "", nil
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	return strings.TrimSuffix(filepath.Base(files[0]), ".jsonl"), strings.Split(strings.TrimSpace(string(whole)), "\n")
}

// The queue limit of a switch that fabricctl has no words for, as an external variable: wanted is the least that loses nothing. One sender
// has 16 messages of 16 KiB under way, 64 packets of 4170 bytes on the wire: 267 kB have to fit. Meanwhile a server is killed,
// another one stands still, and a cable is out.
func TestVerbsQueue(t *testing.T) {
	v := theVerbs(t)
	ssh := fmt.Sprintf("ssh, -i, %s, -o, UserKnownHostsFile=%s, -o, BatchMode=yes, -p, %q, root@127.0.0.1", filepath.Join(v.dir, "id"), filepath.Join(v.dir, "known_hosts"), v.ports["switch"])
	external := v.file(t, "queue.yaml", "variables:\n"+
		"  - name: queue-limit\n    doc: bytes that may wait in the switch for host2\n    low: 64KB\n    high: 1MB\n    ladder: [64KB, 128KB, 256KB, 512KB, 1MB]\n    fine: 1.1\n    least: true\n    timeout: 20s\n"+
		fmt.Sprintf("    set: [%s, %q]\n    read: [%s, %q]\n", ssh, setLimit+"{value}", ssh, readLimit))
	var provoked []<-chan error
	cable := v.dial(t, "switch")
	s := &search{
		v: v, args: []string{"--external", external, "--workload", "single,hosts=host1/host2,size=16KiB,depth=16,for=2s", "--looks", "2,1,4", "--confirm", "4"},
		trips: map[int]func(){
			2: func() { provoked = append(provoked, v.provoke(t, "host2", "kill -KILL $p")) },
			5: func() { provoked = append(provoked, v.provoke(t, "host2", "kill -STOP $p")) },
			9: func() {
				if err := <-v.provoke(t, "host1", "true"); err != nil {
					t.Error(err)
				}
				on(t, cable, "ip link set eth1 down; sleep 8; ip link set eth1 up")
			},
		},
	}
	id, h, lines := s.tune(t)
	for _, p := range provoked {
		if err := <-p; err != nil {
			t.Error(err)
		}
	}
	if h.End != nil {
		const fits = 64 * 4170
		if best := h.End.Best[0]; best < fits || best > 1.1*fits {
			t.Errorf("the least that loses nothing is not %v bytes, but %d, or up to a tenth more", best, fits)
		}
		if h.End.Rejected < 2 {
			t.Errorf("%d runs were rejected, and three were disturbed", h.End.Rejected)
		}
	}
	if left := on(t, cable, readLimit); left != "1000000" || h.Begin.Externals["queue-limit"] != 1e6 {
		t.Errorf("the switch has a limit of %s, and had one of %v", left, h.Begin.Externals)
	}
	s.evidence(t, "queue", id, h, lines)
}

// How many messages a sender may have under way, before a queue of 128 KiB and on a way of 28 ms back: five leave the link idle, and ten do not
// fit into the queue.
func TestVerbsDepth(t *testing.T) {
	v := theVerbs(t)
	v.bottleneck(t, 128<<10, 28*time.Millisecond)
	s := &search{v: v, args: []string{"--variables", "workload.depth", "--workload", "single,hosts=host1/host2,size=16KiB,depth=32,for=2s", "--looks", "3,1,5", "--confirm", "4"}}
	id, h, lines := s.tune(t)
	if h.End != nil && (h.End.Best[0] < 6 || h.End.Best[0] > 8) {
		t.Errorf("the best depth is not %v", h.End.Best)
	}
	s.evidence(t, "depth", id, h, lines)
}

// evidence writes what an experiment came to into the page, with -update.
func (s *search) evidence(t *testing.T, name, id string, h *tuning.History, lines []string) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	shown, err := exec.Command(s.bin, "tune", "show", id, "--state-dir", filepath.Join(s.v.work, "state")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "```\n$ fabricctl %s\n%s```\n\n", s.scrub(strings.Join(quoted(s.words("tune", append([]string{"run", "--runner", "perftest", "--slow-hosts", "--exchange", "0", "--yes"}, s.args...)...)), " "), id), s.scrub(string(shown), id))
	settings(&b, h)
	fmt.Fprintf(&b, "\nThe load of the machine, with %d processors for three emulated ones, was %s in the minute before and %s in the last minute.\n", runtime.NumCPU(), s.load[0], s.load[1])
	b.WriteString("\nOf its journal, without the sums of its lines:\n\n```\n")
	for _, l := range excerpt(lines) {
		b.WriteString(s.scrub(l, id) + "\n")
	}
	b.WriteString("```\n")
	const page = "../../docs/evidence/tuning-verbs.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": written by make vm-verbs UPDATE=-update -->\n", "<!-- end of "+name+" -->"
	i, j := strings.Index(string(text), begin), strings.Index(string(text), end)
	if i < 0 || j < i {
		t.Fatalf("%s has no place for %s", page, name)
	}
	out := string(text[:i]) + begin + "\n" + b.String() + "\n" + string(text[j:])
	if err := os.WriteFile(page, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

// settings is a row for each setting that was tried.
func settings(b *strings.Builder, h *tuning.History) {
	type row struct {
		at                       float64
		runs, rejected, sequence int
		least, most              float64
	}
	var rows []*row
	for _, trial := range h.Trials {
		m := h.Measures[trial.N]
		if m == nil {
			continue
		}
		i := slices.IndexFunc(rows, func(r *row) bool { return r.at == trial.Setting[0] })
		if i < 0 {
			i = len(rows)
			rows = append(rows, &row{at: trial.Setting[0]})
		}
		r := rows[i]
		if m.Measure == nil {
			r.rejected++
			continue
		}
		if g := m.Measure.Goodput / 1e6; r.runs == 0 {
			r.least, r.most = g, g
		} else {
			r.least, r.most = min(r.least, g), max(r.most, g)
		}
		r.runs++
		if q := m.Measure.Sequence; q != nil {
			r.sequence += int(*q)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return int(b.at - a.at) })
	fmt.Fprintf(b, "| %s | runs | rejected | Mbit/s, the least and the most | out of sequence or refused, packets |\n|---|---|---|---|---|\n", h.Begin.Vars[0].Name)
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %d | %d | %.2f to %.2f | %d |\n", h.Begin.Vars[0].Text(r.at), r.runs, r.rejected, r.least, r.most, r.sequence)
	}
}

// excerpt is what a reader wants of a journal: a run, what was rejected, the decisions, and how the baseline came back.
func excerpt(lines []string) (out []string) {
	sum := regexp.MustCompile(`,"sum":"[0-9a-f]*"`)
	kinds := map[string]int{"apply": 2, "run": 1, "measure": 1}
	for _, l := range lines {
		var r journal.Record
		if json.Unmarshal([]byte(l), &r) != nil {
			continue
		}
		switch {
		case r.Kind == "begin" || r.Kind == "said":
			continue
		case strings.Contains(l, `"rejected":{`), kinds[r.Kind] > 0, r.Kind != "apply" && r.Kind != "run" && r.Kind != "measure":
			kinds[r.Kind]--
			out = append(out, sum.ReplaceAllString(l, ""))
		}
	}
	return out
}

// scrub takes out of a text what is of this run and this machine alone.
func (s *search) scrub(text, id string) string {
	text = strings.NewReplacer(s.v.work+"/", "", s.v.dir+"/", "", "testdata/verbs/", "", id, "RUN").Replace(text)
	text = regexp.MustCompile(`\s+--state-dir\s+state\b`).ReplaceAllString(text, "")
	for name, port := range s.v.ports {
		text = strings.ReplaceAll(text, port, "PORT-OF-"+strings.ToUpper(name))
	}
	return text
}

// quoted are words as a shell has them.
func quoted(words []string) (out []string) {
	for _, w := range words {
		if strings.ContainsAny(w, " '\"") {
			w = "'" + w + "'"
		}
		out = append(out, w)
	}
	return out
}
