package render

import (
	"testing"
)

// TestSpellings: two spellings of the same configuration are no change, in either direction, whatever a device prints;
// and what only looks alike is one.
func TestSpellings(t *testing.T) {
	profile := func(lines string) string { return "qos profile fctl-pod1\n" + lines }
	queue := func(fields string) string { return `{"WRED_PROFILE": {"fctl-pod1-training": {` + fields + `}}}` }
	for _, x := range []struct {
		os, what, a, b string
		same           bool
	}{
		// EOS
		{"eos", "DSCP names", "qos map dscp 26 46 48 to traffic-class 3\n", "qos map dscp af31 ef cs6 to traffic-class 3\n", true},
		{"eos", "DSCP names, in capitals", "qos map dscp 0 10 38 to traffic-class 3\n", "qos map dscp Default AF11 AF43 to traffic-class 3\n", true},
		{"eos", "DSCP ranges and commas", "qos map dscp 24 25 26 27 to traffic-class 3\n", "qos map dscp 24-26,27 to traffic-class 3\n", true},
		{"eos", "one line or several", "qos map dscp 24 25 to traffic-class 3\n", "qos map dscp 25 to traffic-class 3\nqos map dscp 24 to traffic-class 3\n", true},
		{"eos", "a default that is written", "", "qos map dscp 26 to traffic-class 3\nqos map traffic-class 3 to tx-queue 3\n", true},
		{"eos", "a default of the inverted low end", "", "qos map dscp 0 to traffic-class 1\nqos map dscp 8 to traffic-class 0\n", true},
		{"eos", "a name that is no code point", "qos map dscp 26 to traffic-class 3\n", "qos map dscp 26 to traffic-class 3\nqos map dscp af44 to traffic-class 3\n", false},
		{"eos", "another class", "qos map dscp af31 to traffic-class 3\n", "qos map dscp af31 to traffic-class 4\n", false},
		{"eos", "order", profile("   qos trust dscp\n   priority-flow-control on\n"), profile("   priority-flow-control on\n   qos trust dscp\n"), true},
		{"eos", "indentation and separators", profile("   !\n   qos trust dscp\n   !\n"), profile(" qos trust dscp\r\n"), true},
		{"eos", "seconds", "priority-flow-control pause watchdog default timeout 0.2\n", "priority-flow-control pause watchdog default timeout 0.20\n", true},
		{"eos", "other seconds", "priority-flow-control pause watchdog default timeout 0.2\n", "priority-flow-control pause watchdog default timeout 0.02\n", false},
		{"eos", "the device's own choice", "", "priority-flow-control pause watchdog default polling-interval auto\n", true},
		{"eos", "off and absent", profile(""), profile("   no priority-flow-control on\n   priority-flow-control priority 3 drop\n"), true},
		{"eos", "off over a profile", "interface Ethernet1/1\n", "interface Ethernet1/1\n   priority-flow-control priority 3 drop\n", false},
		{"eos", "two ways to say off over a profile", "interface Ethernet1/1\n   no priority-flow-control priority 3 no-drop\n", "interface Ethernet1/1\n   priority-flow-control priority 3 drop\n", true},
		{"eos", "off and on", "interface Ethernet1/1\n", "interface Ethernet1/1\n   priority-flow-control priority 3 no-drop\n", false},
		{
			"eos", "fields of a compound line in another order",
			profile("   uc-tx-queue 3\n      random-detect ecn minimum-threshold 800000 bytes maximum-threshold 3200000 bytes max-mark-probability 20 weight 0\n"),
			profile("   uc-tx-queue 3\n      random-detect ecn maximum-threshold 3200000 bytes minimum-threshold 800000 bytes weight 0 max-mark-probability 20\n"), true,
		},
		{ // whether a kbyte of EOS is 1000 or 1024 bytes is not known, so it is not taken for either
			"eos", "thresholds in a unit of another base",
			profile("   uc-tx-queue 3\n      random-detect ecn minimum-threshold 800000 bytes maximum-threshold 3200000 bytes max-mark-probability 20 weight 0\n"),
			profile("   uc-tx-queue 3\n      random-detect ecn minimum-threshold 800 kbytes maximum-threshold 3200 kbytes max-mark-probability 20 weight 0\n"), false,
		},

		// SONiC
		{"sonic", "numbers with zeros in front", queue(`"green_min_threshold": "800000"`), queue(`"green_min_threshold": "0800000"`), true},
		{"sonic", "numbers and strings", queue(`"green_min_threshold": "800000"`), queue(`"green_min_threshold": 800000`), true},
		{"sonic", "truth and strings", queue(`"wred_green_enable": "true"`), queue(`"wred_green_enable": true`), true},
		{"sonic", "order", queue(`"green_min_threshold": "1", "green_max_threshold": "2"`), queue(`"green_max_threshold": "2", "green_min_threshold": "1"`), true},
		{"sonic", "other numbers", queue(`"green_min_threshold": "800000"`), queue(`"green_min_threshold": "8000000"`), false},
		{"sonic", "lists, unsorted, with blanks and repeats", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4"}}}`, `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "4, 3,3"}}}`, true},
		{"sonic", "an empty list and none", `{"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "A"}}}`, `{"PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "A", "pfc_enable": ""}}}`, true},
		{"sonic", "other lists", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3,4"}}}`, `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}}`, false},
		{"sonic", "references of old images", `{"QUEUE": {"Ethernet0|3": {"wred_profile": "A"}}}`, `{"QUEUE": {"Ethernet0|3": {"wred_profile": "[WRED_PROFILE|A]"}}}`, true},
		{"sonic", "names of digits", `{"QUEUE": {"Ethernet0|3": {"wred_profile": "1"}}}`, `{"QUEUE": {"Ethernet0|3": {"wred_profile": "01"}}}`, false},
		{"sonic", "a default that is written", `{"SCHEDULER": {"s": {"type": "DWRR"}}}`, `{"SCHEDULER": {"s": {"type": "DWRR", "weight": "1", "meter_type": "bytes"}}}`, true},
		{"sonic", "another value than the default", `{"SCHEDULER": {"s": {"type": "DWRR"}}}`, `{"SCHEDULER": {"s": {"type": "DWRR", "weight": "2"}}}`, false},
		{"sonic", "an empty row as redis has it", `{"QUEUE": {"Ethernet0|3": {}}}`, `{"QUEUE": {"Ethernet0|3": {"NULL": "NULL"}}}`, true},
	} {
		d := ByOS(x.os)
		a, _ := d.Parse([]byte(x.a))
		b, _ := d.Parse([]byte(x.b))
		there, back := Diff(d, Facts{}, a, b), Diff(d, Facts{}, b, a)
		if (len(there) == 0) != x.same || (len(back) == 0) != x.same {
			t.Errorf("%s, %s: same is not %v: %v, and back %v", x.os, x.what, x.same, there, back)
		}
	}
}
