package netlink

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// write does one stage of a NIC: what is not at its target yet, and then reads it back.
func (n *nicWork) write(ctx context.Context, s stage) error {
	switch s {
	case stageFlag, stagePause, stageRing, stageFEC:
		return n.writeEthtool(ctx, s)
	case stageMTU:
		if n.mtu != nil {
			return n.w.setMTU(ctx, *n.mtu)
		}
		return nil
	case stageKnobs:
		return n.writeKnobs(ctx)
	case stagePCI, stageIRQ:
		return n.writeSystem(ctx, s)
	}
	if n.target == nil {
		return nil
	}
	switch s {
	case stageDCBX:
		return n.writeDCBX(ctx)
	case stageUnpause:
		return n.writePFC(ctx, pfcOn(n.nic.dcb)&pfcOn(n.target), false)
	case stagePFC:
		return n.writePFC(ctx, pfcOn(n.target), true)
	case stageApp:
		return n.writeApps(ctx)
	case stageETS:
		return n.writeETS(ctx)
	case stageBuffer:
		return n.writeBuffer(ctx)
	}
	return fmt.Errorf("%s: %s is no object of a NIC", n.nic.Name, s)
}

// guard stands before every write: it stops when ctx has ended, and refuses one that traffic may notice while programs
// have queue pairs on this NIC.
func (n *nicWork) guard(ctx context.Context, what string, e profiles.Effect) error {
	if err := ctx.Err(); err != nil {
		return n.w.d.named("commit", fmt.Errorf("before %s of %s: %w", what, n.nic.Name, err))
	}
	if !e.Disrupts() {
		return nil
	}
	return n.w.noJobs(ctx, what, n.nic)
}

const outOfSight = "it has virtual functions in virtual machines, or in network namespaces with RDMA devices of their own: their queue pairs cannot be counted from here"

// noJobs refuses with drivers.ErrJobs while programs have queue pairs over one of the NICs, unless there is leave.
func (w *work) noJobs(ctx context.Context, what string, nics ...*nic) error {
	d := w.d
	if d.jobs {
		return nil
	}
	var qps map[string]int
	for _, x := range nics {
		if unseen(d.tree, x.hw) {
			return d.named("commit", fmt.Errorf("%w: %s of %s may end them, and %s", drivers.ErrJobs, what, x.Name, outOfSight))
		}
		over := w.m.over(x)
		if len(over) == 0 {
			continue
		}
		if qps == nil {
			if d.cfg.RDMA == nil {
				return d.named("commit", fmt.Errorf("%w: %s of %s may end them, and they cannot be counted here", drivers.ErrJobs, what, x.Name))
			}
			var err error
			if qps, err = d.cfg.RDMA.QPs(ctx); err != nil {
				return d.named("commit", fmt.Errorf("%w: %s of %s may end them, and they cannot be counted: %w", drivers.ErrJobs, what, x.Name, err))
			}
		}
		for _, device := range over {
			if c := qps[device]; c > 0 {
				return d.named("commit", fmt.Errorf("%w: %d on %s, and %s of %s may end them", drivers.ErrJobs, c, device, what, x.Name))
			}
		}
	}
	return nil
}

// send sends a request to the driver. Its answer that neither means done nor refused is left to the read-back.
func (n *nicWork) send(ctx context.Context, r dcb.Request, err error) error {
	d := n.w.d
	if err == nil {
		d.cfg.Hook("write " + n.nic.Name + " before")
		err = d.cfg.DCB.Do(ctx, r)
		d.cfg.Hook("write " + n.nic.Name + " after")
	}
	if errors.Is(err, dcb.ErrReadBack) {
		return nil
	}
	return err
}

// refused is what came of writing the changes of these scopes.
func (n *nicWork) refused(ctx context.Context, err error, scopes ...string) error {
	if err == nil {
		return nil
	}
	var e *dcb.Error
	if errors.As(err, &e) {
		err = e.Err // the key says the rest
	}
	cs := n.of(scopes...)
	switch {
	case ctx.Err() != nil:
		return n.w.d.named("commit", fmt.Errorf("%s of %s: %w", scopes[0], n.nic.Name, err))
	case len(cs) == 0:
		return &drivers.RejectedError{Device: n.w.d.cfg.Name, Sent: scopes[0] + " of " + n.nic.Name, Sentence: err.Error()}
	}
	return n.w.d.rejected(cs[0], err)
}

