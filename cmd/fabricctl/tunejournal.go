package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneJSON is an experiment as its journal tells it.
type tuneJSON struct {
	Schema    string            `json:"schema"`
	ID        string            `json:"id"`
	State     tuning.State      `json:"state"`
	Begin     tuning.Begin      `json:"begin"`
	Budget    tuning.Budget     `json:"budget"` // that of begin, or what a resume has given since
	Runs      int               `json:"runs"`
	Rejected  int               `json:"rejected"`
	Decisions []tuning.Decision `json:"decisions"`
	Notices   []string          `json:"notices"`
	Outcome   *tuning.Outcome   `json:"outcome"`        // null while it goes on, and of one that died
	Looked    *unconfirmed      `json:"unconfirmed"`    // what looked best, and is not the answer; null = nothing did, or it is
	Gate      *tuning.Gated     `json:"gate"`           // what the program of --gate said; null = there was none, or it has not run
	Torn      string            `json:"torn,omitempty"` // the journal's last line was not written whole
}

// tuneDir is where experiments are kept: ID.jsonl, ID.lock while a process works on it, and ID with what runners have kept of runs.
func (a *app) tuneDir() (string, error) {
	dir, err := a.state()
	return filepath.Join(dir, "tune"), err
}

// tuneID is what an id looks like. It becomes part of file names.
var tuneID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,27}$`)

func tunePath(dir, id string) string     { return filepath.Join(dir, id+".jsonl") }
func tuneLockPath(dir, id string) string { return filepath.Join(dir, id+".lock") }

// lockTune keeps other processes away from an experiment until unlock is called or this process ends.
func lockTune(ctx context.Context, dir, id string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	free, err := journal.Lock(ctx, tuneLockPath(dir, id), "tune "+id, 0)
	var busy *journal.BusyError
	if errors.As(err, &busy) {
		return nil, fail(exitRefused, "wait until it has ended, or interrupt it", "another process (pid %d) works on experiment %s", busy.PID, id)
	}
	return free, err
}

// tuned reads an experiment, with its history.
func (a *app) tuned(id string) (*tuneJSON, *tuning.History, error) {
	dir, err := a.tuneDir()
	if err != nil {
		return nil, nil, err
	}
	if !tuneID.MatchString(id) {
		return nil, nil, usage("%q is not the id of an experiment", id)
	}
	recs, torn, err := journal.ReadFile(tunePath(dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fail(exitError, a.seeTuned(), "there is no experiment %s in %s", id, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	h, err := tuning.Read(recs)
	if err != nil {
		return nil, nil, fmt.Errorf("experiment %s: %w", id, err)
	}
	r := tunedJSON(id, h, journal.Locked(tuneLockPath(dir, id)))
	if torn != nil {
		r.Torn = torn.String()
	}
	return r, h, nil
}

// lastTuned is the word for the experiment that was begun last.
const lastTuned = "last"

// experimentOf reads the experiment that a user names: by its id, by how its id begins where that is one alone, or as the last.
// Where the call names no model, hardware is looked for where the experiment had it.
func (a *app) experimentOf(word string) (r *tuneJSON, h *tuning.History, err error) {
	if r, h, err = a.byName(word); err == nil && len(a.fabric)+len(a.profiles) == 0 {
		if then, _, unread := a.callOf(r.Begin.Context.Command); unread == nil {
			a.profiles = then.profiles
		}
	}
	return r, h, err
}

// byName is experimentOf of the journal alone.
func (a *app) byName(word string) (*tuneJSON, *tuning.History, error) {
	dir, err := a.tuneDir()
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	var ids, begin []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".jsonl"); ok && tuneID.MatchString(id) {
			ids = append(ids, id)
			if strings.HasPrefix(id, word) {
				begin = append(begin, id)
			}
		}
	}
	switch { // ids begin with the time, and entries are in the order of their names
	case slices.Contains(ids, word), word == "":
	case word == lastTuned && len(ids) > 0:
		return a.lastOf(ids)
	case word == lastTuned:
		return nil, nil, fail(exitError, "fabricctl tune run -f MODEL makes one", "there is no experiment in %s", dir)
	case len(begin) == 1:
		word = begin[0]
	case len(begin) > 1:
		return nil, nil, fail(exitUsage, "give more of it", "there are %d experiments that begin with %s: %s", len(begin), word, firstOf(begin))
	}
	return a.tuned(word)
}

// lastOf reads the experiment that was begun last. Ids begin with the second, and are in their order; those of the same second are asked when they
// began.
func (a *app) lastOf(ids []string) (r *tuneJSON, h *tuning.History, err error) {
	second := func(id string) string { return id[:min(len(id), len("060102-150405"))] }
	for _, id := range slices.Backward(ids) {
		if second(id) != second(ids[len(ids)-1]) {
			break
		}
		x, y, e := a.tuned(id)
		if e != nil {
			return nil, nil, e
		}
		if r == nil || x.Begin.At.After(r.Begin.At) {
			r, h = x, y
		}
	}
	return r, h, nil
}

// tunedJSON is a history as it is printed.
func tunedJSON(id string, h *tuning.History, alive bool) *tuneJSON {
	r := &tuneJSON{Schema: "fabricctl/tune/v1", ID: id, State: h.State(alive), Begin: h.Begin, Budget: h.Budget(), Decisions: h.Decisions, Notices: h.Notices, Outcome: h.End, Gate: h.Gate}
	for _, m := range h.Measures {
		r.Runs++
		if m.Rejected != nil {
			r.Rejected++
		}
	}
	return r
}

// seeTuned is the hint where an experiment is not there.
func (a *app) seeTuned() string { return a.command("tune", "list") + " shows the experiments" }

// isExperiment reports whether an experiment of the state directory is called id, begun or about to be.
func (a *app) isExperiment(id string) bool {
	dir, err := a.tuneDir()
	if err != nil || !tuneID.MatchString(id) {
		return false
	}
	_, err = os.Stat(tuneLockPath(dir, id))
	return err == nil
}

// tuneSummary is an experiment in a list.
type tuneSummary struct {
	ID       string         `json:"id"`
	State    tuning.State   `json:"state,omitempty"`
	Started  time.Time      `json:"started,omitzero"`
	Fabric   string         `json:"fabric,omitempty"`
	Runner   string         `json:"runner,omitempty"`
	Class    string         `json:"class,omitempty"`
	Workload string         `json:"workload,omitempty"`
	Runs     int            `json:"runs"`
	Verdict  tuning.Verdict `json:"verdict,omitempty"`
	Words    string         `json:"words,omitempty"`
	Error    string         `json:"error,omitempty"` // the journal cannot be read
}

// allTuned lists the experiments of the state directory, oldest first.
func (a *app) allTuned() ([]tuneSummary, error) {
	dir, err := a.tuneDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := []tuneSummary{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !tuneID.MatchString(id) {
			continue
		}
		r, _, err := a.tuned(id)
		if err != nil {
			all = append(all, tuneSummary{ID: id, Error: diag.OneLine(err.Error())})
			continue
		}
		s := tuneSummary{
			ID: id, State: r.State, Started: r.Begin.At, Fabric: r.Begin.Context.Fabric, Runner: r.Begin.Context.Runner,
			Class: r.Begin.Context.Class, Workload: cmp.Or(r.Begin.Load, r.Begin.Workload), Runs: r.Runs,
		}
		if o := r.Outcome; o != nil {
			s.Verdict, s.Words = o.Verdict, o.Words
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(x, y tuneSummary) int { return cmp.Or(x.Started.Compare(y.Started), cmp.Compare(x.ID, y.ID)) })
	return all, nil
}

// isFull reports whether an error is that of a full disk.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// diskWords is an error of a journal in words that help.
func diskWords(err error) error {
	if isFull(err) {
		return fail(exitError, "make room, or name another place with --state-dir", "the disk of the journal is full: %w", err)
	}
	return err
}

// notWritten is an error of a file that a user wants written.
func notWritten(path string, err error) error {
	if isFull(err) {
		return fail(exitError, "make room there, or name another file", "%s was not written: its disk is full: %w", path, err)
	}
	return fail(exitError, "", "%s was not written: %w", path, err)
}
