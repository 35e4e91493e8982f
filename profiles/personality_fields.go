package profiles

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

func personalitySpecs() []spec[Personality] {
	statuses := []string{string(Managed), string(Observed), string(Unsupported)}
	support := []string{string(SupportSet), string(SupportShown), string(SupportNone), string(SupportUnknown)}
	does := func(key, doc string, at func(*Personality) *Support) spec[Personality] {
		return typed(key, "whether the driver has "+doc, support, at)
	}
	costs := func(key, doc string, at func(*Personality) *Effect) spec[Personality] {
		return typed(key, "what "+doc+" does to traffic", effects(), at)
	}
	specs := []spec[Personality]{
		text("description", "for people", func(p *Personality) *string { return &p.Description }),
		typed("status", "what fabricctl may do with it", statuses, func(p *Personality) *Status { return &p.Status }).must(),
		text("why", "why it is not managed, and what a person does instead", func(p *Personality) *string { return &p.Why }),
		names("drivers", "driver", "Linux network and RDMA drivers that it is about", Name, func(p *Personality) *[]string { return &p.Drivers }),
		names("pci", "PCI id", "vendor:device of the NICs that it is about, where the driver does not tell", PCIID, func(p *Personality) *[]string { return &p.PCI }),

		does("app", "entries of the application table for code points (dcbnl)", func(p *Personality) *Support { return &p.App.Support }),
		costs("app_effect", "a set of them", func(p *Personality) *Effect { return &p.App.Effect }),
		word("app_entries", "which code points get an entry: all, where only then all are read back, or those used", []string{AppAll, AppUsed}, func(p *Personality) *string { return &p.AppEntries }),
		word("app_replace", "how an entry gets another priority", []string{AppInPlace, AppAddDelete, AppDeleteAdd, AppReplaceUnsure}, func(p *Personality) *string { return &p.AppReplace }),
		flag("app_priority_is_tc", "whether the priority of an entry names a traffic class", func(p *Personality) *bool { return &p.AppPriorityIsTC }),
		runs("app_default", "priority of code points without an entry: 24-31:3", func(p *Personality) *[64]int8 { return &p.AppDefault }),
		text("app_deleted", "where a code point goes whose entry is deleted", func(p *Personality) *string { return &p.AppDeleted }),
		flag("app_status_unclear", "whether its answers need a read to be understood", func(p *Personality) *bool { return &p.AppStatusUnclear }),
		listOf("app_resets", "object", "what the first entry for a code point sets back", Objects(), func(p *Personality) *[]string { return &p.AppResets }),
		does("ets", "traffic classes and their bandwidth (dcbnl)", func(p *Personality) *Support { return &p.ETS.Support }),
		costs("ets_effect", "a set of them", func(p *Personality) *Effect { return &p.ETS.Effect }),
		number("traffic_classes", "traffic classes of a port", 1, 8, func(p *Personality) *int { return &p.TrafficClasses }),
		listOf("tsa", "algorithm", "transmission selection that it takes", []string{"strict", "ets", "vendor"}, func(p *Personality) *[]string { return &p.TSA }),
		flag("ets_floor", "whether each class by weight needs at least 1 %", func(p *Personality) *bool { return &p.ETSFloor }),
		does("pfc", "PFC (dcbnl)", func(p *Personality) *Support { return &p.PFC.Support }),
		costs("pfc_effect", "a set of it", func(p *Personality) *Effect { return &p.PFC.Effect }),
		flag("pfc_by_tc", "whether all priorities of a traffic class are paused together", func(p *Personality) *bool { return &p.PFCByTC }),
		number("pfc_priorities", "most priorities that may be lossless at once", 1, 8, func(p *Personality) *int { return &p.PFCPriorities }),
		word("pfc_delay", "what PFC's delay does", []string{DelayMetres, DelayStored, DelayShown, DelayNone, DelayUnsure}, func(p *Personality) *string { return &p.PFCDelay }),
		does("buffer", "receive buffers by priority (dcbnl)", func(p *Personality) *Support { return &p.Buffer.Support }),
		costs("buffer_effect", "a set of them", func(p *Personality) *Effect { return &p.Buffer.Effect }),
		does("maxrate", "a rate limit by traffic class (dcbnl)", func(p *Personality) *Support { return &p.MaxRate }),
		does("dcbx", "a DCBX mode (dcbnl)", func(p *Personality) *Support { return &p.DCBX.Support }),
		costs("dcbx_effect", "a set of it", func(p *Personality) *Effect { return &p.DCBX.Effect }),
		word("dcbx_own", "how the host takes its settings", []string{OwnOrHost, OwnHostIEEE, OwnNothing}, func(p *Personality) *string { return &p.DCBXOwn }),
		listOf("dcbx_foreign", "sign", "signs in the DCBX mode that another owns the settings", []string{ForeignNoHost, ForeignLLDManaged, ForeignCEE}, func(p *Personality) *[]string { return &p.DCBXForeign }),
		text("dcbx_remedy", "what a person does against that", func(p *Personality) *string { return &p.DCBXRemedy }),
		flag("reads_cache", "whether a get shows what was last set this way, and not what the hardware does", func(p *Personality) *bool { return &p.ReadsCache }),
		listOf("order", "object", "in which its dcbnl objects are set; default app, ets, pfc, buffer", Objects(), func(p *Personality) *[]string { return &p.Order }),
		name("lldp_flag", "flag", "private flag of ethtool that is on while firmware owns the settings", func(p *Personality) *string { return &p.LLDPFlag }),
		flag("pause_autoneg", "whether link pause is set only with its negotiation off", func(p *Personality) *bool { return &p.PauseAutoneg }),
		flag("pause_needs_no_pfc", "whether link pause cannot be read or set while PFC is on", func(p *Personality) *bool { return &p.PauseNeedsNoPFC }),
		flag("bond_refuses", "whether dcbnl is refused while the port is in a bond", func(p *Personality) *bool { return &p.BondRefuses }),
		costs("mtu_effect", "a new MTU", func(p *Personality) *Effect { return &p.MTUEffect }),
		costs("pause_effect", "a set of link pause", func(p *Personality) *Effect { return &p.PauseEffect }),
		costs("ring_effect", "a new ring size", func(p *Personality) *Effect { return &p.RingEffect }),
		costs("fec_effect", "another FEC", func(p *Personality) *Effect { return &p.FECEffect }),
		listOf("roce_versions", "version", "kinds of entries in its GID tables", []string{"v1", "v2"}, func(p *Personality) *[]string { return &p.RoCEVersions }),
	}
	for _, n := range KnobNames() {
		specs = append(specs, knob(n))
	}
	return append(specs,
		counters("counters", "where it counts what has a canonical name: pfc.rx.{priority}=ethtool:rx_prio{priority}_pause", func(p *Personality) *[]Counting { return &p.Counters }),
		names("traps", "sentence", "what goes wrong with it, a sentence each", Text, func(p *Personality) *[]string { return &p.Traps }),
		flag("verified", "whether it was tried on a real adapter", func(p *Personality) *bool { return &p.Verified }),
		text("source", "where the facts are from that name no source of their own", func(p *Personality) *string { return &p.Source }).about(),
		word("confidence", "how far they are to be trusted", confidences(), func(p *Personality) *string { return &p.Confidence }).about(),
	)
}

