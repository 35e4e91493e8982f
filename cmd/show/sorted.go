package show

import (
	"iter"
	"maps"
	"slices"

	"github.com/fabricctl/fabricctl/render"
)

// sorted walks names in the order of their keys.
func sorted(n render.Names) iter.Seq2[render.Key, string] {
	keys := slices.SortedFunc(maps.Keys(n), render.Key.Compare)
	return func(yield func(render.Key, string) bool) {
		for _, k := range keys {
			if !yield(k, n[k]) {
				return
			}
		}
	}
}
