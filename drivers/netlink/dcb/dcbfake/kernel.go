// Package dcbfake is a kernel's Data Center Bridging for tests: what net/dcb does with a message, over NICs that behave
// as their drivers do, traps included. It has its own code for the bytes, so that a mistake in package dcb shows.
//
//	k := dcbfake.New()
//	nic := k.Add("eth0", dcbfake.MLX5())
//	c := dcb.New(k)
//
// What a driver does comes from the sources of Linux 6.12 (for hns3 from the patches that brought it) and has not been
// seen on hardware. The core and the generic driver give the recordings of a 6.1 kernel with a test device byte for byte.
package dcbfake

import (
	"context"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// Kernel is one network namespace of a kernel. It is a dcb.Transport.
type Kernel struct {
	// Set these before use.
	NoDCB          bool // built without CONFIG_DCB
	Unprivileged   bool // the caller lacks CAP_NET_ADMIN
	WithoutRewrite bool // older than 6.4: no rewrite table

	mu       sync.Mutex
	nics     []*NIC
	plain    []string // interfaces without DCB
	requests []Request
	subs     []*Subscription
}

// Request is a message that the kernel got.
type Request struct {
	Type   uint16 // 78 get, 79 set
	Cmd    uint8
	Ifname string
	Data   []byte
	Status int // what the driver answered to a set
}

var _ dcb.Transport = (*Kernel)(nil)

// New is a kernel without interfaces.
func New() *Kernel { return &Kernel{} }

// Add plugs in a NIC and loads its driver.
func (k *Kernel) Add(ifname string, d Driver) *NIC {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := &NIC{kernel: k, name: ifname, index: int32(len(k.nics) + len(k.plain) + 2), driver: d}
	d.PowerOn(n)
	d.Load(n)
	k.nics = append(k.nics, n)
	return n
}

// AddPlain adds an interface whose driver has no DCB at all, such as a veth, a bond or a VF.
func (k *Kernel) AddPlain(ifname string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plain = append(k.plain, ifname)
}

// Requests is all messages so far.
func (k *Kernel) Requests() []Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.requests)
}

// Writes counts the messages so far that asked for a change.
func (k *Kernel) Writes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, r := range k.requests {
		if r.Type == typeSet {
			n++
		}
	}
	return n
}

// Close does nothing: the kernel stays.
func (k *Kernel) Close() error { return nil }

// Execute does with a message what dcb_doit does.
func (k *Kernel) Execute(ctx context.Context, typ uint16, data []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Request{Type: typ, Data: slices.Clone(data)}
	answer, err := k.doit(&r)
	k.requests = append(k.requests, r)
	if err != 0 {
		return nil, err
	}
	return answer, nil
}

// doit answers with the data of a message, or with an error number.
func (k *Kernel) doit(r *Request) ([]byte, dcb.Errno) {
	if r.Type == typeSet && k.Unprivileged {
		return nil, dcb.EPERM
	}
	if k.NoDCB || r.Type != typeGet && r.Type != typeSet {
		return nil, dcb.EOPNOTSUPP
	}
	if len(r.Data) < 4 {
		return nil, dcb.EINVAL
	}
	r.Cmd = r.Data[1]
	attrs, ok := parse(r.Data[4:])
	if !ok || r.Cmd > cmdIEEEDel {
		return nil, dcb.EINVAL
	}
	name, ok := attrs[attrIfname]
	if !ok {
		return nil, dcb.EINVAL
	}
	r.Ifname = cString(name)
	n := k.find(r.Ifname)
	switch {
	case n == nil && slices.Contains(k.plain, r.Ifname):
		return nil, dcb.EOPNOTSUPP
	case n == nil:
		return nil, dcb.ENODEV
	}
	head := []byte{0, r.Cmd, 0, 0}
	switch r.Cmd {
	case cmdIEEEGet:
		return k.fill(head, n)
	case cmdSDCBX:
		mode, ok := attrs[attrDCBX]
		switch {
		case n.driver.SetDCBX == nil:
			return nil, dcb.EOPNOTSUPP
		case !ok || len(mode) != 1:
			return nil, dcb.EINVAL
		}
		r.Status = int(n.driver.SetDCBX(n, dcb.DCBX(mode[0])))
		return put(head, attrDCBX, []byte{uint8(r.Status)}), 0
	case cmdIEEESet, cmdIEEEDel:
		nest, ok := attrs[attrIEEE]
		if !ok {
			return nil, dcb.EINVAL
		}
		objects, ok := parse(nest)
		if !ok {
			return nil, dcb.EINVAL
		}
		for typ, least := range sizes {
			if b, ok := objects[typ]; ok && len(b) < least {
				return nil, dcb.ERANGE
			}
		}
		if r.Cmd == cmdIEEESet {
			r.Status = n.set(objects)
		} else {
			r.Status = n.del(objects)
		}
		k.notify(n, r.Cmd)
		return put(head, attrIEEE, []byte{uint8(r.Status)}), 0
	}
	return nil, dcb.EOPNOTSUPP // CEE: no driver of a RoCE NIC needs it here
}

