// Package rows turns the files of hardware facts, which are YAML, into what package profiles reads: the same rows as trees of
// bytes, so that a program that knows NICs need not know YAML. the test here writes them anew with -update.
//
// A file of rows is one row after another, numbers as unsigned varints and texts with their length before them:
//
//	row   kind, name, file (texts), line in the file from 1, length of what follows, node
//	node  's', line below the row's, column, text
//	      'm' or 'l', line, column, how many nodes, nodes: keys and values of a mapping in turn, or the elements of a list
package rows

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"

	"gopkg.in/yaml.v3"
)

// All is the rows of a tree like profiles/: those of the kinds that hosts need to know, and the others. base stands before the names of
// files.
func All(fsys fs.FS, base string) (hosts, switches []byte, err error) {
	for _, of := range []struct {
		to        *[]byte
		kind, dir string
	}{
		{&hosts, "nic", "data/nics"},
		{&hosts, "personality", "data/personalities"},
		{&hosts, "compat", "data/compat"},
		{&switches, "asic", "data/asics"},
		{&switches, "platform", "data/platforms"},
	} {
		files, err := fs.ReadDir(fsys, of.dir)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			name := path.Join(of.dir, f.Name())
			text, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, nil, err
			}
			b, err := Text(of.kind, path.Join(base, name), string(text))
			if err != nil {
				return nil, nil, err
			}
			*of.to = append(*of.to, b...)
		}
	}
	return hosts, switches, nil
}

// Text is the rows of one file: a list of mappings, each of which begins with its name.
func Text(kind, file, text string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	if doc.Content[0].Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s: want one list of rows", file)
	}
	var out []byte
	for _, n := range doc.Content[0].Content {
		name := ""
		if n.Kind == yaml.MappingNode && len(n.Content) > 1 && n.Content[0].Value == "name" {
			name = n.Content[1].Value
		}
		node, err := tree(nil, n, n.Line)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		out = str(str(str(out, kind), name), file)
		out = binary.AppendUvarint(out, uint64(n.Line))
		out = binary.AppendUvarint(out, uint64(len(node)))
		out = append(out, node...)
	}
	return out, nil
}

func str(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

// tree appends n, whose lines count from that of its row.
func tree(b []byte, n *yaml.Node, row int) ([]byte, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	kind := map[yaml.Kind]byte{yaml.ScalarNode: 's', yaml.MappingNode: 'm', yaml.SequenceNode: 'l'}[n.Kind]
	switch {
	case kind == 0:
		return nil, fmt.Errorf("%d: neither a value, a mapping nor a list", n.Line)
	case n.Line < row:
		return nil, fmt.Errorf("%d: an alias to another row", row)
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(n.Line-row))
	b = binary.AppendUvarint(b, uint64(n.Column))
	if kind == 's' {
		return str(b, n.Value), nil
	}
	b = binary.AppendUvarint(b, uint64(len(n.Content)))
	for _, x := range n.Content {
		var err error
		if b, err = tree(b, x, row); err != nil {
			return nil, err
		}
	}
	return b, nil
}
