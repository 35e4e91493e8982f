package dcbfake

import (
	"slices"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// NIC is one port. Its methods may be called at any time.
type NIC struct {
	kernel *Kernel
	name   string
	index  int32
	driver Driver

	hw     Hardware
	cache  Hardware // what a driver remembers, if it answers from memory
	cached struct{ ets, pfc bool }
	apps   table
	rewr   table
	mapped int // entries for a DSCP, as far as the driver counts them
	busy   bool
	flaps  int
	gaps   int
}

// Hardware is what the port does, whatever its driver says.
type Hardware struct {
	ETS          dcb.ETS
	PFC          dcb.PFC
	MaxRate      dcb.MaxRate
	Buffer       dcb.Buffer
	DSCP         [64]uint8 // priority of each; hns3: 255 is none, which is priority 0
	TrustDSCP    bool      // otherwise the VLAN tag counts
	Trust        []dcb.Selector
	DCBX         dcb.DCBX
	FirmwareLLDP bool // the firmware's own agent is on
	NoPause      bool // bnxt: the PHY cannot pause
	NoDSCP       bool // bnxt: the firmware does not map DSCPs
}

// Driver is the operations of a driver, as struct dcbnl_rtnl_ops: nil is none. A set returns 0, a positive status, or an
// error number with the sign turned. All run with the kernel locked.
type Driver struct {
	Name    string
	PowerOn func(*NIC) // the port comes up without its former settings
	Load    func(*NIC) // the driver finds the port
	PerTC   bool       // PFC pauses all priorities of a traffic class

	GetETS     func(*NIC) (dcb.ETS, int)
	SetETS     func(*NIC, dcb.ETS) int
	GetPFC     func(*NIC) (dcb.PFC, int)
	SetPFC     func(*NIC, dcb.PFC) int
	GetMaxRate func(*NIC) (dcb.MaxRate, int)
	SetMaxRate func(*NIC, dcb.MaxRate) int
	GetBuffer  func(*NIC) (dcb.Buffer, int)
	SetBuffer  func(*NIC, dcb.Buffer) int
	SetApp     func(*NIC, dcb.App) int // nil: the kernel's own table, which checks nothing
	DelApp     func(*NIC, dcb.App) int
	GetTrust   func(*NIC) ([]dcb.Selector, int)
	SetTrust   func(*NIC, []dcb.Selector) int
	GetDCBX    func(*NIC) dcb.DCBX
	SetDCBX    func(*NIC, dcb.DCBX) uint8
}

// Name is the interface's.
func (n *NIC) Name() string { return n.name }

// Hardware is what the port does now.
func (n *NIC) Hardware() Hardware {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	h := n.hw
	h.Trust = slices.Clone(h.Trust)
	return h
}

// Alter changes the port behind the kernel's back, as a vendor's tool or the firmware does. Nobody is notified.
func (n *NIC) Alter(f func(*Hardware)) {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	f(&n.hw)
}

// Apps is the kernel's table of the interface, the newest entry first.
func (n *NIC) Apps() []dcb.App {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	return slices.Clone(n.apps)
}

// Priority is what a packet with that DSCP and without a VLAN tag gets.
func (n *NIC) Priority(dscp uint8) uint8 {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	if p := n.hw.DSCP[dscp]; n.hw.TrustDSCP && p < 8 {
		return p
	}
	return 0
}

// Paused is the priorities that PFC really acts on, a bit each.
func (n *NIC) Paused() (mask uint8) {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	if !n.driver.PerTC {
		return n.hw.PFC.Enabled
	}
	for p := range 8 {
		for q := range 8 {
			if n.hw.PFC.Enabled&(1<<q) != 0 && n.hw.ETS.PrioTC[p] == n.hw.ETS.PrioTC[q] {
				mask |= 1 << p
			}
		}
	}
	return mask
}

// Flaps counts how often the link went down and up because of a set.
func (n *NIC) Flaps() int {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	return n.flaps
}

// Gaps counts how often traffic stopped for a moment because of a set, the link staying up.
func (n *NIC) Gaps() int {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	return n.gaps
}

// Busy makes the driver answer EBUSY, as while the port is reset, if it is one that does.
func (n *NIC) Busy(yes bool) {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	n.busy = yes
}

// Reload unloads the driver and loads it again: the kernel's tables go, the port keeps what it has.
func (n *NIC) Reload() { n.again(func() {}) }

// Restart resets the firmware, or the machine: the port forgets, and the driver is loaded anew.
func (n *NIC) Restart() { n.again(func() { n.driver.PowerOn(n) }) }

// Use replaces the driver by another one, which is not loaded: it may be the same with a fault.
func (n *NIC) Use(d Driver) {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	n.driver = d
}

func (n *NIC) again(before func()) {
	n.kernel.mu.Lock()
	defer n.kernel.mu.Unlock()
	n.apps, n.rewr, n.mapped = nil, nil, 0
	n.cache, n.cached.ets, n.cached.pfc = Hardware{}, false, false
	before()
	n.driver.Load(n)
}

// flap takes the link down and up.
func (n *NIC) flap() {
	n.flaps++
	n.kernel.link(n, false)
	n.kernel.link(n, true)
}

// table is the kernel's list of entries of one interface, the newest first.
type table []dcb.App

// add is dcb_ieee_setapp, del dcb_ieee_delapp.
func (t *table) add(a dcb.App) int {
	if slices.Contains(*t, a) {
		return -int(dcb.EEXIST)
	}
	*t = slices.Insert(*t, 0, a)
	return 0
}

func (t *table) del(a dcb.App) int {
	i := slices.Index(*t, a)
	if i < 0 {
		return -int(dcb.ENOENT)
	}
	*t = slices.Delete(*t, i, i+1)
	return 0
}

func (t *table) bytes() (b []byte) {
	for _, a := range *t {
		v := native.AppendUint16([]byte{uint8(a.Selector), a.Priority}, a.Protocol)
		b = put(b, selectorAttr(uint8(a.Selector)), v)
	}
	return b
}
