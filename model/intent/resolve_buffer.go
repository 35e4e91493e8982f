package intent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// link is what of a switch port's link and device decides its buffers and starting values; zero for hosts.
type link struct {
	platform string
	speed    units.BitRate
	cable    units.Length
	lanes    int
	hosts    bool // hosts are connected to the device
}

// linkOf is the link of a port. lanes are those of an unsplit port.
func linkOf(m *model.Device, p *model.Port, lanes int, hosts bool) link {
	return link{m.Platform.V, p.Speed.V, p.Cable.V, lanes / max(p.Breakout, 1), hosts}
}

// variant tells the links of a device apart.
func (l link) variant() string { return fmt.Sprintf("%s-%s-%d", l.speed, l.cable, l.lanes) }

// hasHosts reports whether hosts are connected to a switch.
func hasHosts(m *model.Device) bool {
	return slices.ContainsFunc(m.Ports, func(p model.Port) bool { return p.Role == "host" || p.Role == "storage" })
}

// poolsOf are the pools of a platform.
func poolsOf(p *profiles.Platform, hosts bool) Pools {
	x := p.Pools(hosts)
	static := slices.ContainsFunc(p.Headroom, func(r profiles.HeadroomRow) bool { return r.Static > 0 })
	return Pools{Shared: x.Lossless, Headroom: x.Headroom, Egress: x.Egress, Static: static}
}

// platform is a platform of the catalog, looked up once.
func (r *resolver) platform(name string) *profiles.Platform {
	p := r.platforms[name]
	if p == nil {
		x, _ := r.f.Catalog.Platform(name)
		p = &x
		r.platforms[name] = p
	}
	return p
}

// start gives lossless classes without a marking ramp one that fits the port, unless they are without one on purpose.
func (r *resolver) start(c *compiled, classes []model.Class, l link) {
	for i := range classes {
		k := &classes[i]
		if !k.Lossless.V || k.ECNOff.V || k.ECN != (model.ECN{}) {
			continue
		}
		s := r.platform(l.platform).Start(l.speed)
		if s.ID == "" {
			continue
		}
		set := func(v *model.Value[units.Bytes], to units.Bytes) {
			*v = model.Value[units.Bytes]{V: to, Set: true, From: behind(s.Ramp)}
		}
		set(&k.ECN.Kmin, s.Kmin)
		set(&k.ECN.Kmax, s.Kmax)
		k.ECN.Pmax = model.Value[units.Percent]{V: s.Pmax, Set: true, From: behind(s.PmaxFrom)}
		c.ramps |= 1 << (k.Priority.V & 7)
		r.started(k, "ecn", fmt.Sprintf("{kmin: %s, kmax: %s, pmax: %s}", s.Kmin, s.Kmax, s.Pmax), l.speed, s.Ramp)
	}
}

// behind is the origin of a starting value: published, or somebody's guess, which is called one.
func behind(b profiles.Behind) *model.Origin {
	if b.Label == profiles.LabelPublished {
		return &model.Origin{Kind: model.FromPublished, Ref: b.String()}
	}
	return &model.Origin{Kind: model.FromDefault, Ref: b.String()}
}

// startKey is what of a class was started.
type startKey struct{ class, key string }

// startValue is what it was started with, and who stands behind that.
type startValue struct {
	value  string
	behind profiles.Behind
}

// starting are the values of a class, each with the speeds of the ports that have it.
type starting struct {
	pos  diag.Pos
	what map[startValue]map[units.BitRate]bool
}

// started remembers a starting value, to say it once.
func (r *resolver) started(k *model.Class, key, value string, speed units.BitRate, b profiles.Behind) {
	at, v := startKey{k.Name, key}, startValue{value, b}
	if r.starts[at].what == nil {
		r.starts[at] = starting{k.Pos, map[startValue]map[units.BitRate]bool{}}
	}
	if r.starts[at].what[v] == nil {
		r.starts[at].what[v] = map[units.BitRate]bool{}
	}
	r.starts[at].what[v][speed] = true
}

