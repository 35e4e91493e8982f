package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// eosLines is what to type for cs, from the root of a configuration session and back to it. Settings come before
// removals, and profiles before the interfaces that bind them, whatever the order of cs: a session takes effect as
// one. Compound lines are completed from live. A mode that is removed takes its contents with it. An interface is
// never removed.
func eosLines(live Config, cs []Change) []Line {
	t := &eosTyper{after: Apply(live, cs), gone: map[string]bool{}}
	for _, c := range cs {
		if c.Op == Remove && eosIsMode(c.Key) {
			t.gone[eosInside(c.Key.Scope, c.Key.Object)] = true
		}
	}
	index := map[string]int{}
	for _, c := range cs {
		st := t.statement(c)
		id := strings.Join([]string{fmt.Sprint(st.group), st.scope, st.id}, "\x00")
		i, ok := index[id]
		if !ok {
			i = len(t.todo)
			index[id] = i
			t.todo = append(t.todo, st)
		}
		t.todo[i].changes = append(t.todo[i].changes, c)
	}
	slices.SortStableFunc(t.todo, func(a, b eosTyped) int {
		return cmp.Or(cmp.Compare(a.group, b.group), eosCompareScopes(a.scope, b.scope),
			cmp.Compare(eosRank(a.id), eosRank(b.id)), intent.CompareNames(a.id, b.id))
	})
	for _, st := range t.todo {
		t.write(st)
	}
	t.leave(0)
	return t.out
}

// eosTyped is one line to be, and the changes that it carries.
type eosTyped struct {
	group   int // 0 maps, 1 profiles, 2 the device's watchdog, 3 interfaces; removals: 4 interfaces, 5 the rest
	scope   string
	id      string // what is typed once: the object, or code points by class
	mode    bool   // the line enters a new mode
	remove  bool
	whole   bool // the mode id is removed with what is in it
	changes []Change
}

type eosTyper struct {
	after Config
	gone  map[string]bool // scopes of removed modes
	todo  []eosTyped
	at    []string // modes we are in
	out   []Line
}

// eosIsMode reports whether k is the line of a mode that is made and removed as a whole.
func eosIsMode(k Key) bool {
	path := eosPath(k.Scope)
	return len(path) == 0 && strings.HasPrefix(k.Object, eosProfileMode) ||
		len(path) == 1 && strings.HasPrefix(path[0], eosProfileMode) && eosQueue.MatchString(k.Object)
}

// statement says where c is typed. What is inside of a removed mode belongs to the removal of that mode.
func (t *eosTyper) statement(c Change) eosTyped {
	k := c.Key
	if in, ok := t.removedWith(eosInside(k.Scope, k.Object)); ok {
		path := eosPath(in)
		scope := ""
		for _, m := range path[:len(path)-1] {
			scope = eosInside(scope, m)
		}
		return eosTyped{group: 5, scope: scope, id: path[len(path)-1], remove: true, whole: true}
	}
	st := eosTyped{scope: k.Scope, id: k.Object, mode: eosIsMode(k) && c.After != nil, remove: c.After == nil}
	if compoundOf(k.Object) != nil {
		st.remove = t.compound(k) == ""
	}
	if _, ok := number(eosDSCPHead, k.Object); ok && k.Scope == "" {
		v := c.After
		if v == nil {
			v = c.Before
		}
		st.id = "qos map dscp to traffic-class " + *v
	}
	onPort := strings.HasPrefix(k.Scope, eosInterfaceMode)
	switch {
	case onPort && st.remove:
		st.group = 4
	case st.remove:
		st.group = 5
	case onPort:
		st.group = 3
	case strings.HasPrefix(k.Object, eosWatchdog) && k.Scope == "":
		st.group = 2
	case k.Scope != "" || strings.HasPrefix(k.Object, eosProfileMode):
		st.group = 1
	}
	if st.mode { // typed by entering it
		st.scope, st.id = eosInside(k.Scope, k.Object), ""
	}
	return st
}

// removedWith is the outermost removed mode that scope is, or is in.
func (t *eosTyper) removedWith(scope string) (string, bool) {
	for i := range len(scope) + 1 {
		if i == len(scope) || scope[i] == '>' {
			if t.gone[scope[:i]] {
				return scope[:i], true
			}
		}
	}
	return "", false
}

// compound is the line that a compound object has in the end.
func (t *eosTyper) compound(k Key) string {
	cp, fields := compoundOf(k.Object), map[string]string{}
	for _, f := range cp.fields {
		if v, ok := t.after.Find(Key{k.Scope, k.Object, f.name}); ok {
			fields[f.name] = v
		}
	}
	return cp.line(fields)
}

func (t *eosTyper) write(st eosTyped) {
	keys := make([]Key, len(st.changes))
	for i, c := range st.changes {
		keys[i] = c.Key
	}
	if st.scope == "" && strings.HasPrefix(st.id, eosInterfaceMode) {
		return // a port is there or is not; typing does not change that
	}
	path := eosPath(st.scope)
	if st.mode {
		t.leave(min(len(t.at), len(path)-1)) // entering is what makes it
	}
	t.enter(path)
	if st.mode {
		t.out[len(t.out)-1].Keys = keys
		return
	}
	t.out = append(t.out, Line{Text: t.text(st), Keys: keys})
}

