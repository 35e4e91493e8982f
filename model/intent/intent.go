// Package intent holds the one type that says what a fabric agrees on: Net. A Net is made from a model (Resolve:
// what is wanted), from devices (render's Lift and Join: what is live), or from both (Mix: a rollout half way).
// Lint, the simulator, the ordering of a rollout, check and import all read a Net and do not care which it was.
//
// Policy is the behaviour of one port. It is comparable and free of pointers, so equal behaviour is == and ports
// share interned policies. Where values came from lives beside it, in Device.Origins.
package intent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// Area is one part of a port's configuration that is owned, known or ignored as a whole.
type Area uint8

const (
	AreaMTU       Area = iota // frame size
	AreaMaps                  // DSCP to traffic class, traffic class to queue and priority group, trust
	AreaPFC                   // which priorities are lossless
	AreaECN                   // marking ramps
	AreaBuffer                // xoff, xon, headroom, pools
	AreaScheduler             // strict and weights
	AreaWatchdog              // PFC watchdog
	AreaNCCL                  // the host's NCCL file
	AreaRoCE                  // hosts: mode and ToS of RDMA connections, and what overrides the application's
	AreaCC                    // hosts: the NIC's congestion control, and the class of its CNPs
	AreaSystem                // hosts: PCIe, interrupts, rings, FEC, locked memory
	NumAreas                  // how many there are
)

var areaNames = [NumAreas]string{"mtu", "maps", "pfc", "ecn", "buffer", "scheduler", "watchdog", "host-nccl", "host-roce", "host-cc", "host-system"}

// String is the name used under `manage` in a model.
func (a Area) String() string { return areaNames[a] }

// ParseArea finds an area by its model name.
func ParseArea(s string) (Area, bool) {
	i := slices.Index(areaNames[:], s)
	return Area(max(i, 0)), i >= 0
}

// Areas is a set of areas.
type Areas uint16

// AreaSet is the set of the areas given.
func AreaSet(as ...Area) Areas {
	var s Areas
	for _, a := range as {
		s |= 1 << a
	}
	return s
}

// Names are the areas of s by their model names, in order.
func (s Areas) Names() []string {
	var names []string
	for a := range NumAreas {
		if s.Has(a) {
			names = append(names, a.String())
		}
	}
	return names
}

// MarshalText writes the names of the areas, so that journals and plan files outlive a new area.
func (s Areas) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// AppendText appends what MarshalText writes: a journal has it for each port.
func (s Areas) AppendText(b []byte) ([]byte, error) {
	first := true
	for a := range NumAreas {
		if !s.Has(a) {
			continue
		}
		if !first {
			b = append(b, ' ')
		}
		b, first = append(b, a.String()...), false
	}
	return b, nil
}

// UnmarshalText reads what MarshalText writes.
func (s *Areas) UnmarshalText(b []byte) error {
	*s = 0
	for _, name := range strings.Fields(string(b)) {
		a, ok := ParseArea(name)
		if !ok {
			return fmt.Errorf("there is no area %q", name)
		}
		*s |= 1 << a
	}
	return nil
}

// Has reports whether a is in s.
func (s Areas) Has(a Area) bool { return s&(1<<a) != 0 }

// SwitchAreas is what a port of every switch speaks about; HostAreas the same for a host's NIC. AreasOf has the rest.
const (
	SwitchAreas = Areas(1<<AreaMTU | 1<<AreaMaps | 1<<AreaPFC | 1<<AreaECN | 1<<AreaScheduler | 1<<AreaWatchdog)
	HostAreas   = Areas(1<<AreaMTU | 1<<AreaMaps | 1<<AreaPFC | 1<<AreaBuffer | 1<<AreaScheduler | 1<<AreaNCCL | 1<<AreaRoCE | 1<<AreaCC | 1<<AreaSystem)
)

// AreasOf is what a port speaks about on devices of an operating system, such as "sonic". What is not among them is
// unknown there, whoever asks for it: unknown is not off.
func AreasOf(os string) Areas {
	switch os {
	case "linux":
		return HostAreas
	case "sonic":
		return SwitchAreas | AreaSet(AreaBuffer)
	}
	return SwitchAreas
}

// Mode is the ownership of an area.
type Mode uint8

const (
	Observe Mode = iota // linted and checked, never written; the default
	Own                 // written
	Ignore              // not looked at
)

// String is the word used in a model.
func (m Mode) String() string { return [...]string{"observe", "own", "ignore"}[m] }

