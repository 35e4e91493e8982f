package profiles

import (
	"maps"
	"slices"
	"strings"
)

// Catalog is all hardware that is known. It is not changed once made; With returns a larger one.
type Catalog struct {
	entries   map[Kind]map[string]Entry
	platforms map[string]Platform
	asics     map[string]ASIC
	nics      map[string]NIC
}

// Platform finds a platform by its name. What the platform does not say itself and its ASIC does is the ASIC's.
func (c *Catalog) Platform(name string) (Platform, bool) {
	p, ok := c.platforms[name]
	p.Chip = c.asics[p.ASIC]
	if p.Cell == 0 {
		p.Cell = p.Chip.Cell
	}
	return p, ok
}

// ASIC finds an ASIC by its name.
func (c *Catalog) ASIC(name string) (ASIC, bool) {
	a, ok := c.asics[name]
	return a, ok
}

// NIC finds a NIC by its name.
func (c *Catalog) NIC(name string) (NIC, bool) {
	n, ok := c.nics[name]
	return n, ok
}

// Entry is what is said about one piece of hardware, fact by fact.
func (c *Catalog) Entry(k Kind, name string) (Entry, bool) {
	e, ok := c.entries[k][name]
	return e, ok
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
		if c.platforms[name].Words["hwsku"] == model {
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
func (c *Catalog) NamesOf(k Kind) []string { return slices.Sorted(maps.Keys(c.entries[k])) }

// With is c with entries added. Where an entry has the name of one in c, its facts win one by one and the others stay.
// Facts must have been checked against the kind's fields; whether what results is whole is the caller's to see.
func (c *Catalog) With(es ...Entry) *Catalog {
	d := &Catalog{
		entries: map[Kind]map[string]Entry{}, platforms: map[string]Platform{}, asics: map[string]ASIC{}, nics: map[string]NIC{},
	}
	for _, k := range Kinds() {
		d.entries[k] = map[string]Entry{}
		maps.Copy(d.entries[k], c.entries[k])
	}
	maps.Copy(d.platforms, c.platforms)
	maps.Copy(d.asics, c.asics)
	maps.Copy(d.nics, c.nics)
	platforms, _ := platformTable()
	asics, _ := asicTable()
	nics, _ := nicTable()
	for _, e := range es {
		if base, ok := d.entries[e.Kind][e.Name]; ok {
			e = e.over(base)
		}
		d.entries[e.Kind][e.Name] = e
		switch e.Kind {
		case KindPlatform:
			p := Platform{Name: e.Name, IfaceStep: 1}
			fill(&p, platforms, e)
			d.platforms[e.Name] = p
		case KindASIC:
			a := ASIC{Name: e.Name}
			fill(&a, asics, e)
			d.asics[e.Name] = a
		case KindNIC:
			n := NIC{Name: e.Name}
			fill(&n, nics, e)
			d.nics[e.Name] = n
		}
	}
	return d
}
