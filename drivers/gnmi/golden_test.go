package gnmi_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
	"github.com/fabricctl/fabricctl/render/yang"
)

// A real switch's ConfigDB, all 64 ports of it, is read whole; a commit changes what it names and nothing else, the
// result is one that a switch accepts, and undo gives the same ConfigDB back.
func TestRealDatabase(t *testing.T) {
	text, err := os.ReadFile(witness.Reference(t, "reference/sonic-pg/golden/config_db.json"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sonic.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s := launch(t, sonic.Options{Config: db})
	d := open(t, config(s))
	live := read(t, d)
	settings := 0
	for _, rows := range db {
		for _, row := range rows {
			settings += len(row)
		}
	}
	if len(live) < settings {
		t.Errorf("%d settings read of %d fields", len(live), settings)
	}
	now := live.Get("WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold")
	cs := []render.Change{
		change("WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold", &now, p("1500000")),
		change("SCHEDULER", "fctl-pod1-training", "type", nil, p("DWRR")),
		change("SCHEDULER", "fctl-pod1-training", "weight", nil, p("60")),
		change("PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]", p(""), nil),
	}
	queue := live.Get("QUEUE", "Ethernet0|0", "scheduler")
	cs = append(cs, change("QUEUE", "Ethernet0|0", "scheduler", &queue, p("fctl-pod1-training")))
	if err := d.Commit(patience(t), "tx", cs, 0); err != nil {
		t.Fatalf("%v\n%q", err, s.Refusals())
	}
	want, _ := sonic.Parse(text)
	want.Set("WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold", "1500000")
	want.Set("SCHEDULER", "fctl-pod1-training", "type", "DWRR")
	want.Set("SCHEDULER", "fctl-pod1-training", "weight", "60")
	want.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3")
	want.Set("QUEUE", "Ethernet0|0", "scheduler", "fctl-pod1-training")
	if diff := cmp.Diff(want, s.Config()); diff != "" {
		t.Errorf("after the commit (-want +got):\n%s", diff)
	}
	if err := yang.Check(t, s.Config().JSON()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]int{"Ethernet0": 1}, s.Stats().Flaps); diff != "" {
		t.Errorf("flaps: %s", diff)
	}
	if err := d.Commit(patience(t), "undo", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(db, s.Config()); diff != "" {
		t.Errorf("after undo (-before +after):\n%s", diff)
	}
}
