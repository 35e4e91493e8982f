package main

import (
	"encoding/json"
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// TestThousandPorts: 1,000 ports of 20 switches change in the same way but for three. That is four blocks, which a
// reviewer can read, and a comment that every forge takes.
func TestThousandPorts(t *testing.T) {
	var m strings.Builder
	m.WriteString("apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: thousand}\ntopology:\n  devices:\n")
	for d := range 20 {
		fmt.Fprintf(&m, "    - name: leaf%d\n      role: leaf\n      platform: sonic/sn5600\n      ports:\n", d+1)
		for p := range 50 {
			fmt.Fprintf(&m, "        - {name: port-%d, iface: Ethernet%d}\n", p+1, 8*p)
		}
	}
	m.WriteString(trio[strings.Index(trio, "mtu:"):])
	b := newBench(t, m.String())
	for i, at := range []struct{ device, port string }{{"leaf3", "Ethernet8"}, {"leaf7", "Ethernet80"}, {"leaf20", "Ethernet392"}} {
		b.lab.Box(at.device).(*sonic.Switch).Edit(func(db sonic.DB) { db.Set("PORT", at.port, "mtu", fmt.Sprint(1500+i)) })
	}
	file := filepath.Join(b.dir, "plan.json")
	text := b.must(t, exitOK, "plan", "--out", file).out
	for _, want := range []string{
		`(?m)^1\. 997 ports on 20 devices, flap$`, `(?m)^   on leaf3: Ethernet\[0,16-392 by 8\] \(49 ports\)$`,
		`(?m)^   on leaf20: Ethernet\[0-384 by 8\] \(49 ports\)$`,
		`(?m)^2\. 1 port on 1 device, flap\n   on leaf3: Ethernet8\n   as 1, but\n     mtu +1500B → 9214B .*\n3\. `, `(?m)^   on leaf\[1-2,4-6,8-19\] `,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^\d+\. `).FindAllString(text, -1)); n > 4 {
		t.Errorf("%d blocks", n)
	}
	tooWide(t, text)
	var v show.PlanJSON
	if err := json.Unmarshal([]byte(b.call(t, "plan", "show", file, "-o", "json").out), &v); err != nil || len(v.Groups) > 4 || v.Groups[0].Ports != 997 {
		t.Errorf("%d groups in JSON, %v", len(v.Groups), err)
	}
	md := b.call(t, "plan", "show", file, "-o", "markdown").out
	if n := strings.Count(md, "<details>"); n > 4 || len(md) > 60_000 || strings.Contains(md, "no room") {
		t.Errorf("%d blocks in %d bytes of markdown", n, len(md))
	}
	t.Logf("%d bytes of markdown, %d of text", len(md), len(text))
}

// TestManyDevices: a plan of 200 switches with 64 ports each, of which a few differ, fits a screen or two.
func TestManyDevices(t *testing.T) {
	move := func(name, after string) rollout.BehaviourValue {
		return rollout.BehaviourValue{Difference: intent.Difference{Field: intent.Field(name), Label: name, Before: "1", After: after}, From: diag.Pos{File: "f.yaml", Line: 1, Col: 1}}
	}
	p := &rollout.Plan{Fabric: "pod1"}
	for i := range 200 {
		d := rollout.DevicePlan{Name: fmt.Sprintf("leaf%d", i+1), Platform: "sonic/sn5600", Mode: rollout.Write, Ops: rollout.Ops{Set: 256}, Steps: []rollout.Step{{}}}
		var same, other []string
		for port := range 64 {
			name := fmt.Sprintf("Ethernet%d", 8*port)
			if i%40 == 7 && port == i%64 {
				other = append(other, name)
			} else {
				same = append(same, name)
			}
		}
		d.Behaviour = []rollout.Behaviour{{Ports: same, Changes: []rollout.BehaviourValue{move("kmin", "2"), move("kmax", "2"), move("pmax", "2"), move("mtu", "2")}}}
		if other != nil {
			d.Behaviour = append(d.Behaviour, rollout.Behaviour{Ports: other, Changes: []rollout.BehaviourValue{move("kmin", "3"), move("kmax", "2"), move("pmax", "2"), move("mtu", "2")}})
		}
		d.Risks = []render.Risk{{Class: render.Flap, Ports: append(same, other...), Why: "the updater takes the port down"}}
		d.Facts.Notes = []string{"a note"}
		p.Devices = append(p.Devices, d)
	}
	var b strings.Builder
	if err := show.Plan(&show.Screen{To: &b}, p, false); err != nil {
		t.Fatal(err)
	}
	want := `leaf[1-200] (200 devices, sonic/sn5600): 256 settings in 1 step
1. 12795 ports on 200 devices, flap
   on leaf[1-7,9-47,49-87,89-127,129-167,169-200] (195 devices): Ethernet[0-504 by 8] (64 ports)
   on leaf8: Ethernet[0-48 by 8,64-504 by 8] (63 ports)
`
	if !strings.HasPrefix(b.String(), want) || strings.Count(b.String(), "\n") > 45 {
		t.Errorf("%s", &b)
	}
	tooWide(t, b.String())
}

// tooWide reports lines of prose that a terminal of 100 columns would break. Lines of values end in a position, which
// is as long as the user's path.
func tooWide(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > show.Columns && !strings.Contains(line, " → ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// hostilePlan is a plan in which everything that a device or a model can say is an attack on the page that shows it.
func hostilePlan(devices int, text string) *rollout.Plan {
	p := &rollout.Plan{Schema: rollout.PlanSchema, Fabric: "pod1", Finds: diag.List{{Rule: "mtu-path", Severity: diag.Warning, At: text, Msg: text, Hint: text}}}
	for i := range devices {
		word := fmt.Sprintf("%s %d", text, i)
		p.Devices = append(p.Devices, rollout.DevicePlan{
			Name: fmt.Sprintf("leaf%d", i+1), Platform: "sonic/sn5600", Mode: rollout.Write, Ops: rollout.Ops{Set: 1},
			Facts: render.Facts{Notes: []string{word}}, Steps: []rollout.Step{{Why: word}},
			Risks:    []render.Risk{{Class: render.Flap, Ports: []string{word}, Why: word}},
			Findings: diag.List{{Rule: "owner", Severity: diag.Error, At: "leaf", Msg: word}},
			Behaviour: []rollout.Behaviour{{Ports: []string{word}, Changes: []rollout.BehaviourValue{{
				Difference: intent.Difference{Field: "mtu", Label: "mtu", Before: word, After: word + "!"}, From: diag.Pos{File: word, Line: 1, Col: 1},
			}}}},
			Error: map[bool]string{true: word}[i%5 == 4],
		})
	}
	return p
}

// TestMarkdownHoldsNoMarkup: whatever is said, the page keeps its own structure and nothing else has any.
func TestMarkdownHoldsNoMarkup(t *testing.T) {
	attack := "</details>\n```\n# <script>alert(1)</script> [x](http://evil) ![i](www.evil) | @everyone #12 **b** _i_ `c` ~~s~~ $x$ &lt; \x1b[31m \u202e"
	md := show.Markdown(hostilePlan(7, attack), "plan", show.DefaultComment)
	for _, tag := range []string{"</details>", "<details>", "<summary>", "</summary>"} {
		if n := strings.Count(md, tag); n != 7 {
			t.Errorf("%s stands %d times, for 7 blocks", tag, n)
		}
	}
	for line := range strings.Lines(md) {
		for _, tag := range []string{"<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<br>", "**not written:**"} {
			line = strings.ReplaceAll(line, tag, "")
		}
		bare := line
		switch {
		case strings.HasPrefix(line, "|"):
			bare = strings.ReplaceAll(line, "|", "")
		case strings.HasPrefix(line, "### "):
			bare = line[4:]
		}
		bare = regexp.MustCompile(`&#\d+;`).ReplaceAllString(bare, "")
		if strings.ContainsAny(bare, "<>[]`*_|@#!~$&\\\x1b\u202e") || strings.Contains(bare, "://") || strings.Contains(bare, "www.") {
			t.Errorf("markup in %q", line)
		}
	}
}

// TestMarkdownText: a reader of the page sees what was said.
func TestMarkdownText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab1.:/@#<>&|*_`[]()!~$\\'\" -=+wé"))).Draw(t, "text")
		if got := strings.ReplaceAll(html.UnescapeString(show.MdText(s)), "\u200b", ""); got != s {
			t.Fatalf("%q reads %q", s, got)
		}
	})
}

// TestMarkdownLimit: at any limit the comment is within it, its blocks are whole, and what is left out is counted.
func TestMarkdownLimit(t *testing.T) {
	p := hostilePlan(300, strings.Repeat("a long sentence of a device, ", 5))
	for limit := show.SmallestComment; limit < 400_000; limit += limit / 9 {
		md := show.Markdown(p, "plan", limit)
		if len(md) > limit {
			t.Errorf("limit %d: %d bytes", limit, len(md))
		}
		shown := strings.Count(md, "<details>")
		if shown != strings.Count(md, "</details>") || strings.Count(md, "<code>") != strings.Count(md, "</code>") {
			t.Errorf("limit %d: a block is cut", limit)
		}
		if shown < 300 && !strings.Contains(md, fmt.Sprintf("%d more changes", 300-shown)) {
			t.Errorf("limit %d: %d blocks are shown, and the rest is not counted: %s", limit, shown, md[len(md)-200:])
		}
	}
}
