package dcb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// A step is one operation on a device that keeps its state from step to step. In the virtual machine each is done, and
// then this package and iproute2's dcb both say what the device holds: docs/evidence/hosts.md has the table.
type step struct {
	what string
	play string   // how the device is to behave from here on: a file of the test device's, and what to write there
	tool []string // the operation in words for iproute2's dcb, without the device; nil: do does it
	do   func(context.Context, *dcb.Client, string) error
}

// byTool is a step that dcb does in the machine; do is the same for us, where there is no dcb.
func byTool(words string, do func(context.Context, *dcb.Client, string) error) step {
	return step{what: "`dcb " + words + "`", tool: strings.Fields(words), do: do}
}

func steps() []step {
	return slices.Concat(clientSteps(), toolSteps(), faultSteps())
}

var (
	sharedClasses = dcb.ETS{
		TSA:    [8]dcb.TSA{dcb.Shared, dcb.Shared, dcb.Shared},
		TxBW:   [8]uint8{50, 30, 20},
		PrioTC: [8]uint8{0, 0, 0, 1, 2, 0, 2, 0},
	}
	twoBuffers = dcb.Buffer{PrioBuffer: [8]uint8{3: 1}, Size: [8]uint32{131072, 65536}}
)

func setPFC(enabled uint8) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error {
		return c.SetPFC(ctx, dev, func(p *dcb.PFC) { p.Enabled = enabled })
	}
}

func setETS(change func(*dcb.ETS)) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error { return c.SetETS(ctx, dev, change) }
}

func setBuffer(change func(*dcb.Buffer)) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error { return c.SetBuffer(ctx, dev, change) }
}

func rateTo(rates dcb.MaxRate) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error {
		return c.SetMaxRate(ctx, dev, func(m *dcb.MaxRate) { *m = rates })
	}
}

func setDCBX(mode dcb.DCBX) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error { return c.SetDCBX(ctx, dev, mode) }
}

func addApps(as ...dcb.App) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error {
		for _, a := range as {
			if err := c.AddApp(ctx, dev, a); err != nil {
				return err
			}
		}
		return nil
	}
}

func delApps(as ...dcb.App) func(context.Context, *dcb.Client, string) error {
	return func(ctx context.Context, c *dcb.Client, dev string) error {
		for _, a := range as {
			if err := c.DelApp(ctx, dev, a); err != nil {
				return err
			}
		}
		return nil
	}
}

// allDSCPs is a whole table: 26 to priority 3, 48 to 6, the others to 0.
func allDSCPs() []dcb.App {
	var as []dcb.App
	for d := range uint8(64) {
		as = append(as, dcb.DSCP(d, map[uint8]uint8{26: 3, 48: 6}[d]))
	}
	return as
}

