package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// sonicLift says what a ConfigDB does to each port: it follows DSCP to traffic class to queue, priority group and
// paused queue through the maps that the port binds (the row "global" serves ports without a DSCP map of their own),
// and reads profiles through the rows that bind them. A queue is used when its row binds a scheduler. Without MTU in a row, and for queues on VOQ systems, the area is unknown.
func sonicLift(c Config, f Facts) (map[string]intent.Policy, diag.List) {
	l := sonicLifter{db: SonicRows(c), host: f.Hostname, said: map[sonicSaid]map[string]bool{}}
	l.split()
	l.queues = l.readQueues()
	l.groups, l.egresses = l.readBound("BUFFER_PG"), l.readBound("BUFFER_QUEUE")
	l.dynamic = l.db["DEVICE_METADATA"]["localhost"]["buffer_model"] == "dynamic"
	out := map[string]intent.Policy{}
	for _, port := range l.ports() {
		out[port] = l.port(port)
	}
	return out, l.findings()
}

type sonicLifter struct {
	db     SonicDB
	host   string
	queues map[string][8]map[string]string // port to queue to fields
	voq    bool

	groups, egresses map[string][8]sonicBound      // port to what is bound to its priority groups, and to its queues at the egress
	dynamic          bool                          // the switch computes headroom itself, for the groups that ask for it
	said             map[sonicSaid]map[string]bool // to the rows of which it was said
}

type sonicSaid struct {
	severity diag.Severity
	msg      string
}

// warn says something about a row, once per row. What is said of many rows becomes one finding.
func (l *sonicLifter) warn(row, format string, a ...any) { l.say(diag.Warning, row, format, a...) }

func (l *sonicLifter) say(s diag.Severity, row, format string, a ...any) {
	k := sonicSaid{s, fmt.Sprintf(format, a...)}
	if l.said[k] == nil {
		l.said[k] = map[string]bool{}
	}
	l.said[k][row] = true
}

func (l *sonicLifter) findings() diag.List {
	var list diag.List
	for k, set := range l.said {
		rows := slices.SortedFunc(maps.Keys(set), intent.CompareNames)
		at, msg := rows[0], k.msg
		if l.host != "" {
			at = l.host + ":" + at
		}
		if n := len(rows); n > 1 {
			msg += fmt.Sprintf(" (and %d more, to %s)", n-1, rows[n-1])
		}
		list.Add(diag.Finding{Rule: "lift", Severity: k.severity, At: at, Msg: msg})
	}
	return list.Sort()
}

// split makes a row of each port of one that older images write for several ("Ethernet0,Ethernet8|3"). A field that a
// port has in a row of its own counts.
func (l *sonicLifter) split() {
	for _, table := range sonicPortTables() {
		for _, row := range slices.Sorted(maps.Keys(l.db[table])) {
			ports, rest := sonicSharedRow(row)
			if ports == nil {
				continue
			}
			fields := l.db[table][row]
			delete(l.db[table], row)
			l.warn(table+"|"+row, "one row is for several ports; it is read as a row of each, and never written: plan refuses to change what it says")
			for _, port := range ports {
				own := l.db[table][port+rest]
				if own == nil {
					own = map[string]string{}
					l.db[table][port+rest] = own
				}
				for field, value := range fields {
					if was, twice := own[field]; !twice {
						own[field] = value
					} else if was != value {
						l.warn(table+"|"+port+rest, "%s is %q here and %q in the row %s", field, was, value, row)
					}
				}
			}
		}
	}
}

// ports is every interface that any row speaks about, in natural order.
func (l *sonicLifter) ports() []string {
	set := map[string]bool{}
	for _, lengths := range l.db["CABLE_LENGTH"] {
		for port := range lengths {
			set[port] = true
		}
	}
	for _, table := range []string{"PORT", "PORT_QOS_MAP", "PFC_WD"} {
		for row := range l.db[table] {
			if row != "global" && row != "GLOBAL" {
				set[row] = true
			}
		}
	}
	for port := range l.queues {
		set[port] = true
	}
	for port := range l.groups {
		set[port] = true
	}
	return slices.SortedFunc(maps.Keys(set), intent.CompareNames)
}

func (l *sonicLifter) port(port string) intent.Policy {
	p := intent.Policy{Known: intent.SwitchAreas}
	l.mtu(port, &p)
	l.maps(port, &p)
	for _, prio := range l.list(port, "pfc_enable") {
		p.Queues[prio].Lossless = true
	}
	if l.voq {
		p.Known &^= intent.AreaSet(intent.AreaScheduler, intent.AreaECN)
	} else {
		for tc := range p.Queues {
			l.queue(port, sonicQueueOf(&p, tc), &p.Queues[tc])
		}
	}
	l.watchdog(port, &p)
	l.buffers(port, &p)
	return p
}

