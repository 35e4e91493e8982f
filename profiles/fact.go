package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// Kind is what an entry describes.
type Kind string

// The kinds, each a section of a Profile document and a table of fields.
const (
	KindPlatform Kind = "platform"
	KindASIC     Kind = "asic"
	KindNIC      Kind = "nic"

	KindPersonality Kind = "personality" // of a driver
	KindCompat      Kind = "compat"      // a row of the compatibility matrix
)

// Kinds are all kinds, in the order in which they are listed.
func Kinds() []Kind { return []Kind{KindPlatform, KindASIC, KindNIC, KindPersonality, KindCompat} }

// Fact is one thing that is said about a piece of hardware.
type Fact struct {
	Key        string
	Values     []string // in canonical form; more than one only where the field takes a list
	Source     string
	Confidence string
	Pos        diag.Pos // where it stands; a file that is built in is named from the top of the source tree
	BuiltIn    bool     // it came with fabricctl
	Over       *Fact    // the fact that this one replaced, nil if none
}

// Text is the value as a reader takes it in.
func (f Fact) Text() string { return strings.Join(f.Values, ", ") }

// From says where a fact is from: its source, and the place where it stands.
func (f Fact) From() string {
	if f.BuiltIn {
		return f.Source + " (built in, " + f.Pos.String() + ")"
	}
	return f.Source + " (" + f.Pos.String() + ")"
}

// Default is f with a source and a confidence where it has none of its own.
func (f Fact) Default(source, confidence string) Fact {
	f.Source, f.Confidence = cmp.Or(f.Source, source), cmp.Or(f.Confidence, confidence)
	return f
}

// Entry is all that is said about one piece of hardware, in the order of its kind's fields.
type Entry struct {
	Kind  Kind
	Name  string
	Pos   diag.Pos
	Facts []Fact
}

// Fact finds a fact by its key; ok is false when nobody said it.
func (e Entry) Fact(key string) (f Fact, ok bool) {
	i := slices.IndexFunc(e.Facts, func(f Fact) bool { return f.Key == key })
	if i < 0 {
		return Fact{}, false
	}
	return e.Facts[i], true
}

// BuiltIn reports whether all of it came with fabricctl.
func (e Entry) BuiltIn() bool {
	return !slices.ContainsFunc(e.Facts, func(f Fact) bool { return !f.BuiltIn })
}

// over is e with the facts of base where e has none.
func (e Entry) over(base Entry) Entry {
	out := Entry{Kind: e.Kind, Name: e.Name, Pos: e.Pos}
	for _, f := range fieldsOf(e.Kind) {
		mine, ok := e.Fact(f.Key)
		old, had := base.Fact(f.Key)
		switch {
		case ok && had:
			mine.Over = &old
			out.Facts = append(out.Facts, mine)
		case ok:
			out.Facts = append(out.Facts, mine)
		case had:
			out.Facts = append(out.Facts, old)
		}
	}
	return out
}

// Shape is what the value of a field looks like.
type Shape uint8

// The shapes.
const (
	Text    Shape = iota // free text for people
	Name                 // an identifier
	Word                 // one of Field.Words
	Flag                 // true or false
	Number               // from Field.Lo to Field.Hi
	Size                 // bytes with a unit
	Rate                 // bits per second with a unit
	PCIID                // vendor:device, four hex digits each
	Span                 // time with a unit
	Ratio                // fraction such as 1/2, or a whole number
	Exact                // bytes with a unit, of which there may be a part: 0.8KiB
	Row                  // a HeadroomRow
	Run                  // code points and their priority: 24-31:3
	KnobRow              // a Knob
	Bound                // of versions: >= 24.10
	Count                // where a counter is: a Counting
)

// Field is one fact that an entry may state.
type Field struct {
	Key, Doc string
	Shape    Shape
	Words    []string // of Word
	Lo, Hi   int      // of Number
	List     bool     // takes several
	Noun     string   // what one of them is called, or what a Name is a name of
	Must     bool     // an entry without it is not whole
	OS       string   // a word of this operating system alone; "" = of all
	About    bool     // source and confidence: about the other facts, without any of their own
}

// check makes a text canonical, or says what is wrong with it.
func (f Field) check(text string) (string, error) {
	switch f.Shape {
	case Word:
		if !slices.Contains(f.Words, text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(f.Words, ", "))
		}
	case Flag:
		if text != "true" && text != "false" {
			return "", fmt.Errorf("%q is not true or false", text)
		}
	case Number:
		n, err := strconv.Atoi(text)
		if err != nil || n < f.Lo || n > f.Hi || strconv.Itoa(n) != text {
			return "", fmt.Errorf("%q is not a number from %d to %d", text, f.Lo, f.Hi)
		}
	case Size:
		v, err := units.ParseBytes(text)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	case Rate:
		v, err := units.ParseBitRate(text)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	case Span:
		v, err := units.ParseDuration(text)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	case Ratio:
		v, err := units.ParseRatio(text)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	case Exact:
		_, err := ParseExact(text)
		return text, err
	case Row:
		v, err := ParseHeadroomRow(text)
		if err != nil {
			return "", err
		}
		return v.String(), nil
	case Run:
		return text, CheckRun(text)
	case Bound:
		return text, CheckBound(text)
	case Count:
		_, err := ParseCounting(text)
		return text, err
	case KnobRow:
		k, err := ParseKnob(text)
		return k.String(), err
	case PCIID:
		if !IsPCIID(text) {
			return "", fmt.Errorf("%q is not a PCI id such as 15b3:1021", text)
		}
	case Text, Name:
		if strings.TrimSpace(text) == "" {
			return "", fmt.Errorf("%q is empty", text)
		}
	}
	return text, nil
}

