package rollout

import (
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// fleet judges what the NICs of the hosts run, as check does. No plan makes it or can mend it, so that it is never an
// error here: a host with bad firmware does not keep the others from being written. f is the model; nil knows no NICs.
func fleet(f *model.Fabric, net *intent.Net, ds []DevicePlan) diag.List {
	if f == nil || f.Catalog == nil {
		return nil
	}
	var nics []profiles.Fitted
	for i := range ds {
		nics = append(nics, render.Fitted(net.Devices[i], ds[i].Facts, f.Catalog)...)
	}
	found := f.Catalog.Fleet(nics)
	if len(found) == 0 {
		return nil
	}
	var l diag.List
	for _, x := range f.Acknowledge(found) {
		if x.Rule == "acknowledge" { // of what no NIC has: lint says so of the model
			continue
		}
		x.Severity = min(x.Severity, diag.Warning)
		l.Add(x)
	}
	return l
}
