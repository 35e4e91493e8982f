package netlink

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Scopes of keys whose object is a NIC.
const (
	scopeDCBX   = "dcbx"
	scopePFC    = "pfc"
	scopeETS    = "ets"
	scopeApp    = "app"
	scopeBuffer = "buffer"
	scopeRate   = "maxrate"
	scopePause  = "pause"
	scopeFlag   = "flag"
	scopeRing   = "ring"
	scopeFEC    = "fec"
	scopeRoCE   = "roce"
	scopeCC     = "cc"
	scopePCI    = "pci"
	scopeIRQ    = "irq"
)

// dcbSettings is what dcbnl says of a NIC, as keys. What it does not show is absent.
func dcbSettings(link string, s *dcb.State) render.Config {
	var c render.Config
	put := func(scope, field, value string) {
		c = append(c, render.Setting{Key: render.Key{Scope: scope, Object: link, Field: field}, Value: value})
	}
	if s.DCBX != nil && *s.DCBX != 0 {
		put(scopeDCBX, "mode", s.DCBX.String())
	}
	if s.PFC != nil {
		put(scopePFC, "priorities", profiles.Priorities(s.PFC.Enabled))
		put(scopePFC, "delay", strconv.Itoa(int(s.PFC.Delay)))
	}
	if s.ETS != nil {
		put(scopeETS, "prio-tc", list8(s.ETS.PrioTC[:], number[uint8]))
		put(scopeETS, "tsa", list8(s.ETS.TSA[:], tsaWord))
		put(scopeETS, "bandwidth", list8(shares(s.ETS), number[uint8]))
		put(scopeETS, "willing", onOff(s.ETS.Willing != 0))
	}
	byField := map[string]string{}
	for _, a := range sortedApps(s.Apps) {
		f := appField(a)
		byField[f] = strings.TrimSpace(byField[f] + " " + strconv.Itoa(int(a.Priority)))
	}
	for f, prios := range byField {
		put(scopeApp, f, prios)
	}
	if s.Buffer != nil {
		put(scopeBuffer, "priorities", list8(s.Buffer.PrioBuffer[:], number[uint8]))
		put(scopeBuffer, "sizes", list8(s.Buffer.Size[:], number[uint32]))
	}
	if s.MaxRate != nil {
		put(scopeRate, "kbits", list8(s.MaxRate[:], number[uint64]))
	}
	return c.Sorted()
}

// shares is the bandwidth of the traffic classes, 0 where a class does not share by it: there the number means nothing
// (IEEE 802.1Qaz), and drivers show what they like, mlx5 100.
func shares(e *dcb.ETS) []uint8 {
	share := e.TxBW
	for i, t := range e.TSA {
		if t != dcb.Shared {
			share[i] = 0
		}
	}
	return share[:]
}

func appField(a dcb.App) string { return fmt.Sprintf("%s %d", a.Selector, a.Protocol) }

// sortedApps is the table in an order that does not depend on when entries were added.
func sortedApps(apps []dcb.App) []dcb.App {
	out := slices.Clone(apps)
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Selector != b.Selector {
			return a.Selector < b.Selector
		}
		if a.Protocol != b.Protocol {
			return a.Protocol < b.Protocol
		}
		return a.Priority < b.Priority
	})
	return out
}

func number[T uint8 | uint32 | uint64](v T) string { return strconv.FormatUint(uint64(v), 10) }

func tsaWord(t dcb.TSA) string { return strings.ReplaceAll(t.String(), " ", "-") }

// list8 is "0:a 1:b … 7:h".
func list8[T any](vs []T, word func(T) string) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%s", i, word(v))
	}
	return b.String()
}

// parse8 reads what list8 writes: all eight, in order.
func parse8[T any](text string, to *[8]T, value func(string) (T, error)) error {
	words := strings.Fields(text)
	if len(words) != len(to) {
		return fmt.Errorf("%q is not eight values, \"0:… 1:… … 7:…\"", text)
	}
	for i, w := range words {
		v, ok := strings.CutPrefix(w, strconv.Itoa(i)+":")
		if !ok {
			return fmt.Errorf("%q is not eight values, \"0:… 1:… … 7:…\"", text)
		}
		x, err := value(v)
		if err != nil {
			return err
		}
		to[i] = x
	}
	return nil
}

func upTo(limit uint64) func(string) (uint8, error) {
	return func(s string) (uint8, error) {
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil || n > limit {
			return 0, fmt.Errorf("%q is not a number from 0 to %d", s, limit)
		}
		return uint8(n), nil
	}
}

func parse32(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return uint32(n), nil
}

