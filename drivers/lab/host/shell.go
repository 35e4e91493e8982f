package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// words splits a command line as a POSIX shell does, as far as quotes go. Everything that a shell would expand or
// interpret is refused: whoever builds a command for this host has to quote it.
func words(line string) ([]string, error) {
	var ws []string
	var w strings.Builder
	in, open := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case in == '\'' && c != '\'', in == '"' && !strings.ContainsRune("\"\\$`", rune(c)):
			w.WriteByte(c)
		case in != 0 && c == in:
			in = 0
		case in == 0 && (c == '\'' || c == '"'):
			in, open = c, true
		case c == '\\' && i+1 < len(line):
			i++
			w.WriteByte(line[i])
			open = true
		case in == 0 && (c == ' ' || c == '\t'):
			if open {
				ws = append(ws, w.String())
				w.Reset()
				open = false
			}
		case strings.ContainsRune("$`;|&<>()*?[]#~!\\\n", rune(c)):
			return nil, fmt.Errorf("%q is not quoted", c)
		default:
			w.WriteByte(c)
			open = true
		}
	}
	if in != 0 {
		return nil, errors.New("unterminated quoted string")
	}
	if open {
		ws = append(ws, w.String())
	}
	return ws, nil
}

// commands splits a command line at the ; between commands.
func commands(line string) []string {
	var cs []string
	in, from := byte(0), 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case in == 0 && c == ';':
			cs = append(cs, line[from:i])
			from = i + 1
		case c == '\\' && in != '\'':
			i++
		case in == 0 && (c == '\'' || c == '"'):
			in = c
		case c == in:
			in = 0
		}
	}
	return append(cs, line[from:])
}

// run is a command line; the result is the exit status of the last command.
func (h *Host) run(line string, ch ssh.Channel, gone <-chan struct{}) int {
	_, _ = io.WriteString(ch, h.opt.MOTD)
	return h.line(line, h.nextPID(), ch, gone)
}

// line is a command line of the shell with number pid.
func (h *Host) line(line string, pid int, ch ssh.Channel, gone <-chan struct{}) (status int) {
	for _, c := range commands(line) {
		status = h.command(c, pid, ch, gone)
	}
	return status
}

// own puts the number of the shell for $$, where a shell would.
func own(line string, pid int) string {
	var b strings.Builder
	in := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && in != '\'' && i+1 < len(line):
			b.WriteByte(c)
			i++
		case in != '\'' && strings.HasPrefix(line[i:], "$$"):
			b.WriteString(strconv.Itoa(pid))
			i++
			continue
		case in == 0 && (c == '\'' || c == '"'):
			in = c
		case c == in:
			in = 0
		}
		b.WriteByte(line[i])
	}
	return b.String()
}

// command is one command of the shell with number pid.
func (h *Host) command(line string, pid int, ch ssh.Channel, gone <-chan struct{}) int {
	fail := func(status int, format string, a ...any) int {
		_, _ = fmt.Fprintf(ch.Stderr(), format+"\n", a...)
		return status
	}
	ws, err := words(own(line, pid))
	if err != nil {
		return fail(2, "sh: 1: Syntax error: %v", err)
	}
	shell := pid
	if len(ws) > 0 && ws[0] == "exec" {
		ws = ws[1:]
	} else {
		pid = 0 // another program has a number of its own
	}
	if len(ws) > 1 && ws[0] == "sudo" && ws[1] == "-n" {
		if ws = ws[2:]; h.opt.NoSudo {
			return fail(1, "sudo: a password is required")
		}
	}
	if len(ws) == 0 {
		return 0
	}
	say := func(format string, a ...any) int {
		if !h.pause(gone) {
			return 255
		}
		_, _ = fmt.Fprintf(ch, format, a...)
		return 0
	}
	if out, ok := h.tool(ws); ok {
		return say("%s", out)
	}
	if status, ok := h.asked(ws, shell, ch, ch.Stderr()); ok {
		return status
	}
	if status, ok := h.processTool(ws, ch, ch.Stderr()); ok {
		return status
	}
	if status, ok := h.measuring(ws, pid, ch, ch.Stderr()); ok {
		return status
	}
	if len(ws) == 3 && ws[0] == "sh" && ws[1] == "-c" {
		return h.line(ws[2], cmp.Or(pid, h.nextPID()), ch, gone)
	}
	switch cmd := strings.Join(ws, " "); {
	case cmd == "sh -s":
		return h.script(ch, gone)
	case ws[0] == "echo":
		_, _ = fmt.Fprintln(ch, strings.Join(ws[1:], " "))
		return 0
	case cmd == "uname -sm":
		return say("Linux %s\n", h.opt.Machine)
	case cmd == "uname -r":
		return say("%s\n", h.opt.Kernel)
	case cmd == "hostname":
		return say("%s\n", h.opt.Hostname)
	case cmd == "id -u":
		return say("%d\n", os.Geteuid()) // the owner of what sftp writes
	case cmd == "ip -j link show", cmd == "ip -j -d link show":
		return say("%s\n", h.linksJSON(ws[2] == "-d"))
	case ws[0] == "ip":
		return h.ip(ws[1:], fail)
	case ws[0] == "test" && len(ws) == 3 && ws[1] == "-e":
		if _, err := h.fs.Stat(rel(h.abs(ws[2]))); err != nil {
			return 1
		}
		return 0
	case ws[0] == "cat" && len(ws) == 2, ws[0] == "sha256sum" && len(ws) == 2:
		b, err := h.fs.ReadFile(rel(h.abs(ws[1])))
		if err != nil {
			return fail(1, "%s: %s: %s", ws[0], ws[1], sentence(err))
		}
		if ws[0] == "sha256sum" {
			b = fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(b), ws[1])
		}
		return say("%s", b)
	case strings.Contains(ws[0], "/"):
		return h.program(ws, ch, gone, fail)
	}
	return fail(127, "sh: 1: %s: not found", ws[0])
}

