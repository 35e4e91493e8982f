package eos

import (
	"cmp"
	"strings"
)

// shell is one user at one prompt. Its methods are called with the switch's lock held.
type shell struct {
	sw          *Switch
	tty         string
	rows, cols  int // of the terminal; 0 rows: no paging
	enabled     bool
	configuring bool
	session     *session // nil in configure terminal
	at          place
	ask         func(secret string) string // the next line is an answer to "Password:"
	done        bool
}

// prompt is what stands before the cursor. In a session it shows six characters of the session's name, and modes
// are shortened as EOS shortens them.
func (h *shell) prompt() string {
	name := h.sw.running.hostname()
	switch {
	case h.ask != nil:
		return "Password: "
	case !h.enabled:
		return name + ">"
	case !h.configuring:
		return name + "#"
	}
	in := []string{"config"}
	if h.session != nil {
		in = append(in, "s", h.session.name[:min(6, len(h.session.name))])
	}
	for _, header := range h.at.path {
		in = append(in, shorten(header))
	}
	return name + "(" + strings.Join(in, "-") + ")#"
}

// shorten is a mode in a prompt: "if-Et1/1", "qos-profile-X", "uc-txq-3". How the memory profile is shortened was not
// recorded.
func shorten(header string) string {
	for _, x := range [][2]string{
		{"interface Ethernet", "if-Et"},
		{"interface Loopback", "if-Lo"},
		{"interface Management", "if-Ma"},
		{"interface Port-Channel", "if-Po"},
		{"qos profile ", "qos-profile-"},
		{"uc-tx-queue ", "uc-txq-"},
		{"tx-queue ", "txq-"},
		{"platform trident mmu queue profile ", "mmu-queue-profile-"},
	} {
		if rest, ok := strings.CutPrefix(header, x[0]); ok {
			return x[1] + rest
		}
	}
	return header
}

// line runs one line and returns what is printed.
func (h *shell) line(text string) string {
	if ask := h.ask; ask != nil {
		h.ask = nil
		return ask(text)
	}
	in := fields(text)
	if len(in) == 0 {
		return ""
	}
	if t := strings.TrimSpace(text); hits(h.sw.faults.Deny, t) {
		return "% Authorization denied for command '" + t + "'\n" // as recorded by users of EOS roles
	}
	if h.configuring {
		f := h.sw.faults
		if hits(f.Reject, strings.TrimSpace(text)) {
			return cmp.Or(f.RejectWith, invalid) + "\n"
		}
		if s := h.config(text, in); s != invalid {
			return terminated(s)
		}
	}
	return terminated(h.command(in))
}

// terminated is s with a newline at its end, unless it is empty.
func terminated(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// config types a line of configuration; the sentence is empty when it was taken. A session that another user ended
// meanwhile takes no lines.
func (h *shell) config(text string, in []string) string {
	s, c := h.sw, h.sw.running
	if h.session != nil {
		c = h.session.config
	}
	if h.session != nil && h.session.state != pending {
		if _, sentence := s.grammar.config(c.clone(), h.at, in); sentence != "" {
			return sentence
		}
		return "% Session " + h.session.name + " is " + string(h.session.state) // the sentence is ours
	}
	if hits(s.faults.IgnoreLine, strings.TrimSpace(text)) {
		c = c.clone()
	}
	at, sentence := s.grammar.config(c, h.at, in)
	if sentence == "" {
		h.at = at
		s.counters.ConfigLines++
	}
	return sentence
}

// command runs a line that is not configuration and returns what it prints.
func (h *shell) command(in []string) string {
	levels := []level{user}
	switch {
	case h.session != nil:
		levels = []level{inSession, configure}
	case h.configuring:
		levels = []level{configure}
	case h.enabled:
		levels = []level{privileged}
	}
	var vs []variant
	for _, l := range levels {
		vs = append(vs, h.sw.commands[l]...)
	}
	m, sentence := find(vs, in)
	switch {
	case m != nil:
		return h.sw.commandOf[m.rule].run(h, m)
	case sentence == invalid && !h.enabled:
		if m, _ := find(h.sw.commands[privileged], in); m != nil {
			return "% Invalid input (privileged mode required)"
		}
	}
	return sentence
}
