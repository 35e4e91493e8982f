package profiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// HeadroomRow is one line of a platform's own table: what a lossless priority group gets at a port of this speed with a
// cable of this length. It is a published number or a user's, never one of ours.
type HeadroomRow struct {
	Speed     units.BitRate
	Cable     units.Length
	Size      units.Bytes // reserved for the group alone; on chips without shared headroom it holds Xoff too, see Dedicated
	Xon       units.Bytes // pause ends at the latest when the group holds no more than this
	Xoff      units.Bytes // headroom: bytes kept for what arrives after the pause was sent, not a threshold
	Alpha     units.Ratio // of the dynamic threshold at which pause is sent; zero = the threshold is Static
	Static    units.Bytes // the threshold at which pause is sent; 0 = it is dynamic
	XonOffset units.Bytes // pause ends this far below the threshold, where that is more than Xon; 0 = the table has none
}

// Dedicated reports whether the headroom is a part of what is reserved for the group, and not of a pool for all.
func (r HeadroomRow) Dedicated() bool { return r.Size >= r.Xoff }

// String is the row as one line of seven words, the columns of SONiC's pg_profile_lookup.ini with units: speed, cable,
// size, xon, xoff, threshold (a fraction is an alpha, bytes are static), xon_offset ("-" where there is none).
func (r HeadroomRow) String() string {
	threshold, offset := r.Alpha.String(), "-"
	if r.Alpha == (units.Ratio{}) {
		threshold = r.Static.String()
	}
	if r.XonOffset > 0 {
		offset = r.XonOffset.String()
	}
	return strings.Join([]string{r.Speed.String(), r.Cable.String(), r.Size.String(), r.Xon.String(), r.Xoff.String(), threshold, offset}, " ")
}

// Columns names the words of a headroom row's text, in order.
func Columns() []string {
	return []string{"speed", "cable", "size", "xon", "xoff", "threshold", "xon_offset"}
}

// ParseHeadroomRow reads what String writes.
func ParseHeadroomRow(s string) (HeadroomRow, error) {
	words := strings.Fields(s)
	if len(words) != len(Columns()) {
		return HeadroomRow{}, fmt.Errorf("%q is not a row of %s", s, strings.Join(Columns(), ", "))
	}
	var r HeadroomRow
	var err error
	read := func(column int, parse func(string) error) {
		if e := parse(words[column]); e != nil && err == nil {
			err = fmt.Errorf("%s: %w", Columns()[column], e)
		}
	}
	size := func(at *units.Bytes) func(string) error {
		return func(s string) (err error) { *at, err = units.ParseBytes(s); return err }
	}
	read(0, func(s string) (err error) { r.Speed, err = units.ParseBitRate(s); return err })
	read(1, func(s string) (err error) { r.Cable, err = units.ParseLength(s); return err })
	read(2, size(&r.Size))
	read(3, size(&r.Xon))
	read(4, size(&r.Xoff))
	read(5, func(s string) (err error) {
		if strings.HasSuffix(s, "B") {
			return size(&r.Static)(s)
		}
		r.Alpha, err = units.ParseRatio(s)
		return err
	})
	if words[6] != "-" {
		read(6, size(&r.XonOffset))
	}
	return r, err
}

// rows are the published headroom rows of a platform.
func rows(key, doc string, at func(*Platform) *[]HeadroomRow) spec[Platform] {
	f := Field{Key: key, Noun: "row", Doc: doc, Shape: Row, List: true}
	return spec[Platform]{f, func(p *Platform, v []string) {
		rs := make([]HeadroomRow, len(v))
		for i := range v {
			rs[i], _ = ParseHeadroomRow(v[i])
		}
		*at(p) = rs
	}}
}

// HeadroomAt finds the row of a port in the platform's own table: that of its speed and cable, else (exact is false) the one of
// the next longer cable, which is safe because headroom does not shrink with the cable. ok is false when the table has
// neither.
func (p Platform) HeadroomAt(speed units.BitRate, cable units.Length) (row HeadroomRow, exact, ok bool) {
	for _, r := range p.Headroom {
		if r.Speed == speed && r.Cable >= cable && (!ok || r.Cable < row.Cable) {
			row, ok = r, true
		}
	}
	return row, ok && row.Cable == cable, ok
}

// Cables lists the cable lengths that the platform's table has for a speed, ascending.
func (p Platform) Cables(speed units.BitRate) []units.Length {
	var ls []units.Length
	for _, r := range p.Headroom {
		if r.Speed == speed {
			ls = append(ls, r.Cable)
		}
	}
	slices.Sort(ls)
	return slices.Compact(ls)
}

// Pools are the buffers that all ports of a device share. What is not known is 0.
type Pools struct {
	Lossless    units.Bytes // at the ingress, in which lossless priority groups compete below their thresholds
	Headroom    units.Bytes // shared headroom beside it; 0 with a known Lossless: each group's headroom is reserved for it alone
	Egress      units.Bytes // at the egress, of lossless queues
	EgressAlpha units.Ratio // of the dynamic threshold of a lossless queue at the egress; zero = it is EgressLimit, if that is known
	EgressLimit units.Bytes // the most that a lossless queue may hold at the egress; 0 = the threshold is dynamic, or not known
}

// Pools are the platform's pools in a role: those of a switch that hosts are connected to (SONiC's t0), where they are
// known to differ, and else those of any other (t1).
func (p Platform) Pools(hosts bool) Pools {
	if hosts && p.LeafPool.Lossless > 0 {
		return p.LeafPool
	}
	return p.Pool
}
