package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// noPos is for findings that are about no line.
var noPos diag.Pos

// deviation is one value that some ports of a device have otherwise than the model says.
type deviation struct {
	device string
	intent.Difference
}

// deviations is what the ports of live do otherwise than want asks, one finding per device and value, at the line that
// asks. It is what no override can express; how many ports agree with the model tells whose word it is.
func deviations(live, want *intent.Net) diag.List {
	ports := map[deviation][]string{}
	pos := map[deviation]diag.Pos{}
	agree := map[intent.Field]int{} // ports that have the value which the model asks for
	var order []deviation
	for i := range live.Devices {
		is := &live.Devices[i]
		asked := want.Device(is.Name)
		if asked == nil || is.State == intent.Planned {
			continue
		}
		for j := range is.Ports {
			p := &is.Ports[j]
			q := asked.Port(p.Name)
			if q == nil || q.Role == "unused" {
				continue
			}
			lives, wanted := *is.PolicyOf(p), *asked.PolicyOf(q)
			differs := map[intent.Field]bool{}
			for _, x := range intent.Differences(&lives, &wanted) {
				k := deviation{is.Name, x}
				if ports[k] == nil {
					order = append(order, k)
					pos[k] = asked.Origins.Get(q.Site, x.Field).At()
				}
				ports[k] = append(ports[k], p.Iface)
				differs[x.Field] = true
			}
			for _, v := range intent.Values(&wanted) {
				if !differs[v.Field] {
					agree[v.Field]++
				}
			}
		}
	}
	var l diag.List
	for _, k := range order {
		names := ports[k]
		slices.SortFunc(names, intent.CompareNames)
		f := diag.Finding{
			Rule: "differs", Severity: diag.Warning, Pos: pos[k], At: k.device + ":" + names[0],
			Msg:  fmt.Sprintf("%s: %s is %s on %s, and the model says %s", k.device, k.Label, k.Before, some(names), k.After),
			Hint: "an override cannot say it: change the device, or the model if it is the others that are wrong",
		}
		if k.Before == "not known" {
			f.Severity, f.Hint = diag.Info, ""
		}
		if n := agree[k.Field]; n > 0 && !strings.HasPrefix(string(k.Field), "dscp.") {
			f.Msg += fmt.Sprintf(", as %s", count(n, "other port has it", "other ports have it"))
		}
		l.Add(f)
	}
	return l
}
