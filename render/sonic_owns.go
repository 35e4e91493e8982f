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
	ports := make(map[string]sonicOwned, len(d.Ports))
	var areas intent.Areas
	for i := range d.Ports {
		if p := &d.Ports[i]; sonicModelled(p) {
			areas |= p.Manage.Owned()
			ports[p.Iface] = ports[p.Iface].and(sonicOwnedBy(&d, p))
		}
	}
	adopted := map[Key]bool{}
	for object, live := range f.Names {
		adopted[Key{object.Scope, live, ""}] = true
		for _, field := range sonicFields(&d, object.Scope) {
			adopted[Key{object.Scope, live, field}] = true
		}
	}
	ours := fabricPrefix(sonicNameLimit, sonicNameRune, d.Fabric)
	return func(k Key) bool {
		area, shared := sonicArea(k.Scope)
		switch {
		case k == sonicPoll:
			return areas.Has(intent.AreaWatchdog) // not the row: the updater never lets it go
		case !shared:
			return sonicOwnsRow(&d, ports, k)
		case !areas.Has(area):
			return false
		}
		return hasPrefix(k.Object, ours) || adopted[k]
	}
}

// sonicOwned is what the model owns of a port's rows.
type sonicOwned struct {
	areas      intent.Areas
	sched, ecn uint64 // queues of named classes whose scheduler and WRED profile it owns, as bits
	cable      bool   // it owns the cable that the switch is told
	groups     uint64 // priority groups of lossless classes, as bits
	ours, free uint64 // of these the ones that get a profile of ours; groups of classes that ask for none
}

// and is what two ports own that the model gives one interface.
func (o sonicOwned) and(p sonicOwned) sonicOwned {
	return sonicOwned{o.areas | p.areas, o.sched | p.sched, o.ecn | p.ecn, o.cable || p.cable, o.groups | p.groups, o.ours | p.ours, o.free | p.free}
}

func sonicOwnedBy(d *intent.Device, p *intent.Port) sonicOwned {
	o := sonicOwned{areas: p.Manage.Owned()}
	pol := d.PolicyOf(p)
	o.cable = o.areas.Has(intent.AreaBuffer) && pol.Known.Has(intent.AreaBuffer)
	for tc, class := range d.Classes {
		if class == "" {
			continue
		}
		queue := uint64(1) << sonicQueueOf(pol, tc)
		if o.areas.Has(intent.AreaScheduler) {
			o.sched |= queue
		}
		if o.areas.Has(intent.AreaECN) {
			o.ecn |= queue
		}
		if !o.cable {
			continue
		}
		group := uint64(1) << sonicGroupOf(pol, tc)
		switch q := pol.Queues[tc]; {
		case !q.Lossless:
			o.free |= uint64(1) << tc
		case q.Buffer.On && !q.Buffer.Device:
			o.groups, o.ours = o.groups|group, o.ours|group
		default:
			o.groups |= group
		}
	}
	o.free &^= o.groups | 1 // group 0 is that of all lossy traffic
	return o
}

// group reports whether the row of priority groups lo to hi is owned: that of one lossless class, or a range of nothing
// but groups of ours and groups that nobody asks for, since beside it the rows of ours would mean two things.
func (o sonicOwned) group(lo, hi int) bool {
	row := sonicGroups(lo, hi)
	if lo == hi {
		return o.groups&row != 0
	}
	return o.ours&row != 0 && row&^(o.ours|o.free) == 0
}

// sonicGroups is the groups lo to hi as bits.
func sonicGroups(lo, hi int) uint64 { return uint64(1)<<(hi+1) - uint64(1)<<lo }

// sonicOwnsRow reports whether a key of a port's own rows is owned. A row as such is, when any of its fields is.
func sonicOwnsRow(d *intent.Device, ports map[string]sonicOwned, k Key) bool {
	switch k.Scope {
	case "PORT", "PORT_QOS_MAP", "PFC_WD":
		areas := ports[k.Object].areas
		if k.Field == "" {
			return areas&sonicRowAreas(k.Scope) != 0
		}
		a, ok := sonicFieldArea(d, k)
		return ok && areas.Has(a)
	case "CABLE_LENGTH":
		return ports[k.Field].cable
	case "BUFFER_PG":
		port, lo, hi, ok := sonicQueueRow(k.Object)
		return ok && (k.Field == "profile" || k.Field == "") && ports[port].group(lo, hi)
	case "QUEUE":
		port, queue, _ := strings.Cut(k.Object, "|")
		n, err := strconv.ParseUint(queue, 10, 6)
		if err != nil || queue != strconv.Itoa(int(n)) {
			return false
		}
		o := ports[port]
		switch k.Field {
		case "scheduler":
			return o.sched>>n&1 == 1
		case "wred_profile":
			return o.ecn>>n&1 == 1
		case "":
			return (o.sched|o.ecn)>>n&1 == 1
		}
	}
	return false
}

// sonicRowAreas is the areas that have fields in a port's row of a table.
func sonicRowAreas(table string) intent.Areas {
	switch table {
	case "PORT":
		return intent.AreaSet(intent.AreaMTU)
	case "PORT_QOS_MAP":
		return intent.AreaSet(intent.AreaMaps, intent.AreaPFC, intent.AreaWatchdog)
	}
	return intent.AreaSet(intent.AreaWatchdog)
}

// sonicFieldArea is the area of a field of such a row; of lists, that of the items of named classes.
func sonicFieldArea(d *intent.Device, k Key) (intent.Area, bool) {
	field, item, isItem := sonicItem(k)
	if isItem && (len(item) != 1 || item[0] < '0' || item[0] > '7' || d.Classes[item[0]-'0'] == "") {
		return 0, false
	}
	switch k.Scope {
	case "PORT":
		return intent.AreaMTU, field == "mtu"
	case "PORT_QOS_MAP":
		switch field {
		case "dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map":
			return intent.AreaMaps, true
		case "pfc_enable":
			return intent.AreaPFC, true
		case "pfcwd_sw_enable":
			return intent.AreaWatchdog, true
		}
	case "PFC_WD":
		return intent.AreaWatchdog, field == "action" || field == "detection_time" || field == "restoration_time"
	}
	return 0, false
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
	case "BUFFER_PROFILE":
		return []string{"size", "xoff", "xon", "xon_offset", "dynamic_th", "static_th"}
	case "WRED_PROFILE":
		fields = append(fields, "ecn")
		for _, c := range sonicColours() {
			fields = append(fields, c+"_min_threshold", c+"_max_threshold", c+"_drop_probability", "wred_"+c+"_enable")
		}
	}
	return fields
}
