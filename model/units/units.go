// Package units holds the typed quantities of the model. A number with a dimension always carries its unit in the
// text form ("150KB", "400Gbps", "40m", "200ms", "20%", "1/2"); parsing is exact, and String re-parses to the same
// value. KB is 1000 bytes, KiB is 1024.
//
// Parsing is strict, because a threshold that is wrong by a factor of eight or 1024 looks like any other number. What
// is refused comes back as an *Error with a hint that says what to write instead.
package units

import (
	"strconv"
	"time"
)

// Bytes is a size in bytes.
type Bytes int64

// BitRate is a rate in bits per second.
type BitRate int64

// Length is a cable length in millimetres.
type Length int64

// Duration is a time span.
type Duration time.Duration

// Percent is a share in millionths: 20% is 200,000, 1.5% is 15,000.
type Percent int32

// Ratio is an exact positive fraction in lowest terms, such as the alpha of a dynamic threshold (1/2, 1, 4).
// The zero Ratio means "not given".
type Ratio struct{ Num, Den int32 }

// Sizes of one unit, for writing quantities in code: 9216*units.Byte, 400*units.Gbps.
const (
	Byte Bytes = 1
	KB   Bytes = 1000
	MB   Bytes = 1000 * KB
	GB   Bytes = 1000 * MB
	KiB  Bytes = 1024
	MiB  Bytes = 1024 * KiB
	GiB  Bytes = 1024 * MiB

	Bps  BitRate = 1
	Kbps BitRate = 1000
	Mbps BitRate = 1000 * Kbps
	Gbps BitRate = 1000 * Mbps
	Tbps BitRate = 1000 * Gbps

	Millimetre Length = 1
	Metre      Length = 1000

	Nanosecond  = Duration(time.Nanosecond)
	Microsecond = Duration(time.Microsecond)
	Millisecond = Duration(time.Millisecond)
	Second      = Duration(time.Second)
	Minute      = Duration(time.Minute)
	Hour        = Duration(time.Hour)

	OnePercent Percent = 10_000
)

// unit is one spelling and its size in the base unit of its quantity.
type unit struct {
	name string
	size int64
}

func byteUnits() []unit {
	return []unit{
		{"B", 1},
		{"KB", int64(KB)},
		{"MB", int64(MB)},
		{"GB", int64(GB)},
		{"KiB", int64(KiB)},
		{"MiB", int64(MiB)},
		{"GiB", int64(GiB)},
	}
}

func rateUnits() []unit {
	return []unit{{"bps", 1}, {"Kbps", int64(Kbps)}, {"Mbps", int64(Mbps)}, {"Gbps", int64(Gbps)}, {"Tbps", int64(Tbps)}}
}

func lengthUnits() []unit { return []unit{{"mm", 1}, {"cm", 10}, {"m", 1000}, {"km", 1_000_000}} }

func timeUnits() []unit {
	return []unit{
		{"ns", 1},
		{"us", int64(Microsecond)},
		{"ms", int64(Millisecond)},
		{"s", int64(Second)},
		{"min", int64(Minute)},
		{"h", int64(Hour)},
	}
}

// Unit is one spelling of a unit, for schemas and help.
type Unit struct {
	Name     string
	Decimals int // how many decimals a number in it may have, trailing zeros aside; -1 where that depends on the number
}

// SizeUnits are the units of ParseBytes.
func SizeUnits() []Unit { return spellings(byteUnits()) }

// RateUnits are the units of ParseBitRate.
func RateUnits() []Unit { return spellings(rateUnits()) }

// LengthUnits are the units of ParseLength.
func LengthUnits() []Unit { return spellings(lengthUnits()) }

// TimeUnits are the units of ParseDuration.
func TimeUnits() []Unit { return spellings(timeUnits()) }

func spellings(us []unit) []Unit {
	var out []Unit
	for _, u := range us {
		decimals, size := 0, u.size
		for ; size%10 == 0; size /= 10 {
			decimals++
		}
		if size != 1 {
			decimals = -1
		}
		out = append(out, Unit{u.name, decimals})
	}
	return out
}

// ParseBytes reads a size: B, KB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024).
func ParseBytes(s string) (Bytes, error) {
	v, err := parse(s, quantity{"size", "B", "9216B or 800KB", byteUnits(), 1<<63 - 1})
	return Bytes(v), err
}

