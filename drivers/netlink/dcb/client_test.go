package dcb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/google/go-cmp/cmp"
)

// A set changes what it means to, and carries everything else along as it was read.
func TestSetKeepsTheRest(t *testing.T) {
	k := dcbfake.New()
	n := k.Add("eth0", dcbfake.Generic())
	ets := dcb.ETS{
		Willing: 1, Cap: 8, CBS: 1, TxBW: [8]uint8{60, 40}, RxBW: [8]uint8{7}, TSA: [8]dcb.TSA{dcb.Shared, dcb.Shared}, PrioTC: [8]uint8{3: 1},
		RecoBW: [8]uint8{9}, RecoTSA: [8]dcb.TSA{dcb.VendorTSA}, RecoPrioTC: [8]uint8{5: 5},
	}
	n.Alter(func(h *dcbfake.Hardware) {
		h.ETS = ets
		h.PFC.Enabled, h.PFC.Delay, h.PFC.MBC, h.PFC.Requests[3] = 1, 700, 1, 12
		h.Buffer.Size = [8]uint32{1: 5000}
		h.MaxRate[2] = 100_000
	})
	c := dcb.New(k)
	ctx := t.Context()
	for _, err := range []error{
		c.SetPFC(ctx, "eth0", func(p *dcb.PFC) { p.Enabled = 8 }),
		c.SetETS(ctx, "eth0", func(e *dcb.ETS) { e.TxBW = [8]uint8{50, 50} }),
		c.SetBuffer(ctx, "eth0", func(b *dcb.Buffer) { b.PrioBuffer[3] = 1 }),
		c.SetMaxRate(ctx, "eth0", func(m *dcb.MaxRate) { m[1] = 25_000_000 }),
		c.AddApp(ctx, "eth0", dcb.DSCP(26, 3)),
		c.AddApp(ctx, "eth0", dcb.DSCP(48, 6)),
		c.DelApp(ctx, "eth0", dcb.DSCP(26, 3)),
		c.SetDCBX(ctx, "eth0", dcb.Host|dcb.IEEE|dcb.Static),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	got, err := c.Get(ctx, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	ets.TxBW = [8]uint8{50, 50}
	mode := dcb.Host | dcb.IEEE | dcb.Static
	want := &dcb.State{
		Ifname:  "eth0",
		ETS:     &ets,
		PFC:     &dcb.PFC{Cap: 8, Enabled: 8, Delay: 700, MBC: 1, Requests: [8]uint64{3: 12}},
		MaxRate: &dcb.MaxRate{1: 25_000_000, 2: 100_000},
		Buffer:  &dcb.Buffer{PrioBuffer: [8]uint8{3: 1}, Size: [8]uint32{1: 5000}, Total: 262016},
		Apps:    []dcb.App{dcb.DSCP(48, 6)},
		Rewr:    []dcb.App{},
		DCBX:    &mode,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := k.Writes(); n != 8 {
		t.Errorf("%d writes", n)
	}
}

// What is not shown is not set: the kernel would say that all is well.
func TestAbsent(t *testing.T) {
	k := dcbfake.New()
	k.Add("eth0", dcbfake.Generic().Without(dcbfake.PFC, dcbfake.ETS, dcbfake.Buffer, dcbfake.MaxRate, dcbfake.DCBX))
	c := dcb.New(k)
	ctx := t.Context()
	for _, err := range []error{
		c.SetPFC(ctx, "eth0", func(*dcb.PFC) { t.Error("called") }),
		c.SetETS(ctx, "eth0", func(*dcb.ETS) { t.Error("called") }),
		c.SetBuffer(ctx, "eth0", func(*dcb.Buffer) { t.Error("called") }),
		c.SetMaxRate(ctx, "eth0", func(*dcb.MaxRate) { t.Error("called") }),
	} {
		if !errors.Is(err, dcb.ErrAbsent) {
			t.Error(err)
		}
	}
	if n := k.Writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
	r, err := dcb.PFCRequest("eth0", dcb.PFC{Enabled: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(ctx, r); err != nil { // that is the trap
		t.Error(err)
	}
}

// What an operator reads, by cause.
func TestErrors(t *testing.T) {
	ctx := t.Context()
	over, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name string
		do   func(*dcb.Client, *dcbfake.Kernel, *dcbfake.NIC) error
		is   error
		want string
	}{
		{"no such interface", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			_, err := c.Get(ctx, "eth9")
			return err
		}, dcb.ENODEV, "eth9: get: no such interface: there is none of that name in this network namespace"},
		{"no DCB", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			return c.SetDCBX(ctx, "lo", dcb.Host)
		}, dcb.EOPNOTSUPP, "lo: set dcbx host: not supported: a loopback, bridge, bond, VLAN, VF or veth has no DCB, nor has a NIC whose driver leaves it out, nor a kernel built without CONFIG_DCB"},
		{"no privilege", func(c *dcb.Client, k *dcbfake.Kernel, _ *dcbfake.NIC) error {
			k.Unprivileged = true
			return c.AddApp(ctx, "eth0", dcb.DSCP(26, 3))
		}, dcb.EPERM, "eth0: add dscp 26 to priority 3: operation not permitted: a set needs CAP_NET_ADMIN in the initial user namespace, which root in a rootless container does not have"},
		{"refused", func(c *dcb.Client, _ *dcbfake.Kernel, n *dcbfake.NIC) error {
			n.Use(dcbfake.Generic().Refusing(-16, dcbfake.ETS))
			return c.SetETS(ctx, "eth0", func(*dcb.ETS) {})
		}, dcb.EBUSY, "eth0: set ets: the driver refused: device busy"},
		{"ambiguous", func(c *dcb.Client, _ *dcbfake.Kernel, n *dcbfake.NIC) error {
			n.Use(dcbfake.Generic().Refusing(-524, dcbfake.Apps))
			return c.AddApp(ctx, "eth0", dcb.DSCP(26, 3))
		}, dcb.ErrAmbiguous, "eth0: add dscp 26 to priority 3: the driver refused: out of memory or not supported (-12 stands for both)"},
		{"neither", func(c *dcb.Client, _ *dcbfake.Kernel, n *dcbfake.NIC) error {
			n.Use(dcbfake.Generic().Answering(2, dcbfake.Apps))
			return c.AddApp(ctx, "eth0", dcb.DSCP(26, 3))
		}, dcb.ErrReadBack, "eth0: add dscp 26 to priority 3: the driver answered 2, neither done nor refused: only reading back decides"},
		{"dcbx", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			return c.SetDCBX(ctx, "eth0", dcb.LLDManaged)
		}, dcb.ErrReadBack, "eth0: set dcbx lld-managed: the driver answered 1, neither done nor refused: only reading back decides"},
		{"trust", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			return c.SetTrust(ctx, "eth0", dcb.ByDSCP)
		}, dcb.EOPNOTSUPP, "eth0: set trust: the driver refused: not supported"},
		{"too much", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			for i := range uint16(500) {
				if err := c.AddApp(ctx, "eth0", dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: i}); err != nil {
					return err
				}
			}
			_, err := c.Get(ctx, "eth0")
			return err
		}, dcb.EMSGSIZE, "eth0: get: message too long: the state does not fit into one message, as with more than about 400 application entries"},
		{"too late", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			_, err := c.Get(over, "eth0")
			return err
		}, context.Canceled, "eth0: get: context canceled"},
		{"changed to nonsense", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			return c.SetETS(ctx, "eth0", func(e *dcb.ETS) { e.PrioTC[0] = 9 })
		}, nil, "eth0: set ets: traffic class 9 of priority 0 is above 7"},
		{"nothing to send", func(c *dcb.Client, _ *dcbfake.Kernel, _ *dcbfake.NIC) error {
			return c.Do(ctx, dcb.Request{})
		}, nil, `"": : an empty request`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := dcbfake.New()
			n := k.Add("eth0", dcbfake.Generic())
			k.AddPlain("lo")
			err := c.do(dcb.New(k), k, n)
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			// A driver's word is a Status, the kernel's an Errno, and neither is the other.
			var status dcb.Status
			var errno dcb.Errno
			if errors.As(err, &status) && errors.As(err, &errno) {
				t.Error("both a driver's and the kernel's")
			}
		})
	}
}

