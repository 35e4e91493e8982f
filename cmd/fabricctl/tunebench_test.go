package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
)

// tuner is an app that reaches the lab, with its model.
func (b *bench) tuner(t testing.TB) (*app, loaded, *bytes.Buffer) {
	t.Helper()
	sys := quiet()
	var said bytes.Buffer
	sys.err = &said
	a := &app{sys: sys, log: slog.New(slog.DiscardHandler), stateDir: filepath.Join(b.dir, "state"), parallel: 8}
	for i := 1; i < len(b.layers); i += 2 {
		a.fabric = append(a.fabric, b.layers[i])
	}
	m, err := a.mustLoad(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a, m, &said
}

func patchOf(path, value string) model.Patch { return model.Patch{{Path: path, Value: value}} }

func TestTuneBench(t *testing.T) {
	b := newUsedBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	old := b.config(t)
	a, m, _ := b.tuner(t)
	x, err := a.openBench(t.Context(), m, "exp-1", benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	const n = 5
	for i := range n {
		if err := x.Apply(t.Context(), patchOf("classes.training.ecn.kmax", []string{"2000KB", "2400KB"}[i%2])); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			t.Log(cmp.Diff(old, b.config(t)))
		}
	}
	t.Logf("%v per trial", time.Since(start)/n)
	if err := x.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(old, b.config(t)); d != "" {
		t.Errorf("(-baseline +after):\n%s", d)
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
