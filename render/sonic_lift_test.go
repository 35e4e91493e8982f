package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

const un = intent.Unmapped

// nothing is the policy of a port about which the ConfigDB says no more than that it is there.
func nothing() intent.Policy {
	p := intent.Policy{Known: intent.SwitchAreas &^ intent.AreaSet(intent.AreaMTU), Trust: intent.TrustNone}
	for i := range p.DSCP {
		p.DSCP[i] = un
	}
	p.TCQueue = [8]uint8{un, un, un, un, un, un, un, un}
	p.TCPG, p.PFCQueue = p.TCQueue, p.TCQueue
	return p
}

func liftText(t *testing.T, text string) (map[string]intent.Policy, diag.List) {
	t.Helper()
	c, l := sonicParse([]byte(text))
	if len(l) > 0 {
		t.Fatal(l)
	}
	return sonicLift(c, Facts{Hostname: "leaf9"})
}

// Configurations that we did not render, and what they do, worked out by hand.
func TestSonicLift(t *testing.T) {
	ramp := `"green_min_threshold": "100", "green_max_threshold": "200", "green_drop_probability": "5",
		"yellow_min_threshold": "100", "yellow_max_threshold": "200", "yellow_drop_probability": "5",
		"red_min_threshold": "100", "red_max_threshold": "200", "red_drop_probability": "5"`
	enabled := `"wred_green_enable": "true", "wred_yellow_enable": "true", "wred_red_enable": "true"`
	queue := func(wred string) string {
		return `{"QUEUE": {"Ethernet0|3": {"wred_profile": "w"}}, "WRED_PROFILE": {"w": {` + wred + `}}}`
	}
	marks := intent.Queue{ECN: intent.ECN{On: true, Kmin: 100, Kmax: 200, Pmax: 50_000}}
	for _, c := range []struct {
		name, text string
		want       func(*intent.Policy)
		says       []string
	}{
		{"a bare port", `{"PORT": {"Ethernet0": {}}}`, func(*intent.Policy) {}, nil},
		{"mtu", `{"PORT": {"Ethernet0": {"mtu": "9100"}}}`, func(p *intent.Policy) { p.Known, p.MTU = intent.SwitchAreas, 9100 }, nil},
		{"mtu that is none", `{"PORT": {"Ethernet0": {"mtu": "big"}}}`, func(*intent.Policy) {}, []string{`leaf9:PORT|Ethernet0: warning: lift: mtu is "big", and not a number`}},
		{
			"maps of its own", `{"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "d", "tc_to_queue_map": "q", "tc_to_pg_map": "g", "pfc_to_queue_map": "p"}},
				"DSCP_TO_TC_MAP": {"d": {"26": "3", "0": "0"}}, "TC_TO_QUEUE_MAP": {"q": {"3": "5", "0": "0"}},
				"TC_TO_PRIORITY_GROUP_MAP": {"g": {"3": "2"}}, "MAP_PFC_PRIORITY_TO_QUEUE": {"p": {"3": "5"}}}`,
			func(p *intent.Policy) {
				p.Trust = intent.TrustDSCP
				p.DSCP[0], p.DSCP[26], p.TCQueue[0], p.TCQueue[3], p.TCPG[3], p.PFCQueue[3] = 0, 3, 0, 5, 2, 5
			}, nil,
		},
		{
			"the switch's map serves ports without one", `{"PORT": {"Ethernet0": {}}, "PORT_QOS_MAP": {"global": {"dscp_to_tc_map": "d"}}, "DSCP_TO_TC_MAP": {"d": {"26": "3"}}}`,
			func(p *intent.Policy) { p.Trust, p.DSCP[26] = intent.TrustDSCP, 3 }, nil,
		},
		{
			"not a port that trusts PCP", `{"PORT_QOS_MAP": {"Ethernet0": {"dot1p_to_tc_map": "x"}, "global": {"dscp_to_tc_map": "d"}}, "DSCP_TO_TC_MAP": {"d": {"26": "3"}}}`,
			func(p *intent.Policy) { p.Trust = intent.TrustPCP },
			[]string{`dot1p_to_tc_map "x" is not part of the model`},
		},
		{
			"wrong maps", `{"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "d", "tc_to_queue_map": "gone"}},
				"DSCP_TO_TC_MAP": {"d": {"26": "9", "64": "1", "x": "1", "05": "2", "5": "2"}}}`,
			func(p *intent.Policy) { p.Trust, p.DSCP[5] = intent.TrustDSCP, 2 },
			[]string{`26 is "9", and not a number from 0 to 7`, `key "05" is not`, `key "64" is not`, `key "x" is not`, `TC_TO_QUEUE_MAP "gone" does not exist`},
		},
		{
			"traffic classes beyond ours", `{"PORT_QOS_MAP": {"Ethernet0": {"tc_to_queue_map": "q"}}, "TC_TO_QUEUE_MAP": {"q": {"12": "1", "3": "3"}}}`,
			func(p *intent.Policy) { p.TCQueue[3] = 3 }, nil,
		},
		{
			"pfc", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4,8,3-4"}}}`,
			func(p *intent.Policy) { p.Queues[3].Lossless, p.Queues[4].Lossless = true, true },
			[]string{`pfc_enable holds "3-4"`, `pfc_enable holds "8"`},
		},
		{"marking", queue(`"ecn": "ecn_all", ` + enabled + `, ` + ramp), func(p *intent.Policy) { p.Queues[3] = marks }, nil},
		{"marking in an old mode", queue(`"ecn": "ecn_green_yellow", ` + enabled + `, ` + ramp), func(p *intent.Policy) { p.Queues[3] = marks }, []string{"ecn ecn_green_yellow treats red packets unlike green ones"}},
		{"thresholds without enable", queue(`"ecn": "ecn_all", ` + ramp), func(*intent.Policy) {}, []string{"wred_green_enable is not true: nothing is marked"}},
		{"drop", queue(enabled + `, ` + ramp), func(p *intent.Policy) { p.Queues[3].Drop = true }, nil},
		{"drop for green, marks for red", queue(`"ecn": "ecn_red", ` + enabled + `, ` + ramp), func(p *intent.Policy) { p.Queues[3].Drop = true }, []string{"ecn ecn_red treats red packets"}},
		{"a mode that is none", queue(`"ecn": "ecn_on", ` + enabled + `, ` + ramp), func(p *intent.Policy) { p.Queues[3].Drop = true }, []string{`ecn "ecn_on" is not understood`}},
		{"marking without numbers", queue(`"ecn": "ecn_all", ` + enabled), func(p *intent.Policy) { p.Queues[3] = intent.Queue{ECN: intent.ECN{On: true}} }, []string{"marking is on without green_min_threshold"}},
		{
			"a threshold that cannot be read", queue(`"ecn": "ecn_all", ` + enabled + `, ` + strings.Replace(ramp, `"green_min_threshold": "100"`, `"green_min_threshold": "few"`, 1)),
			func(p *intent.Policy) { p.Queues[3] = marks; p.Queues[3].ECN.Kmin = 0 },
			[]string{`green_min_threshold is "few", and not a number of bytes`},
		},
		{
			"yellow otherwise", queue(`"ecn": "ecn_all", ` + enabled + `, ` + strings.Replace(ramp, `"yellow_max_threshold": "200"`, `"yellow_max_threshold": "900"`, 1)),
			func(p *intent.Policy) { p.Queues[3] = marks },
			[]string{`yellow_max_threshold is "900", green_max_threshold is "200"`},
		},
		{"a profile that is not there", `{"QUEUE": {"Ethernet0|3": {"wred_profile": "w", "scheduler": "s"}}}`, func(p *intent.Policy) { p.Queues[3].Used = true }, []string{`SCHEDULER "s" does not exist`, `WRED_PROFILE "w" does not exist`}},
		{
			"schedulers", `{"QUEUE": {"Ethernet0|0": {"scheduler": "a"}, "Ethernet0|1": {"scheduler": "b"}, "Ethernet0|2": {"scheduler": "c"}, "Ethernet0|6": {"scheduler": "d"}},
				"SCHEDULER": {"a": {"type": "DWRR", "weight": "15"}, "b": {"weight": "20"}, "c": {"type": "DWRR", "weight": "5", "pir": "1000"}, "d": {"type": "STRICT", "weight": "9"}}}`,
			func(p *intent.Policy) {
				p.Queues[0] = intent.Queue{Used: true, Weight: 15}
				p.Queues[1] = intent.Queue{Used: true, Weight: 20}
				p.Queues[2] = intent.Queue{Used: true, Weight: 5}
				p.Queues[6] = intent.Queue{Used: true, Strict: true}
			},
			[]string{"SCHEDULER|b: warning: lift: type WRR counts packets", `SCHEDULER|c: warning: lift: pir "1000" is not part of the model`},
		},
		{
			"queues follow the map", `{"PORT_QOS_MAP": {"Ethernet0": {"tc_to_queue_map": "q"}}, "TC_TO_QUEUE_MAP": {"q": {"3": "5"}},
				"QUEUE": {"Ethernet0|5": {"scheduler": "a"}}, "SCHEDULER": {"a": {"type": "STRICT"}}}`,
			func(p *intent.Policy) {
				p.TCQueue[3] = 5
				p.Queues[3] = intent.Queue{Used: true, Strict: true}
				p.Queues[5] = intent.Queue{Used: true, Strict: true} // no entry: the queue of the same number
			}, nil,
		},
		{
			"ranges", `{"QUEUE": {"Ethernet0|0-2": {"scheduler": "a"}, "Ethernet0|2": {"scheduler": "b"}, "Ethernet0|5-3": {"scheduler": "a"}, "CPU|0-47": {"scheduler": "a"}},
				"SCHEDULER": {"a": {"type": "DWRR", "weight": "15"}, "b": {"type": "DWRR", "weight": "30"}}}`,
			func(p *intent.Policy) {
				p.Queues[0] = intent.Queue{Used: true, Weight: 15}
				p.Queues[1] = intent.Queue{Used: true, Weight: 15}
				p.Queues[2] = intent.Queue{Used: true, Weight: 30}
			},
			[]string{"QUEUE|Ethernet0|2: warning: lift: queue 2 of the port is configured by another row too", "QUEUE|Ethernet0|5-3: warning: lift: the row is neither"},
		},
		{
			"a range and a queue of it", `{"QUEUE": {"Ethernet0|3-4": {"wred_profile": "w"}, "Ethernet0|3": {"scheduler": "a"}},
				"SCHEDULER": {"a": {"type": "STRICT"}}, "WRED_PROFILE": {"w": {` + enabled + `, ` + ramp + `}}}`,
			func(p *intent.Policy) {
				p.Queues[3] = intent.Queue{Used: true, Strict: true, Drop: true}
				p.Queues[4] = intent.Queue{Drop: true}
			},
			[]string{"queue 3 of the port is configured by another row too"},
		},
		{
			"watchdog", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "pfcwd_sw_enable": "3"}},
				"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}, "Ethernet0": {"action": "forward", "detection_time": "200", "restoration_time": "300"}}}`,
			func(p *intent.Policy) {
				p.Queues[3].Lossless = true
				p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 300, Poll: 100, Action: intent.ActionForward}
			}, nil,
		},
		{
			"watchdog on other priorities, half configured", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "4,3", "pfcwd_sw_enable": "3"}}, "PFC_WD": {"Ethernet0": {"action": "explode"}}}`,
			func(p *intent.Policy) {
				p.Queues[3].Lossless, p.Queues[4].Lossless = true, true
				p.Watchdog = intent.Watchdog{On: true, Skips: 1 << 4}
			},
			[]string{`action "explode"`, "detection_time is missing", "restoration_time is missing", "POLL_INTERVAL is missing"},
		},
		{
			"watchdog on a lossy priority too", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "pfcwd_sw_enable": "3,4"}},
				"PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "100"}, "Ethernet0": {"action": "drop", "detection_time": "200", "restoration_time": "300"}}}`,
			func(p *intent.Policy) {
				p.Queues[3].Lossless = true
				p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 300, Poll: 100, Action: intent.ActionDrop}
			},
			[]string{"the watchdog watches priorities 3 and 4, and PFC is on for priority 3"},
		},
		{
			"watched, but not started", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "pfcwd_sw_enable": "3"}}}`,
			func(p *intent.Policy) { p.Queues[3].Lossless = true },
			[]string{"no watchdog runs"},
		},
		{
			"voq", `{"PORT": {"Ethernet0": {}}, "QUEUE": {"host|asic0|Ethernet0|3": {"scheduler": "a"}}}`,
			func(p *intent.Policy) { p.Known &^= intent.AreaSet(intent.AreaScheduler, intent.AreaECN) },
			[]string{"queues of a VOQ system"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, l := liftText(t, c.text)
			want := nothing()
			c.want(&want)
			if diff := cmp.Diff(map[string]intent.Policy{"Ethernet0": want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(l) != len(c.says) {
				t.Errorf("%d findings, want %d", len(l), len(c.says))
			}
			for _, want := range c.says {
				if !slices.ContainsFunc(l, func(f diag.Finding) bool { return strings.Contains(f.String(), want) }) {
					t.Errorf("nothing says %q in %v", want, l)
				}
			}
		})
	}
}

// The reference ConfigDB, by hand: an uplink, a downlink with four lossless priorities, and a port without QoS.
func TestSonicLiftGolden(t *testing.T) {
	got, l := sonicLift(goldenLive(t), goldenFacts())
	base := intent.Policy{
		Known: intent.AreasOf("sonic"), MTU: 9100, Trust: intent.TrustDSCP,
		TCQueue: [8]uint8{0, 1, 2, 3, 4, 5, 6, 7}, TCPG: [8]uint8{0, 0, 2, 3, 4, 0, 6, 0}, PFCQueue: [8]uint8{0, 1, 2, 3, 4, 5, 6, 7},
	}
	for i := range base.DSCP {
		base.DSCP[i] = 1
	}
	base.DSCP[3], base.DSCP[4], base.DSCP[8], base.DSCP[46], base.DSCP[48] = 3, 4, 0, 5, 7
	lossy := intent.Queue{Used: true, Weight: 14}
	lossless := intent.Queue{Used: true, Lossless: true, Weight: 15, ECN: intent.ECN{On: true, Kmin: 2_000_000, Kmax: 10_000_000, Pmax: 50_000}, Buffer: intent.Buffer{On: true, Device: true}}

	uplink := base
	uplink.Cable = 300 * units.Metre
	uplink.Queues = [8]intent.Queue{lossy, lossy, lossy, lossless, lossless, lossy, lossy, lossy}
	first := uplink // the only one with a row in PFC_WD
	first.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 200, Poll: 200, Action: intent.ActionDrop}
	downlink := base
	downlink.Cable = 40 * units.Metre
	downlink.DSCP[2], downlink.DSCP[6] = 2, 6
	downlink.Queues = [8]intent.Queue{lossy, lossy, lossless, lossless, lossless, lossy, lossless, lossy}
	bare := nothing() // the switch's own DSCP map serves it
	bare.Known, bare.MTU, bare.Trust, bare.DSCP = intent.AreasOf("sonic"), 9100, intent.TrustDSCP, downlink.DSCP
	bare.Cable = 5 * units.Metre

	count := map[string]int{}
	for port, p := range got {
		switch {
		case port == "Ethernet0" && p == first:
			count["first"]++
		case p == uplink:
			count["uplink"]++
		case p == downlink:
			count["downlink"]++
		case p == bare:
			count["bare"]++
		default:
			t.Errorf("%s is none of the four (-uplink +got):\n%s", port, cmp.Diff(uplink, p))
		}
	}
	if diff := cmp.Diff(map[string]int{"first": 1, "uplink": 7, "downlink": 20, "bare": 36}, count); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	// 27 ports are watched by nobody: one finding. The file is as it is written before a switch has made its groups, which is
	// one for each priority and length of cable.
	watched := slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return strings.Contains(f.Msg, "the switch made no priority group") })
	if len(watched) != 1 || len(l) != 7 || !strings.Contains(watched[0].Msg, "no watchdog runs (and 26 more, to PORT_QOS_MAP|Ethernet") {
		t.Errorf("findings %v", l)
	}
}
