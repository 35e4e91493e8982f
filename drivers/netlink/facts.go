package netlink

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Facts is the host's name, DMI serial, kernel release, and its NICs: Model holds their distinct PCI vendor:device
// numbers, Aliases leads from a PCI address to the link, Notes names each driver. What cannot be read is left out.
func (d *Device) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	caps := drivers.Caps{PersistsOnCommit: true}
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return render.Facts{}, caps, d.named("facts", fmt.Errorf("links: %w", err))
	}
	f := render.Facts{
		Hostname: d.word("proc/sys/kernel/hostname"),
		Serial:   serial(d.word("sys/class/dmi/id/product_serial")),
		Version:  d.word("proc/sys/kernel/osrelease"),
		Aliases:  map[string]string{},
		Notes:    []string{"an MTU set here is lost at a reboot or a driver reload, unless the system's network configuration has it too; " + render.NCCLPath + " is saved at once"},
	}
	models := map[string]bool{}
	byPCI := map[string][]string{}
	for _, l := range links {
		n := d.nic(l.Name)
		if n.pci == "" {
			continue
		}
		models[n.model] = true
		f.Notes = append(f.Notes, fmt.Sprintf("%s: driver %s, PCI %s (%s)", l.Name, n.driver, n.pci, n.model))
		if !n.representor {
			byPCI[n.pci] = append(byPCI[n.pci], l.Name)
		}
	}
	for _, pci := range slices.Sorted(maps.Keys(byPCI)) {
		if names := byPCI[pci]; len(names) == 1 {
			f.Aliases[pci] = names[0]
		} else {
			f.Notes = append(f.Notes, fmt.Sprintf("PCI %s has several links, name the one that is meant: %s", pci, strings.Join(names, ", ")))
		}
	}
	f.Model = strings.Join(slices.Sorted(maps.Keys(models)), ",")
	return f, caps, ctx.Err()
}

// nic is what sysfs says about the hardware below a link.
type nic struct {
	pci, driver, model string
	representor        bool // of a virtual function: its PCI address is that of the physical one
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

func (d *Device) nic(link string) nic {
	dir, err := filepath.EvalSymlinks(d.path("sys/class/net", link, "device"))
	if err != nil {
		return nic{}
	}
	n := nic{driver: base(filepath.Join(dir, "driver"))}
	if strings.HasPrefix(filepath.Base(dir), "virtio") { // the PCI device is one level up
		dir = filepath.Dir(dir)
	}
	if n.pci = filepath.Base(dir); !pciAddress.MatchString(n.pci) {
		return nic{}
	}
	n.model = hex(readWord(filepath.Join(dir, "vendor"))) + ":" + hex(readWord(filepath.Join(dir, "device")))
	port := d.word("sys/class/net", link, "phys_port_name")
	n.representor = strings.HasPrefix(port, "pf") || strings.HasPrefix(port, "c")
	return n
}

// base is the name of what a symbolic link leads to.
func base(link string) string {
	to, err := os.Readlink(link)
	if err != nil {
		return "none"
	}
	return filepath.Base(to)
}

func hex(s string) string { return strings.TrimPrefix(s, "0x") }

func (d *Device) path(elem ...string) string {
	return filepath.Join(append([]string{d.cfg.Root}, elem...)...)
}

func (d *Device) word(elem ...string) string { return readWord(d.path(elem...)) }

// readWord is the text of a small kernel file without spaces around it, "" when it cannot be read.
func readWord(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// serial drops what board makers write when they write nothing.
func serial(s string) string {
	switch strings.ToLower(s) {
	case "none", "0", "not specified", "to be filled by o.e.m.", "default string", "system serial number":
		return ""
	}
	return s
}
