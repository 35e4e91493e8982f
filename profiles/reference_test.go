package profiles

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

// tables are the parts of a SKU's rendered configuration that are compared.
type tables struct {
	Pools    map[string]struct{ Size, Xoff string } `json:"BUFFER_POOL"`
	Profiles map[string]struct {
		Dynamic string `json:"dynamic_th"`
		Static  string `json:"static_th"`
	} `json:"BUFFER_PROFILE"`
	Ports map[string]any `json:"PORT_QOS_MAP"`
}

// published reads what SONiC publishes for a SKU: its buffers for a role (t0, t1), and its first ports.
func published(t *testing.T, sku, role string) (tables, bool) {
	dirs, err := filepath.Glob(filepath.Join(witness.Reference(t, "reference/sonic-pg"), "*__"+sku))
	if err != nil || len(dirs) != 1 {
		return tables{}, false
	}
	var all tables
	for _, name := range []string{"buffers-" + role + ".json", "qos-" + role + ".json"} {
		b, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			return tables{}, false
		}
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
	}
	return all, true
}

// TestPublishedPorts: the names that a pattern makes are those of the SKU's own first ports.
func TestPublishedPorts(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, n := range c.Names() {
		p, _ := c.Platform(n)
		got, ok := published(t, p.Words["hwsku"], "t1")
		if p.OS() != "sonic" || p.Iface == "" || n == "sonic/vs" || n == "sonic/sn3800-d112c8" || !ok { // the last has its ports split, see below
			continue
		}
		compared++
		var names []string
		for name := range got.Ports {
			if strings.HasPrefix(name, "Ethernet") {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
		for i, name := range names {
			if p.Port(i) != name {
				t.Errorf("%s: port %d is %s, but SONiC publishes %s", n, i, p.Port(i), name)
			}
		}
	}
	if compared < 12 {
		t.Errorf("only %d platforms were compared", compared)
	}
	split, ok := published(t, "Mellanox-SN3800-D112C8", "t1")
	p, _ := c.Platform("sonic/sn3800")
	for i := range 4 {
		name, _ := p.Split(i/2, 2, i%2)
		if _, there := split.Ports[name]; !ok || !there {
			t.Errorf("half %d of a split port is %s, but SONiC publishes %v", i, name, split.Ports)
		}
	}
}

// TestPublishedPools: the pools are those of the SKU's rendered tables, for the role that the source names.
func TestPublishedPools(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, n := range c.Names() {
		e, _ := c.Entry(KindPlatform, n)
		p, _ := c.Platform(n)
		for prefix, x := range map[string]Pools{"": p.Pool, "leaf_": p.LeafPool} {
			f, ok := e.Fact(prefix + "lossless_pool")
			if !ok || strings.Contains(f.Source, "several published sizes") {
				continue
			}
			got, ok := published(t, p.Words["hwsku"], f.Source[len(f.Source)-2:])
			in, out := got.Pools["ingress_lossless_pool"], got.Pools["egress_lossless_pool"]
			queue := got.Profiles["egress_lossless_profile"]
			want := Pools{Lossless: plainBytes(t, in.Size), Headroom: plainBytes(t, in.Xoff), Egress: plainBytes(t, out.Size), EgressLimit: plainBytes(t, queue.Static)}
			if queue.Dynamic != "" {
				want.EgressAlpha = alphaOf(t, queue.Dynamic)
			}
			if !ok || x != want {
				t.Errorf("%s: %spools are %+v, but SONiC publishes %+v", n, prefix, x, want)
			}
			compared++
		}
		if t0, ok := published(t, p.Words["hwsku"], "t0"); ok && n != "sonic/vs" {
			if got, want := p.Pools(true).Lossless, plainBytes(t, t0.Pools["ingress_lossless_pool"].Size); got != want {
				t.Errorf("%s: with hosts its lossless pool is %s, but SONiC publishes %s", n, got, want)
			}
		}
	}
	if compared < 25 {
		t.Errorf("only %d pools were compared", compared)
	}
}

func plainBytes(t *testing.T, s string) units.Bytes {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return units.Bytes(n)
}

// alphaOf is the alpha that SONiC's exponent stands for.
func alphaOf(t *testing.T, exponent string) units.Ratio {
	n, err := strconv.Atoi(exponent)
	if err != nil || n < -8 || n > 8 {
		t.Fatalf("exponent %q", exponent)
	}
	if n < 0 {
		return units.Ratio{Num: 1, Den: 1 << -n}
	}
	return units.Ratio{Num: 1 << n, Den: 1}
}

// TestPublishedHeadroom: every row of every published table is in the catalog with the same numbers, and no other row is.
func TestPublishedHeadroom(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[HeadroomRow]bool{}
	row := func(sku string, speed units.BitRate, r map[string]string) {
		cable, err := units.ParseLength(r["cable"])
		if err != nil {
			t.Fatal(err)
		}
		if want[sku] == nil {
			want[sku] = map[HeadroomRow]bool{}
		}
		want[sku][HeadroomRow{
			Speed: speed, Cable: cable, Size: plainBytes(t, r["size"]), Xon: plainBytes(t, r["xon"]), Xoff: plainBytes(t, r["xoff"]),
			Alpha: alphaOf(t, r["threshold"]), XonOffset: plainBytes(t, r["xon_offset"]),
		}] = true
	}
	all := 0
	for _, r := range table(t, "reference/sonic-pg/all-pg-profiles.csv") {
		row(strings.Split(r["sku"], "__")[2], units.BitRate(plainBytes(t, r["speed"]))*units.Mbps, r)
		all++
	}
	for _, r := range table(t, "reference/headroom_published.csv") {
		sku := map[string]string{"Mellanox MSN2700": "ACS-MSN2700", "Arista 7260CX3": "Arista-7260CX3-D108C8", "Arista 7060X6": "Arista-7060X6-64PE-O128S2"}
		name, _, _ := strings.Cut(r["platform"], " (")
		r["cable"], r["size"], r["threshold"] = r["cable_m"]+"m", r["pg_size"], r["dynamic_th_log2alpha"]
		row(sku[name], units.BitRate(plainBytes(t, r["speed_gbps"]))*units.Gbps, r)
		all++
	}
	if all != 328+16 {
		t.Errorf("%d rows were read, want 344", all)
	}
	for _, n := range c.Names() {
		p, _ := c.Platform(n)
		rows := want[p.Words["hwsku"]]
		if p.OS() != "sonic" {
			rows = nil
		}
		for _, r := range p.Headroom {
			if !rows[r] {
				t.Errorf("%s: nobody publishes the row %s", n, r)
			}
			delete(rows, r)
		}
		for r := range rows {
			t.Errorf("%s: the published row %s is missing", n, r)
		}
		delete(want, p.Words["hwsku"])
	}
	for sku := range want {
		t.Errorf("no platform stands for SKU %s, whose headroom is published", sku)
	}
}

// table reads a CSV with a header, and without its comments.
func table(t *testing.T, name string) []map[string]string {
	b, err := os.ReadFile(witness.Reference(t, name))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comment, r.FieldsPerRecord = '#', -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, key := range rows[0] {
			row[key] = cells[i]
		}
		all = append(all, row)
	}
	witness.Agree(t, name, len(all))
	return all
}

// TestPublishedASICs compares with the constants of SONiC's headroom script.
func TestPublishedASICs(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(witness.Reference(t, "reference/sonic-pg/mellanox-asic-params.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string]map[string]string
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for name, want := range rows {
		_, generation, _ := strings.Cut(name, "-")
		if generation == "" {
			generation = "1"
		}
		e, _ := c.Entry(KindASIC, "spectrum-"+generation)
		for key, fact := range map[string][2]string{
			"cell_size": {"cell", "B"}, "pipeline_latency": {"pipeline_latency", "KiB"}, "mac_phy_delay": {"mac_phy_delay", "KiB"},
			"peer_response_time": {"peer_response", "KiB"}, "port_max_shp": {"port_cells", ""}, "port_reserved_shp": {"port_own_cells", ""},
		} {
			f, ok := e.Fact(fact[0])
			published := want[key] + fact[1]
			if v, err := units.ParseBytes(published); err == nil {
				published = v.String()
			}
			if !ok || f.Text() != published {
				t.Errorf("spectrum-%s: %s %s, but SONiC has %s", generation, fact[0], f.Text(), published)
			}
		}
		a, _ := c.ASIC("spectrum-" + generation)
		if a.MACPHYDelay != (units.Ratio{Num: 4096, Den: 5}) || a.PeerResponse != (units.Ratio{Num: 19456, Den: 5}) || a.HeadroomFormula != "sonic_mlnx" {
			t.Errorf("spectrum-%s: %s bytes of delay, %s of response, formula %q", generation, a.MACPHYDelay, a.PeerResponse, a.HeadroomFormula)
		}
	}
}

// TestPublishedCells compares with the cells of the published headroom tables.
func TestPublishedCells(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(witness.Reference(t, "reference/headroom_published.csv"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comment, r.FieldsPerRecord = '#', -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, row := range rows[1:] {
		for word, asic := range map[string]string{"Spectrum-1": "spectrum-1", "Tomahawk2": "tomahawk-2", "Tomahawk5": "tomahawk-5"} {
			a, _ := c.ASIC(asic)
			if !strings.Contains(row[0], word) || row[3] == "" {
				continue
			}
			compared++
			if strconv.Itoa(int(a.Cell)) != row[3] {
				t.Errorf("%s: cell %s, but the table %s has %s", asic, a.Cell, row[0], row[3])
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d rows were compared", compared)
	}
}
