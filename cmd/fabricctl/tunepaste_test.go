package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// printed runs a command in this process, and returns the commands to be pasted that it has printed.
func (b *bench) printed(t *testing.T, args ...string) (r result, commands []string) {
	t.Helper()
	var out, errs bytes.Buffer
	sys := quiet()
	sys.out, sys.err = &show.Screen{To: &out}, &show.Screen{To: &errs}
	a := &app{sys: sys, args: b.args(args...), log: slog.New(slog.DiscardHandler)}
	root := a.root()
	root.SetArgs(a.args)
	root.SetOut(sys.out)
	root.SetErr(sys.err)
	err := root.ExecuteContext(t.Context())
	code := exitCode(t.Context(), err)
	a.printError(t.Context(), err, code)
	r = result{code, out.String(), errs.String()}
	for _, c := range a.pastes.all {
		if strings.Contains(r.out+r.err, c) && !slices.Contains(commands, c) {
			commands = append(commands, c)
		}
	}
	return r, commands
}

// paste types a command into a shell.
func paste(t *testing.T, program, command string) (code int, said string) {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	output, err := c.CombinedOutput()
	if err != nil && c.ProcessState.ExitCode() < 0 {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(output)
}

// TestPaste: what is printed as a command works when it is pasted: it finds the experiment, and its model.
func TestPaste(t *testing.T) {
	program := asProgram(t)
	b := newBench(t, benchText(t, "bench-ap"), "bench-ap/bench-box.yaml")
	b.write(t, "with 'space'.yaml", "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: bench-ap}\n")
	b.layers = append(b.layers, "-f", filepath.Join(b.dir, "with 'space'.yaml"))
	sim := func(more ...string) []string {
		return append([]string{"tune", "run", "--workload", "ap", "--variables", "kmax", "--duration", "500us", "--looks", "2,2,4", "--confirm", "4"}, more...)
	}
	for _, x := range []struct {
		name string
		args []string
		code int
		want []string // how commands begin that are printed
	}{
		{"not confirmed", sim("--max-runs", "70", "--seed", "2"), exitOK, []string{"tune show", "tune report", "tune run"}},
		{"confirmed", sim("--max-runs", "70", "--seed", "4"), exitOK, []string{"tune show", "tune report", "tune diff"}},
		{"shown", []string{"tune", "diff", "last"}, exitOK, []string{"tune diff"}}, // pasted, it is written
		{"ended", []string{"tune", "resume", "last"}, exitError, []string{"tune show"}},
		{"budget", sim("--max-runs", "20"), exitOK, []string{"tune show", "tune report", "tune resume"}},
		{"budget, again", []string{"tune", "resume", "last"}, exitError, []string{"tune show", "tune resume"}},
		{"no experiment", []string{"tune", "show", "nothere"}, exitError, []string{"tune list"}},
		{"no run", []string{"runs", "show", "nothere"}, exitError, []string{"runs list"}},
		{"no lease", []string{"lock", "break", "nothere"}, exitError, []string{"lock list"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, commands := b.printed(t, x.args...)
			if r.code != x.code {
				t.Fatalf("exit %d, want %d: %s", r.code, x.code, r)
			}
			for _, w := range x.want {
				if !slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(c, "fabricctl "+w) }) {
					t.Errorf("no fabricctl %s in %q: %s", w, commands, r)
				}
			}
			for _, c := range commands {
				switch {
				case strings.HasPrefix(c, "fabricctl tune run"):
					c += " --dry-run"
				case strings.Contains(c, "--out report.html"):
					c = "cd " + quote(b.dir) + " && " + c
				}
				if code, said := paste(t, program, c); code != exitOK {
					t.Errorf("%s: exit %d\n%s", c, code, said)
				}
			}
		})
	}
}

// TestTuneProfiles: a resume finds the hardware that the experiment was begun with.
func TestTuneProfiles(t *testing.T) {
	b := newBench(t, benchText(t, "bench-ap"), "bench-ap/bench-box.yaml")
	dir := filepath.Join(b.dir, "hw")
	text, err := os.ReadFile("../../examples/bench-ap/bench-box.yaml")
	if err := errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "box.yaml"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	b.layers = []string{"-f", filepath.Join(b.dir, "fabric.yaml"), "--profiles", dir}
	b.must(t, exitOK, "tune", "run", "--workload", "ap", "--variables", "kmax", "--duration", "100us", "--warmup", "50us", "--looks", "2,1,2", "--confirm", "4", "--max-runs", "12")
	b.layers = nil
	b.must(t, exitOK, "tune", "resume", "last", "--max-runs", "40")
}

