package drivers

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/render"
)

// Identity is what an inventory expects of a device. Serial and Hostname are "" where it gives none.
type Identity struct{ Name, Serial, Hostname string }

// Is wants f to be the facts of that device, with an ErrIdentity otherwise. Host names are compared without their
// domain. Where neither a serial number nor a host name can be compared, the host name must be the device's name.
func (d Identity) Is(f render.Facts) error {
	same := func(a, b string) bool {
		a, _, _ = strings.Cut(a, ".")
		b, _, _ = strings.Cut(b, ".")
		return strings.EqualFold(a, b)
	}
	serial := d.Serial != "" && f.Serial != ""
	switch {
	case serial && f.Serial != d.Serial:
		return fmt.Errorf("%w: %s has serial number %q and hostname %q, the inventory says serial number %q",
			ErrIdentity, d.Name, f.Serial, f.Hostname, d.Serial)
	case d.Hostname != "" && f.Hostname != "" && !same(f.Hostname, d.Hostname):
		return fmt.Errorf("%w: %s has hostname %q, the inventory says %q", ErrIdentity, d.Name, f.Hostname, d.Hostname)
	case serial || d.Hostname != "" || f.Hostname == "" || same(f.Hostname, d.Name):
		return nil
	}
	return fmt.Errorf("%w: %s has hostname %q; if it is the right one all the same, give hostname: %s in the inventory",
		ErrIdentity, d.Name, f.Hostname, f.Hostname)
}
