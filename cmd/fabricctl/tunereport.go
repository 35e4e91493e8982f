package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
)

func (a *app) newTuneReport() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Write an experiment as a page: what to set, how sure that is, and everything that was tried",
		Long: `Write an experiment as a page for people: the answer first, then what was tried, as curves with their intervals, the settings that nothing
beats, every decision in plain words, what was not tried, how noisy the runs were, and what it takes to do it again. It comes from the
journal alone; no model is needed, and where its files are still at hand, what changes in them is shown as tune diff shows it.

-o html is one file that needs nothing else: no script, no network, and it prints well. -o markdown is for a pull request or a wiki. Without -o the name
of --out decides: .html and .htm, .md and .markdown; without --out it is Markdown.`,
		Example: "  fabricctl tune report 261130-093012-1c2d3e4f --out report.html\n  fabricctl tune report 261130-093012-1c2d3e4f -o markdown > report.md",
		Args:    wantTuned,
		RunE:    func(c *cobra.Command, args []string) error { return a.runTuneReport(c.Context(), args[0], out) },
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

// pageFormat is how a page is written, and what people call that: as -o says, or else as the name of the file does.
func pageFormat(output, out string) (write func(report.Page) []byte, name string, err error) {
	ext := strings.ToLower(filepath.Ext(out))
	switch {
	case output == "html" || output == "text" && (ext == ".html" || ext == ".htm"):
		return report.HTML, "HTML", nil
	case output == "markdown" || ext == "" || ext == ".md" || ext == ".markdown":
		return report.Markdown, "Markdown", nil
	}
	return nil, "", fail(exitUsage, "name it .html or .md, or say -o html or -o markdown", "--out %s: the name does not say which format is wanted", out)
}

func (a *app) runTuneReport(ctx context.Context, name, out string) error {
	if a.output == "json" {
		return fail(exitUsage, a.command("tune", "show", name, "-o", "json")+" has it all", "-o json: a report is html or markdown")
	}
	if _, err := a.wants("html", "markdown", "text"); err != nil {
		return err
	}
	write, format, err := pageFormat(a.output, out)
	if err != nil {
		return err
	}
	if out != "" {
		if err := outFile("--out", out, "report.html"); err != nil {
			return err
		}
	}
	r, h, err := a.experimentOf(name)
	if err != nil {
		return err
	}
	r.Looked = a.unconfirmedOf(r, h)
	text := write(tunePage(r, h, a.modelEdit(ctx, r, h), a.command))
	if out == "" {
		_, err := a.sys.out.Write(text)
		return err
	}
	if err := whole.Write(out, text, whole.Kept); err != nil {
		return notWritten(out, err)
	}
	fmt.Fprintf(a.sys.err, "wrote %s, which is %s\n", out, format)
	return nil
}

// modelEdit is what the result of an experiment changes in the files of its model, where these are at hand and still what they were.
func (a *app) modelEdit(ctx context.Context, r *tuneJSON, h *tuning.History) modelEdit {
	o := r.Outcome
	if o == nil || o.Confirmed == nil {
		return modelEdit{}
	}
	s, err := a.spliced(ctx, r, h)
	switch {
	case err != nil:
		return modelEdit{why: err.Error()}
	case !s.modelled:
		return modelEdit{}
	case len(s.files) == 0 && !s.found.HasErrors():
		return modelEdit{why: "the model has these values already"}
	case s.model.digest() != r.Begin.Context.Digest:
		return modelEdit{why: fmt.Sprintf("the model of %s is not the one of the experiment any more", strings.Join(a.layersOf(r), ", "))}
	case s.found.HasErrors():
		return modelEdit{why: s.found[0].Msg}
	}
	var diff strings.Builder
	for i := range s.files {
		diff.WriteString(unified(patchName(s.files[i].File), s.files[i].Before, s.files[i].After))
	}
	return modelEdit{diff: diff.String()}
}
