package profiles

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Effect is what setting something does to the traffic of the port.
type Effect string

// The effects. What no source says counts as the worst.
const (
	EffectNone      Effect = "none"       // nothing that traffic notices
	EffectPortReset Effect = "port-reset" // the driver closes and opens the port: a gap, RDMA connections may die
	EffectLinkFlap  Effect = "link-flap"  // the link goes down and comes back
	EffectUnknown   Effect = "unknown"
)

func effects() []string {
	return []string{string(EffectNone), string(EffectPortReset), string(EffectLinkFlap), string(EffectUnknown)}
}

// Disrupts reports whether a set may be noticed by traffic: a port reset, a flap, or nobody knows.
func (e Effect) Disrupts() bool { return e != EffectNone }

// Knob is one setting that a driver has as a file of its own (sysfs, configfs, debugfs, /proc/sys), or that a command can
// show. The other settings of a NIC have one way for all drivers (rtnetlink, dcbnl, ethtool, PCI) and no knob.
//
// Its canonical value is that of the linux dialect: a number in the unit of the parameter, a word, or priorities ("3 4", "none").
type Knob struct {
	Paths    []string    `json:"paths,omitempty" yaml:"paths"`         // templates, see Place; the first that exists is the one
	Also     []string    `json:"also,omitempty" yaml:"also"`           // files beside it, if they exist, that are to hold the same
	Command  []string    `json:"command,omitempty" yaml:"command"`     // instead of files: shows the value, and is run read-only, never by a shell
	Read     string      `json:"read,omitempty" yaml:"read"`           // RE2 pattern that finds the value in what is read, by its group if it has one; "" = all of it
	Absent   string      `json:"absent,omitempty" yaml:"absent"`       // canonical value where Read finds nothing; "" = that is an error
	Write    string      `json:"write,omitempty" yaml:"write"`         // what is written, with {value} for the value, or {hex} for a number in hex; "" = {value}
	Words    []string    `json:"words,omitempty" yaml:"words"`         // "canonical=raw", for values that are words in the file; the first that fits counts, both ways
	Flags    bool        `json:"flags,omitempty" yaml:"flags"`         // the file has eight flags, of priority 0 first ("0,0,0,1,0,0,0,0"), and the value is priorities
	Scale    units.Ratio `json:"scale,omitzero" yaml:"scale"`          // of a number: canonical units for one of the file's; zero = 1
	Min      uint32      `json:"min,omitempty" yaml:"min"`             // least number, as the file has it
	Max      uint32      `json:"max,omitempty" yaml:"max"`             // largest number, as the file has it; 0 = not known, and then a number is never written
	Mkdir    string      `json:"mkdir,omitempty" yaml:"mkdir"`         // template of a directory that is made first, where there is none
	Apply    string      `json:"apply,omitempty" yaml:"apply"`         // template of a file that is written after it, where there is one, to make it count
	ApplyAs  string      `json:"apply_as,omitempty" yaml:"apply_as"`   // what is written there; "" = 1
	ReadOnly bool        `json:"read_only,omitempty" yaml:"read_only"` // it is shown and compared, never written
	Effect   Effect      `json:"effect,omitempty" yaml:"effect"`       // of a write
}

// KnobNames are the names of all knobs, in the order in which they are shown.
func KnobNames() []string {
	names := []string{"pfc.priorities", "roce.mode", "roce.tos", "roce.traffic-class", "cc.algorithm", "cc.enable", "cc.cnp-dscp", "cc.cnp-priority"}
	for _, p := range CCParams() {
		names = append(names, "cc."+p.Name)
	}
	return names
}

// knobDoc says what a knob is, for people.
func knobDoc(name string) string {
	if i := CCIndex(strings.TrimPrefix(name, "cc.")); i >= 0 {
		return "where " + CCParams()[i].Name + " is: " + CCParams()[i].Doc
	}
	return map[string]string{
		"pfc.priorities":     "where the priorities with PFC are, on a driver that has no dcbnl",
		"roce.mode":          "where the RoCE version of connections by address is (rdma_cm): v1 or v2",
		"roce.tos":           "where the type of service byte of connections by address is (rdma_cm)",
		"roce.traffic-class": "where the traffic class of all connections is, over what applications ask for; -1 leaves it to them",
		"cc.algorithm":       "where the congestion control algorithm in force is shown",
		"cc.enable":          "where congestion control is switched on: for priorities, or as on and off for all",
		"cc.cnp-dscp":        "where the DSCP of CNPs is",
		"cc.cnp-priority":    "where the priority of CNPs is",
	}[name]
}

