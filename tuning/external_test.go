package tuning_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

const knobs = `variables:
  - name: queue-limit
    doc: bytes that the bottleneck holds
    low: 16KB
    high: 4MB
    ladder: [4MB, 1MB, 256KB, 64KB, 16KB]
    least: true
    tolerance: 2%
    timeout: 5s
    set: [ssh, router, set-limit, "{value}"]
    read: [ssh, router, show-limit]
  - {name: window, low: 1, high: 64, whole: true, set: [./set, "w={value}"], read: [./get]}
  - {name: load, low: 0%, high: 80%, linear: true, set: [./set, "{value}"], read: [./get]}
`

func TestReadExternals(t *testing.T) {
	got, err := tuning.ReadExternals([]byte(knobs))
	if err != nil {
		t.Fatal(err)
	}
	want := []tuning.ExternalSpec{
		{Variable: tuning.Variable{
			Name: "queue-limit", Doc: "bytes that the bottleneck holds", Of: tuning.Size, Low: 16e3, High: 4e6, Ladder: []float64{16e3, 64e3, 256e3, 1e6, 4e6}, Step: 2, Fine: 1.25, Least: true,
			External: &tuning.External{Set: []string{"ssh", "router", "set-limit", "{value}"}, Read: []string{"ssh", "router", "show-limit"}, Tolerance: 0.02, Timeout: 5 * units.Second},
		}},
		{Variable: tuning.Variable{Name: "window", Low: 1, High: 64, Whole: true, Step: 2, Fine: 1.25, External: &tuning.External{Set: []string{"./set", "w={value}"}, Read: []string{"./get"}}}},
		{Variable: tuning.Variable{Name: "load", Of: tuning.Share, High: 0.8, Linear: true, Step: 0.1, Fine: 0.025, External: &tuning.External{Set: []string{"./set", "{value}"}, Read: []string{"./get"}}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReadExternalsRefused(t *testing.T) {
	one := func(s string) string { return "variables: [{" + s + "}]" }
	const commands = `set: [s, "{value}"], read: [r]`
	for text, want := range map[string]string{
		"":                                      "the file has none; write variables:",
		"variables: []":                         "the file has none",
		"knobs: []":                             "line 1: field knobs not found",
		"variables: [{name: x":                  "line 1",
		"variables: {name: x}":                  "cannot unmarshal !!map",
		one(commands) + "\n---\n" + one("x: 1"): "second document",
		one("name: Queue, low: 1, high: 2, " + commands):                                                          `external variable 1, "Queue": a name has up to 40 small letters`,
		one("name: kmax, low: 1, high: 2, " + commands):                                                           "fabricctl has a variable of that name",
		one("name: workload.depth, low: 1, high: 2, " + commands):                                                 "fabricctl has a variable of that name",
		one("name: x, low: 1, high: 2, read: [r]"):                                                                "set is missing",
		one(`name: x, low: 1, high: 2, set: [s, "{value}"]`):                                                      "read is missing",
		one("name: x, low: 1, high: 2, set: [s], read: [r]"):                                                      "set has no {value} in it",
		one(`name: x, low: 1, high: 2, set: ["{value}"], read: [r]`):                                              "a value must not choose what is run",
		one(`name: x, low: 1, high: 2, set: [s, "{value}"], read: [r, "{value}"]`):                                "read has {value} in it",
		one("name: x, low: 1, " + commands):                                                                       "low and high are needed",
		one("name: x, low: 1, high: 2KB, " + commands):                                                            "low 1 and high 2KB are not of the same kind",
		one("name: x, low: 2, high: 1, " + commands):                                                              "low 2 is not below high 1",
		one("name: x, low: 0, high: 1, " + commands):                                                              "write linear: true",
		one("name: x, low: 1, high: 2kb, " + commands):                                                            `high: "2kb" is no number`,
		one("name: x, low: 1, high: .inf, " + commands):                                                           `high: ".inf" is no number`,
		one("name: x, low: 1, high: 9, ladder: [10], " + commands):                                                "ladder: 10 is not from 1 to 9",
		one("name: x, low: 1, high: 9, ladder: [1KB], " + commands):                                               "ladder: 1KB is not of the kind of low 1",
		one("name: x, low: 1, high: 9, step: 1, " + commands):                                                     "step 1 moves nothing",
		one("name: x, low: 1KB, high: 9KB, step: 1KB, " + commands):                                               "step 1KB: write a plain factor",
		one("name: x, low: 1, high: 9, timeout: 10, " + commands):                                                 "needs a unit",
		one("name: x, low: 1, high: 9, "+commands) + "#" + strings.Repeat("x", 1<<20):                             "more than 1048576",
		"variables: [{name: x, low: 1, high: 9, " + commands + "}, {name: x, low: 1, high: 9, " + commands + "}]": "two of that name",
	} {
		_, err := tuning.ReadExternals([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x1b\n") || strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "units.") {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

// TestWords: what a command is given, and what it prints, in each quantity.
func TestWords(t *testing.T) {
	for _, x := range []struct {
		of   tuning.Quantity
		v    float64
		word string
	}{
		{tuning.Number, 7, "7"}, {tuning.Number, 0.25, "0.25"}, {tuning.Size, 64e3, "64000"}, {tuning.Rate, 1e10, "10000000000"}, {tuning.Time, 5e-6, "0.000005"}, {tuning.Share, 0.07, "7"},
	} {
		v := tuning.Variable{Of: x.of, External: &tuning.External{}}
		if got := v.Word(x.v); got != x.word {
			t.Errorf("%v is %q, want %q", x.v, got, x.word)
		}
		for _, said := range []string{x.word + "\n", " " + x.word + " packets\r\n", v.Text(x.v)} {
			if got, err := v.FromWord(said); err != nil || !v.Holds(x.v, got) {
				t.Errorf("%q is %v, %v, want %v", said, got, err, x.v)
			}
		}
	}
	v := tuning.Variable{Of: tuning.Size, Low: 1, External: &tuning.External{Tolerance: 0.02}}
	for said, want := range map[string]string{"": "it printed nothing", "\x1b[2Jx": "is no number", "10%": "is of another kind", "NaN": "is no number", "nan": "is no number"} {
		if got, err := v.FromWord(said); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q is %v, %v, want %s", said, got, err, want)
		}
	}
	if exact := (tuning.Variable{Of: tuning.Size, External: &tuning.External{}}); !exact.Holds(1000.4, 1000) || exact.Holds(1000.6, 1000) {
		t.Error("what is set is whole bytes, as the command was given them")
	}
	if !v.Holds(1000, 1019) || v.Holds(1000, 1021) {
		t.Error("what holds may be 2% from what was set, and no more")
	}
}

// TestExternalSpace: external variables, and those of the load, need no class, and are set in every trial.
func TestExternalSpace(t *testing.T) {
	specs, err := tuning.ReadExternals([]byte(knobs))
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Now, specs[1].Now, specs[2].Now = 128e3, 8, 0.3
	w := observe.Workload{Parts: []observe.Part{{Kind: observe.Incast, N: 2, Depth: 128, Message: units.KB}}}
	s, found := space(t, fabric(t, "mixed", "fabric.yaml"), tuning.SpaceOptions{Externals: specs, Variables: []string{"workload.depth"}, Workload: w})
	if found != "" {
		t.Error(found)
	}
	if d := cmp.Diff(tuning.Setting{128, 128e3, 8, 0.3}, s.Base); d != "" || s.Unmarked != nil || s.Starts != nil {
		t.Errorf("unmarked %v, starts %v, base (-want +got):\n%s", s.Unmarked != nil, s.Starts != nil, d)
	}
	x := s.Normal(tuning.Setting{64.4, 100.1234e3, 9.6, 0.3333})
	if got, want := change(s, x), "queue-limit=100000 window=10 load=0.3333"; got != want || len(s.Check(x)) > 0 {
		t.Errorf("%s, want %s; %v", got, want, s.Check(x))
	}
}

// TestExternalOutside: a value that stands outside of its range stays what it is compared with, and no other outside is ever tried.
func TestExternalOutside(t *testing.T) {
	specs, err := tuning.ReadExternals([]byte(knobs))
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Now, specs[1].Now, specs[2].Now = 20e6, -5, 0.3
	s, found := space(t, fabric(t, "mixed", "fabric.yaml"), tuning.SpaceOptions{Externals: specs})
	if !strings.Contains(found, "queue-limit is 20MB, outside of 16KB to 4MB") || !strings.Contains(found, "window is -5, outside of 1 to 64") || strings.Contains(found, "load is") {
		t.Error(found)
	}
	if x := s.Normal(s.Base); x.Key() != s.Base.Key() {
		t.Errorf("what there is becomes %v", x)
	}
	for _, step := range []float64{0.5, 0.8, 1.25, 2} {
		x := s.Normal(tuning.Setting{20e6 * step, -5 * step, 0.3})
		if x[0] != 4e6 || x[1] != 1 {
			t.Errorf("by %g: %v", step, x)
		}
	}
	for _, text := range []string{"12345678901234567890", "1e300", "-1e16", "99999999TB"} {
		if x, err := specs[0].FromWord(text); err == nil {
			t.Errorf("%s: %v", text, x)
		}
	}
}

func FuzzReadExternals(f *testing.F) {
	f.Add([]byte(knobs))
	f.Add([]byte(`variables: [{name: x, low: 1e300, high: 1e308, ladder: [1e301], set: [a, "{value}"], read: [b]}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		specs, err := tuning.ReadExternals(b)
		if err != nil {
			return
		}
		for _, s := range specs {
			if !(s.Low < s.High) || len(s.External.Set) == 0 || s.Step <= 0 || s.Fine <= 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
