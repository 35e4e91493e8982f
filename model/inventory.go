package model

import (
	"io/fs"

	"github.com/fabricctl/fabricctl/model/diag"
)

// LoadInventory is Load for those who reach devices before there is a model of them: layers without a Fabric document
// are no error. What comes back then has the Endpoints of the inventory and the Catalog, and no devices; HasModel tells.
// The documents are read as strictly as by Load.
func LoadInventory(fsys fs.FS, layers ...string) (*Fabric, diag.List) {
	return loadLayers(fsys, buildInventory, layers)
}

// HasModel reports whether the layers held a Fabric document.
func (f *Fabric) HasModel() bool { return f.docs.fabric != nil }

// buildInventory is build for layers that may hold no Fabric document.
func buildInventory(docs roots, broken bool) (*Fabric, diag.List) {
	if docs.fabric != nil || docs.inventory == nil {
		return build(docs, broken)
	}
	f := &Fabric{docs: docs, Roles: map[string]*Override{}, Endpoints: map[string]*Endpoint{}}
	var found diag.List
	c := &checker{}
	c.complete(inventorySchema(), docs.inventory, nil, nil)
	found.Add(c.found...)
	completeProfiles(docs, &found)
	f.Catalog = catalog(docs.profiles, &found)
	r := newReach(docs.inventory, &found)
	docs.inventory.get("devices").each(func(name string, _ *node) {
		e := r.endpoint(name, "")
		f.Endpoints[name] = e
		if p := e.Platform; p.Set {
			if _, ok := f.Catalog.Platform(p.V); !ok && !broken {
				found.Errorf("platform", p.Pos(), didYouMean(p.V, f.Catalog.Names()), "%s: no platform is called %s", name, p.V)
			}
		}
	})
	r.report(&found)
	v := &validator{f: f}
	v.inventory(sortedKeys(f.Endpoints))
	found.Add(v.found...)
	return f, found
}

// DefaultEndpoint is how the inventory reaches a device that it does not name, at an address given elsewhere.
func (f *Fabric) DefaultEndpoint(name, address string) *Endpoint {
	e := (&reach{defaults: defaultLevel(f.docs.inventory)}).endpoint(name, "")
	e.Address = Value[string]{V: address, Set: true}
	return e
}

// InventoryKeys are the paths of what the Inventory documents give, as deep as a field of a device: ["groups"],
// ["devices", "leaf1", "address"]. They are in the order of the documents.
func (f *Fabric) InventoryKeys() [][]string {
	var paths [][]string
	f.docs.inventory.each(func(key string, n *node) {
		if key != "devices" {
			paths = append(paths, []string{key})
			return
		}
		n.each(func(device string, n *node) {
			n.each(func(field string, _ *node) { paths = append(paths, []string{key, device, field}) })
		})
	})
	return paths
}
