package engine

import (
	"errors"
	"fmt"
	"math"
)

// A ConfigError says what of a Config makes no sense.
type ConfigError struct {
	What  string // "switch", "port", "NIC", "flow", or "" for the run as a whole
	Index int
	Err   error
}

func (e *ConfigError) Error() string {
	if e.What == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%s %d: %v", e.What, e.Index, e.Err)
}

// Unwrap is the reason without the place.
func (e *ConfigError) Unwrap() error { return e.Err }

// Limits of what the engine's tables hold.
const (
	maxPorts  = math.MaxUint16
	maxFlows  = 1 << 26
	maxDelay  = 2 * Millisecond // of a wire: 400 km
	minRate   = 1_000_000_000   // bits per second, of a wire: with maxDelay, what a flight can say
	maxRate   = 8_000_000_000_000
	maxFrame  = math.MaxUint16 - 256
	maxStop   = 50 * 86400 * Second // twice that is still a Time, and no time that is reached is never
	maxBuffer = int64(1) << 39      // bytes
	maxOwn    = math.MaxInt32       // bytes of reserve, headroom and resume levels
	maxAlpha  = 128 << 16
	minQuanta = 16               // less than refreshing frames take
	minTimer  = 100 * Nanosecond // of what comes again and again: nothing else would happen any more
	maxRows   = 10_000_000       // of samples
)

// Validate reports everything that is wrong with a Config, as ConfigErrors that are joined, or nil. A Config that it accepts
// runs, unless a flow has no way.
func Validate(c *Config) error {
	v := validator{c: c}
	v.run()
	for i := range c.Switches {
		v.swtch(i)
	}
	for i := range c.Ports {
		v.port(i)
	}
	for i := range c.NICs {
		v.nic(i)
	}
	if v.errs == nil { // flows point at what was found right
		for i := range c.Flows {
			v.flow(i)
		}
	}
	if v.errs == nil {
		v.chains()
	}
	return errors.Join(v.errs...)
}

type validator struct {
	c     *Config
	errs  []error
	taken []int32 // by port, the NIC that has it, plus one
}

// subject is what is looked at.
type subject struct {
	v     *validator
	what  string
	index int
	part  string // "group " or "queue ", with its number
	no    int
}

// say reports something as wrong.
func (s subject) say(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if s.part != "" {
		err = fmt.Errorf("%s%d: %w", s.part, s.no, err)
	}
	s.v.errs = append(s.v.errs, &ConfigError{s.what, s.index, err})
}

// within reports a value that is not.
func (s subject) within(name string, value, least, most int64) {
	if value < least || value > most {
		s.say("%s of %d is not within %d and %d", name, value, least, most)
	}
}

func (v *validator) run() {
	c, s := v.c, subject{v: v}
	s.within("number of ports", int64(len(c.Ports)), 0, maxPorts)
	s.within("number of flows", int64(len(c.Flows)), 0, maxFlows)
	s.within("stop (ps)", int64(c.Stop), 0, int64(maxStop))
	s.within("measuring from (ps)", int64(c.Measure), 0, int64(maxStop))
	if c.Sample != 0 {
		s.within("sample (ps)", int64(c.Sample), max(int64(minTimer), int64(c.Stop/maxRows)), int64(maxStop))
	}
	s.within("overhead (bytes)", int64(c.Overhead), 0, 1024)
	s.within("audit (events)", int64(c.Audit), 0, math.MaxInt32)
	if c.Stop > 0 && c.Measure > c.Stop {
		s.say("measuring begins at %d ps, and the run ends at %d", c.Measure, c.Stop)
	}
	t := &c.Transport
	s.within("acknowledgement (bytes)", int64(t.AckSize), 1, maxFrame)
	s.within("notification (bytes)", int64(t.CNPSize), 1, maxFrame)
	s.within("pause (bytes)", int64(t.PauseSize), 1, maxFrame)
	s.within("header (bytes)", int64(t.Header), 0, maxFrame)
	s.within("packets for an acknowledgement", int64(t.AckEvery), 1, math.MaxInt32)
	if t.RTO != 0 {
		s.within("retransmission timer (ps)", int64(t.RTO), int64(minTimer), int64(maxStop))
	}
	s.within("gap between NACKs (ps)", int64(t.NackGap), 0, int64(maxStop))
	sized := false
	for i := range c.Flows {
		sized = sized || c.Flows[i].Bytes > 0
	}
	if !sized && c.Stop == 0 {
		s.say("the run has no end: no flow of a known size, and no time to stop at")
	}
	for _, q := range c.Watch {
		if q.Port < 0 || q.Port >= len(c.Ports) || q.Queue < 0 || q.Queue >= NumPriorities {
			s.say("queue %d of port %d, which is to be watched, does not exist", q.Queue, q.Port)
		}
	}
}

