package gnmi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/model/observe"
)

// The counters of COUNTERS_DB. Ports and queues are asked for by sonic-gnmi's virtual paths, which exist only with the
// database as the prefix's target, and which answer for all ports by their aliases. Priority groups and watermarks have no
// such path for what is needed, so their rows are asked for by number. Field names are SAI's (saiport.h, saiqueue.h,
// saibuffer.h) and those of SONiC's watchdog. The paths were read in the sources of sonic-gnmi and partly measured on its
// real server; that a switch fills the fields depends on its ASIC, and nothing here was tried on one.

const (
	// maxRows bounds what is read of one answer: ports, or queues of ports, more than any switch has.
	maxRows = 1 << 16
	// maxObjects bounds the rows that are asked for by number in one Get.
	maxObjects = 1 << 13
)

// field is where a counter stands in a row: the first of its names that is there, "*" standing for the priority.
type field struct {
	name  observe.Name
	names []string
	unit  func(v uint64, mbps uint64) (uint64, bool) // to the canonical unit; nil = it is that
	plus  string                                     // a second field that is added, where it is there
}

func portFields() []field {
	return []field{
		{name: observe.PFCRx, names: []string{"SAI_PORT_STAT_PFC_*_RX_PKTS"}},
		{name: observe.PFCTx, names: []string{"SAI_PORT_STAT_PFC_*_TX_PKTS"}},
		// EST_ is what the watchdog estimates by polling, where the ASIC does not count it.
		{name: observe.PFCPaused, names: []string{"SAI_PORT_STAT_PFC_*_RX_PAUSE_DURATION_US", "EST_PORT_STAT_PFC_*_RX_PAUSE_DURATION_US"}, unit: microseconds},
		{name: observe.PFCPaused, names: []string{"SAI_PORT_STAT_PFC_*_RX_PAUSE_DURATION"}, unit: quanta},
		{name: observe.PFCPausing, names: []string{"SAI_PORT_STAT_PFC_*_TX_PAUSE_DURATION_US"}, unit: microseconds},
		{name: observe.PFCPausing, names: []string{"SAI_PORT_STAT_PFC_*_TX_PAUSE_DURATION"}, unit: quanta},
		{name: observe.LinkPauseRx, names: []string{"SAI_PORT_STAT_PAUSE_RX_PKTS"}},
		{name: observe.LinkPauseTx, names: []string{"SAI_PORT_STAT_PAUSE_TX_PKTS"}},
		{name: observe.PortRxBytes, names: []string{"SAI_PORT_STAT_IF_IN_OCTETS"}},
		{name: observe.PortTxBytes, names: []string{"SAI_PORT_STAT_IF_OUT_OCTETS"}},
		{name: observe.PortRxPackets, names: []string{"SAI_PORT_STAT_IF_IN_UCAST_PKTS"}, plus: "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS"},
		{name: observe.PortTxPackets, names: []string{"SAI_PORT_STAT_IF_OUT_UCAST_PKTS"}, plus: "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS"},
		{name: observe.PortDropIn, names: []string{"SAI_PORT_STAT_IF_IN_DISCARDS"}},
		{name: observe.PortDropOut, names: []string{"SAI_PORT_STAT_IF_OUT_DISCARDS"}},
		{name: observe.PortErrors, names: []string{"SAI_PORT_STAT_IF_IN_ERRORS"}},
		{name: observe.PortOversize, names: []string{"SAI_PORT_STAT_ETHER_RX_OVERSIZE_PKTS"}},
	}
}

func queueFields() []field {
	return []field{
		{name: observe.TxPackets, names: []string{"SAI_QUEUE_STAT_PACKETS"}},
		{name: observe.TxBytes, names: []string{"SAI_QUEUE_STAT_BYTES"}},
		{name: observe.DropOut, names: []string{"SAI_QUEUE_STAT_DROPPED_PACKETS"}},
		{name: observe.ECNMarked, names: []string{"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"}},
		{name: observe.WatchdogStuck, names: []string{"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"}},
		{name: observe.WatchdogFreed, names: []string{"PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"}},
		{name: observe.WatchdogDrop, names: []string{"PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS"}, plus: "PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS"},
	}
}

