package hostlocal

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/agent.md has every metric, with its type, and no other.
func TestMetricsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range newFamilies().list() {
		kind := "gauge"
		if m.counter {
			kind = "counter"
		}
		want = append(want, m.name+" "+kind)
		if strings.HasSuffix(m.name, "_total") != m.counter {
			t.Errorf("%s: counters end in _total, and nothing else does", m.name)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(fabricctl_[a-z_]+)` \\| (gauge|counter) \\|").FindAllStringSubmatch(string(b), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("docs/agent.md (-written +documented):\n%s", d)
	}
}

// docs/agent.md shows the unit that applies a host file at boot as it is written.
func TestUnitDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(b), "```ini\n")
	shown, _, _ = strings.Cut(shown, "```")
	if d := cmp.Diff(bootUnit(FileOf(*resolved(t, "rail8").Device("host1"), "digest", "v1", true)), shown); d != "" {
		t.Errorf("docs/agent.md (-written +documented):\n%s", d)
	}
}