// swtch adds up what a switch's groups have for themselves.
func (v *validator) swtch(i int) {
	w, s := &v.c.Switches[i], subject{v: v, what: "switch", index: i}
	s.within("number of pools", int64(len(w.Pools)), 1, math.MaxInt8)
	s.within("shared headroom (bytes)", w.Headroom, 0, maxBuffer)
	s.within("buffer (bytes)", w.Buffer, 0, maxBuffer)
	shared := w.Headroom
	for _, p := range w.Pools {
		s.within("pool (bytes)", p.Size, 0, maxBuffer)
		shared += p.Size
	}
	if w.Buffer == 0 {
		return
	}
	own := int64(0)
	for j := range v.c.Ports {
		p := &v.c.Ports[j]
		if p.Switch != i {
			continue
		}
		for k := range p.Groups {
			own += p.Groups[k].Reserved
			if w.Headroom == 0 && p.Groups[k].Lossless {
				own += p.Groups[k].Headroom
			}
		}
	}
	if shared+own > w.Buffer {
		s.say("pools and shared headroom of %d bytes, and %d bytes that groups have to themselves, are more than the buffer of %d bytes", shared, own, w.Buffer)
	}
}

func (v *validator) port(i int) {
	c := v.c
	p, s := &c.Ports[i], subject{v: v, what: "port", index: i}
	s.within("rate (bit/s)", p.Rate, minRate, maxRate)
	s.within("delay (ps)", int64(p.Delay), 0, int64(maxDelay))
	s.within("MTU (bytes)", int64(p.MTU), 0, math.MaxInt32)
	s.within("reaction time (ps)", int64(p.Reaction), 0, int64(Second))
	if p.Quanta != 0 {
		s.within("pause (quanta)", int64(p.Quanta), minQuanta, math.MaxUint16)
	}
	if p.Peer < 0 || p.Peer >= len(c.Ports) || p.Peer == i {
		s.say("its peer %d is no other port", p.Peer)
	} else {
		v.link(s, p, &c.Ports[p.Peer])
	}
	pools := int64(math.MaxInt8) // a NIC has none, and what says otherwise does not matter
	if p.Switch != None {
		if p.Switch < 0 || p.Switch >= len(c.Switches) {
			s.say("switch %d of %d does not exist", p.Switch, len(c.Switches))
			return
		}
		pools = int64(len(c.Switches[p.Switch].Pools)) - 1
	}
	for m, to := range p.Classify {
		if to.Group < None || to.Group >= NumPriorities || to.Queue < 0 || to.Queue >= NumPriorities {
			s.say("mark %d: group %d and queue %d are not within 0 and %d", m, to.Group, to.Queue, NumPriorities-1)
		}
	}
	for j := range p.Groups {
		subject{v, "port", i, "group ", j}.group(&p.Groups[j], pools)
	}
	for j := range p.Queues {
		subject{v, "port", i, "queue ", j}.queue(&p.Queues[j], pools)
	}
	if w := &p.Watchdog; w.Action != WatchdogOff {
		s.within("watchdog action", int64(w.Action), 0, int64(WatchdogAlert))
		s.within("watchdog poll (ps)", int64(w.Poll), int64(minTimer), int64(maxStop))
		s.within("watchdog detection (ps)", int64(w.Detect), int64(minTimer), int64(maxStop))
		s.within("watchdog restoration (ps)", int64(w.Restore), int64(minTimer), int64(maxStop))
		if p.Switch == None {
			s.say("a NIC has no watchdog")
		}
	}
}

