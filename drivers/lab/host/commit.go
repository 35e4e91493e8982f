package host

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// work is a commit, or the way back of one, that is carried out.
type work struct {
	h       *Host
	gone    <-chan struct{} // closed when the connection ended
	allowed bool            // live queue pairs may be killed
	back    bool            // it is the way back: no fault of the agent is in its way
	ended   bool            // the connection ended meanwhile
	text    string          // of nccl.conf
}

// commit checks all changes against what is there and carries out those that are not yet there, NIC by NIC, in the
// order in which a NIC can take them, and then the files. ok is false when the connection ended meanwhile.
func (h *Host) commit(m message, gone <-chan struct{}) (_ *wireError, ok bool) {
	if m.WithinMS > 0 && !h.opt.Confirm {
		return &wireError{Code: "no-confirm", Message: "commit: no confirm timer"}, true
	}
	if why := h.heldBack(m.Changes); why != "" {
		return &wireError{Code: "held", Message: "commit: it is held: on the host, " + why}, true
	}
	if h.currentFaults().Locked {
		return &wireError{Code: "busy", Message: "commit: another writer is at work: fabricctl-host agent has the lock"}, true
	}
	h.writer.Lock()
	defer h.writer.Unlock()
	select {
	case <-gone:
		return nil, false
	default:
	}
	w := &work{h: h, gone: gone, allowed: m.AllowJobs}
	w.text, _ = h.NCCL()
	var todo []change
	for _, c := range m.Changes {
		switch now := h.value(c.Key, w.text); {
		case holds(c.Key, now, c.After):
		case holds(c.Key, now, c.Before):
			todo = append(todo, c)
		default:
			return &wireError{Code: "moved", Message: fmt.Sprintf("commit: %v is %s, expected %s", c.Key, show(now), show(c.Before))}, true
		}
	}
	if e := w.judge(todo); e != nil {
		return e, true
	}
	if m.WithinMS > 0 {
		if e := h.begin(m.Tx, todo, m.WithinMS); e != nil {
			return e, true
		}
	}
	e := w.run(todo)
	if w.ended {
		return nil, false
	}
	if e == nil && m.WithinMS > 0 {
		h.timed(m.Tx)
	}
	return e, true
}

// judge refuses what cannot be, before anything is written.
func (w *work) judge(cs []change) *wireError {
	for link, of := range byLink(cs) {
		w.h.mu.Lock()
		n := w.h.nics[link]
		why := ""
		if n != nil {
			why = w.h.closed(n, of)
		}
		w.h.mu.Unlock()
		if why != "" {
			return refusal(of[0], why)
		}
	}
	return nil
}

// closed says why a NIC takes none of these changes; "" = it does. The host's lock is held.
func (h *Host) closed(n *nic, cs []change) string {
	qos := slices.ContainsFunc(cs, func(c change) bool { return slices.Contains([]string{"app", "ets", "pfc", "buffer"}, c.Key[0]) })
	i := slices.IndexFunc(h.links, func(l Link) bool { return l.Name == n.link })
	switch l := h.links[i]; {
	case !qos:
		return ""
	case l.VFOf != "":
		return fmt.Sprintf("it is a virtual function of %s: QoS is set there", l.VFOf)
	case l.DPU != "":
		return l.DPU
	case n.kind.noBond && l.Master != "":
		return fmt.Sprintf("its driver refuses QoS while it is in a bond (%s)", l.Master)
	}
	s := h.state(n)
	if s == nil || s.DCBX == nil {
		return ""
	}
	want := copied(s)
	for _, c := range cs {
		if c.Key[0] == "dcbx" {
			_ = alter(want, c.Key[0], c.Key[2], c.After)
		}
		if c.Key[0] == "flag" {
			return "" // the mode follows the flag
		}
	}
	if why := n.kind.foreign(*want.DCBX); why != "" && *want.DCBX == *s.DCBX {
		return fmt.Sprintf("%s, and would take the change back: %s", why, strings.ReplaceAll(n.kind.remedy, "NETDEV", n.link))
	}
	return ""
}

