package dcbfake_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

type message struct {
	request bool
	typ     uint16
	data    []byte
}

// The kernel of the recordings (see the test of package dcb) and the fake one answer the same, byte for byte, request
// after request on one device.
func TestRecorded(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the recordings are little endian")
	}
	text, err := os.ReadFile("../testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	k := dcbfake.New()
	k.WithoutRewrite = true // a 6.1 kernel
	n := k.Add("dcb0", dcbfake.Generic())
	k.AddPlain("v0")
	compared := 0
	for line := range bytes.Lines(text) {
		var r struct {
			File     string
			Messages []struct{ Dir, Hex string }
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		var ms []message
		for _, m := range r.Messages {
			ms = append(ms, split(t, m.Dir == "request", m.Hex)...)
		}
		switch r.File { // what was special about the device or the caller
		case "62-ets-set-ebusy", "nlmon-04":
			n.Use(dcbfake.Generic().Refusing(-16, dcbfake.ETS))
		case "nlmon-22":
			k.Unprivileged = true
		default:
			n.Use(dcbfake.Generic())
			k.Unprivileged = false
		}
		if r.File == "nlmon-01" {
			n.Restart() // the module was loaded anew
		}
		for i, m := range ms {
			if !m.request {
				continue
			}
			got, err := k.Execute(t.Context(), m.typ, m.data)
			want, errno := answer(m, ms[i+1:])
			var e dcb.Errno
			switch {
			case errno != 0:
				if !errors.As(err, &e) || e != errno {
					t.Errorf("%s: %v, want %v", r.File, err, errno)
				}
			case err != nil:
				t.Errorf("%s: %v", r.File, err)
			case want == nil:
				continue // the tool did not read on
			case !bytes.Equal(got, want):
				t.Errorf("%s:\n     %x\nwant %x", r.File, got, want)
			}
			compared++
		}
	}
	if compared != 95 {
		t.Errorf("%d answers compared", compared)
	}
}

// answer finds what the kernel said to a request.
func answer(m message, after []message) ([]byte, dcb.Errno) {
	for _, a := range after {
		switch {
		case a.request:
			return nil, 0
		case a.typ == m.typ:
			return a.data, 0
		case a.typ == 2: // NLMSG_ERROR; 0 is an acknowledgement
			if n := int32(binary.NativeEndian.Uint32(a.data)); n != 0 {
				return nil, dcb.Errno(-n)
			}
		}
	}
	return nil, 0
}

func split(t *testing.T, request bool, text string) (out []message) {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	for len(b) >= 16 {
		n := int(binary.NativeEndian.Uint32(b))
		out = append(out, message{request, binary.NativeEndian.Uint16(b[4:]), b[16:n]})
		b = b[min((n+3)&^3, len(b)):]
	}
	return out
}
