package sshcli

import (
	"testing"

	"github.com/fabricctl/fabricctl/render"
)

// Every row has a dialect that can be typed, and everything that this package calls.
func TestFlows(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range flows() {
		d := render.ByOS(f.os)
		if d == nil || d.Lines == nil {
			t.Errorf("%s: no dialect with lines", f.os)
		}
		if seen[f.os] {
			t.Errorf("%s: twice", f.os)
		}
		seen[f.os] = true
		for what, missing := range map[string]bool{
			"login": f.login == nil || f.login.NumSubexp() != 1, "prompts": f.prompts == nil, "privileged": f.privileged == nil,
			"question": f.question == nil, "refused": f.refused == nil, "running": f.running == "", "facts": len(f.facts) == 0,
			"begin": f.begin == nil, "inside": f.inside == nil, "diff": f.diff == "", "commit": f.commit == nil, "abort": len(f.abort) == 0,
			"list": f.list == "", "sessions": f.sessions == nil, "confirm": f.confirm == nil, "cancel": f.cancel == nil, "forget": f.forget == nil,
			"save": f.save == "", "saved": f.saved == "",
		} {
			if missing {
				t.Errorf("%s: %s is missing", f.os, what)
			}
		}
		if !f.caps.Confirm || !f.caps.Atomic {
			t.Errorf("%s: Device confirms and drops sessions, which this system cannot", f.os)
		}
	}
}
