package netlink

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

// memTree is a machine's files in memory: recorded trees are served through it, with recorded errors, and what is
// written reads back as a kernel would print it.
type memTree struct {
	files  map[string]string
	bad    map[string]error  // to read
	links  map[string]string // to another name
	canon  map[string]func(string) (string, error)
	mkdir  func(t *memTree, name string) error
	writes []string
}

func newTree() *memTree {
	return &memTree{
		files: map[string]string{}, bad: map[string]error{}, links: map[string]string{},
		canon: map[string]func(string) (string, error){},
	}
}

func notThere(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: syscall.ENOENT} }

func (t *memTree) Real(name string) (string, error) {
	parts := strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/")
	for hops := 0; ; hops++ {
		moved := false
		for i := range parts {
			if to, ok := t.links[strings.Join(parts[:i+1], "/")]; ok {
				parts = append(strings.Split(to, "/"), parts[i+1:]...)
				moved = true
				break
			}
		}
		if !moved {
			break
		}
		if hops > 40 {
			return "", &fs.PathError{Op: "realpath", Path: name, Err: syscall.ELOOP}
		}
	}
	p := strings.Join(parts, "/")
	if _, ok := t.files[p]; ok {
		return p, nil
	}
	if _, ok := t.bad[p]; ok {
		return p, nil
	}
	for _, all := range []map[string]string{t.files, t.links} {
		for f := range all {
			if strings.HasPrefix(f, p+"/") {
				return p, nil
			}
		}
	}
	return "", notThere("realpath", name)
}

func (t *memTree) Read(name string) ([]byte, error) {
	p, err := t.Real(name)
	if err != nil {
		return nil, err
	}
	if err := t.bad[p]; err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	text, ok := t.files[p]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	return []byte(text), nil
}

func (t *memTree) Write(name string, at int64, b []byte) error {
	p, err := t.Real(name)
	if err != nil {
		return err
	}
	old, ok := t.files[p]
	if !ok {
		return notThere("write", name)
	}
	t.writes = append(t.writes, fmt.Sprintf("%s %q", p, b))
	if at > 0 { // a piece of a binary file
		t.files[p] = old[:at] + string(b) + old[int(at)+len(b):]
		return nil
	}
	v := strings.TrimSpace(string(b))
	if f := t.canon[p]; f != nil {
		if v, err = f(v); err != nil {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
	}
	t.files[p] = v + "\n"
	return nil
}

func (t *memTree) Mkdir(name string) error {
	p := strings.Trim(name, "/")
	if _, err := t.Real(p); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.EEXIST}
	}
	t.writes = append(t.writes, "mkdir "+p)
	if t.mkdir == nil {
		return notThere("mkdir", name)
	}
	return t.mkdir(t, p)
}

func (t *memTree) Rmdir(name string) error {
	p := strings.Trim(name, "/")
	t.writes = append(t.writes, "rmdir "+p)
	maps.DeleteFunc(t.files, func(f, _ string) bool { return strings.HasPrefix(f, p+"/") })
	return nil
}

