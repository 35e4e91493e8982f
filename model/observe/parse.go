package observe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Kinds lists the kinds of parts with what each is, for help and completion.
func Kinds() []KindDoc {
	return []KindDoc{
		{Single, "", "one flow, from the first host to the last"},
		{Incast, "senders", "N hosts, or all others, to one"},
		{Pairs, "pairs", "the first half of the hosts to the second half, one to one"},
		{AllToAll, "hosts", "each of N hosts, or of all, to each other"},
		{Ring, "steps", "N steps of an all-reduce around the hosts, each waiting for the one before; all of them by default"},
		{Permutation, "hosts", "each of N hosts, or of all, to another one that is drawn"},
		{Background, "", "flows between drawn hosts at drawn times, for a load on their links"},
		{Probe, "", "small messages at drawn times, for their latency"},
		{Victim, "flows", "N flows from senders of the parts before to hosts that receive from nobody else"},
		{Trace, "", "flows as a CSV file lists them: start,src,dst,class,bytes"},
	}
}

// KindDoc describes a kind. N is what Part.N counts, "" where it has none.
type KindDoc struct {
	Kind   Kind
	N, Doc string
}

// field is a key of the text form: how it is read and how it is written ("" = it has its default, and is left out).
type field struct {
	key, doc string
	flag     bool // it is written without a value
	read     func(w *Workload, p *Part, v string) error
	write    func(p *Part) string
}

// fields are the keys in the order in which String writes them. Those of the workload as a whole are written by the first part.
func fields() []field {
	return []field{
		word("name", "what results call it", func(p *Part) *string { return &p.Name }),
		word("class", "class of the model", func(p *Part) *string { return &p.Class }),
		{key: "dscp", doc: "code point, whatever the class has", read: readDSCP, write: func(p *Part) string {
			if p.DSCP == nil {
				return ""
			}
			return strconv.Itoa(int(*p.DSCP))
		}},
		{key: "hosts", doc: "who takes part: host1/host2 or host1..host8", read: func(_ *Workload, p *Part, v string) error {
			p.Hosts = strings.Split(v, "/")
			return nil
		}, write: func(p *Part) string { return strings.Join(p.Hosts, "/") }},
		word("to", "host that receives", func(p *Part) *string { return &p.To }),
		whole("rail", "only this rail", func(p *Part) *int { return &p.Rail }),
		flag("across", "only between hosts that have no switch in common", func(p *Part) *bool { return &p.Across }),
		flag("random", "who takes part is drawn anew at each burst", func(p *Part) *bool { return &p.Random }),
		quantity("bytes", "that each flow sends; without, it never ends", func(p *Part) *units.Bytes { return &p.Bytes }),
		quantity("size", "of a message, ib_write_bw -s", func(p *Part) *units.Bytes { return &p.Message }),
		whole("depth", "messages under way, ib_write_bw -t", func(p *Part) *int { return &p.Depth }),
		whole("qps", "queue pairs, ib_write_bw -q", func(p *Part) *int { return &p.QPs }),
		flag("both", "both directions, ib_write_bw -b", func(p *Part) *bool { return &p.Both }),
		{key: "op", doc: "write, read or send", read: func(_ *Workload, p *Part, v string) error {
			p.Op = Op(v)
			return nil
		}, write: func(p *Part) string { return string(p.Op) }},
		quantity("mtu", "payload of a packet, ib_write_bw -m", func(p *Part) *units.Bytes { return &p.MTU }),
		flag("latency", "messages one by one, ib_write_lat", func(p *Part) *bool { return &p.Latency }),
		quantity("start", "when it begins", func(p *Part) *units.Duration { return &p.Start }),
		quantity("spread", "flows begin at drawn times within it", func(p *Part) *units.Duration { return &p.Spread }),
		quantity("every", "it comes again each so often", func(p *Part) *units.Duration { return &p.Every }),
		quantity("jitter", "of the time between two bursts", func(p *Part) *units.Percent { return &p.Jitter }),
		whole("count", "bursts, or probes", func(p *Part) *int { return &p.Count }),
		quantity("load", "of background, on the hosts' links", func(p *Part) *units.Percent { return &p.Load }),
		word("file", "of a trace", func(p *Part) *string { return &p.File }),
		ofAll("for", "how long is measured", func(w *Workload) *units.Duration { return &w.Duration }),
		ofAll("warmup", "before it is measured", func(w *Workload) *units.Duration { return &w.Warmup }),
	}
}

