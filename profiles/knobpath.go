package profiles

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A knob's path is data that somebody wrote, and what is written there is written by root. So a path names this NIC, as a
// whole part, below a directory of NICs: it cannot lead to /proc/sys/kernel/core_pattern, and not through a link of sysfs to
// the driver or the bus.
var (
	pathLegal = regexp.MustCompile(`^/[A-Za-z0-9_.:@{}/-]+$`)
	placeName = regexp.MustCompile(`\{[^}]*\}?`)
	nicRoots  = []*regexp.Regexp{
		regexp.MustCompile(`^/sys/class/net/\{netdev\}/`),
		regexp.MustCompile(`^/sys/class/infiniband/\{rdma\}/`),
		regexp.MustCompile(`^/sys/bus/pci/devices/\{pci\}/`),
		regexp.MustCompile(`^/sys/kernel/debug/[a-z][a-z0-9_-]*/\{(pci|netdev|rdma)\}/`),
		regexp.MustCompile(`^/sys/kernel/config/[a-z][a-z0-9_-]*/\{(pci|netdev|rdma)\}(/|$)`),
		regexp.MustCompile(`^/proc/sys/net/[a-z0-9_]+/[a-z0-9_]+/\{netdev\}/`),
	}
)

// notHere are names in sysfs that lead away from a NIC, or that take a device, a driver or memory apart when written.
func notHere() []string {
	return []string{
		"driver", "subsystem", "module", "power", "firmware_node", "iommu", "iommu_group", "physfn", "msi_irqs",
		"remove", "reset", "reset_method", "rescan", "config", "driver_override", "bind", "unbind", "new_id", "remove_id", "uevent", "rom",
		"sriov_numvfs", "sriov_drivers_autoprobe", "d3cold_allowed", "msi_bus", "link", "broken_parity_status",
	}
}

// checkPath says why a template is not a path that a knob may have.
func checkPath(template string, written bool) error {
	switch {
	case len(template) > 200 || !pathLegal.MatchString(template):
		return fmt.Errorf("path %q: want an absolute path of letters, digits and _.:@-, with places in braces, of at most 200 characters", shorten(template))
	case slices.Contains(strings.Split(template, "/"), ".."):
		return fmt.Errorf("path %s: .. leads out of it", template)
	case path.Clean(template) != template:
		return fmt.Errorf("path %s: write it as %s", template, path.Clean(template))
	}
	root := ""
	for _, r := range nicRoots {
		root = cmp.Or(root, r.FindString(template))
	}
	if root == "" {
		return fmt.Errorf("path %s: want a file of this NIC: below /sys/class/net/{netdev}, /sys/class/infiniband/{rdma}, /sys/bus/pci/devices/{pci}, "+
			"/sys/kernel/debug/DRIVER/{pci}, /sys/kernel/config/DRIVER/{rdma} or /proc/sys/net/…/{netdev}", template)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(template, root), "/") {
		if slices.Contains(notHere(), part) || strings.HasPrefix(part, "resource") || strings.HasPrefix(part, "virtfn") {
			return fmt.Errorf("path %s: %s leads away from the NIC, or takes it apart", template, part)
		}
		if part == "device" && written {
			return fmt.Errorf("path %s: nothing is written through device, which is a link; name the directory itself", template)
		}
		for _, p := range placeName.FindAllString(part, -1) {
			if !slices.Contains([]string{inNetdev, inPCI, inRDMA, inPort, inPriority}, p) {
				return fmt.Errorf("path %s: %s is none of {netdev}, {pci}, {rdma}, {port}, {priority}", template, p)
			}
		}
		if strings.Contains(placeName.ReplaceAllString(part, ""), "}") {
			return fmt.Errorf("path %s: braces do not match", template)
		}
	}
	return nil
}

// argLegal is an argument of a command: no character that a shell, or a reader of a log, would take for more.
var argLegal = regexp.MustCompile(`^[A-Za-z0-9_.:,@=+%/{}-]{1,200}$`)

// checkCommand says why a command is not one that a knob may have.
func checkCommand(argv []string) error {
	switch {
	case len(argv) == 0:
		return nil
	case len(argv) > 32:
		return fmt.Errorf("command: %d arguments are more than 32", len(argv))
	case !strings.HasPrefix(argv[0], "/") || path.Clean(argv[0]) != argv[0] || strings.ContainsAny(argv[0], "{}"):
		return fmt.Errorf("command %q: want the program's absolute path", shorten(argv[0]))
	case slices.Contains(shells(), path.Base(argv[0])):
		return fmt.Errorf("command %s: name the program itself, not a shell or another that runs programs", argv[0])
	}
	for _, a := range argv {
		if !argLegal.MatchString(a) {
			return fmt.Errorf("command: argument %q is not letters, digits and _.:,@=+%%/-, with places in braces", shorten(a))
		}
		for _, p := range placeName.FindAllString(a, -1) {
			if !slices.Contains([]string{inNetdev, inPCI, inRDMA, inPort}, p) {
				return fmt.Errorf("command: %s is none of {netdev}, {pci}, {rdma}, {port}", p)
			}
		}
	}
	return nil
}

func shells() []string {
	return []string{
		"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish", "busybox", "env", "sudo", "su", "doas", "xargs", "find", "perl", "python", "python3",
		"ruby", "lua", "awk", "gawk", "nohup", "setsid", "timeout", "nice", "ionice", "chroot", "nsenter", "unshare", "systemd-run", "ssh", "script", "tee", "dd",
	}
}

// checkPattern says why a pattern is not one that a knob may read with.
func checkPattern(pattern string) error {
	if pattern == "" {
		return nil
	}
	if !printable(pattern) {
		return fmt.Errorf("read %q: want a pattern of at most 200 printable characters", shorten(pattern))
	}
	re, err := regexp.Compile(pattern)
	switch {
	case err != nil:
		return fmt.Errorf("read %q: %w", shorten(pattern), err)
	case re.NumSubexp() > 1:
		return fmt.Errorf("read %q: want one group, around the value", shorten(pattern))
	}
	return nil
}