// sayStarts says which values nobody chose, once for each class.
func (r *resolver) sayStarts() {
	for at, x := range r.starts {
		var said []string
		hint := "write " + at.key + " for the ports that matter most, and the others' under overrides"
		for v, speeds := range x.what {
			var names []string
			for _, s := range slices.Sorted(maps.Keys(speeds)) {
				names = append(names, s.String())
			}
			said = append(said, fmt.Sprintf("%s at %s (%s)", v.value, strings.Join(names, " and "), v.behind))
			if len(x.what) == 1 {
				hint = fmt.Sprintf("write %s: %s to keep it, or what you measured", at.key, v.value)
			}
		}
		slices.SortFunc(said, CompareNames)
		r.found.Infof("starting-values", x.pos, hint, "class %s has no %s and starts with %s", at.class, at.key, strings.Join(said, ", "))
	}
}

// byHand says, once for a class and a platform, that what it asks of the buffer is not written there.
func (r *resolver) byHand(k *model.Class, platform string) {
	pos := k.Xoff.Pos()
	var keys []string
	for _, x := range []struct {
		key string
		pos diag.Pos
	}{{"xoff", pos}, {"headroom", k.Headroom.Pos()}, {"xon", k.Xon.Pos()}, {"xon_offset", k.XonOffset.Pos()}, {"reserved", k.Reserved.Pos()}} {
		auto := x.key == "headroom" && k.Headroom.V.Auto || x.key == "xon" && k.Xon.V.Auto
		if !x.pos.IsZero() && !auto {
			keys, pos = append(keys, x.key), x.pos
		}
	}
	at := [2]string{k.Name, platform}
	if len(keys) == 0 || r.handed[at] {
		return
	}
	r.handed[at] = true
	r.found.Infof("buffer-by-hand", pos, "set it there by hand, and look at it after upgrades",
		"%s of class %s is not written on %s, whose words for it fabricctl does not know for certain", strings.Join(keys, " and "), k.Name, platform)
}

// bufferer gives the lossless classes of one kind of port their buffers.
type bufferer struct {
	r     *resolver
	c     *compiled
	in    Ingress
	pools Pools
	cable *model.Origin // of the first such port
	auto  Choice
	fits  bool // auto says something
	like  profiles.HeadroomRow
}

// buffers fills the area in: what the device makes itself from the cable that it is told, where that is all that the
// model asks, and else a buffer for each lossless class. Where the cable is not known and something depends on it, the
// area is unknown.
func (r *resolver) buffers(c *compiled, classes []model.Class, l link, cable *model.Origin) {
	p := r.platform(l.platform)
	b := bufferer{r: r, c: c, pools: poolsOf(p, l.hosts), cable: cable}
	b.in = Ingress{Platform: *p, Speed: l.speed, Cable: l.cable, MTU: c.policy.MTU, Lanes: l.lanes, Shared: b.pools.Headroom > 0}
	b.auto, b.fits = AutoHeadroom(b.in)
	b.like = likeRow(p, b.auto.Row, l.speed)
	if len(p.Headroom) == 0 && b.pools.Shared == 0 && !slices.ContainsFunc(classes, asksForBuffer) {
		c.policy.Known &^= AreaSet(AreaBuffer) // nothing is known of how its buffers are made, and nothing is asked
		return
	}
	var asks []bufferAsk
	for i := range classes {
		if k := &classes[i]; k.Lossless.V {
			x, ok := b.ask(k)
			if !ok {
				c.policy.Known &^= AreaSet(AreaBuffer)
				return
			}
			asks = append(asks, x)
		}
	}
	made := !slices.ContainsFunc(asks, func(x bufferAsk) bool { return !x.made })
	switch {
	case made && l.cable == 0:
		c.policy.Known &^= AreaSet(AreaBuffer)
		return
	case made:
		b.tell()
	}
	for _, x := range asks {
		if made {
			x.buffer = Buffer{On: true, Device: true}
		}
		c.policy.Queues[x.priority].Buffer = x.buffer
		for f, o := range x.origins {
			c.set(field(string(f), uint8(x.priority)), o)
		}
	}
}

