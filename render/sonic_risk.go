package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// sonicRisk: the updater takes a port down and up again when a row of QUEUE, PORT_QOS_MAP or BUFFER_PG changes on a port
// that is administratively up, and it refuses some changes outright. Edits of profiles and maps in place are hitless.
func sonicRisk(live Config, cs []Change, f Facts) []Risk {
	r := sonicRisks{
		ports: map[string]bool{}, tables: map[string]bool{}, refused: map[string]*Risk{}, live: live,
		ranges: map[string]map[string][][2]int{"QUEUE": sonicRanges(live, "QUEUE", cs), "BUFFER_PG": sonicRanges(live, "BUFFER_PG", cs)},
	}
	voq := live.Get("DEVICE_METADATA", "localhost", "switch_type") == "voq"
	shared := sonicSharedRows(live)
	rows := sonicWholeRows(live, cs)
	for _, c := range cs {
		port, _, _ := strings.Cut(c.Key.Object, "|")
		if slices.Contains(sonicFlapping(), c.Key.Scope) && live.Get("PORT", port, "admin_status") == "up" {
			r.ports[port], r.tables[c.Key.Scope] = true, true
		}
		if ok, why := sonicPermits(c, f, rows); !ok {
			r.refuse(c.Key, port, why+"; config load or redis over SSH would do it, without the updater's checks")
		}
		if row := shared[Key{c.Key.Scope, port, ""}]; row != "" {
			r.refuse(c.Key, port, fmt.Sprintf("one row of %s is for several ports (%s), and which one would count beside a row of the port is not known; "+
				"split it into a row for each port by hand, then plan again", c.Key.Scope, row))
		}
		switch {
		case c.Key.Scope == "QUEUE" && voq:
			r.refuse(c.Key, port, "queues of a VOQ system have other keys, which fabricctl does not write; configure them by hand")
		case (c.Key.Scope == "QUEUE" || c.Key.Scope == "BUFFER_PG") && c.After != nil:
			r.overlap(c.Key)
		}
		r.buffer(c, port)
	}
	r.dangling(live, cs)
	return r.list()
}

// sonicSharedRows finds the ports that share a row with others: table and port to the first such row.
func sonicSharedRows(live Config) map[Key]string {
	shared := map[Key]string{}
	for _, table := range sonicPortTables() {
		from, _ := live.place(Key{Scope: table})
		for _, s := range live[from:] {
			if s.Key.Scope != table {
				break
			}
			ports, _ := sonicSharedRow(s.Key.Object)
			for _, p := range ports {
				if k := (Key{table, p, ""}); shared[k] == "" {
					shared[k] = s.Key.Object
				}
			}
		}
	}
	return shared
}

// sonicFlapping are the tables for whose rows the updater takes a port down and up again.
func sonicFlapping() []string { return []string{"QUEUE", "PORT_QOS_MAP", "BUFFER_PG"} }

// sonicPermits asks the updater's list. It judges single fields, whatever the client sends, but for rows that come or go
// whole.
func sonicPermits(c Change, f Facts, whole map[Key]bool) (ok bool, why string) {
	op := map[Op]string{Add: "add", Modify: "replace", Remove: "remove"}[c.Op]
	field := SonicField(c.Key)
	if whole[c.Key.Whole()] {
		field = ""
	}
	return profiles.GCUPermits(f.Model, f.Version, c.Key.Scope, field, op)
}

// sonicWholeRows are the buffer profiles that are not there before the changes, or not after.
func sonicWholeRows(live Config, cs []Change) map[Key]bool {
	fields := map[Key]int{} // of a row, before and after
	for _, s := range live.scope("BUFFER_PROFILE") {
		fields[s.Key.Whole()]++
	}
	whole, left := map[Key]bool{}, maps.Clone(fields)
	for _, c := range cs {
		if c.Key.Scope != "BUFFER_PROFILE" {
			continue
		}
		if o := c.Key.Whole(); c.Op == Remove {
			left[o]--
			whole[o] = left[o] == 0
		} else if fields[o] == 0 {
			whole[o] = true
		}
	}
	return whole
}

