package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the schema in another program's hands.
func compiled(t testing.TB, layer bool) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema(layer)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:test", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("urn:test")
}

// structural is what Load says about the structure of one document, or of one that must be whole.
func structural(n *node, layer bool) []string {
	c := &checker{}
	kind := c.document(n)
	if !layer && kind != "" {
		c.complete(schemaOf(kind), n, nil, nil)
	}
	var out []string
	for _, f := range c.found {
		out = append(out, f.String())
	}
	return out
}

// clone is a copy of n that can be changed, with nothing reported yet.
func clone(n *node) *node {
	r := *n
	r.bad = false
	r.pairs = n.with(0)
	for i := range r.keys {
		r.keys[i].kid = clone(r.keys[i].kid)
	}
	r.items = nil
	for _, c := range n.items {
		r.items = append(r.items, clone(c))
	}
	return &r
}

// wholeModels are documents that hold every key, and those of the examples.
func wholeModels(t testing.TB) []*node {
	t.Helper()
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var docs []*node
	for _, file := range append([]string{"testdata/full.yaml"}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{}
		for _, doc := range r.documents(file, 0, text) {
			if doc.get("kind") != nil { // workloads are no models
				docs = append(docs, doc)
			}
		}
		if len(r.found) > 0 {
			t.Fatal(r.found)
		}
	}
	return docs
}

// texts are spellings of every kind of scalar, right and wrong.
func texts() []string {
	return []string{
		"", "0", "1", "3", "8", "63", "64", "100", "65536", "5000000000", "-1", "+1", "010", "0x10", "1_000", "4.0", "1.5", ".5", "1e3", "true", "false", "yes", "no",
		"True", "off", "on", "auto", "rest", "own", "observe", "cnp", "weighted", "drop", "spine", "border", "active", "Fabric", "fabricctl/v1", "high", "rdma",
		"9216B", "1.5KB", "1.5B", "1.50KB", "0800KB", "800kb", "0,8MB", "1KiB", "0.5KiB", "400Gbps", "400GBps", "0.4Tbps", "40m", "2km", "1.5cm", "200ms", "1.5us", "10min",
		"1h", "5m", "20%", "0%", "100%", "101%", "20.5%", "20.00001%", "99.0%", "150%", "1/2", "4", "04", "1/0", "0", "3/04", "a/b", "24-31", "0-63", "5-64", "024-31", "24-",
		"leaf1", "-leaf", "leaf 1", "leaf1:p", "leaf1:p:3", "leaf1:a/b", "Ethernet1/1", "Ethernet 1", strings.Repeat("n", 64), strings.Repeat("n", 65),
		"env:A", "env:", "env:a b", "env:1a", "admin:word", "u:p@host", "https://u:p@host/x", "file:", "exec:a b", "secret", "10.0.0.1", "10.0.0", "256.0.0.1", "10.0.0.1:22", "2001:db8::1", "host.example", "1host", "ho st", "10.0.0.1/31", "10.0.0.1/33",
		"2001:db8::1/64", "2001:db8::1/129", "0000:17:00.0", "0000:17:00", "17:00.0", "15b3:1021", "15B3:1021", "ops@jump:2222", "jump,b", "jump:0", "jump:", "jump:70000", "a@b@c",
		"two\nlines", "tab\there", "\u0085", "sonic/sn5600", "Ethernet%d",
		"1::", "::", "1:2:3", "1::2::3", "::ffff:10.0.0.1", "fe80::1%eth0", "[2001:db8::1]:22", "2001:db8::1:22", "10.0.0.1:22", "u@10.0.0.1:22", "a..b", "a.-b", "1.2.3.a", "1.2.3.4.5",
		strings.Repeat("n", 60) + "." + strings.Repeat("n", 60), "true:1", "x@true",
	}
}

// mutant is one change of one place.
type mutant struct {
	what   string
	change func(n *node)
}

// mutants are the changes that a place is put through.
func mutants(n *node) []mutant {
	var out []mutant
	for _, text := range []string{"", "1", "no such word"} {
		out = append(out, mutant{"text " + text, func(n *node) { *n = node{shape: scalarNode, from: n.from, text: text} }})
	}
	for what, to := range map[string]node{
		"null":          {shape: scalarNode, null: true},
		"empty list":    {shape: listNode},
		"list of null":  {shape: listNode, items: []*node{{shape: scalarNode, null: true, from: n.from}}},
		"list of text":  {shape: listNode, items: []*node{{shape: scalarNode, text: "rdma0", from: n.from}}},
		"empty mapping": {shape: mapNode},
	} {
		out = append(out, mutant{what, func(n *node) { to.from = n.from; *n = to }})
	}
	if n.shape == mapNode {
		for _, key := range []string{"no_such_key", "bad key", "name", "ports"} {
			out = append(out, mutant{"with " + key, func(n *node) {
				if n.kid(key) == nil {
					n.put(pair{key, n.pos(), &node{shape: mapNode, from: n.from}})
				}
			}})
		}
		for _, x := range n.keys {
			out = append(out, mutant{"without " + x.key, func(n *node) { n.pairs = n.without(x.key) }})
		}
	}
	return out
}

// places calls visit with a path to each place of n: functions that find it again in a copy.
func places(n *node, path string, find func(*node) *node, visit func(path string, n *node, find func(*node) *node)) {
	visit(path, n, find)
	for _, x := range n.keys {
		places(x.kid, join(path, x.key), func(root *node) *node { return find(root).kid(x.key) }, visit)
	}
	for i, c := range n.items {
		places(c, fmt.Sprintf("%s[%d]", path, i), func(root *node) *node { return find(root).items[i] }, visit)
	}
}

