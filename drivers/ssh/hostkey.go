package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// ErrHostKey is what every HostKeyError is.
var ErrHostKey = errors.New("host key not accepted")

// ErrHostUnknown is what a HostKeyError is when known_hosts has no key for the address.
var ErrHostUnknown = errors.New("host key unknown")

// ErrHostChanged is what a HostKeyError is when known_hosts has another key for the address, or revokes this one.
var ErrHostChanged = errors.New("host key changed")

// HostKeyError says that the peer is not known to be the device. Nothing was sent to it, no user name either.
type HostKeyError struct {
	Host        string   // host:port
	Type        string   // of the offered key: "ssh-ed25519"; or the types offered, when none is a known one
	Fingerprint string   // of the offered key: "SHA256:…"; "" when no key was exchanged
	Known       []string // what known_hosts has: "path:3 ssh-ed25519 SHA256:…"; empty = nothing
	Revoked     bool     // known_hosts revokes the offered key
	Files       []string // the known_hosts files that were read
}

func (e *HostKeyError) Error() string {
	offered := strings.TrimSpace(e.Type + " " + e.Fingerprint)
	switch {
	case e.Revoked:
		return fmt.Sprintf("host key revoked: it offers %s, which %s revokes; %s", offered, strings.Join(e.Known, ", "), e.Next())
	case len(e.Known) > 0:
		return fmt.Sprintf("host key changed: it offers %s, known is %s; somebody may be in between, or the device was replaced: %s",
			offered, strings.Join(e.Known, ", "), e.Next())
	case len(e.Files) == 0:
		return fmt.Sprintf("host key unknown: it offers %s, and no known_hosts file is configured", offered)
	}
	return fmt.Sprintf("host key unknown: it offers %s, and %s has no key for %s; %s", offered, strings.Join(e.Files, ", "), knownhosts.Normalize(e.Host), e.Next())
}

// Next is what to do about it, with which Error ends; "" where that depends on who configures the files.
func (e *HostKeyError) Next() string {
	switch {
	case e.Revoked:
		return "do not connect"
	case len(e.Known) > 0:
		return fmt.Sprintf("compare the fingerprint on its console, then drop the old key with ssh-keygen -R '%s' -f FILE", knownhosts.Normalize(e.Host))
	case len(e.Files) == 0:
		return ""
	}
	return "compare the fingerprint on its console, then add it with ssh-keyscan"
}

// Is makes errors.Is work with ErrHostKey and with one of ErrHostUnknown and ErrHostChanged.
func (e *HostKeyError) Is(target error) bool {
	changed := e.Revoked || len(e.Known) > 0
	return target == ErrHostKey || target == ErrHostChanged && changed || target == ErrHostUnknown && !changed
}

// hostKeys checks the key of one address, and keeps what it said, since the library flattens the error.
type hostKeys struct {
	addr       string
	files      []string
	algorithms []string // to ask the server for; nil = any
	known      []string
	callback   xssh.HostKeyCallback
	accepted   bool
	refusal    *HostKeyError
}

func newHostKeys(c Config, addr string) (*hostKeys, error) {
	h := &hostKeys{addr: addr, files: c.KnownHosts}
	if c.Insecure {
		h.callback = func(_ string, _ net.Addr, key xssh.PublicKey) error {
			c.Log.Warn("host key not checked (insecure: true)", "device", c.Name, slog.String("address", addr),
				"type", key.Type(), "fingerprint", xssh.FingerprintSHA256(key))
			return nil
		}
		return h, nil
	}
	var present []string
	for _, f := range c.KnownHosts {
		switch _, err := os.Stat(f); {
		case err == nil:
			present = append(present, f)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("known_hosts: %w", err)
		}
	}
	known, err := c.Known.read(present)
	if err != nil {
		return nil, err
	}
	callback := known.callback
	h.callback = callback
	// A key that nobody has makes the library list the keys that it would accept. Asking the server for those types
	// only keeps a server that has several from showing another one, which would look like a changed key.
	var miss *knownhosts.KeyError
	if err := callback(addr, noAddr{}, noKey{}); errors.As(err, &miss) {
		for _, k := range miss.Want {
			h.known = append(h.known, describe(k))
			h.algorithms = append(h.algorithms, known.algorithms(k)...)
		}
	}
	slices.Sort(h.algorithms)
	h.algorithms = slices.Compact(h.algorithms)
	return h, nil
}

// check is the library's callback.
func (h *hostKeys) check(hostname string, remote net.Addr, key xssh.PublicKey) error {
	err := h.callback(hostname, remote, key)
	if err == nil {
		h.accepted = true
		return nil
	}
	h.refusal = &HostKeyError{Host: h.addr, Type: key.Type(), Fingerprint: xssh.FingerprintSHA256(key), Known: h.known, Files: h.files}
	if r, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
		h.refusal.Revoked = true
		h.refusal.Known = []string{describe(r.Revoked)}
	}
	return h.refusal
}

// isOurs reports whether a negotiation failed over the host key types that we asked for.
func (h *hostKeys) isOurs(offered []string) bool {
	return len(h.algorithms) > 0 && slices.Equal(offered, h.algorithms)
}

// otherType is the refusal of a server that has no key of a known type.
func (h *hostKeys) otherType(types []string) *HostKeyError {
	return &HostKeyError{Host: h.addr, Type: strings.Join(types, ", "), Known: h.known, Files: h.files}
}

func describe(k knownhosts.KnownKey) string {
	return fmt.Sprintf("%s:%d %s %s", k.Filename, k.Line, k.Key.Type(), xssh.FingerprintSHA256(k.Key))
}

// algorithms are the host key algorithms with which a key of known_hosts can be proved. RSA with SHA-1 is not among
// them.
func (f *knownFiles) algorithms(k knownhosts.KnownKey) []string {
	if f.authorities[place{k.Filename, k.Line}] {
		return []string{
			xssh.CertAlgoED25519v01, xssh.CertAlgoECDSA256v01, xssh.CertAlgoECDSA384v01, xssh.CertAlgoECDSA521v01,
			xssh.CertAlgoRSASHA256v01, xssh.CertAlgoRSASHA512v01,
		}
	}
	if k.Key.Type() == xssh.KeyAlgoRSA {
		return []string{xssh.KeyAlgoRSASHA256, xssh.KeyAlgoRSASHA512}
	}
	return []string{k.Key.Type()}
}

// noKey is a public key that matches nothing.
type noKey struct{}

func (noKey) Type() string                         { return "none" }
func (noKey) Marshal() []byte                      { return nil }
func (noKey) Verify([]byte, *xssh.Signature) error { return errors.New("no key") }

// noAddr is an address that matches nothing.
type noAddr struct{}

func (noAddr) Network() string { return "tcp" }
func (noAddr) String() string  { return "0.0.0.0:0" }