func groupFields() []field {
	return []field{{name: observe.DropIn, names: []string{"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"}}}
}

// markFields are of queues and of priority groups: no row has fields of both.
func markFields() []field {
	return []field{
		{name: observe.QueueWatermark, names: []string{"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"}},
		{name: observe.GroupWatermark, names: []string{"SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES"}},
		{name: observe.RoomWatermark, names: []string{"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES"}},
	}
}

// microseconds in ns; no counter holds so many that it would not fit.
func microseconds(v, _ uint64) (uint64, bool) {
	hi, lo := bits.Mul64(v, 1000)
	return lo, hi == 0
}

// quanta of pause in ns: each is the time of 512 bits at the port's speed (IEEE 802.3 31B.2).
func quanta(v, mbps uint64) (uint64, bool) {
	hi, lo := bits.Mul64(v, 512_000)
	if mbps == 0 || hi >= mbps {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, mbps)
	return q, true
}

// Sense reads counters with at most eight Gets: the table PORT; all ports; all queues; and where drops of priority groups
// or watermarks are wanted, two maps of names to numbers and two Gets of rows. One that finds not every row finds none: then
// the table of all rows is read instead. SONiC copies most of them from the ASIC every
// second (ports) to every minute (watermarks): a reading is as old as that. Watermarks are those since a user cleared them.
func (d *Device) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	const op = "get COUNTERS_DB"
	if err := d.open(op); err != nil {
		return observe.Counters{}, err
	}
	c := counting{d: d, want: observe.Wanted(names), out: observe.Counters{Values: map[observe.Port]uint64{}}}
	if err := c.read(ctx); err != nil {
		if isStatus(err) {
			return observe.Counters{}, d.failed(ctx, op, err)
		}
		return observe.Counters{}, fmt.Errorf("%s: gnmi %s: %w", d.config.Name, op, err)
	}
	c.sum()
	c.out.At = d.config.Now()
	return c.out, nil
}

func isStatus(err error) bool { _, ok := status.FromError(err); return ok }

// counting is a Sense under way.
type counting struct {
	d     *Device
	want  func(observe.Name) bool
	ports ports
	out   observe.Counters
}

// ports is what CONFIG_DB says of front ports: by name, and by alias.
type ports struct {
	mbps map[string]uint64 // 0 = not known
	of   map[string]string // name or alias to name
}

func (c *counting) read(ctx context.Context) error {
	text, err := c.d.get(ctx, path("PORT"))
	if status.Code(err) == codes.NotFound {
		return nil // no ports, and nothing that counts
	}
	if err != nil {
		return err
	}
	if c.ports, err = portsOf(text); err != nil {
		return err
	}
	if c.wants(portFields()) {
		err = c.table(ctx, portFields(), false, "COUNTERS", "Ethernet*")
	}
	if err == nil && c.wants(queueFields()) {
		err = c.table(ctx, queueFields(), true, "COUNTERS", "Ethernet*", "Queues")
	}
	if err == nil {
		err = c.objects(ctx)
	}
	return err
}

// wants reports whether one of the fields' counters is asked for, or is part of a sum that is.
func (c *counting) wants(fs []field) bool {
	return slices.ContainsFunc(fs, func(f field) bool {
		if c.want(f.name) {
			return true
		}
		for p := range 8 {
			if c.want(f.name.Of(p)) || c.part(f.name, p) {
				return true
			}
		}
		return false
	})
}

// portsOf reads the table PORT.
func portsOf(text []byte) (ports, error) {
	rows, err := rowsOf(text)
	if err != nil {
		return ports{}, err
	}
	p := ports{map[string]uint64{}, map[string]string{}}
	for name, row := range rows {
		p.mbps[name], _ = number(row["speed"])
		if alias, _ := row["alias"].(string); alias != "" {
			p.of[alias] = name
		}
	}
	for name := range rows {
		p.of[name] = name // a name counts more than somebody else's alias
	}
	return p, nil
}

