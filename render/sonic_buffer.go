package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// SONiC has two ways to a lossless priority group. In the first the switch makes it: buffermgrd takes the port's speed,
// its row of CABLE_LENGTH and pg_profile_lookup.ini, and writes BUFFER_PG and BUFFER_PROFILE rows of its own
// (pg_lossless_<speed in Mbps>_<cable>_profile). In the second somebody binds a profile of his own, and CABLE_LENGTH is
// 0m, or else buffermgrd writes over it. intent.Buffer.Device is the first. (swss e6b0c5b5, cfgmgr/buffermgr.cpp, as
// read; not tried on a real switch.)

// sonicPool is the pool that lossless priority groups are in, on every image whose templates are known.
const sonicPool = "ingress_lossless_pool"

// sonicCables is the row of CABLE_LENGTH that the images' templates write and buffermgrd reads.
const sonicCables = "AZURE"

// sonicNoCable is the cable for which the switch makes no priority group.
const sonicNoCable = "0m"

// sonicProfileLimit is how long we let names of buffer profiles become; the YANG models set no limit.
const sonicProfileLimit = 64

var sonicMadeProfile = regexp.MustCompile(`^pg_lossless_[0-9]+_[0-9]+m_([A-Za-z0-9-]+_)*profile$`)

// sonicMade reports whether the switch gives a profile of this name to a priority group by itself: one of buffermgrd's,
// or NULL, which asks the dynamic buffer model for one.
func sonicMade(profile string) bool {
	return profile == "NULL" || sonicMadeProfile.MatchString(profile)
}

// sonicGroupOf is the priority group of a traffic class: what the map says, or the group of the same number.
func sonicGroupOf(p *intent.Policy, tc int) int {
	if g := p.TCPG[tc]; p.Known.Has(intent.AreaMaps) && g != intent.Unmapped {
		return int(g)
	}
	return tc
}

// cable tells the switch how long the cable is: nothing (0m) where the profiles are ours.
func (b *sonicBuilder) cable(p *intent.Port, v units.Length) {
	if v%units.Metre != 0 {
		up := (v/units.Metre + 1) * units.Metre
		b.cannot(p, "cable", fmt.Sprintf("say %s", up), "the cable is %s; SONiC takes whole metres", v)
		return
	}
	b.put(p, "CABLE_LENGTH", sonicCables, p.Iface, strconv.FormatInt(int64(v/units.Metre), 10)+"m", "cable")
	last := &b.puts[len(b.puts)-1]
	last.field, last.own = true, true
	b.own++
}

// buffer binds a profile with the buffer of a class to its priority group.
func (b *sonicBuilder) buffer(p *intent.Port, pol *intent.Policy, class string, tc int) {
	x, n := pol.Queues[tc].Buffer, strconv.Itoa(tc)
	if !x.On || x.Device {
		return
	}
	if pol.Cable != 0 {
		b.cannot(p, "cable", "", "class %s has a buffer of its own, and the switch is told a cable of %s, from which it makes one too", class, pol.Cable)
		return
	}
	threshold, value, ok := b.threshold(p, class, n, x)
	if !ok {
		return
	}
	name := b.names.Name("BUFFER_PROFILE", b.profile(p, class, threshold, x))
	put := func(field, value, origin string) {
		b.put(p, "BUFFER_PROFILE", name, field, value, intent.Field(origin+"."+n))
	}
	size := func(v units.Bytes) string { return strconv.FormatInt(int64(v), 10) }
	put("pool", sonicPool, "lossless")
	put("size", size(x.Reserved), "reserved")
	put("xoff", size(x.Headroom), "headroom")
	put("xon", size(x.Xon), "xon")
	if x.XonOffset > 0 {
		put("xon_offset", size(x.XonOffset), "xon_offset")
	}
	put(threshold, value, "xoff")
	b.bind(p, "BUFFER_PG", "|"+strconv.Itoa(sonicGroupOf(pol, tc)), "profile", name, intent.Field("headroom."+n))
}

// threshold is the pause threshold of x as SONiC has it: an exponent of two in a dynamic pool, bytes in a static one.
func (b *sonicBuilder) threshold(p *intent.Port, class, n string, x intent.Buffer) (field, value string, ok bool) {
	origin := intent.Field("xoff." + n)
	switch e, isPower := derive.Exponent(x.Alpha); {
	case x.Alpha == (units.Ratio{}) && !b.d.Pools.Static:
		hint := "write it as alpha, such as {alpha: 1/2}"
		if alpha, ok := derive.AlphaNeeded(b.d.Pools.Shared, x.Static, 1); ok && b.d.Pools.Shared > 0 {
			hint = fmt.Sprintf("write {alpha: %s}, with which one congested group reaches it in a pool of %s", alpha, b.d.Pools.Shared)
		}
		b.cannot(p, origin, hint,
			"the pause threshold of class %s is %s; the buffer of %s is dynamic, and SONiC takes an alpha for it", class, x.Static, b.d.Platform)
	case x.Alpha == (units.Ratio{}):
		return "static_th", strconv.FormatInt(int64(x.Static), 10), true
	case b.d.Pools.Static:
		b.cannot(p, origin, "write it in bytes",
			"the pause threshold of class %s is alpha %s; the buffer of %s is static, and SONiC takes bytes for it", class, x.Alpha, b.d.Platform)
	case !isPower:
		b.cannot(p, origin, sonicNextAlphas(x.Alpha),
			"alpha %s of class %s is not a power of two from 1/256 to 128, and SONiC takes no other", x.Alpha, class)
	default:
		return "dynamic_th", strconv.Itoa(e), true
	}
	return "", "", false
}

