package intent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Value is one value of a policy in words. Label is for people ("priority 3 kmin"), Field finds its origin.
type Value struct {
	Field    Field  `json:"field"`
	Label    string `json:"name"`
	Text     string `json:"value"`
	Priority int    `json:"priority"` // the priority that it is about, or -1
}

// Difference is one value that two policies do not share. A value that one side does not know is not compared.
type Difference struct {
	Field  Field  `json:"field"`
	Label  string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// How an absent value reads, and a switch that is not on.
const (
	none = "none"
	off  = "off"
)

// Values lists what p says, in the order in which people read it: only known areas, and only priorities that are
// used, lossless or marked. Code points are in one value per traffic class, as ranges.
func Values(p *Policy) []Value {
	var vs []Value
	add := func(f Field, label, text string, priority int) { vs = append(vs, Value{f, label, text, priority}) }
	if p.Known.Has(AreaMTU) {
		add("mtu", "mtu", p.MTU.String(), -1)
	}
	if p.Known.Has(AreaMaps) {
		add("trust", "trust", p.Trust.String(), -1)
		for tc := range 256 {
			if at := codePoints(p, uint8(tc)); len(at) > 0 {
				add(Field("dscp."+strconv.Itoa(at[0])), "dscp of "+class(uint8(tc)), Ranges(at), tc)
			}
		}
	}
	for i := range p.Queues {
		for _, v := range queueValues(p, i) {
			if v.Text != none && v.Text != off {
				vs = append(vs, v)
			}
		}
		if c := pathOf(p, i); c != (pathParts{}) {
			add(Field("class."+strconv.Itoa(i)), "priority "+strconv.Itoa(i)+" path", c.String(), i)
		}
	}
	return append(vs, deviceValues(p)...)
}

// unknown is how a value reads that its source does not speak about.
const unknown = "not known"

// Differences lists what changes from a to b in the areas that b knows, with code points grouped into ranges. What a
// does not know is "not known" before, which is not "none". What b does not say of a host is left as it is there, and
// is no difference.
func Differences(a, b *Policy) []Difference {
	both := a.Known & b.Known
	x, y := a.Only(both), b.Only(both)
	var ds []Difference
	add := func(f Field, label, before, after string) {
		if before != after {
			ds = append(ds, Difference{f, label, before, after})
		}
	}
	if both.Has(AreaMTU) {
		add("mtu", "mtu", x.MTU.String(), y.MTU.String())
	}
	if both.Has(AreaMaps) {
		add("trust", "trust", x.Trust.String(), y.Trust.String())
		ds = append(ds, dscpDifferences(&x, &y)...)
	}
	for i := range x.Queues {
		before, after := queueValues(&x, i), queueValues(&y, i)
		for j := range before {
			if before[j].Field == field("reserved", uint8(i)) && after[j].Text == none && b.Known.Has(AreaRoCE) {
				continue // of a NIC that is told nothing about its buffers
			}
			add(before[j].Field, before[j].Label, before[j].Text, after[j].Text)
		}
		was, is := pathMove(&x, &y, i)
		add(Field("class."+strconv.Itoa(i)), "priority "+strconv.Itoa(i)+" path", was, is)
	}
	was, is := map[Field]string{}, map[Field]bool{}
	for _, v := range deviceValues(&x) {
		was[v.Field] = v.Text
	}
	for _, v := range deviceValues(&y) {
		is[v.Field] = true
		add(v.Field, v.Label, or(was[v.Field]), v.Text)
	}
	for _, v := range deviceValues(&x) {
		if !is[v.Field] && !v.Field.leftAlone() && (v.Field != "cable" || !b.Known.Has(AreaRoCE)) {
			add(v.Field, v.Label, v.Text, none)
		}
	}
	news := b.Only(b.Known &^ a.Known)
	for _, v := range Values(&news) {
		add(v.Field, v.Label, unknown, v.Text)
	}
	return ds
}

// leftAlone reports whether a value stays as it is on a device whose model does not say it.
func (f Field) leftAlone() bool {
	head, _, _ := strings.Cut(string(f), ".")
	return head == "roce" || head == "cc" || head == "system" || head == "nccl"
}

func or(s string) string {
	if s == "" {
		return none
	}
	return s
}

// queueValues is a fixed number of values for priority i, so that two policies compare line by line.
func queueValues(p *Policy, i int) []Value {
	q, n := p.Queues[i], strconv.Itoa(i)
	v := func(field, label, text string) Value {
		return Value{Field(field), "priority " + n + " " + label, text, i}
	}
	scheduling, marking := none, [3]string{none, none, none}
	switch {
	case q.Strict:
		scheduling = "strict"
	case q.Weight > 0:
		scheduling = "weight " + strconv.Itoa(int(q.Weight))
	case q.Used:
		scheduling = "weighted"
	}
	if q.ECN.On {
		marking = [3]string{q.ECN.Kmin.String(), q.ECN.Kmax.String(), q.ECN.Pmax.String()}
	}
	threshold, headroom, xon, offset, reserved := bufferWords(q.Buffer)
	if p.Known.Has(AreaRoCE) { // a NIC's buffer has no parts
		threshold, headroom = none, none
	}
	return []Value{
		v("lossless."+n, "pfc", onOff(q.Lossless)),
		v("xoff."+n, "pause threshold", threshold),
		v("headroom."+n, "headroom", headroom),
		v("xon."+n, "xon", xon),
		v("xon_offset."+n, "xon offset", offset),
		v("reserved."+n, "reserved buffer", reserved),
		v("ecn."+n+".kmin", "kmin", marking[0]),
		v("ecn."+n+".kmax", "kmax", marking[1]),
		v("ecn."+n+".pmax", "pmax", marking[2]),
		v("ecn."+n+".drop", "wred drop", onOff(q.Drop)),
		v("weight."+n, "scheduling", scheduling),
	}
}

// bufferWords are the values of a buffer in the order of its fields.
func bufferWords(b Buffer) (threshold, headroom, xon, offset, reserved string) {
	some := func(v units.Bytes) string {
		if v == 0 {
			return none
		}
		return v.String()
	}
	switch {
	case !b.On:
		return none, none, none, none, none
	case b.Device:
		return "the device's own", "the device's own", none, none, none
	case b.Alpha != (units.Ratio{}):
		threshold = "alpha " + b.Alpha.String()
	case b.Static > 0:
		threshold = b.Static.String()
	default:
		threshold = none // what a switch holds of it is none that can be read
	}
	return threshold, b.Headroom.String(), some(b.Xon), some(b.XonOffset), some(b.Reserved)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return off
}

// pathParts are the way of a priority through a switch in words: "queue 3", "pg 3" and "pause 3", the queue that a received
// pause stops; of a NIC, which has none of its own for the last two, its ETS traffic class: "tc 3". The zero value is that
// of a priority which nothing uses or maps.
type pathParts [3]string

func (c pathParts) String() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(c[:]), func(s string) bool { return s == "" }), ", ")
}

