package rollout

import (
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
)

// Lines are connections that Plan leaves open for the Apply of the same plan: those to devices that will be written to
// and that look at all they hold before the first write (drivers.Guarded), since it may be a while until then. The zero
// value is ready; it may be used by several goroutines. Whoever made it closes it when the plan is done with.
type Lines struct {
	mu   sync.Mutex
	open map[string]drivers.Device
}

// mostLines bounds how many connections lie idle. Devices beyond are dialled again.
const mostLines = 512

// keep leaves the connection of a plan's device open, and reports whether it does.
func (l *Lines) keep(dev drivers.Device, dp *DevicePlan) bool {
	g, ok := dev.(drivers.Guarded)
	if l == nil || !ok || dp.Caps.Confirm || len(dp.Steps) == 0 || dp.Blocked {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= mostLines {
		return false
	}
	if l.open == nil {
		l.open = map[string]drivers.Device{}
	}
	g.Rest()
	l.open[dp.Name] = dev
	return true
}

// take hands a connection over; nil when there is none.
func (l *Lines) take(device string) drivers.Device {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.open[device]
	delete(l.open, device)
	return d
}

// has reports whether there is a connection to a device.
func (l *Lines) has(device string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[device] != nil
}

// Close ends the connections that nobody took. It never writes.
func (l *Lines) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.open {
		_ = d.Close() // nothing was sent over it that could be lost
	}
	l.open = nil
}
