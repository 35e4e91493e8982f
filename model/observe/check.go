package observe

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/model/units"
)

// Check reports what of w makes no sense whatever the fabric: an *Error, or nil. What a fabric lacks is for the runner to say.
func (w *Workload) Check() error {
	if len(w.Parts) == 0 {
		return &Error{"it", "has no parts", "write one, such as incast:8"}
	}
	if !plain(w.Name) {
		return &Error{"name " + quote(w.Name), "has characters that a name may not have", "use letters, digits, - _ and ."}
	}
	for _, t := range []struct {
		key string
		v   units.Duration
	}{{"for", w.Duration}, {"warmup", w.Warmup}} {
		if t.v < 0 || t.v > longest {
			return &Error{t.key + " " + t.v.String(), "is out of range", "use at most " + longest.String()}
		}
	}
	labels := map[string]int{}
	for i := range w.Parts {
		if err := w.Parts[i].check(); err != nil {
			if len(w.Parts) > 1 {
				err.Text = fmt.Sprintf("part %d: %s", i+1, err.Text)
			}
			return err
		}
		label := w.Label(i)
		if j, twice := labels[label]; twice {
			return &Error{quote(label), fmt.Sprintf("is the name of parts %d and %d", j+1, i+1), "give one of them another name"}
		}
		labels[label] = i
	}
	return nil
}

// longest is the longest time that a workload may name; the simulator's clock ends after 50 days.
const longest = 24 * units.Hour

// largest is the largest size of anything in a workload.
const largest = 1000 * units.Bytes(1000) * units.GB

// applies lists the keys that only some kinds have; every other key goes with all of them.
func applies(key string) []Kind {
	switch key {
	case "to":
		return []Kind{Single, Incast, Probe}
	case "load":
		return []Kind{Background}
	case "file", "flows":
		return []Kind{Trace}
	case "random":
		return []Kind{Single, Incast, Pairs, Permutation}
	case "across":
		return []Kind{Single, Incast, Pairs, AllToAll, Permutation, Background, Probe, Victim}
	case "latency":
		return []Kind{Single, Incast, Pairs}
	}
	return nil
}

// used are the keys that p gives, by their names in the text form, and "n" and "flows".
func (p *Part) used() []string {
	var keys []string
	for _, f := range fields() {
		if f.write(p) != "" {
			keys = append(keys, f.key)
		}
	}
	if len(p.Flows) > 0 {
		keys = append(keys, "flows")
	}
	return keys
}

func (p *Part) check() *Error {
	i := slices.IndexFunc(Kinds(), func(k KindDoc) bool { return k.Kind == p.Kind })
	if i < 0 {
		return wrongKind(p.Kind).(*Error)
	}
	if p.N != 0 && Kinds()[i].N == "" {
		return &Error{fmt.Sprintf("%s:%d", p.Kind, p.N), "has a number, and " + string(p.Kind) + " takes none", "write " + string(p.Kind)}
	}
	for _, key := range p.used() {
		if ks := applies(key); ks != nil && !slices.Contains(ks, p.Kind) {
			return &Error{key, "does not go with " + string(p.Kind), "it goes with " + kindList(ks)}
		}
	}
	if err := p.checkNames(); err != nil {
		return err
	}
	if err := p.checkNumbers(); err != nil {
		return err
	}
	return p.checkTogether()
}

func kindList(ks []Kind) string {
	names := make([]string, len(ks))
	for i, k := range ks {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// plain reports whether s may be a name: what models allow.
func plain(s string) bool {
	return len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	}) < 0
}

// nameHint says what names are, and of hosts as they are printed in short, "host[1-8]", how to write them.
func nameHint(s string) string {
	stem, rest, _ := strings.Cut(s, "[")
	if first, last, is := strings.Cut(strings.TrimSuffix(rest, "]"), "-"); is && plain(stem+first+last) && strings.HasSuffix(rest, "]") {
		return "write " + stem + first + ".." + stem + last
	}
	return "names are letters, digits, - _ and ."
}

func (p *Part) checkNames() *Error {
	names := append([]string{p.Name, p.Class, p.To}, p.Hosts...)
	for i, s := range names {
		if i > 2 { // a host, or a NIC of one
			s = strings.Replace(s, ":", "", 1)
		}
		if !plain(s) || i > 2 && s == "" {
			return &Error{quote(s), "is not a name", nameHint(s)}
		}
	}
	switch p.Op {
	case "", OpWrite, OpRead, OpSend:
	default:
		return &Error{"op " + quote(string(p.Op)), "is not an operation", "use write, read or send"}
	}
	if len(p.File) > 4096 || !utf8.ValidString(p.File) || strings.ContainsFunc(p.File, func(r rune) bool { return r == ',' || r == '+' || !unicode.IsPrint(r) }) || strings.TrimSpace(p.File) != p.File {
		return &Error{"file " + quote(p.File), "is not a name that fits here", "give the file a name without , and +"}
	}
	for _, f := range p.Flows {
		if !plain(strings.Replace(f.Src, ":", "", 1)) || !plain(strings.Replace(f.Dst, ":", "", 1)) || !plain(f.Class) || f.Src == "" || f.Dst == "" {
			return &Error{"flow " + quote(f.Src+" to "+f.Dst), "has a name that no model has", "names are letters, digits, - _ and ."}
		}
		if f.Start < 0 || f.Start > longest || f.Bytes < 1 || f.Bytes > largest {
			return &Error{"flow " + quote(f.Src+" to "+f.Dst), fmt.Sprintf("starts at %s and has %s, which is out of range", f.Start, f.Bytes), ""}
		}
	}
	return nil
}

