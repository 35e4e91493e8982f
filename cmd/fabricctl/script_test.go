package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the golden files of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fabricctl": main, "speed": speedChild})
}

// TestScript plays one story per file of testdata/script, with the real program.
func TestScript(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			if err := os.CopyFS(filepath.Join(e.WorkDir, "examples"), os.DirFS(examples)); err != nil {
				return err
			}
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"waitfile": waitFile,
			"exits":    exits,
			"edit":     edit,
		},
	})
}

// waitFile waits until a file exists: a background program says with it that it is ready. The deadline is a safety net.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not appear within a minute", args[0])
		}
	}
}

// exits runs a program and wants this exit code: exits 4 fabricctl apply …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// edit changes text as somebody with an editor would: edit 'FILES' OLD NEW replaces every OLD; with words after NEW, only
// the first OLD that follows them, each found after the one before it.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: edit FILES OLD NEW [AFTER...]")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file is called %s", args[0])
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		ts.Check(err)
		at, n := 0, -1
		for _, word := range args[3:] {
			i := strings.Index(string(b[at:]), word)
			if i < 0 {
				ts.Fatalf("%s has no %q where it is looked for", file, word)
			}
			at, n = at+i, 1
		}
		head, tail := string(b[:at]), string(b[at:])
		if !strings.Contains(tail, args[1]) {
			ts.Fatalf("%s has no %q", file, args[1])
		}
		ts.Check(os.WriteFile(file, []byte(head+strings.Replace(tail, args[1], args[2], n)), 0o600))
	}
}
