package netlink

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// memory is what has to be known to put things back byte for byte: the text that a file had before we edited it, and
// what a file of configfs said when its directory was made. It is in a directory, so that another process puts them
// back too; without a directory it lasts as long as the Device.
type memory struct {
	dir  string
	hook func(string)
	boot func() string // id of the kernel's boot; "" = not known
	kept remembered
}

type remembered struct {
	Edits []edit            `json:"edits,omitempty"` // the latest last
	Made  map[string]string `json:"made,omitempty"`  // file of configfs to what it said at first
	Boot  string            `json:"boot,omitempty"`  // since which configfs is as Made says
}

// edit is one edit of a file.
type edit struct {
	Path  string      `json:"path"`
	There bool        `json:"there"`          // the file was there
	Text  []byte      `json:"text,omitempty"` // what it held
	Mode  fs.FileMode `json:"mode,omitempty"`
	UID   int         `json:"uid"`
	GID   int         `json:"gid"`
	After string      `json:"after"` // digest of what we made of it; "" when it was removed
}

// maxEdits is how many steps back are known.
const maxEdits = 16

func digest(c content) string {
	if !c.there {
		return ""
	}
	sum := sha256.Sum256(c.text)
	return hex.EncodeToString(sum[:])
}

func (m *memory) file() string { return filepath.Join(m.dir, "before.json") }

func (m *memory) load() error {
	if m.dir == "" {
		return nil
	}
	b, err := os.ReadFile(m.file())
	m.kept = remembered{}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m.kept)
	}
	if err != nil {
		return fmt.Errorf("what was there before our edits is not readable: %w: move %s away to go on without it", err, m.file())
	}
	if now := m.boot(); now != "" && m.kept.Boot != "" && now != m.kept.Boot {
		maps.DeleteFunc(m.kept.Made, func(name, _ string) bool { // with the kernel that had it
			return strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "sys/") || strings.HasPrefix(name, switching(""))
		})
	}
	return nil
}

func (m *memory) store() error {
	if m.dir == "" {
		return nil
	}
	m.kept.Boot = m.boot()
	return put(m.file(), m.kept, m.hook)
}

// put writes v as JSON, whole or not at all, readable by its owner alone.
func put(path string, v any, hook func(string)) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	_, _, err = file{path, hook}.rewrite(func(was content) (content, error) {
		return content{true, append(b, '\n'), 0o600, -1, -1}, nil
	})
	return err
}

// before is what a file held before our last edit of it, when it holds now what that edit made of it, and same says
// that this is what is wanted again.
func (m *memory) before(path string, now content, same func(text []byte) bool) (content, bool) {
	for _, e := range slices.Backward(m.kept.Edits) {
		if e.Path != path {
			continue
		}
		if e.After != digest(now) || !same(e.Text) {
			return content{}, false
		}
		return content{e.There, e.Text, e.Mode, e.UID, e.GID}, true
	}
	return content{}, false
}

// edited remembers an edit that is about to be made.
func (m *memory) edited(path string, was, now content) error {
	m.kept.Edits = append(m.kept.Edits, edit{path, was.there, was.text, was.mode, was.uid, was.gid, digest(now)})
	if n := len(m.kept.Edits); n > maxEdits {
		m.kept.Edits = m.kept.Edits[n-maxEdits:]
	}
	return m.store()
}

// restored forgets the last edit of a file, after it was taken back.
func (m *memory) restored(path string) error {
	for i, e := range slices.Backward(m.kept.Edits) {
		if e.Path == path {
			m.kept.Edits = slices.Delete(m.kept.Edits, i, i+1)
			return m.store()
		}
	}
	return nil
}

// made remembers what a file of configfs said when its directory was made; unmade gives that and forgets it.
func (m *memory) made(name, text string) error {
	if m.kept.Made == nil {
		m.kept.Made = map[string]string{}
	}
	m.kept.Made[name] = text
	return m.store()
}

func (m *memory) unmade(name string) (string, bool, error) {
	text, ok := m.kept.Made[name]
	if !ok {
		return "", false, nil
	}
	delete(m.kept.Made, name)
	return text, true, m.store()
}
