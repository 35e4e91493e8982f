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
	Pools map[string]struct{ Size, Xoff string } `json:"BUFFER_POOL"`
	Ports map[string]any                         `json:"PORT_QOS_MAP"`
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
		if p.OS() != "sonic" || p.Iface == "" || n == "sonic/vs" || !ok {
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
		for _, x := range []struct {
			key string
			v   units.Bytes
		}{{"lossless_pool", p.LosslessPool}, {"headroom_pool", p.HeadroomPool}} {
			f, ok := e.Fact(x.key)
			if !ok {
				continue
			}
			got, ok := published(t, p.Words["hwsku"], f.Source[len(f.Source)-2:])
			pool := got.Pools["ingress_lossless_pool"]
			want := map[string]string{"lossless_pool": pool.Size, "headroom_pool": pool.Xoff}[x.key]
			if !ok || want != strconv.FormatInt(int64(x.v), 10) {
				t.Errorf("%s: %s is %d, but SONiC publishes %q", n, x.key, x.v, want)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Errorf("only %d pools were compared", compared)
	}
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
	var rows map[string]struct {
		Cell     string `json:"cell_size"`
		Pipeline string `json:"pipeline_latency"`
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for name, want := range rows {
		_, generation, _ := strings.Cut(name, "-")
		if generation == "" {
			generation = "1"
		}
		a, ok := c.ASIC("spectrum-" + generation)
		if !ok || strconv.Itoa(int(a.Cell)) != want.Cell || strconv.Itoa(int(a.PipelineLatency>>10)) != want.Pipeline {
			t.Errorf("spectrum-%s: cell %s, latency %s, but SONiC has %+v", generation, a.Cell, a.PipelineLatency, want)
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