// mtu is in bytes. What SONiC does without the field is the image's business: unknown.
func (l *sonicLifter) mtu(port string, p *intent.Policy) {
	if n, ok := l.number("PORT", port, "mtu", 9216); ok {
		p.MTU = units.Bytes(n)
	} else {
		p.Known &^= intent.AreaSet(intent.AreaMTU)
	}
}

// anyBytes is the most of a number of bytes: as much as can be held.
const anyBytes = 1 << 62

// number reads a whole number from 0 to most; ok is false when the field is absent, or is something else, which is
// said.
func (l *sonicLifter) number(table, row, field string, most uint64) (n uint64, ok bool) {
	s, ok := l.db[table][row][field]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most {
		want := fmt.Sprintf("a number from 0 to %d", most)
		if most == anyBytes {
			want = "a number of bytes"
		}
		l.warn(table+"|"+row, "%s is %q, and not %s", field, s, want)
		return 0, false
	}
	return n, true
}

func (l *sonicLifter) maps(port string, p *intent.Policy) {
	row := l.db["PORT_QOS_MAP"][port]
	at := "PORT_QOS_MAP|" + port
	dscp, pcp := row["dscp_to_tc_map"], row["dot1p_to_tc_map"]
	if dscp == "" && pcp == "" {
		dscp = l.db["PORT_QOS_MAP"]["global"]["dscp_to_tc_map"]
	}
	switch {
	case dscp != "":
		p.Trust = intent.TrustDSCP
	case pcp != "":
		p.Trust = intent.TrustPCP
	default:
		p.Trust = intent.TrustNone
	}
	l.entries(at, "DSCP_TO_TC_MAP", dscp, 63, p.DSCP[:])
	l.entries(at, "TC_TO_QUEUE_MAP", row["tc_to_queue_map"], 15, p.TCQueue[:])
	l.entries(at, "TC_TO_PRIORITY_GROUP_MAP", row["tc_to_pg_map"], 15, p.TCPG[:])
	l.entries(at, "MAP_PFC_PRIORITY_TO_QUEUE", row["pfc_to_queue_map"], 7, p.PFCQueue[:])
	for _, field := range slices.Sorted(maps.Keys(row)) {
		switch field {
		case "dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map", "pfc_enable", "pfcwd_sw_enable":
		default:
			l.say(diag.Info, at, "%s %q is not part of the model and was not looked at", field, row[field])
		}
	}
}

// entries reads a map into out, which has an element for each key that the model knows; other keys up to most are
// ignored.
func (l *sonicLifter) entries(at, table, name string, most int, out []uint8) {
	for i := range out {
		out[i] = intent.Unmapped
	}
	if name == "" {
		return
	}
	m, ok := l.db[table][name]
	if !ok {
		l.warn(at, "%s %q does not exist", table, name)
		return
	}
	for field := range m {
		switch i, err := strconv.Atoi(field); {
		case err != nil || i < 0 || i > most || strconv.Itoa(i) != field:
			l.warn(table+"|"+name, "key %q is not a number from 0 to %d", field, most)
		case i < len(out):
			if v, ok := l.number(table, name, field, 7); ok {
				out[i] = uint8(v)
			}
		}
	}
}

// list reads a comma list of priorities.
func (l *sonicLifter) list(port, field string) []int {
	var prios []int
	for _, item := range listItems(l.db["PORT_QOS_MAP"][port][field]) {
		if len(item) != 1 || item[0] < '0' || item[0] > '7' {
			l.warn("PORT_QOS_MAP|"+port, "%s holds %q, which is not a priority", field, item)
			continue
		}
		prios = append(prios, int(item[0]-'0'))
	}
	return prios
}

