package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render/yang"
)

// TestExistingSwitch takes over a switch that is configured already: a full 64-port ConfigDB with somebody else's
// profiles, once with 4 of its ports modelled and once with all. What the model does not own is left exactly as it
// was, what may be adopted is edited in place, a second apply sends nothing, and the result is valid.
func TestExistingSwitch(t *testing.T) {
	text, err := os.ReadFile(witness.Reference(t, "reference/sonic-pg/golden/config_db.json"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := sonic.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	ports := slices.SortedFunc(func(yield func(string) bool) {
		for p := range before["PORT"] {
			if !yield(p) {
				return
			}
		}
	}, intent.CompareNames)
	for _, n := range []int{4, len(ports)} {
		t.Run(fmt.Sprintf("%d ports", n), func(t *testing.T) { takeOver(t, before, ports[:n]) })
	}
}

func takeOver(t *testing.T, before sonic.DB, ports []string) {
	s, err := sonic.Start(sonic.Options{Config: before, User: "lab", Password: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := &bench{dir: t.TempDir()}
	b.layers = []string{"-f", b.write(t, "fabric.yaml", existing(ports)), "-f", b.write(t, "inventory.yaml", reach(s))}
	b.write(t, "ca.pem", string(s.CA()))
	b.write(t, "password", "canary\n")

	plan := b.must(t, exitOK, "plan", "--adopt", "--details")
	t.Logf("%s", regexp.MustCompile(`(?m)^    [+~-] .*\n`).ReplaceAllString(plan.out, ""))
	b.must(t, exitOK, "apply", "--yes", "--adopt", "--allow-disruptive", "--accept-unverified")
	sets := s.Stats().Sets
	b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
	b.must(t, exitOK, "apply", "--yes", "--adopt", "--allow-disruptive", "--accept-unverified")
	if now := s.Stats().Sets; now != sets {
		t.Errorf("the second apply sent %d Sets", now-sets)
	}
	after := s.Config()
	if err := yang.Check(t, after.JSON()); err != nil {
		t.Errorf("the result is not valid: %v", err)
	}
	untouched(t, before, after, ports)
}

// untouched checks that everything but what the model owns is as it was.
func untouched(t *testing.T, before, after sonic.DB, ports []string) {
	t.Helper()
	modelled := map[string]bool{}
	for _, p := range ports {
		modelled[p] = true
	}
	ours := func(table, row, field string) bool {
		port, queue, _ := strings.Cut(row, "|")
		switch table {
		case "PORT":
			return modelled[port] && field == "mtu"
		case "PORT_QOS_MAP":
			return modelled[port]
		case "QUEUE":
			return modelled[port] && (queue == "0" || queue == "3" || queue == "6") // the classes of the model
		case "PFC_WD":
			return modelled[port] || row == "GLOBAL"
		case "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "SCHEDULER", "WRED_PROFILE":
			return strings.HasPrefix(row, "fctl-taken-")
		}
		return false
	}
	flat := func(db sonic.DB) map[string]string {
		m := map[string]string{}
		for table, rows := range db {
			for row, fields := range rows {
				for field, v := range fields {
					if !ours(table, row, field) {
						m[table+"|"+row+"|"+field] = fmt.Sprint(v)
					}
				}
			}
		}
		return m
	}
	was, is := flat(before), flat(after)
	if len(ports) == len(before["PORT"]) {
		// Bound by modelled ports alone, so adopted: entries of the model's classes may change, others may not.
		for _, m := range []map[string]string{was, is} {
			for _, tc := range []string{"0", "3", "6"} {
				delete(m, "TC_TO_PRIORITY_GROUP_MAP|AZURE|"+tc)
				delete(m, "TC_TO_QUEUE_MAP|AZURE|"+tc)
				delete(m, "MAP_PFC_PRIORITY_TO_QUEUE|AZURE|"+tc)
			}
		}
	}
	if d := cmp.Diff(was, is); d != "" {
		t.Errorf("what the model does not own changed (-before +after):\n%s", d)
	}
	for _, p := range ports { // what the model asks for is there
		has3 := slices.Contains(strings.Split(after.Get("PORT_QOS_MAP", p, "pfc_enable"), ","), "3")
		if !has3 || !strings.HasPrefix(after.Get("QUEUE", p+"|3", "wred_profile"), "fctl-taken-") || after.Get("PFC_WD", p, "action") != "drop" {
			t.Errorf("%s is not as the model asks", p)
		}
	}
	for _, p := range ports { // priorities that the model does not name are left alone
		for _, field := range []string{"pfc_enable", "pfcwd_sw_enable"} {
			for _, prio := range []string{"2", "4"} {
				has := func(db sonic.DB) bool {
					return slices.Contains(strings.Split(db.Get("PORT_QOS_MAP", p, field), ","), prio)
				}
				if has(before) != has(after) {
					t.Errorf("%s of %s: priority %s was %v and is %v", field, p, prio, has(before), has(after))
				}
			}
		}
	}
}

// existing is a model of one switch with these ports and three classes.
func existing(ports []string) string {
	var b strings.Builder
	b.WriteString("apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: taken}\ntopology:\n  devices:\n" +
		"    - name: leaf1\n      role: leaf\n      platform: sonic/sn4600c\n      ports:\n")
	for i, p := range ports {
		fmt.Fprintf(&b, "        - {name: port-%d, iface: %s}\n", i+1, p)
	}
	b.WriteString(`mtu: {fabric: 9100B, host: 9000B}
classes:
  - {name: training, dscp: [3, 26], priority: 3, lossless: true, ecn: {kmin: 2MB, kmax: 10MB, pmax: 5%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 200ms, poll: 200ms, action: drop}
manage: {switches: own}
`)
	return b.String()
}

func reach(s *sonic.Switch) string {
	host, port, _ := strings.Cut(s.Addr(), ":")
	return fmt.Sprintf(`apiVersion: fabricctl/v1
kind: Inventory
devices:
  leaf1:
    address: %s
    gnmi: {port: %s, tls: {ca: "file:ca.pem"}, username: lab, password: "file:password"}
`, host, port)
}

func (b *bench) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
