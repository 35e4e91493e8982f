package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// Setup is a run that is ready: the engine's configuration, and what its indices stand for.
type Setup struct {
	Config *engine.Config

	net      *intent.Net
	workload observe.Workload
	options  Options
	seed     uint64
	warmup   units.Duration
	measured units.Duration // as asked for
	switches []*intent.Device
	ports    []port
	nics     []nic
	flows    []flow
	flowsOf  [][]int        // flows that go from or to a NIC
	marks    []uint8        // code point of each mark
	at       map[string]int // devices of the Net by name
	classes  classes
	ways     *ways
	assumed  []string
	notes    []string // what does not work whatever the traffic
	without  places   // NICs that send or receive without congestion control
	found    diag.List
}

// port is what stands behind a port of the engine.
type port struct {
	dev  *intent.Device
	port *intent.Port
	pol  intent.Policy // as the hardware has it, and whole: what is not known is assumed
}

// nic is what stands behind a NIC of the engine.
type nic struct {
	port int // of the engine
	leaf int // switch that it is linked to
}

// place names a port of the engine.
func (s *Setup) place(p, queue int) Place {
	x := &s.ports[p]
	return Place{Device: x.dev.Name, Port: cmp.Or(x.port.Iface, x.port.Name), Queue: queue, Host: x.dev.Host, Class: s.classes.ofQueue(&x.pol, queue)}
}

// builder makes a Setup.
type builder struct {
	Setup
	switchOf map[int]int    // switch of a device
	portOf   map[[2]int]int // port of the engine, by places of device and port in the Net
	nicsOf   map[int][]int  // NICs of a device
	donors   donors         // who knows what others do not
	assume   assumptions    //
	markOf   map[markKey]int8
	down     map[[2]string]Fault // links that are broken, by both ends
	everyone []host              // that has an active link
	reached  map[[2]int]bool     // NICs that have a way from one to the other, or not
}

// Build makes a run of a fabric and a workload. The error is a *Refused.
func Build(n *intent.Net, w observe.Workload, o Options, seed uint64) (*Setup, error) {
	b := &builder{
		Setup:    Setup{Config: &engine.Config{Seed: seed, Compat: o.Compat}, net: n, workload: w, options: o, seed: seed, at: make(map[string]int, len(n.Devices))},
		switchOf: map[int]int{}, portOf: map[[2]int]int{}, nicsOf: map[int][]int{},
		markOf: map[markKey]int8{}, down: map[[2]string]Fault{},
	}
	for i := range n.Devices {
		b.at[n.Devices[i].Name] = i
	}
	for _, step := range []func(){
		b.checkWorkload, b.breakLinks, b.links, b.policies, b.portsOf, b.switchesOf, b.nicsBuilt, b.breakNICs, b.routes, b.span, b.traffic, b.watch, b.validate,
	} {
		if step(); b.found.HasErrors() {
			return nil, &Refused{b.found.Sort()}
		}
	}
	b.flowsOf = make([][]int, len(b.nics))
	for i := range b.flows {
		b.flowsOf[b.flows[i].from] = append(b.flowsOf[b.flows[i].from], i)
		b.flowsOf[b.flows[i].to] = append(b.flowsOf[b.flows[i].to], i)
	}
	if slices.ContainsFunc(b.flows, func(f flow) bool { return f.latency }) {
		b.assume.say("no time in NICs, software and pipelines of switches: latencies are those of wires and queues alone, and real ones are longer", "")
	}
	b.assumed = b.assume.sentences()
	b.found = b.found.Sort()
	return &b.Setup, nil
}

// validate asks the engine whether it takes what was made of the fabric: a device may hold numbers that no model allows.
func (b *builder) validate() {
	err := engine.Validate(b.Config)
	if err == nil {
		return
	}
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	for _, err := range all {
		f := diag.Finding{Rule: "sim-config", Severity: diag.Error, Msg: err.Error(), Hint: "look at what the device holds there"}
		var e *engine.ConfigError
		if errors.As(err, &e) {
			f.At = b.placeOf(e)
			f.Msg = fmt.Sprintf("%s cannot be simulated: %v", f.At, e.Err)
		}
		b.found.Add(f)
	}
}

