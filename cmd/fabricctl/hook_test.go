package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is a hook of these lines of sh.
func script(t *testing.T, lines string) *hook {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &hook{path: path, timeout: time.Hour, grace: 200 * time.Millisecond, env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestHookWords(t *testing.T) {
	for _, c := range []struct{ name, lines, says, err string }{
		{"words are words", `printf '%s|' "$@"`, "drain|leaf1|Ethernet0; rm -rf /|$(id)|", ""},
		{"silent", "exit 0", "", ""},
		{"fails", "echo no such node >&2; exit 7", "", "hook drain: exit status 7: no such node"},
		{"killed", "kill -9 $$", "", "hook drain: signal: killed"},
		{"hostile", `printf '\033[2J\007evil\r\n\377 two\n'`, "[2J evil ? two", ""},
		{"too much", "i=0; while test $i -lt 300; do echo line$i; i=$((i+1)); done", "", ""},
		{"nothing to read", "cat; echo end", "end", ""},
	} {
		said, err := script(t, c.lines).Drain(t.Context(), "leaf1", []string{"Ethernet0; rm -rf /", "$(id)"})
		switch {
		case c.name == "too much":
			if len(said) > mostWords || !strings.HasSuffix(said, "line299") || err != nil {
				t.Errorf("%s: %q, %v", c.name, said, err)
			}
		case c.err != "" && (err == nil || err.Error() != c.err), c.err == "" && err != nil, said != c.says:
			t.Errorf("%s: %q, %v", c.name, said, err)
		}
	}
}

// A hook that does not end is ended, with what it has started.
func TestHookEnds(t *testing.T) {
	dir := t.TempDir()
	h := script(t, "echo waiting; touch "+dir+"/begun; sleep 600 & wait; touch "+dir+"/survived")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(dir + "/begun"); err == nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := h.Drain(ctx, "leaf1", nil)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "hook drain: context canceled: waiting") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir + "/survived"); err == nil {
		t.Error("it went on")
	}
	h.timeout = 20 * time.Millisecond
	if _, err := h.Undrain(t.Context(), "leaf1", "applied"); err == nil || !strings.Contains(err.Error(), "hook undrain: it took longer than 20ms") {
		t.Errorf("%v", err)
	}
}

// What a hook leaves running in the background does not keep the run waiting.
func TestHookWithChild(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	said, err := script(t, "sleep 600 & echo $! > "+pid+"; echo done").Drain(t.Context(), "leaf1", nil)
	if err != nil || said != "done" {
		t.Errorf("%q, %v", said, err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
}
