package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// level is what one place of the inventory (the defaults, a group, a device) says about reaching devices.
type level struct {
	gnmi       GNMI
	ssh        SSH
	lab        Value[bool]
	management Value[string]
}

func decodeLevel(n *node) level {
	return level{
		gnmi: decodeGNMI(n.get("gnmi")), ssh: decodeSSH(n.get("ssh")), lab: boolean(n.get("lab")), management: text(n.get("management")),
	}
}

// over is l with the values of d where l has none; what d said and l says too is remembered as lost.
func (l level) over(d level) level {
	return level{
		gnmi: l.gnmi.over(d.gnmi), ssh: l.ssh.over(d.ssh), lab: winning(l.lab, d.lab), management: winning(l.management, d.management),
	}
}

// reach works out how each device is reached: defaults, then the groups that it is in, then what it says itself.
type reach struct {
	inventory *node
	defaults  level
	byRole    map[string][]string // groups of a role
	byDevice  map[string][]string // groups that name a device
	rank      map[string]int      // place of a group in the inventory
	said      map[string]*said    // what a group says
	base      map[string]level    // what the defaults and a set of groups say, by the groups' names
	clashes   map[string][]*clash // contradictions inside a set of groups
	pairs     map[string]*clash   // the same by path and groups, which sets share; nil where two groups agree
	order     []*clash            // those that a device meets, in the order of the devices
	crowded   string              // a device that is in more than maxGroups
}

// Limits on input, far above any real inventory: each device costs no more than they say.
const (
	maxGroups  = 32 // that a device is in
	maxClashes = 20 // of the groups of one device that are told
)

// said is what one group says.
type said struct {
	level  level
	places []place
}

// place is a value that a group gives, or a list of them.
type place struct {
	path string
	node *node
}

// clash is one value that two groups give differently.
type clash struct {
	path    string
	a, b    string // groups, a first
	at, too diag.Pos
	devices []string // that are in both, and do not settle it themselves
}

// newReach reads the defaults and who is in which group.
func newReach(inventory *node, found *diag.List) *reach {
	r := &reach{
		inventory: inventory, defaults: defaultLevel(inventory), byRole: map[string][]string{}, byDevice: map[string][]string{},
		rank: map[string]int{}, said: map[string]*said{}, base: map[string]level{}, clashes: map[string][]*clash{}, pairs: map[string]*clash{},
	}
	groups := inventory.get("groups")
	groups.each(func(group string, g *node) {
		r.rank[group] = len(r.rank)
		if !g.has("roles") && !g.has("devices") {
			found.Errorf("missing", groups.at(group), "add roles: [leaf] or devices: [leaf1]", "group %s says nobody who is in it", group)
		}
		for _, n := range g.get("roles").list() {
			member(r.byRole, n.text, group)
		}
		for _, n := range g.get("devices").list() {
			member(r.byDevice, n.text, group)
		}
	})
	return r
}

// member notes that a role or a device is in a group, once, and in one group more than are looked at.
func member(of map[string][]string, who, group string) {
	if gs := of[who]; len(gs) <= maxGroups && (len(gs) == 0 || gs[len(gs)-1] != group) {
		of[who] = append(gs, group)
	}
}

// defaultLevel is what holds for a device of which nothing is said.
func defaultLevel(inventory *node) level {
	d := decodeLevel(inventory.get("defaults"))
	d.gnmi.Port = d.gnmi.Port.Or(Value[int]{V: 8080, From: &Origin{Kind: FromDefault, Ref: "SONiC's gNMI server listens on 8080 unless told otherwise"}})
	d.ssh.Port = d.ssh.Port.Or(Value[int]{V: 22, From: &Origin{Kind: FromDefault, Ref: "SSH"}})
	d.management = d.management.Or(Value[string]{V: OutOfBand, From: &Origin{Kind: FromDefault, Ref: "a management network of its own"}})
	return d
}

// members reports roles and devices of groups that the topology does not have.
func (t *topology) members(r *reach) {
	roles := map[string]bool{}
	var names []string
	for i := range t.f.Devices {
		if role := t.f.Devices[i].Role; !roles[role] {
			roles[role] = true
			names = append(names, role)
		}
	}
	r.inventory.get("groups").each(func(_ string, g *node) {
		for _, n := range g.get("roles").list() {
			if !roles[n.text] && !t.broken && len(names) > 0 {
				t.found.Errorf("unknown-name", n.pos(), t.meant(n.text, names), "no device has the role %s", n.text)
			}
		}
		for _, n := range g.get("devices").list() {
			if t.devices[n.text] == nil {
				t.unknownDevice(n.text, n.pos())
			}
		}
	})
}

