package render

import (
	"cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render/factory"
)

// sonicStock is the factory's configuration of a switch with d's ports, and the pool that lossless groups are in, whose mode is the
// platform's.
func sonicStock(d intent.Device, f Facts) Config {
	var ports []factory.Port
	for i := range d.Ports {
		if p := &d.Ports[i]; p.Iface != "" {
			ports = append(ports, factory.Port{Name: p.Iface, Speed: p.Speed, Lanes: max(cmp.Or(d.Profile.Lanes, d.Profile.IfaceStep)/max(p.Breakout, 1), 1)})
		}
	}
	db := factory.SONiC(d.Name, f.Model, ports)
	mode := "dynamic"
	if d.Pools.Static {
		mode = "static"
	}
	db["BUFFER_POOL"] = map[string]map[string]string{sonicPool: {"mode": mode}}
	var c Config
	for table, rows := range db {
		for row, fields := range rows {
			for field, v := range fields {
				c = append(c, Setting{Key: Key{Scope: table, Object: row, Field: field}, Value: v})
			}
		}
	}
	return c.Sorted()
}
