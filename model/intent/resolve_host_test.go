package intent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/profiles"
)

// hostPolicy is what a model asks of a NIC, whether the dialect of hosts writes it or not: the base model, and more.
func hostPolicy(t *testing.T, k chain, yaml string) (Policy, *compiled, diag.List) {
	t.Helper()
	f, l := model.Load(file(yaml), "m.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	r := newResolver(f)
	k.host, k.link.cable = true, 5000
	mtu, hosts := f.MTU, f.Hosts
	for _, o := range []*model.Override{k.role, k.device, k.port} {
		if o != nil {
			hosts = o.Hosts.Over(hosts)
		}
	}
	c := r.host(k, "storage", mtu, hosts, append([]model.Class(nil), f.Classes...), nil)
	return c.policy, c, r.found
}

// words are the values of a policy and where they are from, a line each; those that switches share with hosts are left out.
func words(c *compiled) string {
	var b strings.Builder
	for _, v := range hostValues(&c.policy) {
		o := c.origins[v.Field]
		from := "nowhere"
		if o != nil {
			from = strings.TrimSpace(o.Kind.String() + " " + o.Ref)
			if !o.Pos.IsZero() {
				from = fmt.Sprintf("%s %d:%d", from, o.Pos.Line, o.Pos.Col)
			}
		}
		fmt.Fprintf(&b, "%s = %s <- %s\n", v.Label, v.Text, from)
	}
	return b.String()
}

func TestHostPolicy(t *testing.T) {
	two := strings.Replace(base, "  - {name: cnp", "  - {name: storage, dscp: [18], priority: 4, lossless: true}\n  - {name: cnp", 1)
	const byDefault = `roce mode = v2 <- default RoCE v2 is routed, and carries a code point
roce tos = 112 <- formula 28 << 2, the first code point of class training 11:29
forced tos = none <- default applications choose their class themselves
cc applies to = priority 3 <- formula the lossless classes, and that of RDMA connections
cnp dscp = 48 <- model 12:35
cnp priority = 6 <- model 12:50
`
	const nccl = `nccl traffic class = 112 <- formula 28 << 2, DSCP of class training 11:29
nccl adapters = those of the fabric <- default NCCL uses the NICs of the fabric and no others
nccl roce version = v2 <- default from 2.21 on NCCL finds the GID by RoCE version and address; give nccl.version where an older one is in use
nccl addresses = ipv4 <- default the inventory gives no addresses of NICs
`
	for _, x := range []struct {
		name  string
		chain chain
		model string
		want  string
		found string
	}{
		{"nothing said", chain{}, base, byDefault + nccl, ""},
		{"a NIC for management", chain{plain: true, silent: true}, base + "hosts: {irq: local}\n", "interrupts = local <- model 15:14\n", ""},
		{"a storage NIC, one class", chain{storage: true, silent: true}, base, byDefault, ""},
		{
			"a storage NIC, two classes",
			chain{storage: true, silent: true},
			two + "nccl: {class: training}\n",
			"cc applies to = priorities 3-4 <- formula the lossless classes, and that of RDMA connections\ncnp dscp = 48 <- model 13:35\ncnp priority = 6 <- model 13:50\n",
			"m.yaml:12:5: info: roce-class: NICs of storage hosts carry storage, and nothing says which of the lossless classes training, storage it uses, so connections that choose none themselves are left unmarked",
		},
		{
			"all that can be said", chain{}, base + `hosts:
  roce: {mode: v1, class: training, traffic_class: class}
  congestion: {algorithm: dcqcn, parameters: {ai_rate: 5Mbps, gd: 0, min_dec_fac: 50%, clamp_tgt_rate: true, time_reset: 300us, byte_reset: 32767B, dce_tcp_g: 1019}}
  pcie: {max_read_request: 4096B}
  irq: spread
  rings: {rx: 8192, tx: 4096}
  fec: rs
  memlock: unlimited
nccl: {version: 2.20.5, timeout: 22, retry_count: 7, qps_per_connection: 4, cross_nic: 0, hca: off, socket_ifname: eno1}
`, `roce mode = v1 <- model 16:16
roce tos = 112 <- formula 28 << 2, the first code point of class training 11:29
forced tos = 112 <- formula 28 << 2, the first code point of class training 16:52
congestion control = dcqcn <- model 17:27
cc applies to = priority 3 <- formula the lossless classes, and that of RDMA connections
cnp dscp = 48 <- model 12:35
cnp priority = 6 <- model 12:50
clamp_tgt_rate = true <- model 17:104
time_reset = 300us <- model 17:122
byte_reset = 32767B <- model 17:141
ai_rate = 5Mbps <- model 17:56
gd = 0 <- model 17:67
min_dec_fac = 50% <- model 17:83
dce_tcp_g = 1019 <- model 17:160
pcie read request = 4096B <- model 18:28
interrupts = spread <- model 19:8
receive ring = 8192 <- model 20:15
send ring = 4096 <- model 20:25
fec = rs <- model 21:8
locked memory = unlimited <- model 22:12
nccl traffic class = 112 <- formula 28 << 2, DSCP of class training 11:29
nccl timeout = 22 <- model 23:34
nccl retry count = 7 <- model 23:51
nccl queue pairs = 4 <- model 23:74
nccl cross nic = 0 <- model 23:88
nccl gid index = that of the host's address <- model 23:17
`, "",
		},
		{
			"PFC alone on purpose",
			chain{},
			strings.Replace(base, "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}", "ecn: off", 1),
			byDefault + nccl, "",
		},
		{
			"IPv6", chain{}, base + `---
apiVersion: fabricctl/v1
kind: Inventory
devices: {host1: {nics: [{ip: "2001:db8::1/64"}]}}
`, strings.Replace(byDefault+nccl, "ipv4 <- default the inventory gives no addresses of NICs", "ipv6 <- formula the addresses of the NICs 18:31", 1), "",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, c, found := hostPolicy(t, x.chain, x.model)
			if d := cmp.Diff(x.want, words(c)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			var said []string
			for _, f := range found {
				said = append(said, fmt.Sprintf("%s: %s: %s: %s", f.Pos, f.Severity, f.Rule, f.Msg))
			}
			if d := cmp.Diff(x.found, strings.Join(said, "\n")); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
		})
	}
}

// TestHostAgreesWithSwitch: a NIC maps, pauses and schedules as the switch at the other end of its link.
func TestHostAgreesWithSwitch(t *testing.T) {
	p, _, _ := hostPolicy(t, chain{}, base+"hosts: {receive_buffer: {lossless: 256KB, lossy: 64KB}}\n")
	f, _ := model.Load(file(base), "m.yaml")
	n, _ := Resolve(f)
	leaf := n.Device("leaf1")
	q := *leaf.PolicyOf(leaf.Port("downlink-1"))
	both := AreaSet(AreaMaps, AreaPFC, AreaScheduler)
	if d := cmp.Diff(q.Only(both), p.Only(both)); d != "" {
		t.Errorf("(-leaf +host):\n%s", d)
	}
	if p.Known.Has(AreaECN) || p.Known.Has(AreaWatchdog) || p.Cable != 5000 {
		t.Errorf("knows %v, cable %s", p.Known.Names(), p.Cable)
	}
	for i, want := range map[int]Buffer{3: {On: true, Reserved: 256_000}, 6: {On: true, Reserved: 64_000}, 0: {On: true, Reserved: 64_000}, 1: {}} {
		if p.Queues[i].Buffer != want {
			t.Errorf("buffer of priority %d is %+v, want %+v", i, p.Queues[i].Buffer, want)
		}
	}
}

// TestHostOverrides: the most specific level wins for each value, and the one it won over is remembered.
func TestHostOverrides(t *testing.T) {
	yaml := base + `hosts: {irq: local, congestion: {parameters: {ai_rate: 5Mbps, hai_rate: 50Mbps}}}
overrides:
  host:
    hosts: {irq: spread}
    devices: {host1: {hosts: {congestion: {parameters: {ai_rate: 10Mbps}}}, ports: {nic-1: {hosts: {fec: rs}}}}}
`
	f, _ := model.Load(file(yaml), "m.yaml")
	role := f.Roles["host"]
	dev := role.Devices["host1"]
	p, c, _ := hostPolicy(t, chain{role: role, device: dev, port: dev.Ports["nic-1"]}, yaml)
	got := []string{p.System.IRQ.String(), p.System.FEC.String()}
	for _, name := range []string{"ai_rate", "hai_rate"} {
		i := profiles.CCIndex(name)
		n, _ := p.CC.Param(i)
		got = append(got, profiles.CCParams()[i].Text(n))
	}
	if d := cmp.Diff([]string{"spread", "rs", "10Mbps", "50Mbps"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if lost := c.origins["cc.ai_rate"].Lost; len(lost) != 1 || lost[0].Line != 15 {
		t.Errorf("ai_rate won over %v, want line 15", lost)
	}
	n := resolve(t, file(yaml), "m.yaml")
	if site := n.Device("host1").Port("nic-1").Site; site != "host.host1.nic-1" {
		t.Errorf("site is %s", site)
	}
	if site := n.Device("host2").Port("nic-1").Site; site != "host" {
		t.Errorf("site of another host is %s", site)
	}
}

// TestOwnNCCL: the interfaces of the bootstrap are exact, and the range holds the addresses of the NICs with RDMA.
func TestOwnNCCL(t *testing.T) {
	rails := strings.Replace(base, "hosts: {per_leaf: 2, netdevs: [rdma0]}", "hosts: {per_leaf: 2, rails: 2, netdevs: [rdma0, rdma1]}", 1)
	inventory := func(nics string) string {
		return "---\napiVersion: fabricctl/v1\nkind: Inventory\ndevices: {host1: {nics: [" + nics + "]}}\n"
	}
	for _, x := range []struct {
		name, model string
		want        HostNCCL
	}{
		{"nothing said", rails, HostNCCL{}},
		{"interfaces", rails + "nccl: {socket_ifname: [eno1, eno2]}\n", HostNCCL{Socket: "=eno1,eno2"}},
		{"one address", rails + inventory("{ip: 192.168.1.11/31}"), HostNCCL{Range: "192.168.1.10/31"}},
		{"two rails", rails + inventory("{ip: 192.168.1.11/24}, {ip: 192.168.2.11/24}"), HostNCCL{Range: "192.168.0.0/22"}},
		{"one is for storage", rails + inventory("{ip: 192.168.1.11/24}, {ip: 10.0.0.1/24, carries: [storage]}"), HostNCCL{Range: "192.168.1.0/24"}},
		{"the other family", rails + "nccl: {address_family: ipv6}\n" + inventory("{ip: 192.168.1.11/24}"), HostNCCL{}},
		{"an old NCCL", rails + "nccl: {version: 2.18}\n" + inventory("{ip: 192.168.1.11/24}"), HostNCCL{}},
	} {
		if got := resolve(t, file(x.model), "m.yaml").Device("host1").NCCL; got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

func TestCovering(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"10.0.0.1/24", "10.0.0.0/24"},
		{"10.0.0.1/24 10.0.0.9/24", "10.0.0.0/24"},
		{"10.0.0.1/31 10.0.255.1/31", "10.0.0.0/16"},
		{"10.0.0.1/31 192.168.0.1/31", "0.0.0.0/0"},
		{"2001:db8::1/64 2001:db8:0:1::1/64", "2001:db8::/63"},
	} {
		var ps []netip.Prefix
		for s := range strings.FieldsSeq(x.in) {
			ps = append(ps, netip.MustParsePrefix(s))
		}
		if got, ok := covering(ps); !ok || got.String() != x.want {
			t.Errorf("%s: %s, want %s", x.in, got, x.want)
		}
	}
	if _, ok := covering(nil); ok {
		t.Error("no address has a prefix")
	}
}

// TestHostWords: every algorithm and FEC of a model has a word here that reads back, and a policy of a host outlives JSON.
func TestHostWords(t *testing.T) {
	for _, name := range model.CCAlgorithms() {
		if a, ok := ParseAlgorithm(name); !ok || a.String() != name {
			t.Errorf("algorithm %s is %s", name, a)
		}
	}
	if len(model.CCAlgorithms()) != int(numAlgorithms)-1 {
		t.Error("models have no word for some algorithm")
	}
	for f := FECAuto; f < numFEC; f++ {
		if g, ok := ParseFEC(f.String()); !ok || g != f {
			t.Errorf("FEC %s reads as %s", f, g)
		}
	}
	for _, word := range []string{"", "not said", "DCQCN"} {
		if _, ok := ParseAlgorithm(word); ok {
			t.Errorf("%q is an algorithm", word)
		}
		if _, ok := ParseFEC(word); ok {
			t.Errorf("%q is FEC", word)
		}
	}
	p, _, _ := hostPolicy(t, chain{}, base+"hosts: {congestion: {parameters: {gd: 0}}, fec: baser}\n")
	b, err := json.Marshal(p)
	var q Policy
	if err != nil || json.Unmarshal(b, &q) != nil || p != q {
		t.Errorf("%s reads as another policy: %v", b, err)
	}
}

// TestLeftAlone: what a model does not say of a host is no difference, and what it says and the host does not have is one.
func TestLeftAlone(t *testing.T) {
	want, _, _ := hostPolicy(t, chain{}, base+"hosts: {irq: local}\n")
	live := want
	live.System = System{ReadRequest: 512, IRQ: IRQOther, RingRX: 1024, FEC: FECRS, Memlock: true}
	live.CC.Algorithm = AlgorithmDCQCN
	live.CC.SetParam(profiles.CCIndex("gd"), 11)
	live.NCCL.QPs, live.NCCL.GID, live.NCCL.HCA = 4, 4, false
	live.Queues[3].Buffer = Buffer{On: true, Reserved: 256_000}
	live.RoCE.ToS = 0
	var got []string
	for _, d := range Differences(&live, &want) {
		got = append(got, fmt.Sprintf("%s: %s -> %s", d.Field, d.Before, d.After))
	}
	if d := cmp.Diff([]string{"roce.tos: 0 -> 112", "system.irq: other -> local", "nccl.hca: none -> those of the fabric"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
