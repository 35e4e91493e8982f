package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// TestRunGate: a program is judged by its exit code and its number, ends when its time is over with all that it has begun, and what it
// printed is kept.
func TestRunGate(t *testing.T) {
	dir := t.TempDir()
	least := 100.0
	for _, x := range []struct {
		name, read string
		argv       []string
		passed     bool
		why        string
	}{
		{"well", "", []string{"true"}, true, "exit code 0"},
		{"badly", "", []string{"sh", "-c", "echo no such host >&2; exit 3"}, false, `exit code 3: "no such host"`},
		{"a number", "regexp:busbw ([0-9.]+)", []string{"sh", "-c", "echo busbw 123.5"}, true, "is 123.5"},
		{"a small one", "regexp:busbw ([0-9.]+)", []string{"sh", "-c", "echo busbw 99"}, false, "is 99, below 100"},
		{"none", "regexp:busbw ([0-9.]+)", []string{"sh", "-c", "echo hello"}, false, "nothing in the output matches"},
		{"no program", "", []string{"/nowhere/at-all"}, false, "no such file"},
		{"for ever", "", []string{"sh", "-c", "sleep 1000 & sleep 1000"}, false, "did not end by itself"},
	} {
		g := &tuning.Gate{Argv: x.argv, Read: x.read}
		if x.read != "" {
			g.Least = &least
		}
		if x.name == "for ever" {
			g.Time = units.Duration(100 * time.Millisecond)
		}
		r, err := runGate(t.Context(), g, dir)
		if err != nil || r.Passed != x.passed || !strings.Contains(r.Why, x.why) {
			t.Errorf("%s: %+v, %v", x.name, r, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, r.Digest+".txt")); err != nil {
			t.Errorf("%s: what it printed is not kept: %v", x.name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runGate(ctx, &tuning.Gate{Argv: []string{"sleep", "1000"}}, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestReadGate: what makes no sense is said with the name of the file.
func TestReadGate(t *testing.T) {
	for text, want := range map[string]string{
		"run: [true]": "",
		"{run: [mpirun, x], read: nccl, least: 180}": "",
		"{run: [x], timeout: 30min}":                 "",
		"run: true":                                  "gate.yaml",
		"{run: [x], timeout: 30}":                    "needs a unit",
		"{run: [x], wants: nccl}":                    "field wants not found",
		"read: nccl":                                 "there is no program to run",
		"{run: [x], least: 5}":                       "a bound needs a number",
		"":                                           "gate.yaml",
	} {
		path := filepath.Join(t.TempDir(), "gate.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		switch g, err := readGate(path); {
		case want == "" && (err != nil || len(g.Argv) == 0):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWindow: how long a window is open, over midnight too.
func TestWindow(t *testing.T) {
	for _, x := range []struct {
		window, now string
		want        time.Duration
	}{
		{"22:00-04:00", "23:30", 4*time.Hour + 30*time.Minute},
		{"22:00-04:00", "03:59", time.Minute},
		{"22:00-04:00", "04:00", 0},
		{"22:00-04:00", "12:00", 0},
		{"22:00-04:00", "22:00", 6 * time.Hour},
		{"08:00-09:30", "09:00", 30 * time.Minute},
		{"08:00-09:30", "07:59", 0},
		{"08:00-09:30", "09:30", 0},
	} {
		var w window
		if err := w.Set(x.window); err != nil || w.String() != x.window {
			t.Fatal(err, w.String())
		}
		at, err := time.Parse("15:04", x.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.left(at); got != x.want {
			t.Errorf("%s at %s: %s, want %s", x.window, x.now, got, x.want)
		}
	}
	for _, bad := range []string{"", "22:00", "22-04", "25:00-04:00", "04:00-04:00", "22:00-04:60"} {
		if err := new(window).Set(bad); err == nil {
			t.Errorf("%q is a window", bad)
		}
	}
	x := &experiment{}
	x.flags.window = window{from: 22 * time.Hour, to: 4 * time.Hour, set: true}
	if err := x.within(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)); err == nil {
		t.Error("an experiment begins outside of its window")
	}
	if err := x.within(time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC)); err != nil || x.exp.Budget.Time != units.Duration(5*time.Hour-time.Minute) {
		t.Errorf("%s, %v", x.exp.Budget.Time, err)
	}
	ctx, stop := x.shuts(t.Context(), time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC))
	defer stop()
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > 29*time.Minute {
		t.Errorf("half an hour before the window shuts it may go on until %s", at)
	}
	late, stop := x.shuts(t.Context(), time.Date(2026, 1, 2, 4, 30, 0, 0, time.UTC))
	defer stop()
	if cause := context.Cause(late); !errors.Is(cause, errShut) {
		t.Errorf("behind the window it goes on: %v", cause)
	}
}
