package perftest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// What one of a unit is worth. perftest's MB is a MiB (its help says so, and its message rates agree).
const (
	mib  = 8 << 20 // bits per second
	gbit = 1e9
	usec = 1e3 // ns
)

// column is a column of a table. Heads differ between tools, modes and versions: a table is read by what its head says.
type column struct {
	name string
	into func(*Row, cell) // nil = it is passed over
	unit float64          // what one is worth in bits/s, ns or messages/s; 0 = not known
}

// columns are those of all versions, names before those that they begin with. The two ports of dual-port tests are passed over.
// Recorded are bandwidths with and without CPU_Util, and latencies with 9 and with 4 columns; the others follow the tool's source.
func columns() []column {
	return []column{
		{name: "#bytes"},
		{name: "#sl"},
		{name: "#iterations"},
		{name: "BW peak", into: rate(func(w *Row) *Value[units.BitRate] { return &w.Peak })},
		{name: "BW average", into: rate(func(w *Row) *Value[units.BitRate] { return &w.Average })},
		{name: "BW Port1"},
		{name: "BW Port2"},
		{name: "MsgRate Port1"},
		{name: "MsgRate Port2"},
		{name: "MsgRate", into: plain(func(w *Row) *Value[float64] { return &w.Rate })},
		{name: "t_min", into: span(func(w *Row) *Value[time.Duration] { return &w.Min })},
		{name: "t_max", into: span(func(w *Row) *Value[time.Duration] { return &w.Max })},
		{name: "t_typical", into: span(func(w *Row) *Value[time.Duration] { return &w.Typical })},
		{name: "t_avg", into: span(func(w *Row) *Value[time.Duration] { return &w.Mean })},
		{name: "t_stdev", into: span(func(w *Row) *Value[time.Duration] { return &w.Stdev })},
		{name: "99.9% percentile", into: span(func(w *Row) *Value[time.Duration] { return &w.P999 })},
		{name: "99% percentile", into: span(func(w *Row) *Value[time.Duration] { return &w.P99 })},
		{name: "tps average", into: plain(func(w *Row) *Value[float64] { return &w.Turns })},
		{name: "CPU_Util", into: plain(func(w *Row) *Value[float64] { return &w.CPU })},
	}
}

func rate(of func(*Row) *Value[units.BitRate]) func(*Row, cell) {
	return func(w *Row, c cell) { *of(w) = whole[units.BitRate](c) }
}

func span(of func(*Row) *Value[time.Duration]) func(*Row, cell) {
	return func(w *Row, c cell) { *of(w) = whole[time.Duration](c) }
}

func plain(of func(*Row) *Value[float64]) func(*Row, cell) {
	return func(w *Row, c cell) { *of(w) = Value[float64]{math.Round(c.v/c.step) * c.step, c.step, true} }
}

func whole[T ~int64](c cell) Value[T] {
	return Value[T]{T(math.Round(c.v)), T(math.Round(c.step)), true}
}

// readColumns reads the head of a table. A name that is not known is a column that is passed over.
func readColumns(head string) (cs []column) {
	all := columns()
	for head = strings.TrimSpace(head); head != ""; head = strings.TrimSpace(head) {
		var c column
		for _, k := range all {
			if strings.HasPrefix(head, k.name) {
				c = k
				break
			}
		}
		if c.name == "" {
			c.name, _, _ = strings.Cut(head, " ")
		}
		head = head[len(c.name):]
		c.unit = 1
		if strings.HasPrefix(head, "[") {
			unit, rest, _ := strings.Cut(head[1:], "]")
			c.unit, head = worth(unit), rest
		}
		cs = append(cs, c)
	}
	return cs
}

// worth is what one of a unit is in ours; 0 = not known.
func worth(unit string) float64 {
	switch unit {
	case "MB/sec", "MiB/sec":
		return mib
	case "Gb/sec":
		return gbit
	case "usec":
		return usec
	case "nsec":
		return 1
	case "Mpps":
		return 1e6
	case "%":
		return 1
	}
	return 0
}

// set reads a cell of the column into a row; false when it can't be one of it.
func (c column) set(w *Row, v cell, word string) bool {
	n, err := strconv.ParseInt(word, 10, 64)
	ok := err == nil && n >= 0
	switch c.name {
	case "#bytes":
		w.Size = units.Bytes(n)
		return ok
	case "#iterations":
		w.Iterations = n
		return ok
	case "#sl":
		w.SL = int(min(n, 1<<30))
		return ok
	}
	v.v, v.step = v.v*c.unit, v.step*c.unit
	if c.into == nil || v.nan || c.unit == 0 || math.Abs(v.v) > most || c.name == "BW peak" && v.v == 0 {
		return true // not measured
	}
	c.into(w, v)
	return true
}

// cell is a number as it is printed. nan is one that is none.
type cell struct {
	v, step float64
	nan     bool
}

// readCell reads a number. What comes out of a division by zero is one too: nan, -nan, inf.
func readCell(s string) (c cell, ok bool) {
	switch strings.TrimLeft(s, "+-") {
	case "nan", "inf":
		return cell{nan: true}, len(s) <= len("-nan")
	}
	if s == "" || len(s) > 64 || strings.Trim(s, "0123456789.eE+-") != "" {
		return c, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return c, false
	}
	_, decimals, _ := strings.Cut(s, ".")
	decimals, _, _ = strings.Cut(strings.ToLower(decimals), "e")
	return cell{v: v, step: math.Pow10(-len(decimals))}, true
}
