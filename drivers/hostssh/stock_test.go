package hostssh

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/render"
)

// shown is the settings of a device in scopes that stock tools show, a line each.
func shown(t *testing.T, d drivers.Reader) []string {
	t.Helper()
	c, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range c {
		if slices.Contains([]string{"link", "dcbx", "pfc", "ets", "app", "buffer", "maxrate", "pause", "ring", "fec", "roce", "nccl"}, s.Key.Scope) {
			out = append(out, s.Key.String()+" = "+s.Value)
		}
	}
	return out
}

// Stock tools show what fabricctl-host shows, as far as they show it: on each kind of NIC, and on a link that has nothing.
func TestStockToolsShowNICs(t *testing.T) {
	links := []host.Link{
		{Name: "rdma0", MTU: 9000, PCI: "0000:17:00.0", NIC: "connectx-7", Addresses: []string{"192.168.1.11/31"}},
		{Name: "rdma1", MTU: 4200, PCI: "0000:18:00.0", NIC: "e810"},
		{Name: "rdma2", MTU: 1500, PCI: "0000:19:00.0", NIC: "bcm57508"},
		{Name: "eth0", MTU: 1500, PCI: "0000:01:00.0", NIC: "virtio"},
	}
	h, cfg := emulated(t, host.Options{Links: links, NCCL: "NCCL_IB_TC=104\n"})
	h.SetJobs("rdma0", 3)
	agent := dial(t, cfg)
	cfg.Binary = nil
	stock := dial(t, cfg)
	if diff := cmp.Diff(shown(t, agent), shown(t, stock)); diff != "" {
		t.Errorf("(-agent +stock):\n%s", diff)
	}
	near, _, err := agent.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := stock.Facts(t.Context())
	if err != nil || len(f.NICs) != len(near.NICs) {
		t.Fatalf("%+v, %v", f.NICs, err)
	}
	for i, n := range f.NICs {
		a := near.NICs[i]
		if n.Name != a.Name || n.PCI != a.PCI || n.Model != a.Model && a.Driver != "virtio_net" || n.Driver != a.Driver || n.RDMA != a.RDMA || n.Personality != a.Personality || n.QPs != a.QPs {
			t.Errorf("agent: %+v\nstock: %+v", a, n)
		}
		for _, k := range n.Knobs {
			if !a.Has(k) {
				t.Errorf("%s: stock tools see a knob %s, the agent sees %v", n.Name, k, a.Knobs)
			}
		}
	}
}

