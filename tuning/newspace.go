package tuning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// SpaceOptions say what of a fabric is to be moved.
type SpaceOptions struct {
	Class     string           // by name; "" = the only lossless class
	Variables []string         // names of VariableNames, each with "@" and a scope where it is of a part alone; nil = the usual ones
	Scope     string           // of variables that name none: "" = the whole fabric, or a role, or a device
	FanIn     int              // ports that burst to one at once, for the starts that formulas give; 0 = that of Workload, else of the class
	Workload  observe.Workload // that is to be run
	Externals []ExternalSpec   // knobs that the model does not know
	Live      bool             // devices are to be written: what nobody owns is an error, and not only said
}

// VariableNames are the variables that NewSpace takes, by name and with what they do, in the order of the table: those of the class, of
// hosts, and of the workload. Ranges that depend on the fabric are not filled in.
func VariableNames() []Variable {
	var vs []Variable
	for _, r := range allRows() {
		r.Paths = r.paths
		vs = append(vs, r.Variable)
	}
	for _, k := range loadKnobs() {
		k.Name = loadPrefix + k.Name
		vs = append(vs, k.Variable)
	}
	return vs
}

func allRows() []row { return append(variableRows(), hostRows()...) }

// NewSpace is what can be moved of a class of f, which has loaded without errors. Findings say what was asked for and cannot be moved,
// which is an error, and what the experiment will not show. With errors among them the space is not to be used.
func NewSpace(f *model.Fabric, o SpaceOptions) (*Space, diag.List) {
	net, found := intent.Resolve(f)
	b := &spacer{f: f, net: net, options: o, scopes: map[string]*scope{}, written: map[string]string{}}
	if found.HasErrors() {
		return &Space{}, found.Sort()
	}
	for _, l := range f.Leaves() {
		b.written[l.Path] = l.Text
	}
	if b.ofModel() {
		if b.class = b.theClass(); b.class == nil {
			return &Space{}, b.found.Sort()
		}
	}
	b.variables()
	b.externals()
	if len(b.knobs) == 0 && !b.found.HasErrors() {
		b.errorf("name others with --variables", "there is nothing to move")
	}
	if b.found.HasErrors() {
		return &Space{}, b.found.Sort()
	}
	s := b.space()
	b.reach(s)
	return s, b.found.Sort()
}

// ofModel reports whether a variable of the model is asked for. Without one no class is needed.
func (b *spacer) ofModel() bool { return OfModel(b.options.Variables, len(b.options.Externals) > 0) }

// OfModel reports whether one of the variables that are named is of the model, and neither of the load nor external. Where none is named and there
// are no external ones, the usual ones are meant, which are.
func OfModel(variables []string, externals bool) bool {
	if len(variables) == 0 {
		return !externals
	}
	return slices.ContainsFunc(variables, func(name string) bool { return !strings.HasPrefix(name, loadPrefix) })
}

// spacer makes a Space.
type spacer struct {
	f       *model.Fabric
	net     *intent.Net
	options SpaceOptions
	class   *model.Class
	scopes  map[string]*scope
	order   []*scope          // in the order of variables
	knobs   []knob            // the variables, in order
	written map[string]string // what the model says, by path
	found   diag.List
}

// knob is a variable of the space that is made.
type knob struct {
	row
	sc  *scope  // nil: it is external, or of the workload
	now float64 // what it is in the model, or outside
}

// scope is a part of the fabric in which a variable has one value.
type scope struct {
	space  *spacer
	name   string // "" = all
	prefix string // of paths: "", "overrides.leaf.", "overrides.leaf.devices.leaf1."
	class  string // of paths of the class: "classes.training.", "overrides.leaf.classes.training."
	places []place
	ref    *place // whose values are those of the scope: the most common, of ports that hosts are linked to if there are any; nil: it has hosts alone
	hosts  bool   // there are hosts in it
}

// place is a port of a switch on which the class is lossless, or what hosts are told.
type place struct {
	space *spacer
	hosts model.Hosts
	dev   *intent.Device
	port  *intent.Port
	pol   *intent.Policy
}

func (p *place) String() string       { return p.dev.Name + ":" + p.port.Name }
func (p *place) queue() *intent.Queue { return &p.pol.Queues[p.space.class.Priority.V&7] }

// buffer is the buffer of the class as the model has it, or as the device makes it by itself.
func (p *place) buffer() (intent.Buffer, refusal) {
	b, ok := intent.BufferInEffect(p.dev, p.port, int(p.space.class.Priority.V&7))
	if asked := p.queue().Buffer; asked.On && !asked.Device {
		b = asked // before it is rounded to cells
	}
	switch {
	case !p.pol.Known.Has(intent.AreaBuffer):
		return b, refusal{fmt.Sprintf("fabricctl does not write buffers of %s (%s)", p.dev.Platform, p), "move it as an external variable, or leave it as it is"}
	case !ok || !b.On:
		return b, refusal{"what buffer it has is not known", "write xoff, xon_offset and headroom for the class, or describe the platform's table in a Profile"}
	}
	return b, refusal{}
}

