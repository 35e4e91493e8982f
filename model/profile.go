package model

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// newProfileSchema is the schema of a Profile document: a section for each kind of hardware, of which a document has one,
// with the facts that package profiles knows for that kind.
func newProfileSchema() *field {
	kids := header("")
	kids[2] = group("metadata", "identity", leaf("name", textScalar("name"), "name of a platform such as sonic/sn5600, of an ASIC, of a NIC, of a personality or of a row of the matrix").must().like("sonic/sn5600")).must().like("{name: sonic/sn5600}")
	for _, k := range profiles.Kinds() {
		section := field{key: string(k), doc: map[profiles.Kind]string{
			profiles.KindPlatform: "facts of a switch model or a kind of host",
			profiles.KindASIC:     "facts of a switch chip",
			profiles.KindNIC:      "facts of a network adapter",

			profiles.KindPersonality: "how the driver of a network adapter behaves when it is set",
			profiles.KindCompat:      "a row of the compatibility matrix: what is known of a driver, firmware and kernel together",
		}[k]}
		for _, f := range profiles.Fields(k) {
			section.kids = append(section.kids, factField(f))
		}
		kids = append(kids, section)
	}
	return &field{key: "Profile", kids: kids}
}

// factField is a fact as a document writes it: the value, or a mapping of the value with its own source and confidence.
func factField(f profiles.Field) field {
	x := field{key: f.Key, doc: f.Doc}
	if f.Shape == profiles.KnobRow {
		x.kids = append(knobParts(), sourceField(), confidenceField())
		return x
	}
	value := leaf("value", factScalar(f), f.Doc).must()
	switch {
	case f.About:
		x.scalar = value.scalar
		x.example = map[string]string{"source": "\"data sheet of the vendor\"", "confidence": "low"}[f.Key]
		return x.must()
	case f.Shape == profiles.Row:
		value.list, value.scalar = rowField(f), nil
		x.list = value.list
	case f.List:
		value.list, value.scalar = &field{key: f.Noun, scalar: value.scalar}, nil
		x.list = value.list
	default:
		x.scalar = value.scalar
	}
	x.kids = []field{value, sourceField(), confidenceField()}
	return x
}

func sourceField() field {
	return leaf("source", textScalar("source"), "where this fact is from, if not from the section's source")
}

func confidenceField() field {
	return leaf("confidence", enumScalar("high", "medium", "low"), "how far it is to be trusted, if not as the section says")
}

// rowField is a row of a headroom table.
func rowField(f profiles.Field) *field {
	return &field{key: f.Noun, kids: []field{
		leaf("speed", rateScalar(), "speed of the port").must(),
		leaf("cable", lengthScalar(), "length of the cable").must(),
		leaf("size", bytesScalar(), "what the priority group has for itself; with headroom of its own that too"),
		leaf("xon", bytesScalar(), "pause ends at the latest when the group holds no more than this"),
		leaf("xoff", bytesScalar(), "headroom: bytes kept for what arrives after the pause, not a threshold").must(),
		leaf("alpha", ratioScalar(), "of the dynamic threshold at which pause is sent"),
		leaf("static", bytesScalar(), "threshold at which pause is sent, where it is a fixed size"),
		leaf("xon_offset", bytesScalar(), "how far below the threshold pause ends, where that is above xon"),
	}}
}

// readRow is a row in the canonical form of a fact; false where it lacks what it must have, which is reported.
func readRow(n *node) (string, bool) {
	if n.get("speed") == nil || n.get("cable") == nil || n.get("xoff") == nil {
		return "", false
	}
	r := profiles.HeadroomRow{
		Speed: value(n.get("speed"), units.ParseBitRate).V, Cable: value(n.get("cable"), units.ParseLength).V,
		Size: value(n.get("size"), units.ParseBytes).V, Xon: value(n.get("xon"), units.ParseBytes).V, Xoff: value(n.get("xoff"), units.ParseBytes).V,
		Alpha: value(n.get("alpha"), units.ParseRatio).V, Static: value(n.get("static"), units.ParseBytes).V,
		XonOffset: value(n.get("xon_offset"), units.ParseBytes).V,
	}
	return r.String(), true
}

