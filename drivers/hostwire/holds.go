package hostwire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// Holds is what a host is to leave alone. Fabric, Device and Port name a hold: those of different fabrics that mean the
// same host all count.
type Holds interface {
	// Hold adds a hold, or replaces the one of that name, which is returned.
	Hold(context.Context, journal.Hold) (was *journal.Hold, err error)
	// Release takes the hold of that name away; nil when there is none.
	Release(ctx context.Context, fabric, device, port string) (was *journal.Hold, err error)
	// List is all holds that are in force.
	List(context.Context) ([]journal.Hold, error)
}

// HoldDir is Holds in a directory of the host, as journal keeps them.
type HoldDir struct {
	Path string
	Now  func() time.Time
}

var _ Holds = HoldDir{}

// Hold writes a hold. What has run out in the meantime is taken away.
func (d HoldDir) Hold(ctx context.Context, h journal.Hold) (*journal.Hold, error) {
	switch {
	case h.Fabric == "" || h.Device == "":
		return nil, errors.New("a hold without the names of a fabric and a device")
	case !h.Active(d.Now()):
		return nil, fmt.Errorf("the hold ran out at %s, by the clock of the host", h.Until.UTC().Format(time.RFC3339))
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o755); err != nil {
		return nil, fmt.Errorf("holds: %w", err)
	}
	fabric := h.Fabric
	h.Fabric = ""
	was, err := journal.SetHold(ctx, d.Path, fabric, h, journal.Options{Now: d.Now})
	if err != nil {
		return nil, err
	}
	return was, d.prune(ctx)
}

// Release takes a hold away.
func (d HoldDir) Release(ctx context.Context, fabric, device, port string) (*journal.Hold, error) {
	return journal.ReleaseHold(ctx, d.Path, fabric, device, port, journal.Options{Now: d.Now})
}

// List is what is in force.
func (d HoldDir) List(context.Context) ([]journal.Hold, error) {
	all, err := journal.AllHolds(d.Path)
	var hs []journal.Hold
	for _, f := range all {
		for _, h := range f.Holds {
			if h.Fabric = f.Fabric; h.Active(d.Now()) {
				hs = append(hs, h)
			}
		}
	}
	return hs, err
}

// prune takes away what has run out.
func (d HoldDir) prune(ctx context.Context) error {
	all, err := journal.AllHolds(d.Path)
	for _, f := range all {
		for _, h := range f.Holds {
			if !h.Active(d.Now()) {
				_, e := d.Release(ctx, f.Fabric, h.Device, h.Port)
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// heldBy is the error of a commit of cs on a host with these holds; nil when none of them is in its way. A hold on a port
// whose interface is not known is on all of the host.
func heldBy(hs []journal.Hold, cs []render.Change) error {
	for _, h := range hs {
		touches := func(c render.Change) bool { return slices.Contains(c.Key.Words(), h.Iface) }
		if h.Port == "" || h.Iface == "" || slices.ContainsFunc(cs, touches) {
			return fmt.Errorf("%w: on the host, %s", drivers.ErrHeld, h)
		}
	}
	return nil
}
