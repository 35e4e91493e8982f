package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRollbackFresh takes back the first run on devices that held nothing. What SONiC does not let go of stays and is
// said; everything else is gone, and the next apply goes through.
func TestRollbackFresh(t *testing.T) {
	b := newBench(t, trio)
	old := b.config(t)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	r := b.must(t, exitOK, "runs", "rollback", b.run(t))
	if !strings.Contains(r.out, `PFC_WD|GLOBAL|POLL_INTERVAL stays at "100"`) {
		t.Errorf("what stays is not said: %s", r)
	}
	now := b.config(t)
	for _, left := range []string{
		"\n/etc/nccl.conf:", // an empty file
		",\n    \"PFC_WD\": {\n        \"GLOBAL\": {\n            \"POLL_INTERVAL\": \"100\"\n        }\n    }",
		",\n    \"PORT_QOS_MAP\": {\n        \"Ethernet0\": {\n            \"pfc_enable\": \"\",\n            \"pfcwd_sw_enable\": \"\"\n        }\n    }",
	} {
		now = strings.Replace(now, left, "", 1)
	}
	normal := strings.NewReplacer(" ", "", "\n", "", ",", "")
	if normal.Replace(old) != normal.Replace(now) {
		t.Errorf("more is left than that (-before +after):\n%s", cmp.Diff(old, now))
	}
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.must(t, exitOK, "drift")
}