// asksForBuffer reports whether a class says more about its buffer than auto.
func asksForBuffer(k model.Class) bool {
	return !k.Xoff.Pos().IsZero() || k.Headroom.Set && !k.Headroom.V.Auto || k.Xon.Set && !k.Xon.V.Auto || k.XonOffset.Set || k.Reserved.Set
}

// likeRow is the row of the platform's table that a group without one is made after: that of the longest cable for the
// speed, or else for any speed.
func likeRow(p *profiles.Platform, row profiles.HeadroomRow, speed units.BitRate) profiles.HeadroomRow {
	if row != (profiles.HeadroomRow{}) {
		return row
	}
	for _, x := range p.Headroom {
		better := x.Cable > row.Cable
		if (x.Speed == speed) != (row.Speed == speed) {
			better = x.Speed == speed
		}
		if row == (profiles.HeadroomRow{}) || better {
			row = x
		}
	}
	return row
}

// tell has the device know its cable: as long as the row of its own table that covers it, since it makes nothing for a
// length that it does not have.
func (b *bufferer) tell() {
	told, from := units.Length(derive.RoundUp(units.Bytes(b.in.Cable), units.Bytes(units.Metre))), b.cable
	if row := b.auto.Row; row != (profiles.HeadroomRow{}) {
		told = row.Cable
	} else if row, _, ok := b.in.Platform.HeadroomAt(b.in.Speed, b.in.Cable); ok {
		told = row.Cable
	}
	if told != b.in.Cable {
		from = b.formula(fmt.Sprintf("the next longer cable that %s knows", b.in.Platform.Name), from)
	}
	b.c.policy.Cable = told
	b.c.set("cable", from)
}

func (b *bufferer) formula(ref string, inputs ...*model.Origin) *model.Origin {
	o := &model.Origin{Kind: model.FromFormula, Ref: ref}
	for _, x := range inputs {
		if x == nil {
			continue
		}
		if o.Pos.IsZero() {
			o.Pos = x.Pos
		}
		o.Inputs = append(o.Inputs, x)
	}
	return o
}

// bufferAsk is the buffer of one class; made reports whether the device makes the same from its own table.
type bufferAsk struct {
	priority int
	buffer   Buffer
	made     bool
	origins  map[Field]*model.Origin // by "xoff", "headroom", …
}

// ask is what a class asks for; false when that cannot be said without a cable or a speed, or at all.
func (b *bufferer) ask(k *model.Class) (x bufferAsk, ok bool) {
	x = bufferAsk{priority: int(k.Priority.V & 7), buffer: Buffer{On: true}, origins: map[Field]*model.Origin{}}
	if !b.threshold(k, &x) {
		return x, false
	}
	row := b.auto.Row
	x.made = row != (profiles.HeadroomRow{}) && x.buffer.Alpha == row.Alpha && x.buffer.Static == row.Static &&
		(!k.Headroom.Set || k.Headroom.V.Auto) && (!k.Xon.Set || k.Xon.V.Auto) && !k.XonOffset.Set && !k.Reserved.Set
	switch {
	case k.Headroom.Set && !k.Headroom.V.Auto:
		x.buffer.Headroom, x.origins["headroom"] = k.Headroom.V.Bytes, k.Headroom.From
	case !b.fits:
		return x, false
	default:
		x.buffer.Headroom, x.origins["headroom"] = b.auto.Bytes, b.headroomOrigin(k)
	}
	b.xon(k, &x)
	if k.XonOffset.Set {
		x.buffer.XonOffset, x.origins["xon_offset"] = k.XonOffset.V, k.XonOffset.From
	}
	if k.Reserved.Set {
		x.buffer.Reserved, x.origins["reserved"] = k.Reserved.V, k.Reserved.From
	} else {
		b.reserve(&x)
	}
	return x, true
}