// classPath is where the scope has another class.
func (sc *scope) classPath(name string) string { return sc.prefix + "classes." + name + "." }

// hostPath is where the scope has what hosts are told.
func (sc *scope) hostPath() string { return sc.prefix + "hosts." }

func (sc *scope) String() string {
	if sc.name == "" {
		return "the fabric"
	}
	return sc.name
}

const spaceRule = "tune-space"

func (b *spacer) errorf(hint, format string, a ...any) {
	pos := b.f.Pos
	if b.class != nil {
		pos = b.class.Pos
	}
	b.found.Errorf(spaceRule, pos, hint, format, a...)
}

// theClass is the class that is tuned.
func (b *spacer) theClass() *model.Class {
	var names, lossless []string
	for i := range b.f.Classes {
		c := &b.f.Classes[i]
		if c.Name == b.options.Class {
			if !c.Lossless.V {
				b.found.Errorf(spaceRule, cmp.Or(c.Lossless.Pos(), c.Pos), "name a lossless class, or make this one lossless",
					"class %s is lossy: it never pauses, and what is tuned here keeps packets from being dropped", c.Name)
				return nil
			}
			return c
		}
		names = append(names, c.Name)
		if c.Lossless.V {
			lossless = append(lossless, c.Name)
		}
	}
	switch {
	case b.options.Class != "":
		b.errorf("there are "+strings.Join(names, ", "), "there is no class %s", diag.Line(b.options.Class))
	case len(lossless) == 0:
		b.errorf("give a class lossless: true", "no class is lossless")
	case len(lossless) > 1:
		b.errorf("--class "+lossless[0], "%s are lossless, and one is tuned at a time", strings.Join(lossless, " and "))
	default:
		return &b.f.Classes[slices.IndexFunc(b.f.Classes, func(c model.Class) bool { return c.Lossless.V })]
	}
	return nil
}

// scope finds a part of the fabric by its name; nil when there is none, which is said.
func (b *spacer) scope(name string) *scope {
	if sc, ok := b.scopes[name]; ok {
		return sc
	}
	sc := &scope{space: b, name: name}
	var roles []string
	known := name == ""
	for i := range b.net.Devices {
		d := &b.net.Devices[i]
		if !slices.Contains(roles, d.Role) {
			roles = append(roles, d.Role)
		}
		switch {
		case name == "":
		case d.Name == name:
			sc.prefix, known = "overrides."+d.Role+".devices."+d.Name+".", true
		case d.Role == name:
			sc.prefix, known = "overrides."+d.Role+".", true
		default:
			continue
		}
		sc.hosts = sc.hosts || d.Host
		b.places(sc, d)
	}
	sc.class = sc.classPath(b.class.Name)
	b.scopes[name] = nil
	switch {
	case !known:
		b.errorf("there are "+strings.Join(roles, ", ")+", and devices by name", "there is no role and no device %s", diag.Line(name))
		return nil
	case len(sc.places) == 0 && !sc.hosts:
		b.errorf("choose another part of the fabric", "class %s is lossless on no port in use of %s", b.class.Name, sc)
		return nil
	}
	sc.ref = mostCommon(sc.places)
	b.scopes[name], b.order = sc, append(b.order, sc)
	return sc
}

// places adds the ports of a switch on which the class is lossless.
func (b *spacer) places(sc *scope, d *intent.Device) {
	if d.Host || d.State != intent.Active {
		return
	}
	for j := range d.Ports {
		p := place{space: b, dev: d, port: &d.Ports[j], pol: d.PolicyOf(&d.Ports[j])}
		if p.port.State == intent.Active && p.port.Role != "unused" && p.queue().Lossless {
			sc.places = append(sc.places, p)
		}
	}
}

// mostCommon is the first of the places that are alike and most: of those that hosts are linked to, if there are any.
func mostCommon(places []place) *place {
	type alike struct {
		host  bool
		queue intent.Queue
		speed units.BitRate
	}
	count := map[alike]int{}
	var best *place
	var most alike
	for i := range places {
		p := &places[i]
		k := alike{p.port.Role == "host" || p.port.Role == "storage", *p.queue(), p.port.Speed}
		count[k]++
	}
	for i := range places {
		p := &places[i]
		k := alike{p.port.Role == "host" || p.port.Role == "storage", *p.queue(), p.port.Speed}
		if best == nil || k.host && !most.host || k.host == most.host && count[k] > count[most] {
			best, most = p, k
		}
	}
	return best
}

