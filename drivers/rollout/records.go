package rollout

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
)

// The records of a run's journal, by kind:
//
//	run      what is to be done: the plan whole, and the leaves given
//	attempt  somebody starts to work on it: apply, resume or rollback
//	begin    a transaction is about to be sent; without a later "done" its outcome is unknown
//	done     the transaction is in force, read back over a new connection
//	drain    traffic is about to be taken off a device
//	drained  what came of it
//	undrain  traffic was let back, or could not be; without one, and without an error in it, the device is still drained
//	save     the running configuration is about to be saved
//	result   what is known about a device at the end of the attempt
//	end      the attempt is over
const (
	recRun     = "run"
	recAttempt = "attempt"
	recBegin   = "begin"
	recDone    = "done"
	recDrain   = "drain"
	recDrained = "drained"
	recUndrain = "undrain"
	recSave    = "save"
	recResult  = "result"
	recEnd     = "end"
)

type runRecord struct {
	ID      string           `json:"id"`
	Plan    *Plan            `json:"plan"`
	Options ApplyOptions     `json:"options"`
	Intents []*intent.Device `json:"intents,omitempty"` // of the devices with steps: what a run is finished or undone by; a platform's profile is in its first one. Not a stable format
}

// headOf is the record of a run that is about to begin.
func headOf(id string, p *Plan, o ApplyOptions) runRecord {
	r := runRecord{ID: id, Plan: p, Options: o}
	said := map[string]bool{} // platforms
	for i := range p.Devices {
		if d := &p.Devices[i]; len(d.Steps) > 0 {
			in := *d.Intent
			if said[in.Platform] {
				in.Profile = intent.Device{}.Profile
			}
			said[in.Platform] = true
			r.Intents = append(r.Intents, &in)
		}
	}
	return r
}

// whole makes a plan of the record that was read.
func (r *runRecord) whole() error {
	if r.Plan == nil {
		return errors.New("it has no plan")
	}
	if r.Plan.Schema != PlanSchema {
		return fmt.Errorf("its plan is of schema %q, this version of fabricctl reads %q", r.Plan.Schema, PlanSchema)
	}
	first := map[string]*intent.Device{} // by platform
	for _, in := range r.Intents {
		if in == nil {
			return errors.New("an intent is missing")
		}
		if like := first[in.Platform]; like != nil {
			in.Profile = like.Profile
		} else {
			first[in.Platform] = in
		}
		if d := r.Plan.Device(in.Name); d != nil {
			d.Intent = in
		}
	}
	return cmp.Or(r.Plan.check(), r.Plan.bound())
}

type attemptRecord struct {
	Kind  Kind   `json:"kind"`
	Owner string `json:"owner"`
	Fence uint64 `json:"fence"`
	Tool  string `json:"tool"`
}

type stepRecord struct {
	Device string        `json:"device"`
	Step   int           `json:"step"` // from 0
	Undo   bool          `json:"undo,omitempty"`
	Tx     drivers.TxID  `json:"tx"`
	Within time.Duration `json:"within,omitempty"` // confirm window in ns; 0 = none
}

type saveRecord struct {
	Device string `json:"device"`
}

type drainRecord struct {
	Device string   `json:"device"`
	Ports  []string `json:"ports,omitempty"`
	Said   string   `json:"said,omitempty"`
	Error  string   `json:"error,omitempty"`
}