// again is what dcbnl says now.
func (n *nicWork) again(ctx context.Context) error {
	s, err := n.w.d.cfg.DCB.Get(ctx, n.nic.Name)
	if err != nil {
		return n.w.d.named("read back", err)
	}
	n.nic.dcb = s
	return nil
}

// readBack asks again and wants the changes of these scopes.
func (n *nicWork) readBack(ctx context.Context, scopes ...string) error {
	if err := n.again(ctx); err != nil {
		return err
	}
	return n.compare(dcbSettings(n.nic.Name, n.nic.dcb), n.of(scopes...))
}

func (n *nicWork) compare(live render.Config, cs []render.Change) error {
	return n.w.d.compare(live, cs)
}

func (n *nicWork) writeDCBX(ctx context.Context) error {
	cs := n.of(scopeDCBX)
	if len(cs) == 0 {
		return nil
	}
	if err := n.again(ctx); err != nil { // a flag may have changed it
		return err
	}
	if now := n.nic.dcb.DCBX; now != nil && *now == *n.target.DCBX {
		return nil
	}
	if err := n.guard(ctx, "the DCBX mode", n.nic.per.EffectOf(scopeDCBX, "mode")); err != nil {
		return err
	}
	mode := *n.target.DCBX
	if mode&dcb.Host == 0 && n.nic.per.DCBXOwn == profiles.OwnOrHost {
		mode = 0 // what these drivers take for giving back, and show as the versions that they speak
	}
	r, err := dcb.DCBXRequest(n.nic.Name, mode)
	if err == nil {
		n.w.d.cfg.Hook("write " + n.nic.Name + " before")
		err = n.w.d.cfg.DCB.Do(ctx, r)
		n.w.d.cfg.Hook("write " + n.nic.Name + " after")
	}
	if err != nil && !errors.Is(err, dcb.ErrReadBack) {
		return n.refused(ctx, err, scopeDCBX)
	}
	differs := n.readBack(ctx, scopeDCBX)
	if differs != nil && err != nil && ctx.Err() == nil { // the driver did not acknowledge it
		return n.refused(ctx, err, scopeDCBX)
	}
	return differs
}

// writePFC sets which priorities have PFC. What is in force already is never sent again: drivers flap on it. In the end
// the delay is set too.
func (n *nicWork) writePFC(ctx context.Context, enabled uint8, end bool) error {
	if n.target.PFC == nil || !n.touches(scopePFC) && !n.moved(scopePFC) {
		return nil
	}
	if err := n.again(ctx); err != nil {
		return err
	}
	now := n.nic.dcb.PFC
	if now == nil {
		return n.refused(ctx, errNotShown, scopePFC)
	}
	if !end {
		enabled &= now.Enabled
	}
	p := *now
	p.Enabled = enabled
	if end {
		p.Delay = n.target.PFC.Delay
	}
	if p.Enabled == now.Enabled && p.Delay == now.Delay {
		return nil
	}
	field := "priorities"
	if p.Enabled == now.Enabled {
		field = "delay"
	}
	if err := n.guard(ctx, "PFC", n.nic.per.EffectOf(scopePFC, field)); err != nil {
		return err
	}
	r, err := dcb.PFCRequest(n.nic.Name, p)
	if err := n.refused(ctx, n.send(ctx, r, err), scopePFC); err != nil {
		return err
	}
	if end {
		return n.readBack(ctx, scopePFC)
	}
	return n.again(ctx)
}

// pfcOn is the priorities with PFC.
func pfcOn(s *dcb.State) uint8 {
	if s.PFC == nil {
		return 0
	}
	return s.PFC.Enabled
}

// moved reports whether what dcbnl shows in a scope differs from the target though no change asks for that: a driver
// moved it with something else.
func (n *nicWork) moved(scope string) bool {
	return len(n.astray(scope)) > 0
}

