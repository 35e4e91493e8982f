// Package show is how both programs, fabricctl and fabricctl-host, show plans, runs and findings: the same words for the
// same thing, and one screen through which all of it goes.
package show

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Screen is what all output goes through, results and talk, text and JSON. What devices, plan files and models say
// can hold anything, so nothing reaches a terminal but printable text, line ends, tabs, and colours of ours: other
// control characters, and those that turn or hide text, are written as escapes that mean the same inside JSON.
type Screen struct {
	To io.Writer // where it goes in the end

	width int // columns of a terminal that shows text, else 0: lines of text are broken at words, and go on indented

	mu    sync.Mutex
	brief bool  // a line of Brief is on the terminal
	Color bool  // Paint's marks become colours, or nothing
	open  bool  // the last line has no end yet
	gone  bool  // nobody reads any more
	Err   error // the first one of To, but for the reader's leaving
}

// mark begins a colour in what printers write, and the style follows it. It is never part of UTF-8; a device that
// writes it all the same can change the colour of its text, and nothing else.
const mark = 0xff

// Style is how a piece of text looks on a terminal with colours.
type Style byte

// The styles of Paint.
const (
	Plain  Style = 'p'
	Bold   Style = 'b'
	Red    Style = 'r'
	Green  Style = 'g'
	Yellow Style = 'y'
	Cyan   Style = 'c'

	// hanging marks where the text of a line begins: where the line becomes too long it goes on below that place, on a
	// terminal of any width, and at columns where there is none.
	hanging Style = 'h'

	// glue is a space at which no line is broken.
	glue Style = 's'
)

// Columns is how wide hanging text becomes where no terminal says.
const Columns = 100

// ansi is the terminal's sequence for a style, "" for what is not one.
func (s Style) ansi() string {
	switch s {
	case Plain:
		return "\x1b[0m"
	case Bold:
		return "\x1b[1m"
	case Red:
		return "\x1b[31m"
	case Green:
		return "\x1b[32m"
	case Yellow:
		return "\x1b[33m"
	case Cyan:
		return "\x1b[36m"
	}
	return ""
}

// Paint marks text for a screen.
func Paint(s Style, text string) string {
	return string([]byte{mark, byte(s)}) + text + string([]byte{mark, byte(Plain)})
}

// Whole marks text that stays on one line whatever its width, such as a command that is to be copied: where the rest of a line is too short for it, it
// begins the next one.
func Whole(text string) string {
	return strings.ReplaceAll(text, " ", string([]byte{mark, byte(glue)}))
}

// Write writes p, which holds whole characters. A reader that has left is no error: the work goes on without it.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := !s.open
	if len(p) > 0 {
		s.open = p[len(p)-1] != '\n'
	}
	if s.gone {
		return len(p), nil
	}
	s.wipe()
	_, err := s.To.Write(s.Dyed(s.broken(safe(p), fresh)))
	switch {
	case errors.Is(err, syscall.EPIPE):
		s.gone = true
	case err != nil:
		if s.Err == nil {
			s.Err = err
		}
		return 0, err
	}
	return len(p), nil
}

// Brief shows a line on a terminal until something else is written, or until the next one; "" takes it away. Where there is no
// terminal nothing is shown.
func (s *Screen) Brief(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open || s.gone || !s.Terminal() {
		return
	}
	s.wipe()
	if text == "" {
		return
	}
	s.brief = true
	limit := s.width
	if limit == 0 {
		limit = 80
	}
	_, _ = s.To.Write(s.Dyed([]byte(cutAt(string(safe([]byte(text))), limit-1)))) // lost with the terminal, as all else then
}

// wipe takes the line of Brief away.
func (s *Screen) wipe() {
	if s.brief {
		_, _ = io.WriteString(s.To, "\r\x1b[K")
		s.brief = false
	}
}

