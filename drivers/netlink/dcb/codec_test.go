package dcb_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/google/go-cmp/cmp"
)

// Requests written down by hand from the structures of the kernel's header.
func TestRequests(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are little endian")
	}
	const eth0 = "09000100 65746830 00000000"
	zero := func(n int) string { return strings.Repeat("00", n) }
	for _, c := range []struct {
		name string
		r    func() (dcb.Request, error)
		want string
	}{
		{"get", func() (dcb.Request, error) { return dcb.GetRequest("eth0") }, "00150000" + eth0},
		{
			"add dscp", func() (dcb.Request, error) { return dcb.AddAppRequest("eth0", dcb.DSCP(26, 3)) },
			"00140000" + eth0 + "10000d80 0c000380 08000100 05031a00",
		},
		{
			"delete dscp", func() (dcb.Request, error) { return dcb.DelAppRequest("eth0", dcb.DSCP(26, 3)) },
			"001b0000" + eth0 + "10000d80 0c000380 08000100 05031a00",
		},
		{
			"add pcp", func() (dcb.Request, error) {
				return dcb.AddAppRequest("eth0", dcb.App{Selector: dcb.ByPCP, Priority: 3, Protocol: 11})
			},
			"00140000" + eth0 + "10000d80 0c000380 08000200 ff030b00",
		},
		{
			"dcbx", func() (dcb.Request, error) { return dcb.DCBXRequest("eth0", dcb.Host|dcb.IEEE) },
			"00170000" + eth0 + "05000e00 09000000",
		},
		{
			"pfc", func() (dcb.Request, error) { return dcb.PFCRequest("eth0", dcb.PFC{Cap: 8, Enabled: 8, Delay: 0x1234}) },
			"00140000" + eth0 + "90000d80 8c000200 08080000 34120000" + zero(128),
		},
		{
			"ets", func() (dcb.Request, error) {
				return dcb.ETSRequest("eth0", dcb.ETS{TxBW: [8]uint8{50, 50}, TSA: [8]dcb.TSA{dcb.Shared, dcb.Shared}, PrioTC: [8]uint8{3: 1}})
			},
			"00140000" + eth0 + "44000d80 3f000100 000000 3232000000000000 0000000000000000 0202000000000000 0000000100000000" + zero(24) + "00",
		},
		{
			"trust", func() (dcb.Request, error) { return dcb.TrustRequest("eth0", []dcb.Selector{dcb.ByDSCP, dcb.ByPCP}) },
			"00140000" + eth0 + "18000d80 14000b80 05000100 05000000 05000200 ff000000",
		},
		{
			"maxrate", func() (dcb.Request, error) { return dcb.MaxRateRequest("eth0", dcb.MaxRate{1: 25_000_000}) },
			"00140000" + eth0 + "48000d80 44000700" + zero(8) + "40787d0100000000" + zero(48),
		},
		{
			"buffer", func() (dcb.Request, error) {
				return dcb.BufferRequest("eth0", dcb.Buffer{PrioBuffer: [8]uint8{3: 1}, Size: [8]uint32{1: 0x10000}, Total: 7})
			},
			"00140000" + eth0 + "34000d80 30000a00 0000000100000000 00000000 00000100" + zero(24) + "07000000",
		},
	} {
		r, err := c.r()
		want := strings.ReplaceAll(c.want, " ", "")
		if got := hex.EncodeToString(r.Data); err != nil || got != want {
			t.Errorf("%s: %v\n     %s\nwant %s", c.name, err, got, want)
		}
		if r.Writes() != (c.name != "get") {
			t.Errorf("%s: writes: %v", c.name, r.Writes())
		}
	}
}

