package drivers

import (
	"context"
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

// View is a device that can only be looked at, whatever is behind it: there is no Commit, Confirm, Abort or Save to
// call. Companions that only read are asked through it; where the device has none, their error is
// errors.ErrUnsupported.
type View struct {
	name string
	dev  Reader
}

// ViewOf is the named device behind glass.
func ViewOf(name string, d Reader) *View { return &View{name, d} }

// Facts identifies the device and says what it can do.
func (v *View) Facts(ctx context.Context) (render.Facts, Caps, error) { return v.dev.Facts(ctx) }

// Read is the whole running configuration as far as the dialect understands it.
func (v *View) Read(ctx context.Context) (render.Config, error) { return v.dev.Read(ctx) }

// Close ends the connection.
func (v *View) Close() error { return v.dev.Close() }

// Pending lists transactions that look like ours, as Confirmer does.
func (v *View) Pending(ctx context.Context) ([]Tx, error) {
	c, ok := v.dev.(interface {
		Pending(context.Context) ([]Tx, error)
	})
	if !ok {
		return nil, v.lacks("transactions")
	}
	return c.Pending(ctx)
}

// Saved reports whether startup equals running, as Saver does.
func (v *View) Saved(ctx context.Context) (bool, error) {
	s, ok := v.dev.(interface {
		Saved(context.Context) (bool, error)
	})
	if !ok {
		return false, v.lacks("a startup configuration of its own")
	}
	return s.Saved(ctx)
}

// Sense reads counters, as Sensor does.
func (v *View) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	s, ok := v.dev.(Sensor)
	if !ok {
		return observe.Counters{}, v.lacks("counters")
	}
	return s.Sense(ctx, names)
}

// Neighbours lists what the device hears over LLDP, as Neighbourer does.
func (v *View) Neighbours(ctx context.Context) ([]Neighbour, error) {
	n, ok := v.dev.(Neighbourer)
	if !ok {
		return nil, v.lacks("a list of LLDP neighbours")
	}
	return n.Neighbours(ctx)
}

// Try tries what the account may do, as Trier does. That is the one thing asked of a device here that is more than a
// look; what a driver sends for it has no effect.
func (v *View) Try(ctx context.Context) ([]Trial, error) {
	t, ok := v.dev.(Trier)
	if !ok {
		return nil, v.lacks("trials")
	}
	return t.Try(ctx)
}

// Raw is the running configuration as the device writes it, as Rawer does.
func (v *View) Raw(ctx context.Context) ([]byte, error) {
	r, ok := v.dev.(Rawer)
	if !ok {
		return nil, v.lacks("a text of its configuration")
	}
	return r.Raw(ctx)
}

func (v *View) lacks(what string) error {
	return fmt.Errorf("%s: %s: %w", v.name, what, errors.ErrUnsupported)
}