// cutAt is the first n characters of text.
func cutAt(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// safe is p as it may be shown, with the marks of styles as they are.
func safe(p []byte) []byte {
	out := make([]byte, 0, len(p)+16)
	for i := 0; i < len(p); {
		if isMark(p[i:]) {
			out = append(out, p[i:i+2]...)
			i += 2
			continue
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

// isMark reports whether p begins with the mark of a style.
func isMark(p []byte) bool {
	return len(p) > 1 && p[0] == mark && (Style(p[1]) == hanging || Style(p[1]) == glue || Style(p[1]).ansi() != "")
}

// Dyed is p with its marks as colours, or without them.
func (s *Screen) Dyed(p []byte) []byte {
	out := make([]byte, 0, len(p)+16)
	for i := 0; i < len(p); i++ {
		if !isMark(p[i:]) {
			out = append(out, p[i])
			continue
		}
		switch st := Style(p[i+1]); {
		case st == glue:
			out = append(out, ' ')
		case s.Color:
			out = append(out, st.ansi()...)
		}
		i++
	}
	return out
}

// broken is p with its long lines broken at words. fresh says that p begins a line.
func (s *Screen) broken(p []byte, fresh bool) []byte {
	if s.width == 0 && !bytes.Contains(p, []byte{mark, byte(hanging)}) {
		return p
	}
	out := make([]byte, 0, len(p)+len(p)/16)
	for line := range bytes.Lines(p) {
		if fresh {
			out = s.breakLine(out, line)
		} else {
			out = append(out, line...)
		}
		fresh = true
	}
	return out
}

// breakLine appends a line. It goes on below its hanging text, or else below the last column of a table that does not
// begin too far to the right, or else below its own beginning.
func (s *Screen) breakLine(out, line []byte) []byte {
	indent, hangs := hangAt(line)
	limit := s.width
	switch {
	case hangs && limit == 0:
		limit = Columns
	case limit == 0:
		return append(out, line...)
	case !hangs:
		indent = columnAt(line, limit)
	}
	indent = min(indent, deepest(limit))
	at, begun := 0, false
	for len(line) > 0 {
		gap := 0
		for gap < len(line) && line[gap] == ' ' {
			gap++
		}
		end := gap
		for end < len(line) && line[end] != ' ' {
			end++
		}
		word := line[gap:end]
		if n := Shown(word); begun && n > 0 && at+gap+n > limit {
			out = append(out, '\n')
			out = append(out, bytes.Repeat([]byte{' '}, indent)...)
			at = indent + n
		} else {
			out = append(out, line[:gap]...)
			at += gap + n
		}
		out = append(out, word...)
		begun = begun || len(word) > 0
		line = line[end:]
	}
	return out
}

// deepest is the last column below which a line of that width goes on: what is left holds a few words.
func deepest(limit int) int { return limit * 3 / 5 }

// hangAt is the column of the hanging mark.
func hangAt(line []byte) (int, bool) {
	i := bytes.Index(line, []byte{mark, byte(hanging)})
	return Shown(line[:max(i, 0)]), i >= 0
}

// columnAt is where a line without a hanging mark goes on.
func columnAt(line []byte, limit int) int {
	lead := len(line) - len(bytes.TrimLeft(line, " "))
	column := lead + 2
	for i := lead; i+2 < len(line); i++ {
		if line[i] == ' ' && line[i+1] == ' ' && line[i+2] != ' ' {
			if at := Shown(line[:i+2]); at <= deepest(limit) {
				column = at
			}
		}
	}
	return column
}

// Shown is the number of characters of p without marks and line ends.
func Shown(p []byte) int {
	n := 0
	for i := 0; i < len(p); {
		if isMark(p[i:]) {
			if Style(p[i+1]) == glue {
				n++
			}
			i += 2
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r != '\n' {
			n++
		}
		i += size
	}
	return n
}

// hidden reports whether r steers a terminal, or the eye of its reader: C0, DEL, C1, the format characters (among
// them those that change the direction of text), and the separators of lines and paragraphs.
func hidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Left reports whether nobody reads any more.
func (s *Screen) Left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// Terminal reports whether it is one.
func (s *Screen) Terminal() bool {
	f, ok := s.To.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// MidLine reports whether the last line has no end yet.
func (s *Screen) MidLine() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Fit makes lines of text break at the width of the terminal, if it is one. Documents to be copied are not broken.
func (s *Screen) Fit() {
	f, ok := s.To.(*os.File)
	if !ok {
		return
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 40 {
		s.width = w
	}
}

// WidthOf is how many columns w shows: 0 where it is no terminal that shows text.
func WidthOf(w io.Writer) int {
	if s, ok := w.(*Screen); ok {
		return s.width
	}
	return 0
}
