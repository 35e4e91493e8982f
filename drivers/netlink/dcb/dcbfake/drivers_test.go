package dcbfake_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/google/go-cmp/cmp"
)

// rig is a NIC, and a client that tells what happened in a line each.
type rig struct {
	t   *testing.T
	k   *dcbfake.Kernel
	nic *dcbfake.NIC
	c   *dcb.Client
	got []string
}

func newRig(t *testing.T, d dcbfake.Driver) *rig {
	k := dcbfake.New()
	return &rig{t: t, k: k, nic: k.Add("eth0", d), c: dcb.New(k)}
}

func (r *rig) state() *dcb.State {
	r.t.Helper()
	s, err := r.c.Get(r.t.Context(), "eth0")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// note writes down the answer to a set: the number of the status, or what else was wrong.
func (r *rig) note(what string, err error) {
	answer := "0"
	var s dcb.Status
	switch {
	case errors.As(err, &s):
		answer = fmt.Sprint(int8(s))
	case err != nil:
		answer = err.Error()
	}
	r.got = append(r.got, what+": "+answer)
}

func (r *rig) send(what string, req dcb.Request, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.note(what, r.c.Do(r.t.Context(), req))
}

func (r *rig) add(dscp, prio uint8) {
	r.t.Helper()
	req, err := dcb.AddAppRequest("eth0", dcb.DSCP(dscp, prio))
	r.send(fmt.Sprintf("add %d:%d", dscp, prio), req, err)
}

func (r *rig) del(dscp, prio uint8) {
	r.t.Helper()
	req, err := dcb.DelAppRequest("eth0", dcb.DSCP(dscp, prio))
	r.send(fmt.Sprintf("del %d:%d", dscp, prio), req, err)
}

func (r *rig) pfc(mask uint8, delay uint16) {
	r.note(fmt.Sprintf("pfc %d", mask), r.c.SetPFC(r.t.Context(), "eth0", func(p *dcb.PFC) { p.Enabled, p.Delay = mask, delay }))
}

func (r *rig) ets(what string, f func(*dcb.ETS)) {
	r.note("ets "+what, r.c.SetETS(r.t.Context(), "eth0", f))
}

func (r *rig) dcbx(mode dcb.DCBX) {
	r.note("dcbx "+mode.String(), r.c.SetDCBX(r.t.Context(), "eth0", mode))
	r.got = append(r.got, "  reads "+r.state().DCBX.String())
}

// show writes down what the table has, and what the port does.
func (r *rig) show(dscps ...uint8) {
	r.t.Helper()
	s := r.state()
	line := fmt.Sprintf("  %d entries, pfc %d delay %d, flaps %d, gaps %d;", len(s.Apps), s.PFC.Enabled, s.PFC.Delay, r.nic.Flaps(), r.nic.Gaps())
	for _, d := range dscps {
		line += fmt.Sprintf(" %d->%d", d, r.nic.Priority(d))
	}
	r.got = append(r.got, line)
}

func (r *rig) want(lines ...string) {
	r.t.Helper()
	if diff := cmp.Diff(lines, r.got); diff != "" {
		r.t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMLX5(t *testing.T) {
	r := newRig(t, dcbfake.MLX5())
	r.show(26, 48)
	r.add(26, 3)
	r.add(26, 3)
	r.show(26, 48) // trusts DSCP, with the firmware's map for those that are not listed
	r.add(26, 4)
	r.del(26, 3)
	r.show(26)
	r.del(26, 4)
	r.show(26)
	for i := range uint8(64) {
		if err := r.c.AddApp(t.Context(), "eth0", dcb.DSCP(i, i>>3)); err != nil {
			t.Error(err)
		}
	}
	r.show(26)
	r.nic.Reload()
	r.del(0, 0)
	r.show(26)
	r.add(0, 0)
	r.pfc(8, 40)
	r.pfc(8, 40)
	r.pfc(8, 1000)
	r.show()
	r.dcbx(dcb.LLDManaged)
	r.dcbx(dcb.IEEE)
	r.dcbx(dcb.Host | dcb.IEEE)
	r.dcbx(0)
	r.want(
		"  0 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->0 48->0",
		"add 26:3: 0", "add 26:3: 0",
		"  1 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->3 48->6",
		"add 26:4: 0", "del 26:3: -2",
		"  1 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->4",
		"del 26:4: 0",
		"  0 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->0", // no trust any more, and 26 is 0 should it come back
		"  64 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->3",
		"del 0:0: 0", "  63 entries, pfc 0 delay 7, flaps 0, gaps 0; 26->3", "add 0:0: 0",
		"pfc 8: 0", "pfc 8: 0", "pfc 8: 0",
		"  64 entries, pfc 8 delay 40, flaps 1, gaps 0;",
		"dcbx lld-managed: 1", "  reads cee ieee", "dcbx ieee: 1", "  reads cee ieee",
		"dcbx host ieee: 0", "  reads host ieee", "dcbx none: 0", "  reads cee ieee",
	)
}

// The list is complete only if DSCPs were trusted when the driver was loaded; traffic classes are the driver's own then.
func TestMLX5Reload(t *testing.T) {
	r := newRig(t, dcbfake.MLX5())
	r.add(26, 3)
	r.ets("equal", func(e *dcb.ETS) {
		e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{50, 50}, [8]uint8{3: 1}
	})
	r.pfc(8, 0)
	r.show(26)
	before := *r.state().ETS
	r.nic.Reload()
	r.show(26, 48)
	after := *r.state().ETS
	if before.PrioTC != [8]uint8{3: 1} || after.PrioTC != [8]uint8{1, 0, 2, 3, 4, 5, 6, 7} || after.TSA[0] != dcb.VendorTSA {
		t.Errorf("before %v, after %v", before, after)
	}
	r.nic.Restart()
	r.show(26, 48)
	r.ets("90%", func(e *dcb.ETS) { e.TSA[0], e.TxBW[0] = dcb.Shared, 90 })
	r.ets("shaper", func(e *dcb.ETS) { e.TSA[0] = dcb.CBShaper })
	r.note("rates", r.c.SetMaxRate(t.Context(), "eth0", func(m *dcb.MaxRate) {
		*m = dcb.MaxRate{1: 99_000, 2: 250_000, 3: 26_900_000, 4: 300_000_000}
	}))
	r.got = append(r.got, fmt.Sprint(*r.state().MaxRate))
	r.note("buffers", r.c.SetBuffer(t.Context(), "eth0", func(b *dcb.Buffer) { b.Size[1] = 1 }))
	r.want(
		"add 26:3: 0", "ets equal: 0", "pfc 8: 0",
		"  1 entries, pfc 8 delay 7, flaps 1, gaps 0; 26->3",
		"  64 entries, pfc 8 delay 7, flaps 1, gaps 0; 26->3 48->6",
		"  0 entries, pfc 0 delay 7, flaps 1, gaps 0; 26->0 48->0",
		"ets 90%: -22", "ets shaper: -22",
		"rates: 0", "[0 100000 200000 26000000 0 0 0 0]", "buffers: -22",
	)
}

func TestIce(t *testing.T) {
	r := newRig(t, dcbfake.Ice())
	r.add(48, 6) // a class that does not exist
	r.add(26, 3)
	r.show(26, 48, 0, 15, 20, 52)
	r.add(26, 2)
	r.add(26, 3)
	r.add(12, 3) // where the map has it already
	r.add(13, 1)
	r.pfc(8, 40)
	r.pfc(8, 40)
	r.show(13)
	r.ets("in DSCP mode", func(e *dcb.ETS) {
		e.TxBW, e.PrioTC = [8]uint8{40, 0, 0, 60}, [8]uint8{7: 2}
	})
	if e := r.state().ETS; e.PrioTC != [8]uint8{0, 1, 2, 3} || e.TxBW[3] != 60 || e.Cap != 4 {
		t.Errorf("%+v", e)
	}
	r.ets("90%", func(e *dcb.ETS) { e.TxBW[0] = 30 })
	r.del(13, 1)
	r.del(26, 3)
	r.show(13, 26)
	r.add(10, 2)
	r.del(10, 2)
	r.dcbx(dcb.Host | dcb.IEEE)
	r.del(12, 3)
	r.show(12)
	r.dcbx(dcb.Host | dcb.IEEE)
	r.dcbx(dcb.Host | dcb.CEE)
	r.pfc(8, 0)
	r.nic.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = true })
	r.dcbx(dcb.Host | dcb.IEEE)
	r.add(26, 3)
	r.pfc(8, 0)
	r.want(
		"add 48:6: -22", "add 26:3: 0",
		"  1 entries, pfc 0 delay 0, flaps 1, gaps 0; 26->3 48->3 0->0 15->3 20->0 52->0",
		"add 26:2: -22", "add 26:3: -17", "add 12:3: 1", "add 13:1: 0",
		"pfc 8: 0", "pfc 8: 0",
		"  3 entries, pfc 8 delay 0, flaps 3, gaps 0; 13->1",
		"ets in DSCP mode: 0", "ets 90%: -22",
		"del 13:1: 0", "del 26:3: 0",
		"  1 entries, pfc 8 delay 0, flaps 6, gaps 0; 13->5 26->2", // modulo 8, whatever the classes
		"add 10:2: 1", "del 10:2: 2", "dcbx host ieee: 1", "  reads host ieee",
		"del 12:3: 0",
		"  0 entries, pfc 0 delay 0, flaps 7, gaps 0; 12->0", // the last one resets PFC as well
		"dcbx host ieee: 1", "  reads host ieee", "dcbx host cee: 0", "  reads host cee", "pfc 8: -22",
		"dcbx host ieee: 1", "  reads lld-managed ieee", "add 26:3: -22", "pfc 8: -22",
	)
}

// The map that an E810 with four classes gets with the first entry.
func TestIceMap(t *testing.T) {
	r := newRig(t, dcbfake.Ice())
	r.add(0, 0)
	for d := range uint8(64) {
		want := uint8(0)
		switch d % 32 {
		case 4, 5, 6, 7:
			want = 1
		case 8, 9, 10, 11:
			want = 2
		case 12, 13, 14, 15, 16, 17, 18, 19:
			want = 3
		}
		if got := r.nic.Priority(d); got != want {
			t.Errorf("DSCP %d has class %d, want %d", d, got, want)
		}
	}
}

func TestBNXT(t *testing.T) {
	r := newRig(t, dcbfake.BNXT())
	r.nic.Alter(func(h *dcbfake.Hardware) { h.PFC.Enabled, h.ETS.PrioTC[3] = 8, 3 }) // niccli was here
	r.show()
	if e := r.state().ETS; e.PrioTC[3] != 0 {
		t.Errorf("ets is not from memory: %+v", e)
	}
	r.pfc(16, 5)
	r.show()
	r.ets("vendor", func(e *dcb.ETS) { e.TSA, e.PrioTC = [8]dcb.TSA{dcb.VendorTSA}, [8]uint8{7: 1} })
	r.ets("starving", func(e *dcb.ETS) {
		e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{100}, [8]uint8{7: 2}
	})
	r.ets("starving the highest", func(e *dcb.ETS) {
		e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{100}, [8]uint8{7: 1}
	})
	r.ets("110%", func(e *dcb.ETS) {
		e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{60, 50}, [8]uint8{7: 2}
	})
	r.add(26, 3)
	r.add(26, 4)
	r.show(26)
	r.del(26, 3)
	r.del(26, 3)
	r.show(26)
	r.dcbx(dcb.Host | dcb.IEEE)
	r.dcbx(dcb.LLDManaged | dcb.IEEE)
	r.nic.Alter(func(h *dcbfake.Hardware) { h.NoPause, h.NoDSCP = true, true })
	r.pfc(8, 0)
	r.add(27, 3)
	r.nic.Alter(func(h *dcbfake.Hardware) { *h = dcbfake.Hardware{FirmwareLLDP: true, DCBX: h.DCBX} })
	r.dcbx(dcb.Host | dcb.IEEE)
	r.pfc(8, 0)
	r.add(28, 3)
	r.ets("", func(*dcb.ETS) {})
	r.want(
		"  0 entries, pfc 0 delay 0, flaps 0, gaps 0;",
		"pfc 16: 0",
		"  0 entries, pfc 16 delay 5, flaps 0, gaps 0;",
		"ets vendor: -12", "ets starving: -22", "ets starving the highest: 0", "ets 110%: -22",
		"add 26:3: 0", "add 26:4: 0",
		"  2 entries, pfc 16 delay 5, flaps 0, gaps 0; 26->4",
		"del 26:3: 0", "del 26:3: -2",
		"  1 entries, pfc 16 delay 5, flaps 0, gaps 0; 26->0", // deleted with the firmware, listed by the kernel
		"dcbx host ieee: 0", "  reads host ieee", "dcbx lld-managed ieee: 1", "  reads host ieee",
		"pfc 8: -22", "add 27:3: -12",
		"dcbx host ieee: 1", "  reads lld-managed ieee", "pfc 8: -22", "add 28:3: -22", "ets : -22",
	)
}

func TestHNS3(t *testing.T) {
	r := newRig(t, dcbfake.HNS3())
	r.pfc(8, 9)
	if got := r.nic.Paused(); got != 0xff {
		t.Errorf("one class, and %08b is paused", got)
	}
	r.ets("two classes", func(e *dcb.ETS) {
		e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{50, 50}, [8]uint8{3: 1, 4: 1}
	})
	if got := r.nic.Paused(); got != 1<<3|1<<4 {
		t.Errorf("%08b is paused", got)
	}
	r.pfc(8, 9)
	r.add(26, 3)
	r.add(26, 3)
	r.add(26, 4)
	r.show(26, 27)
	r.del(26, 3)
	r.del(26, 4)
	r.show(26)
	r.ets("a class that is not used", func(e *dcb.ETS) { e.TSA[2] = dcb.Shared })
	r.ets("nothing for one", func(e *dcb.ETS) { e.TxBW = [8]uint8{100} })
	r.ets("90%", func(e *dcb.ETS) { e.TxBW = [8]uint8{40, 50} })
	r.ets("vendor", func(e *dcb.ETS) { e.TSA[0] = dcb.VendorTSA })
	r.dcbx(dcb.IEEE)
	r.dcbx(dcb.Host)
	r.pfc(0, 0)
	r.dcbx(dcb.Host | dcb.IEEE)
	r.nic.Busy(true)
	if s := r.state(); s.PFC != nil || s.ETS != nil { // the getters refuse, so the state lacks what they would show
		t.Errorf("%+v", s)
	}
	r.pfc(0, 0)
	r.add(1, 1)
	req, err := dcb.PFCRequest("eth0", dcb.PFC{})
	r.send("pfc all the same", req, err)
	r.want(
		"pfc 8: 0", "ets two classes: 0", "pfc 8: 0",
		"add 26:3: 0", "add 26:3: 0", "add 26:4: 0",
		"  1 entries, pfc 8 delay 0, flaps 0, gaps 2; 26->4 27->0",
		"del 26:3: -22", "del 26:4: 0",
		"  0 entries, pfc 8 delay 0, flaps 0, gaps 2; 26->0",
		"ets a class that is not used: -22", "ets nothing for one: -22", "ets 90%: -22", "ets vendor: -22",
		"dcbx ieee: 1", "  reads host ieee", "dcbx host: 0", "  reads host", "pfc 0: -22", "dcbx host ieee: 0", "  reads host ieee",
		"pfc 0: eth0: set pfc: "+dcb.ErrAbsent.Error(), "add 1:1: -16", "pfc all the same: -16",
	)
}

// The faults, over a driver that has none.
func TestFaults(t *testing.T) {
	r := newRig(t, dcbfake.Generic().ReadOnly(dcbfake.PFC))
	r.pfc(8, 0)
	r.show()
	r.nic.Use(dcbfake.Generic().Lying(dcbfake.PFC, dcbfake.Apps))
	r.pfc(8, 0)
	r.add(26, 3)
	r.show(26)
	r.nic.Use(dcbfake.Generic().Refusing(-16, dcbfake.PFC))
	r.pfc(8, 0)
	r.nic.Use(dcbfake.Generic().Answering(1, dcbfake.PFC, dcbfake.Apps, dcbfake.DCBX))
	r.pfc(8, 0)
	r.add(26, 3)
	r.add(26, 3)
	r.show(26)
	r.dcbx(dcb.Host | dcb.IEEE | dcb.Static)
	r.nic.Use(dcbfake.Generic().SelfReplacing())
	r.add(26, 4)
	r.show(26)
	r.nic.Use(dcbfake.Generic().Without(dcbfake.Apps).SelfReplacing())
	r.add(26, 5)
	r.nic.Use(dcbfake.Generic().Without(dcbfake.Apps).Answering(2, dcbfake.Apps))
	r.del(26, 5)
	r.show()
	r.nic.Use(dcbfake.Generic().Without(dcbfake.DCBX, dcbfake.Trust).Answering(1, dcbfake.DCBX, dcbfake.Trust))
	r.note("dcbx", r.c.SetDCBX(t.Context(), "eth0", dcb.Host))
	r.note("trust", r.c.SetTrust(t.Context(), "eth0", dcb.ByDSCP))
	r.want(
		"pfc 8: 0", "  0 entries, pfc 0 delay 0, flaps 0, gaps 0;",
		"pfc 8: 0", "add 26:3: 0", "  0 entries, pfc 0 delay 0, flaps 0, gaps 0; 26->0",
		"pfc 8: -16",
		"pfc 8: 1", "add 26:3: 1", "add 26:3: -17", "  1 entries, pfc 8 delay 0, flaps 0, gaps 0; 26->3",
		"dcbx host ieee static: 1", "  reads host ieee static",
		"add 26:4: 0", "  1 entries, pfc 8 delay 0, flaps 0, gaps 0; 26->4",
		"add 26:5: 0", "del 26:5: 2", "  0 entries, pfc 8 delay 0, flaps 0, gaps 0;",
		"dcbx: eth0: set dcbx host: not supported: a loopback, bridge, bond, VLAN, VF or veth has no DCB, nor has a NIC whose driver leaves it out, nor a kernel built without CONFIG_DCB",
		"trust: -95",
	)
}

// A switch chip has trust, and the kernel judges the order.
func TestTrust(t *testing.T) {
	d := dcbfake.Generic()
	d.GetTrust = func(*dcbfake.NIC) ([]dcb.Selector, int) { return []dcb.Selector{dcb.ByPCP}, 0 }
	var set []dcb.Selector
	d.SetTrust = func(_ *dcbfake.NIC, s []dcb.Selector) int { set = s; return 0 }
	r := newRig(t, d)
	if got := r.state().Trust; !cmp.Equal(got, []dcb.Selector{dcb.ByPCP}) {
		t.Errorf("got %v", got)
	}
	if err := r.c.SetTrust(t.Context(), "eth0", dcb.ByDSCP, dcb.ByPCP); err != nil || !cmp.Equal(set, []dcb.Selector{dcb.ByDSCP, dcb.ByPCP}) {
		t.Errorf("%v, %v", set, err)
	}
	head := []byte{0, 20, 0, 0, 9, 0, 1, 0, 'e', 't', 'h', '0', 0, 0, 0, 0}
	for _, c := range []struct {
		table  []byte
		status byte
	}{
		{[]byte{16, 0, 13, 0, 12, 0, 11, 0, 5, 0, 2, 0, 5, 0, 0, 0}, 0xea},                         // DSCP among the others' attribute
		{[]byte{24, 0, 13, 0, 20, 0, 11, 0, 5, 0, 1, 0, 5, 0, 0, 0, 5, 0, 1, 0, 5, 0, 0, 0}, 0xef}, // twice
	} {
		got, err := r.k.Execute(t.Context(), 79, append(head[:len(head):len(head)], c.table...))
		if err != nil || got[8] != c.status {
			t.Errorf("%x, %v", got, err)
		}
	}
}

// One message with several objects stops at the first trouble, and what was done stays.
func TestOrder(t *testing.T) {
	r := newRig(t, dcbfake.Generic().Refusing(-16, dcbfake.Buffer))
	data := []byte{0, 20, 0, 0, 9, 0, 1, 0, 'e', 't', 'h', '0', 0, 0, 0, 0}
	object := func(typ byte, body []byte) []byte {
		b := append([]byte{byte(len(body) + 4), 0, typ, 0}, body...)
		return append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	pfc := make([]byte, 136)
	pfc[1] = 8
	var in []byte
	in = append(in, object(3, []byte{8, 0, 1, 0, 5, 3, 26, 0})...) // an entry comes last, wherever it stands
	in = append(in, object(10, make([]byte, 44))...)
	in = append(in, object(2, pfc)...)
	data = append(data, byte(len(in)+4), 0, 13, 0)
	got, err := r.k.Execute(t.Context(), 79, append(data, in...))
	if err != nil || got[8] != 0xf0 {
		t.Errorf("%x, %v", got, err)
	}
	r.show()
	r.want("  0 entries, pfc 8 delay 0, flaps 0, gaps 0;")

	short := append(data[:16:16], 12, 0, 13, 0, 8, 0, 2, 0, 1, 2, 3, 4)
	if _, err := r.k.Execute(t.Context(), 79, short); !errors.Is(err, dcb.ERANGE) {
		t.Errorf("a short object: %v", err)
	}
}

// Every message is on record, and writes are counted apart.
func TestRecord(t *testing.T) {
	r := newRig(t, dcbfake.Generic().Refusing(-16, dcbfake.PFC))
	r.pfc(8, 0)
	r.add(26, 3)
	r.show()
	var got []string
	for _, q := range r.k.Requests() {
		got = append(got, fmt.Sprintf("%d %d %s %d %d", q.Type, q.Cmd, q.Ifname, q.Status, len(q.Data)))
	}
	want := []string{"78 21 eth0 0 16", "79 20 eth0 -16 160", "79 20 eth0 0 32", "78 21 eth0 0 16"}
	if diff := cmp.Diff(want, got); diff != "" || r.k.Writes() != 2 {
		t.Errorf("%d writes (-want +got)\n%s", r.k.Writes(), diff)
	}
	if r.nic.Name() != "eth0" || !cmp.Equal(r.nic.Apps(), []dcb.App{dcb.DSCP(26, 3)}) {
		t.Error(r.nic.Name(), r.nic.Apps())
	}
}

func FuzzKernel(f *testing.F) {
	f.Add(uint16(79), []byte{0, 20, 0, 0, 9, 0, 1, 0, 'e', 't', 'h', '0', 0, 0, 0, 0, 16, 0, 13, 0x80, 12, 0, 3, 0x80, 8, 0, 1, 0, 5, 3, 26, 0})
	f.Add(uint16(78), []byte{0, 21, 0, 0, 9, 0, 1, 0, 'e', 't', 'h', '0', 0, 0, 0, 0})
	drivers := []dcbfake.Driver{dcbfake.Generic(), dcbfake.MLX5(), dcbfake.Ice(), dcbfake.BNXT(), dcbfake.HNS3()}
	f.Fuzz(func(t *testing.T, typ uint16, data []byte) {
		for _, d := range drivers {
			k := dcbfake.New()
			k.Add("eth0", d)
			_, _ = k.Execute(t.Context(), typ, data)
			if _, err := dcb.New(k).Get(t.Context(), "eth0"); err != nil && !errors.Is(err, dcb.EMSGSIZE) {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	})
}
