package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var roceMarking = Rule{
	ID:       "roce-marking",
	Title:    "RDMA that nobody marked goes where it is meant to, and nothing takes an application's marking away",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaRoCE),
	Run:      runRoCEMarking,
}

// marker is how a NIC marks connections, and where the leaf puts them.
type marker struct {
	roce   intent.RoCE
	nccl   int16 // NCCL_IB_TC, -1 = not known
	prio   uint8 // of the ToS byte's code point at the leaf, or Unmapped
	lossy  bool
	line   diag.Pos
	active bool
}

func runRoCEMarking(p *Pass) {
	var all causes[marker]
	leaves := map[marker]Place{}
	for _, l := range p.Links {
		host, leaf := l.A, l.B
		if leaf.Device.Host {
			host, leaf = leaf, host
		}
		r := host.Policy.RoCE
		if !host.Device.Host || leaf.Device.Host || !host.Knows(intent.AreaRoCE) || !r.On || !leaf.Knows(intent.AreaMaps) {
			continue
		}
		k := marker{roce: r, nccl: -1, prio: leaf.Policy.DSCP[r.ToS>>2], line: host.Origin("roce.tos").At(), active: host.Active && leaf.Active}
		if n := host.Policy.NCCL; host.Knows(intent.AreaNCCL) && n.On && rdma(host.Port) {
			k.nccl = int16(n.TrafficClass)
		}
		k.lossy = leaf.Knows(intent.AreaPFC) && p.lossy(leaf, k.prio)
		host.Active, host.Ports = k.active, 1
		all.add(k, host)
		if _, known := leaves[k]; !known {
			leaves[k] = leaf
		}
	}
	for k, w := range all.all {
		for _, f := range p.markerFindings(k, leaves[k], w) {
			p.report(w, f)
		}
	}
}

func (p *Pass) markerFindings(k marker, leaf Place, w *where) (fs []diag.Finding) {
	dscp := k.roce.ToS >> 2
	meant := p.meant(w.first)
	hint, forced := "set the ToS byte to 4 times a code point of a lossless class", "have the driver force nothing, so that applications choose: hosts.roce.traffic_class: clear"
	if meant != nil {
		hint = fmt.Sprintf("set the ToS byte to %d, which is dscp %d of class %s", meant.DSCP[0].V<<2, meant.DSCP[0].V, meant.Name)
		if dscp == meant.DSCP[0].V { // the host is right, and the switch is not
			hint = fmt.Sprintf("map dscp %d to priority %d of class %s on %s", dscp, meant.Priority.V, meant.Name, leaf.Device.Name)
		}
	}
	to := "no class"
	if k.prio < 8 {
		to = class(leaf.Device, int(k.prio))
	}
	at := cmp.Or(k.line, w.first.Origin("roce.mode").At())
	say := fmt.Sprintf("connections of rdma_cm on %s carry ToS %d (dscp %d), which is of %s at %s", w, k.roce.ToS, dscp, to, leaf)
	switch {
	case k.roce.Mode == 1:
		fs = append(fs, diag.Finding{
			Pos: cmp.Or(w.first.Origin("roce.mode").At(), at), Hint: "set mode to v2",
			Msg: fmt.Sprintf("connections of rdma_cm on %s are RoCE v1, which has no IP header: %s sees no code point in it, and no router carries it", w, leaf),
		})
	case k.prio < 8 && leaf.Device.CNP != "" && leaf.Device.Classes[k.prio] == leaf.Device.CNP:
		fs = append(fs, diag.Finding{Pos: at, Hint: hint, Msg: say + ": data there delays the notifications of all"})
	case meant != nil && (k.prio >= 8 || leaf.Device.Classes[k.prio] != meant.Name):
		fs = append(fs, diag.Finding{Pos: at, Hint: hint, Msg: say + ", and the model means class " + meant.Name})
	case k.lossy:
		fs = append(fs, diag.Finding{
			Severity: diag.Warning, Pos: at, Msg: say + ", which is lossy: each drop makes NICs send all that followed again",
			Hint: "name a lossless class under hosts.roce, or acknowledge " + p.rule.ID + " with the reason",
		})
	}
	if ecn := k.roce.ToS & 3; ecn != 0 {
		fs = append(fs, diag.Finding{
			Severity: diag.Warning, Pos: at, Hint: fmt.Sprintf("set the ToS byte to %d", k.roce.ToS-ecn),
			Msg: fmt.Sprintf("the ToS byte %d on %s has ECN bits besides dscp %d: those are the NIC's to set", k.roce.ToS, w, dscp),
		})
	}
	if f := k.roce.TrafficClass; f >= 0 && k.nccl >= 0 && uint8(f)>>2 != uint8(k.nccl)>>2 {
		fs = append(fs, diag.Finding{
			Pos: cmp.Or(w.first.Origin("roce.traffic_class").At(), at), Hint: forced,
			Related: []diag.Related{setHere("NCCL_IB_TC", w.first.Origin("nccl.traffic_class"))},
			Msg: fmt.Sprintf("the driver on %s forces traffic class %d (dscp %d) on every connection, so that NCCL_IB_TC %d (dscp %d) has no effect",
				w, f, f>>2, k.nccl, k.nccl>>2),
		})
	}
	return fs
}

// meant is the class that the model means for connections of a NIC that choose none; nil when it means none.
func (p *Pass) meant(pl Place) *model.Class {
	if p.Fabric == nil {
		return nil
	}
	hosts := p.Fabric.Hosts
	role := p.Fabric.Roles[pl.Device.Role]
	for _, o := range []*model.Override{role, modelOverride(p, pl.Device.Name), portOverride(p, pl)} {
		if o != nil {
			hosts = o.Hosts.Over(hosts)
		}
	}
	if pl.Port.Carries != 0 && pl.Port.Carries&model.CarriesRDMA == 0 && !hosts.RoCE.Class.Set {
		return nil // of storage that nobody asked about
	}
	return p.Fabric.DataClass(hosts.RoCE.Class)
}

func modelOverride(p *Pass, device string) *model.Override {
	if d := modelDevice(p, device); d != nil {
		return d.Override
	}
	return nil
}

func portOverride(p *Pass, pl Place) *model.Override {
	if q := modelPort(p, pl.Device.Name, pl.Port.Name); q != nil {
		return q.Override
	}
	return nil
}
