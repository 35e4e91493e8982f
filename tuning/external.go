package tuning

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// ExternalSpec is a knob that the model does not know, as a file describes it.
type ExternalSpec struct {
	Variable
	Now float64 // what it is, read before anything is moved
}

// Placeholder stands for the value in the words of the command that sets an external variable.
const Placeholder = "{value}"

// maxExternals is the most bytes that a file of external variables may have.
const maxExternals = 1 << 20

// externalFile is the file as it is written. Low, high and ladder have the unit of the knob, or none.
type externalFile struct {
	Variables []struct {
		Name      string         `yaml:"name"`
		Doc       string         `yaml:"doc"`
		Low       string         `yaml:"low"`
		High      string         `yaml:"high"`
		Ladder    []string       `yaml:"ladder"`
		Whole     bool           `yaml:"whole"`
		Linear    bool           `yaml:"linear"`
		Least     bool           `yaml:"least"`
		Step      string         `yaml:"step"`
		Fine      string         `yaml:"fine"`
		Tolerance units.Percent  `yaml:"tolerance"`
		Timeout   units.Duration `yaml:"timeout"`
		Set       []string       `yaml:"set"`
		Read      []string       `yaml:"read"`
	} `yaml:"variables"`
}

// ReadExternals reads a file of external variables: YAML with a list variables, each with a name, the commands set and read, and low
// and high. Unknown keys are errors. Now is not filled in: whoever can run commands does that.
func ReadExternals(b []byte) ([]ExternalSpec, error) {
	if len(b) > maxExternals {
		return nil, fmt.Errorf("external variables: the file has %d bytes, more than %d", len(b), maxExternals)
	}
	var file externalFile
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("external variables: %s", plainYAML(err))
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("external variables: the file has a second document; keep all in one list")
	}
	if len(file.Variables) == 0 {
		return nil, errors.New("external variables: the file has none; write variables: [{name: queue-limit, low: 10, high: 1000, set: [...], read: [...]}]")
	}
	var specs []ExternalSpec
	for i := range file.Variables {
		x := &file.Variables[i]
		v := Variable{Name: x.Name, Doc: diag.Line(x.Doc), Whole: x.Whole, Linear: x.Linear, Least: x.Least}
		v.External = &External{Set: x.Set, Read: x.Read, Tolerance: float64(x.Tolerance) / float64(100*units.OnePercent), Timeout: x.Timeout}
		err := v.named()
		if err == nil {
			err = v.External.check()
		}
		if err == nil {
			err = v.numbers(x.Low, x.High, x.Step, x.Fine, x.Ladder)
		}
		if err == nil && slices.ContainsFunc(specs, func(s ExternalSpec) bool { return s.Name == v.Name }) {
			err = errors.New("there are two of that name")
		}
		if err != nil {
			return nil, fmt.Errorf("external variable %d, %q: %w", i+1, diag.Line(clipped(x.Name)), err)
		}
		specs = append(specs, ExternalSpec{Variable: v})
	}
	return specs, nil
}

// plainYAML is an error of the library without the names of our types.
func plainYAML(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if e, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(e.Errors, "; ")
	}
	return diag.Line(regexp.MustCompile(` in type struct \{.*\}| (in type|into) (tuning|units)\.\S+| into \[?\]?struct \{.*\}`).ReplaceAllString(text, ""))
}

func clipped(s string) string { return s[:min(len(s), 40)] }

