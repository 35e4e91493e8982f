package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/rollout"
)

// TestKill ends the real program with SIGKILL at every failpoint of an apply: before and after each fsync and each
// device write. From what it leaves behind, "runs resume" must end in exactly the wanted state and "runs rollback" in
// exactly the old one, and both must say so. The points met must be all there are.
func TestKill(t *testing.T) {
	program := asProgram(t)
	want := newUsedBench(t, trio)
	old := want.config(t)
	want.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	wanted := want.config(t)

	hit := map[string]int{}
	last := 0
	for n := 1; last == 0; n++ {
		for _, verb := range []string{"resume", "rollback"} {
			b := newUsedBench(t, trio)
			point, died := b.applyUntil(t, program, n)
			if !died {
				last = n
				break
			}
			hit[point]++
			final := wanted
			if verb == "rollback" {
				final = old
			}
			t.Run(strconv.Itoa(n)+" "+point+" "+verb, func(t *testing.T) { b.recover(t, verb, final, old) })
		}
	}
	t.Logf("%d points", last-1)
	for _, p := range rollout.Points() {
		back := strings.HasPrefix(p, "undo.") || strings.HasPrefix(p, "device.abort.") // on the way back only
		if hit[p] == 0 && !back {
			t.Errorf("no kill at %s", p)
		}
	}
}

// TestKillUndo does the same to a rollback.
func TestKillUndo(t *testing.T) {
	program := asProgram(t)
	hit := map[string]bool{}
	for n := 1; ; n++ {
		b := newUsedBench(t, trio)
		old := b.config(t)
		b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
		point, died := b.until(t, program, n, "runs", "rollback", b.run(t))
		if !died {
			t.Logf("%d points", n-1)
			break
		}
		hit[point] = true
		t.Run(strconv.Itoa(n)+" "+point, func(t *testing.T) {
			b.must(t, exitOK, "runs", "rollback", b.run(t))
			if d := cmp.Diff(old, b.config(t)); d != "" {
				t.Errorf("after a second rollback (-old +now):\n%s", d)
			}
		})
	}
	for _, p := range []string{"undo.commit.before", "undo.commit.after"} {
		if !hit[p] {
			t.Errorf("no kill at %s", p)
		}
	}
}

// recover finishes or takes back the run that died, or applies anew when it died before there was a run.
func (b *bench) recover(t *testing.T, verb, final, old string) {
	t.Helper()
	id := b.run(t)
	if id == "" {
		if d := cmp.Diff(old, b.config(t)); d != "" {
			t.Fatalf("there is no run, but the devices changed (-old +now):\n%s", d)
		}
		return
	}
	r := b.call(t, "runs", verb, id)
	if r.code == exitError && strings.Contains(r.err, "the run died before it was written down: no device was touched") {
		final = old // and there is nothing to finish or to take back
	} else if r.code != exitOK {
		t.Fatalf("runs %s: %s", verb, r)
	}
	if d := cmp.Diff(final, b.config(t)); d != "" {
		t.Fatalf("after %s (-want +got):\n%s\nit said:\n%s", verb, d, r)
	}
	if r.code != exitOK {
		return
	}
	if verb == "resume" {
		b.must(t, exitOK, "plan", "--detailed-exitcode")
	}
	b.must(t, exitOK, "runs", verb, id)
	if d := cmp.Diff(final, b.config(t)); d != "" {
		t.Errorf("after a second %s (-want +got):\n%s", verb, d)
	}
}

// run is the id of the only run, "" when there is none.
func (b *bench) run(t *testing.T) string {
	t.Helper()
	switch l := b.runs(t); len(l) {
	case 0:
		return ""
	case 1:
		return l[0].ID
	default:
		t.Fatalf("want one run, have %+v", l)
		return ""
	}
}

// runs are all the runs, oldest first.
func (b *bench) runs(t *testing.T) []rollout.Summary {
	t.Helper()
	var l runsJSON
	if err := json.Unmarshal([]byte(b.must(t, exitOK, "runs", "list", "-o", "json").out), &l); err != nil {
		t.Fatal(err)
	}
	var runs []rollout.Summary
	for _, r := range l.Runs {
		runs = append(runs, r.Summary)
	}
	return runs
}

var killedAt = regexp.MustCompile(`(?m)^killed at point \d+, (\S+)$`)

func (b *bench) applyUntil(t *testing.T, program string, n int) (point string, died bool) {
	t.Helper()
	return b.until(t, program, n, "apply", "--yes", "--allow-disruptive", "--parallel", "1")
}

// until runs the program and kills it at its n-th point.
func (b *bench) until(t *testing.T, program string, n int, verb ...string) (point string, died bool) {
	t.Helper()
	c := exec.Command(program, b.args(verb...)...)
	c.Env = append(os.Environ(), "FABRICCTL_TEST_KILL_AT="+strconv.Itoa(n))
	out, err := c.CombinedOutput()
	if err == nil {
		return "", false
	}
	m := killedAt.FindSubmatch(out)
	if m == nil {
		t.Fatalf("%v: %v\n%s", verb, err, out)
	}
	return string(m[1]), true
}

// asProgram is this test binary under a name with which it is fabricctl.
func asProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "fabricctl")
	if err := os.Symlink(self, p); err != nil {
		t.Fatal(err)
	}
	return p
}
