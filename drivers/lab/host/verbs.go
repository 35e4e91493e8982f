package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
)

// server is a test that waits for its client.
type server struct {
	*side
	process *process
	answer  chan verdict // what the server prints after that
}

// side is one side of a test on a host.
type side struct {
	perftest.Side
	host   *Host
	end    End
	mtu    int // payload of a packet that this side would have
	format gidFormat
}

// verdict is what a program prints, and its status.
type verdict struct {
	stdout, stderr string
	status         int
}

// gidFormat is what an entry of a GID table is made of.
type gidFormat uint8

const (
	noGID gidFormat = iota
	ipv4GID
	ipv6GID
	v1GID // RoCE v1, which has no IP header
)

// verbs runs one of the programs of perftest.
func (h *Host) verbs(t perftest.Tool, args []string, p *process, out, errs io.Writer) int {
	fault := h.currentFaults()
	if fault.Perftest != "" && slices.Equal(args, []string{"--version"}) {
		fmt.Fprintf(out, "Version: %s\n", fault.Perftest)
		return 0
	}
	o, ended := perftest.Parse(t, args)
	if ended != nil {
		_, _ = io.WriteString(out, ended.Stdout)
		_, _ = io.WriteString(errs, ended.Stderr)
		return ended.Status
	}
	s, sentence := h.side(o)
	if sentence != "" {
		_, _ = io.WriteString(errs, sentence)
		return 1
	}
	begin, warning := s.Start()
	mtu, said, complaint := o.PathMTU(s.mtu)
	s.mtu = mtu
	_, _ = io.WriteString(errs, warning+complaint)
	if fault.Hang && o.Server != "" {
		h.mu.Lock()
		p.hangs = true
		h.mu.Unlock()
		<-p.ended
		return 1
	}
	var v verdict
	if o.Server == "" {
		v = h.serveTest(s, p)
	} else {
		v = h.clientTest(s, p)
	}
	select {
	case <-p.ended: // what it had to print was still in its buffer
		return 1
	default:
	}
	_, _ = io.WriteString(errs, v.stderr)
	_, _ = io.WriteString(out, begin+said+v.stdout)
	return v.status
}

// side opens the device that was asked for; the sentence is what perftest says where that is impossible.
func (h *Host) side(o perftest.Options) (s *side, sentence string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var l *Link
	var n *nic
	for i := range h.links {
		c := h.nics[h.links[i].Name]
		if c != nil && c.device() != "" && (o.Device == "" && n == nil || o.Device == c.device()) {
			l, n = &h.links[i], c
		}
	}
	switch {
	case n == nil:
		return nil, o.NoDevice()
	case o.IBPort != 1:
		return nil, o.NoPort()
	case n.down:
		return nil, o.PortDown()
	}
	table := h.gids(*l, n)
	s = &side{host: h, mtu: activeMTU(l.MTU)}
	s.Side = perftest.Side{Options: o, Card: perftest.Card{Name: n.device(), Reads: 16, NewAPI: n.kind.personality == "mlx5"}, Index: o.GID}
	if o.GID == perftest.NotGiven {
		s.Index = max(slices.IndexFunc(table, func(g gidEntry) bool { return g.format == ipv4GID }), 0)
		if s.Index == 0 {
			s.Index = max(slices.IndexFunc(table, func(g gidEntry) bool { return g.format == ipv6GID }), 0)
		}
	}
	if s.Index < len(table) {
		s.format, s.GID = table[s.Index].format, table[s.Index].gid
	}
	if s.format == v1GID {
		return nil, fmt.Sprintf("the lab does not emulate RoCE v1, and GID index %d is of it\n", s.Index)
	}
	s.end = End{h.opt.Hostname, l.Name, mark(n, o)}
	for range o.QPs {
		h.qps++
		x := fnv.New64a()
		fmt.Fprint(x, h.opt.Hostname, l.Name, h.qps)
		v := x.Sum64()
		s.Pairs = append(s.Pairs, perftest.QP{Number: uint32(0x100 + h.qps), PSN: uint32(v) & 0xffffff, RKey: 0x1000 + uint32(h.qps)<<8, Addr: 0x7f0000000000 | v>>12&0xffffffff000})
	}
	return s, ""
}

