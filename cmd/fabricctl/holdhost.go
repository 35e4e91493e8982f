package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
)

// hostPatience is how long hold waits for a host: whoever holds something is in a hurry, and the hold stands here anyway.
const hostPatience = 20 * time.Second

// holder is a host that keeps holds for its own agent, and for whoever asks it to change something.
type holder interface {
	drivers.Reader
	Hold(context.Context, journal.Hold) (was *journal.Hold, err error)
	Release(ctx context.Context, fabric, device, port string) (was *journal.Hold, err error)
}

// errNotHost is that a hold covers no host that can be told: a switch, or nothing that has an address.
var errNotHost = errors.New("no host to tell")

// tellHost carries out f on the host that a device of the model is. errNotHost when it is none.
func (a *app) tellHost(ctx context.Context, f *model.Fabric, device string, do func(context.Context, holder) error) error {
	i := slices.IndexFunc(f.Devices, func(d model.Device) bool { return d.Name == device })
	e := f.Endpoints[device]
	if i < 0 || e == nil || !e.Address.Set {
		return errNotHost
	}
	if os, _, _ := strings.Cut(f.Devices[i].Platform.V, "/"); os != "linux" {
		return errNotHost
	}
	if a.readOnly {
		return drivers.ErrReadOnly
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hostPatience, fmt.Errorf("no answer within %s", hostPatience))
	defer cancel()
	dev, err := (&dialler{app: a, fabric: f, os: map[string]string{device: "linux"}}).open(ctx, device)
	if err != nil {
		return err
	}
	defer dev.Close()
	h, ok := dev.(holder)
	if !ok {
		_, caps, err := dev.Facts(ctx)
		if err == nil {
			err = errors.New(caps.ReadOnly)
		}
		return err
	}
	return do(ctx, h)
}

// onHost says what came of telling a host, and returns it for the JSON: whether the host knows, and else why not.
func (a *app) onHost(device, told, untold string, err error) (knows bool, why string) {
	switch {
	case errors.Is(err, errNotHost):
		return false, ""
	case err == nil:
		fmt.Fprintf(a.sys.err, "%s %s\n", device, told)
		return true, ""
	}
	why = diag.OneLine(show.Nameless(err.Error(), device))
	fmt.Fprintf(a.sys.err, "warning: %s %s: %s\n", device, untold, why)
	return false, why
}
