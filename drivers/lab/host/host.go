// Package host emulates a Linux host as far as fabricctl looks at one: an SSH server on a loopback port with a file
// tree of its own (sftp), the few stock tools that a look needs, links with an MTU, NICs with the knobs that their
// drivers have, /etc/nccl.conf, and the messages of fabricctl-host. It speaks those messages with its own structs and edits nccl.conf with its own code: it shares
// nothing with packages render, hostwire and netlink, so that each is a witness for the other.
//
// What it prints follows iproute2 6.1, coreutils 9.1 and dash, which were at hand to compare with.
package host

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/lab/tally"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

// Options describe a host. The zero value of each field has the meaning given.
type Options struct {
	Hostname       string          // "localhost"
	Serial         string          // none
	Kernel         string          // "6.12.0-emulated"
	Machine        string          // as uname -m: "x86_64"
	Links          []Link          // what there is besides a loopback
	NCCL           string          // text of /etc/nccl.conf; "" = no such file
	User           string          // "root"
	Password       string          // "" disables passwords
	AuthorizedKeys []ssh.PublicKey // keys that may log in as User
	NoSudo         bool            // sudo -n asks for a password
	// Know understands what a laptop tells of NICs; nil knows the built-in ones alone.
	Know         func(told []json.RawMessage) (Known, error)
	Confirm      bool       // fabricctl-host has a timer that takes a change back unless it is confirmed
	MaxAuthTries int        // 3
	MOTD         string     // printed before each program's own output, as an rc file may do
	HostKey      ssh.Signer // a new key
	Network      *Network   // what verbs tests run over; nil = there is nobody else
}

// Link is one network interface.
type Link struct {
	Name      string
	MTU       int      // bytes
	Min, Max  int      // limits of the MTU; Max 0 = the driver states none
	PCI       string   // address, "" = no PCI device
	NIC       string   // what is below it, as in the catalog of NICs or "virtio"; "" = nothing that has more knobs than an MTU
	Master    string   // the bond that it is a slave of, "" = none
	Addresses []string // IP prefixes on it
	Firmware  string   // "" = not known
	Driver    string   // of a NIC that the emulator has no driver for; "" = "unknown_nic"
	Model     string   // of such a NIC: PCI vendor and device

	Management bool   // the way to the host leads over it: while it is down, nobody reaches the host
	VFOf       string // the interface that it is a virtual function of, "" = none
	DPU        string // why QoS is not the host's to set, "" = it is
	Over       string // the link that it is a VLAN of, "" = none
}

// Counters say what was done to a host. They only grow.
type Counters struct {
	Connections int // TCP connections accepted
	Passwords   int // password attempts
	Refused     int // of these, refused
	MTUSets     int // requests to set an MTU, refused ones too
	KnobSets    int // requests to set another knob of a NIC, or one entry of its app table, refused ones too
	Downs       int // how often a link went down because of what was set
	Gaps        int // how often traffic stopped for a moment because of what was set
	Killed      int // queue pairs of running programs that this ended
	Reverts     int // transactions that nobody confirmed in time
	FileWrites  int // rewrites of nccl.conf and of the memlock limit by the agent
	Uploads     int // files opened for writing over sftp
	Commands    int // programs started
	Senses      int // requests for counters
}

// Faults are ways to misbehave. The zero value behaves.
type Faults struct {
	RejectMTU string                   // refuse each new MTU with this sentence; the kernel's is "invalid argument"
	OnWrite   func(what string) string // called before each write ("eth0 mtu 9000", "/etc/nccl.conf"): the place to change things behind a client's back; what it returns, if not "", refuses the write
	Ignore    bool                     // the agent says that a write worked and keeps the old value
	Locked    bool                     // another writer on the host has the lock, for as long as this stands
	Stall     bool                     // at the next write stop answering until the connection ends; once
	Delay     time.Duration            // wait before each answer of the agent and each stock tool
	Counters  string                   // the JSON that the agent answers as its counters; "" = what was counted
	Tools     string                   // what ethtool -S and rdma statistic print; "" = what was counted
	Without   string                   // verbs tests that are not installed, as "ib_write_bw ib_read_lat"
	Perftest  string                   // version that verbs tests say they are; "" = the one that is imitated
	Hang      bool                     // verbs tests that begin now do not end, and only SIGKILL ends them
	Busy      float64                  // how busy the CPU is while a verbs test runs, percent; 0 = a core of 64
	DropAfter int                      // cut each connection after this many bytes of it, both directions counted; 0 never
}

