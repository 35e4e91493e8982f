package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

// labRunner makes runs on an emulated fabric: one of its hosts is asked over SSH, and what all devices hold then is simulated. It is
// used by one goroutine.
type labRunner struct {
	dialler *dialler
	host    string // that is asked
	class   uint8  // priority that is tuned
	sight   tuning.Sight
	conn    *ssh.Client // nil until the first run, and after one that failed
}

// newLabRunner makes runs of w on the fabric of m, all of whose devices have to be emulated. class is what is tuned. Close ends it.
func (a *app) newLabRunner(m loaded, w observe.Workload, class string) (*labRunner, error) {
	r := &labRunner{dialler: a.dialler(m.fabric, m.net), sight: tuning.SightOf(m.net)}
	for i := range m.net.Devices {
		d := &m.net.Devices[i]
		if d.State != intent.Planned && d.State != intent.Absent && !m.emulated(d.Name) {
			return nil, fail(exitRefused, "fabricctl lab up starts one, and writes the inventory to give after the model; real hosts are measured with --runner perftest",
				"--runner lab is for emulated fabrics, and %s is not an emulated device", d.Name)
		}
		if d.Host && d.State == intent.Active && r.host == "" {
			r.host = d.Name
		}
		for p, c := range d.Classes {
			if c == class {
				r.class = uint8(p)
			}
		}
	}
	if r.host == "" {
		return nil, fail(exitError, "", "--runner lab asks an emulated host, and the model has none that is active")
	}
	if _, err := observe.ParseWorkload(w.String()); err != nil {
		return nil, fail(exitUsage, "give it as text, as sim takes it", "an emulated host takes a workload as text, and this one has none: %w", err)
	}
	return r, nil
}

// Run asks for one run.
func (r *labRunner) Run(ctx context.Context, t tuning.Trial) (observe.Observation, error) {
	out, err := r.ask(ctx, fmt.Sprintf("fabricctl-lab-load %s %d observation", quote(t.Workload.String()), t.Seed))
	switch {
	case err != nil:
		return observe.Observation{}, &tuning.Lost{Device: r.host, Err: err}
	case out.Exit != 0:
		said := diag.OneLine(strings.TrimSpace(string(out.Stderr)))
		return observe.Observation{}, &tuning.Rejected{Code: "failed", Why: fmt.Sprintf("%s ended with exit code %d: %s", r.host, out.Exit, said)}
	}
	o, err := lab.DecodeObservation(out.Stdout)
	if err != nil {
		return o, fmt.Errorf("%s: %w", r.host, err)
	}
	o.Workload = t.Workload
	if class, share := r.astray(&o); share > 0 {
		return observe.Observation{}, &tuning.Rejected{
			Code: "wrong-class", Why: fmt.Sprintf("%.0f%% of the bytes went with priority %d, and priority %d is tuned", 100*share, class, r.class),
		}
	}
	return o, nil
}

// ask has the host run a command. A connection that does not last is made anew, once: a run leaves nothing behind.
func (r *labRunner) ask(ctx context.Context, command string) (out ssh.Output, err error) {
	for range 2 {
		fresh := r.conn == nil
		if fresh {
			if r.conn, err = r.dial(ctx); err != nil {
				r.conn = nil
				return out, err
			}
		}
		out, err = r.conn.Run(ctx, command, nil)
		if err == nil {
			return out, nil
		}
		_ = r.Close() // it failed, and says nothing new
		if fresh || ctx.Err() != nil {
			break
		}
	}
	return out, err
}

func (r *labRunner) dial(ctx context.Context) (*ssh.Client, error) {
	c, err := r.dialler.ssh(ctx, r.dialler.fabric.Endpoints[r.host])
	if err != nil {
		return nil, err
	}
	return ssh.Dial(ctx, c)
}

// Close ends the connection.
func (r *labRunner) Close() error {
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn = nil
	return err
}

// astray is the priority that carried most of what switches sent, where that is not the one that is tuned.
func (r *labRunner) astray(o *observe.Observation) (priority int, share float64) {
	var sent [8]uint64
	var all uint64
	for device, after := range o.After {
		if r.sight.Hosts[device] {
			continue
		}
		for p, v := range after.Values {
			if base, priority := p.Name.Split(); base == observe.TxBytes && priority >= 0 && priority < len(sent) {
				n := v - min(v, o.Before[device].Values[p])
				sent[priority] += n
				all += n
			}
		}
	}
	for p, n := range sent {
		if p != int(r.class) && 2*n > all {
			return p, float64(n) / float64(all)
		}
	}
	return 0, 0
}
