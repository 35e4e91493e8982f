package lint_test

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	shipped "github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/profiles"
)

// given is an example of the table of invariants; each entry uses its own fields.
type given struct {
	Kmin, Kmax int64
	Pmax       float64
	A, B       []int
	Lossless   []int
	ECN        []int
	Entries    int
	Same       bool
	Hosts      []int64
	Switches   []int64
	PFC        []int
	Pause      bool
	CNPPrio    int   `yaml:"cnp_prio"`
	CNPDSCP    uint8 `yaml:"cnp_dscp"`
	Map        map[string]uint8
	Sched      string
	DSCP26     struct{ TC, PG, Queue, PFC uint8 } `yaml:"dscp26"`
	Trust      string
	RoCEMTU    int64 `yaml:"roce_mtu"`
	Netdev     int64
	Detect     int32 `yaml:"detect_ms"`
	Restore    int32 `yaml:"restore_ms"`
	Poll       int32 `yaml:"poll_ms"`

	Speed, Cable, MTU, Headroom, Pool, Sum, Buffer, Shared, Xoff, Xon int64
	Ratio                                                             int
	Drain                                                             int64   `yaml:"drain_gbps"`
	Resume                                                            float64 `yaml:"resume_us"`
	Alphas                                                            []float64
}

// net is a fabric with what the example says.
func (g given) net(rule string) *intent.Net {
	n := clos(1, 2, 1)
	all := func(f func(*intent.Policy)) {
		for _, d := range []string{"leaf1", "leaf2", "spine1"} {
			edit(n, d, "", f)
		}
	}
	pause := func(ps []int) func(*intent.Policy) {
		return func(p *intent.Policy) {
			for i := range p.Queues {
				p.Queues[i].Lossless = false
			}
			for _, i := range ps {
				p.Queues[i].Lossless, p.TCPG[i] = true, uint8(i)
				p.Queues[i].ECN = switchPolicy().Queues[3].ECN
			}
		}
	}
	switch rule {
	case "ecn-order":
		all(func(p *intent.Policy) {
			p.Queues[3].ECN = intent.ECN{On: true, Kmin: units.Bytes(g.Kmin), Kmax: units.Bytes(g.Kmax), Pmax: units.Percent(g.Pmax * float64(100*units.OnePercent))}
		})
	case "pfc-symmetry":
		all(pause(g.A))
		edit(n, "spine1", "", pause(g.B))
	case "ecn-on-lossless":
		all(pause(g.Lossless))
		all(func(p *intent.Policy) {
			for i := range p.Queues {
				p.Queues[i].ECN = intent.ECN{}
			}
			for _, i := range g.ECN {
				p.Queues[i].ECN = switchPolicy().Queues[3].ECN
			}
		})
	case "dscp-total":
		all(func(p *intent.Policy) {
			for d := g.Entries; d < 64; d++ {
				p.DSCP[d] = intent.Unmapped
			}
		})
		if !g.Same {
			edit(n, "leaf2", "", func(p *intent.Policy) { p.DSCP[26] = 0 })
		}
	case "pfc-prio-count":
		all(pause(g.PFC))
	case "pfc-not-global-pause":
		all(pause(g.PFC))
		all(func(p *intent.Policy) { p.Pause.Receive = g.Pause })
	case "cnp-class":
		for i := range n.Devices {
			n.Devices[i].Classes = [8]string{}
			n.Devices[i].Classes[g.CNPPrio] = "cnp"
		}
		all(pause(g.PFC))
		all(func(p *intent.Policy) { p.Queues[g.CNPPrio].Strict = g.Sched == "strict" })
	case "cnp-dscp-nic":
		for i := range n.Devices {
			for j := range n.Devices[i].Ports {
				if n.Devices[i].Host {
					n.Devices[i].Ports[j].NIC = "connectx-7"
				}
			}
		}
		all(func(p *intent.Policy) {
			p.DSCP[g.CNPDSCP] = g.Map[strconv.Itoa(int(g.CNPDSCP))]
		})
	case "chain-consistent":
		all(func(p *intent.Policy) {
			p.DSCP[26] = g.DSCP26.TC
			p.TCPG[g.DSCP26.TC], p.TCQueue[g.DSCP26.TC], p.PFCQueue[g.DSCP26.PFC] = g.DSCP26.PG, g.DSCP26.Queue, g.DSCP26.Queue
		})
	case "trust-dscp":
		all(func(p *intent.Policy) { p.Trust = trusts[g.Trust] })
	case "mtu-roce":
		for i := range n.Devices {
			n.Devices[i].RoCE = units.Bytes(g.RoCEMTU)
		}
		for _, d := range []string{"host1", "host2"} {
			edit(n, d, "", func(p *intent.Policy) { p.MTU = units.Bytes(g.Netdev) })
		}
	case "watchdog-on", "watchdog-gt-pause":
		all(func(p *intent.Policy) {
			p.Watchdog.Detect, p.Watchdog.Restore, p.Watchdog.Poll = g.Detect, max(g.Restore, g.Poll), g.Poll
		})
	case "mtu-path":
		for i, d := range []string{"leaf1", "leaf2", "spine1"} {
			edit(n, d, "", func(p *intent.Policy) { p.MTU = units.Bytes(g.Switches[i]) })
		}
		for i, d := range []string{"host1", "host2"} {
			edit(n, d, "", func(p *intent.Policy) { p.MTU = units.Bytes(g.Hosts[i]) })
		}
	}
	return n
}

