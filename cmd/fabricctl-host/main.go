// Fabricctl-host is the host's own side of fabricctl: a small static binary that is pushed over SSH and speaks for
// the machine it runs on.
//
//	fabricctl-host serve [--state-dir DIR]        answer JSON lines on stdin and stdout (drivers/hostwire) until stdin ends
//	fabricctl-host read                           print what this host says about itself and its settings, and change nothing
//	fabricctl-host revert [--state-dir DIR] TX    wait for the deadline of a change that is not confirmed, and take it back;
//	                                              serve starts it, and it ends by itself when the change is confirmed
//	fabricctl-host version                        print the version
//
// Exit status: 0 done, 1 error, 64 wrong usage.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/drivers/netlink"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

func main() {
	// A laptop that goes away must not kill us in the middle of a commit: the end of stdin stops it between two writes.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fabricctl-host:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: fabricctl-host serve [--state-dir DIR] | read | revert [--state-dir DIR] TX | version")

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	dir := stateDir()
	if len(args) >= 3 && (args[0] == "serve" || args[0] == "revert") && args[1] == "--state-dir" && filepath.IsAbs(args[2]) {
		dir, args = args[2], slices.Delete(slices.Clone(args), 1, 3)
	}
	if len(args) == 0 || len(args) != 1 && args[0] != "revert" || args[0] == "revert" && len(args) != 2 {
		return errUsage
	}
	switch args[0] {
	case "version":
		_, err := fmt.Fprintf(stdout, "fabricctl-host %s, protocol %d, %s/%s\n", version(), hostwire.Protocol, runtime.GOOS, runtime.GOARCH)
		return err
	case "read", "serve", "revert":
	default:
		return errUsage
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dev, err := netlink.Open(netlink.Config{
		State: dir, Timer: netlink.Detached{Program: self, Args: []string{"revert", "--state-dir", dir}, Now: time.Now},
	})
	if err != nil {
		return err
	}
	defer dev.Close()
	switch args[0] {
	case "read":
		return read(ctx, dev, stdout)
	case "revert":
		return dev.Await(ctx, drivers.TxID(args[1]))
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	h := hostwire.Host{
		Device: dev, Holds: hostwire.HoldDir{Path: filepath.Join(dir, "holds"), Now: time.Now},
		Know: func(_ context.Context, said []json.RawMessage) error { return know(dev, said) },
	}
	return hostwire.Serve(ctx, stdin, stdout, h, hostwire.Hello{
		Version: version(), Host: name, OS: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(),
	})
}

// know adds what the laptop knows of NICs to what is built in.
func know(dev *netlink.Device, said []json.RawMessage) error {
	built, err := profiles.Default()
	if err != nil {
		return err
	}
	c, err := built.Know(said)
	if err != nil {
		return err
	}
	dev.Know(c)
	return nil
}

// stateDir is what this machine remembers: the lock of its writers, holds. Who is not root cannot write there, nor set
// much, and has a place of its own.
func stateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/fabricctl"
	}
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "fabricctl")
	}
	return filepath.Join(os.Getenv("HOME"), ".local", "state", "fabricctl")
}

// read prints the settings in the host form of the linux dialect, after the facts as comments.
func read(ctx context.Context, dev *netlink.Device, w io.Writer) error {
	f, _, err := dev.Facts(ctx)
	if err != nil {
		return err
	}
	c, err := dev.Read(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, l := range [][2]string{{"hostname", f.Hostname}, {"serial", f.Serial}, {"kernel", f.Version}} {
		if l[1] != "" {
			fmt.Fprintf(&b, "# %s %s\n", l[0], l[1])
		}
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	b.Write(render.Linux().Text(c))
	_, err = w.Write(b.Bytes())
	return err
}

// version is that of the module as the go command built it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
