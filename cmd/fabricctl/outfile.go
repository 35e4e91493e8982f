package main

import (
	"os"
	"path/filepath"
)

// outFile refuses a file that a flag asks to be written where that cannot succeed, before any work is done for it. example is a name for
// such a file.
func outFile(flag, path, example string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fail(exitError, "name a file in it, such as "+filepath.Join(path, example), "%s %s is a directory", flag, path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fail(exitError, "make it first, or name another file", "%s %s: there is no directory %s", flag, path, dir)
	}
	return nil
}

// outDir is outFile for a directory, which is made where there is none.
func outDir(flag, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return fail(exitError, "name a directory", "%s %s is a file", flag, path)
	}
	return nil
}