// buffers is the same for the rules about buffers, on a platform whose table has rows for 100G.
func (g given) buffers(t *testing.T, rule string) *intent.Net {
	t.Helper()
	n := buffered(t, "sonic/sn2700", 1, 2, 1)
	everySwitch(n, func(d *intent.Device) {
		for i := range d.Ports {
			d.Ports[i].Speed, d.Ports[i].Cable = 100*units.Gbps, units.Length(cmp.Or(g.Cable, 5))*units.Metre
		}
		own(n, d.Name, "", func(b *intent.Buffer) {
			b.Headroom, b.Reserved = units.Bytes(cmp.Or(g.Headroom, int64(b.Headroom))), 0
			b.Xon = units.Bytes(cmp.Or(g.Xon, int64(b.Xon)))
			if g.Xoff > 0 {
				b.Alpha, b.Static = units.Ratio{}, units.Bytes(g.Xoff)
			}
		})
		switch rule { // two ports of a leaf and of the spine
		case "headroom-sum":
			d.Pools.Headroom, d.Profile.Chip.Buffer = units.Bytes(g.Pool), 0
			own(n, d.Name, "", func(b *intent.Buffer) { b.Headroom, b.Reserved = units.Bytes(g.Sum/2), 0 })
		case "buffer-sum":
			d.Profile.Pool, d.Profile.LeafPool, d.Profile.Chip.Buffer = profiles.Pools{}, profiles.Pools{}, units.Bytes(g.Buffer)
			d.Pools.Shared, d.Pools.Headroom = units.Bytes(g.Shared), units.Bytes(g.Headroom)
			own(n, d.Name, "", func(b *intent.Buffer) { b.Reserved = 0 })
		case "xon-no-underrun":
			if g.Drain != 100 || g.Resume != 2 { // what the standard lets a neighbour take at 100G: 394 quanta, 2.02 us
				t.Fatalf("another example: %+v", g)
			}
		}
	})
	n.Forget(intent.AreaSet(intent.AreaECN)) // the sample's ramp is not at issue
	for i, a := range g.Alphas {
		own(n, []string{"leaf1", "leaf2"}[i], "", func(b *intent.Buffer) { b.Alpha = units.Ratio{Num: 1, Den: int32(1 / a)} })
	}
	return n
}

// The table's valid examples pass and its violating ones fail, with its severity.
func TestReferenceInvariants(t *testing.T) {
	b, err := os.ReadFile("testdata/invariants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Invariants []struct {
			ID        string
			Severity  diag.Severity
			Valid     given `yaml:"valid_example"`
			Violating given `yaml:"violating_example"`
		}
	}
	if err := yaml.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	witness.Agree(t, "invariants.yaml", len(table.Invariants))
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	if nic, _ := catalog.NIC("connectx-7"); nic.DefaultCNPDSCP != (profiles.Opt{V: 48, OK: true}) {
		t.Fatalf("the table's NIC is not %+v", nic)
	}
	f := &model.Fabric{Catalog: catalog}
	for _, inv := range table.Invariants {
		id := strings.ToLower(inv.ID)
		if !slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.ID == id && r.Severity == inv.Severity }) {
			t.Errorf("there is no rule %s of severity %s", id, inv.Severity)
		}
		net := func(g given) *intent.Net {
			if aboutBuffers(id) {
				return g.buffers(t, id)
			}
			return g.net(id)
		}
		if got := lint.Check(net(inv.Valid), f); len(got) > 0 {
			t.Errorf("%s: the valid example gives %q", id, texts(got))
		}
		got := lint.Check(net(inv.Violating), f)
		if len(got) == 0 {
			t.Errorf("%s: the violating example passes", id)
		}
		for _, f := range got {
			if f.Rule != id || f.Severity != inv.Severity {
				t.Errorf("%s: the violating example gives %s", id, f)
			}
		}
	}
}

