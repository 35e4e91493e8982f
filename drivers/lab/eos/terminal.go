package eos

import (
	"bufio"
	"bytes"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// terminal is the line discipline between an SSH channel and a shell: echo, editing, paging, and the faults of a
// bad line.
type terminal struct {
	sw   *Switch
	conn ssh.Conn
	gone <-chan struct{}
	ch   ssh.Channel
	sh   *shell
	pty  bool
	in   *bufio.Reader
	lf   bool // the last line ended in CR: an LF that follows belongs to it
}

// interact is a shell from motd to exit.
func (t *terminal) interact() {
	t.in = bufio.NewReader(t.ch)
	if f := t.sw.currentFaults(); len(f.Junk) > 0 {
		t.raw(f.Junk)
	}
	if t.pty {
		t.write("Last login: " + t.sw.opt.Clock.Now().UTC().Format(time.ANSIC) + " from 127.0.0.1\n")
	}
	t.write(t.sw.opt.MOTD)
	for {
		if !t.prompt() {
			return
		}
		l, ok := t.readLine()
		if !ok {
			return
		}
		out, ok := t.execute(l)
		if !ok || !t.page(out) || t.sh.done {
			return
		}
	}
}

func (t *terminal) prompt() bool {
	t.sw.mu.Lock()
	p, f := t.sh.prompt(), t.sw.faults
	t.sw.mu.Unlock()
	if f.NoPrompt {
		return true
	}
	return t.write(p)
}

// execute runs one line under the faults. ok is false when the connection is to end.
func (t *terminal) execute(l string) (out string, ok bool) {
	f := t.sw.currentFaults()
	secret := t.sh.ask != nil
	if !secret {
		if f.OnLine != nil {
			f.OnLine(l)
		}
		f = t.sw.currentFaults()
		if hits(f.DropAt, l) {
			t.conn.Close()
			return "", false
		}
		if !t.wait(f.Delay) {
			return "", false
		}
		if hits(f.StallAt, l) {
			<-t.gone
			return "", false
		}
		for hits(f.Flood, l) {
			if !t.write(strings.Repeat("all work and no play makes a dull switch\n", 100)) {
				return "", false
			}
			f = t.sw.currentFaults()
		}
	}
	t.sw.mu.Lock()
	out = t.sh.line(l)
	t.sw.mu.Unlock()
	if !secret && hits(f.DropOn, l) {
		t.conn.Close()
		return "", false
	}
	return out, true
}

// readLine reads to a CR or LF and echoes on a terminal, except passwords. Ctrl-C empties the line, Ctrl-U too;
// backspace takes one character back; Ctrl-D on an empty line leaves.
func (t *terminal) readLine() (string, bool) {
	var l []byte
	for {
		c, err := t.in.ReadByte()
		if err != nil {
			return "", false
		}
		if c == '\n' && t.lf {
			t.lf = false
			continue
		}
		t.lf = false
		var echo string
		switch {
		case c == '\r' || c == '\n':
			t.lf = c == '\r'
			if t.pty && !t.raw([]byte("\r\n")) {
				return "", false
			}
			return string(l), true
		case c == 0x03 || c == 0x15:
			l = nil
			if echo = "\r\x1b[K"; c == 0x03 {
				echo = "^C\r\n"
			}
			t.sw.mu.Lock()
			echo += t.sh.prompt()
			t.sw.mu.Unlock()
		case c == 0x04 && len(l) == 0:
			return "", false
		case c == 0x7f || c == 0x08:
			if len(l) > 0 {
				l, echo = l[:len(l)-1], "\b \b"
			}
		case c >= 0x20 && len(l) < 4096:
			l = append(l, c)
			if t.sh.ask == nil {
				echo = string(c)
				if w := t.sh.cols; w > 0 && len(l)%w == 0 {
					echo += " \r" // as readline wraps
				}
			}
		}
		if echo != "" && t.pty && !t.raw([]byte(echo)) {
			return "", false
		}
	}
}

// page prints output a screen at a time. Space goes on by a screen, Enter by a line, q ends.
func (t *terminal) page(out string) bool {
	if t.sh.rows < 2 || !t.pty || strings.Count(out, "\n") < t.sh.rows {
		return t.write(out)
	}
	lines := strings.SplitAfter(out, "\n")
	for n := t.sh.rows - 1; len(lines) > 0; {
		n = min(n, len(lines))
		if !t.write(strings.Join(lines[:n], "")) {
			return false
		}
		lines = lines[n:]
		if len(lines) == 0 || len(lines) == 1 && lines[0] == "" {
			return true
		}
		if !t.raw([]byte("\x1b[7m --More-- \x1b[0m")) {
			return false
		}
		n = 0
		for n == 0 {
			c, err := t.in.ReadByte()
			switch {
			case err != nil:
				return false
			case c == ' ':
				n = t.sh.rows - 1
			case c == '\r' || c == '\n':
				n = 1
			case c == 'q' || c == 'Q' || c == 0x03:
				return t.raw([]byte("\r\x1b[K"))
			}
		}
		if !t.raw([]byte("\r\x1b[K")) {
			return false
		}
	}
	return true
}

// write sends text with the line ends of the terminal.
func (t *terminal) write(text string) bool {
	if t.pty {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return t.raw([]byte(text))
}

// raw sends bytes, cut and delayed as the faults say. It reports whether the connection still stands.
func (t *terminal) raw(b []byte) bool {
	f := t.sw.currentFaults()
	for len(b) > 0 {
		n := len(b)
		if f.Chunk > 0 {
			n = min(n, f.Chunk)
		}
		cut := f.Chunk > 0
		if i := bytes.Index(b, []byte(f.SplitAt)); f.SplitAt != "" && i >= 0 && i+len(f.SplitAt) <= n {
			n, cut = i+len(f.SplitAt), true
		}
		if _, err := t.ch.Write(b[:n]); err != nil {
			return false
		}
		b = b[n:]
		if cut && !t.wait(f.Pause) {
			return false
		}
	}
	return true
}

// wait lets d pass. It reports whether the connection still stands.
func (t *terminal) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-t.gone:
		return false
	}
}
