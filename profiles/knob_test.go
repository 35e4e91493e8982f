package profiles

import (
	"path"
	"strings"
	"testing"
)

func knobOf(t *testing.T, personalityName, name string) Knob {
	t.Helper()
	k, ok := personality(t, personalityName).Knob(name)
	if !ok {
		t.Fatalf("%s has no %s", personalityName, name)
	}
	return k
}

// TestKnobValues: what the drivers' own sources say that a file prints, and what they take.
func TestKnobValues(t *testing.T) {
	for _, x := range []struct {
		personality, name string
		reads, value      string // what is read, and the canonical value of it; "" = an error
		writes            string // what is written for that value; "" = an error
	}{
		{"mlx5", "roce.traffic-class", "Global tclass=106\n", "106", "tclass=106"},
		{"mlx5", "roce.traffic-class", "Global tclass=104\nsrc_ip=10.0.0.1,tclass=64\n", "104", "tclass=104"},
		{"mlx5", "roce.traffic-class", "", "-1", "tclass=-1"}, // the file is empty where none is set
		{"mlx5", "roce.mode", "RoCE v2\n", "v2", "RoCE v2"},
		{"mlx5", "roce.mode", "IB/RoCE v1\n", "v1", "IB/RoCE v1"},
		{"mlx5", "roce.mode", "RoCE v3\n", "", ""},
		{"mlx5", "roce.tos", "104\n", "104", "104"},
		{"mlx5", "cc.ai_rate", "5\n", "5", "5"},
		{"mlx5", "cc.ai_rate", "fast\n", "", ""},
		{"mlx5", "cc.enable", "1\n", "1", "1"},
		{"mlx5", "cc.enable", "2\n", "", ""},
		{"bnxt", "cc.enable", "0x1\n", "on", "0x1"},
		{"bnxt", "cc.enable", "0\n", "off", "0x0"}, // printed with %#x
		{"bnxt", "cc.cnp-dscp", "0x30\n", "48", "0x30"},
		{"bnxt", "cc.cnp-dscp", "0x1a\n", "26", "0x1a"}, // 26 would be read as 38
		{"bnxt", "cc.algorithm", "0x1\n", "dcqcn", "0x1"},
		{"ice", "cc.enable", "1\n", "on", "1"},
		{"ionic", "cc.enable", "Lif id : 43000070\nROCE device : ionic_7\nDCQCN profile id : 1\nStatus                                   : Enabled\n", "on", "Enabled"},
		{"ionic", "cc.cnp-dscp", "DSCP value used for CNP                  : 46\n", "46", ""},
		{"nbl", "pfc.priorities", "0,0,0,1,0,0,0,0\n", "3", "0,0,0,1,0,0,0,0"},
		{"nbl", "pfc.priorities", "0 0 0 1 1 0 0 0\n", "3 4", "0,0,0,1,1,0,0,0"},
		{"nbl", "pfc.priorities", "0,0,0,0,0,0,0,0\n", "none", "0,0,0,0,0,0,0,0"},
		{"nbl", "pfc.priorities", "0,0,0,1\n", "", ""},
	} {
		k := knobOf(t, x.personality, x.name)
		got, err := k.Decode(x.reads)
		if got != x.value || (err == nil) != (x.value != "") {
			t.Errorf("%s %s: %q reads as %q, %v; want %q", x.personality, x.name, x.reads, got, err, x.value)
		}
		if x.value == "" {
			continue
		}
		if raw, err := k.Encode(x.value); raw != x.writes || (err == nil) != (x.writes != "") {
			t.Errorf("%s %s: %q is written as %q, %v; want %q", x.personality, x.name, x.value, raw, err, x.writes)
		}
	}
}

// TestKnobRange: a value that the file does not take is refused before it is written, in words.
func TestKnobRange(t *testing.T) {
	eighths := Knob{Paths: []string{"/sys/class/net/{netdev}/x"}, Scale: knobOf(t, "mlx5", "cc.ai_rate").scale(), Max: 100, Effect: EffectNone}
	eighths.Scale.Num = 8
	for _, x := range []struct {
		k           Knob
		value, want string
	}{
		{knobOf(t, "mlx5", "cc.cnp-dscp"), "64", "64 is not from 0 to 63"},
		{knobOf(t, "mlx5", "cc.cnp-dscp"), "-1", `"-1" is not a number`},
		{knobOf(t, "mlx5", "roce.traffic-class"), "fast", `"fast" is not a number or one of -1`},
		{knobOf(t, "mlx5", "roce.mode"), "v3", `"v3" cannot be written or one of v1, v2`},
		{knobOf(t, "mlx5", "cc.enable"), "3", `"3" is not 0 or 1`},
		{knobOf(t, "ionic", "cc.cnp-dscp"), "46", `"46" cannot be written`},
		{knobOf(t, "nbl", "pfc.priorities"), "8", "is not priorities"},
		{knobOf(t, "nbl", "pfc.priorities"), "4 3", "write 3 4"},
		{eighths, "12", "12 cannot be written: it is counted in steps of 8"},
		{eighths, "16", ""},
	} {
		_, err := x.k.Encode(x.value)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: got %v, want %q", x.value, err, x.want)
		}
	}
	if got, err := eighths.Decode("2"); got != "16" || err != nil {
		t.Errorf("2 steps of 8 read as %s, %v", got, err)
	}
}

