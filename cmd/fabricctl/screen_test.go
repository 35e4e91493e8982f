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

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestScreen: what is not plain text is shown, not done.
func TestScreen(t *testing.T) {
	for _, x := range []struct{ name, in, plain, colored string }{
		{"text", "leaf1\tok – π\n", "leaf1\tok – π\n", "leaf1\tok – π\n"},
		{"ours", paint(red, "error:") + " x", "error: x", "\x1b[31merror:\x1b[0m x"},
		{"escape", "\x1b[2J\x1b]0;pwned\x07", `\x1b[2J\x1b]0;pwned\x07`, `\x1b[2J\x1b]0;pwned\x07`},
		{"return, backspace, null", "a\rb\bc\x00", `a\x0db\x08c\x00`, `a\x0db\x08c\x00`},
		{"DEL and C1", "\x7f\u009b2J", `\u007f\u009b2J`, `\u007f\u009b2J`},
		{"directions", "\u202eevil\u2066\u200f\ufeff", `\u202eevil\u2066\u200f\ufeff`, `\u202eevil\u2066\u200f\ufeff`},
		{"separators and tags", "\u2028\U000E0041", `\u2028\udb40\udc41`, `\u2028\udb40\udc41`},
		{"not UTF-8", "\x9b\xffz\xff", `\x9b\xffz\xff`, `\x9b\xffz\xff`},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, on := range []bool{false, true} {
				var b bytes.Buffer
				s := &screen{to: &b, color: on}
				if n, err := s.Write([]byte(x.in)); n != len(x.in) || err != nil {
					t.Errorf("wrote %d: %v", n, err)
				}
				want := x.plain
				if on {
					want = x.colored
				}
				if d := cmp.Diff(want, b.String()); d != "" {
					t.Errorf("colour %v (-want +got):\n%s", on, d)
				}
			}
		})
	}
}

// TestScreenJSON: a JSON document means the same after it.
func TestScreenJSON(t *testing.T) {
	want := "\x1b[2J \x7f \u009b \u202e \ufeff \U000E0041 \n ok"
	var b bytes.Buffer
	a := &app{sys: system{out: &screen{to: &b}}}
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

// TestScreenWidth: on a terminal lines are broken at words, below where their text or their column began.
func TestScreenWidth(t *testing.T) {
	hung := func(head, text string) string {
		var b strings.Builder
		hang(&b, head, text)
		return b.String()
	}
	for _, x := range []struct {
		name  string
		width int
		in    string
		want  string
	}{
		{"short", 20, "leaf1: applied\n", "leaf1: applied\n"},
		{"no terminal", 0, strings.Repeat("word ", 40) + "\n", strings.Repeat("word ", 40) + "\n"},
		{"words", 20, "one two three four five six\nnext\n", "one two three four\n  five six\nnext\n"},
		{"its own indent", 24, "    hint: raise kmax to at least 4MB\n", "    hint: raise kmax to\n      at least 4MB\n"},
		{"a column", 30, "  kmin     from 400KB to 800KB on five\n", "  kmin     from 400KB to 800KB\n           on five\n"},
		{"a column beyond the middle", 30, "a  0123456789012  one two three\n", "a  0123456789012  one two\n                  three\n"},
		{"a column too far to the right", 24, "a word and another  column here\n", "a word and another\n  column here\n"},
		{"a long word", 10, "a pod1/fabric.yaml:12:3 b\n", "a\n  pod1/fabric.yaml:12:3\n  b\n"},
		{"colours have no width", 14, paint(red, "error:") + " one two three\n", "error: one two\n  three\n"},
		{"hung", 20, hung("leaf1: ", "one two three four"), "leaf1: one two three\n       four\n"},
		{"hung without a terminal", 0, hung("leaf1: ", strings.Repeat("word ", 20)), "leaf1:" + strings.Repeat(" word", 18) + "\n       word word\n"},
		{"the rest of a line", 10, "12345678 \x00\n", "12345678\n  \\x00\n"},
	} {
		var b bytes.Buffer
		if _, err := (&screen{to: &b, width: x.width}).Write([]byte(x.in)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x.want, b.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, d)
		}
	}
}
