package drivers

import (
	"context"
	"fmt"
	"time"

	"github.com/fabricctl/fabricctl/render"
)

// ReadOnly is the named device with every write taken away: Commit returns ErrReadOnly and the companions that write
// (Confirmer, Saver) are not there. Counters and neighbours stay readable where d has them.
func ReadOnly(name string, d Reader) Device {
	ro := readOnly{Reader: d, name: name}
	s, senses := d.(Sensor)
	n, hears := d.(Neighbourer)
	switch {
	case senses && hears:
		return struct {
			readOnly
			Sensor
			Neighbourer
		}{ro, s, n}
	case senses:
		return struct {
			readOnly
			Sensor
		}{ro, s}
	case hears:
		return struct {
			readOnly
			Neighbourer
		}{ro, n}
	}
	return ro
}

type readOnly struct {
	Reader
	name string
}

// Facts says that the device has no confirm timer, since nothing could be confirmed.
func (r readOnly) Facts(ctx context.Context) (render.Facts, Caps, error) {
	f, caps, err := r.Reader.Facts(ctx)
	caps.Confirm = false
	return f, caps, err
}

func (r readOnly) Commit(context.Context, TxID, []render.Change, time.Duration) error {
	return fmt.Errorf("%s: commit: %w", r.name, ErrReadOnly)
}
