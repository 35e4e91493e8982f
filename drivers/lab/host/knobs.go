package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

// The knobs of a NIC: how their values are written on the wire, and what a kernel says to a value that it does not take.
// Keys are (scope, interface, field), as package render has them, and written down here a second time.

const (
	none = "none"
	on   = "on"
	off  = "off"
)

var (
	errInvalid   = errors.New("invalid argument")
	errRange     = errors.New("numerical result out of range")
	errSupported = errors.New("operation not supported")
	errBusy      = errors.New("device or resource busy")
	errUnclear   = errors.New("the driver answered neither done nor refused")
)

// order is the order of the scopes of one NIC in a commit.
func order() []string {
	return []string{"flag", "dcbx", "pause", "link", "app", "ets", "pfc", "buffer", "cc", "roce", "pci", "irq", "ring", "fec"}
}

// shown adds what dcbnl shows to a NIC's knobs.
func shown(s *dcb.State, to map[string]string) {
	if s.DCBX != nil && *s.DCBX != 0 {
		to["dcbx mode"] = plain(*s.DCBX)
	}
	if p := s.PFC; p != nil {
		to["pfc priorities"], to["pfc delay"] = list(p.Enabled), strconv.Itoa(int(p.Delay))
	}
	if e := s.ETS; e != nil {
		share := e.TxBW
		for i, t := range e.TSA {
			if t != dcb.Shared { // a share means nothing there, and drivers show what they like
				share[i] = 0
			}
		}
		to["ets prio-tc"], to["ets bandwidth"], to["ets tsa"] = pairs(e.PrioTC), pairs(share), pairs(e.TSA)
		to["ets willing"] = word(e.Willing != 0)
	}
	for _, a := range sortedApps(s.Apps) {
		k := fmt.Sprintf("app %s %d", a.Selector, a.Protocol)
		to[k] = strings.TrimSpace(to[k] + " " + strconv.Itoa(int(a.Priority)))
	}
	if b := s.Buffer; b != nil {
		to["buffer priorities"], to["buffer sizes"] = pairs(b.PrioBuffer), pairs(b.Size)
	}
	if s.MaxRate != nil {
		to["maxrate kbits"] = pairs(*s.MaxRate)
	}
}

func sortedApps(apps []dcb.App) []dcb.App {
	apps = slices.Clone(apps)
	slices.SortFunc(apps, func(a, b dcb.App) int { return int(a.Priority) - int(b.Priority) })
	return apps
}

// alter is a state of dcbnl with one knob at a value, nil = without it.
func alter(s *dcb.State, scope, field string, v *string) (err error) {
	if scope == "app" {
		return alterApp(s, field, v)
	}
	if v == nil {
		return errSupported
	}
	switch knob := scope + " " + field; {
	case knob == "dcbx mode" && s.DCBX != nil:
		*s.DCBX, err = mode(*v)
	case knob == "pfc priorities" && s.PFC != nil:
		s.PFC.Enabled, err = bits(*v)
	case knob == "pfc delay" && s.PFC != nil:
		s.PFC.Delay, err = number[uint16](*v, 1<<16)
	case knob == "ets prio-tc" && s.ETS != nil:
		s.ETS.PrioTC, err = numbers[uint8](*v, 8)
	case knob == "ets bandwidth" && s.ETS != nil:
		s.ETS.TxBW, err = numbers[uint8](*v, 101)
	case knob == "ets tsa" && s.ETS != nil:
		s.ETS.TSA, err = algorithms(*v)
	case knob == "ets willing" && s.ETS != nil:
		s.ETS.Willing = 0
		if *v == on {
			s.ETS.Willing = 1
		}
	case knob == "buffer priorities" && s.Buffer != nil:
		s.Buffer.PrioBuffer, err = numbers[uint8](*v, 8)
	case knob == "buffer sizes" && s.Buffer != nil:
		s.Buffer.Size, err = numbers[uint32](*v, 1<<32)
	default:
		return errSupported
	}
	return err
}