// byLink is changes of links by link.
func byLink(cs []change) map[string][]change {
	m := map[string][]change{}
	for _, c := range cs {
		if slices.Contains(order(), c.Key[0]) {
			m[c.Key[1]] = append(m[c.Key[1]], c)
		}
	}
	return m
}

// run writes. Nil with w.ended is no success.
func (w *work) run(cs []change) *wireError {
	per := byLink(cs)
	var done []string
	for _, c := range cs {
		of, link := per[c.Key[1]], c.Key[1]
		if of == nil || slices.Contains(done, link) {
			continue
		}
		done = append(done, link)
		if e := w.link(link, of); e != nil || w.ended {
			return e
		}
	}
	for _, c := range cs {
		what, do := "", w.h.commitLimit
		switch {
		case c.Key[0] == "nccl" && c.Key[1] == "/etc/nccl.conf":
			what, do = "/etc/nccl.conf", w.h.commitVariable
		case slices.Contains(order(), c.Key[0]):
			continue
		default:
			what = strings.Join(c.Key[1:], " ")
		}
		if _, e := w.write(what, c, do); e != nil || w.ended {
			return e
		}
	}
	return nil
}

// link brings one link and its NIC to where they are wanted.
func (w *work) link(link string, cs []change) *wireError {
	w.h.mu.Lock()
	n := w.h.nics[link]
	var s *dcb.State
	if n != nil {
		s = w.h.state(n)
	}
	w.h.mu.Unlock()
	in := func(scope string) []change {
		return slices.DeleteFunc(slices.Clone(cs), func(c change) bool { return c.Key[0] != scope })
	}
	if n == nil || s == nil {
		for _, scope := range order() {
			if e := w.words(link, n, scope, in(scope)); e != nil || w.ended {
				return e
			}
		}
		return nil
	}
	want := copied(s)
	for _, c := range cs {
		if !slices.Contains([]string{"dcbx", "app", "ets", "pfc", "buffer"}, c.Key[0]) {
			continue
		}
		if err := alter(want, c.Key[0], c.Key[2], c.After); err != nil {
			return refusal(c, err.Error())
		}
	}
	for _, scope := range stages(n.kind, in, want) {
		var e *wireError
		switch scope {
		case "unpause":
			less := copied(want)
			if less.PFC != nil && s.PFC != nil {
				less.PFC.Enabled &= s.PFC.Enabled
				less.PFC.Delay = s.PFC.Delay
				if less.PFC.Enabled == s.PFC.Enabled {
					continue
				}
			}
			e = w.object(n, "pfc", in("pfc"), nil, less)
		case "app":
			e = w.apps(n, in("app"), want)
		case "dcbx", "ets", "pfc", "buffer":
			e = w.object(n, scope, in(scope), in(scope), want)
		default:
			e = w.words(link, n, scope, in(scope))
		}
		if e != nil || w.ended {
			return e
		}
	}
	return nil
}

// stages is the order for one NIC: it is taken from its firmware first, and given back to it last.
func stages(k *kind, in func(string) []change, want *dcb.State) []string {
	own := []string{"flag", "dcbx"}
	rest := append([]string{"unpause"}, order()[2:]...)
	gives := want.DCBX != nil && len(in("dcbx")) > 0 && k.foreign(*want.DCBX) != ""
	for _, c := range in("flag") {
		gives = gives || c.After != nil && *c.After == on
	}
	if gives {
		return append(rest, own...)
	}
	return append(own, rest...)
}