// ParseBitRate reads a rate: bps, Kbps, Mbps, Gbps, Tbps.
func ParseBitRate(s string) (BitRate, error) {
	v, err := parse(s, quantity{"rate", "Gbps", "400Gbps", rateUnits(), 1<<63 - 1})
	return BitRate(v), err
}

// ParseLength reads a cable length: mm, cm, m, km.
func ParseLength(s string) (Length, error) {
	v, err := parse(s, quantity{"length", "m", "40m", lengthUnits(), 1<<63 - 1})
	return Length(v), err
}

// ParseDuration reads a time span: ns, us, ms, s, min, h.
func ParseDuration(s string) (Duration, error) {
	v, err := parse(s, quantity{"time", "ms", "200ms", timeUnits(), 1<<63 - 1})
	return Duration(v), err
}

// ParsePercent reads a share with at most four decimals: "20%", "1.5%".
func ParsePercent(s string) (Percent, error) {
	v, err := parse(s, quantity{"share", "%", "20%", []unit{{"%", int64(OnePercent)}}, 1<<31 - 1})
	return Percent(v), err
}

// String is v in the largest unit that writes it with at most one decimal, in MiB or GiB when only those are whole,
// and otherwise in bytes. Sizes below 10KB, such as MTUs, are in bytes.
func (v Bytes) String() string {
	if v < 10*KB {
		return strconv.FormatInt(int64(v), 10) + "B"
	}
	for _, u := range []unit{{"GB", int64(GB)}, {"MB", int64(MB)}, {"KB", int64(KB)}} {
		if s, ok := format(int64(v), u, 1); ok {
			return s
		}
	}
	for _, u := range []unit{{"GiB", int64(GiB)}, {"MiB", int64(MiB)}} {
		if s, ok := format(int64(v), u, 0); ok {
			return s
		}
	}
	return strconv.FormatInt(int64(v), 10) + "B"
}

// Exact is v in bytes, as frame sizes are written.
func (v Bytes) Exact() string { return strconv.FormatInt(int64(v), 10) + "B" }

// String is v in the largest unit that writes it with at most one decimal.
func (v BitRate) String() string {
	us := rateUnits()
	for i := len(us) - 1; i > 0; i-- {
		if s, ok := format(int64(v), us[i], 1); ok {
			return s
		}
	}
	return strconv.FormatInt(int64(v), 10) + "bps"
}

// String is v in metres, exactly.
func (v Length) String() string { return decimal(int64(v), 1000) + "m" }

// String is v in the largest unit that writes it whole, or with one decimal up to seconds.
func (v Duration) String() string {
	us := timeUnits()
	for i := len(us) - 1; i > 0; i-- {
		decimals := 1
		if us[i].size > int64(Second) {
			decimals = 0 // tenths of minutes read badly
		}
		if s, ok := format(int64(v), us[i], decimals); ok {
			return s
		}
	}
	if v == 0 {
		return "0s"
	}
	return strconv.FormatInt(int64(v), 10) + "ns"
}

// String is v in percent, exactly.
func (v Percent) String() string { return decimal(int64(v), int64(OnePercent)) + "%" }

// String is "a/b", or "a" when the fraction is whole, or "" when it is not given.
func (v Ratio) String() string {
	switch v.Den {
	case 0:
		return ""
	case 1:
		return strconv.Itoa(int(v.Num))
	}
	return strconv.Itoa(int(v.Num)) + "/" + strconv.Itoa(int(v.Den))
}

// MarshalText writes String.
func (v Bytes) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (v BitRate) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (v Length) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (v Duration) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (v Percent) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalText writes String.
func (v Ratio) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText is ParseBytes.
func (v *Bytes) UnmarshalText(b []byte) (err error) { *v, err = ParseBytes(string(b)); return err }

// UnmarshalText is ParseBitRate.
func (v *BitRate) UnmarshalText(b []byte) (err error) { *v, err = ParseBitRate(string(b)); return err }

// UnmarshalText is ParseLength.
func (v *Length) UnmarshalText(b []byte) (err error) { *v, err = ParseLength(string(b)); return err }

// UnmarshalText is ParseDuration.
func (v *Duration) UnmarshalText(b []byte) (err error) {
	*v, err = ParseDuration(string(b))
	return err
}

// UnmarshalText is ParsePercent.
func (v *Percent) UnmarshalText(b []byte) (err error) { *v, err = ParsePercent(string(b)); return err }

// UnmarshalText is ParseRatio; the empty text is the zero Ratio.
func (v *Ratio) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*v = Ratio{}
		return nil
	}
	*v, err = ParseRatio(string(b))
	return err
}
