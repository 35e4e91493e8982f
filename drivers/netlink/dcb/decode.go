package dcb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
)

// Decode reads the data of a reply to a get, of a notification, or of a request that somebody recorded. The command is
// the one in the message (21 for a get, 20 for a set, 27 for a deletion).
func Decode(data []byte) (cmd uint8, s *State, err error) {
	ad, cmd, err := open(data)
	if err != nil {
		return cmd, nil, err
	}
	s = new(State)
	for ad.Next() {
		switch ad.Type() {
		case attrIfname:
			s.Ifname = ad.String()
		case attrDCBX:
			mode := DCBX(ad.Uint8())
			s.DCBX = &mode
		case attrIEEE:
			ad.Nested(s.decodeIEEE)
		}
	}
	if err := ad.Err(); err != nil {
		return cmd, nil, damaged(err)
	}
	return cmd, s, nil
}

// DecodeStatus reads the data of the reply to a set or a deletion: nil, or a Status.
func DecodeStatus(data []byte) error {
	ad, cmd, err := open(data)
	if err != nil {
		return err
	}
	want := uint16(attrIEEE)
	if cmd == cmdSDCBX {
		want = attrDCBX
	}
	for ad.Next() {
		if ad.Type() != want {
			continue
		}
		v := ad.Int8()
		if err := ad.Err(); err != nil {
			return damaged(err)
		}
		if v == 0 {
			return nil
		}
		return Status(v)
	}
	if err := ad.Err(); err != nil {
		return damaged(err)
	}
	return errors.New("the answer has no status")
}

// open looks past struct dcbmsg.
func open(data []byte) (*netlink.AttributeDecoder, uint8, error) {
	if len(data) < lenMsg {
		return nil, 0, damaged(short("message", data, lenMsg))
	}
	ad, err := netlink.NewAttributeDecoder(data[lenMsg:])
	if err != nil {
		return nil, data[1], damaged(err)
	}
	return ad, data[1], nil
}

func (s *State) decodeIEEE(n *netlink.AttributeDecoder) error {
	for n.Next() {
		switch n.Type() {
		case ieeeETS:
			n.Do(decodeETS(&s.ETS))
		case ieeePeerETS:
			n.Do(decodeETS(&s.PeerETS))
		case ieeePFC:
			n.Do(decodePFC(&s.PFC))
		case ieeePeerPFC:
			n.Do(decodePFC(&s.PeerPFC))
		case ieeeMaxRate:
			n.Do(s.decodeMaxRate)
		case ieeeBuffer:
			n.Do(s.decodeBuffer)
		case ieeeApps:
			n.Nested(decodeApps(&s.Apps))
		case ieeePeerApps:
			n.Nested(decodeApps(&s.PeerApps))
		case ieeeRewr:
			n.Nested(decodeApps(&s.Rewr))
		case ieeeTrust:
			n.Nested(s.decodeTrust)
		}
	}
	return n.Err()
}

func decodeETS(to **ETS) func([]byte) error {
	return func(b []byte) error {
		if len(b) < lenETS {
			return short("ets", b, lenETS)
		}
		e := &ETS{Willing: b[0], Cap: b[1], CBS: b[2]}
		copy(e.TxBW[:], b[3:])
		copy(e.RxBW[:], b[11:])
		copy(e.PrioTC[:], b[27:])
		copy(e.RecoBW[:], b[35:])
		copy(e.RecoPrioTC[:], b[51:])
		for i := range 8 {
			e.TSA[i], e.RecoTSA[i] = TSA(b[19+i]), TSA(b[43+i])
		}
		*to = e
		return nil
	}
}

func decodePFC(to **PFC) func([]byte) error {
	return func(b []byte) error {
		if len(b) < lenPFC {
			return short("pfc", b, lenPFC)
		}
		p := &PFC{Cap: b[0], Enabled: b[1], MBC: b[2], Delay: binary.NativeEndian.Uint16(b[4:])}
		for i := range 8 {
			p.Requests[i] = binary.NativeEndian.Uint64(b[8+8*i:])
			p.Indications[i] = binary.NativeEndian.Uint64(b[72+8*i:])
		}
		*to = p
		return nil
	}
}

func (s *State) decodeMaxRate(b []byte) error {
	if len(b) < lenMaxRate {
		return short("maxrate", b, lenMaxRate)
	}
	s.MaxRate = new(MaxRate)
	for i := range s.MaxRate {
		s.MaxRate[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return nil
}

func (s *State) decodeBuffer(b []byte) error {
	if len(b) < lenBuffer {
		return short("buffer", b, lenBuffer)
	}
	f := &Buffer{Total: binary.NativeEndian.Uint32(b[40:])}
	copy(f.PrioBuffer[:], b)
	for i := range f.Size {
		f.Size[i] = binary.NativeEndian.Uint32(b[8+4*i:])
	}
	s.Buffer = f
	return nil
}

// decodeApps appends the entries of a table. The peer's table has entries of the same kind and, from a CEE peer, others,
// which are passed over.
func decodeApps(to *[]App) func(*netlink.AttributeDecoder) error {
	return func(t *netlink.AttributeDecoder) error {
		apps := make([]App, 0, t.Len())
		add := func(b []byte) error {
			if len(b) < lenApp {
				return short("application entry", b, lenApp)
			}
			apps = append(apps, App{Selector(b[0]), b[1], binary.NativeEndian.Uint16(b[2:])})
			return nil
		}
		for t.Next() {
			if t.Type() == appIEEE || t.Type() == appDCB {
				t.Do(add)
			}
		}
		*to = apps
		return t.Err()
	}
}

func (s *State) decodeTrust(t *netlink.AttributeDecoder) error {
	s.Trust = make([]Selector, 0, t.Len())
	for t.Next() {
		if t.Type() == appIEEE || t.Type() == appDCB {
			s.Trust = append(s.Trust, Selector(t.Uint8()))
		}
	}
	return t.Err()
}

func damaged(err error) error { return fmt.Errorf("damaged message: %w", err) }

func short(what string, b []byte, want int) error {
	return fmt.Errorf("%s of %d bytes, want at least %d", what, len(b), want)
}