// TestKnobPaths: what root would write, or run, because a document says so.
func TestKnobPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/sys/class/net/{netdev}/ecn/roce_rp/enable/{priority}":              "",
		"/sys/class/infiniband/{rdma}/tc/{port}/traffic_class":               "",
		"/sys/kernel/debug/mlx5/{pci}/cc_params/rp_ai_rate":                  "",
		"/sys/kernel/config/rdma_cm/{rdma}/ports/{port}/default_roce_tos":    "",
		"/proc/sys/net/ipv4/conf/{netdev}/arp_ignore":                        "",
		"/sys/bus/pci/devices/{pci}/cc/dscp":                                 "",
		"/sys/bus/pci/devices/{pci}/remove":                                  "takes it apart",
		"/sys/bus/pci/devices/{pci}/config":                                  "takes it apart",
		"/sys/bus/pci/devices/{pci}/resource0":                               "takes it apart",
		"/sys/bus/pci/devices/{pci}/sriov_numvfs":                            "takes it apart",
		"/sys/bus/pci/devices/{pci}/driver/unbind":                           "takes it apart",
		"/sys/bus/pci/devices/{pci}/virtfn0/x":                               "takes it apart",
		"/sys/class/net/{netdev}/device/x":                                   "nothing is written through device",
		"/sys/class/net/{netdev}/subsystem/eth0/mtu":                         "leads away",
		"/sys/class/net/{netdev}/../eth0/mtu":                                ".. leads out",
		"/sys/class/net/eth0/mtu":                                            "want a file of this NIC",
		"/sys/class/net/{netdev}":                                            "want a file of this NIC",
		"/sys/class/net/x{netdev}/mtu":                                       "want a file of this NIC",
		"/proc/sys/kernel/core_pattern":                                      "want a file of this NIC",
		"/proc/sysrq-trigger":                                                "want a file of this NIC",
		"/sys/power/state":                                                   "want a file of this NIC",
		"/sys/module/{netdev}/parameters/x":                                  "want a file of this NIC",
		"/etc/passwd":                                                        "want a file of this NIC",
		"sys/class/net/{netdev}/mtu":                                         "want an absolute path",
		"/sys/class/net/{netdev}//mtu":                                       "write it as",
		"/sys/class/net/{netdev}/mtu/":                                       "write it as",
		"/sys/class/net/{netdev}/{home}/x":                                   "{home} is none of",
		"/sys/class/net/{netdev}/{rdma":                                      "is none of",
		"/sys/class/net/{netdev}/rdma}":                                      "braces do not match",
		"/sys/class/net/{netdev}/a b":                                        "want an absolute path",
		"/sys/class/net/{netdev}/a\nb":                                       "want an absolute path",
		"/sys/class/net/{netdev}/" + strings.Repeat("a", 200):                "at most 200",
		"/sys/class/net/{netdev}/queues/tx-0/byte_queue_limits/limit_max":    "",
		"/sys/kernel/config/irdma/{rdma}/roce_dcqcn_enable":                  "",
		"/sys/kernel/config/../{rdma}/x":                                     ".. leads out",
		"/sys/kernel/debug/{pci}/x":                                          "want a file of this NIC",
		"/sys/class/infiniband/{rdma}/ports/{port}/hw_counters/../../uevent": ".. leads out",
		"/sys/class/infiniband/{rdma}/uevent":                                "takes it apart",
	} {
		if err := checkPath(path, true); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
	if err := checkPath("/sys/class/net/{netdev}/device/x", false); err != nil {
		t.Errorf("reading through device: %v", err)
	}
	for _, x := range []struct{ argv, want string }{
		{"/usr/sbin/nicctl show dcqcn -r {rdma}", ""},
		{"nicctl show", "absolute path"},
		{"/usr/bin/../bin/x", "absolute path"},
		{"/usr/bin/{netdev}", "absolute path"},
		{"/bin/sh -c reboot", "not a shell"},
		{"/usr/bin/env x", "not a shell"},
		{"/usr/bin/sudo x", "not a shell"},
		{"/usr/bin/x $(reboot)", "is not letters"},
		{"/usr/bin/x ;reboot", "is not letters"},
		{"/usr/bin/x {priority}", "is none of"},
		{"/usr/bin/x " + strings.Repeat("a ", 40), "more than 32"},
	} {
		if err := checkCommand(strings.Fields(x.argv)); (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: got %v, want %q", x.argv, err, x.want)
		}
	}
}

