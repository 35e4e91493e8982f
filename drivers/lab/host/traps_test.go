package host

import (
	"strconv"
	"strings"
	"testing"
)

// What a kernel does with links that hang together: a bond hands its MTU down, a VLAN cannot have more than the link below it
// and goes down with it, and drivers take the port down for an MTU.
func TestMTUTraps(t *testing.T) {
	h, _ := start(t, Options{Links: []Link{
		{Name: "eth0", MTU: 1500, Min: 68, Max: 9978, NIC: "e810"},
		{Name: "eth0.7", MTU: 1500, Over: "eth0"},
		{Name: "eth1", MTU: 1500, NIC: "connectx-7", Master: "bond0"},
		{Name: "bond0", MTU: 1500},
	}})
	for _, step := range []struct {
		link string
		mtu  int
		err  string
		want string // of all links
	}{
		{"eth0.7", 9000, "numerical result out of range", "1500 1500 1500 1500"},
		{"eth0", 9000, "", "9000 1500 1500 1500"},
		{"eth0.7", 9000, "", "9000 9000 1500 1500"},
		{"eth0", 4200, "", "4200 4200 1500 1500"},
		{"bond0", 9000, "", "4200 4200 9000 9000"},
		{"eth1", 1500, "", "4200 4200 1500 9000"},
	} {
		err := h.SetMTU(step.link, step.mtu)
		if (err == nil) != (step.err == "") || err != nil && err.Error() != step.err {
			t.Errorf("%s to %d: %v", step.link, step.mtu, err)
		}
		var got []string
		for _, l := range h.Links() {
			got = append(got, strconv.Itoa(l.MTU))
		}
		if s := strings.Join(got, " "); s != step.want {
			t.Errorf("%s to %d: %s, want %s", step.link, step.mtu, s, step.want)
		}
	}
	if n := h.Counters(); n.Downs != 2 {
		t.Errorf("%d flaps, want the two of the E810", n.Downs)
	}
}

// Where QoS is not to be set, it is refused before anything is written.
func TestNotHere(t *testing.T) {
	for _, tt := range []struct {
		link Link
		says string
	}{
		{Link{VFOf: "ens1f0np0", NIC: "connectx-7"}, "it is a virtual function of ens1f0np0: QoS is set there"},
		{Link{DPU: "its Arm side rules it", NIC: "bluefield-3"}, "its Arm side rules it"},
		{Link{Master: "bond0", NIC: "e810"}, "its driver refuses QoS while it is in a bond (bond0)"},
	} {
		tt.link.Name, tt.link.MTU = "eth0", 1500
		h, addr := start(t, Options{Links: []Link{tt.link, {Name: "bond0", MTU: 1500}}})
		say := talk(t, h, login(t, h, addr))
		got := say(`{"id":1,"op":"commit","changes":[{"key":["link","eth0","mtu"],"before":"1500","after":"9000"},{"key":["app","eth0","dscp 26"],"after":"3"}]}`)
		if !strings.Contains(got, `"code":"rejected"`) || !strings.Contains(got, tt.says) || h.Writes() != 0 {
			t.Errorf("%+v: %s after %d writes", tt.link, got, h.Writes())
		}
	}
}

// A driver that is loaded anew, and a machine that starts anew, keep what they really keep.
func TestReloadAndReboot(t *testing.T) {
	h := nicHost(t, "connectx-7")
	for knob, v := range map[string]string{"app dscp 26": "5", "pfc priorities": "3", "roce tos": "104", "ets prio-tc": "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"} {
		if err := h.Set("eth0", knob, v); err != nil {
			t.Fatalf("%s: %v", knob, err)
		}
	}
	if err := h.Reload("eth0"); err != nil {
		t.Fatal(err)
	}
	k := h.Knobs("eth0")
	if k["app dscp 26"] != "5" || k["app dscp 63"] != "7" || k["pfc priorities"] != "3" || k["roce tos"] != "0" || k["ets prio-tc"] != "0:1 1:0 2:2 3:3 4:4 5:5 6:6 7:7" {
		t.Errorf("after the driver was loaded anew: %v", k)
	}
	if err := h.SetMTU("eth0", 9000); err != nil {
		t.Fatal(err)
	}
	h.Reboot()
	k = h.Knobs("eth0")
	if _, mapped := k["app dscp 26"]; mapped || k["pfc priorities"] != none || k["dcbx mode"] != "host cee ieee" || h.Links()[0].MTU != 1500 {
		t.Errorf("after a reboot: %v, %+v", k, h.Links()[0])
	}
}

// Everything that can be done to a host from outside does something or says why not.
func TestControl(t *testing.T) {
	h, addr := start(t, Options{Links: []Link{{Name: "eth0", MTU: 1500, NIC: "bcm57508", Addresses: []string{"192.0.2.1/24"}}, {Name: "eth1", MTU: 1500, NIC: "virtio", Addresses: []string{"192.0.2.2/24"}}}})
	for _, tt := range []struct{ say, want, err string }{
		{"help", "stay-down LINK\n", ""},
		{"jobs eth0 7", "", ""},
		{"gid eth0 -1", "", ""},
		{"wrong eth0 ets busy", "", ""},
		{"show", "eth0: bcm57508 (bnxt_en), up, mtu 1500, flaps 0, gaps 0, queue pairs 7, gid -1\neth0: ets goes wrong: busy\n", ""},
		{"show", "eth0, eth1 are all in 192.0.2.0/24", ""},
		{"set eth0 app dscp 26 3", "", ""},
		{"set eth0 link mtu 9000", "", ""},
		{"held", "link eth0 mtu 9000\neth0 app dscp 26: 3\n", ""},
		{"set eth0 app dscp 26 -", "", ""},
		{"set eth0 ets willing on", "", "device or resource busy"},
		{"set eth1 pfc priorities 3", "", "operation not supported"},
		{"set eth9 pfc priorities 3", "", "no such device"},
		{"firmware eth1 on", "", "operation not supported"},
		{"firmware eth0 perhaps", "", "is not on or off"},
		{"tick soon", "", "is no duration"},
		{"explode", "", "has no control"},
		{"jobs eth0", "", "say: jobs LINK N"},
		{"lose", "", ""},
		{"show", "nobody reaches it\n", ""},
		{"find", "", ""},
		{"stay-down eth0", "", ""},
		{"reload eth0", "", ""},
		{"reboot", "", ""},
	} {
		got, err := h.Control(strings.Fields(tt.say)...)
		if !strings.Contains(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v\n%s", tt.say, err, got)
		}
	}
	login(t, h, addr) // where it was before it was lost
}
