package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestInterruptLoad: reading a large model takes seconds and ends when somebody interrupts it, whatever the verb.
func TestInterruptLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, verb := range [][]string{
		{"validate"},
		{"render"},
		{"graph"},
		{"graph", "--out", filepath.Join(dir, "x.svg")},
		{"explain", "leaf1"},
		{"deadlock"},
		{"sim"},
		{"tune", "run"},
		{"plan"},
		{"drift"},
		{"apply", "--yes"},
		{"check"},
		{"doctor", "leaf1"},
		{"runs", "resume", "x"},
		{"lab", "up", "--out", filepath.Join(dir, "lab")},
	} {
		var out, errs bytes.Buffer
		sys := quiet()
		sys.out, sys.err = &out, &errs
		code := run(ctx, append(verb, "-f", "../../examples/small", "--state-dir", dir), sys)
		if code != exitInterrupted || out.Len() > 0 || !strings.HasPrefix(errs.String(), "interrupted: the model was still being read; nothing was done") {
			t.Errorf("%s: exit %d\n%s%s", verb, code, &out, &errs)
		}
	}
}

// TestWithin: what takes longer than its context is left behind.
func TestWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, end := make(chan bool), make(chan int)
	defer close(end)
	go func() { <-begun; cancel() }()
	if v, err := within(ctx, func() int { begun <- true; return <-end }); v != 0 || err != context.Canceled {
		t.Errorf("%d, %v", v, err)
	}
	if v, err := within(t.Context(), func() int { return 7 }); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}
