package render

import (
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Collisions are shared objects that carry our name, that the changes touch, and that somebody else's configuration
// uses: another tool, or another model. One sentence each, sorted. The row of a port is no such object: it has the port's
// name and not ours, and what else is set for the port may well follow it (SONiC: the watchdog's row, whoever owns it).
func Collisions(dialect *Dialect, d *intent.Device, own func(Key) bool, live Config, cs []Change) []string {
	users := map[Key]Key{} // object of ours to a stranger that uses it
	for _, s := range live {
		for _, r := range dialect.Refs(s.Key, s.Value) { // few settings point at anything
			if _, ok := users[r]; !ok && own(r) && !own(s.Key) && !partOf(s.Key, r) && !ofPort(d, r) && !modelled(d, s.Key) {
				users[r] = s.Key
			}
		}
	}
	var out []string
	said := map[Key]bool{}
	for _, c := range cs {
		for r, by := range users {
			if said[r] || !partOf(c.Key, r) || !holds(live, r) {
				continue
			}
			said[r] = true
			out = append(out, fmt.Sprintf("%s has our name and would change, but %s, which the model does not know, uses it", r, by))
		}
	}
	slices.Sort(out)
	return out
}

// modelled reports whether k is about a port of the model that is not active: its bindings are ours, although nothing
// is written to them now.
func modelled(d *intent.Device, k Key) bool {
	return aboutPort(d, k, func(p *intent.Port) bool { return p.State != intent.Active })
}

// ofPort reports whether k is about a port of the model.
func ofPort(d *intent.Device, k Key) bool {
	return aboutPort(d, k, func(*intent.Port) bool { return true })
}

// aboutPort reports whether k names a port of the model that is as wanted.
func aboutPort(d *intent.Device, k Key, is func(*intent.Port) bool) bool {
	return slices.ContainsFunc(k.Words(), func(w string) bool {
		p := d.Port(w)
		return p != nil && p.Iface == w && is(p)
	})
}

func holds(live Config, object Key) bool {
	for _, s := range live {
		if partOf(s.Key, object) {
			return true
		}
	}
	return false
}
