package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
)

func encoded(t testing.TB, p *Plan) []byte {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPlanFile(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1")
	p := f.plan(t)
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := p.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	back, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(encoded(t, p)), string(encoded(t, back))); d != "" {
		t.Error(d)
	}
	if _, err := f.e.Apply(context.Background(), back, leave); err == nil || !strings.Contains(err.Error(), "intent") || f.writes() > 0 {
		t.Errorf("a file that no model was asked about is applied: %v", err)
	}
	if err := f.e.Check(back, f.net, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	r, err := f.e.Apply(context.Background(), back, leave)
	if ExitCode(r, err) != 0 {
		t.Errorf("a plan from a file: %+v, %v", r, err)
	}
	f.mustHold(t, "from a file", true, r)
	kept, err := load(f.e.StateDir, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.Device("s1").Intent, kept.head.Plan.Device("s1").Intent); d != "" {
		t.Errorf("the intent does not survive the journal: %s", d)
	}
	r, err = f.e.Apply(context.Background(), back, leave)
	if ExitCode(r, err) != 4 || !errors.Is(r.Results[0].Err, drivers.ErrMoved) {
		t.Errorf("the same plan again is stale: exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	if err := p.WriteFile("/sys/plan.json"); err == nil {
		t.Error("wrote where nothing can be written")
	}
}

// A plan file that is not understood whole is refused, in words that name no Go type.
func TestBadPlanFiles(t *testing.T) {
	good := string(encoded(t, newFabric(stateDir(t), "s1").plan(t)))
	for name, c := range map[string]struct{ text, says string }{
		"empty":          {"", "is not a plan file: it is empty"},
		"not json":       {"plan", "it is not JSON from byte 1 on"},
		"other schema":   {strings.Replace(good, "plan-file/v2", "plan-file/v3", 1), `schema is "fabricctl/plan-file/v3"`},
		"for reading":    {`{"schema": "fabricctl/plan/v1"}`, "plan --out writes a plan file"},
		"no schema":      {"{}", `schema is ""`},
		"unknown field":  {strings.Replace(good, `"tool"`, `"fool"`, 1), `unknown field "fool"`},
		"wrong type":     {strings.Replace(good, `"tool": "test"`, `"tool": 7`, 1), `a number cannot stand at "tool"`},
		"cut":            {good[:len(good)/2], "its end is missing"},
		"more after it":  {good + good, "there is more after the plan"},
		"no fabric":      {strings.Replace(good, `"fabric": "pod1"`, `"fabric": ""`, 1), "is not a name"},
		"hostile fabric": {strings.Replace(good, `"fabric": "pod1"`, `"fabric": "../x"`, 1), "is not a name"},
		"twice":          {strings.Replace(good, `"devices": [`, `"devices": [{"name":"s1","os":"","platform":"","mode":"skipped","facts":{},"caps":{"confirm":false,"atomic":false,"persists_on_commit":false,"counters":false},"verified":false,"ops":{"add":0,"set":0,"remove":0}},`, 1), "stands twice"},
		"other device":   {strings.Replace(good, `"device": "s1"`, `"device": "s2"`, 1), `step 1 is about "s2"`},
		"other undo":     {tamper(t, good, func(s *Step) { v := "666"; s.Undo[0].After = &v }), "does not undo"},
		"other change":   {tamper(t, good, func(s *Step) { v := "666"; s.Changes[0].Before = &v }), "does not undo"},
		"no changes":     {tamper(t, good, func(s *Step) { s.Changes = nil }), "is empty"},
		"broken chain":   {tamper(t, good, func(s *Step) { s.After = s.Before }), "does not start where"},
		"twice in steps": {tamper(t, good, func(s *Step) { s.Changes = append(s.Changes, s.Changes...); s.Undo = append(s.Undo, s.Undo...) }), "is changed twice"},
		"op":             {tamper(t, good, func(s *Step) { s.Changes[0].Op, s.Undo[len(s.Undo)-1].Op = "set", "set" }), "does not say what it changes"},
	} {
		path := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "rollout.") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := ReadFile("/nowhere/plan.json"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func tamper(t testing.TB, text string, f func(*Step)) string {
	p, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f(&p.Devices[0].Steps[0])
	return string(encoded(t, p))
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, newFabric(stateDir(f), "s1").plan(f)))
	f.Add([]byte(`{"schema":"fabricctl/plan-file/v2","fabric":"x","devices":[{"name":"a","steps":[{}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(encoded(t, p))
		if err != nil || !bytes.Equal(encoded(t, p), encoded(t, again)) {
			t.Fatalf("a plan that was read cannot be written and read: %v", err)
		}
	})
}

// No Go type name, and no secret place, in what is written for machines.
func TestJSONNames(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"run-1","fabric":"pod1","kind":"apply","owner":"` + r.Owner + `","fence":1,"started":"2026-08-01T12:00:00Z","ended":"2026-08-01T12:00:00Z","results":[{"device":"s1","outcome":"applied","steps":3,"done":3}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}
