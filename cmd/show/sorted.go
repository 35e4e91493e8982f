package show

import (
	"iter"
	"maps"
	"slices"
	"sort"

	"github.com/fabricctl/fabricctl/render"
)

// sorted walks names in the order of their keys.
func sorted(n render.Names) iter.Seq2[render.Key, string] {
	keys := slices.Collect(maps.Keys(n))
	sort.Slice(keys, func(i, j int) bool { return keys[i].Compare(keys[j]) < 0 })
	return func(yield func(render.Key, string) bool) {
		for _, k := range keys {
			if !yield(k, n[k]) {
				return
			}
		}
	}
}
