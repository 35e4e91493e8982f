package render

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

const linuxFileLine = "file " + NCCLPath

// linuxKnob is a field of a scope: how its value is checked and brought into the one form in which it is written.
type linuxKnob struct {
	scope, field string
	canon        func(string) (string, bool)
}

// linuxKnobs are all knobs but those of the app table, in the order in which a host writes and the text has them.
func linuxKnobs() []linuxKnob {
	word := func(words ...string) func(string) (string, bool) {
		return func(s string) (string, bool) { return s, slices.Contains(words, s) }
	}
	number := func(limit uint64) func(string) (string, bool) {
		return func(s string) (string, bool) {
			s = strings.TrimLeft(s[:max(len(s)-1, 0)], "0") + s[max(len(s)-1, 0):]
			_, ok := linuxNumber(s, limit)
			return s, ok
		}
	}
	pairs := func(ok func(string) bool) func(string) (string, bool) {
		return func(s string) (string, bool) {
			vs, fine := linuxSplit(s)
			fine = fine && !slices.ContainsFunc(vs[:], func(v string) bool { return !ok(v) })
			return linuxPairs(vs), fine
		}
	}
	below := func(limit uint64) func(string) bool {
		return func(s string) bool { _, ok := linuxNumber(s, limit); return ok }
	}
	onOff := word("on", "off")
	set := func(s string) (string, bool) {
		bits, ok := linuxParseSet(s)
		return profiles.Priorities(bits), ok
	}
	words := func(all ...string) func(string) (string, bool) { // in the order given
		return func(s string) (string, bool) {
			var in []string
			for _, w := range all {
				if slices.Contains(strings.Fields(s), w) {
					in = append(in, w)
				}
			}
			return strings.Join(in, " "), len(in) > 0 && len(in) == len(strings.Fields(s))
		}
	}
	dcbx := words("host", "lld-managed", "cee", "ieee", "static")
	beside := func(canon func(string) (string, bool)) func(string) (string, bool) {
		return func(s string) (string, bool) {
			one, two, differ := strings.Cut(s, Beside)
			one, ok := canon(one)
			if !differ {
				return one, ok
			}
			two, good := canon(two)
			return one + Beside + two, ok && good
		}
	}
	knobs := []linuxKnob{
		{"link", "mtu", number(1 << 30)},
		{"flag", "", onOff}, // any: drivers name theirs
		{"dcbx", "mode", func(s string) (string, bool) {
			if s == "none" {
				return s, true
			}
			return dcbx(s)
		}},
		{"pause", "autoneg", onOff},
		{"pause", "receive", onOff},
		{"pause", "send", onOff},
		{"ets", "prio-tc", pairs(below(8))},
		{"ets", "tsa", pairs(linuxWord)},
		{"ets", "bandwidth", pairs(below(101))},
		{"ets", "willing", onOff},
		{"pfc", "priorities", set},
		{"pfc", "delay", number(1 << 16)},
		{"buffer", "priorities", pairs(below(8))},
		{"buffer", "sizes", pairs(below(1 << 32))},
		{"maxrate", "kbits", pairs(below(1 << 63))},
		{"cc", "algorithm", func(s string) (string, bool) { return s, linuxWord(s) }},
		{"cc", "enable", beside(func(s string) (string, bool) {
			if s == "on" || s == "off" {
				return s, true
			}
			return set(s)
		})},
		{"cc", "cnp-dscp", beside(number(64))},
		{"cc", "cnp-priority", beside(number(8))},
	}
	for _, p := range profiles.CCParams() {
		knobs = append(knobs, linuxKnob{"cc", p.Name, beside(number(1 << 32))})
	}
	return append(knobs, []linuxKnob{
		{"roce", "mode", word("v1", "v2")},
		{"roce", "tos", number(256)},
		{"roce", "traffic-class", func(s string) (string, bool) {
			if s == "-1" {
				return s, true
			}
			return number(256)(s)
		}},
		{"pci", "max-read-request", number(1 << 16)},
		{"irq", "affinity", func(s string) (string, bool) {
			return strings.Join(strings.Fields(s), " "), strings.Trim(s, " \t") != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-:, \t") == ""
		}},
		{"ring", "rx", number(1 << 32)},
		{"ring", "tx", number(1 << 32)},
		{"fec", "mode", func(s string) (string, bool) {
			return strings.Join(strings.Fields(s), " "), strings.Trim(s, " \t") != "" && !slices.ContainsFunc(strings.Fields(s), func(w string) bool { return !linuxWord(w) })
		}},
		{"limit", "memlock", func(s string) (string, bool) {
			if s == "unlimited" {
				return s, true
			}
			return number(1 << 62)(s)
		}},
	}...)
}

