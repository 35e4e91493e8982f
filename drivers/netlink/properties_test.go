package netlink

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn is a state that a NIC of that kind can be in.
func drawn(t *rapid.T, kind string) []string {
	top := 7
	if kind == "ice" {
		top = 3
	}
	var want []string
	for _, d := range rapid.SliceOfNDistinct(rapid.IntRange(0, 63), 1, 6, rapid.ID[int]).Draw(t, "code points") {
		want = append(want, fmt.Sprintf("app|eth0|dscp %d=%d", d, rapid.IntRange(0, top).Draw(t, "priority")))
	}
	share := rapid.IntRange(1, 99).Draw(t, "share")
	bw, tsa, prio := fmt.Sprintf("0:%d 1:%d 2:0 3:0 4:0 5:0 6:0 7:0", share, 100-share), "0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict", ""
	for p := range 8 {
		tc := rapid.IntRange(0, 2).Draw(t, "class")
		if p == 0 {
			tc = 2 // so that classes 0 to 2 are in use, as hns3 wants it of those that share
		}
		prio += fmt.Sprintf(" %d:%d", p, tc)
	}
	if kind == "ice" {
		prio = " 0:0 1:1 2:2 3:3 4:0 5:0 6:0 7:0"
	}
	want = append(want, "ets|eth0|tsa="+tsa, "ets|eth0|bandwidth="+bw, "ets|eth0|prio-tc="+strings.TrimSpace(prio))
	return append(want,
		"pfc|eth0|priorities="+profiles.Priorities(rapid.SampledFrom([]uint8{0, 1, 2, 8, 10}).Draw(t, "pfc")),
		fmt.Sprintf("link|eth0|mtu=%d", rapid.IntRange(1500, 9000).Draw(t, "mtu")),
	)
}

// From any state to any other: what is asked is in force, going there again writes nothing, and the undo is the way back.
// TestFilesComeBack has the files.
func TestAnyStateToAnyOther(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				r, n := nicRig(t, k.name)
				n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
				r.memory.dir, r.cfg.State = "", "" // nobody is killed here, and nothing has to be on a disk
				for step := range 3 {
					was := r.holds()
					cs := changes(t, r, drawn(rt, k.name)...)
					if err := r.Commit(context.Background(), "tx", cs, 0); err != nil {
						rt.Fatalf("step %d: %v", step, err)
					}
					live, err := r.Read(context.Background())
					if err != nil {
						rt.Fatal(err)
					}
					for _, c := range cs {
						if now := value(live, c.Key); word(now) != word(c.After) {
							rt.Errorf("step %d: %s is %s, want %s", step, c.Key, word(now), word(c.After))
						}
					}
					writes := r.writes()
					if err := r.Commit(context.Background(), "tx", cs, 0); err != nil || r.writes() != writes {
						rt.Errorf("again: %v, %d writes", err, r.writes()-writes)
					}
					if step == 1 {
						continue
					}
					if err := r.Commit(context.Background(), "tx", render.Undo(cs), 0); err != nil {
						rt.Fatalf("undo of step %d: %v", step, err)
					}
					if now := r.holds(); now != was {
						rt.Errorf("undo of step %d:\n%s\n%s", step, was, now)
					}
				}
			})
		})
	}
}

