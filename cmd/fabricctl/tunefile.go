package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole writes a file whole or not at all. A file that is there keeps its mode. What is no file, as /dev/stdout or a pipe, is written to, and
// not replaced.
func writeWhole(path string, b []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	}
	tmp, err := stage(path, b)
	if err != nil {
		return err
	}
	return settle(tmp, path)
}

// stage writes b to a new file beside path, with the mode of path, and on the disk when it returns.
func stage(path string, b []byte) (tmp string, err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".fabricctl-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// settle puts a staged file in its place.
func settle(tmp, path string) error {
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
