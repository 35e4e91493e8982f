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

// sonicRisk: the updater takes a port down and up again when a row of QUEUE or PORT_QOS_MAP changes on a port that is
// administratively up, and it refuses some changes outright. Edits of profiles and maps in place are hitless.
func sonicRisk(live Config, cs []Change, f Facts) []Risk {
	r := sonicRisks{ports: map[string]bool{}, refused: map[string]*Risk{}, ranges: sonicRanges(live)}
	voq := live.Get("DEVICE_METADATA", "localhost", "switch_type") == "voq"
	shared := sonicSharedRows(live)
	for _, c := range cs {
		port, _, _ := strings.Cut(c.Key.Object, "|")
		if (c.Key.Scope == "QUEUE" || c.Key.Scope == "PORT_QOS_MAP") && live.Get("PORT", port, "admin_status") == "up" {
			r.ports[port] = true
		}
		if ok, why := sonicPermits(c, f); !ok {
			r.refuse(c.Key, port, why+"; config load or redis over SSH would do it, without the updater's checks")
		}
		if row := shared[Key{c.Key.Scope, port, ""}]; row != "" {
			r.refuse(c.Key, port, fmt.Sprintf("one row of %s is for several ports (%s), and which one would count beside a row of the port is not known; "+
				"split it into a row for each port by hand, then plan again", c.Key.Scope, row))
		}
		switch {
		case c.Key.Scope == "QUEUE" && voq:
			r.refuse(c.Key, port, "queues of a VOQ system have other keys, which fabricctl does not write; configure them by hand")
		case c.Key.Scope == "QUEUE" && c.After != nil:
			r.overlap(c.Key)
		}
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

// sonicPermits asks the updater's list. It judges single fields, whatever the client sends.
func sonicPermits(c Change, f Facts) (ok bool, why string) {
	op := map[Op]string{Add: "add", Modify: "replace", Remove: "remove"}[c.Op]
	return profiles.GCUPermits(f.Model, f.Version, c.Key.Scope, SonicField(c.Key), op)
}

type sonicRisks struct {
	ports   map[string]bool
	refused map[string]*Risk // by reason
	ranges  map[string][][2]int
}

// sonicRanges is the ranges of queues that each port has in one row.
func sonicRanges(live Config) map[string][][2]int {
	ranges := map[string][][2]int{}
	from, _ := live.place(Key{Scope: "QUEUE"})
	last := ""
	for _, s := range live[from:] {
		if s.Key.Scope != "QUEUE" {
			break
		}
		if s.Key.Object == last {
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
	port, q, _, ok := sonicQueueRow(k.Object)
	for _, x := range r.ranges[port] {
		if ok && x[0] <= q && q <= x[1] {
			r.refuse(k, port, fmt.Sprintf("one row holds queues %d-%d of the port, among them one of the model; "+
				"split it into a row for each queue by hand, then plan again", x[0], x[1]))
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
		out = append(out, Risk{
			Class: Flap, Ports: slices.SortedFunc(maps.Keys(r.ports), intent.CompareNames),
			Why: "the generic config updater takes a port down and up again to change its QUEUE or PORT_QOS_MAP row",
		})
	}
	slices.SortFunc(out, func(a, b Risk) int { return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(a.Why, b.Why)) })
	return out
}
