package eos

import (
	"encoding/json"
	"fmt"
)

// Neighbour is what a switch hears over LLDP on one of its ports.
type Neighbour struct {
	Port     string // of this switch
	Chassis  string // a MAC address, "001c.7300.0001"
	System   string
	PortID   string
	MAC      bool // PortID is a MAC address, as lldpd sends it from a host
	Descr    string
	Forwards bool // bridge and router
}

// showNeighbours is the JSON form of the detailed list. The members are those of published outputs; what a switch
// without LLDP answers was not recorded. The caller holds the lock.
func (s *Switch) showNeighbours() string {
	if s.faults.NoLLDP {
		return "% LLDP is not enabled"
	}
	ports := map[string]any{}
	for _, p := range s.opt.Ports {
		heard := []any{}
		for _, n := range s.opt.Neighbours {
			if n.Port == p && !hits(s.faults.Deaf, p) {
				heard = append(heard, n.json())
			}
		}
		ports[p] = map[string]any{"lldpNeighborInfo": heard}
	}
	b, err := json.MarshalIndent(map[string]any{"lldpNeighbors": ports}, "", "    ")
	if err != nil {
		return fmt.Sprintf("%% %v", err)
	}
	return string(b) + "\n"
}

func (n Neighbour) json() map[string]any {
	kind := "interfaceName"
	if n.MAC {
		kind = "macAddress"
	}
	capable := map[string]bool{}
	if n.Forwards {
		capable = map[string]bool{"bridge": true, "router": true}
	}
	return map[string]any{
		"chassisIdType": "macAddress", "chassisId": n.Chassis, "systemName": n.System, "systemCapabilities": capable,
		"neighborInterfaceInfo": map[string]any{
			"interfaceIdType": kind, "interfaceId": `"` + n.PortID + `"`, "interfaceId_v2": n.PortID, "interfaceDescription": n.Descr,
		},
	}
}