// Manage says who owns each area of a port or device.
type Manage [NumAreas]Mode

// Owned is the set of areas with mode Own.
func (m Manage) Owned() Areas { return m.with(Own) }

func (m Manage) with(mode Mode) Areas {
	var s Areas
	for a, x := range m {
		if x == mode {
			s |= 1 << a
		}
	}
	return s
}

// manageJSON is a Manage in journals and plan files: by name, with what is observed left out.
type manageJSON struct {
	Own    Areas `json:"own,omitempty"`
	Ignore Areas `json:"ignore,omitempty"`
}

// MarshalJSON writes the areas that are owned and ignored, by name.
func (m Manage) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 128), '{')
	for _, mode := range [...]Mode{Own, Ignore} {
		s := m.with(mode)
		if s == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), mode.String()...), `":"`...)
		b, _ = s.AppendText(b) // cannot fail, and names need no escapes
		b = append(b, '"')
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Manage) UnmarshalJSON(b []byte) error {
	var j manageJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*m = Manage{}
	for a := range NumAreas {
		switch {
		case j.Own.Has(a):
			m[a] = Own
		case j.Ignore.Has(a):
			m[a] = Ignore
		}
	}
	return nil
}

// State is the lifecycle of a device, port or host. Only active ones can fail a plan.
type State uint8

const (
	Active State = iota
	Planned
	Maintenance
	Absent
)

// String is the word used in a model.
func (s State) String() string { return [...]string{"active", "planned", "maintenance", "absent"}[s] }

// Unmapped is the traffic class of a code point that no map entry names.
const Unmapped = 0xff

// Trust says which header field classifies a packet.
type Trust uint8

const (
	TrustUnknown Trust = iota
	TrustDSCP
	TrustPCP
	TrustNone
)

// String is the word that findings use.
func (t Trust) String() string { return [...]string{"unknown", "dscp", "pcp", "none"}[t] }

// ECN is a RED marking ramp at the egress queue; the zero ECN means that the queue does not mark.
type ECN struct {
	On         bool
	Kmin, Kmax units.Bytes   // instantaneous queue length in bytes where marking starts and reaches Pmax
	Pmax       units.Percent // marking probability at Kmax; above it every packet is marked
}

// Buffer is the ingress buffer of one lossless priority; the zero Buffer is none. Headroom is what is kept for packets
// that still arrive after the pause was sent (SONiC's xoff); the pause threshold is Static or Alpha, not both.
type Buffer struct {
	On        bool        `json:",omitzero"` // there is a buffer for lossless traffic
	Device    bool        `json:",omitzero"` // the device fills in the rest, from speed, cable and a table of its own
	Static    units.Bytes `json:",omitzero"` // pause threshold in bytes; 0 = it is dynamic
	Alpha     units.Ratio `json:",omitzero"` // dynamic pause threshold: this many times the pool's free bytes
	Headroom  units.Bytes `json:",omitzero"` // bytes for what arrives after the pause
	Xon       units.Bytes `json:",omitzero"` // sending goes on when no more than this is held; 0 = XonOffset alone says it
	XonOffset units.Bytes `json:",omitzero"` // or when this much less is held than the pause threshold of the moment; 0 = none
	Reserved  units.Bytes `json:",omitzero"` // bytes that the priority group has to itself, as the device counts them
}

// Pools are the buffer pools of a device that lossless traffic is in; zero fields are not known.
type Pools struct {
	Shared   units.Bytes `json:",omitzero"` // what lossless traffic shares at the ingress, headroom not counted
	Headroom units.Bytes `json:",omitzero"` // headroom that all priority groups share; 0 = each has its own, or not known
	Egress   units.Bytes `json:",omitzero"` // what lossless traffic shares at the egress
	Static   bool        `json:",omitzero"` // pause thresholds in the shared pool are bytes, not parts of what is free
}

// Queue is the behaviour of one priority and its egress queue.
type Queue struct {
	Used     bool  `json:",omitzero"` // it has a scheduler of its own: strict, or weighted with or without a weight
	Lossless bool  `json:",omitzero"` // PFC: we send pause for this priority and obey it
	Strict   bool  `json:",omitzero"` // strict priority; otherwise DWRR by Weight
	Weight   uint8 `json:",omitzero"` // DWRR weight; 0 = none given
	ECN      ECN   `json:",omitzero"`
	Drop     bool  `json:",omitzero"` // WRED drops instead of marking

	Buffer Buffer `json:",omitzero"`
}

