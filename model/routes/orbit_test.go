package routes

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrbitsAreSymmetric: of nodes and links that are said to be alike, a symmetry maps one to the other. It is found by
// trying all images of all nodes.
func TestOrbitsAreSymmetric(t *testing.T) {
	joined := 0
	rapid.Check(t, func(t *rapid.T) {
		b := newBuilder()
		n := rapid.IntRange(4, 8).Draw(t, "switches")
		for i := range n {
			b.device(fmt.Sprint("s", i), 1+i%rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "tiers"))
		}
		if rapid.Bool().Draw(t, "circles") { // like each other one by one, and not as a whole
			for i := range n {
				b.link(fmt.Sprint("s", i), fmt.Sprint("s", (i+1)%n), 8)
			}
			for i := range 3 {
				b.device(fmt.Sprint("t", i), 1)
			}
			for i := range 3 {
				b.link(fmt.Sprint("t", i), fmt.Sprint("t", (i+1)%3), 8)
			}
		} else {
			for i := range n {
				for j := range i {
					if rapid.Bool().Draw(t, "link") {
						b.link(fmt.Sprint("s", i), fmt.Sprint("s", j), 8)
					}
				}
			}
		}
		top := Of(b.done())
		o := top.symmetries()
		for v := range top.nodes {
			if w := o.find(int32(v)); w != int32(v) {
				joined++
				if !symmetric(o, map[int32]int32{int32(v): w}) {
					t.Fatalf("%s and %s are not alike", top.nodes[v].name, top.nodes[w].name)
				}
			}
		}
		for x := range top.bundles {
			y := o.find(o.link(int32(x))) - int32(len(top.nodes))
			a, c := &top.bundles[x], &top.bundles[y]
			if !symmetric(o, map[int32]int32{a.from: c.from, a.to: c.to}) && !symmetric(o, map[int32]int32{a.from: c.to, a.to: c.from}) {
				t.Fatalf("%v and %v are not alike", top.buffer(int32(x), 0), top.buffer(y, 0))
			}
		}
	})
	if joined == 0 {
		t.Error("nothing was found to be alike")
	}
}

// symmetric reports whether a symmetry has these images.
func symmetric(o *orbits, image map[int32]int32) bool {
	has := func(v, to, label int32) bool {
		return slices.ContainsFunc(o.edges[v], func(e edge) bool { return e.to == to && e.label == label })
	}
	fits := func(v, w int32) bool {
		if o.t.nodes[v].tier != o.t.nodes[w].tier || len(o.edges[v]) != len(o.edges[w]) {
			return false
		}
		for _, e := range o.edges[v] {
			if to, ok := image[e.to]; ok && !has(w, to, e.label) {
				return false
			}
		}
		return true
	}
	for v, w := range image {
		if !fits(v, w) {
			return false
		}
	}
	for v := range int32(len(o.t.nodes)) {
		if _, ok := image[v]; ok {
			continue
		}
		for w := range int32(len(o.t.nodes)) {
			taken := false
			for _, x := range image {
				taken = taken || x == w
			}
			if taken || !fits(v, w) {
				continue
			}
			image[v] = w
			if symmetric(o, image) {
				return true
			}
			delete(image, v)
		}
		return false
	}
	return true
}

// TestAfterAndDuring: the loss of the only spine of a ring leaves the ring, for good.
func TestAfterAndDuring(t *testing.T) {
	b := clos(1, 4, 1)
	for i := range 4 {
		b.link(fmt.Sprint("l", i), fmt.Sprint("l", (i+1)%4), 8)
	}
	top := Of(b.done())
	if cs := top.Steady().Components; len(cs) > 0 {
		t.Fatalf("with the spine: %v", cs)
	}
	l, err := top.Sweep(context.Background(), nil, 0)
	if err != nil || len(l.Failures) == 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	if f := l.Failures[0]; f.Device != "s0" || f.During || len(f.Cycle) != 4 || f.Size != 4 {
		t.Errorf("got %+v", f)
	}
	if only, _ := top.Sweep(context.Background(), []string{"l0"}, 0); only.Switches != 1 || only.Links != 4 || slices.ContainsFunc(only.Failures, func(f Failure) bool { return f.Device == "s0" }) {
		t.Errorf("losses of l0: %+v", only)
	}
	if few, _ := top.Sweep(context.Background(), nil, 1); few.Left == 0 || few.Classes > 0 {
		t.Errorf("with a limit: %+v", few)
	}
}

// TestWheels: two switches whose neighbours look the same one by one, but are a ring of six here and two rings of three
// there, are not alike.
func TestWheels(t *testing.T) {
	b := newBuilder()
	for _, w := range []string{"a", "b"} {
		b.device(w, 1)
		for i := range 6 {
			b.device(fmt.Sprint(w, i), 1)
			b.link(w, fmt.Sprint(w, i), 8)
		}
		for i := range 6 {
			next := (i + 1) % 6
			if w == "b" {
				next = i/3*3 + (i+1)%3
			}
			b.link(fmt.Sprint(w, i), fmt.Sprint(w, next), 8)
		}
	}
	top := Of(b.done())
	o := top.symmetries()
	at := func(name string) int32 {
		return int32(slices.IndexFunc(top.nodes, func(n node) bool { return n.name == name }))
	}
	if o.color[at("a")] != o.color[at("b")] {
		t.Fatal("colours tell them apart, so that this tests nothing")
	}
	if o.find(at("a")) == o.find(at("b")) || o.find(at("a0")) == o.find(at("b0")) {
		t.Error("they are taken for alike")
	}
	if symmetric(o, map[int32]int32{at("a"): at("b")}) {
		t.Error("the plain look takes them for alike")
	}
}
