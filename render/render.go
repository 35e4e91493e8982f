// Package render turns resolved intent into device configuration and back. A dialect is one row of a table: how a
// device's settings are named and written (Render, Text), read (Parse), understood (Lift) and changed (Refs, Windows,
// Phase, Risk, Lines). Everything is a pure function of its inputs: no I/O, no clock, same input, same bytes.
//
// A configuration is a set of Settings, each the smallest thing that can be compared on its own. Parse reads all that
// it understands, owned or not; the engine keeps what the model owns. Lift(Render(d)) equals d's policies by value.
package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// Prefix starts the name of every shared object that fabricctl creates; dialects change case and separators as the
// target needs. An object with this prefix is ours.
const Prefix = "fctl"

// NeedsAdoption is the rule of findings that stand only while nothing is adopted: whether they do is known when the
// device is planned.
const NeedsAdoption = "needs-adoption"

const ownTogether = "own maps, pfc, ecn, scheduler and watchdog together"

// AdoptedInVain corrects the hints of NeedsAdoption among l, the findings of a device with which adoption was tried: it
// came to nothing, and trying it again would, too.
func AdoptedInVain(l diag.List) {
	hint := "--adopt finds no service-profile bound there to edit; "
	if slices.ContainsFunc(l, func(x diag.Finding) bool { return x.Rule == "adopt" }) {
		hint = "--adopt cannot edit what is bound, adopt says why; "
	}
	for i := range l {
		if l[i].Rule == NeedsAdoption {
			l[i].Hint = hint + ownTogether
		}
	}
}

// Key names one setting. Object is the smallest thing that the device writes as one, spelled as the device spells
// it; Field is a part of it. Field "" is the object itself: that it exists, or its only value.
//
//	SONiC   {"QUEUE", "Ethernet0|3", "wred_profile"}
//	EOS     {"qos profile X>uc-tx-queue 3", "random-detect ecn", "minimum-threshold"}
//	Linux   {"link", "eth0", "mtu"}
type Key struct{ Scope, Object, Field string }

// String is scope, object and field joined by "|", for people.
func (k Key) String() string {
	return strings.Trim(k.Scope+"|"+k.Object+"|"+k.Field, "|")
}

// Compare orders keys by scope, object and field.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Scope, o.Scope); c != 0 {
		return c
	}
	if c := strings.Compare(k.Object, o.Object); c != 0 {
		return c
	}
	return strings.Compare(k.Field, o.Field)
}

// Words are the names that a key is made of, interfaces among them.
func (k Key) Words() []string {
	return strings.FieldsFunc(k.Scope+" "+k.Object, func(r rune) bool { return strings.ContainsRune(" |>,", r) })
}

// Whole is the key of k's object.
func (k Key) Whole() Key { return Key{k.Scope, k.Object, ""} }

// MarshalJSON writes a key as an array of three strings.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal([3]string{k.Scope, k.Object, k.Field})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *Key) UnmarshalJSON(b []byte) error {
	var a []string
	if err := json.Unmarshal(b, &a); err != nil || len(a) != 3 {
		return fmt.Errorf("%.80s is not a key: a key is a list of three strings", b)
	}
	*k = Key{a[0], a[1], a[2]}
	return nil
}

// Setting is one value. Value is canonical for the dialect: equal behaviour is written the same way where the dialect
// can know it, and Same covers the rest. From is nil for what was read from a device.
type Setting struct {
	Key   Key
	Value string
	From  *model.Origin
}

// Config is a set of settings, sorted by key, one per key.
type Config []Setting

// Sorted sorts c in place by key and returns it.
func (c Config) Sorted() Config {
	slices.SortFunc(c, func(a, b Setting) int { return a.Key.Compare(b.Key) })
	return c
}

// Find returns the value at k; ok is false when c has none.
func (c Config) Find(k Key) (value string, ok bool) {
	i, ok := c.place(k)
	if !ok {
		return "", false
	}
	return c[i].Value, true
}

