package model

import (
	"strings"
	"testing"
)

// TestSyntax: what people do to YAML most often is said in words, on the line where it is.
func TestSyntax(t *testing.T) {
	const text = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
topology:
  spines: {count: 2,
           platform: sonic/sn5600}
  links:
    leaf_spine: {speed: 400Gbps}
    host_leaf:  {speed: 400Gbps}
classes:
  - name: training
    dscp: [26]
    priority: 3
    ecn: {kmin: 800KB, kmax: 3200KB}
    bandwidth: 60%
  - {name: cnp, role: cnp}
`
	for _, x := range []struct{ name, old, new, want string }{
		{"deeper", "    priority", "      priority", "13:7: this line is indented by 6, more than the line above, which is complete; indent it by 4"},
		{"less deep", "    priority", "   priority", "13:4: this line is indented by 3, unlike any line that it could belong to; indent it by 0 or 2 or 4"},
		{"an item", "  - {name", " - {name", "16:2: this list element is indented by 1, the one above it by 2; indent it by 2"},
		{"a key below", "    host_leaf", "     host_leaf", "9:6: this line is indented by 5, more than the line above"},
		{"brace", "3200KB}", "3200KB", "14:10: the { that opens here is not closed; close it with }"},
		{"brace over lines", "sn5600}", "sn5600", "5:11: the { that opens here is not closed"},
		{"bracket", "[26]", "[26", "12:11: the [ that opens here is not closed; close it with ]"},
		{"too many", "3200KB}", "3200KB}}", "14:37: the } here closes nothing; remove it"},
		{"quote", "{name: pod1}", "{name: \"pod1}", "3:18: the quote that opens here is not closed"},
		{"tab", "    priority", "\tpriority", "13:1: a tab in the indentation"},
		{"tab after spaces", "    priority", "  \t priority", "13:3: a tab in the indentation"},
		{"no space", "priority: 3", "priority:3", "13:5: a space is missing after priority:"},
		{"no colon", "priority: 3", "priority 3", `13:5: a colon is missing after "priority"; write priority: and then the value`},
		{"no colon at the end", "classes:", "classes", "10:1: a colon is missing at the end of this line; end it with a colon"},
		{"no colon in an element", "  - name: training", "  - name training", `11:5: a colon is missing after "name"; write name: and then the value`},
		{"an element deeper", "  - {name", "    - {name", "16:5: this list element is indented by 4, the one above it by 2; indent it by 2"},
		{"a key where elements begin", "    priority", "  priority", "13:3: this key is indented by 2, where list elements begin, and the keys above it by 4; indent it by 4"},
		{"a dash too many", "    priority", "    - priority", "13:5: this list element is indented by 4, the one above it by 2"},
		{"a dash without a space", "  - name", "  -name", "11:4: a space is missing after the - that begins a list element; write - and a space"},
		{"a key too far left", "    dscp", " dscp", "12:2: this line is indented by 1, unlike any line"},
		{"two colons", "priority: 3", "priority: 3: 4", "13:16: a second colon with a space behind it in one line"},
		{"merge conflict", "classes:", "<<<<<<< HEAD\nclasses:", "10:1: a mark of a merge conflict"},
		{"no-break space", "priority: 3", "priority:\u00a03", "13:14: a no-break space"},
		{"equals", "priority: 3", "priority = 3", `13:5: a colon is missing after "priority"`},
		{"at sign", "[26]", "@26", "12:11: a value cannot begin with @ in YAML; put the value in quotes"},
		{"backtick", "[26]", "`26`", "12:11: a value cannot begin with ` in YAML"},
		{"unquoted star", "platform: sonic/sn5600}", "platform: *sn5600}", "6:22: unknown anchor: a value that begins with * stands for one"},
		{"percent", "bandwidth: 60%", "bandwidth: %60", "15:16: a value cannot begin with % in YAML"},
		{"last line", "{name: cnp, role: cnp}", "{name: cnp", "16:5: the { that opens here is not closed"},
	} {
		_, l := Load(files("m.yaml", strings.Replace(text, x.old, x.new, 1)), "m.yaml")
		got := ""
		for _, f := range l {
			if f.Rule == "yaml" {
				got += strings.TrimPrefix(f.Pos.String(), "m.yaml:") + ": " + f.Msg + "; " + f.Hint
			}
		}
		if !strings.HasPrefix(got, x.want) {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
}

// TestComma: YAML cuts {kmin: 0,8MB} in two, and one finding says so.
func TestComma(t *testing.T) {
	_, l := Load(files("m.yaml", strings.Replace(base, "9216B", "9,216B", 1)), "m.yaml")
	want := `error: units: mtu.fabric: "9,216B" has a comma`
	if len(l) != 1 || !strings.Contains(l[0].String(), want) || l[0].Hint != "write the decimal point: 9.216B" {
		t.Errorf("%s", lines(l))
	}
}

// TestSaidTwice: documents of one layer that say the same have won over nothing.
func TestSaidTwice(t *testing.T) {
	f := load(t, files("d/a.yaml", base, "d/b.yaml", "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\n"), "d")
	if n := len(f.Name.From.Lost); n != 0 {
		t.Errorf("%d values lost", n)
	}
}
