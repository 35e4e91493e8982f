package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/drivers/hostssh"
)

// hostBinaries finds fabricctl-host for the hosts of one call: each kind is looked for once. The zero value is ready.
type hostBinaries struct {
	mu    sync.Mutex
	found map[string]func() (*hostssh.Binary, error) // by operating system and architecture
}

// find is fabricctl-host for a kind of machine: the one inside this program, where it is a release; the one beside it; or,
// for who runs this program with go run, one built from the same source.
func (h *hostBinaries) find(goos, goarch string) (*hostssh.Binary, error) {
	h.mu.Lock()
	kind := goos + "-" + goarch
	if h.found == nil {
		h.found = map[string]func() (*hostssh.Binary, error){}
	}
	if h.found[kind] == nil {
		h.found[kind] = sync.OnceValues(func() (*hostssh.Binary, error) {
			b, err := hostBinary(goos, goarch)
			if err != nil {
				return nil, err
			}
			return hostssh.NewBinary(b), nil
		})
	}
	f := h.found[kind]
	h.mu.Unlock()
	return f()
}

func hostBinary(goos, goarch string) ([]byte, error) {
	if b, err := embeddedHost(goos, goarch); b != nil || err != nil {
		return b, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is fabricctl: %w", err)
	}
	dir := filepath.Dir(self)
	names := []string{"fabricctl-host-" + goos + "-" + goarch}
	if goos == runtime.GOOS && goarch == runtime.GOARCH {
		names = append(names, "fabricctl-host")
	}
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			return b, err
		}
	}
	if src := sourceOf(self); src != "" {
		return builtHost(src, goos, goarch)
	}
	return nil, fmt.Errorf("%s is not in %s beside fabricctl%s, so the host can be read and not written; put it there", names[0], dir, insteadOf(goos, goarch))
}

// insteadOf says for which machines there is one, when it is for others than the one at hand.
func insteadOf(goos, goarch string) string {
	var have []string
	for _, arch := range []string{"amd64", "arm64"} {
		if b, err := embeddedHost("linux", arch); b != nil && err == nil {
			have = append(have, "linux/"+arch)
		}
	}
	if len(have) == 0 {
		return ""
	}
	return fmt.Sprintf(" (this program holds it for %s, and the host is %s/%s)", strings.Join(have, " and "), goos, goarch)
}

// sourceOf is the source tree that a program was built from a moment ago by go run, "" for any other program: a
// path that was compiled in says nothing about what lies there on another machine, or later.
func sourceOf(self string) string {
	dir := filepath.Dir(self)
	if filepath.Base(dir) != "exe" || !strings.HasPrefix(filepath.Base(filepath.Dir(filepath.Dir(dir))), "go-build") {
		return ""
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) { // -trimpath
		return ""
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if _, err := os.Stat(filepath.Join(root, "cmd", "fabricctl-host", "main.go")); err != nil {
		return ""
	}
	return root
}

// builtHost builds fabricctl-host from a source tree.
func builtHost(src, goos, goarch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fabricctl-host-")
	if err != nil {
		return nil, fmt.Errorf("build fabricctl-host: %w", err)
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "fabricctl-host")
	c := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-gcflags", "all=-l", "-ldflags", "-s -w", "-o", out, "./cmd/fabricctl-host")
	c.Dir = src
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if said, err := c.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return nil, fmt.Errorf("fabricctl-host for %s/%s could not be built in %s, so the host can be read and not written: %w: %s", goos, goarch, src, err, first)
	}
	return os.ReadFile(out)
}

// noBinary is for a host that is only read: copying a program there is a write.
func noBinary(string, string) (*hostssh.Binary, error) {
	return nil, errors.New("nothing is copied to a host that is only read")
}

// labBinary stands in for fabricctl-host on emulated hosts, which run no program.
func labBinary(string, string) (*hostssh.Binary, error) {
	return hostssh.NewBinary([]byte("fabricctl-host of an emulated host\n")), nil
}