// Action is what the PFC watchdog does with a stuck queue.
type Action uint8

const (
	ActionNone    Action = iota
	ActionDrop           // discard what is in and arrives for the queue
	ActionForward        // ignore pause and send
	ActionAlert          // report only
)

// String is the word used in a model.
func (a Action) String() string { return [...]string{"none", "drop", "forward", "alert"}[a] }

// Watchdog is the PFC watchdog of a port; the zero value means off. Times are in milliseconds; Poll 0 is the device's
// own choice.
type Watchdog struct {
	On                    bool
	Detect, Restore, Poll int32
	Action                Action
	Skips                 uint8 `json:",omitzero"` // lossless priorities, as bits, that it does not watch
}

// Pause is 802.3x link pause, which stops all priorities of a link; the zero value means that it is off, or that the
// source has no such setting.
type Pause struct {
	Send    bool // we pause the neighbour
	Receive bool // we obey the neighbour's pause
}

// String is "send and receive", "send", "receive", or "none".
func (p Pause) String() string {
	switch p {
	case Pause{true, true}:
		return "send and receive"
	case Pause{Send: true}:
		return "send"
	case Pause{Receive: true}:
		return "receive"
	}
	return none
}

// Policy is the behaviour of one port: comparable and free of pointers. Arrays are indexed by DSCP, by traffic
// class or by priority; priorities and traffic classes have the same numbers in the model.
type Policy struct {
	Known    Areas       // what the source of this policy speaks about; unknown is not off
	MTU      units.Bytes // switch: L2 frame size without FCS; host: netdev MTU
	Trust    Trust
	DSCP     [64]uint8 // traffic class of each code point, or Unmapped
	TCQueue  [8]uint8  // egress queue of each traffic class, or Unmapped
	TCPG     [8]uint8  // ingress priority group of each traffic class, or Unmapped
	PFCQueue [8]uint8  // queue stopped by a received pause of each priority, or Unmapped
	Queues   [8]Queue
	Cable    units.Length `json:",omitzero"` // what the device is told about its cable, part of AreaBuffer; 0 = nothing
	Pause    Pause        `json:",omitzero"` // part of AreaPFC, since the two exclude each other
	Watchdog Watchdog     `json:",omitzero"`
	NCCL     NCCL         `json:",omitzero"`
	RoCE     RoCE         `json:",omitzero"`
	CC       Congestion   `json:",omitzero"`
	System   System       `json:",omitzero"`
}

// Only is p reduced to the areas in s: everything else is unknown and zero. Two sources that speak about different
// areas are compared on what both know.
func (p Policy) Only(s Areas) Policy {
	s &= p.Known
	q := Policy{Known: s}
	if s.Has(AreaMTU) {
		q.MTU = p.MTU
	}
	if s.Has(AreaMaps) {
		q.Trust, q.DSCP, q.TCQueue, q.TCPG, q.PFCQueue = p.Trust, p.DSCP, p.TCQueue, p.TCPG, p.PFCQueue
	}
	for i, x := range p.Queues {
		y := &q.Queues[i]
		if s.Has(AreaScheduler) {
			y.Used, y.Strict, y.Weight = x.Used, x.Strict, x.Weight
		}
		if s.Has(AreaPFC) {
			y.Lossless = x.Lossless
		}
		if s.Has(AreaECN) {
			y.ECN, y.Drop = x.ECN, x.Drop
		}
		if s.Has(AreaBuffer) {
			y.Buffer = x.Buffer
		}
	}
	if s.Has(AreaBuffer) {
		q.Cable = p.Cable
	}
	if s.Has(AreaPFC) {
		q.Pause = p.Pause
	}
	if s.Has(AreaWatchdog) {
		q.Watchdog = p.Watchdog
	}
	if s.Has(AreaNCCL) {
		q.NCCL = p.NCCL
	}
	if s.Has(AreaRoCE) {
		q.RoCE = p.RoCE
	}
	if s.Has(AreaCC) {
		q.CC = p.CC
	}
	if s.Has(AreaSystem) {
		q.System = p.System
	}
	return q
}

// Lossless is the sorted list of the lossless priorities.
func (p *Policy) Lossless() []int {
	var r []int
	for i, q := range p.Queues {
		if q.Lossless {
			r = append(r, i)
		}
	}
	return r
}

