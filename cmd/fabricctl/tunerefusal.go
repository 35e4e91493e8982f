package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/tuning"
)

// What a bench cannot apply is the fault of the setting, which is left out, or that of a device or of somebody at work on it, which ends the
// experiment. It is the setting's where a device has said so itself, or where a plan is refused that is not refused without the setting; and
// always only where it is known that the baseline holds.

// mostWhy is how much of a device's sentence is kept.
const mostWhy = 200

// refusesPlan is why a plan of a setting must not be carried out; nil when it may. Nothing was written.
func (b *tuneBench) refusesPlan(ctx context.Context, p *rollout.Plan) error {
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Left != nil && len(d.Held) > 0 { // a part of a setting is another setting
			return &tuning.Lost{Device: d.Name, Err: errors.New(d.Held[0].String())}
		}
	}
	if ports, _ := show.Disruptive(p); ports > 0 && !b.o.Leave.AllowDisruptive {
		return &tuning.Refusal{Device: show.NameList(writtenBy(p)), Why: fmt.Sprintf("it takes %s down, and there is no --allow-flaps", diag.Count(ports, "port"))}
	}
	if why, hint := show.Leave(p, b.o.Leave); why != "" {
		return fail(exitRefused, hint, "%s", why)
	}
	if err := p.Refusal(); err != nil {
		if b.fitStill(ctx, p) {
			return refusedBy(p, err)
		}
		return refusal(err)
	}
	return refusal(p.Unwritable())
}

// writtenBy are the devices that a plan writes.
func writtenBy(p *rollout.Plan) (names []string) {
	for i := range p.Devices {
		if len(p.Devices[i].Steps) > 0 {
			names = append(names, p.Devices[i].Name)
		}
	}
	return names
}

// fitStill reports whether the devices of a plan hold the baseline, and nothing keeps them from being written: then it is the setting that is
// refused.
func (b *tuneBench) fitStill(ctx context.Context, p *rollout.Plan) bool {
	names := make([]string, len(p.Devices))
	for i := range p.Devices {
		names[i] = p.Devices[i].Name
	}
	some, err := part(b.model.net, names)
	if err != nil {
		return false
	}
	base, err := b.plan(ctx, some, b.model.fabric)
	if err != nil || b.unmoved(base) != nil || b.isBaseline(base, "") != nil {
		return false
	}
	for i := range base.Devices {
		if d := &base.Devices[i]; d.Mode == rollout.Write && b.fit(d, base.Lab) != nil {
			return false
		}
	}
	return true
}

// refusedBy names the device of which a plan refuses a setting, and why.
func refusedBy(p *rollout.Plan, err error) *tuning.Refusal {
	for i := range p.Devices {
		d := &p.Devices[i]
		for _, f := range d.Findings {
			if d.Blocked && f.Severity == diag.Error {
				return &tuning.Refusal{Device: "the plan of " + d.Name, Why: briefly(f.Msg)}
			}
		}
	}
	return &tuning.Refusal{Device: "the plan of " + p.Fabric, Why: briefly(strings.TrimPrefix(err.Error(), "nothing was written: "))}
}

// briefly is somebody else's sentence in one line, as far as that is long.
func briefly(s string) string {
	s = diag.OneLine(s)
	if r := []rune(s); len(r) > mostWhy {
		s = string(r[:mostWhy]) + " ..."
	}
	return s
}

// refusedPause is how long it takes until a setting is tried once more that was refused in words which may mean a trouble of the device.
const refusedPause = 5 * time.Second

// onceMore tries a setting again that a device has refused without saying that the setting is at fault, as SONiC says "unknown" to all that its
// updater does not carry out. What is refused twice is refused.
func (b *tuneBench) onceMore(ctx context.Context, net *intent.Net, f *model.Fabric, first error) error {
	b.app.log.Info("a setting is tried once more", "refused", first)
	if err := b.wait(ctx, b.pause); err != nil {
		return err
	}
	err := b.attempt(ctx, net, f)
	if no, ok := errors.AsType[*tuning.Refusal](err); ok && b.vague {
		return &tuning.Refusal{Device: no.Device, Why: no.Why + ", twice"}
	}
	return err
}

// came is what the results of a trial mean: nil when the setting holds, until b.due.
func (b *tuneBench) came(ctx context.Context, results []rollout.Result) error {
	var no *tuning.Refusal
	for _, x := range results {
		said, is := errors.AsType[*drivers.RejectedError](x.Err)
		switch {
		case x.Outcome == rollout.Unknown, x.Outcome == rollout.NeedsHands:
			return &tuning.Lost{Device: x.Device, Err: errors.New(x.Message)}
		case x.Cause == rollout.Interrupted && context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case x.Cause == rollout.FailedCause && is:
			b.vague = said.Vague && (no == nil || b.vague)
			no = &tuning.Refusal{Device: x.Device, Why: briefly(fmt.Sprintf("%s (%q)", said.Sentence, said.Sent))}
		case x.Cause == rollout.NotStarted:
			continue // what came before it says why
		case x.Cause != rollout.None:
			return &tuning.Lost{Device: x.Device, Err: fmt.Errorf("the setting could not be applied: %s", x.Message)}
		case !x.Reverts.IsZero() && (b.due.IsZero() || x.Reverts.Before(b.due)):
			b.due = x.Reverts
		}
	}
	if no == nil {
		return nil
	}
	if err := b.takeBack(ctx); err != nil { // others have taken it
		return err
	}
	return no
}
