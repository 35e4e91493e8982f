package model

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// Hosts is what the model says of hosts and their NICs besides classes, MTU and NCCL. A value that is not set is left as
// it is on the host, those of RoCE aside.
type Hosts struct {
	RoCE        HostRoCE
	Congestion  HostCC
	ReadRequest Value[units.Bytes] // pcie.max_read_request
	IRQ         Value[string]      // local, spread, leave
	RX, TX      Value[int]         // rings: descriptors
	FEC         Value[string]      // auto, off, rs, baser, llrs, leave
	Lossless    Value[units.Bytes] // receive_buffer: what each lossless class has
	Lossy       Value[units.Bytes] // receive_buffer: what all other traffic has
	Memlock     Value[string]      // unlimited, leave
}

// HostRoCE is how RDMA traffic is marked that nobody chose a marking for.
type HostRoCE struct {
	Mode         Value[string] // v1, v2; not set: v2
	Class        Value[string] // not set: the class that NCCL uses
	TrafficClass Value[string] // clear, class; not set: clear
}

// HostCC is the congestion control of NICs.
type HostCC struct {
	Algorithm Value[string]
	Params    [profiles.NumCC]Value[uint32] // in the order of profiles.CCParams, counted in their units
}

// Over is h with the values of below where h has none, and what h wins over remembered.
func (h Hosts) Over(below Hosts) Hosts {
	r := Hosts{
		RoCE: HostRoCE{
			Mode: winning(h.RoCE.Mode, below.RoCE.Mode), Class: winning(h.RoCE.Class, below.RoCE.Class),
			TrafficClass: winning(h.RoCE.TrafficClass, below.RoCE.TrafficClass),
		},
		Congestion:  HostCC{Algorithm: winning(h.Congestion.Algorithm, below.Congestion.Algorithm)},
		ReadRequest: winning(h.ReadRequest, below.ReadRequest), IRQ: winning(h.IRQ, below.IRQ),
		RX: winning(h.RX, below.RX), TX: winning(h.TX, below.TX), FEC: winning(h.FEC, below.FEC),
		Lossless: winning(h.Lossless, below.Lossless), Lossy: winning(h.Lossy, below.Lossy), Memlock: winning(h.Memlock, below.Memlock),
	}
	for i := range r.Congestion.Params {
		r.Congestion.Params[i] = winning(h.Congestion.Params[i], below.Congestion.Params[i])
	}
	return r
}

// keep is the word for what is left as it is.
const keep = "leave"

// hostsSchema is the section hosts, at the top and in overrides.
func hostsSchema() field {
	params := field{key: "parameters", doc: "parameters of the NIC's congestion control, each under one name whichever driver has it; what is not listed is left as it is"}
	for _, p := range profiles.CCParams() {
		params.kids = append(params.kids, leaf(p.Name, ccScalar(p), p.Doc).called("rp_"+p.Name, "np_"+p.Name, "rpg_"+p.Name))
	}
	return group(
		"hosts", "what hosts' NICs are told besides the classes: how RDMA is marked, congestion control, PCIe, interrupts, rings, FEC, buffers",
		group(
			"roce", "how RDMA connections are marked where the application chooses nothing",
			leaf("mode", enumScalar("v2", "v1").meant("rocev2", "v2", "2", "v2", "rocev1", "v1", "ibrocev1", "v1", "1", "v1"), "RoCE version of connections made by rdma_cm; default v2, which routed fabrics and DSCP need"),
			leaf("class", nameScalar(), "class whose first code point they carry; default: the class that NCCL uses"),
			leaf("traffic_class", trafficClassScalar(), "what the driver forces on every connection (NVIDIA's OFED can): clear, nothing, so that applications choose (the default); class, the code point of class"),
		).like("{class: training}"),
		group(
			"congestion", "the NIC's congestion control; code point and priority of the CNPs it sends are those of the class with role: cnp",
			leaf("algorithm", enumScalar(CCAlgorithms()...), "algorithm that the NIC has to run; default: whatever it runs, which is shown"),
			params,
		).like("{parameters: {ai_rate: 5Mbps}}"),
		group("pcie", "PCI Express", leaf("max_read_request", readRequestScalar(), "largest read request of the NIC: a power of two from 128B to 4096B; 4096B is best for most")).like("{max_read_request: 4096B}"),
		leaf("irq", enumScalar("local", "spread", keep).meant("numa", "local", "all", "spread", "balanced", "spread"), "interrupts of the NIC: local, one core each on the NIC's NUMA node; spread, over all cores; leave, as they are (the default)"),
		group(
			"rings", "descriptors of the kernel's own queues; RDMA has its own, so this is about TCP beside it",
			leaf("rx", intScalar("number", 64, 1<<20), "descriptors of each receive queue"),
			leaf("tx", intScalar("number", 64, 1<<20), "descriptors of each send queue"),
		).like("{rx: 8192, tx: 8192}"),
		leaf("fec", enumScalar("auto", "off", "rs", "baser", "llrs", keep).meant("rsfec", "rs", "rs528", "rs", "rs544", "rs", "fc", "baser", "basr", "baser", "none", "off"), "forward error correction of the link, as ethtool calls it; the switch port has to agree; leave: as it is (the default)"),
		group(
			"receive_buffer", "buffer of NICs that have one for dcbnl (NVIDIA); the length of the cable goes to it by itself",
			leaf("lossless", bytesScalar(), "bytes that each lossless class has, in which what arrives after its pause has to fit"),
			leaf("lossy", bytesScalar(), "bytes that all other traffic shares"),
		).like("{lossless: 256KB, lossy: 64KB}"),
		leaf("memlock", enumScalar("unlimited", keep).meant("infinity", "unlimited", "1", "unlimited", "max", "unlimited"), "memory that users may lock, which RDMA needs much of: unlimited, by a file in /etc/security/limits.d; leave: as it is (the default)"),
	).like("{roce: {class: training}}")
}

