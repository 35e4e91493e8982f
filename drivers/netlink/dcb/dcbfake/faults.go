package dcbfake

import "github.com/fabricctl/fabricctl/drivers/netlink/dcb"

// Op names an operation of a driver for the faults below.
type Op string

// The operations.
const (
	ETS     Op = "ets"
	PFC     Op = "pfc"
	MaxRate Op = "maxrate"
	Buffer  Op = "buffer"
	Apps    Op = "app"
	Trust   Op = "trust"
	DCBX    Op = "dcbx"
)

// Without is the driver without operations: the state lacks what they would show, and a set is answered with 0 all the
// same (trust and DCBX: EOPNOTSUPP; application entries: the kernel's own table, which checks nothing).
func (d Driver) Without(ops ...Op) Driver {
	for _, op := range ops {
		switch op {
		case ETS:
			d.GetETS, d.SetETS = nil, nil
		case PFC:
			d.GetPFC, d.SetPFC = nil, nil
		case MaxRate:
			d.GetMaxRate, d.SetMaxRate = nil, nil
		case Buffer:
			d.GetBuffer, d.SetBuffer = nil, nil
		case Apps:
			d.SetApp, d.DelApp = nil, nil
		case Trust:
			d.GetTrust, d.SetTrust = nil, nil
		case DCBX:
			d.GetDCBX, d.SetDCBX = nil, nil
		}
	}
	return d
}

// ReadOnly is the driver without the setting half of operations: the state shows them, and a set is answered with 0 and
// changes nothing.
func (d Driver) ReadOnly(ops ...Op) Driver {
	get := d
	d = d.Without(ops...)
	d.GetETS, d.GetPFC, d.GetMaxRate, d.GetBuffer = get.GetETS, get.GetPFC, get.GetMaxRate, get.GetBuffer
	d.GetTrust, d.GetDCBX = get.GetTrust, get.GetDCBX
	return d
}

// Lying is the driver that says done (0) to sets and does nothing.
func (d Driver) Lying(ops ...Op) Driver { return d.refusing(0, ops) }

// Refusing is the driver that answers sets with a status and does nothing.
func (d Driver) Refusing(status int, ops ...Op) Driver { return d.refusing(status, ops) }

func (d Driver) refusing(status int, ops []Op) Driver {
	return d.wrap(ops, func(func() int) int { return status })
}

// Answering is the driver that does what a set asks, and then answers with a status of its own. A refusal stays one.
func (d Driver) Answering(status int, ops ...Op) Driver {
	return d.wrap(ops, func(do func() int) int {
		if s := do(); s != 0 {
			return s
		}
		return status
	})
}

// SelfReplacing is the driver in which a new priority for a DSCP replaces the old one in the kernel's table.
func (d Driver) SelfReplacing() Driver {
	set := d.SetApp
	d.SetApp = func(n *NIC, a dcb.App) int {
		for _, old := range n.apps {
			if old.Selector == a.Selector && old.Protocol == a.Protocol && old != a {
				n.apps.del(old)
				break
			}
		}
		if set == nil {
			return n.apps.add(a)
		}
		return set(n, a)
	}
	return d
}

// wrap puts f around the sets named.
func (d Driver) wrap(ops []Op, f func(do func() int) int) Driver {
	for _, op := range ops {
		switch op {
		case ETS:
			d.SetETS = around(d.SetETS, f)
		case PFC:
			d.SetPFC = around(d.SetPFC, f)
		case MaxRate:
			d.SetMaxRate = around(d.SetMaxRate, f)
		case Buffer:
			d.SetBuffer = around(d.SetBuffer, f)
		case Apps:
			if d.SetApp == nil {
				d.SetApp = func(n *NIC, a dcb.App) int { return n.apps.add(a) }
				d.DelApp = func(n *NIC, a dcb.App) int { return n.apps.del(a) }
			}
			d.SetApp, d.DelApp = around(d.SetApp, f), around(d.DelApp, f)
		case Trust:
			d.SetTrust = around(d.SetTrust, f)
		case DCBX:
			set := d.SetDCBX
			if set == nil {
				continue
			}
			d.SetDCBX = func(n *NIC, m dcb.DCBX) uint8 { return uint8(f(func() int { return int(set(n, m)) })) }
		}
	}
	return d
}

func around[T any](set func(*NIC, T) int, f func(do func() int) int) func(*NIC, T) int {
	if set == nil {
		return nil
	}
	return func(n *NIC, v T) int { return f(func() int { return set(n, v) }) }
}
