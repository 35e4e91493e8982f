package netlink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile is far above any nccl.conf, and far below what would hurt.
const maxFile = 1 << 20

// file is a small text file that others edit too.
type file struct{ path string }

// read is the text; a file that does not exist has none. A symbolic link is followed, as its readers do; what is not
// a regular file in the end is refused without being opened for long (a FIFO would block).
func (f file) read() ([]byte, error) {
	b, _, err := f.load()
	return b, err
}

func (f file) load() ([]byte, fs.FileInfo, error) {
	r, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", f.path)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", f.path, maxFile)
	}
	return b, st, err
}

// rewrite replaces the text by edit's result, whole or not at all: a new file in the same directory, with the mode
// and owner of the old one, synced and renamed over it. A symbolic link is refused: renaming would replace the link,
// and its target is someone else's. An edit by others in the meantime is refused too.
func (f file) rewrite(edit func([]byte) ([]byte, error)) error {
	if st, err := os.Lstat(f.path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		to, _ := os.Readlink(f.path)
		return fmt.Errorf("%s is a symbolic link to %s, which is not ours to replace", f.path, to)
	}
	old, st, err := f.load()
	if err != nil {
		return err
	}
	text, err := edit(old)
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(f.path)+".fabricctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := fill(tmp, text, st); err != nil {
		return err
	}
	if now, _, err := f.load(); err != nil || !bytes.Equal(now, old) {
		return errors.Join(fmt.Errorf("%s was edited in this moment", f.path), err)
	}
	if err := os.Rename(tmp.Name(), f.path); err != nil {
		return err
	}
	return syncDir(dir)
}

func fill(tmp *os.File, text []byte, like fs.FileInfo) error {
	defer tmp.Close()
	mode := fs.FileMode(0o644)
	if like != nil {
		mode = like.Mode().Perm()
		if s, ok := like.Sys().(*syscall.Stat_t); ok && (int(s.Uid) != os.Geteuid() || int(s.Gid) != os.Getegid()) {
			if err := tmp.Chown(int(s.Uid), int(s.Gid)); err != nil {
				return err
			}
		}
	}
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	if _, err := tmp.Write(text); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	return tmp.Close()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
