// Package factory is what devices hold before anybody has written them, as far as changes are judged by it. It knows no codec of ours, so that dialects
// may judge by it and emulators may begin with it, and the one stays a witness of the other.
package factory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Port is a front panel port.
type Port struct {
	Name  string        // "Ethernet0"
	Speed units.BitRate // whole Mb/s
	Lanes int           // of the ASIC; 0 = 8
}

// SONiC is the ConfigDB of a switch after installation, table to row to field to value: identity and ports, all of them up with an
// MTU of 9100, and no QoS. What a build, a chip or a minigraph adds (platform, version, cables, buffer pools) is not among it.
func SONiC(hostname, hwsku string, ports []Port) map[string]map[string]map[string]string {
	rows := map[string]map[string]string{}
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
		rows[p.Name] = map[string]string{
			"lanes": strings.Join(lanes, ","), "speed": strconv.FormatInt(int64(p.Speed)/1e6, 10), "mtu": "9100",
			"admin_status": "up", "alias": fmt.Sprintf("etp%d", i+1), "index": strconv.Itoa(i + 1),
		}
	}
	db := map[string]map[string]map[string]string{"DEVICE_METADATA": {"localhost": {
		"hostname": hostname, "hwsku": hwsku, "type": "LeafRouter", "buffer_model": "traditional", "default_pfcwd_status": "disable",
		"default_bgp_status": "up", "docker_routing_config_mode": "separated", "synchronous_mode": "enable",
	}}}
	if len(rows) > 0 {
		db["PORT"] = rows
	}
	return db
}