// What would be stored without a word, or cannot be meant, is refused before anything is sent.
func TestRefusedRequests(t *testing.T) {
	app := func(a dcb.App) func() (dcb.Request, error) {
		return func() (dcb.Request, error) { return dcb.AddAppRequest("eth0", a) }
	}
	name := func(s string) func() (dcb.Request, error) {
		return func() (dcb.Request, error) { return dcb.GetRequest(s) }
	}
	for _, c := range []struct {
		r    func() (dcb.Request, error)
		want string
	}{
		{app(dcb.DSCP(26, 8)), "eth0: add dscp 26 to priority 8: priority 8 is above 7"},
		{app(dcb.DSCP(64, 3)), "eth0: add dscp 64 to priority 3: DSCP 64 is above 63"},
		{app(dcb.App{Selector: 6}), "eth0: add selector 6 0 to priority 0: there is no selector 6"},
		{app(dcb.App{}), "eth0: add selector 0 0 to priority 0: there is no selector 0"},
		{app(dcb.App{Selector: dcb.ByPCP, Protocol: 16}), "eth0: add pcp 16 to priority 0: PCP 16 is above 15 (PCP + 8*DEI)"},
		{
			func() (dcb.Request, error) { return dcb.DelAppRequest("eth0", dcb.DSCP(0, 9)) },
			"eth0: delete dscp 0 to priority 9: priority 9 is above 7",
		},
		{
			func() (dcb.Request, error) { return dcb.ETSRequest("eth0", dcb.ETS{PrioTC: [8]uint8{5: 8}}) },
			"eth0: set ets: traffic class 8 of priority 5 is above 7",
		},
		{
			func() (dcb.Request, error) { return dcb.ETSRequest("eth0", dcb.ETS{TxBW: [8]uint8{2: 101}}) },
			"eth0: set ets: bandwidth of traffic class 2 is 101%, above 100%",
		},
		{
			func() (dcb.Request, error) { return dcb.ETSRequest("eth0", dcb.ETS{TSA: [8]dcb.TSA{7: 3}}) },
			"eth0: set ets: traffic class 7 has the unknown algorithm 3",
		},
		{
			func() (dcb.Request, error) {
				return dcb.BufferRequest("eth0", dcb.Buffer{PrioBuffer: [8]uint8{1: 8}})
			},
			"eth0: set buffer: buffer 8 of priority 1 is above 7",
		},
		{
			func() (dcb.Request, error) { return dcb.TrustRequest("eth0", []dcb.Selector{dcb.ByDSCP, dcb.ByDSCP}) },
			"eth0: set trust: dscp is in the order twice",
		},
		{
			func() (dcb.Request, error) { return dcb.TrustRequest("eth0", []dcb.Selector{9}) },
			"eth0: set trust: there is no selector 9",
		},
		{
			func() (dcb.Request, error) { return dcb.DCBXRequest("eth0", 0x69) },
			"eth0: set dcbx host ieee 0x60: there are no DCBX mode bits 0x60",
		},
		{
			func() (dcb.Request, error) { return dcb.DCBXRequest("", dcb.Host) },
			`"": set dcbx host: an interface needs a name`,
		},
		{name("abcdefghijklmnop"), `"abcdefghijklmnop": get: an interface name has at most 15 bytes, "abcdefghijklmnop" has 16`},
		{name("a/b"), `"a/b": get: "a/b" is not the name of an interface`},
		{name("a b"), `"a b": get: "a b" is not the name of an interface`},
		{name(".."), `"..": get: ".." is not the name of an interface`},
		{name("a\x00b"), `"a\x00b": get: "a\x00b" is not the name of an interface`},
	} {
		r, err := c.r()
		if err == nil || err.Error() != c.want || r.Data != nil {
			t.Errorf("got %x, %v\nwant %s", r.Data, err, c.want)
		}
		var e *dcb.Error
		if !errors.As(err, &e) {
			t.Errorf("%T", err)
		}
	}
}