// typed is a word that has a type of its own.
func typed[T any, W ~string](key, doc string, words []string, at func(*T) *W) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Word, Words: words}, func(t *T, v []string) { *at(t) = W(v[0]) }}
}

// listOf is a list of words.
func listOf[T any](key, noun, doc string, words []string, at func(*T) *[]string) spec[T] {
	s := names(key, noun, doc, Word, at)
	s.Words = words
	return s
}

// runs is a table of code points.
func runs(key, doc string, at func(*Personality) *[64]int8) spec[Personality] {
	return spec[Personality]{Field{Key: key, Noun: "run", Doc: doc, Shape: Run, List: true}, func(p *Personality, v []string) {
		for _, text := range v {
			lo, hi, priority, _ := parseRun(text)
			for i := lo; i <= hi; i++ {
				at(p)[i] = int8(priority)
			}
		}
	}}
}

// counters is a list of them.
func counters(key, doc string, at func(*Personality) *[]Counting) spec[Personality] {
	return spec[Personality]{Field{Key: key, Noun: "counter", Doc: doc, Shape: Count, List: true}, func(p *Personality, v []string) {
		for _, text := range v {
			c, _ := ParseCounting(text)
			*at(p) = append(*at(p), c)
		}
	}}
}

// CheckRun says why a text is not code points and the priority that they have, such as 24-31:3.
func CheckRun(text string) error {
	_, _, _, err := parseRun(text)
	return err
}

