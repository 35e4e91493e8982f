package dcb_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// namespace moves the test's thread into a network namespace of its own, and never gives the thread back.
func namespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // without unlocking: the thread ends with the goroutine, and the namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			witness.Missing(t, "a network namespace is not permitted: "+err.Error())
		}
		t.Fatal(err)
	}
}

func open(t *testing.T) *dcb.Client {
	t.Helper()
	c, err := dcb.Open(dcb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(witness.Tool(t, "ip"), args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// The kernel that this runs on has no NIC with DCB, so it refuses, each time for another reason.
func TestKernel(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	c := open(t)
	ctx := t.Context()
	if ok, err := c.Supported(ctx); err != nil || !ok {
		witness.Missing(t, fmt.Sprintf("a kernel with CONFIG_DCB: %v, %v", ok, err))
	}
	for range 2 { // a refusal leaves the connection usable
		for _, name := range []string{"lo", "rail0"} {
			_, err := c.Get(ctx, name)
			set := c.SetPFC(ctx, name, func(*dcb.PFC) { t.Error("called") })
			app := c.AddApp(ctx, name, dcb.DSCP(26, 3))
			for _, err := range []error{err, set, app} {
				if !errors.Is(err, dcb.EOPNOTSUPP) || !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), ": not supported: a loopback") {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		_, err := c.Get(ctx, "none")
		if !errors.Is(err, dcb.ENODEV) || !errors.Is(err, unix.ENODEV) || err.Error() != "none: get: no such interface: there is none of that name in this network namespace" {
			t.Errorf("got %v", err)
		}
	}
}

const inside = "DCB_TEST_INSIDE"

// Root of a user namespace of its own may look and not touch. The question is asked by a process of its own.
func TestKernelUserNamespace(t *testing.T) {
	if os.Getenv(inside) != "" {
		c := open(t)
		_, get := c.Get(t.Context(), "lo")
		set := c.AddApp(t.Context(), "lo", dcb.DSCP(26, 3))
		fmt.Println("get:", errors.Is(get, unix.EOPNOTSUPP), "set:", errors.Is(set, unix.EPERM), errors.Is(set, fs.ErrPermission), set)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKernelUserNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		if _, ran := errors.AsType[*exec.ExitError](err); !ran {
			witness.Missing(t, "a user namespace is not permitted: "+err.Error())
		}
		t.Fatalf("%v\n%s", err, out)
	}
	want := "get: true set: true true lo: add dscp 26 to priority 3: operation not permitted: a set needs CAP_NET_ADMIN in the initial user namespace"
	if !strings.Contains(string(out), want) {
		t.Errorf("got %s\nwant %s", out, want)
	}
}

// Real notifications of links, one after the other, and the end of waiting.
func TestKernelWatch(t *testing.T) {
	namespace(t)
	w, err := dcb.Watch(dcb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	ip(t, "link", "set", "rail0", "up")
	ip(t, "link", "set", "rail1", "up")
	running, index := map[string]bool{}, map[string]int32{}
	for !running["rail0"] || !running["rail1"] {
		e, err := w.Next(t.Context())
		if err != nil || e.Kind != dcb.Link {
			t.Fatal(e, err)
		}
		running[e.Ifname], index[e.Ifname] = e.Running, e.Index
	}
	ip(t, "link", "del", "rail0")
	for gone := 0; gone < 2; {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dcb.Gone {
			gone++
			if index[e.Ifname] != e.Index || e.Index == 0 {
				t.Errorf("%+v, was %v", e, index)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	ip(t, "link", "set", "lo", "up")
	if e, err := w.Next(t.Context()); err != nil || e.Ifname != "lo" { // usable again
		t.Error(e, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		for {
			if _, err := w.Next(ctx); err != nil {
				done <- err
				return
			}
		}
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Who does not listen for too long hears that something was lost, and then what comes.
func TestKernelOverrun(t *testing.T) {
	room := 212992 // what a socket may hold, as most systems have it
	if b, err := os.ReadFile("/proc/sys/net/core/rmem_default"); err == nil {
		if room, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
			t.Fatal(err)
		}
	}
	namespace(t)
	w, err := dcb.Watch(dcb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The loopback up and down; each is a notification of more than 500 bytes.
	for i := range 2 * room / 500 {
		b := make([]byte, unix.SizeofIfInfomsg)
		binary.NativeEndian.PutUint32(b[4:], 1)
		binary.NativeEndian.PutUint32(b[8:], uint32(1-i%2)) // flags
		binary.NativeEndian.PutUint32(b[12:], 1)            // IFF_UP is meant
		m := netlink.Message{Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: netlink.Request | netlink.Acknowledge}, Data: b}
		if _, err := c.Execute(m); err != nil {
			t.Fatal(err)
		}
	}
	kinds := map[dcb.EventKind]int{}
	for kinds[dcb.Lost] == 0 {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
	}
	if e, err := w.Next(t.Context()); err != nil || e.Kind != dcb.Link || e.Ifname != "lo" {
		t.Errorf("after %v: %+v, %v", kinds, e, err)
	}
}
