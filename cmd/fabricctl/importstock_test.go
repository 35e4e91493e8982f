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

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/witness"
)

// stockDB is what `config qos reload` writes on most images, for the ports given: AZURE maps, weighted schedulers
// without a strict one, marking and PFC on priorities 3 and 4, and no watchdog.
func stockDB(t *testing.T, ports []string) sonic.DB {
	t.Helper()
	tc := map[string]any{}
	for i := range 64 {
		tc[fmt.Sprint(i)] = "1"
	}
	for dscp, c := range map[string]any{"3": "3", "4": "4", "5": "2", "8": "0", "46": "5", "48": "6"} {
		tc[dscp] = c
	}
	same := map[string]any{}
	for i := range 8 {
		same[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	wred := map[string]any{"ecn": "ecn_all"}
	for _, c := range []string{"green", "yellow", "red"} {
		wred["wred_"+c+"_enable"], wred[c+"_min_threshold"], wred[c+"_max_threshold"], wred[c+"_drop_probability"] = "true", "1048576", "2097152", "5"
	}
	db := sonic.DB{
		"DSCP_TO_TC_MAP":            {"AZURE": tc},
		"TC_TO_QUEUE_MAP":           {"AZURE": same},
		"MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": same},
		"TC_TO_PRIORITY_GROUP_MAP":  {"AZURE": {"0": "0", "1": "0", "2": "0", "3": "3", "4": "4", "5": "0", "6": "0", "7": "7"}},
		"SCHEDULER":                 {"scheduler.0": {"type": "DWRR", "weight": "14"}, "scheduler.1": {"type": "DWRR", "weight": "15"}},
		"WRED_PROFILE":              {"AZURE_LOSSLESS": wred},
		"PORT_QOS_MAP":              {"global": {"dscp_to_tc_map": "AZURE"}},
		"QUEUE":                     {},
	}
	for _, p := range ports {
		db["PORT_QOS_MAP"][p] = map[string]any{
			"dscp_to_tc_map": "AZURE", "tc_to_queue_map": "AZURE", "tc_to_pg_map": "AZURE", "pfc_to_queue_map": "AZURE",
			"pfc_enable": "3,4", "pfcwd_sw_enable": "3,4",
		}
		for q := range 7 {
			row := map[string]any{"scheduler": "scheduler.0"}
			if q == 3 || q == 4 {
				row = map[string]any{"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}
			}
			db["QUEUE"][fmt.Sprintf("%s|%d", p, q)] = row
		}
	}
	return db
}

var qosTables = []string{
	"DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "SCHEDULER", "WRED_PROFILE", "PORT_QOS_MAP", "QUEUE", "PFC_WD",
}

// newStockBench is a lab of SONiC switches whose QoS is what stock makes for the ports of each.
func newStockBench(t *testing.T, stock func(ports []string) sonic.DB) (b *bench, switches []string) {
	t.Helper()
	model := strings.NewReplacer("leaves: {count: 1, platform: eos/7060x6}", "leaves: {count: 2, platform: sonic/sn5600}").Replace(trio)
	b = newUsedBench(t, model)
	for _, d := range b.net.Devices {
		if !d.Host {
			switches = append(switches, d.Name)
			b.restock(d.Name, stock)
		}
	}
	return b, switches
}

func (b *bench) restock(name string, stock func(ports []string) sonic.DB) {
	b.lab.Box(name).(*sonic.Switch).Edit(func(db sonic.DB) {
		for _, table := range qosTables {
			delete(db, table)
		}
		var ports []string
		for p := range db["PORT"] {
			ports = append(ports, p)
		}
		db.Put(stock(ports))
	})
}

// TestImportStock: a SONiC fabric as it comes from the factory has no strict queue and no watchdog. That is against two
// rules; nothing is owned, so the model is usable as it is written, and the plan of it is empty. Areas of which the rules
// say nothing can be owned; those that they are about only when the model says what is wanted.
func TestImportStock(t *testing.T) {
	b, switches := newStockBench(t, func(ports []string) sonic.DB { return stockDB(t, ports) })
	before := b.config(t)
	r := b.imported(t, exitOK, switches...)
	for _, want := range []string{
		`warning: cnp-class: class class-6 carries congestion notifications and has weight 14 instead of strict priority on .*; an error once pfc or scheduler is owned\n(.*\n)?    hint: uncomment line \d+ of .*: scheduling: strict, and delete line \d+`,
		`warning: watchdog-on: no PFC watchdog on .*; an error once pfc or watchdog is owned\n    hint: uncomment line \d+ of .*: pfc_watchdog: `,
	} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in %s", want, r)
		}
	}
	if strings.Contains(r.out, "live: ") {
		t.Errorf("what the model says too is said twice: %s", r)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.must(t, exitOK, "validate", filepath.Join(b.dir, "pod1"))
	for _, area := range []string{"mtu", "ecn"} {
		b.own(t, "{switches: {"+area+": own}, hosts: observe}")
		b.must(t, exitOK, "apply", "--yes", "--adopt")
	}
	for area, rule := range map[string]string{"scheduler": "cnp-class", "watchdog": "watchdog-on", "pfc": "watchdog-on"} {
		b.own(t, "{switches: {"+area+": own}, hosts: observe}")
		r := b.must(t, exitError, "validate", filepath.Join(b.dir, "pod1"))
		if !strings.Contains(r.out, ": error: "+rule+": ") {
			t.Errorf("%s: no %s in %s", area, rule, r)
		}
		b.must(t, exitError, "plan", "--adopt")
	}
	if d := cmp.Diff(before, b.config(t)); d != "" || b.writes() != 0 {
		t.Errorf("%d writes (-before +after):\n%s", b.writes(), d)
	}
}

// TestImportEveryStock: what the images' own templates write for each piece of hardware can be imported, and the plan
// of it is empty.
func TestImportEveryStock(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(witness.Reference(t, "reference/sonic-pg"), "*", "qos-t*.json"))
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	b, switches := newStockBench(t, func(ports []string) sonic.DB { return stockDB(t, ports) })
	seen := map[string]bool{} // tables without their ports: many are the same
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stock, err := sonic.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		db := func(ports []string) sonic.DB { return bound(t, stock, ports) }
		kind, err := json.Marshal(db([]string{"Ethernet0"}))
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(kind)] {
			continue
		}
		seen[string(kind)] = true
		for _, name := range switches {
			b.restock(name, db)
		}
		if err := os.RemoveAll(filepath.Join(b.dir, "pod1")); err != nil {
			t.Fatal(err)
		}
		t.Log(file)
		b.imported(t, exitOK, switches...)
		b.must(t, exitOK, "plan", "--detailed-exitcode")
	}
	t.Log(len(seen), "kinds")
}