// parseRun reads "24-31:3" or "26:3".
func parseRun(text string) (lo, hi, priority int, err error) {
	span, prio, ok := strings.Cut(text, ":")
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	for _, x := range []struct {
		at   *int
		text string
		most int
	}{{&lo, first, 63}, {&hi, last, 63}, {&priority, prio, 7}} {
		n, e := strconv.Atoi(x.text)
		ok = ok && e == nil && n >= 0 && n <= x.most && strconv.Itoa(n) == x.text
		*x.at = n
	}
	if !ok || lo > hi {
		return 0, 0, 0, fmt.Errorf("%q is not code points and a priority such as 24-31:3", shorten(text))
	}
	return lo, hi, priority, nil
}

// knob is a place of a setting; its value is the canonical text of a Knob.
func knob(name string) spec[Personality] {
	return spec[Personality]{Field{Key: name, Doc: knobDoc(name), Shape: KnobRow}, func(p *Personality, v []string) {
		k, _ := ParseKnob(v[0])
		p.Knobs = append(p.Knobs, NamedKnob{name, k})
	}}
}

// KnobFields are the parts of a knob as a document writes them, in order.
func KnobFields() []Field { return plain(knobSpecs()) }

func knobSpecs() []spec[Knob] {
	list := func(key, noun, doc string, at func(*Knob) *[]string) spec[Knob] {
		return names(key, noun, doc, Text, at)
	}
	count := func(key, doc string, at func(*Knob) *uint32) spec[Knob] {
		return spec[Knob]{Field{Key: key, Doc: doc, Shape: Number, Hi: mostRaw}, func(k *Knob, v []string) {
			n, _ := strconv.Atoi(v[0])
			*at(k) = uint32(n)
		}}
	}
	return []spec[Knob]{
		list("paths", "path", "files that may hold it, the first that exists counts; {netdev}, {pci}, {rdma}, {port} and {priority} stand for the NIC's", func(k *Knob) *[]string { return &k.Paths }),
		list("also", "path", "files beside it that are to hold the same, where they exist", func(k *Knob) *[]string { return &k.Also }),
		list("command", "argument", "instead of files: a program that shows it, and its arguments; such a knob is never written", func(k *Knob) *[]string { return &k.Command }),
		text("read", "pattern (RE2) that finds the value in what is read", func(k *Knob) *string { return &k.Read }),
		text("absent", "what it is where the pattern finds nothing", func(k *Knob) *string { return &k.Absent }),
		text("write", "what is written, with {value} for the value, or {hex} for a number in hex", func(k *Knob) *string { return &k.Write }),
		list("words", "word", "values that are words in the file: v2=RoCE v2", func(k *Knob) *[]string { return &k.Words }),
		flag("flags", "whether the file has eight flags, of priority 0 first, such as 0,0,0,1,0,0,0,0", func(k *Knob) *bool { return &k.Flags }),
		ratio("scale", "how many of our units one of the file's is: 8, or 1/1000", func(k *Knob) *units.Ratio { return &k.Scale }),
		count("min", "least number that the file takes", func(k *Knob) *uint32 { return &k.Min }),
		count("max", "largest number that the file takes; without it a number is never written", func(k *Knob) *uint32 { return &k.Max }),
		text("mkdir", "directory below /sys/kernel/config that is made first", func(k *Knob) *string { return &k.Mkdir }),
		text("apply", "file that is written afterwards, where it exists, to make the value count", func(k *Knob) *string { return &k.Apply }),
		text("apply_as", "what is written there; default 1", func(k *Knob) *string { return &k.ApplyAs }),
		flag("read_only", "whether it is shown and compared, and never written", func(k *Knob) *bool { return &k.ReadOnly }),
		typed("effect", "what a write does to traffic", effects(), func(k *Knob) *Effect { return &k.Effect }),
	}
}

// mostRaw is the largest number that a document may say a file takes.
const mostRaw = 1<<31 - 1

// KnobOf is a knob of parts by their keys, in text. The error names each part that is wrong, or why the whole is not legal.
func KnobOf(parts map[string][]string) (Knob, error) {
	var k Knob
	var errs []error
	for _, s := range knobSpecs() {
		values, ok := parts[s.Key]
		if !ok {
			continue
		}
		var checked []string
		for _, v := range values {
			c, err := s.check(v)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.Key, err))
			}
			checked = append(checked, c)
		}
		if len(checked) == 0 || len(checked) > 1 && !s.List {
			errs = append(errs, fmt.Errorf("%s: want %s", s.Key, map[bool]string{true: "one or more", false: "one value"}[s.List]))
			continue
		}
		if len(errs) == 0 {
			s.set(&k, checked)
		}
	}
	if len(errs) > 0 {
		return Knob{}, errors.Join(errs...)
	}
	return k, k.Check()
}
