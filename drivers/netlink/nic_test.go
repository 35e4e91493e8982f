package netlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// key reads "pfc|eth0|priorities".
func key(s string) render.Key {
	p := strings.SplitN(s, "|", 3)
	return render.Key{Scope: p[0], Object: p[1], Field: p[2]}
}

// changes leads from what d holds to these settings, "pfc|eth0|priorities=3"; "-" is absent.
func changes(t *testing.T, d drivers.Reader, want ...string) []render.Change {
	t.Helper()
	live, err := d.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var cs []render.Change
	for _, w := range want {
		k, v, _ := strings.Cut(w, "=")
		c := render.Change{Op: render.Modify, Key: key(k), Before: value(live, key(k))}
		if v != "-" {
			c.After = &v
		}
		switch {
		case c.Before == nil && c.After == nil:
			continue
		case c.Before == nil:
			c.Op = render.Add
		case c.After == nil:
			c.Op = render.Remove
		case *c.Before == *c.After:
			continue
		}
		cs = append(cs, c)
	}
	return cs
}

// all64 is an entry for every code point: 26 to 3, 48 to 6, and the rest where it belongs by itself.
func all64(link string, special map[int]int) []string {
	var out []string
	for d := range 64 {
		p, ok := special[d]
		if !ok {
			p = d >> 3
		}
		out = append(out, fmt.Sprintf("app|%s|dscp %d=%d", link, d, p))
	}
	return out
}

// wanted is what a model asks of a NIC of each kind.
func wanted(kind, link string) []string {
	own := []string{"dcbx|" + link + "|mode=host ieee", "pause|" + link + "|receive=off", "pause|" + link + "|send=off", "link|" + link + "|mtu=9000"}
	switch kind {
	case "mlx5":
		own[0] = "dcbx|" + link + "|mode=host cee ieee"
		return slices.Concat(own, all64(link, map[int]int{26: 3, 48: 6}), []string{
			"ets|" + link + "|prio-tc=0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7",
			"ets|" + link + "|tsa=0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets",
			"ets|" + link + "|bandwidth=0:20 1:10 2:10 3:40 4:10 5:5 6:0 7:5",
			"pfc|" + link + "|priorities=3", "pfc|" + link + "|delay=30",
			"cc|" + link + "|ai_rate=10", "cc|" + link + "|cnp-dscp=46", "roce|" + link + "|tos=104", "roce|" + link + "|mode=v2",
			"pci|" + link + "|max-read-request=4096", "irq|" + link + "|affinity=spread", "ring|" + link + "|rx=8192", "fec|" + link + "|mode=auto",
		})
	case "ice":
		return slices.Concat([]string{"flag|" + link + "|fw-lldp-agent=off"}, own, []string{
			"app|" + link + "|dscp 26=3", "app|" + link + "|dscp 48=2",
			"ets|" + link + "|prio-tc=0:0 1:1 2:2 3:3 4:0 5:0 6:0 7:0",
			"ets|" + link + "|tsa=0:ets 1:ets 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict",
			"ets|" + link + "|bandwidth=0:40 1:20 2:0 3:40 4:0 5:0 6:0 7:0", "ets|" + link + "|willing=off",
			"pfc|" + link + "|priorities=3",
		})
	}
	return slices.Concat(own, []string{
		"app|" + link + "|dscp 26=3", "app|" + link + "|dscp 48=6",
		"ets|" + link + "|prio-tc=0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0",
		"ets|" + link + "|tsa=0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict",
		"ets|" + link + "|bandwidth=0:50 1:50 2:0 3:0 4:0 5:0 6:0 7:0", "pfc|" + link + "|priorities=3",
	})
}

var kinds = []struct {
	name, model, device string
	driver              func() dcbfake.Driver
}{
	{"mlx5", "15b3:1021", "mlx5_0", dcbfake.MLX5},
	{"ice", "8086:1592", "irdma0", dcbfake.Ice},
	{"bnxt", "14e4:1750", "bnxt_re0", dcbfake.BNXT},
	{"hns3", "19e5:a222", "hns_0", dcbfake.HNS3},
}