func aboutBuffers(id string) bool {
	return slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.ID == id && r.Areas == intent.AreaSet(intent.AreaBuffer) })
}

// The examples that we ship are free of findings that nobody acknowledged.
func TestShippedExamples(t *testing.T) {
	for _, e := range shipped.Models() {
		f, l := model.Load(shipped.FS, e.Layers...)
		sound(t, l)
		n, l := intent.Resolve(f)
		sound(t, l)
		if got := f.Acknowledge(lint.Check(n, f)); got.HasErrors() || got.Count(diag.Warning) > 0 {
			t.Errorf("examples/%s: %q", e.Name, texts(got))
		}
	}
}

// broken says of each rule, by looking at every port and every pair, whether n breaks it.
func broken(n *intent.Net) map[string]bool {
	b := map[string]bool{}
	var hosts, switches []*intent.Policy
	for i := range n.Devices {
		d := &n.Devices[i]
		for j := range d.Ports {
			p := d.PolicyOf(&d.Ports[j])
			if d.Host {
				hosts = append(hosts, p)
				continue
			}
			switches = append(switches, p)
			peer := n.Device(d.Ports[j].Peer)
			for q := range p.Queues {
				e := p.Queues[q].ECN
				b["ecn-order"] = b["ecn-order"] || e.On && (e.Kmin <= 0 || e.Kmax < e.Kmin || e.Pmax <= 0 || e.Pmax > 100*units.OnePercent)
				b["ecn-on-lossless"] = b["ecn-on-lossless"] || p.Queues[q].Lossless && !e.On
				if p.Queues[q].Lossless && soundRamp(e) {
					const roundTrip, flows = 8e-6, 2 * 16
					x, _ := derive.FixedPointOf(derive.PaperDCQCN(), d.Ports[j].Speed, flows)
					b["ecn-dctcp"] = b["ecn-dctcp"] || float64(e.Kmin)*8*7 < float64(d.Ports[j].Speed)*roundTrip
					b["pmax-sufficient"] = b["pmax-sufficient"] || float64(e.Pmax) < x.P*float64(100*units.OnePercent)
				}
				b["pfc-symmetry"] = b["pfc-symmetry"] || !peer.Host &&
					p.Queues[q].Lossless != peer.PolicyOf(peer.Port(d.Ports[j].PeerPort)).Queues[q].Lossless
			}
			for _, to := range p.DSCP {
				b["dscp-total"] = b["dscp-total"] || to == intent.Unmapped
			}
			b["cnp-class"] = b["cnp-class"] || p.Queues[6].Lossless || !p.Queues[6].Strict
			b["pfc-not-global-pause"] = b["pfc-not-global-pause"] || p.Pause != (intent.Pause{}) && len(p.Lossless()) > 0
			b["trust-dscp"] = b["trust-dscp"] || p.Trust != intent.TrustDSCP
			w, lossless := p.Watchdog, len(p.Lossless())
			b["watchdog-on"] = b["watchdog-on"] || lossless > 0 && !w.On || w.On && (w.Detect < w.Poll || w.Restore < w.Poll)
			b["watchdog-gt-pause"] = b["watchdog-gt-pause"] || w.On && (w.Detect < 100 || w.Detect > 1000)
			b["pfc-prio-count"] = b["pfc-prio-count"] || lossless > 2
			b["chain-consistent"] = b["chain-consistent"] || badChain(p)
			b["ecn-same"] = b["ecn-same"] || oddRamp(n, d, &d.Ports[j])
		}
	}
	for _, s := range switches {
		b["dscp-total"] = b["dscp-total"] || s.DSCP != switches[0].DSCP
		b["mtu-path"] = b["mtu-path"] || s.MTU != switches[0].MTU || s.MTU < hosts[0].MTU+22
	}
	votes := map[units.Bytes]int{}
	for _, h := range hosts {
		votes[h.MTU]++
	}
	common := slices.MaxFunc(slices.Collect(maps.Keys(votes)), func(x, y units.Bytes) int { return cmp.Or(votes[x]-votes[y], cmp.Compare(x, y)) })
	b["mtu-roce"] = common < 4096+96 && !slices.ContainsFunc(switches, func(s *intent.Policy) bool { return s.MTU < 4096+96+22 })
	for _, h := range hosts {
		b["mtu-path"] = b["mtu-path"] || h.MTU != hosts[0].MTU
	}
	return b
}