// TestPasteDead: what plan prints of an experiment that died restores its baseline when it is pasted, either of it.
func TestPasteDead(t *testing.T) {
	program := asProgram(t)
	b := applied(t, tunedQuartet)
	old := b.config(t)
	for _, way := range []string{"fabricctl runs rollback", "fabricctl tune resume"} {
		for n := 55; b.config(t) == old; n += 3 {
			if _, died := b.until(t, program, n, tunes("tune", "run")...); !died {
				t.Fatal("no death leaves a trial in force")
			}
		}
		_, commands := b.printed(t, "plan")
		i := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, way) })
		if i < 0 {
			t.Fatalf("no %s in %q", way, commands)
		}
		if code, said := paste(t, program, commands[i]); code != exitOK {
			t.Errorf("%s: exit %d\n%s", commands[i], code, said)
		}
		b.same(t, old, way)
	}
}

// TestPasteWhole: on a terminal no line is broken within a command, and the longer of two that begin alike stays whole too.
func TestPasteWhole(t *testing.T) {
	a := &app{stateDir: "/var/lib/a b", fabric: []string{"pod1", "inv.yaml"}, profiles: []string{"hw"}}
	short, long := a.command("tune", "show", "x"), a.command("runs", "rollback", "x-1")
	want := "fabricctl runs rollback x-1 -f pod1 -f inv.yaml --profiles hw --state-dir '/var/lib/a b'"
	if long != want || short != "fabricctl tune show x --state-dir '/var/lib/a b'" {
		t.Errorf("%s\n%s", short, long)
	}
	if got := a.whole("then " + short + " or " + long); got != "then "+show.Whole(short)+" or "+show.Whole(long) {
		t.Errorf("%q", got)
	}
	if got := (&app{}).command("plan"); got != "fabricctl plan -f MODEL" {
		t.Error(got)
	}
}

