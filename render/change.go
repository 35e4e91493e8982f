package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Diff is what takes live to want, by value, in an order that is safe on a device that executes it one by one. Both
// sides hold owned keys only. Diff(x, x) is empty, and Apply(live, Diff(live, want)) equals want up to d.Same.
func Diff(d *Dialect, f Facts, live, want Config) []Change {
	var cs []Change
	for i, j := 0, 0; i < len(live) || j < len(want); {
		order := -1
		switch {
		case i == len(live):
			order = 1
		case j < len(want):
			order = live[i].Key.Compare(want[j].Key)
		}
		switch {
		case order < 0:
			if l := live[i]; !d.Same(l.Key, &l.Value, nil, f) {
				cs = append(cs, Change{Op: Remove, Key: l.Key, Before: &l.Value})
			}
			i++
		case order > 0:
			if w := want[j]; !d.Same(w.Key, nil, &w.Value, f) {
				cs = append(cs, Change{Op: Add, Key: w.Key, After: &w.Value, From: w.From.At()})
			}
			j++
		default:
			if l, w := live[i], want[j]; !d.Same(l.Key, &l.Value, &w.Value, f) {
				cs = append(cs, Change{Op: Modify, Key: w.Key, Before: &l.Value, After: &w.Value, From: w.From.At()})
			}
			i, j = i+1, j+1
		}
	}
	return Order(d, cs)
}

// Order sorts changes: what is pointed at comes before what points, removals come last and the other way round, and
// pairs of Windows move in the direction that does not invert them. It is stable, and O(n log n) plus references.
func Order(d *Dialect, cs []Change) []Change {
	type edge = map[Key][]Key
	after, before := edge{}, edge{}
	for _, c := range cs {
		o := c.Key.Whole()
		if c.After != nil {
			after[o] = append(after[o], d.Refs(c.Key, *c.After)...)
		}
		if c.Before != nil {
			before[o] = append(before[o], d.Refs(c.Key, *c.Before)...)
		}
	}
	depthIn := func(e edge) func(Key) int {
		memo := map[Key]int{}
		var depth func(Key) int
		depth = func(k Key) int {
			if n, ok := memo[k]; ok {
				return n
			}
			memo[k] = 0 // a cycle ends here
			n := 0
			for _, r := range e[k] {
				if r != k {
					n = max(n, 1+depth(r))
				}
			}
			memo[k] = n
			return n
		}
		return depth
	}
	up, down := depthIn(after), depthIn(before)
	rank := func(c Change) int {
		if c.Op == Remove {
			return 1<<20 - down(c.Key.Whole())
		}
		return up(c.Key.Whole())
	}
	slices.SortStableFunc(cs, func(a, b Change) int { return cmp.Compare(rank(a), rank(b)) })
	for _, w := range d.Windows {
		orderWindow(w, cs)
	}
	return cs
}

// orderWindow puts the low field of each touched pair before the high one where the pair moves down, after it where
// it moves up.
func orderWindow(w Window, cs []Change) {
	lo := map[Key]int{}
	for i, c := range cs {
		if c.Key.Field == w.Lo && c.Op == Modify && (w.Scope == "" || w.Scope == c.Key.Scope) {
			lo[c.Key.Whole()] = i
		}
	}
	for j, c := range cs {
		i, ok := lo[c.Key.Whole()]
		if !ok || c.Key.Field != w.Hi || c.Op != Modify {
			continue
		}
		up := numeric(*c.After) > numeric(*c.Before)
		if up == (i < j) {
			cs[i], cs[j] = cs[j], cs[i]
		}
	}
}

// numeric is the leading decimal number of s, 0 when there is none.
func numeric(s string) int64 {
	var n int64
	for _, r := range strings.TrimSpace(s) {
		if r < '0' || r > '9' || n > 1<<53 {
			break
		}
		n = n*10 + int64(r-'0')
	}
	return n
}

// Phases splits ordered changes into transactions: removals of later phases first, then each phase in turn. Most
// dialects have one phase, and then the result is cs itself.
func Phases(d *Dialect, cs []Change) [][]Change {
	byPhase := map[int][2][]Change{} // phase to {removals, the rest}
	last := 0
	for _, c := range cs {
		p := d.Phase(c)
		last = max(last, p)
		both := byPhase[p]
		i := 1
		if c.Op == Remove && p > 0 {
			i = 0
		}
		both[i] = append(both[i], c)
		byPhase[p] = both
	}
	var out [][]Change
	add := func(cs []Change) {
		if len(cs) > 0 {
			out = append(out, cs)
		}
	}
	for p := last; p >= 0; p-- {
		add(byPhase[p][0])
	}
	for p := 0; p <= last; p++ {
		add(byPhase[p][1])
	}
	return out
}

