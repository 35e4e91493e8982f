package dcb_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// testdata/recorded.jsonl is what the dcb tool of iproute2 6.1 and a Debian 6.1 kernel said to each other about dcb0, a
// test device that keeps everything, and v0, a veth. The first 62 are system calls of the tool, nlmon-* is everything on
// the wire. The machine was little endian.

type recording struct {
	File, Command string
	Messages      []struct{ Dir, Hex string }
}

type message struct {
	typ  uint16
	data []byte
}

func recordings(tb testing.TB) []recording {
	tb.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		tb.Skip("the recordings are little endian, as every machine that this runs on")
	}
	f, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var rs []recording
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		rs = append(rs, r)
	}
	if err := lines.Err(); err != nil || len(rs) != 87 {
		tb.Fatalf("%d recordings, %v", len(rs), err)
	}
	return rs
}

// split takes the messages out of the datagrams of one direction.
func (r recording) split(tb testing.TB, request bool) (out []message) {
	tb.Helper()
	for _, m := range r.Messages {
		if (m.Dir == "request") != request {
			continue
		}
		b, err := hex.DecodeString(m.Hex)
		if err != nil {
			tb.Fatal(err)
		}
		for len(b) >= 16 {
			n := int(binary.NativeEndian.Uint32(b))
			if n < 16 || n > len(b) {
				tb.Fatalf("%s: message of %d bytes in a datagram of %d", r.File, n, len(b))
			}
			out = append(out, message{binary.NativeEndian.Uint16(b[4:]), b[16:n]})
			b = b[min((n+3)&^3, len(b)):]
		}
	}
	return out
}

// replay is a Transport that expects the requests of a recording and gives its answers.
type replay struct {
	requests, replies []message
	problems          []string
}

func (*replay) Close() error { return nil }

func (p *replay) Execute(_ context.Context, typ uint16, data []byte) ([]byte, error) {
	if len(p.requests) == 0 {
		p.problems = append(p.problems, fmt.Sprintf("beyond the recording: %d %x", typ, data))
		return nil, errors.New("the recording is over")
	}
	want := p.requests[0]
	p.requests = p.requests[1:]
	if typ != want.typ || !bytes.Equal(data, want.data) {
		p.problems = append(p.problems, fmt.Sprintf("request\n     %d %x\nwant %d %x", typ, data, want.typ, want.data))
	}
	const refusal = 2 // NLMSG_ERROR
	for i, m := range p.replies {
		if n := int32(binary.NativeEndian.Uint32(m.data)); m.typ == refusal && n < 0 {
			p.replies = p.replies[i+1:]
			return nil, dcb.Errno(-n)
		}
		if m.typ == typ {
			p.replies = p.replies[i+1:]
			return m.data, nil
		}
	}
	// The tool took the kernel's acknowledgement of its get for the verdict, and never read that.
	return verdict(data[1], 0), nil
}

// verdict is the kernel's reply to a set.
func verdict(cmd, status uint8) []byte {
	attr := byte(13)
	if cmd == 23 {
		attr = 14
	}
	return []byte{0, cmd, 0, 0, 5, 0, attr, 0, status, 0, 0, 0}
}

// call is what our client does where the tool did what was recorded.
type call func(*dcb.Client) error

func get(ifname string) call {
	return func(c *dcb.Client) error { _, err := c.Get(context.Background(), ifname); return err }
}

func pfc(ifname string, f func(*dcb.PFC)) call {
	return func(c *dcb.Client) error { return c.SetPFC(context.Background(), ifname, f) }
}

func ets(ifname string, f func(*dcb.ETS)) call {
	return func(c *dcb.Client) error { return c.SetETS(context.Background(), ifname, f) }
}

func buffer(f func(*dcb.Buffer)) call {
	return func(c *dcb.Client) error { return c.SetBuffer(context.Background(), "dcb0", f) }
}

func dcbx(ifname string, mode dcb.DCBX) call {
	return func(c *dcb.Client) error { return c.SetDCBX(context.Background(), ifname, mode) }
}

func add(ifname string, as ...dcb.App) call {
	return func(c *dcb.Client) error {
		for _, a := range as {
			if err := c.AddApp(context.Background(), ifname, a); err != nil {
				return err
			}
		}
		return nil
	}
}

func del(as ...dcb.App) call {
	return func(c *dcb.Client) error {
		for _, a := range as {
			if err := c.DelApp(context.Background(), "dcb0", a); err != nil {
				return err
			}
		}
		return nil
	}
}