// CCAlgorithms are the congestion control algorithms of NICs by name.
func CCAlgorithms() []string {
	return []string{"dcqcn", "dctcp", "timely", "ldcp", "hc3", "dip", "zero-touch"}
}

// trafficClassScalar is clear or class. The numbers of guides are told what they would do.
func trafficClassScalar() *scalar {
	s := *enumScalar("clear", "class")
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		canonical, p := inner(text)
		if v, err := strconv.Atoi(text); p != nil && err == nil {
			switch {
			case v == -1:
				p.hint = "write clear"
			case 0 <= v && v < 256:
				p.hint = "write class, and the class's dscp gives the byte: " + tosHint(v)
				if v < 64 {
					p.hint += fmt.Sprintf("; the byte of DSCP %d is %d", v, v<<2)
				}
			}
		}
		return canonical, p
	}
	return &s
}

// readRequestScalar is a power of two from 128B to 4096B, as the PCI Express capability counts.
func readRequestScalar() *scalar {
	s := *bytesScalar()
	s.schema = textSchema(`(128|256|512|1024|2048|4096)(\.0+)?B|[124](\.0+)?KiB`)
	inner, pattern := s.parse, s.schema()["pattern"].(string)
	s.parse = func(text string) (string, *problem) {
		canonical, p := inner(text)
		if p == nil && !regexp.MustCompile(pattern).MatchString(text) {
			p = &problem{"value", "is not a read request of PCI Express", "write 128B, 256B, 512B, 1024B, 2048B or 4096B"}
		}
		return canonical, p
	}
	return &s
}

// ccScalar is one parameter of congestion control, in the unit that NICs count it in or a larger one.
func ccScalar(p profiles.CCParam) *scalar {
	least, most := ccRange(p)
	var s scalar
	switch p.Unit {
	case profiles.CCSwitch:
		return boolScalar()
	case profiles.CCRate:
		s = *wholeScalar("rate such as 5Mbps", "Mbps", multiples("Mbps", "Gbps", "Tbps"), units.ParseBitRate)
	case profiles.CCTime:
		s = *wholeScalar("time such as 300us", "us", multiples("us", "ms", "s"), units.ParseDuration)
	case profiles.CCPercent:
		s = *fromUnits("share such as 50%", func() string { return `(100|[1-9]?[0-9])(\.0+)?%` }, parseWholePercent)
	case profiles.CCBytes:
		s = *bytesScalar()
	default:
		return intScalar("number", int(least), int(min(most, math.MaxInt32)))
	}
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		canonical, bad := inner(text)
		if bad != nil {
			return "", bad
		}
		switch n, err := ccNumber(p, text); {
		case err != nil:
			return "", &problem{"value", err.Error(), ""}
		case n < int64(least):
			return "", &problem{"value", "is below the least that NICs take, " + p.Text(least), "write " + p.Text(least) + " or more"}
		case n > int64(most):
			return "", &problem{"value", "is above the most that NICs take, " + p.Text(most), "write " + p.Text(most) + " or less"}
		}
		return canonical, nil
	}
	return &s
}

// ccRange is the range of a parameter. The largest number of all stands for none.
func ccRange(p profiles.CCParam) (least, most uint32) {
	return p.Min, cmp.Or(p.Max, math.MaxUint32-1)
}

// ccNumber reads a parameter in the unit that NICs count it in.
func ccNumber(p profiles.CCParam, text string) (int64, error) {
	switch p.Unit {
	case profiles.CCSwitch:
		on, err := strconv.ParseBool(text)
		if on {
			return 1, err
		}
		return 0, err
	case profiles.CCRate:
		v, err := units.ParseBitRate(text)
		return int64(v / units.Mbps), err
	case profiles.CCTime:
		v, err := units.ParseDuration(text)
		return int64(v / units.Microsecond), err
	case profiles.CCPercent:
		v, err := units.ParsePercent(text)
		return int64(v / units.OnePercent), err
	case profiles.CCBytes:
		v, err := units.ParseBytes(text)
		return int64(v), err
	}
	return strconv.ParseInt(text, 10, 64)
}