// legalRows reports rows that no port can have, rows with two thresholds or with none, and a second row for the same speed
// and cable.
func legalRows(f profiles.Field, n *node, found *diag.List) bool {
	if n.shape == mapNode {
		n = n.get("value")
	}
	legal, seen := true, map[profiles.HeadroomRow]*node{}
	for _, item := range n.list() {
		at := profiles.HeadroomRow{Speed: value(item.get("speed"), units.ParseBitRate).V, Cable: value(item.get("cable"), units.ParseLength).V}
		if first := seen[at]; first != nil {
			found.Add(diag.Finding{
				Rule: "profile", Severity: diag.Error, Pos: item.pos(), Hint: "keep one of them",
				Msg: fmt.Sprintf("platform.%s has two rows for %s and %s", f.Key, at.Speed, at.Cable), Related: []diag.Related{{Pos: first.pos(), Msg: "first here"}},
			})
			legal = false
		}
		seen[at] = item
		for _, x := range []struct {
			key string
			is  int64
		}{
			{"speed", int64(at.Speed)},
			{"cable", int64(at.Cable)},
			{"xoff", int64(value(item.get("xoff"), units.ParseBytes).V)},
		} {
			if v := item.get(x.key); v != nil && !v.bad && x.is == 0 {
				found.Errorf("profile", v.pos(), "remove the row, or write what it is", "a row of platform.%s has %s %s", f.Key, x.key, v.text)
				legal = false
			}
		}
		if item.kid("alpha") == nil && item.kid("static") == nil && item.get("xoff") != nil {
			found.Errorf("profile", item.pos(), "add alpha, or static where it is a size", "the row for %s and %s does not say at which threshold pause is sent", at.Speed, at.Cable)
			legal = false
		}
		if item.get("alpha") != nil && item.get("static") != nil {
			found.Errorf("profile", item.get("static").pos(), "a threshold is dynamic (alpha) or static: keep one of them",
				"the row for %s and %s has alpha %s and static %s", at.Speed, at.Cable, item.get("alpha").text, item.get("static").text)
			legal = false
		}
	}
	return legal
}

func factScalar(f profiles.Field) *scalar {
	switch f.Shape {
	case profiles.Name:
		return textScalar(f.Noun)
	case profiles.Word:
		return enumScalar(f.Words...)
	case profiles.Flag:
		return boolScalar()
	case profiles.Number:
		return intScalar("number", f.Lo, f.Hi)
	case profiles.Size:
		return bytesScalar()
	case profiles.Rate:
		return rateScalar()
	case profiles.PCIID:
		return &scalar{noun: "PCI id such as 15b3:1021", schema: textSchema("[0-9a-f]{4}:[0-9a-f]{4}"), parse: func(s string) (string, *problem) {
			if !profiles.IsPCIID(s) {
				return "", &problem{"value", "is not a PCI id", "write vendor:device in lower-case hex, as lspci -n prints it: \"15b3:1021\""}
			}
			return s, nil
		}}
	case profiles.Span:
		return durationScalar()
	case profiles.Ratio:
		return ratioScalar()
	case profiles.Exact:
		return &scalar{noun: "size such as 0.8KiB", schema: textSchema(exactPattern), parse: func(s string) (string, *problem) {
			if _, err := profiles.ParseExact(s); err != nil {
				return "", &problem{"units", "is not a size such as 0.8KiB", "write a number with at most three decimals, and B or KiB"}
			}
			return s, nil
		}}
	case profiles.Run:
		return runScalar()
	case profiles.Bound:
		return boundScalar()
	case profiles.Count:
		return countScalar()
	case profiles.Text, profiles.Row, profiles.KnobRow:
	}
	return textScalar("text")
}

// hardware is what a Profile document describes.
type hardware struct {
	kind profiles.Kind
	name string
}

