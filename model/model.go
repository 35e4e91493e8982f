// Package model holds what an operator writes: the fabric (kind Fabric), how its names are bound to reality (kind
// Inventory), and hardware that fabricctl does not know yet (kind Profile). Load reads YAML layers into a Fabric;
// every value remembers the line it came from and the lines it won over.
//
// The order of types is the order of work: documents are checked against one static schema, layers are merged, values
// are decoded, the topology is expanded into devices and ports, and the whole is validated. All findings of a load are
// reported together.
package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// APIVersion is the version of the documents that this package reads.
const APIVersion = "fabricctl/v1"

// Value is one scalar of the model: its value, whether it was given, and where it came from. From is never nil for a
// value that is Set; a default may have V and From without being Set.
type Value[T any] struct {
	V    T
	Set  bool
	From *Origin
}

// Pos is where the value stands, or the zero Pos.
func (v Value[T]) Pos() diag.Pos { return v.From.At() }

// Or is v when it is set, else w.
func (v Value[T]) Or(w Value[T]) Value[T] {
	if v.Set {
		return v
	}
	return w
}

// Fabric is a loaded model. It is not changed once loaded: With returns another one.
type Fabric struct {
	Name      Value[string]
	Pos       diag.Pos // of the first Fabric document
	MTU       MTU
	Classes   []Class // in the order of the model
	Watchdog  Watchdog
	NCCL      NCCL
	Hosts     Hosts
	Apps      []Application // the marking table: who marks what, in the order of the model
	Manage    FabricManage
	Adopt     Value[bool] // manage.adopt: objects bound by modelled ports alone may be taken over
	Acks      []Ack
	Roles     map[string]*Override // overrides by role; nil entries do not occur
	Routing   Value[string]        // one of RoutingNames; not Set means the first
	Routes    []Route              // ways that the model lists, in its order
	Devices   []Device             // the expanded topology, sorted naturally by name
	Endpoints map[string]*Endpoint // by device name, for every device of the topology
	Catalog   *profiles.Catalog    // the platforms known to this model: built in, and Profile documents

	shaken bool  // documents were not read, or the topology did not expand
	docs   roots // the merged documents, for With, Digest and Leaves
}

// MTU are the frame sizes of a fabric.
type MTU struct {
	Fabric Value[units.Bytes] // a switch port's L2 size without FCS
	Host   Value[units.Bytes] // a host's netdev MTU
	RoCE   Value[units.Bytes] // the RDMA payload, which the hosts' MTU has to carry
}

// Class is one traffic class. Its priority is also its traffic class and its queue.
type Class struct {
	Name      string
	Pos       diag.Pos // of the class
	Role      Value[string]
	DSCP      []Value[uint8] // in the order of the model, ranges expanded; empty for the rest class
	Rest      Value[bool]    // takes every code point that no other class names
	Priority  Value[uint8]
	Lossless  Value[bool]
	ECN       ECN
	ECNOff    Value[bool]          // ecn: off, PFC alone is meant
	Bandwidth Value[units.Percent] // share of the non-strict classes, whole percent
	Weight    Value[int]           // in place of a share: relative to the other classes' weights, which need not add up to 100
	Strict    Value[bool]          // scheduling: strict
	NoSched   Value[bool]          // scheduling: none, the queue has no scheduler of its own and the device's default holds
	Xoff      Xoff                 // where pause starts; unset: a starting value
	Headroom  Value[AutoBytes]     // kept for what arrives after the pause; unset: auto
	Xon       Value[AutoBytes]     // where sending goes on; unset: auto
	XonOffset Value[units.Bytes]   // or so far below xoff; unset: with Xon
	Reserved  Value[units.Bytes]   // what a port's group has to itself; unset: with Headroom
	FanIn     Value[int]           // ports that send to one at least when it is congested; not given = 2
	Flows     Value[int]           // of each of these ports; not given = 16
	DropNoARP Value[bool]          // drop_incomplete_arp: what has no known MAC address is dropped, not flooded
}

// ECN is a marking ramp as the model gives it; an unset field is inherited.
type ECN struct {
	Kmin, Kmax Value[units.Bytes]
	Pmax       Value[units.Percent]
}