func (t *memTree) List(name string) ([]string, error) {
	p, err := t.Real(name)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, all := range []map[string]string{t.files, t.links} {
		for f := range all {
			if rest, ok := strings.CutPrefix(f, p+"/"); ok {
				first, _, _ := strings.Cut(rest, "/")
				names[first] = true
			}
		}
	}
	for f := range t.bad {
		if rest, ok := strings.CutPrefix(f, p+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// fakeEth is the kernel's ethtool: link to what it says. It has its own code for the structures.
type fakeEth struct {
	links map[string]*ethNIC
	sets  int
}

type ethNIC struct {
	driver, version, firmware string
	pause                     *[3]uint32 // autoneg, rx, tx
	ring                      *[8]uint32 // rx_max, mini_max, jumbo_max, tx_max, rx, mini, jumbo, tx
	fec                       uint32     // 0 = not supported
	flags                     []string
	flagBits                  uint32
	onFlags                   func(uint32)
	pauseErr                  error
	hidden                    func() bool // link pause cannot be asked for now
	lie                       bool        // acknowledge and keep
	stats                     map[string]uint64
	grown                     int // how many more statistics there are by the time that they are read
	asked                     int // how often they were read
}

func (f *fakeEth) Close() error { return nil }

func (f *fakeEth) Do(ctx context.Context, link string, b []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := f.links[link]
	if n == nil {
		return syscall.ENODEV
	}
	u := func(i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }
	put := func(i int, v uint32) { binary.NativeEndian.PutUint32(b[4*i:], v) }
	set := func(do func()) error {
		f.sets++
		if !n.lie {
			do()
		}
		return nil
	}
	switch u(0) {
	case 3: // GDRVINFO
		copy(b[4:36], n.driver)
		copy(b[36:68], n.version)
		copy(b[68:100], n.firmware)
		put(44, uint32(len(n.flags)))
		return nil
	case 18, 19: // pause
		switch {
		case n.pauseErr != nil:
			return n.pauseErr
		case n.pause == nil || n.hidden != nil && n.hidden():
			return syscall.EOPNOTSUPP
		case u(0) == 19:
			return set(func() { *n.pause = [3]uint32{u(1), u(2), u(3)} })
		}
		for i, v := range n.pause {
			put(i+1, v)
		}
		return nil
	case 16, 17: // rings
		if n.ring == nil {
			return syscall.EOPNOTSUPP
		}
		if u(0) == 17 {
			return set(func() {
				for i := range n.ring {
					n.ring[i] = u(i + 1)
				}
			})
		}
		for i, v := range n.ring {
			put(i+1, v)
		}
		return nil
	case 80, 81: // FEC
		if n.fec == 0 {
			return syscall.EOPNOTSUPP
		}
		if u(0) == 81 {
			return set(func() { n.fec = u(2) })
		}
		put(1, n.fec)
		put(2, n.fec)
		return nil
	case 0x37: // GSSET_INFO
		put(2, 0)
		if len(n.stats) > 0 {
			put(2, 1<<1)
			put(4, uint32(len(n.stats)))
		}
		return nil
	case 29: // GSTATS
		n.asked++
		for i, name := range slices.Sorted(maps.Keys(n.stats)) {
			binary.NativeEndian.PutUint64(b[8+8*max(i+n.grown, 0):], n.stats[name]) // what came or went is the first
		}
		put(1, uint32(len(n.stats)+n.grown))
		return nil
	case 27: // strings
		if u(1) == 1 {
			for i, name := range slices.Sorted(maps.Keys(n.stats)) {
				copy(b[12+32*i:12+32*i+32], name)
			}
			return nil
		}
		if u(1) != 2 {
			return syscall.EINVAL
		}
		put(2, uint32(len(n.flags)))
		for i, s := range n.flags {
			copy(b[12+32*i:12+32*i+32], s)
		}
		return nil
	case 39:
		put(1, n.flagBits)
		return nil
	case 40:
		return set(func() {
			n.flagBits = u(1)
			if n.onFlags != nil {
				n.onFlags(n.flagBits)
			}
		})
	}
	return syscall.EOPNOTSUPP
}

// fakeRDMA counts queue pairs.
type fakeRDMA struct {
	qps map[string]int
	err error
}

func (f *fakeRDMA) QPs(context.Context) (map[string]int, error) { return maps.Clone(f.qps), f.err }
func (f *fakeRDMA) Close() error                                { return nil }

// rig is a whole machine that is not there.
type rig struct {
	*Device
	t      testing.TB
	k      *kernel
	dcb    *dcbfake.Kernel
	nics   map[string]*dcbfake.NIC
	eth    *fakeEth
	rdma   *fakeRDMA
	tree   *memTree
	clock  time.Time
	timer  *fakeTimer
	points []string
	kernel string
}

// fakeTimer keeps what it was armed with.
type fakeTimer struct {
	armed map[drivers.TxID]time.Time
	err   error
}

func (f *fakeTimer) Arm(_ context.Context, tx drivers.TxID, at time.Time) error {
	if f.err == nil {
		f.armed[tx] = at
	}
	return f.err
}

// newRig is a machine without NICs.
func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigAt(t, fastDir(t))
}

// fastDir is a directory in memory where there is one: what is synced there costs no disk's time.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fabricctl-netlink-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// newRigAt is newRig with a directory for the files of the system.
func newRigAt(t testing.TB, root string) *rig {
	t.Helper()
	r := &rig{
		t: t, k: &kernel{links: []Link{{Index: 1, Name: "lo", MTU: 65536, Loopback: true}}, addrs: map[int32][]netip.Prefix{}},
		dcb: dcbfake.New(), nics: map[string]*dcbfake.NIC{}, eth: &fakeEth{links: map[string]*ethNIC{}},
		rdma: &fakeRDMA{qps: map[string]int{}}, tree: newTree(), clock: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC),
		timer: &fakeTimer{armed: map[drivers.TxID]time.Time{}},
	}
	r.tree.files["proc/sys/kernel/hostname"] = "gpu-17\n"
	r.kernel = "6.12.0"
	r.tree.files["proc/sys/kernel/osrelease"] = r.kernel + "\n"
	r.tree.files["sys/kernel/config/rdma_cm/.keep"] = ""
	r.tree.files["sys/devices/system/cpu/online"] = "0-7\n"
	r.tree.mkdir = mkdirRDMACM
	for _, dir := range []string{"etc/security/limits.d", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.open(root)
	return r
}

// open is the device of a new process on the same machine.
func (r *rig) open(root string) {
	r.Device = New(Config{
		Name: "host1", Root: root, Links: r.k, DCB: dcb.New(r.dcb), Ethtool: r.eth, RDMA: r.rdma, Tree: r.tree,
		State: filepath.Join(root, "var/fabricctl"), Timer: r.timer, Now: func() time.Time { return r.clock },
		Hook: func(p string) { r.points = append(r.points, p) },
	})
}

func (r *rig) reopen() { r.open(r.cfg.Root) }

// mkdirRDMACM is what the kernel does with a directory in configfs/rdma_cm (captures of soft-RoCE in a virtual machine).
func mkdirRDMACM(t *memTree, name string) error {
	dev, ok := strings.CutPrefix(name, "sys/kernel/config/rdma_cm/")
	if !ok || !there(t, sysRDMA+"/"+dev) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENODEV}
	}
	tos, mode := name+"/ports/1/default_roce_tos", name+"/ports/1/default_roce_mode"
	t.files[tos], t.files[mode] = "0\n", "RoCE v2\n"
	t.canon[tos] = func(v string) (string, error) {
		var n int
		if _, err := fmt.Sscan(v, &n); err != nil || n < 0 {
			return "", syscall.EINVAL
		}
		if n > 255 {
			return "", syscall.ERANGE
		}
		return fmt.Sprint(n), nil
	}
	t.canon[mode] = func(v string) (string, error) {
		if v != "RoCE v2" && v != "IB/RoCE v1" {
			return "", syscall.EINVAL
		}
		return v, nil
	}
	return nil
}

