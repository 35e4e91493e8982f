package netlink

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// namespace moves the test's thread into a network namespace of its own, and never gives the thread back. Everything
// below it that opens a socket or starts a program must do so from the test's goroutine.
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

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(witness.Tool(t, "ip"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// shown is the MTU of each link as iproute2 sees it.
func shown(t *testing.T) map[string]int {
	t.Helper()
	var links []struct {
		Name string `json:"ifname"`
		MTU  int    `json:"mtu"`
	}
	if err := json.Unmarshal([]byte(ip(t, "-j", "link", "show")), &links); err != nil {
		t.Fatal(err)
	}
	m := map[string]int{}
	for _, l := range links {
		m[l.Name] = l.MTU
	}
	return m
}

// here is a device on the real kernel, in the namespace of the test.
func here(t *testing.T) *Device {
	t.Helper()
	links, err := Dial()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(root+"/etc", 0o755); err != nil {
		t.Fatal(err)
	}
	d := New(Config{Name: "here", Root: root, Links: links})
	t.Cleanup(func() { d.Close() })
	return d
}

func TestKernel(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	d := here(t)
	ctx := context.Background()

	live, err := d.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, mtu := range shown(t) { // all that ip shows, but the loopback
		got, ok := live.Find(mtuKey(name))
		if ok == (name == "lo") || ok && got != strconv.Itoa(mtu) {
			t.Errorf("%s: read %q, %v; ip shows %d", name, got, ok, mtu)
		}
	}

	cs := []render.Change{mtu("rail0", "1500", "9000"), mtu("rail1", "1500", "4200")}
	if err := d.Commit(ctx, "tx1", cs, 0); err != nil {
		t.Fatal(err)
	}
	if m := shown(t); m["rail0"] != 9000 || m["rail1"] != 4200 {
		t.Errorf("after commit ip shows %v", m)
	}
	if err := d.Commit(ctx, "tx2", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	if m := shown(t); m["rail0"] != 1500 || m["rail1"] != 1500 {
		t.Errorf("after undo ip shows %v", m)
	}
	if err := d.Commit(ctx, "tx3", []render.Change{mtu("rail0", "9000", "4200")}, 0); !errors.Is(err, drivers.ErrMoved) {
		t.Errorf("commit with a stale before: %v", err)
	}
}

// The kernel's own sentence for a value below the device's minimum reaches the user, and our reading of the limits
// is the kernel's.
func TestKernelSentence(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	d := here(t)
	links, err := d.cfg.Links.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name != "rail0" {
			continue
		}
		if l.Min != 68 || l.Max != 65535 {
			t.Errorf("limits of a veth: %d to %d", l.Min, l.Max)
		}
		err := d.cfg.Links.SetMTU(context.Background(), l.Index, l.Min-1)
		if want := "mtu less than device minimum (invalid argument)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		return
	}
	t.Error("rail0 is not in the list")
}

// The kernel lowers what rides on a link along with it. A macvlan shows it; for a VLAN it is the same code path in
// the kernel's source (vlan_device_event), and many test kernels are built without VLANs.
func TestKernelLowersUpperLinks(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "mtu", "9000", "type", "veth", "peer", "name", "rail1")
	ip(t, "link", "add", "link", "rail0", "name", "mac0", "type", "macvlan")
	d := here(t)
	err := d.Commit(context.Background(), "tx1", []render.Change{mtu("rail0", "9000", "1500")}, 0)
	if err == nil || !strings.Contains(err.Error(), "rides on it") || shown(t)["rail0"] != 9000 {
		t.Errorf("got %v, and rail0 has %d", err, shown(t)["rail0"])
	}
	ip(t, "link", "set", "rail0", "mtu", "1500")
	if m := shown(t); m["mac0"] != 1500 {
		t.Errorf("the kernel did not lower it: %v", m)
	}
	// The far end of a veth is not below it.
	if err := d.Commit(context.Background(), "tx2", []render.Change{mtu("rail1", "1500", "1400")}, 0); err != nil {
		t.Error(err)
	}
}

// A list that the kernel calls interrupted is asked for again; one that stays so is an error.
func TestInterruptedDump(t *testing.T) {
	interrupted := 3
	conn := nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		m := netlink.Message{Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: netlink.Multi}, Data: append(ifinfo(7), 8, 0, unix.IFLA_MTU, 0, 0x28, 0x23, 0, 0)}
		end := netlink.Message{Header: netlink.Header{Type: netlink.Done, Flags: netlink.Multi}}
		for i := range req {
			m.Header.Sequence, end.Header.Sequence = req[i].Header.Sequence, req[i].Header.Sequence
		}
		if interrupted > 0 {
			interrupted--
			m.Header.Flags |= netlink.DumpInterrupted
		}
		return []netlink.Message{m, end}, nil
	})
	defer conn.Close()
	if ls, err := (rtnl{conn}).List(t.Context()); err != nil || len(ls) != 1 || ls[0].Index != 7 || ls[0].MTU != 9000 || interrupted > 0 {
		t.Errorf("got %+v, %v", ls, err)
	}
	interrupted = 1000
	if _, err := (rtnl{conn}).List(t.Context()); err == nil || !strings.Contains(err.Error(), "came and went") {
		t.Errorf("got %v", err)
	}
}

