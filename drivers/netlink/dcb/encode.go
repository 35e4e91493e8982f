package dcb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/mdlayher/netlink"
)

// Request is one message to the kernel, without the header of netlink.
type Request struct {
	Type uint16 // RTM_GETDCB or RTM_SETDCB
	Data []byte

	ifname, op string // for errors
}

// Writes reports whether the request asks for a change.
func (r Request) Writes() bool { return r.Type == typeSet }

// GetRequest asks for everything of an interface. Like every constructor of a Request, it refuses a name that no
// interface can have.
func GetRequest(ifname string) (Request, error) {
	if err := checkName(ifname); err != nil {
		return Request{}, &Error{ifname, "get", err}
	}
	return getRequest(ifname)
}

func getRequest(ifname string) (Request, error) {
	return encode(typeGet, cmdIEEEGet, ifname, "get", nil)
}

// ETSRequest sets all of e. It refuses a traffic class above 7, a percentage above 100 and an algorithm that does not
// exist; whether the percentages make sense together is for the caller, since drivers differ.
func ETSRequest(ifname string, e ETS) (Request, error) {
	return object(ifname, "set ets", ieeeETS, e.bytes(), e.check())
}

// PFCRequest sets all of p but the counters, which the kernel ignores.
func PFCRequest(ifname string, p PFC) (Request, error) {
	return object(ifname, "set pfc", ieeePFC, p.bytes(), nil)
}

// MaxRateRequest sets the limits of all traffic classes.
func MaxRateRequest(ifname string, m MaxRate) (Request, error) {
	return object(ifname, "set maxrate", ieeeMaxRate, m.bytes(), nil)
}

// BufferRequest sets all buffers. It refuses a buffer above 7; which sizes fit, the driver knows.
func BufferRequest(ifname string, b Buffer) (Request, error) {
	return object(ifname, "set buffer", ieeeBuffer, b.bytes(), b.check())
}

// AddAppRequest adds one entry. Like DelAppRequest, it refuses a selector that does not exist, a priority above 7, a
// DSCP above 63 and a PCP above 15: without an operation of the driver's, the kernel stores them.
func AddAppRequest(ifname string, a App) (Request, error) {
	return appRequest(cmdIEEESet, ifname, "add "+a.String(), a)
}

// DelAppRequest removes the entry that is the same as a in all its parts.
func DelAppRequest(ifname string, a App) (Request, error) {
	return appRequest(cmdIEEEDel, ifname, "delete "+a.String(), a)
}

// TrustRequest sets what the priority of a packet is taken from, the first that applies. It refuses selectors that do
// not exist or come twice.
func TrustRequest(ifname string, order []Selector) (Request, error) {
	return ieee(cmdIEEESet, ifname, "set trust", checkTrust(order), func(n *netlink.AttributeEncoder) {
		n.Nested(ieeeTrust, func(t *netlink.AttributeEncoder) error {
			for _, s := range order {
				t.Uint8(s.attr(), uint8(s))
			}
			return nil
		})
	})
}

// DCBXRequest sets the mode. It refuses bits that do not exist, and nothing else: 0 gives a port back to its firmware.
func DCBXRequest(ifname string, mode DCBX) (Request, error) {
	op := "set dcbx " + mode.String()
	err := checkName(ifname)
	if rest := mode &^ dcbxBits; err == nil && rest != 0 {
		err = fmt.Errorf("there are no DCBX mode bits %#02x", uint8(rest))
	}
	if err != nil {
		return Request{}, &Error{ifname, op, err}
	}
	return encode(typeSet, cmdSDCBX, ifname, op, func(ae *netlink.AttributeEncoder) { ae.Uint8(attrDCBX, uint8(mode)) })
}

func appRequest(cmd uint8, ifname, op string, a App) (Request, error) {
	return ieee(cmd, ifname, op, a.check(), func(n *netlink.AttributeEncoder) {
		n.Nested(ieeeApps, func(t *netlink.AttributeEncoder) error {
			b := [lenApp]byte{uint8(a.Selector), a.Priority}
			binary.NativeEndian.PutUint16(b[2:], a.Protocol)
			t.Bytes(a.Selector.attr(), b[:])
			return nil
		})
	})
}

func object(ifname, op string, attr uint16, b []byte, err error) (Request, error) {
	return ieee(cmdIEEESet, ifname, op, err, func(n *netlink.AttributeEncoder) { n.Bytes(attr, b) })
}

// ieee is a request with a DCB_ATTR_IEEE that inside fills, unless the name or, by invalid, the content is refused.
func ieee(cmd uint8, ifname, op string, invalid error, inside func(*netlink.AttributeEncoder)) (Request, error) {
	if err := checkName(ifname); err != nil {
		invalid = err
	}
	if invalid != nil {
		return Request{}, &Error{ifname, op, invalid}
	}
	return encode(typeSet, cmd, ifname, op, func(ae *netlink.AttributeEncoder) {
		ae.Nested(attrIEEE, func(n *netlink.AttributeEncoder) error { inside(n); return nil })
	})
}

