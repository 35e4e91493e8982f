package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// Hold keeps fabricctl's hands off a device, or one port of it, for a while. It is kept until somebody releases it; past
// Until it has no force. Serial and Address are what the inventory said of the device when the hold was set, "" where it
// said nothing: other models know the device by them.
type Hold struct {
	Fabric  string    `json:"fabric,omitempty"` // whose names Device and Port are; "" = of the fabric that is spoken of
	Device  string    `json:"device"`
	Serial  string    `json:"serial,omitempty"`
	Address string    `json:"address,omitempty"` // host:port
	Port    string    `json:"port,omitempty"`    // the model's name; "" = the whole device
	Iface   string    `json:"iface,omitempty"`   // the device's name of the port when the hold was set
	Owner   string    `json:"owner"`             // user@host
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
}

// Active reports whether the hold is in force at the time now.
func (h Hold) Active(now time.Time) bool { return now.Before(h.Until) }

// Ref is what is held: "leaf1" or "leaf1:downlink-3".
func (h Hold) Ref() string {
	if h.Port == "" {
		return h.Device
	}
	return h.Device + ":" + h.Port
}

// String is the hold in words, for messages: what, until when, by whom and why.
func (h Hold) String() string {
	what := h.Ref()
	if h.Fabric != "" {
		what += " of fabric " + h.Fabric
	}
	return fmt.Sprintf("%s is held until %s by %s: %s", what, h.Until.Format(time.RFC3339), h.Owner, h.Reason)
}

// is reports whether h holds the same thing as o.
func (h Hold) is(device, port string) bool { return h.Device == device && h.Port == port }

// FabricHolds is the content of a hold file: all that is held of one fabric.
type FabricHolds struct {
	Fabric string `json:"fabric"`
	Holds  []Hold `json:"holds"` // by device, port
}

// HoldPath is the hold file of a fabric in a directory.
func HoldPath(dir, fabric string) string { return filepath.Join(dir, fabric+".json") }

func readHolds(path string) (FabricHolds, error) {
	var f FabricHolds
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("holds: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err = d.Decode(&f)
	if _, more := d.Token(); err != nil || more != io.EOF || f.Fabric == "" {
		return FabricHolds{}, fmt.Errorf("hold file %s is damaged, so nobody knows what is held, and nothing is written: remove it and set the holds again", path)
	}
	return f, nil
}

// AllHolds are the hold files of a directory, by fabric, with expired holds too. A missing directory is none. A file
// that cannot be understood comes as an error beside the others: what is held is then not known, and nothing may be
// written.
func AllHolds(dir string) ([]FabricHolds, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // a state directory that cannot be one holds nothing
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("holds: %w", err)
	}
	var all []FabricHolds
	for _, x := range entries {
		if filepath.Ext(x.Name()) != ".json" {
			continue
		}
		f, e := readHolds(filepath.Join(dir, x.Name()))
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		if f.Fabric != "" { // else it was there a moment ago
			all = append(all, f)
		}
	}
	return all, err
}

// ErrOtherHold is returned by SetHold when somebody else's hold would end earlier than it was to.
var ErrOtherHold = errors.New("somebody else holds it for longer")

// SetHold puts a hold on the disk; one on the same device or port is replaced and returned, unless it is in force, is
// somebody else's and would end earlier (ErrOtherHold). It returns when the hold is safe there: a run that begins a
// transaction later sees it.
func SetHold(ctx context.Context, dir, fabric string, h Hold, o Options) (was *Hold, err error) {
	if fabric == "" || strings.ContainsAny(fabric, "/\x00") {
		return nil, fmt.Errorf("holds: %q is not the name of a fabric", fabric)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("holds: %w", err)
	}
	err = changeHolds(ctx, dir, fabric, o, func(hs []Hold) ([]Hold, error) {
		hs, was = without(hs, h.Device, h.Port)
		if was != nil && was.Owner != h.Owner && was.Active(h.Since) && h.Until.Before(was.Until) {
			return nil, fmt.Errorf("%w: %s", ErrOtherHold, *was)
		}
		hs = append(hs, h)
		sort.Slice(hs, func(i, j int) bool {
			return cmp.Or(cmp.Compare(hs[i].Device, hs[j].Device), cmp.Compare(hs[i].Port, hs[j].Port)) < 0
		})
		return hs, nil
	})
	return was, err
}

// ReleaseHold takes the hold on a device or port away and returns it; nil when there is none.
func ReleaseHold(ctx context.Context, dir, fabric, device, port string, o Options) (was *Hold, err error) {
	if _, err := os.Stat(HoldPath(dir, fabric)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = changeHolds(ctx, dir, fabric, o, func(hs []Hold) ([]Hold, error) {
		hs, was = without(hs, device, port)
		return hs, nil
	})
	return was, err
}

func without(hs []Hold, device, port string) (rest []Hold, was *Hold) {
	for _, h := range hs {
		if h.is(device, port) {
			was = &h
			continue
		}
		rest = append(rest, h)
	}
	return rest, was
}

func changeHolds(ctx context.Context, dir, fabric string, o Options, change func([]Hold) ([]Hold, error)) error {
	path := HoldPath(dir, fabric)
	return guarded(ctx, path, func() error {
		f, err := readHolds(path)
		if err != nil {
			return err
		}
		f.Fabric = fabric
		if f.Holds, err = change(f.Holds); err != nil {
			return err
		}
		return store(path, "hold", f, o.Hook)
	})
}