func clientSteps() []step {
	other := []dcb.App{
		{Selector: dcb.ByEthertype, Priority: 3, Protocol: 0x8915},
		{Selector: dcb.ByEthertype, Priority: 2},
		{Selector: dcb.ByStream, Priority: 2, Protocol: 18515},
		{Selector: dcb.ByDatagram, Priority: 3, Protocol: 4791},
		{Selector: dcb.ByPort, Priority: 4, Protocol: 4791},
	}
	return []step{
		{what: "PFC on for 3, delay 32768", do: func(ctx context.Context, c *dcb.Client, dev string) error {
			return c.SetPFC(ctx, dev, func(p *dcb.PFC) { p.Enabled, p.Delay = 1<<3, 32768 })
		}},
		{what: "PFC on for 3 and 4, MACsec bypass", do: func(ctx context.Context, c *dcb.Client, dev string) error {
			return c.SetPFC(ctx, dev, func(p *dcb.PFC) { p.Enabled, p.MBC = 1<<3|1<<4, 1 })
		}},
		{what: "ETS 50/30/20, priorities 3, 4 and 6 moved", do: setETS(func(e *dcb.ETS) {
			e.TSA, e.TxBW, e.PrioTC = sharedClasses.TSA, sharedClasses.TxBW, sharedClasses.PrioTC
		})},
		{what: "ETS that sums to 90", do: setETS(func(e *dcb.ETS) { e.TxBW[2] = 10 })},
		{what: "ETS with a credit based shaper", do: setETS(func(e *dcb.ETS) { e.TSA[7] = dcb.CBShaper })},
		{what: "willing", do: setETS(func(e *dcb.ETS) { e.Willing = 1 })},
		{what: "all 64 DSCPs", do: addApps(allDSCPs()...)},
		{what: "DSCP 26 to 3 once more", do: addApps(dcb.DSCP(26, 3))},
		{what: "DSCP 26 to 4 beside it", do: addApps(dcb.DSCP(26, 4))},
		{what: "delete DSCP 26 to 3", do: delApps(dcb.DSCP(26, 3))},
		{what: "delete DSCP 63 to 7, which is not there", do: delApps(dcb.DSCP(63, 7))},
		{what: "EtherType, default priority, TCP, UDP and any port", do: addApps(other...)},
		{what: "delete these", do: delApps(other...)},
		{what: "buffers 128 KiB and 64 KiB, priority 3 in the second", do: setBuffer(func(b *dcb.Buffer) { b.PrioBuffer, b.Size = twoBuffers.PrioBuffer, twoBuffers.Size })},
		{what: "a buffer of 16 MiB", do: setBuffer(func(b *dcb.Buffer) { b.Size[7] = 16 << 20 })},
		{what: "rates of 25 Gbit/s and 100 Mbit/s", do: rateTo(dcb.MaxRate{1: 25e6, 2: 100e3})},
		{what: "DCBX host, IEEE, static", do: setDCBX(dcb.Host | dcb.IEEE | dcb.Static)},
		{what: "DCBX CEE", do: setDCBX(dcb.Host | dcb.CEE)},
	}
}

func toolSteps() []step {
	return []step{
		byTool("pfc set prio-pfc all:off 4:on delay 0x100", func(ctx context.Context, c *dcb.Client, dev string) error {
			return c.SetPFC(ctx, dev, func(p *dcb.PFC) { p.Enabled, p.Delay = 1<<4, 0x100 })
		}),
		byTool("ets set tc-tsa all:strict 0:ets 1:ets tc-bw all:0 0:60 1:40 prio-tc all:0 4:1", setETS(func(e *dcb.ETS) {
			e.TSA, e.TxBW, e.PrioTC = [8]dcb.TSA{dcb.Shared, dcb.Shared}, [8]uint8{60, 40}, [8]uint8{4: 1}
		})),
		byTool("ets set willing off", setETS(func(e *dcb.ETS) { e.Willing = 0 })),
		byTool("app add dscp-prio 1:1", addApps(dcb.DSCP(1, 1))),
		// Not "app replace": when the second changes while it works, dcb 6.1 leaves the old entry.
		byTool("app add dscp-prio 1:2", addApps(dcb.DSCP(1, 2))),
		byTool("app del dscp-prio 1:0 1:1", delApps(dcb.DSCP(1, 0), dcb.DSCP(1, 1))),
		byTool("app del dscp-prio CS6:6", delApps(dcb.DSCP(48, 6))),
		byTool("app add dgram-port-prio 4791:3", addApps(dcb.App{Selector: dcb.ByDatagram, Priority: 3, Protocol: 4791})),
		byTool("app flush", func(ctx context.Context, c *dcb.Client, dev string) error {
			s, err := c.Get(ctx, dev)
			if err != nil {
				return err
			}
			return delApps(s.Apps...)(ctx, c, dev)
		}),
		byTool("buffer set prio-buffer all:0 4:2 buffer-size all:0 0:64K 2:128K", setBuffer(func(b *dcb.Buffer) {
			b.PrioBuffer, b.Size = [8]uint8{4: 2}, [8]uint32{0: 64 << 10, 2: 128 << 10}
		})),
		byTool("maxrate set tc-maxrate all:0 1:10Gbit", rateTo(dcb.MaxRate{1: 1.25e9})), // bytes per second where the kernel means kbit/s
		byTool("dcbx set host ieee", setDCBX(dcb.Host|dcb.IEEE)),
	}
}

