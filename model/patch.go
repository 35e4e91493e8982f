package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// With is f with p applied. f is not changed; the result is validated as a whole, and shares what did not change. With
// errors among the findings the result is not to be used.
func (f *Fabric) With(p Patch) (*Fabric, diag.List) {
	docs := f.docs
	var found diag.List
	for _, e := range p {
		if docs.fabric == nil {
			found.Errorf("patch", diag.Pos{}, "", "there is no Fabric document to change")
			break
		}
		n, err := edit(fabricSchema(), docs.fabric, e.Path, e.Value)
		if err != nil {
			found.Add(*err)
			continue
		}
		docs.fabric = n
	}
	g, more := build(docs, found.HasErrors())
	return g, append(found, more...).Sort()
}

// edit is n with the scalar at path set. Names in a path may hold dots: the longest one that fits is taken. What a level of overrides
// does not have yet is made: the role, the device, the port, and a class in it.
func edit(f *field, n *node, path, value string) (*node, *diag.Finding) {
	refuse := func(hint, format string, a ...any) (*node, *diag.Finding) {
		return nil, &diag.Finding{Rule: "patch", Severity: diag.Error, Pos: n.pos(), Hint: hint, Msg: fmt.Sprintf(format, a...)}
	}
	first, _, _ := strings.Cut(path, ".")
	switch {
	case path == "":
		if f.scalar == nil {
			return refuse("", "a patch sets single values, and this place takes %s", f.wants())
		}
		canonical, p := f.scalar.parse(value)
		if p != nil {
			return refuse(p.hint, "%q %s", clip(value), p.what)
		}
		r := &node{shape: scalarNode, text: canonical, from: patched()}
		if n != nil {
			r.layer, r.from.Pos = n.layer, n.pos()
			r.from.Lost = append(slices.Clone(n.from.Lost), n.pos())
		}
		return r, nil
	case f.named && (n == nil || n.shape == listNode):
		if r, err := editNamed(f, n, path, value); r != nil || err != nil {
			return r, err
		}
		return refuse("", "there is no %s", clip(first))
	case n == nil && f.kids == nil && f.dict == nil, n != nil && n.shape != mapNode:
		return refuse("", "nothing can be set at %q", clip(path))
	}
	key, child := "", (*field)(nil)
	for i := range f.kids {
		if k := f.kids[i].key; under(path, k) && len(k) > len(key) {
			key, child = k, &f.kids[i]
		}
	}
	if f.dict != nil && n != nil {
		for _, x := range n.keys {
			if k := x.key; under(path, k) && len(k) > len(key) {
				key, child = k, f.dict
			}
		}
	}
	if name, ok := newName(f.dict, path); ok && child == nil {
		key, child = name, f.dict
	}
	if child == nil {
		var keys []string
		for i := range f.kids {
			keys = append(keys, f.kids[i].key)
		}
		return refuse(didYouMean(first, keys), "there is no %s", clip(first))
	}
	var old *node
	if n != nil {
		old = n.kid(key)
	}
	c, err := edit(child, old, rest(path, key), value)
	if err != nil {
		return nil, err
	}
	r := node{shape: mapNode, from: patched()}
	if n != nil {
		r = *n
	}
	at := r.from.Pos
	if old != nil {
		at = n.at(key)
	}
	r.pairs = r.with(1)
	r.put(pair{key, at, c})
	return &r, nil
}

// editNamed is edit of a list whose elements have names; nil without a finding when it has no such element, and may get none.
func editNamed(f *field, n *node, path, value string) (*node, *diag.Finding) {
	r := node{shape: listNode, from: patched()}
	if n != nil {
		r = *n
	}
	r.items = slices.Clone(r.items)
	best := -1
	for i, e := range r.items {
		if name := e.name(); under(path, name) && (best < 0 || len(name) > len(r.items[best].name())) {
			best = i
		}
	}
	if best < 0 {
		name, ok := newName(f.list, path)
		if !ok {
			return nil, nil
		}
		e := &node{shape: mapNode, from: patched()}
		e.put(pair{"name", e.from.Pos, &node{shape: scalarNode, text: name, from: patched()}})
		best, r.items = len(r.items), append(r.items, e)
	}
	c, err := edit(f.list, r.items[best], rest(path, r.items[best].name()), value)
	if err != nil {
		return nil, err
	}
	r.items[best] = c
	return &r, nil
}

// newName is the name that path begins with, of something that is described by f and that may be there with whatever the patch sets
// and no more: overrides are. The shortest name is taken after which path goes on with a key of f.
func newName(f *field, path string) (string, bool) {
	if f == nil || slices.ContainsFunc(f.kids, func(k field) bool { return k.required && k.key != "name" }) {
		return "", false
	}
	for i := range path {
		if path[i] != '.' || i == 0 {
			continue
		}
		for j := range f.kids {
			if under(path[i+1:], f.kids[j].key) {
				return path[:i], true
			}
		}
	}
	return "", false
}

// patched is the origin of what a patch makes.
func patched() *Origin { return &Origin{Kind: FromExperiment, Ref: "patch"} }

// under reports whether path starts with the whole name.
func under(path, name string) bool {
	return name != "" && (path == name || strings.HasPrefix(path, name+"."))
}

func rest(path, name string) string { return strings.TrimPrefix(path[len(name):], ".") }

// Leaves lists every scalar of the merged Fabric document, sorted by path.
func (f *Fabric) Leaves() []Leaf { return leaves(fabricSchema(), f.docs.fabric, "") }

