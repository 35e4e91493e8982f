package model

import (
	"strings"
	"testing"
)

// TestAlone: what merely follows from an error is not said beside it.
func TestAlone(t *testing.T) {
	for _, x := range []struct{ name, model, want string }{
		{"unknown platform", with(t, "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: sonic/sn56}"), "unknown platform"},
		{"breakout", with(t, "    host_leaf: {speed: 400Gbps}", "    host_leaf: {speed: 400Gbps, breakout: 3}"), "breakout into 3 links"},
		{"two CNP classes", with(t, "    lossless: true\n", "    lossless: true\n    role: cnp\n"), "are both the CNP class"},
		{"unknown class", base + "applications: [{name: nccl, class: trainng}]\n", "there is no class trainng"},
	} {
		_, l := Load(files("m.yaml", x.model), "m.yaml")
		if len(l) != 1 || !strings.Contains(l[0].Msg, x.want) {
			t.Errorf("%s: %s", x.name, lines(l))
		}
	}
}