// plug adds a NIC with an RDMA device: pci "17" is 0000:17:00.0.
func (r *rig) plug(link, pci, model string, d dcbfake.Driver, device string) *dcbfake.NIC {
	r.t.Helper()
	i := int32(len(r.k.links) + 1)
	r.k.links = append(r.k.links, Link{Index: i, Name: link, MTU: 1500, Min: 68, Max: 9978, Up: true})
	n := r.dcb.Add(link, d)
	r.nics[link] = n
	addr := "0000:" + pci + ":00.0"
	dir := "sys/devices/pci0000:" + pci + "/" + addr
	vendor, dev, _ := strings.Cut(model, ":")
	for name, text := range map[string]string{
		"vendor": "0x" + vendor, "device": "0x" + dev, "numa_node": "0", "local_cpulist": "0-3", "class": "0x020000",
		"current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "current_link_width": "16", "max_link_width": "16",
	} {
		r.tree.files[dir+"/"+name] = text + "\n"
	}
	r.tree.files[dir+"/config"] = string(pciConfig(512))
	for v := range 6 {
		irq := 100*int(i) + v
		r.tree.files[fmt.Sprintf("%s/msi_irqs/%d", dir, irq)] = "msix\n"
		r.tree.files[fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq)] = "0-7\n"
	}
	r.tree.links["sys/bus/pci/devices/"+addr] = dir
	r.tree.links[dir+"/driver"] = "sys/bus/pci/drivers/" + d.Name
	r.tree.files["sys/bus/pci/drivers/"+d.Name+"/module"] = ""
	r.tree.links["sys/class/net/"+link+"/device"] = dir
	r.tree.files["sys/class/net/"+link+"/speed"] = "400000\n"
	r.tree.files["sys/class/net/"+link+"/dev_port"] = "0\n"
	r.eth.links[link] = &ethNIC{
		driver: d.Name, version: r.kernel, firmware: "28.38.1002", fec: 1 << 3,
		pause: &[3]uint32{0, 1, 1}, ring: &[8]uint32{8192, 0, 0, 8192, 1024, 0, 0, 1024},
	}
	if d.Name == "ice" {
		e := r.eth.links[link]
		e.flags, e.flagBits = []string{"link-down-on-close", "fw-lldp-agent"}, 0
		e.onFlags = func(bits uint32) { n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = bits&2 != 0 }) }
	}
	if device != "" {
		r.tree.links[sysRDMA+"/"+device+"/device"] = dir
		r.tree.files[sysRDMA+"/"+device+"/fw_ver"] = "28.38.1002\n"
		for g := range 4 {
			r.gid(device, g, "0000:0000:0000:0000:0000:0000:0000:0000", "", "")
		}
	}
	return n
}

