package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"math/bits"
	"slices"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// Load is traffic for the lab's fabric.
type Load struct {
	Workload observe.Workload `json:"workload"`
	Duration units.Duration   `json:"duration"` // how long it lasts; 0 = as long as it is simulated
	Window   units.Duration   `json:"window"`   // how much of that is simulated; 0 = sim.DefaultDuration, or all of it where that is less
	Warmup   units.Duration   `json:"warmup"`   // simulated before, and not counted; 0 = as package sim has it
	Seed     uint64           `json:"seed"`
}

// Loaded is what a load came to.
type Loaded struct {
	Duration  units.Duration `json:"duration"`   // that the counters of the devices are of
	Window    units.Duration `json:"window"`     // that was simulated for them
	Result    *sim.Result    `json:"result"`     // of the window
	Lossless  []string       `json:"lossless"`   // classes that are lossless on some port
	NotLifted diag.List      `json:"not_lifted"` // what devices hold and is not understood: it was not simulated
	Down      []string       `json:"down"`       // ports that were shut down, or are cabled to one that was, "leaf1:Ethernet8"
}

// Run lets a load pass over the fabric as its devices hold it now, and adds what happened to their counters. The window is
// simulated, and what was counted in it is scaled to the load's duration; a workload that ends by itself within the window is
// counted as it is. The error is a *sim.Refused, or ctx's, or that of a
// device that could not be read; then nothing was counted.
func (l *Lab) Run(ctx context.Context, load Load) (*Loaded, error) {
	o := sim.Options{Duration: cmp.Or(load.Window, load.Workload.Duration), Warmup: load.Warmup}
	if load.Duration > 0 && load.Duration < cmp.Or(o.Duration, sim.DefaultDuration) {
		o.Duration = load.Duration
	}
	net, findings, err := l.Net()
	if err != nil {
		return nil, err
	}
	r, err := l.simulate(ctx, net, load.Workload, o, load.Seed)
	if err != nil {
		return nil, err
	}
	out := &Loaded{Result: r, Lossless: []string{}, NotLifted: slices.Concat(diag.List{}, findings), Down: []string{}}
	for i := range net.Devices {
		for j := range net.Devices[i].Policies {
			for _, priority := range net.Devices[i].Policies[j].Lossless() {
				if class := net.Devices[i].Classes[priority]; class != "" && !slices.Contains(out.Lossless, class) {
					out.Lossless = append(out.Lossless, class)
				}
			}
		}
		for j := range net.Devices[i].Ports {
			if p := &net.Devices[i].Ports[j]; p.State != l.identity.Devices[i].Ports[j].State {
				out.Down = append(out.Down, net.Devices[i].Name+":"+cmp.Or(p.Iface, p.Name))
			}
		}
	}
	out.Window = r.Measured
	if out.Duration = cmp.Or(load.Duration, out.Window); r.End.Why == "done" && !load.Workload.Endless() {
		out.Duration = out.Window // the load is over, and was counted whole
	}
	l.count(r, out.Duration)
	return out, nil
}

// simulate runs a workload on what the devices held, until ctx or the lab ends.
func (l *Lab) simulate(ctx context.Context, net *intent.Net, w observe.Workload, o sim.Options, seed uint64) (*sim.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errClosed) })()
	o.Faults = append(o.Faults, l.troubles(net)...)
	r, err := sim.Run(ctx, net, w, o, seed)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// troubles are the NICs that receive badly, as faults of a simulation.
func (l *Lab) troubles(net *intent.Net) (fs []sim.Fault) {
	for i := range net.Devices {
		h, ok := l.boxes[net.Devices[i].Name].(*host.Host)
		if !ok {
			continue
		}
		for _, t := range h.Troubles() {
			f := sim.Fault{Kind: sim.Slow, Device: net.Devices[i].Name, Port: t.Link, Rate: t.Drain}
			if t.Storm {
				f = sim.Fault{Kind: sim.Storm, Device: f.Device, Port: f.Port}
			}
			fs = append(fs, f)
		}
	}
	return fs
}

// count adds what was counted in a result to the devices, as if it had gone on like that for a duration.
func (l *Lab) count(r *sim.Result, duration units.Duration) {
	o := r.Observation()
	for name, after := range o.After {
		box, values := l.boxes[name], map[observe.Port]uint64{}
		for p, v := range after.Values {
			if d, _ := observe.Describe(p.Name); !d.Gauge {
				v = scale(v-o.Before[name].Values[p], duration, r.Measured)
			}
			values[p] = v
		}
		if box != nil {
			box.AddCounters(values)
		}
	}
}

// scale is v times by/of, rounded; what happened at all stays at least 1.
func scale(v uint64, by, of units.Duration) uint64 {
	if v == 0 || of <= 0 || by == of {
		return v
	}
	hi, lo := bits.Mul64(v, uint64(by))
	lo, carry := bits.Add64(lo, uint64(of)/2, 0)
	hi += carry
	if hi >= uint64(of) {
		return 1<<64 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	return max(q, 1)
}

// loadText is a load as a host of the lab is asked for it: a workload by its text.
func (l *Lab) loadText(ctx context.Context, text string, seed uint64) ([]byte, error) {
	w, err := observe.ParseWorkload(text)
	if err != nil {
		return nil, err
	}
	out, err := l.Run(ctx, Load{Workload: w, Seed: seed})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out.Result)
}
