package render

import (
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// sonicNameLimit is the longest name of a map or WRED profile that the YANG models take.
const sonicNameLimit = 32

// sonicNameRune reports what such a name is made of. It starts with a letter, which Prefix does.
func sonicNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// sonicIface reports whether s is a front-panel port of SONiC: Ethernet and a number.
func sonicIface(s string) bool {
	n, ok := strings.CutPrefix(s, "Ethernet")
	return ok && n != "" && len(n) <= 5 && strings.Trim(n, "0123456789") == ""
}

// sonicModelled reports whether p is bound to a port of the device and in service.
func sonicModelled(p *intent.Port) bool { return p.State == intent.Active && sonicIface(p.Iface) }

// sonicQueueOf is the queue of a traffic class: what the map says, or the queue of the same number where no map does.
func sonicQueueOf(p *intent.Policy, tc int) int {
	if q := p.TCQueue[tc]; q != intent.Unmapped {
		return int(q)
	}
	return tc
}

// sonicColours are the packet colours of a WRED profile. RoCE is green unless a policer says otherwise; all three are
// kept alike so that marking does not depend on it.
func sonicColours() []string { return []string{"green", "yellow", "red"} }

// sonicOwns: per modelled port the fields of the areas with mode Own, for the priorities that the model names; every
// field of objects with a name of this fabric; of adopted objects, the fields and entries that Render gives them.
func sonicOwns(d intent.Device, f Facts) func(Key) bool {
	own := map[Key]bool{}
	add := func(table, row string, fields ...string) {
		own[Key{table, row, ""}] = true
		for _, field := range fields {
			own[Key{table, row, field}] = true
		}
	}
	var areas intent.Areas
	for i := range d.Ports {
		if p := &d.Ports[i]; sonicModelled(p) {
			areas |= p.Manage.Owned()
			sonicOwnPort(add, &d, p)
		}
	}
	own[sonicPoll] = areas.Has(intent.AreaWatchdog) // not the row: the updater never lets it go
	for object, live := range f.Names {
		add(object.Scope, live, sonicFields(&d, object.Scope)...)
	}
	return func(k Key) bool {
		area, shared := sonicArea(k.Scope)
		switch {
		case !shared:
			return own[k]
		case !areas.Has(area):
			return false
		}
		return own[k] || ownName(sonicNameLimit, sonicNameRune, d.Fabric, k.Object)
	}
}

func sonicOwnPort(add func(table, row string, fields ...string), d *intent.Device, p *intent.Port) {
	owned, named := p.Manage.Owned(), sonicNamed(d)
	list := func(field string) []string {
		fields := []string{field}
		for _, n := range named {
			fields = append(fields, field+"["+n+"]")
		}
		return fields
	}
	if owned.Has(intent.AreaMTU) {
		add("PORT", p.Iface, "mtu")
	}
	if owned.Has(intent.AreaMaps) {
		add("PORT_QOS_MAP", p.Iface, "dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map")
	}
	if owned.Has(intent.AreaPFC) {
		add("PORT_QOS_MAP", p.Iface, list("pfc_enable")...)
	}
	if owned.Has(intent.AreaWatchdog) {
		add("PORT_QOS_MAP", p.Iface, list("pfcwd_sw_enable")...)
		add("PFC_WD", p.Iface, "action", "detection_time", "restoration_time")
	}
	for tc, class := range d.Classes {
		row := p.Iface + "|" + strconv.Itoa(sonicQueueOf(d.PolicyOf(p), tc))
		if class != "" && owned.Has(intent.AreaScheduler) {
			add("QUEUE", row, "scheduler")
		}
		if class != "" && owned.Has(intent.AreaECN) {
			add("QUEUE", row, "wred_profile")
		}
	}
}

// sonicNamed is the priorities that the device's model names, as text.
func sonicNamed(d *intent.Device) []string {
	var named []string
	for i, class := range d.Classes {
		if class != "" {
			named = append(named, strconv.Itoa(i))
		}
	}
	return named
}

// sonicFields is what Render writes into an object of a table when the object is not ours alone: all code points
// (`rest` covers them), the map entries of named classes, the fields of profiles.
func sonicFields(d *intent.Device, table string) []string {
	var fields []string
	switch table {
	case "DSCP_TO_TC_MAP":
		for i := range 64 {
			fields = append(fields, strconv.Itoa(i))
		}
	case "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE":
		return sonicNamed(d)
	case "SCHEDULER":
		return []string{"type", "weight"}
	case "WRED_PROFILE":
		fields = append(fields, "ecn")
		for _, c := range sonicColours() {
			fields = append(fields, c+"_min_threshold", c+"_max_threshold", c+"_drop_probability", "wred_"+c+"_enable")
		}
	}
	return fields
}
