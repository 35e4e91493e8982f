package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// dumped is a node with all that the rest of the program sees of it.
func dumped(n *node) string {
	var b strings.Builder
	var write func(*node)
	write = func(n *node) {
		fmt.Fprintf(&b, "%v %d/%v %v %v %q", n.shape, n.layer, *n.from, n.bad, n.null, n.text)
		for _, x := range n.keys {
			fmt.Fprintf(&b, " %q at %v (", x.key, n.at(x.key))
			write(n.kid(x.key))
			b.WriteByte(')')
		}
		for _, c := range n.items {
			b.WriteString(" - (")
			write(c)
			b.WriteByte(')')
		}
	}
	write(n)
	return b.String()
}

// asTheLibrary compares what plain makes of a text with what the library does; read is whether plain takes it.
func asTheLibrary(t *testing.T, text []byte) (read bool) {
	t.Helper()
	c := converter{reader: &reader{}, file: "f.yaml", layer: 3, offset: 7}
	n, ok := c.plain(text)
	if !ok {
		if c.nodes != 0 || len(c.found) != 0 {
			t.Errorf("%q: %d nodes counted, %v found, and not read", text, c.nodes, c.found)
		}
		return false
	}
	slow := converter{reader: &reader{}, file: "f.yaml", layer: 3, offset: 7}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	y, err := decode(dec)
	if err != nil {
		t.Fatalf("%q is read as\n%s\nthe library says %v", text, dumped(n), err)
	}
	if len(y.Content) != 1 {
		t.Fatalf("%q is read as\n%s\nthe library finds %d documents", text, dumped(n), len(y.Content))
	}
	want := slow.convert(y.Content[0], 0)
	if _, err := decode(dec); !errors.Is(err, io.EOF) {
		t.Fatalf("%q is read as\n%s\nthe library finds more: %v", text, dumped(n), err)
	}
	if a, b := dumped(n), dumped(want); a != b {
		t.Fatalf("%q is read as\n%s\nby the library as\n%s", text, a, b)
	}
	if c.nodes != slow.nodes || len(slow.found) != 0 {
		t.Fatalf("%q: %d values, by the library %d, and %v", text, c.nodes, slow.nodes, slow.found)
	}
	return true
}

// TestPlainExamples: what our own files are made of is plain, and what people write by hand.
func TestPlainExamples(t *testing.T) {
	err := filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, p := range split(b) {
			if !asTheLibrary(t, p.text) {
				t.Errorf("%s:%d is not plain", path, p.line+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range plainSeeds() {
		if !asTheLibrary(t, []byte(s)) {
			t.Errorf("%q is not plain", s)
		}
	}
}

// plainSeeds are small documents that are plain.
func plainSeeds() []string {
	return []string{
		"a: 1\n", "a: 1", "---\na: 1\n", "# ü “x” – no value\n\n---\n# of its own\na:   b c  # d\n\n", "- a\n- b: c\n  d: e\n-   f: g\n    h: [i]\n",
		"a:\n- b\n- c\nd:\n  - e\n  - f:\n    - g\n    h: i\nj: k\n", "a:\n  b:\n    c: d\n  e: f\ng: h\n", "a: {b: c, d: [e, f], g: {}, h: []}\nb: [ a , {b: c} ]\n",
		"a: \"b: #c, 'd'\"\nb: ' \"e\" '\nc: {d: \"leaf1:up-1\", e: 'x'}\n", "a: null\nb: \"null\"\nc: Null # x\nd: nULL\n", "a: leaf1:up-1\nb: {c: leaf1:up-1, d: 1.5%}\n",
		"a: 0x1F\nb: 010\nc: yes\nd: 1e3\ne: -1\nf: 03:04\ng: .5\nh: 2001-01-01\n", "10.0.0.1: a\nEthernet1/1: b\n", "a: it, too\nb: x (y); z ~ 5% = $1 + 2^3 @home <a>\n",
		"  a: 1\n  b:\n    - c\n", "a: -b\nc: [-1, -b]\n", numbered("a%d: b\n", 40), "a:\n\n  # note\n    # deeper\n  b: 1\n# end", "a: b-\nc-: d\nd.e_f/g: h:1\n",
	}
}

// TestPlainDoubt: the library is asked about all else.
func TestPlainDoubt(t *testing.T) {
	for _, s := range []string{
		"", "\n# x\n", "---\n", "a", "a:\n", "a:\nb: 1\n", "a: 1\na: 2\n", "{a: 1, a: 2}\n", "a: {b: 1, b: 2}\n", numbered("a%d: b\n", 40) + "a3: c\n", "a: &x 1\nb: *x\n", "<<: {a: 1}\n", "a: !t 1\n", "a: |\n  b\n", "a: >\n  b\n",
		"? a\n: b\n", "a: b\n  c\n", "a: {b: 1,\n  c: 2}\n", "a: \"b\n  c\"\n", "a:\tb\n", "\ta: b\n", "a: b\r\n", "a: b\n c: d\n", "a:\n    b: 1\n  c: 2\n", "- a\nb: c\n", "a: 1\n- b\n", "- - a\n", "-\n  a: b\n",
		"a: \"b\\n\"\n", "a: 'b''c'\n", "a: ü\n", "a: \"ü\"\n", "ü: a\n", "\ufeffa: b\n", "a: b # \u2028c\n", "a: b # \u0085c\n", "%YAML 1.1\n---\na: b\n", "a: b\n...\n", "--- a: b\n", "a: [b\n", "a: b]\n", "a: {b}\n", "a: [b,]\n",
		"a: [,b]\n", "a: {b:c}\n", "a: b: c\n", "a : b\n", "\"a\": b\n", "a: [b]c\n", "a: \"b\"c\n", "a: \"b\"#c\n", "a: [b]#c\n", "a: #b\n", "a: b\n---\nc: d\n", "a: [b: c]\n", "a: ~\n", "a: {b: , c: 1}\n", "a: @b\n", "a: - b\n",
		strings.Repeat("a", 300) + ": b\n", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n",
	} {
		if asTheLibrary(t, []byte(s)) {
			t.Errorf("%q counts as plain", s)
		}
	}
}

// TestPlainSteps: small changes to plain documents stay plain or are left to the library, and never mean something else.
func TestPlainSteps(t *testing.T) {
	const steps = 40_000
	rnd := rand.New(rand.NewPCG(1, 2))
	pieces := []string{" ", "  ", "\n", "\n  ", "\n- ", "- ", ": ", ":", ",", ", ", "{", "}", "[", "]", "#", " # ", "\"", "'", "a", "1", "-", "a: ", "b:\n", "null", "---\n", "<", "~", "=", ".", "%", "é"}
	seeds, taken := plainSeeds(), 0
	for range steps {
		b := []byte(seeds[rnd.IntN(len(seeds))])
		for range 1 + rnd.IntN(4) {
			i := rnd.IntN(len(b) + 1)
			j := min(i+rnd.IntN(4), len(b))
			b = slices.Replace(b, i, j, []byte(pieces[rnd.IntN(len(pieces))])...)
		}
		if utf8.Valid(b) && asTheLibrary(t, b) {
			taken++
		}
	}
	if taken < steps/20 {
		t.Errorf("only %d of %d are plain: that proves little", taken, steps)
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range plainSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if utf8.Valid(b) && len(b) < 1<<12 {
			asTheLibrary(t, b)
		}
	})
}