// program runs an uploaded file, which can only be the agent.
func (h *Host) program(ws []string, ch ssh.Channel, gone <-chan struct{}, fail func(int, string, ...any) int) int {
	fi, err := h.fs.Stat(rel(h.abs(ws[0])))
	switch {
	case err != nil:
		return fail(127, "sh: 1: %s: not found", ws[0])
	case fi.Mode()&0o100 == 0:
		return fail(126, "sh: 1: %s: Permission denied", ws[0])
	case !strings.HasPrefix(path.Base(ws[0]), "fabricctl-host") || !slices.Equal(ws[1:], []string{"serve"}):
		return fail(126, "sh: 1: %s: not emulated", strings.Join(ws, " "))
	}
	h.agent(ch, gone)
	return 0
}

// abs is a path as seen from the home directory.
func (h *Host) abs(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(h.home(), p)
	}
	return path.Clean(p)
}

// pause is the delay of the faults; false when the connection ended first.
func (h *Host) pause(gone <-chan struct{}) bool {
	d := h.currentFaults().Delay
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
		return false
	}
}

// linksJSON is what ip -j link show prints, with the fields that iproute2 always has; with details (-d) limits and PCI
// address too.
func (h *Host) linksJSON(details bool) []byte {
	type ipLink struct {
		Index     int      `json:"ifindex"`
		Name      string   `json:"ifname"`
		Flags     []string `json:"flags"`
		MTU       int      `json:"mtu"`
		Operstate string   `json:"operstate"`
		LinkType  string   `json:"link_type"`
		Min       int      `json:"min_mtu,omitempty"`
		Max       int      `json:"max_mtu,omitempty"`
		ParentBus string   `json:"parentbus,omitempty"`
		Parent    string   `json:"parentdev,omitempty"`
		Master    string   `json:"master,omitempty"`
	}
	ls := []ipLink{{Index: 1, Name: "lo", Flags: []string{"LOOPBACK", "UP", "LOWER_UP"}, MTU: 65536, Operstate: "UNKNOWN", LinkType: "loopback"}}
	for i, l := range h.Links() {
		x := ipLink{Index: i + 2, Name: l.Name, Flags: []string{"BROADCAST", "MULTICAST", "UP", "LOWER_UP"}, MTU: l.MTU, Operstate: "UP", LinkType: "ether"}
		if details {
			if x.Min, x.Max = l.Min, l.Max; l.PCI != "" {
				x.ParentBus, x.Parent = "pci", l.PCI
			}
			x.Master = l.Master
		}
		ls = append(ls, x)
	}
	b, err := json.Marshal(ls)
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// ip is ip link set [dev] NAME mtu N: how somebody changes a link by hand.
func (h *Host) ip(args []string, fail func(int, string, ...any) int) int {
	if len(args) == 6 && args[2] == "dev" {
		args = slices.Delete(slices.Clone(args), 2, 3)
	}
	if len(args) != 5 || args[0] != "link" || args[1] != "set" || args[3] != "mtu" {
		return fail(255, "ip: only link show and link set dev NAME mtu N are emulated")
	}
	mtu, err := strconv.ParseUint(args[4], 10, 31)
	if err != nil {
		return fail(255, `Error: argument "%s" is wrong: Invalid "mtu" value`, args[4])
	}
	switch err := h.SetMTU(args[2], int(mtu)); {
	case errors.Is(err, errNoLink):
		return fail(1, `Cannot find device "%s"`, args[2])
	case err != nil:
		text, _, _ := strings.Cut(err.Error(), " (")
		return fail(2, "Error: %s.", text)
	}
	return 0
}
