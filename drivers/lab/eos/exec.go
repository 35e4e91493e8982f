package eos

import (
	"fmt"
	"strconv"
	"strings"
)

// level is where an exec command may be typed.
type level uint8

const (
	user       level = 1 << iota // the ">" prompt
	privileged                   // the "#" prompt
	configure                    // any configuration mode, in a session or not
	inSession                    // a configuration session
	anywhere   = user | privileged | configure
	enabled    = privileged | configure
)

// command is one command that is not configuration.
type command struct {
	at      level
	pattern string
	run     func(h *shell, m *match) string
}

// commands is the table of everything but configuration. Only what fabricctl and a visitor need is here.
func commands() []command {
	return []command{
		{user, "enable", (*shell).enable},
		{privileged, "enable", func(*shell, *match) string { return "" }},
		{privileged, "disable", func(h *shell, _ *match) string { h.enabled = false; return "" }},
		{user | privileged, "exit|quit|logout", func(h *shell, _ *match) string { h.done = true; return "" }},
		{anywhere, "terminal length <0-32767>", func(h *shell, m *match) string { h.rows, _ = strconv.Atoi(m.args[0]); return "" }},
		{anywhere, "terminal width <10-32767>", func(h *shell, m *match) string { h.cols, _ = strconv.Atoi(m.args[0]); return "" }},
		{anywhere, "show version", func(h *shell, _ *match) string { return h.sw.showVersion() }},
		{anywhere, "show hostname", func(h *shell, _ *match) string {
			return "Hostname: " + h.sw.running.hostname() + "\nFQDN:     " + h.sw.running.hostname() + "\n"
		}},
		{anywhere, "show lldp neighbors detail PIPE json", func(h *shell, _ *match) string { return h.sw.showNeighbours() }},
		{enabled, "show running-config", func(h *shell, _ *match) string { return h.sw.show("running-config", h.sw.running) }},
		{enabled, "show startup-config", func(h *shell, _ *match) string { return h.sw.show("startup-config", h.sw.startup) }},
		{enabled, "show running-config diffs", func(h *shell, _ *match) string {
			return diff("flash:/startup-config", "system:/running-config", h.sw.startup.text(), h.sw.running.text())
		}},
		{enabled, "show configuration sessions", func(h *shell, _ *match) string { return h.sw.listSessions(h.session, false) }},
		{enabled, "show configuration sessions detail", func(h *shell, _ *match) string { return h.sw.listSessions(h.session, true) }},
		{enabled, "write [memory]", (*shell).save},
		{enabled, "copy running-config startup-config", (*shell).save},
		{privileged, "reload now", func(h *shell, _ *match) string { h.done = true; go h.sw.Reload(); return "" }},

		{privileged, "configure [terminal]", func(h *shell, _ *match) string { h.configuring = true; return "" }},
		{privileged, "configure session [NAME]", (*shell).enterSession},
		{privileged, "configure session NAME commit", func(h *shell, m *match) string { return h.sw.confirmOrCommit(m.args[0]) }},
		{privileged, "configure session NAME abort", func(h *shell, m *match) string { return h.sw.abort(m.args[0]) }},
		{privileged, "no configure session NAME", func(h *shell, m *match) string { return h.sw.forget(m.args[0]) }},

		{configure, "end", func(h *shell, _ *match) string { h.leave(); return "" }},
		{configure, "exit", (*shell).up},
		{inSession, "show session-config", func(h *shell, _ *match) string {
			return h.sw.show("session-configuration named "+h.session.name, h.session.config)
		}},
		{inSession, "show session-config diffs", func(h *shell, _ *match) string {
			return diff("system:/running-config", "session:/"+h.session.name+"-session-config", h.sw.running.text(), h.session.config.text())
		}},
		{inSession, "commit", func(h *shell, _ *match) string { return h.commit("") }},
		{inSession, "commit timer TIME", func(h *shell, m *match) string { return h.commit(m.args[0]) }},
		{inSession, "abort", func(h *shell, _ *match) string {
			s := h.sw.abort(h.session.name)
			if s == "" {
				h.leave()
			}
			return s
		}},
		{inSession, "rollback clean-config", func(h *shell, _ *match) string {
			h.session.config, h.at = factoryConfig(h.sw.running.hostname(), h.sw.opt.Ports), place{}
			return ""
		}},
	}
}

