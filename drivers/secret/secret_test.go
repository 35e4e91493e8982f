package secret_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/drivers/secret"
)

const canary = "CANARY-7f3a"

// A secret must not come out of any printer, wherever it is buried.
func TestPrintersShowNothing(t *testing.T) {
	s := secret.New(canary)
	buried := struct {
		Public  secret.Secret
		private secret.Secret
		list    []secret.Secret
		table   map[string]secret.Secret
		pointer *secret.Secret
		inner   any
	}{s, s, []secret.Secret{s}, map[string]secret.Secret{"k": s}, &s, struct{ deep secret.Secret }{s}}

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%20s", "%-3v", "%T", "%p", "%c", "%U", "%e", "%t"} {
		for _, x := range []any{s, &s, buried, &buried, []secret.Secret{s}, map[secret.Secret]int{s: 1}, errors.New(s.String()), fmt.Errorf("%w %v", errors.New("x"), s)} {
			fmt.Fprintf(&out, verb+"\n", x)
		}
	}
	fmt.Fprintln(&out, s, buried)
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		b, err := marshal(struct {
			S secret.Secret
			P *secret.Secret
			M map[string]secret.Secret
		}{s, &s, map[string]secret.Secret{"k": s}})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	b, err := xml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		l := slog.New(h).With("with", s)
		l.Info("msg", "s", s, "p", &s, "buried", buried, slog.Group("g", "s", s))
	}
	text := out.String()
	for _, leak := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprint([]byte(canary))} {
		if strings.Contains(text, leak) {
			t.Errorf("leaked %q in:\n%s", leak, text)
		}
	}
	if s.String() != "[secret]" || fmt.Sprintf("%#v", s) != "[secret]" || s.Reveal() != canary {
		t.Error("a secret must print as [secret] and reveal its value")
	}
	if !(secret.Secret{}).IsZero() || s.IsZero() || (secret.Secret{}).Reveal() != "" {
		t.Error("IsZero")
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "other")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "pw"), canary+"\n")
	write(filepath.Join(dir, "crlf"), canary+"\r\n")
	write(filepath.Join(dir, "two"), canary+"\n\n")
	write(filepath.Join(dir, "empty"), "\n")
	write(filepath.Join(dir, "big"), strings.Repeat("x", 1<<20+1))
	write(outside, canary)
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	env := func(n string) (string, bool) {
		v, ok := map[string]string{"PW": canary, "EMPTY": "", "SPACED": " a "}[n]
		return v, ok
	}
	for _, c := range []struct {
		ref       string
		untrusted bool
		want      string // value, or
		err       string // a part of the error
	}{
		{ref: "env:PW", want: canary},
		{ref: "env:SPACED", want: " a "},
		{ref: "env:NOPE", err: "secret env:NOPE: environment variable is not set"},
		{ref: "env:EMPTY", err: "secret env:EMPTY: the environment variable is empty"},
		{ref: "env:PW", untrusted: true, want: canary},
		{ref: "file:pw", want: canary},
		{ref: "file:crlf", want: canary},
		{ref: "file:two", want: canary + "\n"},
		{ref: "file:empty", err: "secret file:empty: the file is empty"},
		{ref: "file:big", err: "secret file:big: larger than"},
		{ref: "file:nope", err: "secret file:nope: no such file or directory"},
		{ref: "file:" + outside, want: canary},
		{ref: "file:.", err: "is a directory"},
		{ref: "file:pw", untrusted: true, want: canary},
		{ref: "file:nope", untrusted: true, err: "no such file"},
		{ref: "file:" + outside, untrusted: true, err: "not followed for an untrusted model"},
		{ref: "file:../other", untrusted: true, err: "not followed for an untrusted model"},
		{ref: "file:link", untrusted: true, err: "not followed for an untrusted model"},
		{ref: "exec:cat pw", want: canary},
		{ref: "exec:cat pw", untrusted: true, err: "secret exec:cat pw: not followed for an untrusted model"},
		{ref: "exec:cat nope", err: "secret exec:cat nope: the command failed (exit status 1)"},
		{ref: "exec:no-such-command-here x", err: "executable file not found"},
		{ref: "exec:true", err: "secret exec:true: the command printed nothing"},
		{ref: "exec:echo $PW `id`", want: "$PW `id`"}, // no shell
		{ref: "exec:head -c 3000000 /dev/zero", err: "larger than"},
		{ref: "exec:", err: "nothing after the colon"},
		{ref: "hunter2", err: "not a secret reference"},
		{ref: "vault:x", err: "not a secret reference"},
		{ref: "", err: "not a secret reference"},
	} {
		got, err := secret.Resolve(t.Context(), c.ref, secret.Options{Base: dir, Untrusted: c.untrusted, Env: env})
		switch {
		case c.err == "" && (err != nil || got.Reveal() != c.want):
			t.Errorf("%s: got %q, %v; want %q", c.ref, got.Reveal(), err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want one with %q", c.ref, err, c.err)
		case err != nil && (strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: the error repeats a value: %v", c.ref, err)
		case c.untrusted && err != nil && strings.Contains(err.Error(), "untrusted") != errors.Is(err, secret.ErrUntrusted):
			t.Errorf("%s: %v is not ErrUntrusted", c.ref, err)
		}
	}
}

// A command that never ends, or whose child keeps the pipe, is left within a second of the context's end.
func TestExecStops(t *testing.T) {
	for _, ref := range []string{"exec:sleep 600", "exec:sh script"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "script"), []byte("sleep 2 & wait"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		_, err := secret.Resolve(ctx, ref, secret.Options{Base: dir})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", ref, err)
		}
		if d := time.Since(start); d > 1500*time.Millisecond {
			t.Errorf("%s: took %s", ref, d)
		}
	}
	_, err := secret.Resolve(t.Context(), "exec:sleep 600", secret.Options{Timeout: 20 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer within 20ms") {
		t.Error(err)
	}
}

// A reference to a pipe that nobody writes to honours the context.
func TestFileStops(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = secret.Resolve(ctx, fmt.Sprintf("file:/dev/fd/%d", r.Fd()), secret.Options{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
