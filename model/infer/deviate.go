package infer

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// noPos is for findings that are about no line.
var noPos diag.Pos

// deviation is one value that some ports have otherwise than the model says.
type deviation struct {
	intent.Difference
	host bool
	pos  diag.Pos // the line that asks
}

// has is a value that a port has as the model says.
type has struct {
	host  bool
	field intent.Field
	text  string
}

// where is what a deviation touches.
type where struct {
	devices []string
	ports   map[string][]string // interfaces by device
}

// deviations is what the ports of live do otherwise than want asks, one finding per value, at the line that asks. It is
// what no override can express, or what would break a rule (broken, by device); how many ports agree with the model
// tells whose word it is.
func deviations(live, want *intent.Net, broken map[string]string) diag.List {
	at := map[deviation]*where{}
	agree := map[has]int{}
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
				k := deviation{x, is.Host, asked.Origin(q, x.Field).At()}
				if at[k] == nil {
					at[k] = &where{ports: map[string][]string{}}
					order = append(order, k)
				}
				at[k].add(is.Name, p.Iface)
				differs[x.Field] = true
			}
			for _, v := range intent.Values(&wanted) {
				if !differs[v.Field] {
					agree[has{is.Host, v.Field, v.Text}]++
				}
			}
		}
	}
	var l diag.List
	for i := 0; i < len(order); {
		k, more := order[i], ""
		for i++; i < len(order) && k.goesWith(order[i], at); i++ {
			more += fmt.Sprintf(", %s (%s)", order[i].Label, order[i].After)
		}
		f := k.finding(at[k], agree, broken)
		if more != "" {
			f.Msg += "; likewise " + more[2:]
		}
		l.Add(f)
	}
	return l
}

// goesWith reports whether o is another value of the same thing, a marking ramp or a watchdog, which is missing on the
// same ports.
func (k deviation) goesWith(o deviation, at map[deviation]*where) bool {
	family := func(d deviation) string { return string(d.Field[:strings.LastIndexByte(string(d.Field), '.')+1]) }
	return k.Before == "none" && o.Before == "none" && family(k) != "" && family(k) == family(o) && at[k].String() == at[o].String()
}

func (w *where) add(device, iface string) {
	if w.ports[device] == nil {
		w.devices = append(w.devices, device)
	}
	w.ports[device] = append(w.ports[device], iface)
}

func (w *where) String() string {
	var names []string
	for _, d := range w.devices {
		if ps := w.ports[d]; len(ps) > 1 {
			d += fmt.Sprintf(" (%d ports)", len(ps))
		} else {
			d += ":" + ps[0]
		}
		names = append(names, d)
	}
	return some(names)
}

func (k deviation) finding(w *where, agree map[has]int, broken map[string]string) diag.Finding {
	first := w.devices[0]
	f := diag.Finding{
		Rule: "differs", Severity: diag.Warning, Pos: k.pos, At: first + ":" + w.ports[first][0],
		Msg:  fmt.Sprintf("%s is %s on %s, and the model says %s", k.Label, k.Before, w, k.After),
		Hint: "an override cannot say it: change the devices, or the model if it is the others that are wrong",
	}
	if n := agree[has{k.host, k.Field, k.After}]; n > 0 && !strings.HasPrefix(string(k.Field), "dscp.") {
		f.Msg += fmt.Sprintf(", as %s", diag.Plural(n, "other port has it", "other ports have it"))
	}
	for _, d := range w.devices {
		if rule := broken[d]; rule != "" {
			f.Hint = fmt.Sprintf("change the device; an override that says so would break the rule %s", rule)
		}
	}
	if k.Before == "not known" {
		f.Severity, f.Hint = diag.Info, ""
	}
	return f
}
