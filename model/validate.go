package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// validator checks what a schema cannot: values against each other. What depends on live devices or on behaviour is
// the linter's.
type validator struct {
	f     *Fabric
	found diag.List
}

func (v *validator) all() {
	v.priorities()
	v.code()
	v.bandwidth()
	v.roles()
	v.classes()
	v.mtu()
	v.watchdog("pfc_watchdog", v.f.Watchdog, v.f.Watchdog)
	v.dataClass("nccl.class", v.f.NCCL.Class)
	v.hosts("hosts", v.f.Hosts, v.f.Hosts)
	v.applications()
	v.acknowledgements()
	v.platforms()
	v.hardware()
	v.routes()
	for _, role := range sortedKeys(v.f.Roles) {
		v.override(role)
	}
	names := make([]string, len(v.f.Devices))
	for i := range v.f.Devices {
		names[i] = v.f.Devices[i].Name
	}
	v.inventory(names)
	v.rdmaNames()
	v.serials()
	v.insecure()
}

// twice reports two places that must differ.
func (v *validator) twice(first, second diag.Pos, hint, format string, a ...any) {
	v.found.Add(diag.Finding{
		Rule: "duplicate", Severity: diag.Error, Pos: second, Msg: fmt.Sprintf(format, a...), Hint: hint,
		Related: []diag.Related{{Pos: first, Msg: "first here"}},
	})
}

// priorities checks that each class has a priority of its own.
func (v *validator) priorities() {
	if n := v.f.docs.fabric.get("classes"); n != nil && len(n.items) > 8 {
		v.found.Errorf("limits", n.items[8].pos(), "", "%d classes, but there are 8 priorities", len(n.items))
	}
	owner := map[uint8]*Class{}
	for i := range v.f.Classes {
		c := &v.f.Classes[i]
		if !c.Priority.Set {
			continue
		}
		if o := owner[c.Priority.V]; o != nil {
			v.twice(o.Priority.Pos(), c.Priority.Pos(), v.freePriorities(), "classes %s and %s both have priority %d", o.Name, c.Name, c.Priority.V)
			continue
		}
		owner[c.Priority.V] = c
	}
}

func (v *validator) freePriorities() string {
	var free []string
	for p := range uint8(8) {
		if !slices.ContainsFunc(v.f.Classes, func(c Class) bool { return c.Priority.Set && c.Priority.V == p }) {
			free = append(free, fmt.Sprint(p))
		}
	}
	return "free priorities are " + strings.Join(free, ", ")
}

// code checks that no code point has two classes.
func (v *validator) code() {
	owner, at := map[uint8]*Class{}, map[uint8]diag.Pos{}
	for i := range v.f.Classes {
		c := &v.f.Classes[i]
		for _, d := range c.DSCP {
			switch o := owner[d.V]; {
			case o == c:
				v.twice(at[d.V], d.Pos(), "remove one", "class %s lists DSCP %d twice", c.Name, d.V)
			case o != nil:
				v.twice(at[d.V], d.Pos(), "a code point has one class; remove it from one of them", "classes %s and %s both have DSCP %d", o.Name, c.Name, d.V)
			default:
				owner[d.V], at[d.V] = c, d.Pos()
			}
		}
	}
}

// bandwidth checks the shares.
func (v *validator) bandwidth() {
	v.sum(v.f.Classes, nil)
	v.mixed()
	for i := range v.f.Classes {
		v.share(&v.f.Classes[i], &v.f.Classes[i])
	}
}

// mixed reports a weight among shares. Switches hold both as one kind of number, so that a weight counts as percent.
func (v *validator) mixed() {
	var weight, share *Class
	total := 0
	for i := range v.f.Classes {
		switch c := &v.f.Classes[i]; {
		case c.Strict.V || c.NoSched.V || c.Weight.Set && c.Bandwidth.Set:
		case c.Weight.Set:
			weight = cmp.Or(weight, c)
			total += c.Weight.V
		case c.Bandwidth.Set:
			share = cmp.Or(share, c)
			total += int(c.Bandwidth.V / units.OnePercent)
		}
	}
	if weight == nil || share == nil || total == 100 { // of 100, a weight is a percentage
		return
	}
	v.found.Add(diag.Finding{
		Rule: "bandwidth", Severity: diag.Warning, Pos: weight.Weight.Pos(),
		Msg: fmt.Sprintf("class %s has weight %d, but class %s has bandwidth %s; a weight counts like a percentage, so that %s gets %d of %d parts",
			weight.Name, weight.Weight.V, share.Name, share.Bandwidth.V, weight.Name, weight.Weight.V, total),
		Hint:    fmt.Sprintf("give all classes weight, or all of them bandwidth (%d%% for class %s changes nothing)", weight.Weight.V, weight.Name),
		Related: []diag.Related{{Pos: share.Bandwidth.Pos(), Msg: fmt.Sprintf("bandwidth of class %s", share.Name)}},
	})
}

