package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheoryEvidence writes the table of all theories, the long cases too, into the page that FABRICCTL_SIM_EVIDENCE names.
func TestTheoryEvidence(t *testing.T) {
	path := os.Getenv("FABRICCTL_SIM_EVIDENCE")
	if path == "" {
		t.Skip("FABRICCTL_SIM_EVIDENCE names no file for the table; make sim-evidence does")
	}
	var out strings.Builder
	for _, th := range theories() {
		fmt.Fprintf(&out, "| %s | theory | ours | difference | allowed |\n|---|---|---|---|---|\n", th.Name)
		for _, c := range th.Claims(t, true) {
			if !c.holds() {
				t.Errorf("%s: %s %s, want %s", c.What, c.figure(c.Ours), c.Unit, c.figure(c.Theory))
			}
			fmt.Fprintf(&out, "| %s | %s %s | %s | %s | %s |\n", c.What, c.figure(c.Theory), c.Unit, c.figure(c.Ours), c.difference(), c.allowed())
		}
		out.WriteByte('\n')
	}
	if !t.Failed() {
		writePart(t, path, "make sim-evidence, theory,", out.String())
	}
}

func (c claim) allowed() string {
	if c.Within == 0 {
		return "none"
	}
	return fmt.Sprintf("%.3g %%", 100*c.Within)
}
