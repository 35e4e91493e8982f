package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
)

// notEmpty refuses an empty word where names are wanted: a script that says --device "$LEAF" and has no LEAF does not mean
// all devices.
func notEmpty(c *cobra.Command) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if ok && (len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")) {
			err = fail(exitUsage, "is a variable of the shell not set?", "--%s is given, and empty", f.Name)
		}
	})
	return err
}

// nearFlag is the hint for a flag that a command does not have: the nearest one of its own or of all commands.
func nearFlag(c *cobra.Command, name string) string {
	if slices.Contains(findingFormats(), name) || name == "markdown" || name == "html" || name == "dot" {
		return "write -o " + name
	}
	var flags []string
	for _, set := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	}
	if w := model.Closest(name, flags); w != "" {
		return "did you mean --" + w + "?"
	}
	return ""
}

// noDevice says that a name is not in the model.
func noDevice(net *intent.Net, name string) error {
	names := make([]string, len(net.Devices))
	for i := range net.Devices {
		names[i] = net.Devices[i].Name
	}
	return noDeviceOf(names, name)
}

// noDeviceOf says that a name is not among those of the model, and which is meant or which there are.
func noDeviceOf(names []string, name string) error {
	return fail(exitError, nearName(name, names, "the model has "), "the model has no device %q", name)
}

// noPort says that a device has no port of a name, by the model's names or the device's.
func noPort(device, port string, ports []portName) error {
	var names, all []string
	for _, p := range ports {
		names = append(names, p.name)
		all = append(all, p.name)
		if p.iface != "" {
			all = append(all, p.iface)
		}
	}
	if len(names) == 0 {
		return fail(exitError, "", "%s has no port %q: the model gives it none", device, port)
	}
	hint := nearName(port, all, "it has ")
	if !strings.HasPrefix(hint, "did") {
		hint = "it has " + show.Spans(names)
	}
	return fail(exitError, hint, "%s has no port %q", device, port)
}

// portName is a port by the model's name and by the device's, which may be unknown.
type portName struct{ name, iface string }

// nearName is a hint for a name that is not among names: the one that was probably meant, or else all of them. One that
// differs in its number alone is no slip of the finger.
func nearName(name string, names []string, have string) string {
	letters := func(s string) string {
		return strings.ToLower(strings.Map(func(r rune) rune {
			if show.IsDigit(r) {
				return -1
			}
			return r
		}, s))
	}
	if len(names) == 0 {
		return ""
	}
	all := have + show.Spans(names)
	if w := model.Closest(name, names); w != "" && letters(w) == letters(name) && !strings.EqualFold(w, name) {
		return all
	}
	return meant(name, names, all)
}
