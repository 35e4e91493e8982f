package render

import (
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// sonic is SONiC's ConfigDB, written over gNMI (origin sonic-db) or with config apply-patch. A setting is one field
// of one row, {TABLE, row, field}; every value is a string. Three spellings are ours:
//
//	{TABLE, row, ""} = ""                            the row exists and is empty
//	{"PORT_QOS_MAP", port, "pfc_enable"} = ""        the list field exists
//	{"PORT_QOS_MAP", port, "pfc_enable[3]"} = "on"   the list has item 3
//
// Lists (pfc_enable, pfcwd_sw_enable) are settings of their own per item because the model owns single priorities of
// them. SonicRows joins them back.
//
// Facts: the YANG models of sonic-buildimage 086b03bd, swss e6b0c5b5 and the generic config updater of
// sonic-utilities 691b1bbc, as read; not tried on a real switch.
var sonic = Dialect{
	OS:     "sonic",
	Ext:    ".config_db.json",
	Owns:   sonicOwns,
	Left:   sonicLeft,
	Render: sonicRender,
	Text:   sonicText,
	Parse:  sonicParse,
	Lift:   sonicLift,
	Ports:  sonicPorts,
	Pools:  sonicPools,
	Stock:  sonicStock,
	Refs:   sonicRefs,
	Windows: []Window{
		{"WRED_PROFILE", "green_min_threshold", "green_max_threshold"},
		{"WRED_PROFILE", "yellow_min_threshold", "yellow_max_threshold"},
		{"WRED_PROFILE", "red_min_threshold", "red_max_threshold"},
	},
	Phase: sonicPhase,
	Same:  sonicSame,
	Risk:  sonicRisk,
}

// SonicDB is a ConfigDB: table to row key to field to value. An empty row is an empty map.
type SonicDB map[string]map[string]map[string]string

// SonicRows is c as the device holds it: list items joined ("3,4"; "" for an empty list, written as such because
// SONiC leaves PFC on when the field merely goes away). It shares nothing with c.
func SonicRows(c Config) SonicDB {
	db := SonicDB{}
	for _, s := range c {
		rows := db[s.Key.Scope]
		if rows == nil {
			rows = map[string]map[string]string{}
			db[s.Key.Scope] = rows
		}
		row := rows[s.Key.Object]
		if row == nil {
			row = map[string]string{}
			rows[s.Key.Object] = row
		}
		field, item, isItem := sonicItem(s.Key)
		switch {
		case s.Key.Field == "":
		case isItem && row[field] != "":
			row[field] += "," + item // c is sorted, and so are the items
		case isItem:
			row[field] = item
		default:
			row[field] = s.Value
		}
	}
	return db
}

// SonicField is the ConfigDB field that carries the setting at k: "pfc_enable" for "pfc_enable[3]", the field itself
// for all others, "" for the row. To write one, take its value from SonicRows of the whole changed configuration: an
// item that leaves a list changes the field, it does not delete it. A change of "" is none while the row has fields.
func SonicField(k Key) string {
	field, _, _ := sonicItem(k)
	return field
}

// sonicItem splits the field of a list item; for any other key, item is "" and field is k.Field.
func sonicItem(k Key) (field, item string, ok bool) {
	if strings.HasSuffix(k.Field, "]") {
		f, i, found := strings.Cut(k.Field[:len(k.Field)-1], "[")
		if found && sonicIsList(k.Scope, f) {
			return f, i, true
		}
	}
	return k.Field, "", false
}

// sonicIsList reports whether a field is a comma list of which we own single items.
func sonicIsList(table, field string) bool {
	return table == "PORT_QOS_MAP" && (field == "pfc_enable" || field == "pfcwd_sw_enable")
}

// sonicPortTables are the tables whose rows are those of ports and may be of several.
func sonicPortTables() []string {
	return []string{"PORT_QOS_MAP", "QUEUE", "PFC_WD", "BUFFER_PG", "BUFFER_QUEUE"}
}

// sonicSharedRow takes the key of a row of several ports apart: "Ethernet0,Ethernet8|3" is two ports and "|3". ports is
// nil for any other row.
func sonicSharedRow(row string) (ports []string, rest string) {
	if !strings.Contains(row, ",") {
		return nil, ""
	}
	names, queue, found := strings.Cut(row, "|")
	if found {
		rest = "|" + queue
	}
	for port := range strings.SplitSeq(names, ",") {
		if port = strings.TrimSpace(port); !sonicIface(port) {
			return nil, ""
		}
		ports = append(ports, port)
	}
	return ports, rest
}

// sonicArea is the area that an object of a table belongs to; ok is false for tables that hold no shared objects of
// ours.
func sonicArea(table string) (a intent.Area, ok bool) {
	switch table {
	case "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE":
		return intent.AreaMaps, true
	case "SCHEDULER":
		return intent.AreaScheduler, true
	case "WRED_PROFILE":
		return intent.AreaECN, true
	case "BUFFER_PROFILE":
		return intent.AreaBuffer, true
	}
	return 0, false
}

// sonicTarget is the table whose row a field names, "" for fields that name none.
func sonicTarget(table, field string) string {
	switch table {
	case "PORT_QOS_MAP":
		switch field {
		case "dscp_to_tc_map":
			return "DSCP_TO_TC_MAP"
		case "tc_to_queue_map":
			return "TC_TO_QUEUE_MAP"
		case "tc_to_pg_map":
			return "TC_TO_PRIORITY_GROUP_MAP"
		case "pfc_to_queue_map":
			return "MAP_PFC_PRIORITY_TO_QUEUE"
		case "pfc_to_pg_map":
			return "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"
		case "dot1p_to_tc_map":
			return "DOT1P_TO_TC_MAP"
		case "tc_to_dscp_map":
			return "TC_TO_DSCP_MAP"
		case "scheduler":
			return "SCHEDULER"
		}
	case "QUEUE":
		switch field {
		case "scheduler":
			return "SCHEDULER"
		case "wred_profile":
			return "WRED_PROFILE"
		}
	case "BUFFER_PG", "BUFFER_QUEUE":
		if field == "profile" {
			return "BUFFER_PROFILE"
		}
	case "BUFFER_PROFILE":
		if field == "pool" {
			return "BUFFER_POOL"
		}
	case "TUNNEL":
		switch field {
		case "decap_dscp_to_tc_map":
			return "DSCP_TO_TC_MAP"
		case "encap_tc_to_queue_map":
			return "TC_TO_QUEUE_MAP"
		case "decap_tc_to_pg_map":
			return "TC_TO_PRIORITY_GROUP_MAP"
		case "encap_tc_to_dscp_map":
			return "TC_TO_DSCP_MAP"
		}
	}
	return ""
}

// sonicRefs: bindings name their object, but for profiles that the switch makes and binds itself, and for pools, which
// come with the switch and are never written; a port's watchdog follows the port's QoS row and the global row
// (sonic-buildimage#24577).
func sonicRefs(k Key, value string) []Key {
	if t := sonicTarget(k.Scope, k.Field); t != "" && t != "BUFFER_POOL" && value != "" && (k.Scope != "BUFFER_PG" || !sonicMade(value)) {
		return []Key{{t, value, ""}}
	}
	if k.Scope == "PFC_WD" && k.Object != "GLOBAL" {
		return []Key{{"PORT_QOS_MAP", k.Object, ""}, {"PFC_WD", "GLOBAL", ""}}
	}
	return nil
}

// sonicPhase puts the watchdog in a transaction of its own: in one patch with PORT_QOS_MAP it is applied first, and
// finds no lossless priority to watch (sonic-buildimage#24577).
func sonicPhase(c Change) int {
	if c.Key.Scope == "PFC_WD" {
		return 1
	}
	return 0
}

// sonicPoll is the device-wide polling interval of the watchdog. The updater never lets it go.
var sonicPoll = Key{"PFC_WD", "GLOBAL", "POLL_INTERVAL"}

// sonicSame compares by value: numbers as numbers, absent as the default of the YANG model. An absent list is an
// empty one, so that nobody's port flaps for writing "", and an absent cable is none. A priority group that the switch
// made itself counts as absent. A live polling interval that nobody wants any more stays:
// the updater refuses to remove it, and it does nothing alone.
func sonicSame(k Key, a, b *string, _ Facts) bool {
	if k == sonicPoll && a != nil && b == nil || sonicIsList(k.Scope, k.Field) {
		return true
	}
	if _, _, isItem := sonicItem(k); isItem {
		return (a == nil) == (b == nil) // an item is there or not; its value says nothing
	}
	if k.Scope == "BUFFER_PG" && b == nil && a != nil && k.Field == "profile" && sonicMade(*a) && !sonicRange(k.Object) {
		return true
	}
	a, b = sonicOrDefault(k, a), sonicOrDefault(k, b)
	switch {
	case a == nil || b == nil:
		return a == b
	case *a == *b:
		return true
	case sonicTarget(k.Scope, k.Field) != "":
		return false // a name of digits is still a name
	}
	x, errA := strconv.ParseUint(*a, 10, 64)
	y, errB := strconv.ParseUint(*b, 10, 64)
	return errA == nil && errB == nil && x == y
}

// sonicOrDefault is v, or the YANG default of k when v is absent.
func sonicOrDefault(k Key, v *string) *string {
	if v != nil || k.Field == "" {
		return v
	}
	switch k.Scope {
	case "SCHEDULER", "WRED_PROFILE", "BUFFER_PROFILE":
	case "CABLE_LENGTH":
		return ptr(sonicNoCable)
	default:
		return v
	}
	var d string
	switch k.Scope + "." + k.Field {
	case "SCHEDULER.type":
		d = "WRR"
	case "SCHEDULER.weight":
		d = "1"
	case "SCHEDULER.meter_type":
		d = "bytes"
	case "WRED_PROFILE.ecn":
		d = "ecn_none"
	case "WRED_PROFILE.wred_green_enable", "WRED_PROFILE.wred_yellow_enable", "WRED_PROFILE.wred_red_enable":
		d = "false"
	case "BUFFER_PROFILE.xon", "BUFFER_PROFILE.xon_offset":
		d = "0"
	default:
		return nil
	}
	return &d
}
