package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
)

type shape uint8

const (
	scalarNode shape = iota
	mapNode
	listNode
)

func (s shape) String() string { return [...]string{"a single value", "a mapping", "a list"}[s] }

// node is one place of a document, or of several merged ones. Nodes are not changed once a document has been checked:
// merging and patching make new ones and share the rest.
type node struct {
	shape shape
	bad   bool // already reported; reads as not given
	null  bool // no value was written
	layer int32
	from  *Origin // line of the value that won, and of those that lost

	text  string  // of a scalar
	pairs         // of a mapping
	items []*node // of a list
}

// pair is what stands at a key of a mapping.
type pair struct {
	key string
	at  diag.Pos // of the key
	kid *node
}

// pairs are those of a mapping, in order of appearance.
type pairs struct {
	keys  []pair
	place map[string]int // of each key in keys, where there are many
}

// find is the pair of a key; nil when there is none. It takes the time of a look-up, however many there are.
func (p *pairs) find(key string) *pair {
	if p.place != nil {
		if i, ok := p.place[key]; ok {
			return &p.keys[i]
		}
		return nil
	}
	for i := range p.keys {
		if p.keys[i].key == key {
			return &p.keys[i]
		}
	}
	return nil
}

// put sets what stands at a key, behind all others if it is new.
func (p *pairs) put(x pair) {
	const few = 12 // are found faster one by one
	if old := p.find(x.key); old != nil {
		*old = x
		return
	}
	if p.keys == nil {
		p.keys = make([]pair, 0, 4) // most have three or four
	}
	p.keys = append(p.keys, x)
	switch n := len(p.keys); {
	case p.place != nil:
		p.place[x.key] = n - 1
	case n > few:
		p.place = make(map[string]int, 2*n)
		for i := range p.keys {
			p.place[p.keys[i].key] = i
		}
	}
}

// with is p with room for n more: what is put into it does not change p.
func (p *pairs) with(n int) pairs {
	return pairs{keys: slices.Grow(slices.Clone(p.keys), n), place: maps.Clone(p.place)}
}

// without is p but for a key.
func (p *pairs) without(key string) pairs {
	var r pairs
	for _, x := range p.keys {
		if x.key != key {
			r.put(x)
		}
	}
	return r
}

// kid is what stands at key, usable or not; nil when nothing does.
func (p *pairs) kid(key string) *node {
	if x := p.find(key); x != nil {
		return x.kid
	}
	return nil
}

// at is where key stands, the zero Pos when it does not.
func (p *pairs) at(key string) diag.Pos {
	if x := p.find(key); x != nil {
		return x.at
	}
	return diag.Pos{}
}

func (n *node) pos() diag.Pos {
	if n == nil {
		return diag.Pos{}
	}
	return n.from.Pos
}

// get walks down mappings; nil when there is nothing, or nothing usable.
func (n *node) get(path ...string) *node {
	for _, k := range path {
		if n == nil || n.shape != mapNode || n.bad {
			return nil
		}
		n = n.kid(k)
	}
	if n == nil || n.bad {
		return nil
	}
	return n
}

// has reports whether something stands at key, usable or not.
func (n *node) has(key string) bool { return n != nil && n.kid(key) != nil }

// list is the usable elements of a list.
func (n *node) list() []*node {
	if n == nil || n.shape != listNode {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.items), func(c *node) bool { return c.bad })
}

// each calls f for the usable entries of a mapping, in order.
func (n *node) each(f func(key string, c *node)) {
	if n == nil || n.shape != mapNode {
		return
	}
	for _, x := range n.keys {
		if !x.kid.bad {
			f(x.key, x.kid)
		}
	}
}

// name is the name of a list element, or "".
func (n *node) name() string {
	if c := n.get("name"); c != nil && c.shape == scalarNode {
		return c.text
	}
	return ""
}

// value reads a checked scalar. What the check refused reads as not given.
func value[T any](n *node, parse func(string) (T, error)) Value[T] {
	if n == nil || n.bad || n.shape != scalarNode {
		return Value[T]{}
	}
	v, err := parse(n.text)
	if err != nil {
		return Value[T]{}
	}
	return Value[T]{V: v, Set: true, From: n.from}
}

func text(n *node) Value[string] {
	return value(n, func(s string) (string, error) { return s, nil })
}

func integer(n *node) Value[int] { return value(n, strconv.Atoi) }

func boolean(n *node) Value[bool] { return value(n, strconv.ParseBool) }

// merger lays documents over each other.
type merger struct{ found diag.List }

