package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
)

// printJSON writes a result as one indented JSON document.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.sys.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// colored reports whether what goes to s may be coloured.
func (a *app) colored(s *show.Screen) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.sys.env("NO_COLOR") == "" && s.Terminal()
}

// noArgs refuses arguments in our own words.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(exitUsage, "see "+c.CommandPath()+" --help", "%s takes no arguments, but got %q", c.Name(), args[0])
	}
	return nil
}

// wantVerb refuses a word that is no command of c, with the nearest one that is.
func wantVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see " + c.CommandPath() + " --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	return fail(exitUsage, hint, "%s has no command %q", c.Name(), args[0])
}