// TestUnconfirmed: what looked best and was not confirmed is named, with the reason and the command that would confirm it, where one would.
func TestUnconfirmed(t *testing.T) {
	vars := []tuning.Variable{{Name: "kmax", Of: tuning.Size}}
	start, best := tuning.Setting{1e6}, tuning.Setting{2e6}
	with := func(v tuning.Verdict, est, half float64, spent bool) *tuneJSON {
		c := &tuning.Decision{
			N: 3, Step: "confirmation", From: start, To: start, Verdict: v, Runs: 40, Total: 100,
			J: &stats.Interval{Est: est, Low: est - half, High: est + half, N: 20, Conf: 0.99}, Arms: []tuning.Arm{{Setting: start}, {Setting: best}},
		}
		r := &tuneJSON{ID: "x", State: tuning.Done, Outcome: &tuning.Outcome{State: tuning.Done, Verdict: v, Best: start, Confirmed: c, Spent: spent}}
		r.Begin = tuning.Begin{Vars: vars, Start: start, Seed: 3, Looks: tuning.Looks{Confirm: 20}, Budget: tuning.Budget{Runs: 110}}
		r.Begin.Context.Command = []string{"tune", "run", "-f", "m d", "--confirm", "20", "--max-runs=110", "--seed", "3"}
		r.Budget = r.Begin.Budget
		return r
	}
	died := &tuneJSON{ID: "x", State: tuning.Dead, Decisions: []tuning.Decision{{Step: "race", To: best}}}
	died.Begin = tuning.Begin{Vars: vars, Start: start}
	cut := with(tuning.Undecided, 0, 0, true)
	cut.Outcome.Confirmed, cut.Decisions = nil, []tuning.Decision{{Step: "pfc ladder", To: start}, {Step: "race", To: best}}
	found := with(tuning.Better, 0.03, 0.01, false)
	found.Outcome.Best = best
	slow := with(tuning.HostBound, 0.03, 0.01, false)
	limit := with(tuning.NoDifference, 0.03, 0.01, false)
	limit.State = tuning.Tripped
	timed := func(r *tuneJSON) *tuneJSON {
		r.Budget.Time = units.Duration(10 * time.Minute)
		r.Begin.Context.Command = append(r.Begin.Context.Command, "--max-time", "10m", "--yes")
		return r
	}
	endless := timed(with(tuning.NoDifference, 0.01, 0.015, false))
	endless.Budget = tuning.Budget{}
	spoiled := with(tuning.NoDifference, 0.01, 0.015, false)
	spoiled.Runs, spoiled.Rejected = 100, 20
	least := with(tuning.Worse, -0.001, 0.02, false) // its median alone looks bad
	tied := with(tuning.NoDifference, 0.002, 0.002, false)
	tied.Begin.Objective.Tie = 0.005
	first := func(goodput, half, tail, by float64) *tuneJSON { // J says the opposite of what comes first
		r := with(tuning.NoDifference, -0.02*goodput/max(math.Abs(goodput), 1e-9), 0.1, false)
		r.Begin.Objective = tuning.Objective{Lexicographic: true, Tie: 0.01}
		r.Outcome.Confirmed.Goodput = &stats.Interval{Est: goodput, Low: goodput - half, High: goodput + half, N: 20, Conf: 0.99}
		if by > 0 {
			r.Outcome.Confirmed.Tail = &stats.Interval{Est: tail, Low: tail - by, High: tail + by, N: 20, Conf: 0.99}
		}
		return r
	}
	for _, x := range []struct {
		name, why, command string
		r                  *tuneJSON
	}{
		{"few pairs", "20 pairs of runs on fresh seeds are too few to be sure of +1.0 % J, which takes about 101", "fabricctl tune run -f 'm d' --confirm 101 --seed 4 --max-runs 289", with(tuning.NoDifference, 0.01, 0.015, false)},
		{"too many pairs", "20 pairs of runs on fresh seeds are too few to be sure of +0.1 % J, which takes about 10094, and 250 is the most: take it for no difference", "", with(tuning.NoDifference, 0.001, 0.015, false)},
		{"luck", "it does not look better any more on fresh seeds: the search was lucky", "", with(tuning.NoDifference, -0.01, 0.02, false)},
		{"worse", "it is worse on fresh seeds: the search was lucky", "", with(tuning.Worse, -0.03, 0.01, false)},
		{"limit on fresh seeds", "it breaks a limit on fresh seeds", "", with(tuning.Infeasible, 0.03, 0.01, false)},
		{"not measured", "too few runs on fresh seeds could be compared", "fabricctl tune run -f 'm d' --confirm 20 --seed 4 --max-runs 110", with(tuning.Undecided, 0, 1, false)},
		{"few pairs in a time", "20 pairs of runs on fresh seeds are too few to be sure of +1.0 % J, which takes about 101", "fabricctl tune run -f 'm d' --yes --confirm 101 --seed 4 --max-runs 289 --max-time 28m54s", timed(with(tuning.NoDifference, 0.01, 0.015, false))},
		{"few pairs, no limit any more", "20 pairs of runs on fresh seeds are too few to be sure of +1.0 % J, which takes about 101", "fabricctl tune run -f 'm d' --yes --confirm 101 --seed 4 --max-runs 0", endless},
		{"few pairs, many rejected", "20 pairs of runs on fresh seeds are too few to be sure of +1.0 % J, which takes about 101", "fabricctl tune run -f 'm d' --confirm 101 --seed 4 --max-runs 328", spoiled},
		{"worse by its median", "it is worse on fresh seeds: the search was lucky", "", least},
		{"tie", "on fresh seeds it makes +0.4 % J at most, and up to 0.5 % count as no difference", "", tied},
		{"goodput first", "20 pairs of runs on fresh seeds are too few to be sure of goodput +2.0 %, which takes about 101", "fabricctl tune run -f 'm d' --confirm 101 --seed 4 --max-runs 289", first(0.02, 0.03, 0, 0)},
		{"goodput is within the tie", "on fresh seeds it makes goodput +0.5 %, and up to 1 % count as no difference", "", first(0.005, 0.03, 0.1, 0.01)},
		{"latency among those within it", "20 pairs of runs on fresh seeds are too few to be sure of p99.9 -9.5 %, which takes about 101", "fabricctl tune run -f 'm d' --confirm 101 --seed 4 --max-runs 289", first(-0.005, 0.02, -0.1, 0.15)},
		{"goodput is less", "it does not look better any more on fresh seeds: the search was lucky", "", first(-0.02, 0.03, -0.1, 0.15)},
		{"time spent", "the budget was spent", "fabricctl tune resume x --max-runs 220 --max-time 20m0s", timed(with(tuning.NoDifference, 0.01, 0.015, true))},
		{"spent in the confirmation", "the budget was spent", "fabricctl tune resume x --max-runs 220", with(tuning.NoDifference, 0.01, 0.015, true)},
		{"spent before it", "the budget was spent", "fabricctl tune resume x --max-runs 220", cut},
		{"died", "the experiment has not come to its end", "fabricctl tune resume x", died},
		{"tripped", "a limit has ended the experiment", "", limit},
		{"confirmed", "", "", found},
		{"slow host", "", "", slow},
	} {
		u := (&app{}).unconfirmedOf(x.r, &tuning.History{Begin: x.r.Begin})
		switch {
		case x.why == "" && u != nil, x.why != "" && u == nil:
			t.Errorf("%s: %+v", x.name, u)
		case u != nil && (u.Why != x.why || u.Command != x.command || u.Change != "kmax 2MB instead of 1MB"):
			t.Errorf("%s: %+v, want %q, %q", x.name, u, x.why, x.command)
		}
	}
}