func word(key, doc string, at func(*Part) *string) field {
	return field{key: key, doc: doc, read: func(_ *Workload, p *Part, v string) error {
		*at(p) = v
		return nil
	}, write: func(p *Part) string { return *at(p) }}
}

func flag(key, doc string, at func(*Part) *bool) field {
	return field{key: key, doc: doc, flag: true, read: func(_ *Workload, p *Part, _ string) error {
		*at(p) = true
		return nil
	}, write: func(p *Part) string {
		if *at(p) {
			return key
		}
		return ""
	}}
}

// most is the largest number in a part: it counts hosts, messages or bursts.
const most = 1 << 24

func whole(key, doc string, at func(*Part) *int) field {
	return field{key: key, doc: doc, read: func(_ *Workload, p *Part, v string) error {
		n, err := number(v)
		*at(p) = n
		return err
	}, write: func(p *Part) string {
		if *at(p) == 0 {
			return ""
		}
		return strconv.Itoa(*at(p))
	}}
}

func number(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most || v[0] == '+' || v[0] == '0' {
		return 0, &Error{quote(v), fmt.Sprintf("is not a number from 1 to %d", most), ""}
	}
	return n, nil
}

// quantities are the typed values of package units, through their text forms.
type quantities[T any] interface {
	*T
	String() string
	UnmarshalText([]byte) error
}

func quantity[T comparable, P quantities[T]](key, doc string, at func(*Part) *T) field {
	return field{key: key, doc: doc, read: func(_ *Workload, p *Part, v string) error {
		return unit(P(at(p)).UnmarshalText([]byte(v)))
	}, write: func(p *Part) string {
		var none T
		if *at(p) == none {
			return ""
		}
		return P(at(p)).String()
	}}
}

func ofAll(key, doc string, at func(*Workload) *units.Duration) field {
	return field{key: key, doc: doc, read: func(w *Workload, _ *Part, v string) error {
		return unit(at(w).UnmarshalText([]byte(v)))
	}, write: func(*Part) string { return "" }}
}

// unit is an error of package units in this package's words.
func unit(err error) error {
	var e *units.Error
	if errors.As(err, &e) {
		return &Error{quote(e.Text), e.What, e.Hint}
	}
	return err
}

func readDSCP(_ *Workload, p *Part, v string) error {
	d, ok := units.ParseCodePoint(v)
	if !ok {
		return &Error{quote(v), "is not a code point", "write a number from 0 to 63, or a name such as af31"}
	}
	p.DSCP = &d
	return nil
}

// quote is what a user wrote, shortened and with nothing in it that a terminal would obey.
func quote(s string) string {
	const longest = 40
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return strconv.Quote(s)
}

// ParseWorkload reads the text form: parts joined by +, each a kind, a number after a colon where the kind has one, and
// keys after commas. Its errors are of type *Error.
func ParseWorkload(text string) (Workload, error) {
	var w Workload
	for i, s := range strings.Split(text, "+") {
		p, err := w.part(strings.TrimSpace(s))
		if err != nil {
			var e *Error
			if errors.As(err, &e) && strings.Contains(text, "+") {
				e.Text = fmt.Sprintf("part %d: %s", i+1, e.Text)
			}
			return Workload{}, err
		}
		w.Parts = append(w.Parts, p)
	}
	return w, w.Check()
}

