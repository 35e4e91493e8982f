// Package netlink is the host's own side: drivers.Device on the machine it runs on. MTUs go over rtnetlink, QoS over
// dcbnl (package dcb), link pause, rings, FEC and private flags through ethtool, what a driver has of its own through
// files of sysfs, configfs and debugfs that its personality names (package profiles), and the rest into files of the
// system.
//
// What it writes, it reads back at once, because a driver may acknowledge what it does not do. Links are those of the
// network namespace that the process is in. Nothing here was tried on a real RDMA NIC: what is known of drivers is
// read from their sources, and a kernel with a test device has taken all messages.
package netlink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Config says which machine to speak for. Open fills in what is nil from the machine that the process runs on; New
// leaves it out, and a machine without DCB, Ethtool, RDMA or Run does not have what they show.
type Config struct {
	Name string // of the device, for errors; "" leaves it to the caller
	Root string // of the files: "/" on a real machine, a fixture in tests

	Links   Links       // the kernel's links
	DCB     *dcb.Client // dcbnl
	Ethtool Ethtool
	RDMA    RDMA
	Tree    Tree              // the kernel's files; nil = those below Root
	Run     Runner            // programs of knobs; nil runs none
	Catalog *profiles.Catalog // personalities; nil = those that are built in

	State   string           // directory for what has to be put back; "" = nothing is remembered, and there is no confirm timer
	Timer   Timer            // arms it; nil = there is none
	Now     func() time.Time // nil = time.Now
	Session string           // SSH_CONNECTION of the session that asks; "" looks for one
	PID     int              // of the process from which to look up for one; 0 does not
	Hook    func(string)     // failpoints: before and after each write and each sync; nil does nothing
}

// Runner runs a program that shows a setting, and returns what it prints.
type Runner func(ctx context.Context, argv []string) ([]byte, error)

// Links is the part of rtnetlink that is used; Dial gives the kernel's.
type Links interface {
	List(ctx context.Context) ([]Link, error)
	// Addresses is the IP addresses of each link, by its index.
	Addresses(ctx context.Context) (map[int32][]netip.Prefix, error)
	// SetMTU sets the MTU, in bytes, of the link with that index. A refusal is the kernel's own sentence.
	SetMTU(ctx context.Context, index int32, mtu uint32) error
	Close() error
}

// Link is one network interface.
type Link struct {
	Index    int32
	Name     string
	MTU      uint32 // bytes, as ip shows it
	Min, Max uint32 // limits of MTU; Max 0 = the driver states none
	Loopback bool
	Up       bool   // it has a carrier
	Kind     string // "vlan", "bond", …; "" = hardware, mostly
	Master   int32  // index of the bond or bridge that it belongs to; 0 = none
	Lower    int32  // index of the link that this one rides on and may not exceed in MTU (VLAN, macvlan); 0 = none
}

// Device is this machine.
type Device struct {
	cfg     Config
	tree    Tree
	nccl    file
	limits  file
	memory  memory
	dialect *render.Dialect
	verbs   verbsKept
	jobs    bool // leave to kill them
}

var (
	_ drivers.Device    = (*Device)(nil)
	_ drivers.Confirmer = (*Device)(nil)
	_ drivers.JobKeeper = (*Device)(nil)
)

// New is the device of cfg. It touches nothing.
func New(cfg Config) *Device {
	d := &Device{cfg: cfg, tree: cfg.Tree, dialect: render.Linux()}
	if d.tree == nil {
		d.tree = files{cfg.Root}
	}
	if d.cfg.Now == nil {
		d.cfg.Now = time.Now
	}
	if d.cfg.Hook == nil {
		d.cfg.Hook = func(string) {}
	}
	d.memory = memory{dir: cfg.State, hook: d.cfg.Hook, boot: d.boot}
	d.nccl = file{path: filepath.Join(cfg.Root, render.NCCLPath), hook: d.cfg.Hook}
	d.limits = file{path: filepath.Join(cfg.Root, render.MemlockPath), hook: d.cfg.Hook}
	return d
}

// Know replaces what is known of NICs.
func (d *Device) Know(c *profiles.Catalog) { d.cfg.Catalog = c }

// AllowJobs gives leave to kill live queue pairs, or takes it away.
func (d *Device) AllowJobs(yes bool) { d.jobs = yes }

func (d *Device) catalog() (*profiles.Catalog, error) {
	if d.cfg.Catalog != nil {
		return d.cfg.Catalog, nil
	}
	return profiles.OfHosts()
}

// Close closes the sockets.
func (d *Device) Close() error {
	errs := []error{d.cfg.Links.Close()}
	if d.cfg.DCB != nil {
		errs = append(errs, d.cfg.DCB.Close())
	}
	if d.cfg.Ethtool != nil {
		errs = append(errs, d.cfg.Ethtool.Close())
	}
	if d.cfg.RDMA != nil {
		errs = append(errs, d.cfg.RDMA.Close())
	}
	return errors.Join(errs...)
}

// Read is the MTU of every link but loopbacks, what each NIC says of itself, the limit of locked memory, and the
// variables of nccl.conf. What a NIC does not have is absent, and so is what a missing file would say.
func (d *Device) Read(ctx context.Context) (render.Config, error) {
	c, _, err := d.settings(ctx)
	return c, d.named("read", err)
}

// fileSettings is what the files of the system say.
func (d *Device) fileSettings() (render.Config, error) {
	text, err := d.nccl.read()
	if err != nil {
		return nil, err
	}
	limits, err := d.limits.read()
	if err != nil {
		return nil, err
	}
	return append(render.ParseNCCL(text), parseLimits(limits)...), nil
}

func mtuKey(link string) render.Key { return render.Key{Scope: "link", Object: link, Field: "mtu"} }

// is reports whether err is one of the system's errors.
func is(err error, any ...syscall.Errno) bool {
	return slices.ContainsFunc(any, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

func movedError(live render.Config, moved []render.Change) error {
	var s []string
	for _, c := range moved {
		s = append(s, fmt.Sprintf("%s is %s, expected %s", c.Key, word(value(live, c.Key)), word(c.Before)))
	}
	return fmt.Errorf("%w: %s", drivers.ErrMoved, strings.Join(s, "; "))
}

func (d *Device) rejected(c render.Change, err error) error {
	return &drivers.RejectedError{Device: d.cfg.Name, Sent: c.Key.String() + " " + word(c.After), Sentence: err.Error()}
}

// named puts device and operation before err, which may be nil.
func (d *Device) named(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case d.cfg.Name == "":
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %s: %w", d.cfg.Name, op, err)
}

func value(c render.Config, k render.Key) *string {
	if v, ok := c.Find(k); ok {
		return &v
	}
	return nil
}

func word(v *string) string {
	if v == nil {
		return "absent"
	}
	return *v
}