// rowsOf reads rows of fields.
func rowsOf(text []byte) (map[string]map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var rows map[string]map[string]any
	if d.Decode(&rows) != nil {
		return nil, errors.New("the answer is not a table of rows of fields")
	}
	if len(rows) > maxRows {
		return nil, fmt.Errorf("%d rows; at most %d are read", len(rows), maxRows)
	}
	return rows, nil
}

// number reads a counter, which redis has as decimal text. Anything else is none: "N/A", a minus, a fraction.
func number(v any) (uint64, bool) {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// table reads the rows of a virtual path, which are ports, or queues of ports.
func (c *counting) table(ctx context.Context, fs []field, queues bool, elems ...string) error {
	answers, err := c.d.counted(ctx, elems)
	if err != nil {
		return err
	}
	for _, a := range answers {
		rows, err := rowsOf(a.text)
		if err != nil {
			return err
		}
		for key, row := range rows {
			name, priority := key, -1
			if queues {
				if name, priority = queueOf(key); priority < 0 {
					continue
				}
			}
			c.take(fs, name, priority, row)
		}
	}
	return nil
}

// queueOf splits "Ethernet0:3". Queues from 8 on carry multicast, or are of the CPU: priority -1.
func queueOf(key string) (port string, queue int) {
	i := strings.LastIndexByte(key, ':')
	if i < 0 || i != len(key)-2 || key[i+1] < '0' || key[i+1] > '7' {
		return key, -1
	}
	return key[:i], int(key[i+1] - '0')
}

// take puts what a row counts: of a queue or group for its number, of a port for every priority and as a whole.
func (c *counting) take(fs []field, port string, priority int, row map[string]any) {
	iface, ok := c.ports.of[port]
	if !ok {
		return
	}
	put := func(f field, p int) {
		name := f.name
		if d, _ := observe.Describe(name); d.Each {
			name = name.Of(p)
		}
		at := observe.Port{Iface: iface, Name: name}
		if _, there := c.out.Values[at]; there || !c.want(name) && !c.part(f.name, p) {
			return
		}
		if v, ok := f.value(row, p, c.ports.mbps[iface]); ok {
			c.out.Values[at] = v
		}
	}
	for _, f := range fs {
		d, _ := observe.Describe(f.name)
		switch {
		case priority >= 0 || !d.Each:
			put(f, priority)
		default:
			for p := range 8 {
				put(f, p)
			}
		}
	}
}

// part reports whether a counter is part of a sum that is asked for.
func (c *counting) part(base observe.Name, p int) bool {
	return (base == observe.DropIn || base == observe.DropOut) && c.want(observe.Drop.Of(p))
}

// value finds a field in a row.
func (f field) value(row map[string]any, priority int, mbps uint64) (uint64, bool) {
	at := func(name string) (uint64, bool) {
		return number(row[strings.Replace(name, "*", strconv.Itoa(priority), 1)])
	}
	for _, name := range f.names {
		v, ok := at(name)
		if !ok {
			continue
		}
		if f.unit != nil {
			return f.unit(v, mbps)
		}
		if f.plus != "" {
			more, _ := at(f.plus)
			sum, carry := bits.Add64(v, more, 0)
			return sum, carry == 0
		}
		return v, true
	}
	return 0, false
}

// objects reads the rows that have no name of their own: of priority groups, and the watermarks.
func (c *counting) objects(ctx context.Context) error {
	marks := c.wants(markFields()[:1])
	groups := c.wants(groupFields())
	room := c.wants(markFields()[1:])
	oids := map[string]string{} // number to "Ethernet0:3"
	if groups || room {
		if err := c.numbers(ctx, "COUNTERS_PG_NAME_MAP", oids); err != nil {
			return err
		}
	}
	if groups {
		if err := c.rows(ctx, groupFields(), oids, func(oid string) []string { return []string{"COUNTERS", oid} }); err != nil {
			return err
		}
	}
	if !room {
		clear(oids)
	}
	if marks {
		if err := c.numbers(ctx, "COUNTERS_QUEUE_NAME_MAP", oids); err != nil {
			return err
		}
	}
	return c.rows(ctx, markFields(), oids, func(oid string) []string { return []string{"USER_WATERMARKS:" + oid} })
}

// oidPattern is a number as SAI's serialiser writes it.
var oidPattern = regexp.MustCompile(`^oid:0x[0-9a-f]{1,16}$`)

// numbers reads a map of names to numbers, of those queues and groups that belong to ports.
func (c *counting) numbers(ctx context.Context, table string, oids map[string]string) error {
	answers, err := c.d.counted(ctx, []string{table})
	if err != nil {
		return err
	}
	for _, a := range answers {
		var row map[string]any
		if json.Unmarshal(a.text, &row) != nil {
			return fmt.Errorf("%s is not a row of fields", table)
		}
		for name, v := range row {
			port, priority := queueOf(name)
			oid, _ := v.(string)
			if _, known := c.ports.of[port]; !known || priority < 0 || !oidPattern.MatchString(oid) {
				continue
			}
			oids[oid] = name
			if len(oids) > maxObjects {
				return fmt.Errorf("%s has more than %d names; no more are read", table, maxObjects)
			}
		}
	}
	return nil
}

// rows reads one row for each number.
func (c *counting) rows(ctx context.Context, fs []field, oids map[string]string, at func(oid string) []string) error {
	if len(oids) == 0 {
		return nil
	}
	var paths [][]string
	for _, oid := range slices.Sorted(maps.Keys(oids)) {
		paths = append(paths, at(oid))
	}
	answers, err := c.d.counted(ctx, paths...)
	if err != nil {
		return err
	}
	rows := map[string]map[string]any{}
	for _, a := range answers {
		var row map[string]any
		if i := strings.LastIndex(a.at, "oid:"); i >= 0 && json.Unmarshal(a.text, &row) == nil {
			rows[a.at[i:]] = row
		}
	}
	if table := paths[0][0]; answers == nil && len(paths[0]) > 1 {
		if answers, err = c.d.counted(ctx, []string{table}); err != nil {
			return err
		}
		for _, a := range answers {
			if rows, err = rowsOf(a.text); err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
		}
	}
	for oid, name := range oids {
		port, priority := queueOf(name)
		c.take(fs, port, priority, rows[oid])
	}
	return nil
}

// sum adds up the drops of a priority where both its parts are known, and leaves out parts that nobody asked for.
func (c *counting) sum() {
	for iface := range c.ports.mbps {
		for p := range 8 {
			in, known := c.out.Get(iface, observe.DropIn.Of(p))
			out, too := c.out.Get(iface, observe.DropOut.Of(p))
			if sum, carry := bits.Add64(in, out, 0); known && too && carry == 0 && c.want(observe.Drop.Of(p)) {
				c.out.Values[observe.Port{Iface: iface, Name: observe.Drop.Of(p)}] = sum
			}
		}
	}
	maps.DeleteFunc(c.out.Values, func(p observe.Port, _ uint64) bool { return !c.want(p.Name) })
}

// answer is the JSON of one path, and its elements in one.
type answer struct {
	at   string
	text []byte
}

// counted gets paths below COUNTERS_DB in one call; nothing when the switch finds one of them not.
func (d *Device) counted(ctx context.Context, paths ...[]string) ([]answer, error) {
	r := &gpb.GetRequest{Prefix: &gpb.Path{Target: "COUNTERS_DB"}, Encoding: gpb.Encoding_JSON_IETF}
	for _, elems := range paths {
		p := &gpb.Path{}
		for _, e := range elems {
			p.Elem = append(p.Elem, &gpb.PathElem{Name: e})
		}
		r.Path = append(r.Path, p)
	}
	resp, err := d.target.Get(d.login(ctx), r)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var out []answer
	for _, n := range resp.GetNotification() {
		for _, u := range n.GetUpdate() {
			var at []string
			for _, e := range u.GetPath().GetElem() {
				at = append(at, e.GetName())
			}
			if b := u.GetVal().GetJsonIetfVal(); b != nil {
				out = append(out, answer{strings.Join(at, "/"), b})
			}
		}
	}
	return out, nil
}
