package observe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
)

// ap, a, b and c are the workloads on which tuning was tried (an incast or a permutation with bursts, victims and probes).
var tried = map[string]string{
	"ap": "incast:8,to=host17 + incast:16,to=host17,bytes=64KiB,spread=2us,every=500us,jitter=10% + victim:1 + probe,to=host17,bytes=1024B,every=2us",
	"a":  "incast:8,to=host17 + incast:16,to=host17,bytes=64KiB,spread=2us,every=250us,jitter=50% + victim:1 + probe,to=host17,bytes=1024B,every=2us",
	"b":  "incast:8,to=host17 + incast:16,to=host17,bytes=1MiB,every=1ms,jitter=10% + victim:1 + probe,to=host17,every=2us",
	"c":  "permutation,across + incast:8,across,random,bytes=64KiB,spread=2us,every=500us,jitter=50% + victim:4 + probe,every=2us",
}

func TestParseWorkload(t *testing.T) {
	five := uint8(34)
	for text, want := range map[string]Workload{
		"incast:8": {Parts: []Part{{Kind: Incast, N: 8}}},
		"incast:8,bytes=1MB,class=training,for=10ms,warmup=1ms": {
			Duration: 10 * units.Millisecond, Warmup: units.Millisecond,
			Parts: []Part{{Kind: Incast, N: 8, Bytes: units.MB, Class: "training"}},
		},
		"single,hosts=host1/host2,dscp=af41,size=64KiB,depth=128,qps=4,both,op=read,mtu=4096B": {Parts: []Part{{
			Kind: Single, Hosts: []string{"host1", "host2"}, DSCP: &five, Message: 64 * units.KiB, Depth: 128, QPs: 4, Both: true, Op: OpRead, MTU: 4096,
		}}},
		"ring:4,bytes=64MB+background:30%,bytes=64KB":                    {Parts: []Part{{Kind: Ring, N: 4, Bytes: 64 * units.MB}, {Kind: Background, Load: 30 * units.OnePercent, Bytes: 64 * units.KB}}},
		"trace:flows.csv , class=storage":                                {Parts: []Part{{Kind: Trace, File: "flows.csv", Class: "storage"}}},
		"pairs,latency,size=2B,hosts=host1..host8,rail=2,start=5us":      {Parts: []Part{{Kind: Pairs, Latency: true, Message: 2, Hosts: []string{"host1..host8"}, Rail: 2, Start: 5 * units.Microsecond}}},
		"incast:2,bytes=1KB,every=1ms,count=3,name=burst,across,random":  {Parts: []Part{{Kind: Incast, N: 2, Bytes: units.KB, Every: units.Millisecond, Count: 3, Name: "burst", Across: true, Random: true}}},
		"alltoall:4,bytes=1KB + permutation + victim:2 + probe,count=10": {Parts: []Part{{Kind: AllToAll, N: 4, Bytes: units.KB}, {Kind: Permutation}, {Kind: Victim, N: 2}, {Kind: Probe, Count: 10}}},
	} {
		w, err := ParseWorkload(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, w); d != "" {
			t.Errorf("%s: (-want +got)\n%s", text, d)
		}
		same(t, w)
	}
	for name, text := range tried {
		w, err := ParseWorkload(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, w)
	}
}

