package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// linuxCard is what is known of a NIC: how its driver behaves, and what it answered.
type linuxCard struct {
	profiles.Personality
	named bool     // the driver is known: the host says it, or the model names the NIC
	said  *HostNIC // what the host says of the NIC; nil before it was asked
	bare  bool     // the host was asked, and has nothing of that name with hardware below it
}

// personality is the card of an interface, as the host says.
func (f Facts) personality(link string) linuxCard {
	n, ok := f.NIC(link)
	switch {
	case len(f.NICs) == 0:
		return linuxCard{}
	case !ok:
		return linuxCard{bare: true}
	}
	return linuxCard{said: &n, Personality: f.driver(n.Personality), named: true}
}

// driver finds a personality: those that the host brought along come first.
func (f Facts) driver(name string) profiles.Personality {
	if i := slices.IndexFunc(f.Personalities, func(p profiles.Personality) bool { return p.Name == name }); i >= 0 {
		return f.Personalities[i]
	}
	c, err := profiles.OfHosts()
	if err != nil {
		return profiles.Personality{}
	}
	p, ok := c.PersonalityNamed(name)
	if !ok {
		p, _ = c.PersonalityNamed(profiles.Generic)
	}
	return p
}

// linuxCardOf is the card of a port: as the host says, or else as the model names its NIC. A NIC that neither names is
// taken for one that has everything.
func linuxCardOf(d *intent.Device, p *intent.Port, f Facts) linuxCard {
	if c := f.personality(p.Iface); c.said != nil || c.bare {
		return c
	}
	if p.NIC == "" {
		return linuxCard{}
	}
	catalog := d.Catalog
	if catalog == nil {
		var err error
		if catalog, err = profiles.OfHosts(); err != nil {
			return linuxCard{}
		}
	}
	nic, ok := catalog.NIC(p.NIC)
	if !ok {
		return linuxCard{}
	}
	return linuxCard{Personality: catalog.PersonalityOf(nic), named: true}
}

// has reports whether the NIC has a knob that can be set, by the name that Facts.NICs and the catalog give it: "pfc",
// "cc.ai_rate".
func (c *linuxCard) has(knob string) bool {
	if c.bare || c.named && slices.Contains(profiles.Objects(), knob) && !settable(c.Object(knob).Support) {
		return false
	}
	if c.said != nil {
		return c.said.Has(knob)
	}
	scope, field, _ := strings.Cut(knob, ".")
	switch {
	case scope == "flag":
		return c.LLDPFlag == field && field != ""
	case !c.named:
		return true
	case knob == "dcbx":
		return settable(c.DCBX.Support) && c.DCBXOwn != profiles.OwnNothing && c.DCBXOwn != ""
	case scope == "roce", scope == "cc":
		_, ok := c.Knob(knob)
		return ok
	}
	return true
}

// settable reports whether a set is worth a try.
func settable(s profiles.Support) bool {
	return s != profiles.SupportNone && s != profiles.SupportShown
}

// name is the NIC for people: "eth0 (mlx5_core, 15b3:1021)".
func (c *linuxCard) name(p *intent.Port) string {
	link := cmp.Or(p.Iface, "its NIC")
	switch {
	case c.said != nil:
		return fmt.Sprintf("%s (%s)", link, strings.Join(slices.DeleteFunc([]string{c.said.Driver, c.said.Model}, func(s string) bool { return s == "" }), ", "))
	case c.named:
		return fmt.Sprintf("%s (%s)", link, cmp.Or(p.NIC, c.Name))
	}
	return link
}

// closed says why no setting of DCB, RoCE or congestion control may be written to the NIC, and what to do; "" = it may.
func (c *linuxCard) closed(p *intent.Port) (why, hint string) {
	switch {
	case c.bare:
		return p.Iface + " has no NIC below it that the host knows", "bind the port to a NIC: devices.NAME.nics in the inventory"
	case c.said != nil && c.said.VFOf != "":
		return fmt.Sprintf("%s is a virtual function of %s, and the physical one sets its QoS", p.Iface, c.said.VFOf),
			fmt.Sprintf("bind the port to %s in the inventory, or own only mtu and host-nccl there", c.said.VFOf)
	case c.said != nil && c.said.DPU != "":
		return fmt.Sprintf("QoS of %s is not this host's to set: %s", p.Iface, c.said.DPU), "set it on the card itself, and own only mtu and host-nccl here"
	case c.said != nil && c.said.Bond != "" && c.BondRefuses:
		return fmt.Sprintf("%s is in %s, and its driver refuses DCB in a bond", c.name(p), c.said.Bond), "take it out of the bond, or own only mtu and host-nccl there"
	case c.named && c.Status != profiles.Managed && c.Status != "":
		why := cmp.Or(c.Why, "nothing is known of its driver: it is read, and not written")
		return fmt.Sprintf("%s: %s", c.name(p), why), "own only mtu and host-nccl there, or describe the NIC in a Profile with a personality"
	}
	return "", ""
}

// classes is how many traffic classes the NIC has.
func (c *linuxCard) classes() int {
	if c.TrafficClasses > 0 && c.TrafficClasses < 8 {
		return c.TrafficClasses
	}
	return 8
}

// Default is the priority of a code point without an entry in the app table; "" = not known.
func (c linuxCard) Default(dscp int) string {
	if !c.named || c.AppEntries == profiles.AppAll || c.AppDefault[dscp] < 0 || c.Name == "" {
		return ""
	}
	return strconv.Itoa(int(c.AppDefault[dscp]))
}

// idle is the transmission selection of a traffic class that no class of the model is in. A driver's own way (vendor) is
// below what the model asks for; where there is none, nothing is sent with such a priority: all code points are mapped.
func (c *linuxCard) idle() string {
	if slices.Contains(c.TSA, "vendor") {
		return "vendor"
	}
	return "strict"
}
