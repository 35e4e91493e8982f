package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ncclModel = Rule{
	ID:       "nccl-model",
	Title:    "NCCL sends in the class that is meant for it",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaNCCL),
	Run:      runNCCLModel,
}

// ncclCause is what hosts tell NCCL, and where their leaf puts it.
type ncclCause struct {
	nccl   intent.NCCL
	prio   uint8 // of the code point at the leaf, or Unmapped
	lossy  bool
	dog    intent.Watchdog // of the leaf's port
	line   diag.Pos
	active bool
}

func runNCCLModel(p *Pass) {
	var all causes[ncclCause]
	leaves := map[ncclCause]Place{}
	for host, leaf := range p.hostLinks {
		n := host.Policy.NCCL
		if !host.Knows(intent.AreaNCCL) || !n.On || !leaf.Knows(intent.AreaMaps) {
			continue
		}
		k := ncclCause{nccl: n, prio: leaf.Policy.DSCP[n.TrafficClass>>2], line: host.Origin("nccl.traffic_class").At(), active: host.Active && leaf.Active}
		k.lossy = leaf.Knows(intent.AreaPFC) && p.lossy(leaf, k.prio)
		if leaf.Knows(intent.AreaWatchdog) && !k.lossy {
			k.dog = leaf.Policy.Watchdog
		}
		host.Active, host.Ports = k.active, 1
		all.add(k, host)
		if _, known := leaves[k]; !known {
			leaves[k] = leaf
		}
	}
	for k, w := range all.all {
		for _, f := range p.ncclFindings(k, leaves[k], w) {
			p.report(w, f)
		}
	}
}

// lossy reports whether a priority is lossy where NCCL's traffic goes by the model, or, without one, beside a lossless
// priority. A class that the model wants lossless, and a leaf does not have so, is lossless-protected's.
func (p *Pass) lossy(leaf Place, prio uint8) bool {
	switch {
	case prio < 8 && leaf.Policy.Queues[prio].Lossless:
		return false
	case p.Fabric == nil || prio >= 8:
		return len(leaf.Policy.Lossless()) > 0
	}
	c := classOf(p, leaf.Device.Classes[prio])
	return c == nil || !c.Lossless.V && !c.Headroom.Set && !c.Xon.Set // with those, it was meant to be lossless
}

// rdma reports whether RDMA may run over a host's port.
func rdma(p *intent.Port) bool { return p.Carries == 0 || p.Carries&model.CarriesRDMA != 0 }

