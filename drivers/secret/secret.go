// Package secret keeps passwords and keys from being printed. A Secret shows itself as "[secret]" to fmt, slog and
// every encoder; Reveal is the only way out, and what calls it is easy to list.
//
// Models and inventories hold references, never values. Resolve follows one:
//
//	env:NAME            an environment variable
//	file:PATH           a file, relative to the file that names it; one trailing newline is dropped
//	exec:COMMAND ARG…   what a command prints, split at spaces, no shell; one trailing newline is dropped
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[secret]"

// Secret is a value that cannot be printed. The zero Secret is empty. Two Secrets are not comparable in a useful way:
// == compares identity.
type Secret struct {
	// A pointer, because fmt reaches into unexported fields of enclosing structs without asking their methods; of
	// a pointer it prints the address only.
	value *string
}

// New wraps a value.
func New(value string) Secret { return Secret{&value} }

// Reveal is the value itself. Hand it to a transport, not to anything that prints.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether s holds nothing.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String is "[secret]", even when s is empty.
func (s Secret) String() string { return hidden }

// GoString is "[secret]".
func (s Secret) GoString() string { return hidden }

// Format prints "[secret]" for every verb, flag and width.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hidden) }

// MarshalText is "[secret]". It serves JSON, XML and YAML encoders too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON is the JSON string "[secret]".
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// LogValue is "[secret]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
