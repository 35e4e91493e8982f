package perftest

import (
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// file is what --out_json_file has left.
type file struct {
	words map[string]string
	row   Row
}

// readFile reads what --out_json_file has left: JSON in versions from 2024, and before that the same with names and words that are not
// quoted and with commas at the end. Only names and their plain values are read, wherever they stand; of the results of a
// bidirectional test that are given apart, the first.
//
// The file does not say whether bandwidths are MiB/s or Gbit/s. They are taken in the unit in which they agree with the
// message rate, and left out where neither does.
func readFile(b []byte) (f file, ok bool) {
	f.words = map[string]string{}
	for line := range strings.FieldsFuncSeq(string(b), func(r rune) bool { return r == '\n' || r == ',' || r == '{' || r == '}' }) {
		name, v, ok := strings.Cut(line, ":")
		name, v = bare(name), bare(v)
		if _, twice := f.words[name]; ok && name != "" && v != "" && !twice {
			f.words[name] = v
		}
	}
	all := columns()
	set := func(key, column string, unit float64) {
		v, ok := readCell(f.words[key])
		if !ok {
			return
		}
		for _, c := range all {
			if c.name == column {
				c.unit = unit
				c.set(&f.row, v, f.words[key])
			}
		}
	}
	set("MsgSize", "#bytes", 1)
	set("n_iterations", "#iterations", 1)
	set("MsgRate", "MsgRate", 1e6)
	set("CPU_util", "CPU_Util", 1)
	for key, column := range map[string]string{
		"t_min": "t_min", "t_max": "t_max", "t_typical": "t_typical", "t_avg": "t_avg", "t_stdev": "t_stdev",
		"percentile_99": "99% percentile", "percentile_99.9": "99.9% percentile",
	} {
		set(key, column, usec)
	}
	set("tps_average", "tps average", 1)
	f.row.Line = "the file of --out_json_file"
	if unit := f.unit(); unit != 0 {
		set("BW_peak", "BW peak", unit)
		set("BW_average", "BW average", unit)
	}
	return f, f.row.Size > 0 && f.row.Iterations > 0
}

// unit is what one of the bandwidths of the file is worth in bits per second; 0 = that can't be told.
func (f *file) unit() float64 {
	avg, ok := readCell(f.words["BW_average"])
	if !ok || avg.nan || avg.v <= 0 || !f.row.Rate.Set {
		return 0
	}
	for _, u := range []float64{gbit, mib} {
		x := Row{Size: f.row.Size, Rate: f.row.Rate, Average: Value[units.BitRate]{V: units.BitRate(avg.v * u), Step: units.BitRate(avg.step * u), Set: avg.v*u < most}}
		if x.Average.Set && x.byRate().Set && x.agrees() {
			return u
		}
	}
	return 0
}

// bare is a name or a word without quotes and blanks, and without what no text has.
func bare(s string) string { return strings.Trim(printable([]byte(s)), " \t\"") }

// file takes over what --out_json_file has left. It is a second witness of the table, with more digits, and the only one where no
// table was printed.
func (p *reader) file(f file) {
	p.known = true
	p.r.File = &f.row
	for _, x := range p.facts {
		if v, ok := f.words[x.key]; ok && len(p.r.Rows) == 0 && p.r.Title == "" {
			x.set(&p.r.Head, v)
		}
	}
	if t := strings.ReplaceAll(f.words["test"], "_", " "); p.r.Title == "" {
		p.title(strings.Replace(t, "RDMA ", "RDMA_", 1))
	}
	switch {
	case len(p.r.Rows) == 0:
		p.r.Rows = append(p.r.Rows, f.row)
	case len(p.r.Rows) == 1 && p.r.Rows[0].same(&f.row):
		w := &p.r.Rows[0]
		w.Average, w.Peak = finer(w.Average, f.row.Average), finer(w.Peak, f.row.Peak)
	}
}

// finer is whichever of two values of the same quantity has more digits; the first where there is no second.
func finer[T ~int64 | ~float64](a, b Value[T]) Value[T] {
	if a.Set && b.Set && b.Step < a.Step {
		return b
	}
	return a
}

// same reports whether two rows are of the same run: the counts are equal, and what was measured is but for what it was rounded to.
func (w *Row) same(x *Row) bool {
	return w.Size == x.Size && w.Iterations == x.Iterations && near(w.Average, x.Average) && near(w.Mean, x.Mean) && near(w.Rate, x.Rate)
}

// near reports whether two values can be the same; values that are not set can be anything.
func near[T ~int64 | ~float64](a, b Value[T]) bool {
	off := a.V - b.V
	return !a.Set || !b.Set || max(off, -off) <= max(a.Step, b.Step)
}