// Field names one value of a policy, for origins and explain: "mtu", "roce" (of Device.RoCE), "trust", "dscp.26", "class.3" (that the
// priority is used at all), "lossless.3", "ecn.3.kmin", "ecn.3.kmax", "ecn.3.pmax", "scheduling.3", "weight.3", "cable", "xoff.3",
// "headroom.3", "xon.3", "xon_offset.3", "reserved.3", "pause",
// "watchdog.detect", "watchdog.restore", "watchdog.poll", "watchdog.action", "watchdog.skips"; of hosts those that hostValues names.
type Field string

// OriginTable says where the values of a device came from: by Port.Variant, then by field.
// Devices share maps.
type OriginTable map[string]map[Field]*model.Origin

// Get finds an origin; nil when there is none (a live Net has none).
func (t OriginTable) Get(site string, f Field) *model.Origin { return t[site][f] }

// Port is one end of a link, or a port on its own.
type Port struct {
	Name     string        // the model's name, such as "downlink-1"
	Iface    string        // the device's name, such as "Ethernet8"; "" when the inventory does not bind it
	Peer     string        `json:",omitzero"` // name of the device at the other end, "" if none
	PeerPort string        `json:",omitzero"` // the model's name of the port at the other end
	Role     string        // "fabric", "host", "storage", "border", "peer-link", "nic" or "unused"
	IfaceAt  *model.Origin `json:"-"`         // the line or profile that names the interface
	RoleAt   *model.Origin `json:"-"`         // the line that gives the role; nil when it follows from the link
	Bond     string        `json:",omitzero"` // hosts: the bond that the port is a member of, "" if none
	Rail     int           `json:",omitzero"` // hosts: the rail, from 1; 0 = none
	NIC      string        `json:",omitzero"` // hosts: the NIC's model as in the catalog, "" when not given
	PCI      string        `json:",omitzero"` // hosts: the NIC's PCI address, "" when the inventory gives none
	RDMA     string        `json:",omitzero"` // hosts: the name of the NIC's RDMA device, such as "mlx5_0", "" when the model gives none
	IP       string        `json:",omitzero"` // hosts: the NIC's address on the fabric with the length of its prefix, "" when the inventory gives none
	IPAt     *model.Origin `json:"-"`         // the line that gives the address
	Carries  model.Carries `json:",omitzero"` // what runs over the link; 0 = not said
	Breakout int           `json:",omitzero"` // how many links the physical port carries; 0 and 1 mean that this one has it alone
	Site     string        // the override site, such as "fabric" or "leaf.leaf1"; names shared objects
	Variant  string        `json:"-"`         // where Origins has the port's: the site, and what of the link decides values besides, such as "fabric@400Gbps-40m-8"
	Ramps    uint8         `json:",omitzero"` // priorities, as bits, whose marking ramp follows from the speed: it is in the name of what holds them
	Speed    units.BitRate // bits per second
	Cable    units.Length  `json:",omitzero"` // 0 = not given
	State    State         `json:",omitzero"`
	Manage   Manage
	Policy   int32 // index into Device.Policies
}

// Known is where an inventory says who a device is; zero where it does not.
type Known struct{ Serial, Hostname, Device diag.Pos }

// Device is a switch or a host with its resolved ports.
type Device struct {
	Name     string
	Fabric   string // metadata.name of the model; part of the names of shared objects
	Role     string // "super-spine", "spine", "leaf", "host", "storage", …
	Tier     int    // 0 for hosts, 1 for what they are linked to, and so on up
	Pod      string // "pod1", "" if none
	Plane    string // "plane1", "" if none
	Platform string // "sonic/sn5600"; the part before the slash is the dialect
	Group    string // redundancy group: what stands in for each other; "" when nothing can stand in for the device
	Serial   string // expected serial number, "" if the inventory gives none
	Hostname string // expected hostname, "" if the inventory gives none
	Address  string `json:",omitempty"` // host:port that we manage it at, "" if the inventory gives none
	Known    Known  `json:"-"`          // the inventory's lines about who it is
	Way      Way    // how our own connection gets there
	Host     bool
	State    State
	Manage   Manage
	Profile  profiles.Platform `json:",omitzero"` // hardware facts
	Catalog  *profiles.Catalog `json:"-"`         // where NICs and their drivers are described; nil = what is built in
	Pools    Pools             `json:",omitzero"` // wanted: of the profile; live: as the device says
	Classes  [8]string         // class name per priority, "" = the model does not name it
	CNP      string            // name of the class that carries congestion notifications, "" = the model names none
	NCCL     HostNCCL          `json:",omitzero"` // hosts: what the NCCL file says of this host alone
	RoCE     units.Bytes       // hosts: RDMA payload (RoCE MTU) that the fabric agrees on; 0 = the model gives none
	Ports    []Port            // sorted by Name, naturally ("p2" before "p10")
	Policies []Policy          // interned
	Origins  OriginTable
}

