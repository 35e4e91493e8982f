package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// hardwareModel is a small fabric on one platform, its host links split and its hosts on one NIC.
const hardwareModel = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: hw}
topology:
  spines: {count: 1, platform: PLATFORM}
  leaves: {count: 2, platform: PLATFORM}
  hosts: {per_leaf: 3, nic: NIC, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: SPEED, cable: 40m}
    host_leaf: {speed: PART, cable: 5m, breakout: PARTS}
mtu: {fabric: 9214B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
`

func hardwareFindings(t *testing.T, platform, nic, speed, part string, parts int) diag.List {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	text := strings.NewReplacer("PLATFORM", platform, "NIC", nic, "SPEED", speed, "PARTS", fmt.Sprint(parts), "PART", part).Replace(hardwareModel)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	return m.findings
}

// TestEveryPlatform: each platform that names its ports loads, resolves, lints and renders, whole and split in each way
// that it lists, at the speed that it is said to have; and its operating system has a dialect.
func TestEveryPlatform(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range catalog.Names() {
		p, _ := catalog.Platform(name)
		if render.ByOS(p.OS()) == nil {
			t.Errorf("%s: there is no dialect %s", name, p.OS())
		}
		if p.Iface == "" || p.Speed == 0 {
			continue
		}
		for _, parts := range append([]int{1}, p.Breakouts...) {
			part := p.Speed.String()
			if parts > 1 {
				part = fmt.Sprintf("%dMbps", int64(p.Speed)/int64(parts)/1e6)
			}
			for _, f := range hardwareFindings(t, name, "connectx-8", p.Speed.String(), part, parts) {
				if f.Severity == diag.Error || f.Rule == "unbound-port" {
					t.Errorf("%s split into %d: %s", name, parts, f)
				}
			}
		}
	}
}

// TestEveryNIC: each NIC that speaks RoCE v2 can be a host's at the fastest speed it is said to have; the others are
// warned about. One whose driver nobody may write to, that has no PFC (soft-RoCE), or too few classes for this model, is refused
// with the reason.
func TestEveryNIC(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range catalog.NamesOf(profiles.KindNIC) {
		nic, _ := catalog.NIC(name)
		speed := "25Gbps"
		if nic.Fastest() > 0 {
			speed = nic.Fastest().String()
		}
		warned, refused := false, false
		for _, f := range hardwareFindings(t, "sonic/sn5600", name, "800Gbps", speed, 1) {
			warned = warned || f.Rule == "nic-roce"
			driver := catalog.PersonalityOf(nic)
			refused = refused || f.Rule == "not-expressible" && f.Severity == diag.Error
			if f.Severity == diag.Error && (f.Rule != "not-expressible" || driver.Status == profiles.Managed && !driver.AppPriorityIsTC && driver.PFC.Support != profiles.SupportNone) {
				t.Errorf("%s: %s", name, f)
			}
		}
		if driver := catalog.PersonalityOf(nic); !refused && driver.Status != profiles.Managed {
			t.Errorf("%s: its driver is %s, and nothing is refused", name, driver.Status)
		}
		if warned == nic.RoCEv2 {
			t.Errorf("%s: RoCE v2 %v, warned %v", name, nic.RoCEv2, warned)
		}
	}
}

// TestInitOnEveryPlatform: the model that init writes is valid, without a warning, on every switch that names its ports,
// for links of hosts at any speed that it has.
func TestInitOnEveryPlatform(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range catalog.Names() {
		p, _ := catalog.Platform(name)
		if p.OS() == "linux" || p.Iface == "" || name == "sonic/vs" { // the virtual switch has fewer ports
			continue
		}
		for _, speed := range []units.BitRate{0, 25 * units.Gbps, 100 * units.Gbps, 200 * units.Gbps, 400 * units.Gbps, 800 * units.Gbps} {
			if p.Speed > 0 && speed > p.Speed {
				continue
			}
			o := initOptions{spines: 2, leaves: 4, perLeaf: 8, platform: name}
			if speed > 0 {
				o.speed = speed.String()
			}
			dir := filepath.Join(t.TempDir(), "pod1")
			a := &app{sys: quiet(), output: "text"}
			if err := a.runInit(dir, o); err != nil {
				t.Errorf("%s at %s: %v", name, o.speed, err)
				continue
			}
			m, err := (&app{sys: quiet()}).load(t.Context(), []string{dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range m.findings {
				if f.Severity != diag.Info || f.Rule == "starting-values" {
					t.Errorf("%s at %s: %s", name, o.speed, f)
				}
			}
		}
	}
}

// TestPersonalitiesDocumented: docs/hardware.md names every personality beside the status that it has.
func TestPersonalitiesDocumented(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/hardware.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[profiles.Status]string{}
	for line := range strings.Lines(string(page)) {
		for _, s := range []profiles.Status{profiles.Managed, profiles.Observed, profiles.Unsupported} {
			if strings.HasPrefix(line, "| `"+string(s)+"` | ") {
				rows[s] = line
			}
		}
	}
	for _, name := range catalog.NamesOf(profiles.KindPersonality) {
		p, _ := catalog.PersonalityNamed(name)
		for s, row := range rows {
			if strings.Contains(row, "`"+name+"`") != (s == p.Status) {
				t.Errorf("%s is %s; the row of %s says %s", name, p.Status, s, row)
			}
		}
	}
}
