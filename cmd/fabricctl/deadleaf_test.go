package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/picture"
)

// TestDeadLeaves gives every scalar of every document of every example other values that are legal in its place, one at
// a time, and expects that something which a user can see changes: a finding, what explain, graph or profiles print, how a
// device is dialled, or what is rendered. What is read and not rendered yet must be said to be so. A leaf that nothing
// depends on would be silence where its author expects an effect. No leaf is excepted.
func TestDeadLeaves(t *testing.T) {
	t.Setenv("FABRIC_USER", "user")
	t.Setenv("FABRIC_PASSWORD", "password")
	t.Setenv("FABRIC_USES", "another")
	dir := t.TempDir()
	for _, e := range examples.Models() {
		for _, f := range []string{"ca.pem", "known_hosts"} {
			path := filepath.Join(dir, e.Name, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(dir)
	var kinds schemaKinds
	if err := json.Unmarshal(model.JSONSchema(true), &kinds); err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for _, e := range examples.Models() {
		files := fstest.MapFS{}
		for _, name := range e.Layers {
			text, err := fs.ReadFile(examples.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: text}
		}
		before := look(t, files, e.Layers)
		for _, name := range e.Layers {
			for _, l := range scalars(t, kinds, files[name].Data) {
				leaves++
				before.dies(t, files, name, l)
			}
		}
	}
	t.Logf("%d leaves", leaves)
	if leaves < 500 {
		t.Errorf("only %d leaves were found", leaves)
	}
}

// dies reports a leaf that can be changed without any effect.
func (before *sight) dies(t *testing.T, files fstest.MapFS, name string, l scalarLeaf) {
	t.Helper()
	others := l.others()
	if len(others) == 0 { // a place for one word has no other legal value
		if l.schema.words() != 1 {
			t.Errorf("%s:%d: %s: no other legal value was found for %q", name, l.node.Line, l.path, l.node.Value)
		}
		return
	}
	for _, other := range others {
		changed := maps.Clone(files)
		changed[name] = &fstest.MapFile{Data: l.replaced(files[name].Data, other)}
		if after := look(t, changed, before.layers); after.differs(t, before) {
			return
		}
	}
	t.Errorf("%s:%d: %s: nothing changes when %q becomes %q", name, l.node.Line, l.path, l.node.Value, others)
}

// sight is what a user can see of a model. What takes long is looked at only when it is asked for.
type sight struct {
	layers []string
	fabric *model.Fabric
	net    *intent.Net
	found  string
	seen   map[string]string
}

func look(t *testing.T, files fs.FS, layers []string) *sight {
	t.Helper()
	f, l := model.Load(files, layers...)
	s := &sight{layers: layers, fabric: f, seen: map[string]string{}}
	if !l.HasErrors() {
		net, more := intent.Resolve(f)
		s.net = net
		l = append(append(l, more...), lint.Check(net, f)...)
		l = f.Acknowledge(l)
	}
	for _, x := range l {
		s.found += x.String() + " " + x.Ack + "\n"
	}
	s.found = lineOnly.ReplaceAllString(s.found, "$1")
	return s
}

// lineOnly cuts the column from a position: it moves when what stands before it on the line has another length.
var lineOnly = regexp.MustCompile(`(\.yaml:\d+):\d+`)

// differs reports whether two models look different, what is quick first.
func (s *sight) differs(t *testing.T, other *sight) bool {
	t.Helper()
	if s.found != other.found || (s.net == nil) != (other.net == nil) {
		return true
	}
	if s.net == nil {
		return false
	}
	for _, view := range []func(*testing.T, *sight) string{viewDial, viewExplain, viewGraph, viewProfiles, viewRender} {
		key := fmt.Sprintf("%p", view)
		for _, x := range []*sight{s, other} {
			if _, ok := x.seen[key]; !ok {
				x.seen[key] = lineOnly.ReplaceAllString(view(t, x), "$1")
			}
		}
		if s.seen[key] != other.seen[key] {
			return true
		}
	}
	return false
}

func viewExplain(_ *testing.T, s *sight) string {
	var b bytes.Buffer
	for i := range s.net.Devices {
		d := &s.net.Devices[i]
		printExplain(&b, newExplainer(s.fabric, s.net, -1).device(d, d.Ports))
	}
	return b.String()
}

func viewGraph(_ *testing.T, s *sight) string {
	var b bytes.Buffer
	g := picture.Of(s.net)
	printGraph(&b, g)
	printLinks(&b, g, true)
	return b.String() + picture.Dot(s.net, picture.Sheet{})
}

// viewDial is how each device is reached, and what it must call itself.
func viewDial(t *testing.T, s *sight) string {
	t.Helper()
	var b strings.Builder
	d := (&app{sys: quiet()}).dialler(s.fabric, s.net)
	for i := range s.net.Devices {
		dev := &s.net.Devices[i]
		e := s.fabric.Endpoints[dev.Name]
		fmt.Fprintf(&b, "%s %s %s %v\n", dev.Name, dev.Serial, dev.Hostname, e.Lab.V)
		if dev.OS() == "sonic" {
			c, err := d.gnmiConfig(context.Background(), e)
			c.Known, c.Log = nil, nil
			fmt.Fprintf(&b, "%+v %s %s %v\n", c, c.Password.Reveal(), c.TLS.CA, err)
			continue
		}
		c, err := d.ssh(context.Background(), e)
		c.Log = nil
		fmt.Fprintf(&b, "%+v %s %v\n", c, c.Password.Reveal(), err)
	}
	return b.String()
}

// viewProfiles is what the model itself says of hardware.
func viewProfiles(t *testing.T, s *sight) string {
	t.Helper()
	text, err := json.Marshal(listed(s.fabric.Catalog, "", "", nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func viewRender(t *testing.T, s *sight) string {
	t.Helper()
	all, err := renderAll(s.net, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range all {
		b.WriteString(r.Device + "\n" + r.Text)
	}
	for _, f := range renderFindings(s.net, diag.List{}, inexpressible(s.net)) {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// schemaKinds is the schema of each kind of document.
type schemaKinds struct {
	Defs map[string]*jsonSchema `json:"$defs"`
}

// jsonSchema is as much of a JSON Schema as ours uses.
type jsonSchema struct {
	AnyOf             []*jsonSchema          `json:"anyOf"`
	Properties        map[string]*jsonSchema `json:"properties"`
	PatternProperties map[string]*jsonSchema `json:"patternProperties"`
	Items             *jsonSchema            `json:"items"`
	Enum              []any                  `json:"enum"`
	Const             any                    `json:"const"`
	Pattern           string                 `json:"pattern"`
	Minimum, Maximum  *int
	Type              any `json:"type"`
}

// shapes are the alternatives of a place, or the place itself.
func (s *jsonSchema) shapes() []*jsonSchema {
	if len(s.AnyOf) > 0 {
		return s.AnyOf
	}
	return []*jsonSchema{s}
}

// words is how many words are legal; 0 when it is not about words alone.
func (s *jsonSchema) words() int {
	n := 0
	for _, x := range s.shapes() {
		switch {
		case x.Const != nil:
			n++
		case x.Enum != nil:
			n += len(x.Enum)
		case x.Pattern != "" || x.Minimum != nil || x.Type == "boolean":
			return 0
		}
	}
	return n
}

// scalarLeaf is one scalar of a document, its path without names, and what is legal there.
type scalarLeaf struct {
	node   *yaml.Node
	path   string
	schema *jsonSchema
}

// scalars lists the scalars of a file.
func scalars(t *testing.T, kinds schemaKinds, text []byte) []scalarLeaf {
	t.Helper()
	var out []scalarLeaf
	var visit func(n *yaml.Node, s *jsonSchema, path string)
	visit = func(n *yaml.Node, s *jsonSchema, path string) {
		switch n.Kind {
		case yaml.ScalarNode:
			out = append(out, scalarLeaf{n, path, s})
		case yaml.SequenceNode:
			for _, x := range s.shapes() {
				for _, e := range n.Content {
					if x.Items != nil {
						visit(e, x.Items, path)
					}
				}
			}
		case yaml.MappingNode:
			for i := 0; i < len(n.Content); i += 2 {
				key, found := n.Content[i].Value, false
				for _, x := range s.shapes() {
					if p := x.Properties[key]; p != nil {
						visit(n.Content[i+1], p, strings.TrimPrefix(path+"."+key, "."))
						found = true
						break
					}
					for _, p := range x.PatternProperties {
						visit(n.Content[i+1], p, path)
						found = true
					}
				}
				if !found {
					t.Fatalf("line %d: the schema has no %s under %s", n.Content[i].Line, key, path)
				}
			}
		default:
			t.Fatalf("line %d: neither scalar, list nor mapping", n.Line)
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); err != nil {
			return out
		}
		kind := ""
		for i := 0; i < len(doc.Content[0].Content); i += 2 {
			if doc.Content[0].Content[i].Value == "kind" {
				kind = doc.Content[0].Content[i+1].Value
			}
		}
		visit(doc.Content[0], kinds.Defs[kind], "")
	}
}

// replaced is text with the leaf's scalar written as other.
func (l scalarLeaf) replaced(text []byte, other string) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	line := string(lines[l.node.Line-1])
	at := len(string([]rune(line)[:l.node.Column-1]))
	old := l.node.Value
	if l.node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		old = line[at : at+1+strings.IndexByte(line[at+1:], line[at])+1]
		other = strconv.Quote(other)
	}
	lines = slices.Clone(lines)
	lines[l.node.Line-1] = []byte(line[:at] + other + line[at+len(old):])
	return bytes.Join(lines, nil)
}

// others are other values that are legal where l stands, a few.
func (l scalarLeaf) others() []string {
	const few = 4
	var out []string
	add := func(s string) {
		if s != l.node.Value && len(out) < few && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, s := range l.schema.shapes() {
		for _, w := range s.Enum {
			add(fmt.Sprint(w))
		}
		if s.Minimum != nil && s.Maximum != nil {
			if v, err := strconv.Atoi(l.node.Value); err == nil {
				for _, n := range []int{v + 1, v - 1, *s.Minimum, *s.Maximum} {
					if n >= *s.Minimum && n <= *s.Maximum {
						add(strconv.Itoa(n))
					}
				}
			}
		}
		if s.Type == "boolean" {
			add("true")
			add("false")
		}
		if s.Pattern != "" {
			legal := regexp.MustCompile(s.Pattern)
			for _, c := range variants(l.node.Value) {
				if legal.MatchString(c) {
					add(c)
				}
			}
		}
	}
	return out
}

// variants are texts like s: with one digit changed, from the first to the last, and with a letter changed or added.
func variants(s string) []string {
	var out []string
	for i := range len(s) {
		if '0' <= s[i] && s[i] <= '9' {
			for _, d := range []byte{s[i] + 1, s[i] - 1} {
				if '0' <= d && d <= '9' {
					out = append(out, s[:i]+string(d)+s[i+1:])
				}
			}
		}
	}
	if strings.HasSuffix(s, "FABRIC_USER") || strings.HasSuffix(s, "FABRIC_PASSWORD") {
		out = append(out, "env:FABRIC_USES")
	}
	if s == "auto" {
		out = append(out, "100KB")
	}
	if n := len(s); n > 0 {
		out = append(out, s+"x", s+"2", s[:n-1])
	}
	return out
}
