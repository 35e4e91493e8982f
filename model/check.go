package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// checker compares a document with its schema. What it reports it marks as bad, so that one mistake is one finding.
type checker struct {
	found  diag.List
	kind   string // of the document
	schema *field // of the kind
}

// maxHints bounds the findings that are looked into for a hint; a document with more of them is not YAML of ours.
const maxHints = 100

// document checks one document and returns its kind, or "" when that is not known.
func (c *checker) document(n *node) string {
	if n.bad {
		return ""
	}
	if n.shape != mapNode {
		c.found.Errorf("document", n.pos(), "start with apiVersion, kind and metadata", "a document must be a mapping, not %s", n.shape)
		return ""
	}
	kind := n.kid("kind")
	if kind == nil {
		c.found.Errorf("document", n.pos(), "add kind: Fabric, kind: Inventory or kind: Profile", "the document has no kind")
		return ""
	}
	if kind.shape != scalarNode || !slices.Contains(kinds(), kind.text) {
		c.found.Errorf("document", kind.pos(), didYouMean(kind.text, kinds()), "unknown kind %q", clip(kind.text))
		return ""
	}
	if n.kid("apiVersion") == nil {
		c.found.Errorf("document", n.pos(), "add apiVersion: "+APIVersion, "the document has no apiVersion")
	}
	c.kind = kind.text
	c.schema = schemaOf(c.kind)
	c.check(c.schema, n, nil)
	if c.over() {
		c.found.Errorf("limits", n.pos(), "", "more than %d findings; the document is not read", maxFound)
		return ""
	}
	return c.kind
}

// over reports whether so much was found that nobody needs more of it. The document is then not to be used.
func (c *checker) over() bool { return len(c.found) >= maxFound }

// check compares one place with its field.
func (c *checker) check(f *field, n *node, path *trail) {
	if n.bad || c.over() {
		return
	}
	fail := func(rule, hint, format string, a ...any) {
		n.bad = true
		c.found.Errorf(rule, n.pos(), hint, format, a...)
	}
	switch {
	case n.null && n.shape == scalarNode:
		hint := "give it " + f.wants() + ", or remove the line"
		if f.example != "" {
			hint = fmt.Sprintf("write %s: %s, or remove the line", f.key, f.example)
		}
		fail("wrong-shape", hint, "%s has no value", path)
	case n.shape == scalarNode && f.scalar != nil:
		if _, p := f.scalar.parse(n.text); p != nil {
			subject := fmt.Sprintf("%s: %q", path, clip(n.text))
			if f.scalar.secret || p.rule == "literal-secret" {
				subject = path.String()
			}
			hint := p.hint
			if word, enum := strings.CutPrefix(f.scalar.noun, "one of "); enum && f.kids != nil && f.example != "" {
				hint = fmt.Sprintf("write %s: %s, or %s", f.key, f.example, word)
			}
			fail(p.rule, hint, "%s %s", subject, p.what)
		}
	case n.shape == mapNode && (f.kids != nil || f.dict != nil):
		c.mapping(f, n, path)
	case n.shape == listNode && f.list != nil:
		c.elements(f, n, path)
	default:
		hint := ""
		switch {
		case f.key == "acknowledgement" && n.shape == scalarNode:
			hint = fmt.Sprintf("an acknowledgement needs a reason: {rule: %s, reason: \"why this is meant to be so\"}", clip(n.text))
		case n.shape == scalarNode && f.key == "DEVICE" && path != nil && f.kid("address") != nil && isAddress(n.text): // and no secret
			hint = fmt.Sprintf("write %s: {address: %s}", path.key, clip(n.text))
		case n.shape == scalarNode && f.kid("name") != nil && isName(n.text, "-_."):
			hint = fmt.Sprintf("write {name: %s, …}", n.text)
		case n.shape == scalarNode && f.kid("a") != nil && f.kid("b") != nil:
			hint = "write {a: leaf1:uplink-1, b: spine1:downlink-1}"
		case n.shape == scalarNode && f.list != nil && f.list.scalar != nil && !strings.ContainsAny(n.text, "\n"):
			hint = "write a list: [" + clip(n.text) + "]"
		case n.shape == listNode && strings.HasPrefix(path.String(), "manage") && len(n.items) > 0 && n.items[0].shape == scalarNode:
			hint = fmt.Sprintf("write each with its word: {%s: own, …}", clip(n.items[0].text))
		case n.shape == mapNode && f.list != nil && f.named && len(n.keys) > 0 && !n.has("name"):
			hint = fmt.Sprintf("write a list, each with its name: [{name: %s, …}]", clip(n.keys[0].key))
		case n.shape == mapNode && f.list != nil && len(n.keys) > 0:
			hint = "put a - before " + clip(n.keys[0].key) + ", or brackets around it: a list of one"
		case f.example != "":
			hint = fmt.Sprintf("write %s: %s", f.key, f.example)
		}
		fail("wrong-shape", hint, "%s takes %s, not %s", path, f.wants(), n.shape)
	}
}

