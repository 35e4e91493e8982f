package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/witness"
)

func clock() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

type note struct {
	Text string `json:"text"`
}

// written is a log with n records.
func written(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(tempDir(t), "runs", "r1.jsonl")
	l, err := Create(path, Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := l.Append("note", note{fmt.Sprintf("record %d\nwith \"quotes\" and },\"sum\":\"", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLinesAreStable(t *testing.T) {
	b, err := os.ReadFile(written(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	// The format is read by later versions: changing it is a decision.
	want := `{"seq":1,"time":"2026-08-01T12:00:00Z","kind":"note","data":{"text":"record 0\nwith \"quotes\" and },\"sum\":\""},"sum":"a9c774ca7314ed72"}` + "\n"
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestModes(t *testing.T) {
	path := written(t, 1)
	for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700 | fs.ModeDir} {
		st, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode() != want {
			t.Errorf("%s has mode %v, want %v", filepath.Base(p), st.Mode(), want)
		}
	}
	if _, err := Create(path, Options{Now: clock}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a log: %v", err)
	}
}

// Cutting a log anywhere costs at most its last record, and appending goes on after it.
func TestTornAtEveryByte(t *testing.T) {
	whole, err := os.ReadFile(written(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tempDir(t), "torn.jsonl")
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		full := bytes.Count(whole[:cut], []byte("\n"))
		onLine := cut == 0 || whole[cut-1] == '\n'
		l, recs, dropped, err := Open(path, Options{Now: clock})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(recs) != full || (dropped == nil) != onLine {
			t.Fatalf("cut at %d: %d records, dropped %v; want %d", cut, len(recs), dropped, full)
		}
		if dropped != nil && dropped.Line != full+1 {
			t.Fatalf("cut at %d: line %d reported, want %d", cut, dropped.Line, full+1)
		}
		if err := errors.Join(l.Append("more", note{"on"}), l.Close()); err != nil {
			t.Fatal(err)
		}
		recs, dropped, err = ReadFile(path)
		if err != nil || dropped != nil || len(recs) != full+1 || recs[full].Kind != "more" {
			t.Fatalf("cut at %d: after append %d records, %v, %v", cut, len(recs), dropped, err)
		}
	}
}

// A changed byte is noticed wherever it is; in the last line it costs that line, before it is an error with its line.
func TestEveryByteCounts(t *testing.T) {
	whole, err := os.ReadFile(written(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		recs, dropped, err := Read(bytes.NewReader(bad))
		full := 2
		if i == last-1 { // without this newline the last two lines are one
			full = 1
		}
		if i >= last-1 {
			if err != nil || dropped == nil || len(recs) != full {
				t.Fatalf("byte %d of the last line: %d records, %v, %v", i, len(recs), dropped, err)
			}
			continue
		}
		line := bytes.Count(whole[:i], []byte("\n")) + 1
		var c *CorruptError
		if !errors.As(err, &c) || c.Line != line || len(recs) != line-1 {
			t.Fatalf("byte %d in line %d: %d records, %v", i, line, len(recs), err)
		}
	}
}

func TestMissingAndRepeatedLines(t *testing.T) {
	whole, err := os.ReadFile(written(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	l := strings.SplitAfter(string(whole), "\n")
	for name, text := range map[string]string{"missing": l[0] + l[2], "repeated": l[0] + l[0] + l[1], "swapped": l[1] + l[0]} {
		path := filepath.Join(tempDir(t), "x.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := Open(path, Options{Now: clock})
		if err == nil || !strings.Contains(err.Error(), path+": line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadBackProperty(t *testing.T) {
	dir := tempDir(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		texts := rapid.SliceOfN(rapid.String(), 0, 8).Draw(t, "texts")
		l, err := Create(path, Options{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			if err := l.Append("note", note{s}); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "reopen") {
				l.Close()
				if l, _, _, err = Open(path, Options{Now: clock}); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.Close()
		recs, dropped, err := ReadFile(path)
		if err != nil || dropped != nil {
			t.Fatal(dropped, err)
		}
		got := []string{}
		for _, r := range recs {
			var x note
			if err := r.Into(&x); err != nil {
				t.Fatal(err)
			}
			got = append(got, x.Text)
		}
		want := []string{}
		for _, s := range texts {
			want = append(want, strings.ToValidUTF8(s, "\ufffd"))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestHookAroundEachFsync(t *testing.T) {
	var points []string
	o := Options{Now: clock, Hook: func(p string) { points = append(points, p) }}
	l, err := Create(filepath.Join(tempDir(t), "x"), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append("a", 1), l.Append("b", 2), l.Close()); err != nil {
		t.Fatal(err)
	}
	pair := []string{"journal.fsync.before", "journal.fsync.after"}
	if d := cmp.Diff([]string{pair[0], pair[1], pair[0], pair[1], pair[0], pair[1]}, points); d != "" {
		t.Error(d)
	}
}

// failing is a file whose disk is full or broken.
type failing struct {
	*os.File
	room    int
	noFsync bool
}

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.room {
		n, _ := f.File.Write(b[:f.room])
		return n, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	f.room -= len(b)
	return f.File.Write(b)
}

func (f *failing) Sync() error {
	if f.noFsync {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO}
	}
	return f.File.Sync()
}

func TestDiskErrors(t *testing.T) {
	for name, c := range map[string]struct {
		room    int
		noFsync bool
		want    error
	}{
		"full at once":   {0, false, syscall.ENOSPC},
		"full in a line": {40, false, syscall.ENOSPC},
		"fsync":          {1000, true, syscall.EIO},
	} {
		path := written(t, 2)
		l, _, _, err := Open(path, Options{Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		f := &failing{l.f.(*os.File), c.room, c.noFsync}
		l.f = f
		if err := l.Append("note", note{"lost"}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		f.room, f.noFsync = 1000, false
		if err := l.Append("note", note{"after"}); !errors.Is(err, c.want) {
			t.Errorf("%s: a log with an unknown tail took another record: %v", name, err)
		}
		l.Close()
		recs, dropped, err := ReadFile(path)
		if len(recs) != 2 || dropped != nil || err != nil {
			t.Errorf("%s: left %d records, %v, %v", name, len(recs), dropped, err)
		}
	}
}

// The kernel's own words on a full disk and on a directory that cannot be written.
func TestKernelErrors(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		witness.Missing(t, "no /dev/full: "+err.Error())
	}
	l := &Log{path: "/dev/full", opt: Options{Now: clock}, f: f}
	if err := l.Append("x", 1); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
		t.Error(err)
	}
	if _, err := Create("/sys/fabricctl/runs/x", Options{Now: clock}); err == nil {
		t.Error("a log was made where none can be")
	}
}

func TestConcurrentAppends(t *testing.T) {
	path := filepath.Join(tempDir(t), "x")
	l, err := Create(path, Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if err := l.Append("note", i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	if recs, dropped, err := ReadFile(path); len(recs) != 40 || dropped != nil || err != nil {
		t.Error(len(recs), dropped, err)
	}
	if err := l.Append("note", 1); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// gathered appends n records to a log, all but one of them while that one is on its way to the disk. The file is as
// disk makes it, and end is called when the first fsync has been waited for.
func gathered(t *testing.T, n int, disk func(*os.File) file, end func()) (errs []error, fsyncs int, path string) {
	t.Helper()
	path = filepath.Join(tempDir(t), "x")
	l, err := Create(path, Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	l.f = disk(l.f.(*os.File))
	begun, taken := make(chan struct{}), make(chan struct{}, n)
	l.opt.Now = func() time.Time { taken <- struct{}{}; return clock() }
	l.opt.Hook = func(p string) {
		if p != "journal.fsync.before" {
			return
		}
		if fsyncs++; fsyncs == 1 {
			close(begun)
			for range n {
				<-taken
			}
			end()
		}
	}
	errs = make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = errors.New("it never came back")
			errs[i] = l.Append("note", i)
		})
		<-begun // by the first one
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return errs, fsyncs, path
}

func sound(f *os.File) file { return f }

// Records that come while another one is on its way to the disk share an fsync.
func TestRecordsShareAnFsync(t *testing.T) {
	errs, fsyncs, path := gathered(t, 8, sound, func() {})
	if err := errors.Join(errs...); err != nil || fsyncs != 2 {
		t.Errorf("%d fsyncs, %v", fsyncs, err)
	}
	if recs, dropped, err := ReadFile(path); len(recs) != 8 || dropped != nil || err != nil {
		t.Error(len(recs), dropped, err)
	}
}

// A disk that fails for one of them fails for all that share it, and none is left.
func TestRecordsShareAFailure(t *testing.T) {
	one := int64(len(`{"seq":1,"time":"2026-08-01T12:00:00Z","kind":"note","data":0,"sum":"0123456789abcdef"}`)) + 1
	for _, room := range []int64{0, one, 3 * one} {
		errs, _, path := gathered(t, 8, func(f *os.File) file { return &failing{f, int(room), false} }, func() {})
		good := 0
		for _, err := range errs {
			if err == nil {
				good++
			} else if !errors.Is(err, syscall.ENOSPC) {
				t.Error(err)
			}
		}
		recs, dropped, err := ReadFile(path)
		if want := int(min(room/one, 1)); good != want || len(recs) != want || dropped != nil || err != nil {
			t.Errorf("room for %d bytes: %d appended, %d left, %v, %v", room, good, len(recs), dropped, err)
		}
	}
}

// Who waits for a record that is never finished is told so, and does not wait for ever.
func TestWriterThatDies(t *testing.T) {
	errs, _, path := gathered(t, 8, sound, runtime.Goexit)
	for i, err := range errs {
		if err == nil {
			t.Errorf("record %d is said to be on the disk", i)
		}
	}
	if recs, _, err := ReadFile(path); len(recs) != 0 || err != nil {
		t.Errorf("%d records, %v", len(recs), err)
	}
}

// counted is a new log that counts its fsyncs, and says on taken that a record is about to be taken.
func counted(t *testing.T, wait time.Duration) (l *Log, fsyncs *int, taken chan struct{}) {
	t.Helper()
	fsyncs, taken = new(int), make(chan struct{}, 8)
	l, err := Create(filepath.Join(tempDir(t), "x"), Options{
		Now: func() time.Time { taken <- struct{}{}; return clock() },
		Hook: func(p string) {
			if p == "journal.fsync.before" {
				*fsyncs++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	*fsyncs, l.wait = 0, wait
	return l, fsyncs, taken
}

// kinds are those of the records on the disk.
func (l *Log) kinds(t *testing.T) string {
	t.Helper()
	recs, dropped, err := ReadFile(l.path)
	if dropped != nil || err != nil {
		t.Fatal(dropped, err)
	}
	var ks []string
	for _, r := range recs {
		ks = append(ks, r.Kind)
	}
	return strings.Join(ks, " ")
}

// A record that is put goes with the next one, or when the log is closed, and not before.
func TestPut(t *testing.T) {
	l, fsyncs, _ := counted(t, 0)
	if err := l.Put("a", 1); err != nil || *fsyncs != 0 || l.kinds(t) != "" {
		t.Errorf("put: %v, %d fsyncs, on the disk: %q", err, *fsyncs, l.kinds(t))
	}
	if err := l.Append("b", 1); err != nil || *fsyncs != 1 || l.kinds(t) != "a b" {
		t.Errorf("appended: %v, %d fsyncs, on the disk: %q", err, *fsyncs, l.kinds(t))
	}
	if err := errors.Join(l.Put("c", 1), l.Close()); err != nil || l.kinds(t) != "a b c" {
		t.Errorf("closed: %v, on the disk: %q", err, l.kinds(t))
	}

	l, _, _ = counted(t, 0)
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if err := l.Put("a", 1); !errors.Is(err, ErrGone) {
		t.Errorf("put into a file that was removed: %v", err)
	}
	if err := l.Close(); !errors.Is(err, ErrGone) {
		t.Errorf("close of a file that was removed: %v", err)
	}
}

// A record that has time is brought to the disk by the next one, or else when there is no more time.
func TestAppendSoon(t *testing.T) {
	l, fsyncs, taken := counted(t, time.Hour)
	soon := make(chan error)
	go func() { soon <- l.AppendSoon("soon", 1, nil) }()
	<-taken
	if err := errors.Join(l.Append("next", 1), <-soon); err != nil || *fsyncs != 1 || l.kinds(t) != "soon next" {
		t.Errorf("with another: %v, %d fsyncs, on the disk: %q", err, *fsyncs, l.kinds(t))
	}
	now := make(chan struct{})
	go func() { soon <- l.AppendSoon("alone", 1, now) }()
	<-taken // of next
	<-taken
	close(now)
	if err := <-soon; err != nil || *fsyncs != 2 || l.kinds(t) != "soon next alone" {
		t.Errorf("told to hurry: %v, %d fsyncs, on the disk: %q", err, *fsyncs, l.kinds(t))
	}
	l.wait = 0
	if err := l.AppendSoon("late", 1, nil); err != nil || *fsyncs != 3 || l.kinds(t) != "soon next alone late" {
		t.Errorf("out of time: %v, %d fsyncs, on the disk: %q", err, *fsyncs, l.kinds(t))
	}
	l.f = &failing{l.f.(*os.File), 0, false}
	if err := l.AppendSoon("lost", 1, nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	whole, err := os.ReadFile(written(f, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("{}\n{}\n"))
	f.Add([]byte(`{"seq":1` + sumStart + sum([]byte(`{"seq":1`)) + sumEnd + "\n"))
	f.Add([]byte(`[1` + sumStart + sum([]byte(`[1`)) + sumEnd + "\nx\n"))
	f.Add([]byte("\n\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		recs, dropped, err := Read(bytes.NewReader(b))
		if dropped != nil && err != nil {
			t.Fatal("both a dropped line and an error")
		}
		for i, r := range recs {
			if r.Seq != uint64(i+1) {
				t.Fatalf("record %d has number %d", i+1, r.Seq)
			}
		}
		if lines := bytes.Count(b, []byte("\n")); len(recs) > lines {
			t.Fatalf("%d records from %d lines", len(recs), lines)
		}
	})
}

// tempDir is a directory in memory where the system has one: fsync on a busy disk takes most of these tests' time.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