// variables finds what is asked for.
func (b *spacer) variables() {
	names, usual := b.options.Variables, false
	if len(names) == 0 && len(b.options.Externals) == 0 {
		names, usual = []string{Alpha, Kmax, KminRatio, Pmax}, true
	}
	rows := allRows()
	for _, full := range names {
		if strings.HasPrefix(full, loadPrefix) {
			b.load(full)
			continue
		}
		name, of, _ := strings.Cut(full, "@")
		if of == "" {
			of = b.options.Scope
		}
		i := slices.IndexFunc(rows, func(r row) bool { return r.Name == name })
		if i < 0 {
			b.unknown(name, rows)
			continue
		}
		sc := b.scope(of)
		switch {
		case sc == nil:
			if usual {
				return // said once
			}
		case slices.ContainsFunc(b.knobs, func(k knob) bool { return k.short() == name && k.sc == sc }):
			b.errorf("name it once", "the variable %s is named twice", diag.Line(full))
		case usual && name == Alpha && sc.ref != nil && b.class.Xoff.Bytes.Set:
			b.add(rows[slices.IndexFunc(rows, func(r row) bool { return r.Name == Xoff })], sc, usual)
		default:
			b.add(rows[i], sc, usual)
		}
	}
}

// load adds a variable of the workload.
func (b *spacer) load(name string) {
	v, now, err := WorkloadVariable(name, &b.options.Workload)
	switch {
	case err != nil:
		b.errorf("", "%s", diag.Line(err.Error()))
	case b.find(name, nil) >= 0:
		b.errorf("name it once", "the variable %s is named twice", name)
	default:
		b.knobs = append(b.knobs, knob{row: row{Variable: v}, now: now})
	}
}

func (b *spacer) unknown(name string, rows []row) {
	var known []string
	for _, r := range rows {
		known = append(known, r.Name)
	}
	hint := "there are " + strings.Join(known, ", ")
	if w := model.Closest(name, known); w != "" {
		hint = "did you mean " + w + "?"
	}
	if name == "kmin" {
		hint = "kmin follows kmax, and is moved as " + KminRatio
	}
	b.errorf(hint, "there is no variable %s", diag.Line(name))
}

// add adds a variable of a scope. What belongs to the usual ones and cannot be moved is left out, and said.
func (b *spacer) add(r row, sc *scope, usual bool) {
	if !r.host && sc.ref == nil {
		b.errorf("write "+r.Name+"@leaf, or the role of other switches", "%s cannot be moved: it is a variable of switches, and there are none in the scope %s", r.Name, sc)
		return
	}
	if r.host && !sc.hosts {
		b.errorf("write "+r.Name+"@host, or the role of other hosts", "%s cannot be moved: it is a variable of hosts, and there are none in the scope %s", r.Name, sc)
		return
	}
	now, why := r.read(b.from(r, sc))
	if why.what != "" {
		pos := cmp.Or(b.class.Xoff.Pos(), b.class.Pos)
		if r.area != intent.AreaBuffer {
			pos = b.class.Pos
		}
		if usual {
			b.found.Infof(spaceRule, pos, why.hint, "%s is not moved: %s", r.Name, why.what)
		} else {
			b.found.Errorf(spaceRule, pos, why.hint, "%s cannot be moved: %s", r.Name, why.what)
		}
		return
	}
	if r.span != nil {
		r.Low, r.High = r.span(sc, now)
	} else {
		r.Low, r.High = min(r.Low, now), max(r.High, now)
	}
	if r.rungs != nil {
		r.Ladder = r.rungs(sc, r.Low, r.High)
	}
	for i := range r.paths {
		r.Paths = append(r.Paths, b.prefixOf(r, sc)+r.paths[i])
	}
	if sc.name != "" {
		r.Name += "@" + sc.name
	}
	b.knobs = append(b.knobs, knob{row: r, sc: sc})
	b.found.Add(b.apart(r, sc, now)...)
}

// from is where the value of a row is read that a scope has.
func (b *spacer) from(r row, sc *scope) *place {
	if !r.host {
		return sc.ref
	}
	p := &place{space: b, hosts: b.f.Hosts}
	for i := range b.f.Devices {
		d := &b.f.Devices[i]
		if d.Name != sc.name && d.Role != sc.name {
			continue
		}
		if o := b.f.Roles[d.Role]; o != nil {
			p.hosts = o.Hosts.Over(p.hosts)
		}
		if d.Name == sc.name && d.Override != nil {
			p.hosts = d.Override.Hosts.Over(p.hosts)
		}
		break
	}
	return p
}