// share checks the share or weight that c, a class or an override of it, gives to class base.
func (v *validator) share(c, base *Class) {
	key, pos, what := "bandwidth", c.Bandwidth.Pos(), c.Bandwidth.V.String()
	if c.Weight.Set {
		key, pos, what = "weight", c.Weight.Pos(), fmt.Sprint(c.Weight.V)
	}
	switch {
	case !c.Bandwidth.Set && !c.Weight.Set:
	case c.Bandwidth.Set && c.Weight.Set:
		v.found.Errorf("bandwidth", pos, "keep one of them", "class %s has weight %s and bandwidth %s, which are two ways to say one thing", c.Name, what, c.Bandwidth.V)
	case base.Strict.V:
		v.found.Errorf("bandwidth", pos, "remove "+key+", or scheduling: strict", "class %s is strict and takes no share, but has %s %s", c.Name, key, what)
	case base.NoSched.V:
		v.found.Errorf("bandwidth", pos, "remove "+key+", or scheduling: none", "class %s has no scheduler and takes no share, but has %s %s", c.Name, key, what)
	}
}

// sum checks that shares add up to at most 100%, with the shares of an override in place of the fabric's.
func (v *validator) sum(base []Class, over []Class) {
	var total units.Percent
	var related []diag.Related
	var pos diag.Pos
	for i := range base {
		b := base[i].Bandwidth
		for j := range over {
			if over[j].Name == base[i].Name && over[j].Bandwidth.Set {
				b = over[j].Bandwidth
				pos = b.Pos()
			}
		}
		if b.Set && !base[i].Strict.V && !base[i].NoSched.V {
			total += b.V
			related = append(related, diag.Related{Pos: b.Pos(), Msg: fmt.Sprintf("%s for %s", b.V, base[i].Name)})
		}
	}
	if total <= 100*units.OnePercent {
		return
	}
	if pos.IsZero() {
		pos = related[len(related)-1].Pos
	}
	v.found.Add(diag.Finding{
		Rule: "bandwidth", Severity: diag.Error, Pos: pos, Msg: fmt.Sprintf("the shares of the classes add up to %s", total),
		Hint: fmt.Sprintf("take away %s", total-100*units.OnePercent), Related: related,
	})
}

// roles checks that there is one rest class and one CNP class.
func (v *validator) roles() {
	one := func(rule, what, key string, at diag.Pos, hint string, pos func(*Class) diag.Pos) {
		var first *Class
		for i := range v.f.Classes {
			c := &v.f.Classes[i]
			switch p := pos(c); {
			case p.IsZero():
			case first != nil:
				v.found.Add(diag.Finding{
					Rule: rule, Severity: diag.Error, Pos: p, Msg: fmt.Sprintf("%s and %s are both the %s class", first.Name, c.Name, what),
					Hint: "keep one", Related: []diag.Related{{Pos: pos(first), Msg: "first here"}},
				})
			default:
				first = c
			}
		}
		if first == nil && len(v.f.Classes) > 0 && !v.lost(key) {
			v.found.Errorf(rule, at, hint, "no class is the %s class", what)
		}
	}
	at, hint := v.restCandidate()
	one("rest-class", "rest", "dscp", at, hint, func(c *Class) diag.Pos {
		if !c.Rest.V {
			return diag.Pos{}
		}
		return c.Rest.Pos()
	})
	one("cnp-class", "CNP", "role", v.firstClass(), "add a class with role: cnp, its own priority and scheduling: strict", func(c *Class) diag.Pos { return c.Role.Pos() })
}

