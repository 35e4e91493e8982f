package render

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Diff is what takes live to want, by value, in an order that is safe on a device that executes it one by one. Both
// sides hold owned keys only. Diff(x, x) is empty, and Apply(live, Diff(live, want)) equals want up to d.Same.
func Diff(d *Dialect, f Facts, live, want Config) []Change {
	var cs []Change
	add := func(k Key, before, after *string, from diag.Pos) {
		if same(d, f, k, before, after) {
			return
		}
		op := Modify
		switch {
		case before == nil:
			op = Add
		case after == nil:
			op = Remove
		}
		cs = append(cs, Change{Op: op, Key: k, Before: before, After: after, From: from})
	}
	for len(live) > 0 || len(want) > 0 {
		order := cmp.Compare(len(want), len(live)) // decides only when one side has run out
		if len(live) > 0 && len(want) > 0 {
			order = live[0].Key.Compare(want[0].Key)
		}
		switch {
		case order < 0:
			add(live[0].Key, ptr(live[0].Value), nil, diag.Pos{})
			live = live[1:]
		case order > 0:
			add(want[0].Key, nil, ptr(want[0].Value), want[0].From.At())
			want = want[1:]
		default:
			add(want[0].Key, ptr(live[0].Value), ptr(want[0].Value), want[0].From.At())
			live, want = live[1:], want[1:]
		}
	}
	return Order(d, cs)
}

func ptr(s string) *string { return &s }

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
	sort.SliceStable(cs, func(i, j int) bool { return rank(cs[i]) < rank(cs[j]) })
	for _, w := range d.Windows {
		orderWindow(w, cs)
	}
	return cs
}

