package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// RoutingNames are the words of a model for what routing allows.
func RoutingNames() []string { return []string{"up-down", "shortest-path", "listed"} }

// Route is one way that packets take, as the model lists it.
type Route struct {
	Pos   diag.Pos
	Path  []Value[string] // device or device:port, in order
	Class []Value[string] // one for all links, or one for each
}

// ClassOn is the name of the class on the i-th link of the route, from 0.
func (r *Route) ClassOn(i int) Value[string] {
	if len(r.Class) == 0 {
		return Value[string]{}
	}
	return r.Class[min(i, len(r.Class)-1)]
}

// Limits on routes, far above what anybody lists by hand.
const (
	maxRoutes = 10_000
	maxStops  = 64 // of one route
)

func decodeRoutes(n *node) []Route {
	var rs []Route
	for _, e := range n.list() {
		if len(rs) == maxRoutes {
			break
		}
		r := Route{Pos: e.pos()}
		for _, s := range e.get("path").list() {
			r.Path = append(r.Path, text(s))
		}
		if c := e.get("class"); c != nil && c.shape == listNode {
			for _, s := range c.list() {
				r.Class = append(r.Class, text(s))
			}
		} else if c != nil {
			r.Class = []Value[string]{text(c)}
		}
		rs = append(rs, r)
	}
	return rs
}

// routes checks that what the model lists can be walked, in classes that there are.
func (v *validator) routes() {
	top := v.f.docs.fabric.get("topology")
	switch n := top.get("routes"); {
	case n != nil && len(n.items) > maxRoutes:
		v.found.Errorf("limits", n.items[maxRoutes].pos(), "list what differs from the routes that follow from the links", "%d routes; at most %d are read", len(n.items), maxRoutes)
	case v.f.Routing.V == "listed" && len(v.f.Routes) == 0 && !top.has("routes"):
		v.found.Errorf("missing", v.f.Routing.Pos(), "list them under topology.routes, or remove routing", "routing is listed, but no routes are")
	}
	if len(v.f.Routes) == 0 || len(v.f.Devices) == 0 {
		return
	}
	at := make(map[string]*Device, len(v.f.Devices))
	names := make([]string, len(v.f.Devices))
	for i := range v.f.Devices {
		at[v.f.Devices[i].Name] = &v.f.Devices[i]
		names[i] = v.f.Devices[i].Name
	}
	for i := range v.f.Routes {
		r := &v.f.Routes[i]
		v.routeClasses(r)
		switch {
		case len(r.Path) > maxStops:
			v.found.Errorf("limits", r.Pos, "", "a route over %d devices; at most %d are read", len(r.Path), maxStops)
		case len(r.Path) < 2:
			v.found.Errorf("value", r.Pos, "write path: [host1, leaf1, host2]", "a route needs two devices or more")
		default:
			v.walk(r, at, names)
		}
	}
}

func (v *validator) routeClasses(r *Route) {
	if n := len(r.Class); n > 1 && n != len(r.Path)-1 {
		v.found.Errorf("value", r.Class[0].Pos(), "give one class, or one for each link", "%d classes for a route of %d links", n, max(len(r.Path)-1, 0))
	}
	for _, name := range r.Class {
		c := v.f.class(name.V)
		switch {
		case c == nil && !v.doubtful():
			v.found.Errorf("unknown-name", name.Pos(), didYouMean(name.V, v.classNames()), "routes: there is no class %s", clip(name.V))
		case c != nil && !c.Lossless.V && !v.doubtful():
			v.found.Errorf("value", name.Pos(), "name a lossless class, or remove the route",
				"routes: class %s is not lossless: nothing is held back for it, so that its ways change nothing", c.Name)
		}
	}
}

// walk follows the links of a route.
func (v *validator) walk(r *Route, at map[string]*Device, names []string) {
	for i, stop := range r.Path {
		name, port, _ := strings.Cut(stop.V, ":")
		d := at[name]
		switch {
		case d == nil:
			v.found.Errorf("unknown-name", stop.Pos(), didYouMean(name, names), "routes: the topology has no device %s", clip(name))
			return
		case d.Host && i > 0 && i < len(r.Path)-1:
			v.found.Errorf("topology", stop.Pos(), "end the route there, and begin another", "a route goes on through %s, but hosts forward nothing", name)
			return
		case i == len(r.Path)-1:
			if port != "" {
				v.found.Errorf("value", stop.Pos(), "write "+name+"; a port is the one towards the next device", "a route ends at %s: no link is taken from there", stop.V)
			}
			return
		}
		next, _, _ := strings.Cut(r.Path[i+1].V, ":")
		if at[next] == nil {
			continue // said at the next step
		}
		var ways, peers []string
		for j := range d.Ports {
			if p := &d.Ports[j]; p.Peer == next {
				ways = append(ways, p.Name)
			} else if p.Peer != "" && (len(peers) == 0 || peers[len(peers)-1] != p.Peer) {
				peers = append(peers, p.Peer)
			}
		}
		switch {
		case len(ways) == 0:
			slices.SortFunc(peers, CompareNames)
			v.found.Errorf("topology", cmp.Or(r.Path[i+1].Pos(), r.Pos), neighbours(name, slices.Compact(peers)), "a route goes from %s to %s, which no link joins", name, next)
		case port != "" && !slices.Contains(ways, port):
			slices.SortFunc(ways, comparePorts)
			v.found.Errorf("topology", stop.Pos(), fmt.Sprintf("write %s:%s, or %s alone for any link", name, ways[0], name), "port %s does not lead to %s", stop.V, next)
		}
	}
}

// neighbours is a hint that says where a device leads.
func neighbours(name string, peers []string) string {
	const most = 6
	switch n := len(peers); {
	case n == 0:
		return name + " has no link at all"
	case n > most:
		return fmt.Sprintf("%s is linked to %s and %d more", name, strings.Join(peers[:most], ", "), n-most)
	}
	return fmt.Sprintf("%s is linked to %s", name, strings.Join(peers, ", "))
}
