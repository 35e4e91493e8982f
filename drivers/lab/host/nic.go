package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model/units"
)

// nic is the state of a link's hardware and driver besides its MTU. The host's lock guards it.
type nic struct {
	name  string // in the catalog
	link  string
	kind  *kind
	port  *dcbfake.NIC // what dcbnl leads to; nil = nothing
	index int          // n-th RDMA device of its family
	gid   int          // index of the GID of its IPv4 address, -1 = none
	jobs  int          // queue pairs of running programs
	words map[string]string
	wrong map[string]Wrong // by scope
	downs int              // how often its link went down, dcbnl aside
	down  bool             // it is down
	stays bool             // the next time that it goes down it stays there
	storm bool             // it pauses its switch without end, and takes nothing in
	drain units.BitRate    // it takes in no more than that; 0 = whatever comes
}

// newNIC plugs a NIC in.
func (h *Host) newNIC(l Link, index int) *nic {
	k := kindOf(l.NIC)
	if k.models == nil {
		k.driver, k.models = cmp.Or(l.Driver, k.driver), map[string]string{l.NIC: l.Model}
	}
	n := &nic{name: l.NIC, link: l.Name, kind: k, index: index, gid: k.gid, wrong: map[string]Wrong{}}
	if k.dcb == nil || l.VFOf != "" {
		h.kernel.AddPlain(l.Name)
	} else {
		n.port = h.kernel.Add(l.Name, k.dcb())
		if k.factory != nil {
			n.port.Alter(k.factory)
		}
	}
	n.words = n.fresh()
	return n
}

// fresh is every knob outside dcbnl as it is after the driver was loaded.
func (n *nic) fresh() map[string]string {
	k := n.kind
	w := map[string]string{"irq affinity": "other", "ring rx": "1024", "ring tx": "1024"}
	if n.port != nil || k.dcb == nil {
		w["pause receive"], w["pause send"], w["pause autoneg"] = on, on, off
		w["fec mode"] = "auto"
	}
	if k.personality != "generic" {
		w["pci max-read-request"] = "512"
	}
	if k.rdma != "" {
		w["roce mode"], w["roce tos"] = "v2", "0"
	}
	if n.port == nil {
		return w
	}
	for what, from := range map[string]map[string]string{"cc ": k.params, "roce ": k.files} {
		for field, v := range from {
			w[what+field] = v
		}
	}
	return w
}

// knobs are the names of what answers, as fabricctl-host lists them.
func (h *Host) knobs(n *nic) []string {
	var ks []string
	if s := h.state(n); s != nil {
		ks = append(ks, "app")
		for name, there := range map[string]bool{"dcbx": s.DCBX != nil, "ets": s.ETS != nil, "pfc": s.PFC != nil, "buffer": s.Buffer != nil, "maxrate": s.MaxRate != nil} {
			if there {
				ks = append(ks, name)
			}
		}
	}
	if n.flagged() {
		ks = append(ks, "flag."+n.kind.flag)
	}
	for w := range n.words {
		scope, field, _ := strings.Cut(w, " ")
		switch scope {
		case "pause", "ring", "fec", "irq":
			ks = append(ks, scope)
		default:
			ks = append(ks, scope+"."+field)
		}
	}
	slices.Sort(ks)
	return slices.Compact(ks)
}

// flagged reports whether it has the private flag of its firmware's LLDP agent.
func (n *nic) flagged() bool { return n.kind.flag != "" && n.port != nil }

// state is what dcbnl shows, nil = nothing.
func (h *Host) state(n *nic) *dcb.State {
	if n.port == nil {
		return nil
	}
	s, err := h.dcb.Get(context.Background(), n.link)
	if err != nil {
		return nil
	}
	return s
}

// settings are the NIC's knobs: "pfc priorities" to "3".
func (h *Host) settings(n *nic) map[string]string {
	out := maps.Clone(n.words)
	s := h.state(n)
	if s != nil {
		shown(s, out)
	}
	if n.flagged() {
		out["flag "+n.kind.flag] = word(n.port.Hardware().FirmwareLLDP)
	}
	if n.kind.noPause && s != nil && s.PFC != nil && s.PFC.Enabled != 0 {
		for _, f := range []string{"receive", "send", "autoneg"} {
			delete(out, "pause "+f)
		}
	}
	return out
}

// device is the name of its RDMA device, "" when it has none.
func (n *nic) device() string {
	if n.kind.rdma == "" {
		return ""
	}
	return fmt.Sprintf(n.kind.rdma, n.index)
}

// flaps is how often the link went down and up.
func (n *nic) flaps() int {
	if n.port == nil {
		return n.downs
	}
	return n.downs + n.port.Flaps()
}

// gaps is how often traffic stopped for a moment, the link staying up.
func (n *nic) gaps() int {
	if n.port == nil {
		return 0
	}
	return n.port.Gaps()
}

// Wrong is a way in which a driver goes wrong when it is set.
type Wrong string

// The ways.
const (
	Behaves  Wrong = ""         // it does what it is asked
	Lies     Wrong = "lie"      // it says that it did, and did not
	Busy     Wrong = "busy"     // it refuses: device or resource busy
	Positive Wrong = "positive" // it does it, and answers 1, which is neither done nor refused; outside of dcbnl as Behaves
)

// Misbehave makes a driver go wrong when something in scope ("pfc", "ets", "app", "buffer", "dcbx", "link" for the MTU, or
// another one of the keys) is set on a link.
func (h *Host) Misbehave(link, scope string, how Wrong) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.nicOn(link)
	if err != nil {
		return err
	}
	if !slices.Contains([]Wrong{Behaves, Lies, Busy, Positive}, how) {
		return fmt.Errorf("%q is none of lie, busy, positive, off", how)
	}
	if !slices.Contains(order(), scope) {
		return fmt.Errorf("%q is none of %s", scope, strings.Join(order(), ", "))
	}
	n.wrong[scope] = how
	if n.port == nil {
		return nil
	}
	d := n.kind.dcb()
	for scope, how := range n.wrong {
		op := dcbfake.Op(scope)
		switch how {
		case Lies:
			d = d.Lying(op)
		case Busy:
			d = d.Refusing(-int(dcb.EBUSY), op)
		case Positive:
			d = d.Answering(1, op)
		}
	}
	n.port.Use(d)
	return nil
}

// nicOn is the NIC of a link; the host's lock is held.
func (h *Host) nicOn(link string) (*nic, error) {
	if n := h.nics[link]; n != nil {
		return n, nil
	}
	if slices.ContainsFunc(h.links, func(l Link) bool { return l.Name == link }) {
		return nil, errSupported
	}
	return nil, errNoLink
}

// disturbed counts what a write did to the link and to the programs on it: it is called with the state before.
func (h *Host) disturbed(n *nic, flaps, gaps int) {
	flapped := n.flaps() > flaps
	if !flapped && n.gaps() == gaps {
		return
	}
	h.counters.Downs += n.flaps() - flaps
	h.counters.Gaps += n.gaps() - gaps
	h.counters.Killed += n.jobs
	n.jobs = 0
	if flapped {
		n.down, n.stays = n.stays, false
		h.reach()
	}
}
