package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/witness"
)

// lossless is trio with a word about the buffer of the lossless class.
func lossless(pfc string) string {
	return strings.Replace(trio, "lossless: true,", "lossless: true"+pfc+",", 1)
}

// TestBuffers goes through the life of a buffer: made by the switch from its cable, then a profile of ours, of which
// alpha and headroom change without touching the port and xon does not, and back. Each plan says what it does to ports,
// and after each apply nothing is left to do.
func TestBuffers(t *testing.T) {
	b := newBench(t, lossless(""))
	spine := b.lab.Box("spine1").(*sonic.Switch)
	bound := func() string { return spine.Config().Get("BUFFER_PG", "Ethernet0|3", "profile") }
	cable := func() string { return spine.Config().Get("CABLE_LENGTH", "AZURE", "Ethernet0") }
	ours := func(field string) string { return spine.Config().Get("BUFFER_PROFILE", bound(), field) }
	for _, x := range []struct {
		name, pfc string
		flaps     bool
		says      []string
		holds     func() string
		want      string
	}{
		{"made by the switch", "", true, []string{"priority 3 headroom +none → the device's own"}, bound, "pg_lossless_400000_40m_profile"},
		{
			"ours", ", pfc: {xoff: {alpha: 1/2}}", true,
			[]string{"priority 3 pause threshold +the device's own → alpha 1/2", "priority 3 headroom +the device's own → 283648B", "cable +40m → none", "QUEUE, PORT_QOS_MAP or BUFFER_PG row"},
			func() string { return fmt.Sprint(cable(), " ", ours("dynamic_th"), " ", ours("xoff")) }, "0m -1 283648",
		},
		{"alpha", ", pfc: {xoff: {alpha: 1/4}}", false, []string{"priority 3 pause threshold +alpha 1/2 → alpha 1/4"}, func() string { return ours("dynamic_th") }, "-2"},
		{
			"a share of the pool", ", pfc: {xoff: {share: 80%, of: pool}}", false,
			[]string{"priority 3 pause threshold +alpha 1/4 → alpha 4"},
			func() string { return ours("dynamic_th") }, "2",
		},
		{"xon", ", pfc: {xoff: {alpha: 1}, xon: 30720B}", true, []string{"priority 3 xon +19456B → 30720B"}, func() string { return ours("xon") }, "30720"},
		{
			"headroom that is a group's own", ", pfc: {xoff: {alpha: 1}, xon: 30720B, headroom: 300KB}", true,
			[]string{"priority 3 headroom +283648B → 300KB", "priority 3 reserved buffer"},
			func() string { return ours("xoff") }, "300000",
		},
		{"headroom alone", ", pfc: {xoff: {alpha: 1}, xon: 30720B, headroom: 310KB, reserved: 330720B}", false, []string{"priority 3 headroom +300KB → 310KB"}, func() string { return ours("xoff") }, "310000"},
		{"back", "", true, []string{"priority 3 headroom +310KB → the device's own", "cable +none → 40m"}, func() string { return bound() + " " + cable() }, "pg_lossless_400000_40m_profile 40m"},
	} {
		t.Run(x.name, func(t *testing.T) {
			b.write(t, "fabric.yaml", lossless(x.pfc))
			before := spine.Stats().Flaps["Ethernet0"]
			r := b.must(t, exitChanges, "plan", "--detailed-exitcode")
			for _, want := range x.says {
				if !regexp.MustCompile(want).MatchString(r.out) {
					t.Errorf("no %q in %s", want, r)
				}
			}
			if x.flaps {
				b.must(t, exitRefused, "apply", "--yes")
				b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			} else {
				b.must(t, exitOK, "apply", "--yes")
			}
			if flapped := spine.Stats().Flaps["Ethernet0"] > before; flapped != x.flaps {
				t.Errorf("the port flapped: %v, want %v", flapped, x.flaps)
			}
			if got := x.holds(); got != x.want {
				t.Errorf("it holds %q, want %q", got, x.want)
			}
			b.must(t, exitOK, "plan", "--detailed-exitcode")
			b.must(t, exitOK, "check")
		})
	}
	for name := range spine.Config()["BUFFER_PROFILE"] {
		if strings.HasPrefix(name, "fctl-") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestImportEveryBuffer: what the images' own templates write about buffers for each piece of hardware can be imported,
// the plan of it is empty, and owning it changes nothing: where the switch makes the priority groups, it goes on to, and
// a profile that the template binds stays bound.
func TestImportEveryBuffer(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(witness.Reference(t, "reference/sonic-pg"), "*", "buffers-t0.json"))
	if err != nil || len(files) < 15 {
		t.Fatal(len(files), err)
	}
	b, switches := newStockBench(t, func(ports []string) sonic.DB { return stockDB(t, ports) })
	tables := []string{"BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "BUFFER_QUEUE", "CABLE_LENGTH"}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			stock, err := sonic.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range switches {
				b.lab.Box(name).(*sonic.Switch).Edit(func(db sonic.DB) {
					for _, table := range tables {
						delete(db, table)
					}
					for port := range db["PORT"] {
						db.Put(buffersOf(stock, tables, port))
					}
				})
			}
			before := b.config(t)
			if err := os.RemoveAll(filepath.Join(b.dir, "pod1")); err != nil {
				t.Fatal(err)
			}
			if r := b.imported(t, exitOK, switches...); strings.Contains(r.out, "differs: ") {
				t.Error(r)
			}
			b.must(t, exitOK, "plan", "--detailed-exitcode")
			b.own(t, "{switches: {buffer: own}, hosts: observe}")
			b.must(t, exitOK, "plan", "--detailed-exitcode", "--adopt")
			b.must(t, exitOK, "apply", "--yes", "--adopt")
			if d := cmp.Diff(before, b.config(t)); d != "" {
				t.Errorf("(-before +after):\n%s", d)
			}
		})
	}
}