// Xoff is where pause starts: one of static bytes, a dynamic threshold, or a share of something named.
type Xoff struct {
	Bytes Value[units.Bytes]
	Alpha Value[units.Ratio]
	Share Value[units.Percent]
	Of    Value[string]
}

// Pos is where x is given; zero where it is not.
func (x Xoff) Pos() diag.Pos { return cmp.Or(x.Bytes.Pos(), x.Alpha.Pos(), x.Share.Pos(), x.Of.Pos()) }

// AutoBytes is a size, or "auto".
type AutoBytes struct {
	Auto  bool
	Bytes units.Bytes
}

// Watchdog is the PFC watchdog as the model gives it.
type Watchdog struct {
	Detect, Restore, Poll Value[units.Duration] // whole milliseconds
	Action                Value[string]         // drop, forward, alert
}

// NCCL is what the model says about the hosts' NCCL file.
type NCCL struct {
	Class      Value[string]
	Timeout    Value[int]
	RetryCount Value[int]
	Version    Value[NCCLVersion] // the oldest in use; not set: one that finds the GID by itself
	QPs        Value[int]         // qps_per_connection
	Sockets    []Value[string]    // socket_ifname: interfaces of what is not RDMA, exactly these
	Family     Value[string]      // ipv4, ipv6; not set: that of the NICs' addresses in the inventory, else ipv4
	HCA        Value[string]      // auto, off; not set: auto
	CrossNIC   Value[int]
}

// AreaNames are the areas of ownership, as written under manage.
func AreaNames() []string {
	return []string{"mtu", "maps", "pfc", "ecn", "buffer", "scheduler", "watchdog", "host-nccl", "host-roce", "host-cc", "host-system"}
}

// Manage says who owns what: All for every area, Areas for single ones, which win. Words are own, observe, ignore.
type Manage struct {
	All   Value[string]
	Areas map[string]Value[string]
}

// areasOf are the areas that a host, or a switch, has.
func areasOf(host bool) []string {
	return slices.DeleteFunc(AreaNames(), func(a string) bool {
		if host {
			return a == "ecn" || a == "watchdog"
		}
		return strings.HasPrefix(a, "host-")
	})
}

// FabricManage is ownership at the top of the model.
type FabricManage struct{ Switches, Hosts Manage }

// Ack is an acknowledged rule: everywhere, or only for findings that are about one role or one device alone.
type Ack struct {
	Rule   Value[string]
	Reason Value[string]
	Role   Value[string]
	Device Value[string]
}

// Application is one row of the marking table: an application, the business that it belongs to, and the class that it
// sends in.
type Application struct {
	Name     string
	Pos      diag.Pos
	Business Value[string] // whose traffic it is, such as training or backup
	Class    Value[string]
	DSCP     Value[uint8] // what it marks; the class's first code point when the model does not say
}

// Override changes values for a role, a device or a port. Unset values are inherited from the level above.
type Override struct {
	Pos      diag.Pos
	State    Value[string] // active, planned, maintenance, absent
	Manage   Manage
	MTU      MTU
	Classes  []Class // only the fields that an override may change are set
	Watchdog Watchdog
	Hosts    Hosts
	Devices  map[string]*Override // of a role
	Ports    map[string]*Override // of a device
}

// Shapes reports whether o itself (not what is below it) changes behaviour, and so names a site of its own.
func (o *Override) Shapes() bool {
	return o != nil && (o.MTU.Fabric.Set || o.MTU.Host.Set || len(o.Classes) > 0 || o.Watchdog != Watchdog{} || o.Hosts != Hosts{})
}

// Device is a switch or host of the expanded topology.
type Device struct {
	Name     string
	Role     string // "super-spine", "spine", "leaf", "host", "storage", or as written
	Host     bool
	Tier     int     // 0 for hosts, 1 for what they are linked to, and so on up
	Pod      string  // "pod1"; "" without pods, and on what the pods share
	Plane    string  // "plane1"; "" without planes, and on hosts
	Group    string  // redundancy group: what stands in for each other; "" when nothing can stand in for it
	GroupAt  *Origin // the line that names the group; nil when it is derived
	Platform Value[string]
	From     *Origin   // the line that made it exist
	Override *Override // of this device, nil if none
	Ports    []Port    // downlinks, uplinks, then others by name
}

