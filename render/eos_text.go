package render

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosNode is one line of a running configuration and the lines inside it.
type eosNode struct {
	line string
	kids []*eosNode
	find map[string]*eosNode
}

func (n *eosNode) kid(line string) *eosNode {
	if k := n.find[line]; k != nil {
		return k
	}
	if n.find == nil {
		n.find = map[string]*eosNode{}
	}
	k := &eosNode{line: line}
	n.find[line] = k
	n.kids = append(n.kids, k)
	return k
}

// eosText writes c the way `show running-config` does: three spaces for each level, "!" around modes, code points
// grouped by traffic class.
func eosText(c Config) []byte {
	root := &eosNode{}
	byTC := map[string][]int{}
	for i := 0; i < len(c); {
		scope, object := c[i].Key.Scope, c[i].Key.Object
		at := root
		for _, mode := range eosPath(scope) {
			at = at.kid(mode)
		}
		fields := map[string]string{}
		for ; i < len(c) && c[i].Key.Scope == scope && c[i].Key.Object == object; i++ {
			fields[c[i].Key.Field] = c[i].Value
		}
		value, plain := fields[""]
		if n, ok := number(eosDSCPHead, object); ok && scope == "" && eosIsClass(value) {
			byTC[value] = append(byTC[value], n)
			continue
		}
		if plain {
			at.kid(eosLine(object, value))
		}
		if cp := compoundOf(object); cp != nil {
			if line := cp.line(fields); line != "" {
				at.kid(line)
			}
		}
	}
	for tc, ns := range byTC {
		root.kid(eosDSCPLine(ns, tc))
	}
	var b strings.Builder
	root.write(&b, 0)
	return []byte(b.String())
}

// eosDSCPLine is the line that puts code points into a traffic class.
func eosDSCPLine(ns []int, tc string) string {
	slices.Sort(ns)
	return "qos map dscp " + strings.Trim(fmt.Sprint(ns), "[]") + " to traffic-class " + tc
}

func eosIsClass(s string) bool { return len(s) == 1 && s[0] >= '0' && s[0] <= '7' }

func (n *eosNode) write(b *strings.Builder, depth int) {
	slices.SortFunc(n.kids, func(x, y *eosNode) int {
		return cmp.Or(cmp.Compare(eosRank(x.line), eosRank(y.line)), intent.CompareNames(x.line, y.line), cmp.Compare(x.line, y.line))
	})
	indent := strings.Repeat("   ", depth)
	var last *eosNode
	for _, k := range n.kids {
		between := k.isMode() || last != nil && (last.isMode() || depth == 0 && eosRank(last.line) != eosRank(k.line))
		if between && (depth > 0 || last != nil) {
			b.WriteString(indent + "!\n")
		}
		b.WriteString(indent + k.line + "\n")
		k.write(b, depth+1)
		if eosMultiline(k.line) {
			b.WriteString("EOF\n")
		}
		last = k
	}
}

func (n *eosNode) isMode() bool {
	return len(n.kids) > 0 || strings.HasPrefix(n.line, eosInterfaceMode) || eosQueue.MatchString(n.line)
}

// eosOrder is the order of lines inside a mode, by how they start. Others stand where the empty string is.
var eosOrder = []string{
	"description", "qos map dscp", "qos map traffic-class", eosMTU, "flowcontrol", "", "qos profile", eosBinding, eosTrust,
	eosPriority, eosShare, eosECN, "uc-tx-queue", "tx-queue", eosPFC, eosPFC + " priority", eosPFC + " pause", "interface",
}

func eosRank(line string) int {
	line = strings.TrimPrefix(line, "no ") + " "
	rank := slices.Index(eosOrder, "")
	for i, p := range eosOrder {
		if len(p) > len(eosOrder[rank]) && strings.HasPrefix(line, p+" ") {
			rank = i
		}
	}
	return rank
}

// eosMultiline reports whether free text follows the line, up to a line "EOF".
func eosMultiline(line string) bool {
	return line == "banner login" || line == "banner motd" || line == "action bash"
}

