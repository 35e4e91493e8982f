package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/intent"
)

// TestFoldSaysWhatWasGiven: a folded list stands for exactly the names that went in.
func TestFoldSaysWhatWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) string {
			n := rapid.IntRange(0, 5)
			stem := rapid.SampledFrom([]string{"leaf", "pod-", "Ethernet", "007-"}).Draw(t, "stem")
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				return stem
			case 1:
				return fmt.Sprintf("%s%d", stem, n.Draw(t, "a"))
			case 2:
				return fmt.Sprintf("%s%d/%d", stem, n.Draw(t, "a"), n.Draw(t, "b"))
			}
			return fmt.Sprintf("%s%d-x%d.%d", stem, n.Draw(t, "a"), n.Draw(t, "b"), n.Draw(t, "c"))
		})
		names := rapid.SliceOfDistinct(name, func(s string) string { return s }).Draw(t, "names")
		var said []string
		for _, f := range fold(names) {
			said = append(said, f.cut(f.size())...)
			for _, w := range f.words() {
				if strings.Count(w, "[") != strings.Count(w, "]") {
					t.Errorf("%s", w)
				}
			}
		}
		slices.SortFunc(names, intent.CompareNames)
		slices.SortFunc(said, intent.CompareNames)
		if d := cmp.Diff(names, said); d != "" && len(names)+len(said) > 0 {
			t.Errorf("(-given +said):\n%s", d)
		}
	})
}
