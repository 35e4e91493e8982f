package host

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model/units"
)

// owners are those besides fabricctl that set what it sets, each with what ends that; and what else is worth a note.
func (h *Host) owners() (owners, notes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		n := h.nics[l.Name]
		if n == nil {
			continue
		}
		s := h.state(n)
		if s == nil || s.DCBX == nil {
			continue
		}
		switch why := n.kind.foreign(*s.DCBX); {
		case why == "":
		case n.kind.takes():
			notes = append(notes, l.Name+": "+why)
		default:
			owners = append(owners, fmt.Sprintf("%s: %s: %s", l.Name, why, strings.ReplaceAll(n.kind.remedy, "NETDEV", l.Name)))
		}
	}
	return append(owners, h.foreign...), append(notes, h.subnets()...)
}

// subnets says which NICs share a subnet. The host's lock is held.
func (h *Host) subnets() (notes []string) {
	names := map[netip.Prefix][]string{}
	for _, l := range h.links {
		for _, a := range l.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil && p.Addr().Is4() {
				names[p.Masked()] = append(names[p.Masked()], l.Name)
			}
		}
	}
	for net, ls := range names {
		if len(ls) > 1 {
			notes = append(notes, fmt.Sprintf("%s are all in %s, so each needs a routing table of its own (ip rule from its address)", strings.Join(ls, ", "), net))
		}
	}
	slices.Sort(notes)
	return notes
}

// Lldpad is the sentence of fabricctl-host about a running lldpad, for SetOwners.
const Lldpad = "lldpad runs and sets PFC, ETS and application priorities by itself: systemctl disable --now lldpad.service lldpad.socket"

// SetOwners says who else sets what fabricctl sets, a sentence each, firmware aside.
func (h *Host) SetOwners(sentences ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.foreign = slices.Clone(sentences)
}

// Firmware switches the LLDP agent of a NIC's firmware on or off, as a vendor's tool does.
func (h *Host) Firmware(link string, rules bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.nicOn(link)
	if err == nil && n.port == nil {
		err = errSupported
	}
	if err != nil {
		return err
	}
	n.port.Alter(func(hw *dcbfake.Hardware) {
		switch {
		case n.kind.flag != "" || n.kind.driver == "bnxt_en":
			hw.FirmwareLLDP = rules
		case rules:
			hw.DCBX &^= dcb.Host
		default:
			hw.DCBX |= dcb.Host
		}
	})
	return nil
}

// SetJobs says how many queue pairs running programs have on a link.
func (h *Host) SetJobs(link string, queuePairs int) error {
	return h.onNIC(link, func(n *nic) { n.jobs = queuePairs })
}

// SlowClock says whether the CPU clocks below its highest frequency.
func (h *Host) SlowClock(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = yes
}

// SetGID moves the RoCE v2 GID of a link's IPv4 address to an index, as an address that comes or goes does; -1 = there is
// none.
func (h *Host) SetGID(link string, index int) error {
	return h.onNIC(link, func(n *nic) { n.gid = index })
}

// StayDown lets a link stay down the next time that what is set takes it down. The time after it comes up again.
func (h *Host) StayDown(link string) error {
	return h.onNIC(link, func(n *nic) { n.stays = true })
}

func (h *Host) onNIC(link string, f func(*nic)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.nicOn(link)
	if err == nil {
		f(n)
	}
	return err
}

// Storm lets a NIC pause its switch without end, and take nothing in, as broken ones do.
func (h *Host) Storm(link string, yes bool) error {
	return h.onNIC(link, func(n *nic) { n.storm = yes })
}

// Slow lets a NIC take in no more than rate; 0 = whatever comes.
func (h *Host) Slow(link string, rate units.BitRate) error {
	return h.onNIC(link, func(n *nic) { n.drain = rate })
}

// Trouble is what is wrong with how a NIC receives.
type Trouble struct {
	Link  string
	Storm bool          // it pauses without end
	Drain units.BitRate // it takes in no more than that; 0 = whatever comes
}

// Troubles are the NICs that receive badly.
func (h *Host) Troubles() (ts []Trouble) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		if n := h.nics[l.Name]; n != nil && (n.storm || n.drain > 0) {
			ts = append(ts, Trouble{l.Name, n.storm, n.drain})
		}
	}
	return ts
}

// Reload loads the driver of a link anew: what it keeps in memory is lost, and mlx5 rewrites its traffic classes.
func (h *Host) Reload(link string) error {
	return h.onNIC(link, func(n *nic) {
		n.words = n.fresh()
		n.downs++
		n.jobs = 0
		if n.port != nil {
			n.port.Reload()
		}
	})
}

// Reboot ends all connections and starts the machine anew: files stay, and what was set is lost.
func (h *Host) Reboot() {
	h.Disconnect()
	h.killAll()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ClearCounters()
	h.boots++
	for i := range h.links {
		l := &h.links[i]
		l.MTU = h.opt.Links[i].MTU
		n := h.nics[l.Name]
		if n == nil {
			continue
		}
		n.words, n.jobs, n.down, n.storm, n.drain = n.fresh(), 0, false, false, 0
		if n.port != nil {
			n.port.Restart()
			if n.kind.factory != nil {
				n.port.Alter(n.kind.factory)
			}
		}
	}
	h.reach()
}

// Lose cuts the host off, or brings it back: connections end and none is taken. Timers go on.
func (h *Host) Lose(lost bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cut(lost)
}

// Lost reports whether nobody reaches the host.
func (h *Host) Lost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// reach looks whether a link that is down has the way to the host on it. The host's lock is held.
func (h *Host) reach() {
	h.cut(slices.ContainsFunc(h.links, func(l Link) bool { return l.Management && h.nics[l.Name] != nil && h.nics[l.Name].down }))
}

// cut ends the connections of a host that is lost, without waiting for anything, and lets it listen again when it is found:
// an error is another program that has its port now. The host's lock is held.
func (h *Host) cut(lost bool) error {
	if lost == h.lost {
		return nil
	}
	h.lost = lost
	if !lost {
		return h.listen(h.addr)
	}
	for c := range h.conns {
		_ = c.Close()
	}
	if h.listener != nil {
		return h.listener.Close()
	}
	return nil
}