func TestCancelled(t *testing.T) {
	d := here(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := d.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(make([]byte, unix.SizeofIfInfomsg))
	f.Add(append(ifinfo(3), 8, 0, 4, 0, 0x28, 0x23, 0, 0, 12, 0, 18, 0, 8, 0, 1, 0, 'v', 'l', 'a', 0))
	f.Fuzz(func(t *testing.T, b []byte) { parseLink(b) })
}

// What the kernel says through ethtool and RDMA netlink is what ethtool and rdma say, where they are there; a link
// without a setting does not have it, and one that went away is no error of the whole.
func TestKernelEthtool(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	e, err := DialEthtool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	ctx := t.Context()
	l := ethLink{e, "rail0"}
	if i, err := l.driver(ctx); err != nil || i.driver != "veth" {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := l.pause(ctx); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("pause of a veth: %v", err)
	}
	if _, err := l.fec(ctx); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("FEC of a veth: %v", err)
	}
	if names, _, err := l.flags(ctx); len(names) > 0 || err != nil {
		t.Errorf("private flags of a veth: %v, %v", names, err)
	}
	if s, err := l.statistics(ctx); err != nil || s["peer_ifindex"] == 0 {
		t.Errorf("statistics of a veth: %v, %v", s, err)
	}
	if s, err := (ethLink{e, "lo"}).statistics(ctx); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("statistics of the loopback: %v, %v", s, err)
	}
	if _, err := (ethLink{e, "nosuch0"}).driver(ctx); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no such link: %v", err)
	}
	if _, err := (ethLink{e, "a-name-that-is-too-long"}).driver(ctx); !errors.Is(err, unix.EINVAL) {
		t.Errorf("no such name: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.driver(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A kernel without RDMA devices has no queue pairs, which is no error.
func TestKernelRDMA(t *testing.T) {
	r, err := DialRDMA()
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		t.Log("this kernel has no RDMA")
		return
	}
	defer r.Close()
	if qps, err := r.QPs(t.Context()); err != nil {
		t.Errorf("%v, %v", qps, err)
	}
}

// Addresses are those that ip shows.
func TestKernelAddresses(t *testing.T) {
	namespace(t)
	ip(t, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1")
	ip(t, "addr", "add", "10.1.2.3/24", "dev", "rail0")
	ip(t, "addr", "add", "10.9.0.1", "peer", "10.9.0.2/32", "dev", "rail1")
	ip(t, "addr", "add", "2001:db8::5/64", "dev", "rail0")
	d := here(t)
	links, err := d.cfg.Links.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := d.cfg.Links.Addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range links {
		for _, p := range addrs[l.Index] {
			got[l.Name] += p.String() + " "
		}
		if l.Name == "rail0" && l.Kind != "veth" {
			t.Errorf("%s is a %q", l.Name, l.Kind)
		}
	}
	if got["rail0"] != "10.1.2.3/24 2001:db8::5/64 " || got["rail1"] != "10.9.0.1/32 " {
		t.Errorf("%q", got)
	}
}

// The whole of this machine, as it is: nothing is written, and looking twice shows the same.
func TestThisMachine(t *testing.T) {
	d, err := Open(Config{Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.Read(t.Context())
	if err != nil || len(one) == 0 || len(one) != len(two) {
		t.Errorf("%d settings, then %d, %v", len(one), len(two), err)
	}
}