// placeOf names what the engine finds fault with.
func (b *builder) placeOf(e *engine.ConfigError) string {
	switch e.What {
	case "switch":
		return b.switches[e.Index].Name
	case "port":
		return b.place(e.Index, 0).String()
	case "NIC":
		return b.place(b.nics[e.Index].port, 0).String()
	case "flow":
		f := &b.flows[e.Index]
		return b.workload.Label(f.part) + " from " + b.name(b.nics[f.from].port) + " to " + b.name(b.nics[f.to].port)
	}
	return "the run"
}

// checkWorkload refuses a workload that makes no sense anywhere.
func (b *builder) checkWorkload() {
	if err := b.workload.Check(); err != nil {
		f := diag.Finding{Rule: "sim-workload", Severity: diag.Error, Msg: err.Error()}
		if e, ok := err.(*observe.Error); ok {
			f.Hint = e.Hint
		}
		b.found.Add(f)
	}
}

// breakLinks notes the links that a fault takes away, so that they are never built.
func (b *builder) breakLinks() {
	for _, f := range b.options.Faults {
		i, known := b.at[f.Device]
		if !known {
			b.found.Errorf("sim-fault", diag.Pos{}, b.hintNames(f.Device, b.deviceNames(nil)), "fault %s: there is no device %s", f, f.Device)
			continue
		}
		if f.Port != "" && b.net.Devices[i].Port(f.Port) == nil {
			var names []string
			for _, p := range b.net.Devices[i].Ports {
				names = append(names, cmp.Or(p.Iface, p.Name))
			}
			b.found.Errorf("sim-fault", diag.Pos{}, b.hintNames(f.Device, names), "fault %s: %s has no port %s", f, f.Device, f.Port)
			continue
		}
		if f.Kind == Down {
			p := b.net.Devices[i].Port(f.Port)
			b.down[[2]string{f.Device, p.Name}] = f
			b.down[[2]string{p.Peer, p.PeerPort}] = f
		}
	}
}

