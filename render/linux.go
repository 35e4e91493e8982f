package render

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fabricctl/fabricctl/model/intent"
)

// linux is a Linux host: its NICs, as far as their drivers have a knob, the limit of locked memory and the NCCL file.
// Keys are (scope, interface or file, field):
//
//	{"link", "rdma0", "mtu"}              9000
//	{"app", "rdma0", "dscp 26"}           3
//	{"ets", "rdma0", "prio-tc"}           0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7
//	{"pfc", "rdma0", "priorities"}        3
//	{"cc", "rdma0", "cnp-dscp"}           48
//	{"nccl", "/etc/nccl.conf", "NCCL_IB_TC"}    104
//
// linuxKnobs has them all. A knob that a NIC does not have is absent, which is not the same as off.
//
// The text of a host is a block for each interface, one key a line and code points of one priority together, then the
// limit, and then the NCCL file as it is:
//
//	link rdma0 mtu 9000
//	app rdma0 dscp 26 3
//
//	file /etc/nccl.conf
//	NCCL_IB_TC=104
//
// Before the file, blank lines and lines that start with "#" mean nothing.
//
// In which order a host writes what changes is the host's business: a NIC at a time, and on each what its driver needs
// first, so the dialect has one phase and nothing that points at something else.
var linux = Dialect{
	OS:     "linux",
	Ext:    ".host.conf",
	Owns:   linuxOwns,
	Render: linuxRender,
	Text:   linuxText,
	Parse:  linuxParse,
	Lift:   linuxLift,
	Refs:   func(Key, string) []Key { return nil },
	Phase:  func(Change) int { return 0 },
	Same:   linuxSame,
	Risk:   linuxRisk,
	Lines:  func(Config, []Change) []Line { return nil },
}

// MemlockPath is the file with which users may lock memory without limit.
const MemlockPath = "/etc/security/limits.d/90-fabricctl.conf"

// Beside joins the values of two files that are to say the same and do not: "5 beside 7".
const Beside = " beside "

func linuxKey(scope, link, field string) Key { return Key{scope, link, field} }
func linuxMTU(link string) Key               { return Key{"link", link, "mtu"} }
func linuxDSCP(link string, d int) Key       { return Key{"app", link, linuxCodePoints[d&63].key} }
func ncclKey(name string) Key                { return Key{"nccl", NCCLPath, name} }

// linuxCodePoints are the words of each code point: they are asked for on every NIC of every host.
var linuxCodePoints = func() (words [64]struct {
	key   string
	field intent.Field
},
) {
	for i := range words {
		n := strconv.Itoa(i)
		words[i].key, words[i].field = "dscp "+n, intent.Field("dscp."+n)
	}
	return words
}()

var linuxMemlock = Key{"limit", MemlockPath, "memlock"}

// linuxPCI is a PCI address, as the inventory may bind a NIC.
var linuxPCI = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// linuxIsLink reports whether the kernel takes s as an interface name.
func linuxIsLink(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) < 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == '/' || r == ':' || r == 0x7f || r == unicode.ReplacementChar || unicode.IsSpace(r)
	})
}

// linuxAreas are the areas that a key belongs to: it is owned where any of them is.
func linuxAreas(k Key) intent.Areas {
	switch k.Scope {
	case "link":
		return intent.AreaSet(intent.AreaMTU)
	case "app":
		return intent.AreaSet(intent.AreaMaps)
	case "ets":
		if k.Field == "prio-tc" {
			return intent.AreaSet(intent.AreaMaps)
		}
		return intent.AreaSet(intent.AreaScheduler)
	case "pfc":
		if k.Field == "delay" {
			return intent.AreaSet(intent.AreaBuffer)
		}
		return intent.AreaSet(intent.AreaPFC)
	case "pause":
		return intent.AreaSet(intent.AreaPFC)
	case "buffer":
		return intent.AreaSet(intent.AreaBuffer)
	case "dcbx", "flag": // who sets them: before anybody sets one
		return linuxDCB
	case "roce":
		return intent.AreaSet(intent.AreaRoCE)
	case "cc":
		return intent.AreaSet(intent.AreaCC)
	case "pci", "irq", "ring", "fec", "limit":
		return intent.AreaSet(intent.AreaSystem)
	case "nccl":
		return intent.AreaSet(intent.AreaNCCL)
	}
	return 0
}

// linuxDCB are the areas that dcbnl sets.
const linuxDCB = intent.Areas(1<<intent.AreaMaps | 1<<intent.AreaPFC | 1<<intent.AreaScheduler | 1<<intent.AreaBuffer)

