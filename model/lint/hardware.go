package lint

import "github.com/fabricctl/fabricctl/profiles"

// nic finds the facts of a NIC model in the model's catalog; false when it is not given, not known, or there is no
// model to ask.
func (p *Pass) nic(name string) (profiles.NIC, bool) {
	if name == "" || p.Fabric == nil || p.Fabric.Catalog == nil {
		return profiles.NIC{}, false
	}
	return p.Fabric.Catalog.NIC(name)
}