// multiples is the pattern of whole numbers of the first unit, each of the others being 1000 of the one before.
func multiples(names ...string) string {
	us := make([]units.Unit, len(names))
	for i, name := range names {
		us[i] = units.Unit{Name: name, Decimals: 3 * i}
	}
	return quantityPattern(func() []units.Unit { return us })()
}

// wholeScalar is a quantity that hardware counts in whole units of the name one; pattern is what is a whole number.
func wholeScalar[T fmt.Stringer](noun, one, pattern string, parse func(string) (T, error)) *scalar {
	s := *fromUnits(noun, func() string { return pattern }, parse)
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		canonical, p := inner(text)
		switch {
		case p != nil && isDigits(text):
			p.hint = "write " + text + one
		case p == nil && !regexp.MustCompile("^("+pattern+")$").MatchString(text):
			p = &problem{"units", "is not a whole number of " + one, "NICs count it in whole " + one}
		}
		return canonical, p
	}
	return &s
}

// parseWholePercent reads a share without decimals.
func parseWholePercent(text string) (units.Percent, error) {
	v, err := units.ParsePercent(text)
	if err == nil && v%units.OnePercent != 0 {
		err = &units.Error{Text: text, What: "is not a whole percentage", Hint: "NICs take it without decimals"}
	}
	return v, err
}

func decodeHosts(n *node) Hosts {
	if n == nil {
		return Hosts{}
	}
	h := Hosts{
		RoCE:        HostRoCE{Mode: text(n.get("roce", "mode")), Class: text(n.get("roce", "class")), TrafficClass: text(n.get("roce", "traffic_class"))},
		Congestion:  HostCC{Algorithm: text(n.get("congestion", "algorithm"))},
		ReadRequest: value(n.get("pcie", "max_read_request"), units.ParseBytes),
		IRQ:         text(n.get("irq")), RX: integer(n.get("rings", "rx")), TX: integer(n.get("rings", "tx")), FEC: text(n.get("fec")),
		Lossless: value(n.get("receive_buffer", "lossless"), units.ParseBytes), Lossy: value(n.get("receive_buffer", "lossy"), units.ParseBytes),
		Memlock: text(n.get("memlock")),
	}
	for i, p := range profiles.CCParams() {
		h.Congestion.Params[i] = value(n.get("congestion", "parameters", p.Name), func(s string) (uint32, error) {
			v, err := ccNumber(p, s)
			return uint32(v), err
		})
	}
	return h
}

// hosts checks a section hosts: given is what stands at path, effective what results there.
func (v *validator) hosts(path string, given, effective Hosts) {
	v.dataClass(path+".roce.class", given.RoCE.Class)
	params := profiles.CCParams()
	get := func(name string) (Value[uint32], profiles.CCParam) {
		i := profiles.CCIndex(name)
		return effective.Congestion.Params[i], params[i]
	}
	ordered := func(low, high string) {
		lo, p := get(low)
		hi, _ := get(high)
		if !lo.Set || !hi.Set || hi.V == 0 || lo.V <= hi.V {
			return
		}
		if i, j := profiles.CCIndex(low), profiles.CCIndex(high); !given.Congestion.Params[i].Set && !given.Congestion.Params[j].Set {
			return // said where one of them stands
		}
		v.found.Add(diag.Finding{
			Rule: "value", Severity: diag.Error, Pos: lo.Pos(), Msg: fmt.Sprintf("%s: %s %s is above %s %s", path, low, p.Text(lo.V), high, p.Text(hi.V)),
			Hint: fmt.Sprintf("lower %s to at most %s", low, p.Text(hi.V)), Related: []diag.Related{{Pos: hi.Pos(), Msg: high + " is set here"}},
		})
	}
	ordered("min_rate", "max_rate")
	ordered("ai_rate", "hai_rate")
	ordered("rate_to_set_on_first_cnp", "max_rate")
	for _, b := range []struct {
		key string
		v   Value[units.Bytes]
	}{{"lossless", given.Lossless}, {"lossy", given.Lossy}} {
		if b.v.Set && (b.v.V == 0 || b.v.V > math.MaxUint32) {
			v.found.Errorf("value", b.v.Pos(), "write a size such as 256KB, or remove the line", "%s.receive_buffer.%s: %s is no size of a buffer", path, b.key, b.v.V)
		}
	}
	if l := given.Lossless; l.V > 0 && !v.doubtful() && !slices.ContainsFunc(v.f.Classes, func(c Class) bool { return c.Lossless.V }) {
		v.found.Errorf("value", l.Pos(), "remove it, or make a class lossless", "%s.receive_buffer.lossless: no class is lossless", path)
	}
	if tc := given.RoCE.TrafficClass; tc.V == "class" && !v.doubtful() && !effective.RoCE.Class.Set && v.defaultClass() == nil {
		v.found.Errorf("missing", tc.Pos(), "add class: and the name of the class", "%s.roce: traffic_class is class, but it is not clear which class that is", path)
	}
}

