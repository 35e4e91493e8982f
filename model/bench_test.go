package model

import (
	"strings"
	"testing"
)

// BenchmarkLoad expands 400 leaves with 40 hosts each: 16,400 devices, 33,600 port ends.
func BenchmarkLoad(b *testing.B) {
	s := strings.Replace(base, "per_leaf: 2,", "per_leaf: 40,", 1)
	s = strings.Replace(s, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: sonic/wide}", 1)
	fsys := files("m.yaml", strings.Replace(s, "leaves: {count: 2", "leaves: {count: 400", 1)+shapeTail[strings.Index(shapeTail, "---"):])
	b.ReportAllocs()
	for b.Loop() {
		if _, l := Load(fsys, "m.yaml"); l.HasErrors() {
			b.Fatal(lines(l))
		}
	}
}
