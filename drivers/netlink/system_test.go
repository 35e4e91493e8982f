package netlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
)

// Of a configuration space, three bits change.
func TestMaxReadRequest(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	was := []byte(r.tree.files["sys/devices/pci0000:17/0000:17:00.0/config"])
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pci|eth0|max-read-request=4096"), 0); err != nil {
		t.Fatal(err)
	}
	now := []byte(r.tree.files["sys/devices/pci0000:17/0000:17:00.0/config"])
	want := bytes.Clone(was)
	binary.LittleEndian.PutUint16(want[0x68:], binary.LittleEndian.Uint16(want[0x68:])&^0x7000|0x5000)
	if !bytes.Equal(now, want) {
		t.Errorf("device control is %#04x, want %#04x", now[0x68:0x6a], want[0x68:0x6a])
	}
}

// A configuration space that leads around in circles, or is cut, has no PCI Express.
func TestHostileConfigSpace(t *testing.T) {
	circle := pciConfig(512)
	circle[0x61], circle[0x60] = 0x40, 0x09
	wild := pciConfig(512)
	wild[0x41] = 0xfc
	bare := make([]byte, 64)
	for name, b := range map[string][]byte{"circle": circle, "out of it": wild[:0x100], "none": bare, "cut": pciConfig(512)[:64], "empty": nil, "through the header": append([]byte{6: 0x10, 0x34: 4, 63: 0}, make([]byte, 4)...)} {
		if _, _, ok := deviceControl(b); ok {
			t.Errorf("%s has one", name)
		}
	}
}

func TestInterrupts(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	cs := changes(t, r, "irq|eth0|affinity=local")
	if err := r.Commit(t.Context(), "tx1", cs, 0); err != nil {
		t.Fatal(err)
	}
	for irq, want := range map[string]string{"200": "0\n", "203": "3\n", "204": "0\n"} {
		if v := r.tree.files["proc/irq/"+irq+"/smp_affinity_list"]; v != want {
			t.Errorf("%s: %q", irq, v)
		}
	}
	// The kernel keeps one for itself: what went before is not lost, and the refusal says which.
	r.tree.canon["proc/irq/205/smp_affinity_list"] = func(string) (string, error) { return "", syscall.EIO }
	err := r.Commit(t.Context(), "tx2", changes(t, r, "irq|eth0|affinity=spread"), 0)
	if err == nil || !strings.Contains(err.Error(), "interrupt 205") {
		t.Errorf("got %v", err)
	}
	for list, want := range map[string][]int{"0-2,8": {0, 1, 2, 8}, "5": {5}, "": nil, "3-1": nil, "0-99999999": nil, "x": nil} {
		if got, err := cpuList(list); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if _, err := arrange("other 24:0-3", []int{24, 25}, cores{"0-3", "0-7"}); err == nil {
		t.Error("half an arrangement")
	}
}

// Of a driver's settings only the ones named change, and those that it acknowledges and keeps are found out.
func TestEthtool(t *testing.T) {
	r, _ := nicRig(t, "ice")
	e := r.eth.links["eth0"]
	*e.ring = [8]uint32{8192, 77, 78, 8192, 1024, 11, 12, 1024}
	*e.pause = [3]uint32{1, 1, 1}
	e.flagBits = 3
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "ring|eth0|rx=4096", "pause|eth0|send=off", "flag|eth0|fw-lldp-agent=off", "fec|eth0|mode=rs baser"), 0); err != nil {
		t.Fatal(err)
	}
	if *e.ring != [8]uint32{8192, 77, 78, 8192, 4096, 11, 12, 1024} || *e.pause != [3]uint32{1, 1, 0} || e.flagBits != 1 || e.fec != 1<<3|1<<4 {
		t.Errorf("rings %v, pause %v, flags %b, fec %b", *e.ring, *e.pause, e.flagBits, e.fec)
	}
	sets := r.eth.sets
	err := r.Commit(t.Context(), "tx2", changes(t, r, "ring|eth0|rx=9000"), 0)
	if err == nil || !strings.Contains(err.Error(), "the driver takes at most 8192 for receiving and 8192 for sending") || r.eth.sets != sets {
		t.Errorf("got %v", err)
	}
	e.lie = true
	err = r.Commit(t.Context(), "tx3", changes(t, r, "pause|eth0|receive=off"), 0)
	if want := `host1: applied-but-differs: "pause|eth0|receive off" was acknowledged, but reads on`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Files of others: what blocks, leads away or never ends is refused.
