// Package lab runs an emulated fabric in the process: one emulated device per device of a model, each a server with
// the real protocol on a loopback port, with state, modes, timers and injectable faults. It writes an inventory with
// which fabricctl, or any stock SSH or gNMI client, reaches them.
//
// A lab takes names and ports from a Net when it starts and never looks at a model again: what its devices do is what
// they hold. Loads and verbs tests are simulated on that, and what they count is what the devices show: no number is invented.
package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/profiles"
)

// User is who may log in to every emulated device.
const User = "lab"

// Box is a running emulated device.
type Box interface {
	Held() string // what it holds and keeps over a restart, in its own words
	Writes() int  // how often it was written to
	// SetCounters replaces what the device has counted, by its own names of interfaces. What its operating system or driver
	// does not count is not shown, and what is not given is not there.
	SetCounters(values map[observe.Port]uint64)
	// AddCounters adds to what the device has counted; of a gauge the larger value stands. A restart begins anew.
	AddCounters(values map[observe.Port]uint64)
	Counted() map[observe.Port]uint64 // what it has counted, whether it shows it or not
	Close() error
}

// Lab is a running fabric. Close ends it.
type Lab struct {
	Inventory string   // path of the inventory document, the layer to give after the model
	Unused    []string // a sentence for each file of Options.State that looks like a switch's and that nobody read
	boxes     map[string]Box
	identity  *intent.Net // who the devices are, and how they are cabled
	network   *host.Network
	runs      atomic.Uint64      // verbs tests that took place: the next one's seed
	ctx       context.Context    // of what the lab does by itself; ends with Close
	stop      context.CancelFunc //
	console   *console

	mu    sync.Mutex
	reads map[string]*read // of devices, when they were read last
}

// kind is one emulated operating system: how to start it for a device, and what to say of it in the inventory.
type kind struct {
	os    string
	ext   string // of the file with what a device holds when it starts; "" = it starts as after installation
	start func(dev *intent.Device, w wiring, f *files) (Box, entry, error)
}

// kinds is the table of emulated operating systems.
func kinds() []kind {
	return []kind{{"eos", ".eos.cfg", startEOS}, {"linux", "", startHost}, {"sonic", ".config_db.json", startSONiC}}
}

// extOf is the ext of an operating system.
func extOf(os string) string {
	for _, k := range kinds() {
		if k.os == os {
			return k.ext
		}
	}
	return ""
}

// Options say where a lab leaves its files.
type Options struct {
	Dir    string           // inventory.yaml, ca/, known_hosts, password, control; created with mode 0700
	Settle time.Duration    // verbs tests that begin within it after one another take place together; 0 = DefaultSettle
	Ready  func(*Lab) error // called when all devices run, before the inventory says so; its error ends the lab
	State  string           // directory with what switches hold when they start, NAME.config_db.json or NAME.eos.cfg; "" = nothing
	Log    *slog.Logger     // nil = silent
}

// DefaultSettle is how long after a verbs test began another one still joins it.
const DefaultSettle = 100 * time.Millisecond

