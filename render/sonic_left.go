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
	maps := live.scope("PORT_QOS_MAP")
	var bound Config // to what is ours, and no class asks for it any more: mostly nothing
	for _, rows := range []Config{live.scope("BUFFER_PG"), live.scope("QUEUE")} {
		for i := range rows {
			if hasPrefix(rows[i].Value, prefix) && !own(rows[i].Key) {
				bound = append(bound, rows[i])
			}
		}
	}
	var keys []Key
	stay := map[int][]string{} // priority to interfaces
	for i := range d.Ports {
		p := &d.Ports[i]
		if !sonicModelled(p) {
			continue
		}
		for prio, class := range d.Classes {
			bindings, ours := sonicLeftQueue(p, prio, bound)
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
	ranges, l := sonicLeftRanges(d, live)
	l.Add(sonicAsymmetric(d, live)...)
	keys = append(keys, ranges...)
	slices.SortFunc(keys, Key.Compare)
	for prio, ports := range stay {
		l.Add(diag.Finding{
			Rule: "stays-lossless", Severity: diag.Info, At: d.Name,
			Msg:  fmt.Sprintf("priority %d is lossless on %s; no class of the model has it, and it stays so", prio, strings.Join(sortedPorts(ports), ", ")),
			Hint: fmt.Sprintf("remove %d from pfc_enable by hand if nobody needs it, or name a class with it", prio),
		})
	}
	return slices.Compact(keys), l.Sort()
}

// sonicAsymmetric says which ports obey pause of every priority: with pfc_asym, orchagent has a port receive pause for all
// eight and send it for those of pfc_enable alone (PortsOrch::setPortPfcAsym). Nothing of the model asks for that, and taking the
// field away would leave the port as it is: only "off" ends it.
func sonicAsymmetric(d intent.Device, live Config) diag.List {
	var ports []string
	for i := range d.Ports {
		p := &d.Ports[i]
		if sonicModelled(p) && p.Manage[intent.AreaPFC] == intent.Own && live.Get("PORT", p.Iface, "pfc_asym") == "on" {
			ports = append(ports, p.Iface)
		}
	}
	if len(ports) == 0 {
		return nil
	}
	return diag.List{{
		Rule: "asymmetric-pfc", Severity: diag.Warning, At: d.Name,
		Msg:  fmt.Sprintf("pfc_asym is on for %s: pause of any priority stops traffic there, not only pause of lossless ones, and it stays so", strings.Join(sortedPorts(ports), ", ")),
		Hint: `set pfc_asym to "off" by hand in these rows of PORT; without the field the port would stay as it is`,
	}}
}

// sonicLeftQueue is what the rows of a queue and of the priority group of its number bind, of what is bound to something
// of this fabric and no class asks for, in the areas that are owned; ours reports whether they bind anything of it.
func sonicLeftQueue(p *intent.Port, queue int, bound Config) (keys []Key, ours bool) {
	if len(bound) == 0 {
		return nil, false
	}
	row := p.Iface + "|" + strconv.Itoa(queue)
	for _, k := range []Key{{"QUEUE", row, "scheduler"}, {"QUEUE", row, "wred_profile"}, {"BUFFER_PG", row, "profile"}} {
		if _, found := bound.Find(k); !found {
			continue
		}
		ours = true
		if a, _ := sonicArea(sonicTarget(k.Scope, k.Field)); p.Manage[a] == intent.Own {
			keys = append(keys, k, k.Whole())
		}
	}
	return keys, ours
}

// sonicLeftRanges finds the rows that bind one profile to several priority groups, where the model has the switch make
// their buffers itself: beside such a row it does not. A row goes when all its groups are the model's, and stays, which is
// said, when one is not.
func sonicLeftRanges(d intent.Device, live Config) (keys []Key, l diag.List) {
	owned := map[string]sonicOwned{}
	for i := range d.Ports {
		if p := &d.Ports[i]; sonicModelled(p) {
			owned[p.Iface] = owned[p.Iface].and(sonicOwnedBy(&d, p))
		}
	}
	stay := map[string][]string{} // row without its port to interfaces
	for _, s := range live.scope("BUFFER_PG") {
		port, lo, hi, ok := sonicQueueRow(s.Key.Object)
		o := owned[port]
		if row := sonicGroups(lo, hi); !ok || lo == hi || s.Key.Field != "profile" || sonicMade(s.Value) || o.groups&^o.ours&row == 0 {
			continue
		} else if row&^(o.groups|o.free) == 0 {
			keys = append(keys, s.Key)
		} else {
			at := strconv.Itoa(lo) + "-" + strconv.Itoa(hi)
			stay[at] = append(stay[at], port)
		}
	}
	for row, ports := range stay {
		l.Add(diag.Finding{
			Rule: "stays-bound", Severity: diag.Warning, At: d.Name,
			Msg:  fmt.Sprintf("one row of BUFFER_PG binds a profile to priority groups %s on %s, and the model has a class for some of them alone: it stays", row, strings.Join(sortedPorts(ports), ", ")),
			Hint: "split it into a row for each group by hand, or name classes with all of these priorities",
		})
	}
	return keys, l
}