// named checks the name of an external variable.
func (v *Variable) named() error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9._-]{0,39}$`).MatchString(v.Name):
		return errors.New("a name has up to 40 small letters, digits, dots, - and _, such as queue-limit")
	case v.IsWorkload() || slices.ContainsFunc(allRows(), func(r row) bool { return r.Name == v.Name }):
		return errors.New("fabricctl has a variable of that name; give it another")
	}
	return nil
}

// check refuses commands that cannot be right.
func (x *External) check() error {
	const mostWords, longest = 64, 4096
	for _, c := range []struct {
		key   string
		words []string
	}{{"set", x.Set}, {"read", x.Read}} {
		switch {
		case len(c.words) == 0 || c.words[0] == "":
			return fmt.Errorf("%s is missing: the command and its words as a list, such as [ssh, router, show-limit]", c.key)
		case len(c.words) > mostWords:
			return fmt.Errorf("%s has %d words, more than %d", c.key, len(c.words), mostWords)
		case slices.ContainsFunc(c.words, func(w string) bool { return len(w) > longest || strings.ContainsRune(w, 0) }):
			return fmt.Errorf("%s has a word that no command takes", c.key)
		}
	}
	has := func(w string) bool { return strings.Contains(w, Placeholder) }
	switch {
	case !slices.ContainsFunc(x.Set, has):
		return fmt.Errorf("set has no %s in it, which stands for the value", Placeholder)
	case has(x.Set[0]):
		return fmt.Errorf("the name of the command set has %s in it: a value must not choose what is run", Placeholder)
	case slices.ContainsFunc(x.Read, has):
		return fmt.Errorf("read has %s in it: it has to say what holds, and not to be told", Placeholder)
	case x.Tolerance < 0 || x.Tolerance >= 1:
		return errors.New("tolerance: write less than 100%")
	case x.Timeout < 0:
		return errors.New("timeout: write more than nothing, such as 10s")
	}
	return nil
}

// numbers reads the range of an external variable. All of it is of one quantity.
func (v *Variable) numbers(low, high, step, fine string, ladder []string) (err error) {
	if low == "" || high == "" {
		return errors.New("low and high are needed: nothing else says how far it may be moved")
	}
	var of Quantity
	if v.Low, v.Of, err = ParseQuantity(low); err != nil {
		return fmt.Errorf("low: %w", err)
	}
	if v.High, of, err = ParseQuantity(high); err != nil {
		return fmt.Errorf("high: %w", err)
	}
	switch {
	case of != v.Of:
		return fmt.Errorf("low %s and high %s are not of the same kind", low, high)
	case v.Low >= v.High:
		return fmt.Errorf("low %s is not below high %s", low, high)
	case v.Low <= 0 && !v.Linear:
		return fmt.Errorf("low %s: steps double and halve, which needs more than 0; write linear: true for steps that are added", low)
	}
	for _, text := range ladder {
		x, of, err := ParseQuantity(text)
		switch {
		case err != nil:
			return fmt.Errorf("ladder: %w", err)
		case of != v.Of:
			return fmt.Errorf("ladder: %s is not of the kind of low %s", text, low)
		case x < v.Low || x > v.High:
			return fmt.Errorf("ladder: %s is not from %s to %s", text, low, high)
		}
		v.Ladder = append(v.Ladder, x)
	}
	slices.Sort(v.Ladder)
	v.Ladder = slices.Compact(v.Ladder)
	return v.steps(step, fine)
}

// steps reads how far a walk and the polish at the end go, or takes what is usual.
func (v *Variable) steps(step, fine string) (err error) {
	v.Step, v.Fine = 2, 1.25
	least := 1.0
	if v.Linear {
		v.Step, v.Fine, least = (v.High-v.Low)/8, (v.High-v.Low)/32, 0
		if v.Whole {
			v.Step, v.Fine = max(math.Round(v.Step), 1), max(math.Round(v.Fine), 1)
		}
	}
	for _, x := range []struct {
		key, text string
		to        *float64
	}{{"step", step, &v.Step}, {"fine", fine, &v.Fine}} {
		if x.text == "" {
			continue
		}
		n, of, err := ParseQuantity(x.text)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", x.key, err)
		case of != Number && !(v.Linear && of == v.Of):
			return fmt.Errorf("%s %s: write a plain factor, such as 2", x.key, x.text)
		case n <= least:
			return fmt.Errorf("%s %s moves nothing: write more than %g", x.key, x.text, least)
		}
		*x.to = n
	}
	return nil
}

// ParseQuantity reads a number with the unit that says what it is: 64KB, 10Gbps, 5us, 10%; without one it is a plain number.
func ParseQuantity(text string) (float64, Quantity, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return n, Number, nil
	}
	var bytes units.Bytes
	var rate units.BitRate
	var time units.Duration
	var share units.Percent
	switch {
	case bytes.UnmarshalText([]byte(text)) == nil:
		return float64(bytes), Size, nil
	case rate.UnmarshalText([]byte(text)) == nil:
		return float64(rate), Rate, nil
	case time.UnmarshalText([]byte(text)) == nil:
		return float64(time) / float64(units.Second), Time, nil
	case share.UnmarshalText([]byte(text)) == nil:
		return float64(share) / float64(100*units.OnePercent), Share, nil
	}
	return 0, Number, fmt.Errorf("%q is no number, and none with a unit like 64KB, 10Gbps, 5us or 10%%", diag.Line(clipped(text)))
}

// Word is a value as commands are given it and as they print it: a plain number of bytes, bits per second, seconds or percent.
func (v *Variable) Word(x float64) string {
	switch {
	case v.Of == Share:
		x = round(100*x, 12)
	case v.Of == Size || v.Of == Rate:
		x = math.Round(x)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// exactly is the largest whole number up to which all have a value of their own.
const exactly = 1 << 53

// FromWord reads what a command prints: the first word, a plain number as Word writes it, or one with a unit of its kind.
func (v *Variable) FromWord(text string) (float64, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("it printed nothing")
	}
	x, of, err := ParseQuantity(fields[0])
	switch {
	case err != nil:
		return 0, err
	case math.Abs(x) > exactly:
		return 0, fmt.Errorf("%q is more than can be set back to the digit", diag.Line(clipped(fields[0])))
	case of == Number && v.Of == Share:
		return x / 100, nil
	case of != Number && of != v.Of:
		return 0, fmt.Errorf("%q is of another kind than %s", diag.Line(clipped(fields[0])), v.Text(v.Low))
	}
	return x, nil
}

// Holds reports whether a value that was read is the one that was set, as far as the knob tells them apart.
func (v *Variable) Holds(set, read float64) bool {
	const exact = 1e-9 // what is lost in decimal digits
	if v.Of == Size || v.Of == Rate {
		set = math.Round(set) // as Word writes it
	}
	return math.Abs(read-set) <= max(cmp.Or(v.External.Tolerance, exact), exact)*math.Abs(set)
}

// externals adds the external variables.
func (b *spacer) externals() {
	for _, x := range b.options.Externals {
		v := x.Variable
		if b.find(v.Name, nil) >= 0 {
			b.errorf("give it another name", "there are two external variables %s", v.Name)
			continue
		}
		if x.Now < v.Low || x.Now > v.High {
			b.found.Add(diag.Finding{
				Rule: spaceRule, Severity: diag.Warning, Pos: b.f.Pos, Hint: "let low or high in the file of external variables go as far, if that may be tried",
				Msg: fmt.Sprintf("%s is %s, outside of %s to %s: it is what others are compared with, and nothing else outside is tried", v.Name, v.Text(x.Now), v.Text(v.Low), v.Text(v.High)),
			})
		}
		b.knobs = append(b.knobs, knob{row: row{Variable: v}, now: x.Now})
	}
}