// orderWindow swaps the two ends of a pair where the order they are in would invert it on the way: high first where
// the pair moves up, low first where it moves down. An absent end inverts nothing.
func orderWindow(w Window, cs []Change) {
	low := map[Key]int{}
	for i, c := range cs {
		if c.Key.Field == w.Lo && (w.Scope == "" || w.Scope == c.Key.Scope) {
			low[c.Key.Whole()] = i
		}
	}
	fits := func(lo, hi *string) bool { return lo == nil || hi == nil || numeric(*lo) <= numeric(*hi) }
	for j, hi := range cs {
		i, ok := low[hi.Key.Whole()]
		if !ok || hi.Key.Field != w.Hi {
			continue
		}
		lo := cs[i]
		if i < j && !fits(lo.After, hi.Before) || i > j && !fits(lo.Before, hi.After) {
			cs[i], cs[j] = hi, lo
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
	if len(cs) == 0 {
		return nil
	}
	last := 0
	for i := range cs {
		last = max(last, d.Phase(cs[i]))
	}
	counts := make([]int, 2*last+1) // of the removals of the last phase, …, of phase 1; of the rest of phase 0, of phase 1, …
	place := func(c Change) int {
		p := d.Phase(c)
		if c.Op == Remove && p > 0 {
			return last - p
		}
		return last + p
	}
	for i := range cs {
		counts[place(cs[i])]++
	}
	if slices.Contains(counts, len(cs)) { // one transaction, as nearly always
		return [][]Change{slices.Clone(cs)}
	}
	parts := make([][]Change, len(counts))
	for i, n := range counts {
		parts[i] = make([]Change, 0, n)
	}
	for _, c := range cs {
		i := place(c)
		parts[i] = append(parts[i], c)
	}
	return slices.DeleteFunc(parts, func(cs []Change) bool { return len(cs) == 0 })
}

// Undo takes cs back: inverted changes in reverse order.
func Undo(cs []Change) []Change {
	u := make([]Change, 0, len(cs))
	for _, c := range slices.Backward(cs) {
		u = append(u, c.Invert())
	}
	return u
}

// Apply is c after cs, in one pass over both. It does not check Before; of two changes of one key the later one counts.
func Apply(c Config, cs []Change) Config {
	r := make(Config, 0, len(c)+len(cs))
	Walk(c, cs, func(part Config) { r = append(r, part...) })
	return r
}

// Walk calls f with what Apply gives, part by part, without making it. A part is f's until it returns.
func Walk(c Config, cs []Change, f func(part Config)) {
	order := make([]int, len(cs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cs[i].Key.Compare(cs[j].Key) })
	one := make(Config, 1)
	for n, i := range order {
		x := &cs[i]
		if n+1 < len(order) && cs[order[n+1]].Key == x.Key {
			continue
		}
		at, found := c.place(x.Key)
		f(c[:at])
		if c = c[at:]; found {
			c = c[1:]
		}
		if x.After != nil {
			one[0] = Setting{Key: x.Key, Value: *x.After}
			f(one)
		}
	}
	f(c)
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
//
// Where the model owns only a part of what it wants of an object, every wanted binding must be there already: a new
// one would bring the rest.
func Adopt(d *Dialect, dev intent.Device, f Facts, live Config) (Names, diag.List) {
	own := d.Owns(dev, f)
	want, _ := d.Render(dev, f)
	var l diag.List
	say := func(format string, a ...any) {
		l.Add(diag.Finding{Rule: "adopt", Severity: diag.Info, At: dev.Name, Msg: fmt.Sprintf(format, a...)})
	}
	exists, outside := map[Key]bool{}, map[Key]Key{} // outside: live object to a referrer that we do not own
	for _, s := range live {
		exists[s.Key.Whole()] = true
		if own(s.Key) {
			continue
		}
		for _, r := range d.Refs(s.Key, s.Value) {
			if _, ok := outside[r]; !ok && !partOf(s.Key, r) { // what is in an object does not use it
				outside[r] = s.Key
			}
		}
	}
	names, refused := Names{}, map[Key]bool{}
	for _, w := range want {
		now, bound := live.Find(w.Key)
		ours, theirs := d.Refs(w.Key, w.Value), d.Refs(w.Key, now)
		if !bound || !own(w.Key) || len(ours) != 1 || len(theirs) != 1 || ours[0].Scope != theirs[0].Scope {
			continue
		}
		y, x := ours[0], theirs[0]
		if refused[y] || exists[y] || own(x) || !exists[x] {
			continue
		}
		by, foreign := outside[x]
		switch {
		case foreign:
			refused[y] = true
			say("%s stays as it is: %s, which the model does not own, uses it too; %s is created instead", x, by, y.Object)
		case names[y] != "" && names[y] != x.Object:
			refused[y] = true
			say("%s and %s are used where the model wants one object; %s is created instead", Key{y.Scope, names[y], ""}, x, y.Object)
		default:
			names[y] = x.Object
		}
	}
	for y := range refused {
		delete(names, y)
	}
	by := map[Key][]Key{} // live object to those of ours that it would stand for
	for _, y := range sortedNames(names) {
		x := Key{y.Scope, names[y], ""}
		by[x] = append(by[x], y)
	}
	for x, ys := range by {
		differs := func(y Key) bool { return !content(want, ys[0]).Equal(content(want, y)) }
		if i := slices.IndexFunc(ys, differs); i > 0 {
			say("%s would have to be both %s and %s, which differ; new ones are created instead", x, ys[0].Object, ys[i].Object)
			for _, y := range ys {
				delete(names, y)
			}
		}
	}
	f.Names = names
	adopted := d.Owns(dev, f)
	inside, _ := d.Render(dev, f)
	for _, w := range want {
		refs := d.Refs(w.Key, w.Value)
		if !own(w.Key) || len(refs) != 1 || names[refs[0]] == "" || partOf(w.Key, refs[0]) {
			continue
		}
		x := Key{refs[0].Scope, names[refs[0]], ""}
		partly := slices.ContainsFunc(inside, func(s Setting) bool { return partOf(s.Key, x) && !adopted(s.Key) })
		if now, _ := live.Find(w.Key); partly && !slices.Equal(d.Refs(w.Key, now), []Key{x}) {
			say("%s stays as it is: the model owns a part of it, and naming it in %s would bring the rest", x, w.Key)
			delete(names, refs[0])
		}
	}
	return names, l.Sort()
}

func sortedNames(n Names) []Key {
	ks := make([]Key, 0, len(n))
	for k := range n {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return ks[i].Compare(ks[j]) < 0 })
	return ks
}

// content is what c holds of one object, with the object's own name taken out, so that two can be compared.
func content(c Config, object Key) Config {
	var r Config
	for _, s := range c {
		k := s.Key
		switch {
		case !partOf(k, object):
			continue
		case k.Whole() == object:
			k.Object = ""
		default:
			k.Scope = k.Scope[len(object.Object):]
		}
		r = append(r, Setting{Key: k, Value: s.Value})
	}
	return r.Sorted()
}

// partOf reports whether k is a setting of an object, or of something inside it (EOS: "qos profile X>uc-tx-queue 3").
func partOf(k, object Key) bool {
	return k.Whole() == object || k.Scope == object.Object || strings.HasPrefix(k.Scope, object.Object+">")
}

// Owned is what the model owns on a device that holds live: Owns, and what is Left. Whoever compares with the same
// device later has to own what the changes name, too: it is not left any more when they are made.
func Owned(d *Dialect, dev intent.Device, f Facts, live Config) (func(Key) bool, diag.List) {
	own := d.Owns(dev, f)
	if d.Left == nil {
		return own, nil
	}
	keys, l := d.Left(dev, f, live)
	left := make(map[Key]bool, len(keys))
	for _, k := range keys {
		left[k] = true
	}
	return func(k Key) bool { return left[k] || own(k) }, l
}

// KeepUsed drops from cs the removals of shared objects that something still names afterwards: a class that left the
// model leaves its queues as they are, and so must leave what they bind. used lists those objects.
func KeepUsed(d *Dialect, live Config, cs []Change) (kept []Change, used []Key) {
	kept = cs
	for {
		after := Apply(live, kept)
		left, named := map[Key]bool{}, map[Key]bool{}
		for _, s := range after {
			left[s.Key.Whole()] = true
			if refs := d.Refs(s.Key, s.Value); len(refs) == 1 {
				named[refs[0]] = true
			}
		}
		var more []Key
		for _, c := range kept {
			if o := c.Key.Whole(); c.Op == Remove && named[o] && !left[o] && !slices.Contains(more, o) {
				more = append(more, o)
			}
		}
		if len(more) == 0 {
			sort.Slice(used, func(i, j int) bool { return used[i].Compare(used[j]) < 0 })
			return kept, used
		}
		used = append(used, more...)
		kept = slices.DeleteFunc(slices.Clone(kept), func(c Change) bool {
			return c.Op == Remove && slices.ContainsFunc(more, func(o Key) bool { return partOf(c.Key, o) })
		})
	}
}
