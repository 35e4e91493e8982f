package rollout

import (
	"context"
	"fmt"
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
)

// Unwritable is the *RefusedError with which Apply refuses a plan that has changes for devices which can be read and
// not written (Caps.ReadOnly): the others would be written, and the fabric would agree only in part. Nil when there are
// none.
func (p *Plan) Unwritable() error {
	var first *DevicePlan
	n := 0
	for i := range p.Devices {
		if d := &p.Devices[i]; len(d.Steps) > 0 && d.Caps.ReadOnly != "" {
			if n++; first == nil {
				first = d
			}
		}
	}
	if first == nil {
		return nil
	}
	names := first.Name
	if n > 1 {
		names += " and " + diag.Plural(n-1, "other", "others")
	}
	return &RefusedError{
		Reason: fmt.Sprintf("nothing was written: the plan has changes for %s, which can only be read: %s", names, first.Caps.ReadOnly),
		Hint:   "do that, or plan the other devices alone with --device", Err: drivers.ErrReadOnly,
	}
}

// Look asks each host of a plan file that is to be written whether it can be, and notes it for Unwritable: that depends
// on the machine on which the file is applied and not on the one on which it was made. Of a host that does not answer,
// Apply says what became of it. An error means that ctx ended.
func (e *Engine) Look(ctx context.Context, p *Plan) error {
	slots := make(chan struct{}, e.parallel())
	var wg sync.WaitGroup
	for i := range p.Devices {
		d := &p.Devices[i]
		if !d.Host || len(d.Steps) == 0 {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			caps, err := e.capsOf(ctx, d.Name)
			if err != nil {
				e.log().Debug("look", "device", d.Name, "error", err)
			}
			d.Caps.ReadOnly = caps.ReadOnly
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (e *Engine) capsOf(ctx context.Context, device string) (drivers.Caps, error) {
	dev, err := e.Open(ctx, device)
	if err != nil {
		return drivers.Caps{}, err
	}
	defer dev.Close()
	_, caps, err := dev.Facts(ctx)
	return caps, err
}
