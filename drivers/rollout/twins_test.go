package rollout

import (
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

func TestTwinsShare(t *testing.T) {
	step := func(device, value, line string) []Step {
		c := render.Change{Op: render.Modify, Key: render.Key{Scope: "port", Object: "p1", Field: "mtu"}, Before: new("1500"), After: new(value), From: diag.Pos{File: line}}
		return []Step{{Device: device, Changes: []render.Change{c}, Undo: render.Undo([]render.Change{c}), Before: "a", After: "b"}}
	}
	var w twins
	first, twin, other, elsewhere := step("h1", "9000", "m"), step("h2", "9000", "m"), step("h3", "4000", "m"), step("h4", "9000", "n")
	for _, s := range [][]Step{first, twin, other, elsewhere} {
		w.share(s)
	}
	same := func(a, b []Step) bool { return &a[0].Changes[0] == &b[0].Changes[0] && &a[0].Undo[0] == &b[0].Undo[0] }
	if !same(first, twin) || twin[0].Device != "h2" {
		t.Error("twins do not share")
	}
	if same(first, other) || *other[0].Changes[0].After != "4000" {
		t.Error("another value was taken for the same")
	}
	if same(first, elsewhere) || elsewhere[0].Changes[0].From.File != "n" {
		t.Error("another line of the model was taken for the same")
	}
}