// buffer refuses what a buffer profile of ours cannot stand on.
func (r *sonicRisks) buffer(c Change, port string) {
	if c.Key.Scope != "BUFFER_PROFILE" && c.Key.Scope != "BUFFER_PG" || c.After == nil {
		return
	}
	const alone = "leave xoff, headroom and xon of the class to auto"
	pool := Key{"BUFFER_POOL", sonicPool, "mode"}
	mode, there := r.live.Find(pool)
	switch {
	case r.live.Get("DEVICE_METADATA", "localhost", "buffer_model") == "dynamic":
		r.refuse(c.Key, port, "the switch computes its buffers itself (buffer_model is dynamic), where fabricctl writes no buffer profiles; "+alone)
	case c.Key.Scope == "BUFFER_PROFILE" && !there:
		r.refuse(c.Key, port, "the switch has no "+sonicPool+", so its buffers are configured by other means; "+alone)
	case c.Key.Field == "static_th" && mode == "dynamic", c.Key.Field == "dynamic_th" && mode == "static":
		r.refuse(c.Key, port, fmt.Sprintf("%s of the switch is %s, and takes no %s; say in the model's profile of the platform what it is", sonicPool, mode, c.Key.Field))
	}
}

type sonicRisks struct {
	live    Config
	ports   map[string]bool
	tables  map[string]bool                // for whose rows ports flap
	refused map[string]*Risk               // by reason
	ranges  map[string]map[string][][2]int // by table and port
}

// sonicRanges is the ranges of queues or priority groups that each port has in one row, and keeps.
func sonicRanges(live Config, table string, cs []Change) map[string][][2]int {
	gone := map[string]bool{}
	for _, c := range cs {
		if c.Key.Scope == table && c.Op == Remove {
			gone[c.Key.Object] = true
		}
	}
	ranges := map[string][][2]int{}
	last := ""
	for _, s := range live.scope(table) {
		if s.Key.Object == last || gone[s.Key.Object] {
			continue
		}
		last = s.Key.Object
		if port, lo, hi, ok := sonicQueueRow(last); ok && lo != hi {
			ranges[port] = append(ranges[port], [2]int{lo, hi})
		}
	}
	return ranges
}

func (r *sonicRisks) refuse(k Key, port, why string) {
	x := r.refused[why]
	if x == nil {
		x = &Risk{Class: Refused, Why: why}
		r.refused[why] = x
	}
	x.Keys = append(x.Keys, k)
	if sonicIface(port) && !slices.Contains(x.Ports, port) {
		x.Ports = append(x.Ports, port)
	}
}

// overlap refuses to put a single queue's row beside a range that covers it: which one wins is not defined.
func (r *sonicRisks) overlap(k Key) {
	port, q, hi, ok := sonicQueueRow(k.Object)
	things, thing := "queues", "queue"
	if k.Scope == "BUFFER_PG" {
		things, thing = "priority groups", "group"
	}
	for _, x := range r.ranges[k.Scope][port] {
		if ok && q == hi && x[0] <= q && q <= x[1] {
			r.refuse(k, port, fmt.Sprintf("one row holds %s %d-%d of the port, among them one of the model; "+
				"split it into a row for each %s by hand, then plan again", things, x[0], x[1], thing))
		}
	}
}

// dangling refuses to remove what something else still names.
func (r *sonicRisks) dangling(live Config, cs []Change) {
	if !slices.ContainsFunc(cs, func(c Change) bool { return c.After == nil }) {
		return
	}
	after := SonicRows(Apply(live, cs))
	gone := map[Key]Key{} // object to the change that ends it
	for _, c := range cs {
		if _, left := after[c.Key.Scope][c.Key.Object]; c.After == nil && !left {
			gone[c.Key.Whole()] = c.Key
		}
	}
	if len(gone) == 0 {
		return
	}
	for table, rows := range after {
		for row, fields := range rows {
			for field, value := range fields {
				for _, ref := range sonicRefs(Key{table, row, field}, value) {
					if k, ok := gone[ref]; ok && sonicTarget(table, field) != "" {
						port, _, _ := strings.Cut(row, "|")
						r.refuse(k, port, fmt.Sprintf("%s %s is to go, but %s, which the model does not own, still uses it", ref.Scope, ref.Object, table))
					}
				}
			}
		}
	}
}

// list is the worst first, each with sorted ports and keys.
func (r *sonicRisks) list() []Risk {
	var out []Risk
	for _, x := range r.refused {
		slices.SortFunc(x.Ports, intent.CompareNames)
		slices.SortFunc(x.Keys, Key.Compare)
		x.Keys = slices.Compact(x.Keys)
		out = append(out, *x)
	}
	if len(r.ports) > 0 {
		rows := "QUEUE or PORT_QOS_MAP"
		if r.tables["BUFFER_PG"] {
			rows = "QUEUE, PORT_QOS_MAP or BUFFER_PG"
		}
		out = append(out, Risk{
			Class: Flap, Ports: slices.SortedFunc(maps.Keys(r.ports), intent.CompareNames),
			Why: "the generic config updater takes a port down and up again to change its " + rows + " row",
		})
	}
	slices.SortFunc(out, func(a, b Risk) int { return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(a.Why, b.Why)) })
	return out
}