func TestHostileTree(t *testing.T) {
	root := t.TempDir()
	out := filepath.Join(t.TempDir(), "secret")
	make := []error{
		os.MkdirAll(filepath.Join(root, "sys/dir"), 0o755),
		os.WriteFile(out, []byte("x"), 0o644),
		os.Symlink(out, filepath.Join(root, "sys/out")),
		os.Symlink("/proc/self/environ", filepath.Join(root, "sys/proc")),
		os.Symlink("loop", filepath.Join(root, "sys/loop")),
		syscall.Mkfifo(filepath.Join(root, "sys/fifo"), 0o644),
		os.WriteFile(filepath.Join(root, "sys/huge"), bytes.Repeat([]byte("x"), maxFile+1), 0o644),
		os.WriteFile(filepath.Join(root, "sys/good"), []byte(" v \n"), 0o644),
	}
	if err := errors.Join(make...); err != nil {
		t.Fatal(err)
	}
	f := files{root}
	for _, name := range []string{"sys/out", "sys/proc", "sys/loop", "sys/fifo", "sys/huge", "sys/dir", "sys/none", "../" + filepath.Base(filepath.Dir(out)) + "/secret"} {
		if b, err := f.Read(name); err == nil {
			t.Errorf("read %s: %.20q", name, b)
		}
		if name != "sys/huge" {
			if err := f.Write(name, 0, []byte("y")); err == nil {
				t.Errorf("wrote %s", name)
			}
		}
	}
	if b, _ := os.ReadFile(out); string(b) != "x" {
		t.Errorf("it was written: %q", b)
	}
	if v, err := line(f, "/sys/good"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := f.Real("sys/out"); err == nil {
		t.Error("it leads out")
	}
	if _, err := f.Read("sys/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// qpAnswer is one message of a dump of queue pairs, with entries that have a name of the kernel or a process.
func qpAnswer(kernel ...bool) []byte {
	e := netlink.NewAttributeEncoder()
	e.Uint32(rdmaDevIndex, 3)
	e.String(rdmaDevName, "mlx5_0")
	e.Nested(rdmaQPTable, func(t *netlink.AttributeEncoder) error {
		for i, k := range kernel {
			t.Nested(rdmaQPEntry, func(q *netlink.AttributeEncoder) error {
				q.Uint32(21, uint32(i)) // its number
				if k {
					q.String(rdmaKernName, "ib_core")
				} else {
					q.Uint32(28, 1854)
				}
				return nil
			})
		}
		return nil
	})
	b, err := e.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func TestCountQPs(t *testing.T) {
	if n, err := countQPs(qpAnswer(true, false, false, true)); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if d, err := parseRDMADevice(qpAnswer()); d != (rdmaDevice{3, "mlx5_0"}) || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
}

func FuzzRDMA(f *testing.F) {
	f.Add(qpAnswer(true, false))
	f.Add(ofRDMADevice(3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := countQPs(b); err == nil && n > len(b)/4 {
			t.Errorf("%d queue pairs in %d bytes", n, len(b))
		}
		_, _ = parseRDMADevice(b)
		_, _, _ = parseAddress(b)
		_, _, _ = deviceControl(b)
		parseLimits(b)
	})
}

// under is the files of / from a directory on, so that they cost what they cost on a machine.
type under struct {
	files
	dir string
}

func (u under) Read(name string) ([]byte, error) { return u.files.Read(u.dir + "/" + name) }
func (u under) Exists(name string) bool          { return u.files.Exists(u.dir + "/" + name) }

func (u under) List(name string) ([]string, error) { return u.files.List(u.dir + "/" + name) }

func (u under) Real(name string) (string, error) {
	p, err := u.files.Real(u.dir + "/" + name)
	return strings.TrimPrefix(p, strings.TrimPrefix(u.dir, "/")+"/"), err
}

// A host with eight NICs, its files on a file system: what a plan asks of it.
func BenchmarkEightNICs(b *testing.B) {
	r := newRigAt(b, b.TempDir())
	for i, pci := range []string{"17", "18", "3a", "3b", "98", "99", "ca", "cb"} {
		link, device := "eth"+string(rune('0'+i)), "mlx5_"+string(rune('0'+i))
		r.mlx5(link, pci, device)
		r.address(link, device, "10.0."+string(rune('0'+i))+".1/24")
	}
	root := b.TempDir()
	for name, text := range r.tree.files {
		p := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	for name, to := range r.tree.links {
		p := filepath.Join(root, name)
		up := strings.Repeat("../", strings.Count(name, "/"))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.Symlink(up+to, p)); err != nil {
			b.Fatal(err)
		}
	}
	r.tree = nil
	r.Device.tree = under{files{"/"}, root}
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	was := used()
	for b.Loop() {
		if _, _, err := r.Facts(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((used()-was).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
