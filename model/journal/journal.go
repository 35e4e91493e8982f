// Package journal is the memory that survives kill -9: an append-only log of JSON lines, and a lease file.
//
// A log (Create, Open, Append, Read) is written one record at a time, each with a sequence number and a checksum, and
// Append returns only when the record is on the disk: what a record announces may be done only after that. A last
// line that was not written whole is dropped and reported, since nothing can have been done on its strength; damage
// anywhere else is an error that names the line.
//
// A lease (Acquire, Check, Release) says who may work on a fabric. Each holder gets a higher fence number than the
// one before, so a holder that was taken for dead finds out at its next Check.
//
// The package keeps no state of its own: the clock and the failpoint hook are parameters.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Hook is called at named points: before something is written and synced, and after: "journal.fsync.before",
// "journal.fsync.after", "lease.fsync.before", "lease.fsync.after". Nil does nothing. Tests use it to die at a point of
// their choice.
type Hook func(point string)

func (h Hook) at(point string) {
	if h != nil {
		h(point)
	}
}

// Options are what a log or a lease takes from its surroundings.
type Options struct {
	Now  func() time.Time // clock; records and leases carry UTC
	Hook Hook             // failpoints, may be nil
}

// Record is one line of a log.
type Record struct {
	Seq  uint64          `json:"seq"` // from 1, without gaps
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Into decodes the data of r.
func (r Record) Into(v any) error {
	if err := json.Unmarshal(r.Data, v); err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return nil
}

// Dropped is a last line that was not written whole.
type Dropped struct {
	Line  int // from 1
	Bytes int // how many were dropped
}

func (d *Dropped) String() string {
	return fmt.Sprintf("line %d was not written whole and is ignored (%d bytes)", d.Line, d.Bytes)
}

// CorruptError is damage that a crash cannot explain.
type CorruptError struct {
	Path string // may be ""
	Line int    // from 1
	Why  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s: line %d is damaged: %s", e.Path, e.Line, e.Why)
}

// A line is the JSON of its record with the checksum as the last member: {…,"sum":"0123456789abcdef"}.
const (
	sumStart = `,"sum":"`
	sumEnd   = `"}`
	sumLen   = len(sumStart) + 16 + len(sumEnd)
)

// sum is the first 8 bytes of the SHA-256 of the record's JSON without its closing brace, in hex.
func sum(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:8])
}

// encode is the line of a record whose data json.Marshal has made: a plan is megabytes, and need not be looked through
// again.
func encode(r Record) ([]byte, error) {
	b, err := json.Marshal(struct {
		Seq  uint64    `json:"seq"`
		Time time.Time `json:"time"`
		Kind string    `json:"kind"`
	}{r.Seq, r.Time, r.Kind})
	if err != nil {
		return nil, err
	}
	const data = `,"data":`
	b = slices.Grow(b[:len(b)-1], len(data)+len(r.Data)+sumLen+1)
	b = append(append(b, data...), r.Data...)
	return append(b, sumStart+sum(b)+sumEnd+"\n"...), nil
}

// decode reads one line without its newline. whole is false when the line is not one that encode has written.
func decode(line []byte) (r Record, whole bool) {
	if len(line) < sumLen {
		return r, false
	}
	body, tail := line[:len(line)-sumLen], line[len(line)-sumLen:]
	if string(tail) != sumStart+sum(body)+sumEnd {
		return r, false
	}
	return r, json.Unmarshal(append(bytes.Clone(body), '}'), &r) == nil
}

