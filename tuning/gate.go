package tuning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/model/units"
)

// Gate is a user's own program that has the last word on a setting: nccl-tests, a step of a training. It runs where fabricctl runs, without a
// shell, once the setting is decided and confirmed and the devices hold it; what fails it is not written back.
type Gate struct {
	Argv []string `json:"argv"`

	// Read is where the number stands in what the program prints on standard output: "" for none (its exit code alone counts), "nccl"
	// for the average bus bandwidth of nccl-tests in GB/s, "json:KEY" for a member of the last JSON object on a line of its own
	// (KEY may be a path: a.b), "regexp:EXPR" for the first group of the last match.
	Read  string   `json:"read,omitempty"`
	Least *float64 `json:"least,omitempty"` // the number must not be below
	Most  *float64 `json:"most,omitempty"`  // nor above

	Time units.Duration `json:"time,omitempty"` // it is ended after; 0 = an hour
}

// Gated is what came of a gate.
type Gated struct {
	Gate
	Exit   int            `json:"exit"`  // negative: it was ended, or did not begin
	Value  *float64       `json:"value"` // null = none was read
	Passed bool           `json:"passed"`
	Why    string         `json:"why"`              // in a sentence, whichever it is
	Took   units.Duration `json:"took"`             // by the clock of whoever ran it
	Digest string         `json:"digest,omitempty"` // SHA-256 of what it has printed
}

// Check says what makes no sense.
func (g *Gate) Check() error {
	how, rest, _ := strings.Cut(g.Read, ":")
	switch {
	case len(g.Argv) == 0 || g.Argv[0] == "":
		return fmt.Errorf("gate: there is no program to run")
	case g.Time < 0:
		return fmt.Errorf("gate: a time of %s", g.Time)
	case g.Read == "" && (g.Least != nil || g.Most != nil):
		return fmt.Errorf("gate: a bound needs a number: say where it stands, as nccl, json:KEY or regexp:EXPR")
	case g.Least != nil && g.Most != nil && *g.Least > *g.Most:
		return fmt.Errorf("gate: nothing is at least %g and at most %g", *g.Least, *g.Most)
	case g.Read == "" || g.Read == "nccl":
		return nil
	case how == "json" && rest != "":
		return nil
	case how == "regexp":
		re, err := regexp.Compile(rest)
		if err != nil {
			return fmt.Errorf("gate: %w", err)
		}
		if re.NumSubexp() < 1 {
			return fmt.Errorf("gate: regexp %q has no group in brackets, which would be the number", rest)
		}
		return nil
	}
	return fmt.Errorf("gate: %q says nothing of where a number stands: write nccl, json:KEY or regexp:EXPR", g.Read)
}

// Judge says what a run of the gate's program has come to. exit is negative when it was ended before its time.
func (g *Gate) Judge(stdout, stderr []byte, exit int) Gated {
	out := Gated{Gate: *g, Exit: exit}
	fail := func(format string, args ...any) Gated {
		out.Why = fmt.Sprintf(format, args...)
		return out
	}
	switch said := lastLine(stderr, stdout); {
	case exit < 0:
		return fail("it did not end by itself%s", said)
	case exit != 0:
		return fail("exit code %d%s", exit, said)
	case g.Read == "":
		out.Passed, out.Why = true, "exit code 0"
		return out
	}
	v, what, err := g.read(stdout)
	if err != nil {
		return fail("%v", err)
	}
	out.Value = &v
	switch {
	case g.Least != nil && v < *g.Least:
		return fail("%s is %g, below %g", what, v, *g.Least)
	case g.Most != nil && v > *g.Most:
		return fail("%s is %g, above %g", what, v, *g.Most)
	}
	out.Passed, out.Why = true, fmt.Sprintf("%s is %g", what, v)
	return out
}

// read is the number, and what it is called.
func (g *Gate) read(stdout []byte) (v float64, what string, err error) {
	how, rest, _ := strings.Cut(g.Read, ":")
	var text string
	switch how {
	case "nccl":
		v, err = readNCCL(stdout)
		return v, "the average bus bandwidth in GB/s", err
	case "json":
		if text, err = jsonMember(stdout, rest); err != nil {
			return 0, "", err
		}
	default:
		re, err := regexp.Compile(rest)
		if err != nil {
			return 0, "", err
		}
		all := re.FindAllSubmatch(stdout, -1)
		if len(all) == 0 || len(all[len(all)-1]) < 2 {
			return 0, "", fmt.Errorf("nothing in the output matches %q", rest)
		}
		text = string(all[len(all)-1][1])
	}
	v, err = strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", fmt.Errorf("%s is %s, and no number", rest, words(text))
	}
	return v, rest, nil
}

// readNCCL reads the output of nccl-tests (all_reduce_perf and its kin). Its last lines are "# Out of bounds values : 0 OK" and
// "# Avg bus bandwidth    : 123.4"; wrong results make the number worthless. By its source (common.cu); it was not run here.
func readNCCL(out []byte) (v float64, err error) {
	found := false
	for line := range bytes.Lines(out) {
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !strings.HasPrefix(name, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(strings.TrimPrefix(name, "#")) {
		case "Out of bounds values":
			if !strings.HasSuffix(value, "OK") {
				return 0, fmt.Errorf("nccl-tests has got wrong results: out of bounds values: %s", words(value))
			}
		case "Avg bus bandwidth":
			if v, err = strconv.ParseFloat(value, 64); err != nil || math.IsNaN(v) || v < 0 || math.IsInf(v, 0) {
				return 0, fmt.Errorf("the average bus bandwidth is %s, and no number", words(value))
			}
			found = true
		}
	}
	if !found {
		return 0, fmt.Errorf("the output has no line %q, which nccl-tests ends with", "# Avg bus bandwidth")
	}
	return v, nil
}

// jsonMember is a member of the last line that is a JSON object, as it is written there.
func jsonMember(out []byte, path string) (string, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	objects := slices.Concat([][]byte{bytes.TrimSpace(out)}, lines)
	for i := len(objects) - 1; i >= 0; i-- {
		text := json.RawMessage(bytes.TrimSpace(objects[i]))
		if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
			continue
		}
		for key := range strings.SplitSeq(path, ".") {
			var m map[string]json.RawMessage
			if json.Unmarshal(text, &m) != nil || m[key] == nil {
				return "", fmt.Errorf("the JSON of the output has no %s", path)
			}
			text = m[key]
		}
		return string(text), nil
	}
	return "", fmt.Errorf("the output has no JSON object with %s", path)
}

// lastLine is ": " and the last line that something was said on, for a sentence; "" when nothing was.
func lastLine(texts ...[]byte) string {
	for _, t := range texts {
		t = bytes.TrimSpace(t)
		if len(t) > 0 {
			return ": " + words(string(t[bytes.LastIndexByte(t, '\n')+1:]))
		}
	}
	return ""
}

// words is text of somebody else's in one line of at most 200 characters, quoted.
func words(s string) string {
	const most = 200
	if s = strings.ToValidUTF8(strings.TrimSpace(s), "?"); len(s) > most {
		for s = s[:most]; !utf8.ValidString(s); s = s[:len(s)-1] {
		}
	}
	return strconv.Quote(s)
}