// merge is o over n. Mappings merge by key, named lists by name; everything else is replaced, and what is replaced is
// remembered. Inside one layer nothing may be replaced by something else, because which document counts would depend
// on file names.
func (m *merger) merge(f *field, n, o *node, path string) *node {
	switch {
	case n == nil:
		return o
	case o == nil:
		return n
	case n.bad || o.bad:
		if o.bad {
			return o
		}
		return over(n, o)
	case n.shape == mapNode && o.shape == mapNode:
		return m.mergeMaps(f, n, o, path)
	case n.shape == listNode && o.shape == listNode && f.named:
		return m.mergeNamed(f, n, o, path)
	}
	if n.layer == o.layer {
		if same(n, o) {
			return n
		}
		m.found.Add(diag.Finding{
			Rule: "conflict", Severity: diag.Error, Pos: o.pos(), Msg: path + " is set twice in one layer, to different values",
			Hint:    "remove one, or give the second file as a layer of its own with another -f",
			Related: []diag.Related{{Pos: n.pos(), Msg: "also set here"}},
		})
	}
	if same(n, o) {
		return o // nothing is lost where both say the same
	}
	return over(n, o)
}

// sameName refuses a layer that gives the fabric another name than the layers before it. Objects on devices, leases and
// holds carry the name, so a new one would leave all of them behind.
func (m *merger) sameName(before, layer *node) {
	old, now := before.get("metadata", "name"), layer.get("metadata", "name")
	if old == nil || now == nil || same(old, now) {
		return
	}
	now.bad = true
	m.found.Add(diag.Finding{
		Rule: "conflict", Severity: diag.Error, Pos: now.pos(), Hint: fmt.Sprintf("write name: %s, or leave metadata out of this layer", old.text),
		Msg:     fmt.Sprintf("this layer names the fabric %s, %s names it %s", now.text, old.pos(), old.text),
		Related: []diag.Related{{Pos: old.pos(), Msg: "named here"}},
	})
}

// all merges documents of one layer. Halves are merged with halves, so that many small documents take no longer than one
// that holds it all.
func (m *merger) all(f *field, docs []*node) *node {
	switch len(docs) {
	case 0:
		return nil
	case 1:
		return docs[0]
	}
	half := len(docs) / 2
	return m.merge(f, m.all(f, docs[:half]), m.all(f, docs[half:]), "")
}

func (m *merger) mergeMaps(f *field, n, o *node, path string) *node {
	r := *n
	r.layer = o.layer
	r.pairs = n.with(len(o.keys))
	for _, x := range o.keys {
		c := f.kid(x.key)
		if c == nil {
			c = f.dict
		}
		if c != nil { // else unknown, already reported
			x.kid = m.merge(c, r.kid(x.key), x.kid, join(path, x.key))
		}
		r.put(x)
	}
	return &r
}

func (m *merger) mergeNamed(f *field, n, o *node, path string) *node {
	r := *n
	r.layer = o.layer
	r.items = slices.Clone(n.items)
	index := make(map[string]int, len(r.items))
	for i, c := range r.items {
		index[c.name()] = i
	}
	for _, c := range o.items {
		if i, ok := index[c.name()]; ok && c.name() != "" {
			r.items[i] = m.merge(f.list, r.items[i], c, join(path, c.name()))
			continue
		}
		index[c.name()] = len(r.items)
		r.items = append(r.items, c)
	}
	return &r
}

// over is o with n remembered as lost.
func over(n, o *node) *node {
	r := *o
	from := *o.from
	from.Lost = append(append(slices.Clone(o.from.Lost), n.from.Pos), n.from.Lost...)
	r.from = &from
	return &r
}

// same reports whether n and o say the same.
func same(n, o *node) bool {
	if n.shape != o.shape || n.text != o.text || len(n.items) != len(o.items) || len(n.keys) != len(o.keys) {
		return false
	}
	for i := range n.items {
		if !same(n.items[i], o.items[i]) {
			return false
		}
	}
	for _, x := range n.keys {
		if c := o.kid(x.key); c == nil || !same(x.kid, c) {
			return false
		}
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// trail is where a value stands: keys from the top of the document, as a chain. Its text is made when somebody is told,
// which for nearly all values of a large model is never.
type trail struct {
	up    *trail
	key   string // of a mapping, or the name of a list's element
	index int    // of an element, when key is ""
}

// String is the keys joined by ".", elements without a name as [n]; "" for nil, the top.
func (t *trail) String() string {
	switch {
	case t == nil:
		return ""
	case t.key == "":
		return t.up.String() + "[" + strconv.Itoa(t.index) + "]"
	}
	return join(t.up.String(), t.key)
}