// Read reads a log. dropped is nil unless the last line was not written whole. Any other damage is a *CorruptError,
// with the records before it; of a first line that is the last one too, all that is not the beginning of a record is
// damage, since who reads nothing would take it that nothing was done. Hostile content never panics.
func Read(r io.Reader) (records []Record, dropped *Dropped, err error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, fmt.Errorf("journal: read: %w", err)
	}
	for line := 1; len(b) > 0; line++ {
		text, rest, ended := bytes.Cut(b, []byte("\n"))
		rec, whole := decode(text)
		switch {
		case !whole && line == 1 && len(rest) == 0 && (ended || !begins(text)):
			return nil, nil, &CorruptError{Line: line, Why: "it is not a record, nor the beginning of one"}
		case (!whole || !ended) && len(rest) == 0:
			return records, &Dropped{Line: line, Bytes: len(b)}, nil
		case !whole:
			return records, nil, &CorruptError{Line: line, Why: "its checksum does not match"}
		case rec.Seq != uint64(line):
			return records, nil, &CorruptError{Line: line, Why: fmt.Sprintf("record %d stands here", rec.Seq)}
		}
		records, b = append(records, rec), rest
	}
	return records, nil, nil
}

// begins reports whether text is how the first record of a log begins, as far as it goes.
func begins(text []byte) bool {
	const first = `{"seq":1,"time":"`
	n := min(len(text), len(first))
	return string(text[:n]) == first[:n]
}

// Salvage is what can be read of the log at path, whatever is damaged in it: the records that stand whole on a line of
// their own, in the order in which they stand, and the number of lines. Numbers may be missing.
func Salvage(path string) (records []Record, lines int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("journal: %w", err)
	}
	for text := range bytes.Lines(b) {
		lines++
		if r, whole := decode(bytes.TrimSuffix(text, []byte("\n"))); whole {
			records = append(records, r)
		}
	}
	return records, lines, nil
}

// ReadFile reads the log at path, which may be in use.
func ReadFile(path string) ([]Record, *Dropped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	return readNamed(f, path)
}

func readNamed(r io.Reader, path string) ([]Record, *Dropped, error) {
	recs, dropped, err := Read(r)
	var c *CorruptError
	if errors.As(err, &c) {
		c.Path = path
	}
	return recs, dropped, err
}

// ErrGone is returned by Append when the file of the log was removed or replaced: what was written is nowhere.
var ErrGone = errors.New("the journal has vanished")

// file is what Log needs of *os.File.
type file interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(int64) error
}

// Log is a log open for appending. It may be used by several goroutines; their records share an fsync where they come
// together. After an error of the disk it refuses every further record: what a failed fsync left behind is not known.
//
// Lock order: turn, mu.
type Log struct {
	path string
	opt  Options
	wait time.Duration // company, but in tests

	turn sync.Mutex // held by who writes to the disk
	f    file
	size int64
	err  error // the first error of the disk

	mu   sync.Mutex
	seq  uint64 // of the last record that was taken, written or not
	next *batch // records that wait for their turn; nil when none do
}

// batch is records that go to the disk together, in one write: of an unfinished one, a crash leaves the start.
type batch struct {
	lines []byte
	begun bool          // somebody writes it, or has
	err   error         // of all its records, once it was begun
	done  chan struct{} // closed when it was written, or could not be
}

// company is how long AppendSoon waits for another record to share an fsync with.
const company = 5 * time.Millisecond

// errUnfinished is the state of a batch whose writer never came back.
var errUnfinished = errors.New("the record before was not finished")

