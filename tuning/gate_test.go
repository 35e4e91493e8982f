package tuning

import (
	"strings"
	"testing"
)

const ncclOutput = `# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    67108864      16777216     float     sum      -1    723.5   92.76  173.92      0    721.0   93.08  174.52      0
   134217728      33554432     float     sum      -1   1398.7   95.96  179.92      0   1399.2   95.92  179.86      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 177.055
#
`

func TestGate(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	for _, tt := range []struct {
		name   string
		gate   Gate
		stdout string
		stderr string
		exit   int
		passed bool
		value  float64 // 0 = none
		why    string
	}{
		{"exit code", Gate{}, "", "", 0, true, 0, "exit code 0"},
		{"failed", Gate{}, "step 1\n", "NCCL WARN\nunhandled system error\n", 3, false, 0, `exit code 3: "unhandled system error"`},
		{"failed and said nothing", Gate{}, "", "", 3, false, 0, "exit code 3"},
		{"hung", Gate{Read: "nccl"}, ncclOutput, "", -1, false, 0, "it did not end by itself"},
		{"nccl", Gate{Read: "nccl", Least: at(170)}, ncclOutput, "", 0, true, 177.055, "the average bus bandwidth in GB/s is 177.055"},
		{"nccl, slow", Gate{Read: "nccl", Least: at(180)}, ncclOutput, "", 0, false, 177.055, "is 177.055, below 180"},
		{"nccl, wrong", Gate{Read: "nccl"}, strings.Replace(ncclOutput, ": 0 OK", ": 12 FAILED", 1), "", 0, false, 0, `wrong results: out of bounds values: "12 FAILED"`},
		{"nccl, cut", Gate{Read: "nccl"}, ncclOutput[:600], "", 0, false, 0, `no line "# Avg bus bandwidth"`},
		{"nccl, hostile", Gate{Read: "nccl"}, "# Avg bus bandwidth : \x1b[2J\n", "", 0, false, 0, `is "\x1b[2J", and no number`},
		{"json", Gate{Read: "json:step.seconds", Most: at(2)}, "loading\n{\"step\":{\"seconds\":1.25}}\n", "", 0, true, 1.25, "step.seconds is 1.25"},
		{"json, of many lines", Gate{Read: "json:seconds"}, "{\n \"seconds\": 1.25\n}\n", "", 0, true, 1.25, "seconds is 1.25"},
		{"json, the last", Gate{Read: "json:x", Most: at(2)}, "{\"x\":1}\n{\"x\":3}\n", "", 0, false, 3, "x is 3, above 2"},
		{"json, no member", Gate{Read: "json:a.b"}, "{\"a\":1}\n", "", 0, false, 0, "has no a.b"},
		{"json, none", Gate{Read: "json:a"}, "hello\n", "", 0, false, 0, "no JSON object with a"},
		{"json, text", Gate{Read: "json:a"}, `{"a":"fast"}`, "", 0, false, 0, "and no number"},
		{"regexp", Gate{Read: `regexp:tokens/s: ([0-9.]+)`, Least: at(1000)}, "tokens/s: 900\ntokens/s: 1200.5\n", "", 0, true, 1200.5, "is 1200.5"},
		{"regexp, none", Gate{Read: `regexp:x=(\d+)`}, "y=1", "", 0, false, 0, "nothing in the output matches"},
		{"regexp, nan", Gate{Read: `regexp:x=(\w+)`}, "x=nan", "", 0, false, 0, "no number"},
	} {
		tt.gate.Argv = []string{"true"}
		if err := tt.gate.Check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := tt.gate.Judge([]byte(tt.stdout), []byte(tt.stderr), tt.exit)
		if got.Passed != tt.passed || !strings.Contains(got.Why, tt.why) || (got.Value != nil) != (tt.value != 0) || got.Value != nil && *got.Value != tt.value {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestGateRefused(t *testing.T) {
	one, two := 1.0, 2.0
	for want, g := range map[string]Gate{
		"no program":           {},
		"needs a number":       {Argv: []string{"x"}, Least: &one},
		"nothing is at least":  {Argv: []string{"x"}, Read: "nccl", Least: &two, Most: &one},
		"no group in brackets": {Argv: []string{"x"}, Read: "regexp:abc"},
		"missing closing":      {Argv: []string{"x"}, Read: "regexp:(abc"},
		"says nothing":         {Argv: []string{"x"}, Read: "busbw"},
		"a time of -":          {Argv: []string{"x"}, Time: -1},
	} {
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzGate(f *testing.F) {
	f.Add([]byte(ncclOutput), "nccl")
	f.Add([]byte(`{"a":{"b":1}}`), "json:a.b")
	f.Add([]byte("x=1"), "regexp:x=(.)")
	f.Fuzz(func(t *testing.T, out []byte, read string) {
		g := Gate{Argv: []string{"x"}, Read: read}
		if g.Check() != nil || strings.ContainsAny(read, "\n\x1b") {
			return
		}
		got := g.Judge(out, nil, 0)
		if got.Passed && read != "" && got.Value == nil || strings.ContainsAny(got.Why, "\n\x1b") {
			t.Errorf("%+v", got)
		}
	})
}