// eosParse reads a running configuration. Structure comes from indentation alone, so that modes fabricctl does not
// know keep their contents apart. Free text (banners) is left out.
func eosParse(running []byte) (Config, diag.List) {
	var p eosParser
	text := strings.ToValidUTF8(string(running), "\uFFFD")
	p.seen = map[Key]int{}
	for raw := range strings.SplitSeq(text, "\n") {
		p.read(raw)
	}
	if p.free != "" {
		p.l.Warningf("parse", diag.Pos{}, "read the configuration again", "the configuration ends inside %q: no line EOF follows", p.free)
	}
	return p.c.Sorted(), p.l.Sort()
}

type eosParser struct {
	c     Config
	l     diag.List
	seen  map[Key]int // key to index in c
	modes []eosOpen   // open lines, outermost first
	free  string      // the line whose free text is being read
}

// eosOpen is a line that lines further to the right are inside of.
type eosOpen struct {
	indent int
	scope  string // of its contents
}

func (p *eosParser) read(raw string) {
	line := strings.TrimSpace(raw)
	if p.free != "" {
		if line == "EOF" {
			p.free = ""
		}
		return
	}
	line = eosComment(line)
	if line == "" || line == "end" {
		return
	}
	indent := len(raw) - len(strings.TrimLeft(raw, " \t"))
	for len(p.modes) > 0 && p.modes[len(p.modes)-1].indent >= indent {
		p.modes = p.modes[:len(p.modes)-1]
	}
	scope := ""
	if n := len(p.modes); n > 0 {
		scope = p.modes[n-1].scope
	}
	settings, leaf := eosStatement(scope, line)
	for _, s := range settings {
		p.add(s)
	}
	if eosMultiline(line) {
		p.free = line
	} else if !leaf {
		p.modes = append(p.modes, eosOpen{indent, eosInside(scope, line)})
	}
}

// add keeps the last value of a key, as the device would.
func (p *eosParser) add(s Setting) {
	i, ok := p.seen[s.Key]
	if !ok {
		p.seen[s.Key] = len(p.c)
		p.c = append(p.c, s)
		return
	}
	if p.c[i].Value != s.Value {
		p.l.Add(diag.Finding{
			Rule: "parse", Severity: diag.Warning, At: s.Key.String(),
			Msg: fmt.Sprintf("set twice, to %q and %q; the last one is taken", p.c[i].Value, s.Value),
		})
	}
	p.c[i] = s
}

// eosComment is line without a comment. A comment starts with "!" after a space, but not in free text.
func eosComment(line string) string {
	if strings.HasPrefix(line, "!") {
		return ""
	}
	if strings.HasPrefix(line, "description ") {
		return line
	}
	for i := 1; i < len(line); i++ {
		if line[i] == '!' && line[i-1] == ' ' && (i+1 == len(line) || line[i+1] == ' ') {
			return strings.TrimSpace(line[:i])
		}
	}
	return line
}

// eosStatement is what one line sets. Leaf is true for lines that are understood, which nothing can be inside of.
func eosStatement(scope, line string) (settings []Setting, leaf bool) {
	words := strings.Fields(line)
	set := func(object, field, value string) {
		settings = append(settings, Setting{Key: Key{scope, object, field}, Value: value})
	}
	if heads, value, ok := eosMap(words); ok {
		for _, h := range heads {
			set(h, "", value)
		}
		return settings, true
	}
	for i := range eosCompounds {
		if fields, ok := eosCompounds[i].read(words); ok {
			for _, f := range eosCompounds[i].fields {
				if v, ok := fields[f.name]; ok {
					set(eosCompounds[i].head, f.name, eosNormal(eosCompounds[i].head, f.name, v))
				}
			}
			return settings, true
		}
	}
	if object, value, ok := eosScalar(words); ok {
		set(object, "", eosNormal(object, "", value))
		return settings, true
	}
	if eosBare(line) {
		return nil, true
	}
	if !(strings.HasPrefix(scope, eosInterfaceMode) && eosQueue.MatchString(line)) {
		set(line, "", "")
	}
	return settings, false
}