// Create makes a new log with mode 0600, and its directory with mode 0700 when it is missing. The log exists on the
// disk when Create returns. An existing file is an error (errors.Is(err, fs.ErrExist)).
func Create(path string, o Options) (*Log, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	o.Hook.at("journal.fsync.before")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := errors.Join(f.Sync(), syncDir(dir), syncDir(filepath.Dir(dir))); err != nil {
		return nil, fmt.Errorf("journal: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	o.Hook.at("journal.fsync.after")
	return &Log{path: path, opt: o, wait: company, f: f}, nil
}

// Open opens a log to append to it, and returns what it holds. A last line that was not written whole is removed from
// the file and reported.
func Open(path string, o Options) (*Log, []Record, *Dropped, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("journal: %w", err)
	}
	recs, dropped, err := readNamed(f, path)
	if err != nil {
		f.Close()
		return nil, recs, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, recs, dropped, fmt.Errorf("journal: %w", err)
	}
	l := &Log{path: path, opt: o, wait: company, f: f, size: st.Size(), seq: uint64(len(recs))}
	if dropped != nil {
		l.size -= int64(dropped.Bytes)
		o.Hook.at("journal.fsync.before")
		err := errors.Join(f.Truncate(l.size), f.Sync())
		o.Hook.at("journal.fsync.after")
		if err != nil {
			f.Close()
			return nil, recs, dropped, fmt.Errorf("journal: remove line %d of %s: %w", dropped.Line, path, err)
		}
	}
	return l, recs, dropped, nil
}

// Append writes a record and returns when it is on the disk. data must not hold secrets. When the disk is full the
// record is taken out again and the error satisfies errors.Is(err, syscall.ENOSPC); when the file is not there any more,
// errors.Is(err, ErrGone).
func (l *Log) Append(kind string, data any) error {
	b, err := l.take(kind, data)
	if err != nil {
		return err
	}
	return l.bring(b)
}

// AppendSoon is Append of a record that nothing hangs on yet: it leaves it to another one to bring it to the disk, for a
// few milliseconds, or until now is closed.
func (l *Log) AppendSoon(kind string, data any, now <-chan struct{}) error {
	b, err := l.take(kind, data)
	if err != nil {
		return err
	}
	late := time.NewTimer(l.wait)
	defer late.Stop()
	select {
	case <-b.done:
	case <-now:
	case <-late.C:
	}
	return l.bring(b)
}

// Put leaves a record to the next that is appended, which is on the disk only with this one before it, or to Close. Nil
// means that the file is still there, and not that the record is in it.
func (l *Log) Put(kind string, data any) error {
	if _, err := l.take(kind, data); err != nil {
		return err
	}
	return l.there()
}

// take puts a record into the batch that is written next.
func (l *Log) take(kind string, data any) (*batch, error) {
	d, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("journal record %s: %w", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line, err := encode(Record{Seq: l.seq + 1, Time: l.opt.Now().UTC(), Kind: kind, Data: d})
	if err != nil {
		return nil, fmt.Errorf("journal record %s: %w", kind, err)
	}
	l.seq++
	if l.next == nil {
		l.next = &batch{lines: line, done: make(chan struct{})}
	} else {
		l.next.lines = append(l.next.lines, line...)
	}
	return l.next, nil
}

// bring returns when a batch is on the disk, or cannot be.
func (l *Log) bring(b *batch) error {
	l.turn.Lock() // while another batch is written, more records join this one
	defer l.turn.Unlock()
	if !b.begun {
		l.write(b)
	}
	return b.err
}

// write brings a batch to the disk, and says in it how that went. It is called by who has the turn.
func (l *Log) write(b *batch) {
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	b.begun = true
	defer close(b.done)
	if l.err != nil {
		b.err = fmt.Errorf("journal %s is closed to writing since: %w", l.path, l.err)
		return
	}
	b.err, l.err = errUnfinished, errUnfinished // for the others, should a failpoint end this goroutine
	l.opt.Hook.at("journal.fsync.before")
	_, err := l.f.Write(b.lines)
	if err == nil {
		err = errors.Join(l.f.Sync(), l.there())
	}
	l.opt.Hook.at("journal.fsync.after")
	b.err, l.err = nil, err
	if err != nil {
		b.err = fmt.Errorf("journal: %w", errors.Join(err, l.f.Truncate(l.size)))
		return
	}
	l.size += int64(len(b.lines))
}

// there makes sure that the path still leads to the file that is written.
func (l *Log) there() error {
	ours, err := l.f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(l.path); err != nil || !os.SameFile(ours, named) {
		return fmt.Errorf("%w: %s", ErrGone, l.path)
	}
	return nil
}

// Close writes what was put, and closes the file. Appending afterwards is an error.
func (l *Log) Close() error {
	l.mu.Lock()
	rest := l.next
	l.mu.Unlock()
	var err error
	if rest != nil {
		err = l.bring(rest)
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.err == nil {
		l.err = os.ErrClosed
	}
	return errors.Join(err, l.f.Close())
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
