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
	c.complete(inventorySchema(), docs.inventory, "")
	found.Add(c.found...)
	f.Catalog = catalog(docs.profiles, &found)
	shared := defaultsOf(docs.inventory)
	docs.inventory.get("devices").each(func(name string, _ *node) {
		e := shared.endpoint(docs.inventory, name)
		f.Endpoints[name] = e
		if p := e.Platform; p.Set {
			if _, ok := f.Catalog.Platform(p.V); !ok && !broken {
				found.Errorf("platform", p.Pos(), didYouMean(p.V, f.Catalog.Names()), "%s: no platform is called %s", name, p.V)
			}
		}
	})
	v := &validator{f: f}
	v.inventory(sortedKeys(f.Endpoints))
	found.Add(v.found...)
	return f, found
}

// defaults is what the devices of an inventory share.
type defaults struct {
	gnmi GNMI
	ssh  SSH
	lab  Value[bool]
}

func defaultsOf(inventory *node) defaults {
	n := inventory.get("defaults")
	d := defaults{gnmi: decodeGNMI(n.get("gnmi")), ssh: decodeSSH(n.get("ssh")), lab: boolean(n.get("lab"))}
	d.gnmi.Port = d.gnmi.Port.Or(defaultGNMIPort())
	d.ssh.Port = d.ssh.Port.Or(defaultSSHPort())
	return d
}

func defaultGNMIPort() Value[int] {
	return Value[int]{V: 8080, From: &Origin{Kind: FromDefault, Ref: "SONiC's gNMI server listens on 8080 unless told otherwise"}}
}

func defaultSSHPort() Value[int] {
	return Value[int]{V: 22, From: &Origin{Kind: FromDefault, Ref: "SSH"}}
}

// endpoint is how the inventory reaches a device, whether it names it or not.
func (d defaults) endpoint(inventory *node, name string) *Endpoint {
	e := inventory.get("devices", name)
	ep := &Endpoint{
		Device: name, Address: text(e.get("address")), Platform: text(e.get("platform")), Serial: text(e.get("serial")),
		Hostname: text(e.get("hostname")), Lab: boolean(e.get("lab")).Or(d.lab), GNMI: decodeGNMI(e.get("gnmi")).over(d.gnmi),
		SSH: decodeSSH(e.get("ssh")).over(d.ssh),
	}
	if e != nil {
		ep.Pos = inventory.get("devices").at[name]
	}
	return ep
}

// DefaultEndpoint is how the inventory reaches a device that it does not name, at an address given elsewhere.
func (f *Fabric) DefaultEndpoint(name, address string) *Endpoint {
	e := defaultsOf(f.docs.inventory).endpoint(nil, name)
	e.Address = Value[string]{V: address, Set: true}
	return e
}