// TestSchemaAgrees: the schema and Load accept the same documents. Each place of each example is put through everything
// that can be wrong with it, and both judge.
func TestSchemaAgrees(t *testing.T) {
	for _, layer := range []bool{false, true} {
		s := compiled(t, layer)
		judged, refused := 0, 0
		judge := func(path, what string, doc *node) {
			value := Document{root: doc}.JSON()
			ours := structural(doc, layer)
			theirs := s.Validate(value)
			judged++
			if len(ours) > 0 {
				refused++
			}
			if (len(ours) > 0) != (theirs != nil) && !unsayable(ours) {
				t.Errorf("layer %v: %s with %s:\nLoad says %q\nthe schema says %v", layer, path, what, ours, theirs)
			}
		}
		seen := map[string]bool{}
		for _, doc := range wholeModels(t) {
			judge("all of "+doc.pos().String(), "nothing", clone(doc))
			kind := doc.get("kind").text
			places(doc, "", func(n *node) *node { return n }, func(path string, n *node, find func(*node) *node) {
				for _, m := range mutants(n) {
					place := kind + kindOf(path) + m.what
					if seen[place] { // one of many alike
						continue
					}
					seen[place] = true
					d := clone(doc)
					m.change(find(d))
					judge(path, m.what, d)
				}
			})
		}
		t.Logf("layer %v: %d documents, %d refused by both", layer, judged, refused)
	}
}

// kindOf is a path without the names and indices in it, so that places of one kind are tried once.
func kindOf(path string) string {
	var out []string
	for part := range strings.SplitSeq(path, ".") {
		part, _, _ = strings.Cut(part, "[")
		if strings.IndexFunc(part, func(r rune) bool { return '0' <= r && r <= '9' }) >= 0 {
			part = "N"
		}
		out = append(out, part)
	}
	return strings.Join(out, ".")
}

// unsayable reports whether Load refuses for reasons that a schema cannot hold, and for nothing else.
func unsayable(found []string) bool {
	if len(found) == 0 {
		return false
	}
	return !slices.ContainsFunc(found, func(f string) bool { return !strings.Contains(f, "error: duplicate: ") })
}

// scalars are the kinds of scalar that the documents have, each once.
func scalars() map[string]*scalar {
	all := map[string]*scalar{}
	for _, kind := range kinds() {
		walk(schemaOf(kind), "", func(f *field, path, key string) {
			for _, s := range []*scalar{f.scalar, listScalar(f)} {
				if s != nil {
					all[fmt.Sprint(s.noun, s.schema())] = s
				}
			}
		})
	}
	return all
}

// validator compiles the schema of a scalar alone.
func (s *scalar) validator(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(s.schema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:test", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("urn:test")
}

// TestScalarSchemasAgree: the same for every spelling of every kind of scalar.
func TestScalarSchemasAgree(t *testing.T) {
	for _, s := range scalars() {
		v := s.validator(t)
		for _, text := range texts() {
			_, ours := s.parse(text)
			if theirs := v.Validate((&node{text: text}).json()); (ours != nil) != (theirs != nil) {
				t.Errorf("%s %q: Load says %v, the schema %v", s.noun, text, ours, theirs)
			}
		}
	}
}

// TestSchemaCannotSay: what Load refuses and no schema can. Whoever closes one of these gaps takes it from the list.
func TestSchemaCannotSay(t *testing.T) {
	for _, x := range []struct {
		scalar *scalar
		text   string
	}{
		{dscpScalar(), "31-24"},                              // two numbers against each other
		{bytesScalar(), "99999999999GB"},                     // how large a number becomes
		{bytesScalar(), "0.1KiB"},                            // whether it is whole
		{rateScalar(), "99999999999Tbps"},                    //
		{addressScalar(), "1:2:3:4:5::6:7:8:9"},              // how many parts there are
		{prefixScalar(), "1:2:3:4:5::6:7:8:9/64"},            //
		{textScalar(""), strings.Repeat("ü", 600)},           // bytes, not characters
		{addressScalar(), strings.Repeat("abcd.", 60) + "e"}, // how long it is in all
	} {
		_, ours := x.scalar.parse(x.text)
		if theirs := x.scalar.validator(t).Validate((&node{text: x.text}).json()); ours == nil || theirs != nil {
			t.Errorf("%s %.20q: Load says %v, the schema %v", x.scalar.noun, x.text, ours, theirs)
		}
	}
}

// TestSchemaIsWhole: each scalar says how it is written, and each place what it means.
func TestSchemaIsWhole(t *testing.T) {
	if !bytes.Equal(JSONSchema(false), JSONSchema(false)) {
		t.Error("the schema is not the same twice")
	}
	for _, kind := range kinds() {
		walk(schemaOf(kind), "", func(f *field, path, key string) {
			if f.doc == "" {
				t.Errorf("%s %s.%s has no description", kind, path, key)
			}
			for _, s := range []*scalar{f.scalar, listScalar(f)} {
				if s != nil && s.schema == nil {
					t.Errorf("%s %s.%s: a %s has no schema", kind, path, key, s.noun)
				}
			}
		})
	}
}

func listScalar(f *field) *scalar {
	if f.list != nil {
		return f.list.scalar
	}
	if f.dict != nil {
		return f.dict.scalar
	}
	return nil
}
