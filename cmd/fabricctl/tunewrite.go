package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
)

// promotion is what the result of an experiment means for the model that it was made with.
type promotion struct {
	files    []model.Spliced
	external []string // what no model holds, in words
	nothing  string   // why nothing is to be written; "" when something is
}

type tuneDiffFlags struct {
	write       bool
	patch, page string
}

type tuneDiffJSON struct {
	Schema   string         `json:"schema"`
	ID       string         `json:"id"`
	Written  bool           `json:"written"`
	Nothing  string         `json:"nothing,omitempty"`
	Files    []tuneDiffFile `json:"files"`
	External []string       `json:"external"`
}

type tuneDiffFile struct {
	File   string          `json:"file"`
	Values []tuneDiffValue `json:"values"`
	Diff   string          `json:"diff"`
}

type tuneDiffValue struct {
	Path   string   `json:"path"`
	Pos    diag.Pos `json:"pos"`
	Before string   `json:"before,omitempty"`
	After  string   `json:"after"`
}

func (a *app) newTuneDiff() *cobra.Command {
	var o tuneDiffFlags
	c := &cobra.Command{
		Use:   "diff RUN",
		Short: "Show what an experiment changes in the model's files, and write it",
		Long: `Show what the result of an experiment changes in the files of the model, as a diff that git apply takes. Only values change: comments, order, blank
lines, quotes and line ends stay, and a comment above says which experiment found them, and how sure it was. Of several layers, the one whose value
wins is changed.

--write writes the files, each whole or not at all; --patch writes the diff to a file, byte by byte, and --page a page in Markdown for the
pull request. What a result means for the model is worked out from the model, not taken from the journal.
Nothing is written or shown of an experiment that did not reach its end, found nothing better, was not confirmed on fresh seeds or whose gate failed, or whose
decisions do not follow from its measures, as tune replay finds out (exit 4); nor into a model that is not the one it was made with, or a file that nobody may write. -f is needed only where the layers are found elsewhere now.`,
		Example: "  fabricctl tune diff 261130-093012-1c2d3e4f\n  fabricctl tune diff 261130-093012-1c2d3e4f --write --page pull-request.md",
		Args:    wantTuned,
		RunE:    func(c *cobra.Command, args []string) error { return a.runTuneDiff(c.Context(), args[0], o) },
	}
	f := c.Flags()
	f.BoolVar(&o.write, "write", false, "write the files of the model")
	f.StringVar(&o.patch, "patch", "", "file to write the diff to")
	f.StringVar(&o.page, "page", "", "file to write a page for the pull request to, in Markdown")
	return c
}

func (a *app) runTuneDiff(ctx context.Context, name string, o tuneDiffFlags) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	for _, f := range []struct{ flag, path, example string }{{"--patch", o.patch, "tuned.patch"}, {"--page", o.page, "pull-request.md"}} {
		if f.path != "" {
			if err := outFile(f.flag, f.path, f.example); err != nil {
				return err
			}
		}
	}
	r, h, err := a.experimentOf(name)
	if err != nil {
		return err
	}
	p, err := a.promotion(ctx, r, h)
	if err != nil {
		return err
	}
	var patch strings.Builder
	out := tuneDiffJSON{Schema: "fabricctl/tune-diff/v1", ID: r.ID, Nothing: p.nothing, Files: []tuneDiffFile{}, External: append([]string{}, p.external...)}
	for i := range p.files {
		s := &p.files[i]
		f := tuneDiffFile{File: s.File, Diff: unified(patchName(s.File), s.Before, s.After)}
		for _, v := range s.Values {
			f.Values = append(f.Values, tuneDiffValue(v))
		}
		patch.WriteString(f.Diff)
		out.Files = append(out.Files, f)
	}
	for _, f := range []struct {
		path string
		text func() []byte
	}{
		{o.patch, func() []byte { return []byte(patch.String()) }},
		{o.page, func() []byte { return report.Markdown(tunePage(r, h, modelEdit{diff: patch.String()}, a.command)) }},
	} {
		if f.path == "" || p.nothing != "" {
			continue
		}
		if err := whole.Write(f.path, f.text(), whole.Kept); err != nil {
			return notWritten(f.path, err)
		}
		fmt.Fprintln(a.sys.err, "wrote", f.path)
	}
	if o.write && p.nothing == "" {
		if err := a.writeBack(p); err != nil {
			return err
		}
		out.Written = true
	}
	if json {
		return a.printJSON(out)
	}
	if p.nothing != "" {
		fmt.Fprintf(a.sys.err, "nothing to write: %s\n", p.nothing)
	}
	for _, s := range p.external {
		fmt.Fprintf(a.sys.err, "not in the model: %s\n", s)
	}
	if _, err = fmt.Fprint(a.sys.out, patch.String()); err != nil || p.nothing != "" {
		return err
	}
	fmt.Fprintln(a.sys.err, a.afterDiff(r, o))
	return nil
}

