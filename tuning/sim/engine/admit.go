package engine

// The buffer of a group, as the reference simulator and the ASICs that it is modelled on have it: the first bytes are
// reserved, what is above them is shared with all others up to the threshold, and what comes still later goes to headroom. The
// frame that is over the threshold as the first, and so has the peer paused, is shared in full (in the reference it is headroom): headroom holds
// what arrives after that, which is what its formulas count.

// threshold is how many bytes a group may share now: a fixed number, or a part of what is free (dynamic threshold of
// Choudhury and Hahne 1998).
func threshold(w *swtch, g *group) int64 {
	if g.static > 0 {
		return g.static
	}
	p := &w.pools[g.pool]
	return (p.size - p.in) * int64(g.alpha) >> 16
}

// admit takes a frame's bytes into a group, or reports that there is no room.
func (s *run) admit(w *swtch, g *group, size int64) bool {
	after := g.held + size
	above := after - int64(g.reserved)
	if above <= 0 {
		g.held = after
		g.max = max(g.max, after)
		return true
	}
	p := &w.pools[g.pool]
	fits := above <= threshold(w, g) || g.lossless && !g.paused && !s.cfg.Compat
	if part := min(size, above); fits && (p.in+part <= p.size || s.cfg.Compat) {
		g.held = after
		g.max = max(g.max, after)
		p.in += part
		p.max = max(p.max, p.in)
		return true
	}
	if !g.lossless || g.headroom+size > int64(g.room) || w.roomCap > 0 && w.headroom+size > w.roomCap {
		return false
	}
	g.headroom += size
	g.roomMax = max(g.roomMax, int32(g.headroom))
	w.headroom += size
	w.roomMax = max(w.roomMax, w.headroom)
	return true
}

// passes reports whether a frame that leaves at once leaves no trace in the accounts besides their greatest values: it finds
// room without headroom, causes no pause and ends none.
func (w *swtch) passes(g *group, size int64) bool {
	if g.paused || g.headroom > 0 || len(w.paused) > 0 {
		return false
	}
	p := &w.pools[g.pool]
	after := g.held + size
	above := max(after-int64(g.reserved), 0)
	in := p.in + min(size, above)
	limit := g.static
	if limit == 0 {
		limit = (p.size - in) * int64(g.alpha) >> 16 // once the frame is in, when the threshold is lower
	}
	if above >= limit || above > 0 && in > p.size {
		return false
	}
	p.max = max(p.max, in)
	g.max = max(g.max, after)
	return true
}

// full reports whether a group has to pause its peer. The threshold is that after the frame was admitted.
func (s *run) full(w *swtch, g *group) bool {
	return g.headroom > 0 || max(g.held-int64(g.reserved), 0) >= threshold(w, g)
}

// emptied reports whether a paused group may let its peer go on.
func emptied(w *swtch, g *group) bool {
	if g.headroom > 0 {
		return false
	}
	above := max(g.held-int64(g.reserved), 0)
	return above <= int64(g.xon) || g.offset > 0 && above+int64(g.offset) <= threshold(w, g)
}

// release gives a departing frame's bytes back: headroom first, then shared bytes, then reserved ones.
func (s *run) release(w *swtch, k *packet) {
	pi := int32(k.in)
	gi := s.place(pi, s.ports[pi].class[k.mark()]>>4)
	g := &s.groups[gi]
	size := int64(k.size)
	if g.headroom > 0 {
		part := min(g.headroom, size)
		g.headroom -= part
		w.headroom -= part
		size -= part
	}
	w.pools[g.pool].in -= min(size, max(g.held-int64(g.reserved), 0))
	g.held -= size
	if g.paused && emptied(w, g) {
		s.resumeGroup(pi, gi, g)
	}
	if len(w.paused) > 0 && !s.compat {
		s.resumeOther(w)
	}
}

// resumeOther looks at one of the groups that are paused, in turn. The threshold of all of them grows as others give bytes
// back, and an ASIC, which looks all the time, sees it; the reference looks only when the group itself gives some back.
func (s *run) resumeOther(w *swtch) {
	if w.turn++; w.turn >= len(w.paused) {
		w.turn = 0
	}
	gi := w.paused[w.turn]
	if g := &s.groups[gi]; emptied(w, g) {
		s.resumeGroup(s.portAt(gi), gi, g)
	}
}
