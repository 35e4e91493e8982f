package main

import (
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render/yang"
)

// TestExamplesAreValid brings every example up on an emulated fabric. What is rendered, merged over the configuration
// that a switch of that platform has after installation, and what the switch holds after apply, must be valid by SONiC's
// own models.
func TestExamplesAreValid(t *testing.T) {
	witness.Tool(t, "yanglint")
	witness.Reference(t, "sonic-yang")
	for _, e := range examples.Models() {
		t.Run(e.Name, func(t *testing.T) {
			text, err := examples.FS.ReadFile(e.Fabric[0])
			if err != nil {
				t.Fatal(err)
			}
			b := newBench(t, string(text), e.Fabric[1:]...)
			bare := map[string]sonic.DB{}
			for _, d := range b.net.Devices {
				if s, ok := b.lab.Box(d.Name).(*sonic.Switch); ok {
					bare[d.Name] = s.Config()
				}
			}
			rendered, err := renderAll(b.net, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rendered {
				if db := bare[r.Device]; db != nil {
					more, err := sonic.Parse([]byte(r.Text))
					if err != nil {
						t.Fatalf("%s: %v", r.Device, err)
					}
					for table, rows := range more {
						for row, fields := range rows {
							for field, v := range fields {
								db.Set(table, row, field, v)
							}
						}
					}
					if err := yang.Check(t, db.JSON()); err != nil {
						t.Errorf("%s, as rendered: %v", r.Device, err)
					}
				}
			}
			b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			b.must(t, exitOK, "plan", "--detailed-exitcode")
			for name := range bare {
				if err := yang.Check(t, b.lab.Box(name).(*sonic.Switch).Config().JSON()); err != nil {
					t.Errorf("%s, after apply: %v", name, err)
				}
			}
		})
	}
}