func faultSteps() []step {
	return []step{
		{what: "the driver has no PFC setter: PFC on for 3", play: "missing pfc", do: setPFC(1 << 3)},
		{what: "the driver has no rates: rate of 1 Gbit/s", play: "absent maxrate", do: rateTo(dcb.MaxRate{1e6})},
		{what: "the driver has no application operations: the kernel's own table", play: "missing app", do: addApps(dcb.DSCP(26, 3))},
		{what: "the driver lies: PFC on for 3", play: "lie pfc", do: setPFC(1 << 3)},
		{what: "it lies: ETS 50/30/20", play: "lie ets", do: setETS(func(e *dcb.ETS) { e.TSA, e.TxBW = sharedClasses.TSA, sharedClasses.TxBW })},
		{what: "it lies: DSCP 48 to 6", play: "lie app", do: addApps(dcb.DSCP(48, 6))},
		{what: "it is busy (-16): ETS 50/30/20", play: "refuse ets", do: setETS(func(e *dcb.ETS) { e.TSA, e.TxBW = sharedClasses.TSA, sharedClasses.TxBW })},
		{what: "it refuses DCBX (positive): static", play: "refuse dcbx 1", do: setDCBX(dcb.Host | dcb.IEEE | dcb.Static)},
		{what: "it does it and answers 2, as ice: DSCP 48 to 6", play: "odd app 2", do: addApps(dcb.DSCP(48, 6))},
		{what: "it answers -524 (ENOTSUPP), as bnxt: DSCP 46 to 5", play: "refuse app -524", do: addApps(dcb.DSCP(46, 5))},
		{what: "it replaces by itself, as mlx5: DSCP 26 to 4", play: "replace", do: addApps(dcb.DSCP(26, 4))},
		{what: "then delete DSCP 26 to 3", play: "replace", do: delApps(dcb.DSCP(26, 3))},
		{what: "and it behaves again: PFC on for 3", play: "", do: setPFC(1 << 3)},
	}
}

// answer is the outcome of an operation in a few words.
func answer(err error) string {
	var s dcb.Status
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, dcb.ErrAbsent):
		return "not sent: absent"
	case errors.As(err, &s):
		return fmt.Sprintf("status %d", int8(s))
	}
	return err.Error()
}

// A view is what a side says of a device: the text of each part, in the order of parts.
type view map[string]string

var parts = []string{"pfc", "ets", "app", "buffer", "maxrate", "dcbx"}

// since is what changed in v since before, or "as before".
func (v view) since(before view) string {
	var out []string
	for _, p := range parts {
		if v[p] != before[p] {
			out = append(out, p+" "+v[p])
		}
	}
	if out == nil {
		return "as before"
	}
	return strings.Join(out, "; ")
}

// read is how this package sees the device.
func read(s *dcb.State) view {
	v := view{"pfc": "absent", "ets": "absent", "app": "absent", "buffer": "absent", "maxrate": "absent", "dcbx": "absent"}
	if p := s.PFC; p != nil {
		var on []bool
		for i := range 8 {
			on = append(on, p.Enabled>>i&1 == 1)
		}
		v["pfc"] = pfcText(on, int(p.Delay), p.MBC == 1)
	}
	if e := s.ETS; e != nil {
		var tsa []string
		for _, t := range e.TSA {
			tsa = append(tsa, t.String())
		}
		v["ets"] = etsText(tsa, e.TxBW[:], e.PrioTC[:], e.Willing == 1)
	}
	if s.Apps != nil {
		v["app"] = appText(s.Apps)
	}
	if b := s.Buffer; b != nil {
		v["buffer"] = bufferText(b.PrioBuffer[:], b.Size[:], b.Total)
	}
	if m := s.MaxRate; m != nil {
		v["maxrate"] = list(m[:])
	}
	if s.DCBX != nil {
		v["dcbx"] = words(strings.Fields(s.DCBX.String()))
	}
	return v
}