// text is the line for a statement that is not a mode.
func (t *eosTyper) text(st eosTyped) string {
	if st.whole {
		return "no " + st.id
	}
	c := st.changes[0]
	object := c.Key.Object
	if n, ok := number(eosDSCPHead, object); ok && c.Key.Scope == "" {
		ns := []int{n}
		for _, other := range st.changes[1:] {
			n, _ := number(eosDSCPHead, other.Key.Object)
			ns = append(ns, n)
		}
		if st.remove {
			return "no " + eosDSCPLine(ns, *c.Before)
		}
		return eosDSCPLine(ns, *c.After)
	}
	if compoundOf(object) != nil {
		if st.remove {
			return "no " + object
		}
		return t.compound(c.Key)
	}
	if !st.remove {
		return eosLine(object, *c.After)
	}
	return eosRemoval(object, *c.Before)
}

// eosRemoval takes a line back. Where "no" is a state of its own it would not: on an interface it would win over the
// profile. There "default" removes the line, of a priority with the word that published uses of its "no" have.
func eosRemoval(object, before string) string {
	if rest, ok := strings.CutPrefix(object, "no "); ok {
		return "default " + rest
	}
	switch {
	case eosPrioHead.MatchString(object):
		return "default " + object + " no-drop"
	case eosKeepsNo(object) || eosIsPause(object):
		return "default " + object
	}
	return "no " + eosLine(object, before)
}

// enter leaves what path is not in and enters the rest of it.
func (t *eosTyper) enter(path []string) {
	same := 0
	for same < len(path) && same < len(t.at) && path[same] == t.at[same] {
		same++
	}
	t.leave(same)
	for _, mode := range path[same:] {
		t.out = append(t.out, Line{Text: mode, Mode: true})
	}
	t.at = path
}

// leave goes up to depth modes.
func (t *eosTyper) leave(depth int) {
	for len(t.at) > depth {
		t.at = t.at[:len(t.at)-1]
		t.out = append(t.out, Line{Text: "exit", Mode: true})
	}
}

func eosCompareScopes(a, b string) int {
	return slices.CompareFunc(eosPath(a), eosPath(b), intent.CompareNames)
}

// eosRisk: nothing here takes a link down as far as is known, which is not verified on a device and said so. A
// profile that something else still binds cannot be removed.
func eosRisk(live Config, cs []Change, _ Facts) []Risk {
	var risks []Risk
	bound, lossless, paused := map[string]bool{}, map[string]bool{}, map[string]bool{}
	users := map[string][]string{} // profile mode line to interfaces that bind it in the end
	for _, s := range Apply(live, cs) {
		if port, ok := strings.CutPrefix(s.Key.Scope, eosInterfaceMode); ok && s.Key.Object == eosBinding {
			users[eosProfileMode+s.Value] = append(users[eosProfileMode+s.Value], port)
		}
	}
	for _, c := range cs {
		port, onPort := strings.CutPrefix(eosTop(c.Key.Scope), eosInterfaceMode)
		switch {
		case onPort && c.Key.Object == eosBinding:
			bound[port] = true
		case onPort && eosIsPause(c.Key.Object):
			paused[port] = true
		case c.Key.Object == eosAllOff && c.Key.Scope == "":
			for _, ports := range users {
				for _, u := range ports {
					lossless[u] = true
				}
			}
		case c.Key.Object == eosPFC || eosPrioHead.MatchString(c.Key.Object):
			if onPort {
				lossless[port] = true
			}
			for _, u := range users[eosTop(c.Key.Scope)] {
				lossless[u] = true
			}
		case c.Op == Remove && c.Key.Scope == "" && len(users[c.Key.Object]) > 0:
			ports := sortedPorts(users[c.Key.Object])
			risks = append(risks, Risk{
				Class: Refused, Ports: ports, Keys: []Key{c.Key},
				Why: fmt.Sprintf("%s is still bound by %s, which this plan does not change; unbind it there first", c.Key.Object, strings.Join(ports, ", ")),
			})
		}
	}
	note := func(class RiskClass, ports map[string]bool, why string) {
		var names []string
		for p := range ports {
			names = append(names, p)
		}
		if len(names) > 0 {
			risks = append(risks, Risk{Class: class, Ports: sortedPorts(names), Why: why})
		}
	}
	note(Flap, paused, "802.3x link pause changes: whether the link goes down for it is not known")
	note(Hitless, bound, "the bound service-profile changes: no link goes down as far as is known, loss of packets in flight is not verified on a device")
	note(Hitless, lossless, "a priority becomes lossless or stops being so: no link goes down as far as is known, not verified on a device")
	return risks
}

// eosTop is the outermost mode of a scope.
func eosTop(scope string) string {
	if path := eosPath(scope); len(path) > 0 {
		return path[0]
	}
	return ""
}

func sortedPorts(names []string) []string {
	slices.SortFunc(names, intent.CompareNames)
	return slices.Compact(names)
}