func parseTSA(s string) (dcb.TSA, error) {
	for _, t := range []dcb.TSA{dcb.Strict, dcb.CBShaper, dcb.Shared, dcb.VendorTSA} {
		if tsaWord(t) == s {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%q is none of strict, cbs, ets, vendor", s)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func parseOnOff(s string) (bool, error) {
	if s != "on" && s != "off" {
		return false, fmt.Errorf("%q is not on or off", s)
	}
	return s == "on", nil
}

// parseDCBX reads the words of a mode.
func parseDCBX(s string) (dcb.DCBX, error) {
	var mode dcb.DCBX
	for w := range strings.FieldsSeq(s) {
		found := false
		for _, b := range []dcb.DCBX{dcb.Host, dcb.LLDManaged, dcb.CEE, dcb.IEEE, dcb.Static} {
			if b.String() == w {
				mode, found = mode|b, true
			}
		}
		if !found {
			return 0, fmt.Errorf("%q is none of host, lld-managed, cee, ieee, static", w)
		}
	}
	return mode, nil
}

// alter is s with one setting at a value; nil removes it. It refuses what dcbnl cannot hold. What s does not show
// cannot be altered.
func alter(s *dcb.State, k render.Key, value *string) error {
	if value == nil && k.Scope != scopeApp {
		return fmt.Errorf("a NIC that shows it always has it")
	}
	switch k.Scope + " " + k.Field {
	case "dcbx mode":
		m, err := parseDCBX(*value)
		return set(s.DCBX, err, func(x *dcb.DCBX) { *x = m })
	case "pfc priorities":
		bits, err := profiles.ParsePriorities(*value)
		return set(s.PFC, err, func(x *dcb.PFC) { x.Enabled = bits })
	case "pfc delay":
		n, err := strconv.ParseUint(*value, 10, 16)
		if err != nil {
			err = fmt.Errorf("%q is not a number from 0 to 65535", *value)
		}
		return set(s.PFC, err, func(x *dcb.PFC) { x.Delay = uint16(n) })
	case "ets willing":
		on, err := parseOnOff(*value)
		return set(s.ETS, err, func(x *dcb.ETS) { x.Willing = uint8(flag(on)) })
	case "ets prio-tc":
		var a [8]uint8
		err := parse8(*value, &a, upTo(7))
		return set(s.ETS, err, func(x *dcb.ETS) { x.PrioTC = a })
	case "ets tsa":
		var a [8]dcb.TSA
		err := parse8(*value, &a, parseTSA)
		return set(s.ETS, err, func(x *dcb.ETS) { x.TSA = a })
	case "ets bandwidth":
		var a [8]uint8
		err := parse8(*value, &a, upTo(100))
		return set(s.ETS, err, func(x *dcb.ETS) { x.TxBW = a })
	case "buffer priorities":
		var a [8]uint8
		err := parse8(*value, &a, upTo(7))
		return set(s.Buffer, err, func(x *dcb.Buffer) { x.PrioBuffer = a })
	case "buffer sizes":
		var a [8]uint32
		err := parse8(*value, &a, parse32)
		return set(s.Buffer, err, func(x *dcb.Buffer) { x.Size = a })
	}
	dscp, isDSCP := strings.CutPrefix(k.Field, "dscp ")
	if k.Scope != scopeApp || !isDSCP {
		return fmt.Errorf("it is read, and never written")
	}
	n, err := upTo(63)(dscp)
	if err != nil {
		return err
	}
	var bits uint8
	if value != nil {
		if bits, err = profiles.ParsePriorities(*value); err != nil {
			return err
		}
	}
	if s.Apps == nil {
		return errNotShown
	}
	s.Apps = slices.DeleteFunc(s.Apps, func(a dcb.App) bool { return a.Selector == dcb.ByDSCP && a.Protocol == uint16(n) })
	for p := range uint8(8) {
		if bits&(1<<p) != 0 {
			s.Apps = append(s.Apps, dcb.DSCP(n, p))
		}
	}
	return nil
}

var errNotShown = fmt.Errorf("the driver does not show it, so a set would be acknowledged and ignored")

// set changes a part of a state that is there.
func set[T any](part *T, err error, change func(*T)) error {
	switch {
	case err != nil:
		return err
	case part == nil:
		return errNotShown
	}
	change(part)
	return nil
}

// cloneDCB is a state that can be altered without altering s.
func cloneDCB(s *dcb.State) *dcb.State {
	c := *s
	c.ETS, c.PFC, c.MaxRate, c.Buffer, c.DCBX = clone(s.ETS), clone(s.PFC), clone(s.MaxRate), clone(s.Buffer), clone(s.DCBX)
	c.Apps = slices.Clone(s.Apps)
	if s.Apps != nil && c.Apps == nil {
		c.Apps = []dcb.App{}
	}
	return &c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
