package perftest

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Exec runs commands on hosts, by their names in the model. Commands are lines for a POSIX shell.
type Exec interface {
	// Run waits for the end of a command. A status other than 0 is not an error: an error is a host that cannot be talked to.
	Run(ctx context.Context, host, command string) (Output, error)
	// Start begins a command and goes on once head, which is given the lines of its standard output, has returned true. The
	// end of ctx ends the waiting, and not the command.
	Start(ctx context.Context, host, command string, head func(line string) bool) (Running, error)
}

// Running is a command that goes on.
type Running interface {
	Wait() (Output, error) // for its end; its outputs are those after the head
}

// Output is what a command has left.
type Output struct {
	Stdout, Stderr []byte
	Status         int // negative: a signal has ended it
}

// mark stands on a line of its own before what we have asked for: what a login shell prints by itself comes before it.
const mark = "@@fabricctl@@"

// ask runs a command and returns what it printed.
func ask(ctx context.Context, e Exec, host, command string) (string, int, error) {
	out, err := e.Run(ctx, host, "echo "+mark+"; "+command)
	if err != nil {
		return "", 0, err
	}
	_, said, ok := strings.Cut("\n"+string(out.Stdout), "\n"+mark+"\n")
	if !ok {
		return "", 0, fmt.Errorf("%s: %q was answered by %q: this is no POSIX shell", host, command, printable(out.Stdout))
	}
	return said, out.Status, nil
}

// Process is a process on a host, as its kernel knows it: a number alone may be another's by now.
type Process struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"` // in ticks since the host was started
	Boot    string `json:"boot"`  // of that start
	Command string `json:"command"`
}

// String names the process for people.
func (p Process) String() string {
	return fmt.Sprintf("process %d of %s (%s)", p.PID, p.Host, printable([]byte(p.Command)))
}

// whoAmI are the commands of a shell that says what it is: what it becomes by exec has the same number and start.
const whoAmI = "cat /proc/sys/kernel/random/boot_id; cat /proc/$$/stat"

// identity collects the lines that whoAmI prints after the mark.
type identity struct {
	marked bool
	boot   string
	p      Process
}

// line takes a line, and reports whether it was the last.
func (id *identity) line(s string) bool {
	s = strings.TrimRight(s, "\r\n")
	switch {
	case s == mark:
		id.marked = true
	case !id.marked:
	case id.boot == "":
		id.boot = s
	default:
		if p, state, ok := readStat(s); ok && state != 'Z' {
			id.p = p
			id.p.Boot = id.boot
		}
		return true
	}
	return false
}

// readStat reads a line of /proc/PID/stat: the number, the name in brackets, which may have anything in it, the state, and 18 numbers before the time of the
// start (proc_pid_stat(5), field 22).
func readStat(s string) (p Process, state byte, ok bool) {
	end := strings.LastIndexByte(s, ')')
	number, _, named := strings.Cut(s, " (")
	if end < 0 || !named {
		return p, 0, false
	}
	f := strings.Fields(s[end+1:])
	pid, err := strconv.ParseInt(number, 10, 31)
	if err != nil || pid < 2 || len(f) < 20 || len(f[0]) != 1 {
		return p, 0, false
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	return Process{PID: int(pid), Start: start}, f[0][0], err == nil
}

// alive reports whether it is p that has its number now.
func alive(ctx context.Context, e Exec, p Process) (bool, error) {
	said, _, err := ask(ctx, e, p.Host, fmt.Sprintf("cat /proc/sys/kernel/random/boot_id; cat /proc/%d/stat", p.PID))
	if err != nil {
		return false, err
	}
	boot, rest, _ := strings.Cut(said, "\n")
	now, state, ok := readStat(strings.TrimSpace(rest))
	return ok && state != 'Z' && boot == p.Boot && now.Start == p.Start && now.PID == p.PID, nil
}

// readListening reads the ports that something listens at from /proc/net/tcp and tcp6: the second column is the address and
// the port, the fourth the state, in which 0A is LISTEN.
func readListening(text string) map[int]bool {
	out := map[int]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		_, port, ok := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); ok && err == nil {
			out[int(n)] = true
		}
	}
	return out
}

func listening(ctx context.Context, e Exec, host string) (map[int]bool, error) {
	said, _, err := ask(ctx, e, host, "cat /proc/net/tcp /proc/net/tcp6")
	if err != nil {
		return nil, err
	}
	if !strings.Contains(said, "local_address") {
		return nil, fmt.Errorf("%s: /proc/net/tcp says %q, and no table of sockets", host, printable([]byte(said)))
	}
	return readListening(said), nil
}