// bound is stock's tables with the rows of its first port for each of ports.
func bound(t *testing.T, stock sonic.DB, ports []string) sonic.DB {
	t.Helper()
	db := sonic.DB{}
	for _, table := range qosTables {
		rows := stock[table]
		if rows == nil {
			continue
		}
		db[table] = map[string]map[string]any{}
		first := regexp.MustCompile(`^Ethernet(0|1)(\||$)`)
		for row, fields := range rows {
			switch {
			case first.MatchString(row):
				for _, p := range ports {
					db[table][first.ReplaceAllString(row, p+"$2")] = fields
				}
			case !strings.HasPrefix(row, "Ethernet"):
				db[table][row] = fields
			}
		}
	}
	return db
}

// TestImportSameName: devices that call themselves alike and have no serial numbers cannot be told apart before a write;
// nothing is written then. Where serial numbers differ, the inventory goes by these.
func TestImportSameName(t *testing.T) {
	b := newUsedBench(t, strings.NewReplacer("count: 1, platform: sonic", "count: 2, platform: sonic", "count: 1, platform: eos", "count: 2, platform: eos").Replace(trio))
	b.lab.Box("spine2").(*sonic.Switch).Edit(func(db sonic.DB) { db["DEVICE_METADATA"]["localhost"]["hostname"] = "SPINE1" })
	leaf := b.lab.Box("leaf2").(*eos.Switch)
	if err := leaf.Boot(strings.Replace(leaf.Running(), "hostname leaf2\n", "hostname leaf1\n", 1)); err != nil {
		t.Fatal(err)
	}
	r := b.imported(t, exitError, "spine1", "spine2", "leaf1")
	if !strings.Contains(r.err, "spine2: error: same-name: spine1 and spine2 both call themselves SPINE1") || !strings.Contains(r.err, "nothing was written") ||
		!strings.Contains(r.err, "hint: give each a host name of its own") {
		t.Error(r)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "pod1")); !os.IsNotExist(err) {
		t.Error("something was written")
	}
	r = b.imported(t, exitOK, "spine1", "leaf1", "leaf2")
	if !strings.Contains(r.out, "leaf2: warning: same-name: leaf1 and leaf2 both call themselves leaf1") {
		t.Error(r)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "inventory.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "hostname: ") != 1 || strings.Count(string(text), "serial: ") != 2 {
		t.Errorf("%s", text)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}

// TestImportSharedRows: rows of several ports are understood, and said. Nothing is written beside them: owning what they
// say is refused with the reason where it would be changed, and nothing reaches the device.
func TestImportSharedRows(t *testing.T) {
	b, switches := newStockBench(t, func(ports []string) sonic.DB { return stockDB(t, ports) })
	b.lab.Box("leaf1").(*sonic.Switch).Edit(func(db sonic.DB) {
		qos := db["PORT_QOS_MAP"]
		qos["Ethernet0,Ethernet8"] = qos["Ethernet0"]
		delete(qos, "Ethernet0")
		delete(qos, "Ethernet8")
		for q := range 7 {
			row := fmt.Sprintf("|%d", q)
			db["QUEUE"]["Ethernet0,Ethernet8"+row] = db["QUEUE"]["Ethernet0"+row]
			delete(db["QUEUE"], "Ethernet0"+row)
			delete(db["QUEUE"], "Ethernet8"+row)
		}
	})
	before := b.config(t)
	r := b.imported(t, exitOK, switches...)
	if !strings.Contains(r.out, "leaf1:PORT_QOS_MAP|Ethernet0,Ethernet8: warning: lift: one row is for several ports") || strings.Contains(r.out, "differs: ") ||
		!regexp.MustCompile(`(?m)^  maps +leaf1: refused: one row of PORT_QOS_MAP is for several ports \(Ethernet0,Ethernet8\)(.*\n)+  pfc +nothing on 2 of 3 devices\n +leaf1: refused: as for maps$`).MatchString(r.out) {
		t.Error(r)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.own(t, "{switches: {ecn: own}, hosts: observe}")
	if r := b.call(t, "apply", "--yes", "--adopt", "--allow-disruptive"); r.code == exitOK || !strings.Contains(r.out+r.err, "one row of QUEUE is for several ports") {
		t.Error(r)
	}
	if d := cmp.Diff(before, b.config(t)); d != "" || b.writes() != 0 {
		t.Errorf("%d writes (-before +after):\n%s", b.writes(), d)
	}
}