// astray is the settings of these scopes (all, without any) that are not at their target.
func (n *nicWork) astray(scopes ...string) []render.Change {
	in := func(k render.Key) bool { return len(scopes) == 0 || slices.Contains(scopes, k.Scope) }
	now, want := dcbSettings(n.nic.Name, n.nic.dcb), dcbSettings(n.nic.Name, n.target)
	var out []render.Change
	for _, s := range want {
		if v := value(now, s.Key); in(s.Key) && !n.w.d.dialect.Same(s.Key, v, &s.Value, render.Facts{}) {
			out = append(out, render.Change{Key: s.Key, Before: v, After: &s.Value})
		}
	}
	for _, s := range now {
		if in(s.Key) && value(want, s.Key) == nil {
			out = append(out, render.Change{Key: s.Key, Before: &s.Value})
		}
	}
	return out
}

func (n *nicWork) writeETS(ctx context.Context) error {
	if n.target.ETS == nil || !n.touches(scopeETS) && !n.moved(scopeETS) {
		return nil
	}
	if err := n.again(ctx); err != nil {
		return err
	}
	now := n.nic.dcb.ETS
	if now == nil {
		return n.refused(ctx, errNotShown, scopeETS)
	}
	e, want := *now, n.target.ETS
	e.TxBW, e.TSA, e.PrioTC, e.Willing = want.TxBW, want.TSA, want.PrioTC, want.Willing
	if e == *now {
		return nil
	}
	if err := n.guard(ctx, "ETS", n.nic.per.EffectOf(scopeETS, "")); err != nil {
		return err
	}
	r, err := dcb.ETSRequest(n.nic.Name, e)
	if err := n.refused(ctx, n.send(ctx, r, err), scopeETS); err != nil {
		if !n.touches(scopeETS) && slices.Contains(n.nic.per.AppResets, profiles.ObjectETS) {
			return n.again(ctx) // we only wanted to put back what the driver reset: settle says what is left
		}
		return err
	}
	return n.readBack(ctx, scopeETS)
}

func (n *nicWork) writeBuffer(ctx context.Context) error {
	if n.target.Buffer == nil || !n.touches(scopeBuffer) {
		return nil
	}
	if err := n.again(ctx); err != nil {
		return err
	}
	now := n.nic.dcb.Buffer
	if now == nil {
		return n.refused(ctx, errNotShown, scopeBuffer)
	}
	b := *now
	b.PrioBuffer, b.Size = n.target.Buffer.PrioBuffer, n.target.Buffer.Size
	if b == *now {
		return nil
	}
	if err := n.guard(ctx, "buffers", n.nic.per.EffectOf(scopeBuffer, "")); err != nil {
		return err
	}
	r, err := dcb.BufferRequest(n.nic.Name, b)
	if err := n.refused(ctx, n.send(ctx, r, err), scopeBuffer); err != nil {
		return err
	}
	return n.readBack(ctx, scopeBuffer)
}

// writeApps brings the entries for code points to the target, one message for each, in the way that the driver wants:
// adding first where the new entry replaces the old or may stand beside it, so that the last one never goes and with it
// the trust in DSCP; deleting first where a second entry is refused. Entries by other selectors are left alone.
func (n *nicWork) writeApps(ctx context.Context) error {
	if n.target.Apps == nil || !n.touches(scopeApp) && !n.moved(scopeApp) {
		return nil
	}
	if err := n.again(ctx); err != nil {
		return err
	}
	want, now := dscps(n.target.Apps), dscps(n.nic.dcb.Apps)
	if slices.Equal(want, now) {
		return nil
	}
	if err := n.guard(ctx, "the DSCP map", n.nic.per.EffectOf(scopeApp, "")); err != nil {
		return err
	}
	if n.nic.per.AppReplace == profiles.AppDeleteAdd {
		// New code points first: then the table is not empty while others are replaced.
		for _, a := range missing(want, now) {
			var old []dcb.App
			for _, o := range now {
				if o.Protocol == a.Protocol && !slices.Contains(want, o) {
					old = append(old, o)
				}
			}
			if len(old) == 0 {
				if err := n.addApp(ctx, a); err != nil {
					return err
				}
			}
		}
		for _, o := range missing(now, want) {
			if err := n.delApp(ctx, o); err != nil {
				return err
			}
			for _, a := range want {
				if a.Protocol == o.Protocol && !slices.Contains(now, a) {
					if err := n.addApp(ctx, a); err != nil {
						return err
					}
				}
			}
		}
		return n.readBack(ctx, scopeApp)
	}
	for _, a := range missing(want, now) {
		if err := n.addApp(ctx, a); err != nil {
			return err
		}
	}
	if err := n.again(ctx); err != nil { // some drivers have replaced the old ones already
		return err
	}
	for _, o := range missing(dscps(n.nic.dcb.Apps), want) {
		if err := n.delApp(ctx, o); err != nil {
			return err
		}
	}
	return n.readBack(ctx, scopeApp)
}

