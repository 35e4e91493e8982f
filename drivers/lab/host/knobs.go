package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
)

// order is the order of the scopes of one NIC in a commit.
func order() []string {
	return []string{"flag", "dcbx", "pause", "link", "app", "ets", "pfc", "buffer", "cc", "roce", "pci", "irq", "ring", "fec"}
}

// settings are the NIC's knobs: "pfc priorities" to "3".
func (n *nic) settings() map[string]string {
	s := maps.Clone(n.words)
	if !n.kind.dcb {
		return s
	}
	s["dcbx mode"] = n.dcbx
	s["pfc priorities"], s["pfc delay"] = n.pfc, strconv.Itoa(n.delay)
	s["ets prio-tc"], s["ets bandwidth"] = pairs(n.ets.prioTC), pairs(n.ets.bandwidth)
	s["ets tsa"], s["ets willing"] = pairs(n.ets.tsa), off
	if n.ets.willing {
		s["ets willing"] = on
	}
	for a, p := range n.apps {
		s["app "+a] = p
	}
	if n.kind.buffer {
		s["buffer priorities"], s["buffer sizes"] = pairs(n.prio), pairs(n.sizes)
	}
	if n.kind.maxRate {
		s["maxrate kbits"] = pairs(n.rates)
	}
	return s
}

// put sets knobs of one scope at once, as one request to the kernel would; nil takes an app entry away. An error leaves
// the NIC as it was, for put works on a copy.
func (n *nic) put(scope string, fields map[string]*string) (*nic, error) {
	c := n.clone()
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		v := fields[f]
		if scope != "app" && v == nil {
			return n, errSupported
		}
		var err error
		switch {
		case scope == "app":
			err = c.app(f, v)
		case n.kind.dcb && slices.Contains([]string{"dcbx", "pfc", "ets", "buffer"}, scope):
			err = c.dcb(scope+" "+f, *v)
		default:
			err = c.word(scope+" "+f, *v)
		}
		if err != nil {
			return n, err
		}
	}
	if scope == "ets" {
		return c, c.ets.valid(n.kind.tcs)
	}
	return c, nil
}

func (n *nic) dcb(knob, v string) error {
	var err error
	switch knob {
	case "dcbx mode":
		if !slices.Contains(strings.Fields(v), "host") {
			return errors.New("the driver refused it (1)")
		}
		n.dcbx = v
		return nil
	case "pfc priorities":
		n.pfc, err = priorities(v)
	case "pfc delay":
		n.delay, err = number(v, 1<<16)
	case "ets prio-tc":
		n.ets.prioTC, err = numbers(v, 8)
	case "ets bandwidth":
		n.ets.bandwidth, err = numbers(v, 101)
	case "ets tsa":
		n.ets.tsa, err = split(v)
	case "ets willing":
		n.ets.willing = v == on
	case "buffer priorities":
		if !n.kind.buffer {
			return errSupported
		}
		n.prio, err = numbers(v, 8)
	case "buffer sizes":
		if !n.kind.buffer {
			return errSupported
		}
		n.sizes, err = numbers(v, 1<<31)
	default:
		return errSupported
	}
	if err == nil && !(strings.Contains(n.dcbx, "host") && strings.Contains(n.dcbx, "ieee")) {
		return errInvalid
	}
	return err
}

// valid is what every driver asks of ETS: traffic classes that it has, and shares that sum up to 100.
func (e *ets) valid(tcs int) error {
	sum, shares := 0, false
	for i := range 8 {
		if e.prioTC[i] >= tcs {
			return errInvalid
		}
		switch e.tsa[i] {
		case "ets":
			sum, shares = sum+e.bandwidth[i], true
		case "strict", "vendor":
			e.bandwidth[i] = 0
		default:
			return errInvalid
		}
	}
	if shares && sum != 100 {
		return errInvalid
	}
	return nil
}

// app adds or takes away one entry of the app table.
func (n *nic) app(field string, v *string) error {
	if !n.kind.dcb {
		return errSupported
	}
	sel, protocol, _ := strings.Cut(field, " ")
	if sel != "dscp" {
		return errInvalid
	}
	if _, err := number(protocol, 64); err != nil {
		return err
	}
	if v == nil {
		delete(n.apps, field)
		return nil
	}
	limit := 8
	if n.kind.narrow {
		limit = n.kind.tcs
	}
	if _, err := number(*v, limit); err != nil {
		return err
	}
	n.apps[field] = *v
	return nil
}

// word is a knob outside dcbnl. One that the NIC does not have is no file, or no operation.
func (n *nic) word(knob, v string) error {
	if _, ok := n.words[knob]; !ok {
		return errSupported
	}
	scope, field, _ := strings.Cut(knob, " ")
	var err error
	switch {
	case knob == "cc algorithm":
		return errors.New("permission denied")
	case knob == "cc enable":
		v, err = priorities(v)
	case knob == "cc cnp-dscp":
		_, err = number(v, 64)
	case knob == "cc cnp-priority":
		_, err = number(v, 8)
	case knob == "roce mode":
		if v != "v1" && v != "v2" {
			return errInvalid
		}
	case knob == "roce tos":
		_, err = number(v, 256)
	case knob == "roce traffic-class":
		if v != "-1" {
			_, err = number(v, 256)
		}
	case knob == "pci max-read-request":
		if !slices.Contains([]string{"128", "256", "512", "1024", "2048", "4096"}, v) {
			return errInvalid
		}
	case scope == "pause", scope == "flag":
		if v != on && v != off {
			return errInvalid
		}
	case scope == "fec":
		if !slices.Contains([]string{"auto", off, "rs", "baser", "llrs"}, v) {
			return errInvalid
		}
	case scope == "ring":
		_, err = number(v, 8193)
	case scope == "irq":
	default:
		_, err = number(v, 1<<32)
	}
	if err == nil {
		n.words[scope+" "+field] = v
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

func numbers(s string, limit int) (ns [8]int, err error) {
	vs, err := split(s)
	for i := range vs {
		if err == nil {
			ns[i], err = number(vs[i], limit)
		}
	}
	return ns, err
}

// number is a decimal number below limit.
func number(s string, limit int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n >= uint64(limit):
		return 0, errRange
	case err != nil:
		return 0, errInvalid
	}
	return int(n), nil
}

// priorities checks "none" or a list as "3 4".
func priorities(s string) (string, error) {
	if s == none {
		return s, nil
	}
	for _, w := range strings.Fields(s) {
		if _, err := number(w, 8); err != nil {
			return s, err
		}
	}
	if s == "" {
		return s, errInvalid
	}
	return s, nil
}

func sorted(ss []string) []string {
	slices.Sort(ss)
	return slices.Compact(ss)
}