// An entry that is there cannot be added, and one that is not there cannot be removed: there is nothing to do. A refusal
// by the kernel with the same number would be another matter.
func TestNothingToDo(t *testing.T) {
	k := dcbfake.New()
	k.Add("eth0", dcbfake.Generic())
	c := dcb.New(k)
	for range 2 {
		if err := c.AddApp(t.Context(), "eth0", dcb.DSCP(26, 3)); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := c.DelApp(t.Context(), "eth0", dcb.DSCP(26, 3)); err != nil {
			t.Error(err)
		}
	}
	r, err := dcb.DelAppRequest("eth0", dcb.DSCP(26, 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), r); !errors.Is(err, dcb.ENOENT) {
		t.Error(err)
	}
	if err := dcb.New(answers{err: dcb.EEXIST}).AddApp(t.Context(), "eth0", dcb.DSCP(26, 3)); !errors.Is(err, dcb.EEXIST) {
		t.Error(err)
	}
}

func TestSupported(t *testing.T) {
	k := dcbfake.New()
	c := dcb.New(k)
	if ok, err := c.Supported(t.Context()); !ok || err != nil {
		t.Error(ok, err)
	}
	k.NoDCB = true
	if ok, err := c.Supported(t.Context()); ok || err != nil {
		t.Error(ok, err)
	}
	for _, a := range []answers{{err: dcb.EPERM}, {data: append([]byte{0, 21, 0, 0}, attr(1, '/', 0)...)}} {
		if ok, err := dcb.New(a).Supported(t.Context()); ok || err == nil {
			t.Error(ok, err)
		}
	}
}

// answers is a Transport with one answer to everything.
type answers struct {
	data []byte
	err  error
}

func (a answers) Execute(context.Context, uint16, []byte) ([]byte, error) { return a.data, a.err }
func (answers) Close() error                                              { return nil }