// sonicNextAlphas names the alphas that SONiC takes beside one that it does not.
func sonicNextAlphas(alpha units.Ratio) string {
	var below, above units.Ratio
	for e := -8; e <= 7; e++ {
		x, _ := derive.Alpha(e)
		if int64(x.Num)*int64(alpha.Den) < int64(alpha.Num)*int64(x.Den) {
			below = x
		} else if above == (units.Ratio{}) {
			above = x
		}
	}
	switch {
	case below == (units.Ratio{}):
		return fmt.Sprintf("write {alpha: %s}", above)
	case above == (units.Ratio{}):
		return fmt.Sprintf("write {alpha: %s}", below)
	}
	return fmt.Sprintf("write {alpha: %s} or {alpha: %s}", below, above)
}

// profile is the name of the buffer profile of a class: where it is used, and a digest of the values that the updater
// never changes in place (profiles/data/gcu.yaml), so that another one is another profile, which ports are bound to anew.
// alpha and xoff change in place.
func (b *sonicBuilder) profile(p *intent.Port, class, threshold string, x intent.Buffer) string {
	parts := []string{p.Site, class}
	if p.Speed > 0 {
		parts = append(parts, speedWord(p.Speed))
	}
	if p.Cable > 0 {
		parts = append(parts, p.Cable.String())
	}
	fixed := fmt.Sprint(threshold, x.Static, x.Reserved, x.Xon, x.XonOffset)
	sum := sha256.Sum256([]byte(fixed))
	return sonicProfileName(b.d.Fabric, append(parts, hex.EncodeToString(sum[:2]))...)
}

// sonicProfileName is objectName for buffer profiles, whose names may be longer and start as all names of the fabric do.
func sonicProfileName(fabric string, parts ...string) string {
	full := strings.Join(append([]string{Prefix, fabric}, parts...), "-")
	return cut(fabricPrefix(sonicNameLimit, sonicNameRune, fabric)+allowed(sonicNameRune, strings.Join(parts, "-")), sonicProfileLimit, "-", full)
}

// buffers reads the cable and the lossless buffers of a port. A switch without any sign of a buffer configuration is not
// one without buffers: then the area is unknown.
func (l *sonicLifter) buffers(port string, p *intent.Policy) {
	cable, told := l.cable(port)
	groups, bound := l.groups[port]
	if !told && !bound && len(l.db["BUFFER_POOL"]) == 0 {
		return
	}
	p.Known |= intent.AreaSet(intent.AreaBuffer)
	p.Cable = cable
	for tc := range p.Queues {
		q := &p.Queues[tc]
		if !q.Lossless {
			continue
		}
		group := sonicGroupOf(p, tc)
		row := groups[min(group, 7)]
		switch profile := row.profile; {
		case profile == "":
			made := cable > 0 && !l.dynamic // when the switch comes to it
			q.Buffer = intent.Buffer{On: made, Device: made}
			if made && len(l.db["BUFFER_POOL"]) > 0 { // a running switch, which has come to it
				l.warn("BUFFER_PG|"+port, "priority %d is lossless, and the switch made no priority group for it: it does where pg_profile_lookup.ini has a row for the port's speed and %s", tc, cable)
			}
		case sonicMade(profile):
			q.Buffer = intent.Buffer{On: true, Device: true}
			l.stale(port, row, cable)
		default:
			q.Buffer = l.profile(row.row, profile)
		}
		l.egress(port, sonicQueueOf(p, tc))
	}
}

// stale warns of a group that the switch made for another speed or cable than the port has: buffermgrd keeps a profile that
// is there.
func (l *sonicLifter) stale(port string, row sonicBound, cable units.Length) {
	parts := strings.Split(row.profile, "_")
	if len(parts) < 4 {
		return
	}
	speed, told := l.db["PORT"][port]["speed"], fmt.Sprintf("%dm", cable/units.Metre)
	if speed != "" && parts[2] != speed || cable > 0 && parts[3] != told {
		l.warn(row.row, "the switch made %s, and the port has %s Mbps and a cable of %s", row.profile, speed, told)
	}
}

// cable is what CABLE_LENGTH says of a port; ok is false when it says nothing.
func (l *sonicLifter) cable(port string) (v units.Length, ok bool) {
	rows := l.db["CABLE_LENGTH"]
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		text, has := rows[row][port]
		if !has {
			continue
		}
		metres, err := strconv.ParseUint(strings.TrimSuffix(text, "m"), 10, 32)
		if err != nil || !strings.HasSuffix(text, "m") {
			l.warn("CABLE_LENGTH|"+row, "the cable of %s is %q; SONiC takes whole metres, such as 40m", port, text)
			continue
		}
		if x := units.Length(metres) * units.Metre; ok && x != v {
			l.warn("CABLE_LENGTH|"+row, "the cable of %s is %s here and %s in another row", port, x, v)
		} else {
			v, ok = x, true
		}
	}
	return v, ok
}