// mark is the ToS byte of what a test sends: what the driver forces on all, else what was asked for, else for connections of
// rdma_cm what the device has for them.
func mark(n *nic, o perftest.Options) uint8 {
	if forced, err := strconv.ParseUint(n.words["roce traffic-class"], 10, 8); err == nil {
		return uint8(forced)
	}
	switch {
	case o.RDMACM && o.ToS != perftest.NotGiven:
		return uint8(o.ToS)
	case o.RDMACM:
		tos, _ := strconv.ParseUint(n.words["roce tos"], 10, 8)
		return uint8(tos)
	case o.TClass != perftest.NotGiven:
		return uint8(o.TClass)
	}
	return 0
}

// activeMTU is the payload of RDMA packets that fits an interface's MTU: the largest one with all headers that there can be, as
// iboe_get_mtu of Linux has it.
func activeMTU(netdev int) int {
	for _, mtu := range []int{4096, 2048, 1024, 512} {
		if netdev >= mtu+96 {
			return mtu
		}
	}
	return 256
}

// gidEntry is an entry of a GID table.
type gidEntry struct {
	format gidFormat
	gid    [16]byte
}

// gids is the GID table of a NIC: its link-local address and its IPv4 address, on mlx5 for RoCE v1 and v2. The host's lock is
// held.
func (h *Host) gids(l Link, n *nic) []gidEntry {
	table := make([]gidEntry, 66)
	local := netip.MustParseAddr("fe80::ff:fe00:0").As16() // of a MAC address that the lab makes up
	x := fnv.New32a()
	fmt.Fprint(x, h.opt.Hostname, l.Name)
	local[13], local[14], local[15] = byte(x.Sum32()>>16), byte(x.Sum32()>>8), byte(x.Sum32())
	first := 0
	if n.kind.personality == "mlx5" {
		table[0], first = gidEntry{v1GID, local}, 1
	}
	table[first] = gidEntry{ipv6GID, local}
	i := slices.IndexFunc(h.addresses(l), func(a string) bool { return strings.Contains(a, ".") })
	if i < 0 || n.gid < 0 || n.gid >= len(table) {
		return table
	}
	p, err := netip.ParsePrefix(h.addresses(l)[i])
	if err != nil {
		return table
	}
	at := netip.AddrFrom16(p.Addr().As16()).As16()
	if n.kind.personality == "mlx5" && n.gid > 1 {
		table[n.gid-1] = gidEntry{v1GID, at}
	}
	table[n.gid] = gidEntry{ipv4GID, at}
	return table
}

// serveTest waits for a client, and for what it comes to.
func (h *Host) serveTest(s *side, p *process) verdict {
	srv := &server{side: s, process: p, answer: make(chan verdict, 1)}
	h.mu.Lock()
	for _, o := range h.processes {
		if o.port == s.Port {
			h.mu.Unlock()
			return verdict{stderr: s.PortBusy(), status: 1}
		}
	}
	p.port, p.server = s.Port, srv
	h.mu.Unlock()
	select {
	case v := <-srv.answer:
		return v
	case <-p.ended:
		return verdict{}
	}
}

// take connects to whoever listens at a port, who takes nobody else then; nil when nobody does.
func (h *Host) take(port int, rdmaCM bool) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return nil
	}
	for _, p := range h.processes {
		if p.port == port && p.server != nil && p.server.RDMACM == rdmaCM {
			s := p.server
			p.port, p.server = 0, nil
			return s
		}
	}
	return nil
}

// clientTest connects to a server and runs the test, for both.
func (h *Host) clientTest(s *side, p *process) verdict {
	var to *Host
	if h.opt.Network != nil {
		var known bool
		if to, known = h.opt.Network.find(s.Server, h); !known {
			return verdict{stderr: s.NoName(), status: 1}
		}
	}
	if to == nil {
		return verdict{stderr: s.NoServer(), status: 1}
	}
	srv := to.take(s.Port, s.RDMACM)
	if srv == nil {
		return verdict{stderr: s.NoServer(), status: 1}
	}
	mine, theirs := h.agree(s, srv, p)
	srv.answer <- theirs
	return mine
}

