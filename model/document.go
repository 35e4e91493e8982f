package model

import (
	"encoding/json"
	"io/fs"
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Document is one YAML document, or several merged ones, as other validators than our own read it.
type Document struct {
	Kind string // "" when the document does not say
	root *node
}

// Documents reads the documents of layers one by one, without checking more of them than that they are YAML.
func Documents(fsys fs.FS, layers ...string) ([]Document, diag.List) {
	var docs []Document
	r := &reader{}
	for i, layer := range layers {
		files, err := layerFiles(fsys, layer)
		if err != nil {
			r.found.Errorf("load", diag.Pos{File: layer}, "", "%s", reason(err))
			continue
		}
		for _, file := range files {
			b, err := readFile(fsys, file)
			if err != nil {
				r.found.Errorf("load", diag.Pos{File: file}, "", "%s", reason(err))
				continue
			}
			for _, n := range r.documents(file, i, b) {
				docs = append(docs, Document{text(n.get("kind")).V, n})
			}
		}
	}
	return docs, r.found.Sort()
}

// Documents are the merged documents of a model.
func (f *Fabric) Documents() []Document {
	var docs []Document
	add := func(n *node) {
		if n != nil {
			docs = append(docs, Document{text(n.get("kind")).V, n})
		}
	}
	add(f.docs.fabric)
	add(f.docs.inventory)
	for _, h := range sortedHardware(f.docs.profiles) {
		for _, n := range f.docs.profiles[h] {
			add(n)
		}
	}
	return docs
}

// JSON is the document as encoding/json would decode it: whole numbers in their usual spelling are json.Number, true and
// false are truth values, and every other scalar is text, as in Load, which looks at no quotes either.
func (d Document) JSON() any { return d.root.json() }

func (n *node) json() any {
	switch {
	case n.shape == mapNode:
		m := make(map[string]any, len(n.keys))
		for _, x := range n.keys {
			m[x.key] = x.kid.json()
		}
		return m
	case n.shape == listNode:
		l := make([]any, len(n.items))
		for i, c := range n.items {
			l[i] = c.json()
		}
		return l
	case n.null:
		return nil
	case n.text == "true" || n.text == "false":
		return n.text == "true"
	case isDigits(n.text) && (n.text == "0" || n.text[0] != '0'):
		return json.Number(n.text)
	}
	return n.text
}

// Pos is where path leads, keys of mappings and indices of lists: at the key of what is no single value. A path that leads
// nowhere is at the last place that there is.
func (d Document) Pos(path []string) diag.Pos {
	n, pos := d.root, d.root.pos()
	for _, p := range path {
		c, at := n.step(p)
		if c == nil {
			break
		}
		n, pos = c, at
	}
	return pos
}

// Key is where key stands in the mapping that path leads to, or the mapping when it has no such key.
func (d Document) Key(path []string, key string) diag.Pos {
	n := d.root
	for _, p := range path {
		if n, _ = n.step(p); n == nil {
			return d.Pos(path)
		}
	}
	if x := n.find(key); x != nil {
		return x.at
	}
	return d.Pos(path)
}

// step is what stands in n at a key or an index, and where; nil when there is nothing.
func (n *node) step(p string) (*node, diag.Pos) {
	switch n.shape {
	case mapNode:
		if x := n.find(p); x != nil && x.kid.shape != scalarNode {
			return x.kid, x.at
		} else if x != nil {
			return x.kid, x.kid.pos()
		}
	case listNode:
		if i, err := strconv.Atoi(p); err == nil && 0 <= i && i < len(n.items) {
			return n.items[i], n.items[i].pos()
		}
	case scalarNode:
	}
	return nil, diag.Pos{}
}
