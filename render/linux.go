package render

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// linux is a Linux host with two knobs: the MTU of its NICs and the NCCL file. Keys:
//
//	{"link", "rdma0", "mtu"}                    9000
//	{"nccl", "/etc/nccl.conf", "NCCL_IB_TC"}    104
//
// The text of a host is the links, one a line, and then the NCCL file as it is:
//
//	link rdma0 mtu 9000
//
//	file /etc/nccl.conf
//	NCCL_IB_TC=104
//
// Before the file, blank lines and lines that start with "#" mean nothing.
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

// The NCCL variables of the model.
const (
	ncclTC      = "NCCL_IB_TC"
	ncclTimeout = "NCCL_IB_TIMEOUT"
	ncclRetry   = "NCCL_IB_RETRY_CNT"
)

const linuxFileLine = "file " + NCCLPath

func linuxMTU(link string) Key { return Key{"link", link, "mtu"} }
func ncclKey(name string) Key  { return Key{"nccl", NCCLPath, name} }

// linuxPCI is a PCI address, as the inventory may bind a NIC.
var linuxPCI = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// linuxOwns: the MTU of an active NIC with the area own. The NCCL file is one for all NICs: the variables that the
// model sets are owned when every active NIC has the area own. Everything else in the file is somebody else's.
func linuxOwns(d intent.Device, f Facts) func(Key) bool {
	own := map[Key]bool{}
	want, _ := linuxRender(d, f)
	nccl := d.State == intent.Active
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.State != intent.Active || d.State != intent.Active {
			continue
		}
		own[linuxMTU(p.Iface)] = p.Manage[intent.AreaMTU] == intent.Own && p.Iface != ""
		nccl = nccl && p.Manage[intent.AreaNCCL] == intent.Own
	}
	for _, s := range want {
		if s.Key.Scope == "nccl" {
			own[s.Key] = nccl
		}
	}
	return func(k Key) bool { return own[k] }
}

// linuxRender asks nothing for NICs that are absent or not bound to a link. One that is bound by its PCI address gets
// its name from the host, in the plan; without the host's facts its MTU is left out.
func linuxRender(d intent.Device, f Facts) (Config, diag.List) {
	var c Config
	var l diag.List
	by := map[Key]*intent.Port{}
	at := map[Key]int{}
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.State == intent.Absent || p.Iface == "" {
			continue
		}
		pol, place := d.PolicyOf(p), d.Name+":"+p.Name
		refuse := func(o *model.Origin, format string, a ...any) {
			l.Add(diag.Finding{
				Rule: "not-expressible", Severity: diag.Error, Pos: o.At(), At: place,
				Msg: fmt.Sprintf("%s %s: ", d.Name, p.Name) + fmt.Sprintf(format, a...),
			})
		}
		put := func(k Key, value int64, field intent.Field) {
			v, o := strconv.FormatInt(value, 10), d.Origin(p, field)
			j, ok := at[k]
			if !ok {
				at[k], by[k] = len(c), p
				c = append(c, Setting{k, v, o})
			} else if c[j].Value != v {
				l.Add(diag.Finding{
					Rule: "one-value", Severity: diag.Error, Pos: o.At(), At: place,
					Msg:  fmt.Sprintf("%s has one value on %s: %s asks for %s, %s for %s", k, d.Name, by[k].Name, c[j].Value, p.Name, v),
					Hint: fmt.Sprintf("give %s and %s the same value", by[k].Name, p.Name),
				})
			}
		}
		switch isPCI := linuxPCI.MatchString(p.Iface); {
		case isPCI && f.Hostname == "":
			l.Add(diag.Finding{
				Rule: "bound-on-host", Severity: diag.Info, At: place,
				Msg: fmt.Sprintf("the host alone knows which interface has PCI address %s: its MTU is in the plan, and not rendered here", p.Iface),
			})
		case isPCI:
			refuse(nil, "the host has no network interface with PCI address %s", p.Iface)
			continue
		case !linuxIsLink(p.Iface):
			refuse(nil, "%q is not the name of a Linux network interface", p.Iface)
			continue
		}
		if linuxIsLink(p.Iface) && pol.Known.Has(intent.AreaMTU) {
			put(linuxMTU(p.Iface), int64(pol.MTU), "mtu")
		}
		if n := pol.NCCL; pol.Known.Has(intent.AreaNCCL) && n.On {
			put(ncclKey(ncclTC), int64(n.TrafficClass), "nccl.traffic_class")
			for _, v := range []struct {
				name  string
				value uint8
				field intent.Field
			}{{ncclTimeout, n.Timeout, "nccl.timeout"}, {ncclRetry, n.RetryCount, "nccl.retry_count"}} {
				if limit := ncclLimit(v.name); int64(v.value) > limit {
					refuse(d.Origin(p, v.field), "%s of %d: the largest is %d", v.name, v.value, limit)
				} else if v.value > 0 {
					put(ncclKey(v.name), int64(v.value), v.field)
				}
			}
		}
	}
	return c.Sorted(), l.Sort()
}

// ncclLimit is the largest value of a variable: a byte, and the 5 and 3 bits of the queue pair's attributes.
func ncclLimit(name string) int64 {
	switch name {
	case ncclTimeout:
		return 31
	case ncclRetry:
		return 7
	}
	return 255
}

// linuxIsLink reports whether the kernel takes s as an interface name.
func linuxIsLink(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) < 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == '/' || r == ':' || r == 0x7f || r == unicode.ReplacementChar || unicode.IsSpace(r)
	})
}

