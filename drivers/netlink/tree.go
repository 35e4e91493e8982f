package netlink

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Tree is the machine's files, of which most are the kernel's: below sys, proc, sys/kernel/config. Names are slash
// paths from the root of the machine, with or without a slash in front.
//
// Errors are those of the system: EINVAL of an empty GID slot, ERANGE of a value that is too large, fs.ErrNotExist.
type Tree interface {
	// Read is the content of a file, which may not be larger than a megabyte.
	Read(name string) ([]byte, error)
	// Write puts b at an offset of a file that is there, in one system call, since the kernel takes each for a value.
	Write(name string, at int64, b []byte) error
	// Mkdir makes a directory: how configfs makes objects.
	Mkdir(name string) error
	// Rmdir removes a directory: how configfs forgets them.
	Rmdir(name string) error
	// List is the names in a directory, sorted.
	List(name string) ([]string, error)
	// Real is name without symbolic links, and without a slash in front.
	Real(name string) (string, error)
}

// files is the Tree of a directory: of / on a real machine, of a fixture in tests.
type files struct{ root string }

// at is where name is. Below another root than / no symbolic link leads out.
func (f files) at(name string) (string, error) {
	p := filepath.Join(f.root, filepath.FromSlash(name))
	if f.root == "/" {
		return p, nil
	}
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return "", err
	}
	to, err := filepath.EvalSymlinks(p)
	if err != nil {
		return p, nil // the operation will say why
	}
	if to != root && !strings.HasPrefix(to, root+string(filepath.Separator)) {
		return "", fmt.Errorf("%s leads out of %s", name, f.root)
	}
	return to, nil
}

// open opens a regular file, without waiting for a FIFO's other end.
func (f files) open(name string, flag int) (*os.File, error) {
	p, err := f.at(name)
	if err != nil {
		return nil, err
	}
	r, err := os.OpenFile(p, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := r.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (f files) Read(name string) ([]byte, error) {
	r, err := f.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return b, err
}

func (f files) Write(name string, at int64, b []byte) error {
	w, err := f.open(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	if at == 0 { // some files of proc know no offset
		_, err = w.Write(b)
	} else {
		_, err = w.WriteAt(b, at)
	}
	return errors.Join(err, w.Close())
}

func (f files) Mkdir(name string) error {
	p, err := f.at(name)
	if err != nil {
		return err
	}
	return os.Mkdir(p, 0o755)
}

func (f files) Rmdir(name string) error {
	p, err := f.at(name)
	if err != nil {
		return err
	}
	return syscall.Rmdir(p)
}

func (f files) List(name string) ([]string, error) {
	p, err := f.at(name)
	if err != nil {
		return nil, err
	}
	es, err := os.ReadDir(p)
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names, err
}

func (f files) Real(name string) (string, error) {
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return "", err
	}
	p, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, p)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s leads out of %s", name, f.root)
	}
	return filepath.ToSlash(rel), nil
}

// line is the text of a small kernel file without spaces around it.
func line(t Tree, name string) (string, error) {
	b, err := t.Read(name)
	return strings.TrimSpace(string(b)), err
}

// said is line where a file that cannot be read says nothing.
func said(t Tree, name string) string {
	s, err := line(t, name)
	if err != nil {
		return ""
	}
	return s
}

// Exists is one look, where Real takes one for each part of the name.
func (f files) Exists(name string) bool {
	p, err := f.at(name)
	if err == nil {
		_, err = os.Stat(p)
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// there reports whether a file or a directory is there.
func there(t Tree, name string) bool {
	if f, ok := t.(interface{ Exists(string) bool }); ok {
		return f.Exists(name)
	}
	_, err := t.Real(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// base is the last name of where a symbolic link leads; "" when there is none.
func base(t Tree, link string) string {
	p, err := t.Real(link)
	if err != nil {
		return ""
	}
	return p[strings.LastIndexByte(p, '/')+1:]
}
