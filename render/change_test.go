package render

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// toy is a dialect of objects with values: "a" of scope S points at what its value names, lo and hi are a window.
var toy = Dialect{
	OS: "toy",
	Refs: func(k Key, v string) []Key {
		if k.Field == "ref" && v != "" {
			return []Key{{"S", v, ""}}
		}
		return nil
	},
	Windows: []Window{{"", "lo", "hi"}},
	Phase: func(c Change) int {
		if c.Key.Scope == "LATE" {
			return 1
		}
		return 0
	},
	Same: func(k Key, a, b *string, _ Facts) bool {
		if k.Field == "default" { // absent is "1"
			a, b = or(a, "1"), or(b, "1")
		}
		return k.Scope == "LAX" || a == b || a != nil && b != nil && *a == *b
	},
}

func or(v *string, d string) *string {
	if v == nil {
		return &d
	}
	return v
}

func config(lines ...[4]string) Config {
	var c Config
	for _, l := range lines {
		c = append(c, Setting{Key: Key{l[0], l[1], l[2]}, Value: l[3]})
	}
	return c.Sorted()
}

// short is changes as "op object.field" in order.
func short(cs []Change) []string {
	var s []string
	for _, c := range cs {
		s = append(s, fmt.Sprintf("%s %s.%s", c.Op, c.Key.Object, c.Key.Field))
	}
	return s
}

func TestDiffOrder(t *testing.T) {
	for _, c := range []struct {
		name       string
		live, want Config
		changes    []string
	}{
		{"default is not a change", nil, config([4]string{"S", "a", "default", "1"}), nil},
		{"existence is never a default", config([4]string{"LAX", "a", "", ""}), nil, []string{"remove a."}},
		{
			"creations follow what they point at", nil,
			config([4]string{"S", "a", "ref", "m"}, [4]string{"S", "m", "ref", "z"}, [4]string{"S", "z", "x", "1"}),
			[]string{"add z.x", "add m.ref", "add a.ref"},
		},
		{
			"removals the other way round",
			config([4]string{"S", "a", "ref", "m"}, [4]string{"S", "m", "ref", "z"}, [4]string{"S", "z", "x", "1"}), nil,
			[]string{"remove a.ref", "remove m.ref", "remove z.x"},
		},
		{
			"rebind between creation and removal",
			config([4]string{"S", "b", "ref", "old"}, [4]string{"S", "old", "x", "1"}),
			config([4]string{"S", "b", "ref", "xnew"}, [4]string{"S", "xnew", "x", "1"}),
			[]string{"add xnew.x", "set b.ref", "remove old.x"},
		},
		{
			"a cycle ends", nil, config([4]string{"S", "a", "ref", "b"}, [4]string{"S", "b", "ref", "a"}),
			[]string{"add a.ref", "add b.ref"},
		},
		{
			"a window moves up high end first",
			config([4]string{"S", "a", "lo", "1"}, [4]string{"S", "a", "hi", "2"}),
			config([4]string{"S", "a", "lo", "5"}, [4]string{"S", "a", "hi", "9"}),
			[]string{"set a.hi", "set a.lo"},
		},
		{
			"and down low end first",
			config([4]string{"S", "a", "lo", "5"}, [4]string{"S", "a", "hi", "9"}),
			config([4]string{"S", "a", "lo", "1"}, [4]string{"S", "a", "hi", "2"}),
			[]string{"set a.lo", "set a.hi"},
		},
		{
			"an added high end waits for the low one",
			config([4]string{"S", "a", "lo", "50"}),
			config([4]string{"S", "a", "lo", "1"}, [4]string{"S", "a", "hi", "9"}),
			[]string{"set a.lo", "add a.hi"},
		},
		{
			"a removed high end goes before the low one rises",
			config([4]string{"S", "a", "lo", "1"}, [4]string{"S", "a", "hi", "9"}),
			config([4]string{"S", "a", "lo", "50"}),
			[]string{"remove a.hi", "set a.lo"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.changes, short(Diff(&toy, Facts{}, c.live, c.want))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	live := config([4]string{"LATE", "gone", "x", "1"}, [4]string{"S", "a", "x", "1"})
	want := config([4]string{"LATE", "new", "x", "1"}, [4]string{"S", "b", "x", "1"})
	var got [][]string
	for _, p := range Phases(&toy, Diff(&toy, Facts{}, live, want)) {
		got = append(got, short(p))
	}
	if diff := cmp.Diff([][]string{{"remove gone.x"}, {"add b.x", "remove a.x"}, {"add new.x"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := Phases(&toy, nil); p != nil {
		t.Errorf("no changes have phases: %v", p)
	}
}

func TestRemaining(t *testing.T) {
	v := func(s string) *string { return &s }
	k := Key{"S", "a", "x"}
	change := []Change{{Op: Modify, Key: k, Before: v("1"), After: v("2")}}
	for _, c := range []struct {
		live        Config
		todo, moved int
	}{
		{config([4]string{"S", "a", "x", "1"}), 1, 0},
		{config([4]string{"S", "a", "x", "2"}), 0, 0},
		{config([4]string{"S", "a", "x", "3"}), 0, 1},
		{nil, 0, 1},
	} {
		todo, moved := Remaining(&toy, Facts{}, c.live, change)
		if len(todo) != c.todo || len(moved) != c.moved {
			t.Errorf("live %q: todo %s, moved %s", c.live.lines(), changes(todo), changes(moved))
		}
	}
}

// Any two configurations of the toy: the diff ends in the wish, undo takes it back, and no prefix is insane when
// neither end is.
func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Config {
			m := map[Key]string{}
			objects := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID[string]).Draw(t, name)
			for i, o := range objects {
				m[Key{"S", o, "x"}] = "1"
				if i > 0 && rapid.Bool().Draw(t, "points") {
					m[Key{"S", o, "ref"}] = objects[rapid.IntRange(0, i-1).Draw(t, "at")]
				}
				lo := rapid.IntRange(0, 99).Draw(t, "lo")
				if rapid.Bool().Draw(t, "has lo") {
					m[Key{"S", o, "lo"}] = fmt.Sprint(lo)
				}
				if rapid.Bool().Draw(t, "has hi") {
					m[Key{"S", o, "hi"}] = fmt.Sprint(lo + rapid.IntRange(0, 99).Draw(t, "width"))
				}
			}
			var c Config
			for k, v := range m {
				c = append(c, Setting{Key: k, Value: v})
			}
			return c.Sorted()
		}
		live, want := draw("live"), draw("want")
		cs := Diff(&toy, Facts{}, live, want)
		mustEqual(t, "apply", want, Apply(live, cs))
		mustEqual(t, "undo", live, Apply(want, Undo(cs)))
		for i := range cs {
			if bad := insane(&toy, Apply(live, cs[:i+1])); bad != "" {
				t.Fatalf("after %d: %s\n%s", i+1, bad, changes(cs))
			}
		}
	})
}