func (b *spacer) prefixOf(r row, sc *scope) string {
	if r.host {
		return sc.hostPath()
	}
	return sc.class
}

// apart says that a variable, which will have one value, has several now.
func (b *spacer) apart(r row, sc *scope, now float64) (l diag.List) {
	if r.host {
		return nil
	}
	other, n := "", 0
	for i := range sc.places {
		if v, why := r.read(&sc.places[i]); why.what == "" && v != now {
			if n++; other == "" {
				other = fmt.Sprintf("%s on %s", r.Text(v), &sc.places[i])
			}
		}
	}
	if n > 0 {
		l.Infof(spaceRule, b.class.Pos, "tune parts of their own: "+r.short()+"@leaf, say", "%s is %s on %s and %s: the experiment has one for all %s, unless an override says otherwise",
			r.Name, r.Text(now), sc.ref, other, diag.Count(len(sc.places), "port"))
	}
	return l
}

// short is the name of the variable without its scope.
func (r *row) short() string { name, _, _ := strings.Cut(r.Name, "@"); return name }

// find is the place in Vars of a variable of a scope; -1 when it is not moved.
func (b *spacer) find(name string, sc *scope) int {
	return slices.IndexFunc(b.knobs, func(k knob) bool {
		return k.sc == sc && (k.short() == name || sc == nil && k.Name == name)
	})
}

// reach tries to move each variable, and says where it does not.
func (b *spacer) reach(s *Space) {
	for i := range b.knobs {
		k := &b.knobs[i]
		if k.sc == nil {
			continue
		}
		x := slices.Clone(s.Base)
		x[i] = k.other(s.Base[i])
		patch := s.Change(x).Patch
		g, found := b.f.With(patch)
		if e := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Severity == diag.Error && f.Rule == "patch" }); e >= 0 {
			b.found.Add(found[e])
			continue
		}
		if found.HasErrors() {
			continue // this value is wrong: Check says so of each
		}
		net, _ := intent.Resolve(g)
		b.moved(k, net)
	}
}

// other is a value of k that is not now.
func (k *knob) other(now float64) float64 {
	for _, v := range append(slices.Clone(k.Ladder), k.High, k.Low) {
		if w := k.normal(now, v); w != now {
			return w
		}
	}
	return now
}

// moved says which ports a variable does not move, and which nobody owns.
func (b *spacer) moved(k *knob, net *intent.Net) {
	n, owned := 0, 0
	var still, foreign string
	for i := range b.net.Devices {
		was, is := &b.net.Devices[i], &net.Devices[i]
		if was.Host != k.host || k.sc.name != "" && was.Name != k.sc.name && was.Role != k.sc.name || was.State != intent.Active {
			continue
		}
		for j := range was.Ports {
			p := &was.Ports[j]
			if p.State != intent.Active || p.Role == "unused" || !k.host && !was.PolicyOf(p).Queues[b.class.Priority.V&7].Lossless {
				continue
			}
			switch {
			case *was.PolicyOf(p) == *is.PolicyOf(&is.Ports[j]):
				still = cmp.Or(still, was.Name+":"+p.Name)
			case p.Manage[k.area] != intent.Own:
				n++
				foreign = cmp.Or(foreign, was.Name+":"+p.Name)
			default:
				n, owned = n+1, owned+1
			}
		}
	}
	severity := diag.Warning
	if b.options.Live {
		severity = diag.Error
	}
	manage := fmt.Sprintf("own %s there, as in manage: {switches: own, hosts: own}", k.area)
	switch {
	case n == 0:
		b.found.Errorf(spaceRule, b.class.Pos, "leave it out, or take away what overrides it", "%s moves nothing on %s: %s has a value of its own, or its system has no such setting", k.Name, k.sc, still)
	case owned == 0:
		b.found.Add(diag.Finding{
			Rule: spaceRule, Severity: severity, Pos: b.class.Pos, Hint: manage,
			Msg: fmt.Sprintf("%s belongs to %s, which nobody owns: it could not be written on %s or any other port", k.Name, k.area, foreign),
		})
	case owned < n:
		b.found.Add(diag.Finding{
			Rule: spaceRule, Severity: diag.Warning, Pos: b.class.Pos, Hint: manage,
			Msg: fmt.Sprintf("%s is moved on %s, of which %s belong to nobody, such as %s: those are not written", k.Name, diag.Count(n, "port"), diag.Count(n-owned, "port"), foreign),
		})
	}
	if n > 0 && still != "" {
		b.found.Infof(spaceRule, b.class.Pos, "", "%s stays as it is on some ports, such as %s, which have a value of their own", k.Name, still)
	}
}
