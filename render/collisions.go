package render

import (
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Collisions are shared objects that carry our name, that the changes touch, and that somebody else's configuration
// uses: another tool, or another model. One sentence each, sorted.
func Collisions(dialect *Dialect, d *intent.Device, own func(Key) bool, live Config, cs []Change) []string {
	users := map[Key]Key{} // object of ours to a stranger that uses it
	for _, s := range live {
		for _, r := range dialect.Refs(s.Key, s.Value) { // few settings point at anything
			if _, ok := users[r]; !ok && own(r) && !own(s.Key) && !modelled(d, s.Key) {
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
	for _, w := range k.Words() {
		if p := d.Port(w); p != nil && p.Iface == w && p.State != intent.Active {
			return true
		}
	}
	return false
}

func holds(live Config, object Key) bool {
	for _, s := range live {
		if partOf(s.Key, object) {
			return true
		}
	}
	return false
}
