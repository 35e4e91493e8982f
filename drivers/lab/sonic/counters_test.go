package sonic_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	gpb "github.com/openconfig/gnmi/proto/gnmi"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/observe"
)

func counted(iface string, names map[string]uint64) map[observe.Port]uint64 {
	out := map[observe.Port]uint64{}
	for n, v := range names {
		out[observe.Port{Iface: iface, Name: observe.Name(n)}] = v
	}
	return out
}

// TestCountersDB asks with a stock client, by the paths that the sources of sonic-gnmi have. What was not counted is not
// there; all ports at once go by their aliases, one port by its name.
func TestCountersDB(t *testing.T) {
	s := launch(t, sonic.Options{})
	s.Edit(func(db sonic.DB) {
		db.Set("PORT", "Ethernet8", "alias", "etp2")
		db.Set("PFC_WD", "Ethernet8", "action", "drop")
	})
	c := connect(t, s)
	ask := func(path ...string) string {
		return c.get(&gpb.GetRequest{Prefix: &gpb.Path{Target: "COUNTERS_DB"}, Encoding: gpb.Encoding_JSON_IETF, Path: []*gpb.Path{old(path...)}})
	}
	if got := ask("COUNTERS", "Ethernet*"); got != `{"Ethernet0":{},"etp2":{}}` {
		t.Error(got)
	}
	s.SetCounters(counted("Ethernet8", map[string]uint64{
		"pfc.rx.3": 7, "pfc.paused_ns.3": 1_999_999, "drop.out.3": 2, "ecn.marked.3": 5, "watchdog.stuck.3": 1, "drop.in.4": 9,
		"watermark.queue.3": 4096, "watermark.room.4": 8192, "cnp.sent": 1,
	}))
	for _, x := range []struct {
		path []string
		want string
	}{
		{[]string{"COUNTERS", "Ethernet*"}, `{"Ethernet0":{},"etp2":{"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US":"1999","SAI_PORT_STAT_PFC_3_RX_PKTS":"7"}}`},
		{[]string{"COUNTERS", "Ethernet8"}, `{"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US":"1999","SAI_PORT_STAT_PFC_3_RX_PKTS":"7"}`},
		{[]string{"COUNTERS", "Ethernet*", "SAI_PORT_STAT_PFC_3_RX_PKTS"}, `{"etp2":{"SAI_PORT_STAT_PFC_3_RX_PKTS":"7"}}`},
		{[]string{"COUNTERS", "Ethernet8", "SAI_PORT_STAT_PFC_3_RX_PKTS"}, `"7"`},
		{[]string{"COUNTERS", "Ethernet8", "SAI_PORT_STAT_PFC_4_RX_PKTS"}, "NotFound: No valid entry found on COUNTERS:Ethernet8:SAI_PORT_STAT_PFC_4_RX_PKTS"},
		{[]string{"COUNTERS", "Ethernet9"}, "NotFound: Ethernet9 not a valid sonic interface. Vendor alias is Ethernet9"},
		{[]string{"COUNTERS", "Ethernet*", "Pfcwd"}, `{"etp2:3":{"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED":"1","SAI_QUEUE_STAT_DROPPED_PACKETS":"2","SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS":"5"}}`},
		{[]string{"COUNTERS_PORT_NAME_MAP"}, `{"Ethernet0":"oid:0x1000000000002","Ethernet8":"oid:0x1000000000003"}`},
		{[]string{"COUNTERS_PORT_NAME_MAP", "Ethernet8"}, `"oid:0x1000000000003"`},
		{[]string{"COUNTERS", "oid:0x1000000000003"}, `{"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US":"1999","SAI_PORT_STAT_PFC_3_RX_PKTS":"7"}`},
		{[]string{"COUNTERS_PG_NAME_MAP", "Ethernet8:4"}, `"oid:0x1a00000000000c"`},
		{[]string{"COUNTERS", "oid:0x1a00000000000c"}, `{"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS":"9"}`},
		{[]string{"USER_WATERMARKS:oid:0x1a00000000000c"}, `{"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES":"8192"}`},
		{[]string{"USER_WATERMARKS:oid:0x1a00000000000b"}, `{}`},
		{[]string{"COUNTERS", "oid:0x1a00000000000b"}, "NotFound: No valid entry found on COUNTERS:oid:0x1a00000000000b with key COUNTERS:oid:0x1a00000000000b"},
		{[]string{"NOPE"}, "{}"},
	} {
		if got := ask(x.path...); got != x.want {
			t.Errorf("%v:\ngot  %s\nwant %s", x.path, got, x.want)
		}
	}
	if got := ask("COUNTERS", "Ethernet8", "Queues"); has(t, got, "Ethernet8:3") != `{"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED":"1","SAI_QUEUE_STAT_DROPPED_PACKETS":"2","SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS":"5"}` {
		t.Error(got)
	}
	if got := ask("COUNTERS", "Ethernet*", "Queues"); has(t, got, "etp2:3") == "" || has(t, got, "Ethernet0:3") != "{}" {
		t.Error(got)
	}
	if got := ask("PERIODIC_WATERMARKS", "Ethernet8", "PriorityGroups"); has(t, got, "Ethernet8:4") != `{"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES":"8192"}` {
		t.Error(got)
	}
	if got := ask("COUNTERS"); has(t, got, "oid:0x1a00000000000c") == "" {
		t.Error(got)
	}
	s.Fault(sonic.Faults{Counters: func(path []string) any {
		if len(path) == 2 {
			return "what?"
		}
		return nil
	}})
	if d := cmp.Diff([]string{`"what?"`, `"7"`}, []string{ask("COUNTERS", "Ethernet*"), ask("COUNTERS", "Ethernet8", "SAI_PORT_STAT_PFC_3_RX_PKTS")}); d != "" {
		t.Error(d)
	}
}

// has is the member of a JSON object; "" when there is none.
func has(t *testing.T, text, member string) string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(m[member])
}