// gid fills a slot of a GID table; an empty one reads as zeros, and its attributes fail.
func (r *rig) gid(device string, i int, gid, kind, link string) {
	dir := sysRDMA + "/" + device + "/ports/1/"
	r.tree.files[fmt.Sprintf("%sgids/%d", dir, i)] = gid + "\n"
	for file, text := range map[string]string{"types": kind, "ndevs": link} {
		name := fmt.Sprintf("%sgid_attrs/%s/%d", dir, file, i)
		delete(r.tree.bad, name)
		r.tree.files[name] = text + "\n"
		if kind == "" {
			r.tree.bad[name] = syscall.EINVAL
		}
	}
}

// address gives a link an address, and the RDMA device its GIDs of both versions.
func (r *rig) address(link, device, addr string) {
	p := netip.MustParsePrefix(addr)
	for _, l := range r.k.links {
		if l.Name == link {
			r.k.addrs[l.Index] = append(r.k.addrs[l.Index], p)
		}
	}
	b := p.Addr().As4()
	gid := fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
	r.gid(device, 0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", link)
	r.gid(device, 1, "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", link)
	r.gid(device, 2, gid, "IB/RoCE v1", link)
	r.gid(device, 3, gid, "RoCE v2", link)
}

// mlx5 plugs in a ConnectX-7 with parameters of congestion control in debugfs.
func (r *rig) mlx5(link, pci, device string) *dcbfake.NIC {
	n := r.plug(link, pci, "15b3:1021", dcbfake.MLX5(), device)
	dir := "sys/kernel/debug/mlx5/0000:" + pci + ":00.0/cc_params/"
	for name, v := range map[string]string{
		"rp_clamp_tgt_rate": "0", "rp_clamp_tgt_rate_ati": "1", "rp_time_reset": "300", "rp_byte_reset": "32767", "rp_threshold": "1",
		"rp_max_rate": "0", "rp_ai_rate": "5", "rp_hai_rate": "50", "rp_gd": "11", "rp_min_dec_fac": "50", "rp_min_rate": "1",
		"rp_rate_to_set_on_first_cnp": "0", "rp_dce_tcp_g": "1019", "rp_dce_tcp_rtt": "1", "rp_rate_reduce_monitor_period": "4",
		"rp_initial_alpha_value": "1023", "np_min_time_between_cnps": "4", "np_cnp_dscp": "48", "np_cnp_prio": "6", "np_cnp_prio_mode": "0",
	} {
		r.tree.files[dir+name] = v + "\n"
	}
	return n
}

// pciConfig is a configuration space with a chain of two capabilities, the second of which is PCI Express.
func pciConfig(maxRead int) []byte {
	b := make([]byte, 4096)
	b[0x06] = 0x10
	b[0x34] = 0x40
	b[0x40], b[0x41] = 0x11, 0x60 // MSI-X
	b[0x60], b[0x61] = 0x10, 0x00
	code := slices.Index([]int{128, 256, 512, 1024, 2048, 4096}, maxRead)
	binary.LittleEndian.PutUint16(b[0x68:], uint16(code)<<12|0x0a3f&0x0fff)
	return b
}

// writes counts everything that was written anywhere.
func (r *rig) writes() int { return r.dcb.Writes() + r.eth.sets + len(r.tree.writes) + r.k.sets }
