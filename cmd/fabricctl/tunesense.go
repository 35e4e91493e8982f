package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
)

// senses reads the counters of several devices, over connections that stay open.
type senses struct {
	open  func(ctx context.Context, name string) (drivers.Device, error)
	names []string

	mu      sync.Mutex
	devices map[string]drivers.Device
	dumb    map[string]string // devices that count nothing, and why
}

// senses reads the counters of devices of a dialler's model.
func (d *dialler) senses(names []string) *senses {
	return &senses{open: d.open, names: names, devices: map[string]drivers.Device{}, dumb: map[string]string{}}
}

// lostDevice is a device that does not answer any more.
type lostDevice struct {
	device string
	err    error
}

func (l *lostDevice) Error() string { return l.err.Error() }
func (l *lostDevice) Unwrap() error { return l.err }

// first connects to the devices, and sets those apart whose counters cannot be read, with what is said of them.
func (s *senses) first(ctx context.Context) (notes []string, err error) {
	var wg sync.WaitGroup
	for _, n := range s.names {
		wg.Go(func() {
			if _, err := s.read(ctx, n); err != nil {
				s.mu.Lock()
				s.dumb[n] = err.Error()
				s.mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, n := range s.names {
		if why, is := s.dumb[n]; is {
			notes = append(notes, fmt.Sprintf("the counters of %s are not read: %s", n, why))
		}
	}
	return notes, context.Cause(ctx)
}

// all are the counters of all devices, by name. A device that had counters and does not answer any more is a *lostDevice.
func (s *senses) all(ctx context.Context) (map[string]observe.Counters, error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[string]observe.Counters{}
	var lost []*lostDevice
	for _, n := range s.names {
		if s.dumb[n] != "" {
			continue
		}
		wg.Go(func() {
			c, err := s.read(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost = append(lost, &lostDevice{n, err})
				return
			}
			out[n] = c
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(lost) > 0 {
		return nil, slices.MinFunc(lost, func(a, b *lostDevice) int { return slices.Index(s.names, a.device) - slices.Index(s.names, b.device) })
	}
	return out, nil
}

// read is the counters of one device. A connection that does not last is made anew once.
func (s *senses) read(ctx context.Context, name string) (c observe.Counters, err error) {
	for {
		s.mu.Lock()
		dev := s.devices[name]
		s.mu.Unlock()
		fresh := dev == nil
		if fresh {
			if dev, err = s.open(ctx, name); err != nil {
				return c, err
			}
			s.mu.Lock()
			s.devices[name] = dev
			s.mu.Unlock()
		}
		sensor, ok := dev.(drivers.Sensor)
		if !ok {
			return c, errors.New("it has none that fabricctl knows")
		}
		if c, err = sensor.Sense(ctx, nil); err == nil {
			return c, nil
		}
		_ = dev.Close() // it failed, and says nothing new
		s.mu.Lock()
		delete(s.devices, name)
		s.mu.Unlock()
		if fresh || ctx.Err() != nil {
			return c, err
		}
	}
}

// Close ends all connections.
func (s *senses) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for n, d := range s.devices {
		errs = append(errs, d.Close())
		delete(s.devices, n)
	}
	return errors.Join(errs...)
}
