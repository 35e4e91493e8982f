package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestScreenJSON: a JSON document means the same after it.
func TestScreenJSON(t *testing.T) {
	want := "\x1b[2J \x7f \u009b \u202e \ufeff \U000E0041 \n ok"
	var b bytes.Buffer
	a := &app{sys: system{out: &show.Screen{To: &b}}}
	if err := a.printJSON(want); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want {
		t.Errorf("%q, want %q: %v", got, want, err)
	}
	harmless(t, b.String())
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// TestOutputFails: a reader that leaves is no error, a full disk is.
func TestOutputFails(t *testing.T) {
	for _, x := range []struct {
		err  error
		code int
	}{{syscall.EPIPE, exitOK}, {syscall.ENOSPC, exitError}} {
		sys := quiet()
		var errs bytes.Buffer
		sys.out, sys.err = broken{&os.PathError{Op: "write", Path: "stdout", Err: x.err}}, &errs
		if code := run(t.Context(), []string{"rules"}, sys); code != x.code {
			t.Errorf("%v: exit %d, want %d", x.err, code, x.code)
		}
		if said := strings.Contains(errs.String(), "output is not whole"); said != (x.code != exitOK) {
			t.Errorf("%v: %s", x.err, &errs)
		}
	}
	if !errors.Is(broken{syscall.EPIPE}.err, syscall.EPIPE) {
		t.Error("the test proves nothing")
	}
}

// harmless fails when s holds anything that steers a terminal.
func harmless(t *testing.T, s string) {
	t.Helper()
	for i, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			t.Errorf("%q in %q", r, s[max(0, i-40):min(len(s), i+40)])
			return
		}
	}
}

// TestHostileDevice: what a device says is shown, and does nothing to the terminal, whatever the verb and the format.
func TestHostileDevice(t *testing.T) {
	const evil = "nope \x1b]0;pwned\x07\x1b[2J \u202egnp.exe \u009b31m \x7f"
	b := newBench(t, trio)
	spine := b.lab.Box("spine1").(*sonic.Switch)
	spine.Edit(func(db sonic.DB) {
		db.Set("DEVICE_METADATA", "localhost", "hwsku", "SKU"+evil)
		db.Set("VERSIONS", "DATABASE", "VERSION", "version"+evil)
		db.Set("PORT", "Ethernet0", "mtu", evil)
		db.Set("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", "map"+evil)
	})
	spine.Fault(sonic.Faults{Set: sonic.Refuse, Sentence: evil})
	file := filepath.Join(b.dir, "plan.json")
	shown := 0
	for _, format := range [][]string{{"-o", "text"}, {"-o", "json", "--log-format", "json"}} {
		for _, verb := range [][]string{
			{"plan", "--details", "--log-level", "debug", "--out", file},
			{"drift"},
			{"apply", file, "--allow-disruptive"},
			{"runs", "list"},
		} {
			r := b.call(t, append(verb, format...)...)
			harmless(t, r.out)
			harmless(t, r.err)
			if strings.Contains(r.out+r.err, `\u202egnp.exe`) {
				shown++
			}
		}
	}
	if shown == 0 {
		t.Error("nothing of it was shown: the test proves nothing")
	}
	// A plan file can come from anywhere.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "plan.json", strings.ReplaceAll(string(text), `"spine1"`, `"spine1\u001b[2J\u202e"`))
	r := b.call(t, "apply", file, "--allow-disruptive")
	harmless(t, r.out+r.err)
}
