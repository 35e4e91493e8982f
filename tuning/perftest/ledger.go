package perftest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/model/journal"
)

// Ledger is the list of processes that were begun on hosts and have not been seen to end, on the disk: who finds it after a
// kill -9 can say what was left, and end that and nothing else.
type Ledger struct {
	mu  sync.Mutex
	log *journal.Log
}

const (
	kindBegan = "process-began"
	kindEnded = "process-ended"
)

// OpenLedger opens the ledger at path, or makes it; one that lists nothing is begun anew. left is what whoever had it before has begun and
// not seen end. One fabricctl at a time may have it.
func OpenLedger(path string, o journal.Options) (l *Ledger, left []Process, err error) {
	log, records, _, err := journal.Open(path, o)
	if err == nil {
		if left, err = leftOf(records); err == nil && len(left) > 0 {
			return &Ledger{log: log}, left, nil
		}
		if err = errors.Join(err, log.Close()); err == nil {
			err = os.Remove(path)
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		log, err = journal.Create(path, o)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list of processes: %w", err)
	}
	return &Ledger{log: log}, nil, nil
}

// leftOf are the processes that were begun and not seen to end.
func leftOf(records []journal.Record) (left []Process, err error) {
	for _, r := range records {
		var p Process
		if err := r.Into(&p); err != nil {
			return nil, err
		}
		switch r.Kind {
		case kindBegan:
			left = append(left, p)
		case kindEnded:
			left = slices.DeleteFunc(left, func(x Process) bool { return x == p })
		}
	}
	return left, nil
}

// began and ended write about a process; a nil Ledger remembers nothing.
func (l *Ledger) began(p Process) error { return l.append(kindBegan, p) }
func (l *Ledger) ended(p Process) error { return l.append(kindEnded, p) }

func (l *Ledger) append(kind string, p Process) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.log.Append(kind, p); err != nil {
		return fmt.Errorf("list of processes: %w", err)
	}
	return nil
}

// Close closes the ledger.
func (l *Ledger) Close() error {
	if l == nil {
		return nil
	}
	return l.log.Close()
}