// IsPCIID reports whether s is vendor:device in lower-case hex.
func IsPCIID(s string) bool {
	return len(s) == 9 && s[4] == ':' && strings.Trim(s[:4]+s[5:], "0123456789abcdef") == ""
}

// ParseExact reads bytes of which there may be a part: a number with at most three decimals, followed by B or KiB.
func ParseExact(s string) (units.Ratio, error) {
	num, scale := strings.TrimSuffix(s, "KiB"), 1024
	if num == s {
		num, scale = strings.TrimSuffix(s, "B"), 1
	}
	whole, part, _ := strings.Cut(num, ".")
	n, err := strconv.Atoi(whole + part)
	if num == s || err != nil || len(part) > 3 || n < 1 || n > 1_000_000 || whole == "" || len(whole) > 1 && whole[0] == '0' || strings.ContainsAny(num, "+-") || strings.HasSuffix(num, ".") {
		return units.Ratio{}, fmt.Errorf("%q is not a size such as 0.8KiB", s)
	}
	den := 1
	for range part {
		den *= 10
	}
	n *= scale
	for a, b := n, den; ; a, b = b, a%b {
		if b == 0 {
			return units.Ratio{Num: int32(n / a), Den: int32(den / a)}, nil
		}
	}
}

// spec is a field and the place of its values in T.
type spec[T any] struct {
	Field
	set func(*T, []string) // with checked values
}

func (s spec[T]) must() spec[T] {
	s.Must = true
	return s
}

func (s spec[T]) about() spec[T] {
	s.About = true
	return s.must()
}

// fill puts the facts of e into t.
func fill[T any](t *T, specs []spec[T], e Entry) {
	for _, s := range specs {
		if f, ok := e.Fact(s.Key); ok {
			s.set(t, f.Values)
		}
	}
}

func text[T any](key, doc string, at func(*T) *string) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc}, func(t *T, v []string) { *at(t) = v[0] }}
}

func name[T any](key, noun, doc string, at func(*T) *string) spec[T] {
	return spec[T]{Field{Key: key, Noun: noun, Doc: doc, Shape: Name}, func(t *T, v []string) { *at(t) = v[0] }}
}

func names[T any](key, noun, doc string, shape Shape, at func(*T) *[]string) spec[T] {
	return spec[T]{Field{Key: key, Noun: noun, Doc: doc, Shape: shape, List: true}, func(t *T, v []string) { *at(t) = v }}
}

func word[T any](key, doc string, words []string, at func(*T) *string) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Word, Words: words}, func(t *T, v []string) { *at(t) = v[0] }}
}

func flag[T any](key, doc string, at func(*T) *bool) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Flag}, func(t *T, v []string) { *at(t) = v[0] == "true" }}
}

func number[T any](key, doc string, lo, hi int, at func(*T) *int) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Number, Lo: lo, Hi: hi}, func(t *T, v []string) { *at(t), _ = strconv.Atoi(v[0]) }}
}

func numbers[T any](key, noun, doc string, lo, hi int, at func(*T) *[]int) spec[T] {
	return spec[T]{Field{Key: key, Noun: noun, Doc: doc, Shape: Number, Lo: lo, Hi: hi, List: true}, func(t *T, v []string) {
		ns := make([]int, len(v))
		for i := range v {
			ns[i], _ = strconv.Atoi(v[i])
		}
		*at(t) = ns
	}}
}

func opt[T any](key, doc string, hi int, at func(*T) *Opt) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Number, Hi: hi}, func(t *T, v []string) {
		n, _ := strconv.Atoi(v[0])
		*at(t) = Opt{uint8(n), true}
	}}
}

func size[T any](key, doc string, at func(*T) *units.Bytes) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Size}, func(t *T, v []string) { *at(t), _ = units.ParseBytes(v[0]) }}
}

func span[T any](key, doc string, at func(*T) *units.Duration) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Span}, func(t *T, v []string) { *at(t), _ = units.ParseDuration(v[0]) }}
}

func ratio[T any](key, doc string, at func(*T) *units.Ratio) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Ratio}, func(t *T, v []string) { *at(t), _ = units.ParseRatio(v[0]) }}
}

func exact[T any](key, doc string, at func(*T) *units.Ratio) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Exact}, func(t *T, v []string) { *at(t), _ = ParseExact(v[0]) }}
}

func rate[T any](key, doc string, at func(*T) *units.BitRate) spec[T] {
	return spec[T]{Field{Key: key, Doc: doc, Shape: Rate}, func(t *T, v []string) { *at(t), _ = units.ParseBitRate(v[0]) }}
}

func rates[T any](key, noun, doc string, at func(*T) *[]units.BitRate) spec[T] {
	return spec[T]{Field{Key: key, Noun: noun, Doc: doc, Shape: Rate, List: true}, func(t *T, v []string) {
		rs := make([]units.BitRate, len(v))
		for i := range v {
			rs[i], _ = units.ParseBitRate(v[i])
		}
		*at(t) = rs
	}}
}