func alterApp(s *dcb.State, field string, v *string) error {
	sel, protocol, _ := strings.Cut(field, " ")
	if sel != "dscp" {
		return errInvalid
	}
	d, err := number[uint8](protocol, 64)
	if err != nil {
		return err
	}
	s.Apps = slices.DeleteFunc(s.Apps, func(a dcb.App) bool { return a.Selector == dcb.ByDSCP && a.Protocol == uint16(d) })
	if v == nil {
		return nil
	}
	priorities, err := bits(*v)
	for p := range uint8(8) {
		if priorities&(1<<p) != 0 {
			s.Apps = append(s.Apps, dcb.DSCP(d, p))
		}
	}
	return err
}

// copied is a state that can be altered without altering s.
func copied(s *dcb.State) *dcb.State {
	c := *s
	c.DCBX, c.PFC, c.ETS, c.Buffer, c.Apps = copyOf(s.DCBX), copyOf(s.PFC), copyOf(s.ETS), copyOf(s.Buffer), slices.Clone(s.Apps)
	return &c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// setDCB makes one object of a NIC what it is in want, as far as it is not yet. The host's lock is held.
func (h *Host) setDCB(n *nic, object string, want *dcb.State) error {
	now := h.state(n)
	if now == nil {
		return errSupported
	}
	ctx := context.Background()
	switch object {
	case "dcbx":
		if want.DCBX == nil || *want.DCBX == *now.DCBX {
			return nil
		}
		m := *want.DCBX
		if n.kind.zero && m&dcb.Host == 0 {
			m = 0
		}
		return said(h.dcb.SetDCBX(ctx, n.link, m))
	case "pfc":
		if want.PFC == nil || want.PFC.Enabled == now.PFC.Enabled && want.PFC.Delay == now.PFC.Delay {
			return nil
		}
		return said(h.dcb.SetPFC(ctx, n.link, func(p *dcb.PFC) { p.Enabled, p.Delay = want.PFC.Enabled, want.PFC.Delay }))
	case "ets":
		if w := want.ETS; w == nil || w.PrioTC == now.ETS.PrioTC && w.TSA == now.ETS.TSA && w.TxBW == now.ETS.TxBW && w.Willing == now.ETS.Willing {
			return nil
		}
		return said(h.dcb.SetETS(ctx, n.link, func(e *dcb.ETS) {
			e.PrioTC, e.TSA, e.TxBW, e.Willing = want.ETS.PrioTC, want.ETS.TSA, want.ETS.TxBW, want.ETS.Willing
		}))
	case "buffer":
		if want.Buffer == nil || want.Buffer.PrioBuffer == now.Buffer.PrioBuffer && want.Buffer.Size == now.Buffer.Size {
			return nil
		}
		return said(h.dcb.SetBuffer(ctx, n.link, func(b *dcb.Buffer) { b.PrioBuffer, b.Size = want.Buffer.PrioBuffer, want.Buffer.Size }))
	}
	return errSupported
}

// setApp adds or takes away one entry.
func (h *Host) setApp(n *nic, a dcb.App, there bool) error {
	if there {
		return said(h.dcb.AddApp(context.Background(), n.link, a))
	}
	return said(h.dcb.DelApp(context.Background(), n.link, a))
}

// said is an error of dcbnl in the words of a shell.
func said(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dcb.ErrReadBack):
		return errUnclear
	case errors.Is(err, dcb.EBUSY):
		return errBusy
	case errors.Is(err, dcb.EINVAL):
		return errInvalid
	case errors.Is(err, dcb.EOPNOTSUPP), errors.Is(err, dcb.ErrAbsent):
		return errSupported
	}
	return err
}

// setWords sets knobs of one scope outside dcbnl at once: all or none. The host's lock is held.
func (h *Host) setWords(n *nic, scope string, fields map[string]*string) error {
	switch n.wrong[scope] {
	case Lies:
		return nil
	case Busy:
		return errBusy
	}
	words, firmware := maps.Clone(n.words), false
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		v, knob := fields[f], scope+" "+f
		_, there := h.settings(n)[knob]
		if v == nil || !there {
			return errSupported
		}
		if err := valid(scope, f, *v); err != nil {
			return err
		}
		if scope == "flag" {
			firmware = *v == on
		} else {
			words[knob] = *v
		}
	}
	if scope == "flag" {
		n.port.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = firmware })
		return nil
	}
	if !maps.Equal(words, n.words) && slices.Contains(n.kind.downs, scope) {
		n.downs++
	}
	n.words = words
	return nil
}

