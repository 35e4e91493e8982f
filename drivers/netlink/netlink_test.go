package netlink

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// host is a device over a fake kernel and a file tree of its own.
func host(t *testing.T, nccl string) (*Device, *kernel, string) {
	t.Helper()
	k := &kernel{links: []Link{
		{Index: 1, Name: "lo", MTU: 65536, Loopback: true},
		{Index: 2, Name: "eth0", MTU: 1500, Min: 68, Max: 9978},
		{Index: 3, Name: "eth1", MTU: 1500, Min: 68, Max: 9978},
		{Index: 4, Name: "eth1.100", MTU: 1500, Lower: 3},
	}}
	root := t.TempDir()
	conf := filepath.Join(root, "etc/nccl.conf")
	if err := os.Mkdir(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	if nccl != "" {
		write(t, conf, nccl, 0o640)
	}
	return New(Config{Name: "host1", Root: root, Links: k}), k, conf
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func mtu(link, from, to string) render.Change {
	return render.Change{Op: render.Modify, Key: mtuKey(link), Before: &from, After: &to}
}

func ncclVar(name string, from, to *string) render.Change {
	c := render.Change{Op: render.Modify, Key: render.Key{Scope: "nccl", Object: render.NCCLPath, Field: name}, Before: from, After: to}
	switch {
	case from == nil:
		c.Op = render.Add
	case to == nil:
		c.Op = render.Remove
	}
	return c
}

func read(t testing.TB, d *Device) string {
	t.Helper()
	c, err := d.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range c {
		b.WriteString(s.Key.String() + " " + s.Value + "\n")
	}
	return b.String()
}

func TestRead(t *testing.T) {
	d, _, _ := host(t, "# ours\nNCCL_IB_TC=104\nNCCL_DEBUG=INFO\n")
	want := "link|eth0|mtu 1500\nlink|eth1|mtu 1500\nlink|eth1.100|mtu 1500\nnccl|/etc/nccl.conf|NCCL_DEBUG INFO\nnccl|/etc/nccl.conf|NCCL_IB_TC 104\n"
	if diff := cmp.Diff(want, read(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommit(t *testing.T) {
	d, k, conf := host(t, "# ours\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n")
	cs := []render.Change{
		mtu("eth0", "1500", "9000"),
		ncclVar("NCCL_IB_TC", new("106"), new("104")),
		ncclVar("NCCL_IB_TIMEOUT", nil, new("20")),
		ncclVar("NCCL_DEBUG", new("INFO"), nil),
	}
	before := read(t, d)
	commit := func(cs []render.Change) {
		t.Helper()
		if err := d.Commit(context.Background(), "tx1", cs, 0); err != nil {
			t.Fatal(err)
		}
	}
	commit(cs)
	text, _ := os.ReadFile(conf)
	if diff := cmp.Diff("# ours\nNCCL_IB_TC=104\nNCCL_IB_TIMEOUT=20\n", string(text)); diff != "" {
		t.Errorf("nccl.conf (-want +got):\n%s", diff)
	}
	st, err := os.Stat(conf)
	if err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, %v, want the old 0640", st.Mode(), err)
	}
	commit(cs) // again: nothing left to do
	if now, _ := os.Stat(conf); k.sets != 1 || !os.SameFile(st, now) {
		t.Errorf("the second commit wrote: %d sets, new file %v", k.sets, !os.SameFile(st, now))
	}
	commit(render.Undo(cs))
	if diff := cmp.Diff(before, read(t, d)); diff != "" {
		t.Errorf("after undo (-want +got):\n%s", diff)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(conf), ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What cannot be done is refused before the first write, with the reason.
func TestCommitRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cs     []render.Change
		within time.Duration
		is     error
		says   string
	}{
		{"moved mtu", []render.Change{mtu("eth0", "4200", "9000")}, 0, drivers.ErrMoved, "host1: commit: the device changed since the plan: link|eth0|mtu is 1500, expected 4200"},
		{"moved variable", []render.Change{ncclVar("NCCL_IB_TC", nil, new("104"))}, 0, drivers.ErrMoved, "is 106, expected absent"},
		{"confirm", []render.Change{mtu("eth0", "1500", "9000")}, time.Minute, drivers.ErrNoConfirm, "no confirm timer"},
		{"link gone", []render.Change{mtu("eth9", "1500", "9000")}, 0, drivers.ErrMoved, "link|eth9|mtu is absent, expected 1500"},
		{"link never there", []render.Change{{Op: render.Add, Key: mtuKey("eth9"), After: new("9000")}}, 0, nil, "no such link"},
		{"too large", []render.Change{mtu("eth1", "1500", "9000"), mtu("eth0", "1500", "9979")}, 0, nil, "the driver takes 68 to 9978"},
		{"not a number", []render.Change{mtu("eth0", "1500", "9KB")}, 0, nil, "not a number of bytes"},
		{"no mtu", []render.Change{{Op: render.Remove, Key: mtuKey("eth0"), Before: new("1500")}}, 0, nil, "always has an MTU"},
		{"unknown setting", []render.Change{{Op: render.Add, Key: render.Key{Scope: "frobnicate", Object: "eth0", Field: "3"}, After: new("1")}}, 0, nil, "no such setting"},
		{"two lines in a value", []render.Change{mtu("eth0", "1500", "9000"), ncclVar("NCCL_IB_TC", new("106"), new("1\nX=2"))}, 0, nil, "printable"},
		{"another file", []render.Change{{Op: render.Add, Key: render.Key{Scope: "nccl", Object: "/etc/passwd", Field: "X"}, After: new("1")}}, 0, nil, "not a variable of /etc/nccl.conf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, k, _ := host(t, "NCCL_IB_TC=106\n")
			before := read(t, d)
			err := d.Commit(context.Background(), "tx1", tt.cs, tt.within)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "host1: ") {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			var rej *drivers.RejectedError
			if tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil && !errors.As(err, &rej) {
				t.Errorf("%v is not of the right kind", err)
			}
			if k.sets != 0 || read(t, d) != before {
				t.Errorf("something was written: %d sets\n%s", k.sets, read(t, d))
			}
		})
	}
}

// A driver that acknowledges and keeps the old value is found out.
func TestSaysOKButKeeps(t *testing.T) {
	d, k, _ := host(t, "")
	k.keep = true
	err := d.Commit(context.Background(), "tx1", []render.Change{mtu("eth0", "1500", "9000")}, 0)
	if want := `host1: applied-but-differs: "link|eth0|mtu 9000" was acknowledged, but reads 1500`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestKernelRefuses(t *testing.T) {
	d, k, conf := host(t, "")
	k.refuse = errors.New("operation not permitted")
	cs := []render.Change{mtu("eth0", "1500", "9000"), mtu("eth1", "1500", "9000"), ncclVar("A", nil, new("1"))}
	err := d.Commit(context.Background(), "tx1", cs, 0)
	if want := `host1: device refused "link|eth0|mtu 9000": operation not permitted`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := os.Stat(conf); k.sets != 1 || err == nil {
		t.Errorf("went on after the refusal: %d sets, nccl.conf %v", k.sets, err)
	}
}

func TestLoweringBelowAnUpperLink(t *testing.T) {
	d, k, _ := host(t, "")
	err := d.Commit(context.Background(), "tx1", []render.Change{mtu("eth1", "1500", "1400")}, 0)
	if err == nil || !strings.Contains(err.Error(), "eth1.100, with MTU 1500, rides on it and the kernel would lower that too: lower eth1.100 first") || k.sets > 0 {
		t.Errorf("got %v after %d sets", err, k.sets)
	}
	if err := d.Commit(context.Background(), "tx2", []render.Change{mtu("eth1.100", "1500", "1400"), mtu("eth1", "1500", "1400")}, 0); err != nil {
		t.Error(err)
	}
}

// Between two writes the end of the context is seen; the state is what Read says.
func TestCancelBetweenWrites(t *testing.T) {
	d, k, conf := host(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	k.before = func() {
		if k.sets == 1 {
			cancel()
		}
	}
	cs := []render.Change{mtu("eth0", "1500", "9000"), mtu("eth1", "1500", "9000"), ncclVar("A", nil, new("1"))}
	if err := d.Commit(ctx, "tx1", cs, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(conf); k.sets != 1 || err == nil {
		t.Errorf("went on: %d sets, nccl.conf %v", k.sets, err)
	}
	k.before = nil
	if err := d.Commit(context.Background(), "tx1", cs, 0); err != nil { // resume
		t.Error(err)
	}
}

// A file that moves while links are being set is seen before it is rewritten.
func TestFileMovesMeanwhile(t *testing.T) {
	d, k, conf := host(t, "A=1\n")
	k.before = func() { write(t, conf, "A=7\n", 0o640) }
	err := d.Commit(context.Background(), "tx1", []render.Change{mtu("eth0", "1500", "9000"), ncclVar("A", new("1"), new("2"))}, 0)
	if got, _ := os.ReadFile(conf); !errors.Is(err, drivers.ErrMoved) || string(got) != "A=7\n" {
		t.Errorf("got %v, and the file is %q", err, got)
	}
}

func TestHostileFiles(t *testing.T) {
	one := []render.Change{ncclVar("A", nil, new("1"))}
	for _, tt := range []struct {
		name string
		make func(conf string) error
		read string // error of Read, "" = none
		says string // error of Commit
	}{
		{"symbolic link", func(p string) error { return os.Symlink("/dev/null", p) }, "not a regular file", "not a regular file"},
		{"link to a file", func(p string) error {
			return errors.Join(os.WriteFile(p+".real", []byte("B=1\n"), 0o644), os.Symlink(p+".real", p))
		}, "", "symbolic link to"},
		{"fifo", func(p string) error { return syscall.Mkfifo(p, 0o644) }, "not a regular file", "not a regular file"},
		{"directory", func(p string) error { return os.Mkdir(p, 0o755) }, "not a regular file", "not a regular file"},
		{"huge", func(p string) error { return os.WriteFile(p, make([]byte, maxFile+1), 0o644) }, "larger than", "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _, conf := host(t, "")
			if err := tt.make(conf); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Read(context.Background()); tt.read == "" && err != nil || tt.read != "" && (err == nil || !strings.Contains(err.Error(), tt.read)) {
				t.Errorf("read: got %v, want %q", err, tt.read)
			}
			if err := d.Commit(context.Background(), "tx1", one, 0); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("commit: got %v, want %q", err, tt.says)
			}
		})
	}
}

// A file that cannot be replaced is found before anything is written.
func TestCommitRefusesFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(root string) error
		says string
	}{
		{"a symbolic link", func(root string) error {
			return errors.Join(os.WriteFile(filepath.Join(root, "real"), []byte("B=1\n"), 0o644), os.Symlink("../real", filepath.Join(root, render.NCCLPath)))
		}, "symbolic link to ../real"},
		{"no directory", func(root string) error { return os.Remove(filepath.Join(root, "etc/security/limits.d")) }, "no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := nicRig(t, "mlx5")
			if err := tt.make(r.cfg.Root); err != nil {
				t.Fatal(err)
			}
			cs := changes(t, r, "link|eth0|mtu=9000", "nccl|/etc/nccl.conf|NCCL_IB_TC=104", "limit|"+render.MemlockPath+"|memlock=unlimited")
			err := r.Commit(t.Context(), "tx1", cs, 0)
			if err == nil || !strings.Contains(err.Error(), tt.says) || r.writes() != 0 {
				t.Errorf("got %v after %d writes", err, r.writes())
			}
		})
	}
}

func TestEditedInThisMoment(t *testing.T) {
	_, _, conf := host(t, "A=1\n")
	_, _, err := file{conf, func(string) {}}.rewrite(func(c content) (content, error) {
		write(t, conf, "A=1\nB=2\n", 0o640)
		return c.edited(append(c.text, "C=3\n"...)), nil
	})
	if got, _ := os.ReadFile(conf); err == nil || string(got) != "A=1\nB=2\n" {
		t.Errorf("got %v, and the file is %q", err, got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(conf), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFacts(t *testing.T) {
	d, k, _ := host(t, "")
	root := d.cfg.Root
	k.links = append(k.links, Link{Index: 5, Name: "eth2", MTU: 1500}, Link{Index: 6, Name: "eth3", MTU: 1500}, Link{Index: 7, Name: "pf0vf0", MTU: 1500}, Link{Index: 8, Name: "sf0", MTU: 1500})
	tree := map[string]string{
		"proc/sys/kernel/hostname":             "gpu-17\n",
		"proc/sys/kernel/osrelease":            "6.12.0-x\n",
		"sys/class/dmi/id/product_serial":      "S123\n",
		"sys/devices/pci0/0000:17:00.0/vendor": "0x15b3\n", "sys/devices/pci0/0000:17:00.0/device": "0x1021\n",
		"sys/devices/pci0/0000:18:00.0/vendor": "0x15b3\n", "sys/devices/pci0/0000:18:00.0/device": "0x1013\n",
		"sys/devices/pci0/0000:00:05.0/vendor": "0x1af4\n", "sys/devices/pci0/0000:00:05.0/device": "0x1041\n",
		"sys/devices/pci0/0000:00:05.0/virtio3/x": "", "sys/devices/pci0/0000:17:00.0/mlx5_core.sf.2/x": "",
		"sys/class/net/pf0vf0/phys_port_name": "pf0vf0\n", "sys/class/net/eth0/phys_port_name": "p0\n",
		"sys/class/net/eth1/x": "", "sys/class/net/eth2/x": "", "sys/class/net/eth3/x": "", "sys/class/net/sf0/x": "",
		"sys/bus/pci/drivers/mlx5_core/x": "", "sys/bus/virtio/drivers/virtio_net/x": "",
	}
	for name, text := range tree {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, p, text, 0o644)
	}
	for link, to := range map[string]string{
		"sys/class/net/eth0/device":                    "../../../devices/pci0/0000:17:00.0",
		"sys/class/net/pf0vf0/device":                  "../../../devices/pci0/0000:17:00.0",
		"sys/class/net/sf0/device":                     "../../../devices/pci0/0000:17:00.0/mlx5_core.sf.2",
		"sys/class/net/eth1/device":                    "../../../devices/pci0/0000:00:05.0/virtio3",
		"sys/class/net/eth2/device":                    "../../../devices/pci0/0000:18:00.0",
		"sys/class/net/eth3/device":                    "../../../devices/pci0/0000:18:00.0",
		"sys/devices/pci0/0000:17:00.0/driver":         "../../../bus/pci/drivers/mlx5_core",
		"sys/devices/pci0/0000:00:05.0/virtio3/driver": "../../../../bus/virtio/drivers/virtio_net",
	} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	f, caps, err := d.Facts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := render.Facts{
		Hostname: "gpu-17", Serial: "S123", Version: "6.12.0-x", Model: "15b3:1013,15b3:1021,1af4:1041",
		Aliases: map[string]string{"0000:17:00.0": "eth0", "0000:00:05.0": "eth1"},
		Notes: []string{
			"what is set here but files is lost at a reboot or a driver reload, unless fabricctl-host applies it at boot; /etc/nccl.conf is saved at once",
			"eth0: driver mlx5_core, PCI 0000:17:00.0 (15b3:1021)",
			"eth1: driver virtio_net, PCI 0000:00:05.0 (1af4:1041)",
			"eth2: driver none, PCI 0000:18:00.0 (15b3:1013)",
			"eth3: driver none, PCI 0000:18:00.0 (15b3:1013)",
			"sf0: driver none, PCI 0000:17:00.0 (15b3:1021)",
			"PCI 0000:18:00.0 has several links, name the one that is meant: eth2, eth3",
		},
		NICs: []render.HostNIC{
			{Name: "eth0", PCI: "0000:17:00.0", Model: "15b3:1021", Port: 1, Driver: "mlx5_core", Personality: "mlx5", NUMA: -1, GID: -1, GIDWhy: "it has no RDMA device"},
			{Name: "eth1", PCI: "0000:00:05.0", Model: "1af4:1041", Driver: "virtio_net", Personality: "generic", NUMA: -1, GID: -1, GIDWhy: "it has no RDMA device"},
			{Name: "eth2", PCI: "0000:18:00.0", Model: "15b3:1013", Driver: "none", Personality: "generic", NUMA: -1, GID: -1, GIDWhy: "it has no RDMA device"},
			{Name: "eth3", PCI: "0000:18:00.0", Model: "15b3:1013", Driver: "none", Personality: "generic", NUMA: -1, GID: -1, GIDWhy: "it has no RDMA device"},
			{Name: "sf0", PCI: "0000:17:00.0", Model: "15b3:1021", Driver: "none", Personality: "generic", VFOf: "0000:17:00.0", NUMA: -1, GID: -1, GIDWhy: "it has no RDMA device"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if caps != (drivers.Caps{PersistsOnCommit: true, Counters: true}) {
		t.Errorf("caps %+v", caps)
	}
}

func TestFactsOfABareTree(t *testing.T) {
	d, _, _ := host(t, "")
	f, _, err := d.Facts(context.Background())
	if err != nil || f.Serial != "" || len(f.Aliases) != 0 {
		t.Errorf("got %+v, %v", f, err)
	}
	for _, s := range []string{"None", "To Be Filled By O.E.M.", "Default string"} {
		if serial(s) != "" {
			t.Errorf("%q passes for a serial number", s)
		}
	}
}