// eosMap reads "qos map dscp 24 26-31 cs6 to traffic-class 3" and "qos map traffic-class 3 to tx-queue 3".
func eosMap(words []string) (heads []string, value string, ok bool) {
	n := len(words)
	if n < 7 || words[0] != "qos" || words[1] != "map" || words[n-3] != "to" || !eosIsClass(words[n-1]) {
		return nil, "", false
	}
	head, last := eosDSCP, 63
	switch {
	case words[2] == "dscp" && words[n-2] == "traffic-class":
	case words[2] == "traffic-class" && words[n-2] == "tx-queue":
		head, last = eosTC, 7
	default:
		return nil, "", false
	}
	for w := range strings.FieldsFuncSeq(strings.Join(words[3:n-3], ","), func(r rune) bool { return r == ',' }) {
		lo, hi, isRange := strings.Cut(w, "-")
		if !isRange {
			hi = lo
		}
		a, oka := units.ParseCodePoint(lo) // a traffic class is a small number too
		b, okb := units.ParseCodePoint(hi)
		if !oka || !okb || a > b || int(b) > last {
			return nil, "", false
		}
		for i := a; i <= b; i++ {
			heads = append(heads, head(int(i)))
		}
	}
	return heads, words[n-1], len(heads) > 0
}

// read takes a compound line apart; ok is false for anything that line would not write.
func (c *compound) read(words []string) (fields map[string]string, ok bool) {
	head := strings.Fields(c.head)
	if len(words) <= len(head) || !slices.Equal(words[:len(head)], head) {
		return nil, false
	}
	fields = map[string]string{}
	for rest := words[len(head):]; len(rest) > 0; {
		i := slices.IndexFunc(c.fields, func(f compoundField) bool { return f.name == rest[0] })
		if i < 0 || len(rest) <= c.fields[i].words {
			return nil, false
		}
		if _, twice := fields[rest[0]]; twice {
			return nil, false
		}
		fields[rest[0]] = strings.Join(rest[1:1+c.fields[i].words], " ")
		rest = rest[1+c.fields[i].words:]
	}
	return fields, true
}

// eosScalar reads a line of one value.
func eosScalar(words []string) (object, value string, ok bool) {
	if words[0] == "no" {
		words = words[1:]
		object, value, ok = strings.Join(words, " "), "no", true
		if o, _, set := eosScalar1(words); set { // "no priority-flow-control priority 3 no-drop"
			object = o
		}
		return object, value, eosKeepsNo(object)
	}
	return eosScalar1(words)
}

func eosScalar1(words []string) (object, value string, ok bool) {
	if len(words) == 0 {
		return "", "", false
	}
	if line := strings.Join(words, " "); line == eosWatchdog || line == eosCount {
		return line, "", true
	}
	object, value = strings.Join(words[:len(words)-1], " "), words[len(words)-1]
	switch object {
	case eosTrust:
		return object, value, value == "dscp" || value == "cos"
	case eosPriority:
		return object, value, value == "strict"
	case eosPFC:
		return object, value, value == "on"
	case eosSend, eosReceive:
		return object, value, value == "on" || value == "off" || value == "desired"
	}
	if eosPrioHead.MatchString(object) {
		return object, value, value == "drop" || value == "no-drop"
	}
	return object, value, eosAnyValue(object)
}

// eosAnyValue reports whether object is the head of a line whose value may be any word.
func eosAnyValue(object string) bool {
	switch object {
	case eosMTU, eosBinding, eosShare, eosTimeout, eosRecovery, eosPolling, eosAction, eosPortAct:
		return true
	}
	return false
}

// eosBare reports whether line is the head of a line of one value, without the value: it says nothing, and must not
// be taken for the setting.
func eosBare(line string) bool {
	return line == eosTrust || line == eosPriority || line == eosPFC || eosIsPause(line) || eosAnyValue(line) || eosPrioHead.MatchString(line) || eosMapHead.MatchString(line)
}

var eosMapHead = regexp.MustCompile(`^qos map (dscp \d+ to traffic-class|traffic-class \d+ to tx-queue)$`)