// What the tools printed on real machines, recorded.
func TestStockToolsRecorded(t *testing.T) {
	for _, c := range []struct {
		take func(*nicView, []byte)
		said string
		want []string
	}{
		{takePFC, `{"pfc_cap":8,"macsec_bypass":false,"delay":32768,"prio_pfc":[false,false,false,true,false,false,false,false]}`, []string{"pfc|dcb0|priorities = 3", "pfc|dcb0|delay = 32768"}},
		{
			takeETS, `{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[40,40,20,0,0,0,0,0],"pg_bw":[0,0,0,0,0,0,0,0],"tc_tsa":["ets","ets","ets","strict","strict","strict","strict","strict"],"prio_tc":[0,0,0,1,2,5,3,0]}`,
			[]string{"ets|dcb0|prio-tc = 0:0 1:0 2:0 3:1 4:2 5:5 6:3 7:0", "ets|dcb0|tsa = 0:ets 1:ets 2:ets 3:strict 4:strict 5:strict 6:strict 7:strict", "ets|dcb0|bandwidth = 0:40 1:40 2:20 3:0 4:0 5:0 6:0 7:0", "ets|dcb0|willing = off"},
		},
		{ // as mlx5 is after it was loaded: the number counts for classes that share
			takeETS, `{"willing":false,"tc_bw":[100,100,100,60,40,100,100,100],"tc_tsa":["vendor","vendor","strict","ets","ets","cbs","vendor","vendor"],"prio_tc":[1,0,2,3,4,5,6,7]}`,
			[]string{"ets|dcb0|prio-tc = 0:1 1:0 2:2 3:3 4:4 5:5 6:6 7:7", "ets|dcb0|tsa = 0:vendor 1:vendor 2:strict 3:ets 4:ets 5:cbs 6:vendor 7:vendor", "ets|dcb0|bandwidth = 0:0 1:0 2:0 3:60 4:40 5:0 6:0 7:0", "ets|dcb0|willing = off"},
		},
		{
			takeApp, `{"ethtype_prio":[[35093,3]],"default_prio":[0],"dscp_prio":[[26,3],[46,5],[26,5]],"stream_port_prio":[[18515,2]],"dgram_port_prio":[[4791,3]],"port_prio":[[4791,3]]}`,
			[]string{"app|dcb0|dscp 26 = 3 5", "app|dcb0|dscp 46 = 5"},
		},
		{takeApp, `{"default_prio":[0]}`, nil},
		{takeBuffer, `{"prio_buffer":[0,0,0,1,1,0,0,0],"buffer_size":[65536,131072,0,0,0,0,0,0],"total_size":262016}`, []string{"buffer|dcb0|priorities = 0:0 1:0 2:0 3:1 4:1 5:0 6:0 7:0", "buffer|dcb0|sizes = 0:65536 1:131072 2:0 3:0 4:0 5:0 6:0 7:0"}},
		{takeMaxRate, `{"tc_maxrate":[0,3125000000,12500000,0,0,0,0,0]}`, []string{"maxrate|dcb0|kbits = 0:0 1:25000000 2:100000 3:0 4:0 5:0 6:0 7:0"}},
		{takeDCBX, `{"host":true,"ieee":true,"static":true}`, []string{"dcbx|dcb0|mode = host ieee static"}},
		{takePause, "Pause parameters for dcb0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n", []string{"pause|dcb0|autoneg = off", "pause|dcb0|receive = on", "pause|dcb0|send = off"}},
		{takeRing, "Ring parameters for dcb0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t512\n", []string{"ring|dcb0|rx = 256", "ring|dcb0|tx = 512"}},
		{takeFEC, "FEC parameters for dcb0:\nSupported/Configured FEC encodings: Auto RS\nActive FEC encoding: RS\n", []string{"fec|dcb0|mode = auto rs"}},
		{takeRoCEMode, "RoCE v2\n", []string{"roce|dcb0|mode = v2"}},
		{takeRoCEToS, "104\n", []string{"roce|dcb0|tos = 104"}},
		{takeTrafficClass, "Global tclass=106\n", []string{"roce|dcb0|traffic-class = 106"}},
		// No answer is no knowledge.
		{takePFC, "dcb: No such device\n", nil},
		{takeETS, `{"tc_bw":[1]}`, nil},
		{takeDCBX, "[1", nil},
		{takeBuffer, "{}", nil},
		{takeMaxRate, "null", nil},
		{takeRoCEToS, "cat: Permission denied", nil},
		{takeRing, "netlink error: Operation not supported", nil},
		{takeFEC, "", nil},
	} {
		n := &nicView{HostNIC: render.HostNIC{Name: "dcb0"}}
		c.take(n, []byte(c.said))
		var got []string
		for _, s := range n.settings {
			got = append(got, s.Key.String()+" = "+s.Value)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", c.said, diff)
		}
	}
	n := &nicView{}
	takeQPs(n, []byte(`[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"[ib_core]"},{"lqpn":17,"type":"RC","pid":900,"comm":"ib_write_bw"}]`))
	takeDriver(n, []byte("driver: virtio_net\nversion: 1.0.0\nfirmware-version: \nexpansion-rom-version: \nbus-info: 0000:00:02.0\n"))
	if n.QPs != 1 || n.Driver != "virtio_net" || n.DriverVersion != "1.0.0" || n.Firmware != "" {
		t.Errorf("%+v", n)
	}
}

// A link of a bridge is in no bond.
func TestStockToolsBond(t *testing.T) {
	for said, want := range map[string]string{
		`{"ifname":"eth0","master":"bond0","linkinfo":{"info_slave_kind":"bond"}}`: "bond0",
		`{"ifname":"eth0","master":"br0","linkinfo":{"info_slave_kind":"bridge"}}`: "",
		`{"ifname":"eth0"}`: "",
	} {
		var l link
		if err := json.Unmarshal([]byte(said), &l); err != nil || l.bond() != want {
			t.Errorf("%s: %q, %v", said, l.bond(), err)
		}
	}
}

// A hostile host cannot make the script say more than it is asked: names of devices are words.
func TestStockToolsQuoteNames(t *testing.T) {
	for _, name := range []string{"a;reboot", "$(reboot)", "a'b", "x y"} {
		if q := quote(name); !strings.HasPrefix(q, "'") || strings.Contains(strings.ReplaceAll(q[1:len(q)-1], `'\''`, ""), "'") {
			t.Errorf("%q becomes %s", name, q)
		}
	}
}

func FuzzStockTools(f *testing.F) {
	f.Add(0, []byte(`{"prio_pfc":[true,true,true,true,true,true,true,true]}`))
	f.Add(5, []byte(`{"dscp_prio":[[26,3]]}`))
	f.Add(9, []byte("RX: 1\n"))
	f.Fuzz(func(t *testing.T, i int, said []byte) {
		qs := questions()
		n := &nicView{HostNIC: render.HostNIC{Name: "eth0", QPs: -1}}
		qs[uint(i)%uint(len(qs))].take(n, said)
		for _, s := range n.settings {
			if s.Value == "" || s.Key.Object != "eth0" {
				t.Errorf("%+v", s)
			}
		}
	})
}
