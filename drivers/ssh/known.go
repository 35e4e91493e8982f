package ssh

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Known remembers known_hosts files from dial to dial, as long as they do not change: that of a thousand hosts has a thousand
// lines, and parsing it costs more than a login. The zero value is ready; it may be used by several goroutines. A nil one
// remembers nothing.
type Known struct {
	mu   sync.Mutex
	sets map[string]*knownFiles // by path, size and time of each file
}

// knownFiles is the content of known_hosts files.
type knownFiles struct {
	callback    xssh.HostKeyCallback
	authorities map[place]bool // @cert-authority lines, which the library does not tell
}

// place is a line of a file, from 1.
type place struct {
	file string
	line int
}

// read parses files, which are there, or remembers that.
func (k *Known) read(files []string) (*knownFiles, error) {
	if k == nil {
		return parseKnown(files)
	}
	var key strings.Builder
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return nil, fmt.Errorf("known_hosts: %w", err)
		}
		fmt.Fprintf(&key, "%q %d %d\n", f, st.Size(), st.ModTime().UnixNano())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.sets[key.String()]; known != nil {
		return known, nil
	}
	known, err := parseKnown(files)
	if err != nil {
		return nil, err
	}
	if k.sets == nil {
		k.sets = map[string]*knownFiles{}
	}
	k.sets[key.String()] = known
	return known, nil
}

func parseKnown(files []string) (*knownFiles, error) {
	callback, err := knownhosts.New(files...)
	if err != nil {
		return nil, err
	}
	known := &knownFiles{callback: callback, authorities: map[place]bool{}}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("known_hosts: %w", err)
		}
		n := 0
		for line := range bytes.Lines(b) {
			if n++; bytes.HasPrefix(bytes.TrimSpace(line), []byte("@cert-authority")) {
				known.authorities[place{f, n}] = true
			}
		}
	}
	return known, nil
}