func attr(typ uint16, data ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func join(bs ...[]byte) (out []byte) {
	for _, b := range bs {
		out = append(out, b...)
	}
	return out
}

func app(typ uint16, selector, priority uint8, protocol uint16) []byte {
	return attr(typ, binary.NativeEndian.AppendUint16([]byte{selector, priority}, protocol)...)
}

// What no recording has: newer tables (with the nested flag), the peer, longer structures, and attributes that nobody
// knows.
func TestDecodeRest(t *testing.T) {
	ets := make([]byte, 59+5)
	ets[1], ets[59] = 8, 0xff
	pfc := make([]byte, 136)
	pfc[1] = 8
	pfc[8], pfc[72] = 5, 7
	data := join([]byte{0, 21, 0, 0}, attr(1, 'e', 't', 'h', '0', 0), attr(99, 1, 2, 3), attr(13, join(
		attr(1, ets...), attr(4, ets...), attr(5, pfc...), attr(8, make([]byte, 360)...),
		attr(3, join(app(1, 5, 3, 26), app(7, 5, 3, 27), app(2, 255, 3, 11))...),
		attr(6, join(attr(4, 1, 2), app(1, 1, 3, 0x8915))...),
		attr(12|0x8000, app(1, 5, 6, 48)...),
		attr(11|0x8000, join(attr(1, 5), attr(2, 255))...),
	)...), attr(14, 0x0c))
	cmd, got, err := dcb.Decode(data)
	if err != nil || cmd != 21 {
		t.Fatal(cmd, err)
	}
	mode := dcb.CEE | dcb.IEEE
	want := &dcb.State{
		Ifname: "eth0",
		ETS:    &dcb.ETS{Cap: 8},
		Apps:   []dcb.App{dcb.DSCP(26, 3), {Selector: dcb.ByPCP, Priority: 3, Protocol: 11}},
		Rewr:   []dcb.App{dcb.DSCP(48, 6)},
		Trust:  []dcb.Selector{dcb.ByDSCP, dcb.ByPCP},
		DCBX:   &mode,

		PeerETS:  &dcb.ETS{Cap: 8},
		PeerPFC:  &dcb.PFC{Enabled: 8, Requests: [8]uint64{5}, Indications: [8]uint64{7}},
		PeerApps: []dcb.App{{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pfc", "maxrate", "buffer"}, got.Absent()); diff != "" {
		t.Errorf("absent (-want +got)\n%s", diff)
	}
}

// An empty table is not an absent one.
func TestDecodeEmpty(t *testing.T) {
	_, s, err := dcb.Decode(join([]byte{0, 21, 0, 0}, attr(13, join(attr(3), attr(12), attr(11))...)))
	if err != nil || s.Apps == nil || s.Rewr == nil || s.Trust == nil {
		t.Errorf("%+v, %v", s, err)
	}
	_, s, err = dcb.Decode([]byte{0, 21, 0, 0})
	if err != nil || s.Apps != nil || s.Rewr != nil || s.Trust != nil || len(s.Absent()) != 8 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestDecodeDamaged(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "damaged message: message of 0 bytes, want at least 4"},
		{[]byte{0, 21, 0, 0, 9}, "damaged message: invalid attribute"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(1, make([]byte, 58)...)...)), "damaged message: ets of 58 bytes, want at least 59"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(2, 8)...)), "damaged message: pfc of 1 bytes, want at least 136"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(7)...)), "damaged message: maxrate of 0 bytes, want at least 64"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(10, 1, 2)...)), "damaged message: buffer of 2 bytes, want at least 44"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(3, attr(1, 5, 3)...)...)), "damaged message: application entry of 2 bytes, want at least 4"},
		{join([]byte{0, 21, 0, 0}, attr(13, attr(11, attr(1)...)...)), "damaged message: netlink: attribute 1 is not a uint8; length: 0"},
		{join([]byte{0, 21, 0, 0}, attr(14, 1, 2)), "damaged message: netlink: attribute 14 is not a uint8; length: 2"},
	} {
		_, s, err := dcb.Decode(c.data)
		if s != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%x: %+v, %v\nwant %s", c.data, s, err, c.want)
		}
	}
}

// The byte that the driver answers with, as what it is and in words.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		status uint8
		is     error
		want   string
	}{
		{0xa1, dcb.EOPNOTSUPP, "the driver refused: not supported"},
		{0xea, dcb.EINVAL, "the driver refused: invalid for this device in its present mode"},
		{0xef, dcb.EEXIST, "the driver refused: entry exists"},
		{0xfe, dcb.ENOENT, "the driver refused: no such entry"},
		{0xde, dcb.ERANGE, "the driver refused: out of range"},
		{0xf0, dcb.EBUSY, "the driver refused: device busy"},
		{0xff, dcb.EPERM, "the driver refused: operation not permitted"},
		{0xf4, dcb.ErrAmbiguous, "the driver refused: out of memory or not supported (-12 stands for both)"},
		{0xf4, dcb.ENOMEM, ""},
		{0x80, dcb.Errno(128), "the driver refused: error number 128"},
		{1, dcb.ErrReadBack, "the driver answered 1, neither done nor refused: only reading back decides"},
		{2, dcb.ErrReadBack, "the driver answered 2, neither done nor refused: only reading back decides"},
	} {
		for _, cmd := range []uint8{20, 27, 23} {
			err := dcb.DecodeStatus(verdict(cmd, c.status))
			var s dcb.Status
			if !errors.As(err, &s) || uint8(s) != c.status || !errors.Is(err, c.is) || c.want != "" && err.Error() != c.want {
				t.Errorf("%#x: %v\nwant %s", c.status, err, c.want)
			}
			if c.is != dcb.ErrReadBack && errors.Is(err, dcb.ErrReadBack) || errors.Is(err, dcb.ENODEV) || c.status != 0xf4 && errors.Is(err, dcb.ErrAmbiguous) {
				t.Errorf("%#x is too much: %v", c.status, err)
			}
		}
	}
	if err := dcb.DecodeStatus(verdict(20, 0)); err != nil {
		t.Error(err)
	}
	for _, data := range [][]byte{nil, {0, 20, 0, 0}, join([]byte{0, 20, 0, 0}, attr(14, 0)), join([]byte{0, 20, 0, 0}, attr(13)), {0, 20, 0, 0, 5}} {
		if err := dcb.DecodeStatus(data); err == nil {
			t.Errorf("%x is not a verdict", data)
		}
	}
}