// nicRig is a machine with one NIC of a kind on eth0.
func nicRig(t *testing.T, kind string) (*rig, *dcbfake.NIC) {
	t.Helper()
	r := newRig(t)
	for _, k := range kinds {
		if k.name == kind {
			if kind == "mlx5" {
				return r, r.mlx5("eth0", "17", k.device)
			}
			return r, r.plug("eth0", "17", k.model, k.driver(), k.device)
		}
	}
	t.Fatal(kind)
	return nil, nil
}

// What a model asks of each kind of NIC is in force after one commit, a second writes nothing, and the undo restores
// all that the kernel can give back.
func TestCommitPerPersonality(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r, n := nicRig(t, k.name)
			if k.name == "ice" { // as it leaves the factory
				r.eth.links["eth0"].flagBits = 2
				n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = true })
			}
			before := read(t, r.Device)
			cs := changes(t, r, wanted(k.name, "eth0")...)
			if err := r.Commit(t.Context(), "tx1", cs, 0); err != nil {
				t.Fatalf("%v\nrequests: %d", err, len(r.dcb.Requests()))
			}
			if rest := changes(t, r, wanted(k.name, "eth0")...); len(rest) > 0 {
				t.Errorf("not in force: %v", rest)
			}
			if p := n.Priority(26); p != 3 {
				t.Errorf("DSCP 26 gets priority %d", p)
			}
			if m := n.Paused(); m != 1<<3 {
				t.Errorf("paused are %08b", m)
			}
			writes := r.writes()
			if err := r.Commit(t.Context(), "tx2", cs, 0); err != nil || r.writes() != writes {
				t.Errorf("the second commit: %v, %d writes", err, r.writes()-writes)
			}
			if err := r.Commit(t.Context(), "tx3", render.Undo(cs), 0); err != nil {
				t.Fatal(err)
			}
			after := read(t, r.Device)
			if k.name == "mlx5" { // its firmware is willing as soon as it rules again
				after = strings.Replace(after, "ets|eth0|willing on", "ets|eth0|willing off", 1)
			}
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("after the undo (-before +after):\n%s", d)
			}
		})
	}
}

// An acknowledged set that did not take is reported as that, for every object of every personality.
func TestAppliedButDiffers(t *testing.T) {
	for _, k := range kinds {
		for op, setting := range map[dcbfake.Op]string{
			dcbfake.PFC: "pfc|eth0|priorities=3", dcbfake.ETS: "ets|eth0|bandwidth=0:60 1:40 2:0 3:0 4:0 5:0 6:0 7:0", dcbfake.Apps: "app|eth0|dscp 26=3",
		} {
			for how, fault := range map[string]func(dcbfake.Driver) dcbfake.Driver{
				"lies":            func(d dcbfake.Driver) dcbfake.Driver { return d.Lying(op) },
				"answers 1":       func(d dcbfake.Driver) dcbfake.Driver { return d.Lying(op).Answering(1, op) },
				"has no such set": func(d dcbfake.Driver) dcbfake.Driver { return d.ReadOnly(op) },
			} {
				t.Run(fmt.Sprintf("%s %s %s", k.name, op, how), func(t *testing.T) {
					if op == dcbfake.Apps && how == "has no such set" {
						t.Skip("without an operation the kernel's own table takes it")
					}
					r, n := nicRig(t, k.name)
					if k.name == "mlx5" {
						n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
					}
					cs := changes(t, r, setting)
					n.Use(fault(k.driver()))
					err := r.Commit(t.Context(), "tx1", cs, 0)
					var differs *drivers.DiffersError
					if !errors.As(err, &differs) {
						t.Fatalf("got %v", err)
					}
					if !strings.HasPrefix(differs.Sent, strings.SplitN(setting, "=", 2)[0]) || !strings.Contains(err.Error(), "applied-but-differs") {
						t.Errorf("got %v", err)
					}
				})
			}
		}
	}
}

