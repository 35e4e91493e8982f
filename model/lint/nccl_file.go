package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ncclPatience = Rule{
	ID:       "nccl-patience",
	Title:    "NCCL notices a loss while somebody still looks for it",
	Severity: diag.Info,
	Areas:    intent.AreaSet(intent.AreaNCCL),
	Run:      runNCCLPatience,
}

// longPatience is how long NCCL may go on sending to somebody who does not answer before it hides what is wrong.
const longPatience = units.Minute

// patient is a timeout of NCCL with its retries.
type patient struct {
	timeout, tries uint8
	line           diag.Pos
	active         bool
}

func runNCCLPatience(p *Pass) {
	var bad causes[patient]
	for _, pl := range p.Places {
		n := pl.Policy.NCCL
		if !pl.Device.Host || !pl.Knows(intent.AreaNCCL) || !n.On || n.Timeout == 0 || !rdma(pl.Port) {
			continue
		}
		if k := (patient{n.Timeout, tries(n), pl.Origin("nccl.timeout").At(), pl.Active}); k.gives() > longPatience {
			bad.add(k, pl)
		}
	}
	for k, w := range bad.all {
		one := units.Duration(4096) << min(k.timeout, 31)
		p.report(w, diag.Finding{
			Pos: k.line, Related: []diag.Related{setHere("retry_count", w.first.Origin("nccl.retry_count"))},
			Msg: fmt.Sprintf("NCCL on %s waits %v for each lost packet and gives up after %v (timeout %d, retry_count %d): a fabric that loses packets is slow, and no job says so",
				w.names(), round(one), round(k.gives()), k.timeout, k.tries),
			Hint: fmt.Sprintf("lower timeout to at most %d, which gives up after %v, once the fabric loses nothing", k.short(), round(patient{timeout: k.short(), tries: k.tries}.gives())),
		})
	}
}

// tries is how often a send is repeated; NCCL's own 7 when the file does not say.
func tries(n intent.NCCL) uint8 { return cmp.Or(n.RetryCount, 7) }

// gives is how long it takes until a job fails: 4.096us times 2 to the timeout for each send, of which there is one more
// than retries (InfiniBand Architecture Specification).
func (k patient) gives() units.Duration {
	return units.Duration(4096) << min(k.timeout, 31) * units.Duration(k.tries+1)
}

// short is the longest timeout that is not too patient.
func (k patient) short() uint8 {
	for k.timeout > 1 && k.gives() > longPatience {
		k.timeout--
	}
	return k.timeout
}

// round is d to the tenth of a second, and above a minute to the second.
func round(d units.Duration) units.Duration {
	to := units.Second / 10
	if d > units.Minute {
		to = units.Second
	}
	return (d + to/2) / to * to
}

var ncclGID = Rule{
	ID:       "nccl-gid",
	Title:    "no GID index is pinned where NCCL finds the GID by itself",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaNCCL),
	Run:      runNCCLGID,
}

// pinned is a GID index in an NCCL file.
type pinned struct {
	gid    int16
	line   diag.Pos
	active bool
}

func runNCCLGID(p *Pass) {
	if p.Fabric != nil && p.Fabric.NCCL.Version.Set && p.Fabric.NCCL.Version.V < model.FirstAutoGID {
		return // it needs one
	}
	var bad causes[pinned]
	for _, pl := range p.Places {
		if n := pl.Policy.NCCL; pl.Device.Host && pl.Knows(intent.AreaNCCL) && n.On && n.GID != 0 && rdma(pl.Port) {
			bad.add(pinned{n.GID, pl.Origin("nccl.gid_index").At(), pl.Active}, pl)
		}
	}
	for k, w := range bad.all {
		which := "the index that the address has at the moment"
		if k.gid > 0 {
			which = fmt.Sprintf("index %d", k.gid-1)
		}
		p.report(w, diag.Finding{
			Pos:  k.line,
			Msg:  fmt.Sprintf("NCCL_IB_GID_INDEX on %s pins %s: it moves when a link flaps or an address is added, and jobs then fail or send unmarked", w.names(), which),
			Hint: fmt.Sprintf("remove NCCL_IB_GID_INDEX, since NCCL from %s on finds the GID by itself, or give nccl.version where an older one is in use", model.FirstAutoGID),
		})
	}
}