// linuxOwns: what the model asks of an active NIC in an area that it owns there, and the code points that it maps. What
// several NICs share (a bond, the files) is owned when all active ones of them have the area: of the NCCL file the variables that the
// model sets; everything else in it is somebody else's.
func linuxOwns(d intent.Device, f Facts) func(Key) bool {
	own := map[Key]bool{}
	if d.State != intent.Active {
		return func(Key) bool { return false }
	}
	r := linuxRendered(&d, f)
	for i := range r.config {
		k := r.config[i].Key
		active := slices.DeleteFunc(append([]*intent.Port{r.by[i].first}, r.by[i].more...), func(p *intent.Port) bool { return p.State != intent.Active })
		own[k] = len(active) > 0 && !slices.ContainsFunc(active, func(p *intent.Port) bool { return p.Manage.Owned()&linuxAreas(k) == 0 })
	}
	for _, n := range r.mapped {
		for i, priority := range n.policy.DSCP {
			if priority != intent.Unmapped {
				own[linuxDSCP(n.port.Iface, i)] = n.owns(intent.AreaMaps)
			}
		}
	}
	return func(k Key) bool { return own[k] }
}

// linuxSame: what NCCL reads as the same number, what the kernel or a driver does where it is told nothing, and the ways
// in which a host says that it is the one who sets DCB.
func linuxSame(k Key, a, b *string, f Facts) bool {
	switch {
	case k == ncclKey(ncclRoCE) || k == ncclKey(ncclFamily):
		byDefault := map[string]string{ncclRoCE: "2", ncclFamily: "AF_INET"}[k.Field]
		return linuxOr(a, byDefault) == linuxOr(b, byDefault)
	case k.Scope == "nccl" && a != nil && b != nil && ncclNumber(k.Field):
		x, okx := ncclInt(*a)
		y, oky := ncclInt(*b)
		if okx && oky {
			return x == y
		}
	case k.Scope == "pause": // where it cannot be read there is none: ice says so while PFC is on
		return linuxOr(a, "off") == linuxOr(b, "off")
	case k.Scope == "roce" && k.Field == "traffic-class":
		return linuxOr(a, "-1") == linuxOr(b, "-1")
	case k.Scope == "irq" && a != nil && b != nil && linuxBoth(*a, *b):
		return true
	case k.Scope == "dcbx" && a != nil && b != nil && linuxHostRules(*a) && linuxHostRules(*b):
		return true
	case k.Scope == "app" && (a == nil) != (b == nil):
		if d, ok := linuxCodePoint(k); ok {
			byDefault := f.personality(k.Object).Default(d)
			return byDefault != "" && linuxOr(a, byDefault) == linuxOr(b, byDefault)
		}
	}
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func linuxOr(v *string, absent string) string {
	if v == nil {
		return absent
	}
	return *v
}

// linuxBoth reports whether one of two arrangements of interrupts is the other, too: a host that is one node reads
// "local spread".
func linuxBoth(a, b string) bool {
	if strings.HasPrefix(a, "other") || strings.HasPrefix(b, "other") {
		return a == b
	}
	return slices.ContainsFunc(strings.Fields(a), func(w string) bool { return slices.Contains(strings.Fields(b), w) })
}

// linuxHostRules reports whether a mode of DCBX says that the host sets DCB by the IEEE's rules, and nobody else does.
func linuxHostRules(mode string) bool {
	words := strings.Fields(mode)
	return slices.Contains(words, "host") && slices.Contains(words, "ieee") && !slices.Contains(words, "lld-managed")
}

// linuxCodePoint is the code point that a key of the app table is about.
func linuxCodePoint(k Key) (int, bool) {
	s, ok := strings.CutPrefix(k.Field, "dscp ")
	if k.Scope != "app" || !ok {
		return 0, false
	}
	d, err := strconv.ParseUint(s, 10, 8)
	return int(d), err == nil && d < 64 && s == strconv.FormatUint(d, 10)
}

// linuxPairs is a value for each of eight classes or priorities, as "0:a 1:b … 7:h".
func linuxPairs[T any](vs [8]T) string {
	s := make([]string, 0, len(vs))
	for i, v := range vs {
		s = append(s, fmt.Sprintf("%d:%v", i, v))
	}
	return strings.Join(s, " ")
}

// linuxSplit takes linuxPairs apart.
func linuxSplit(s string) (vs [8]string, ok bool) {
	ws := strings.Fields(s)
	if len(ws) != len(vs) {
		return vs, false
	}
	for i, w := range ws {
		n, v, ok := strings.Cut(w, ":")
		if !ok || n != strconv.Itoa(i) || v == "" {
			return vs, false
		}
		vs[i] = v
	}
	return vs, true
}

// linuxNumbers is linuxSplit with numbers below a limit.
func linuxNumbers(s string, limit uint64) (ns [8]uint32, ok bool) {
	vs, ok := linuxSplit(s)
	for i, v := range vs {
		n, good := linuxNumber(v, limit)
		if !good {
			return ns, false
		}
		ns[i] = uint32(n)
	}
	return ns, ok
}

// linuxNumber reads a decimal number below a limit, in the one way in which it is written.
func linuxNumber(s string, limit uint64) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return n, err == nil && n < limit && s == strconv.FormatUint(n, 10)
}

// linuxParseSet reads profiles.Priorities, in any order and with any spaces.
func linuxParseSet(s string) (bits uint8, ok bool) {
	if s == "none" {
		return 0, true
	}
	for _, w := range strings.Fields(s) {
		n, ok := linuxNumber(w, 8)
		if !ok {
			return 0, false
		}
		bits |= 1 << n
	}
	return bits, bits != 0
}