func (p *Pass) ncclFindings(k ncclCause, leaf Place, w *where) (fs []diag.Finding) {
	dscp := k.nccl.TrafficClass >> 2
	tos := fmt.Sprintf("NCCL_IB_TC %d (dscp %d)", k.nccl.TrafficClass, dscp)
	meant, line := p.ncclClass()
	at := cmp.Or(k.line, line)
	if ecn := k.nccl.TrafficClass & 3; ecn != 0 {
		fs = append(fs, diag.Finding{
			Severity: diag.Warning, Pos: at,
			Msg:  fmt.Sprintf("NCCL_IB_TC %d on %s sets ECN bits besides dscp %d: those are the NIC's to set", k.nccl.TrafficClass, w, dscp),
			Hint: fmt.Sprintf("set NCCL_IB_TC to %d", k.nccl.TrafficClass-ecn),
		})
	}
	to := "no class"
	if k.prio < 8 {
		to = class(leaf.Device, int(k.prio))
	}
	hint := "set NCCL_IB_TC to 4 times a code point of a lossless class"
	if meant != nil && len(meant.DSCP) > 0 {
		hint = fmt.Sprintf("set NCCL_IB_TC to %d, which is dscp %d of class %s", meant.DSCP[0].V<<2, meant.DSCP[0].V, meant.Name)
	}
	switch {
	case k.prio < 8 && leaf.Device.CNP != "" && leaf.Device.Classes[k.prio] == leaf.Device.CNP:
		fs = append(fs, diag.Finding{
			Pos: at, Related: []diag.Related{{Pos: line, Msg: "class of NCCL set here"}}, Hint: hint,
			Msg: fmt.Sprintf("%s on %s is of %s at %s: data there delays the notifications of all", tos, w, to, leaf),
		})
	case p.marked(dscp): // as the marking table says, and then that is to be judged
	case meant != nil && (k.prio >= 8 || leaf.Device.Classes[k.prio] != meant.Name):
		fs = append(fs, diag.Finding{
			Pos: at, Related: []diag.Related{{Pos: line, Msg: "class of NCCL set here"}}, Hint: hint,
			Msg: fmt.Sprintf("%s on %s is of %s at %s, and the model has NCCL send in class %s", tos, w, to, leaf, meant.Name),
		})
	case k.lossy:
		fs = append(fs, diag.Finding{
			Severity: diag.Warning, Pos: at, Related: []diag.Related{{Pos: line, Msg: "class of NCCL set here"}},
			Msg:  fmt.Sprintf("%s on %s is of %s at %s, which is lossy: each drop makes NICs send all that followed again", tos, w, to, leaf),
			Hint: "make " + to + " lossless, name a lossless class under nccl, or acknowledge " + p.rule.ID + " with the reason",
		})
	}
	return append(fs, k.patience(p, leaf, w)...)
}

// patience weighs how long NCCL repeats a send against how long a stuck pause may hold it up. The time is the InfiniBand
// Architecture Specification's: 4.096us times 2 to the timeout for each of the sends, of which there is one more than
// retries.
func (k ncclCause) patience(p *Pass, leaf Place, w *where) []diag.Finding {
	if !k.dog.On || k.nccl.Timeout == 0 {
		return nil
	}
	tries := tries(k.nccl)
	gives := patient{timeout: k.nccl.Timeout, tries: tries}.gives()
	stuck := units.Duration(k.dog.Detect+k.dog.Restore) * units.Millisecond
	if gives > stuck {
		return nil
	}
	least := k.nccl.Timeout
	for units.Duration(4096)<<least*units.Duration(tries+1) <= stuck && least < 31 {
		least++
	}
	return []diag.Finding{{
		Severity: diag.Warning, Pos: cmp.Or(w.first.Origin("nccl.timeout").At(), k.line),
		Related: []diag.Related{setHere("retry_count", w.first.Origin("nccl.retry_count")), setHere("detect", leaf.Origin("watchdog.detect")), setHere("restore", leaf.Origin("watchdog.restore"))},
		Msg: fmt.Sprintf("NCCL on %s gives up after %v (timeout %d, retry_count %d), but the watchdog at %s may need %v to end a stuck pause",
			w, gives/units.Millisecond*units.Millisecond, k.nccl.Timeout, tries, leaf, stuck),
		Hint: fmt.Sprintf("raise timeout to at least %d", least),
	}}
}

// marked reports whether the marking table has NCCL send with this code point.
func (p *Pass) marked(dscp uint8) bool {
	return p.Fabric != nil && slices.ContainsFunc(p.Fabric.Apps, func(a model.Application) bool {
		return a.Name == "nccl" && a.DSCP.Set && a.DSCP.V == dscp
	})
}

// ncclClass is the class that the model names for NCCL, itself or by the marking table, and the line that does; nil when
// it names none.
func (p *Pass) ncclClass() (*model.Class, diag.Pos) {
	if p.Fabric == nil {
		return nil, diag.Pos{}
	}
	named := p.Fabric.NCCL.Class
	if i := slices.IndexFunc(p.Fabric.Apps, func(a model.Application) bool { return a.Name == "nccl" }); i >= 0 && !named.Set {
		named = p.Fabric.Apps[i].Class
	}
	return classOf(p, named.V), named.Pos()
}
