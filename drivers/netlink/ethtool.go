package netlink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Ethtool is the kernel's SIOCETHTOOL.
type Ethtool interface {
	// Do sends b, one of the structures of linux/ethtool.h, about a link, and the kernel fills it in. An error is the
	// kernel's own.
	Do(ctx context.Context, link string, b []byte) error
	Close() error
}

// Numbers and lengths of linux/ethtool.h.
const (
	ethGetDriver  = 0x03
	ethGetRings   = 0x10
	ethSetRings   = 0x11
	ethGetPause   = 0x12
	ethSetPause   = 0x13
	ethGetStrings = 0x1b
	ethGetFlags   = 0x27
	ethSetFlags   = 0x28
	ethGetFEC     = 0x50
	ethSetFEC     = 0x51

	ethFlagStrings = 2 // ETH_SS_PRIV_FLAGS
	ethStringLen   = 32
	maxFlags       = 32 // bits of the word that holds them

	lenDriver  = 196
	lenRings   = 36
	lenPause   = 16
	lenFEC     = 16
	lenFlags   = 8
	lenStrings = 12
)

// driverInfo is struct ethtool_drvinfo.
type driverInfo struct{ driver, version, firmware string }

// pause is struct ethtool_pauseparam: global (802.3x) pause.
type pause struct{ autoneg, rx, tx bool }

// rings is what struct ethtool_ringparam says of the rings that matter, in entries.
type rings struct{ rx, tx, maxRx, maxTx uint32 }

// fecWords are the modes of struct ethtool_fecparam, from bit 1 on.
var fecWords = []string{"auto", "off", "rs", "baser", "llrs"}

// ethLink asks the kernel about one link.
type ethLink struct {
	e    Ethtool
	link string
}

func (l ethLink) ask(ctx context.Context, cmd uint32, size int) ([]byte, error) {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, cmd)
	return b, l.e.Do(ctx, l.link, b)
}

func (l ethLink) driver(ctx context.Context) (driverInfo, error) {
	b, err := l.ask(ctx, ethGetDriver, lenDriver)
	if err != nil {
		return driverInfo{}, err
	}
	return driverInfo{cstring(b[4:36]), cstring(b[36:68]), cstring(b[68:100])}, nil
}

func (l ethLink) pause(ctx context.Context) (pause, error) {
	b, err := l.ask(ctx, ethGetPause, lenPause)
	if err != nil {
		return pause{}, err
	}
	return pause{word32(b, 4) != 0, word32(b, 8) != 0, word32(b, 12) != 0}, nil
}

func (l ethLink) setPause(ctx context.Context, p pause) error {
	b := make([]byte, lenPause)
	for i, v := range []uint32{ethSetPause, flag(p.autoneg), flag(p.rx), flag(p.tx)} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	return l.e.Do(ctx, l.link, b)
}

func (l ethLink) rings(ctx context.Context) (rings, []byte, error) {
	b, err := l.ask(ctx, ethGetRings, lenRings)
	if err != nil {
		return rings{}, nil, err
	}
	return rings{rx: word32(b, 20), tx: word32(b, 32), maxRx: word32(b, 4), maxTx: word32(b, 16)}, b, nil
}

// setRings keeps the rings for small and for jumbo frames as they are.
func (l ethLink) setRings(ctx context.Context, change func(*rings)) error {
	r, b, err := l.rings(ctx)
	if err != nil {
		return err
	}
	change(&r)
	if r.maxRx > 0 && r.rx > r.maxRx || r.maxTx > 0 && r.tx > r.maxTx {
		return fmt.Errorf("the driver takes at most %d for receiving and %d for sending", r.maxRx, r.maxTx)
	}
	binary.NativeEndian.PutUint32(b, ethSetRings)
	binary.NativeEndian.PutUint32(b[20:], r.rx)
	binary.NativeEndian.PutUint32(b[32:], r.tx)
	return l.e.Do(ctx, l.link, b)
}

var errNoFEC = errors.New("the driver names no mode of FEC")

// fec is the modes that are allowed, in the order of fecWords.
func (l ethLink) fec(ctx context.Context) (string, error) {
	b, err := l.ask(ctx, ethGetFEC, lenFEC)
	if err != nil {
		return "", err
	}
	var words []string
	for i, w := range fecWords {
		if word32(b, 8)&(2<<i) != 0 {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "", errNoFEC
	}
	return strings.Join(words, " "), nil
}

func (l ethLink) setFEC(ctx context.Context, modes string) error {
	b := make([]byte, lenFEC)
	binary.NativeEndian.PutUint32(b, ethSetFEC)
	var bits uint32
	for w := range strings.FieldsSeq(modes) {
		i := slices.Index(fecWords, w)
		if i < 0 {
			return fmt.Errorf("%q is not a mode of FEC", w)
		}
		bits |= 2 << i
	}
	if bits == 0 {
		return errors.New("no mode of FEC")
	}
	binary.NativeEndian.PutUint32(b[8:], bits)
	return l.e.Do(ctx, l.link, b)
}

// flags is the driver's private flags, by name, in the order of their bits, and the word that says which are on.
func (l ethLink) flags(ctx context.Context) (names []string, on uint32, err error) {
	d, err := l.ask(ctx, ethGetDriver, lenDriver)
	if err != nil {
		return nil, 0, err
	}
	n := int(min(word32(d, 176), maxFlags))
	if n == 0 {
		return nil, 0, nil
	}
	b := make([]byte, lenStrings+maxFlags*ethStringLen) // the kernel writes as many as the driver has, whatever is asked
	for i, v := range []uint32{ethGetStrings, ethFlagStrings, uint32(n)} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	if err := l.e.Do(ctx, l.link, b); err != nil {
		return nil, 0, err
	}
	for i := range min(n, int(min(word32(b, 8), maxFlags))) {
		at := lenStrings + i*ethStringLen
		names = append(names, cstring(b[at:at+ethStringLen]))
	}
	w, err := l.ask(ctx, ethGetFlags, lenFlags)
	if err != nil {
		return nil, 0, err
	}
	return names, word32(w, 4), nil
}

// setFlag turns one private flag on or off and leaves the others.
func (l ethLink) setFlag(ctx context.Context, name string, on bool) error {
	names, word, err := l.flags(ctx)
	if err != nil {
		return err
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("the driver has no private flag %q", name)
	}
	if word &^= 1 << i; on {
		word |= 1 << i
	}
	b := make([]byte, lenFlags)
	binary.NativeEndian.PutUint32(b, ethSetFlags)
	binary.NativeEndian.PutUint32(b[4:], word)
	return l.e.Do(ctx, l.link, b)
}

func word32(b []byte, at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }

func word64(b []byte, at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }

func put32(b []byte, at int, v uint32) { binary.NativeEndian.PutUint32(b[at:], v) }

func put64(b []byte, at int, v uint64) { binary.NativeEndian.PutUint64(b[at:], v) }

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// cstring is what stands before the first NUL, as far as it is text.
func cstring(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return strings.TrimSpace(strings.ToValidUTF8(string(s), ""))
}