// linuxWord reports whether s is a word of small letters, digits and hyphens.
func linuxWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' })
}

// linuxField is how linuxKnobs names a field of a scope.
func linuxField(scope, field string) [2]string {
	if scope == "flag" {
		field = ""
	}
	return [2]string{scope, field}
}

// linuxRanks is the order of knobs in a text, from 1.
var linuxRanks = sync.OnceValue(func() map[[2]string]int {
	rank := map[[2]string]int{}
	for i, k := range linuxKnobs() {
		rank[[2]string{k.scope, k.field}] = i + 1
	}
	return rank
})

// linuxText writes a block for each interface, with blank lines around those of more than one line. Keys that no knob has are left out.
func linuxText(c Config) []byte {
	rank := linuxRanks()
	app := rank[[2]string{"pause", "send"}] // its lines follow these
	type line struct {
		object, text string
		rank, sub    int
	}
	var lines []line
	var file strings.Builder
	apps := map[string]map[string][]int{} // interface, value, code points
	for _, s := range c {
		k := s.Key
		d, mapped := linuxCodePoint(k)
		switch n := rank[linuxField(k.Scope, k.Field)]; {
		case k == ncclKey(k.Field):
			fmt.Fprintf(&file, "%s=%s\n", k.Field, s.Value)
		case k.Scope == "nccl":
		case mapped:
			if apps[k.Object] == nil {
				apps[k.Object] = map[string][]int{}
			}
			apps[k.Object][s.Value] = append(apps[k.Object][s.Value], d)
		case k.Scope == "app":
			lines = append(lines, line{k.Object, fmt.Sprintf("app %s %s %s", k.Object, k.Field, s.Value), app, 256})
		case n > 0:
			lines = append(lines, line{k.Object, fmt.Sprintf("%s %s %s %s", k.Scope, k.Object, k.Field, s.Value), n, -1})
		}
	}
	for link, values := range apps {
		for v, ds := range values {
			slices.Sort(ds)
			lines = append(lines, line{link, fmt.Sprintf("app %s dscp %s %s", link, intent.Ranges(ds), v), app, ds[0]})
		}
	}
	order := func(a, b line) int {
		if (a.object == MemlockPath) != (b.object == MemlockPath) {
			return 2*strings.Count(a.object, MemlockPath) - 1 // the file stands last
		}
		if n := intent.CompareNames(a.object, b.object); n != 0 {
			return n
		}
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		if a.sub != b.sub {
			return a.sub - b.sub
		}
		return strings.Compare(a.text, b.text)
	}
	sort.SliceStable(lines, func(i, j int) bool { return order(lines[i], lines[j]) < 0 })
	var b strings.Builder
	long := func(i int) bool { // line i has others of its object beside it
		return i > 0 && lines[i].object == lines[i-1].object || i+1 < len(lines) && lines[i].object == lines[i+1].object
	}
	for i, l := range lines {
		if i > 0 && l.object != lines[i-1].object && (long(i) || long(i-1) || l.object == MemlockPath) {
			b.WriteString("\n")
		}
		b.WriteString(l.text + "\n")
	}
	if file.Len() == 0 {
		return []byte(b.String())
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return []byte(b.String() + linuxFileLine + "\n" + file.String())
}

func linuxParse(running []byte) (Config, diag.List) {
	p := linuxParser{values: map[Key]string{}, canon: map[[2]string]func(string) (string, bool){}}
	for _, k := range linuxKnobs() {
		p.canon[[2]string{k.scope, k.field}] = k.canon
	}
	text := string(running)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		if line == linuxFileLine {
			break
		}
		if line != "" && line[0] != '#' {
			p.line(n, line)
		}
	}
	c := ParseNCCL([]byte(text))
	for k, v := range p.values {
		c = append(c, Setting{Key: k, Value: v})
	}
	return c.Sorted(), p.found.Sort()
}

