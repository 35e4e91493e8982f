package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// sonicLeft finds the queues and priority groups of classes that left the model or changed their priority: their rows bind
// a scheduler, a WRED profile or a buffer profile of this fabric. These bindings go, and with them PFC and its watchdog for the priority, which were
// decided by the class as well (in the model a class has the queue of its number). Another priority that is lossless and that no class names may be anybody's: it is
// said, and stays.
func sonicLeft(d intent.Device, f Facts, live Config) ([]Key, diag.List) {
	own, prefix := sonicOwns(d, f), fabricPrefix(sonicNameLimit, sonicNameRune, d.Fabric)
	bound, maps := slices.Concat(live.scope("BUFFER_PG"), live.scope("QUEUE")), live.scope("PORT_QOS_MAP")
	var keys []Key
	stay := map[int][]string{} // priority to interfaces
	for i := range d.Ports {
		p := &d.Ports[i]
		if !sonicModelled(p) {
			continue
		}
		for prio, class := range d.Classes {
			bindings, ours := sonicLeftQueue(p, prio, own, prefix, bound)
			keys = append(keys, bindings...)
			if class != "" {
				continue
			}
			on := func(field string, a intent.Area) bool {
				k := Key{"PORT_QOS_MAP", p.Iface, field + "[" + strconv.Itoa(prio) + "]"}
				_, found := maps.Find(k)
				if found = found && p.Manage[a] == intent.Own; found && ours {
					keys = append(keys, k)
				}
				return found
			}
			if on("pfc_enable", intent.AreaPFC) && !ours {
				stay[prio] = append(stay[prio], p.Iface)
			}
			on("pfcwd_sw_enable", intent.AreaWatchdog)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	var l diag.List
	for prio, ports := range stay {
		l.Add(diag.Finding{
			Rule: "stays-lossless", Severity: diag.Info, At: d.Name,
			Msg:  fmt.Sprintf("priority %d is lossless on %s; no class of the model has it, and it stays so", prio, strings.Join(sortedPorts(ports), ", ")),
			Hint: fmt.Sprintf("remove %d from pfc_enable by hand if nobody needs it, or name a class with it", prio),
		})
	}
	return slices.Compact(keys), l.Sort()
}

// sonicLeftQueue is what the rows of a queue and of the priority group of its number bind and no class asks for any more,
// in the areas that are owned; ours reports whether they bind anything with the prefix of this fabric. live is the rows of
// queues and groups.
func sonicLeftQueue(p *intent.Port, queue int, own func(Key) bool, prefix string, live Config) (keys []Key, ours bool) {
	row := p.Iface + "|" + strconv.Itoa(queue)
	for _, k := range []Key{{"QUEUE", row, "scheduler"}, {"QUEUE", row, "wred_profile"}, {"BUFFER_PG", row, "profile"}} {
		if !hasPrefix(live.Get(k.Scope, k.Object, k.Field), prefix) || own(k) {
			continue
		}
		ours = true
		if a, _ := sonicArea(sonicTarget(k.Scope, k.Field)); p.Manage[a] == intent.Own {
			keys = append(keys, k, k.Whole())
		}
	}
	return keys, ours
}
