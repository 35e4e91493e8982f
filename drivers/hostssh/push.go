package hostssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"
)

// push makes sure that the binary is on the host and returns its path. It is named by its digest, checked each time
// before it is run, and kept in a directory that only the user and root can change.
func (h *conn) push(ctx context.Context, bin *Binary, uid uint32, dir string) (string, error) {
	files, err := h.client.SFTP(ctx)
	if err != nil {
		return "", err
	}
	stop := h.client.CloseOn(ctx)
	p := pusher{conn: h, files: files, uid: uid}
	to, err := p.push(ctx, bin, cmp.Or(dir, DefaultDir))
	if stop() {
		_ = files.Close()
	}
	switch {
	case err == nil:
		return to, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: push fabricctl-host: %w", h.name, context.Cause(ctx))
	}
	return "", fmt.Errorf("%s: push fabricctl-host: %w", h.name, err)
}

type pusher struct {
	*conn
	files *sftp.Client
	uid   uint32 // ours on the host
}

func (p pusher) push(ctx context.Context, bin *Binary, dir string) (string, error) {
	if !path.IsAbs(dir) {
		home, err := p.files.Getwd()
		if err != nil {
			return "", fmt.Errorf("home directory: %w", err)
		}
		dir = path.Join(home, dir)
	}
	dir, err := p.directory(dir)
	if err != nil {
		return "", err
	}
	digest := bin.digest
	to := path.Join(dir, namePrefix+digest)
	if _, err := p.files.Lstat(to); err == nil {
		return to, p.verify(ctx, to, digest)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w", to, err)
	}
	// Under a name of its own until it is whole: two laptops may do this at once.
	tmp := to + "." + rand.Text()
	if err := p.upload(tmp, bin.data); err != nil {
		_ = p.files.Remove(tmp)
		return "", fmt.Errorf("%s: %w", tmp, p.full(dir, len(bin.data), err))
	}
	err = p.verify(ctx, tmp, digest)
	if err == nil {
		err = p.files.PosixRename(tmp, to)
	}
	if err != nil {
		_ = p.files.Remove(tmp)
		return "", err
	}
	p.sweep(dir, path.Base(to))
	return to, nil
}

// namePrefix starts the names of what is pushed: the digest follows, and while it is on its way more.
const namePrefix = "fabricctl-host-"

// How long what is not used any more stays: another version, and the rest of a push that was cut off.
const (
	keepVersions = 90 * 24 * time.Hour
	keepRests    = 24 * time.Hour
)

// sweep takes away what earlier versions and broken pushes left, by the host's own clock: that of the file just written.
// What cannot be taken away stays.
func (p pusher) sweep(dir, newest string) {
	es, err := p.files.ReadDir(dir)
	if err != nil {
		return
	}
	now := time.Time{}
	for _, e := range es {
		if e.Name() == newest {
			now = e.ModTime()
		}
	}
	for _, e := range es {
		digest, ours := strings.CutPrefix(e.Name(), namePrefix)
		keep := keepVersions
		if strings.Contains(digest, ".") {
			keep = keepRests
		}
		if ours && e.Mode().IsRegular() && now.Sub(e.ModTime()) > keep {
			_ = p.files.Remove(path.Join(dir, e.Name()))
		}
	}
}

func (p pusher) upload(to string, bin []byte) error {
	f, err := p.files.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o700); err != nil {
		return err
	}
	if _, err := f.ReadFrom(bytes.NewReader(bin)); err != nil {
		return err
	}
	return f.Close()
}

// full says that the disk is, when a write failed with err and n bytes have no room: SFTP has no word for it.
func (p pusher) full(dir string, n int, err error) error {
	st, e := p.files.StatVFS(dir)
	if e != nil {
		return err
	}
	if free := st.Frsize * st.Bavail; free < uint64(n) {
		return fmt.Errorf("%d bytes are needed, and %d are free: make room, or let the user have another home: %w", n, free, err)
	}
	return err
}

// verify asks the host for the digest of what it holds.
func (p pusher) verify(ctx context.Context, file, digest string) error {
	st, err := p.files.Lstat(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if owner, ok := st.Sys().(*sftp.FileStat); !st.Mode().IsRegular() || !ok || owner.UID != p.uid {
		return fmt.Errorf("%s is not a file of user %d: remove it", file, p.uid)
	}
	got, err := p.line(ctx, "sha256sum "+quote(file))
	if err != nil {
		return err
	}
	if got, _, _ = strings.Cut(strings.TrimPrefix(got, `\`), " "); got != digest {
		return fmt.Errorf("%s has SHA-256 %s, not the one in its name: it was damaged or changed, remove it", file, got)
	}
	return nil
}

// directory makes dir where it is missing and returns its real path. It has to belong to the user, with mode 0700,
// and nobody but root may be able to put another one in its place.
func (p pusher) directory(dir string) (string, error) {
	if err := p.mkdir(dir); err != nil {
		return "", err
	}
	dir, err := p.files.RealPath(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	for at := dir; ; at = path.Dir(at) {
		st, err := p.files.Stat(at)
		if err != nil {
			return "", fmt.Errorf("%s: %w", at, err)
		}
		owner, ok := st.Sys().(*sftp.FileStat)
		switch {
		case !st.IsDir():
			return "", fmt.Errorf("%s is not a directory", at)
		case !ok || owner.UID != p.uid && (at == dir || owner.UID != 0):
			return "", fmt.Errorf("%s belongs to another user, who could exchange what is to be run", at)
		case at == dir && st.Mode().Perm() != 0o700:
			return "", fmt.Errorf("%s has mode %04o: chmod 700 %[1]s", at, st.Mode().Perm())
		case st.Mode().Perm()&0o022 != 0 && st.Mode()&fs.ModeSticky == 0:
			return "", fmt.Errorf("%s can be written by others (mode %04o), who could exchange what is to be run", at, st.Mode().Perm())
		}
		if at == path.Dir(at) {
			return dir, nil
		}
	}
}

// mkdir makes dir and what is missing above it, each with mode 0700.
func (p pusher) mkdir(dir string) error {
	_, err := p.files.Stat(dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := p.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if err := p.files.Mkdir(dir); err != nil {
		if _, now := p.files.Stat(dir); now == nil {
			return nil // somebody else was faster; directory judges it
		}
		return fmt.Errorf("%s: %w", dir, err)
	}
	return p.files.Chmod(dir, 0o700)
}
