package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func nicHost(t *testing.T, nic string) *Host {
	h, _ := start(t, Options{Links: []Link{{Name: "eth0", MTU: 1500, NIC: nic, Addresses: []string{"192.0.2.1/31"}}, {Name: "eth1", MTU: 1500}}})
	return h
}

// How a NIC of each family is when its driver was loaded.
func TestFresh(t *testing.T) {
	for _, tt := range []struct{ nic, knob, want string }{
		{"connectx-7", "ets prio-tc", "0:1 1:0 2:2 3:3 4:4 5:5 6:6 7:7"},
		{"connectx-7", "ets tsa", "0:vendor 1:vendor 2:vendor 3:vendor 4:vendor 5:vendor 6:vendor 7:vendor"},
		{"connectx-7", "pause receive", "on"},
		{"connectx-7", "pfc priorities", "none"},
		{"connectx-7", "app dscp 26", ""},
		{"connectx-7", "roce traffic-class", "-1"},
		{"connectx-7", "cc cnp-priority", "6"},
		{"bcm57508", "cc cnp-priority", "7"},
		{"bcm57508", "buffer sizes", ""},
		{"e810", "ets prio-tc", "0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0"},
		{"e810", "flag fw-lldp-agent", "on"},
		{"e810", "dcbx mode", "lld-managed ieee"},
		{"hns3", "ets bandwidth", "0:100 1:0 2:0 3:0 4:0 5:0 6:0 7:0"},
		{"virtio", "pfc priorities", ""},
		{"virtio", "pause send", "on"},
		{"made-up", "pfc priorities", "none"},
		{"made-up", "cc ai_rate", ""},
	} {
		if got := nicHost(t, tt.nic).Knobs("eth0")[tt.knob]; got != tt.want {
			t.Errorf("%s: %s is %q, want %q", tt.nic, tt.knob, got, tt.want)
		}
	}
}

// What a kernel takes of a knob, and what it says to the rest.
func TestSet(t *testing.T) {
	for _, tt := range []struct{ nic, knob, value, err string }{
		{"connectx-7", "pfc priorities", "3 4", ""},
		{"connectx-7", "pfc priorities", "8", "numerical result out of range"},
		{"connectx-7", "pfc priorities", "x", "invalid argument"},
		{"connectx-7", "pfc delay", "65536", "numerical result out of range"},
		{"connectx-7", "app dscp 26", "3", ""},
		{"connectx-7", "app dscp 64", "3", "numerical result out of range"},
		{"connectx-7", "app ethertype 35093", "3", "invalid argument"},
		{"connectx-7", "ets tsa", "0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict", "invalid argument"}, // shares sum up to 0
		{"connectx-7", "ets prio-tc", "0:0 1:1", "invalid argument"},
		{"e810", "ets prio-tc", "0:0 1:1 2:2 3:3 4:0 5:0 6:4 7:0", "invalid argument"},
		{"e810", "app dscp 48", "6", "invalid argument"},
		{"e810", "flag fw-lldp-agent", "maybe", "invalid argument"},
		{"connectx-7", "flag fw-lldp-agent", "off", "operation not supported"},
		{"connectx-7", "dcbx mode", "host lld-managed ieee", "the driver answered neither done nor refused"},
		{"bcm57508", "buffer sizes", "0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0", "operation not supported"},
		{"connectx-7", "pci max-read-request", "4096", ""},
		{"connectx-7", "pci max-read-request", "4000", "invalid argument"},
		{"connectx-7", "cc algorithm", "rtt", "permission denied"},
		{"connectx-7", "cc cnp-dscp", "64", "numerical result out of range"},
		{"connectx-7", "roce mode", "v3", "invalid argument"},
		{"connectx-7", "roce traffic-class", "-1", ""},
		{"virtio", "pfc priorities", "3", "operation not supported"},
	} {
		h := nicHost(t, tt.nic)
		before := h.Held()
		err := h.Set("eth0", tt.knob, tt.value)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %s %s: %v, want %q", tt.nic, tt.knob, tt.value, err, tt.err)
		}
		if (err != nil) != (h.Held() == before) && tt.value != "-1" {
			t.Errorf("%s: %s %s: error %v, and the host holds\n%s", tt.nic, tt.knob, tt.value, err, h.Held())
		}
	}
	h := nicHost(t, "connectx-7")
	for link, want := range map[string]string{"eth1": "operation not supported", "eth9": "no such device"} {
		if err := h.Set(link, "pfc priorities", "3"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", link, err)
		}
	}
}

