package profiles

import (
	"strings"
	"testing"

	rowfile "github.com/fabricctl/fabricctl/profiles/rows"
)

// rowsOf are the rows of a text in YAML.
func rowsOf(kind Kind, file, text string) ([]*row, error) {
	b, err := rowfile.Text(string(kind), file, text)
	if err != nil {
		return nil, err
	}
	c := &Catalog{rows: map[Kind]map[string]*row{kind: {}}}
	err = c.index(string(b))
	var rs []*row
	for _, r := range c.rows[kind] {
		rs = append(rs, r)
	}
	return rs, err
}

// Rows that are cut off or changed are an error or other rows, and never a panic.
func FuzzRows(f *testing.F) {
	f.Add(switchRows[:4000])
	f.Add(hostRows[:2000])
	f.Add(strings.Repeat("\xff", 40))
	f.Fuzz(func(t *testing.T, text string) {
		c := &Catalog{rows: map[Kind]map[string]*row{}}
		for _, k := range Kinds() {
			c.rows[k] = map[string]*row{}
		}
		_ = c.index(text)
		for _, k := range Kinds() {
			for _, r := range c.rows[k] {
				_, _ = r.parse()
			}
		}
	})
}