type endRecord struct {
	Interrupted bool     `json:"interrupted,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

// story is what a journal tells.
type story struct {
	head     runRecord
	attempts []*Run
	begun    map[string]bool // devices to which a transaction may have been sent
	open     map[string]bool // devices whose last transaction has no "done"
	saved    map[string]bool // devices whose configuration may have been saved
	drained  map[string]bool // devices that may be drained still
	last     map[string]Result
	txs      map[drivers.TxID]stepRecord
	records  int
	torn     *journal.Dropped
}

// ErrUnwritten is that the journal of a run is there, and empty.
var ErrUnwritten = errors.New("the run died before it was written down: no device was touched, unless somebody emptied its journal since")

// tell reads the records of one run.
func tell(recs []journal.Record, torn *journal.Dropped) (*story, error) {
	s := &story{
		begun: map[string]bool{}, open: map[string]bool{}, saved: map[string]bool{}, drained: map[string]bool{}, last: map[string]Result{},
		txs: map[drivers.TxID]stepRecord{}, records: len(recs), torn: torn,
	}
	switch {
	case len(recs) == 0:
		return nil, ErrUnwritten
	case recs[0].Kind != recRun:
		return nil, &journal.CorruptError{Line: 1, Why: "it is not the record of a run"}
	}
	for _, r := range recs {
		if err := s.add(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *story) add(r journal.Record) error {
	switch r.Kind {
	case recRun:
		if err := r.Into(&s.head); err != nil {
			return err
		}
		if err := s.head.whole(); err != nil {
			return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
		}
		return nil
	case recAttempt:
		var x attemptRecord
		if err := r.Into(&x); err != nil {
			return err
		}
		s.attempts = append(s.attempts, &Run{
			ID: s.head.ID, Fabric: s.head.Plan.Fabric, Kind: x.Kind, Owner: x.Owner,
			Fence: x.Fence, Started: r.Time,
		})
	case recBegin, recDone:
		var x stepRecord
		if err := r.Into(&x); err != nil {
			return err
		}
		if d := s.head.Plan.Device(x.Device); d == nil || x.Step < 0 || x.Step >= len(d.Steps) {
			return fmt.Errorf("journal record %d is about step %d of %s, which the plan does not have", r.Seq, x.Step, x.Device)
		}
		if r.Kind == recBegin {
			s.txs[x.Tx] = x
			s.begun[x.Device] = true
		}
		s.open[x.Device] = r.Kind == recBegin
	case recSave:
		var x saveRecord
		if err := r.Into(&x); err != nil {
			return err
		}
		s.saved[x.Device] = true
	case recDrain, recDrained, recUndrain:
		var x drainRecord
		if err := r.Into(&x); err != nil {
			return err
		}
		s.drained[x.Device] = r.Kind != recUndrain || x.Error != ""
	case recResult:
		var x Result
		if err := r.Into(&x); err != nil {
			return err
		}
		s.last[x.Device] = x
		if x.Outcome != Unknown && x.Outcome != NeedsHands { // the device was read since
			s.open[x.Device] = false
		}
		if n := len(s.attempts); n > 0 {
			s.attempts[n-1].Results = append(s.attempts[n-1].Results, x)
		}
	case recEnd:
		var x endRecord
		if err := r.Into(&x); err != nil {
			return err
		}
		if n := len(s.attempts); n > 0 {
			a := s.attempts[n-1]
			a.Ended, a.Interrupted, a.Notes = r.Time, x.Interrupted, x.Notes
		}
	default:
		return fmt.Errorf("journal record %d is of kind %q, which this version of fabricctl does not know", r.Seq, r.Kind)
	}
	return nil
}

var (
	idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,27}$`)
	txPattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9-]{0,27})-t([0-9]{1,9})$`)
)

// txID is the n-th transaction of a run.
func txID(run string, n int) drivers.TxID { return drivers.TxID(run + "-t" + strconv.Itoa(n)) }

func runsDir(stateDir string) string { return filepath.Join(stateDir, "runs") }

// LeasesDir is where the leases of a state directory are, for journal.Leases and journal.Break.
func LeasesDir(stateDir string) string { return filepath.Join(stateDir, "leases") }

func runPath(stateDir, id string) string { return filepath.Join(runsDir(stateDir), id+".jsonl") }

// runOf is the run that a transaction belongs to by its name, "" when it has none.
func runOf(tx drivers.TxID) string {
	if m := txPattern.FindStringSubmatch(string(tx)); m != nil {
		return m[1]
	}
	return ""
}

// ours reports whether the transaction stands in a journal of the state directory.
func ours(stateDir string, tx drivers.TxID) bool { return storyOf(stateDir, tx) != nil }

// storyOf is what the journal tells in which a transaction stands; nil when there is none.
func storyOf(stateDir string, tx drivers.TxID) *story {
	id := runOf(tx)
	if id == "" {
		return nil
	}
	recs, torn, err := journal.ReadFile(runPath(stateDir, id))
	if err != nil {
		return nil
	}
	s, err := tell(recs, torn)
	if err != nil {
		return nil
	}
	if _, ok := s.txs[tx]; !ok {
		return nil
	}
	return s
}

// sortedResults puts results in the order of the plan.
func sortedResults(p *Plan, rs []Result) {
	index := make(map[string]int, len(p.Devices))
	for i, d := range p.Devices {
		index[d.Name] = i
	}
	sort.SliceStable(rs, func(i, j int) bool { return index[rs[i].Device] < index[rs[j].Device] })
}
