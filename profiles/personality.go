package profiles

import (
	"cmp"
	"slices"
	"sort"
	"sync"
)

// Status says what fabricctl may do with a NIC of a driver.
type Status string

// The statuses.
const (
	Managed     Status = "managed"     // its settings may be owned
	Observed    Status = "read-only"   // they are read and compared, and never written
	Unsupported Status = "unsupported" // it is not a NIC of such a fabric: not even read for it
)

// Support says whether a driver has an object.
type Support string

// The kinds of support. The zero value stands for SupportUnknown.
const (
	SupportSet     Support = "settable"
	SupportShown   Support = "read-only" // it is shown; a set is refused, or acknowledged and dropped
	SupportNone    Support = "absent"    // a set of it is acknowledged all the same: the kernel drops what a driver has no operation for
	SupportUnknown Support = "unknown"   // probe it: what a get answers is there
)

// Object is a setting of dcbnl: whether the driver has it, and what a set does. A set of what is there already is never sent.
type Object struct {
	Support Support
	Effect  Effect
}

// The dcbnl objects that are written, in the order that suits every driver that is known: entries of the application table turn a
// port to DSCP and may reset its traffic classes, and pausing follows the classes.
const (
	ObjectApp    = "app"
	ObjectETS    = "ets"
	ObjectPFC    = "pfc"
	ObjectBuffer = "buffer"
)

// Objects are those objects, in that order.
func Objects() []string { return []string{ObjectApp, ObjectETS, ObjectPFC, ObjectBuffer} }

// Words of Personality.AppEntries.
const (
	AppAll  = "all"  // give every code point an entry: only then is the table whole when it is read back
	AppUsed = "used" // give only those code points an entry that a class uses
)

// Words of Personality.AppReplace.
const (
	AppInPlace       = "in-place"        // adding the new priority replaces the old; deleting the old then answers ENOENT, which is success
	AppAddDelete     = "add-then-delete" // both stand for a moment
	AppDeleteAdd     = "delete-then-add" // adding a second priority is refused
	AppReplaceUnsure = "unknown"         // add, read back, delete what is too much
)

// Words of Personality.PFCDelay.
const (
	DelayMetres = "metres"  // 1 to 999 is the length of the cable in metres, and sizes buffers
	DelayStored = "stored"  // kept and shown, of no effect
	DelayShown  = "shown"   // shown, a set does not change it
	DelayNone   = "unused"  // nothing happens with it
	DelayUnsure = "unknown" // no source says
)

// Words of Personality.DCBXOwn.
const (
	OwnOrHost   = "or-host"   // what is in force, with the host bit added
	OwnHostIEEE = "host-ieee" // exactly host and ieee
	OwnNothing  = "none"      // there is nothing to set
)

// Words of Personality.DCBXForeign.
const (
	ForeignNoHost     = "no-host"     // the host bit is missing: firmware rules
	ForeignLLDManaged = "lld-managed" // the bit of a link layer daemon is set: firmware, or one on the host
	ForeignCEE        = "cee"         // the mode before IEEE is in force: an IEEE set is refused
)

// Personality is how the driver of a NIC behaves when it is set: what it supports, ignores, resets or flaps on. Facts of a
// chip (speeds, defaults) are a NIC's.
type Personality struct {
	Name        string // "mlx5"
	Description string // for people
	Status      Status
	Why         string   // why it is not Managed, and what then; "" = it is
	Drivers     []string // Linux network and RDMA drivers that it is about
	PCI         []string // where one driver serves several: vendor:device of those that it is about; empty = all

	App, ETS, PFC, Buffer Object // see Objects
	MaxRate               Support
	DCBX                  Object // the mode of DCBX

	AppEntries       string      // AppAll, AppUsed; "" = AppUsed
	AppReplace       string      // AppInPlace, …; "" = AppReplaceUnsure
	AppPriorityIsTC  bool        // an entry's priority names a traffic class, and is below TrafficClasses
	AppDefault       [64]int8    // priority of a code point without an entry; -1 = not known
	AppDeleted       string      // where a code point goes whose entry is deleted, in words; "" = not known
	AppStatusUnclear bool        // answers positive statuses, which are neither success nor failure: only reading back decides
	AppResets        []string    // objects that the first entry for a code point sets back, see Objects
	TrafficClasses   int         // 0 = not known
	TSA              []string    // transmission selection that it takes: "strict", "ets", "vendor"; empty = not known
	ETSFloor         bool        // an ETS class needs a bandwidth of at least 1 %
	PFCByTC          bool        // pausing is by traffic class: all priorities of one are paused together
	PFCPriorities    int         // most priorities that may be lossless at once; 0 = not known
	PFCDelay         string      // DelayMetres, …; "" = DelayUnsure
	ReadsCache       bool        // a get shows what was last set this way, not what the hardware does
	Order            []string    // in which its dcbnl objects are set; see Objects for the default
	DCBXOwn          string      // how the host takes the settings: OwnOrHost, …; "" = OwnNothing
	DCBXForeign      []string    // by which signs another owns them: ForeignNoHost, …
	DCBXRemedy       string      // what a person does against that, exactly
	LLDPFlag         string      // private flag of ethtool that is on while firmware owns the settings; "" = none
	PauseAutoneg     bool        // link pause is set only with its negotiation off
	PauseNeedsNoPFC  bool        // link pause cannot be read or set while PFC is on
	BondRefuses      bool        // dcbnl is refused while the port is in a bond
	MTUEffect        Effect      // of a new MTU
	PauseEffect      Effect      // of setting link pause
	RingEffect       Effect      // of new ring sizes
	FECEffect        Effect      // of another FEC
	RoCEVersions     []string    // "v1", "v2": kinds of entries in its GID tables; empty = not known
	Knobs            []NamedKnob // those with a file or command, in the order of KnobNames; of rdma_cm also those of "generic"
	Counters         []Counting  // what the driver counts, with those of "generic" after its own
	Traps            []string    // what goes wrong with it, a sentence each
	Verified         bool        // tried on a real adapter
	Source           string
	Confidence       string
}