// wants says what a field takes.
func (f *field) wants() string {
	var w []string
	if f.scalar != nil {
		w = append(w, withArticle(f.scalar.noun))
		if strings.HasPrefix(f.scalar.noun, "one of") || strings.HasPrefix(f.scalar.noun, "true") || strings.HasPrefix(f.scalar.noun, "the ") {
			w[0] = f.scalar.noun
		}
	}
	if f.list != nil {
		w = append(w, "a list of "+f.list.key+"s")
		if kind, ok := strings.CutPrefix(f.list.key, "kind of "); ok {
			w[len(w)-1] = "a list of kinds of " + kind
		}
		if f.list.key == "class" {
			w[len(w)-1] = "a list of classes"
		}
	}
	switch {
	case f.kids != nil:
		keys := make([]string, len(f.kids))
		for i, k := range f.kids {
			keys[i] = k.key
		}
		w = append(w, "a mapping with "+strings.Join(keys, ", "))
	case f.dict != nil:
		w = append(w, "a mapping by "+f.dict.key)
	}
	return strings.Join(w, ", or ")
}

func withArticle(noun string) string {
	if strings.IndexByte("aeiouAEIOU", noun[0]) >= 0 {
		return "an " + noun
	}
	return "a " + noun
}

func (c *checker) mapping(f *field, n *node, path *trail) {
	for i := range n.keys {
		if c.over() {
			return
		}
		k, child := n.keys[i].key, n.keys[i].kid
		if kf := f.kid(k); kf != nil {
			if i+1 < len(n.keys) && c.comma(f, kf, n, k, n.keys[i+1].key, path) {
				continue
			}
			c.check(kf, child, &trail{up: path, key: k})
			continue
		}
		if child.bad { // the rest of a number, reported
			continue
		}
		if f.dict == nil {
			child.bad = true
			c.unknown(f, n, k, path.String())
			continue
		}
		if _, p := nameScalar().parse(k); p != nil && !(f.dict.key == "PORT" && c.kind == "Fabric" && isName(k, "-_./:")) { // an interface, which bind looks for
			child.bad = true
			if f.dict.key == "PORT" && isName(k, "-_./:") {
				left := "downlink-1"
				if child.shape == scalarNode && isName(child.text, "-_.") {
					left = child.text
				}
				p.what, p.hint = "is an interface name, and the model's name of the port stands before the colon", "write "+left+": "+clip(k)
			}
			c.found.Errorf(p.rule, n.at(k), p.hint, "%s: %q %s", cmpPath(path.String()), clip(k), p.what)
			continue
		}
		c.check(f.dict, child, &trail{up: path, key: k})
	}
}