// words writes one scope outside dcbnl, as one request, and an MTU alone.
func (w *work) words(link string, n *nic, scope string, cs []change) *wireError {
	if len(cs) == 0 {
		return nil
	}
	if scope == "link" {
		for _, c := range cs {
			if e := w.jobs(n, scope); e != nil {
				return e
			}
			done, e := w.write(link+" mtu "+show(c.After), c, w.h.commitMTU)
			if e == nil && done && !w.ended {
				e = w.readBack(cs)
			}
			if e != nil || w.ended {
				return e
			}
		}
		return nil
	}
	if e := w.jobs(n, scope); e != nil {
		return e
	}
	fields := map[string]*string{}
	for _, c := range cs {
		fields[c.Key[2]] = c.After
	}
	return w.checked(link, scope, cs, cs, func() error { return w.h.put(link, scope, fields) })
}

// object writes one object of dcbnl if anything of it is to be otherwise, and wants the changes in check.
func (w *work) object(n *nic, object string, cs, check []change, want *dcb.State) *wireError {
	w.h.mu.Lock()
	differs := w.h.differs(n, object, want)
	w.h.mu.Unlock()
	if !differs || len(cs) == 0 && !(object == "ets" && n.kind.resets) {
		return w.readBack(check)
	}
	if len(cs) == 0 {
		cs = []change{{Key: [3]string{object, n.link, "prio-tc"}}}
	}
	if e := w.jobs(n, object); e != nil {
		return e
	}
	return w.checked(n.link, object, cs, check, func() error {
		return w.h.driver(n, func() error { return w.h.setDCB(n, object, want) })
	})
}

// differs reports whether an object of dcbnl is not what it is in want. The host's lock is held.
func (h *Host) differs(n *nic, object string, want *dcb.State) bool {
	s := h.state(n)
	if s == nil {
		return true
	}
	a, b := map[string]string{}, map[string]string{}
	shown(s, a)
	shown(want, b)
	for k, v := range b {
		if strings.HasPrefix(k, object+" ") && a[k] != v {
			return true
		}
	}
	return false
}

// apps brings the entries for DSCPs to where they are wanted, one request each.
func (w *work) apps(n *nic, cs []change, want *dcb.State) *wireError {
	if len(cs) == 0 {
		return nil
	}
	if e := w.jobs(n, "app"); e != nil {
		return e
	}
	send := func(a dcb.App, there bool) *wireError {
		c := cs[len(cs)-1]
		for _, x := range cs {
			if x.Key[2] == fmt.Sprintf("dscp %d", a.Protocol) {
				c = x
			}
		}
		v := show(c.After)
		if !there {
			v = "-" + strconv.Itoa(int(a.Priority))
		}
		_, e := w.write(fmt.Sprintf("%s app dscp %d %s", n.link, a.Protocol, v), c, func(change) error {
			return w.h.driver(n, func() error {
				if err := w.h.setApp(n, a, there); !errors.Is(err, errUnclear) {
					return err
				}
				return nil
			})
		})
		return e
	}
	missing := func(in, from []dcb.App) (out []dcb.App) {
		for _, a := range in {
			if a.Selector == dcb.ByDSCP && !slices.Contains(from, a) {
				out = append(out, a)
			}
		}
		slices.SortFunc(out, func(a, b dcb.App) int { return int(a.Protocol) - int(b.Protocol) })
		return out
	}
	now := func() []dcb.App {
		w.h.mu.Lock()
		defer w.h.mu.Unlock()
		return w.h.state(n).Apps
	}
	taken := func(a dcb.App, in []dcb.App) bool {
		return n.kind.replaces == "first" && slices.ContainsFunc(in, func(o dcb.App) bool { return o.Selector == a.Selector && o.Protocol == a.Protocol })
	}
	var later []dcb.App
	old := now()
	for _, a := range missing(want.Apps, old) {
		if taken(a, old) {
			later = append(later, a)
		} else if e := send(a, true); e != nil || w.ended {
			return e
		}
	}
	for _, a := range missing(now(), want.Apps) {
		if e := send(a, false); e != nil || w.ended {
			return e
		}
		for _, b := range later {
			if b.Protocol == a.Protocol {
				if e := send(b, true); e != nil || w.ended {
					return e
				}
			}
		}
	}
	return w.readBack(cs)
}

