package drivers

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/render"
)

// Identity is what an inventory expects of a device. Serial and Hostname are "" where it gives none.
type Identity struct{ Name, Serial, Hostname string }

// IdentityError is a device that is not the one of the inventory: an ErrIdentity with the line that would make it so.
type IdentityError struct {
	What string // what does not fit, as a sentence
	Key  string // "serial" or "hostname": the key of the inventory to change or to add
	Is   string // what the device says
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("%v: %s; if it is the right one all the same, give %s in the inventory", ErrIdentity, e.What, e.Line())
}

// Unwrap is ErrIdentity.
func (e *IdentityError) Unwrap() error { return ErrIdentity }

// Line is what the inventory would have to say, as in YAML.
func (e *IdentityError) Line() string { return fmt.Sprintf("%s: %q", e.Key, e.Is) }

// Is wants f to be the facts of that device, with an ErrIdentity otherwise. A domain is compared where
// both host names have one. Where neither a serial number nor a host name can be compared, the host name must be the device's name.
func (d Identity) Is(f render.Facts) error {
	same := func(a, b string) bool {
		short, more, _ := strings.Cut(a, ".")
		other, domain, _ := strings.Cut(b, ".")
		return strings.EqualFold(short, other) && (more == "" || domain == "" || strings.EqualFold(more, domain))
	}
	serial := d.Serial != "" && f.Serial != ""
	switch {
	case serial && f.Serial != d.Serial:
		return &IdentityError{Key: "serial", Is: f.Serial, What: fmt.Sprintf("%s has serial number %q and hostname %q, the inventory says serial number %q",
			d.Name, f.Serial, f.Hostname, d.Serial)}
	case d.Hostname != "" && f.Hostname != "" && !same(f.Hostname, d.Hostname):
		return &IdentityError{Key: "hostname", Is: f.Hostname, What: fmt.Sprintf("%s has hostname %q, the inventory says %q", d.Name, f.Hostname, d.Hostname)}
	case serial || d.Hostname != "" || f.Hostname == "" || same(f.Hostname, d.Name):
		return nil
	}
	return &IdentityError{Key: "hostname", Is: f.Hostname, What: fmt.Sprintf("%s has hostname %q", d.Name, f.Hostname)}
}
