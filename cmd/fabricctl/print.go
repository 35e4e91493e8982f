package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fabricctl/fabricctl/model/diag"
)

// printJSON writes a result as one indented JSON document.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.sys.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// colored reports whether to colour what goes to w.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	f, ok := w.(*os.File)
	return ok && a.sys.env("NO_COLOR") == "" && term.IsTerminal(int(f.Fd()))
}

type style string

const (
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func paint(on bool, s style, text string) string {
	if !on {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// printFindings writes findings in text form.
func (a *app) printFindings(w io.Writer, l diag.List) {
	on := a.colored(w)
	for _, f := range l {
		text := f.String()
		if on {
			word := f.Severity.String() + ":"
			st := cyan
			switch f.Severity {
			case diag.Error:
				st = red
			case diag.Warning:
				st = yellow
			}
			text = strings.Replace(text, word, paint(true, st, word), 1)
		}
		fmt.Fprintln(w, text)
	}
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

// count writes "1 device", "2 devices".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