func (v *validator) firstClass() diag.Pos {
	if len(v.f.Classes) == 0 {
		return diag.Pos{}
	}
	return v.f.Classes[0].Pos
}

// restCandidate is where dscp: rest most likely belongs: the lossy class at priority 0, where there is one.
func (v *validator) restCandidate() (at diag.Pos, hint string) {
	for i := range v.f.Classes {
		if c := &v.f.Classes[i]; c.Priority.Set && c.Priority.V == 0 && !c.Lossless.V && !c.Role.Set && len(c.DSCP) > 0 {
			return c.DSCP[0].Pos(), fmt.Sprintf("write dscp: rest for class %s, so that every code point has a class", c.Name)
		}
	}
	return v.firstClass(), "give the default class dscp: rest, so that every code point has a class"
}

// doubtful reports whether a class lost values to earlier findings, so that absence proves nothing.
func (v *validator) doubtful() bool {
	n := v.f.docs.fabric.kid("classes")
	return n == nil || n.bad || hasBad(n)
}

// lost reports whether some class may have lost the value of a key: there, or under a key that is misspelt.
func (v *validator) lost(key string) bool {
	n := v.f.docs.fabric.kid("classes")
	if n == nil || n.bad {
		return true
	}
	list := classSchema(true)
	return slices.ContainsFunc(n.items, func(c *node) bool {
		k := c.kid(key)
		return c.bad || k != nil && hasBad(k) || k == nil && misspelt(list, c, key)
	})
}

func hasBad(n *node) bool {
	if n.bad {
		return true
	}
	if slices.ContainsFunc(n.items, hasBad) {
		return true
	}
	for _, x := range n.keys {
		if hasBad(x.kid) {
			return true
		}
	}
	return false
}

// classes checks each class on its own.
func (v *validator) classes() {
	for i := range v.f.Classes {
		c := &v.f.Classes[i]
		v.ramp(c.Name, c.ECN, c.ECN, "class "+c.Name)
		if c.Lossless.V && c.Role.V == "cnp" && v.cnps() == 1 {
			v.found.Errorf("cnp-class", c.Lossless.Pos(), "notifications must not wait for a pause: remove lossless",
				"class %s carries congestion notifications and is lossless", c.Name)
		}
		if n := v.classNode(c.Name).get("dscp"); n != nil && n.shape == listNode && len(n.items) == 0 {
			v.found.Errorf("value", n.pos(), "list code points, or write dscp: rest", "class %s has no code point", c.Name)
		}
		if xoff := v.classNode(c.Name).get("pfc", "xoff"); xoff != nil && !hasBad(xoff) {
			v.xoff(c, xoff.pos(), "class "+c.Name)
		}
		if pfc := v.classNode(c.Name).get("pfc"); pfc != nil && !c.Lossless.V && !hasBad(v.classNode(c.Name)) {
			v.found.Errorf("value", pfc.pos(), "add lossless: true, or remove pfc", "class %s has pfc but is not lossless", c.Name)
		}
	}
}

// xoff checks that a pause threshold, which stands at pos, has one form. A share of all of the pool is no threshold.
func (v *validator) xoff(c *Class, pos diag.Pos, what string) {
	forms := 0
	for _, set := range []bool{c.Xoff.Bytes.Set, c.Xoff.Alpha.Set, c.Xoff.Share.Set} {
		if set {
			forms++
		}
	}
	if forms == 1 && c.Xoff.Share.Set && !c.Xoff.Of.Set {
		v.found.Errorf("value", pos, fmt.Sprintf("add of: pool: {share: %s, of: pool}", c.Xoff.Share.V), "%s: xoff is a share without its base", what)
	} else if forms != 1 || c.Xoff.Share.Set != c.Xoff.Of.Set {
		v.found.Errorf("value", pos, "write a size, {alpha: 1/2}, or {share: 50%, of: pool}", "%s: xoff takes one form", what)
	} else if c.Xoff.Share.Set && c.Xoff.Share.V >= 100*units.OnePercent {
		v.found.Errorf("value", c.Xoff.Share.Pos(), "choose less, such as 50%", "%s: with %s of the %s, pause would start when nothing is left", what, c.Xoff.Share.V, c.Xoff.Of.V)
	}
}

