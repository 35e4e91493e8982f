package sonic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// apply does one step of a patch, as RFC 6902 has it: the parent of what is added must exist, and what is removed or
// replaced must exist itself.
func apply(db DB, o operation) error {
	missing := fmt.Errorf("can't %s /%s: no such parent or member", o.op, strings.Join(o.at, "/"))
	if len(o.at) > 3 {
		return missing
	}
	table := db[o.at[0]]
	var row map[string]any
	if len(o.at) > 1 {
		if table == nil {
			return missing
		}
		row = table[o.at[1]]
	}
	if len(o.at) > 2 && row == nil {
		return missing
	}
	if o.op != "add" {
		exists := table != nil
		if len(o.at) == 2 {
			exists = row != nil
		} else if len(o.at) == 3 {
			_, exists = row[o.at[2]]
		}
		if !exists {
			return missing
		}
	}
	switch v := o.value.(type) {
	case nil:
		switch len(o.at) {
		case 1:
			delete(db, o.at[0])
		case 2:
			delete(table, o.at[1])
		case 3:
			delete(row, o.at[2])
		}
	case map[string]map[string]any:
		db[o.at[0]] = v
	case map[string]any:
		table[o.at[1]] = v
	default:
		row[o.at[2]] = v
	}
	return nil
}

// check is what GCU and the YANG models refuse of a change from old to next. The reason is for the log; the client
// is not told.
func (s *Switch) check(old, next DB) error {
	var errs []error
	for _, table := range slices.Sorted(maps.Keys(next)) {
		if len(next[table]) == 0 {
			errs = append(errs, fmt.Errorf("table %s is empty", table))
		}
	}
	errs = append(errs, dangling(next)...)
	errs = append(errs, invalid(next)...)
	errs = append(errs, s.forbidden(old, next)...)
	return errors.Join(errs...)
}

// reference is a leafref of the YANG models: a field, or with field "" the first part of the row key, that names a
// row of another table.
type reference struct {
	table, field, target string
	except               string
}

func references() []reference {
	return []reference{
		{"QUEUE", "", "PORT", "CPU"},
		{"QUEUE", "scheduler", "SCHEDULER", ""},
		{"QUEUE", "wred_profile", "WRED_PROFILE", ""},
		{"PORT_QOS_MAP", "", "PORT", "global"},
		{"PORT_QOS_MAP", "dscp_to_tc_map", "DSCP_TO_TC_MAP", ""},
		{"PORT_QOS_MAP", "dot1p_to_tc_map", "DOT1P_TO_TC_MAP", ""},
		{"PORT_QOS_MAP", "tc_to_queue_map", "TC_TO_QUEUE_MAP", ""},
		{"PORT_QOS_MAP", "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", ""},
		{"PORT_QOS_MAP", "tc_to_dscp_map", "TC_TO_DSCP_MAP", ""},
		{"PORT_QOS_MAP", "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE", ""},
		{"PORT_QOS_MAP", "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", ""},
		{"PORT_QOS_MAP", "scheduler", "SCHEDULER", ""},
		{"PFC_WD", "", "PORT", "GLOBAL"},
		{"BUFFER_PG", "", "PORT", ""},
		{"BUFFER_PG", "profile", "BUFFER_PROFILE", "NULL"},
		{"BUFFER_QUEUE", "", "PORT", ""},
		{"BUFFER_QUEUE", "profile", "BUFFER_PROFILE", ""},
		{"BUFFER_PROFILE", "pool", "BUFFER_POOL", ""},
		{"BUFFER_PORT_INGRESS_PROFILE_LIST", "", "PORT", ""},
		{"BUFFER_PORT_INGRESS_PROFILE_LIST", "profile_list", "BUFFER_PROFILE", ""},
		{"BUFFER_PORT_EGRESS_PROFILE_LIST", "", "PORT", ""},
		{"BUFFER_PORT_EGRESS_PROFILE_LIST", "profile_list", "BUFFER_PROFILE", ""},
	}
}

// dangling lists references to rows that do not exist. Rows with more than two key parts are those of chassis and are
// left alone.
func dangling(db DB) []error {
	var errs []error
	for _, r := range references() {
		for _, key := range slices.Sorted(maps.Keys(db[r.table])) {
			parts := strings.Split(key, "|")
			named := parts[:1]
			if r.field != "" {
				named = items(db[r.table][key][r.field])
			}
			for _, n := range named {
				if _, ok := db[r.target][n]; !ok && n != r.except && len(parts) <= 2 {
					errs = append(errs, fmt.Errorf("%s|%s %s points at %s|%s, which does not exist", r.table, key, r.field, r.target, n))
				}
			}
		}
	}
	for key, lengths := range db["CABLE_LENGTH"] {
		for port := range lengths {
			if _, ok := db["PORT"][port]; !ok {
				errs = append(errs, fmt.Errorf("CABLE_LENGTH|%s names port %s, which does not exist", key, port))
			}
		}
	}
	return errs
}

// limit is the range of a number in the YANG models.
type limit struct {
	table, field string
	low, high    int64
}

func limits() []limit {
	return []limit{
		{"PORT", "mtu", 68, 9216},
		{"PORT", "speed", 1, 1600000},
		{"SCHEDULER", "weight", 1, 100},
		{"WRED_PROFILE", "green_drop_probability", 0, 100},
		{"WRED_PROFILE", "yellow_drop_probability", 0, 100},
		{"WRED_PROFILE", "red_drop_probability", 0, 100},
		{"PFC_WD", "POLL_INTERVAL", 100, 1000},
		{"PFC_WD", "detection_time", 100, 5000},
		{"PFC_WD", "restoration_time", 100, 60000},
		{"BUFFER_PROFILE", "dynamic_th", -8, 7},
	}
}

