package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is what all output goes through, results and talk, text and JSON. What devices, plan files and models say
// can hold anything, so nothing reaches a terminal but printable text, line ends, tabs, and colours of ours: other
// control characters, and those that turn or hide text, are written as escapes that mean the same inside JSON.
type screen struct {
	to io.Writer

	mu    sync.Mutex
	color bool  // paint's marks become colours, or nothing
	open  bool  // the last line has no end yet
	gone  bool  // nobody reads any more
	err   error // the first one of to, but for the reader's leaving
}

// mark begins a colour in what printers write, and the style follows it. It is never part of UTF-8; a device that
// writes it all the same can change the colour of its text, and nothing else.
const mark = 0xff

type style byte

const (
	plain  style = 'p'
	bold   style = 'b'
	red    style = 'r'
	green  style = 'g'
	yellow style = 'y'
	cyan   style = 'c'
)

// ansi is the terminal's sequence for a style, "" for what is not one.
func (s style) ansi() string {
	switch s {
	case plain:
		return "\x1b[0m"
	case bold:
		return "\x1b[1m"
	case red:
		return "\x1b[31m"
	case green:
		return "\x1b[32m"
	case yellow:
		return "\x1b[33m"
	case cyan:
		return "\x1b[36m"
	}
	return ""
}

// paint marks text for a screen.
func paint(s style, text string) string {
	return string([]byte{mark, byte(s)}) + text + string([]byte{mark, byte(plain)})
}

// Write writes p, which holds whole characters. A reader that has left is no error: the work goes on without it.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) > 0 {
		s.open = p[len(p)-1] != '\n'
	}
	if s.gone {
		return len(p), nil
	}
	_, err := s.to.Write(s.safe(p))
	switch {
	case errors.Is(err, syscall.EPIPE):
		s.gone = true
	case err != nil:
		if s.err == nil {
			s.err = err
		}
		return 0, err
	}
	return len(p), nil
}

// safe is p as it may be shown.
func (s *screen) safe(p []byte) []byte {
	out := make([]byte, 0, len(p)+16)
	for i := 0; i < len(p); {
		if p[i] == mark && i+1 < len(p) {
			if seq := style(p[i+1]).ansi(); seq != "" {
				if s.color {
					out = append(out, seq...)
				}
				i += 2
				continue
			}
		}
		r, n := utf8.DecodeRune(p[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, p[i])
		case r == '\n' || r == '\t' || !hidden(r):
			out = append(out, p[i:i+n]...)
		case r < ' ': // JSON holds none of these
			out = fmt.Appendf(out, `\x%02x`, r)
		case r > 0xffff:
			a, b := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, a, b)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// hidden reports whether r steers a terminal, or the eye of its reader: C0, DEL, C1, the format characters (among
// them those that change the direction of text), and the separators of lines and paragraphs.
func hidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// left reports whether nobody reads any more.
func (s *screen) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// terminal reports whether it is one.
func (s *screen) terminal() bool {
	f, ok := s.to.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// midLine reports whether the last line has no end yet.
func (s *screen) midLine() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
