package lint_test

import (
	"strings"
	"testing"
)

// Where a table gives the value that is wrong, the finding stands where the model makes the priority lossless, and not at a
// port that the model does not write down.
func TestBufferPlace(t *testing.T) {
	_, good := examples(t, "ecn-order")
	doc := strings.ReplaceAll(good.model, "sonic/sn5600", "sonic/x") + `---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: sonic/x}
platform:
  asic: spectrum-4
  ports: 64
  speed: 800Gbps
  iface: Ethernet%d
  iface_step: 8
  lossless_pool: 60MB
  headroom: [{speed: 400Gbps, cable: 5m, size: 9MB, xon: 59MB, xoff: 300KB, alpha: 1}, {speed: 800Gbps, cable: 40m, size: 9MB, xon: 59MB, xoff: 400KB, alpha: 1}]
  source: a table with a slip in it
  confidence: low
`
	n := 0
	for _, f := range (example{model: doc}).check(t) {
		if f.Rule == "xon-below-xoff" {
			n++
			if line := strings.Split(doc, "\n")[max(f.Pos.Line, 1)-1]; !strings.Contains(line, "lossless: true") {
				t.Errorf("%s\nstands at %q", f, line)
			}
		}
	}
	if n == 0 {
		t.Error("no finding")
	}
}
