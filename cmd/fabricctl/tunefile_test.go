package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/rollout"
)

// TestWriteToPipe: what is no file is written to and not replaced. As root, a report for /dev/null would else have made a file of it.
func TestWriteToPipe(t *testing.T) {
	for name, write := range map[string]func(path string) error{
		"report": func(path string) error { return writeWhole(path, []byte("text")) },
		"plan":   func(path string) error { return new(rollout.Plan).WriteFile(path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			got := make(chan int, 1)
			r, err := os.OpenFile(path, os.O_RDWR, 0) // so that nobody waits for the other
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			go func() {
				b := make([]byte, 1<<16)
				n, _ := r.Read(b)
				got <- n
			}()
			if err := write(path); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
				t.Fatalf("the pipe is %v, %v", info.Mode(), err)
			}
			if n := <-got; n == 0 {
				t.Error("nothing came through")
			}
		})
	}
}