// afterDiff is what comes next: to write what was shown, or to see what it means for devices.
func (a *app) afterDiff(r *tuneJSON, o tuneDiffFlags) string {
	if o.write {
		return "next: " + a.nextPlan(r)
	}
	return "nothing was written into the model; to write it: " + show.Whole(a.command(append([]string{"tune", "diff", r.ID, "--write"}, a.modelFlags("")...)...))
}

// nextPlan is what comes after a result was written into a model.
func (a *app) nextPlan(r *tuneJSON) string {
	return "review the change and commit it; then " + show.Whole(a.commandOn(a.layersOf(r), "plan")) + ", with the inventory, shows what it means for the devices"
}

// promotion finds what the result of an experiment changes in the files of its model. An error is one that refuses it.
func (a *app) promotion(ctx context.Context, r *tuneJSON, h *tuning.History) (*promotion, error) {
	if nothing, err := a.promotable(r); nothing != "" || err != nil {
		return &promotion{nothing: nothing}, err
	}
	if err := a.follows(r, h); err != nil {
		return nil, err
	}
	p := &promotion{external: externalWords(r.Begin.Vars, r.Outcome.Best, r.Begin.Start)}
	s, err := a.spliced(ctx, r, h)
	if err != nil {
		return nil, err
	}
	switch {
	case !s.modelled:
		p.nothing = "the result is nothing that the model holds"
		return p, nil
	case !s.found.HasErrors() && len(s.files) == 0:
		p.nothing = "the model has it already"
		return p, nil
	case s.model.findings.HasErrors() && !s.model.mendedBy(s.patch):
		a.printLoaded(s.model)
		return nil, s.model.refused()
	case s.model.digest() != r.Begin.Context.Digest:
		return nil, fail(exitRefused, "take out the model as it was then, or run the experiment again", "the model of %s is not the one of experiment %s (digest %.12s, and then %.12s); nothing was written", strings.Join(a.layersOf(r), ", "), r.ID, s.model.digest(), r.Begin.Context.Digest)
	case s.found.HasErrors():
		a.simFindings(s.found)
		return nil, fail(exitError, "", "the result cannot be written into the files of the model; nothing was written")
	}
	p.files = s.files
	return p, nil
}

// layersOf are the layers of an experiment's model, as they are found now.
func (a *app) layersOf(r *tuneJSON) []string {
	if len(a.fabric) > 0 {
		return a.fabric
	}
	return r.Begin.Context.Layers
}

// splice is the result of an experiment in the files of its model, as they are now.
type splice struct {
	model    loaded
	modelled bool // something of the model is among what the experiment moved
	patch    model.Patch
	files    []model.Spliced
	found    diag.List
}

// spliced puts the result of an experiment into the files of its model.
func (a *app) spliced(ctx context.Context, r *tuneJSON, h *tuning.History) (s splice, err error) {
	layers := a.layersOf(r)
	if s.model, err = a.loadFor(ctx, layers, true); err != nil {
		return s, err
	}
	if s.modelled = h.Begin.Modelled(r.Outcome.Best); !s.modelled || s.model.net == nil {
		s.found = s.model.findings
		return s, nil
	}
	if s.patch, s.found = h.Begin.Meant(s.model.fabric, r.Outcome.Best); s.found.HasErrors() || len(s.patch) == 0 {
		return s, nil
	}
	hardware, _ := a.hardware()
	s.files, s.found = model.Splice(osFS{}, append(hardware, layers...), s.patch, tunedNote(r, h))
	return s, nil
}

// mendedBy reports whether a patch leaves no error in the model.
func (m loaded) mendedBy(p model.Patch) bool {
	if m.net == nil {
		return false
	}
	f, found := m.fabric.With(p)
	if found.HasErrors() {
		return false
	}
	net, found := intent.Resolve(f)
	return !found.HasErrors() && !lint.Check(net, f).HasErrors()
}

// promotable says why the result of an experiment is not to be written: nothing when there is none, an error when it is not to be
// trusted so far.
func (a *app) promotable(r *tuneJSON) (nothing string, err error) {
	o := r.Outcome
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", fail(exitRefused, hint, "experiment %s: "+format+"; nothing was written", append([]any{r.ID}, args...)...)
	}
	again := a.command("tune", "resume", r.ID)
	switch {
	case o == nil, r.State == tuning.Stopped && !o.Spent:
		return refuse(again, "it did not reach its end")
	case r.State != tuning.Done && r.State != tuning.Stopped:
		return refuse("", "%s", stateWords(r))
	case o.Verdict != tuning.Better || o.Best.Key() == r.Begin.Start.Key():
		return diag.OneLine(o.Words), nil
	case o.Confirmed == nil || o.Confirmed.Verdict != tuning.Better || o.Confirmed.To.Key() != o.Best.Key():
		return refuse("", "its result was not confirmed on fresh seeds")
	case r.Gate != nil && !r.Gate.Passed:
		return refuse("", "the gate refused the result: %s", diag.OneLine(r.Gate.Why))
	case r.Gate == nil:
		if then, err := a.flagsOf(r.Begin.Context.Command); err == nil && then.gate != "" {
			return refuse("run it again, or judge the result by hand", "the gate %s has not judged the result", then.gate)
		}
	}
	return "", nil
}

