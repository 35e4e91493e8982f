package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
)

// completion is what a shell is offered after words, the last of which is being written.
func completion(t *testing.T, words ...string) (offered []string, files bool) {
	t.Helper()
	var out strings.Builder
	sys := system{in: strings.NewReader(""), out: &out, err: new(strings.Builder), env: func(string) string { return "" }}
	if code := run(context.Background(), append([]string{"__complete"}, words...), sys); code != exitOK {
		t.Fatalf("%q: exit %d", words, code)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, l := range lines[:len(lines)-1] {
		if l, _, _ = strings.Cut(l, "\t"); strings.HasPrefix(l, words[len(words)-1]) { // as a shell does
			offered = append(offered, l)
		}
	}
	return offered, lines[len(lines)-1] == ":0"
}

// TestComplete: a shell is offered the devices of the model, the runs and locks of the state directory, and the words of
// the flags.
func TestComplete(t *testing.T) {
	state := t.TempDir()
	for _, name := range []string{"run-1.jsonl", "run-2.jsonl"} { // runs that cannot be read are runs too
		if err := errors.Join(os.MkdirAll(filepath.Join(state, "runs"), 0o700), os.WriteFile(filepath.Join(state, "runs", name), []byte("{\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"exp-1.jsonl", "exp-2.jsonl", "exp-2.lock"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(state, "tune"), 0o700), os.WriteFile(filepath.Join(state, "tune", name), []byte("{\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := journal.Acquire(context.Background(), rollout.LeasesDir(state), "pod1", journal.Self("run-2"), time.Hour, journal.Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	model := []string{"-f", "../../examples/small"}
	for _, x := range []struct {
		words []string
		want  string
	}{
		{[]string{"hold", "--state-dir", state, "lea"}, "leaf1 leaf2 leaf3 leaf4"},
		{[]string{"hold", "leaf1:uplink-"}, "leaf1:uplink-1 leaf1:uplink-2"},
		{[]string{"explain", "spi"}, "spine1 spine2"},
		{[]string{"explain", "leaf1:uplink-"}, "leaf1:uplink-1 leaf1:uplink-2"},
		{[]string{"explain", "leaf1", ""}, ""},
		{[]string{"explain", "nobody:"}, ""},
		{[]string{"plan", "--device", "spi"}, "spine1 spine2"},
		{[]string{"render", "--device", "spi"}, "spine1 spine2"},
		{[]string{"doctor", "spi"}, "spine1 spine2"},
		{[]string{"plan", "l"}, ""},
		{[]string{"plan", "-o", ""}, "text json markdown"},
		{[]string{"validate", "-o", "j"}, "json junit"},
		{[]string{"graph", "--output", ""}, "text json dot"},
		{[]string{"check", "-o", ""}, "text json"},
		{[]string{"plan", "--color", ""}, "auto always never"},
		{[]string{"plan", "--log-level", "d"}, "debug"},
		{[]string{"runs", "rollback", "--state-dir", state, ""}, "run-2 run-1"},
		{[]string{"runs", "show", "--state-dir", state, ""}, "run-2 run-1"},
		{[]string{"lock", "break", "--state-dir", state, ""}, "pod1"},
		{[]string{"completion", "ba"}, "bash"},
		{[]string{"sim", "--workload", "inc"}, "incast:"},
		{[]string{"sim", "--class", ""}, "training cnp default"},
		{[]string{"sim", "--hosts", "host1,host3"}, "host1,host3 host1,host30 host1,host31 host1,host32"},
		{[]string{"sim", "--watch", "leaf1:uplink-"}, "leaf1:uplink-1 leaf1:uplink-2"},
		{[]string{"sim", "--fault", "st"}, "storm:"},
		{[]string{"sim", "--fault", "storm:host32"}, "storm:host32"},
		{[]string{"sim", "--seeds", ""}, ""},
		{[]string{"tune", "run", "--runner", ""}, "sim lab perftest"},
		{[]string{"tune", "run", "--method", ""}, "ofat nelder-mead grid"},
		{[]string{"tune", "run", "--class", ""}, "training"},
		{[]string{"tune", "run", "--workload", "a"}, "ap a alltoall:"},
		{[]string{"tune", "run", "--workload", "victim+pro"}, "victim+probe"},
		{[]string{"tune", "run", "--variables", "kmax,pm"}, "kmax,pmax"},
		{[]string{"tune", "run", "--test-hosts", "host1,host32"}, "host1,host32"},
		{[]string{"tune", "show", "--state-dir", state, ""}, "last exp-2 exp-1"},
	} {
		got, files := completion(t, slices.Concat(x.words[:1], model, x.words[1:])...)
		if s := strings.Join(got, " "); s != x.want || files {
			t.Errorf("%q: %q, want %q (files: %v)", x.words, s, x.want, files)
		}
	}
	if _, files := completion(t, "apply", ""); !files {
		t.Error("apply takes a plan file, and the shell is told to offer none")
	}
}

// TestEveryCompletion: no command leaves the shell to guess what its arguments are.
func TestEveryCompletion(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			t.Errorf("%s: nothing says what its arguments are", c.CommandPath())
		}
		if _, ok := c.GetFlagCompletionFunc("device"); !ok && c.Flags().Lookup("device") != nil {
			t.Errorf("%s: nothing says what --device takes", c.CommandPath())
		}
		for _, k := range c.Commands() {
			visit(k)
		}
	}
	a := &app{}
	visit(a.root())
}
