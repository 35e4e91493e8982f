package dcbfake

import (
	"bytes"
	"encoding/binary"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// Numbers and layouts of include/uapi/linux/dcbnl.h.
const (
	typeNewLink = 16
	typeGet     = 78
	typeSet     = 79

	cmdIEEESet = 20
	cmdIEEEGet = 21
	cmdSDCBX   = 23
	cmdIEEEDel = 27

	attrIfname = 1
	attrIEEE   = 13
	attrDCBX   = 14

	ieeeETS     = 1
	ieeePFC     = 2
	ieeeApps    = 3
	ieeeMaxRate = 7
	ieeeBuffer  = 10
	ieeeTrust   = 11
	ieeeRewr    = 12

	nested = 0x8000
)

var (
	native = binary.NativeEndian
	sizes  = map[uint16]int{ieeeETS: 59, ieeePFC: 136, ieeeMaxRate: 64, ieeeBuffer: 44} // at least
)

// put appends an attribute, padded to 4 bytes.
func put(b []byte, typ uint16, v []byte) []byte {
	b = native.AppendUint16(b, uint16(4+len(v)))
	b = append(native.AppendUint16(b, typ), v...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// each calls f for every attribute until it returns something else than 0, which each returns. What is left over at the
// end is ignored, as in nla_for_each_nested.
func each(b []byte, f func(typ uint16, v []byte) int) int {
	for len(b) >= 4 {
		n := int(native.Uint16(b))
		if n < 4 || n > len(b) {
			break
		}
		if status := f(native.Uint16(b[2:])&0x3fff, b[4:n]); status != 0 {
			return status
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return 0
}

func parse(b []byte) (map[uint16][]byte, bool) {
	out := map[uint16][]byte{}
	used := 0
	each(b, func(typ uint16, v []byte) int {
		used += (4 + len(v) + 3) &^ 3
		out[typ] = v
		return 0
	})
	return out, used >= len(b)
}

func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// selectorAttr is the attribute in which the kernel wants an entry with that selector; 0 for one that does not exist.
func selectorAttr(s uint8) uint16 {
	switch {
	case s >= 1 && s <= 5:
		return 1
	case s == 255:
		return 2
	}
	return 0
}

// eachApp is dcbnl_app_table_setdel.
func eachApp(b []byte, f func(dcb.App) int) int {
	return each(b, func(typ uint16, v []byte) int {
		switch {
		case typ != 1 && typ != 2:
			return 0
		case len(v) < 4:
			return -int(dcb.ERANGE)
		case selectorAttr(v[0]) != typ:
			return -int(dcb.EINVAL)
		}
		return f(dcb.App{Selector: dcb.Selector(v[0]), Priority: v[1], Protocol: native.Uint16(v[2:])})
	})
}

func trustBytes(order []dcb.Selector) (b []byte) {
	for _, s := range order {
		b = put(b, selectorAttr(uint8(s)), []byte{uint8(s)})
	}
	return b
}

func etsBytes(e dcb.ETS) []byte {
	b := make([]byte, 59)
	b[0], b[1], b[2] = e.Willing, e.Cap, e.CBS
	for i := range 8 {
		b[3+i], b[11+i], b[19+i], b[27+i] = e.TxBW[i], e.RxBW[i], uint8(e.TSA[i]), e.PrioTC[i]
		b[35+i], b[43+i], b[51+i] = e.RecoBW[i], uint8(e.RecoTSA[i]), e.RecoPrioTC[i]
	}
	return b
}

func parseETS(b []byte) dcb.ETS {
	e := dcb.ETS{Willing: b[0], Cap: b[1], CBS: b[2]}
	for i := range 8 {
		e.TxBW[i], e.RxBW[i], e.TSA[i], e.PrioTC[i] = b[3+i], b[11+i], dcb.TSA(b[19+i]), b[27+i]
		e.RecoBW[i], e.RecoTSA[i], e.RecoPrioTC[i] = b[35+i], dcb.TSA(b[43+i]), b[51+i]
	}
	return e
}

func pfcBytes(p dcb.PFC) []byte {
	b := native.AppendUint16([]byte{p.Cap, p.Enabled, p.MBC, 0}, p.Delay)
	b = append(b, 0, 0)
	for _, v := range p.Requests {
		b = native.AppendUint64(b, v)
	}
	for _, v := range p.Indications {
		b = native.AppendUint64(b, v)
	}
	return b
}

// parsePFC leaves out the counters, which a set does not change.
func parsePFC(b []byte) dcb.PFC {
	return dcb.PFC{Cap: b[0], Enabled: b[1], MBC: b[2], Delay: native.Uint16(b[4:])}
}

func maxRateBytes(m dcb.MaxRate) (b []byte) {
	for _, v := range m {
		b = native.AppendUint64(b, v)
	}
	return b
}

func parseMaxRate(b []byte) (m dcb.MaxRate) {
	for i := range m {
		m[i] = native.Uint64(b[8*i:])
	}
	return m
}

func bufferBytes(f dcb.Buffer) []byte {
	b := append([]byte(nil), f.PrioBuffer[:]...)
	for _, v := range f.Size {
		b = native.AppendUint32(b, v)
	}
	return native.AppendUint32(b, f.Total)
}

func parseBuffer(b []byte) (f dcb.Buffer) {
	copy(f.PrioBuffer[:], b)
	for i := range f.Size {
		f.Size[i] = native.Uint32(b[8+4*i:])
	}
	f.Total = native.Uint32(b[40:])
	return f
}
