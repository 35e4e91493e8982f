package main

import (
	"compress/gzip"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestDoctorFailures: each way in which a first contact fails is said at its own step, with what to do next, and what
// comes after it is not tried.
func TestDoctorFailures(t *testing.T) {
	b := newBench(t, trio)
	leaf, spine := b.lab.Box("leaf1").(*eos.Switch), b.lab.Box("spine1").(*sonic.Switch)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, closed, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	wrong := filepath.Join(b.dir, "wrong")
	b.write(t, "wrong", "not-the-password\n")
	b.write(t, "nobody", "")
	for _, x := range []struct {
		name   string
		device string
		over   string // the inventory's last word about the device
		args   []string
		leaf   eos.Faults
		spine  sonic.Faults
		code   int
		want   []string // lines, as regular expressions
	}{
		{"closed port", "leaf1", "ssh: {port: " + closed + "}", nil, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    connection +127.0.0.1:\d+: connection refused: the machine is there, and nothing listens on this port`, `next: start the SSH server there, or give its port under ssh.port`,
			`not tried host key +not reached`, `not tried login +not reached`,
		}},
		{"closed port of gNMI", "spine1", "gnmi: {port: " + closed + "}", nil, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    connection +.*connection refused`, `next: start the gNMI server, or give its port under gnmi.port`, `not tried certificate`,
		}},
		{"no such name", "leaf1", "address: leaf1.invalid", nil, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    name +leaf1.invalid: `, `next: correct the address in the inventory`, `not tried connection`,
		}},
		{"wrong password", "leaf1", "", []string{"--password", "file:" + wrong}, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`ok        host key +accepted`, `failed    login +.*login refused for user "lab", password tried once`, `next: one attempt was made; check user and password`,
		}},
		{"wrong password of gNMI", "spine1", "", []string{"--password", "file:" + wrong}, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`ok        certificate +accepted`, `failed    login +.*login refused for user "lab"`,
		}},
		{"no password", "leaf1", "", []string{"--password", "env:FABRICCTL_TEST_UNSET"}, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    credentials +password: secret env:FABRICCTL_TEST_UNSET: environment variable is not set`, `not tried login`,
		}},
		{"key file that is not there", "leaf1", "ssh: {key: file:none}", nil, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    credentials +.*key file: open .*none: no such file`, `next: correct a reference that leads nowhere; where there is none, give a user and a password reference`,
		}},
		{"unknown host key", "leaf1", "", []string{"--known-hosts", "file:" + filepath.Join(b.dir, "nobody")}, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    host key +.*host key unknown: it offers ssh-ed25519 SHA256:`, `next: compare the fingerprint`, `not tried login`,
		}},
		{"stranger's certificate", "spine1", "", nil, eos.Faults{}, sonic.Faults{Certificate: sonic.Stranger}, exitError, []string{
			`failed    certificate +.*the certificate is not signed by the authority in tls.ca`, `next: give the authority that signed it`, `not tried login`,
		}},
		{"expired certificate", "spine1", "", nil, eos.Faults{}, sonic.Faults{Certificate: sonic.Expired}, exitError, []string{
			`failed    certificate +.*out of date, or a clock is wrong`,
		}},
		{"certificate not verified", "spine1", "", []string{"--insecure"}, eos.Faults{}, sonic.Faults{Certificate: sonic.Stranger}, exitOK, []string{
			`ok        certificate +not verified, and the device is a lab's`,
		}},
		{"another device", "leaf1", "serial: JPE999", nil, eos.Faults{}, sonic.Faults{}, exitError, []string{
			`failed    device +.*the inventory says serial number "JPE999"`, `next: correct the address, or what the inventory expects`,
		}},
		{"may not read", "leaf1", "", nil, eos.Faults{Deny: regexp.MustCompile(`^show running-config$`)}, sonic.Faults{}, exitError, []string{
			`failed    configuration +.*Authorization denied for command 'show running-config'`, `next: the account must be allowed to read the running configuration`,
		}},
		{"may not say who it is", "leaf1", "", nil, eos.Faults{Deny: regexp.MustCompile(`^show version`)}, sonic.Faults{}, exitError, []string{
			`failed    facts +.*Authorization denied`, `next: the account must be allowed to read what the device says about itself`,
		}},
		{"only to look", "leaf1", "", nil, eos.Faults{Deny: regexp.MustCompile(`^configure`)}, sonic.Faults{}, exitOK, []string{
			`warning   begin a configuration session +refused: .*the device said "% Authorization denied for command 'configure session fctl-doctor-[0-9a-f]+'"`,
			`next: apply needs it; an account that is only to look is right without it`,
			`not tried edit a QoS profile +there is no session to try it in`,
		}},
		{"QoS only", "leaf1", "", nil, eos.Faults{Deny: regexp.MustCompile(`^hostname`)}, sonic.Faults{}, exitOK, []string{
			`ok        edit a QoS profile +allowed`, `ok        change what is not QoS +refused: typed "hostname leaf1" in the session that was dropped`,
		}},
		{"server that does not write", "spine1", "", nil, eos.Faults{}, sonic.Faults{ReadOnly: true}, exitOK, []string{
			`warning   reach the server's Set +refused: .*the device said "GNMI is in read-only mode"`,
		}},
		{"session stays", "leaf1", "", nil, eos.Faults{RefuseAbort: true}, sonic.Faults{}, exitError, []string{
			`failed    trials +session fctl-doctor-[0-9a-f]+ could not be dropped and may still be open; it holds nothing that was committed`, `next: look at the device's list of sessions, and abort what is named here`,
		}},
		{"read-only", "leaf1", "", []string{"--read-only"}, eos.Faults{}, sonic.Faults{}, exitOK, []string{`not tried trials +--read-only`}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.over != "" {
				file := b.write(t, "over.yaml", "apiVersion: fabricctl/v1\nkind: Inventory\ndevices:\n  "+x.device+": {"+x.over+"}\n")
				defer func(layers []string) { b.layers = layers }(b.layers)
				b.layers = append(slices.Clone(b.layers), "-f", file)
			}
			leaf.SetFaults(x.leaf)
			spine.Fault(x.spine)
			defer leaf.SetFaults(eos.Faults{})
			r := b.must(t, x.code, append([]string{"doctor", x.device}, x.args...)...)
			for _, w := range x.want {
				if !regexp.MustCompile(`(?m)^ +` + w).MatchString(r.out) {
					t.Errorf("no line %q in\n%s", w, r.out)
				}
			}
			if strings.Contains(r.out+r.err, "not-the-password") {
				t.Error("a password is shown")
			}
		})
	}
}

