package model

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// deepAliases is a small text in which nearly a million values are nested too deeply.
func deepAliases() string {
	ten := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", 10), ",") }
	b := "kind: Fabric\na0: &a0 " + strings.Repeat("[", 29) + ten("[x,[x,[x]]]") + strings.Repeat("]", 29) + "\n"
	for i := 1; i < 6; i++ {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, ten(fmt.Sprintf("*a%d", i-1)))
	}
	return b
}

// bomb is the classic alias bomb: each level holds the one before ten times.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("apiVersion: fabricctl/v1\nkind: Fabric\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

// manyAnchors are keys with an anchor each.
func manyAnchors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d: &x%d 1\n", i, i)
	}
	return b.String()
}

// mergeBomb is an alias bomb by way of merge keys.
func mergeBomb(levels int) string {
	var b strings.Builder
	b.WriteString("apiVersion: fabricctl/v1\nkind: Fabric\na0: &a0 {x: 1}\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d {<<: [%s], y%d: 1}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","), i)
	}
	return b.String()
}

// numbered is a line repeated with running numbers.
func numbered(line string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// TestHostile: input of any kind gives findings that say what is wrong, and never takes the program down.
func TestHostile(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{"alias bomb", bomb(9), "more than 1000000 values, anchors expanded"},
		{"aliases of what is too deep", deepAliases(), "nested deeper than 32 levels"},
		{"merge bomb", mergeBomb(9), "more than 1000000 values, anchors expanded"},
		{"merge of itself", base + "overrides: &o {<<: *o}\n", "nested deeper than 32 levels"},
		{"keys twice", base + "mtu: {fabric: 1500B}\n", "m.yaml:23:1: error: duplicate-key: mtu is written twice here\n    m.yaml:11:1: first here"},
		{"keys twice in one mapping", with(t, "priority: 6,", "priority: 6, priority: 5,"), "duplicate-key: priority is written twice here"},
		{"octal", with(t, "priority: 6", "priority: 06"), `"06" starts with a zero, which some YAML readers take as octal` + "\n    hint: write 6"},
		{"octal code point", with(t, "[48]", "[010]"), `"010" starts with a zero`},
		{"YAML 1.2 octal", with(t, "[48]", "[0o60]"), `"0o60" is not decimal` + "\n    hint: write 48"},
		{"hexadecimal", with(t, "[48]", "[0x1F]"), `"0x1F" is not decimal` + "\n    hint: write 31"},
		{"binary", with(t, "priority: 6", "priority: 0b110"), `"0b110" is not decimal` + "\n    hint: write 6"},
		{"sexagesimal", with(t, "priority: 6", "priority: 03:04"), `"03:04" is not a whole number`},
		{"sexagesimal time", with(t, "poll: 100ms", "poll: 01:30"), `units: pfc_watchdog.poll: "01:30"`},
		{"underscores", with(t, "count: 2", "count: 1_000"), `"1_000" is not a whole number`},
		{"exponent", with(t, "count: 2", "count: 1e3"), `"1e3" is not a whole number`},
		{"float", with(t, "count: 2", "count: 2.0"), `"2.0" is not a whole number`},
		{"infinity", with(t, "count: 2", "count: .inf"), `".inf" is not a whole number`},
		{"negative", with(t, "count: 2", "count: -1"), `"-1" is not a whole number`},
		{"huge number", with(t, "count: 2", "count: 99999999999999999999999"), "is too large"},
		{"yes", with(t, "lossless: true", "lossless: yes"), `"yes" is not true or false` + "\n    hint: write true"},
		{"on", with(t, "lossless: true", "lossless: on"), `"on" is not true or false` + "\n    hint: write true"},
		{"No", with(t, "lossless: true", "lossless: No"), `"No" is not true or false` + "\n    hint: write false"},
		{"True", with(t, "lossless: true", "lossless: True"), `"True" is not true or false` + "\n    hint: write true"},
		{"a date for a name", with(t, "{name: t}", "{name: 2001-12-14T21:59:43.10-05:00}"), `is not a name`},
		{"null word", with(t, "priority: 6", "priority: ~"), "classes.cnp.priority has no value"},
		{"tab in a flow", with(t, "{fabric: 9216B,", "{\tfabric: 9216B,\tx: 1,"), `unknown key "x" under mtu`},
		{"old Mac line ends", strings.ReplaceAll(base, "\n", "\r") + "x: [", "m.yaml:"},
		{"NUL", base + "nccl: {class: \"a\x00b\"}\n", "not readable as YAML: control characters are not allowed"},
		{"not UTF-8 in a later document", base + "---\nkind: Inventory\nmetadata: {name: \xc3\x28}\n", "m.yaml:25:1: error: yaml: the file is not UTF-8 text"},
		{"overlong UTF-8", "kind: \xc0\xaf\n", "not UTF-8 text"},
		{"BOM in the middle", base + "---\n\ufeffkind: Fabric\n", "m.yaml:"},
		{"one long scalar", base + "x: " + strings.Repeat("y", 7<<20) + "\n", `unknown key "x" at the top level`},
		{"one long key", base + strings.Repeat("k", 7<<20) + ": 1\n", "m.yaml:23:1: error: yaml: not readable as YAML"},
		{"10 MB", base + strings.Repeat("# 10 MB of comments, which say nothing\n", 260_000), "the file is larger than 8 MiB; split it"},
		{"many anchors", base + manyAnchors(100_000), "more findings are not shown"},
		{"several Fabrics in one layer", base + "---\n" + strings.Replace(base, "9216B", "9000B", 1), "conflict: mtu.fabric is set twice in one layer"},
		{"a document end and more", base + "...\nkind: Fabric\n", "did not find expected <document start>"},
		{"alias of itself", "a: &a [*a]\nkind: Fabric\n", "nested deeper than 32 levels"},
		{"deep flow", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 32 levels"},
		{"very deep flow", strings.Repeat("[", 200_000), "the [ that opens here is not closed"},
		{"deep block", strings.Repeat("- ", 5000) + "x", "nested deeper than 32 levels"},
		{"not UTF-8", "kind: Fabric\nname: \xff\xfe\n", "m.yaml:2:1: error: yaml: the file is not UTF-8 text"},
		{"UTF-16", "\xff\xfek\x00i\x00", "not UTF-8 text"},
		{"BOM", "\ufeff[1]", "m.yaml:1:1: error: document"},
		{"control character", "kind: \x01\n", "not readable as YAML: control characters are not allowed"},
		{"large", strings.Repeat("#", maxFile+1), "the file is larger than 8 MiB"},
		{"empty", "", "no layer holds a Fabric document"},
		{"comments only", "# nothing\n---\n# here\n", "no layer holds a Fabric document"},
		{"a list", "[1, 2]", "a document must be a mapping, not a list"},
		{"key is a mapping", "{a: b}: c\nkind: Fabric\n", "a key must be a single word"},
		{"tag", "kind: !!binary Fabric\n", "the tag !!binary is not used here"},
		{"unknown anchor", "kind: *nothing\n", "unknown anchor"},
		{"merge of a scalar", "kind: Fabric\n<<: 5\n", "<< takes a mapping"},
		{"tab", "kind: Fabric\nmtu:\n\thost: 1500B\n", "m.yaml:3:1: error: yaml: a tab in the indentation"},
		{"unclosed", "kind: [Fabric\n", "m.yaml:1:7: error: yaml: the [ that opens here is not closed"},
		{"many documents", strings.Repeat("apiVersion: fabricctl/v1\nkind: Inventory\ndevices: {}\n---\n", 10_000), "no layer holds a Fabric document"},
		{"many devices", numbered("apiVersion: fabricctl/v1\nkind: Inventory\ndevices: {d%d: {}}\n---\n", 10_000), "no layer holds a Fabric document"},
		{"many broken documents", strings.Repeat("---\na: [\n", 30_000), "more findings are not shown"},
		{"too many documents", strings.Repeat("a\n---\n", 1_390_000), "error: limits: more than 20000 documents; the rest is not read"},
		{"a long flow list", "a: [" + strings.Repeat("a,", 4_000_000) + "]\n", "m.yaml:1:1: error: limits: a document of more than 2000000 values; the rest is not read"},
		{"lists in lists", strings.Repeat("- - - - -\n", 800_000), "a document of more than 2000000 values"},
		{"many keys twice", strings.Repeat("a: 1\n", 900_000), "error: limits: more than 10000 findings; the rest is not read"},
		{"long broken document", base + numbered("x%d: {a: [1]}\n", 4000) + "y: {\n" + numbered("z%d: {a: [1]}\n", 4000), "the { that opens here is not closed"},
		{"null kind", "kind:\n", `unknown kind ""`},
		{"long name", base + "nccl: {class: " + strings.Repeat("a", 5000) + "}\n", "is not a name"},
		{"many unknown keys", "kind: Fabric\n" + numbered("key%d: 1\n", 300_000), "more findings are not shown"},
		{"foreign inventory", base + inventory(numbered("  other%d: {address: 10.0.0.1}\n", 50_000)), "more findings are not shown"},
		{"many classes", base[:strings.Index(base, "classes:")] + "classes:\n" + numbered("- {name: c%d, dscp: [1], priority: 1}\n", 50_000), "50000 classes, but there are 8 priorities"},
		{"command in a pattern", base + "---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: sonic/x}\nplatform: {iface: \"E%d; reload\", source: me, confidence: low}\n", "is not an interface name"},
		{"escape sequence", base + "acknowledge: [{rule: x, reason: \"\\e[31mred\"}]\n", "holds a control character"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, l := Load(files("m.yaml", x.text), "m.yaml")
			runtime.ReadMemStats(&after)
			if got := lines(l); !strings.Contains(got, x.want) || len(got) > 200_000 {
				t.Errorf("got %d bytes, want %q:\n%.2000s", len(got), x.want, got)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1500 {
				t.Errorf("%d MiB allocated", used)
			}
		})
	}
}

// TestAccepted: what is unusual but right loads like the plain form.
func TestAccepted(t *testing.T) {
	want := load(t, files("m.yaml", base), "m.yaml").Digest()
	for name, text := range map[string]string{
		"BOM":        "\ufeff" + base,
		"CRLF":       strings.ReplaceAll(base, "\n", "\r\n"),
		"directives": "%YAML 1.2\n---\n" + base + "...\n",
		"JSON-like":  strings.Replace(base, "mtu: {fabric: 9216B, host: 9000B}", `"mtu": {"fabric": "9216B", "host": "9000B"}`, 1),
		"anchors":    strings.Replace(strings.Replace(base, "leaf_spine: {", "leaf_spine: &l {", 1), "host_leaf: {speed: 400Gbps}", "host_leaf: *l", 1),
		"merge keys": strings.Replace(strings.Replace(base, "leaf_spine: {", "leaf_spine: &l {", 1), "host_leaf: {speed: 400Gbps}", "host_leaf: {<<: *l}", 1),
	} {
		f, l := Load(files("m.yaml", text), "m.yaml")
		if s := lines(l); s != "" || f.Digest() != want {
			t.Errorf("%s: findings or another digest\n%s", name, s)
		}
	}
}

// TestSecrets: what stands where a secret belongs is never repeated, also in documents that are wrong in other ways.
func TestSecrets(t *testing.T) {
	const canary = "c4n4ry-s3cret"
	for _, text := range []string{
		"gnmi: {password: " + canary + "}", "ssh: {key: \"" + canary + "\"}", "gnmi: {tls: {key: " + canary + "}}",
		"ssh: {password: [" + canary + "]}", "ssh: {password: {value: " + canary + "}}", "gnmi: {password: 'env:'}\n    x: " + canary,
		"ssh: {passwd: " + canary + "}", "ssh:\n      username: a\n      password:" + canary, "ssh: {password: '" + canary + "}",
	} {
		_, l := Load(files("m.yaml", base+inventory("  leaf1:\n    "+text+"\n")), "m.yaml")
		var all strings.Builder
		for _, f := range l {
			all.WriteString(f.String() + "\n")
		}
		if strings.Contains(all.String(), canary) || !l.HasErrors() {
			t.Errorf("%s:\n%s", text, all.String())
		}
	}
}

// FuzzLoad: no input panics, every finding has a rule and a message, and a clean model stays clean through With.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base), []byte("apiVersion: fabricctl/v1\nkind: Fabric\nclasses: [{name: training, ecn: {kmin: 1KB}}]\n"))
	f.Add([]byte(base+inventory("  host1: {nics: [{pci: \"0000:17:00.0\", port: \"leaf1:downlink-1\"}]}\n")), []byte(bomb(3)))
	f.Add([]byte(base+"overrides: {leaf: {devices: {leaf1: {ports: {uplink-1: {mtu: {fabric: 1500B}}}}}}}\n"), []byte("\ufeff---\n\t"))
	f.Add([]byte("kind: Profile\nmetadata: {name: sonic/x}\nplatform: {iface: E%d}\n"), []byte("<<: &a {b: *a}"))
	f.Add([]byte("kind: Profile\nmetadata: {name: x}\nnic: {rocev2: {value: true}, speeds: [], pci: {value: [a]}}\n"), []byte("kind: Profile\nmetadata: {name: x}\nasic: {traps: [a, b]}\nnic: []\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fsys := fstest.MapFS{"d/a.yaml": &fstest.MapFile{Data: a}, "b.yml": &fstest.MapFile{Data: b}}
		m, l := Load(fsys, "d", "b.yml")
		for _, x := range l {
			if x.Rule == "" || x.Msg == "" || x.Pos.Line < 0 {
				t.Fatalf("a finding without rule, message or place: %+v", x)
			}
		}
		digest := m.Digest()
		if l.HasErrors() {
			return
		}
		g, more := m.With(nil)
		if more.HasErrors() || g.Digest() != digest {
			t.Fatalf("an empty patch changed the model:\n%s", lines(more))
		}
	})
}