// readQueues spreads the rows of QUEUE, single ("Ethernet0|3") and ranges ("Ethernet0|0-2"), over ports and queues.
func (l *sonicLifter) readQueues() map[string][8]map[string]string {
	byPort := map[string][8]map[string]string{}
	rows := slices.Collect(maps.Keys(l.db["QUEUE"]))
	slices.SortFunc(rows, func(a, b string) int { // singles last: they win over ranges
		x, y := strings.Contains(a, "-"), strings.Contains(b, "-")
		switch {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, row := range rows {
		port, lo, hi, ok := sonicQueueRow(row)
		switch {
		case strings.Count(row, "|") == 3:
			l.voq = true
			l.warn("QUEUE|"+row, "queues of a VOQ system are not understood")
		case !ok:
			l.warn("QUEUE|"+row, "the row is neither a queue nor a range of queues")
		case port != "CPU":
			l.spread(byPort, row, port, lo, hi)
		}
	}
	return byPort
}

func (l *sonicLifter) spread(byPort map[string][8]map[string]string, row, port string, lo, hi int) {
	queues := byPort[port]
	for q := lo; q <= min(hi, 7); q++ {
		if queues[q] == nil {
			queues[q] = map[string]string{}
		} else {
			l.warn("QUEUE|"+row, "queue %d of the port is configured by another row too", q)
		}
		maps.Copy(queues[q], l.db["QUEUE"][row])
	}
	byPort[port] = queues
}

// sonicQueueRow takes a key of QUEUE apart: "Ethernet0|3" or "Ethernet0|0-2".
func sonicQueueRow(row string) (port string, lo, hi int, ok bool) {
	port, index, found := strings.Cut(row, "|")
	from, to, isRange := strings.Cut(index, "-")
	if !isRange {
		to = from
	}
	lo, errLo := strconv.Atoi(from)
	hi, errHi := strconv.Atoi(to)
	ok = found && errLo == nil && errHi == nil && 0 <= lo && lo <= hi && hi < 64
	return port, lo, hi, ok
}

// queue reads what the row of queue index binds.
func (l *sonicLifter) queue(port string, index int, q *intent.Queue) {
	row := l.queues[port][index]
	at := fmt.Sprintf("QUEUE|%s|%d", port, index)
	if s := row["scheduler"]; s != "" {
		q.Used = true
		l.scheduler(at, s, q)
	}
	if w := row["wred_profile"]; w != "" {
		l.wred(at, w, q)
	}
}

// scheduler reads type and weight. Nothing else of a scheduler is in the model, and what it does (shaping) is said.
func (l *sonicLifter) scheduler(at, name string, q *intent.Queue) {
	row, ok := l.db["SCHEDULER"][name]
	if !ok {
		l.warn(at, "SCHEDULER %q does not exist", name)
		return
	}
	object := "SCHEDULER|" + name
	switch t := row["type"]; t {
	case "STRICT":
		q.Strict = true
	case "DWRR":
	case "WRR", "":
		l.warn(object, "type WRR counts packets, not bytes: the share of a class depends on its packet sizes")
	default:
		l.warn(object, "type %q is not understood", t)
	}
	if w, ok := l.number("SCHEDULER", name, "weight", 100); ok && !q.Strict {
		q.Weight = uint8(w)
	}
	for _, field := range slices.Sorted(maps.Keys(row)) {
		if field != "type" && field != "weight" {
			l.warn(object, "%s %q is not part of the model and was not looked at", field, row[field])
		}
	}
}

// wred reads a profile as its green packets see it. Differences for yellow and red are said.
func (l *sonicLifter) wred(at, name string, q *intent.Queue) {
	row, ok := l.db["WRED_PROFILE"][name]
	if !ok {
		l.warn(at, "WRED_PROFILE %q does not exist", name)
		return
	}
	object := "WRED_PROFILE|" + name
	marked, known := sonicMarked(row["ecn"])
	if !known {
		l.warn(object, "ecn %q is not understood", row["ecn"])
	}
	l.colours(object, row, marked)
	marks := slices.Contains(marked, "green")
	switch enable := row["wred_green_enable"]; {
	case enable != "true" && enable != "false" && enable != "":
		l.warn(object, "wred_green_enable %q is neither true nor false", enable)
		return
	case enable != "true" && marks:
		l.warn(object, "ecn is %s, but wred_green_enable is not true: nothing is marked", row["ecn"])
		return
	case enable != "true":
		return
	case !marks:
		q.Drop = true
		return
	}
	kmin, _ := l.number("WRED_PROFILE", name, "green_min_threshold", anyBytes)
	kmax, _ := l.number("WRED_PROFILE", name, "green_max_threshold", anyBytes)
	pmax, _ := l.number("WRED_PROFILE", name, "green_drop_probability", 100)
	if row["green_min_threshold"] == "" || row["green_max_threshold"] == "" || row["green_drop_probability"] == "" {
		l.warn(object, "marking is on without green_min_threshold, green_max_threshold and green_drop_probability")
	}
	q.ECN = intent.ECN{On: true, Kmin: units.Bytes(kmin), Kmax: units.Bytes(kmax), Pmax: units.Percent(pmax * 10_000)}
}

// colours says where yellow and red packets are treated unlike green ones, and which fields are unknown.
func (l *sonicLifter) colours(object string, row map[string]string, marked []string) {
	field := map[string]bool{"ecn": true}
	for _, colour := range sonicColours() {
		if slices.Contains(marked, colour) != slices.Contains(marked, "green") {
			l.warn(object, "ecn %s treats %s packets unlike green ones", row["ecn"], colour)
		}
		for _, f := range [][2]string{{"", "_min_threshold"}, {"", "_max_threshold"}, {"", "_drop_probability"}, {"wred_", "_enable"}} {
			name, green := f[0]+colour+f[1], f[0]+"green"+f[1]
			field[name] = true
			if row[name] != row[green] && (f[1] == "_enable" || row[green] == "" || sonicNumber(row[green])) { // what cannot be read is said by itself
				l.warn(object, "%s is %q, %s is %q: packets that a policer coloured are treated differently", name, row[name], green, row[green])
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(row)) {
		if !field[f] {
			l.warn(object, "%s %q is not part of the model and was not looked at", f, row[f])
		}
	}
}

// sonicNumber reports whether s is a number as CONFIG_DB writes it.
func sonicNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// sonicMarked is the colours that an ecn mode marks.
func sonicMarked(mode string) (colours []string, ok bool) {
	rest, found := strings.CutPrefix(mode, "ecn_")
	switch {
	case mode == "" || mode == "ecn_none":
		return nil, true
	case mode == "ecn_all":
		return sonicColours(), true
	case !found:
		return nil, false
	}
	colours = strings.Split(rest, "_")
	for _, c := range colours {
		if !slices.Contains(sonicColours(), c) {
			return nil, false
		}
	}
	return colours, true
}

// watchdog is on when the port has a row; what it watches besides the lossless priorities is said.
func (l *sonicLifter) watchdog(port string, p *intent.Policy) {
	watched := l.list(port, "pfcwd_sw_enable")
	slices.Sort(watched)
	row, on := l.db["PFC_WD"][port]
	if !on {
		if len(watched) > 0 {
			l.warn("PORT_QOS_MAP|"+port, "pfcwd_sw_enable names %s, but PFC_WD has no row for the port: no watchdog runs", prioritiesText(watched))
		}
		return
	}
	w := intent.Watchdog{On: true}
	extra := slices.Clone(watched)
	for _, i := range p.Lossless() {
		if !slices.Contains(watched, i) {
			w.Skips |= 1 << i
		}
		extra = slices.DeleteFunc(extra, func(n int) bool { return n == i })
	}
	if len(extra) > 0 {
		pfc := "but PFC is off on this port"
		if on := p.Lossless(); len(on) > 0 {
			pfc = "and PFC is on for " + prioritiesText(on)
		}
		l.warn(port, "the watchdog watches %s, %s (pfcwd_sw_enable and pfc_enable of PORT_QOS_MAP)", prioritiesText(watched), pfc)
	}
	for _, t := range []struct {
		row, field string
		into       *int32
	}{{port, "detection_time", &w.Detect}, {port, "restoration_time", &w.Restore}, {"GLOBAL", "POLL_INTERVAL", &w.Poll}} {
		n, ok := l.number("PFC_WD", t.row, t.field, 1<<31-1)
		if !ok && t.row == "GLOBAL" {
			l.say(diag.Info, "PFC_WD|GLOBAL", "POLL_INTERVAL is missing: the interval is the image's choice")
		} else if !ok {
			l.warn("PFC_WD|"+t.row, "%s is missing", t.field)
		}
		*t.into = int32(n)
	}
	switch a := row["action"]; a {
	case "drop":
		w.Action = intent.ActionDrop
	case "forward":
		w.Action = intent.ActionForward
	case "alert":
		w.Action = intent.ActionAlert
	default:
		l.warn("PFC_WD|"+port, "action %q is not understood", a)
	}
	p.Watchdog = w
}

// prioritiesText names priorities, one at least.
func prioritiesText(ps []int) string {
	var words []string
	for _, p := range ps {
		words = append(words, strconv.Itoa(p))
	}
	if len(words) < 2 {
		return "priority " + words[0]
	}
	last := len(words) - 1
	return "priorities " + strings.Join(words[:last], ", ") + " and " + words[last]
}