func linuxText(c Config) []byte {
	var links, file strings.Builder
	for _, s := range c {
		switch {
		case s.Key == linuxMTU(s.Key.Object):
			fmt.Fprintf(&links, "link %s mtu %s\n", s.Key.Object, s.Value)
		case s.Key == ncclKey(s.Key.Field):
			fmt.Fprintf(&file, "%s=%s\n", s.Key.Field, s.Value)
		}
	}
	if file.Len() == 0 {
		return []byte(links.String())
	}
	if links.Len() > 0 {
		links.WriteString("\n")
	}
	return []byte(links.String() + linuxFileLine + "\n" + file.String())
}

func linuxParse(running []byte) (Config, diag.List) {
	var l diag.List
	links := map[string]string{}
	text := string(running)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		if line == linuxFileLine {
			break
		}
		w := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
		case len(w) == 4 && w[0] == "link" && w[2] == "mtu" && linuxIsLink(w[1]) && strings.Trim(w[3], "0123456789") == "" && len(w[3]) < 10:
			mtu := strings.TrimLeft(w[3][:len(w[3])-1], "0") + w[3][len(w[3])-1:]
			if old, ok := links[w[1]]; ok && old != mtu {
				l.Warningf("parse", diag.Pos{}, "", "line %d: the mtu of %s is given twice, as %s and %s; the last one is taken", n, w[1], old, mtu)
			}
			links[w[1]] = mtu
		default:
			l.Warningf("parse", diag.Pos{}, "", "line %d: %q is not \"link NAME mtu BYTES\" or %q", n, line, linuxFileLine)
		}
	}
	c := ParseNCCL([]byte(text))
	for link, mtu := range links {
		c = append(c, Setting{Key: linuxMTU(link), Value: mtu})
	}
	return c.Sorted(), l.Sort()
}

// linuxLift: every link behaves as the NCCL file says. A variable that is not there, or is -1, is not set.
func linuxLift(c Config, f Facts) (map[string]intent.Policy, diag.List) {
	var l diag.List
	say := func(k Key, format string, a ...any) {
		l.Add(diag.Finding{Rule: "lift", Severity: diag.Warning, At: strings.TrimPrefix(f.Hostname+":"+k.String(), ":"), Msg: fmt.Sprintf(format, a...)})
	}
	var nccl intent.NCCL
	read := func(name string, to *uint8) {
		v, ok := c.Find(ncclKey(name))
		if !ok {
			return
		}
		n, ok := ncclInt(v)
		switch {
		case !ok || n < -1 || n > ncclLimit(name):
			say(ncclKey(name), "%q is not a number from 0 to %d", v, ncclLimit(name))
		case n == 0 && name != ncclTC:
			say(ncclKey(name), "0 is a value that the model does not have")
		case n >= 0:
			*to = uint8(n)
			nccl.On = true
		}
	}
	read(ncclTC, &nccl.TrafficClass)
	read(ncclTimeout, &nccl.Timeout)
	read(ncclRetry, &nccl.RetryCount)
	out := map[string]intent.Policy{}
	for _, s := range c {
		if s.Key != linuxMTU(s.Key.Object) {
			continue
		}
		p := intent.Policy{Known: intent.HostAreas, NCCL: nccl}
		if n, err := strconv.ParseUint(s.Value, 10, 31); err == nil {
			p.MTU = units.Bytes(n)
		} else {
			p.Known &^= intent.AreaSet(intent.AreaMTU)
			say(s.Key, "%q is not a size in bytes", s.Value)
		}
		out[s.Key.Object] = p
	}
	return out, l.Sort()
}

// linuxSame: NCCL reads 0x68 as 104.
func linuxSame(k Key, a, b *string, _ Facts) bool {
	if a == nil || b == nil {
		return a == b
	}
	if k == ncclKey(ncclTC) || k == ncclKey(ncclTimeout) || k == ncclKey(ncclRetry) {
		x, okx := ncclInt(*a)
		y, oky := ncclInt(*b)
		if okx && oky {
			return x == y
		}
	}
	return *a == *b
}

// linuxRisk: an MTU is set on a running link, and some drivers close and open it to do so. The NCCL file is read when
// a job starts.
func linuxRisk(_ Config, cs []Change, _ Facts) []Risk {
	var links []string
	nccl := false
	for _, c := range cs {
		if c.Key.Scope == "link" {
			links = append(links, c.Key.Object)
		}
		nccl = nccl || c.Key.Scope == "nccl"
	}
	var risks []Risk
	if len(links) > 0 {
		slices.SortFunc(links, intent.CompareNames)
		risks = append(risks, Risk{
			Class: Flap, Ports: slices.Compact(links),
			Why: "some drivers close and open the NIC to change its MTU (which ones is not verified); running jobs may fail",
		})
	}
	if nccl {
		risks = append(risks, Risk{Class: Hitless, Why: "jobs read " + NCCLPath + " when they start; running ones keep what they have"})
	}
	return risks
}

// ncclInt reads a number as NCCL does, by the rules of C: 104, 0x68 and 0150 are the same, what follows is ignored.
func ncclInt(s string) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	sign := int64(1)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		s, sign = rest, -1
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	base, set := 10, "0123456789"
	switch {
	case len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") && strings.IndexByte("0123456789abcdefABCDEF", s[2]) >= 0:
		s, base, set = s[2:], 16, "0123456789abcdefABCDEF"
	case strings.HasPrefix(s, "0"):
		base, set = 8, "01234567"
	}
	n, err := strconv.ParseInt(s[:len(s)-len(strings.TrimLeft(s, set))], base, 64)
	return sign * n, err == nil
}