// describes finds the one section of a Profile document; ok is false after a finding.
func describes(n *node, found *diag.List) (h hardware, ok bool) {
	name := n.get("metadata", "name")
	if name == nil {
		return h, false // reported: it is missing, or refused
	}
	var sections []profiles.Kind
	for _, k := range profiles.Kinds() {
		if n.has(string(k)) {
			sections = append(sections, k)
		}
	}
	words := make([]string, len(profiles.Kinds()))
	for i, k := range profiles.Kinds() {
		words[i] = string(k)
	}
	switch len(sections) {
	case 0:
		found.Errorf("profile", n.pos(), "give one of "+strings.Join(words, ", "), "the profile %s describes nothing", clip(name.text))
		return h, false
	case 1:
	default:
		found.Errorf("profile", n.at(string(sections[1])), "write a document for each",
			"the profile %s has a section %s and a section %s", clip(name.text), sections[0], sections[1])
		return h, false
	}
	h = hardware{sections[0], name.text}
	os, model, slash := strings.Cut(h.name, "/")
	switch {
	case h.kind == profiles.KindPlatform && (!slash || !isName(os, "") || !isName(model, "-_.")):
		found.Errorf("profile", name.pos(), "platforms are named OS/MODEL, such as sonic/sn5600", "%q is not the name of a platform", clip(h.name))
		return h, false
	case h.kind != profiles.KindPlatform && !isName(h.name, "-_."):
		found.Errorf("profile", name.pos(), "names are letters, digits and -_.", "%q is not the name of a%s", clip(h.name), anKind(h.kind))
		return h, false
	}
	return h, true
}

func anKind(k profiles.Kind) string {
	return map[profiles.Kind]string{profiles.KindPlatform: " platform", profiles.KindASIC: "n ASIC", profiles.KindNIC: " NIC", profiles.KindPersonality: " personality", profiles.KindCompat: " row of the matrix"}[k]
}

// catalog is the built-in catalog with the model's own profiles on top, layer over layer.
func catalog(docs map[hardware][]*node, found *diag.List) *profiles.Catalog {
	cat, err := profiles.Default()
	if err != nil { // the embedded data is tested; a user cannot reach this
		found.Errorf("profile", diag.Pos{}, "", "%v", err)
		cat = new(profiles.Catalog)
	}
	var own []profiles.Entry
	for _, h := range sortedHardware(docs) {
		for _, n := range docs[h] {
			e := entry(h, n, found)
			own = append(own, e)
		}
	}
	if len(own) > 0 {
		cat = cat.With(own...)
	}
	for _, h := range sortedHardware(docs) {
		whole(cat, h, docs[h], found)
	}
	return cat
}

func sortedHardware(docs map[hardware][]*node) []hardware {
	hs := make([]hardware, 0, len(docs))
	for h := range docs {
		hs = append(hs, h)
	}
	slices.SortFunc(hs, func(a, b hardware) int {
		if i, j := slices.Index(profiles.Kinds(), a.kind), slices.Index(profiles.Kinds(), b.kind); i != j {
			return i - j
		}
		return strings.Compare(a.name, b.name)
	})
	return hs
}

// entry reads the facts of one document.
func entry(h hardware, n *node, found *diag.List) profiles.Entry {
	section := n.get(string(h.kind))
	e := profiles.Entry{Kind: h.kind, Name: h.name, Pos: n.pos()}
	for _, f := range profiles.Fields(h.kind) {
		read := readFact
		if f.Shape == profiles.KnobRow {
			read = func(f profiles.Field, n *node) (profiles.Fact, bool) { return readKnob(f, n, found) }
		}
		fact, ok := read(f, section.get(f.Key))
		at := section.get(f.Key).pos()
		if !ok {
			if n := section.get(f.Key); n != nil && !hasBad(n) && f.Shape != profiles.KnobRow && (n.shape != mapNode || n.has("value")) {
				found.Errorf("value", at, "list what is known, or remove the line", "%s.%s lists nothing", h.kind, f.Key)
			}
			continue
		}
		if os, _, _ := strings.Cut(h.name, "/"); f.OS != "" && f.OS != os {
			found.Errorf("profile", at, "remove it", "platform.%s is a word of %s, and %s is a platform of %s", f.Key, f.OS, h.name, os)
			continue
		}
		if f.Shape == profiles.Row && !legalRows(f, section.get(f.Key), found) {
			continue
		}
		if f.Key == "iface" && !legalPattern(fact, at, found) {
			continue
		}
		if !f.About {
			fact = fact.Default(text(section.get("source")).V, text(section.get("confidence")).V)
		}
		e.Facts = append(e.Facts, fact)
	}
	return e
}

