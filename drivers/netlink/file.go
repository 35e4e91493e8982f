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
type file struct {
	path string
	hook func(string) // failpoints
}

// content is a file at one moment. A file that does not exist has no text and is not there.
type content struct {
	there    bool
	text     []byte
	mode     fs.FileMode
	uid, gid int // -1 = not known on this system
}

// read is the text; a file that does not exist has none. A symbolic link is followed, as its readers do; what is not
// a regular file in the end is refused without being opened for long (a FIFO would block).
func (f file) read() ([]byte, error) {
	c, err := f.load()
	return c.text, err
}

func (f file) load() (content, error) {
	r, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return content{}, err
	}
	if !st.Mode().IsRegular() {
		return content{}, fmt.Errorf("%s is not a regular file", f.path)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", f.path, maxFile)
	}
	uid, gid := owner(st)
	return content{true, b, st.Mode().Perm(), uid, gid}, err
}

// replaceable says why rewrite would refuse, or the system would, before anything is written.
func (f file) replaceable() error {
	if st, err := os.Lstat(f.path); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		to, _ := os.Readlink(f.path)
		return fmt.Errorf("%s is a symbolic link to %s, which is not ours to replace", f.path, to)
	}
	if err := writable(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("%s cannot be replaced: %w", f.path, err)
	}
	if err := writable(f.path); errors.Is(err, syscall.EPERM) { // its mode does not matter
		return fmt.Errorf("%s cannot be replaced: %w (lsattr shows whether it is immutable)", f.path, err)
	}
	return nil
}

// rewrite replaces the file by edit's result, whole or not at all: a new file in the same directory, synced and renamed
// over it, or nothing in its place. A symbolic link is refused: renaming would replace the link, and its target is
// someone else's. An edit by others in the meantime is refused too. It returns what was there, and what is.
func (f file) rewrite(edit func(content) (content, error)) (was, now content, err error) {
	if err := f.replaceable(); err != nil {
		return was, was, err
	}
	if was, err = f.load(); err != nil {
		return was, was, err
	}
	if now, err = edit(was); err != nil {
		return was, was, err
	}
	unmoved := func() error {
		if again, err := f.load(); err != nil || again.there != was.there || !bytes.Equal(again.text, was.text) {
			return errors.Join(fmt.Errorf("%s was edited in this moment", f.path), err)
		}
		return nil
	}
	if !now.there {
		if err := unmoved(); err != nil || !was.there {
			return was, now, err
		}
		f.hook("remove " + f.path + " before")
		if err := os.Remove(f.path); err != nil {
			return was, was, err
		}
		f.hook("remove " + f.path + " after")
		return was, now, syncDir(filepath.Dir(f.path))
	}
	dir := filepath.Dir(f.path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(f.path)+".fabricctl-*")
	if err != nil {
		return was, was, err
	}
	defer os.Remove(tmp.Name())
	if err := fill(tmp, now); err != nil {
		return was, was, err
	}
	if err := unmoved(); err != nil {
		return was, was, err
	}
	f.hook("rename " + f.path + " before")
	if err := os.Rename(tmp.Name(), f.path); err != nil {
		return was, was, err
	}
	f.hook("rename " + f.path + " after")
	return was, now, syncDir(dir)
}

// edited is a content with another text. One that was not there gets the mode that such files have.
func (c content) edited(text []byte) content {
	if !c.there {
		return content{true, text, 0o644, -1, -1}
	}
	c.text = text
	return c
}

func fill(tmp *os.File, c content) error {
	defer tmp.Close()
	if c.uid >= 0 && (c.uid != os.Geteuid() || c.gid != os.Getegid()) {
		if err := tmp.Chown(c.uid, c.gid); err != nil {
			return err
		}
	}
	if err := tmp.Chmod(c.mode); err != nil {
		return err
	}
	if _, err := tmp.Write(c.text); err != nil {
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