// leaves lists the scalars below n. Texts are canonical, so that equal values read the same.
func leaves(f *field, n *node, path string) []Leaf {
	var out []Leaf
	var visit func(f *field, n *node, path string)
	visit = func(f *field, n *node, path string) {
		if n == nil || n.bad || f == nil {
			return
		}
		switch n.shape {
		case mapNode:
			for _, x := range n.keys {
				c := f.kid(x.key)
				if c == nil {
					c = f.dict
				}
				visit(c, x.kid, join(path, x.key))
			}
		case listNode:
			for i, e := range n.items {
				at := fmt.Sprintf("%s[%d]", path, i)
				if name := e.name(); f.named && name != "" {
					at = join(path, name)
				}
				visit(f.list, e, at)
			}
		case scalarNode:
			if canonical, p := f.scalar.parse(n.text); p == nil {
				out = append(out, Leaf{Path: path, Text: canonical, From: n.from})
			}
		}
	}
	visit(f, n, path)
	slices.SortStableFunc(out, func(a, b Leaf) int { return CompareNames(a.Path, b.Path) })
	return out
}

// Digest is a SHA-256, in hex, over the canonical merged values of all documents: independent of layers, order,
// spelling of units, and comments.
func (f *Fabric) Digest() string {
	h := sha256.New()
	var line []byte
	put := func(prefix string, ls []Leaf) {
		for i := range ls {
			line = diag.AppendQuoted(append(line[:0], prefix...), ls[i].Path)
			line = diag.AppendQuoted(append(line, '='), ls[i].Text)
			h.Write(append(line, '\n')) // never fails
		}
	}
	put("fabric ", leaves(fabricSchema(), f.docs.fabric, ""))
	put("inventory ", leaves(inventorySchema(), f.docs.inventory, ""))
	for _, h := range sortedHardware(f.docs.profiles) {
		for _, n := range f.docs.profiles[h] {
			put("profile ", leaves(profileSchema(), n, ""))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// covers reports whether f is about nothing but what a is for. A finding that does not say what it is about is covered
// only by an acknowledgement for everything.
func (a *Ack) covers(f *diag.Finding) bool {
	only := func(v Value[string], of []string) bool { return !v.Set || len(of) == 1 && of[0] == v.V }
	return only(a.Role, f.Roles) && only(a.Device, f.Devices)
}

// Acknowledge fills Ack of the warnings in l that the model acknowledges, and adds an info finding for each
// acknowledgement that matched nothing; of a crowd of them, for the first and how many more there are. l is not changed.
func (f *Fabric) Acknowledge(l diag.List) diag.List {
	out := slices.Clone(l)
	open := map[string][]int{} // places in out of the warnings of a rule that nothing acknowledged yet
	other := map[string]int{}  // a place in out of what a rule finds and no one acknowledges, errors before infos
	for i := range out {
		if at, ok := other[out[i].Rule]; out[i].Severity != diag.Warning && (!ok || out[at].Severity < out[i].Severity) {
			other[out[i].Rule] = i
		}
		if out[i].Severity == diag.Warning && out[i].Ack == "" {
			open[out[i].Rule] = append(open[out[i].Rule], i)
		}
	}
	const most = 100
	unused := 0
	used := map[string]diag.Pos{} // rules that something acknowledged everywhere, and where
	for _, a := range f.Acks {
		before := len(open[a.Rule.V])
		open[a.Rule.V] = slices.DeleteFunc(open[a.Rule.V], func(i int) bool {
			covered := a.covers(&out[i])
			if covered {
				out[i].Ack = a.Reason.V
			}
			return covered
		})
		if len(open[a.Rule.V]) < before || !a.Rule.Set {
			if _, again := used[a.Rule.V]; !again && !a.Role.Set && !a.Device.Set {
				used[a.Rule.V] = a.Rule.Pos()
			}
			continue
		}
		if unused++; unused > most {
			continue
		}
		if at, ok := other[a.Rule.V]; ok && len(open[a.Rule.V]) == 0 && a.covers(&out[at]) {
			hint, what := "remove the acknowledgement", "is only info here and needs no acknowledgement"
			if out[at].Severity == diag.Error {
				hint, what = "correct what it reports, and remove the acknowledgement", "is an error here, and an error cannot be acknowledged"
			}
			out.Infof("acknowledge", a.Rule.Pos(), hint, "what the rule %s finds %s", a.Rule.V, what)
			continue
		}
		if first, ok := used[a.Rule.V]; ok {
			out.Add(diag.Finding{
				Rule: "acknowledge", Pos: a.Rule.Pos(), Hint: "remove one of the two", Msg: fmt.Sprintf("the rule %s is acknowledged already, everywhere", a.Rule.V),
				Related: []diag.Related{{Pos: first, Msg: "here"}},
			})
			continue
		}
		where := ""
		if a.Role.Set {
			where += " about the role " + a.Role.V + " alone"
		}
		if a.Device.Set {
			where += " about " + a.Device.V + " alone"
		}
		hint := "remove the acknowledgement, unless the finding comes and goes"
		if left := open[a.Rule.V]; len(left) > 0 && where != "" {
			hint = "the warning that there is, is about more"
			if x := out[left[0]]; len(x.Roles) == 1 && !(a.Role.Set && a.Role.V == x.Roles[0]) {
				hint = fmt.Sprintf("the warning that there is, is about the role %s: write role: %s", x.Roles[0], x.Roles[0])
			}
			hint += ", or acknowledge it everywhere"
		}
		out.Infof("acknowledge", a.Rule.Pos(), hint,
			"no warning of the rule %s%s was found", a.Rule.V, where)
	}
	if unused > most {
		out.Infof("acknowledge", f.Pos, "", "%d more acknowledgements match no warning", unused-most)
	}
	return out.Sort()
}