// Up starts a device for each one of net that is not absent. On error nothing is left running.
func Up(net *intent.Net, o Options) (_ *Lab, err error) {
	if taken(o.Dir) {
		return nil, fmt.Errorf("a lab runs with %s already: end it first, or give this one another directory", o.Dir)
	}
	f, err := newFiles(o)
	if err != nil {
		return nil, err
	}
	l := &Lab{Inventory: filepath.Join(o.Dir, "inventory.yaml"), boxes: map[string]Box{}, identity: identities(net), reads: map[string]*read{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.network = host.NewNetwork(host.NetworkOptions{Measure: l.measure, Load: l.loadText, Observe: l.observeText, Settle: cmp.Or(o.Settle, DefaultSettle)})
	f.network = l.network
	if l.Unused, err = unused(net, o.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	w := wire(net)
	var entries []entry
	for i := range net.Devices {
		dev := &net.Devices[i]
		if dev.State == intent.Absent {
			continue
		}
		e, err := l.start(dev, w, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dev.Name, err)
		}
		entries = append(entries, e)
	}
	if err := f.writeKnownHosts(entries); err != nil {
		return nil, err
	}
	if err := l.listen(f); err != nil {
		return nil, err
	}
	if o.Ready != nil {
		if err := o.Ready(l); err != nil {
			return nil, err
		}
	}
	return l, f.write("inventory.yaml", inventory(entries))
}

func (l *Lab) start(dev *intent.Device, w wiring, f *files) (entry, error) {
	for _, k := range kinds() {
		if k.os != dev.OS() {
			continue
		}
		b, e, err := k.start(dev, w, f)
		if err != nil {
			return entry{}, err
		}
		b.SetCounters(uncounted(dev))
		l.boxes[dev.Name] = b
		return e, nil
	}
	return entry{}, fmt.Errorf("platform %s is not emulated", dev.Platform)
}

// Box is the emulated device of that name, to look into and to make misbehave; nil when there is none.
func (l *Lab) Box(name string) Box { return l.boxes[name] }

// Close ends all devices. Their files stay.
func (l *Lab) Close() error {
	l.stop()
	var told error
	if l.console != nil {
		told = l.console.close()
	}
	errs := make(chan error, len(l.boxes))
	var wg sync.WaitGroup
	for _, b := range l.boxes {
		wg.Go(func() { errs <- b.Close() })
	}
	wg.Wait()
	l.network.Close()
	close(errs)
	all := []error{told}
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// uncounted is what a device shows that has seen no traffic.
func uncounted(dev *intent.Device) map[observe.Port]uint64 {
	values := map[observe.Port]uint64{}
	for i, p := range dev.Ports {
		iface := p.Iface
		if dev.Host {
			iface = portOf(dev, i)
		}
		for _, c := range observe.Counted() {
			if !c.Each {
				values[observe.Port{Iface: iface, Name: c.Name}] = 0
				continue
			}
			for priority := range 8 {
				values[observe.Port{Iface: iface, Name: c.Name.Of(priority)}] = 0
			}
		}
	}
	return values
}

// serial is the serial number that the inventory of the model expects, or one of the lab.
func serial(dev *intent.Device) string {
	if dev.Serial != "" {
		return dev.Serial
	}
	return "LAB-" + strings.ToUpper(dev.Name)
}

func startSONiC(dev *intent.Device, w wiring, f *files) (Box, entry, error) {
	var ports []sonic.Port
	for _, p := range dev.Ports {
		if p.Iface != "" {
			lanes := cmp.Or(dev.Profile.Lanes, dev.Profile.IfaceStep) / max(p.Breakout, 1) // of a split port, this part's
			ports = append(ports, sonic.Port{Name: p.Iface, Speed: p.Speed, Lanes: max(lanes, 1), Cable: p.Cable})
		}
	}
	sku := dev.Profile.Words["hwsku"]
	if sku == "" {
		sku = "fabricctl-lab"
	}
	config := sonic.Base(dev.Name, sku, ports)
	name, text, err := f.held(dev)
	if err != nil {
		return nil, entry{}, err
	}
	if text != nil {
		held, err := sonic.Parse(text)
		if err != nil {
			return nil, entry{}, fmt.Errorf("%s: %w", name, err)
		}
		config.Put(held)
	}
	s, err := sonic.Start(sonic.Options{
		Config: config, Neighbours: w.sonic(dev), User: User, Password: f.password, Log: f.log, Buffers: buffersOf(dev),
	})
	if err != nil {
		return nil, entry{}, err
	}
	ca := filepath.Join("ca", dev.Name+".pem")
	if err := f.write(ca, string(s.CA())); err != nil {
		return nil, entry{}, errors.Join(err, s.Close())
	}
	return s, entry{dev: dev, addr: s.Addr(), ca: ca}, nil
}

// buffersOf are the pools and the table that a switch of this platform comes with.
func buffersOf(dev *intent.Device) sonic.Buffers {
	b := sonic.Buffers{Shared: dev.Pools.Shared, Headroom: dev.Pools.Headroom, Egress: dev.Pools.Egress, Static: dev.Pools.Static}
	for _, r := range dev.Profile.Headroom {
		b.Table = append(b.Table, sonic.Lookup{
			Speed: r.Speed, Cable: r.Cable, Size: r.Size, Xon: r.Xon, Xoff: r.Xoff, XonOffset: r.XonOffset, Alpha: r.Alpha, Static: r.Static,
		})
	}
	return b
}

func startEOS(dev *intent.Device, w wiring, f *files) (Box, entry, error) {
	var ports []string
	for _, p := range dev.Ports {
		if p.Iface != "" {
			ports = append(ports, p.Iface)
		}
	}
	s, err := eos.New(eos.Options{
		Hostname: dev.Name, Serial: serial(dev), Ports: ports, TxQueue: dev.Profile.Words["tx_queue"], User: User, Password: f.password,
		Neighbours: w.eos(dev),
	})
	if err != nil {
		return nil, entry{}, err
	}
	name, text, err := f.held(dev)
	if err != nil {
		return nil, entry{}, err
	}
	if text != nil {
		if err := s.Boot(string(text)); err != nil {
			return nil, entry{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	addr, err := s.Listen()
	if err != nil {
		return nil, entry{}, err
	}
	return s, entry{dev: dev, addr: addr, hostKey: s.HostKey(), serial: serial(dev)}, nil
}

func startHost(dev *intent.Device, _ wiring, f *files) (Box, entry, error) {
	links, nics := hostLinks(dev)
	h, err := host.New(host.Options{
		Hostname: dev.Name, Serial: serial(dev), Links: links, User: User, Password: f.password, Confirm: true, Know: know, Network: f.network,
	})
	if err != nil {
		return nil, entry{}, err
	}
	addr, err := h.Listen()
	if err != nil {
		return nil, entry{}, err
	}
	return h, entry{dev: dev, addr: addr, hostKey: h.HostKey(), serial: serial(dev), nics: nics}, nil
}

// know reads what a laptop tells a host of NICs as fabricctl-host does.
func know(told []json.RawMessage) (host.Known, error) {
	built, err := profiles.Default()
	if err != nil {
		return host.Known{}, err
	}
	c, err := built.Know(told)
	if err != nil {
		return host.Known{}, err
	}
	own := c.OwnPersonalities()
	return host.Known{Personality: func(driver, model string) (string, json.RawMessage) {
		p := c.Personality(driver, model)
		i := slices.IndexFunc(own, func(o profiles.Personality) bool { return o.Name == p.Name })
		if i < 0 {
			return p.Name, nil
		}
		b, err := json.Marshal(own[i])
		if err != nil {
			return profiles.Generic, nil
		}
		return p.Name, b
	}}, nil
}

// catalogOf is the hardware that a model knows.
func catalogOf(dev *intent.Device) *profiles.Catalog {
	if dev.Catalog != nil {
		return dev.Catalog
	}
	c, err := profiles.Default()
	if err != nil {
		return &profiles.Catalog{}
	}
	return c
}

// hostLinks are the NICs of a host and their bonds, and what the inventory says of them: the address that a NIC has in the
// model is on it, or on its bond.
func hostLinks(dev *intent.Device) (links []host.Link, nics []nic) {
	var bonds []host.Link
	for i, p := range dev.Ports {
		name := portOf(dev, i)
		l := host.Link{
			Name: name, MTU: 1500, Min: 68, Max: 9978, PCI: cmp.Or(p.PCI, fmt.Sprintf("0000:%02x:00.0", 0x17+i)), NIC: cmp.Or(p.NIC, "connectx-7"), Master: p.Bond,
		}
		if n, ok := catalogOf(dev).NIC(p.NIC); ok && len(n.PCI) > 0 {
			l.Driver, l.Model = n.Driver, n.PCI[0]
		}
		var has []string
		if p.IP != "" {
			has = []string{p.IP}
		}
		if p.Bond == "" {
			l.Addresses = has
		} else if b := slices.IndexFunc(bonds, func(b host.Link) bool { return b.Name == p.Bond }); b >= 0 {
			bonds[b].Addresses = append(bonds[b].Addresses, has...)
		} else {
			bonds = append(bonds, host.Link{Name: p.Bond, MTU: 1500, Min: 68, Max: 65535, Addresses: has})
		}
		links = append(links, l)
		nics = append(nics, nic{name, p.Peer + ":" + p.PeerPort, p.IP})
	}
	return append(links, bonds...), nics
}

// newPassword is a password for one lab.
func newPassword() string {
	var b [18]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// files is what a lab leaves in its directory.
type files struct {
	dir      string
	state    string
	password string
	log      *slog.Logger
	network  *host.Network
}

func newFiles(o Options) (*files, error) {
	f := &files{dir: o.Dir, state: o.State, password: newPassword(), log: o.Log}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "ca"), 0o700); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return f, f.write("password", f.password+"\n")
}

// held is the file with what a switch is to hold when it starts, and its text; nil when there is none.
func (f *files) held(dev *intent.Device) (name string, text []byte, err error) {
	if f.state == "" {
		return "", nil, nil
	}
	name = filepath.Join(f.state, dev.Name+extOf(dev.OS()))
	text, err = os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, nil
	}
	return name, text, err
}

// unused says of each file of a state directory that looks like a switch's and that no switch of net reads, why.
func unused(net *intent.Net, dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	var out []string
	for _, e := range entries {
		for _, k := range kinds() {
			name, ok := strings.CutSuffix(e.Name(), k.ext)
			if !ok || k.ext == "" {
				continue
			}
			path := filepath.Join(dir, e.Name())
			switch d := net.Device(name); {
			case d == nil:
				out = append(out, fmt.Sprintf("%s is not used: the model has no device %q", path, name))
			case d.OS() != k.os && extOf(d.OS()) != "":
				out = append(out, fmt.Sprintf("%s is not used: %s is %s, and reads %s", path, name, d.Platform, name+extOf(d.OS())))
			case d.OS() != k.os:
				out = append(out, fmt.Sprintf("%s is not used: %s is %s", path, name, d.Platform))
			}
		}
	}
	return out, nil
}

// write puts a file there whole: who waits for it may read it as soon as it is there.
func (f *files) write(name, text string) error {
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}