// of are the groups of a device, in the order of the inventory. Without a Fabric nobody says its role.
func (r *reach) of(name, role string) []string {
	if len(r.rank) == 0 {
		return nil
	}
	gs := append(slices.Clone(r.byRole[role]), r.byDevice[name]...)
	slices.SortFunc(gs, func(a, b string) int { return r.rank[a] - r.rank[b] })
	gs = slices.Compact(gs)
	if len(gs) > maxGroups {
		gs = gs[:maxGroups:maxGroups]
		r.crowded = cmp.Or(r.crowded, name)
	}
	return gs
}

// group is what a group says, read once.
func (r *reach) group(name string) *said {
	s := r.said[name]
	if s == nil {
		n := r.inventory.get("groups", name)
		s = &said{level: decodeLevel(n), places: given(n, "", nil)}
		r.said[name] = s
	}
	return s
}

// given appends what a group gives to ps; who is a member is not meant.
func given(n *node, path string, ps []place) []place {
	n.each(func(key string, c *node) {
		switch {
		case path == "" && (key == "roles" || key == "devices"):
		case c.shape == mapNode:
			ps = given(c, join(path, key), ps)
		default:
			ps = append(ps, place{join(path, key), c})
		}
	})
	return ps
}

// endpoint is how the inventory reaches a device, whether it names it or not. role is "" where no Fabric gives it.
func (r *reach) endpoint(name, role string) *Endpoint {
	e := r.inventory.get("devices", name)
	groups := r.of(name, role)
	l := r.shared(groups, name, e)
	if e != nil {
		l = decodeLevel(e).over(l)
	}
	ep := &Endpoint{
		Device: name, Address: text(e.get("address")), Platform: text(e.get("platform")), Serial: text(e.get("serial")),
		Hostname: text(e.get("hostname")), Groups: groups, Lab: l.lab, GNMI: l.gnmi, SSH: l.ssh,
		Management: l.management, ManagementPort: text(e.get("management_port")),
	}
	if e != nil {
		ep.Pos = r.inventory.get("devices").at(name)
	}
	return ep
}

// shared is what the defaults and a device's groups say. own is what the inventory says under the device's name, which
// settles what the groups contradict each other in.
func (r *reach) shared(groups []string, device string, own *node) level {
	if len(groups) == 0 {
		return r.defaults
	}
	key := strings.Join(groups, " ")
	base, ok := r.base[key]
	if !ok {
		base = r.defaults
		for _, g := range groups {
			base = r.group(g).level.over(base)
		}
		r.base[key] = base
		r.clashes[key] = r.contradictions(groups)
	}
	for _, c := range r.clashes[key] {
		if own.get(strings.Split(c.path, ".")...) == nil {
			if len(c.devices) == 0 {
				r.order = append(r.order, c)
			}
			c.devices = append(c.devices, device)
		}
	}
	return base
}

// contradictions are the values that one of the groups gives and a later one gives differently. Each is compared with the
// first group that gives it, and with that one alone.
func (r *reach) contradictions(groups []string) []*clash {
	type first struct {
		group string
		node  *node
	}
	var out []*clash
	firsts := map[string]first{}
	for _, b := range groups {
		for _, p := range r.group(b).places {
			a, ok := firsts[p.path]
			if !ok {
				firsts[p.path] = first{b, p.node}
				continue
			}
			key := strings.Join([]string{p.path, a.group, b}, " ")
			c, ok := r.pairs[key]
			if !ok {
				if !same(a.node, p.node) {
					c = &clash{path: p.path, a: a.group, b: b, at: a.node.pos(), too: p.node.pos()}
				}
				r.pairs[key] = c
			}
			if c == nil {
				continue
			}
			if out = append(out, c); len(out) == maxClashes {
				return out
			}
		}
	}
	return out
}

// report says each contradiction once, with the devices that meet it.
func (r *reach) report(found *diag.List) {
	if r.crowded != "" {
		found.Errorf("limits", r.inventory.at("groups"), "say what most devices share under defaults",
			"%s is in more than %d groups; what the others say is not read", r.crowded, maxGroups)
	}
	for _, c := range r.order {
		who := c.devices[0] + " is"
		if n := len(c.devices) - 1; n > 0 {
			who = fmt.Sprintf("%s and %d more are", c.devices[0], n)
		}
		found.Add(diag.Finding{
			Rule: "conflict", Severity: diag.Error, Pos: c.too,
			Msg:     fmt.Sprintf("%s in the groups %s and %s, which give different values for %s", who, c.a, c.b, c.path),
			Hint:    fmt.Sprintf("give it under devices.%s, or in one of the groups alone", c.devices[0]),
			Related: []diag.Related{{Pos: c.at, Msg: "the value of " + c.a}},
		})
	}
}

// The words of management.
const (
	InBand    = "in-band"
	OutOfBand = "out-of-band"
)

