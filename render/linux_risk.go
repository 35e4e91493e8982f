package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// linuxEffect is what a write of a key does to the traffic of its NIC.
func linuxEffect(k Key, c *linuxCard) profiles.Effect {
	if !c.named {
		return profiles.Personality{}.EffectOf(k.Scope, k.Field)
	}
	return c.EffectOf(k.Scope, k.Field)
}

// linuxRisk: what takes a NIC's link down, or may, by its driver's own ways, with the jobs that run there; and files,
// which are read when a job starts. The algorithm of congestion control is not set while the host runs.
func linuxRisk(_ Config, cs []Change, f Facts) []Risk {
	harms := map[string]map[profiles.Effect][]string{} // link to what is set
	var refused []Key
	nccl, limit := false, false
	for _, c := range cs {
		k := c.Key
		switch k.Scope {
		case "nccl":
			nccl = true
			continue
		case "limit":
			limit = true
			continue
		}
		if k.Scope == "cc" && k.Field == "algorithm" {
			refused = append(refused, k)
			continue
		}
		card := f.personality(k.Object)
		if e := linuxEffect(k, &card); e.Disrupts() {
			if harms[k.Object] == nil {
				harms[k.Object] = map[profiles.Effect][]string{}
			}
			what := k.Scope
			if k.Scope == "link" {
				what = "mtu"
			}
			if !slices.Contains(harms[k.Object][e], what) {
				harms[k.Object][e] = append(harms[k.Object][e], what)
			}
		}
	}
	byWhy := map[string]*Risk{}
	var order []string
	links := make([]string, 0, len(harms))
	for link := range harms {
		links = append(links, link)
	}
	slices.SortFunc(links, intent.CompareNames)
	for _, link := range links {
		card := f.personality(link)
		why := linuxHarm(&card, harms[link])
		r := byWhy[why]
		if r == nil {
			r = &Risk{Class: Flap, Why: why}
			byWhy[why] = r
			order = append(order, why)
		}
		r.Ports = append(r.Ports, link)
		for i := range f.NICs {
			nic := &f.NICs[i]
			member := nic.Bond == link && harms[nic.Name] == nil // one that is set itself is counted there
			switch {
			case nic.Name != link && !member || r.Jobs < 0:
			case nic.QPs < 0 && nic.RDMA != "":
				r.Jobs = -1
			default:
				r.Jobs += max(nic.QPs, 0)
			}
		}
	}
	var risks []Risk
	for _, why := range order {
		risks = append(risks, *byWhy[why])
	}
	if len(refused) > 0 {
		risks = append(risks, Risk{
			Class: Refused, Keys: refused,
			Why: "which algorithm of congestion control a NIC runs is not set while the host runs: its firmware's configuration (mlxconfig, niccli) or a parameter of its module does it, at the next start",
		})
	}
	if nccl {
		risks = append(risks, Risk{Class: Hitless, Why: "jobs read " + NCCLPath + " when they start; running ones keep what they have"})
	}
	if limit {
		risks = append(risks, Risk{Class: Hitless, Why: "the limit of locked memory counts for logins from then on; services have one of their own (LimitMEMLOCK=infinity)"})
	}
	return risks
}

// linuxHarm says what setting things does to the links of a driver.
func linuxHarm(c *linuxCard, harms map[profiles.Effect][]string) string {
	driver := "the driver"
	if c.said != nil && c.said.Driver != "" {
		driver = c.said.Driver
	}
	var parts []string
	for _, x := range []struct {
		effect profiles.Effect
		says   string
	}{
		{profiles.EffectLinkFlap, "%s takes the link down and up to set %s"},
		{profiles.EffectPortReset, "%s closes and opens the port to set %s"},
		{profiles.EffectUnknown, "%s may close and open the port to set %s (whether it does is not known)"},
	} {
		if what := harms[x.effect]; len(what) > 0 {
			slices.Sort(what)
			parts = append(parts, fmt.Sprintf(x.says, driver, strings.Join(what, ", ")))
		}
	}
	return strings.Join(parts, "; ") + ": connections over it may fail"
}
