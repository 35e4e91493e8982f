package sonic

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/units"
)

// buffered is a switch with pools and one row in its table.
func buffered(t *testing.T, pools units.Bytes) *Switch {
	t.Helper()
	s, err := Start(Options{
		Plaintext: true, Config: Base("leaf1", "ACS-SN5600", Ports(2, 8, 400*units.Gbps, 40*units.Metre)),
		Buffers: Buffers{Shared: pools, Table: []Lookup{
			{Speed: 400 * units.Gbps, Cable: 40 * units.Metre, Size: 303104, Xon: 19456, Xoff: 283648, Alpha: units.Ratio{Num: 1, Den: 4}, XonOffset: 2288},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The switch makes a lossless priority group where PFC, speed and cable ask for one that its table has, one row for each
// run of priorities, and takes it away with any of them. Without a pool, or a row of its table, there is none, and nobody
// is told.
func TestBuffermgrd(t *testing.T) {
	for name, x := range map[string]struct {
		pool units.Bytes
		edit func(DB)
		want []string
	}{
		"PFC off":  {units.MB, func(DB) {}, nil},
		"one":      {units.MB, func(db DB) { db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3") }, []string{"Ethernet0|3"}},
		"a run":    {units.MB, func(db DB) { db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,4") }, []string{"Ethernet0|3-4"}},
		"two runs": {units.MB, func(db DB) { db.Set("PORT_QOS_MAP", "Ethernet8", "pfc_enable", "0,3,4,7") }, []string{"Ethernet8|0", "Ethernet8|3-4", "Ethernet8|7"}},
		"no pool":  {0, func(db DB) { db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3") }, nil},
		"another cable": {units.MB, func(db DB) {
			db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3")
			db.Set("CABLE_LENGTH", "AZURE", "Ethernet0", "30m")
		}, nil},
		"no cable": {units.MB, func(db DB) {
			db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3")
			db.Set("CABLE_LENGTH", "AZURE", "Ethernet0", "0m")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := buffered(t, x.pool)
			before := s.Config()
			s.Edit(x.edit)
			var got []string
			for row := range s.Config()["BUFFER_PG"] {
				got = append(got, row)
			}
			slices.Sort(got)
			if !slices.Equal(got, x.want) {
				t.Errorf("got %q, want %q", got, x.want)
			}
			if len(x.want) > 0 {
				want := map[string]any{
					"pool": "ingress_lossless_pool", "size": "303104", "xon": "19456", "xoff": "283648", "dynamic_th": "-2", "xon_offset": "2288",
				}
				if d := cmp.Diff(want, s.Config()["BUFFER_PROFILE"]["pg_lossless_400000_40m_profile"]); d != "" {
					t.Error(d)
				}
			}
			s.Edit(func(db DB) {
				delete(db, "PORT_QOS_MAP")
				for _, port := range []string{"Ethernet0", "Ethernet8"} {
					db.Set("CABLE_LENGTH", "AZURE", port, "40m")
				}
			})
			if d := cmp.Diff(before, s.Config()); d != "" {
				t.Errorf("what it made stays (-before +after):\n%s", d)
			}
		})
	}
}