// defaultClass is the class that RDMA uses where nothing says which: that of the application nccl, or the only lossless
// one; nil where neither is.
func (v *validator) defaultClass() *Class { return v.f.DataClass(v.f.NCCL.Class) }

// DataClass is the class that data is sent in which names none itself: the one named, else that of nccl.class, of the
// application nccl, or the only lossless one. It is nil when that is not clear, or the class has no code point of its own.
func (f *Fabric) DataClass(named Value[string]) *Class {
	if !named.Set {
		named = f.NCCL.Class
	}
	if i := slices.IndexFunc(f.Apps, func(a Application) bool { return a.Name == "nccl" }); !named.Set && i >= 0 {
		named = f.Apps[i].Class
	}
	if named.Set {
		if c := f.class(named.V); c != nil && len(c.DSCP) > 0 {
			return c
		}
		return nil
	}
	var only *Class
	for i := range f.Classes {
		if c := &f.Classes[i]; c.Lossless.V && len(c.DSCP) > 0 {
			if only != nil {
				return nil
			}
			only = c
		}
	}
	return only
}

// dataClass checks that a class named for data is there and fit for it.
func (v *validator) dataClass(path string, c Value[string]) {
	if !c.Set || len(v.f.Classes) == 0 {
		return
	}
	switch k := v.f.class(c.V); {
	case k == nil && !v.doubtful():
		v.found.Errorf("unknown-name", c.Pos(), didYouMean(c.V, v.classNames()), "%s: there is no class %s", path, c.V)
	case k != nil && k.Rest.V:
		v.found.Errorf("value", c.Pos(), "name a class with code points of its own", "%s: %s takes the rest and has no code point to send with", path, c.V)
	case k != nil && k.Role.V == "cnp":
		v.found.Errorf("value", c.Pos(), "name a class for data", "%s: %s carries congestion notifications, which data would hold up", path, c.V)
	}
}

// places are the lines of h.
func (h Hosts) places() []diag.Pos {
	ps := []diag.Pos{
		h.RoCE.Mode.Pos(), h.RoCE.Class.Pos(), h.RoCE.TrafficClass.Pos(), h.Congestion.Algorithm.Pos(), h.ReadRequest.Pos(), h.IRQ.Pos(),
		h.RX.Pos(), h.TX.Pos(), h.FEC.Pos(), h.Lossless.Pos(), h.Lossy.Pos(), h.Memlock.Pos(),
	}
	for _, p := range h.Congestion.Params {
		ps = append(ps, p.Pos())
	}
	return slices.DeleteFunc(ps, diag.Pos.IsZero)
}

// NCCLVersion is the minor number of a version of NCCL, whose major number is 2.
type NCCLVersion int

// FirstAutoGID is the first version of NCCL that finds the GID by RoCE version and address family: 2.21.
const FirstAutoGID NCCLVersion = 21

// String is "2.21".
func (a NCCLVersion) String() string { return "2." + strconv.Itoa(int(a)) }

// parseNCCLVersion reads "2.21", and "2.21.5" as the same.
func parseNCCLVersion(s string) (NCCLVersion, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "2" {
		return 0, fmt.Errorf("%q is not a version", s)
	}
	for _, part := range parts[1:] {
		if n, p := parseInt(part); p != nil || n > 999 {
			return 0, fmt.Errorf("%q is not a version", s)
		}
	}
	minor, _ := parseInt(parts[1])
	if minor == 0 {
		return 0, fmt.Errorf("%q is not a version", s)
	}
	return NCCLVersion(minor), nil
}

// ncclVersionScalar is a version of NCCL. YAML may take it for a number.
func ncclVersionScalar() *scalar {
	return &scalar{
		noun: "version such as 2.21",
		schema: func() schema {
			s := written(`2\.[1-9][0-9]{0,2}(\.(0|[1-9][0-9]{0,2}))?`, "string", "number")()
			s["exclusiveMinimum"], s["exclusiveMaximum"] = 2, 3
			return s
		},
		parse: func(s string) (string, *problem) {
			a, err := parseNCCLVersion(s)
			if err != nil {
				return "", &problem{"value", "is not a version of NCCL", "write 2.21, say, as NCCL_DEBUG=VERSION prints it"}
			}
			return a.String(), nil
		},
	}
}
