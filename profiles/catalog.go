package profiles

import (
	"maps"
	"slices"
	"strings"
)

// Catalog is all hardware that is known. What it says is not changed once made; With returns a larger one.
type Catalog struct {
	rows   map[Kind]map[string]*row
	people people
}

// find is a row of a kind; nil when there is none.
func (c *Catalog) find(k Kind, name string) *row {
	if r := c.rows[k][name]; r != nil {
		return r.read()
	}
	return nil
}

// Platform finds a platform by its name. What the platform does not say itself and its ASIC does is the ASIC's.
func (c *Catalog) Platform(name string) (Platform, bool) {
	r := c.find(KindPlatform, name)
	if r == nil {
		return Platform{}, false
	}
	p := r.platform
	p.Chip, _ = c.ASIC(p.ASIC)
	if p.Cell == 0 {
		p.Cell = p.Chip.Cell
	}
	return p, true
}

// ASIC finds an ASIC by its name.
func (c *Catalog) ASIC(name string) (ASIC, bool) {
	r := c.find(KindASIC, name)
	if r == nil {
		return ASIC{}, false
	}
	return r.asic, true
}

// NIC finds a NIC by its name.
func (c *Catalog) NIC(name string) (NIC, bool) {
	r := c.find(KindNIC, name)
	if r == nil {
		return NIC{}, false
	}
	return r.nic, true
}

// Entry is what is said about one piece of hardware, fact by fact.
func (c *Catalog) Entry(k Kind, name string) (Entry, bool) {
	r := c.find(k, name)
	if r == nil {
		return Entry{}, false
	}
	return r.entry, true
}

// OfModel lists the platforms of an operating system that the hardware may be which a device says it is: those with that
// name for their hardware; else, on EOS, the family that the model number begins with (DCS-7060X6-64PE is a 7060x6).
// It is empty for hardware that is not known, and has more than one name where the hardware's does not tell.
func (c *Catalog) OfModel(os, model string) []string {
	var names []string
	family, number := "", strings.TrimPrefix(strings.ToLower(model), "dcs-")
	for _, name := range c.Names() {
		short, ok := strings.CutPrefix(name, os+"/")
		if !ok || model == "" {
			continue
		}
		if p, _ := c.Platform(name); p.Words["hwsku"] == model {
			names = append(names, name)
		}
		rest, fits := strings.CutPrefix(number, short)
		if os == "eos" && fits && (rest == "" || rest[0] == '-') && len(name) > len(family) {
			family = name
		}
	}
	if len(names) == 0 && family != "" {
		names = []string{family}
	}
	return names
}

// Names is the sorted list of platform names.
func (c *Catalog) Names() []string { return c.NamesOf(KindPlatform) }

// NamesOf is the sorted list of the names of a kind.
func (c *Catalog) NamesOf(k Kind) []string { return slices.Sorted(maps.Keys(c.rows[k])) }

// With is c with entries added. Where an entry has the name of one in c, its facts win one by one and the others stay.
// Facts must have been checked against the kind's fields; whether what results is whole is the caller's to see.
func (c *Catalog) With(es ...Entry) *Catalog {
	d := &Catalog{rows: map[Kind]map[string]*row{}}
	for _, k := range Kinds() {
		d.rows[k] = map[string]*row{}
		maps.Copy(d.rows[k], c.rows[k])
	}
	for _, e := range es {
		if base := d.find(e.Kind, e.Name); base != nil {
			e = e.over(base.entry)
		}
		d.rows[e.Kind][e.Name] = &row{kind: e.Kind, name: e.Name, entry: e}
	}
	return d
}