func (k *Kernel) find(ifname string) *NIC {
	for _, n := range k.nics {
		if n.name == ifname {
			return n
		}
	}
	return nil
}

// set is the order of dcbnl_ieee_set: it ends with the first status that is not 0, and an object that the driver has no
// operation for is passed over.
func (n *NIC) set(objects map[uint16][]byte) int {
	d := n.driver
	steps := []struct {
		attr uint16
		has  bool
		do   func([]byte) int
	}{
		{ieeeETS, d.SetETS != nil, func(b []byte) int { return d.SetETS(n, parseETS(b)) }},
		{ieeeMaxRate, d.SetMaxRate != nil, func(b []byte) int { return d.SetMaxRate(n, parseMaxRate(b)) }},
		{ieeePFC, d.SetPFC != nil, func(b []byte) int { return d.SetPFC(n, parsePFC(b)) }},
		{ieeeBuffer, d.SetBuffer != nil, n.setBuffer},
		{ieeeRewr, true, func(b []byte) int { return eachApp(b, n.rewr.add) }},
		{ieeeApps, true, func(b []byte) int { return eachApp(b, n.setApp) }},
		{ieeeTrust, true, n.setTrust},
	}
	for _, s := range steps {
		if b, ok := objects[s.attr]; ok && s.has {
			if status := s.do(b); status != 0 {
				return status
			}
		}
	}
	return 0
}

func (n *NIC) del(objects map[uint16][]byte) int {
	if b, ok := objects[ieeeRewr]; ok {
		if status := eachApp(b, n.rewr.del); status != 0 {
			return status
		}
	}
	if b, ok := objects[ieeeApps]; ok {
		return eachApp(b, n.delApp)
	}
	return 0
}

func (n *NIC) setBuffer(b []byte) int {
	f := parseBuffer(b)
	for _, i := range f.PrioBuffer {
		if i > 7 {
			return -int(dcb.EINVAL)
		}
	}
	return n.driver.SetBuffer(n, f)
}

func (n *NIC) setApp(a dcb.App) int {
	if n.driver.SetApp == nil {
		return n.apps.add(a)
	}
	return n.driver.SetApp(n, a)
}

func (n *NIC) delApp(a dcb.App) int {
	if n.driver.DelApp == nil {
		return n.apps.del(a)
	}
	return n.driver.DelApp(n, a)
}

func (n *NIC) setTrust(b []byte) int {
	if n.driver.SetTrust == nil {
		return -int(dcb.EOPNOTSUPP)
	}
	order := []dcb.Selector{}
	status := each(b, func(typ uint16, v []byte) int {
		switch {
		case len(v) == 0 || selectorAttr(v[0]) != typ:
			return -int(dcb.EINVAL)
		case slices.Contains(order, dcb.Selector(v[0])):
			return -int(dcb.EEXIST)
		}
		order = append(order, dcb.Selector(v[0]))
		return 0
	})
	if status != 0 {
		return status
	}
	return n.driver.SetTrust(n, order)
}

// room is what a message of the kernel holds: a page less the bookkeeping of a socket buffer and the netlink header. The
// state of a NIC with more than about 400 application entries does not fit.
const room = 4096 - 320 - 16

// fill appends the state of a NIC as dcbnl_ieee_fill does.
func (k *Kernel) fill(b []byte, n *NIC) ([]byte, dcb.Errno) {
	d := n.driver
	var in []byte
	if d.GetETS != nil {
		if e, status := d.GetETS(n); status == 0 {
			in = put(in, ieeeETS, etsBytes(e))
		}
	}
	if d.GetMaxRate != nil {
		if m, status := d.GetMaxRate(n); status == 0 {
			in = put(in, ieeeMaxRate, maxRateBytes(m))
		}
	}
	if d.GetPFC != nil {
		if p, status := d.GetPFC(n); status == 0 {
			in = put(in, ieeePFC, pfcBytes(p))
		}
	}
	if d.GetBuffer != nil {
		if f, status := d.GetBuffer(n); status == 0 {
			in = put(in, ieeeBuffer, bufferBytes(f))
		}
	}
	in = put(in, ieeeApps, n.apps.bytes())
	if !k.WithoutRewrite {
		in = put(in, ieeeRewr|nested, n.rewr.bytes())
	}
	if d.GetTrust != nil {
		if order, status := d.GetTrust(n); status == 0 {
			in = put(in, ieeeTrust|nested, trustBytes(order))
		}
	}
	b = put(b, attrIfname, append([]byte(n.name), 0))
	b = put(b, attrIEEE, in)
	if d.GetDCBX != nil {
		b = put(b, attrDCBX, []byte{uint8(d.GetDCBX(n))})
	}
	if len(b) > room {
		return nil, dcb.EMSGSIZE
	}
	return b, 0
}