func TestWords(t *testing.T) {
	got := fmt.Sprint(
		dcb.DSCP(26, 3), "; ", dcb.App{Selector: dcb.ByEthertype}, "; ", dcb.App{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915}, "; ",
		dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: 4791}, "; ", dcb.App{Selector: dcb.ByStream}, "; ", dcb.App{Selector: dcb.ByPort}, "; ",
		dcb.Strict, " ", dcb.CBShaper, " ", dcb.Shared, " ", dcb.VendorTSA, " ", dcb.TSA(9), "; ", dcb.DCBX(0), " ", dcb.Host|dcb.CEE|dcb.IEEE|dcb.LLDManaged|dcb.Static,
	)
	const want = "dscp 26 to priority 3; default priority 0; ethertype 0x8915 to priority 3; dgram-port 4791 to priority 3; stream-port 0 to priority 0; " +
		"port 0 to priority 0; strict cbs ets vendor tsa 9; none host lld-managed cee ieee static"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func seeds(f *testing.F) {
	for _, r := range recordings(f) {
		for _, request := range []bool{false, true} {
			for _, m := range r.split(f, request) {
				if m.typ != 2 {
					f.Add(m.data)
				}
			}
		}
	}
}

// Whatever is decoded is encoded to what is decoded the same.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = dcb.DecodeStatus(data)
		_, s, err := dcb.Decode(data)
		if err != nil {
			return
		}
		var rs []dcb.Request
		collect := func(r dcb.Request, err error) {
			if err == nil {
				rs = append(rs, r)
			}
		}
		all := dcb.State{Ifname: "eth0"}
		if s.ETS != nil {
			collect(dcb.ETSRequest("eth0", *s.ETS))
		}
		if s.PFC != nil {
			collect(dcb.PFCRequest("eth0", *s.PFC))
		}
		if s.MaxRate != nil {
			collect(dcb.MaxRateRequest("eth0", *s.MaxRate))
		}
		if s.Buffer != nil {
			collect(dcb.BufferRequest("eth0", *s.Buffer))
		}
		for _, a := range s.Apps {
			collect(dcb.AddAppRequest("eth0", a))
		}
		collect(dcb.TrustRequest("eth0", s.Trust))
		if s.DCBX != nil {
			collect(dcb.DCBXRequest("eth0", *s.DCBX))
		}
		for _, r := range rs {
			_, one, err := dcb.Decode(r.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				there     bool
				got, want any
			}{
				{one.ETS != nil, one.ETS, s.ETS},
				{one.PFC != nil, one.PFC, s.PFC},
				{one.MaxRate != nil, one.MaxRate, s.MaxRate},
				{one.Buffer != nil, one.Buffer, s.Buffer},
				{len(one.Trust) > 0, one.Trust, s.Trust},
				{one.DCBX != nil, one.DCBX, s.DCBX},
			} {
				if c.there && !cmp.Equal(c.got, c.want) {
					t.Errorf("(-want +got)\n%s", cmp.Diff(c.want, c.got))
				}
			}
			all.Apps = append(all.Apps, one.Apps...)
		}
		var valid []dcb.App
		for _, a := range s.Apps {
			if _, err := dcb.AddAppRequest("eth0", a); err == nil {
				valid = append(valid, a)
			}
		}
		if !cmp.Equal(all.Apps, valid) {
			t.Errorf("(-want +got)\n%s", cmp.Diff(valid, all.Apps))
		}
	})
}

// A reply with everything and 64 DSCPs.
func BenchmarkDecode(b *testing.B) {
	var apps []byte
	for i := range uint16(64) {
		apps = append(apps, app(1, 5, uint8(i>>3), i)...)
	}
	data := join([]byte{0, 21, 0, 0}, attr(1, 'e', 't', 'h', '0', 0), attr(13, join(
		attr(1, make([]byte, 59)...), attr(7, make([]byte, 64)...), attr(2, make([]byte, 136)...), attr(10, make([]byte, 44)...),
		attr(3, apps...), attr(12|0x8000))...), attr(14, 9))
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := dcb.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