// badChain reports whether packets of a lossless priority, or others in their way, miss its group or queue.
func badChain(p *intent.Policy) bool {
	for _, i := range p.Lossless() {
		if slices.Contains(p.DSCP[:], uint8(i)) && (p.TCQueue[i] != p.PFCQueue[i] || p.TCPG[i] != uint8(i)) {
			return true
		}
		for _, tc := range p.DSCP {
			if tc < 8 && tc != uint8(i) && (p.TCQueue[tc] == p.TCQueue[i] || p.TCPG[tc] == uint8(i)) {
				return true
			}
		}
	}
	return false
}

// soundRamp reports whether a queue marks by a ramp that can be one.
func soundRamp(e intent.ECN) bool {
	return e.On && e.Kmin > 0 && e.Kmin <= e.Kmax && e.Pmax > 0 && e.Pmax <= 100*units.OnePercent
}

// oddRamp reports whether a like port of a like device has another sound ramp.
func oddRamp(n *intent.Net, d *intent.Device, port *intent.Port) bool {
	for i := range n.Devices {
		for j := range n.Devices[i].Ports {
			x, y := &n.Devices[i], &n.Devices[i].Ports[j]
			if x.Role != d.Role || y.Role != port.Role || y.Speed != port.Speed {
				continue
			}
			for q := range 8 {
				a, b := d.PolicyOf(port).Queues[q].ECN, x.PolicyOf(y).Queues[q].ECN
				if soundRamp(a) && soundRamp(b) && a != b {
					return true
				}
			}
		}
	}
	return false
}

// On any fabric, a rule reports exactly when a port by port look finds it broken; and what it reports is fit to print.
func TestRulesAgreeWithPlainLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := clos(2, 3, 2)
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			d := &n.Devices[rapid.IntRange(0, len(n.Devices)-1).Draw(t, "device")]
			port := ""
			if rapid.Bool().Draw(t, "one port") {
				port = d.Ports[rapid.IntRange(0, len(d.Ports)-1).Draw(t, "port")].Name
			}
			edit(n, d.Name, port, drawEdit(t))
		}
		want, got := broken(n), map[string]bool{}
		for _, f := range lint.Check(n, nil) {
			got[f.Rule] = true
			if f.Msg == "" || f.Hint == "" || f.At == "" || f.Severity == diag.Info {
				t.Errorf("incomplete finding: %+v", f)
			}
		}
		for _, r := range lint.Rules() {
			if want[r.ID] != got[r.ID] {
				t.Errorf("%s: reported %v, broken %v", r.ID, got[r.ID], want[r.ID])
			}
		}
	})
}

func drawEdit(t *rapid.T) func(*intent.Policy) {
	q := rapid.IntRange(0, 7).Draw(t, "priority")
	dscp := rapid.IntRange(0, 63).Draw(t, "dscp")
	size := units.Bytes(rapid.SampledFrom([]int64{0, 1500, 8978, 9000, 9022, 9216, 800_000, 3_200_000}).Draw(t, "size"))
	ms := rapid.SampledFrom([]int32{0, 50, 100, 400, 2000}).Draw(t, "ms")
	tc := rapid.Uint8Range(0, 7).Draw(t, "to")
	switch rapid.IntRange(0, 12).Draw(t, "what") {
	case 0:
		return func(p *intent.Policy) { p.MTU = size }
	case 1:
		to := rapid.SampledFrom([]uint8{0, 3, intent.Unmapped}).Draw(t, "to")
		return func(p *intent.Policy) { p.DSCP[dscp] = to }
	case 2:
		return func(p *intent.Policy) { p.Queues[q].Lossless = !p.Queues[q].Lossless }
	case 3:
		return func(p *intent.Policy) { p.Queues[q].ECN.On = !p.Queues[q].ECN.On }
	case 4:
		return func(p *intent.Policy) { p.Queues[q].ECN.Kmin = size }
	case 5:
		return func(p *intent.Policy) { p.Queues[q].Strict = !p.Queues[q].Strict }
	case 6:
		return func(p *intent.Policy) { p.Trust = intent.TrustPCP }
	case 7:
		return func(p *intent.Policy) { p.Watchdog = intent.Watchdog{} }
	case 8:
		return func(p *intent.Policy) { p.Watchdog.Poll = ms }
	case 9:
		return func(p *intent.Policy) { p.Watchdog.Detect = ms }
	case 10:
		return func(p *intent.Policy) { p.TCQueue[q] = tc }
	case 11:
		return func(p *intent.Policy) { p.TCPG[q] = tc }
	case 12:
		return func(p *intent.Policy) { p.Pause.Send = true }
	}
	pmax := units.Percent(rapid.SampledFrom([]int64{0, 1, 1_000_000, 1_000_001}).Draw(t, "pmax"))
	return func(p *intent.Policy) { p.Queues[q].ECN.Pmax = pmax }
}
