package sonic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/model/observe"
)

// COUNTERS_DB as sonic-gnmi serves it with the database as the prefix's target, after its sources (virtual_db.go and
// db_client.go of 2025): objects are rows by number (oid), with tables that lead from names to numbers; a few virtual
// paths take names instead. Where such a path asks for all ports, it answers with the ports' aliases, not their names.

// stat is how SONiC counts what a canonical name stands for.
type stat struct {
	name  string // canonical, "*" for the priority
	field string // "*" likewise
	unit  uint64 // how many of ours one of SONiC's is; 0 = 1
}

// The objects that count, by what their rows hold. Names of fields are SAI's and pfcwd's.
func portStats() []stat {
	return []stat{
		{name: "pfc.rx.*", field: "SAI_PORT_STAT_PFC_*_RX_PKTS"},
		{name: "pfc.tx.*", field: "SAI_PORT_STAT_PFC_*_TX_PKTS"},
		{name: "pfc.paused_ns.*", field: "SAI_PORT_STAT_PFC_*_RX_PAUSE_DURATION_US", unit: 1000},
		{name: "pfc.pausing_ns.*", field: "SAI_PORT_STAT_PFC_*_TX_PAUSE_DURATION_US", unit: 1000},
		{name: "link-pause.rx", field: "SAI_PORT_STAT_PAUSE_RX_PKTS"},
		{name: "link-pause.tx", field: "SAI_PORT_STAT_PAUSE_TX_PKTS"},
		{name: "port.rx.bytes", field: "SAI_PORT_STAT_IF_IN_OCTETS"},
		{name: "port.tx.bytes", field: "SAI_PORT_STAT_IF_OUT_OCTETS"},
		{name: "port.drop.in", field: "SAI_PORT_STAT_IF_IN_DISCARDS"},
		{name: "port.drop.out", field: "SAI_PORT_STAT_IF_OUT_DISCARDS"},
		{name: "port.rx.packets", field: "SAI_PORT_STAT_IF_IN_UCAST_PKTS"},
		{name: "port.tx.packets", field: "SAI_PORT_STAT_IF_OUT_UCAST_PKTS"},
		{name: "port.errors", field: "SAI_PORT_STAT_IF_IN_ERRORS"},
		{name: "port.oversize", field: "SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS"},
	}
}

func queueStats() []stat {
	return []stat{
		{name: "tx.packets.*", field: "SAI_QUEUE_STAT_PACKETS"},
		{name: "tx.bytes.*", field: "SAI_QUEUE_STAT_BYTES"},
		{name: "drop.out.*", field: "SAI_QUEUE_STAT_DROPPED_PACKETS"},
		{name: "ecn.marked.*", field: "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"},
		{name: "watchdog.stuck.*", field: "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"},
		{name: "watchdog.freed.*", field: "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"},
		{name: "watchdog.dropped.*", field: "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS"},
	}
}

func groupStats() []stat {
	return []stat{{name: "drop.in.*", field: "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"}}
}

func queueMarks() []stat {
	return []stat{{name: "watermark.queue.*", field: "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"}}
}

func groupMarks() []stat {
	return []stat{
		{name: "watermark.group.*", field: "SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES"},
		{name: "watermark.room.*", field: "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES"},
	}
}

// row is what is counted of one object: of a port all priorities, else of one. The caller holds the lock.
func (s *Switch) row(stats []stat, port string, only int) map[string]any {
	out := map[string]any{}
	for _, st := range stats {
		for p := range 8 {
			if only >= 0 && p != only {
				continue
			}
			digit := strconv.Itoa(p)
			if v, ok := s.Value(port, observe.Name(strings.Replace(st.name, "*", digit, 1))); ok {
				out[strings.Replace(st.field, "*", digit, 1)] = strconv.FormatUint(v/max(st.unit, 1), 10)
			}
		}
	}
	return out
}

// redisKeys is COUNTERS_DB: hashes by key. The caller holds the lock.
func (s *Switch) redisKeys() map[string]map[string]any {
	keys := map[string]map[string]any{}
	put := func(key string, row map[string]any) {
		if len(row) > 0 {
			keys[key] = row
		}
	}
	ports, queues, groups := map[string]any{}, map[string]any{}, map[string]any{}
	for i, p := range slices.Sorted(maps.Keys(s.running["PORT"])) {
		ports[p] = fmt.Sprintf("oid:0x1%012x", i+2)
		put(fmt.Sprint("COUNTERS:", ports[p]), s.row(portStats(), p, -1))
		for q := range 8 {
			name := fmt.Sprintf("%s:%d", p, q)
			queues[name], groups[name] = fmt.Sprintf("oid:0x15%012x", i*8+q), fmt.Sprintf("oid:0x1a%012x", i*8+q)
			put(fmt.Sprint("COUNTERS:", queues[name]), s.row(queueStats(), p, q))
			put(fmt.Sprint("COUNTERS:", groups[name]), s.row(groupStats(), p, q))
			for _, since := range []string{"USER_WATERMARKS:", "PERSISTENT_WATERMARKS:", "PERIODIC_WATERMARKS:"} {
				put(fmt.Sprint(since, queues[name]), s.row(queueMarks(), p, q))
				put(fmt.Sprint(since, groups[name]), s.row(groupMarks(), p, q))
			}
		}
	}
	put("COUNTERS_PORT_NAME_MAP", ports)
	put("COUNTERS_QUEUE_NAME_MAP", queues)
	put("COUNTERS_PG_NAME_MAP", groups)
	return keys
}