// invalid lists values that the YANG models refuse: ranges, thresholds that cross, times below the polling interval.
func invalid(db DB) []error {
	var errs []error
	number := func(table, key, field string) (int64, bool) {
		v := db.Get(table, key, field)
		n, err := strconv.ParseInt(v, 10, 64)
		if v != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s|%s %s %q is not a number", table, key, field, v))
		}
		return n, v != "" && err == nil
	}
	for _, l := range limits() {
		for key := range db[l.table] {
			if n, ok := number(l.table, key, l.field); ok && (n < l.low || n > l.high) {
				errs = append(errs, fmt.Errorf("%s|%s %s %d is not within %d..%d", l.table, key, l.field, n, l.low, l.high))
			}
		}
	}
	for key := range db["WRED_PROFILE"] {
		for _, colour := range []string{"green", "yellow", "red"} {
			low, hasLow := number("WRED_PROFILE", key, colour+"_min_threshold")
			high, hasHigh := number("WRED_PROFILE", key, colour+"_max_threshold")
			if hasLow && hasHigh && low > high {
				errs = append(errs, fmt.Errorf("WRED_PROFILE|%s %s_min_threshold %d is above %s_max_threshold %d", key, colour, low, colour, high))
			}
		}
	}
	poll, hasPoll := number("PFC_WD", "GLOBAL", "POLL_INTERVAL")
	for key := range db["PFC_WD"] {
		for _, field := range []string{"detection_time", "restoration_time"} {
			if n, ok := number("PFC_WD", key, field); ok && hasPoll && n < poll {
				errs = append(errs, fmt.Errorf("PFC_WD|%s %s %d is below POLL_INTERVAL %d", key, field, n, poll))
			}
		}
	}
	for key, row := range db["PORT_QOS_MAP"] {
		for _, field := range []string{"pfc_enable", "pfcwd_sw_enable"} {
			for _, p := range items(row[field]) {
				if n, err := strconv.Atoi(p); row[field] != "" && (err != nil || n < 0 || n > 7 || len(p) != 1) {
					errs = append(errs, fmt.Errorf("PORT_QOS_MAP|%s %s has %q, not a priority", key, field, p))
				}
			}
		}
	}
	return errs
}

// forbidden lists what the updater's field validators do not permit, judged on the difference of the two
// configurations and not on the patch (gcu_field_operation_validators.conf.json).
func (s *Switch) forbidden(old, next DB) []error {
	var errs []error
	if !maps.EqualFunc(old["BUFFER_POOL"], next["BUFFER_POOL"], equalRow) {
		errs = append(errs, errors.New("modification of BUFFER_POOL is illegal"))
	}
	sku := next.Get("DEVICE_METADATA", "localhost", "hwsku")
	known := s.options.SKUs == nil || slices.Contains(s.options.SKUs, sku)
	permitted := []string{"dynamic_th", "xoff", "packet_discard_action"}
	for key, was := range old["BUFFER_PROFILE"] {
		now, ok := next["BUFFER_PROFILE"][key]
		if !ok {
			continue // a whole row may go, and come
		}
		for field := range mergedKeys(was, now) {
			if !slices.Equal(items(was[field]), items(now[field])) && (!known || !slices.Contains(permitted, field)) {
				errs = append(errs, fmt.Errorf("modification of BUFFER_PROFILE|%s %s is illegal on %s", key, field, sku))
			}
		}
	}
	if !known && !maps.EqualFunc(old["PFC_WD"], next["PFC_WD"], equalRow) {
		errs = append(errs, fmt.Errorf("modification of PFC_WD is illegal on %s", sku))
	}
	if old.Get("PFC_WD", "GLOBAL", "POLL_INTERVAL") != "" && next.Get("PFC_WD", "GLOBAL", "POLL_INTERVAL") == "" {
		errs = append(errs, errors.New("removal of PFC_WD|GLOBAL or its POLL_INTERVAL is illegal"))
	}
	for port, was := range old["PORT"] {
		if now, ok := next["PORT"][port]; ok && !slices.Equal(items(was["lanes"]), items(now["lanes"])) {
			errs = append(errs, fmt.Errorf("PORT|%s lanes is create-only", port))
		}
	}
	return errs
}

// flapping lists the ports that GCU takes down for a change: those that are up and have a row of the tables that it
// treats so added, removed or changed.
func flapping(old, next DB) []string {
	ports := map[string]bool{}
	for _, table := range []string{
		"QUEUE", "PORT_QOS_MAP", "BUFFER_PG", "BUFFER_QUEUE", "BUFFER_PORT_INGRESS_PROFILE_LIST", "BUFFER_PORT_EGRESS_PROFILE_LIST",
	} {
		for key := range mergedKeys(old[table], next[table]) {
			was, had := old[table][key]
			now, has := next[table][key]
			if had != has || !equalRow(was, now) {
				ports[strings.Split(key, "|")[0]] = true
			}
		}
	}
	maps.DeleteFunc(ports, func(port string, _ bool) bool { return old.Get("PORT", port, "admin_status") != "up" })
	return slices.Sorted(maps.Keys(ports))
}

func mergedKeys[V any](a, b map[string]V) map[string]bool {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