// valid is what a kernel says to a value of a knob outside dcbnl.
func valid(scope, field, v string) (err error) {
	oneOf := func(words ...string) error {
		if !slices.Contains(words, v) {
			return errInvalid
		}
		return nil
	}
	switch knob := scope + " " + field; {
	case knob == "cc algorithm":
		return errors.New("permission denied")
	case knob == "cc enable":
		if v != on && v != off {
			_, err = bits(v)
		}
	case knob == "cc cnp-dscp":
		_, err = number[int](v, 64)
	case knob == "cc cnp-priority":
		_, err = number[int](v, 8)
	case knob == "roce mode":
		return oneOf("v1", "v2")
	case knob == "roce tos", knob == "roce traffic-class" && v != "-1":
		_, err = number[int](v, 256)
	case knob == "roce traffic-class", scope == "irq":
	case scope == "pci":
		return oneOf("128", "256", "512", "1024", "2048", "4096")
	case scope == "pause", scope == "flag":
		return oneOf(on, off)
	case scope == "fec":
		return oneOf("auto", off, "rs", "baser", "llrs")
	case scope == "ring":
		_, err = number[int](v, 8193)
	default:
		_, err = number[int](v, 1<<32)
	}
	return err
}

// pairs is "0:a 1:b … 7:h".
func pairs[T any](vs [8]T) string {
	var s []string
	for i, v := range vs {
		s = append(s, fmt.Sprintf("%d:%v", i, v))
	}
	return strings.Join(s, " ")
}

func split(s string) (vs [8]string, err error) {
	ws := strings.Fields(s)
	if len(ws) != len(vs) {
		return vs, errInvalid
	}
	for i, w := range ws {
		n, v, ok := strings.Cut(w, ":")
		if !ok || n != strconv.Itoa(i) || v == "" {
			return vs, errInvalid
		}
		vs[i] = v
	}
	return vs, nil
}

func numbers[T uint8 | uint32](s string, limit uint64) (ns [8]T, err error) {
	vs, err := split(s)
	for i := range vs {
		if err == nil {
			ns[i], err = number[T](vs[i], limit)
		}
	}
	return ns, err
}

func algorithms(s string) (as [8]dcb.TSA, err error) {
	vs, err := split(s)
	known := map[string]dcb.TSA{"strict": dcb.Strict, "cbs": dcb.CBShaper, "ets": dcb.Shared, "vendor": dcb.VendorTSA}
	for i, v := range vs {
		a, ok := known[v]
		if err == nil && !ok {
			err = errInvalid
		}
		as[i] = a
	}
	return as, err
}

// number is a decimal number below limit.
func number[T int | uint8 | uint16 | uint32](s string, limit uint64) (T, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n >= limit:
		return 0, errRange
	case err != nil:
		return 0, errInvalid
	}
	return T(n), nil
}

// bits reads "none" or a list as "3 4".
func bits(s string) (b uint8, err error) {
	if s == none {
		return 0, nil
	}
	for w := range strings.FieldsSeq(s) {
		n, err := number[uint8](w, 8)
		if err != nil {
			return 0, err
		}
		b |= 1 << n
	}
	if b == 0 {
		return 0, errInvalid
	}
	return b, nil
}

// list is the way back.
func list(b uint8) string {
	var ws []string
	for i := range 8 {
		if b&(1<<i) != 0 {
			ws = append(ws, strconv.Itoa(i))
		}
	}
	if ws == nil {
		return none
	}
	return strings.Join(ws, " ")
}

func mode(s string) (m dcb.DCBX, err error) {
	for w := range strings.FieldsSeq(s) {
		i := slices.Index([]string{"host", "lld-managed", "cee", "ieee", "static"}, w)
		if i < 0 {
			return 0, errInvalid
		}
		m |= 1 << i
	}
	return m, nil
}

func word(b bool) string {
	if b {
		return on
	}
	return off
}
