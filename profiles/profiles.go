// Package profiles holds hardware data: platforms, their ASICs and NICs, each number with its source and how far it
// is to be trusted. The data is YAML, embedded here and extended by `kind: Profile` documents of the user. Adding a
// platform is adding data, not code.
package profiles

import "github.com/fabricctl/fabricctl/model/units"

// Platform is what rendering and lint need to know about one switch model or host kind. It is comparable.
type Platform struct {
	Name        string      // "sonic/sn5600": the part before the slash is the dialect
	Description string      // for people
	ASIC        string      // "spectrum-4"
	Cell        units.Bytes // buffer cell; 0 = not known
	MaxMTU      units.Bytes // largest configurable L2 MTU; 0 = not known
	Iface       string      // pattern of generated interface names, with one %d for the port number: "Ethernet%d"
	IfaceFirst  int         // number of the first port
	IfaceStep   int         // distance between ports: 8 where a port takes 8 lanes
	TxQueue     string      // EOS: "uc-tx-queue" or "tx-queue"
	GCUFamily   string      // SONiC: family in the generic config updater's permitted-change list ("spc4")
	Verified    bool        // tried by us on a real device; until then writing needs leave
	Source      string      // where the numbers are from
	Confidence  string      // "high", "medium", "low"
}