// link compares the ends of one.
func (v *validator) link(s subject, p, o *Port) {
	if o.Peer != s.index {
		s.say("its peer %d has peer %d", p.Peer, o.Peer)
	}
	if o.Rate != p.Rate {
		s.say("it sends %d bit/s, and its peer %d sends %d", p.Rate, p.Peer, o.Rate)
	}
	if o.Switch != None && o.Switch == p.Switch {
		s.say("its peer %d is on the same switch %d", p.Peer, p.Switch)
	}
	if p.Switch != None {
		return
	}
	for i := range v.c.NICs {
		if v.c.NICs[i].Port == s.index {
			return
		}
	}
	s.say("it is of no switch and of no NIC")
}

func (s subject) group(g *Group, pools int64) {
	s.within("pool", int64(g.Pool), 0, pools)
	s.within("alpha (1/65536)", g.Alpha, 0, maxAlpha)
	s.within("threshold (bytes)", g.Static, 0, maxBuffer)
	s.within("reserve (bytes)", g.Reserved, 0, maxOwn)
	s.within("headroom (bytes)", g.Headroom, 0, maxOwn)
	s.within("xon (bytes)", g.Xon, 0, maxOwn)
	s.within("xon offset (bytes)", g.XonOffset, 0, maxOwn)
}

func (s subject) queue(q *Queue, pools int64) {
	s.within("pool", int64(q.Pool), 0, pools)
	s.within("alpha (1/65536)", q.Alpha, 0, maxAlpha)
	s.within("limit (bytes)", q.Limit, 0, maxBuffer)
	s.within("weight (bytes)", int64(q.Weight), 0, 1<<24)
	if q.Marks || q.Drops {
		if q.Kmin < 0 || q.Kmax < q.Kmin {
			s.say("kmin of %d bytes and kmax of %d bytes: 0 <= kmin <= kmax", q.Kmin, q.Kmax)
		}
		if !(q.Pmax >= 0 && q.Pmax <= 1) { // not a number neither
			s.say("pmax of %g is not within 0 and 1", q.Pmax)
		}
	}
}

func (v *validator) nic(i int) {
	n, s := &v.c.NICs[i], subject{v: v, what: "NIC", index: i}
	if n.Port < 0 || n.Port >= len(v.c.Ports) {
		s.say("port %d of %d does not exist", n.Port, len(v.c.Ports))
		return
	}
	p := &v.c.Ports[n.Port]
	if p.Switch != None {
		s.say("port %d is one of switch %d", n.Port, p.Switch)
	}
	if v.taken == nil {
		v.taken = make([]int32, len(v.c.Ports))
	}
	if o := v.taken[n.Port]; o != 0 {
		s.say("port %d is that of NIC %d", n.Port, o-1)
	}
	v.taken[n.Port] = int32(i + 1)
	s.within("mark of notifications", int64(n.CNPMark), 0, NumMarks-1)
	s.within("class of notifications", int64(n.CNPClass), 0, NumPriorities-1)
	s.within("wait of notifications (ps)", int64(n.CNPWait), 0, int64(Second))
	s.within("gap of notifications (ps)", int64(n.CNPGap), 0, int64(Second))
	if n.Drain != 0 {
		s.within("what it takes in (bit/s)", n.Drain, 1_000_000, maxRate)
	}
	s.within("buffer (bytes)", n.Buffer, 0, math.MaxInt64)
	if n.Xoff != 0 && (n.Xon < 0 || n.Xon >= n.Xoff || n.Xoff > n.Buffer) {
		s.say("xon at %d bytes, xoff at %d, buffer of %d: 0 <= xon < xoff <= buffer", n.Xon, n.Xoff, n.Buffer)
	}
	s.within("number of storms", int64(len(n.Storms)), 0, 100)
	for j, st := range n.Storms {
		if st.From < 0 || st.To > maxStop || st.To != 0 && st.To <= st.From {
			s.say("storm %d from %d ps to %d ps", j, st.From, st.To)
		}
	}
	if n.React.On {
		s.react(&n.React, p.Rate)
	}
}