// Between any two writes, no priority is paused that means something else than it will, or meant: PFC goes first and
// comes last.
func TestNeverPausesAnotherClass(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r, n := nicRig(t, k.name)
			if k.name == "mlx5" {
				n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
			}
			from := []string{"app|eth0|dscp 26=3", "app|eth0|dscp 48=2", "pfc|eth0|priorities=3"}
			to := []string{"app|eth0|dscp 26=1", "app|eth0|dscp 48=3", "pfc|eth0|priorities=1"}
			if err := r.Commit(t.Context(), "tx1", changes(t, r, from...), 0); err != nil {
				t.Fatal(err)
			}
			check := func(point string) {
				for p := range uint8(8) {
					if n.Hardware().PFC.Enabled&(1<<p) == 0 { // hns3 pauses all of a traffic class, which stay together here
						continue
					}
					if d := n.Priority(26); d != p {
						t.Errorf("%s: priority %d is paused, and DSCP 26 has %d", point, p, d)
					}
				}
			}
			r.cfg.Hook = check
			cs := changes(t, r, to...)
			if err := r.Commit(t.Context(), "tx2", cs, 0); err != nil {
				t.Fatal(err)
			}
			if n.Priority(26) != 1 || n.Hardware().PFC.Enabled != 1<<1 {
				t.Errorf("DSCP 26 has %d, PFC is %08b", n.Priority(26), n.Hardware().PFC.Enabled)
			}
			if err := r.Commit(t.Context(), "tx3", render.Undo(cs), 0); err != nil {
				t.Fatal(err)
			}
			check("after the undo")
		})
	}
}

// Only what differs is sent: a PFC that is in force is never sent again, since drivers flap on it.
func TestSendsOnlyWhatDiffers(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host; h.PFC.Enabled = 1 << 3 })
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|delay=30", "ets|eth0|tsa=0:strict 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict"), 0); err != nil {
		t.Fatal(err)
	}
	if n.Flaps() != 0 || r.dcb.Writes() != 2 {
		t.Errorf("%d flaps, %d writes", n.Flaps(), r.dcb.Writes())
	}
	if n.Hardware().PFC.Delay != 30 || n.Hardware().PFC.Enabled != 1<<3 {
		t.Errorf("%+v", n.Hardware().PFC)
	}
	for range 3 {
		if _, err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r.dcb.Writes() != 2 || r.writes() != 2 {
		t.Errorf("looking wrote: %v", r.tree.writes)
	}
}

// A write that may end live queue pairs is refused right before it, unless there is leave; they are counted then, and not
// when the plan was made.
func TestLiveJobs(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	cs := changes(t, r, "pfc|eth0|priorities=3", "cc|eth0|ai_rate=10")
	r.rdma.qps["mlx5_0"] = 12
	err := r.Commit(t.Context(), "tx1", cs, 0)
	if !errors.Is(err, drivers.ErrJobs) || !strings.Contains(err.Error(), "12 on mlx5_0") || n.Flaps() != 0 {
		t.Errorf("got %v after %d flaps", err, n.Flaps())
	}
	if err := r.Commit(t.Context(), "tx2", cs[:1], 0); err == nil && n.Flaps() > 0 && cs[0].Key.Scope == "pfc" {
		t.Error("went on")
	}
	if err := r.Commit(t.Context(), "tx3", changes(t, r, "cc|eth0|ai_rate=10"), 0); err != nil {
		t.Errorf("what disturbs nobody was refused: %v", err)
	}
	r.rdma.err = errors.New("no such file")
	if err := r.Commit(t.Context(), "tx4", changes(t, r, "pfc|eth0|priorities=3"), 0); !errors.Is(err, drivers.ErrJobs) || !strings.Contains(err.Error(), "cannot be counted") {
		t.Errorf("got %v", err)
	}
	r.AllowJobs(true)
	if err := r.Commit(t.Context(), "tx5", changes(t, r, "pfc|eth0|priorities=3"), 0); err != nil || n.Flaps() != 1 {
		t.Errorf("with leave: %v, %d flaps", err, n.Flaps())
	}
}