// compileCommands is the table by level.
func compileCommands(cs []command) (map[level][]variant, map[*rule]command) {
	in, of := map[level][]variant{}, map[*rule]command{}
	for _, c := range cs {
		r := &rule{pattern: c.pattern}
		of[r] = c
		for _, ts := range compile(c.pattern) {
			for l := user; l <= inSession; l <<= 1 {
				if c.at&l != 0 {
					in[l] = append(in[l], variant{tokens: ts, rule: r})
				}
			}
		}
	}
	return in, of
}

func (s *Switch) show(what string, c *config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "! Command: show %s\n! device: %s (%s, EOS-%s)\n!\n! boot system flash:/EOS-%s.swi\n!\n", what, c.hostname(), s.opt.Model, s.opt.Version, s.opt.Version)
	b.WriteString(c.text())
	if s.opt.Foreign != "" {
		b.WriteString("!\n" + strings.TrimRight(s.opt.Foreign, "\n") + "\n")
	}
	if s.faults.NoEnd {
		return b.String()
	}
	return b.String() + "!\nend\n"
}

func (s *Switch) showVersion() string {
	return "Arista " + s.opt.Model + "\nHardware version: 11.00\nSerial number: " + s.opt.Serial +
		"\nHardware MAC address: 001c.7300.0001\nSystem MAC address: 001c.7300.0001\n\nSoftware image version: " + s.opt.Version +
		"\nArchitecture: x86_64\nImage format version: 3.0\nImage optimization: Default\n\nUptime: 1 week, 2 days, 3 hours and 4 minutes\n" +
		"Total memory: 32479132 kB\nFree memory: 25321472 kB\n\n"
}

// forget is no configure session: a pending session is dropped, one that ended is no longer listed.
func (s *Switch) forget(name string) string {
	x := s.session(name)
	switch {
	case x == nil:
		return ""
	case x.state == timed || x.state == pending:
		return s.abort(name)
	}
	for i, y := range s.sessions {
		if y == x {
			s.sessions = append(s.sessions[:i:i], s.sessions[i+1:]...)
			break
		}
	}
	return ""
}

func (h *shell) save(*match) string {
	if !h.sw.faults.IgnoreSave {
		h.sw.startup = h.sw.running.clone()
	}
	h.sw.counters.Saves++
	return "Copy completed successfully.\n"
}

func (h *shell) enable(*match) string {
	if h.sw.opt.EnablePassword == "" {
		h.enabled = true
		return ""
	}
	h.ask = func(secret string) string {
		if secret != h.sw.opt.EnablePassword {
			return "% Bad secrets\n"
		}
		h.enabled = true
		return ""
	}
	return ""
}

func (h *shell) enterSession(m *match) string {
	s := h.sw
	var name string
	if len(m.args) > 0 {
		name = m.args[0]
	} else {
		s.serial++
		name = fmt.Sprintf("sess-%d", s.serial)
	}
	x, sentence := s.open(name, s.opt.User, h.tty)
	if sentence != "" {
		return sentence
	}
	h.session, h.configuring, h.at = x, true, place{}
	return ""
}

func (h *shell) commit(timer string) string {
	d, _ := parseTimer(timer)
	if timer != "" && d == 0 {
		return invalid
	}
	sentence := h.sw.commit(h.session, d)
	if sentence == "" {
		h.leave()
	}
	return sentence
}

// leave goes back to the "#" prompt. A session stays pending.
func (h *shell) leave() { h.session, h.configuring, h.at = nil, false, place{} }

// up leaves one mode.
func (h *shell) up(*match) string {
	if n := len(h.at.path); n > 0 {
		h.at = place{h.at.path[:n-1], h.at.kinds[:n-1]}
	} else {
		h.leave()
	}
	return ""
}