// Undo takes cs back: inverted changes in reverse order.
func Undo(cs []Change) []Change {
	u := make([]Change, 0, len(cs))
	for _, c := range slices.Backward(cs) {
		u = append(u, c.Invert())
	}
	return u
}

// Apply is c after cs. It does not check Before.
func Apply(c Config, cs []Change) Config {
	m := make(map[Key]Setting, len(c))
	for _, s := range c {
		m[s.Key] = s
	}
	for _, x := range cs {
		if x.After == nil {
			delete(m, x.Key)
		} else {
			m[x.Key] = Setting{Key: x.Key, Value: *x.After}
		}
	}
	r := make(Config, 0, len(m))
	for _, s := range m {
		r = append(r, s)
	}
	return r.Sorted()
}

// Remaining splits changes against what a device holds now: todo are those still at Before, moved those at neither
// Before nor After. What is at After already is in neither. Every Commit starts with it.
func Remaining(d *Dialect, f Facts, live Config, cs []Change) (todo, moved []Change) {
	for _, c := range cs {
		var now *string
		if v, ok := live.Find(c.Key); ok {
			now = &v
		}
		switch {
		case same(d, f, c.Key, now, c.After):
		case same(d, f, c.Key, now, c.Before):
			todo = append(todo, c)
		default:
			moved = append(moved, c)
		}
	}
	return todo, moved
}

// same is d.Same, but a thing that must exist (or be gone) is never excused by a default.
func same(d *Dialect, f Facts, k Key, a, b *string) bool {
	if a == nil && b == nil {
		return true
	}
	if k.Field == "" && (a == nil) != (b == nil) && ((a != nil && *a == "") || (b != nil && *b == "")) {
		return false
	}
	return d.Same(k, a, b, f)
}

// Adopt finds live shared objects that may stand for ours: every wanted binding of ours now points at the live one,
// and everything in the whole live configuration that points at it is a key we own. The mapping is injective unless
// the wanted objects are equal. What stands in the way of adoption is said as info findings.
func Adopt(d *Dialect, dev intent.Device, f Facts, live Config) (Names, diag.List) {
	own := d.Owns(dev, f)
	want, _ := d.Render(dev, f)
	var l diag.List
	say := func(format string, a ...any) {
		l.Add(diag.Finding{Rule: "adopt", Severity: diag.Info, At: dev.Name, Msg: fmt.Sprintf(format, a...)})
	}
	outside := map[Key]Key{} // live object to a referrer that we do not own
	for _, s := range live {
		if own(s.Key) {
			continue
		}
		for _, r := range d.Refs(s.Key, s.Value) {
			if _, ok := outside[r]; !ok {
				outside[r] = s.Key
			}
		}
	}
	names, refused := Names{}, map[Key]bool{}
	for _, w := range want {
		now, ok := live.Find(w.Key)
		if !ok || now == w.Value || !own(w.Key) {
			continue
		}
		ours, theirs := d.Refs(w.Key, w.Value), d.Refs(w.Key, now)
		if len(ours) != 1 || len(theirs) != 1 || ours[0].Scope != theirs[0].Scope || own(theirs[0]) || refused[ours[0]] {
			continue
		}
		y, x := ours[0], theirs[0]
		by, foreign := outside[x]
		switch {
		case foreign:
			refused[y] = true
			say("%s stays as it is: %s, which the model does not own, uses it too; %s is created instead", x, by, y.Object)
		case names[y] != "" && names[y] != x.Object:
			refused[y] = true
			say("%s and %s are used where the model wants one object; %s is created instead", names[y], x.Object, y.Object)
		default:
			names[y] = x.Object
		}
	}
	for y := range refused {
		delete(names, y)
	}
	by := map[Key]Key{}
	for _, y := range sortedNames(names) {
		x := Key{y.Scope, names[y], ""}
		if first, taken := by[x]; !taken {
			by[x] = y
		} else if !content(want, first).Equal(content(want, y)) {
			say("%s would have to be both %s and %s, which differ; both are created instead", x, first.Object, y.Object)
			delete(names, y)
			delete(names, first)
		}
	}
	return names, l.Sort()
}

func sortedNames(n Names) []Key {
	ks := make([]Key, 0, len(n))
	for k := range n {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, Key.Compare)
	return ks
}

// content is what c holds of one object, with the object's own name taken out, so that two can be compared.
func content(c Config, object Key) Config {
	var r Config
	for _, s := range c {
		k := s.Key
		switch {
		case k.Whole() == object:
			k.Object = ""
		case k.Scope == object.Object:
			k.Scope = ""
		case strings.HasPrefix(k.Scope, object.Object+">"):
			k.Scope = k.Scope[len(object.Object):]
		default:
			continue
		}
		r = append(r, Setting{Key: k, Value: s.Value})
	}
	return r.Sorted()
}
