package sonic

import "strconv"

// Neighbour is what a switch hears over LLDP on one of its ports.
type Neighbour struct {
	Port     string // of this switch
	Chassis  string // a MAC address
	System   string
	PortID   string
	MAC      bool // PortID is a MAC address, as lldpd sends it from a host
	Descr    string
	Forwards bool // bridge and router, else a station
}

// heard is the part of APPL_DB that lldp-syncd writes. The caller holds the lock.
func (s *Switch) heard() DB {
	db := DB{}
	for i, n := range s.options.Neighbours {
		if s.faults.Deaf != nil && s.faults.Deaf(n.Port) {
			continue
		}
		subtype, capabilities := "7", "28 00" // locally assigned: SONiC sends the front panel's name
		if n.MAC {
			subtype = "3"
		}
		if !n.Forwards {
			capabilities = "01 00"
		}
		for field, v := range map[string]string{
			"chassis_id": n.Chassis, "chassis_id_subtype": "4", "port_id": n.PortID, "port_id_subtype": subtype,
			"port_desc": n.Descr, "sys_name": n.System, "sys_desc": "emulated", "sys_cap_supported": capabilities,
			"sys_cap_enabled": capabilities, "index": strconv.Itoa(i + 1), "time_mark": "1", "man_addr": "",
		} {
			db.Set("LLDP_ENTRY_TABLE", n.Port, "lldp_rem_"+field, v)
		}
	}
	return db
}