type linuxParser struct {
	values map[Key]string
	canon  map[[2]string]func(string) (string, bool)
	found  diag.List
}

// line reads "SCOPE OBJECT FIELD VALUE". The value is the rest of the line; a field of the app table has two words.
func (p *linuxParser) line(n int, line string) {
	w := strings.Fields(line)
	if len(w) < 4 || !linuxIsLink(w[1]) && w[1] != MemlockPath || (w[0] == "limit") != (w[1] == MemlockPath) {
		p.unknown(n, line)
		return
	}
	if w[0] == "app" && len(w) > 4 {
		p.app(n, line, w)
		return
	}
	canon := p.canon[linuxField(w[0], w[2])]
	if canon == nil {
		p.unknown(n, line)
		return
	}
	v, ok := canon(strings.Join(w[3:], " "))
	if !ok {
		p.unknown(n, line)
		return
	}
	p.put(n, Key{w[0], w[1], w[2]}, v)
}

// app reads "app OBJECT dscp 0-25,27 3 5", with one priority or several, and entries of other selectors, which are kept as
// they are.
func (p *linuxParser) app(n int, line string, w []string) {
	bits, ok := linuxParseSet(strings.Join(w[4:], " "))
	switch ds, ranges := linuxRanges(w[3]); {
	case !ok || bits == 0 || !linuxWord(w[2]):
		p.unknown(n, line)
	case w[2] == "dscp" && ranges:
		for _, d := range ds {
			p.put(n, linuxDSCP(w[1], d), profiles.Priorities(bits))
		}
	case w[2] != "dscp" && strings.Trim(w[3], "0123456789") == "" && len(w[3]) < 9:
		p.put(n, Key{"app", w[1], w[2] + " " + w[3]}, profiles.Priorities(bits))
	default:
		p.unknown(n, line)
	}
}

// linuxRanges reads code points as intent.Ranges writes them.
func linuxRanges(s string) (ds []int, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		lo, ok1 := linuxNumber(from, 64)
		hi, ok2 := linuxNumber(to, 64)
		if !ok1 || !ok2 || lo > hi {
			return nil, false
		}
		for d := lo; d <= hi; d++ {
			ds = append(ds, int(d))
		}
	}
	return ds, true
}

func (p *linuxParser) put(n int, k Key, v string) {
	if old, ok := p.values[k]; ok && old != v {
		p.found.Warningf("parse", diag.Pos{}, "", "line %d: the %s of %s is given twice, as %s and %s; the last one is taken", n, linuxLabel(k), k.Object, old, v)
	}
	p.values[k] = v
}

func (p *linuxParser) unknown(n int, line string) {
	p.found.Warningf("parse", diag.Pos{}, "", "line %d: %q is not \"link NAME mtu BYTES\", another knob of a host, or %s", n, line, strconv.Quote(linuxFileLine))
}

// linuxLabel is a knob for people: "mtu", "pfc priorities".
func linuxLabel(k Key) string {
	if k.Scope == "link" {
		return k.Field
	}
	return k.Scope + " " + k.Field
}