// follows refuses what does not follow from the measures of the journal: checksums are no signature, and what is written bears its name.
func (a *app) follows(r *tuneJSON, h *tuning.History) error {
	_, best, whole, err := replayed(h)
	if err == nil && (!whole || best.Key() != r.Outcome.Best.Key()) {
		err = errors.New("its measures do not lead to its result")
	}
	if err != nil {
		return fail(exitRefused, a.command("tune", "replay", r.ID)+" says so too: run the experiment again", "experiment %s: %w; nothing was written", r.ID, err)
	}
	return nil
}

// replayed is tuning.Replay, and says so where another version has decided.
func replayed(h *tuning.History) (ds []tuning.Decision, best tuning.Setting, whole bool, err error) {
	ds, best, whole, err = tuning.Replay(h)
	if then := h.Begin.Context.Version; err != nil && then != toolVersion() {
		err = fmt.Errorf("%w; it was begun by fabricctl %s, and this is %s, which may decide otherwise", err, then, toolVersion())
	}
	return ds, best, whole, err
}

// tunedNote is the comment above what an experiment has found: when, how much it gains, how sure that is, and which one it was.
func tunedNote(r *tuneJSON, h *tuning.History) string {
	what := diag.OneLine(r.Outcome.Confirmed.Reason)
	if j := r.Outcome.Confirmed.J; j != nil {
		what = fmt.Sprintf("%s %% J (%s to %s, %s %%), %s", percent(j.Est), percent(j.Low), percent(j.High), confidenceText(j.Conf), diag.Count(j.N, "pair"))
		if j.Low <= 0 {
			what = "the least that holds, " + what
		}
	}
	return fmt.Sprintf("tuned %s: %s %s, run %s", h.Last.UTC().Format("2006-01-02"), what, runnerText(&r.Begin.Context), r.ID)
}

// writeBack writes the files of a promotion: all of them are on the disk, beside those that they replace, before the first is replaced.
func (a *app) writeBack(p *promotion) (err error) {
	targets, staged := make([]string, len(p.files)), make([]*whole.Staged, 0, len(p.files))
	defer func() {
		for _, s := range staged {
			err = errors.Join(err, s.Drop())
		}
	}()
	for i := range p.files {
		f := &p.files[i]
		if targets[i], err = ownFile(f.File); err != nil {
			return err
		}
		if info, err := os.Stat(targets[i]); err == nil && info.Mode().Perm()&0o222 == 0 {
			return fail(exitRefused, "chmod u+w "+quote(f.File)+", or unlock it with what has locked it", "%s may not be written by anybody (mode %#o); nothing was written", f.File, info.Mode().Perm())
		}
		if now, err := os.ReadFile(targets[i]); err != nil || !bytes.Equal(now, f.Before) {
			return fail(exitRefused, "", "%s was changed while it was being read; nothing was written", f.File)
		}
		s, err := whole.Stage(targets[i], f.After, whole.Kept)
		if err != nil {
			return notWritten(f.File, err)
		}
		staged = append(staged, s)
	}
	for i := range p.files {
		f := &p.files[i]
		if err := staged[i].Settle(); err != nil {
			return notWritten(f.File, err)
		}
		for _, v := range f.Values {
			before := "set to"
			if v.Before != "" {
				before = v.Before + " to"
			}
			fmt.Fprintf(a.sys.err, "wrote %s: %s %s %s\n", v.Pos, v.Path, before, v.After)
		}
	}
	return nil
}

// ownFile is the file behind a name. One that lies in another directory than its name is not written through: it belongs to something else.
func ownFile(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", fail(exitError, "", "%w; nothing was written", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return "", fail(exitError, "", "%w; nothing was written", err)
	}
	if filepath.Dir(real) != dir {
		return "", fail(exitRefused, "write into that file by hand, or give it as a layer with -f", "%s is a link to %s, in another directory; nothing was written", name, real)
	}
	return real, nil
}

// thenWrite writes the result of an experiment that has ended into its model, where --write asked for that.
func (a *app) thenWrite(ctx context.Context, write bool, id string, err error) error {
	if !write || err != nil {
		return err
	}
	r, h, err := a.tuned(id)
	if err != nil {
		return err
	}
	p, err := a.promotion(ctx, r, h)
	if err != nil {
		return err
	}
	for _, s := range p.external {
		fmt.Fprintf(a.sys.err, "not in the model: %s\n", s)
	}
	if p.nothing != "" {
		fmt.Fprintf(a.sys.err, "nothing to write: %s\n", p.nothing)
		return nil
	}
	if err := a.writeBack(p); err != nil {
		return err
	}
	fmt.Fprintln(a.sys.err, "next: "+a.nextPlan(r))
	return nil
}
