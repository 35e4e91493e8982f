package sonic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
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

// Base is the configuration of a switch after installation: identity and ports, all of them up with the factory's MTU
// of 9100, and no QoS.
func Base(hostname, hwsku string, ports []Port) DB {
	db := DB{}
	for field, v := range map[string]string{
		"hostname": hostname, "hwsku": hwsku, "platform": "x86_64-fabricctl_lab-r0", "mac": "02:00:00:00:00:01",
		"type": "LeafRouter", "buffer_model": "traditional", "default_pfcwd_status": "disable", "default_bgp_status": "up",
		"docker_routing_config_mode": "separated", "synchronous_mode": "enable",
	} {
		db.Set("DEVICE_METADATA", "localhost", field, v)
	}
	db.Set("VERSIONS", "DATABASE", "VERSION", "version_202411_01")
	lane := 0
	for i, p := range ports {
		if p.Lanes == 0 {
			p.Lanes = 8
		}
		lanes := make([]string, p.Lanes)
		for j := range lanes {
			lanes[j] = strconv.Itoa(lane)
			lane++
		}
		for field, v := range map[string]string{
			"lanes": strings.Join(lanes, ","), "speed": strconv.FormatInt(int64(p.Speed)/1e6, 10), "mtu": "9100",
			"admin_status": "up", "alias": fmt.Sprintf("etp%d", i+1), "index": strconv.Itoa(i + 1),
		} {
			db.Set("PORT", p.Name, field, v)
		}
		if p.Cable > 0 {
			db.Set("CABLE_LENGTH", "AZURE", p.Name, fmt.Sprintf("%dm", (p.Cable+999)/1000))
		}
	}
	return db
}