// Three objects of a NIC, one write each but for the app table, in an order that a NIC can take; equal values are not
// written again.
func TestCommitKnobs(t *testing.T) {
	h, addr := start(t, Options{Links: []Link{{Name: "eth0", MTU: 1500, NIC: "connectx-7"}}})
	say := talk(t, h, login(t, h, addr))
	var wrote []string
	h.SetFaults(Faults{OnWrite: func(what string) string { wrote = append(wrote, what); return "" }})
	change := func(scope, field, before, after string) string {
		if before == "" {
			return fmt.Sprintf(`{"key":[%q,"eth0",%q],"after":%q}`, scope, field, after)
		}
		return fmt.Sprintf(`{"key":[%q,"eth0",%q],"before":%q,"after":%q}`, scope, field, before, after)
	}
	const prioTC, tsa = "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7", "0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict"
	zero, vendor := "0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0", "0:vendor 1:vendor 2:vendor 3:vendor 4:vendor 5:vendor 6:vendor 7:vendor"
	commit := `{"id":1,"op":"commit","changes":[` + strings.Join([]string{
		change("pfc", "priorities", none, "3"), change("ets", "prio-tc", "0:1 1:0 2:2 3:3 4:4 5:5 6:6 7:7", prioTC),
		change("ets", "tsa", vendor, tsa), change("ets", "bandwidth", zero, "0:40 1:0 2:0 3:60 4:0 5:0 6:0 7:0"),
		change("app", "dscp 26", "", "3"), change("app", "dscp 48", "", "6"), change("pause", "send", "on", "off"), change("link", "mtu", "1500", "9000"),
		`{"key":["limit","/etc/security/limits.d/90-fabricctl.conf","memlock"],"after":"unlimited"}`,
	}, ",") + "]}"
	h.SetJobs("eth0", 12)
	if got, want := say(commit), `{"error":{"code":"jobs","message":"commit: eth0 has 12 queue pairs of running programs, and setting pfc ends them"},"id":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.SetJobs("eth0", 0)
	if got := say(commit); got != `{"id":1}` {
		t.Errorf("commit: %s", got)
	}
	want := []string{"eth0 pause send off", "eth0 mtu 9000", "eth0 app dscp 26 3", "eth0 app dscp 48 6", "eth0 ets bandwidth 0:40 1:0 2:0 3:60 4:0 5:0 6:0 7:0", "eth0 pfc priorities 3", "/etc/security/limits.d/90-fabricctl.conf memlock"}
	if diff := cmp.Diff(want, wrote); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := say(commit); got != `{"id":1}` || len(wrote) != len(want) {
		t.Errorf("the same again: %s, %d writes", got, len(wrote))
	}
	if n := h.Counters(); n.KnobSets != 5 || n.MTUSets != 1 || n.FileWrites != 1 || n.Downs != 1 {
		t.Errorf("%+v", n)
	}
}

func TestFactsOfNICs(t *testing.T) {
	h, addr := start(t, Options{Hostname: "gpu-17", Links: []Link{
		{Name: "eth0", MTU: 1500, PCI: "0000:17:00.0", NIC: "connectx-7", Addresses: []string{"192.0.2.1/31"}},
		{Name: "eth1", MTU: 1500, PCI: "0000:18:00.0", NIC: "connectx-7", Master: "bond0"},
		{Name: "eth2", MTU: 1500, PCI: "0000:19:00.0", NIC: "virtio"},
		{Name: "bond0", MTU: 1500},
	}})
	h.SetJobs("eth0", 4)
	got := talk(t, h, login(t, h, addr))(`{"id":1,"op":"facts"}`)
	for _, part := range []string{
		`"name":"eth0","pci":"0000:17:00.0","model":"15b3:1021","port":1,"driver":"mlx5_core","driver_version":"24.10-1.1.4","out_of_tree":true,"personality":"mlx5","rdma":"mlx5_0","rdma_port":1,"numa":0,"addresses":["192.0.2.1/31"],"gid":3,"qps":4,`,
		`"knobs":["app","buffer","cc.ai_rate",`, `"pfc","ring","roce.mode","roce.tos","roce.traffic-class"]`,
		`"rdma":"mlx5_1","rdma_port":1,"bond":"bond0","numa":0,"gid":-1,"gid_why":"it has no IPv4 address","qps":0,`,
		`"driver":"virtio_net","driver_version":"6.12.0-emulated","personality":"generic","numa":0,"gid":-1,"gid_why":"it has no RDMA device","qps":-1,"knobs":["fec","irq","pause","ring"]`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s\nlacks %s", got, part)
		}
	}
	if err := h.SetMTU("bond0", 9000); err != nil || h.Links()[1].MTU != 9000 || h.Links()[0].MTU != 1500 {
		t.Errorf("%v, %+v", err, h.Links())
	}
}
