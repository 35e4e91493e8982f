package render

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// target is what the generator of devices needs to know about a dialect.
type target struct {
	dialect *Dialect
	model   string                // platform, "sonic/sn5600"
	iface   func(port int) string // the device's name of the n-th port
	facts   Facts
	areas   intent.Areas                                   // what a policy speaks about
	adjust  func(*rapid.T, *intent.Device, *intent.Policy) // puts a policy in the range of the target; nil = as drawn
	hidden  func(k Key) bool                               // settings whose absence and presence mean the same; nil = none
	bare    func(intent.Device) Config                     // a live configuration without anything of ours; nil = empty
}

// drawDevice draws a valid device of a target: one policy per site, everything owned.
func drawDevice(t *rapid.T, x target) intent.Device {
	d := intent.Device{
		Name: "leaf1", Role: "leaf", Platform: x.model,
		Fabric: rapid.StringMatching(`[a-z][a-z0-9]{0,3}([-._]?[a-z0-9]{1,12}){0,2}`).Draw(t, "fabric"),
	}
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	d.Pools.Static = rapid.IntRange(0, 3).Draw(t, "pools") == 0
	drawClasses(t, &d)
	sites := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"fabric", "leaf.storage", "leaf", "border", "leaf1.downlink-1-of-a-long-name"}),
		1, 3, rapid.ID[string]).Draw(t, "sites")
	poll := rapid.Int32Range(100, 1000).Draw(t, "poll")
	d.Origins = intent.OriginTable{}
	var policies []intent.Policy
	for i, site := range sites {
		policies = append(policies, drawPolicy(t, x, &d, poll))
		d.Origins[site] = drawOrigins(i)
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "ports") {
		s := rapid.IntRange(0, len(sites)-1).Draw(t, "site")
		d.Ports = append(d.Ports, intent.Port{
			Name: fmt.Sprintf("port-%d", i), Iface: x.iface(i), Site: sites[s], Manage: d.Manage,
			Policy: d.Intern(policies[s]),
			Speed:  units.BitRate(rapid.SampledFrom([]int64{0, 100, 400, 800}).Draw(t, "speed")) * units.Gbps,
			Cable:  units.Length(rapid.SampledFrom([]int64{0, 5, 40, 300}).Draw(t, "port's cable")) * units.Metre,
		})
	}
	return d
}

// unscheduled is the class whose queue has no scheduler of its own, on every port alike.
const unscheduled = "checkpoint-and-restart"

// drawClasses names two to five priorities, 0 always among them.
func drawClasses(t *rapid.T, d *intent.Device) {
	names := []string{"default", "cnp", "training", "storage", unscheduled}
	n := rapid.IntRange(2, len(names)).Draw(t, "classes")
	prios := rapid.Permutation([]int{1, 2, 3, 4, 5, 6, 7}).Draw(t, "priorities")
	d.Classes[0] = names[0]
	for i := 1; i < n; i++ {
		d.Classes[prios[i-1]] = names[i]
	}
}

func drawPolicy(t *rapid.T, x target, d *intent.Device, poll int32) intent.Policy {
	p := intent.Policy{
		Known: x.areas, Trust: intent.TrustDSCP,
		MTU: units.Bytes(rapid.IntRange(1500, 9216).Draw(t, "mtu")),
	}
	var named []uint8
	for i, class := range d.Classes {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
		if class == "" {
			continue
		}
		named = append(named, uint8(i))
		q := &p.Queues[i]
		if q.Used = class != unscheduled; !q.Used {
		} else if q.Strict = rapid.Bool().Draw(t, "strict"); !q.Strict {
			q.Weight = rapid.Uint8Range(1, 100).Draw(t, "weight")
		}
		if i > 0 {
			q.Lossless = rapid.Bool().Draw(t, "lossless")
		}
		if q.Lossless {
			p.TCPG[i] = uint8(i)
		}
		if rapid.Bool().Draw(t, "ecn") {
			kmin := rapid.Int64Range(10_000, 5_000_000).Draw(t, "kmin")
			q.ECN = intent.ECN{
				On: true, Kmin: units.Bytes(kmin), Kmax: units.Bytes(kmin + rapid.Int64Range(0, 5_000_000).Draw(t, "ramp")),
				Pmax: units.Percent(rapid.Int32Range(1, 100).Draw(t, "pmax") * 10_000),
			}
		}
	}
	for i := range p.DSCP {
		p.DSCP[i] = rapid.SampledFrom(named).Draw(t, "dscp")
	}
	if rapid.Bool().Draw(t, "watchdog") {
		p.Watchdog = intent.Watchdog{
			On: true, Poll: poll, Detect: rapid.Int32Range(poll, 5000).Draw(t, "detect"),
			Restore: rapid.Int32Range(poll, 60000).Draw(t, "restore"),
			Action:  rapid.SampledFrom([]intent.Action{intent.ActionDrop, intent.ActionForward, intent.ActionAlert}).Draw(t, "action"),
		}
	}
	if x.adjust != nil {
		x.adjust(t, d, &p)
	}
	return p.Only(x.areas)
}

// drawOrigins gives each value a line of its own, so that a test sees whether it travels.
func drawOrigins(site int) map[intent.Field]*model.Origin {
	m := map[intent.Field]*model.Origin{}
	for i, f := range []intent.Field{"mtu", "trust", "ecn.3.kmin", "ecn.3.kmax", "ecn.3.pmax", "weight.3", "watchdog.detect"} {
		m[f] = &model.Origin{Kind: model.FromLine, Pos: diag.Pos{File: "fabric.yaml", Line: 100*site + i + 1, Col: 3}}
	}
	return m
}

// remodel draws another device with the same ports and names: the next version of the model.
func remodel(t *rapid.T, x target, d intent.Device) intent.Device {
	poll := rapid.Int32Range(100, 1000).Draw(t, "new poll")
	next := d
	next.Ports, next.Policies = slices.Clone(d.Ports), nil
	bySite := map[string]intent.Policy{}
	for i := range next.Ports {
		p := &next.Ports[i]
		if _, ok := bySite[p.Site]; !ok {
			bySite[p.Site] = drawPolicy(t, x, &next, poll)
		}
		p.Policy = next.Intern(bySite[p.Site])
	}
	return next
}

// behaviour is the policies of d by interface, as Lift gives them.
func behaviour(d *intent.Device) map[string]intent.Policy {
	m := map[string]intent.Policy{}
	for i := range d.Ports {
		m[d.Ports[i].Iface] = *d.PolicyOf(&d.Ports[i])
	}
	return m
}