// counted finds what a path below COUNTERS_DB names. The caller holds the lock.
func (s *Switch) counted(path []string, all func() map[string]map[string]any) (any, error) {
	if s.faults.Counters != nil {
		if v := s.faults.Counters(path); v != nil {
			return v, nil
		}
	}
	keys := all()
	if len(path) > 1 && len(path) < 4 && strings.HasPrefix(path[1], "Ethernet") && (path[0] == "COUNTERS" || path[0] == "PERIODIC_WATERMARKS") {
		return s.virtual(keys, path)
	}
	missing := status.Error(codes.NotFound, "No valid entry found on "+strings.Join(path, ":")+" with key "+strings.Join(path, ":"))
	whole := strings.Join(path, ":")
	switch row, ok := keys[whole]; {
	case ok:
		return row, nil
	case len(path) == 1 && path[0] == "COUNTERS":
		rows := map[string]any{}
		for k, row := range keys {
			if oid, ok := strings.CutPrefix(k, "COUNTERS:"); ok {
				rows[oid] = row
			}
		}
		return rows, nil
	case len(path) == 1: // a table that is not there is empty
		return map[string]any{}, nil
	case len(path) == 0:
		return nil, missing
	}
	last := len(path) - 1
	if v, ok := keys[strings.Join(path[:last], ":")][path[last]]; ok {
		return v, nil
	}
	return nil, missing
}

// virtual is a path with the name of a port, or Ethernet* for all of them.
func (s *Switch) virtual(keys map[string]map[string]any, path []string) (any, error) {
	table, port, all := path[0], path[1], strings.HasSuffix(path[1], "*")
	if _, ok := s.running["PORT"][port]; !ok && !all {
		return nil, status.Errorf(codes.NotFound, "%s not a valid sonic interface. Vendor alias is %[1]s", port)
	}
	shown := func(name string) string { // an object's name with the port's alias
		p, rest, _ := strings.Cut(name, ":")
		if alias := s.running.Get("PORT", p, "alias"); all && alias != "" {
			p = alias
		}
		return strings.TrimSuffix(p+":"+rest, ":")
	}
	objects := func(nameMap string, keep func(name string, row map[string]any) bool) any {
		out := map[string]any{}
		for name, oid := range keys[nameMap] {
			of, _, _ := strings.Cut(name, ":")
			row := keys[fmt.Sprint(table, ":", oid)]
			if row == nil {
				row = map[string]any{}
			}
			if (all || of == port) && keep(name, row) {
				out[shown(name)] = row
			}
		}
		return out
	}
	every := func(string, map[string]any) bool { return true }
	switch {
	case table == "PERIODIC_WATERMARKS" && len(path) == 3 && path[2] == "PriorityGroups":
		return objects("COUNTERS_PG_NAME_MAP", every), nil
	case table != "COUNTERS":
	case len(path) == 2 && all:
		return objects("COUNTERS_PORT_NAME_MAP", every), nil
	case len(path) == 2:
		return s.row(portStats(), port, -1), nil
	case path[2] == "Queues":
		return objects("COUNTERS_QUEUE_NAME_MAP", every), nil
	case path[2] == "Pfcwd":
		return objects("COUNTERS_QUEUE_NAME_MAP", func(name string, row map[string]any) bool {
			_, watched := s.running["PFC_WD"][strings.SplitN(name, ":", 2)[0]]
			return watched && row["PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"] != nil
		}), nil
	case all:
		out := map[string]any{}
		for name, oid := range keys["COUNTERS_PORT_NAME_MAP"] {
			if v, ok := keys[fmt.Sprint("COUNTERS:", oid)][path[2]]; ok {
				out[shown(name)] = map[string]any{path[2]: v}
			}
		}
		return out, nil
	default:
		if v, ok := keys[fmt.Sprint("COUNTERS:", keys["COUNTERS_PORT_NAME_MAP"][port])][path[2]]; ok {
			return v, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "No valid entry found on %s", strings.Join(path, ":"))
}

// isCounters reports whether a path is below COUNTERS_DB by the prefix's target, and gives the elements after it. By
// origin sonic-db the names of ports lead nowhere (measured: NotFound).
func isCounters(prefix, p *gpb.Path) (path []string, ok bool) {
	if prefix.GetTarget() != "COUNTERS_DB" || prefix.GetOrigin() != "" || p.GetOrigin() != "" {
		return nil, false
	}
	return names(prefix, p), true
}