func pfcText(on []bool, delay int, bypass bool) string {
	var ps []int
	for p, is := range on {
		if is {
			ps = append(ps, p)
		}
	}
	s := fmt.Sprintf("%s delay %d", strings.Trim(fmt.Sprint(ps), "[]"), delay)
	if ps == nil {
		s = "none" + s
	}
	if bypass {
		s += " bypass"
	}
	return s
}

func etsText(tsa []string, bw, prio []uint8, willing bool) string {
	s := fmt.Sprintf("%s, bandwidth %s, priorities in %s", list(tsa), list(bw), list(prio))
	if willing {
		s += ", willing"
	}
	return s
}

func bufferText(prio []uint8, size []uint32, total uint32) string {
	return fmt.Sprintf("priorities in %s, sizes %s of %d", list(prio), list(size), total)
}

// list is vs with equal ones at the end folded.
func list[T comparable](vs []T) string {
	n := len(vs)
	for n > 1 && vs[n-2] == vs[len(vs)-1] {
		n--
	}
	var out []string
	for _, v := range vs[:n] {
		out = append(out, fmt.Sprint(v))
	}
	if rest := len(vs) - n + 1; rest > 1 {
		out[n-1] += fmt.Sprintf("×%d", rest)
	}
	return strings.Join(out, " ")
}

func words(ws []string) string {
	if len(ws) == 0 || ws[0] == "none" {
		return "none"
	}
	slices.Sort(ws)
	return strings.Join(ws, " ")
}

// appText is the table by selector and priority, with ranges: "dscp 0-25,27-63:0 26:3". A 6.1 dcb does not show PCP
// entries, so they are left out.
func appText(apps []dcb.App) string {
	type group struct {
		sel  dcb.Selector
		prio uint8
	}
	by := map[group][]int{}
	for _, a := range apps {
		if a.Selector != dcb.ByPCP {
			g := group{a.Selector, a.Priority}
			by[g] = append(by[g], int(a.Protocol))
		}
	}
	if len(by) == 0 {
		return "empty"
	}
	var out []string
	for _, sel := range []dcb.Selector{dcb.ByEthertype, dcb.ByStream, dcb.ByDatagram, dcb.ByPort, dcb.ByDSCP} {
		var es []string
		for prio := range uint8(8) {
			if ps := by[group{sel, prio}]; ps != nil {
				es = append(es, fmt.Sprintf("%s:%d", ranges(ps), prio))
			}
		}
		if es != nil {
			out = append(out, sel.String()+" "+strings.Join(es, " "))
		}
	}
	return strings.Join(out, ", ")
}

func ranges(ns []int) string {
	slices.Sort(ns)
	var out []string
	for i := 0; i < len(ns); {
		j := i
		for j+1 < len(ns) && ns[j+1] == ns[j]+1 {
			j++
		}
		s := strconv.Itoa(ns[i])
		if j > i {
			s += "-" + strconv.Itoa(ns[j])
		}
		out = append(out, s)
		i = j + 1
	}
	return strings.Join(out, ",")
}

// freshDriver is the first row: what there is before any step.
const freshDriver = "a driver that was just loaded"

// A row is one line of the table.
type row struct{ what, answer, shows, reads string }

func (r row) String() string {
	agree := "yes"
	if r.shows != r.reads {
		agree = "**no**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.what, r.answer, r.shows, r.reads, agree)
}
