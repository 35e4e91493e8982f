package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneHold is the fabric of an experiment that writes no device: its lease, so that nobody applies anything between two runs. Close gives
// it free.
type tuneHold struct {
	lease *journal.Held
	keep  func() // ends the renewing
}

// holdFabric takes the fabric's lease for experiment id, and restores what a dead experiment has left on its devices.
func (a *app) holdFabric(ctx context.Context, m loaded, id string) (_ *tuneHold, err error) {
	e, err := a.engine(a.dialler(m.fabric, m.net).open)
	if err != nil {
		return nil, err
	}
	e.Progress = nil
	if e.Lease, err = e.Acquire(ctx, m.net.Fabric, id); err != nil {
		return nil, refusal(err)
	}
	if err := a.restoreDead(ctx, e, m.net.Fabric); err != nil {
		return nil, errors.Join(err, e.Lease.Release(context.WithoutCancel(ctx)))
	}
	return &tuneHold{e.Lease, keepLease(e.Lease, a.log)}, nil
}

// Close gives the fabric free.
func (h *tuneHold) Close(ctx context.Context) error {
	h.keep()
	return h.lease.Release(context.WithoutCancel(ctx))
}

// keepLease renews a lease until end is called: a run may take longer than the lease lasts.
func keepLease(lease *journal.Held, log *slog.Logger) (end func()) {
	return lease.Keep(context.Background(), func(err error) {
		log.Warn("the lease could not be renewed", "error", err) // the next write finds out and is not made, the next run and is not believed
	})
}

// heldRunner makes runs for as long as the fabric is held: who has lost its lease does not know what the devices hold any more.
type heldRunner struct {
	tuning.Runner
	hold *tuneHold
}

// Run makes a run, and wants the lease to be ours before it begins, and still when it has ended.
func (r heldRunner) Run(ctx context.Context, t tuning.Trial) (observe.Observation, error) {
	if err := stillHeld(ctx, r.hold.lease); err != nil {
		return observe.Observation{}, err
	}
	o, err := r.Runner.Run(ctx, t)
	return o, cmp.Or(stillHeld(ctx, r.hold.lease), err)
}

// stillHeld is an error when a lease is not ours any more.
func stillHeld(ctx context.Context, lease *journal.Held) error {
	if lost := lease.Check(context.WithoutCancel(ctx)); lost != nil {
		return &tuning.Lost{Device: lease.Lease().Name, Err: lost}
	}
	return nil
}

// heldKnobs sets external variables for as long as the fabric is held. To what they were they are set in any case: nobody else would.
type heldKnobs struct {
	tuning.Knobs
	lease *journal.Held
	base  map[string]float64
}

// heldKnobs are the knobs of an experiment, under a lease.
func (x *experiment) heldKnobs(lease *journal.Held) tuning.Knobs {
	if x.lab.Knobs == nil {
		return nil
	}
	k := heldKnobs{x.lab.Knobs, lease, map[string]float64{}}
	for i := range x.exp.Space.Vars {
		k.base[x.exp.Space.Vars[i].Name] = x.exp.Space.Base[i]
	}
	return k
}

// Set wants the lease to be ours, and sets.
func (k heldKnobs) Set(ctx context.Context, v *tuning.Variable, value float64) error {
	if was, known := k.base[v.Name]; !known || was != value {
		if err := stillHeld(ctx, k.lease); err != nil {
			return err
		}
	}
	return k.Knobs.Set(ctx, v, value)
}

// reached are the devices of a model that are in service and can be reached.
func reached(m loaded) (names []string) {
	for i := range m.net.Devices {
		d := &m.net.Devices[i]
		if e := m.fabric.Endpoints[d.Name]; d.State == intent.Active && e != nil && e.Address.Set {
			names = append(names, d.Name)
		}
	}
	return names
}

// firmware notes in an experiment what the devices that take part say they run, as far as they answer and the bench has not asked them already, and
// the fingerprint of all that.
func (a *app) firmware(ctx context.Context, x *experiment, taking []string) {
	c := &x.exp.Context
	all := map[string]string{}
	maps.Copy(all, c.Firmware)
	d := a.dialler(x.model.fabric, x.model.net)
	slots := make(chan struct{}, max(a.parallel, 1))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range taking {
		if c.Firmware[name] != "" {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			says, err := d.says(ctx, name)
			if err != nil { // whoever needs it says so
				a.log.Debug("what it runs is not known", "device", name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all[name] = strings.TrimSpace(x.model.net.Device(name).Platform + " " + says)
		})
	}
	wg.Wait()
	c.Firmware, c.Fingerprint = all, fingerprint(all, c.Tool)
}

// says asks a device for the version of what it runs.
func (d *dialler) says(ctx context.Context, name string) (version string, err error) {
	dev, err := d.open(ctx, name)
	if err != nil {
		return "", err
	}
	facts, _, err := dev.Facts(ctx)
	return facts.Version, errors.Join(err, dev.Close())
}

// fingerprint is of what devices say they run, and of the tool that makes the runs.
func fingerprint(firmware map[string]string, tool string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(firmware)) {
		fmt.Fprintf(h, "%q %q\n", name, firmware[name])
	}
	if tool != "" {
		fmt.Fprintf(h, "%q\n", tool)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// sameFirmware refuses to go on with an experiment on devices that run something else now, or with another tool.
func sameFirmware(was, is *tuning.Context) error {
	if was.Fingerprint == is.Fingerprint {
		return nil
	}
	all := map[string]bool{}
	for name := range was.Firmware {
		all[name] = true
	}
	for name := range is.Firmware {
		all[name] = true
	}
	var differ []string
	say := func(name, was, is string) {
		if was != is {
			differ = append(differ, fmt.Sprintf("%s ran %s, and now %s", name, cmp.Or(was, "what it did not say"), cmp.Or(is, "does not say")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		say(name, was.Firmware[name], is.Firmware[name])
	}
	say("tests", was.Tool, is.Tool)
	return fail(exitRefused, "begin a new one with tune run", "runs on other firmware are not comparable: %s", strings.Join(differ, ", "))
}