func (n *nicWork) addApp(ctx context.Context, a dcb.App) error {
	return n.app(ctx, a, dcb.EEXIST, dcb.AddAppRequest)
}

func (n *nicWork) delApp(ctx context.Context, a dcb.App) error {
	return n.app(ctx, a, dcb.ENOENT, dcb.DelAppRequest)
}

// app sends one entry; done is the refusal that says that there was nothing to do.
func (n *nicWork) app(ctx context.Context, a dcb.App, done dcb.Errno, encode func(string, dcb.App) (dcb.Request, error)) error {
	if err := ctx.Err(); err != nil {
		return n.w.d.named("commit", fmt.Errorf("the DSCP map of %s: %w", n.nic.Name, err))
	}
	r, err := encode(n.nic.Name, a)
	err = n.send(ctx, r, err)
	if err == nil || errors.Is(err, done) {
		return nil
	}
	for _, c := range n.of(scopeApp) {
		if c.Key.Field == appField(a) {
			var e *dcb.Error
			if errors.As(err, &e) && ctx.Err() == nil {
				return n.w.d.rejected(c, e.Err)
			}
		}
	}
	return n.refused(ctx, err, scopeApp)
}

// dscps is the entries for code points, sorted.
func dscps(apps []dcb.App) []dcb.App {
	return sortedApps(slices.DeleteFunc(slices.Clone(apps), func(a dcb.App) bool { return a.Selector != dcb.ByDSCP }))
}

// missing is what of a is not in b.
func missing(a, b []dcb.App) []dcb.App {
	return slices.DeleteFunc(slices.Clone(a), func(x dcb.App) bool { return slices.Contains(b, x) })
}

// settle looks at the whole of a NIC once more: drivers move one thing with another. What went astray is put right once,
// and what then still is not where it is wanted, or where it was, is said.
func (n *nicWork) settle(ctx context.Context) error {
	if n.target == nil || n.gives() || !slices.ContainsFunc([]string{scopeDCBX, scopeApp, scopeETS, scopePFC, scopeBuffer}, n.touches) {
		return nil
	}
	if err := n.again(ctx); err != nil {
		return err
	}
	if len(n.astray()) > 0 {
		for _, s := range n.stages() {
			if slices.Contains([]stage{stageApp, stageETS, stagePFC, stageBuffer}, s) {
				if err := n.write(ctx, s); err != nil {
					return err
				}
			}
		}
		if err := n.again(ctx); err != nil {
			return err
		}
	}
	cs := slices.DeleteFunc(n.of(scopeApp, scopeETS, scopePFC, scopeBuffer, scopeDCBX), func(c render.Change) bool {
		return c.Key.Scope == scopePFC && n.target.PFC == nil // of a driver that has it as a file
	})
	if err := n.compare(dcbSettings(n.nic.Name, n.nic.dcb), cs); err != nil {
		return err
	}
	for _, c := range n.astray(scopeApp, scopeETS, scopePFC, scopeBuffer) {
		if slices.Contains(n.nic.per.AppResets, c.Key.Scope) && n.touches(scopeApp) {
			continue // known of this driver, and out of our hands
		}
		return n.w.d.named("commit", fmt.Errorf("%s: nobody asked for it, and the driver moved %s from %s to %s along the way", n.nic.Name, c.Key, word(c.After), word(c.Before)))
	}
	return nil
}
