package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// holds fails unless a directory holds a file with text and mode, and as many files as are wanted.
func holds(t *testing.T, path, text string, mode fs.FileMode, files int) {
	t.Helper()
	b, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	entries, dirErr := os.ReadDir(filepath.Dir(path))
	if err := errors.Join(err, statErr, dirErr); err != nil {
		t.Fatal(err)
	}
	if string(b) != text || info.Mode().Perm() != mode || len(entries) != files {
		t.Errorf("%s holds %q with mode %o beside %v, want %q, %o, %d", path, b, info.Mode().Perm(), entries, text, mode, files)
	}
}

// TestWrite: a new file has the mode that the process gives or the one that is asked for, one that is there keeps its own, and nothing else is left.
func TestWrite(t *testing.T) {
	old := syscall.Umask(0o027)
	t.Cleanup(func() { syscall.Umask(old) })
	path := filepath.Join(t.TempDir(), "a")
	for _, x := range []struct {
		text       string
		mode, want fs.FileMode
	}{{"new", Kept, 0o640}, {"of its own mode", 0o604, 0o604}, {"kept", Kept, 0o604}, {"secret", 0o600, 0o600}} {
		if err := Write(path, []byte(x.text), x.mode); err != nil {
			t.Fatal(err)
		}
		holds(t, path, x.text, x.want, 1)
	}
}

// TestWriteNowhere: where there is no directory the error names it, and not a file that nobody has asked for.
func TestWriteNowhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := Write(filepath.Join(dir, "a"), nil, Kept); !errors.Is(err, fs.ErrNotExist) || err.Error() != "there is no directory "+dir {
		t.Errorf("got %v", err)
	}
}

// TestWriteOver: a directory is not replaced, and nothing stays beside it.
func TestWriteOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "a"), []byte("x"), Kept); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("got %v", err)
	}
	s, err := Stage(filepath.Join(dir, "a"), []byte("x"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(); err == nil {
		t.Error("a directory was replaced")
	}
	if err := s.Drop(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestStaged: two stages of one file are in nobody's way, also beside one of a process with our number that died; dropping takes away what
// was not settled, and what is new does not replace.
func TestStaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var staged []*Staged
	for _, text := range []string{"dead", "one", "two", "three"} {
		s, err := Stage(path, []byte(text), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(s.beside, filepath.Dir(path)+"/.a.") {
			t.Errorf("staged as %s", s.beside)
		}
		staged = append(staged, s)
	}
	if err := staged[1].SettleNew(); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "one", 0o600, 4)
	if err := staged[2].SettleNew(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
	if err := staged[3].Settle(); err != nil {
		t.Fatal(err)
	}
	for _, s := range staged {
		if err := s.Drop(); err != nil {
			t.Error(err)
		}
	}
	holds(t, path, "three", 0o600, 1)
}

// TestDropSettled: who drops what is settled takes nothing from the next that has its name.
func TestDropSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, settle := range []func(*Staged) error{(*Staged).Settle, (*Staged).SettleNew, (*Staged).Drop} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		first, err := Stage(path, []byte("first"), 0o600)
		if err == nil {
			err = settle(first)
		}
		if err != nil {
			t.Fatal(err)
		}
		next, err := Stage(path, []byte("next"), 0o600)
		if err != nil || next.beside != first.beside {
			t.Fatalf("%v, beside %s and not %s", err, next.beside, first.beside)
		}
		if err := errors.Join(first.Drop(), next.Settle()); err != nil {
			t.Error(err)
		}
		holds(t, path, "next", 0o600, 1)
	}
}

// TestWriteToPipe: what is no file is written to and not replaced. As root, a report for /dev/null would else have made a file of it.
func TestWriteToPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(path, os.O_RDWR, 0) // so that nobody waits for the other
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := Write(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe is %v, %v", info.Mode(), err)
	}
	b := make([]byte, 16)
	if n, err := r.Read(b); err != nil || string(b[:n]) != "text" {
		t.Errorf("%q came through, %v", b[:n], err)
	}
}