// TestPlaceFill: names of a host are hostile too.
func TestPlaceFill(t *testing.T) {
	at := Place{Netdev: "ens1f0", PCI: "0000:17:00.0", RDMA: "mlx5_0", Port: 1, Priority: 3}
	for _, x := range []struct {
		at             Place
		template, want string
	}{
		{at, "/sys/class/net/{netdev}/ecn/roce_rp/enable/{priority}", "/sys/class/net/ens1f0/ecn/roce_rp/enable/3"},
		{at, "/sys/class/infiniband/{rdma}/tc/{port}/traffic_class", "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"},
		{at, "/sys/kernel/debug/mlx5/{pci}/cc_params/rp_gd", "/sys/kernel/debug/mlx5/0000:17:00.0/cc_params/rp_gd"},
		{Place{Netdev: ".."}, "/sys/class/net/{netdev}/x", ""},
		{Place{Netdev: "a/../../b"}, "/sys/class/net/{netdev}/x", ""},
		{Place{Netdev: "a"}, "/sys/class/infiniband/{rdma}/x", ""},
		{Place{RDMA: "a"}, "/sys/class/infiniband/{rdma}/ports/{port}/x", ""},
		{Place{Netdev: "{rdma}", RDMA: "x"}, "/sys/class/net/{netdev}/x", "/sys/class/net/{rdma}/x"}, // a name, whatever it looks like
	} {
		if got, err := x.at.Fill(x.template); got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%+v %s: got %q, %v, want %q", x.at, x.template, got, err, x.want)
		}
	}
}

// FuzzKnob: what is taken for a knob stays below the NIC's own directories, runs no shell, and reads back as it was written.
func FuzzKnob(f *testing.F) {
	for _, n := range []string{"mlx5", "bnxt", "ice", "ionic", "nbl", Generic} {
		c, _ := Default()
		p, _ := c.PersonalityNamed(n)
		for _, k := range p.Knobs {
			f.Add(k.String(), "104")
		}
	}
	f.Add(`{"paths":["/sys/class/net/{netdev}/../x"],"max":1,"effect":"none"}`, "1")
	f.Add(`{"paths":["/sys/class/net/{netdev}/a....b"],"max":1,"effect":"none"}`, "1") // a name like any other
	f.Fuzz(func(t *testing.T, text, value string) {
		k, err := ParseKnob(text)
		if err != nil {
			return
		}
		again, err := ParseKnob(k.String())
		if err != nil || again.String() != k.String() {
			t.Fatalf("%s reads back as %s, %v", k, again, err)
		}
		at := Place{Netdev: "eth0", PCI: "0000:01:00.0", RDMA: "rdma0", Port: 1}
		for _, p := range append(append([]string{}, k.Paths...), append(k.Also, k.Mkdir, k.Apply)...) {
			if p == "" {
				continue
			}
			got, err := at.Fill(p)
			if err != nil || path.Clean(got) != got || !strings.HasPrefix(got, "/sys/") && !strings.HasPrefix(got, "/proc/sys/net/") ||
				!strings.Contains(got, "/eth0") && !strings.Contains(got, "/0000:01:00.0") && !strings.Contains(got, "/rdma0") {
				t.Fatalf("%s leads to %s (%v)", p, got, err)
			}
		}
		if len(k.Command) > 0 && k.Writable() {
			t.Fatal("a command is written")
		}
		raw, err := k.Encode(value)
		if err != nil {
			return
		}
		if strings.ContainsAny(raw, "\n\x00") && !strings.ContainsAny(value, "\n\x00") {
			t.Fatalf("%q is written as %q", value, raw)
		}
		if _, err := k.Decode(raw); err != nil && k.Read == "" && k.Write == "" {
			t.Fatalf("%q is written as %q, which does not read back: %v", value, raw, err)
		}
	})
}
