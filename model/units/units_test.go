package units

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parsers gives every type one face, for tables and properties over all of them.
var parsers = map[string]func(string) (fmt.Stringer, error){
	"bytes":    func(s string) (fmt.Stringer, error) { v, err := ParseBytes(s); return v, err },
	"rate":     func(s string) (fmt.Stringer, error) { v, err := ParseBitRate(s); return v, err },
	"length":   func(s string) (fmt.Stringer, error) { v, err := ParseLength(s); return v, err },
	"duration": func(s string) (fmt.Stringer, error) { v, err := ParseDuration(s); return v, err },
	"percent":  func(s string) (fmt.Stringer, error) { v, err := ParsePercent(s); return v, err },
	"ratio":    func(s string) (fmt.Stringer, error) { v, err := ParseRatio(s); return v, err },
}

func TestParseValues(t *testing.T) {
	for in, want := range map[string]Bytes{
		"0B": 0, "150KB": 150_000, "150KiB": 153_600, "1.5KB": 1500, "9216B": 9216, "9.5MB": 9_500_000, "2MiB": 2 << 20,
		"1GB": 1_000_000_000, "1GiB": 1 << 30, "0.5KiB": 512, "9223372036854775807B": 1<<63 - 1, "1.50KB": 1500,
	} {
		if got, err := ParseBytes(in); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]BitRate{"400Gbps": 400 * Gbps, "1.6Tbps": 1600 * Gbps, "25.5Gbps": 25_500 * Mbps, "1bps": 1, "64Kbps": 64_000} {
		if got, err := ParseBitRate(in); err != nil || got != want {
			t.Errorf("ParseBitRate(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]Length{"40m": 40_000, "2.5m": 2500, "5mm": 5, "30cm": 300, "2km": 2_000_000, "0.001m": 1} {
		if got, err := ParseLength(in); err != nil || got != want {
			t.Errorf("ParseLength(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]Duration{"200ms": 200 * Millisecond, "1.5s": 1500 * Millisecond, "10min": 10 * Minute, "2h": 2 * Hour, "3ns": 3, "4us": 4000} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]Percent{"20%": 200_000, "1.5%": 15_000, "0.0001%": 1, "100%": 1_000_000} {
		if got, err := ParsePercent(in); err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]Ratio{"1/2": {1, 2}, "4": {4, 1}, "2/4": {1, 2}, "8/2": {4, 1}, "1/128": {1, 128}} {
		if got, err := ParseRatio(in); err != nil || got != want {
			t.Errorf("ParseRatio(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}

func TestString(t *testing.T) {
	for _, x := range []struct {
		v    fmt.Stringer
		want string
	}{
		{Bytes(0), "0B"},
		{Bytes(9216), "9216B"},
		{Bytes(9000), "9000B"},
		{Bytes(800_000), "800KB"},
		{Bytes(3_200_000), "3.2MB"},
		{Bytes(9_500_000), "9.5MB"},
		{Bytes(1 << 20), "1MiB"},
		{Bytes(1<<20 + 1), "1048577B"},
		{Bytes(153_600), "153.6KB"},
		{BitRate(0), "0bps"},
		{400 * Gbps, "400Gbps"},
		{1600 * Gbps, "1.6Tbps"},
		{BitRate(1001), "1001bps"},
		{40 * Metre, "40m"},
		{Length(2500), "2.5m"},
		{Length(1), "0.001m"},
		{Length(0), "0m"},
		{2000 * Metre, "2000m"},
		{200 * Millisecond, "200ms"},
		{1500 * Millisecond, "1.5s"},
		{90 * Second, "90s"},
		{90 * Minute, "90min"},
		{2 * Hour, "2h"},
		{Duration(0), "0s"},
		{20 * OnePercent, "20%"},
		{Percent(15_000), "1.5%"},
		{Percent(1), "0.0001%"},
		{Percent(0), "0%"},
		{Ratio{1, 2}, "1/2"},
		{Ratio{4, 1}, "4"},
		{Ratio{}, ""},
	} {
		if got := x.v.String(); got != x.want {
			t.Errorf("%#v: got %q, want %q", x.v, got, x.want)
		}
	}
}

// TestRefused holds what users write by mistake. The hint is what they read, so it is spelled out.
func TestRefused(t *testing.T) {
	for _, x := range []struct{ kind, in, what, hint string }{
		{"bytes", "9216", "needs a unit", "9216 needs a unit: 9216B"},
		{"bytes", "0", "needs a unit", "0 needs a unit: 0B"},
		{"bytes", "1,5MB", "has a comma", "write the decimal point: 1.5MB"},
		{"bytes", "100kb", "which may mean bits or bytes", "write 100KB (1000 bytes) or 100KiB (1024 bytes)"},
		{"bytes", "100Kb", "which may mean bits or bytes", "write 100KB"},
		{"bytes", "5mb", "not a unit of size", "write 5MB"},
		{"bytes", "5M", "not a unit of size", "write 5MB"},
		{"bytes", "5Gbps", "not a unit of size", "use B, KB"},
		{"bytes", "-5KB", "is negative", "zero or more"},
		{"bytes", "+5KB", "has a sign", "write 5KB"},
		{"bytes", "5 KB", "has a space", "write 5KB"},
		{"bytes", ".5KB", "starts with a point", "write 0.5KB"},
		{"bytes", "5.KB", "has a stray point", ""},
		{"bytes", "010KB", "starts with a zero", "write 10KB"},
		{"bytes", "00KB", "starts with a zero", "write 0KB"},
		{"bytes", "1_000B", "has a digit separator", "without separators"},
		{"bytes", "1.5B", "finer than", "smallest step is 1B"},
		{"bytes", "9223372036854775808B", "too large", ""},
		{"bytes", strings.Repeat("9", 500) + "GB", "too large", ""},
		{"bytes", "", "is empty", "such as 9216B"},
		{"bytes", "auto", "is not a size", "such as 9216B"},
		{"bytes", "1e3KB", "not a unit of size", "use B, KB"},
		{"bytes", "0x10B", "not a unit of size", "use B, KB"},
		{"rate", "400GBps", "bytes per second", "rates are in bits per second: 3200Gbps"},
		{"rate", "50GB/s", "bytes per second", "rates are in bits per second: 400Gbps"},
		{"rate", "400GbE", "not a unit of rate", "write 400Gbps"},
		{"rate", "400Gbit/s", "not a unit of rate", "write 400Gbps"},
		{"percent", "100Gbps", "not a unit of share", "write a share such as 20%"},
		{"rate", "400", "needs a unit", "400Gbps"},
		{"rate", "400G", "not a unit of rate", "write 400Gbps"},
		{"rate", "400gbps", "not a unit of rate", "write 400Gbps"},
		{"length", "40", "needs a unit", "40m"},
		{"length", "0.0001m", "finer than", "smallest step is 1mm"},
		{"duration", "5m", "uses m, which is metres", "write 5min for minutes, 5ms for milliseconds"},
		{"duration", "200", "needs a unit", "200ms"},
		{"duration", "1,5s", "has a comma", "1.5s"},
		{"percent", "0.2", "needs a unit", "such as 20% for 0.2"},
		{"percent", "20", "needs a unit", "20%"},
		{"percent", "0.00001%", "finer than", "0.0001%"},
		{"percent", "300000%", "too large", ""},
		{"ratio", "0.5", "is a decimal number", "write the fraction: 1/2"},
		{"ratio", "1/0", "not a positive fraction", "above zero"},
		{"ratio", "-1/2", "is not a fraction", "1/2 or 4"},
		{"ratio", "1/2/3", "is not a fraction", ""},
		{"ratio", "9999999999", "too large", ""},
	} {
		v, err := parsers[x.kind](x.in)
		e := (*Error)(nil)
		if !errors.As(err, &e) {
			t.Errorf("%s %q: got %v, %v; want an *Error", x.kind, x.in, v, err)
			continue
		}
		if !strings.Contains(e.What, x.what) || !strings.Contains(e.Hint, x.hint) {
			t.Errorf("%s %q: got %q, hint %q; want %q, hint %q", x.kind, x.in, e.What, e.Hint, x.what, x.hint)
		}
		if len(e.Error()) > 200 {
			t.Errorf("%s: message of %d bytes", x.kind, len(e.Error()))
		}
	}
}

// TestRoundTrip: what String writes, Parse reads back to the same value; the same through JSON.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(
			rapid.Int64Range(0, 1<<63-1), rapid.Int64Range(0, 100_000),
			rapid.Map(rapid.Int64Range(0, 100_000), func(v int64) int64 { return v * 100_000 }),
			rapid.Map(rapid.Int64Range(0, 100_000), func(v int64) int64 { return v << 20 }),
		).Draw(t, "n")
		small := int32(n & (1<<31 - 1))
		type all struct {
			B Bytes
			R BitRate
			L Length
			D Duration
			P Percent
			Q Ratio
		}
		ratio, err := ParseRatio(fmt.Sprintf("%d/%d", max(small, 1), rapid.Int32Range(1, 1<<31-1).Draw(t, "den")))
		if err != nil {
			t.Fatal(err)
		}
		want := all{Bytes(n), BitRate(n), Length(n), Duration(n), Percent(small), ratio}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got all
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got != want {
			t.Fatalf("%s: got %+v, want %+v", text, got, want)
		}
	})
}

// FuzzParse: no input panics, and what is accepted is canonical after one round.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"800KB", "9216B", "400Gbps", "40m", "2.5m", "200ms", "20%", "1.5%", "1/2", "4", "400GBps", "1,5MB", "5m", "010B", "", "-", "1e9B", "\xff%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for kind, parse := range parsers {
			v, err := parse(s)
			if err != nil {
				continue
			}
			again, err := parse(v.String())
			if err != nil || again != v {
				t.Fatalf("%s %q: %s re-parses to %v, %v", kind, s, v, again, err)
			}
		}
	})
}
