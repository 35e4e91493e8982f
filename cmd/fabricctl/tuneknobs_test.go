package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// program writes a program of a test.
func program(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKnobs: a knob is set without a shell, read back, and believed only then. What goes wrong is said in a line.
func TestKnobs(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	set := program(t, dir, "set", `printf '%s packets\n' "$2" >"$1"`)
	read := program(t, dir, "read", `cat "$1"`)
	env := hookEnv(func(name string) string {
		if name == "PATH" {
			return os.Getenv("PATH")
		}
		return "secret-" + name
	}, "pod1")
	k := &commands{env: env, patience: time.Minute, grace: 50 * time.Millisecond}
	knob := func(set, read []string) *tuning.Variable {
		return &tuning.Variable{Name: "queue-limit", Low: 1, High: 100, External: &tuning.External{Set: set, Read: read}}
	}
	good := knob([]string{set, held, "{value}"}, []string{read, held})
	if err := k.Set(t.Context(), good, 42); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Get(t.Context(), good); v != 42 || err != nil {
		t.Errorf("it is %v, %v", v, err)
	}
	injected := filepath.Join(dir, "injected")
	odd := knob([]string{set, held + ";touch " + injected, "$(touch " + injected + ") {value}"}, []string{read, held})
	_ = k.Set(t.Context(), odd, 1)
	if _, err := os.Stat(injected); err == nil {
		t.Error("a shell has read the words of the command")
	}
	short := &commands{env: env, patience: 100 * time.Millisecond, grace: 50 * time.Millisecond}
	for _, x := range []struct {
		name string
		k    *commands
		v    *tuning.Variable
		want string
	}{
		{"holds another", k, knob([]string{"true", "{value}"}, good.External.Read), "queue-limit was set to 7, and 42 holds"},
		{"fails", k, knob([]string{program(t, dir, "fails", "printf 'no \\033[2Jsuch device\\n' >&2; exit 2"), "{value}"}, good.External.Read), "queue-limit: set to 7: " + dir + "/fails: exit status 2: no [2Jsuch device"},
		{"is not there", k, knob([]string{dir + "/none", "{value}"}, good.External.Read), "no such file or directory"},
		{"cannot be read", k, knob([]string{"true", "{value}"}, []string{"false"}), "was set to 7, and cannot be read back: queue-limit: read: false: exit status 1"},
		{"says nothing", k, knob([]string{"true", "{value}"}, []string{"true"}), "it printed nothing"},
		{"says much", k, knob([]string{"true", "{value}"}, []string{program(t, dir, "much", "head -c 1000000 /dev/zero | tr '\\0' x")}), "is no number"},
		{"hangs", short, knob([]string{program(t, dir, "hangs", "sleep 1000 & sleep 1000"), "{value}"}, good.External.Read), "it took longer than 100ms"},
		{"tells secrets", k, knob([]string{program(t, dir, "tells", "echo \"$FABRIC_PASSWORD\" >&2; exit 1"), "{value}"}, good.External.Read), "exit status 1"},
		{"may not write", &commands{env: env, readOnly: true}, good, "queue-limit is not set: --read-only"},
	} {
		err := x.k.Set(t.Context(), x.v, 7)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 800 || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Set(ctx, good, 7); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("interrupted: %v", err)
	}
	if v, err := k.Get(t.Context(), good); v != 42 || err != nil {
		t.Errorf("after all of that it is %v, %v", v, err)
	}
}

// TestExternalsResumed: an experiment that is gone on with has external variables as they were before it, and not as a trial left them.
func TestExternalsResumed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "knobs.yaml")
	text := "variables:\n" +
		"  - {name: a, low: 1, high: 9, set: [\"true\", \"{value}\"], read: [echo, \"7\"]}\n" +
		"  - {name: b, low: 1, high: 9, set: [\"true\", \"{value}\"], read: [echo, \"8\"]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{sys: quiet()}
	a.sys.env = os.Getenv
	specs, k, err := a.externals(t.Context(), file, "pod1", map[string]float64{"a": 3})
	if err != nil || k == nil || len(specs) != 2 || specs[0].Now != 3 || specs[1].Now != 8 {
		t.Errorf("%+v, %v", specs, err)
	}
}

// TestKnobsOfTheLiving: what an experiment that lives has moved is no baseline of another one, though its lease was broken. Once its process is gone, it is
// set back.
func TestKnobsOfTheLiving(t *testing.T) {
	a := &app{sys: quiet(), stateDir: t.TempDir()}
	a.sys.env = os.Getenv
	dir, err := a.tuneDir()
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lockTune(t.Context(), dir, "exp-1")
	if err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(t.TempDir(), "held")
	log, err := journal.Create(tunePath(dir, "exp-1"), journal.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	limit := tuning.Variable{Name: "queue-limit", Low: 1, High: 100, External: &tuning.External{
		Set: []string{program(t, dir, "set", `echo "$2" >"$1"`), held, "{value}"}, Read: []string{"cat", held},
	}}
	begin := tuning.Begin{
		Schema: tuning.RecordSchema, Context: tuning.Context{Fabric: "pod1"}, Vars: []tuning.Variable{limit},
		Base: tuning.Setting{42}, Start: tuning.Setting{42}, Externals: map[string]float64{"queue-limit": 42},
	}
	if err := log.Append("begin", begin); err != nil {
		t.Fatal(err)
	}
	if err := a.knobsBack(t.Context(), "pod1"); err != nil {
		t.Errorf("before it has moved any: %v", err)
	}
	if err := errors.Join(log.Append("apply", tuning.Trial{N: 1, Setting: tuning.Setting{7}}), log.Close()); err != nil {
		t.Fatal(err)
	}
	err = a.knobsBack(t.Context(), "pod1")
	if exitCode(t.Context(), err) != exitRefused || !strings.Contains(err.Error(), "tuning experiment exp-1 is at work on fabric pod1 and has moved queue-limit: ") {
		t.Errorf("it is at work: %v", err)
	}
	if err := a.knobsBack(t.Context(), "pod2"); err != nil {
		t.Errorf("of another fabric: %v", err)
	}
	unlock()
	if err := a.knobsBack(t.Context(), "pod1"); err != nil {
		t.Fatal(err)
	}
	if was, err := os.ReadFile(held); string(was) != "42\n" {
		t.Errorf("%q holds: %v", was, err)
	}
}