// comma reports a number that YAML cut in two at a comma: {kmin: 0,8MB} is a kmin of 0, and a key 8MB without a value.
func (c *checker) comma(f, kf *field, n *node, key, next string, path *trail) bool {
	v, rest := n.kid(key), n.kid(next)
	if kf.scalar == nil || kf.scalar.secret || f.kid(next) != nil || f.dict != nil || v.shape != scalarNode || v.bad || !rest.null || rest.bad ||
		!isDigits(v.text) || next == "" || !isDigits(next[:1]) {
		return false
	}
	whole := v.text + "," + next
	_, p := kf.scalar.parse(whole)
	if p == nil {
		return false
	}
	v.bad, rest.bad = true, true
	c.found.Errorf(p.rule, v.pos(), p.hint, "%s: %q %s", join(path.String(), key), clip(whole), p.what)
	return true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (c *checker) elements(f *field, n *node, path *trail) {
	var first map[string]*node
	if f.named {
		first = make(map[string]*node, len(n.items))
	}
	for i, e := range n.items {
		at := trail{up: path, index: i}
		if f.named && isName(e.name(), "-_.") {
			at.key = e.name()
		}
		c.check(f.list, e, &at)
		if !f.named || e.bad {
			continue
		}
		switch name := e.name(); {
		case name == "" && e.has("name"): // refused above
			e.bad = true
		case name == "":
			e.bad = true
			hint := "add a name"
			if k := f.list.kid("name"); k != nil {
				hint = addition(k, k.example)
			}
			c.found.Errorf("missing", e.pos(), hint, "%s has no name", &at)
		case first[name] != nil:
			e.bad = true
			c.found.Add(diag.Finding{
				Rule: "duplicate", Severity: diag.Error, Pos: e.pos(), Msg: fmt.Sprintf("%s: %s is listed twice", path, name),
				Hint: "rename one, or merge the two", Related: []diag.Related{{Pos: first[name].pos(), Msg: "first here"}},
			})
		default:
			first[name] = e
		}
	}
}

// unknown reports a key that does not belong where it stands: what was probably meant, and where the key is at home.
func (c *checker) unknown(f *field, n *node, key, path string) {
	if len(c.found) > maxHints {
		c.found.Errorf("unknown-key", n.at(key), "", "unknown key %q %s", clip(key), where(path))
		return
	}
	var siblings []string
	for _, k := range f.kids {
		siblings = append(siblings, k.key)
	}
	meant, homes := Closest(key, siblings), c.homes(key)
	hint := wrongWord(key, n.kid(key).text)
	switch {
	case hint != "":
	case f.usual(key) != "":
		hint = "it is called " + f.usual(key) + " here"
	case slices.Contains(siblings, "host-"+key):
		hint = "did you mean host-" + key + "?"
	case path == "manage":
		hint = "ownership is by switches and hosts here; what differs for a role stands under overrides.ROLE.manage"
	case strings.HasPrefix(path, "overrides.") && f.kid("devices") != nil && key == "ports":
		hint = "ports stand under a device of the role: " + path + ".devices.DEVICE.ports"
	case strings.HasPrefix(path, "overrides.") && f.kid("devices") != nil && meant == "" && homes == "" && n.kid(key).shape == mapNode:
		hint = fmt.Sprintf("a device of the role stands under %s.devices; other keys here are %s", path, strings.TrimPrefix(known(siblings), "known are "))
	case strings.HasPrefix(path, "overrides.") && f.kid("classes") != nil && classSchema(false).kid(key) != nil && key != "name":
		hint = fmt.Sprintf("it belongs to a class: classes: [{name: training, %s: …}]", key)
	case strings.HasPrefix(path, "overrides.") && len(homes) > 0 && meant == "" && !c.overridable(key):
		hint = fmt.Sprintf("an override cannot change %s, which is one for the whole fabric; here stand %s", key, strings.Join(siblings, ", "))
	case meant != "" && len(homes) > 0:
		hint = fmt.Sprintf("did you mean %s? (%s belongs %s)", meant, key, homes)
	case meant != "":
		hint = "did you mean " + meant + "?"
	case len(homes) > 0:
		hint = fmt.Sprintf("%s belongs %s; check the indentation", key, homes)
	default:
		hint = known(siblings)
		if m := Closest(key, c.everyKey()); m != "" && sure(key, m) {
			hint = fmt.Sprintf("did you mean %s, which belongs %s?", m, c.homes(m))
		} else if notOurs(key) {
			hint = fmt.Sprintf("fabricctl does not configure %s; %s", key, hint)
		}
	}
	c.found.Errorf("unknown-key", n.at(key), hint, "unknown key %q %s", clip(key), where(path))
}

func where(path string) string {
	if path == "" {
		return "at the top level"
	}
	if list, ok := strings.CutSuffix(path, "[]"); ok {
		return "in an element of " + strings.ReplaceAll(list, "[]", "")
	}
	return "under " + strings.ReplaceAll(path, "[]", "")
}

func cmpPath(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

// homes says where a key belongs, or "".
func (c *checker) homes(key string) string {
	const most = 3
	var places []string
	in := ""
	for _, kind := range append([]string{c.kind}, kinds()...) {
		if kind == c.kind && len(places) > 0 {
			continue
		}
		schema := c.schema
		if kind != c.kind {
			schema = schemaOf(kind)
		}
		walk(schema, "", func(_ *field, path, k string) {
			if k != key {
				return
			}
			p := where(path)
			if !slices.Contains(places, p) && !strings.HasPrefix(path, "overrides.") {
				places = append(places, p)
			}
		})
		if len(places) > 0 {
			if kind != c.kind {
				in = " in a document of kind " + kind
			}
			break
		}
	}
	if len(places) > most {
		return strings.Join(places[:most], ", ") + ", and other places" + in
	}
	return strings.Join(places, " or ") + in
}

// overridable reports whether a key can stand anywhere in an override.
func (c *checker) overridable(key string) bool {
	found := false
	walk(c.schema, "", func(_ *field, path, k string) {
		found = found || k == key && strings.HasPrefix(path, "overrides.")
	})
	return found
}

// everyKey lists the keys of the document's schema.
func (c *checker) everyKey() []string {
	var keys []string
	walk(c.schema, "", func(_ *field, _, k string) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	})
	return keys
}

// walk calls visit for every key of every mapping below f, with the path of the mapping.
func walk(f *field, path string, visit func(f *field, path, key string)) {
	for i := range f.kids {
		k := &f.kids[i]
		visit(k, path, k.key)
		walk(k, join(path, k.key), visit)
	}
	if f.dict != nil {
		walk(f.dict, join(path, f.dict.key), visit)
	}
	if f.list != nil {
		walk(f.list, path+"[]", visit)
	}
}

// misspelt reports whether an unknown key of n was probably meant to be key.
func misspelt(f *field, n *node, key string) bool {
	return len(n.keys) < maxHints && slices.ContainsFunc(n.keys, func(x pair) bool {
		return f.kid(x.key) == nil && (Closest(x.key, []string{key}) != "" || f.usual(x.key) == key)
	})
}

// addition is the hint to add a required field: something to paste, and what it means.
func addition(k *field, example string) string {
	if example == "" {
		return fmt.Sprintf("add %s: %s", k.key, k.doc)
	}
	gist := k.doc
	for _, end := range []string{";", ": ", "("} {
		gist, _, _ = strings.Cut(gist, end)
	}
	return fmt.Sprintf("add %s: %s (%s)", k.key, example, strings.TrimSpace(gist))
}

// free is what nobody of a list's items has, for each key that they have apart.
func free(f *field, items []*node) map[string][]string {
	m := map[string][]string{}
	for i := range f.kids {
		k := &f.kids[i]
		for _, v := range k.apart {
			if !slices.ContainsFunc(items, func(n *node) bool { s := n.get(k.key); return s != nil && s.text == v }) {
				m[k.key] = append(m[k.key], v)
			}
		}
	}
	return m
}

// complete reports what is missing in merged documents. left is what to propose for the keys that the elements of a list
// have apart; nil where n is not one.
func (c *checker) complete(f *field, n *node, path *trail, left map[string][]string) {
	if n == nil || n.bad {
		return
	}
	switch n.shape {
	case mapNode:
		for i := range f.kids {
			k := &f.kids[i]
			if k.required && !n.has(k.key) && k.key != "apiVersion" && k.key != "kind" && !misspelt(f, n, k.key) {
				example := k.example
				if vs := left[k.key]; len(vs) > 0 {
					example, left[k.key] = vs[0], vs[1:] // the next one that lacks it is told another
				}
				c.found.Errorf("missing", n.pos(), addition(k, example), "%s has no %s", cmpPath(path.String()), k.key)
			}
			if kid := n.kid(k.key); kid != nil {
				c.complete(k, kid, &trail{up: path, key: k.key}, nil)
			}
		}
		if f.dict != nil {
			n.each(func(key string, e *node) { c.complete(f.dict, e, &trail{up: path, key: key}, nil) })
		}
	case listNode:
		left := free(f.list, n.items)
		for i, e := range n.items {
			at := trail{up: path, index: i}
			if f.named {
				at.key = e.name()
			}
			c.complete(f.list, e, &at, left)
		}
	case scalarNode:
	}
}