// TestDoctorChangesNothing: what devices hold, running and saved, is the same before and after; on EOS no line of
// configuration reached it outside the session, which is gone; on SONiC the Set changed nothing.
func TestDoctorChangesNothing(t *testing.T) {
	b := newBench(t, trio)
	before := b.config(t)
	b.must(t, exitOK, "doctor", "leaf1", "spine1", "host1")
	if d := cmp.Diff(before, b.config(t)); d != "" {
		t.Errorf("(-before +after)\n%s", d)
	}
	leaf, spine := b.lab.Box("leaf1").(*eos.Switch), b.lab.Box("spine1").(*sonic.Switch)
	for _, s := range leaf.Sessions() {
		if s.State != "aborted" {
			t.Errorf("session %s is %s", s.Name, s.State)
		}
	}
	if c := leaf.Counters(); c.Commits+c.Saves != 0 || c.Aborts != 1 {
		t.Errorf("%+v", c)
	}
	if s := spine.Stats(); s.Sets != 1 || s.Changed != 0 || len(spine.Refusals()) != 0 {
		t.Errorf("%+v, refusals %q", s, spine.Refusals())
	}
	// With --read-only not even that is sent.
	lines, sets := leaf.Counters(), spine.Stats().Sets
	b.must(t, exitOK, "doctor", "--read-only", "leaf1", "spine1", "host1")
	if c := leaf.Counters(); c.ConfigLines != lines.ConfigLines || c.Aborts != lines.Aborts || spine.Stats().Sets != sets || len(leaf.Sessions()) > 1 {
		t.Errorf("%+v, %d Sets", c, spine.Stats().Sets)
	}
}

