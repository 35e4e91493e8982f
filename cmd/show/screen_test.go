package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestScreen: what is not plain text is shown, not done.
func TestScreen(t *testing.T) {
	for _, x := range []struct{ name, in, plain, colored string }{
		{"text", "leaf1\tok – π\n", "leaf1\tok – π\n", "leaf1\tok – π\n"},
		{"ours", Paint(Red, "error:") + " x", "error: x", "\x1b[31merror:\x1b[0m x"},
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
				s := &Screen{To: &b, Color: on}
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

// TestScreenWidth: on a terminal lines are broken at words, below where their text or their column began.
func TestScreenWidth(t *testing.T) {
	hung := func(head, text string) string {
		var b strings.Builder
		Hang(&b, head, text)
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
		{"colours have no width", 14, Paint(Red, "error:") + " one two three\n", "error: one two\n  three\n"},
		{"hung", 20, hung("leaf1: ", "one two three four"), "leaf1: one two three\n       four\n"},
		{"hung without a terminal", 0, hung("leaf1: ", strings.Repeat("word ", 20)), "leaf1:" + strings.Repeat(" word", 18) + "\n       word word\n"},
		{"a command", 24, hung("  ", "go on: "+Whole("fabricctl tune resume R")), "  go on:\n  fabricctl tune resume R\n"},
		{"a command that is too long", 16, hung("  ", "go on: "+Whole("fabricctl tune resume R")+" now"), "  go on:\n  fabricctl tune resume R\n  now\n"},
		{"a command with room", 0, hung("  ", "go on: "+Whole("fabricctl tune resume R")), "  go on: fabricctl tune resume R\n"},
		{"the rest of a line", 10, "12345678 \x00\n", "12345678\n  \\x00\n"},
	} {
		var b bytes.Buffer
		if _, err := (&Screen{To: &b, width: x.width}).Write([]byte(x.in)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x.want, b.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, d)
		}
	}
}
