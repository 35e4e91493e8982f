// Package whole writes files whole or not at all: what is read is the file before, or the file after, also when the process or the machine dies
// between. Write is for one file. Of several that belong together each is staged first, so that one that cannot be written leaves the
// others as they are, and settled then.
package whole

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Kept is the mode of a file that is there already, and of a new one what the process gives (0644 less its umask).
const Kept fs.FileMode = 0

// Write writes b to path, with a mode or Kept. What is no file, as /dev/stdout or a pipe, is written to, and not replaced. The error is
// fs.ErrNotExist by errors.Is where the directory is not there, and names it.
func Write(path string, b []byte, mode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	}
	s, err := Stage(path, b, mode)
	if err != nil {
		return err
	}
	return errors.Join(s.Settle(), s.Drop())
}

// Staged is a file that is on the disk, beside its place.
type Staged struct {
	beside, path string
	gone         bool // from beside: it is settled or dropped, and the name may be another's
}

// Stage writes b to a new file beside path, with a mode or Kept; it is on the disk when Stage returns. Whoever stages settles or drops.
func Stage(path string, b []byte, mode fs.FileMode) (*Staged, error) {
	if info, err := os.Stat(path); err == nil && mode == Kept {
		mode = info.Mode().Perm()
	}
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	s := &Staged{beside: f.Name(), path: path}
	_, err = f.Write(b)
	if mode != Kept {
		err = errors.Join(err, f.Chmod(mode))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, s.Drop())
	}
	return s, nil
}

// create makes a new file in the directory of path, whose name is nobody's: not of another process, another call, or one that died.
func create(path string) (*os.File, error) {
	dir, base := filepath.Dir(path), filepath.Base(path)
	base = base[:min(len(base), 64)]
	for i := 0; ; i++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d-%d.new", base, os.Getpid(), i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, missing(dir)
		}
		return f, err
	}
}

// missing is the error of a directory that is not there.
type missing string

func (m missing) Error() string { return "there is no directory " + string(m) }

// Is reports whether target is fs.ErrNotExist.
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// Settle puts the file in its place, over what is there.
func (s *Staged) Settle() error {
	if err := os.Rename(s.beside, s.path); err != nil {
		return err
	}
	s.gone = true
	return s.sync()
}

// SettleNew puts the file in its place where none is: else the error is fs.ErrExist by errors.Is, and what is there stays.
func (s *Staged) SettleNew() error {
	if err := os.Link(s.beside, s.path); err != nil { // unlike a rename it does not replace
		return err
	}
	return errors.Join(s.Drop(), s.sync())
}

// sync has the directory on the disk.
func (s *Staged) sync() error {
	dir, err := os.Open(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Drop removes what was staged and not settled.
func (s *Staged) Drop() error {
	if s.gone {
		return nil
	}
	if err := os.Remove(s.beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.gone = true
	return nil
}