// TestTuneDisk: an experiment whose disk becomes full ends as one that was stopped, and is called so; a file that a user wanted is not the journal.
func TestTuneDisk(t *testing.T) {
	b := newBench(t, benchText(t, "bench-ap"), "bench-ap/bench-box.yaml")
	args := []string{"tune", "run", "--workload", "ap", "--variables", "kmax", "--duration", "100us", "--warmup", "50us", "--looks", "2,2,4", "--confirm", "4", "--max-runs", "30"}
	b.must(t, exitOK, args...)
	if r := b.must(t, exitError, "tune", "report", "last", "--out", "/dev/full"); !strings.Contains(r.err, "/dev/full was not written: its disk is full: ") || strings.Contains(r.err, "journal") {
		t.Errorf("%s", r)
	}
	state := filepath.Join(b.dir, "state")
	for _, blocks := range []int{1, 3} { // before its journal has begun, and in the middle
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Mkdir(state, 0o700), syscall.Mount("none", state, "tmpfs", 0, fmt.Sprintf("nr_blocks=%d,nr_inodes=64", blocks))); err != nil {
			witness.Missing(t, "mounting a small disk needs root: "+err.Error())
		}
		defer syscall.Unmount(state, 0)
		r := b.must(t, exitError, args...)
		if !strings.Contains(r.err, "the disk of the journal is full: ") || strings.Contains(r.out, "running") {
			t.Errorf("%d blocks: %s", blocks, r)
		}
		list := b.must(t, exitOK, "tune", "list").out
		if blocks == 1 && list != "" || blocks == 3 && (!strings.Contains(r.out, "stopped before its end") || !strings.Contains(r.err, "hint: make room; then fabricctl tune resume ") || !strings.Contains(list, "  dead  ")) {
			t.Errorf("%d blocks: %s\n%s", blocks, r, list)
		}
		if err := syscall.Unmount(state, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPasteHeld: what is said of holds names the state directory in which they are.
func TestPasteHeld(t *testing.T) {
	h := journal.Hold{Device: "leaf1", Owner: "op@elsewhere", Since: time.Now(), Until: time.Now().Add(time.Hour), Reason: "optics"}
	stock, tuned := newBench(t, trio), applied(t, trio)
	tuned.write(t, "fabric.yaml", strings.Replace(trio, "3200KB", "2MB", 1))
	for _, x := range []struct {
		b    *bench
		args []string
		code int
		want string
	}{
		{stock, []string{"hold", "leaf1", "--for", "1m", "--reason", "mine"}, exitRefused, "hold release leaf1 " + strings.Join(stock.layers, " ") + " "},
		{stock, []string{"doctor", "leaf1"}, exitOK, "hold list "},
		{stock, []string{"apply", "--yes", "--allow-disruptive"}, exitRefused, "hold list "}, // the fabric would not agree
		{tuned, []string{"apply", "--yes"}, exitPartly, "hold list "},
	} {
		state := filepath.Join(x.b.dir, "state")
		if _, err := journal.SetHold(t.Context(), rollout.HoldsDir(state), "trio", h, journal.Options{Now: time.Now}); err != nil {
			t.Fatal(err)
		}
		r, commands := x.b.printed(t, x.args...)
		if want := "fabricctl " + x.want + "--state-dir " + state; r.code != x.code || !slices.Contains(commands, want) {
			t.Errorf("%v: exit %d, no %q in %q: %s", x.args, r.code, want, commands, r)
		}
	}
}