// place is where k stands, or would stand.
func (c Config) place(k Key) (int, bool) {
	lo, hi := 0, len(c)
	for lo < hi {
		if mid := (lo + hi) / 2; c[mid].Key.Compare(k) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(c) && c[lo].Key == k
}

// scope is the part of c in a scope. It shares c's memory.
func (c Config) scope(name string) Config {
	from, _ := c.place(Key{Scope: name})
	to := from
	for to < len(c) && c[to].Key.Scope == name {
		to++
	}
	return c[from:to]
}

// Get is Find by parts, with "" for what is absent.
func (c Config) Get(scope, object, field string) string {
	v, _ := c.Find(Key{scope, object, field})
	return v
}

// Filter is the part of c whose keys satisfy keep.
func (c Config) Filter(keep func(Key) bool) Config {
	var r Config
	for i := range c {
		if keep(c[i].Key) {
			if r == nil {
				r = make(Config, 0, len(c)-i)
			}
			r = append(r, c[i])
		}
	}
	return r
}

// Equal reports whether c and o hold the same keys and values.
func (c Config) Equal(o Config) bool {
	return slices.EqualFunc(c, o, func(a, b Setting) bool { return a.Key == b.Key && a.Value == b.Value })
}

// Names maps an object that Render would create (Key with Field "") to the live object that stands in for it. It is
// plan data: filled by Adopt, carried in the plan file, and handed to the dialect as Facts.Names.
type Names map[Key]string

// Name is the live name of our object: the adopted one if there is one.
func (n Names) Name(scope, object string) string {
	if live, ok := n[Key{scope, object, ""}]; ok {
		return live
	}
	return object
}

type namesEntry struct {
	Object Key    `json:"object"`
	Live   string `json:"live"`
}

// MarshalJSON writes names as a sorted array.
func (n Names) MarshalJSON() ([]byte, error) {
	es := make([]namesEntry, 0, len(n))
	for k, v := range n {
		es = append(es, namesEntry{k, v})
	}
	sort.Slice(es, func(i, j int) bool { return es[i].Object.Compare(es[j].Object) < 0 })
	return json.Marshal(es)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Names) UnmarshalJSON(b []byte) error {
	var es []namesEntry
	if err := json.Unmarshal(b, &es); err != nil {
		return err
	}
	*n = make(Names, len(es))
	for _, e := range es {
		(*n)[e.Object] = e.Live
	}
	return nil
}

// Facts is what a device says about itself. Drivers fill everything but Names.
type Facts struct {
	Hostname string            `json:"hostname,omitempty"`
	Serial   string            `json:"serial,omitempty"`
	Model    string            `json:"model,omitempty"`   // HwSKU on SONiC, model number on EOS, NIC model on hosts
	Version  string            `json:"version,omitempty"` // of the operating system
	Aliases  map[string]string `json:"aliases,omitempty"` // other names of interfaces (front-panel alias, PCI address) to the device's own
	Owners   []string          `json:"owners,omitempty"`  // competing owners found, one sentence each; writing is refused while there are any
	Notes    []string          `json:"notes,omitempty"`   // what else a reader should know
	NICs     []HostNIC         `json:"nics,omitempty"`    // of a host, by name
	// Personalities are those of NICs that are not built in. A driver fills them from its own catalog, which told the host of them;
	// they are no news from the device, so they are not part of what it says.
	Personalities []profiles.Personality `json:"-"`
	Names         Names                  `json:"-"` // adopted names, from the plan
}

// Op is what a change does.
type Op string

const (
	Add    Op = "add"    // absent before
	Modify Op = "set"    // present before and after
	Remove Op = "remove" // absent after
)

// Change is one setting that moves from Before to After. Nil is absent, which is not "".
type Change struct {
	Op     Op       `json:"op"`
	Key    Key      `json:"key"`
	Before *string  `json:"before,omitempty"`
	After  *string  `json:"after,omitempty"`
	From   diag.Pos `json:"from,omitzero"` // the model line that asks for it
}

// Invert is the change that takes c back.
func (c Change) Invert() Change {
	c.Before, c.After = c.After, c.Before
	switch c.Op {
	case Add:
		c.Op = Remove
	case Remove:
		c.Op = Add
	}
	return c
}

// RiskClass says what a change does to traffic, from harmless to impossible.
type RiskClass uint8

const (
	Hitless RiskClass = iota // no effect on packets in flight
	Flap                     // a link goes down and comes up
	Reload                   // a service of the device restarts
	Reboot                   // the device restarts
	Refused                  // the device will not do it over this channel
)

// String is the word in plans.
func (r RiskClass) String() string {
	return [...]string{"hitless", "flap", "reload", "reboot", "refused"}[r]
}

// MarshalText writes the word.
func (r RiskClass) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the word; an unknown one is Refused.
func (r *RiskClass) UnmarshalText(b []byte) error {
	for *r = Hitless; *r < Refused; *r++ {
		if r.String() == string(b) {
			return nil
		}
	}
	return nil
}

// Risk is what a set of changes does, worse than hitless. Ports are the device's interface names.
type Risk struct {
	Class RiskClass `json:"class"`
	Ports []string  `json:"ports,omitempty"`
	Why   string    `json:"why"`            // the mechanism, and for Refused the channel that would do
	Keys  []Key     `json:"keys,omitempty"` // the changes that cause it, for Refused
	// Jobs is the number of live queue pairs of user processes on Ports, whose jobs do not survive what is worse than
	// hitless; -1 when they cannot be counted. A port counts in one Risk of a class.
	Jobs int `json:"jobs,omitempty"`
}

// Line is one line to type on a command line. Mode lines only enter a place; Keys are the settings it carries.
type Line struct {
	Text string
	Mode bool
	Keys []Key
}

// Window is a pair of fields of one object that must keep Lo <= Hi at each step.
type Window struct{ Scope, Lo, Hi string } // Scope "" = any

// Dialect is everything fabricctl knows about one operating system's configuration. The functions are pure.
type Dialect struct {
	OS  string
	Ext string // how the names of files with Text end: ".eos.cfg"

	// Owns returns which keys the model owns on d: the bindings and scalars of modelled, active ports for the areas
	// with mode Own and the classes the model names; shared objects by prefix or by adoption (Facts.Names).
	Owns func(d intent.Device, f Facts) func(Key) bool
	// Left is what an earlier model of the same name wrote on d and this one does not name, seen by its value: bindings
	// of active ports to objects of this fabric, and what went with them. What cannot be told from somebody else's is
	// not among the keys, but is a finding. Nil when there is no such thing; see Owned.
	Left func(d intent.Device, f Facts, live Config) ([]Key, diag.List)
	// Render is the configuration that d asks for, over all areas the dialect knows; what the target cannot express,
	// or two values for one key, is a finding.
	Render func(d intent.Device, f Facts) (Config, diag.List)
	// Text is c as the device's own language; Parse(Text(c)) equals c.
	Text func(c Config) []byte
	// Parse reads a device's running configuration. Hostile input gives findings, never a panic.
	Parse func(running []byte) (Config, diag.List)
	// Lift is the behaviour that c gives each interface, by interface name. What it cannot understand is a finding.
	Lift func(c Config, f Facts) (map[string]intent.Policy, diag.List)
	// Ports are the front-panel ports that c shows and a model can bind; nil where every interface that Lift names is one.
	Ports func(c Config) map[string]Port
	// Pools are the buffer pools that c shows; nil where that cannot be read.
	Pools func(c Config) intent.Pools
	// Stock is what d holds before anybody has written it, as far as changes are judged by it; nil where that is nothing.
	Stock func(d intent.Device, f Facts) Config
	// Refs is what a setting points at, as Keys with Field "": creations follow them, removals go before them.
	Refs func(k Key, value string) []Key
	// Windows are the pairs that must not invert on the way.
	Windows []Window
	// Phase splits changes that one transaction cannot hold: phase 0 first. Removals run in reverse phase order.
	Phase func(c Change) int
	// Same reports whether a and b (nil = absent) are the same value of k: other names, defaults, hardware rounding.
	Same func(k Key, a, b *string, f Facts) bool
	// Risk says what the set of changes does to traffic on this device, given its whole live configuration.
	Risk func(live Config, cs []Change, f Facts) []Risk
	// Lines is what to type for cs: mode entry, compound lines completed from live, "no" forms. Nil for structured
	// transports.
	Lines func(live Config, cs []Change) []Line
}

// Joined gives an identity the behaviour that was lifted from c, and the pools that c shows.
func (d *Dialect) Joined(identity intent.Device, c Config, lifted map[string]intent.Policy) intent.Device {
	live := intent.Join(identity, lifted)
	if d.Pools != nil {
		live.Pools = d.Pools(c)
	}
	return live
}