// headroomOrigin says which of the ways to a headroom was taken.
func (b *bufferer) headroomOrigin(k *model.Class) *model.Origin {
	if b.auto.Row != (profiles.HeadroomRow{}) {
		return &model.Origin{Kind: model.FromProfile, Ref: fmt.Sprintf("%s, %s and %s", b.auto.Source, b.auto.Row.Speed, b.auto.Row.Cable)}
	}
	return b.formula(fmt.Sprintf("%s: %s", b.auto.Model, b.auto.Source), k.Headroom.From, b.cable, b.c.origins["mtu"])
}

// threshold is where pause starts: as the class says, else as the platform's own table has it, else a starting value.
func (b *bufferer) threshold(k *model.Class, x *bufferAsk) bool {
	switch {
	case k.Xoff.Alpha.Set:
		x.buffer.Alpha, x.origins["xoff"] = k.Xoff.Alpha.V, k.Xoff.Alpha.From
	case k.Xoff.Bytes.Set:
		x.buffer.Static, x.origins["xoff"] = k.Xoff.Bytes.V, k.Xoff.Bytes.From
	case k.Xoff.Share.Set:
		return b.share(k, x)
	case b.like != (profiles.HeadroomRow{}):
		x.buffer.Alpha, x.buffer.Static = b.like.Alpha, b.like.Static
		x.origins["xoff"] = &model.Origin{Kind: model.FromProfile, Ref: "headroom table of " + b.in.Platform.Name}
	default:
		s := b.in.Platform.Start(b.in.Speed)
		if s.ID == "" || b.pools.Static {
			return false
		}
		x.buffer.Alpha, x.origins["xoff"] = s.Alpha, behind(s.AlphaFrom)
		b.r.started(k, "pfc.xoff", fmt.Sprintf("{alpha: %s}", s.Alpha), b.in.Speed, s.AlphaFrom)
	}
	return true
}

// share is a threshold as a share s of something. Of a dynamic pool, one congested group gets alpha/(1+alpha), so that
// alpha is s/(1-s); of a static one it is so many bytes.
func (b *bufferer) share(k *model.Class, x *bufferAsk) bool {
	s, name := k.Xoff.Share, b.in.Platform.Name
	switch {
	case k.Xoff.Of.V != "pool":
		b.r.oddShare(k, name, "a port of %s has no buffer of its own that a share could be of", "write {share: "+s.V.String()+", of: pool}")
		return false
	case !b.pools.Static:
		alpha, ok := shareAlpha(s.V)
		if !ok {
			b.r.oddShare(k, name, "a share of "+s.V.String()+" is no alpha that %s has", "choose a share like 50%, or write alpha")
			return false
		}
		x.buffer.Alpha = alpha
		x.origins["xoff"] = b.formula(fmt.Sprintf("alpha = s/(1-s) of s = %s, what one congested group gets of the pool", s.V), s.From)
	case b.pools.Shared == 0:
		b.r.oddShare(k, name, "the pool of %s is not known", "write a size")
		return false
	default:
		x.buffer.Static = derive.RoundDown(derive.PartOf(b.pools.Shared, s.V), b.in.Platform.Cell)
		x.origins["xoff"] = b.formula(fmt.Sprintf("%s of the pool of %s", s.V, b.pools.Shared), s.From)
	}
	return true
}

// shareAlpha is s/(1-s) in lowest terms.
func shareAlpha(s units.Percent) (units.Ratio, bool) {
	num, den := int64(s), int64(100*units.OnePercent-s)
	if num <= 0 || den <= 0 {
		return units.Ratio{}, false
	}
	for x, y := num, den; ; x, y = y, x%y {
		if y == 0 {
			return units.Ratio{Num: int32(num / x), Den: int32(den / x)}, true
		}
	}
}