// An answer that is none, or to something else.
func TestStrangeAnswers(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "eth0: get: damaged message: message of 0 bytes, want at least 4"},
		{verdict(20, 0), "eth0: get: the answer is to command 20, asked was 21"},
		{append([]byte{0, 21, 0, 0}, attr(1, 'e', 't', 'h', '1', 0)...), `eth0: get: the answer is about "eth1"`},
		{[]byte{0, 21, 0, 0, 1}, "eth0: get: damaged message: invalid attribute; length too short or too large"},
	} {
		if _, err := dcb.New(answers{data: c.data}).Get(t.Context(), "eth0"); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	if err := dcb.New(answers{data: []byte{0, 23, 0, 0}}).SetDCBX(t.Context(), "eth0", dcb.Host); err == nil || err.Error() != "eth0: set dcbx host: the answer has no status" {
		t.Error(err)
	}
}

// Who listens hears of sets and refusals, of links, and of what was lost.
func TestWatch(t *testing.T) {
	k := dcbfake.New()
	n := k.Add("eth0", dcbfake.MLX5())
	w := dcb.NewWatcher(k.Subscribe(4))
	c := dcb.New(k)
	ctx := t.Context()
	var got []string
	next := func() dcb.Event {
		t.Helper()
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprintf("%s %s", e.Kind, e.Ifname)
		switch {
		case e.Kind == dcb.Link:
			s += fmt.Sprintf(" %d %v", e.Index, e.Running)
		case e.State != nil:
			s += fmt.Sprintf(" pfc %d, %d entries", e.State.PFC.Enabled, len(e.State.Apps))
		}
		got = append(got, s)
		return e
	}
	if err := c.SetPFC(ctx, "eth0", func(p *dcb.PFC) { p.Enabled = 8 }); err != nil {
		t.Fatal(err)
	}
	next()
	next()
	next()
	if err := c.AddApp(ctx, "eth0", dcb.App{Selector: dcb.ByDatagram}); !errors.Is(err, dcb.EINVAL) {
		t.Error(err)
	}
	next()
	for i := range uint8(5) { // one more than there is room
		if err := c.AddApp(ctx, "eth0", dcb.DSCP(i, 1)); err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		next()
	}
	n.Use(dcbfake.Generic())
	for i := range uint16(450) {
		if err := c.AddApp(ctx, "eth0", dcb.App{Selector: dcb.ByDatagram, Protocol: i}); err != nil {
			t.Fatal(err)
		}
	}
	if next().Kind != dcb.Lost {
		t.Error("a state that fits into no message went unnoticed")
	}
	want := []string{
		"link eth0 2 false", "link eth0 2 true", "changed eth0 pfc 8, 0 entries",
		"changed eth0 pfc 8, 0 entries",
		"lost ", "changed eth0 pfc 8, 1 entries", "changed eth0 pfc 8, 2 entries", "changed eth0 pfc 8, 3 entries", "changed eth0 pfc 8, 4 entries",
		"lost ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	w = dcb.NewWatcher(k.Subscribe(1))
	if _, err := w.Next(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// source is a Source with a few messages.
type source struct {
	types []uint16
	data  [][]byte
}

func (s *source) Receive(context.Context) (uint16, []byte, error) {
	if len(s.types) == 0 {
		return 0, nil, errors.New("the end")
	}
	typ, data := s.types[0], s.data[0]
	s.types, s.data = s.types[1:], s.data[1:]
	return typ, data, nil
}

func (*source) Close() error { return nil }

// What cannot be read is lost, what is not ours is passed over, and a message without a state says so.
func TestWatchStrange(t *testing.T) {
	link := append(make([]byte, 16), attr(3, 'e', 't', 'h', '0', 0)...)
	link[4], link[8] = 3, 0x40
	w := dcb.NewWatcher(&source{
		types: []uint16{20, 79, 79, 16, 17, 16, 16},
		data: [][]byte{
			{1},
			{0, 20},
			append([]byte{0, 26, 0, 0}, attr(1, 'e', 't', 'h', '0', 0)...),
			link, link, make([]byte, 15), append(make([]byte, 16), 1),
		},
	})
	var got []dcb.Event
	for {
		e, err := w.Next(t.Context())
		if err != nil {
			if want := "dcbnl: notifications: the end"; err.Error() != want {
				t.Errorf("got %v", err)
			}
			break
		}
		got = append(got, e)
	}
	want := []dcb.Event{
		{Kind: dcb.Lost},
		{Kind: dcb.Changed, Ifname: "eth0"},
		{Kind: dcb.Link, Ifname: "eth0", Index: 3, Running: true},
		{Kind: dcb.Gone, Ifname: "eth0", Index: 3},
		{Kind: dcb.Lost},
		{Kind: dcb.Lost},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzWatch(f *testing.F) {
	f.Add(uint16(16), make([]byte, 16))
	f.Add(uint16(79), []byte{0, 20, 0, 0})
	f.Fuzz(func(t *testing.T, typ uint16, data []byte) {
		w := dcb.NewWatcher(&source{types: []uint16{typ}, data: [][]byte{data}})
		for {
			if _, err := w.Next(t.Context()); err != nil {
				return
			}
		}
	})
}