// A link that goes down takes the queue pairs of virtual functions and sub-functions along, whose links may be those of
// containers: they count on the physical function.
func TestJobsOfFunctions(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	pf, vf := "sys/devices/pci0000:17/0000:17:00.0", "sys/devices/pci0000:17/0000:17:00.2"
	sf := pf + "/mlx5_core.sf.4"
	r.tree.links[vf+"/physfn"] = pf
	r.tree.files[vf+"/vendor"], r.tree.files[sf+"/sfnum"] = "0x15b3\n", "88\n"
	for device, dir := range map[string]string{"mlx5_7": vf, "mlx5_8": sf} {
		r.tree.links[sysRDMA+"/"+device+"/device"] = dir
		r.gid(device, 0, "0000:0000:0000:0000:0000:0000:0000:0000", "", "")
		r.rdma.qps = map[string]int{device: 5}
		if f, _, err := r.Facts(t.Context()); err != nil || f.NICs[0].QPs != 5 {
			t.Errorf("%s: the facts count otherwise: %+v, %v", device, f.NICs, err)
		}
		err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), 0)
		if !errors.Is(err, drivers.ErrJobs) || !strings.Contains(err.Error(), "5 on "+device) || n.Flaps() != 0 {
			t.Errorf("%s: got %v after %d flaps", device, err, n.Flaps())
		}
	}
}

// What cannot be done is refused before anything is written, with the reason and what would do.
func TestCommitRefusesNIC(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind string
		make func(*rig, *dcbfake.NIC)
		want []string
		says string
	}{
		{"firmware rules and stays", "mlx5", nil, []string{"pfc|eth0|priorities=3"}, "its firmware rules QoS (DCBX mode is \"cee ieee\", without host), and would take the change back: mlnx_qos -i eth0 -d os"},
		{"an agent that no flag ends", "bnxt", func(_ *rig, n *dcbfake.NIC) { n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = true }) }, []string{"pfc|eth0|priorities=3"}, "niccli"},
		{"virtual function", "mlx5", func(r *rig, _ *dcbfake.NIC) {
			r.tree.links["sys/devices/pci0000:17/0000:17:00.0/physfn"] = "sys/devices/pci0000:17/0000:17:00.1"
			r.tree.files["sys/devices/pci0000:17/0000:17:00.1/net/ens1f0/mtu"] = "1500\n"
		}, []string{"pause|eth0|receive=off"}, "it is a virtual function of ens1f0: QoS is set there"},
		{"in a bond", "ice", func(r *rig, _ *dcbfake.NIC) {
			r.k.links = append(r.k.links, Link{Index: 9, Name: "bond0", Kind: "bond", MTU: 1500})
			r.k.links[1].Master = 9
		}, []string{"app|eth0|dscp 26=3"}, "its driver refuses QoS while it is in a bond (bond0)"},
		{"a priority that does not exist", "mlx5", nil, []string{"pfc|eth0|priorities=8"}, "is not priorities such as 3 4, or none"},
		{"a code point that does not exist", "mlx5", nil, []string{"app|eth0|dscp 64=3"}, "not a number from 0 to 63"},
		{"a selector of others", "mlx5", nil, []string{"app|eth0|ethertype 35093=3"}, "it is read, and never written"},
		{"a rate limit", "mlx5", nil, []string{"maxrate|eth0|kbits=0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1"}, "it is read, and never written"},
		{"a buffer that the driver lacks", "ice", nil, []string{"buffer|eth0|sizes=0:1 1:0 2:0 3:0 4:0 5:0 6:0 7:0"}, "acknowledged and ignored"},
		{"a knob that the driver lacks", "ice", nil, []string{"cc|eth0|ai_rate=5"}, "nothing is known of where driver ice has that"},
		{"a knob out of range", "mlx5", nil, []string{"cc|eth0|cnp-dscp=64"}, "is not from 0 to 63"},
		{"a knob that is not there", "mlx5", func(r *rig, _ *dcbfake.NIC) {
			delete(r.tree.files, "sys/kernel/debug/mlx5/0000:17:00.0/cc_params/rp_ai_rate")
		}, []string{"cc|eth0|ai_rate=5"}, "leads nowhere"},
		{"irqbalance", "mlx5", func(r *rig, _ *dcbfake.NIC) { r.tree.files["proc/net/unix"] = "0: 2 0 0 1 1 1 @irqbalance77.sock\n" }, []string{"irq|eth0|affinity=local"}, "systemctl disable --now irqbalance"},
		{"a size that PCI does not have", "mlx5", nil, []string{"pci|eth0|max-read-request=8192"}, "128, 256, 512, 1024, 2048 or 4096"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, n := nicRig(t, tt.kind)
			if tt.make != nil {
				tt.make(r, n)
			}
			cs := changes(t, r, tt.want...)
			cs = append(cs, changes(t, r, "link|eth0|mtu=9000", "nccl|/etc/nccl.conf|NCCL_IB_TC=104")...)
			err := r.Commit(t.Context(), "tx1", cs, 0)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if r.writes() != 0 {
				t.Errorf("%d writes", r.writes())
			}
		})
	}
}