// jobs refuses a write that would kill queue pairs, unless there is leave.
func (w *work) jobs(n *nic, scope string) *wireError {
	if n == nil || w.allowed {
		return nil
	}
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	if n.jobs == 0 || !slices.Contains(n.kind.disturbs, scope) {
		return nil
	}
	return &wireError{Code: "jobs", Message: fmt.Sprintf("commit: %s has %d queue pairs of running programs, and setting %s ends them", n.link, n.jobs, scope)}
}

// checked is one request to the kernel, and what came of it.
func (w *work) checked(link, scope string, cs, check []change, do func() error) *wireError {
	last := cs[len(cs)-1]
	done, e := w.write(fmt.Sprintf("%s %s %s %s", link, scope, last.Key[2], show(last.After)), last, func(change) error {
		if err := do(); !errors.Is(err, errUnclear) {
			return err
		}
		return nil // reading back decides
	})
	if e != nil || w.ended || !done {
		return e
	}
	return w.readBack(check)
}

// readBack compares what is there with what was asked for.
func (w *work) readBack(cs []change) *wireError {
	for _, c := range cs {
		if now := w.h.value(c.Key, w.text); !holds(c.Key, now, c.After) && !w.back && !w.h.currentFaults().Ignore {
			sent := strings.Join(c.Key[:], "|") + " " + show(c.After)
			return &wireError{Code: "differs", Message: fmt.Sprintf("%q was acknowledged, but reads %s", sent, show(now)), Sent: sent, Reads: show(now)}
		}
	}
	return nil
}

// write is one write with the faults around it. Done is false where a fault kept it from being done.
func (w *work) write(what string, c change, do func(change) error) (done bool, e *wireError) {
	h := w.h
	h.count(func(n *Counters) {
		switch c.Key[0] {
		case "nccl", "limit":
			n.FileWrites++
		case "link":
			n.MTUSets++
		default:
			n.KnobSets++
		}
	})
	var f Faults
	refuse := ""
	if !w.back {
		if f := h.currentFaults().OnWrite; f != nil {
			refuse = f(what)
		}
		f = h.spendStall() // after OnWrite, which may have changed them
	}
	if refuse == "" && c.Key[0] == "link" {
		refuse = f.RejectMTU
	}
	if f.Stall {
		<-w.gone
		w.ended = true
		return false, nil
	}
	if refuse == "" && !f.Ignore {
		if err := do(c); err != nil {
			refuse = err.Error()
		}
	}
	if refuse != "" {
		return false, refusal(c, refuse)
	}
	return !f.Ignore, nil
}

func refusal(c change, sentence string) *wireError {
	return &wireError{Code: "rejected", Message: sentence, Sent: strings.Join(c.Key[:], "|") + " " + show(c.After), Sentence: sentence}
}

func (h *Host) commitMTU(c change) error {
	if c.Key[2] != "mtu" || c.After == nil {
		return errSupported
	}
	mtu, err := strconv.Atoi(*c.After)
	if err != nil {
		return errRange
	}
	return h.SetMTU(c.Key[1], mtu)
}

// limitPath is the file that lets every login lock memory, which verbs need.
const limitPath = "/etc/security/limits.d/90-fabricctl.conf"

var limitKey = [3]string{"limit", limitPath, "memlock"}

func (h *Host) commitLimit(c change) error {
	switch {
	case c.Key != limitKey:
		return errSupported
	case c.After == nil:
		return h.fs.Remove(rel(limitPath))
	case *c.After != "unlimited":
		return errInvalid
	}
	return h.fs.WriteFile(rel(limitPath), []byte("* soft memlock unlimited\n* hard memlock unlimited\n"), 0o644)
}

func (h *Host) commitVariable(c change) error {
	text, _ := h.NCCL()
	return h.SetNCCL(setVariable(text, c.Key[2], c.After))
}
