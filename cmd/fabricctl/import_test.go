package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// newOldBench is a lab that somebody else configured: as model asks, under names that are not ours. switches are its
// names, to import.
func newOldBench(t *testing.T, model string) (b *bench, switches []string) {
	t.Helper()
	b = newBench(t, model)
	b.must(t, exitOK, "render", "--out", filepath.Join(b.dir, "state"))
	for _, d := range b.net.Devices {
		if d.Host {
			continue
		}
		switches = append(switches, d.Name)
		files, err := filepath.Glob(filepath.Join(b.dir, "state", d.Name+".*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		old := regexp.MustCompile(`fctl-[a-z]+-`).ReplaceAllString(string(text), "SITE-")
		if err := os.WriteFile(files[0], []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.lab.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.lab, err = lab.Up(b.net, lab.Options{Dir: filepath.Join(b.dir, "lab"), State: filepath.Join(b.dir, "state")}); err != nil {
		t.Fatal(err)
	}
	return b, switches
}

// imported runs import against a bench's lab, and points the bench at the model that comes out.
func (b *bench) imported(t *testing.T, code int, args ...string) result {
	t.Helper()
	b.layers = []string{"-f", b.lab.Inventory}
	out := filepath.Join(b.dir, "pod1")
	r := b.must(t, code, append([]string{"import", "--out", out}, args...)...)
	b.layers = []string{"-f", out}
	return r
}

// own changes what the imported model owns.
func (b *bench) own(t *testing.T, manage string) {
	t.Helper()
	path := filepath.Join(b.dir, "pod1", "fabric.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "pod1/fabric.yaml", regexp.MustCompile(`(?m)^manage: .*$`).ReplaceAllString(string(text), "manage: "+manage))
}

// TestImportAndOwn: the plan of what was imported is empty; each area alone can be owned, with adoption, and apply
// changes nothing: not a byte, on either system. So can all of them together.
func TestImportAndOwn(t *testing.T) {
	b, switches := newOldBench(t, strings.Replace(trio, "leaves: {count: 1,", "leaves: {count: 2,", 1))
	before := b.config(t)
	r := b.imported(t, exitOK, switches...)
	for _, area := range []string{"mtu", "maps", "pfc", "ecn", "scheduler", "watchdog"} {
		if !regexp.MustCompile(`(?m)^  ` + area + ` +nothing$`).MatchString(r.out) {
			t.Errorf("%s is not said to be ready: %s", area, r)
		}
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	for _, area := range []string{"mtu", "maps", "pfc", "ecn", "scheduler", "watchdog"} {
		b.own(t, fmt.Sprintf("{switches: {%s: own}, hosts: observe}", area))
		b.must(t, exitOK, "apply", "--yes", "--adopt")
		b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
	}
	b.own(t, "{switches: own, hosts: observe}")
	r = b.must(t, exitOK, "plan")
	if !regexp.MustCompile(`\d+ of them on 3 devices only put objects of our names in place of others that do the same; --adopt, `).MatchString(r.out) {
		t.Errorf("forgotten adoption is not hinted at: %s", r)
	}
	b.own(t, "{switches: own, hosts: observe, adopt: true}")
	b.must(t, exitOK, "apply", "--yes")
	if d := cmp.Diff(before, b.config(t)); d != "" || b.writes() != 0 {
		t.Errorf("%d writes (-before +after):\n%s", b.writes(), d)
	}
}

// TestImportAbsent: what devices do not say stays unsaid. Queues without a scheduler and watchdogs without a polling
// interval come into the model as that, and owning them writes neither.
func TestImportAbsent(t *testing.T) {
	b, switches := newOldBench(t, strings.Replace(trio, "leaves: {count: 1,", "leaves: {count: 2,", 1))
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) {
		delete(db["PFC_WD"], "GLOBAL")
		for row := range db["QUEUE"] {
			if strings.HasSuffix(row, "|0") {
				delete(db["QUEUE"], row)
			}
		}
		delete(db["SCHEDULER"], "SITE-fabric-default")
	})
	for _, name := range []string{"leaf1", "leaf2"} {
		leaf := b.lab.Box(name).(*eos.Switch)
		text := regexp.MustCompile(`(?m)^   uc-tx-queue 0\n(      .*\n)+`).ReplaceAllString(leaf.Running(), "")
		poll := map[string]string{"leaf1": "", "leaf2": "priority-flow-control pause watchdog default polling-interval auto\n"}
		text = regexp.MustCompile(`(?m)^.*polling-interval.*\n`).ReplaceAllString(text, poll[name])
		if err := leaf.Boot(text); err != nil {
			t.Fatal(err)
		}
	}
	before := b.config(t)
	r := b.imported(t, exitOK, switches...)
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pfc_watchdog: {detect: 200ms, restore: 400ms, action: drop}\n", "priority: 0\n    scheduling: none\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s\n%s", want, text, r)
		}
	}
	b.own(t, "{switches: own, hosts: observe, adopt: true}")
	b.must(t, exitOK, "apply", "--yes")
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	if d := cmp.Diff(before, b.config(t)); d != "" || b.writes() != 0 {
		t.Errorf("%d writes (-before +after):\n%s", b.writes(), d)
	}
}

// TestImportHosts: hosts that are read are no guesses: their MTU, their NCCL file, and the NIC that a switch hears.
func TestImportHosts(t *testing.T) {
	b, _ := newOldBench(t, trio)
	h := b.lab.Box("host1").(*host.Host)
	if err := h.SetNCCL("NCCL_IB_TC=104\nNCCL_IB_TIMEOUT=22\n"); err != nil {
		t.Fatal(err)
	}
	r := b.imported(t, exitOK)
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"mtu: {fabric: 9214B, host: 1500B}\n", "nccl: {class: lossless-3, timeout: 22, hca: off}\n", `- {a: "host1:rdma0", b: "leaf1:Ethernet1-1"}`,
		"    - name: host1\n      role: host\n      platform: linux/generic\n      ports:\n        - {name: rdma0, iface: rdma0, role: nic, nic: connectx-7, rdma: mlx5_0}\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s\n%s", want, text, r)
		}
	}
	if strings.Contains(string(text), "planned") || strings.Contains(r.out, "lldp") {
		t.Errorf("%s\n%s", text, r)
	}
	b.own(t, "{switches: observe, hosts: {mtu: own, host-nccl: own, host-system: own}}") // its DCB is as the driver left it
	before := b.config(t)
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.must(t, exitOK, "apply", "--yes")
	if d := cmp.Diff(before, b.config(t)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// TestImportSetHosts: hosts whose NICs somebody has set come back into a model that owns all of them, and changes nothing.
func TestImportSetHosts(t *testing.T) {
	b := newUsedBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.imported(t, exitOK)
	b.own(t, "{switches: observe, hosts: own}")
	before, writes := b.config(t), b.writes()
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.must(t, exitOK, "apply", "--yes")
	if d := cmp.Diff(before, b.config(t)); d != "" || b.writes() != writes {
		t.Errorf("%d writes (-before +after):\n%s", b.writes()-writes, d)
	}
}

// TestImportHundred: a hundred switches of which three do one thing otherwise are one role and three exceptions.
func TestImportHundred(t *testing.T) {
	hundred := `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: hundred}
topology:
  leaves: {count: 100, platform: sonic/sn5600}
  hosts: {per_leaf: 1, netdevs: [rdma0]}
  links: {host_leaf: {speed: 400Gbps, cable: 5m}}
` + trio[strings.Index(trio, "mtu:"):] + `overrides:
  leaf:
    devices:
      leaf7: {classes: [{name: training, ecn: {kmin: 400KB}}]}
      leaf50: {ports: {downlink-1: {classes: [{name: training, ecn: {pmax: 10%}}]}}}
      leaf99: {pfc_watchdog: {restore: 800ms}}
`
	b, switches := newOldBench(t, hundred)
	r := b.imported(t, exitOK, append(switches, "-o", "json")...)
	var got importJSON
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	roles := []roleJSON{{"leaf", 100}, {"host", 100}}
	if d := cmp.Diff(roles, got.Roles); d != "" || got.Exceptions != 3 || got.Classes != 3 {
		t.Errorf("%d exceptions, %d classes, roles (-want +got):\n%s", got.Exceptions, got.Classes, d)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}

// TestImportGolden: a ConfigDB as SONiC ships it, with names and bindings of its own. The plan is empty, and areas that
// could not be owned as they are say why.
func TestImportGolden(t *testing.T) {
	golden, err := os.ReadFile(witness.Reference(t, "reference/sonic-pg/golden/config_db.json"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sonic.Parse(golden)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, strings.NewReplacer("sonic/sn5600", "sonic/sn4600c", "leaf_spine: {speed: 400Gbps", "leaf_spine: {speed: 100Gbps").Replace(trio))
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(old sonic.DB) {
		for table := range old {
			delete(old, table)
		}
		old.Put(db)
	})
	before := b.config(t)
	r := b.imported(t, exitOK, "spine1")
	for _, want := range []string{
		`warning: watchdog-on: no PFC watchdog on spine1`, `warning: cnp-class: class class-7 carries congestion notifications and has weight 14 instead of strict`,
		`warning: differs: priority 2 pfc is off on spine1 \(8 ports\), and the model says on, as 20 other ports have it`,
		`(?m)^  mtu +nothing$`, `(?m)^  scheduler +nothing$`, `(?m)^  maps +spine1: \d+ settings `,
	} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in %s", want, r)
		}
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.own(t, "{switches: {mtu: own}, hosts: observe}")
	b.must(t, exitOK, "apply", "--yes", "--adopt")
	if d := cmp.Diff(before, b.config(t)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// TestImportPartly: a device that does not answer is said; the others make a model only where that is asked for. LLDP
// that one switch refuses is a finding.
func TestImportPartly(t *testing.T) {
	b, _ := newOldBench(t, strings.Replace(trio, "leaves: {count: 1,", "leaves: {count: 2,", 1))
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{NoLLDP: true})
	if err := b.lab.Box("leaf2").Close(); err != nil {
		t.Fatal(err)
	}
	r := b.imported(t, exitError, "spine1", "leaf1", "leaf2")
	if !strings.Contains(r.err, "leaf2: error: not-read: ") || !strings.Contains(r.err, "nothing was written") || !strings.Contains(r.err, "--partial") {
		t.Error(r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pod1")); !os.IsNotExist(err) {
		t.Error("something was written")
	}
	r = b.imported(t, exitError, "spine1", "leaf1", "leaf2", "--partial")
	for _, want := range []string{
		"leaf2: error: not-read: ", "warning: no-lldp: leaf1: it says % LLDP is not enabled; links between them are not known",
		"spine1: warning: border: it hears 1 neighbour that is not among the devices, so where the fabric ends is not known: leaf2 on Ethernet8", "role-guess",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in %s", want, r)
		}
	}
}

// TestImportSecrets: what stands in the inventory is the reference, found from the new directory, and never what it
// refers to; a literal password is refused.
func TestImportSecrets(t *testing.T) {
	b, switches := newOldBench(t, trio)
	password, err := os.ReadFile(filepath.Join(b.dir, "lab", "password"))
	if err != nil {
		t.Fatal(err)
	}
	r := b.imported(t, exitOK, switches...)
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "inventory.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if p := strings.TrimSpace(string(password)); strings.Contains(string(text)+r.out+r.err, p) {
		t.Error("the password is written out")
	}
	if !strings.Contains(string(text), `password: "file:../lab/password"`) || !strings.Contains(string(text), `ca: "file:../lab/ca/spine1.pem"`) {
		t.Errorf("%s", text)
	}
	if r := b.call(t, "import", "eos:127.0.0.1:1", "--password", "hunter2", "--out", filepath.Join(b.dir, "x")); r.code != exitUsage || strings.Contains(r.err, "hunter2") {
		t.Error(r)
	}
}

// TestImportSuggests: a fabric as SONiC ships it has no watchdog and no strict class for notifications. The two lines
// that are missing stand in the model, commented out; findings say which they are, and with them the rules are content.
func TestImportSuggests(t *testing.T) {
	b, _ := newOldBench(t, trio)
	spine := b.lab.Box("spine1").(*sonic.Switch)
	spine.Edit(func(db sonic.DB) {
		delete(db, "PFC_WD")
		for _, row := range db["SCHEDULER"] {
			if row["type"] == "STRICT" {
				row["type"], row["weight"] = "DWRR", "10"
			}
		}
	})
	var got importJSON
	r := b.imported(t, exitOK, "spine1", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got.Suggestions) != 2 {
		t.Fatal(err, r)
	}
	path := filepath.Join(b.dir, "pod1", "fabric.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, x := range got.Suggestions {
		hint := fmt.Sprintf("uncomment line %d of %s: %s", x.Line, path, x.Text)
		if !strings.Contains(r.out, hint) {
			t.Errorf("no %q in %s", hint, r)
		}
		indent, rest, ok := strings.Cut(lines[x.Line-1], "# ")
		if !ok || !strings.HasPrefix(rest, x.Text+"   # suggested") || x.Replaces > 0 != (x.Rule == "cnp-class") {
			t.Errorf("%+v is %q", x, lines[x.Line-1])
		}
		lines[x.Line-1] = indent + rest
		for i := range x.Replaces {
			lines[x.Line-2-i] = ""
		}
	}
	rules := func() string {
		return fmt.Sprint(regexp.MustCompile(`(watchdog-on|cnp-class): `).FindAllString(b.call(t, "validate", path).out, -1))
	}
	if got := rules(); got != "[cnp-class:  watchdog-on: ]" && got != "[watchdog-on:  cnp-class: ]" {
		t.Errorf("%s\n%s", got, text)
	}
	b.write(t, "pod1/fabric.yaml", strings.Join(lines, "\n"))
	if got := rules(); got != "[]" {
		t.Errorf("%s\n%s", got, strings.Join(lines, "\n"))
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}

// TestImportForce: what is replaced is replaced whole, and what import would not write again is not taken away.
func TestImportForce(t *testing.T) {
	b, switches := newOldBench(t, trio)
	b.imported(t, exitOK, switches...)
	out := filepath.Join(b.dir, "pod1")
	at := func(name string) string {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	fabric, inventory := at("fabric.yaml"), at("inventory.yaml")
	again := func(code int, want string, args ...string) {
		t.Helper()
		before := [2]string{at("fabric.yaml"), at("inventory.yaml")}
		b.layers = []string{"-f", filepath.Join(out, "inventory.yaml")}
		r := b.must(t, code, append([]string{"import", "--force", "--out", out}, args...)...)
		if !strings.Contains(r.err, want) {
			t.Errorf("no %q in %s", want, r)
		}
		if code != exitOK && before != [2]string{at("fabric.yaml"), at("inventory.yaml")} {
			t.Errorf("something was written: %s", r)
		}
	}
	again(exitOK, "")
	if d := cmp.Diff(fabric+inventory, at("fabric.yaml")+at("inventory.yaml")); d != "" {
		t.Errorf("the second time (-want +got):\n%s", d)
	}
	again(exitError, "has devices that were not read, and --force would take them away: "+switches[0], switches[1:]...)
	more := "groups:\n  g: {roles: [leaf], ssh: {username: me}}\n"
	b.write(t, "pod1/inventory.yaml", inventory+more)
	again(exitError, "says what import does not write, and --force would take it away: groups")
	b.write(t, "pod1/inventory.yaml", strings.Replace(inventory, "  leaf1:\n", "  leaf1:\n    ports: {Ethernet1-1: Ethernet1/1}\n", 1))
	again(exitError, "take it away: ports of leaf1")
	b.write(t, "pod1/inventory.yaml", "kind: [")
	b.layers = []string{"-f", b.lab.Inventory}
	if r := b.must(t, exitError, append([]string{"import", "--force", "--out", out}, switches...)...); !strings.Contains(r.err, "inventory.yaml cannot be read, so that nobody knows") {
		t.Error(r)
	}
	b.write(t, "pod1/inventory.yaml", inventory)
	b.write(t, "pod1/site.yaml", "apiVersion: fabricctl/v1\nkind: Inventory\n"+more)
	again(exitOK, "")
	b.layers = []string{"-f", out}
	b.must(t, exitOK, "plan", "--detailed-exitcode")

	if err := os.Rename(filepath.Join(out, "inventory.yaml"), filepath.Join(b.dir, "moved.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(out, "inventory.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.layers = []string{"-f", filepath.Join(b.dir, "moved.yaml")}
	b.must(t, exitError, "import", "--force", "--out", out)
	if at("fabric.yaml") != fabric {
		t.Error("half of a pair was written")
	}
}

// TestWriteAll: when one file cannot be written, the others are what they were, and nothing is left behind.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "gone", "b")
	if err := os.WriteFile(a, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeAll([]document{{a, "new"}, {b, "new"}}, true); err == nil {
		t.Error("no error")
	}
	if err := writeAll([]document{{a, "new"}}, false); err == nil || !strings.Contains(err.Error(), "exists and stays as it is") {
		t.Error(err)
	}
	text, _ := os.ReadFile(a)
	entries, _ := os.ReadDir(dir)
	if string(text) != "old" || len(entries) != 1 {
		t.Errorf("%q, %v", text, entries)
	}
	if err := writeAll([]document{{a, "new"}}, true); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(a); string(text) != "new" {
		t.Errorf("%q", text)
	}
}

// TestImportInsecure: what is not verified in this call is not left unverified for good, unless the inventory says so.
func TestImportInsecure(t *testing.T) {
	b, switches := newOldBench(t, trio)
	b.layers = []string{"-f", b.lab.Inventory}
	r := b.imported(t, exitOK, append(switches, "--insecure")...)
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "inventory.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "insecure") || !strings.Contains(r.out, "warning: insecure: whoever answered was not verified") {
		t.Errorf("%s\n%s", text, r)
	}
	own, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "own.yaml", strings.ReplaceAll(string(own), "file:", "file:"+filepath.Dir(b.lab.Inventory)+"/"))
	b.write(t, "over.yaml", "apiVersion: fabricctl/v1\nkind: Inventory\ndefaults: {ssh: {insecure: true}}\n")
	b.layers = []string{"-f", filepath.Join(b.dir, "own.yaml"), "-f", filepath.Join(b.dir, "over.yaml")}
	out := filepath.Join(b.dir, "pod2")
	b.must(t, exitOK, append([]string{"import", "--out", out, "--insecure"}, switches...)...)
	if text, err = os.ReadFile(filepath.Join(out, "inventory.yaml")); err != nil || strings.Count(string(text), "insecure: true") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestPlatformOf: what the inventory says counts, then the hardware name, then its family; else nobody knows it.
func TestPlatformOf(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ os, said, model, want string }{
		{"sonic", "sonic/sn4700", "ACS-SN5600", "sonic/sn4700"},
		{"sonic", "", "ACS-SN5600", "sonic/sn5600"},
		{"sonic", "", "Own-Box 1", "sonic/own-box-1"},
		{"eos", "", "DCS-7060X6-64PE-F", "eos/7060x6"},
		{"eos", "", "DCS-7060X6A-64", "eos/dcs-7060x6a-64"},
		{"eos", "", "", "eos/unknown"},
		{"linux", "", "mlx5_core", "linux/generic"},
	} {
		if got, may := platformOf(target{OS: tt.os, Platform: tt.said}, render.Facts{Model: tt.model}, catalog); got != tt.want || may != nil {
			t.Errorf("%s %q %q: %s, want %s", tt.os, tt.said, tt.model, got, tt.want)
		}
	}
	e, _ := catalog.Entry(profiles.KindPlatform, "sonic/sn5600")
	e.Name = "sonic/again"
	b := seen{target: target{Name: "leaf1", OS: "sonic"}, facts: render.Facts{Model: "ACS-SN5600"}}
	b.device(catalog.With(e))
	if got := fmt.Sprint(b.found); b.box.Device.Platform != "sonic/again" ||
		!strings.Contains(got, "ACS-SN5600 is the hardware of sonic/again, sonic/sn5600; the model takes it for the first") {
		t.Error(b.box.Device.Platform, got)
	}
}
