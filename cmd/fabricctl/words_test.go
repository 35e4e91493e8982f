package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// TestLists: names in natural order, and no more of them than a reader takes in.
func TestLists(t *testing.T) {
	numbered := func(stem string, from, to int) []string {
		var names []string
		for i := from; i <= to; i++ {
			names = append(names, stem+strings.TrimLeft(string(rune('0'+i/10))+string(rune('0'+i%10)), "0"))
		}
		slices.Reverse(names)
		return names
	}
	for _, x := range []struct {
		name string
		got  string
		want string
	}{
		{"few ports", show.PortList([]string{"Ethernet16", "Ethernet8"}), "Ethernet8, Ethernet16"},
		{"many ports", show.PortList(numbered("Ethernet", 1, 12)), "Ethernet[1-12] (12 ports)"},
		{"every eighth", show.PortList([]string{"Ethernet0", "Ethernet24", "Ethernet32", "Ethernet40", "Ethernet16"}), "Ethernet[0,16-40 by 8]"},
		{"the number in the middle", show.PortList([]string{"Ethernet1/1", "Ethernet3/1", "Ethernet2/1", "Ethernet4/2"}), "Ethernet[1-3]/1, Ethernet4/2"},
		{"no port", show.PortList(nil), "device"},
		{"few devices", show.NameList([]string{"leaf10", "leaf2"}), "leaf2, leaf10"},
		{"a run of devices", show.NameList(numbered("host", 3, 40)), "host[3-40] (38 devices)"},
		{"a gap", show.NameList(append(numbered("host", 1, 8), "host10")), "host[1-8,10] (9 devices)"},
		{"two kinds", show.NameList(append(numbered("host", 1, 8), "leaf1")), "host[1-8], leaf1 (9 devices)"},
		{"zeros in front", show.NameList([]string{"l01", "l02", "l03"}), "l01, l02, l03"},
		{"no numbers", show.NameList([]string{"c", "a", "b"}), "a, b, c"},
		{"a platform", show.Counted([]string{"leaf1"}, "device", "eos/7060x6"), "leaf1 (eos/7060x6)"},
		{"numbers in several places", show.NameList([]string{"pod1-leaf1", "pod1-leaf2", "pod2-leaf1", "pod2-leaf2", "pod3-leaf1"}), "pod[1-2]-leaf[1-2], pod3-leaf1"},
		{"every other", show.NameList([]string{"tor-1", "tor-3", "tor-5", "tor-6"}), "tor-[1,3,5-6]"},
		{"no order", show.Spans([]string{"p1", "p3", "p7", "p12", "p20", "p31", "p44", "p60", "p79", "p99", "p121", "p150", "p182", "p220"}), "p1, p3, p7, p12, p20, p31, p44, p60, p79, p99, p121, p150, … and 2 more"},
		{"very many", show.Spans([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n1", "n2", "n3"}), "a, b, c, d, e, f, g, h, i, j, k, l, … and 4 more"},
	} {
		if d := cmp.Diff(x.want, x.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, d)
		}
	}
}

// TestPlanRefused: a plan that must not be carried out never reads as if all were well, and its exit code says so.
func TestPlanRefused(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	text, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "lab/inventory.yaml", strings.Replace(string(text), `serial: "LAB-LEAF1"`, `serial: "MT2214X00123"`, 1))
	for _, verb := range []string{"plan", "drift"} {
		r := b.must(t, exitRefused, verb)
		if strings.Contains(r.out, "hold what the model owns") || !regexp.MustCompile(`(?m)^refused: 1 device must not be written`).MatchString(r.out) {
			t.Errorf("%s", r)
		}
		if !strings.HasPrefix(r.err, "reading 3 devices\n") {
			t.Errorf("%s", r)
		}
	}
	// A device that cannot be read is worse, and comes last.
	_ = b.lab.Box("spine1").Close()
	r := b.must(t, exitError, "plan", "--detailed-exitcode")
	if !strings.HasSuffix(r.out, "\n1 device could not be read; fabricctl doctor spine1 says at what it fails\n") || !strings.Contains(r.out, "\nrefused: 1 device") {
		t.Errorf("%s", r)
	}
	if regexp.MustCompile(`(?m)^spine1 .*spine1`).MatchString(r.out) {
		t.Errorf("the error repeats the name: %s", r)
	}
}

// TestFailuresGroup: devices that fail in the same way stand in one line.
func TestFailuresGroup(t *testing.T) {
	b := newBench(t, strings.Replace(trio, "spines: {count: 1", "spines: {count: 3", 1))
	_ = b.lab.Close()
	r := b.must(t, exitError, "drift")
	want := `host1 (linux/generic): failed: ssh ADDRESS: connection refused
leaf1 (eos/7060x6): failed: ssh ADDRESS: connection refused
spine[1-3] (sonic/sn5600): failed: gnmi dial: connection refused
5 devices could not be read; fabricctl doctor host1 says at what it fails
`
	if d := cmp.Diff(want, regexp.MustCompile(`127.0.0.1:\d+`).ReplaceAllString(r.out, "ADDRESS")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFailuresDetailed: with details every device that failed has its own line, with its address.
func TestFailuresDetailed(t *testing.T) {
	b := newBench(t, strings.Replace(trio, "spines: {count: 1", "spines: {count: 3", 1))
	_ = b.lab.Close()
	r := b.must(t, exitError, "plan", "--details")
	if n := len(regexp.MustCompile(`(?m)^spine\d .*failed: gnmi dial 127\.0\.0\.1:\d+: connection refused$`).FindAllString(r.out, -1)); n != 3 {
		t.Errorf("%d of 3 spines have a line with an address: %s", n, r)
	}
	if r := b.must(t, exitError, "check"); !regexp.MustCompile(`not read: gnmi dial: connection refused`).MatchString(r.out) {
		t.Errorf("an address stands for three: %s", r)
	}
}

// TestObserved: what differs and is not ours is shown apart from what will be written, and counted.
func TestObserved(t *testing.T) {
	b := newBench(t, strings.Replace(trio, "manage: {switches: own, hosts: own}", "manage: {switches: {mtu: own}}", 1))
	r := b.must(t, exitOK, "plan", "--device", "spine1")
	for _, want := range []string{
		`(?m)^1. 1 port on 1 device, hitless\n   on spine1: Ethernet0\n     mtu +9100B → 9214B `,
		`(?m)^observed, never written:\n  1. 1 port on 1 device\n     on spine1: Ethernet0\n       trust +none → dscp`,
		`(?m)^plan: 1 setting `,
		`(?m)^observed: \d+ values differ on 1 device$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in %s", want, r)
		}
	}
	for line := range strings.Lines(r.out) {
		line = strings.ReplaceAll(line, b.dir+"/", "")
		if n := len([]rune(line)); n > 101 && strings.HasPrefix(line, "    ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestNeeds: the plan says what apply will ask for, in the words in which apply asks.
func TestNeeds(t *testing.T) {
	b := newBench(t, trio)
	plan := b.must(t, exitOK, "plan").out
	apply := b.must(t, exitRefused, "apply", "--yes").err
	what := regexp.MustCompile(`\d+ ports? on \d+ devices? flap, or worse`)
	if got, want := what.FindString(plan), what.FindString(apply); got != want || got == "" {
		t.Errorf("plan says %q, apply %q", got, want)
	}
	if strings.Contains(plan, "--accept-unverified") {
		t.Errorf("emulated devices need no leave:\n%s", plan)
	}
	text, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "lab/inventory.yaml", strings.ReplaceAll(string(text), "lab: true", "lab: false"))
	want := "\napply needs --accept-unverified: nobody has tried linux/generic, eos/7060x6, sonic/sn5600 on a real device\n"
	if r := b.call(t, "plan"); !strings.Contains(r.out, want) {
		t.Errorf("%s", r)
	}
}

// TestHints: what a run leaves is said as a command that can be pasted, and only when something is left.
func TestHints(t *testing.T) {
	b := newBench(t, trio)
	b.write(t, "with 'space'.yaml", "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: trio}\n")
	b.layers = append(b.layers, "-f", filepath.Join(b.dir, "with 'space'.yaml"))

	// Nothing is written: nothing to go on with.
	b.lab.Box("spine1").(*sonic.Switch).Fault(sonic.Faults{Set: sonic.Refuse, Sentence: "no"})
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{StallAt: regexp.MustCompile(`^configure session`), NoEnd: true})
	r := b.call(t, "apply", "--yes", "--allow-disruptive")
	if strings.Contains(r.out, "runs resume") || !regexp.MustCompile(`(?m)^run \S+: nothing was written$|^nothing was written$`).MatchString(r.out) {
		t.Errorf("%s", r)
	}

	// A part is in force.
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{})
	r = b.must(t, exitPartly, "apply", "--yes", "--allow-disruptive")
	m := regexp.MustCompile(`(?m)^to take it back: fabricctl (.*)$`).FindStringSubmatch(r.out)
	if m == nil || !strings.Contains(r.out, "\nto finish it:    fabricctl runs resume ") {
		t.Fatalf("%s", r)
	}
	b.lab.Box("spine1").(*sonic.Switch).Fault(sonic.Faults{})
	out, err := exec.Command("sh", "-c", `exec "$0" `+m[1], asProgram(t)).CombinedOutput()
	if err != nil || strings.Contains(string(out), "to take the rest back") {
		t.Errorf("%s\n%v\n%s", m[1], err, out)
	}

	// Nothing to do.
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	if r := b.must(t, exitOK, "apply"); !strings.HasSuffix(r.out, "nothing was written\n") || strings.Contains(r.out, "runs ") {
		t.Errorf("%s", r)
	}
}

// TestQuote lets a shell read the words again.
func TestQuote(t *testing.T) {
	words := []string{"a", "", "a b", "it's", `$HOME "x"`, "-f", "a\nb", "ü", "~", "*"}
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, quote(w))
	}
	out, err := exec.Command("sh", "-c", `for w in `+strings.Join(quoted, " ")+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(words, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestComesTo: what is said about each way in which a run can end.
func TestComesTo(t *testing.T) {
	applied := rollout.Result{Outcome: rollout.Applied, Steps: 1, Done: 1}
	back := rollout.Result{Outcome: rollout.RolledBack, Steps: 1, Cause: rollout.FailedCause}
	held := rollout.Result{Outcome: rollout.Unchanged, Steps: 1, Cause: rollout.NotStarted}
	same := rollout.Result{Outcome: rollout.Unchanged}
	unknown := rollout.Result{Outcome: rollout.Unknown, Steps: 1, Cause: rollout.FailedCause}
	for _, x := range []struct {
		name string
		kind rollout.Kind
		rs   []rollout.Result
		want string
	}{
		{"all done", rollout.KindApply, []rollout.Result{applied, same}, ""},
		{"none begun", rollout.KindApply, []rollout.Result{held, same}, ": nothing was written"},
		{"all back", rollout.KindApply, []rollout.Result{back, held}, ": all that was written was taken back"},
		{"a part", rollout.KindApply, []rollout.Result{applied, held}, "resume"},
		{"not known", rollout.KindApply, []rollout.Result{unknown, same}, "resume"},
		{"rolled back", rollout.KindRollback, []rollout.Result{{Outcome: rollout.RolledBack, Steps: 1}, same}, ": all that was written was taken back"},
		{"not wholly rolled back", rollout.KindRollback, []rollout.Result{{Outcome: rollout.RolledBack, Steps: 1}, unknown}, "take the rest back"},
	} {
		got := show.Outcome(&rollout.Run{ID: "1", Kind: x.kind, Results: x.rs}, true, (&app{}).again)
		if got != x.want && (len(x.want) == 0 || x.want[0] == ':' || !strings.Contains(got, x.want)) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestInterruptPlan: a signal ends a plan that waits for a device, with one sentence on a line of its own.
func TestInterruptPlan(t *testing.T) {
	b := newBench(t, trio)
	stalled := make(chan struct{}, 8)
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{
		StallAt: regexp.MustCompile(`^show`), OnLine: func(string) { stalled <- struct{}{} },
	})
	c := exec.Command(asProgram(t), b.args("plan")...)
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit %d", err, exitInterrupted)
	}
	if !regexp.MustCompile(`(?m)^interrupted: .*not read: .*leaf1`).MatchString(errs.String()) || strings.Count(errs.String(), "signal")+strings.Count(errs.String(), "interrupt") > 1 {
		t.Errorf("%s", &errs)
	}
}

// TestNobodyReads: the demo ends when its reader leaves, and takes its directory with it.
func TestNobodyReads(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(asProgram(t), "demo")
	c.Env = append(os.Environ(), "TMPDIR="+dir)
	r, w := io.Pipe()
	_ = w.Close()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr, c.Stdin = io.Discard, r
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	var ended *exec.ExitError
	if err := c.Wait(); err != nil && !(errors.As(err, &ended) && ended.Exited()) {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// TestRunThatNeedsHands says once which device it is, what is wrong there, and in which order to go on.
func TestRunThatNeedsHands(t *testing.T) {
	r := &rollout.Run{ID: "r1", Kind: rollout.KindRollback, Results: []rollout.Result{
		{Device: "leaf1", Outcome: rollout.RolledBack},
		{Device: "leaf3", Outcome: rollout.NeedsHands, Cause: rollout.Refused, Message: `leaf3: the device changed since the plan: mtu is "1500", was "9214"`},
	}}
	var b strings.Builder
	show.Run(&b, r, true, (&app{fabric: []string{"pod1"}}).again, "fabricctl hold list")
	want := `leaf1            rolled-back
leaf3            needs-hands (refused): the device changed since the plan: mtu is "1500", was "9214"
run r1
first:           log in to leaf3, and put right by hand what is said of it above
to take the rest back: fabricctl runs rollback r1 -f pod1
`
	if d := cmp.Diff(want, string((&show.Screen{}).Dyed([]byte(b.String())))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNothingInTheWay tells of an obstacle only where it is one.
func TestNothingInTheWay(t *testing.T) {
	d := rollout.DevicePlan{Name: "leaf3", Mode: rollout.Write, Findings: diag.List{{Rule: render.NeedsAdoption, Severity: diag.Error, Msg: "a profile carries more"}}}
	if l := show.Told(d, false); len(l) > 0 {
		t.Errorf("no change, and yet: %v", l)
	}
	if l := show.Told(d, true); len(l) != 1 {
		t.Errorf("with details: %v", l)
	}
	d.Blocked = true
	if l := show.Told(d, false); len(l) != 1 {
		t.Errorf("refused, and yet: %v", l)
	}
}