// Port is one end of a link, or a port on its own.
type Port struct {
	Name     string
	Iface    Value[string] // the device's name; not Set when nothing binds it
	Role     string        // "fabric", "host", "storage", "border", "peer-link", "nic", "unused"
	RoleAt   *Origin       // the line that gives the role; nil when it follows from the link
	Peer     string        // device at the other end
	PeerPort string
	Speed    Value[units.BitRate]
	Cable    Value[units.Length]
	Breakout int            // how many links its physical port carries; 0 and 1 mean that it has it alone
	Bond     string         // of a host's port: the bond that it is a member of, "" if none
	Rail     int            // of a host's port: its rail, from 1; 0 = not on a rail
	NIC      Value[string]  // of a host's port: the NIC's model
	PCI      Value[string]  // of a host's port: the NIC's PCI address, where the inventory gives one
	RDMA     Value[string]  // of a host's port: the name of its RDMA device, such as mlx5_0, where the model gives one
	IP       Value[string]  // of a host's port: its address on the fabric, with the length of its prefix
	Carries  Value[Carries] // what runs over the link; 0 = not said
	From     *Origin        // the line that made it exist
	Override *Override      // of this port, nil if none

	laidOut bool // made by counts; on a switch its physical port is counted
}

// Carries is a set of what runs over a link.
type Carries uint8

// What a link may carry.
const (
	CarriesRDMA Carries = 1 << iota
	CarriesStorage
	CarriesManagement
)

// CarriesNames are the words of a model for what a link carries, in the order of the bits.
func CarriesNames() []string { return []string{"rdma", "storage", "management"} }

// Words are the words of c.
func (c Carries) Words() []string {
	var ws []string
	for i, w := range CarriesNames() {
		if c&(1<<i) != 0 {
			ws = append(ws, w)
		}
	}
	return ws
}

// String is the words of c, with spaces between them.
func (c Carries) String() string { return strings.Join(c.Words(), " ") }

// Endpoint is how to reach a device and how to know that it is the right one. Strings that may hold secrets are
// references (env:, file:, exec:), never resolved here.
type Endpoint struct {
	Device   string
	Pos      diag.Pos // of the device in the inventory; zero when the inventory does not name it
	Address  Value[string]
	Platform Value[string] // for doctor and import, which need no topology; where there is one, both agree
	Serial   Value[string]
	Hostname Value[string]
	Groups   []string // groups of the inventory that it is in, in their order
	Lab      Value[bool]
	GNMI     GNMI
	SSH      SSH

	Management     Value[string] // InBand or OutOfBand
	ManagementPort Value[string] // port that our way in takes, in-band only; not Set when any may
}

// HostPort is host:port that a device is managed at which speaks the dialect os; "" when the inventory gives no address.
func (e *Endpoint) HostPort(os string) string {
	if !e.Address.Set {
		return ""
	}
	port := e.SSH.Port.V
	if os == "sonic" {
		port = e.GNMI.Port.V
	}
	host := strings.ToLower(e.Address.V)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// GNMI is how to reach a device over gNMI.
type GNMI struct {
	Port       Value[int]
	CA         Value[string] // reference
	Cert       Value[string] // reference
	Key        Value[string] // reference
	ServerName Value[string]
	Insecure   Value[bool]   // the certificate is not verified
	Plaintext  Value[bool]   // no TLS at all
	Username   Value[string] // text or reference
	Password   Value[string] // reference
	Via        Value[string] // jump hosts as Hops reads them, entered as the ssh section says
}

// SSH is how to reach a device over SSH.
type SSH struct {
	Port       Value[int]
	Username   Value[string] // text or reference
	Password   Value[string] // reference
	Enable     Value[string] // enable_password, reference
	Key        Value[string] // reference
	KnownHosts Value[string] // reference
	Via        Value[string] // jump hosts as Hops reads them
	Insecure   Value[bool]
}

// Edit sets one scalar: Path is the keys from the top of the Fabric document, list elements by name
// ("classes.training.ecn.kmin"); Value is written as in YAML ("800KB").
type Edit struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Patch is a set of edits, applied together.
type Patch []Edit

// Leaf is one scalar of the merged documents.
type Leaf struct {
	Path string // keys joined by ".", list elements by name, or by [n] where they have none
	Text string // as written
	From *Origin
}