func pathOf(p *Policy, i int) pathParts {
	if q := p.Queues[i]; !p.Known.Has(AreaMaps) || !q.Used && !q.Lossless && !q.ECN.On {
		return pathParts{}
	}
	if p.TCQueue[i] == Unmapped && p.TCPG[i] == Unmapped && p.PFCQueue[i] == Unmapped {
		return pathParts{}
	}
	if p.Known.Has(AreaRoCE) { // only hosts know of that
		return pathParts{"tc " + index(p.TCQueue[i])}
	}
	return pathParts{"queue " + index(p.TCQueue[i]), "pg " + index(p.TCPG[i]), "pause " + index(p.PFCQueue[i])}
}

// pathMove is how the way of priority i changes from x to y, which know the same areas: the parts that are different.
// What follows from another part, or from PFC being on or off, is left out: a device without priority groups of its own
// (EOS) has no others.
func pathMove(x, y *Policy, i int) (before, after string) {
	a, b := pathOf(x, i), pathOf(y, i)
	if a == (pathParts{}) && b == (pathParts{}) {
		return none, none
	}
	follows := follows(x, i) && follows(y, i)
	var was, is []string
	for part := range a {
		if a[part] != b[part] && (part == 0 || !follows) {
			was, is = append(was, cmp.Or(a[part], none)), append(is, cmp.Or(b[part], none))
		}
	}
	before, after = strings.Join(was, ", "), strings.Join(is, ", ")
	if a == (pathParts{}) {
		before = none
	}
	if b == (pathParts{}) {
		after = none
	}
	return before, after
}

