package hostlocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/drivers/netlink"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Machine is the machine that the process runs on. Its fields are set once by the caller.
type Machine struct {
	State     string            // the directory for holds, locks, journals and what has to be put back
	Revert    []string          // a program and its first arguments, to which the id of a change is added: takes it back in time
	Version   string            // of this program
	Catalog   *profiles.Catalog // what is known of NICs; nil = what is built in
	Fabric    string            // the model's name of the fabric, and
	Device    string            // of this host: whatever others call it, holds here are on it
	AllowJobs bool              // commits may kill live queue pairs
	Kernel    netlink.Config    // what is nil is the machine's own; tests have others
}

// StateDir is where a machine keeps its state. Who is not root cannot write there, nor set much, and has a place of its
// own.
func StateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/fabricctl"
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "fabricctl")
	}
	return filepath.Join(os.Getenv("HOME"), ".local", "state", "fabricctl")
}

// Holds are those that the machine keeps.
func (m Machine) Holds() hostwire.HoldDir {
	return hostwire.HoldDir{Path: filepath.Join(m.State, "holds"), Now: time.Now}
}

// Direct is the machine's kernel and files.
func (m Machine) Direct() (*netlink.Device, error) {
	cfg := m.Kernel
	cfg.State, cfg.Catalog = m.State, m.Catalog
	if len(m.Revert) > 0 {
		cfg.Timer = netlink.Detached{Program: m.Revert[0], Args: m.Revert[1:], Now: time.Now}
	}
	return netlink.Open(cfg)
}

// Expire takes back what was not confirmed in time, where what was to do that is gone too. It takes no lock, and opens
// nothing, while no change waits.
func (m Machine) Expire(ctx context.Context) error {
	if !m.waits() {
		return nil
	}
	dev, err := m.Direct()
	if err != nil {
		return err
	}
	defer dev.Close()
	return dev.Expire(ctx)
}

// waits reports whether a change waits to be confirmed, or to be taken back; it does when nobody can say.
func (m Machine) waits() bool {
	es, err := os.ReadDir(filepath.Join(m.State, "pending"))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(es, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".json") })
}

// Host is the machine's side of a conversation over the wire. Close its device when that is over.
func (m Machine) Host() (hostwire.Host, hostwire.Hello, error) {
	name, err := os.Hostname()
	if err != nil {
		return hostwire.Host{}, hostwire.Hello{}, err
	}
	dev, err := m.Direct()
	if err != nil {
		return hostwire.Host{}, hostwire.Hello{}, err
	}
	know := func(_ context.Context, said []json.RawMessage) error { return m.know(dev, said) }
	return hostwire.Host{Device: dev, Holds: m.Holds(), Know: know},
		hostwire.Hello{Version: m.Version, Host: name, OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid()}, nil
}

// know adds what a laptop knows of NICs to what is known here.
func (m Machine) know(dev *netlink.Device, said []json.RawMessage) error {
	known := m.Catalog
	if known == nil {
		var err error
		if known, err = profiles.OfHosts(); err != nil {
			return err
		}
	}
	c, err := known.Know(said)
	if err != nil {
		return err
	}
	dev.Know(c)
	return nil
}

// Open is a connection to the machine as a laptop has one, without the SSH: a host is the same from near and from afar.
// name stands before every error.
func (m Machine) Open(ctx context.Context, name string) (drivers.Device, error) {
	h, hello, err := m.Host()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	requests, ask := io.Pipe()
	answers, answer := io.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		err := hostwire.Serve(context.WithoutCancel(ctx), requests, answer, h, hello)
		_ = answer.CloseWithError(err)
		_ = requests.CloseWithError(io.ErrClosedPipe)
		_ = h.Device.Close()
	}()
	c, err := hostwire.NewClient(ctx, name, &pipes{answers, ask, over})
	if err != nil {
		return nil, err
	}
	c.AllowJobs = m.AllowJobs
	l := local{Client: c, fabric: m.Fabric, device: m.Device}
	if t, ok := c.Timer(); ok {
		return struct {
			local
			drivers.Confirmer
		}{l, t}, nil
	}
	return l, nil
}

// pipes are both directions of a conversation in one process.
type pipes struct {
	*io.PipeReader
	ask  *io.PipeWriter
	over chan struct{} // closed when the other side is
}

func (p *pipes) Write(b []byte) (int, error) { return p.ask.Write(b) }

// Close ends both sides, and waits for the other one, which writes no more then.
func (p *pipes) Close() error {
	err := errors.Join(p.ask.Close(), p.PipeReader.Close())
	<-p.over
	return err
}

// local is the machine as a device.
type local struct {
	*hostwire.Client
	fabric, device string
}

var _ drivers.Device = local{}

// Holds are all that are in force here: on this host, whatever it is called in the models that they were made with.
func (l local) Holds(ctx context.Context) ([]journal.Hold, error) {
	hs, err := l.Client.Holds(ctx)
	for i := range hs {
		if hs[i].Fabric != l.fabric || hs[i].Device != l.device {
			hs[i].Port = portOf(hs[i])
		}
		hs[i].Fabric, hs[i].Device = l.fabric, l.device
	}
	return hs, err
}

// portOf is the port of a hold that was made with another model: its name means nothing here. The interface does; without
// one the hold is on the whole host.
func portOf(h journal.Hold) string {
	if h.Port == "" || h.Iface == "" {
		return ""
	}
	return h.Iface
}

// Dialect is that of hosts, for a rollout.Engine.
func Dialect(os string) *render.Dialect {
	if os == "linux" {
		return render.Linux()
	}
	return nil
}