// oddShare refuses, once for a class and a platform, a share that means nothing there. format has the platform's place.
func (r *resolver) oddShare(k *model.Class, platform, format, hint string) {
	at := [2]string{k.Name, platform}
	if !r.handed[at] {
		r.handed[at] = true
		r.found.Errorf("xoff-share", k.Xoff.Share.Pos(), hint, "class %s: "+format, k.Name, platform)
	}
}

// xon is where sending goes on: as the class says, as the platform's own table or formula has it, or two frames below the
// threshold, so that a frame on its way in does not pause again at once.
func (b *bufferer) xon(k *model.Class, x *bufferAsk) {
	switch below := derive.RoundUp(derive.Times(b.in.MTU, 2), b.in.Platform.Cell); {
	case k.Xon.Set && !k.Xon.V.Auto:
		x.buffer.Xon, x.origins["xon"] = k.Xon.V.Bytes, k.Xon.From
		return
	case b.auto.Row == (profiles.HeadroomRow{}) && b.auto.Xon > 0:
		x.buffer.Xon, x.origins["xon"] = b.auto.Xon, b.formula(string(b.auto.Model)+": "+b.auto.XonFormula)
	case b.like != (profiles.HeadroomRow{}):
		x.buffer.Xon, x.buffer.XonOffset = b.like.Xon, b.like.XonOffset
		x.origins["xon"] = &model.Origin{Kind: model.FromProfile, Ref: "headroom table of " + b.in.Platform.Name}
	case x.buffer.Static > 0:
		x.buffer.Xon = derive.RoundDown(x.buffer.Static-below, b.in.Platform.Cell)
		x.origins["xon"] = b.formula(fmt.Sprintf("two frames of %s below the pause threshold", b.in.MTU), x.origins["xoff"], b.c.origins["mtu"])
	default:
		x.buffer.XonOffset = below
		x.origins["xon"] = b.formula(fmt.Sprintf("two frames of %s below the pause threshold", b.in.MTU), b.c.origins["mtu"])
	}
	x.origins["xon_offset"] = x.origins["xon"]
}

// besides is what the platform's table or formula reserves for a group besides headroom and xon: a frame more on ports
// with 8 lanes, which have two pipelines.
func (b *bufferer) besides() units.Bytes {
	return max(b.auto.Size-derive.Add(b.auto.Xoff, b.auto.Xon), 0)
}

// reserve is what the group has to itself: on chips whose table says that headroom is each group's own (or that have no
// pool for it) headroom, xon and what goes with them, else what the table has, or xon, or a frame.
func (b *bufferer) reserve(x *bufferAsk) {
	row, cell := b.like, b.in.Platform.Cell
	own := !b.in.Shared
	if row != (profiles.HeadroomRow{}) {
		own = row.Dedicated()
	}
	switch {
	case own:
		ref, more := "headroom and xon, which are the group's own", b.besides()
		if more > 0 {
			ref += fmt.Sprintf(", and the %s that %s has besides", more, b.auto.Source)
		}
		x.buffer.Reserved = derive.Add(x.buffer.Headroom, x.buffer.Xon, more)
		x.origins["reserved"] = b.formula(ref, x.origins["headroom"], x.origins["xon"])
	case row != (profiles.HeadroomRow{}):
		x.buffer.Reserved = row.Size
		x.origins["reserved"] = &model.Origin{Kind: model.FromProfile, Ref: "headroom table of " + b.in.Platform.Name}
	case x.buffer.Xon > 0:
		x.buffer.Reserved = x.buffer.Xon
		x.origins["reserved"] = b.formula("xon, since headroom is shared", x.origins["xon"])
	default:
		x.buffer.Reserved = derive.RoundUp(b.in.MTU, cell)
		x.origins["reserved"] = b.formula("a frame, since headroom is shared", b.c.origins["mtu"])
	}
}