// agree is what client and server print.
func (h *Host) agree(c *side, srv *server, p *process) (mine, theirs verdict) {
	s := srv.side
	mtu := min(c.mtu, s.mtu)
	mine.stdout, theirs.stdout = c.Head(mtu), s.Head(mtu)
	both := func(m, t string) (verdict, verdict) {
		mine.stderr, theirs.stderr, mine.status, theirs.status = m, t, 1, 1
		return mine, theirs
	}
	if c.format != s.format || c.format == noGID {
		return both(perftest.WrongGID, perftest.WrongGID)
	}
	if c.QPs != s.QPs {
		return both(c.PeerGone(), s.PeerGone())
	}
	mine.stdout += c.Peers(&s.Side)
	theirs.stdout += s.Peers(&c.Side)
	switch {
	case c.Tool != s.Tool:
		return both(c.Failed(perftest.WrongRequest), s.PeerGone())
	case c.Size > s.Size:
		return both(c.Failed(perftest.NoAccess), s.PeerGone())
	}
	out, err := h.measure(c, srv, p, mtu)
	switch {
	case errors.Is(err, errPeer):
		return both(c.PeerGone(), s.PeerGone())
	case err != nil:
		return both(err.Error()+"\n", s.PeerGone())
	case out.Dead:
		return both(c.Failed(perftest.NoAnswer), s.PeerGone())
	}
	for _, x := range []struct {
		*side
		v *verdict
	}{{c, &mine}, {s, &theirs}} {
		if x.host.slowClock() && !x.AnyClock {
			x.v.stderr += perftest.SlowClock(800, 3500)
		}
		out.CPU = cmp.Or(x.host.currentFaults().Busy, 100./64)
		x.v.stdout += x.Row(out.Numbers)
		if !x.JSON {
			continue
		}
		path := rel(x.host.abs(x.JSONFile))
		if err := x.host.fs.WriteFile(path, []byte(x.Report(mtu, out.Numbers)), 0o644); err != nil {
			x.v.stderr += "failed to open " + x.JSONFile + "\n"
		}
	}
	return mine, theirs
}

var errPeer = errors.New("the other side is gone")

// measure runs the test, for as long as both programs do.
func (h *Host) measure(c *side, srv *server, p *process, mtu int) (Outcome, error) {
	ctx, stop := h.while(p.ended, srv.process.ended)
	defer stop()
	out, err := h.opt.Network.join(ctx, Test{Client: c.end, Server: srv.end, Options: c.Options, MTU: mtu})
	return out, cmp.Or(err, context.Cause(ctx))
}

// while is a context that ends, with errPeer, when one of two programs does, or with stop.
func (h *Host) while(one, other <-chan struct{}) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	h.wg.Go(func() {
		select {
		case <-one:
			cancel(errPeer)
		case <-other:
			cancel(errPeer)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil) }
}

func (h *Host) slowClock() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slow
}

// loadTool is fabricctl-lab-load WORKLOAD SEED [observation]: it exists in the lab alone.
func (h *Host) loadTool(args []string, p *process, out, errs io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(errs, "fabricctl-lab-load: %v\n", err)
		return 1
	}
	if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "observation" || h.opt.Network == nil {
		fmt.Fprint(errs, "usage: fabricctl-lab-load WORKLOAD SEED [observation]\n")
		return 64
	}
	load := h.opt.Network.Load
	if len(args) == 3 {
		load = h.opt.Network.Observe
	}
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return fail(fmt.Errorf("%q is not a seed: a number from 0", args[1]))
	}
	ctx, stop := h.while(p.ended, nil)
	defer stop()
	b, err := load(ctx, args[0], seed)
	if err != nil {
		return fail(err)
	}
	_, _ = out.Write(append(b, '\n'))
	return 0
}