// newPersonality is one of which nothing is known.
func newPersonality(name string) Personality {
	p := Personality{Name: name}
	for i := range p.AppDefault {
		p.AppDefault[i] = -1
	}
	return p
}

// NamedKnob is a knob of a personality.
type NamedKnob struct {
	Name string // one of KnobNames
	Knob
}

// Knob finds a knob by its name.
func (p Personality) Knob(name string) (Knob, bool) {
	i := slices.IndexFunc(p.Knobs, func(k NamedKnob) bool { return k.Name == name })
	if i < 0 {
		return Knob{}, false
	}
	return p.Knobs[i].Knob, true
}

// Object is a dcbnl object by its name, one of Objects.
func (p Personality) Object(name string) Object {
	switch name {
	case ObjectApp:
		return p.App
	case ObjectETS:
		return p.ETS
	case ObjectPFC:
		return p.PFC
	case ObjectBuffer:
		return p.Buffer
	}
	return Object{Support: SupportUnknown, Effect: EffectUnknown}
}

// EffectOf is what a write of a setting does to traffic, by the scope and field that the linux dialect names it with: "pfc",
// "priorities". What is not said is EffectUnknown: a firmware's agent that goes (scope "flag") may take its settings along.
func (p Personality) EffectOf(scope, field string) Effect {
	e := EffectUnknown
	switch scope {
	case "pci", "irq": // no driver is asked
		e = EffectNone
	case "link":
		e = p.MTUEffect
	case "pause":
		e = p.PauseEffect
	case "ring":
		e = p.RingEffect
	case "fec":
		e = p.FECEffect
	case "dcbx":
		e = p.DCBX.Effect
	case ObjectApp, ObjectETS, ObjectBuffer:
		e = p.Object(scope).Effect
	case ObjectPFC:
		if e = p.PFC.Effect; field == "delay" { // drivers look at the priorities; the delay sizes buffers at most
			e = p.Buffer.Effect
		}
	}
	if k, ok := p.Knob(scope + "." + field); ok && (e == "" || e == EffectUnknown) {
		e = k.Effect
	}
	return cmp.Or(e, EffectUnknown)
}

// Generic is the personality of a NIC that no other fits: it is probed, and offered read-only.
const Generic = "generic"

// people are the personalities of a catalog, made when the first of them is asked for: each NIC of each host asks.
type people struct {
	once   sync.Once
	byName map[string]*Personality
	own    map[string]bool // a user described it, or changed it
	names  []string        // sorted
}

// personalities are those of c, whole.
func (c *Catalog) personalities() *people {
	p := &c.people
	p.once.Do(func() {
		p.names, p.byName, p.own = c.NamesOf(KindPersonality), map[string]*Personality{}, map[string]bool{}
		knobs := KnobNames()
		for _, name := range p.names {
			r := c.find(KindPersonality, name)
			x := r.personality
			if g := c.find(KindPersonality, Generic); g != nil && name != Generic {
				x.Counters = slices.Concat(x.Counters, g.personality.Counters)
				x.Knobs = slices.Clone(x.Knobs)
				for _, k := range g.personality.Knobs {
					if _, own := x.Knob(k.Name); !own {
						x.Knobs = append(x.Knobs, k)
					}
				}
				sort.Slice(x.Knobs, func(i, j int) bool {
					return slices.Index(knobs, x.Knobs[i].Name) < slices.Index(knobs, x.Knobs[j].Name)
				})
			}
			p.byName[name], p.own[name] = &x, !r.entry.BuiltIn()
		}
	})
	return p
}

// PersonalityNamed finds a personality by its name. Its lists are the catalog's, and not to be changed.
func (c *Catalog) PersonalityNamed(name string) (Personality, bool) {
	p, ok := c.personalities().byName[name]
	if !ok {
		return Personality{}, false
	}
	return *p, true
}

// Personality is the one for a NIC with this driver (network or RDMA) and PCI id ("15b3:1021"; "" = not known): one that names
// the driver and the id, else one that names the driver alone, else one that names the id alone, else Generic. Among equals a
// user's own comes before what is built in, and then the first by name.
func (c *Catalog) Personality(driver, pci string) Personality {
	all := c.personalities()
	best, rank := Generic, 0
	for _, name := range all.names {
		if n := all.byName[name].fits(driver, pci, all.own[name]); n > rank {
			best, rank = name, n
		}
	}
	if p := all.byName[best]; p != nil {
		return *p
	}
	return newPersonality(Generic) // of an empty catalog
}

// PersonalityOf is the one for a NIC that a model names, without a host to ask.
func (c *Catalog) PersonalityOf(n NIC) Personality {
	pci := ""
	if len(n.PCI) > 0 {
		pci = n.PCI[0]
	}
	if p := c.Personality(n.Driver, pci); p.Name != Generic || n.RDMADriver == "" {
		return p
	}
	return c.Personality(n.RDMADriver, pci)
}

// fits ranks how well p fits, 0 = not at all.
func (p *Personality) fits(driver, pci string, own bool) int {
	byDriver, byPCI := driver != "" && slices.Contains(p.Drivers, driver), pci != "" && slices.Contains(p.PCI, pci)
	rank := 0
	switch {
	case byDriver && byPCI:
		rank = 6
	case byDriver && len(p.PCI) == 0:
		rank = 4
	case byPCI && len(p.Drivers) == 0:
		rank = 2
	default:
		return 0
	}
	if own {
		rank++
	}
	return rank
}
