package sshcli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/scrapli/scrapligo/transport"

	"github.com/fabricctl/fabricctl/drivers/ssh"
)

// maxAnswer is how much a device may answer to one line, in bytes: many times the largest configuration.
const maxAnswer = 16 << 20

// maxSeen is how much of what was seen an error quotes, in bytes.
const maxSeen = 160

// line is a scrapligo transport over a terminal session of our own dialler. It keeps the reason when the session
// ends, which scrapligo loses, and bounds what an answer may hold.
type line struct {
	client *ssh.Client
	stream *ssh.Stream

	mu    sync.Mutex
	got   int         // bytes since the last line was sent
	tail  []byte      // the last of them
	idle  *time.Timer // put off by every byte
	quiet time.Duration
	ended error
}

var _ transport.Implementation = (*line)(nil)

// Open has nothing to do: the session is open before scrapligo sees it.
func (t *line) Open(*transport.Args) error { return nil }

// Close ends the connection.
func (t *line) Close() error { return t.client.Close() }

// IsAlive reports whether the session has not ended as far as is known.
func (t *line) IsAlive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended == nil
}

// Read returns what has arrived, at most n bytes. Every failure is io.EOF, which alone ends scrapligo's reader.
func (t *line) Read(n int) ([]byte, error) {
	b := make([]byte, n)
	k, err := t.stream.Out.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got += k
	t.tail = append(t.tail, b[:k]...)
	if len(t.tail) > 8*maxSeen {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-4*maxSeen:]...)
	}
	if k > 0 && t.idle != nil {
		t.idle.Reset(t.quiet)
	}
	if t.got > maxAnswer {
		err = fmt.Errorf("more than %d MiB of output, which does not end", maxAnswer>>20)
		_ = t.client.Close()
		k = 0
	}
	if k > 0 {
		return b[:k], nil
	}
	if err == nil {
		return nil, nil
	}
	if t.ended == nil {
		t.ended = err
		if errors.Is(err, io.EOF) {
			t.ended = errors.New("the device closed the connection")
		}
	}
	return nil, io.EOF
}

// Write sends bytes.
func (t *line) Write(b []byte) error {
	_, err := t.stream.In.Write(b)
	return err
}

// begin starts to count for a new line. After quiet without a byte the connection is closed. stop reports whether
// that has not happened.
func (t *line) begin(quiet time.Duration) (stop func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got, t.tail, t.quiet = 0, t.tail[:0], quiet
	gaveUp := false
	t.idle = time.AfterFunc(quiet, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.idle != nil {
			t.idle, gaveUp = nil, true
			_ = t.client.Close()
		}
	})
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.idle != nil {
			t.idle.Stop()
			t.idle = nil
		}
		return !gaveUp
	}
}

// why is the reason for the end of the session, nil while it lasts.
func (t *line) why() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// seen is the last of what was received, fit for an error: on one line, without what a terminal would act on.
func (t *line) seen(secret string) string {
	t.mu.Lock()
	s := string(t.tail)
	t.mu.Unlock()
	s = strings.ToValidUTF8(s, "?")
	if secret != "" {
		s = strings.ReplaceAll(s, secret, "[secret]")
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, s)
	var ls []string
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			ls = append(ls, l)
		}
	}
	rs := []rune(strings.Join(ls, " / "))
	if len(rs) == 0 {
		return "nothing"
	}
	cut := ""
	if len(rs) > maxSeen {
		rs, cut = rs[len(rs)-maxSeen:], "…"
	}
	return `"` + cut + string(rs) + `"`
}
