package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/rollout"
)

// TestPendingTimer: a configuration that the device will take back is not "no changes", whoever's the timer is.
func TestPendingTimer(t *testing.T) {
	b := newBench(t, trio)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	broken := false
	leaf.SetFaults(eos.Faults{OnLine: func(l string) {
		if strings.Contains(l, "bandwidth") && !broken {
			broken = true
			b.call(t, "lock", "break", "trio", "--yes")
		}
	}})
	b.must(t, exitNeedsHands, "apply", "--yes", "--allow-disruptive", "--parallel", "1")
	leaf.SetFaults(eos.Faults{})
	id := b.run(t)
	for _, verb := range []string{"plan", "drift"} {
		if r := b.must(t, exitRefused, verb, "--device", "leaf1"); !regexp.MustCompile(`timer running, which will take the configuration back at .*runs resume ` + id).MatchString(r.out) {
			t.Errorf("%s: %s", verb, r)
		}
	}
	b.must(t, exitRefused, "apply", "--yes", "--device", "leaf1")
	b.must(t, exitOK, "runs", "resume", id)
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	if err := leaf.OpenSession("theirs", "bob", "interface Ethernet1/1\n mtu 9000\n"); err != nil {
		t.Fatal(err)
	}
	if err := leaf.StartTimer("theirs", "00:10:00"); err != nil {
		t.Fatal(err)
	}
	held := b.config(t)
	for _, verb := range [][]string{{"plan"}, {"apply", "--yes"}} {
		if r := b.must(t, exitRefused, verb...); !strings.Contains(r.out+r.err, "session theirs has a commit timer running") {
			t.Errorf("%s", r)
		}
	}
	if r := b.must(t, exitNeedsHands, "runs", "rollback", id); !strings.Contains(r.out, "session theirs") {
		t.Errorf("%s", r)
	}
	if d := cmp.Diff(leafOf(held), leafOf(b.config(t))); d != "" {
		t.Errorf("rolled back under a timer (-before +after):\n%s", d)
	}
}

// leafOf is the part of bench.config about leaf1.
func leafOf(config string) string {
	_, rest, _ := strings.Cut(config, "=== leaf1\n")
	text, _, _ := strings.Cut(rest, "\n=== ")
	return text
}

// TestForgedPlan: a plan file that asks for what the model does not is refused before anything is touched.
func TestForgedPlan(t *testing.T) {
	b := newBench(t, trio)
	path := filepath.Join(b.dir, "plan.json")
	b.must(t, exitOK, "plan", "--out", path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*rollout.Plan){
		"the model wants": func(p *rollout.Plan) {
			for i, s := range p.Device("spine1").Steps {
				for j, c := range s.Changes {
					if c.After != nil && *c.After == "800000" {
						v := "3100000"
						p.Device("spine1").Steps[i].Changes[j].After = &v
						u := len(s.Undo) - 1 - j
						p.Device("spine1").Steps[i].Undo[u].Before = &v
					}
				}
			}
		},
		`fabric "other"`:        func(p *rollout.Plan) { p.Fabric = "other" },
		"its mode is":           func(p *rollout.Plan) { d := p.Device("leaf1"); d.Mode, d.Steps = rollout.Watch, nil },
		`no device "\x1b[2Jzz"`: func(p *rollout.Plan) { d := p.Device("host1"); d.Name, d.Steps = "\x1b[2Jzz", nil },
	} {
		p, err := rollout.Decode(good)
		if err != nil {
			t.Fatal(err)
		}
		forge(p)
		if err := p.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if r := b.must(t, exitRefused, "apply", path, "--allow-disruptive"); !strings.Contains(r.err, name) || b.writes() != 0 {
			t.Errorf("%s: %d writes, %s", name, b.writes(), r)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	b.must(t, exitOK, "apply", path, "--allow-disruptive")
}

// TestResumeUnderAnotherModel: the journal does not outlive a change of mind.
func TestResumeUnderAnotherModel(t *testing.T) {
	b := newBench(t, trio)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	leaf.SetFaults(eos.Faults{CommitError: "% busy"})
	b.must(t, exitPartly, "apply", "--yes", "--allow-disruptive")
	leaf.SetFaults(eos.Faults{})
	b.write(t, "fabric.yaml", strings.Replace(trio, "kmin: 800KB", "kmin: 700KB", 1))
	n := b.writes()
	if r := b.must(t, exitRefused, "runs", "resume", b.run(t)); !strings.Contains(r.err, "another model") || b.writes() != n {
		t.Errorf("%s", r)
	}
	b.must(t, exitOK, "runs", "rollback", b.run(t))
}

// TestLeavingClassFromFile: what an earlier model left is taken away by a plan file, too.
func TestLeavingClassFromFile(t *testing.T) {
	more := strings.Replace(trio, "bandwidth: 60%", "bandwidth: 40%", 1)
	b := newBench(t, strings.Replace(more, "  - {name: cnp,", "  - {name: storage, dscp: [34], priority: 4, lossless: true, ecn: {kmin: 500KB, kmax: 1600KB, pmax: 10%}, bandwidth: 20%}\n  - {name: cnp,", 1))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.write(t, "fabric.yaml", trio)
	path := filepath.Join(b.dir, "plan.json")
	b.must(t, exitOK, "plan", "--out", path)
	b.must(t, exitOK, "apply", path, "--allow-disruptive")
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}