// roceMTUs are the payloads of a packet that there are.
var roceMTUs = [...]units.Bytes{256, 512, 1024, 2048, 4096}

func (p *Part) checkNumbers() *Error {
	for _, x := range []struct {
		key string
		n   int
	}{{"n", p.N}, {"rail", p.Rail}, {"depth", p.Depth}, {"qps", p.QPs}, {"count", p.Count}} {
		if x.n < 0 || x.n > most {
			return &Error{fmt.Sprintf("%s %d", x.key, x.n), fmt.Sprintf("is not from 1 to %d", most), ""}
		}
	}
	for _, x := range []struct {
		key string
		v   units.Duration
	}{{"start", p.Start}, {"spread", p.Spread}, {"every", p.Every}} {
		if x.v < 0 || x.v > longest {
			return &Error{x.key + " " + x.v.String(), "is out of range", "use at most " + longest.String()}
		}
	}
	for _, x := range []struct {
		key string
		v   units.Bytes
	}{{"bytes", p.Bytes}, {"size", p.Message}} {
		if x.v < 0 || x.v > largest {
			return &Error{x.key + " " + x.v.String(), "is out of range", "use at most " + largest.String()}
		}
	}
	switch {
	case p.N == 1 && (p.Kind == AllToAll || p.Kind == Permutation):
		return &Error{fmt.Sprintf("%s:1", p.Kind), "is one host, which sends to nobody", fmt.Sprintf("write %s:2 or more", p.Kind)}
	case p.Jitter < 0 || p.Jitter >= 100*units.OnePercent:
		return &Error{"jitter " + p.Jitter.String(), "is not below 100%", ""}
	case p.Load < 0 || p.Load > 100*units.OnePercent:
		return &Error{"load " + p.Load.String(), "is above 100%", "the links of the hosts carry no more"}
	case p.MTU != 0 && !slices.Contains(roceMTUs[:], p.MTU):
		return &Error{"mtu " + p.MTU.String(), "is not a payload that RDMA has", "use 256B, 512B, 1024B, 2048B or 4096B"}
	case p.DSCP != nil && *p.DSCP > 63:
		return &Error{fmt.Sprintf("dscp %d", *p.DSCP), "is not from 0 to 63", ""}
	}
	return nil
}

// checkTogether refuses what contradicts itself.
func (p *Part) checkTogether() *Error {
	burst := p.Kind != Probe && p.Kind != Background
	switch {
	case p.Class != "" && p.DSCP != nil:
		return &Error{fmt.Sprintf("class %s with dscp %d", p.Class, *p.DSCP), "says twice how packets are marked", "leave one of them out"}
	case burst && p.Every > 0 && p.Bytes == 0 && p.Kind != Trace:
		return &Error{"every " + p.Every.String(), "repeats flows that never end", "give them bytes"}
	case burst && p.Every == 0 && p.Jitter > 0:
		return &Error{"jitter", "has no every that it would be of", "add every=500us"}
	case burst && p.Every == 0 && p.Count > 0:
		return &Error{fmt.Sprintf("count %d", p.Count), "has no every", "add every=500us"}
	case p.Kind == Background && (p.Every > 0 || p.Count > 0 || p.Jitter > 0):
		return &Error{"every, jitter and count", "do not go with background, whose load says how often flows come", "leave them out"}
	case p.Kind == Probe && p.Jitter > 0:
		return &Error{"jitter", "does not go with probe, which comes at times of a Poisson process", "leave it out"}
	case p.Latency && (p.Depth > 1 || p.Both):
		return &Error{"latency", "sends one message after the other, so depth and both do not go with it", "leave them out"}
	case p.Depth > 0 && p.Message == 0 && !p.Latency:
		return &Error{fmt.Sprintf("depth %d", p.Depth), "counts messages, and they have no size", "add size=64KiB"}
	case p.Random && p.Every == 0:
		return &Error{"random", "draws hosts at each burst, and there are none", "add every=500us and bytes=64KB"}
	case p.Kind == Ring && p.N > 0 && p.Bytes == 0:
		return &Error{fmt.Sprintf("ring:%d", p.N), "counts steps of a size, and there is none", "add bytes=64MB"}
	case p.Kind == Trace && p.File == "" && len(p.Flows) == 0:
		return &Error{"trace", "has no file", "write trace:FILE"}
	case p.To != "" && p.Random:
		return &Error{"to " + p.To, "and random contradict each other", "leave one of them out"}
	}
	return nil
}
