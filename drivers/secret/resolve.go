package secret

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrUntrusted is returned by Resolve for a reference that an untrusted model may not use.
var ErrUntrusted = errors.New("not followed for an untrusted model")

// limit is the largest secret, in bytes; a private key with its chain fits.
const limit = 1 << 20

// Options is how Resolve reaches the outside.
type Options struct {
	// Base is the folder that relative file references start from; "" is the working directory.
	Base string
	// Untrusted refuses exec references, and file references that leave Base, for models written by strangers
	// (a pull request in a pipeline). Environment variables stay readable: give the pipeline only what it may use.
	Untrusted bool
	// Timeout bounds an exec reference; 0 means 30 seconds.
	Timeout time.Duration
	// Env looks an environment variable up; nil means os.LookupEnv.
	Env func(name string) (value string, ok bool)
}

// IsReference reports whether s is a reference, so that what follows its scheme is no secret itself.
func IsReference(s string) bool {
	kind, rest, ok := strings.Cut(s, ":")
	return ok && rest != "" && (kind == "env" || kind == "file" || kind == "exec")
}

// Resolve follows a reference. The error names the reference and what is wrong with it, never the value; an empty
// value is an error. A text that is not a reference is not repeated: it may be a password.
func Resolve(ctx context.Context, ref string, o Options) (Secret, error) {
	kind, rest, ok := strings.Cut(ref, ":")
	var read func(context.Context, string, Options) (string, error)
	switch {
	case ok && kind == "env":
		read = readEnv
	case ok && kind == "file":
		read = readFile
	case ok && kind == "exec":
		read = readExec
	default:
		return Secret{}, errors.New("not a secret reference: write env:NAME, file:PATH or exec:COMMAND, never the secret itself")
	}
	if strings.TrimSpace(rest) == "" {
		return Secret{}, fmt.Errorf("secret %s: nothing after the colon", ref)
	}
	v, err := read(ctx, rest, o)
	switch {
	case errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(rest):
		return Secret{}, fmt.Errorf("secret %s: %w in %s", ref, err, cmp.Or(o.Base, "."))
	case err != nil:
		return Secret{}, fmt.Errorf("secret %s: %w", ref, err)
	case v == "":
		return Secret{}, fmt.Errorf("secret %s: %s", ref, nothing(ref))
	}
	return New(v), nil
}

// nothing says that a reference leads to nothing.
func nothing(ref string) string {
	switch kind, _, _ := strings.Cut(ref, ":"); kind {
	case "env":
		return "the environment variable is empty"
	case "exec":
		return "the command printed nothing"
	}
	return "the file is empty"
}

func readEnv(_ context.Context, name string, o Options) (string, error) {
	lookup := o.Env
	if lookup == nil {
		lookup = os.LookupEnv
	}
	v, ok := lookup(name)
	if !ok {
		return "", errors.New("environment variable is not set")
	}
	return v, nil
}

func readFile(ctx context.Context, path string, o Options) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() { // a pipe or a dead network mount blocks for ever; the reader is then left behind
		text, err := readPath(path, o)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func readPath(path string, o Options) (string, error) {
	base := o.Base
	if base == "" {
		base = "."
	}
	var f *os.File
	var err error
	switch {
	case o.Untrusted:
		if f, err = os.OpenInRoot(base, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w, unless inside %s: %w", ErrUntrusted, base, pathReason(err))
		}
	case filepath.IsAbs(path):
		f, err = os.Open(path)
	default:
		f, err = os.Open(filepath.Join(base, path))
	}
	if err != nil {
		return "", pathReason(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", pathReason(err)
	}
	return trimmed(b)
}

// pathReason is the reason without the path, which the reference says already.
func pathReason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok && !errors.Is(err, ErrUntrusted) {
		return p.Err
	}
	return err
}

func readExec(ctx context.Context, command string, o Options) (string, error) {
	if o.Untrusted {
		return "", ErrUntrusted
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = o.Base
	cmd.WaitDelay = 500 * time.Millisecond // a grandchild may hold the pipe open
	var out bounded
	cmd.Stdout = &out // stderr is dropped: it may repeat the secret
	err := cmd.Run()
	switch exit, isExit := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case isExit:
		return "", fmt.Errorf("the command failed (%s); run it by hand to see why", exit.ProcessState)
	case err != nil:
		return "", err
	}
	return trimmed(out.b.Bytes())
}

// bounded keeps up to limit+1 bytes and swallows the rest, so that a chatty command ends by itself.
type bounded struct {
	b bytes.Buffer // not embedded: its ReadFrom would pass Write by
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if room := limit + 1 - b.b.Len(); n > room {
		p = p[:room]
	}
	_, err := b.b.Write(p)
	return n, err
}

// trimmed drops one trailing newline.
func trimmed(b []byte) (string, error) {
	if len(b) > limit {
		return "", fmt.Errorf("larger than %d bytes", limit)
	}
	s := strings.TrimSuffix(string(b), "\n")
	return strings.TrimSuffix(s, "\r"), nil
}