// With the DCBX mode among the changes, the NIC is taken over.
func TestTakesOver(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	f, _, err := r.Facts(t.Context())
	if err != nil || len(f.Owners) > 0 || !slices.ContainsFunc(f.Notes, func(s string) bool { return strings.HasPrefix(s, "eth0: its firmware rules QoS") }) {
		t.Errorf("%v, owners %q, notes %q", err, f.Owners, f.Notes)
	}
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "dcbx|eth0|mode=host cee ieee", "pfc|eth0|priorities=3"), 0); err != nil {
		t.Fatal(err)
	}
	if h := n.Hardware(); h.DCBX&dcb.Host == 0 || h.PFC.Enabled != 8 {
		t.Errorf("%+v", h)
	}
}

// A driver that moves one thing with another is put right, and where that does not help it is said what it moved.
func TestMovesAnotherThing(t *testing.T) {
	for _, again := range []bool{false, true} {
		r, n := nicRig(t, "mlx5")
		n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
		if err := r.Commit(t.Context(), "tx0", changes(t, r, "app|eth0|dscp 26=3"), 0); err != nil {
			t.Fatal(err)
		}
		cs := changes(t, r, "pfc|eth0|priorities=3")
		d := dcbfake.MLX5()
		setPFC, setETS, moved := d.SetPFC, d.SetETS, false
		move := func(n *dcbfake.NIC) dcb.ETS {
			e, _ := d.GetETS(n)
			e.PrioTC[3] = 0
			return e
		}
		d.SetPFC = func(n *dcbfake.NIC, p dcb.PFC) int {
			moved = true
			setETS(n, move(n))
			return setPFC(n, p)
		}
		d.SetETS = func(n *dcbfake.NIC, e dcb.ETS) int {
			if again && moved {
				e.PrioTC[3] = 0
			}
			return setETS(n, e)
		}
		n.Use(d)
		err := r.Commit(t.Context(), "tx1", cs, 0)
		switch {
		case !again && (err != nil || n.Hardware().ETS.PrioTC[3] != 3):
			t.Errorf("%v, %+v", err, n.Hardware().ETS)
		case again && (err == nil || !strings.Contains(err.Error(), "the driver moved ets|eth0|prio-tc from")):
			t.Errorf("got %v", err)
		}
	}
}