// same checks that the text and the JSON of a workload come back.
func same(t *testing.T, w Workload) {
	t.Helper()
	again, err := ParseWorkload(w.String())
	if err != nil || !cmp.Equal(w, again) {
		t.Errorf("%s comes back as %s: %v", w, again, err)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if again, err = ReadWorkload(b); err != nil || !cmp.Equal(w, again) {
		t.Errorf("%s comes back as %s: %v", b, again, err)
	}
}

func TestWorkloadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `"" is not a kind of traffic`,
		"incst:8":             `"incst" is not a kind of traffic; did you mean incast?`,
		"8:1":                 `"8" is not a kind of traffic; for 8 hosts that send to one, write incast:8`,
		"allreduce":           `did you mean ring?`,
		"incast:8,msg=64KB":   `"msg" is not a key of a workload; did you mean size?`,
		"single,hosts=h[1-9]": `"h[1-9]" is not a name; write h1..h9`,
		"single,hosts=h[1-9":  `names are letters`,
		"incast:8 + incst":    `part 2: "incst" is not a kind`,
		"incast:0":            `"0" is not a number from 1`,
		"incast:8:9":          `"8:9" is not a number`,
		"incast:8,byts=1MB":   `"byts" is not a key of a workload; did you mean bytes?`,
		"incast:8,bytes":      `"bytes" has no value; write bytes=..., that each flow sends`,
		"incast:8,bytes=1":    `bytes "1" needs a unit`,
		"incast:8,both=yes":   `"both=yes" has a value`,
		"incast:8,dscp=64":    `dscp "64" is not a code point`,
		"incast:8,every=1ms":  `every 1ms repeats flows that never end; give them bytes`,
		"incast:8,count=3":    `count 3 has no every`,
		"incast:8,jitter=10%": `jitter has no every`,
		"incast:8,random":     `random draws hosts at each burst`,
		"incast:8,to=h,random,every=1ms,bytes=1B": `contradict each other`,
		"single:3":                           `single:3 has a number, and single takes none; write single`,
		"single,op=scan":                     `op "scan" is not an operation`,
		"single,mtu=1500B":                   `mtu 1500B is not a payload that RDMA has`,
		"single,depth=4":                     `depth 4 counts messages, and they have no size`,
		"single,class=a,dscp=3":              `class a with dscp 3 says twice`,
		"single,latency,depth=4,size=1B":     `latency sends one message after the other`,
		"alltoall,to=host1":                  `to does not go with alltoall; it goes with single, incast, probe`,
		"single,load=30%":                    `load does not go with single`,
		"background:101%":                    `load 101% is above 100%`,
		"background:0%":                      `load "0%" is no load`,
		"permutation:1":                      `permutation:1 is one host, which sends to nobody; write permutation:2 or more`,
		"alltoall:1":                         `alltoall:1 is one host`,
		"trace":                              `trace has no file`,
		"ring:3":                             `ring:3 counts steps of a size, and there is none; add bytes=64MB`,
		"single,hosts=a//b":                  `"" is not a name`,
		"single,class=a b":                   `"a b" is not a name`,
		"probe + probe,name=probe-1 + probe": `is the name of parts`,
		"single,for=25h":                     `for 25h is out of range`,
		"single,bytes=9000000GB":             `bytes 9000000GB is out of range`,
	} {
		w, err := ParseWorkload(text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q is taken for %+v: %v", text, w, err)
			continue
		}
		if got := e.Error() + "; " + e.Hint; !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestReadWorkload(t *testing.T) {
	w, err := ReadWorkload([]byte("name: mix\nfor: 5ms\nparts:\n  - {kind: incast, n: 8, class: training}\n  - kind: incast\n    n: 16\n    bytes: 64KiB\n    every: 500us\n    jitter: 10%\n  - {kind: victim}\n"))
	want := Workload{Name: "mix", Duration: 5 * units.Millisecond, Parts: []Part{
		{Kind: Incast, N: 8, Class: "training"}, {Kind: Incast, N: 16, Bytes: 64 * units.KiB, Every: 500 * units.Microsecond, Jitter: 10 * units.OnePercent}, {Kind: Victim},
	}}
	if d := cmp.Diff(want, w); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if w.Label(0) != "incast-1" || w.Label(1) != "incast-2" || w.Label(2) != "victim" {
		t.Errorf("labels %s, %s, %s", w.Label(0), w.Label(1), w.Label(2))
	}
	for text, want := range map[string]string{
		"":                                      "the file is empty",
		"parts: []":                             "it has no parts",
		"parts: [{kind: incst}]":                "did you mean incast",
		"parts: [{kind: incast, byts: 1MB}]":    "line 1: field byts not found in a part of a workload",
		"parts: [{kind: incast, bytes: 1}]":     `needs a unit`,
		"parts: [{kind: incast, n: many}]":      "line 1: cannot unmarshal !!str `many` into int",
		"parts: {kind: incast}":                 "cannot unmarshal !!map as a list of parts",
		"parts: [{kind: single}]\n---\nparts: ": "second document",
		"parts: [{kind: single}":                "line 1",
	} {
		_, err := ReadWorkload([]byte(text))
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		got := err.Error()
		var e *Error
		if errors.As(err, &e) {
			got += "; " + e.Hint
		}
		if !strings.Contains(got, want) || strings.Contains(got, "observe.") || strings.Contains(got, "units.") {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestParseTrace(t *testing.T) {
	want := []TraceFlow{{10 * units.Microsecond, "host1", "host2", "training", units.MB}, {0, "host1:nic-2", "host3", "", 64 * units.KB}}
	for _, text := range []string{
		"10us,host1,host2,training,1MB\n# a comment\n0us, host1:nic-2, host3,,64KB\n",
		"\ufeffstart,src,dst,class,bytes\r\n10us,host1,host2,training,1MB\r\n0us,host1:nic-2,host3,,64KB\r\n",
		"bytes,start,dst,src,class\n1MB,10us,host2,host1,training\n64KB,0us,host3,host1:nic-2,\n",
	} {
		got, err := ParseTrace([]byte(text))
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	}
	for text, want := range map[string]string{
		"":                            "no flow in it",
		"start,src,dst,class,bytes\n": "no flow in it",
		"10us,host1,host2,training\n": "wrong number of fields",
		"10,host1,host2,training,1MB": `line 1: start: "10" needs a unit`,
		"1us,host1,host2,training,1":  `line 1: bytes: "1" needs a unit`,
		"1us,host1,host2,t,1MB\n1us,a b,host2,t,1MB": `line 2: flow "a b to host2" has a name that no model has`,
		"1us,host1,host2,t,0B":                       "out of range",
		"#\n" + strings.Repeat(",", 5000):            "line 2 is longer than 4096 bytes",
	} {
		if got, err := ParseTrace([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	if n := PFCRx.Of(3); n != "pfc.rx.3" {
		t.Error(n)
	}
	for n, want := range map[Name]int{"pfc.rx.3": 3, "pfc.rx": -1, "drop.in.7": 7, "drop.8": -1, "cnp.sent": -1} {
		if _, p := n.Split(); p != want {
			t.Errorf("%s has priority %d, want %d", n, p, want)
		}
	}
	seen := map[Name]bool{}
	for _, c := range Counted() {
		if seen[c.Name] || c.Doc == "" || c.Unit == "" {
			t.Errorf("%+v", c)
		}
		seen[c.Name] = true
	}
}

func FuzzParseWorkload(f *testing.F) {
	for _, s := range tried {
		f.Add(s)
	}
	f.Add("trace:\xff")
	f.Add("trace:a.csv,name=x + ring:3,bytes=1MB,dscp=ef,for=1ms")
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWorkload(s)
		var e *Error
		switch {
		case err == nil:
			same(t, w)
		case !errors.As(err, &e):
			t.Errorf("%q: %v is of another type", s, err)
		}
	})
}

func FuzzReadWorkload(f *testing.F) {
	f.Add([]byte("parts: [{kind: incast, n: 8, bytes: 1MB, hosts: [a, b]}]"))
	f.Add([]byte(`{"parts":[{"kind":"trace","flows":[{"start":"1us","src":"a","dst":"b","bytes":"1B"}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ReadWorkload(b)
		if err != nil {
			return
		}
		j, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ReadWorkload(j); err != nil || !cmp.Equal(w, again) {
			t.Errorf("%s comes back as %+v: %v", j, again, err)
		}
	})
}

func FuzzParseTrace(f *testing.F) {
	f.Add([]byte("start,src,dst,class,bytes\n10us,host1,host2,training,1MB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		flows, err := ParseTrace(b)
		if err == nil && (&Part{Kind: Trace, File: "f", Flows: flows}).check() != nil {
			t.Errorf("%q: flows that a workload does not take", b)
		}
	})
}