func (s subject) react(r *Reaction, line int64) {
	s.within("alpha timer (ps)", int64(r.AlphaTimer), int64(minTimer), int64(maxStop))
	s.within("increase timer (ps)", int64(r.RateTimer), int64(minTimer), int64(maxStop))
	if !r.CutOnCNP {
		s.within("decrease timer (ps)", int64(r.CutTimer), int64(minTimer), int64(maxStop))
	}
	if !(r.G > 0 && r.G <= 1) {
		s.say("g of %g is not above 0 and up to 1", r.G)
	}
	s.within("additive step (bit/s)", r.AI, 0, maxRate)
	s.within("hyper step (bit/s)", r.HAI, 0, maxRate)
	s.within("smallest rate (bit/s)", r.MinRate, 1_000_000, line)
	s.within("steps of fast recovery", int64(r.FastRecovery), 0, math.MaxInt32)
	s.within("byte counter (bytes)", r.ByteCounter, 0, math.MaxInt64)
}

func (v *validator) flow(i int) {
	c := v.c
	f, s := &c.Flows[i], subject{v: v, what: "flow", index: i}
	if f.Src < 0 || f.Src >= len(c.NICs) || f.Dst < 0 || f.Dst >= len(c.NICs) || f.Src == f.Dst {
		s.say("from NIC %d to NIC %d: two of %d", f.Src, f.Dst, len(c.NICs))
		return
	}
	s.within("start (ps)", int64(f.Start), 0, int64(maxStop))
	s.within("mark", int64(f.Mark), 0, NumMarks-1)
	s.within("class", int64(f.Class), 0, NumPriorities-1)
	s.within("class of answers", int64(f.Answers), 0, NumPriorities)
	if c.Compat && f.Class == controlClass {
		s.say("class %d is that of answers", f.Class)
	}
	s.within("bytes", f.Bytes, 0, math.MaxInt64)
	s.within("message (bytes)", f.Message, 0, math.MaxInt64)
	s.within("messages at once", int64(f.Depth), 0, math.MaxInt32)
	if f.Depth > 0 && f.Message == 0 {
		s.say("at most %d messages at once, but it is one", f.Depth)
	}
	s.within("payload (bytes)", int64(f.Payload), 1, maxFrame-int64(c.Transport.Header))
	if f.Payload < 1 || f.Bytes < 0 || f.Message < 0 {
		return
	}
	v.packets(s, f)
	if f.After != None && (f.After < 0 || f.After >= len(c.Flows) || c.Flows[f.After].Bytes == 0) {
		s.say("it starts after flow %d, which does not exist or has no end", f.After)
	}
}

// packets looks at how many a flow has, and how long they are.
func (v *validator) packets(s subject, f *Flow) {
	const most = int64(endless - 1)
	payload, largest := int64(f.Payload), int64(f.Payload)
	if f.Message > 0 {
		largest = min(largest, f.Message)
	}
	// Messages that are shorter than a packet have one each.
	if n := f.Bytes / largest; n >= most/2 || f.Message/payload >= most {
		s.say("%d bytes in messages of %d (0 = one) are more than %d packets of %d", f.Bytes, f.Message, most, f.Payload)
	}
	several := f.Bytes == 0 || f.Bytes > largest
	if f.Bytes > 0 {
		largest = min(largest, f.Bytes)
	}
	from := f.Src
	if f.Read {
		from = f.Dst
	}
	n := &v.c.NICs[from]
	mtu := v.c.Ports[n.Port].MTU
	largest += int64(v.c.Transport.Header)
	if full := n.React.ByteCounter; n.React.On && full > 0 && full < largest {
		s.say("frames of %d bytes, and a byte counter of %d at NIC %d, which sends them", largest, full, from)
	}
	if rate := v.c.Ports[n.Port].Rate; v.c.Compat && several && (largest+int64(v.c.Overhead))*8e9 < rate {
		s.say("frames of %d bytes take less than a nanosecond at %d bit/s, so with Compat no time at all", largest, rate)
	}
	if mtu > 0 && largest > int64(mtu) {
		s.say("frames of %d bytes are longer than the MTU of %d bytes of NIC %d, which sends them", largest, mtu, from)
	}
}

// chains finds flows that wait for each other.
func (v *validator) chains() {
	state := make([]int32, len(v.c.Flows)) // 0 = not seen, i+1 = on the way that began at i
	for i := range v.c.Flows {
		for j := i; j != None && state[j] <= 0; j = v.c.Flows[j].After {
			state[j] = int32(i + 1)
			if next := v.c.Flows[j].After; next != None && state[next] == int32(i+1) {
				subject{v: v, what: "flow", index: j}.say("it starts after flow %d, which waits for it", next)
				return
			}
		}
	}
}