// follows reports whether the group and the pause of a priority are as its queue and PFC have them, or as nothing has
// them.
func follows(p *Policy, i int) bool {
	if pathOf(p, i) == (pathParts{}) {
		return true
	}
	group := p.TCPG[i] == 0 && !p.Queues[i].Lossless || int(p.TCPG[i]) == i && (p.Queues[i].Lossless || !p.Known.Has(AreaPFC))
	return group && p.PFCQueue[i] == p.TCQueue[i]
}

func index(n uint8) string {
	if n == Unmapped {
		return none
	}
	return strconv.Itoa(int(n))
}

func class(tc uint8) string {
	if tc == Unmapped {
		return "no class"
	}
	return "priority " + strconv.Itoa(int(tc))
}

// deviceValues are the values that do not belong to a priority.
func deviceValues(p *Policy) []Value {
	var vs []Value
	if p.Cable != 0 {
		vs = append(vs, Value{"cable", "cable", p.Cable.String(), -1})
	}
	if p.Pause != (Pause{}) {
		vs = append(vs, Value{"pause", "link pause (802.3x)", p.Pause.String(), -1})
	}
	if w := p.Watchdog; w.On {
		ms := func(n int32) string { return strconv.Itoa(int(n)) + "ms" }
		vs = append(vs,
			Value{"watchdog.detect", "watchdog detect", ms(w.Detect), -1},
			Value{"watchdog.restore", "watchdog restore", ms(w.Restore), -1})
		if w.Poll > 0 { // 0: the device chooses, or has no such thing
			vs = append(vs, Value{"watchdog.poll", "watchdog poll", ms(w.Poll), -1})
		}
		vs = append(vs, Value{"watchdog.action", "watchdog action", w.Action.String(), -1})
		if w.Skips != 0 {
			vs = append(vs, Value{"watchdog.skips", "watchdog skips", PriorityNames(w.Skips), -1})
		}
	}
	return append(vs, hostValues(p)...)
}

// PriorityNames lists the priorities whose bits are set: "priority 3", "priorities 3,4", "no priority".
func PriorityNames(bits uint8) string {
	var ns []int
	for i := range 8 {
		if bits&(1<<i) != 0 {
			ns = append(ns, i)
		}
	}
	switch len(ns) {
	case 0:
		return "no priority"
	case 1:
		return "priority " + strconv.Itoa(ns[0])
	}
	return "priorities " + Ranges(ns)
}

func codePoints(p *Policy, tc uint8) []int {
	var at []int
	for d, c := range p.DSCP {
		if c == tc {
			at = append(at, d)
		}
	}
	return at
}

func dscpDifferences(x, y *Policy) []Difference {
	type move struct{ before, after uint8 }
	moved := map[move][]int{}
	var order []move
	for d := range x.DSCP {
		m := move{x.DSCP[d], y.DSCP[d]}
		if m.before == m.after {
			continue
		}
		if moved[m] == nil {
			order = append(order, m)
		}
		moved[m] = append(moved[m], d)
	}
	ds := make([]Difference, 0, len(order))
	for _, m := range order {
		at := moved[m]
		ds = append(ds, Difference{Field("dscp." + strconv.Itoa(at[0])), "dscp " + Ranges(at), class(m.before), class(m.after)})
	}
	return ds
}

// Ranges writes ascending numbers as "0-7,26,48-63".
func Ranges(ns []int) string {
	var b strings.Builder
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ns[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(ns[j]))
		}
		i = j + 1
	}
	return b.String()
}
