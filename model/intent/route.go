package intent

import (
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
)

// Routing is what the routing of a fabric allows.
type Routing uint8

const (
	UpDown       Routing = iota // every shortest way that never goes down and up again
	ShortestPath                // every shortest way
	Listed                      // only the ways that the model lists
)

// String is the word used in a model.
func (r Routing) String() string { return model.RoutingNames()[r] }

// Route is a way that packets take: over one link after the other, each from a device to the next one's.
type Route struct {
	Hops []Hop
	End  string        // the device where it ends
	At   *model.Origin `json:"-"` // the line that lists it
}

// Hop is one link of a route: it leaves Device by Port, or by any port that leads to the next device when Port is "".
type Hop struct {
	Device, Port string
	Priority     uint8 // of the packets on the link
}

// Name names the route by the line that lists it, or else by its ends.
func (r *Route) Name() string {
	if pos := r.At.At(); !pos.IsZero() {
		return pos.String()
	}
	if len(r.Hops) == 0 {
		return r.End
	}
	return r.Hops[0].Device + " to " + r.End
}

// With is a Net of the same fabric with other devices.
func (n *Net) With(ds []Device) *Net {
	return &Net{Fabric: n.Fabric, Devices: ds, Routing: n.Routing, Routes: n.Routes}
}

func routing(f *model.Fabric) Routing {
	return Routing(max(slices.Index(model.RoutingNames(), f.Routing.V), 0))
}

func listedRoutes(f *model.Fabric) []Route {
	priority := make(map[string]uint8, len(f.Classes))
	for i := range f.Classes {
		priority[f.Classes[i].Name] = f.Classes[i].Priority.V & 7
	}
	var rs []Route
	for i := range f.Routes {
		m := &f.Routes[i]
		r := Route{At: &model.Origin{Kind: model.FromLine, Pos: m.Pos}}
		for j, stop := range m.Path {
			device, port, _ := strings.Cut(stop.V, ":")
			if j == len(m.Path)-1 {
				r.End = device
				break
			}
			r.Hops = append(r.Hops, Hop{Device: device, Port: port, Priority: priority[m.ClassOn(j).V]})
		}
		rs = append(rs, r)
	}
	return rs
}

// OnlyManagement reports whether nothing but management runs over the port's link, so that no RDMA comes from there.
func (p *Port) OnlyManagement() bool { return p.Carries == model.CarriesManagement }
