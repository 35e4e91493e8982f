package host

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
)

// process is a running program.
type process struct {
	pid    int
	args   []string
	ended  chan struct{} // closed when it was killed
	signal string        // by which
	port   int           // TCP port that it listens at; 0 = none
	server *server       // who answers there
	hangs  bool          // only SIGKILL ends it
}

// firstPID is the number of the first program.
const firstPID = 4712

// nextPID is the number of another program, or shell.
func (h *Host) nextPID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pids++
	return firstPID + h.pids
}

// start runs a program until it ends or is killed; the status of a killed one is killed + the signal's number.
func (h *Host) start(pid int, args []string, run func(p *process) int) int {
	p := &process{pid: pid, args: args, ended: make(chan struct{})}
	h.mu.Lock()
	if h.ending {
		h.mu.Unlock()
		return 255
	}
	h.processes[pid] = p
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.processes, pid)
	}()
	status := run(p)
	select {
	case <-p.ended:
		return killed + signals()[p.signal]
	default:
		return status
	}
}

// measuring is a verbs test, or a load, perhaps with timeout SECONDS before it; pid is the number that it gets, 0 = a new one.
// ok is false for something else.
func (h *Host) measuring(ws []string, pid int, out, errs io.Writer) (status int, ok bool) {
	limit := time.Duration(0)
	var last time.Duration // after the limit, when SIGKILL follows
	for len(ws) > 2 && ws[0] == "timeout" {
		i := 1
		if ws[1] == "-k" {
			i = 2
		}
		seconds, err := strconv.ParseFloat(strings.TrimSuffix(ws[i], "s"), 64)
		if err != nil || seconds < 0 || seconds > 1e6 {
			fmt.Fprintf(errs, "timeout: invalid time interval ‘%s’\nTry 'timeout --help' for more information.\n", ws[i])
			return 125, true
		}
		d := time.Duration(seconds * float64(time.Second))
		if i == 2 {
			last, ws = d, append([]string{"timeout"}, ws[3:]...)
			continue
		}
		limit, ws = d, ws[2:]
	}
	tool, ok := perftest.Find(ws[0])
	if !ok && ws[0] != loadName {
		return 0, false
	}
	if h.without(ws[0]) {
		fmt.Fprintf(errs, "sh: 1: %s: not found\n", ws[0])
		return 127, true
	}
	if pid == 0 {
		pid = h.nextPID()
	}
	if limit > 0 {
		t := time.AfterFunc(limit, func() { h.kill(pid, "TERM") })
		defer t.Stop()
		if last > 0 {
			k := time.AfterFunc(limit+last, func() { h.kill(pid, "KILL") })
			defer k.Stop()
		}
	}
	status = h.start(pid, ws, func(p *process) int {
		if !ok {
			return h.loadTool(ws[1:], p, out, errs)
		}
		return h.verbs(tool, ws[1:], p, out, errs)
	})
	if limit > 0 && status == killed+signals()["TERM"] {
		status = 124
	}
	return status, true
}

// loadName is the program of the lab's own.
const loadName = "fabricctl-lab-load"

// killed is added to the number of the signal that ended a program, in its status.
const killed = 1 << 16

// signals are those that end a program, and 0, which asks whether it is there.
func signals() map[string]int {
	return map[string]int{"0": 0, "HUP": 1, "INT": 2, "KILL": 9, "TERM": 15}
}

// kill ends a program; false when there is none.
func (h *Host) kill(pid int, signal string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.processes[pid]
	if p != nil && signal != "0" && p.signal == "" && (!p.hangs || signal == "KILL") {
		p.signal, p.port, p.server = signal, 0, nil
		close(p.ended)
	}
	return p != nil
}

// killAll ends all programs.
func (h *Host) killAll() {
	h.mu.Lock()
	pids := slices.Collect(maps.Keys(h.processes))
	h.mu.Unlock()
	for _, pid := range pids {
		h.kill(pid, "KILL")
	}
}

// running is all programs, by number.
func (h *Host) running() []process {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ps []process
	for _, pid := range slices.Sorted(maps.Keys(h.processes)) {
		if p := h.processes[pid]; p.signal == "" {
			ps = append(ps, *p)
		}
	}
	return ps
}

