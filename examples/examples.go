// Package examples holds the example models, for the demo and for tests.
package examples

import "embed"

// FS holds each example in a directory of its name.
//
//go:embed */*.yaml
var FS embed.FS

// Model is an example: its directory, and the layers to load, the last of which may be a site's. Fabric are those without
// an inventory, to be used with another one.
type Model struct {
	Name   string
	Layers []string
	Fabric []string
}

// Models lists the examples.
func Models() []Model {
	return []Model{
		{"small", []string{"small/fabric.yaml", "small/inventory.yaml"}, []string{"small/fabric.yaml"}},
		{"mixed", []string{"mixed/fabric.yaml", "mixed/inventory.yaml", "mixed/site.yaml"}, []string{"mixed/fabric.yaml", "mixed/site.yaml"}},
		{"rail8", []string{"rail8/fabric.yaml", "rail8/inventory.yaml"}, []string{"rail8/fabric.yaml"}},
		{
			"three-tier",
			[]string{"three-tier/fabric.yaml", "three-tier/edge-box.yaml", "three-tier/inventory.yaml"},
			[]string{"three-tier/fabric.yaml", "three-tier/edge-box.yaml"},
		},
		{
			"storage-and-training",
			[]string{"storage-and-training/fabric.yaml", "storage-and-training/inventory.yaml"},
			[]string{"storage-and-training/fabric.yaml"},
		},
		bench("bench-ap"), bench("bench-b"), bench("bench-c"),
	}
}

// bench is a fabric that tuning is tried on, with the switch that is made up for it.
func bench(name string) Model {
	return Model{
		name, []string{name + "/fabric.yaml", name + "/bench-box.yaml", name + "/inventory.yaml"}, []string{name + "/fabric.yaml", name + "/bench-box.yaml"},
	}
}
