//go:build vm

package dcb_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/model/witness"
)

// Tests in the virtual machine of tools/vm, on its NICs dcb0 to dcb3, whose driver does as it is told in debugfs.

func client(t *testing.T) *dcb.Client {
	t.Helper()
	c, err := dcb.Open(dcb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// reload takes the driver off a device and binds it again, which is where a driver starts from.
func reload(t *testing.T, dev string) {
	t.Helper()
	pci, err := filepath.EvalSymlinks("/sys/class/net/" + dev + "/device")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"unbind", "bind"} {
		write(t, "/sys/bus/pci/drivers/dcbtest/"+f, filepath.Base(pci))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// play makes the device behave as a step wants it and no other way: "lie pfc", or "refuse app -524" with a number.
func play(t *testing.T, dev, how string) {
	t.Helper()
	dir := "/sys/kernel/debug/dcbtest/" + dev + "/"
	for _, f := range []string{"absent", "missing", "lie", "refuse", "odd", "flap"} {
		write(t, dir+f, "\n")
	}
	write(t, dir+"answer", "-16")
	write(t, dir+"replace", "N")
	switch w := strings.Fields(how); {
	case len(w) == 0:
	case w[0] == "replace":
		write(t, dir+"replace", "Y")
	default:
		write(t, dir+w[0], w[1])
		if len(w) > 2 {
			write(t, dir+"answer", w[2])
		}
	}
}

// counter is a number that the device counts.
func counter(t *testing.T, dev, name string) string {
	t.Helper()
	b, err := os.ReadFile("/sys/kernel/debug/dcbtest/" + dev + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// show is how iproute2's dcb sees the device. Its exit status is not looked at anywhere: it may be 0 for what the kernel
// refused and 1 for what it did.
func show(t *testing.T, dev string) view {
	t.Helper()
	get := func(object string, to any) bool {
		out, _ := exec.Command(witness.Tool(t, "dcb"), "-j", "-N", object, "show", "dev", dev).Output()
		if len(bytes.TrimSpace(out)) == 0 { // the driver has no such thing
			return false
		}
		if err := json.Unmarshal(out, to); err != nil {
			t.Fatalf("dcb -j %s show: %v: %q", object, err, out)
		}
		return true
	}
	v := view{}
	for _, p := range parts {
		v[p] = "absent"
	}
	var pfc struct {
		On     []bool `json:"prio_pfc"`
		Delay  int
		Bypass bool `json:"macsec_bypass"`
	}
	if get("pfc", &pfc) {
		v["pfc"] = pfcText(pfc.On, pfc.Delay, pfc.Bypass)
	}
	var ets struct {
		Willing bool
		BW      []byte8  `json:"tc_bw"`
		TSA     []string `json:"tc_tsa"`
		Prio    []byte8  `json:"prio_tc"`
	}
	if get("ets", &ets) {
		v["ets"] = etsText(ets.TSA, small(ets.BW), small(ets.Prio), ets.Willing)
	}
	var app map[string]json.RawMessage
	if get("app", &app) {
		v["app"] = appText(shownApps(t, app))
	}
	var buf struct {
		Prio  []byte8  `json:"prio_buffer"`
		Size  []uint32 `json:"buffer_size"`
		Total uint32   `json:"total_size"`
	}
	if get("buffer", &buf) {
		v["buffer"] = bufferText(small(buf.Prio), buf.Size, buf.Total)
	}
	var rate struct {
		Rate []uint64 `json:"tc_maxrate"`
	}
	if get("maxrate", &rate) {
		v["maxrate"] = list(rate.Rate)
	}
	var mode map[string]bool
	if get("dcbx", &mode) {
		var ws []string
		for w, on := range mode {
			if on {
				ws = append(ws, strings.ReplaceAll(w, "_", "-"))
			}
		}
		v["dcbx"] = words(ws)
	}
	return v
}

// byte8 is a uint8 that JSON reads as a number in a list.
type byte8 uint16

func small(bs []byte8) []uint8 {
	var out []uint8
	for _, b := range bs {
		out = append(out, uint8(b))
	}
	return out
}

func shownApps(t *testing.T, shown map[string]json.RawMessage) []dcb.App {
	t.Helper()
	selectors := map[string]dcb.Selector{
		"ethtype_prio": dcb.ByEthertype, "stream_port_prio": dcb.ByStream, "dgram_port_prio": dcb.ByDatagram,
		"port_prio": dcb.ByPort, "dscp_prio": dcb.ByDSCP,
	}
	var as []dcb.App
	for k, raw := range shown {
		if k == "default_prio" {
			var ps []byte8
			if err := json.Unmarshal(raw, &ps); err != nil {
				t.Fatal(err)
			}
			for _, p := range ps {
				as = append(as, dcb.App{Selector: dcb.ByEthertype, Priority: uint8(p)})
			}
			continue
		}
		sel, ok := selectors[k]
		if !ok {
			t.Fatalf("dcb shows %q", k)
		}
		var es [][2]uint16
		if err := json.Unmarshal(raw, &es); err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			as = append(as, dcb.App{Selector: sel, Priority: uint8(e[1]), Protocol: e[0]})
		}
	}
	return as
}

// Our client and iproute2's dcb see the same device after each operation, whoever did it, and however the driver
// behaves.
func TestVMNICAgree(t *testing.T) {
	const dev = "dcb0"
	c := client(t)
	reload(t, dev)
	look := func() (shows, reads view) {
		s, err := c.Get(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		return show(t, dev), read(s)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	version, _ := exec.Command(witness.Tool(t, "dcb"), "-V").Output()
	var page strings.Builder
	fmt.Fprintf(&page, "Linux %s, %s.\n\n", strings.TrimSpace(string(kernel)), strings.TrimSpace(string(version)))
	page.WriteString("| operation | answer | `dcb` shows | the client reads | agree |\n|---|---|---|---|---|\n")
	add := func(r row) {
		fmt.Fprintln(&page, r)
		if r.shows != r.reads {
			t.Errorf("%s:\n dcb shows %s\n  we read %s", r.what, r.shows, r.reads)
		}
	}
	wasShown, wasRead := view{}, view{}
	shows, reads := look()
	add(row{freshDriver, "", shows.since(wasShown), reads.since(wasRead)})
	for _, s := range steps() {
		wasShown, wasRead = shows, reads
		play(t, dev, s.play)
		said := ""
		if s.tool != nil {
			args := slices.Insert(slices.Clone(s.tool), 2, "dev", dev)
			out, err := exec.Command(witness.Tool(t, "dcb"), args...).CombinedOutput()
			t.Logf("dcb %s: %v %s", strings.Join(args, " "), err, out)
		} else {
			said = answer(s.do(t.Context(), c, dev))
		}
		shows, reads = look()
		add(row{s.what, said, shows.since(wasShown), reads.since(wasRead)})
	}
	write(t, os.Getenv("FABRICCTL_OUT")+"/dcb.md", page.String())
}

// Kinds of links that have no DCB, and what is said of them.
func TestVMNICWithoutDCB(t *testing.T) {
	c := client(t)
	if ok, err := c.Supported(t.Context()); !ok || err != nil {
		t.Errorf("supported: %v, %v", ok, err)
	}
	for _, args := range []string{"link add v0 type veth peer name v1", "link add bond9 type bond", "link set dcb3 down", "link set dcb3 master bond9", "link add link dcb2 name dcb2.7 type vlan id 7"} {
		if out, err := exec.Command(witness.Tool(t, "ip"), strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		for _, dev := range []string{"v0", "bond9", "dcb2.7"} {
			exec.Command(witness.Tool(t, "ip"), "link", "del", dev).Run()
		}
	})
	for _, dev := range []string{"lo", "v0", "bond9", "dcb2.7"} {
		if _, err := c.Get(t.Context(), dev); !errors.Is(err, dcb.EOPNOTSUPP) || !strings.Contains(err.Error(), "bond") {
			t.Errorf("get of %s: %v", dev, err)
		}
		if err := c.AddApp(t.Context(), dev, dcb.DSCP(26, 3)); !errors.Is(err, dcb.EOPNOTSUPP) {
			t.Errorf("set of %s: %v", dev, err)
		}
	}
	if _, err := c.Get(t.Context(), "dcb3"); err != nil {
		t.Errorf("a NIC in a bond still has it: %v", err)
	}
	if _, err := c.Get(t.Context(), "dcb99"); !errors.Is(err, dcb.ENODEV) {
		t.Errorf("a name that is not there: %v", err)
	}
}

// Without privileges everything is read and nothing is set.
func TestVMNICUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		c := client(t)
		if _, err := c.Get(t.Context(), "dcb0"); err != nil {
			t.Errorf("get: %v", err)
		}
		err := c.Do(t.Context(), must(dcb.PFCRequest("dcb0", dcb.PFC{Enabled: 1 << 3})))
		if !errors.Is(err, dcb.EPERM) || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
			t.Errorf("set: %v", err)
		}
		return
	}
	before := counter(t, "dcb0", "sets")
	self := exec.Command(os.Args[0], "-test.run", "^TestVMNICUnprivileged$", "-test.v")
	self.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	self.Dir = "/"
	if out, err := self.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	if now := counter(t, "dcb0", "sets"); now != before {
		t.Errorf("the driver was called: %s, then %s", before, now)
	}
}

func must(r dcb.Request, err error) dcb.Request {
	if err != nil {
		panic(err)
	}
	return r
}

// What a 6.1 dcb does not show: trust, PCP entries, and PFC frames where it does.
func TestVMNICBeyondTool(t *testing.T) {
	const dev = "dcb1"
	c := client(t)
	reload(t, dev)
	get := func() *dcb.State {
		s, err := c.Get(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := get(); !slices.Equal(s.Trust, []dcb.Selector{dcb.ByPCP}) || s.Rewr == nil || len(s.Rewr) != 0 {
		t.Errorf("at first: trust %v, rewrite table %v", s.Trust, s.Rewr)
	}
	if err := c.SetTrust(t.Context(), dev, dcb.ByDSCP, dcb.ByPCP); err != nil {
		t.Error(err)
	}
	if s := get(); !slices.Equal(s.Trust, []dcb.Selector{dcb.ByDSCP, dcb.ByPCP}) {
		t.Errorf("trust %v", s.Trust)
	}
	if err := c.SetTrust(t.Context(), dev, dcb.ByPort); !errors.Is(err, dcb.EOPNOTSUPP) {
		t.Errorf("trust in ports: %v", err)
	}
	pcp := dcb.App{Selector: dcb.ByPCP, Priority: 3, Protocol: 11}
	if err := c.AddApp(t.Context(), dev, pcp); err != nil {
		t.Error(err)
	}
	if s := get(); !slices.Equal(s.Apps, []dcb.App{pcp}) {
		t.Errorf("entries %v", s.Apps)
	}
	write(t, "/sys/kernel/debug/dcbtest/"+dev+"/requests/3", "7")
	write(t, "/sys/kernel/debug/dcbtest/"+dev+"/indications/4", "18446744073709551615")
	var shown struct{ Requests, Indications [8]uint64 }
	out, _ := exec.Command(witness.Tool(t, "dcb"), "-j", "-s", "pfc", "show", "dev", dev, "requests", "indications").Output()
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := get(); s.PFC.Requests != shown.Requests || s.PFC.Indications != shown.Indications || s.PFC.Requests[3] != 7 {
		t.Errorf("PFC frames: %v and %v, dcb shows %+v", s.PFC.Requests, s.PFC.Indications, shown)
	}
	play(t, dev, "absent trust")
	if err := c.SetTrust(t.Context(), dev, dcb.ByDSCP); !errors.Is(err, dcb.EOPNOTSUPP) || get().Trust != nil {
		t.Errorf("a NIC without trust: %v, %v", err, get().Trust)
	}
	play(t, dev, "absent dcbx")
	if err := c.SetDCBX(t.Context(), dev, dcb.Host|dcb.IEEE); !errors.Is(err, dcb.EOPNOTSUPP) || get().DCBX != nil {
		t.Errorf("a NIC without DCBX: %v, %v", err, get().DCBX)
	}
}

// The firmware's agent owns the settings, as on E810, until its private flag is cleared.
func TestVMNICFirmwareAgent(t *testing.T) {
	const dev = "dcb1"
	c := client(t)
	reload(t, dev)
	agent := func(how string) {
		if out, err := exec.Command(witness.Tool(t, "ethtool"), "--set-priv-flags", dev, "fw-lldp-agent", how).CombinedOutput(); err != nil {
			t.Fatalf("ethtool: %v: %s", err, out)
		}
	}
	agent("on")
	s, err := c.Get(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	if *s.DCBX != dcb.LLDManaged|dcb.IEEE {
		t.Errorf("DCBX is %v", s.DCBX)
	}
	if err := setPFC(1<<3)(t.Context(), c, dev); !errors.Is(err, dcb.EINVAL) {
		t.Errorf("PFC: %v", err)
	}
	if err := c.AddApp(t.Context(), dev, dcb.DSCP(26, 3)); !errors.Is(err, dcb.EINVAL) {
		t.Errorf("entry: %v", err)
	}
	if err := c.SetDCBX(t.Context(), dev, dcb.Host|dcb.IEEE); !errors.Is(err, dcb.ErrReadBack) {
		t.Errorf("DCBX: %v", err)
	}
	agent("off")
	if err := setPFC(1<<3)(t.Context(), c, dev); err != nil {
		t.Error(err)
	}
	if v := show(t, dev); v["pfc"] != "3 delay 0" || v["dcbx"] != "host ieee" {
		t.Errorf("dcb shows %v", v)
	}
}

// More entries than fit into one answer: they are set, and then nothing can be read.
func TestVMNICTooManyEntries(t *testing.T) {
	const dev = "dcb1"
	c := client(t)
	reload(t, dev)
	n := 0
	for n < 1000 {
		if err := c.AddApp(t.Context(), dev, dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: uint16(4000 + n)}); err != nil {
			t.Fatal(err)
		}
		n++
		if _, err := c.Get(t.Context(), dev); err != nil {
			if !errors.Is(err, dcb.EMSGSIZE) || !strings.Contains(err.Error(), "more than about 400") {
				t.Errorf("after %d entries: %v", n, err)
			}
			break
		}
	}
	if n < 350 || n > 450 {
		t.Errorf("the answer is full after %d entries", n)
	}
	for i := range n {
		if err := c.DelApp(t.Context(), dev, dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: uint16(4000 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := c.Get(t.Context(), dev); err != nil || len(s.Apps) != 0 {
		t.Errorf("after they are deleted: %v", err)
	}
}

// What a set costs: a driver that flaps does so for what changed, and a set of the same is still a call of the driver,
// which is why nobody sends one.
func TestVMNICFlaps(t *testing.T) {
	const dev = "dcb1"
	c := client(t)
	reload(t, dev)
	play(t, dev, "flap pfc")
	carrier := func() string {
		b, err := os.ReadFile("/sys/class/net/" + dev + "/carrier_changes")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := carrier()
	for i, want := range []struct{ sets, flaps string }{{"1", "1"}, {"2", "1"}} {
		if err := setPFC(1<<3)(t.Context(), c, dev); err != nil {
			t.Fatal(err)
		}
		if s, f := counter(t, dev, "sets"), counter(t, dev, "flaps"); s != want.sets || f != want.flaps {
			t.Errorf("after set %d: the driver was called %s times and the link flapped %s times", i+1, s, f)
		}
	}
	if carrier() == before {
		t.Error("the kernel saw no flap")
	}
}

// What the kernel tells those who listen: each set, refused ones too, whoever does it; a mode of DCBX not; links as they
// change and go.
func TestVMNICWatch(t *testing.T) {
	const dev = "dcb1"
	c := client(t)
	reload(t, dev)
	w, err := dcb.Watch(dcb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	next := func(what string, kind dcb.EventKind) dcb.Event {
		t.Helper()
		for {
			e, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Ifname != dev:
			case e.Kind == dcb.Link && kind == dcb.Gone: // on its way out
			case e.Kind != kind:
				t.Fatalf("%s: %+v", what, e)
			default:
				return e
			}
		}
	}
	run := func(words string) {
		t.Helper()
		f := strings.Fields(words)
		if out, err := exec.Command(witness.Tool(t, f[0]), f[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", words, err, out)
		}
	}
	if err := setPFC(1<<3)(t.Context(), c, dev); err != nil {
		t.Fatal(err)
	}
	if e := next("a set", dcb.Changed); e.State == nil || e.State.PFC.Enabled != 1<<3 {
		t.Errorf("a set: %+v", e)
	}
	play(t, dev, "refuse pfc")
	if err := setPFC(0)(t.Context(), c, dev); !errors.Is(err, dcb.EBUSY) {
		t.Fatal(err)
	}
	if e := next("a refused set", dcb.Changed); e.State == nil || e.State.PFC.Enabled != 1<<3 {
		t.Errorf("a refused set: %+v", e)
	}
	run("dcb app add dev " + dev + " dscp-prio 26:3")
	if e := next("a set by dcb", dcb.Changed); e.State == nil || !slices.Equal(e.State.Apps, []dcb.App{dcb.DSCP(26, 3)}) {
		t.Errorf("a set by dcb: %+v", e)
	}
	if err := c.SetDCBX(t.Context(), dev, dcb.Host|dcb.IEEE|dcb.Static); err != nil {
		t.Fatal(err)
	}
	run("ip link set " + dev + " mtu 4200")
	next("a mode of DCBX, and then an MTU", dcb.Link)
	pci, err := filepath.EvalSymlinks("/sys/class/net/" + dev + "/device")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "/sys/bus/pci/drivers/dcbtest/unbind", filepath.Base(pci))
	next("the driver is unbound", dcb.Gone)
	write(t, "/sys/bus/pci/drivers/dcbtest/bind", filepath.Base(pci))
}
