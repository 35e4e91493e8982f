package host

import (
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
)

// handlers serve sftp over the host's file tree and nothing outside of it.
func (h *Host) handlers() sftp.Handlers {
	t := tree{h}
	return sftp.Handlers{FileGet: t, FilePut: t, FileCmd: t, FileList: t}
}

type tree struct{ h *Host }

// Fileread opens a file.
func (t tree) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return t.h.fs.Open(rel(r.Filepath))
}

// Filewrite opens or makes a file, as the flags say.
func (t tree) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	t.h.count(func(c *Counters) { c.Uploads++ })
	p, flags := r.Pflags(), os.O_WRONLY
	if p.Creat {
		flags |= os.O_CREATE
	}
	if p.Excl {
		flags |= os.O_EXCL
	}
	if p.Trunc {
		flags |= os.O_TRUNC
	}
	return t.h.fs.OpenFile(rel(r.Filepath), flags, 0o644)
}

// Filecmd changes names and modes. Sizes and times are left as they are.
func (t tree) Filecmd(r *sftp.Request) error {
	root, path, to := t.h.fs, rel(r.Filepath), rel(r.Target)
	switch r.Method {
	case "Setstat":
		if r.AttrFlags().Permissions {
			return root.Chmod(path, r.Attributes().FileMode().Perm())
		}
		return nil
	case "Rename":
		if _, err := root.Lstat(to); err == nil {
			return fs.ErrExist
		}
		return root.Rename(path, to)
	case "Mkdir":
		return root.Mkdir(path, 0o755)
	case "Remove", "Rmdir":
		return root.Remove(path)
	case "Symlink":
		return root.Symlink(r.Filepath, to)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces what is there.
func (t tree) PosixRename(r *sftp.Request) error {
	return t.h.fs.Rename(rel(r.Filepath), rel(r.Target))
}

// Filelist lists a directory or describes a file.
func (t tree) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method == "List" {
		es, err := fs.ReadDir(t.h.fs.FS(), rel(r.Filepath))
		var l listing
		for _, e := range es {
			if fi, err := e.Info(); err == nil {
				l = append(l, fi)
			}
		}
		return l, err
	}
	fi, err := t.h.fs.Stat(rel(r.Filepath))
	return listing{fi}, err
}

// Lstat describes a link rather than what it leads to.
func (t tree) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	fi, err := t.h.fs.Lstat(rel(r.Filepath))
	return listing{fi}, err
}

type listing []fs.FileInfo

// ListAt copies from the list.
func (l listing) ListAt(to []fs.FileInfo, at int64) (int, error) {
	if at >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[at:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}