// Host is an emulated host. Its methods may be called at any time from any goroutine.
type Host struct {
	opt Options
	dir string   // of root
	fs  *os.Root // the file tree; the user's home is /home/USER

	writer sync.Mutex // one at a time writes; before mu

	mu       sync.Mutex
	links    []Link
	nics     map[string]*nic // by link
	kernel   *dcbfake.Kernel
	dcb      *dcb.Client
	open     []*pending
	skew     time.Duration // of the clock
	foreign  []string      // who else sets what fabricctl sets, and what ends that
	lost     bool          // nobody reaches it
	holds    []hold
	counters Counters
	tally.Tally
	faults    Faults
	processes map[int]*process
	pids      int  // numbers that were given out
	boots     int  // how often it was started again
	qps       int  // queue pairs that tests had
	slow      bool // the CPU is not at its highest frequency
	ending    bool // no program starts any more
	listener  net.Listener
	addr      string // of the listener
	conns     map[net.Conn]bool
	wg        sync.WaitGroup
}

// New makes a host with a file tree in a temporary directory, which Close removes.
func New(o Options) (_ *Host, err error) {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&o.Hostname, "localhost")
	def(&o.Kernel, "6.12.0-emulated")
	def(&o.Machine, "x86_64")
	def(&o.User, "root")
	if o.MaxAuthTries == 0 {
		o.MaxAuthTries = 3
	}
	if o.HostKey == nil {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
		if o.HostKey, err = ssh.NewSignerFromKey(key); err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
	}
	h := &Host{opt: o, links: slices.Clone(o.Links), nics: map[string]*nic{}, kernel: dcbfake.New(), processes: map[int]*process{}, conns: map[net.Conn]bool{}}
	h.Tally = tally.New(&h.mu)
	h.dcb = dcb.New(h.kernel)
	devices := map[string]int{}
	for _, l := range o.Links {
		if l.NIC != "" {
			family := kindOf(l.NIC).rdma
			h.nics[l.Name] = h.newNIC(l, devices[family])
			devices[family]++
		}
	}
	if h.dir, err = os.MkdirTemp("", "fabricctl-host-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = h.Close()
		}
	}()
	if h.fs, err = os.OpenRoot(h.dir); err != nil {
		return nil, err
	}
	if err := errors.Join(h.fs.MkdirAll("etc/security/limits.d", 0o755), h.fs.MkdirAll(rel(h.home()), 0o755)); err != nil {
		return nil, err
	}
	if o.NCCL != "" {
		if err := h.SetNCCL(o.NCCL); err != nil {
			return nil, err
		}
	}
	if o.Network != nil {
		o.Network.mu.Lock()
		o.Network.hosts = append(o.Network.hosts, h)
		o.Network.mu.Unlock()
	}
	return h, nil
}

func (h *Host) home() string { return "/home/" + h.opt.User }

// HostKey is the public half of the host's SSH key.
func (h *Host) HostKey() ssh.PublicKey { return h.opt.HostKey.PublicKey() }

// Counters is a snapshot of the counters.
func (h *Host) Counters() Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counters
}

func (h *Host) count(f func(*Counters)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.counters)
}

// SetFaults replaces the faults, for connections that are open too.
func (h *Host) SetFaults(f Faults) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = f
}

func (h *Host) currentFaults() Faults {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults
}

// spendStall is the faults; a Stall in them will not be met again.
func (h *Host) spendStall() Faults {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.faults
	h.faults.Stall = false
	return f
}

// Links is a snapshot of the links, without the loopback.
func (h *Host) Links() []Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.links)
}

// SetMTU changes a link as somebody on the host could. A bond hands its MTU down to its slaves, a VLAN cannot have more than
// the link below it, and goes down with that.
func (h *Host) SetMTU(link string, mtu int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.find(link)
	switch {
	case l == nil:
		return errNoLink
	case mtu < l.Min:
		return errors.New("mtu less than device minimum (invalid argument)")
	case l.Max > 0 && mtu > l.Max:
		return errors.New("mtu greater than device maximum (invalid argument)")
	case l.Over != "" && mtu > h.find(l.Over).MTU:
		return errRange
	}
	return h.setMTU(l, mtu)
}

// find is the link of that name, nil when there is none. The host's lock is held.
func (h *Host) find(link string) *Link {
	for i := range h.links {
		if h.links[i].Name == link {
			return &h.links[i]
		}
	}
	return nil
}

func (h *Host) setMTU(l *Link, mtu int) error {
	if n := h.nics[l.Name]; n != nil && l.MTU != mtu {
		switch n.wrong["link"] {
		case Busy:
			return errBusy
		case Lies:
			return nil
		}
		if slices.Contains(n.kind.downs, "link") {
			flaps := n.flaps()
			n.downs++
			h.disturbed(n, flaps, n.gaps())
		}
	}
	l.MTU = mtu
	for i := range h.links {
		switch o := &h.links[i]; {
		case o.Master == l.Name:
			if err := h.setMTU(o, mtu); err != nil {
				return err
			}
		case o.Over == l.Name:
			o.MTU = min(o.MTU, mtu)
		}
	}
	return nil
}

