package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/tuning/report"
)

func (a *app) newTuneReport() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Write an experiment as a page: what to set, how sure that is, and everything that was tried",
		Long: `Write an experiment as a page for people: the answer first, then what was tried, as curves with their intervals, the settings that nothing
beats, every decision in plain words, what was not tried, how noisy the runs were, and what it takes to do it again. It comes from the
journal alone; no model is needed.

-o html is one file that needs nothing else: no script, no network, and it prints well. -o markdown is for a pull request or a wiki. Without -o the name
of --out decides, and without that it is Markdown.`,
		Example: "  fabricctl tune report 261130-093012-1c2d3e4f --out report.html\n  fabricctl tune report 261130-093012-1c2d3e4f -o markdown > report.md",
		Args:    wantTuned,
		RunE:    func(c *cobra.Command, args []string) error { return a.runTuneReport(c.Context(), args[0], out) },
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

func (a *app) runTuneReport(_ context.Context, id, out string) error {
	if _, err := a.wants("html", "markdown", "text"); err != nil {
		return err
	}
	if out != "" {
		if err := outFile("--out", out, "report.html"); err != nil {
			return err
		}
	}
	r, h, err := a.tuned(id)
	if err != nil {
		return err
	}
	page := tunePage(r, h)
	text := report.Markdown(page)
	if ext := strings.ToLower(filepath.Ext(out)); a.output == "html" || a.output == "text" && (ext == ".html" || ext == ".htm") {
		text = report.HTML(page)
	}
	if out == "" {
		_, err := a.sys.out.Write(text)
		return err
	}
	if err := writeWhole(out, text); err != nil {
		return fail(exitError, "", "%s was not written: %w", out, diskWords(err))
	}
	fmt.Fprintln(a.sys.err, "wrote", out)
	return nil
}