// Net is everything that takes part in the agreement. Devices are sorted by name, naturally.
type Net struct {
	Fabric  string
	Devices []Device
	Routing Routing // what routing allows
	Routes  []Route // ways that the model lists
}

// OS is the dialect of the device: the platform up to the slash.
func (d *Device) OS() string {
	os, _, _ := strings.Cut(d.Platform, "/")
	return os
}

// Intern returns the index of p in d.Policies, adding it when it is new.
func (d *Device) Intern(p Policy) int32 {
	if i := slices.Index(d.Policies, p); i >= 0 {
		return int32(i)
	}
	d.Policies = append(d.Policies, p)
	return int32(len(d.Policies) - 1)
}

// Origin is where a value of p came from; nil when that is not known.
func (d *Device) Origin(p *Port, f Field) *model.Origin {
	if p.Variant != "" {
		return d.Origins.Get(p.Variant, f)
	}
	return d.Origins.Get(p.Site, f)
}

// PolicyOf is the policy of a port of d.
func (d *Device) PolicyOf(p *Port) *Policy { return &d.Policies[p.Policy] }

// Port finds a port by the model's name, or else by the device's name; nil when there is none.
func (d *Device) Port(name string) *Port {
	for i := range d.Ports { // a Port is large: not by value
		if d.Ports[i].Name == name {
			return &d.Ports[i]
		}
	}
	for i := range d.Ports {
		if d.Ports[i].Iface == name && name != "" {
			return &d.Ports[i]
		}
	}
	return nil
}

// Bind returns d with interface names replaced by the device's own: aliases maps a PCI address or a front-panel
// alias to the name that the device uses.
func (d Device) Bind(aliases map[string]string) Device {
	for i, cloned := 0, false; i < len(d.Ports); i++ { // most devices are modelled in their own names, and share their ports
		n := aliases[d.Ports[i].Iface]
		if n == "" {
			continue
		}
		if !cloned {
			d.Ports, cloned = slices.Clone(d.Ports), true
		}
		d.Ports[i].Iface = n
	}
	return d
}

// Device finds a device by name; nil when there is none. It is linear: loops over many names build a map.
func (n *Net) Device(name string) *Device {
	for i := range n.Devices { // a Device is large: not by value
		if n.Devices[i].Name == name {
			return &n.Devices[i]
		}
	}
	return nil
}

// Forget makes areas unknown on all ports of n.
func (n *Net) Forget(areas Areas) {
	for i := range n.Devices {
		for j := range n.Devices[i].Policies {
			p := &n.Devices[i].Policies[j]
			*p = p.Only(^areas)
		}
	}
}

// Join gives an identity (names, ports, peers, ownership: from the model) the behaviour lifted from the device,
// which Lift keys by interface name. A port whose interface the device does not show keeps its place with a policy
// that knows nothing. Origins are kept, so that a finding on a live value can point at the line that asks for it.
func Join(identity Device, lifted map[string]Policy) Device {
	d := identity
	d.Ports = slices.Clone(identity.Ports)
	d.Policies = nil
	for i := range d.Ports {
		d.Ports[i].Policy = d.Intern(lifted[d.Ports[i].Iface])
	}
	return d
}

// Mix is the Net in the middle of a rollout: devices for which done reports true are as in want, the others as in
// old. Devices that only one side has are taken from that side. Neither input is changed.
func Mix(old, want *Net, done func(device string) bool) *Net {
	m := want.With(nil)
	index := make(map[string]*Device, len(old.Devices))
	for i := range old.Devices {
		index[old.Devices[i].Name] = &old.Devices[i]
	}
	for _, d := range want.Devices {
		if o := index[d.Name]; o != nil {
			delete(index, d.Name)
			if !done(d.Name) {
				d = *o
			}
		}
		m.Devices = append(m.Devices, d)
	}
	for _, o := range old.Devices {
		if index[o.Name] != nil {
			m.Devices = append(m.Devices, o)
		}
	}
	slices.SortStableFunc(m.Devices, func(a, b Device) int { return CompareNames(a.Name, b.Name) })
	return m
}

// CompareNames orders names naturally, as the model does: "leaf2" is before "leaf10".
func CompareNames(a, b string) int { return model.CompareNames(a, b) }