// The places of a template, each a whole part of a path or of a command's argument.
const (
	inNetdev   = "{netdev}"
	inPCI      = "{pci}"
	inRDMA     = "{rdma}"
	inPort     = "{port}"
	inPriority = "{priority}"
	inValue    = "{value}"
	inHex      = "{hex}"
)

// ParseKnob reads the canonical text of a knob, which is JSON, and refuses one that is not legal.
func ParseKnob(text string) (Knob, error) {
	var k Knob
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&k); err != nil {
		return Knob{}, fmt.Errorf("not a knob: %w", err)
	}
	return k, k.Check()
}

// String is the canonical text of a knob; ParseKnob reads it back.
func (k Knob) String() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(k) // strings, numbers and a ratio always encode
	return strings.TrimSpace(b.String())
}

// Lines are what a person reads of a knob, a line each.
func (k Knob) Lines() []string {
	var lines []string
	say := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	for i, p := range k.Paths {
		say("%s%s", map[bool]string{true: "", false: "or "}[i == 0], p)
	}
	for _, p := range k.Also {
		say("and %s", p)
	}
	if len(k.Command) > 0 {
		say("shown by %s", strings.Join(k.Command, " "))
	}
	if k.Read != "" {
		say("reads %s", k.Read+map[bool]string{true: ", else " + k.Absent}[k.Absent != ""])
	}
	if len(k.Words) > 0 {
		say("words %s", strings.Join(k.Words, ", "))
	}
	if k.Flags {
		say("eight flags, of priority 0 first")
	}
	if k.Max > 0 {
		say("from %d to %d%s", k.Min, k.Max, map[bool]string{true: ", in steps of " + k.Scale.String()}[k.Scale.Num > 0])
	}
	if k.Write != "" {
		say("written as %s", k.Write)
	}
	if k.Mkdir != "" {
		say("after mkdir %s", k.Mkdir)
	}
	if k.Apply != "" {
		say("then %s to %s", cmp.Or(k.ApplyAs, "1"), k.Apply)
	}
	if k.Writable() {
		say("a write: %s", k.Effect)
	} else {
		say("never written")
	}
	return lines
}

// PerPriority reports whether there is a file for each priority: the value is a set of priorities.
func (k Knob) PerPriority() bool {
	return slices.ContainsFunc(slices.Concat(k.Paths, k.Also), func(p string) bool { return strings.Contains(p, inPriority) })
}

// Writable reports whether the knob may be written: it has a file, and words, priorities or a range that is known.
func (k Knob) Writable() bool {
	return !k.ReadOnly && len(k.Command) == 0 && (k.PerPriority() || k.Flags || len(k.Words) > 0 || k.Max > 0)
}

// Encode is what is to be written for a canonical value; of a knob with a file for each priority, for one of them ("0" or "1").
// A value that the file cannot hold is an error that says what it can.
func (k Knob) Encode(value string) (string, error) {
	raw := value
	switch {
	case k.Flags:
		bits, err := ParsePriorities(value)
		if err != nil {
			return "", err
		}
		raw = fmt.Sprintf("%d,%d,%d,%d,%d,%d,%d,%d", bits&1, bits>>1&1, bits>>2&1, bits>>3&1, bits>>4&1, bits>>5&1, bits>>6&1, bits>>7&1)
	case k.PerPriority():
		if value != "0" && value != "1" {
			return "", fmt.Errorf("%q is not 0 or 1", value)
		}
	case k.word(value) != "":
		raw = k.word(value)
	case k.Max > 0:
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return "", fmt.Errorf("%q is not a number%s", value, k.orWords())
		}
		s := k.scale()
		in := n * uint64(s.Den)
		if in%uint64(s.Num) != 0 {
			return "", fmt.Errorf("%d cannot be written: it is counted in steps of %s", n, s)
		}
		if in /= uint64(s.Num); in < uint64(k.Min) || in > uint64(k.Max) {
			return "", fmt.Errorf("%d is not from %d to %d", in, k.Min, k.Max)
		}
		raw = strconv.FormatUint(in, 10)
	default:
		return "", fmt.Errorf("%q cannot be written%s", value, k.orWords())
	}
	if k.Write == "" {
		return raw, nil
	}
	if n, err := strconv.ParseUint(raw, 0, 32); err == nil && strings.Contains(k.Write, inHex) {
		return strings.ReplaceAll(k.Write, inHex, strconv.FormatUint(n, 16)), nil
	}
	return strings.NewReplacer(inValue, raw, inHex, raw).Replace(k.Write), nil
}