// processTool is kill, pgrep, ss and the kernel's files about programs; ok is false for something else.
func (h *Host) processTool(ws []string, out, errs io.Writer) (status int, ok bool) {
	switch {
	case ws[0] == "kill":
		return h.killTool(ws[1:], errs), true
	case ws[0] == "pgrep":
		return h.pgrep(ws[1:], out, errs), true
	case ws[0] == "ss" && len(ws) > 1 && strings.Trim(ws[1], "-Hltnp") == "" && strings.Contains(ws[1], "l"):
		return h.sockets(ws[1], ws[2:], out, errs), true
	case len(ws) == 3 && ws[0] == "test" && (ws[1] == "-e" || ws[1] == "-d") && strings.HasPrefix(ws[2], "/proc/"):
		pid, _ := strconv.Atoi(strings.TrimPrefix(ws[2], "/proc/"))
		if !h.kill(pid, "0") {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func (h *Host) killTool(args []string, errs io.Writer) (status int) {
	signal := "TERM"
	if len(args) > 1 && args[0] == "-s" {
		args = append([]string{"-" + args[1]}, args[2:]...)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		want := strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "SIG")
		signal = ""
		for name, number := range signals() {
			if want == name || want == strconv.Itoa(number) {
				signal = name
			}
		}
		if signal == "" {
			fmt.Fprintf(errs, "sh: 1: kill: Illegal option -%s\n", want)
			return 2
		}
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprint(errs, "sh: 1: kill: Usage: kill [-s sigspec | -signum | -sigspec] [pid | job]... or\nkill -l [exitstatus]\n")
		return 2
	}
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		switch {
		case err != nil:
			fmt.Fprintf(errs, "sh: 1: kill: Illegal number: %s\n", a)
			return 2
		case !h.kill(max(pid, -pid), signal): // -PID is the group that it leads, which is it alone
			fmt.Fprint(errs, "sh: 1: kill: No such process\n")
			status = 1
		}
	}
	return status
}

// pgrep is pgrep [-f] [-x] [-n] [-a|-l] PATTERN.
func (h *Host) pgrep(args []string, out, errs io.Writer) int {
	var flags, pattern string
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			flags += a[1:]
		} else {
			pattern = a
		}
	}
	if strings.Contains(flags, "x") {
		pattern = "^(" + pattern + ")$"
	}
	re, err := regexp.Compile(pattern)
	if err != nil || pattern == "" || strings.Trim(flags, "fxnal") != "" {
		fmt.Fprint(errs, "pgrep: only -f, -x, -n, -a, -l and one pattern are emulated\n")
		return 2
	}
	var found []string
	for _, p := range h.running() {
		line := strings.Join(p.args, " ")
		of := p.args[0]
		if strings.Contains(flags, "f") {
			of = line
		}
		if !re.MatchString(of) {
			continue
		}
		s := strconv.Itoa(p.pid)
		switch {
		case strings.Contains(flags, "a"):
			s += " " + line
		case strings.Contains(flags, "l"):
			s += " " + p.args[0]
		}
		found = append(found, s)
	}
	if strings.Contains(flags, "n") && len(found) > 0 {
		found = found[len(found)-1:]
	}
	if len(found) == 0 {
		return 1
	}
	fmt.Fprintln(out, strings.Join(found, "\n"))
	return 0
}

// sockets is ss -ltn, with the filter "sport = :PORT" if there is one.
func (h *Host) sockets(flags string, filter []string, out, errs io.Writer) int {
	only := 0
	if f := strings.Fields(strings.Join(filter, " ")); len(f) > 0 {
		n, err := strconv.Atoi(strings.TrimPrefix(f[len(f)-1], ":"))
		if len(f) != 3 || f[0] != "sport" || f[1] != "=" && f[1] != "eq" || err != nil {
			fmt.Fprintf(errs, "Error: an inet prefix is expected rather than \"%s\".\nCannot parse dst/src address.\n", f[0])
			return 255
		}
		only = n
	}
	if !strings.Contains(flags, "H") {
		fmt.Fprint(out, "State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n")
	}
	row := func(port, backlog int, who string) {
		if only != 0 && only != port {
			return
		}
		s := fmt.Sprintf("LISTEN 0      %-6d %13s:%-4d %12s:*    ", backlog, "0.0.0.0", port, "0.0.0.0")
		if strings.Contains(flags, "p") && who != "" {
			s += who
		}
		fmt.Fprintln(out, strings.TrimRight(s, " "))
	}
	row(22, 128, "")
	for _, p := range h.running() {
		if p.port != 0 && !p.server.RDMACM { // rdma_cm listens elsewhere
			row(p.port, 1, fmt.Sprintf("users:((%q,pid=%d,fd=4))", p.args[0], p.pid))
		}
	}
	return 0
}