func (w *Workload) part(s string) (Part, error) {
	head, rest, more := strings.Cut(s, ",")
	kind, n, counted := strings.Cut(strings.TrimSpace(head), ":")
	p := Part{Kind: Kind(kind)}
	if i := slices.IndexFunc(Kinds(), func(k KindDoc) bool { return k.Kind == p.Kind }); i < 0 {
		return p, wrongKind(p.Kind)
	}
	switch {
	case counted && p.Kind == Trace:
		p.File = n
	case counted && p.Kind == Background:
		if err := unit(p.Load.UnmarshalText([]byte(n))); err != nil {
			return p, err
		}
		if p.Load == 0 {
			return p, &Error{"load " + quote(n), "is no load", "write more than 0%, such as background:30%"}
		}
	case counted:
		var err error
		if p.N, err = number(n); err != nil {
			return p, err
		}
	}
	for more {
		var pair string
		pair, rest, more = strings.Cut(rest, ",")
		if err := w.pair(&p, strings.TrimSpace(pair)); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (w *Workload) pair(p *Part, s string) error {
	key, value, valued := strings.Cut(s, "=")
	all := fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.key == key })
	switch {
	case i < 0:
		var keys []string
		for _, f := range all {
			keys = append(keys, f.key)
		}
		return &Error{quote(key), "is not a key of a workload", didYouMean(key, keys, otherKeys())}
	case all[i].flag && valued:
		return &Error{quote(s), "has a value, and " + key + " takes none", "write " + key}
	case !all[i].flag && value == "":
		return &Error{quote(s), "has no value", "write " + key + "=..., " + all[i].doc}
	}
	if err := all[i].read(w, p, value); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.Text = key + " " + e.Text
		}
		return err
	}
	return nil
}

// otherKinds and otherKeys are the words that other tools have for kinds and keys.
func otherKinds() map[string]string {
	return map[string]string{
		"allreduce": "ring", "all-reduce": "ring", "a2a": "alltoall", "shuffle": "alltoall", "fan-in": "incast", "many-to-one": "incast",
		"latency": "probe", "ping": "probe", "poisson": "background", "ib_write_bw": "single", "iperf": "single",
	}
}

func otherKeys() map[string]string {
	return map[string]string{"msg": "size", "message": "size", "dst": "to", "src": "hosts", "duration": "for", "tclass": "dscp", "priority": "class"}
}

func wrongKind(k Kind) error {
	if n, err := number(string(k)); err == nil {
		return &Error{quote(string(k)), "is not a kind of traffic", fmt.Sprintf("for %d hosts that send to one, write incast:%d", n, n)}
	}
	var names []string
	for _, d := range Kinds() {
		names = append(names, string(d.Kind))
	}
	return &Error{quote(string(k)), "is not a kind of traffic", didYouMean(string(k), names, otherKinds())}
}

// didYouMean is a hint at the word that another one stands for, at the nearest one, or at all of them.
func didYouMean(s string, words []string, others map[string]string) string {
	best, least := others[s], 3
	if best != "" {
		return "did you mean " + best + "?"
	}
	for _, w := range words {
		if d := distance(s, w); d < least {
			best, least = w, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "use " + strings.Join(words, ", ")
}

// distance is how many letters to insert, drop or change to make b of a; texts that are much longer are far.
func distance(a, b string) int {
	if len(a) > 32 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			up := row[j+1]
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, up+1, row[j]+1)
			diagonal = up
		}
	}
	return row[len(b)]
}

// String is the text form; ParseWorkload reads it back to the same, but for the name of the workload and the flows of a
// trace, which it does not hold.
func (w Workload) String() string {
	var b strings.Builder
	for i := range w.Parts {
		p := &w.Parts[i]
		if i > 0 {
			b.WriteString(" + ")
		}
		b.WriteString(p.String())
		if i > 0 {
			continue
		}
		for _, t := range []struct {
			key string
			v   units.Duration
		}{{"for", w.Duration}, {"warmup", w.Warmup}} {
			if t.v != 0 {
				fmt.Fprintf(&b, ",%s=%s", t.key, t.v)
			}
		}
	}
	return b.String()
}

// String is the part's text form.
func (p Part) String() string {
	var b strings.Builder
	b.WriteString(string(p.Kind))
	if p.N > 0 {
		fmt.Fprintf(&b, ":%d", p.N)
	}
	for _, f := range fields() {
		s := f.write(&p)
		switch {
		case s == "":
		case f.flag:
			b.WriteString("," + s)
		default:
			b.WriteString("," + f.key + "=" + s)
		}
	}
	return b.String()
}

// Label is what results call the part: its name, or its kind, with its number among w's parts where the kind is there twice.
func (w Workload) Label(i int) string {
	p := &w.Parts[i]
	if p.Name != "" {
		return p.Name
	}
	same, before := 0, 0
	for j := range w.Parts {
		if w.Parts[j].Kind == p.Kind && w.Parts[j].Name == "" {
			same++
			if j < i {
				before++
			}
		}
	}
	if same > 1 {
		return string(p.Kind) + "-" + strconv.Itoa(before+1)
	}
	return string(cmp.Or(p.Kind, "none"))
}
