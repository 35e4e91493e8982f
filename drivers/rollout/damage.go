package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
)

// DamagedError is a run whose journal was damaged after it was written, which no crash does: the run can be neither
// finished nor taken back, and what its devices hold is not known. It says what the lines that can still be read tell.
type DamagedError struct {
	ID       string
	Path     string    // of the journal
	Line     int       // the first damaged one, from 1
	Lines    int       // of the journal
	Readable int       // lines that are records
	Sent     []string  // devices to which a transaction may have been sent, by those records
	Others   []string  // devices with steps of which they say nothing, when the plan is among them
	Planned  bool      // the plan is among them
	Latest   time.Time // of those records; zero when there are none
	Err      error     // the damage
}

// Error is one line: the damage, what can be read, and which devices may have been written to.
func (e *DamagedError) Error() string {
	s := e.Err.Error()
	if e.Readable == 0 {
		return s + "; nothing of it can be read, and which devices the run wrote to is not known"
	}
	s += fmt.Sprintf("; %d of its %s can be read: ", e.Readable, diag.Count(e.Lines, "line"))
	switch {
	case len(e.Sent) == 0 && !e.Planned:
		return s + "which devices the run wrote to is not known"
	case len(e.Sent) == 0:
		return s + "it may have written to " + some(e.Others)
	}
	s += "it may have written to " + some(e.Sent)
	switch {
	case !e.Planned:
		return s + ", and to others"
	case len(e.Others) > 0:
		return s + "; by what is lost also to " + some(e.Others)
	}
	return s
}

// Unwrap is the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// Hint is what to do about it.
func (e *DamagedError) Hint() string {
	device := "DEVICE"
	if all := slices.Concat(e.Sent, e.Others); len(all) > 0 {
		device = all[0]
	}
	return "fabricctl plan shows what the devices hold and the model wants, fabricctl doctor " + device + " looks at one; runs resume and runs rollback need " +
		e.Path + " as it was, from a backup"
}

// concerns reports whether the run may have been sent to one of devices after a time, as far as can be read.
func (e *DamagedError) concerns(devices map[string]bool, after time.Time) (device string) {
	if !e.Latest.After(after) {
		return ""
	}
	for _, d := range slices.Concat(e.Sent, e.Others) {
		if devices[d] {
			return d
		}
	}
	return ""
}

// some is names in a list, cut after five.
func some(names []string) string {
	const most = 5
	if n := len(names) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}

// damaged adds to an error of reading a journal what can be read of it, where it is damage.
func damaged(id, path string, err error) error {
	var c *journal.CorruptError
	if !errors.As(err, &c) {
		return err
	}
	c.Path = path
	recs, lines, readErr := journal.Salvage(path)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	e := &DamagedError{ID: id, Path: path, Line: c.Line, Lines: lines, Readable: len(recs), Err: err}
	var planned []string
	for _, r := range recs {
		if r.Time.After(e.Latest) {
			e.Latest = r.Time
		}
		switch r.Kind {
		case recRun:
			var x runRecord
			if r.Into(&x) != nil || x.whole() != nil {
				continue
			}
			e.Planned = true
			for i := range x.Plan.Devices {
				if d := &x.Plan.Devices[i]; len(d.Steps) > 0 {
					planned = append(planned, d.Name)
				}
			}
		case recBegin:
			var x stepRecord
			if r.Into(&x) == nil && x.Device != "" && !slices.Contains(e.Sent, x.Device) {
				e.Sent = append(e.Sent, x.Device)
			}
		}
	}
	for _, d := range planned {
		if !slices.Contains(e.Sent, d) {
			e.Others = append(e.Others, d)
		}
	}
	slices.Sort(e.Sent)
	slices.Sort(e.Others)
	return e
}