// A directory of configfs stays as long as one of its settings was set by us, and a setting that goes before says again
// what it said at first.
func TestConfigfs(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	was := read(t, r.Device)
	tos := changes(t, r, "roce|eth0|tos=104")
	if err := r.Commit(t.Context(), "tx1", tos, 0); err != nil {
		t.Fatal(err)
	}
	mode := changes(t, r, "roce|eth0|mode=v1")
	if err := r.Commit(t.Context(), "tx2", mode, 0); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if err := r.Commit(t.Context(), "tx3", changes(t, r, "roce|eth0|tos=-"), 0); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"tos": "0\n", "mode": "IB/RoCE v1\n"} {
		if got := r.tree.files["sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_"+file]; got != want {
			t.Errorf("%s is %q", file, got)
		}
	}
	if err := r.Commit(t.Context(), "tx4", changes(t, r, "roce|eth0|mode=-"), 0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(was, read(t, r.Device)); d != "" {
		t.Error(d)
	}
	// One that somebody else made is not ours to remove.
	if err := mkdirRDMACM(r.tree, "sys/kernel/config/rdma_cm/mlx5_0"); err != nil {
		t.Fatal(err)
	}
	err := r.Commit(t.Context(), "tx5", changes(t, r, "roce|eth0|tos=-"), 0)
	if err == nil || !strings.Contains(err.Error(), "was not made by fabricctl") {
		t.Errorf("got %v", err)
	}
}

// A directory of configfs that was ours is gone after a reboot: one by that name is somebody else's.
func TestConfigfsAfterReboot(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	r.tree.files["proc/sys/kernel/random/boot_id"] = "one\n"
	cs := changes(t, r, "roce|eth0|tos=104", "roce|eth0|mode=v1")
	if err := r.Commit(t.Context(), "tx1", cs, 0); err != nil {
		t.Fatal(err)
	}
	r.tree.files["proc/sys/kernel/random/boot_id"] = "two\n"
	const dir = "sys/kernel/config/rdma_cm/mlx5_0"
	if err := mkdirRDMACM(r.tree, dir); err != nil {
		t.Fatal(err)
	}
	r.tree.files[dir+"/ports/1/default_roce_tos"], r.tree.files[dir+"/ports/1/default_roce_mode"] = "104\n", "IB/RoCE v1\n"
	r.reopen()
	err := r.Commit(t.Context(), "tx2", changes(t, r, "roce|eth0|tos=-", "roce|eth0|mode=-"), 0)
	if err == nil || !strings.Contains(err.Error(), "was not made by fabricctl") || !there(r.tree, dir) || r.tree.files[dir+"/ports/1/default_roce_tos"] != "104\n" {
		t.Errorf("got %v; it is there: %v", err, there(r.tree, dir))
	}
}

// Queue pairs of a virtual machine, and of a namespace that has its RDMA devices to itself, cannot be counted from here.
func TestJobsOutOfSight(t *testing.T) {
	for _, tt := range []struct {
		name, driver, shared string
		unseen               bool
	}{
		{"of a virtual machine", "vfio-pci", "Y", true},
		{"of a namespace", "mlx5_core", "N", true},
		{"in sight", "mlx5_core", "Y", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, n := nicRig(t, "mlx5")
			n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
			pf, vf := "sys/devices/pci0000:17/0000:17:00.0", "sys/devices/pci0000:17/0000:17:00.2"
			r.tree.files[pf+"/sriov_numvfs"], r.tree.files["sys/module/ib_core/parameters/netns_mode"] = "1\n", tt.shared+"\n"
			r.tree.files["sys/bus/pci/drivers/"+tt.driver+"/module"] = ""
			r.tree.links[pf+"/virtfn0"], r.tree.links[vf+"/physfn"], r.tree.links[vf+"/driver"] = vf, pf, "sys/bus/pci/drivers/"+tt.driver
			f, _, err := r.Facts(t.Context())
			if err != nil || (f.NICs[0].QPs == -1) != tt.unseen {
				t.Errorf("the facts say %d, %v", f.NICs[0].QPs, err)
			}
			err = r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), 0)
			if errors.Is(err, drivers.ErrJobs) != tt.unseen || (n.Flaps() == 0) != tt.unseen {
				t.Errorf("got %v after %d flaps", err, n.Flaps())
			}
		})
	}
}
