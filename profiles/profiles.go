// Package profiles holds hardware data: platforms, their ASICs and NICs, each number with its source and how far it
// is to be trusted. The data is YAML, embedded here and extended by `kind: Profile` documents of the user. Adding a
// platform is adding data, not code.
package profiles

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/units"
)

// Platform is what rendering and lint need to know about one switch model or host kind. It is comparable.
type Platform struct {
	Name        string      // "sonic/sn5600": the part before the slash is the dialect
	Description string      // for people
	ASIC        string      // "spectrum-4"
	Cell        units.Bytes // buffer cell; 0 = not known
	MaxMTU      units.Bytes // largest configurable L2 MTU; 0 = not known
	Iface       string      // pattern of generated interface names, with one %d for the port number: "Ethernet%d"; "" = ports must be bound in the inventory
	IfaceFirst  int         // number of the first port
	IfaceStep   int         // distance between ports: 8 where a port takes 8 lanes
	TxQueue     string      // EOS: "uc-tx-queue" or "tx-queue"
	HwSKU       string      // SONiC: the hardware SKU that the numbers are from; what the emulated switch calls itself
	GCUFamily   string      // SONiC: family in the generic config updater's permitted-change list ("spc4")
	Verified    bool        // tried by us on a real device; until then writing needs leave
	Source      string      // where the numbers are from
	Confidence  string      // "high", "medium", "low"
}

// Port is the device's name of the i-th port (from 0), or "" when the platform has no pattern.
func (p Platform) Port(i int) string {
	if p.Iface == "" {
		return ""
	}
	return fmt.Sprintf(p.Iface, p.IfaceFirst+i*p.IfaceStep)
}

//go:embed data
var data embed.FS

// Catalog is a set of platforms. It is not changed once made; With returns a larger one.
type Catalog struct {
	platforms map[string]Platform
}

// row is a platform as the embedded files write it.
type row struct {
	Name        string
	Description string
	ASIC        string
	Cell        string
	MaxMTU      string `yaml:"max_mtu"`
	Iface       string
	IfaceFirst  int    `yaml:"iface_first"`
	IfaceStep   int    `yaml:"iface_step"`
	TxQueue     string `yaml:"tx_queue"`
	HwSKU       string `yaml:"hwsku"`
	GCUFamily   string `yaml:"gcu_family"`
	Source      string
	Confidence  string
}

// Default is the catalog that comes with fabricctl. An error means that the embedded data is broken.
func Default() (*Catalog, error) {
	c := &Catalog{platforms: map[string]Platform{}}
	files, err := data.ReadDir("data/platforms")
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	for _, file := range files {
		name := "data/platforms/" + file.Name()
		b, err := data.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("profiles: %w", err)
		}
		var rows []row
		dec := yaml.NewDecoder(strings.NewReader(string(b)))
		dec.KnownFields(true)
		if err := dec.Decode(&rows); err != nil {
			return nil, fmt.Errorf("profiles: %s: %w", name, err)
		}
		for _, r := range rows {
			p, err := r.platform()
			if err != nil {
				return nil, fmt.Errorf("profiles: %s: %s: %w", name, r.Name, err)
			}
			c.platforms[p.Name] = p
		}
	}
	return c, nil
}

func (r row) platform() (Platform, error) {
	p := Platform{
		Name: r.Name, Description: r.Description, ASIC: r.ASIC, Iface: r.Iface, IfaceFirst: r.IfaceFirst,
		IfaceStep: r.IfaceStep, TxQueue: r.TxQueue, HwSKU: r.HwSKU, GCUFamily: r.GCUFamily, Source: r.Source, Confidence: r.Confidence,
	}
	for _, q := range []struct {
		text string
		to   *units.Bytes
	}{{r.Cell, &p.Cell}, {r.MaxMTU, &p.MaxMTU}} {
		if q.text == "" {
			continue
		}
		v, err := units.ParseBytes(q.text)
		if err != nil {
			return p, err
		}
		*q.to = v
	}
	return p, nil
}

// Platform finds a platform by its name.
func (c *Catalog) Platform(name string) (Platform, bool) {
	p, ok := c.platforms[name]
	return p, ok
}

// Names is the sorted list of platform names.
func (c *Catalog) Names() []string {
	names := make([]string, 0, len(c.platforms))
	for n := range c.platforms {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// With is c with the given platforms added or replaced.
func (c *Catalog) With(ps ...Platform) *Catalog {
	d := &Catalog{platforms: make(map[string]Platform, len(c.platforms)+len(ps))}
	for _, p := range c.platforms {
		d.platforms[p.Name] = p
	}
	for _, p := range ps {
		d.platforms[p.Name] = p
	}
	return d
}