// readFact reads the value of a fact, and its own source and confidence if it has them.
func readFact(f profiles.Field, n *node) (profiles.Fact, bool) {
	if n == nil {
		return profiles.Fact{}, false
	}
	fact := profiles.Fact{Key: f.Key, Pos: n.pos()}
	if n.shape == mapNode {
		fact.Source, fact.Confidence = text(n.get("source")).V, text(n.get("confidence")).V
		if n = n.get("value"); n == nil {
			return profiles.Fact{}, false
		}
	}
	s := factScalar(f)
	items := []*node{n}
	if n.shape == listNode {
		items = n.list()
	}
	for _, item := range items {
		if f.Shape == profiles.Row {
			if v, ok := readRow(item); ok {
				fact.Values = append(fact.Values, v)
			}
			continue
		}
		if v, p := s.parse(item.text); p == nil && item.shape == scalarNode {
			fact.Values = append(fact.Values, v)
		}
	}
	return fact, len(fact.Values) > 0
}

// legalPattern checks a pattern of interface names by making names of it.
func legalPattern(f profiles.Fact, at diag.Pos, found *diag.List) bool {
	p := profiles.Platform{Iface: f.Text(), IfaceStep: 1}
	if n := strings.Count(p.Iface, "%d"); n < 1 || n > 2 || strings.Count(p.Iface, "%") != n {
		found.Errorf("value", at, "write a pattern such as Ethernet%d, or Ethernet%d/%d with the lane second",
			"platform.iface: %q does not hold %%d once or twice, and no other %%", clip(p.Iface))
		return false
	}
	if _, bad := ifaceScalar().parse(p.Port(1)); bad != nil {
		found.Errorf(bad.rule, at, bad.hint, "platform.iface: %q %s", clip(p.Iface), bad.what)
		return false
	}
	return true
}

// whole reports what hardware lacks after all layers: a fact that must be known, an ASIC that exists.
func whole(cat *profiles.Catalog, h hardware, docs []*node, found *diag.List) {
	e, ok := cat.Entry(h.kind, h.name)
	last := docs[len(docs)-1]
	section := last.get(string(h.kind))
	if !ok || section == nil {
		return
	}
	for _, f := range profiles.Fields(h.kind) {
		if _, ok := e.Fact(f.Key); !ok && f.Must && !f.About && !section.has(f.Key) {
			found.Errorf("missing", section.pos(), fmt.Sprintf("add %s: %s", f.Key, f.Doc), "%s has no %s", h.kind, f.Key)
		}
	}
	unfitting(cat, h, section, found)
	if f, ok := e.Fact("asic"); ok && h.kind == profiles.KindPlatform {
		if _, ok := cat.ASIC(f.Text()); !ok {
			found.Errorf("profile", f.Pos, didYouMean(f.Text(), cat.NamesOf(profiles.KindASIC))+" (or describe it in a Profile with an asic section)",
				"unknown ASIC %q", clip(f.Text()))
		}
	}
}

// LoadCatalog reads the Profile documents of layers on top of what is built in. Other documents are checked against their
// schema, and otherwise passed over. Without layers it is the built-in catalog.
func LoadCatalog(fsys fs.FS, layers ...string) (*profiles.Catalog, diag.List) {
	return loadCatalog(fsys, layers, func(roots, *diag.List) {})
}

// LoadProfiles is LoadCatalog for directories that hold hardware alone: a document of another kind is an error there.
func LoadProfiles(fsys fs.FS, layers ...string) (*profiles.Catalog, diag.List) {
	return loadCatalog(fsys, layers, func(docs roots, found *diag.List) {
		for _, n := range []*node{docs.fabric, docs.inventory} {
			if n != nil {
				found.Errorf("document", n.pos(), "move it elsewhere and name it with -f", "a directory of profiles holds documents of kind Profile alone")
			}
		}
	})
}

func loadCatalog(fsys fs.FS, layers []string, refuse func(roots, *diag.List)) (*profiles.Catalog, diag.List) {
	if len(layers) == 0 {
		var found diag.List
		return catalog(nil, &found), found
	}
	f, found := loadLayers(fsys, func(docs roots, _ bool) (*Fabric, diag.List) {
		var found diag.List
		refuse(docs, &found)
		completeProfiles(docs, &found)
		return &Fabric{docs: docs, Catalog: catalog(docs.profiles, &found)}, found
	}, layers)
	return f.Catalog, found
}

// completeProfiles reports what Profile documents lack.
func completeProfiles(docs roots, found *diag.List) {
	c := &checker{}
	for _, h := range sortedHardware(docs.profiles) {
		for _, n := range docs.profiles[h] {
			c.complete(profileSchema(), n, nil, nil)
		}
	}
	found.Add(c.found...)
}