// Set changes a knob of a link's NIC, such as "pfc priorities" or "app dscp 26", as somebody on the host could; "" takes
// an entry of the app table away.
func (h *Host) Set(link, knob, value string) error {
	scope, field, _ := strings.Cut(knob, " ")
	v := &value
	if value == "" {
		v = nil
	}
	if !slices.Contains([]string{"dcbx", "app", "ets", "pfc", "buffer"}, scope) {
		return h.put(link, scope, map[string]*string{field: v})
	}
	h.mu.Lock()
	n, err := h.nicOn(link)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return h.driver(n, func() error {
		s := h.state(n)
		if s == nil {
			return errSupported
		}
		want := copied(s)
		if err := alter(want, scope, field, v); err != nil {
			return err
		}
		if scope != "app" {
			return h.setDCB(n, scope, want)
		}
		for _, a := range s.Apps {
			if !slices.Contains(want.Apps, a) {
				if err := h.setApp(n, a, false); err != nil {
					return err
				}
			}
		}
		for _, a := range want.Apps {
			if !slices.Contains(s.Apps, a) {
				return h.setApp(n, a, true)
			}
		}
		return nil
	})
}

// put sets knobs of one scope outside dcbnl.
func (h *Host) put(link, scope string, fields map[string]*string) error {
	h.mu.Lock()
	n, err := h.nicOn(link)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return h.driver(n, func() error { return h.setWords(n, scope, fields) })
}

// driver does something to a NIC, and what follows from that to its link.
func (h *Host) driver(n *nic, do func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	flaps, gaps := n.flaps(), n.gaps()
	defer h.disturbed(n, flaps, gaps)
	return do()
}

// Knobs are the settings of a link's NIC, "pfc priorities" to "3"; none for a link that has no NIC below it.
func (h *Host) Knobs(link string) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.nics[link]; n != nil {
		return h.settings(n)
	}
	return nil
}

var errNoLink = errors.New("no such device")

// NCCL is the text of /etc/nccl.conf; ok is false when there is none.
func (h *Host) NCCL() (text string, ok bool) {
	b, err := h.fs.ReadFile("etc/nccl.conf")
	return string(b), err == nil
}

// SetNCCL replaces /etc/nccl.conf as somebody on the host could.
func (h *Host) SetNCCL(text string) error {
	return h.fs.WriteFile("etc/nccl.conf", []byte(text), 0o644)
}

// Writes is how often something was written: MTUs, other knobs and files.
func (h *Host) Writes() int {
	c := h.Counters()
	return c.MTUSets + c.KnobSets + c.FileWrites
}

// Held is the state as text: equal when and only when links, NICs and the two files are equal.
func (h *Host) Held() string {
	var b strings.Builder
	for _, l := range h.Links() {
		fmt.Fprintf(&b, "link %s mtu %d\n", l.Name, l.MTU)
		knobs := h.Knobs(l.Name)
		for _, k := range slices.Sorted(maps.Keys(knobs)) {
			fmt.Fprintf(&b, "%s %s: %s\n", l.Name, k, knobs[k])
		}
	}
	if text, err := h.fs.ReadFile(rel(limitPath)); err == nil {
		fmt.Fprintf(&b, "%s:\n%s", limitPath, text)
	}
	if text, ok := h.NCCL(); ok {
		fmt.Fprintf(&b, "/etc/nccl.conf:\n%s", text)
	}
	return b.String()
}

// Close stops the server, cuts its connections, waits for them and removes the file tree.
func (h *Host) Close() error {
	h.mu.Lock()
	l := h.listener
	for _, p := range h.open {
		p.stop()
	}
	h.open = nil
	h.mu.Unlock()
	var err error
	if l != nil && !h.Lost() {
		err = l.Close()
	}
	h.mu.Lock()
	h.ending = true
	h.mu.Unlock()
	h.killAll()
	h.Disconnect()
	h.wg.Wait()
	h.writer.Lock() // a way back that was begun is at its end
	defer h.writer.Unlock()
	if h.fs != nil {
		_ = h.fs.Close()
	}
	return errors.Join(err, os.RemoveAll(h.dir))
}

// Disconnect cuts all connections.
func (h *Host) Disconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		_ = c.Close()
	}
}

// rel is a slash path of the host as os.Root wants it.
func rel(path string) string {
	if path = strings.TrimLeft(path, "/"); path == "" {
		return "."
	}
	return path
}

// sentence is the end of a file error, in the words of the C library.
func sentence(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	}
	return err.Error()
}
