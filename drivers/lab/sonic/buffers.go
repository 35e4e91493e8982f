package sonic

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Lookup is a row of pg_profile_lookup.ini: what buffermgrd gives a lossless priority group at a port of this speed with a
// cable of this length.
type Lookup struct {
	Speed     units.BitRate
	Cable     units.Length
	Size      units.Bytes
	Xon, Xoff units.Bytes
	Alpha     units.Ratio // a power of two; zero where the pool is static
	Static    units.Bytes // where it is
	XonOffset units.Bytes // 0 = none
}

const losslessPool = "ingress_lossless_pool"

// Buffers are the pools of a switch, as its template makes them, and its lookup table. The zero value is a switch that has
// neither.
type Buffers struct {
	Shared, Headroom, Egress units.Bytes
	Static                   bool // the ingress pool
	Table                    []Lookup
}

// put adds the pools and the profiles that come with them.
func (b *Buffers) put(db DB) {
	if b.Shared == 0 {
		return
	}
	size := func(v units.Bytes) string { return strconv.FormatInt(int64(v), 10) }
	mode := "dynamic"
	if b.Static {
		mode = "static"
	}
	for field, v := range map[string]string{"type": "ingress", "mode": mode, "size": size(b.Shared)} {
		db.Set("BUFFER_POOL", losslessPool, field, v)
	}
	if b.Headroom > 0 {
		db.Set("BUFFER_POOL", losslessPool, "xoff", size(b.Headroom))
	}
	for field, v := range map[string]string{"type": "egress", "mode": "dynamic", "size": size(max(b.Egress, b.Shared))} {
		db.Set("BUFFER_POOL", "egress_lossless_pool", field, v)
	}
	for field, v := range map[string]string{"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7"} {
		db.Set("BUFFER_PROFILE", "egress_lossless_profile", field, v)
	}
}

// buffermgrd makes the lossless priority groups of ports that have PFC, a speed and a cable for which the table has a row,
// and takes away what it made where one of them is gone. It writes over what anybody else bound to a group of the same
// row; for a cable of 0m, or one that the table does not have, it does nothing, and says so in its log alone. (swss
// e6b0c5b5, cfgmgr/buffermgr.cpp, as read; there, rows of PFC that ended may stay, and what comes first when one change
// touches several tables is not known.)
func (s *Switch) buffermgrd(db DB) {
	if len(s.options.Buffers.Table) == 0 || db["BUFFER_POOL"][losslessPool] == nil {
		return
	}
	made := func(profile string) bool { return strings.HasPrefix(profile, "pg_lossless_") }
	for row, fields := range db["BUFFER_PG"] {
		if p, _ := fields["profile"].(string); made(p) {
			delete(db["BUFFER_PG"], row)
		}
	}
	for name := range db["BUFFER_PROFILE"] {
		if made(name) {
			delete(db["BUFFER_PROFILE"], name)
		}
	}
	for _, lengths := range db["CABLE_LENGTH"] {
		for port, cable := range lengths {
			s.groups(db, port, fmt.Sprint(cable))
		}
	}
	for _, table := range []string{"BUFFER_PG", "BUFFER_PROFILE"} {
		if t, ok := db[table]; ok && len(t) == 0 {
			delete(db, table)
		}
	}
}

// groups makes the groups of one port.
func (s *Switch) groups(db DB, port, cable string) {
	speed := db.Get("PORT", port, "speed")
	i := slices.IndexFunc(s.options.Buffers.Table, func(l Lookup) bool {
		return strconv.FormatInt(int64(l.Speed/units.Mbps), 10) == speed && fmt.Sprintf("%dm", l.Cable/units.Metre) == cable
	})
	if i < 0 {
		return
	}
	ranges := contiguous(db.Get("PORT_QOS_MAP", port, "pfc_enable"))
	if len(ranges) == 0 {
		return
	}
	l := s.options.Buffers.Table[i]
	name := fmt.Sprintf("pg_lossless_%s_%s_profile", speed, cable)
	threshold, value := "static_th", fmt.Sprint(int64(l.Static))
	if l.Static == 0 {
		threshold, value = "dynamic_th", strconv.Itoa(bits.TrailingZeros32(uint32(l.Alpha.Num))-bits.TrailingZeros32(uint32(l.Alpha.Den)))
	}
	for field, v := range map[string]any{
		"pool": losslessPool, "size": fmt.Sprint(int64(l.Size)), "xon": fmt.Sprint(int64(l.Xon)), "xoff": fmt.Sprint(int64(l.Xoff)), threshold: value,
	} {
		db.Set("BUFFER_PROFILE", name, field, v)
	}
	if l.XonOffset > 0 {
		db.Set("BUFFER_PROFILE", name, "xon_offset", fmt.Sprint(int64(l.XonOffset)))
	}
	for _, r := range ranges {
		db.Set("BUFFER_PG", port+"|"+r, "profile", name)
	}
}

// contiguous is a list of priorities as ranges: "3,4,6" is 3-4 and 6.
func contiguous(list string) []string {
	var out []string
	for i := 0; i < 8; i++ {
		on := func(p int) bool { return p < 8 && slices.Contains(items(list), strconv.Itoa(p)) }
		if !on(i) {
			continue
		}
		j := i
		for on(j + 1) {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(i))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", i, j))
		}
		i = j
	}
	return out
}
