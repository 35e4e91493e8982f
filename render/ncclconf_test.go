package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseNCCL(t *testing.T) {
	long := strings.Repeat("x", 1100)
	for _, tt := range []struct {
		name, text string
		want       map[string]string
	}{
		{"empty", "", map[string]string{}},
		{"plain", "NCCL_IB_TC=104\nNCCL_IB_TIMEOUT=20\n", map[string]string{"NCCL_IB_TC": "104", "NCCL_IB_TIMEOUT": "20"}},
		{"last line without end", "NCCL_IB_TC=104", map[string]string{"NCCL_IB_TC": "104"}},
		{"DOS ends", "NCCL_IB_TC=104\r\n", map[string]string{"NCCL_IB_TC": "104"}},
		{"first wins", "A=1\nA=2\n", map[string]string{"A": "1"}},
		{"comment only in column 1", "#A=1\n #B=2\nC=3 # no comment\n", map[string]string{"C": "3 # no comment"}},
		{"nothing is trimmed", "A = 1\n B=2\n", map[string]string{}},
		{"no quoting", `A="x"` + "\n", map[string]string{"A": `"x"`}},
		{"exact interface", "NCCL_SOCKET_IFNAME==ens1f0\n", map[string]string{"NCCL_SOCKET_IFNAME": "=ens1f0"}},
		{"empty value is a value", "A=\n", map[string]string{"A": ""}},
		{"no equals sign", "A\n=1\nB=2\n", map[string]string{"B": "2"}},
		{"long value is cut", "A=" + long + "\n", map[string]string{"A": long[:1023]}},
		{"NUL ends a line", "A=1\x002\nB\x00=3\n", map[string]string{"A": "1"}},
		{"bad UTF-8", "A=\xff\n", map[string]string{"A": "\uFFFD"}},
	} {
		got := map[string]string{}
		for _, s := range ParseNCCL([]byte(tt.text)) {
			got[s.Key.Field] = s.Value
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func set(name, value string) Change {
	return Change{Op: Modify, Key: Key{"nccl", NCCLPath, name}, After: &value}
}

func unset(name string) Change { return Change{Op: Remove, Key: Key{"nccl", NCCLPath, name}} }

func TestEditNCCL(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		cs         []Change
		want       string
	}{
		{"new file", "", []Change{set("A", "1"), set("B", "2")}, "A=1\nB=2\n"},
		{"in place", "# ours\n\nA=1\nX=9\n", []Change{set("A", "2")}, "# ours\n\nA=2\nX=9\n"},
		{"first of two", "A=1\nA=7\n", []Change{set("A", "2")}, "A=2\nA=7\n"},
		{"remove all", "A=1\n# A=5\nA=7\nB=1\n", []Change{unset("A")}, "# A=5\nB=1\n"},
		{"line end is completed", "X=1", []Change{set("A", "2")}, "X=1\nA=2\n"},
		{"line without end stays so", "A=1", []Change{set("A", "2")}, "A=2"},
		{"DOS end stays", "A=1\r\nB=1\r\n", []Change{set("A", "2")}, "A=2\r\nB=1\r\n"},
		{"a look-alike is not it", "AB=1\nA =3\n", []Change{set("A", "2")}, "AB=1\nA =3\nA=2\n"},
		{"bytes of others stay", "\xff\x00=\n", []Change{set("A", "2")}, "\xff\x00=\nA=2\n"},
	} {
		got, err := EditNCCL([]byte(tt.text), tt.cs)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestEditNCCLRefuses(t *testing.T) {
	for _, c := range []Change{
		set("A", "1\nB=2"), set("A", "1\x00"), set("A", strings.Repeat("x", 1024)), set("A=B", "1"), set("", "1"), set("#A", "1"),
		{Key: Key{"nccl", "/etc/passwd", "A"}},
		{Key: Key{"link", "eth0", "mtu"}},
	} {
		if got, err := EditNCCL(nil, []Change{c}); err == nil {
			t.Errorf("%v was accepted: %q", c.Key, got)
		}
	}
}

// What is edited reads back, everything else reads as before, and the text of others is still there.
func TestEditNCCLReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "A=1", "A=1\n#c\nB=2\nA=3\n", "x\r\nB=1\r\nC=\r\n"}).Draw(t, "base") +
			rapid.StringMatching(`([A-D#]?[A-D]=[ -~]{0,4}(\r?\n)?){0,5}`).Draw(t, "tail")
		name := rapid.SampledFrom([]string{"A", "B", "C", "NEW"}).Draw(t, "name")
		var c Change
		if rapid.Bool().Draw(t, "remove") {
			c = unset(name)
		} else {
			c = set(name, rapid.StringMatching(`[ -~]{0,8}`).Draw(t, "value"))
		}
		live := ParseNCCL([]byte(text))
		got, err := EditNCCL([]byte(text), []Change{c})
		if err != nil {
			t.Fatal(err)
		}
		if want := Apply(live, []Change{c}); !ParseNCCL(got).Equal(want) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func FuzzParseNCCL(f *testing.F) {
	f.Add("NCCL_IB_TC=104\n# c\nA = 1\n", "NCCL_IB_TC", "106")
	f.Add("A\x00=1\r\n\xff=\n=", "A", "")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		c := set(name, value)
		got, err := EditNCCL([]byte(text), []Change{c})
		if err != nil {
			return
		}
		if v, ok := ParseNCCL(got).Find(c.Key); !ok || v != value {
			t.Fatalf("%q after setting %s=%q reads %q", text, name, value, v)
		}
	})
}