// Decode is the canonical value of what was read.
func (k Knob) Decode(text string) (string, error) {
	raw := strings.TrimSpace(text)
	if k.Read != "" {
		re, err := regexp.Compile(k.Read)
		if err != nil {
			return "", fmt.Errorf("pattern: %w", err) // Check refuses it
		}
		m := re.FindStringSubmatch(raw)
		switch {
		case m == nil && k.Absent != "":
			return k.Absent, nil
		case m == nil:
			return "", fmt.Errorf("%q is not understood", shorten(raw))
		}
		raw = strings.TrimSpace(m[len(m)-1])
	}
	if k.PerPriority() {
		if on, err := strconv.ParseBool(raw); err == nil { // 0, 1
			return map[bool]string{false: "0", true: "1"}[on], nil
		}
		return "", fmt.Errorf("%q is not 0 or 1", shorten(raw))
	}
	if k.Flags {
		return readFlags(raw)
	}
	n, err := strconv.ParseUint(raw, 0, 32)
	for _, w := range k.Words {
		canonical, is, _ := strings.Cut(w, "=")
		if m, e := strconv.ParseUint(is, 0, 32); is == raw || err == nil && e == nil && m == n {
			return canonical, nil
		}
	}
	switch {
	case err == nil && (k.Max > 0 || len(k.Words) == 0):
		s := k.scale()
		if in := n * uint64(s.Num); in%uint64(s.Den) == 0 {
			return strconv.FormatUint(in/uint64(s.Den), 10), nil
		}
		return "", fmt.Errorf("%q is not a whole number of steps of %s", shorten(raw), s)
	case k.Max == 0 && len(k.Words) == 0 && raw != "":
		return shorten(raw), nil // text that is only shown
	}
	return "", fmt.Errorf("%q is not understood", shorten(raw))
}

