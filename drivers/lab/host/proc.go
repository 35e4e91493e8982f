package host

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
)

// What whoever runs verbs tests on a host asks its kernel: who a process is, who listens, and which GIDs there are.

// asked is cat of files of the kernel, ls and grep -rs of its RDMA devices, and command -v; shell is the number of the shell that
// runs it. ok is false for something else.
func (h *Host) asked(ws []string, shell int, out, errs io.Writer) (status int, ok bool) {
	switch {
	case ws[0] == "cat" && len(ws) > 1 && !slices.ContainsFunc(ws[1:], func(p string) bool { return !strings.HasPrefix(p, "/proc/") }):
		for _, p := range ws[1:] {
			text, there := h.procfs(p, shell)
			if !there {
				fmt.Fprintf(errs, "cat: %s: No such file or directory\n", p)
				status = 1
			}
			_, _ = io.WriteString(out, text)
		}
		return status, true
	case slices.Equal(ws, []string{"ls", rdmaDir}):
		for _, d := range h.rdmaDevices() {
			fmt.Fprintln(out, d)
		}
		return 0, true
	case ws[0] == "grep" && len(ws) > 3 && ws[1] == "-rs" && ws[2] == ".":
		found := false
		for _, dir := range ws[3:] {
			text := h.gidFiles(dir)
			found = found || text != ""
			_, _ = io.WriteString(out, text)
		}
		if !found {
			return 1, true
		}
		return 2, true // what an empty entry has cannot be read
	case ws[0] == "command" && len(ws) == 3 && ws[1] == "-v":
		_, test := perftest.Find(ws[2])
		if (test || ws[2] == "timeout") && !h.without(ws[2]) {
			fmt.Fprintf(out, "/usr/bin/%s\n", ws[2])
			return 0, true
		}
		return 127, true
	}
	return 0, false
}

// without reports whether a fault says that a program is not installed.
func (h *Host) without(program string) bool {
	return slices.Contains(strings.Fields(h.currentFaults().Without), program)
}

const rdmaDir = "/sys/class/infiniband"

// rdmaDevices are the RDMA devices of the host, in the order of its links.
func (h *Host) rdmaDevices() (out []string) {
	for _, l := range h.Links() {
		if n := h.nicOf(l.Name); n != nil && n.device() != "" {
			out = append(out, n.device())
		}
	}
	return out
}

// procfs is a file below /proc.
func (h *Host) procfs(path string, shell int) (text string, ok bool) {
	switch path {
	case "/proc/sys/kernel/random/boot_id":
		return h.bootID() + "\n", true
	case "/proc/net/tcp":
		return h.tcpTable(), true
	case "/proc/net/tcp6":
		return tcpHead, true
	}
	number, file, _ := strings.Cut(strings.TrimPrefix(path, "/proc/"), "/")
	pid, err := strconv.Atoi(number)
	if err != nil || file != "stat" {
		return "", false
	}
	name, parent := "", 1
	h.mu.Lock()
	p := h.processes[pid]
	start := uint64(h.boots)*1_000_000 + uint64(pid)
	h.mu.Unlock()
	switch {
	case p != nil && p.signal == "":
		name = p.args[0]
	case pid == shell:
		name = "sh"
	default:
		return "", false
	}
	return fmt.Sprintf("%d (%.15s) S %d %d %d 0 -1 4194304 100 0 0 0 1 1 0 0 20 0 1 0 %d 9000000 200 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, name, parent, pid, pid, start), true
}

// bootID is of the time since the host was started.
func (h *Host) bootID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := fnv.New64a()
	fmt.Fprint(x, h.opt.Hostname, h.boots)
	v := x.Sum64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(v), uint16(v>>32), uint16(v>>48)&0xfff, uint16(v)&0xfff, v&0xffffffffffff)
}

const tcpHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// tcpTable is /proc/net/tcp: who listens.
func (h *Host) tcpTable() string {
	var b strings.Builder
	b.WriteString(tcpHead)
	ports := []int{22}
	for _, p := range h.running() {
		if p.port != 0 && !p.server.RDMACM {
			ports = append(ports, p.port)
		}
	}
	for i, port := range ports {
		fmt.Fprintf(&b, "%4d: 00000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 %d 1 0000000000000000 100 0 0 10 0\n", i, port, 10000+i)
	}
	return b.String()
}

// gidFiles is what grep -rs . prints of a directory of a GID table.
func (h *Host) gidFiles(dir string) string {
	device, what, ok := strings.Cut(strings.TrimPrefix(dir, rdmaDir+"/"), "/ports/1/")
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, l := range h.Links() {
		n := h.nicOf(l.Name)
		if n == nil || n.device() != device {
			continue
		}
		h.mu.Lock()
		table := h.gids(l, n)
		h.mu.Unlock()
		for i, g := range table {
			var value string
			switch what {
			case "gids":
				for k := 0; k < len(g.gid); k += 2 {
					value += fmt.Sprintf(":%02x%02x", g.gid[k], g.gid[k+1])
				}
				value = value[1:]
			case "gid_attrs/types":
				value = map[gidFormat]string{v1GID: "IB/RoCE v1", ipv4GID: "RoCE v2", ipv6GID: "RoCE v2"}[g.format]
			case "gid_attrs/ndevs":
				if g.format != noGID {
					value = l.Name
				}
			}
			if value != "" {
				fmt.Fprintf(&b, "%s/%d:%s\n", dir, i, value)
			}
		}
	}
	return b.String()
}

// Running is the command lines of the programs that run.
func (h *Host) Running() (out []string) {
	for _, p := range h.running() {
		out = append(out, strings.Join(p.args, " "))
	}
	return out
}