// managementPort checks the port over which a device is managed in-band.
func (t *topology) managementPort(d *Device, ep *Endpoint) {
	p := ep.ManagementPort
	if !p.Set {
		return
	}
	if ep.Management.V != InBand {
		t.found.Errorf("value", p.Pos(), "add management: in-band, or remove the line", "%s has a management_port and is not managed in-band", d.Name)
		return
	}
	if _, ok := t.find(d, p.V); !ok {
		t.unknownPort(d, p.V, p.Pos())
	}
}

// Hop is one jump host.
type Hop struct {
	User    string // "" = the user of the device behind it
	Address string // host, or host:port
}

// Hops are the jump hosts that the value of a via names, the first one reached directly.
func Hops(via string) []Hop {
	var hs []Hop
	for s := range strings.SplitSeq(via, ",") {
		if s == "" {
			continue
		}
		user, address, ok := strings.Cut(s, "@")
		if !ok {
			user, address = "", s
		}
		hs = append(hs, Hop{user, address})
	}
	return hs
}

// ParseAddress splits ADDRESS or ADDRESS:PORT and checks both as the inventory does; an IPv6 address with a port needs
// brackets. port is 0 when there is none.
func ParseAddress(s string) (host string, port int, err error) {
	host, text := splitPort(s)
	host, p := addressScalar().parse(host)
	if p != nil || strings.Contains(s, "@") {
		return "", 0, fmt.Errorf("%q is not an IP address or host name", clip(s))
	}
	port, bad := parsePort(text)
	if bad || text == "" && (strings.HasSuffix(s, "]:") || s == host+":") {
		return "", 0, fmt.Errorf("%q is not a port", clip(text))
	}
	return host, port, nil
}

// splitPort cuts host:port and [IPv6]:port; the port is "" when there is none.
func splitPort(s string) (host, port string) {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		if host, tail, closed := strings.Cut(rest, "]"); closed && (tail == "" || tail[0] == ':') {
			return host, strings.TrimPrefix(tail, ":")
		}
	}
	if strings.Count(s, ":") == 1 {
		host, port, _ = strings.Cut(s, ":")
		return host, port
	}
	return s, ""
}

// parseHop checks one jump host and makes it canonical.
func parseHop(s string) (string, *problem) {
	s = strings.TrimSpace(s)
	user, address, ok := strings.Cut(s, "@")
	if !ok {
		user, address = "", s
	}
	host, port := splitPort(address)
	noPort := port == "" && host != address && strings.HasSuffix(address, ":")
	_, bad := addressScalar().parse(host)
	_, badPort := parsePort(port)
	switch {
	case strings.Contains(user, ":"):
		return "", &problem{"literal-secret", "holds a password", "write user@host; jump hosts are entered with the device's key, or the agent"}
	case bad != nil || badPort || noPort || ok && !isName(user, "-_."):
		return "", &problem{"value", "is not a jump host", "write host, host:port or user@host"}
	}
	if address = host; strings.Contains(host, ":") {
		address = "[" + host + "]"
	}
	if port != "" {
		address += ":" + port
	}
	if ok {
		return user + "@" + address, nil
	}
	return address, nil
}

func parsePort(s string) (port int, bad bool) {
	if s == "" {
		return 0, false
	}
	n, p := parseInt(s)
	return n, p != nil || n < 1 || n > 65535
}

// parseVia checks jump hosts with commas between them.
func parseVia(s string) (string, *problem) {
	var hops []string
	for part := range strings.SplitSeq(s, ",") {
		h, p := parseHop(part)
		if p != nil {
			return "", p
		}
		hops = append(hops, h)
	}
	return strings.Join(hops, ","), nil
}

// via reads jump hosts, one text or a list of them; an empty list is none, whatever stands below it.
func via(n *node) Value[string] {
	if n == nil || n.shape == mapNode {
		return Value[string]{}
	}
	items := n.list()
	if n.shape == scalarNode {
		items = []*node{n}
	}
	hops := make([]string, 0, len(items))
	for _, e := range items {
		h, p := parseVia(e.text)
		if p != nil {
			return Value[string]{}
		}
		hops = append(hops, h)
	}
	return Value[string]{V: strings.Join(hops, ","), Set: true, From: n.from}
}

// viaField is where jump hosts are given.
func viaField(doc string) field {
	const noun = "jump host such as jump.example.net or ops@jump:2222"
	return field{
		key: "via", doc: doc, scalar: &scalar{noun: noun + ", or several with commas", schema: hostSchema(hopsPattern), parse: parseVia},
		list: &field{key: "jump host", scalar: &scalar{noun: noun, schema: hostSchema(hopPattern), parse: parseHop}},
	}
}