// profile reads a buffer profile that somebody bound to a lossless priority group. row is the binding.
func (l *sonicLifter) profile(row, name string) intent.Buffer {
	fields, ok := l.db["BUFFER_PROFILE"][name]
	if !ok {
		l.warn(row, "BUFFER_PROFILE %q does not exist", name)
		return intent.Buffer{}
	}
	object := "BUFFER_PROFILE|" + name
	if _, ok := fields["size"]; !ok {
		l.warn(object, "it has no size, which every buffer profile has to have; read as 0")
	}
	if pool := fields["pool"]; pool != sonicPool {
		l.warn(object, "its pool is %q; the pool of lossless groups is %s", pool, sonicPool)
	}
	size := func(field string) units.Bytes {
		n, _ := l.number("BUFFER_PROFILE", name, field, anyBytes)
		return units.Bytes(n)
	}
	x := intent.Buffer{On: true, Headroom: size("xoff"), Xon: size("xon"), XonOffset: size("xon_offset"), Reserved: size("size")}
	exponent, dynamic := fields["dynamic_th"]
	_, static := fields["static_th"]
	if dynamic && static {
		l.warn(object, "it has static_th and dynamic_th, of which one counts; read as dynamic_th")
	}
	switch n, err := strconv.Atoi(exponent); {
	case dynamic:
		alpha, ok := derive.Alpha(n)
		if err != nil || !ok {
			l.warn(object, "dynamic_th %q is not a number from -8 to 7", exponent)
		} else {
			x.Alpha = alpha
		}
	case static:
		x.Static = size("static_th")
	default:
		l.warn(object, "it has neither dynamic_th nor static_th: nothing says when to pause")
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		switch f {
		case "pool", "size", "xoff", "xon", "xon_offset", "dynamic_th", "static_th":
		default:
			l.say(diag.Info, object, "%s %q is not part of the model and was not looked at", f, fields[f])
		}
	}
	return x
}

// egress warns of a lossless queue whose packets are dropped at the egress: what is never dropped at the ingress has to
// be in the egress pool that is for it.
func (l *sonicLifter) egress(port string, queue int) {
	row, bound := l.egresses[port][min(queue, 7)], len(l.db["BUFFER_QUEUE"]) > 0
	if !bound {
		return
	}
	if row.profile == "" {
		l.warn("BUFFER_QUEUE|"+port, "queue %d is lossless and has no egress buffer profile", queue)
		return
	}
	if strings.Contains(row.profile, "lossy") || strings.Contains(l.db["BUFFER_PROFILE"][row.profile]["pool"], "lossy") {
		l.warn(row.row, "queue %d is lossless, and its egress profile %s is a lossy one: it drops there, whatever PFC does", queue, row.profile)
	}
}

// sonicBound is what a row of BUFFER_PG or BUFFER_QUEUE binds to one group or queue.
type sonicBound struct{ row, profile string }

// readBound spreads the rows of BUFFER_PG or BUFFER_QUEUE, single and ranges, over ports and groups or queues.
func (l *sonicLifter) readBound(table string) map[string][8]sonicBound {
	byPort := map[string][8]sonicBound{}
	for _, row := range slices.Sorted(maps.Keys(l.db[table])) {
		port, lo, hi, ok := sonicQueueRow(row)
		if !ok {
			if strings.Count(row, "|") < 3 { // those of a VOQ system are said with its queues
				l.warn(table+"|"+row, "the row is neither one number nor a range")
			}
			continue
		}
		all := byPort[port]
		for i := lo; i <= min(hi, 7); i++ {
			x := sonicBound{table + "|" + row, l.db[table][row]["profile"]}
			if was := all[i]; was.row != "" && was.profile != x.profile {
				l.warn(x.row, "%d of the port is bound to %q here and to %q in %s: which one counts is not defined", i, x.profile, was.profile, was.row)
				if lo != hi {
					continue // the row of its own is read
				}
			}
			all[i] = x
		}
		byPort[port] = all
	}
	return byPort
}

// sonicPools is what the switch says about its buffer.
func sonicPools(c Config) intent.Pools {
	size := func(pool, field string) units.Bytes {
		n, err := strconv.ParseInt(c.Get("BUFFER_POOL", pool, field), 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return units.Bytes(n)
	}
	return intent.Pools{
		Shared: size(sonicPool, "size"), Headroom: size(sonicPool, "xoff"), Egress: size("egress_lossless_pool", "size"),
		Static: c.Get("BUFFER_POOL", sonicPool, "mode") == "static",
	}
}

// sonicRange reports whether the key of a row is of more than one queue or priority group.
func sonicRange(row string) bool {
	_, lo, hi, ok := sonicQueueRow(row)
	return ok && lo != hi
}