// buffersOf is what stock says of its first port, for another port, and what is not of ports.
func buffersOf(stock sonic.DB, tables []string, port string) sonic.DB {
	db := sonic.DB{}
	for _, table := range tables {
		for row, fields := range stock[table] {
			name, rest, _ := strings.Cut(row, "|")
			switch {
			case table == "CABLE_LENGTH":
				db.Set(table, row, port, "40m")
			case name == "Ethernet0" || name == "Ethernet1":
				for f, v := range fields {
					db.Set(table, port+"|"+rest, f, v)
				}
			case !strings.HasPrefix(row, "Ethernet"):
				for f, v := range fields {
					db.Set(table, row, f, v)
				}
			}
		}
	}
	return db
}

// TestImportBuffers: profiles that somebody bound by hand come into the model with all their values, and with adoption
// nothing of them changes; without, they would be ours, which the plan says as flaps.
func TestImportBuffers(t *testing.T) {
	b, switches := newStockBench(t, func(ports []string) sonic.DB { return stockDB(t, ports) })
	for _, name := range switches {
		b.lab.Box(name).(*sonic.Switch).Edit(func(db sonic.DB) {
			for field, v := range map[string]string{
				"pool": "ingress_lossless_pool", "size": "1248", "xoff": "165568", "xon": "0", "xon_offset": "2288", "dynamic_th": "-3",
			} {
				db.Set("BUFFER_PROFILE", "mine", field, v)
			}
			for port := range db["PORT"] {
				db.Set("CABLE_LENGTH", "AZURE", port, "0m")
				db.Set("BUFFER_PG", port+"|3", "profile", "mine")
				db.Set("BUFFER_PG", port+"|4", "profile", "mine")
			}
		})
	}
	before := b.config(t)
	b.imported(t, exitOK, switches...)
	text, err := os.ReadFile(filepath.Join(b.dir, "pod1", "fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "    pfc: {xoff: {alpha: 1/8}, headroom: 165568B, xon: 0B, xon_offset: 2288B, reserved: 1248B}\n"
	if strings.Count(string(text), want) != 2 {
		t.Errorf("not twice %q in\n%s", want, text)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	b.own(t, "{switches: {buffer: own}, hosts: observe}")
	b.must(t, exitOK, "apply", "--yes", "--adopt")
	if d := cmp.Diff(before, b.config(t)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if r := b.must(t, exitRefused, "apply", "--yes"); !strings.Contains(r.out+r.err, "only put objects of our names in place of others") {
		t.Error(r)
	}
}