// cnps is how many classes carry notifications, as it stands.
func (v *validator) cnps() (n int) {
	for i := range v.f.Classes {
		if v.f.Classes[i].Role.V == "cnp" {
			n++
		}
	}
	return n
}

func (v *validator) classNode(name string) *node {
	for _, n := range v.f.docs.fabric.get("classes").list() {
		if n.name() == name {
			return n
		}
	}
	return nil
}

// ramp checks that a marking ramp is whole. given is what stands at this place, effective what results there.
func (v *validator) ramp(class string, given, effective ECN, what string) {
	if given == (ECN{}) {
		return
	}
	var missing []string
	for _, x := range []struct {
		key string
		set bool
	}{{"kmin", effective.Kmin.Set}, {"kmax", effective.Kmax.Set}, {"pmax", effective.Pmax.Set}} {
		if !x.set {
			missing = append(missing, x.key)
		}
	}
	pos := cmp.Or(given.Kmin.Pos(), given.Kmax.Pos(), given.Pmax.Pos())
	if len(missing) > 0 && !hasBadECN(v.classNode(class)) {
		such := map[string]string{"kmin": "kmin: 800KB", "kmax": "kmax: 3200KB", "pmax": "pmax: 20%"}
		hint := make([]string, len(missing))
		for i, key := range missing {
			hint[i] = such[key]
		}
		v.found.Errorf("missing", pos, "add "+strings.Join(hint, ", ")+", say", "%s: ecn has no %s", what, strings.Join(missing, " and no "))
	}
}

func hasBadECN(n *node) bool { return n != nil && n.kid("ecn") != nil && hasBad(n.kid("ecn")) }

// mtu checks that the sizes that are used are given and possible.
func (v *validator) mtu() {
	n := v.f.docs.fabric.get("mtu")
	hosts := slices.ContainsFunc(v.f.Devices, func(d Device) bool { return d.Host })
	switches := slices.ContainsFunc(v.f.Devices, func(d Device) bool { return !d.Host })
	if n != nil && switches && !n.has("fabric") {
		v.found.Errorf("missing", n.pos(), "add fabric: 9216B", "mtu has no fabric")
	}
	if n != nil && hosts && !n.has("host") {
		v.found.Errorf("missing", n.pos(), "add host: 9000B", "mtu has no host")
	}
	v.sizes(v.f.MTU)
	if r := v.f.MTU.RoCE; r.Set && !slices.Contains([]units.Bytes{256, 512, 1024, 2048, 4096}, r.V) {
		v.found.Errorf("value", r.Pos(), "RDMA payloads are 256B, 512B, 1024B, 2048B or 4096B", "mtu.roce: %s is not an RDMA MTU", r.V.Exact())
	}
}

func (v *validator) sizes(m MTU) {
	const least, most = 68, 65535 // RFC 791; 16-bit length fields
	for _, x := range []struct {
		key string
		v   Value[units.Bytes]
	}{{"fabric", m.Fabric}, {"host", m.Host}} {
		if x.v.Set && (x.v.V < least || x.v.V > most) {
			v.found.Errorf("value", x.v.Pos(), "", "mtu.%s: %s is not from %dB to %dB", x.key, x.v.V.Exact(), least, most)
		}
	}
}

// watchdog checks that a watchdog is whole and in whole milliseconds.
func (v *validator) watchdog(what string, given, effective Watchdog) {
	if given == (Watchdog{}) {
		return
	}
	for _, x := range []struct {
		key string
		v   Value[units.Duration]
	}{{"detect", given.Detect}, {"restore", given.Restore}, {"poll", given.Poll}} {
		switch {
		case !x.v.Set:
		case x.v.V%units.Millisecond != 0:
			v.found.Errorf("units", x.v.Pos(), "switches take whole milliseconds", "%s.%s: %s is not a whole number of milliseconds", what, x.key, x.v.V)
		case x.v.V == 0 || x.v.V > units.Hour:
			v.found.Errorf("value", x.v.Pos(), "", "%s.%s: %s is not from 1ms to 1h", what, x.key, x.v.V)
		}
	}
	pos := cmp.Or(given.Detect.Pos(), given.Restore.Pos(), given.Poll.Pos(), given.Action.Pos())
	for _, x := range []struct {
		key, such string
		set       bool
	}{{"detect", "200ms", effective.Detect.Set}, {"restore", "400ms", effective.Restore.Set}, {"action", "drop", effective.Action.Set}} {
		if n := v.f.docs.fabric.kid("pfc_watchdog"); !x.set && !(n != nil && hasBad(n)) {
			v.found.Errorf("missing", pos, fmt.Sprintf("add %s: %s", x.key, x.such), "%s has no %s", what, x.key)
		}
	}
}

