package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestObjectName(t *testing.T) {
	for _, c := range []struct {
		limit  int
		fabric string
		parts  []string
		want   string
	}{
		{32, "pod1", []string{"fabric"}, "fctl-pod1-fabric"},
		{32, "pod1", []string{"fabric", "training"}, "fctl-pod1-fabric-training"},
		{32, "pod1", []string{"leaf.storage", "training"}, "fctl-pod1-leaf-storage-training"},
		{32, "pod1", []string{"leaf.storage", "checkpoints"}, "fctl-pod1-leaf-storage-ch-15103f"},
		{32, "pod1-a", []string{"fabric"}, "fctl-pod1--a-fabric"},
		{32, "building-7-pod-12", []string{"fabric", "cnp"}, "fctl-buildibed911-fabric-cnp"},
	} {
		got := objectName(c.limit, sonicNameRune, c.fabric, c.parts...)
		if got != c.want {
			t.Errorf("objectName(%q, %q) = %s, want %s", c.fabric, c.parts, got, c.want)
		}
	}
}

// Names stay within the limit and the alphabet, tell their fabric from any other, and differ where what they name does.
func TestObjectNameProperties(t *testing.T) {
	name := rapid.StringMatching(`[a-zA-Z0-9][-a-zA-Z0-9_.]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(32, 100).Draw(t, "limit")
		fabric, other := name.Draw(t, "fabric"), name.Draw(t, "other fabric")
		site, class := name.Draw(t, "site"), name.Draw(t, "class")
		got := objectName(limit, sonicNameRune, fabric, site, class)
		if len(got) > limit || strings.ContainsFunc(got, func(r rune) bool { return !sonicNameRune(r) }) {
			t.Fatalf("%q is too long or holds what is not allowed", got)
		}
		if !ownName(limit, sonicNameRune, fabric, got) {
			t.Fatalf("%q does not belong to fabric %q", got, fabric)
		}
		if allowed(sonicNameRune, fabric) != allowed(sonicNameRune, other) && ownName(limit, sonicNameRune, other, got) {
			t.Fatalf("%q of fabric %q looks like one of %q", got, fabric, other)
		}
		if next := objectName(limit, sonicNameRune, fabric, site+"x", class); next == got {
			t.Fatalf("two sites have the name %q", got)
		}
	})
}

func TestOwnName(t *testing.T) {
	for name, own := range map[string]bool{
		"fctl-pod1-fabric":     true,
		"fctl-pod1-a-fabric":   true,
		"fctl-pod1--a-fabric":  false, // of pod1-a
		"fctl-pod10-fabric":    false,
		"fctl-pod1":            false,
		"fctl-pod1-":           false,
		"AZURE":                false,
		"FCTL-pod1-fabric":     false,
		"xfctl-pod1-fabric":    false,
		"fctl-pod2-fabric-cnp": false,
	} {
		if got := ownName(32, sonicNameRune, "pod1", name); got != own {
			t.Errorf("ownName(pod1, %q) = %v", name, got)
		}
	}
}