// What a file held before our edit comes back byte for byte, step by step, with its mode; an edit by others ends that.
func TestFilesComeBack(t *testing.T) {
	r := newRig(t)
	conf, limits := filepath.Join(r.cfg.Root, render.NCCLPath), filepath.Join(r.cfg.Root, render.MemlockPath)
	step := func(want ...string) []render.Change {
		t.Helper()
		cs := changes(t, r, want...)
		if err := r.Commit(t.Context(), "tx", cs, 0); err != nil {
			t.Fatal(err)
		}
		r.reopen() // each in a process of its own
		return cs
	}
	back := func(cs []render.Change) {
		t.Helper()
		if err := r.Commit(t.Context(), "tx", render.Undo(cs), 0); err != nil {
			t.Fatal(err)
		}
		r.reopen()
	}
	was := r.holds()
	one := step("nccl|/etc/nccl.conf|NCCL_IB_TC=104", "limit|"+render.MemlockPath+"|memlock=unlimited")
	two := step("nccl|/etc/nccl.conf|NCCL_IB_TC=128", "nccl|/etc/nccl.conf|NCCL_IB_TIMEOUT=20")
	back(two)
	if b, _ := os.ReadFile(conf); string(b) != "NCCL_IB_TC=104\n" {
		t.Errorf("%q", b)
	}
	back(one)
	if now := r.holds(); now != was {
		t.Errorf("%s\n%s", was, now)
	}
	// Somebody's file, without a line end, with a mode.
	if err := os.WriteFile(conf, []byte("# x\r\nNCCL_DEBUG=INFO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(limits, []byte("# theirs\n* soft memlock 64\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	was = r.holds()
	one = step("nccl|/etc/nccl.conf|NCCL_IB_TC=104", "limit|"+render.MemlockPath+"|memlock=unlimited")
	back(one)
	if now := r.holds(); now != was {
		t.Errorf("%s\n%s", was, now)
	}
	one = step("nccl|/etc/nccl.conf|NCCL_IB_TC=104")
	text, _ := os.ReadFile(conf)
	if err := os.WriteFile(conf, append([]byte("# a comment of theirs\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	back(one)
	if b, _ := os.ReadFile(conf); string(b) != "# a comment of theirs\n# x\r\nNCCL_DEBUG=INFO\n" {
		t.Errorf("%q", b)
	}
	if err := os.WriteFile(conf, []byte("# x\r\nNCCL_DEBUG=INFO"), 0o600); err != nil {
		t.Fatal(err)
	}
	one = step("nccl|/etc/nccl.conf|NCCL_IB_TC=104")
	text, _ = os.ReadFile(conf)
	if err := os.WriteFile(conf, append(text, "NCCL_X=1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	back(one)
	if b, _ := os.ReadFile(conf); string(b) != "# x\r\nNCCL_DEBUG=INFO\nNCCL_X=1\n" {
		t.Errorf("%q", b)
	}
}

// FuzzSettings: no value that anybody writes into a plan makes more of a state than dcbnl can hold.
func FuzzSettings(f *testing.F) {
	for _, s := range [][2]string{
		{"pfc|eth0|priorities", "3 4"},
		{"ets|eth0|prio-tc", "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7"},
		{"ets|eth0|tsa", "0:ets 1:strict 2:cbs 3:vendor 4:ets 5:ets 6:ets 7:ets"},
		{"app|eth0|dscp 26", "3 5"},
		{"dcbx|eth0|mode", "host ieee"},
		{"buffer|eth0|sizes", "0:20016 1:0 2:0 3:0 4:0 5:0 6:0 7:0"},
		{"irq|eth0|affinity", "other 24:0-3"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, k, v string) {
		if strings.Count(k, "|") < 2 {
			return
		}
		mode := dcb.Host
		s := &dcb.State{Ifname: "eth0", ETS: &dcb.ETS{}, PFC: &dcb.PFC{}, Buffer: &dcb.Buffer{}, Apps: []dcb.App{}, DCBX: &mode}
		if err := alter(s, key(k), &v); err != nil {
			return
		}
		for _, a := range s.Apps {
			if a.Priority > 7 || a.Protocol > 63 || a.Selector != dcb.ByDSCP {
				t.Errorf("%v", a)
			}
		}
		for _, x := range dcbSettings("eth0", s) { // what is read back says the same
			if x.Key == key(k) {
				again := cloneDCB(s)
				if err := alter(again, x.Key, &x.Value); err != nil {
					t.Errorf("%s %q reads back as %q: %v", k, v, x.Value, err)
				}
			}
		}
		_, _ = arrange(v, []int{24, 25}, cores{"0-3", "0-7"})
	})
}

// What a machine holds has a text, whatever that is, and the text reads back as what it holds.
func TestTextOfAMachine(t *testing.T) {
	for _, k := range kinds {
		r, _ := nicRig(t, k.name) // its interrupts go where neither word says
		for p := range 8 {        // which two files of a driver are to say, and do not
			r.tree.files[fmt.Sprintf("sys/class/net/eth0/ecn/roce_rp/enable/%d", p)] = "1\n"
			r.tree.files[fmt.Sprintf("sys/class/net/eth0/ecn/roce_np/enable/%d", p)] = fmt.Sprintf("%d\n", p&1)
		}
		live, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text := render.Linux().Text(live)
		back, found := render.Linux().Parse(text)
		if d := cmp.Diff(live, back); d != "" || len(found) > 0 {
			t.Errorf("%s: %v (-live +back):\n%s\n%s", k.name, found, d, text)
		}
	}
}
