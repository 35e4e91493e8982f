package profiles

import (
	"encoding/binary"
	"errors"
)

// node is a place of a row: a value, a mapping or a list.
type node struct {
	kind      byte
	line, col int // in the file that the row is from, from 1
	value     string
	kids      []*node // keys and values of a mapping in turn, elements of a list
}

// The kinds of nodes, as package rows writes them.
const (
	scalar  = 's'
	mapping = 'm'
	list    = 'l'
)

var errRows = errors.New("the built-in rows are damaged")

// treeReader reads what package rows writes. After an error it reads nothing more.
type treeReader struct {
	left string
	err  error
}

func (d *treeReader) number() int {
	n, size := binary.Uvarint([]byte(d.left[:min(len(d.left), binary.MaxVarintLen64)]))
	if size <= 0 || n > 1<<30 {
		d.err, d.left = errRows, ""
		return 0
	}
	d.left = d.left[size:]
	return int(n)
}

func (d *treeReader) text() string {
	n := d.number()
	if n > len(d.left) {
		d.err, d.left = errRows, ""
		return ""
	}
	s := d.left[:n]
	d.left = d.left[n:]
	return s
}

// node reads the next one, of a row that begins at a line.
func (d *treeReader) node(row int) *node {
	if d.left == "" {
		d.err = errRows
		return &node{}
	}
	n := &node{kind: d.left[0]}
	d.left = d.left[1:]
	n.line, n.col = row+d.number(), d.number()
	if n.kind == scalar {
		n.value = d.text()
		return n
	}
	for range d.number() {
		if d.err != nil {
			break
		}
		n.kids = append(n.kids, d.node(row))
	}
	return n
}