// gid is a used entry of the GID table of an RDMA device.
type gid struct {
	device      string
	port, index int
	address     netip.Addr
	v2          bool
	link        string
}

// gidCommand prints the tables of devices, a file's name before each line. What an empty entry has cannot be read, which grep then
// leaves out.
func gidCommand(devices []string) string {
	c := "grep -rs ."
	for _, d := range devices {
		for _, port := range []string{"1", "2"} {
			for _, what := range []string{"gids", "gid_attrs/types", "gid_attrs/ndevs"} {
				c += " /sys/class/infiniband/" + d + "/ports/" + port + "/" + what
			}
		}
	}
	return c
}

// readGIDs reads what gidCommand prints, in the order of devices, ports and indexes.
func readGIDs(text string) []gid {
	type at struct {
		device      string
		port, index int
	}
	all := map[at]*gid{}
	for line := range strings.Lines(text) {
		path, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		f := strings.Split(strings.TrimPrefix(path, "/sys/class/infiniband/"), "/")
		if !ok || len(f) < 5 || f[1] != "ports" || !plainWord(f[0], "_-.") {
			continue
		}
		port, err1 := strconv.ParseUint(f[2], 10, 8)
		index, err2 := strconv.ParseUint(f[len(f)-1], 10, 16)
		if err1 != nil || err2 != nil {
			continue
		}
		k := at{f[0], int(port), int(index)}
		if all[k] == nil {
			all[k] = &gid{device: k.device, port: k.port, index: k.index}
		}
		switch f[len(f)-2] {
		case "gids":
			b, err := hex.DecodeString(strings.ReplaceAll(value, ":", ""))
			if a, ok := netip.AddrFromSlice(b); err == nil && ok && !a.IsUnspecified() {
				all[k].address = a.Unmap()
			}
		case "types":
			all[k].v2 = value == "RoCE v2"
		case "ndevs":
			all[k].link = value
		}
	}
	var out []gid
	for _, g := range all {
		if g.address.IsValid() {
			out = append(out, *g)
		}
	}
	slices.SortFunc(out, func(a, b gid) int {
		return strings.Compare(fmt.Sprintf("%s/%03d/%05d", a.device, a.port, a.index), fmt.Sprintf("%s/%03d/%05d", b.device, b.port, b.index))
	})
	return out
}

// pick is the RoCE v2 entry of an end's address, or without one of the IPv4 address of its interface, or else of its link-local address, which leads
// no further than the next router. Indexes are never assumed: they differ between
// hosts, have holes, and move when a link goes down and up. The second result says why there is none.
func pick(table []gid, e *End) (gid, string) {
	var fit, local []gid
	v1 := false
	for _, g := range table {
		on := g.link == e.Iface || e.Bond != "" && g.link == e.Bond || strings.HasPrefix(g.link, e.Iface+".") && e.Iface != ""
		switch {
		case e.RDMA != "" && g.device != e.RDMA,
			e.Address.IsValid() && g.address != e.Address,
			e.Iface != "" && g.link != "" && !on,
			!e.Address.IsValid() && (e.Iface == "" || !on):
		case !e.Address.IsValid() && !g.address.Is4():
			if g.v2 && g.address.IsLinkLocalUnicast() {
				local = append(local, g)
			}
		case !g.v2:
			v1 = true
		default:
			fit = append(fit, g)
		}
	}
	if len(fit) == 0 && len(local) > 0 && !v1 {
		fit = local[:1]
	}
	what := "an IPv4 address on " + e.Iface
	if e.Address.IsValid() {
		what = e.Address.String()
		if e.Iface != "" {
			what += " on " + e.Iface
		}
	}
	switch {
	case !e.Address.IsValid() && e.Iface == "":
		return gid{}, "neither the address nor the interface of the NIC is known; give ip or netdev under its nics in the inventory"
	case len(fit) == 0 && v1:
		return gid{}, "the GID table has " + what + " for RoCE v1 only"
	case len(fit) == 0 && len(table) == 0:
		return gid{}, "no RDMA device has a GID: is the driver loaded, and the link up?"
	case len(fit) == 0:
		return gid{}, "no RDMA device has a GID of RoCE v2 for " + what
	case !e.Address.IsValid() && slices.ContainsFunc(fit, func(g gid) bool { return g.address != fit[0].address }):
		return gid{}, fmt.Sprintf("%s has several addresses, of which %s and %s: give the NIC's ip in the inventory", e.Iface, fit[0].address, fit[len(fit)-1].address)
	}
	if fit[0].index > mostGID {
		return gid{}, fmt.Sprintf("the GID of %s is number %d of the table, and perftest takes up to %d", what, fit[0].index, mostGID)
	}
	return fit[0], ""
}