// deviceNames are the names of the devices for which is holds, or of all.
func (b *builder) deviceNames(is func(*intent.Device) bool) []string {
	var names []string
	for i := range b.net.Devices {
		if d := &b.net.Devices[i]; is == nil || is(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// hintNames is a hint at names that there are.
func (b *builder) hintNames(wrong string, names []string) string {
	const few = 6
	switch {
	case len(names) == 0:
		return ""
	case len(names) > few:
		return fmt.Sprintf("use one of %d, such as %s and %s", len(names), names[0], names[len(names)-1])
	}
	return "use one of " + strings.Join(names, ", ")
}

func active(d *intent.Device, p *intent.Port) bool {
	return d.State == intent.Active && p.State == intent.Active && p.Role != "unused" && (!d.Host || !p.OnlyManagement())
}

// links makes the ports of the engine: two for each link between active ports that name each other, in the order of the Net.
func (b *builder) links() {
	cfg := b.Config
	for i := range b.net.Devices {
		d := &b.net.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			k, l, ok := b.otherEnd(d, p)
			if !ok {
				continue
			}
			at := len(b.ports)
			b.portOf[[2]int{i, j}] = at
			b.ports = append(b.ports, port{dev: d, port: p})
			cfg.Ports = append(cfg.Ports, engine.Port{Switch: engine.None, Peer: engine.None})
			if !d.Host {
				if _, known := b.switchOf[i]; !known {
					b.switchOf[i] = len(b.switches)
					b.switches = append(b.switches, d)
				}
				cfg.Ports[at].Switch = b.switchOf[i]
			} else {
				b.nicsOf[i] = append(b.nicsOf[i], len(b.nics))
				b.nics = append(b.nics, nic{port: at})
			}
			if other, built := b.portOf[[2]int{k, l}]; built {
				cfg.Ports[at].Peer, cfg.Ports[other].Peer = other, at
				b.link(at, other)
			}
		}
	}
	for i := range b.nics {
		b.nics[i].leaf = cfg.Ports[cfg.Ports[b.nics[i].port].Peer].Switch
	}
	if len(b.nics) < 2 {
		b.found.Errorf("sim-no-hosts", diag.Pos{}, "add hosts to the model, or set those that there are to state: active",
			"the fabric has %s with an active link to a switch; traffic needs 2", diag.Count(len(b.nics), "NIC port"))
	}
}

// otherEnd is the other end of a port's link, by places in the Net, if the link carries anything. Of two hosts that are
// linked to each other, none is in a fabric.
func (b *builder) otherEnd(d *intent.Device, p *intent.Port) (device, at int, ok bool) {
	k, known := b.at[p.Peer]
	if !known || !active(d, p) {
		return 0, 0, false
	}
	if _, down := b.down[[2]string{d.Name, p.Name}]; down {
		return 0, 0, false
	}
	o := &b.net.Devices[k]
	if o.Host && d.Host || o == d {
		return 0, 0, false
	}
	at = portNamed(o, p.PeerPort)
	if at < 0 || o.Ports[at].Peer != d.Name || o.Ports[at].PeerPort != p.Name || !active(o, &o.Ports[at]) {
		return 0, 0, false
	}
	return k, at, true
}

func portNamed(d *intent.Device, name string) int {
	for i := range d.Ports { // a Port is large: not by value
		if d.Ports[i].Name == name {
			return i
		}
	}
	return -1
}

// Propagation in a cable, and how long a cable is taken to be that nobody gave a length for.
const (
	perMetre     = 5 * engine.Nanosecond
	defaultCable = 10 * units.Metre
)

// slowestLink is what the engine takes.
const slowestLink = units.Gbps

// link gives both ends of a link its speed and delay.
func (b *builder) link(x, y int) {
	p, q := b.ports[x].port, b.ports[y].port
	speed := p.Speed
	if speed == 0 || q.Speed > 0 && q.Speed < speed {
		speed = q.Speed
	}
	if p.Speed > 0 && q.Speed > 0 && p.Speed != q.Speed {
		b.found.Warningf("sim-speed", diag.Pos{}, "give both ends the same speed", "%s has %s and %s has %s: simulated with %s", b.name(x), p.Speed, b.name(y), q.Speed, speed)
	}
	if speed <= 0 {
		b.found.Errorf("sim-speed", diag.Pos{}, "give the link a speed", "the link from %s to %s has no speed", b.name(x), b.name(y))
		return
	}
	if speed < slowestLink {
		b.found.Errorf("sim-speed", diag.Pos{}, fmt.Sprintf("give the link %s or more, or leave it out", slowestLink), "the link from %s to %s has %s, and is too slow to be simulated", b.name(x), b.name(y), speed)
		return
	}
	cable := max(p.Cable, q.Cable)
	if cable == 0 {
		cable = defaultCable
		b.assume.say(fmt.Sprintf("cables of %s where no length is given", defaultCable), b.name(x))
	}
	delay := engine.Time(int64(cable) * int64(perMetre) / int64(units.Metre))
	for _, i := range []int{x, y} {
		c := &b.Config.Ports[i]
		c.Rate, c.Delay = int64(speed), delay
	}
}

// Default ends of runs.
const (
	endless = 100 * engine.Second // no run is longer
	most    = 16                  // queues in the rows of a series, when nobody chose
)

func toTime(d units.Duration) engine.Time { return engine.Time(d) * engine.Nanosecond }

func toDuration(t engine.Time) units.Duration {
	return units.Duration((t + engine.Nanosecond/2) / engine.Nanosecond)
}