// readFlags is the priorities of eight flags, with anything but digits between them.
func readFlags(raw string) (string, error) {
	flags := strings.FieldsFunc(raw, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	if len(flags) != 8 {
		return "", fmt.Errorf("%q is not eight flags", shorten(raw))
	}
	var bits uint8
	for i, f := range flags {
		switch f {
		case "1":
			bits |= 1 << i
		case "0":
		default:
			return "", fmt.Errorf("%q is not eight flags", shorten(raw))
		}
	}
	return Priorities(bits), nil
}

// Priorities is a set of priorities, a bit each, as the linux dialect writes it: "3 4", or "none".
func Priorities(bits uint8) string {
	if bits == 0 {
		return "none"
	}
	var ps []string
	for p := range 8 {
		if bits>>p&1 == 1 {
			ps = append(ps, strconv.Itoa(p))
		}
	}
	return strings.Join(ps, " ")
}

// ParsePriorities reads what Priorities writes.
func ParsePriorities(s string) (bits uint8, err error) {
	if s == "none" {
		return 0, nil
	}
	for f := range strings.SplitSeq(s, " ") {
		if len(f) != 1 || f[0] < '0' || f[0] > '7' {
			return 0, fmt.Errorf("%q is not priorities such as 3 4, or none", shorten(s))
		}
		bits |= 1 << (f[0] - '0')
	}
	if Priorities(bits) != s {
		return 0, fmt.Errorf("%q is not in order: write %s", shorten(s), Priorities(bits))
	}
	return bits, nil
}

func (k Knob) word(canonical string) string {
	for _, w := range k.Words {
		if c, raw, _ := strings.Cut(w, "="); c == canonical {
			return raw
		}
	}
	return ""
}

func (k Knob) orWords() string {
	var cs []string
	for _, w := range k.Words {
		c, _, _ := strings.Cut(w, "=")
		cs = append(cs, c)
	}
	if len(cs) == 0 {
		return ""
	}
	return " or one of " + strings.Join(cs, ", ")
}

func (k Knob) scale() units.Ratio {
	if k.Scale.Num <= 0 || k.Scale.Den <= 0 {
		return units.Ratio{Num: 1, Den: 1}
	}
	return k.Scale
}

// shorten keeps what a device says short enough for a sentence.
func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// Place is where a NIC is: what the templates of a knob are filled with.
type Place struct {
	Netdev   string // "ens1f0np0"
	PCI      string // "0000:17:00.0"
	RDMA     string // "mlx5_0"; "" = it has no RDMA device
	Port     int    // of the RDMA device, from 1
	Priority int    // 0 to 7, for a knob with a file for each
}

// Fill is a template with the names of this NIC. It is an error where the NIC lacks a name, or where one would lead out of
// its part of the path.
func (p Place) Fill(template string) (string, error) {
	var pairs []string
	for _, x := range []struct{ in, name string }{
		{inNetdev, p.Netdev},
		{inPCI, p.PCI},
		{inRDMA, p.RDMA},
		{inPort, strconv.Itoa(p.Port)},
		{inPriority, strconv.Itoa(p.Priority)},
	} {
		if !strings.Contains(template, x.in) {
			continue
		}
		if x.name == "" || x.name == "." || x.name == ".." || strings.ContainsAny(x.name, "/\x00\n") || x.in == inPort && p.Port < 1 {
			return "", fmt.Errorf("%s: this NIC has no usable %s", template, strings.Trim(x.in, "{}"))
		}
		pairs = append(pairs, x.in, x.name)
	}
	return strings.NewReplacer(pairs...).Replace(template), nil
}

// Check reports everything that makes a knob unusable or unsafe, joined.
func (k Knob) Check() error {
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	switch {
	case len(k.Paths) == 0 && len(k.Command) == 0:
		fail("a knob has paths or a command")
	case len(k.Paths) > 0 && len(k.Command) > 0:
		fail("a knob has paths or a command, not both")
	case len(k.Command) > 0 && (len(k.Also) > 0 || k.Mkdir != "" || k.Apply != "" || k.Write != ""):
		fail("a command only shows: also, mkdir, apply and write go with paths")
	}
	for _, p := range slices.Concat(k.Paths, k.Also) {
		if err := checkPath(p, k.Writable()); err != nil {
			errs = append(errs, err)
		}
	}
	if k.Apply != "" {
		if err := checkPath(k.Apply, true); err != nil {
			errs = append(errs, err)
		}
	}
	if k.Mkdir != "" && !strings.HasPrefix(k.Mkdir, "/sys/kernel/config/") {
		fail("mkdir %s: directories are made in /sys/kernel/config alone", shorten(k.Mkdir))
	} else if k.Mkdir != "" {
		if err := checkPath(k.Mkdir, true); err != nil {
			errs = append(errs, err)
		}
	}
	if err := checkCommand(k.Command); err != nil {
		errs = append(errs, err)
	}
	if err := checkPattern(k.Read); err != nil {
		errs = append(errs, err)
	}
	for _, s := range slices.Concat(k.Words, []string{k.Write, k.Absent, k.ApplyAs}) {
		if !printable(s) {
			fail("%q: want printable text of at most 200 characters", shorten(s))
		}
	}
	for i, w := range k.Words {
		c, raw, ok := strings.Cut(w, "=")
		if !ok || c == "" || raw == "" {
			fail("word %q: want CANONICAL=RAW, such as v2=RoCE v2", shorten(w))
		}
		if slices.ContainsFunc(k.Words[:i], func(o string) bool { return strings.HasSuffix(o, "="+raw) }) {
			fail("%q stands for two words", shorten(raw))
		}
	}
	if k.Write != "" && strings.Count(k.Write, inValue)+strings.Count(k.Write, inHex) != 1 {
		fail("write %q: want {value} or {hex} in it once", k.Write)
	}
	if k.Flags && (len(k.Words) > 0 || k.Max > 0 || k.PerPriority()) {
		fail("flags are a kind of value of their own: without words, max and {priority}")
	}
	if k.Absent != "" && k.Read == "" {
		fail("absent goes with read, the pattern that finds nothing")
	}
	if k.ApplyAs != "" && k.Apply == "" {
		fail("apply_as goes with apply, the file that it is written to")
	}
	if k.Scale != (units.Ratio{}) && (k.Scale.Num < 1 || k.Scale.Den < 1 || k.Scale.Num > 1_000_000 || k.Scale.Den > 1_000_000) {
		fail("scale %s: want 8 or 1/1000, at most a million either way", k.Scale)
	}
	if k.Max > 0 && k.Min > k.Max {
		fail("min %d is above max %d", k.Min, k.Max)
	}
	if k.Effect != "" && !slices.Contains(effects(), string(k.Effect)) {
		fail("effect %q is not one of %s", shorten(string(k.Effect)), strings.Join(effects(), ", "))
	}
	if k.Writable() && k.Effect == "" {
		fail("a knob that is written says what a write does to traffic: effect is one of %s", strings.Join(effects(), ", "))
	}
	return errors.Join(errs...)
}

// printable is whether s is one line of printable text that is not too long.
func printable(s string) bool {
	return len(s) <= 200 && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r > '~' }) < 0
}