// encode makes a request of parts that were checked.
func encode(typ uint16, cmd uint8, ifname, op string, inside func(*netlink.AttributeEncoder)) (Request, error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(attrIfname, ifname)
	if inside != nil {
		inside(ae)
	}
	attrs, err := ae.Encode()
	if err != nil {
		return Request{}, &Error{ifname, op, err}
	}
	data := append(make([]byte, 0, lenMsg+len(attrs)), 0 /* AF_UNSPEC */, cmd, 0, 0)
	return Request{Type: typ, Data: append(data, attrs...), ifname: ifname, op: op}, nil
}

// checkName knows the rules of the kernel (dev_valid_name), and that control characters are nobody's interface.
func checkName(s string) error {
	switch {
	case s == "":
		return errors.New("an interface needs a name")
	case len(s) >= lenName:
		return fmt.Errorf("an interface name has at most %d bytes, %q has %d", lenName-1, s, len(s))
	case s == "." || s == ".." || strings.ContainsFunc(s, func(r rune) bool {
		return r == '/' || r == ':' || unicode.IsSpace(r) || unicode.IsControl(r)
	}):
		return fmt.Errorf("%q is not the name of an interface", s)
	}
	return nil
}

func (a App) check() error {
	switch {
	case !a.Selector.known():
		return fmt.Errorf("there is no selector %d", uint8(a.Selector))
	case a.Priority > 7:
		return fmt.Errorf("priority %d is above 7", a.Priority)
	case a.Selector == ByDSCP && a.Protocol > 63:
		return fmt.Errorf("DSCP %d is above 63", a.Protocol)
	case a.Selector == ByPCP && a.Protocol > 15:
		return fmt.Errorf("PCP %d is above 15 (PCP + 8*DEI)", a.Protocol)
	}
	return nil
}

func (s Selector) known() bool { return s >= ByEthertype && s <= ByDSCP || s == ByPCP }

// attr is the type of the attribute that holds an entry with that selector.
func (s Selector) attr() uint16 {
	if s == ByPCP {
		return appDCB
	}
	return appIEEE
}

func checkTrust(order []Selector) error {
	var seen [256]bool
	for _, s := range order {
		if !s.known() {
			return fmt.Errorf("there is no selector %d", uint8(s))
		}
		if seen[s] {
			return fmt.Errorf("%s is in the order twice", s)
		}
		seen[s] = true
	}
	return nil
}

func (e ETS) check() error {
	for i := range 8 {
		switch {
		case e.PrioTC[i] > 7:
			return fmt.Errorf("traffic class %d of priority %d is above 7", e.PrioTC[i], i)
		case e.TxBW[i] > 100:
			return fmt.Errorf("bandwidth of traffic class %d is %d%%, above 100%%", i, e.TxBW[i])
		case e.TSA[i] > Shared && e.TSA[i] != VendorTSA:
			return fmt.Errorf("traffic class %d has the unknown algorithm %d", i, uint8(e.TSA[i]))
		}
	}
	return nil
}

func (b Buffer) check() error {
	for i, n := range b.PrioBuffer {
		if n > 7 {
			return fmt.Errorf("buffer %d of priority %d is above 7", n, i)
		}
	}
	return nil
}

func (e ETS) bytes() []byte {
	b := append(make([]byte, 0, lenETS), e.Willing, e.Cap, e.CBS)
	b = append(append(b, e.TxBW[:]...), e.RxBW[:]...)
	b = appendTSA(b, e.TSA)
	b = append(append(b, e.PrioTC[:]...), e.RecoBW[:]...)
	b = appendTSA(b, e.RecoTSA)
	return append(b, e.RecoPrioTC[:]...)
}

func appendTSA(b []byte, a [8]TSA) []byte {
	for _, t := range a {
		b = append(b, uint8(t))
	}
	return b
}

func (p PFC) bytes() []byte {
	b := make([]byte, lenPFC)
	b[0], b[1], b[2] = p.Cap, p.Enabled, p.MBC
	binary.NativeEndian.PutUint16(b[4:], p.Delay)
	for i := range 8 {
		binary.NativeEndian.PutUint64(b[8+8*i:], p.Requests[i])
		binary.NativeEndian.PutUint64(b[72+8*i:], p.Indications[i])
	}
	return b
}

func (m MaxRate) bytes() []byte {
	b := make([]byte, lenMaxRate)
	for i, v := range m {
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
	return b
}

func (f Buffer) bytes() []byte {
	b := make([]byte, lenBuffer)
	copy(b, f.PrioBuffer[:])
	for i, v := range f.Size {
		binary.NativeEndian.PutUint32(b[8+4*i:], v)
	}
	binary.NativeEndian.PutUint32(b[40:], f.Total)
	return b
}
