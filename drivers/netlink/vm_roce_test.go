//go:build vm

package netlink

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// rail gives a NIC the address and the MTU of a rail, and takes them back.
func rail(t *testing.T, dev, address string) {
	t.Helper()
	ip(t, "link", "set", dev, "mtu", "9000", "up")
	ip(t, "addr", "add", address, "dev", dev)
	t.Cleanup(func() {
		ip(t, "addr", "flush", "dev", dev)
		ip(t, "link", "set", dev, "mtu", "1500", "down")
	})
}

func hostNIC(t *testing.T, d *Device, dev string) render.HostNIC {
	t.Helper()
	f, _, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.NICs, func(n render.HostNIC) bool { return n.Name == dev })
	if i < 0 {
		t.Fatalf("no %s in %+v", dev, f.NICs)
	}
	return f.NICs[i]
}

// verbsGID is the index that libibverbs shows for an IPv4 address with RoCE v2, -1 for none.
func verbsGID(t *testing.T, rdma, address string) int {
	t.Helper()
	row := regexp.MustCompile(`GID\[ *(\d+)\]:\s+::ffff:` + regexp.QuoteMeta(address) + `, RoCE v2`)
	m := row.FindStringSubmatch(program(t, "ibv_devinfo -v -d "+rdma))
	if m == nil {
		return -1
	}
	i, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// The GID of an address is found where libibverbs finds it, wherever that is: after it moved, and beside a VLAN's.
func TestVMRoCEGID(t *testing.T) {
	d := whole(t)
	if n := hostNIC(t, d, "dcb0"); n.RDMA != "rxe0" || n.RDMAPort != 1 || n.GID != -1 || n.GIDWhy != "dcb0 has no IPv4 address in the GID table" {
		t.Errorf("without an address: RDMA device %q port %d, GID %d: %s", n.RDMA, n.RDMAPort, n.GID, n.GIDWhy)
	}
	rail(t, "dcb0", "192.168.1.11/31")
	row := table(t, "gid", "situation", "index that we find", "what we say of it", "index that libibverbs shows")
	agree := func(what string) int {
		t.Helper()
		n, want := hostNIC(t, d, "dcb0"), verbsGID(t, "rxe0", "192.168.1.11")
		if n.GID != want {
			t.Errorf("%s: we find GID %d (%s), libibverbs shows %d", what, n.GID, n.GIDWhy, want)
		}
		row(what, strconv.Itoa(n.GID), n.GIDWhy, strconv.Itoa(want))
		return n.GID
	}
	first := agree("one address")
	if first < 0 {
		t.Error("one address: no GID")
	}
	// A VLAN's address takes the next slot; the address that goes leaves a hole, and comes back behind it.
	ip(t, "link", "add", "link", "dcb0", "name", "dcb0.7", "type", "vlan", "id", "7")
	t.Cleanup(func() { ip(t, "link", "del", "dcb0.7") })
	ip(t, "link", "set", "dcb0.7", "up")
	ip(t, "addr", "add", "192.168.7.11/24", "dev", "dcb0.7")
	agree("a VLAN beside it")
	if n := hostNIC(t, d, "dcb0"); !strings.Contains(n.GIDWhy, "192.168.7.11 on dcb0.7") {
		t.Errorf("a VLAN beside it: %q", n.GIDWhy)
	}
	ip(t, "addr", "del", "192.168.1.11/31", "dev", "dcb0")
	if n := hostNIC(t, d, "dcb0"); n.GID != verbsGID(t, "rxe0", "192.168.7.11") {
		t.Errorf("a hole: we find GID %d (%s)", n.GID, n.GIDWhy)
	}
	ip(t, "addr", "add", "192.168.9.9/24", "dev", "dcb0") // takes the slot
	ip(t, "addr", "add", "192.168.1.11/31", "dev", "dcb0")
	ip(t, "addr", "del", "192.168.9.9/24", "dev", "dcb0")
	if moved := agree("after it moved"); moved == first {
		t.Errorf("it did not move from %d, so this shows nothing", first)
	}
	table, err := gidTable(d.tree, "rxe0", 1, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range table {
		if e.index != i {
			return // there is a hole, as meant
		}
	}
	t.Errorf("the table has no hole: %+v", table)
}

// What the kernel knows of the NICs beside RDMA.
func TestVMRoCEFacts(t *testing.T) {
	d := whole(t)
	rail(t, "dcb0", "192.168.1.11/31")
	n := hostNIC(t, d, "dcb0")
	if n.Link.Speed.String() != "400Gbps" || !n.Link.Up || !slices.Equal(n.Addresses, []string{"192.168.1.11/31"}) || n.QPs != 0 {
		t.Errorf("dcb0: %+v", n)
	}
	for _, k := range []string{"roce.mode", "roce.tos", "pfc", "pause"} {
		if !slices.Contains(n.Knobs, k) {
			t.Errorf("dcb0 answers %v, without %s", n.Knobs, k)
		}
	}
	if e := hostNIC(t, d, "eth0"); e.PCI != "0000:01:00.0" || e.Driver != "virtio_net" || e.RDMA != "rxe4" || e.VFOf != "" {
		t.Errorf("eth0: %+v", e)
	}
}

// Live queue pairs are counted as the kernel has them, and keep a link that a set would take down.
func TestVMRoCEJobs(t *testing.T) {
	const dev = "dcb1"
	rail(t, dev, "192.168.2.11/31")
	d := whole(t)
	if n := hostNIC(t, d, dev); n.QPs != 0 {
		t.Errorf("before any program: %d queue pairs", n.QPs)
	}
	job := exec.CommandContext(t.Context(), witness.Tool(t, "ibv_rc_pingpong"), "-d", "rxe1", "-g", strconv.Itoa(verbsGID(t, "rxe1", "192.168.2.11")))
	var says bytes.Buffer
	job.Stdout, job.Stderr = &says, &says
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	for hostNIC(t, d, dev).QPs != 1 {
		select {
		case err := <-ended:
			t.Fatalf("the program that waits for another one ended: %v: %s", err, &says)
		default:
		}
	}
	before := peek(t, debug(dev, "sets"))
	pause := towards(t, d, dev, map[string]string{"pfc priorities": "3"})
	if err := d.Commit(t.Context(), "x", pause, 0); !errors.Is(err, drivers.ErrJobs) || !strings.Contains(err.Error(), "1 on rxe1") {
		t.Errorf("PFC under a running program: %v", err)
	}
	if now := peek(t, debug(dev, "sets")); now != before {
		t.Errorf("the driver was called %s times, then %s", before, now)
	}
	// What does not flap goes on.
	if err := d.Commit(t.Context(), "y", towards(t, d, dev, map[string]string{"app dscp 26": "3"}), 0); err != nil {
		t.Error(err)
	}
	d.AllowJobs(true)
	if err := d.Commit(t.Context(), "z", pause, 0); err != nil {
		t.Errorf("with leave: %v", err)
	}
	if err := job.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if n := hostNIC(t, d, dev); n.QPs != 0 {
		t.Errorf("after it ended: %d queue pairs", n.QPs)
	}
}

// The GID that was found carries traffic: two programs talk over it, and over an empty slot they do not.
func TestVMRoCETraffic(t *testing.T) {
	rail(t, "eth0", "192.168.5.1/24")
	gid := hostNIC(t, whole(t), "eth0").GID
	talk := func(gid int) error {
		args := []string{"-d", "rxe4", "-g", strconv.Itoa(gid), "-n", "20"}
		server := exec.CommandContext(t.Context(), witness.Tool(t, "ibv_rc_pingpong"), args...)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		defer server.Wait()
		defer server.Process.Kill()
		for !strings.Contains(peek(t, "/proc/net/tcp6"), ":4853 ") && !strings.Contains(peek(t, "/proc/net/tcp"), ":4853 ") { // port 18515
			if err := server.Process.Signal(syscall.Signal(0)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), witness.Tool(t, "ibv_rc_pingpong"), append(args, "192.168.5.1")...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := talk(gid); err != nil {
		t.Errorf("GID %d: %v", gid, err)
	}
	if err := talk(gid + 1); err == nil {
		t.Errorf("GID %d, an empty slot, carries traffic too", gid+1)
	}
}

// The kernel's own place for the mode and the ToS of connections of rdma_cm: made, written, read back, refused, taken
// back.
func TestVMRoCEConfigfs(t *testing.T) {
	const dev = "dcb2"
	rail(t, dev, "192.168.3.11/31")
	d := whole(t)
	const dir = "/sys/kernel/config/rdma_cm/rxe2"
	before, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cs := towards(t, d, dev, map[string]string{"roce tos": "104", "roce mode": "v2"})
	if err := d.Commit(t.Context(), "x", cs, 0); err != nil {
		t.Fatal(err)
	}
	if tos, mode := peek(t, dir+"/ports/1/default_roce_tos"), peek(t, dir+"/ports/1/default_roce_mode"); tos != "104" || mode != "RoCE v2" {
		t.Errorf("configfs shows ToS %s, mode %s", tos, mode)
	}
	if err := d.Commit(t.Context(), "too much", towards(t, d, dev, map[string]string{"roce tos": "256"}), 0); err == nil {
		t.Error("a ToS of 256 was taken")
	}
	err = d.Commit(t.Context(), "v1", towards(t, d, dev, map[string]string{"roce mode": "v1"}), 0)
	if err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("a mode that soft-RoCE has not: %v", err)
	}
	poke(t, dir+"/ports/1/default_roce_tos", "0x6a\n") // somebody else's spelling
	if len(towards(t, d, dev, map[string]string{"roce tos": "106"})) > 0 {
		t.Error("0x6a is not read as 106")
	}
	poke(t, dir+"/ports/1/default_roce_tos", "104")
	if err := d.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	after, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := render.Diff(d.dialect, render.Facts{}, after, before); len(diff) > 0 {
		t.Errorf("after it is taken back: %v", diff)
	}
	// The kernel keeps the value when the directory goes: it must be the one from before.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	if tos := peek(t, dir+"/ports/1/default_roce_tos"); tos != "0" {
		t.Errorf("after it is taken back connections still have ToS %s", tos)
	}
}

// A whole host with RDMA: everything at once, and back.
func TestVMRoCECommit(t *testing.T) {
	const dev = "dcb3"
	rail(t, dev, "192.168.4.11/31")
	d := whole(t)
	before, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := losslessHost()
	want["roce tos"], want["roce mode"] = "104", "v2"
	cs := towards(t, d, dev, want)
	if err := d.Commit(t.Context(), "x", cs, 0); err != nil {
		t.Fatal(err)
	}
	if again := towards(t, d, dev, want); len(again) > 0 {
		t.Errorf("it is not all there: %v", again)
	}
	if out := program(t, "ibv_devinfo -d rxe3"); !strings.Contains(out, "active_mtu:\t\t4096") {
		t.Errorf("libibverbs shows\n%s", out)
	}
	if err := d.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	after, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := render.Diff(d.dialect, render.Facts{}, after, before); len(diff) > 0 {
		t.Errorf("after it is taken back: %v", diff)
	}
}

// The interrupts of a NIC on PCI Express move, and its read request size, which this one acknowledges and keeps, is said to.
func TestVMRoCESystem(t *testing.T) {
	d := whole(t)
	affinity := func() (out []string) {
		for line := range strings.Lines(peek(t, "/proc/interrupts")) {
			if n, _, _ := strings.Cut(strings.TrimSpace(line), ":"); strings.Contains(line, "virtio0-") {
				out = append(out, peek(t, "/proc/irq/"+n+"/smp_affinity_list"))
			}
		}
		return out
	}
	before := affinity()
	if len(before) < 3 {
		t.Fatalf("interrupts of eth0: %v", before)
	}
	spread := towards(t, d, "eth0", map[string]string{"irq affinity": "spread"})
	if err := d.Commit(t.Context(), "x", spread, 0); err != nil {
		t.Error(err)
	}
	for i, cpu := range affinity() {
		if cpu != strconv.Itoa(i%2) {
			t.Errorf("interrupt %d of eth0 goes to %s of two processors", i, cpu)
		}
	}
	if err := d.Commit(t.Context(), "back", render.Undo(spread), 0); err != nil {
		t.Error(err)
	}
	if now := affinity(); !slices.Equal(now, before) {
		t.Errorf("after it is taken back: %v, was %v", now, before)
	}
	err := d.Commit(t.Context(), "x", towards(t, d, "eth0", map[string]string{"pci max-read-request": "4096"}), 0)
	if differs := (*drivers.DiffersError)(nil); !errors.As(err, &differs) || differs.Reads != "128" {
		t.Errorf("a read request size that QEMU keeps: %v", err)
	}
}