func then(fs ...call) call {
	return func(c *dcb.Client) error {
		for _, f := range fs {
			if err := f(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// Why our messages are not those of the recording. Whatever is not named here is the same byte for byte. Of every
// message the header is different: sequence and port are those of the day, and we ask for no acknowledgement
// (NLM_F_ACK), because it is 0 also when the driver refused, and the tool takes that of its get for the verdict on its
// set (exit code 0 after a refusal: nlmon-03, -04, -14, -22).
const (
	oneEntry = "several application entries are a message each: the kernel stops at the first status that is not 0"
	padding  = "the bytes after the interface's name are 0: the tool left them unset"
	kilobits = "rates are in kbit/s, as the kernel's header says: the tool wrote bytes/s, which is 125 times as much"
)

var calls = map[string]struct {
	do   call
	want error // nil, or what errors.Is finds
	not  []string
}{
	"02-pfc-set-prio":  {do: pfc("dcb0", func(p *dcb.PFC) { p.Enabled = 1<<3 | 1<<4 })},
	"03-pfc-set-delay": {do: pfc("dcb0", func(p *dcb.PFC) { p.Delay = 0x100 })},
	"04-pfc-set-mbc":   {do: pfc("dcb0", func(p *dcb.PFC) { p.MBC = 1 })},
	"05-pfc-set-all":   {do: pfc("dcb0", func(p *dcb.PFC) { p.Enabled, p.MBC, p.Delay = 1<<3, 0, 32768 })},
	"09-ets-set-full": {do: ets("dcb0", func(e *dcb.ETS) {
		e.Willing = 1
		e.TSA = [8]dcb.TSA{dcb.Shared, dcb.Shared, dcb.Shared}
		e.TxBW = [8]uint8{50, 30, 20}
		e.PrioTC = [8]uint8{3: 1, 4: 2, 6: 3}
	})},
	"10-ets-set-tsa-bw": {do: ets("dcb0", func(e *dcb.ETS) {
		e.TSA[0], e.TSA[1], e.TSA[2] = dcb.Shared, dcb.Shared, dcb.Shared
		e.TxBW[0], e.TxBW[1], e.TxBW[2] = 40, 40, 20
	})},
	"11-ets-set-prio-tc":        {do: ets("dcb0", func(e *dcb.ETS) { e.PrioTC[5] = 5 })},
	"12-ets-set-willing":        {do: ets("dcb0", func(e *dcb.ETS) { e.Willing = 0 })},
	"13-ets-set-cbs-eopnotsupp": {do: ets("dcb0", func(e *dcb.ETS) { e.TSA[7] = dcb.CBShaper })},
	"17-app-add-dscp":           {do: add("dcb0", dcb.DSCP(26, 3))},
	"19-app-add-dscp-all":       {do: add("dcb0", dcb.DSCP(48, 6), dcb.DSCP(46, 5)), not: []string{oneEntry}},
	"20-app-add-ethtype":        {do: add("dcb0", dcb.App{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915})},
	"21-app-add-default":        {do: add("dcb0", dcb.App{Selector: dcb.ByEthertype})},
	"22-app-add-port":           {do: add("dcb0", dcb.App{Selector: dcb.ByPort, Priority: 3, Protocol: 4791})},
	"23-app-add-dgram":          {do: add("dcb0", dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: 4791})},
	"24-app-add-stream":         {do: add("dcb0", dcb.App{Selector: dcb.ByStream, Priority: 2, Protocol: 18515})},
	"28-app-replace-dscp":       {do: then(get("dcb0"), add("dcb0", dcb.DSCP(26, 4)))},
	"29-app-del-dscp":           {do: del(dcb.DSCP(26, 4))},
	"31-app-del-missing":        {do: del(dcb.DSCP(63, 7))},
	"32-app-flush-dscp":         {do: then(get("dcb0"), del(dcb.DSCP(46, 5), dcb.DSCP(48, 6), dcb.DSCP(26, 3))), not: []string{oneEntry}},
	"33-app-flush-ethtype":      {do: then(get("dcb0"), del(dcb.App{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915}))},
	"34-app-flush-all": {do: then(get("dcb0"), del(
		dcb.App{Selector: dcb.ByStream, Priority: 2, Protocol: 18515},
		dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: 4791},
		dcb.App{Selector: dcb.ByPort, Priority: 3, Protocol: 4791},
		dcb.App{Selector: dcb.ByEthertype})), not: []string{oneEntry}},
	"37-buffer-set-prio": {do: buffer(func(b *dcb.Buffer) { b.PrioBuffer = [8]uint8{3: 1} })},
	"38-buffer-set-size": {do: buffer(func(b *dcb.Buffer) { b.Size = [8]uint32{131072, 65536} })},
	"39-buffer-set-both": {do: buffer(func(b *dcb.Buffer) {
		b.PrioBuffer, b.Size = [8]uint8{3: 1, 4: 1}, [8]uint32{65536, 131072}
	})},
	"40-buffer-set-toobig": {do: buffer(func(b *dcb.Buffer) { b.Size[7] = 16 << 20 })},
	"43-maxrate-set": {
		do:  func(c *dcb.Client) error { return setRates(c) },
		not: []string{kilobits},
	},
	"46-dcbx-set-host-ieee":        {do: dcbx("dcb0", dcb.Host|dcb.IEEE)},
	"47-dcbx-set-host-ieee-static": {do: dcbx("dcb0", dcb.Host|dcb.IEEE|dcb.Static)},
	"48-dcbx-set-cee-refused":      {do: dcbx("dcb0", dcb.Host|dcb.CEE), want: dcb.ErrReadBack},
	"49-dcbx-set-lld-refused":      {do: dcbx("dcb0", dcb.LLDManaged|dcb.IEEE), want: dcb.ErrReadBack},
	"54-veth-pfc-set":              {do: pfc("v0", nil), want: dcb.EOPNOTSUPP},
	"55-veth-ets-set":              {do: ets("v0", nil), want: dcb.EOPNOTSUPP},
	"57-veth-app-add":              {do: add("v0", dcb.DSCP(26, 3)), want: dcb.EOPNOTSUPP},
	"62-ets-set-ebusy":             {do: ets("dcb0", func(e *dcb.ETS) { e.PrioTC[1] = 1 })},

	"nlmon-01": {do: pfc("dcb0", func(p *dcb.PFC) { p.Enabled = 1 << 3 })},
	"nlmon-02": {do: ets("dcb0", func(e *dcb.ETS) {
		e.TSA = [8]dcb.TSA{dcb.Shared, dcb.Shared, dcb.Shared}
		e.TxBW[0], e.TxBW[1], e.TxBW[2] = 50, 30, 20
		e.PrioTC = [8]uint8{3: 1, 4: 2, 6: 3}
	})},
	"nlmon-03": {do: ets("dcb0", func(e *dcb.ETS) { e.TSA[7] = dcb.CBShaper }), want: dcb.EOPNOTSUPP},
	"nlmon-04": {do: ets("dcb0", func(e *dcb.ETS) { e.PrioTC[1] = 1 }), want: dcb.EBUSY},
	"nlmon-06": {do: add("dcb0", dcb.DSCP(24, 3), dcb.DSCP(25, 3), dcb.DSCP(26, 3), dcb.DSCP(48, 6)), not: []string{oneEntry}},
	"nlmon-07": {do: add("dcb0", dcb.DSCP(26, 3))}, // EEXIST: there was nothing to do
	"nlmon-08": {do: add("dcb0", dcb.App{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915})},
	"nlmon-09": {do: then(get("dcb0"), add("dcb0", dcb.DSCP(26, 4)), del(dcb.DSCP(26, 3))), not: []string{padding}},
	"nlmon-10": {do: del(dcb.DSCP(63, 7))}, // ENOENT: there was nothing to do
	"nlmon-11": {do: then(get("dcb0"), del(dcb.DSCP(26, 4), dcb.DSCP(48, 6), dcb.DSCP(25, 3), dcb.DSCP(24, 3))), not: []string{oneEntry}},
	"nlmon-12": {do: buffer(func(b *dcb.Buffer) { b.PrioBuffer = [8]uint8{3: 1} })},
	"nlmon-13": {do: buffer(func(b *dcb.Buffer) {
		b.PrioBuffer, b.Size = [8]uint8{3: 1, 4: 1}, [8]uint32{65536, 131072}
	})},
	"nlmon-14": {do: buffer(func(b *dcb.Buffer) { b.Size[7] = 16 << 20 }), want: dcb.EINVAL},
	"nlmon-16": {do: func(c *dcb.Client) error { return setRates(c) }, not: []string{kilobits}},
	"nlmon-17": {do: dcbx("dcb0", dcb.Host|dcb.IEEE)},
	"nlmon-18": {do: dcbx("dcb0", dcb.Host|dcb.CEE), want: dcb.ErrReadBack},
	"nlmon-19": {do: dcbx("dcb0", dcb.LLDManaged|dcb.IEEE), want: dcb.ErrReadBack},
	"nlmon-22": {do: pfc("dcb0", func(p *dcb.PFC) { p.Enabled |= 1 << 1 }), want: dcb.EPERM},
	"nlmon-23": {do: pfc("v0", nil), want: dcb.EOPNOTSUPP},
	"nlmon-24": {do: add("v0", dcb.DSCP(26, 3)), want: dcb.EOPNOTSUPP},
	"nlmon-25": {do: dcbx("v0", dcb.Host|dcb.IEEE), want: dcb.EOPNOTSUPP},
}

// setRates sets what "all:0 1:25Gbit 2:100Mbit" means, in kbit/s.
func setRates(c *dcb.Client) error {
	return c.SetMaxRate(context.Background(), "dcb0", func(m *dcb.MaxRate) { *m = dcb.MaxRate{1: 25_000_000, 2: 100_000} })
}

// The client says what the tool said, byte for byte, and hears what the kernel answered.
func TestRecorded(t *testing.T) {
	messages := 0
	for _, r := range recordings(t) {
		t.Run(r.File, func(t *testing.T) {
			p := &replay{requests: r.split(t, true), replies: r.split(t, false)}
			messages += len(p.requests)
			row, ok := calls[r.File]
			switch {
			case ok:
			case len(p.requests) == 0:
				return // refused by the tool itself, as INDEX.md of the recordings says
			case len(p.requests) == 1 && p.requests[0].typ == 78: // a look
				row.do = get(strings.TrimRight(string(p.requests[0].data[8:]), "\x00"))
				if n := p.replies[0]; n.typ == 2 {
					row.want = dcb.Errno(-int32(binary.NativeEndian.Uint32(n.data)))
				}
			default:
				t.Fatalf("no call for %s", r.Command)
			}
			p.adjust(t, row.not)
			err := row.do(dcb.New(p))
			if row.want == nil && err != nil || !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
			if len(p.requests) > 0 {
				t.Errorf("%d requests of the recording were not made", len(p.requests))
			}
			for _, s := range p.problems {
				t.Error(s)
			}
		})
	}
	if messages != 114 {
		t.Errorf("%d requests compared", messages)
	}
}

// adjust makes of the tool's requests what they would be without the peculiarities named, and complains about one that
// is not there.
func (p *replay) adjust(t *testing.T, not []string) {
	t.Helper()
	before := fmt.Sprint(p.requests)
	for _, why := range not {
		switch why {
		case oneEntry:
			var out []message
			for _, m := range p.requests {
				out = append(out, oneByOne(m)...)
			}
			p.requests = out
		case padding:
			for _, m := range p.requests {
				clear(m.data[4+5+4 : 4+12]) // after "dcb0" and its NUL
			}
		case kilobits:
			m := p.requests[len(p.requests)-1].data
			for rates := m[len(m)-64:]; len(rates) > 0; rates = rates[8:] {
				n := binary.NativeEndian.Uint64(rates)
				if n%125 != 0 {
					t.Errorf("%d is no number of bytes/s", n)
				}
				binary.NativeEndian.PutUint64(rates, n/125)
			}
		default:
			t.Fatal(why)
		}
	}
	if len(not) > 0 && fmt.Sprint(p.requests) == before {
		t.Errorf("the recording is not different: %v", not)
	}
}

// oneByOne makes a message for each entry of an application table. The bytes are: struct dcbmsg, the name's attribute
// (12 bytes), the header of DCB_ATTR_IEEE, that of the table, the entries of 8 bytes each.
func oneByOne(m message) (out []message) {
	const head = 4 + 12
	if m.typ != 79 || len(m.data) <= head+8+8 || m.data[head+6] != 3 {
		return []message{m}
	}
	for entry := range slices.Chunk(m.data[head+8:], 8) {
		b := slices.Clone(m.data[:head+8])
		binary.NativeEndian.PutUint16(b[head:], 16)
		binary.NativeEndian.PutUint16(b[head+4:], 12)
		out = append(out, message{m.typ, append(b, entry...)})
	}
	return out
}