// TestDoctorOthers: sessions, commit timers and unsaved changes of others are said, with what they mean for an apply.
func TestDoctorOthers(t *testing.T) {
	b := newBench(t, trio)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	for _, err := range []error{
		leaf.Type("interface Ethernet1/1\n   description changed by hand"),
		leaf.OpenSession("fctl-left", "ops", "interface Ethernet1/1\n   mtu 9000"),
		leaf.OpenSession("mine", "bob", "interface Ethernet1/1\n   mtu 9100"),
		leaf.StartTimer("mine", "00:10:00"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	out := b.must(t, exitOK, "doctor", "leaf1").out
	for _, w := range []string{
		"warning   owner +configuration session mine of user bob has a commit timer running|warning   owner +configuration session mine has a commit timer running",
		"next: apply refuses the device while that lasts",
		"warning   session +transaction left of a fabricctl is open",
		"warning   saved +running differs from startup",
	} {
		if !regexp.MustCompile(`(?m)^ +(` + w + `)`).MatchString(out) {
			t.Errorf("no line %q in\n%s", w, out)
		}
	}
}

// TestDoctorFirstContact: an address is enough; what to write into an inventory is said.
func TestDoctorFirstContact(t *testing.T) {
	b := newBench(t, trio)
	inventory, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	port := regexp.MustCompile(`(?s)\n  leaf1:\n.*?port: (\d+)`).FindSubmatch(inventory)[1]
	dir := filepath.Dir(b.lab.Inventory)
	first := &bench{dir: t.TempDir()}
	r := first.must(t, exitOK, "doctor", "eos:127.0.0.1:"+string(port), "--username", "lab", "--password", "file:"+filepath.Join(dir, "password"), "--known-hosts", "file:"+filepath.Join(dir, "known_hosts"))
	nothing := first.must(t, exitError, "doctor", "eos:127.0.0.1:"+string(port), "--username", "lab", "--known-hosts", "file:"+filepath.Join(dir, "known_hosts"))
	if !strings.Contains(nothing.out, "no way to log in: no password, key file or ssh-agent is configured") || !strings.Contains(nothing.out, "next: correct a reference that leads nowhere; where there is none, give a user and a password reference") {
		t.Error(nothing)
	}
	for _, w := range []string{
		`hostname "leaf1", serial number "LAB-LEAF1"`,
		`next: give it a place in an inventory: leaf1: {address: "127.0.0.1", platform: eos/…, serial: LAB-LEAF1}`,
		"no Fabric was given: nothing is owned",
		"next: fabricctl import makes a model of what is there",
	} {
		if !strings.Contains(r.out, w) {
			t.Errorf("%q is not in\n%s", w, r.out)
		}
	}
}

// TestDoctorCapture: a capture of live devices holds their configurations without secrets, is not written over a file,
// and is the same when the devices are.
func TestDoctorCapture(t *testing.T) {
	b := newBench(t, trio)
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) {
		db.Set("TACPLUS", "global", "passkey", "CANARY-1a2b3c")
		db.Set("SNMP_COMMUNITY", "CANARYcommunity9", "TYPE", "RO")
		db.Set("PORT", "Ethernet0", "description", "to CANARYcommunity9")
	})
	first, second, masked := filepath.Join(b.dir, "1.tgz"), filepath.Join(b.dir, "2.tgz"), filepath.Join(b.dir, "3.tgz")
	r := b.must(t, exitOK, "doctor", "leaf1", "spine1", "host1", "--capture", first)
	for _, w := range []string{
		`spine1: taken out: TACPLUS|global|passkey (field)`, `spine1: taken out: SNMP_COMMUNITY (row key)`, "of 3 devices in " + first + "; look through it before you send it",
	} {
		if !strings.Contains(r.err, w) {
			t.Errorf("%q is not in\n%s", w, r.err)
		}
	}
	r = b.must(t, exitError, "doctor", "leaf1", "--capture", first)
	if !strings.Contains(r.err, "is there already, and a capture is never written over a file") || r.out != "" {
		t.Error(r)
	}
	b.must(t, exitUsage, "doctor", "leaf1", "--anonymise")
	b.must(t, exitOK, "doctor", "leaf1", "spine1", "host1", "--capture", second)
	b.must(t, exitOK, "doctor", "leaf1", "spine1", "host1", "--capture", masked, "--anonymise")
	one, two := read(t, first), read(t, second)
	if one != two {
		t.Error("two captures of the same devices differ")
	}
	plain, hidden := gunzip(t, one), gunzip(t, read(t, masked))
	for _, w := range []string{"CANARY"} {
		if strings.Contains(plain+hidden, w) {
			t.Errorf("%s is in a capture", w)
		}
	}
	for _, w := range []string{"leaf1/running-config.txt", "spine1/running-config.json", "host1/doctor.json", "MANIFEST.json", "hostname leaf1", "link rdma0 mtu 1500"} {
		if !strings.Contains(plain, w) {
			t.Errorf("%q is not in the capture", w)
		}
	}
	for _, w := range []string{"leaf1", "spine1", "LAB-"} {
		if strings.Contains(hidden, w) {
			t.Errorf("%q is in the anonymised capture", w)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func gunzip(t *testing.T, s string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStuckDevice: when --timeout is over, what is there is printed, by doctor and by check, and the exit code is 1.
func TestStuckDevice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel takes calls, and nobody answers them
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := &bench{dir: t.TempDir()}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	b.write(t, "known", "")
	login := []string{"--timeout", "200ms", "--username", "lab", "--password", "env:FABRICCTL_TEST_STUCK", "--known-hosts", "file:" + filepath.Join(b.dir, "known")}
	t.Setenv("FABRICCTL_TEST_STUCK", "x")
	capture := filepath.Join(b.dir, "capture.tar.gz")
	for _, more := range [][]string{{"--capture", capture}, {"-o", "json"}} {
		r := b.must(t, exitError, slices.Concat([]string{"doctor", "eos:127.0.0.1:" + port}, login, more)...)
		if !strings.Contains(r.out, "--timeout 200ms is over") {
			t.Error(r)
		}
	}
	if _, err := os.Stat(capture); err != nil {
		t.Error(err)
	}
	b.write(t, "stuck.yaml", trio+"---\napiVersion: fabricctl/v1\nkind: Inventory\ndefaults: {ssh: {port: "+port+"}}\ndevices:\n  leaf1: {address: 127.0.0.1}\n")
	r := b.must(t, exitError, append([]string{"check", "-f", filepath.Join(b.dir, "stuck.yaml"), "leaf1"}, login...)...)
	if !strings.Contains(r.out, "1 device could not be read") || !strings.Contains(r.out, "--timeout 200ms is over") {
		t.Error(r)
	}
}
