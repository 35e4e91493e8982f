package lint_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
)

// cycles is what bdg-acyclic says of n.
func cycles(n *intent.Net) (l diag.List) {
	for _, f := range lint.Check(n, nil) {
		if f.Rule == "bdg-acyclic" {
			l = append(l, f)
		}
	}
	return l
}

func TestCycles(t *testing.T) {
	text, err := os.ReadFile("../../examples/deadlock/bounce.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := example{model: string(text)}.check(t)
	want := `fabric.yaml:14:7: error: bdg-acyclic: leaf2 -> spine2, spine2 -> leaf3, leaf3 -> spine1 and spine1 -> leaf2 wait for each other in class training: PFC can deadlock
    fabric.yaml:15:7: this route is part of it
    hint: change or remove the route at fabric.yaml:14:7 or fabric.yaml:15:7; fabricctl deadlock shows what else would do`
	if len(got) != 1 || got[0].String() != want {
		t.Fatalf("got %q\nwant %q", texts(got), want)
	}
	for _, m := range regexp.MustCompile(`fabric.yaml:(\d+):7`).FindAllStringSubmatch(got[0].Hint, -1) { // each alternative
		lines := strings.Split(string(text), "\n")
		at, _ := strconv.Atoi(m[1])
		next := strings.Join(append(lines[:at-1:at-1], lines[at:]...), "\n")
		if l := (example{model: next}).check(t); len(l) > 0 {
			t.Errorf("without line %d: %q", at, texts(l))
		}
	}
	// What is planned, or where PFC is off, is not part of a circle.
	n := bounce()
	if got := cycles(n); len(got) != 1 || got[0].Severity != diag.Error || got[0].At == "" {
		t.Errorf("live: %q", texts(got))
	}
	edit(n, "leaf2", "", func(p *intent.Policy) { p.Queues[3].Lossless = false })
	if got := cycles(n); len(got) > 0 {
		t.Errorf("without PFC on leaf2: %q", texts(got))
	}
	n = bounce()
	n.Device("leaf3").State = intent.Maintenance
	n.Device("leaf2").State = intent.Maintenance
	if got := cycles(n); len(got) != 1 || got[0].Severity != diag.Info {
		t.Errorf("in maintenance: %q", texts(got))
	}
	n.Device("spine1").State = intent.Planned
	if got := cycles(n); len(got) > 0 {
		t.Errorf("a planned spine: %q", texts(got))
	}
}

// bounce is a live fabric with two paths that come down to a leaf and go up again.
func bounce() *intent.Net {
	n := clos(2, 4, 1)
	for _, path := range [][]string{{"host1", "leaf1", "spine1", "leaf2", "spine2", "leaf3", "host3"}, {"host4", "leaf4", "spine2", "leaf3", "spine1", "leaf2", "host2"}} {
		r := intent.Route{End: path[len(path)-1]}
		for _, d := range path[:len(path)-1] {
			r.Hops = append(r.Hops, intent.Hop{Device: d, Priority: 3})
		}
		n.Routes = append(n.Routes, r)
	}
	return n
}

// A loss is a warning, once for all that do the same, and goes away with routing that prevents valleys.
func TestCyclesAfterLosses(t *testing.T) {
	n := clos(2, 4, 1)
	n.Routing = intent.ShortestPath
	got := cycles(n)
	const want = "while switches learn of the loss of link leaf1:uplink-1 - spine1:downlink-1 (or any of 7 others), leaf2 -> spine1 and spine1 -> leaf2 wait for each other in class training: PFC can deadlock"
	if len(got) != 1 || got[0].Severity != diag.Warning || got[0].Msg != want || !strings.Contains(got[0].Hint, "routing: up-down") {
		t.Errorf("got %q, want %q", texts(got), want)
	}
	n.Routing = intent.UpDown
	if got := cycles(n); len(got) > 0 {
		t.Errorf("up and down: %q", texts(got))
	}
}
