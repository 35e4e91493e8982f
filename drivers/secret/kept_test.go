package secret

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestKept: a program is run once for all who ask within a minute, again after it, and again after a failure.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	runs := func() int {
		b, err := os.ReadFile(filepath.Join(dir, "runs"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return len(b)
	}
	now := time.Unix(1_000_000, 0)
	k := Kept{Now: func() time.Time { return now }}
	program := filepath.Join(dir, "p")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf x >> "+dir+"/runs\ncat "+dir+"/word\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ask := func() (string, error) {
		s, err := k.Resolve(t.Context(), "exec:"+program, Options{})
		return s.Reveal(), err
	}
	if _, err := ask(); err == nil || runs() != 1 {
		t.Fatalf("there is no word, and %d runs: %v", runs(), err)
	}
	word := func(s string) {
		if err := os.WriteFile(filepath.Join(dir, "word"), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	word("one")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if s, err := ask(); s != "one" || err != nil {
				t.Errorf("%q, %v", s, err)
			}
		})
	}
	wg.Wait()
	word("two")
	now = now.Add(KeepFor - 1)
	if s, _ := ask(); s != "one" || runs() != 2 {
		t.Errorf("%q after %d runs", s, runs())
	}
	now = now.Add(1)
	if s, _ := ask(); s != "two" || runs() != 3 {
		t.Errorf("after a minute: %q after %d runs", s, runs())
	}
	now = now.Add(-time.Hour) // a clock that was set back says nothing
	if _, err := ask(); err != nil || runs() != 4 {
		t.Errorf("%d runs, %v", runs(), err)
	}
	if s, err := k.Resolve(t.Context(), "exec:"+program, Options{Untrusted: true}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("an untrusted model is told %q, %v", s.Reveal(), err)
	}
}

// TestKeptWaits: who waits for somebody else's answer can leave.
func TestKeptWaits(t *testing.T) {
	busy := &cell{turn: make(chan struct{}, 1)}
	busy.turn <- struct{}{}
	k := Kept{cells: map[question]*cell{{ref: "env:X"}: busy}}
	why := errors.New("enough")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(why)
	if _, err := k.Resolve(ctx, "env:X", Options{}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
