package sonic

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/render/factory"
)

// Port is a front panel port of a base configuration.
type Port struct {
	Name  string        // "Ethernet0"
	Speed units.BitRate // whole Mb/s
	Lanes int           // of the ASIC; 0 = 8
	Cable units.Length  // for CABLE_LENGTH; 0 = no entry, and then no lossless priority group either
}

// Ports are n ports named as SONiC does: Ethernet0 and then one per lanes.
func Ports(n, lanes int, speed units.BitRate, cable units.Length) []Port {
	ports := make([]Port, n)
	for i := range ports {
		ports[i] = Port{Name: fmt.Sprintf("Ethernet%d", i*lanes), Speed: speed, Lanes: lanes, Cable: cable}
	}
	return ports
}

// Base is the configuration of an emulated switch after installation: the factory's, with the identity and the cables of the lab.
func Base(hostname, hwsku string, ports []Port) DB {
	var bare []factory.Port
	for _, p := range ports {
		bare = append(bare, factory.Port{Name: p.Name, Speed: p.Speed, Lanes: p.Lanes})
	}
	db := DB{}
	for table, rows := range factory.SONiC(hostname, hwsku, bare) {
		for row, fields := range rows {
			for field, v := range fields {
				db.Set(table, row, field, v)
			}
		}
	}
	db.Set("DEVICE_METADATA", "localhost", "platform", "x86_64-fabricctl_lab-r0")
	db.Set("DEVICE_METADATA", "localhost", "mac", "02:00:00:00:00:01")
	db.Set("VERSIONS", "DATABASE", "VERSION", "version_202411_01")
	for _, p := range ports {
		if p.Cable > 0 {
			db.Set("CABLE_LENGTH", "AZURE", p.Name, fmt.Sprintf("%dm", (p.Cable+999)/1000))
		}
	}
	return db
}