// applications checks that the marking table names classes that there are.
func (v *validator) applications() {
	for i := range v.f.Apps {
		a := &v.f.Apps[i]
		if a.Class.Set && len(v.f.Classes) > 0 && v.f.class(a.Class.V) == nil && !v.doubtful() {
			v.found.Errorf("unknown-name", a.Class.Pos(), didYouMean(a.Class.V, v.classNames()), "applications.%s: there is no class %s", a.Name, a.Class.V)
		}
		if c := v.f.class(a.Class.V); c != nil && c.Role.V == "cnp" {
			v.found.Errorf("value", a.Class.Pos(), "name a class for data", "applications.%s: class %s carries congestion notifications, which data would hold up", a.Name, c.Name)
		}
	}
	if n := v.f.docs.fabric.get("applications"); n != nil && len(n.items) > maxApps {
		v.found.Errorf("limits", n.items[maxApps].pos(), "list kinds of traffic, not single programs", "%d applications; at most %d are read", len(n.items), maxApps)
	}
}

// acknowledgements checks that roles and devices named there exist.
func (v *validator) acknowledgements() {
	if len(v.f.Devices) == 0 {
		return
	}
	for _, a := range v.f.Acks {
		if a.Role.Set && !slices.ContainsFunc(v.f.Devices, func(d Device) bool { return d.Role == a.Role.V }) {
			v.found.Errorf("unknown-name", a.Role.Pos(), didYouMean(a.Role.V, v.roleNames()), "acknowledge: no device has the role %s", a.Role.V)
		}
		if a.Device.Set && v.f.Endpoints[a.Device.V] == nil {
			v.found.Errorf("unknown-name", a.Device.Pos(), "", "acknowledge: the topology has no device %s", clip(a.Device.V))
		}
	}
}

func (v *validator) roleNames() []string {
	seen := map[string]bool{}
	for i := range v.f.Devices {
		seen[v.f.Devices[i].Role] = true
	}
	return sortedKeys(seen)
}

func (v *validator) classNames() []string {
	var names []string
	for i := range v.f.Classes {
		names = append(names, v.f.Classes[i].Name)
	}
	return names
}

// platforms checks that every platform is known, once per line that names one.
func (v *validator) platforms() {
	seen := map[*Origin]bool{}
	for i := range v.f.Devices {
		d := &v.f.Devices[i]
		if !d.Platform.Set || seen[d.Platform.From] {
			continue
		}
		seen[d.Platform.From] = true
		p, ok := v.f.Catalog.Platform(d.Platform.V)
		switch {
		case !ok:
			hint := PlatformHint(clip(d.Platform.V), v.f.Catalog.Names())
			if d.Role == "host" || d.Role == "storage" {
				hint = "write linux/generic, whatever Linux the hosts have"
			}
			v.found.Errorf("platform", d.Platform.Pos(), hint+" (or describe it in a document of kind Profile)", "unknown platform %q", clip(d.Platform.V))
		case d.Host && misfit(d):
			v.found.Errorf("platform", d.Platform.Pos(), "name a switch's, such as sonic/sn5600; fabricctl profiles lists them", "%s is a host's platform, but %s is a switch", d.Platform.V, d.Role)
		case misfit(d):
			v.found.Errorf("platform", d.Platform.Pos(), "hosts have linux/… platforms", "%s is a switch's platform", d.Platform.V)
		case !d.Host && p.MaxMTU > 0 && v.f.MTU.Fabric.V > p.MaxMTU:
			v.found.Errorf("value", v.f.MTU.Fabric.Pos(), "lower it to "+p.MaxMTU.Exact()+v.mayBeWrong(profiles.KindPlatform, p.Name, "max_mtu"),
				"mtu.fabric: %s is more than %s takes, which is %s", v.f.MTU.Fabric.V.Exact(), p.Name, p.MaxMTU.Exact())
		}
	}
}
