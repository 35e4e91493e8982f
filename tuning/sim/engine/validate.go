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
	maxPorts = math.MaxUint16
	maxFlows = 1 << 26
	maxDelay = 2 * Millisecond // of a wire: 400 km
	minRate  = 100_000_000     // bits per second, of a wire
	maxRate  = 8_000_000_000_000
	maxFrame = math.MaxUint16 - 256
	maxStop  = 100 * 86400 * Second
	maxSpan  = math.MaxInt32 // bytes of reserve, headroom and resume levels
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
	c    *Config
	errs []error
}

func (v *validator) say(bad bool, what string, index int, format string, args ...any) {
	if bad {
		v.errs = append(v.errs, &ConfigError{what, index, fmt.Errorf(format, args...)})
	}
}

func (v *validator) run() {
	c := v.c
	say := func(bad bool, format string, args ...any) { v.say(bad, "", 0, format, args...) }
	say(len(c.Ports) > maxPorts, "%d ports are more than %d", len(c.Ports), maxPorts)
	say(len(c.Flows) > maxFlows, "%d flows are more than %d", len(c.Flows), maxFlows)
	say(c.Stop < 0 || c.Stop > maxStop, "stop at %d ps is not within 0 and %d", c.Stop, Time(maxStop))
	say(c.Measure < 0 || c.Stop > 0 && c.Measure > c.Stop, "measuring begins at %d ps, and the run ends at %d", c.Measure, c.Stop)
	say(c.Sample < 0, "a sample each %d ps", c.Sample)
	say(c.Overhead < 0 || c.Overhead > 1024, "overhead of %d bytes is not within 0 and 1024", c.Overhead)
	say(c.Audit < 0, "an audit each %d events", c.Audit)
	t := &c.Transport
	for _, size := range []struct {
		name  string
		bytes int32
	}{{"an acknowledgement", t.AckSize}, {"a notification", t.CNPSize}, {"a pause", t.PauseSize}} {
		say(size.bytes < 1 || size.bytes > maxFrame, "%d bytes for %s are not within 1 and %d", size.bytes, size.name, maxFrame)
	}
	say(t.Header < 0 || t.Header > maxFrame, "a header of %d bytes is not within 0 and %d", t.Header, maxFrame)
	say(t.AckEvery < 1, "an acknowledgement for each %d packets: at least 1", t.AckEvery)
	say(t.RTO < 0 || t.RTO > maxStop || t.NackGap < 0 || t.NackGap > maxStop, "timers of %d ps (RTO) and %d ps (NACK gap) are not within 0 and %d", t.RTO, t.NackGap, Time(maxStop))
	sized, endlessly := false, false
	for i := range c.Flows {
		sized = sized || c.Flows[i].Bytes > 0
		endlessly = endlessly || c.Flows[i].Bytes == 0
	}
	say(!sized && c.Stop == 0, "the run has no end: no flow of a known size, and no time to stop at")
	for _, q := range c.Watch {
		say(q.Port < 0 || q.Port >= len(c.Ports) || q.Queue < 0 || q.Queue >= NumPriorities, "queue %d of port %d, which is to be watched, does not exist", q.Queue, q.Port)
	}
}

// swtch adds up what a switch's groups have for themselves.
func (v *validator) swtch(i int) {
	w := &v.c.Switches[i]
	v.say(len(w.Pools) == 0 || len(w.Pools) > math.MaxInt8, "switch", i, "%d pools: 1 to %d", len(w.Pools), math.MaxInt8)
	for j, p := range w.Pools {
		v.say(p.Size < 0 || p.Size > math.MaxInt64>>24, "switch", i, "pool %d of %d bytes is not within 0 and %d", j, p.Size, int64(math.MaxInt64>>24))
	}
	v.say(w.Headroom < 0 || w.Headroom > math.MaxInt64>>24, "switch", i, "shared headroom of %d bytes is not within 0 and %d", w.Headroom, int64(math.MaxInt64>>24))
	if w.Buffer == 0 {
		return
	}
	sum := w.Headroom
	for j := range w.Pools {
		sum += w.Pools[j].Size
	}
	shared := sum
	for j := range v.c.Ports {
		p := &v.c.Ports[j]
		if p.Switch != i {
			continue
		}
		for k := range p.Groups {
			sum += p.Groups[k].Reserved
			if w.Headroom == 0 && p.Groups[k].Lossless {
				sum += p.Groups[k].Headroom
			}
		}
	}
	v.say(sum > w.Buffer, "switch", i, "pools of %d bytes and what groups have to themselves, %d bytes, are more than the buffer of %d bytes", shared, sum-shared, w.Buffer)
}

func (v *validator) port(i int) {
	c := v.c
	p := &c.Ports[i]
	say := func(bad bool, format string, args ...any) { v.say(bad, "port", i, format, args...) }
	say(p.Rate < minRate || p.Rate > maxRate, "a rate of %d bit/s is not within %d and %d", p.Rate, int64(minRate), int64(maxRate))
	say(p.Delay < 0 || p.Delay > maxDelay, "a delay of %d ps is not within 0 and %d", p.Delay, Time(maxDelay))
	say(p.MTU < 0, "an MTU of %d bytes", p.MTU)
	say(p.Reaction < 0 || p.Reaction > Second, "a reaction time of %d ps is not within 0 and %d", p.Reaction, Second)
	say(p.Quanta < 0 || p.Quanta > math.MaxUint16, "a pause of %d quanta is not within 0 and %d", p.Quanta, math.MaxUint16)
	if p.Peer < 0 || p.Peer >= len(c.Ports) || p.Peer == i {
		say(true, "its peer %d is no other port", p.Peer)
	} else {
		o := &c.Ports[p.Peer]
		say(o.Peer != i, "its peer %d has peer %d", p.Peer, o.Peer)
		say(o.Rate != p.Rate, "it sends %d bit/s, and its peer %d sends %d", p.Rate, p.Peer, o.Rate)
		say(o.Switch != None && o.Switch == p.Switch, "its peer %d is on the same switch %d", p.Peer, p.Switch)
	}
	pools := math.MaxInt8 + 1 // a NIC has none, and what says otherwise does not matter
	if p.Switch != None {
		if p.Switch < 0 || p.Switch >= len(c.Switches) {
			say(true, "switch %d of %d does not exist", p.Switch, len(c.Switches))
			return
		}
		pools = len(c.Switches[p.Switch].Pools)
	}
	for m, to := range p.Classify {
		say(to.Group < None || to.Group >= NumPriorities || to.Queue < 0 || to.Queue >= NumPriorities, "mark %d: group %d and queue %d are not within 0 and 7", m, to.Group, to.Queue)
	}
	for j := range p.Groups {
		v.group(i, j, pools)
	}
	for j := range p.Queues {
		v.queue(i, j, pools)
	}
	if w := &p.Watchdog; w.Action != WatchdogOff {
		say(w.Action > WatchdogAlert, "watchdog action %d does not exist", w.Action)
		say(p.Switch == None, "a NIC has no watchdog")
		say(w.Poll <= 0 || w.Detect <= 0 || w.Restore <= 0 || w.Poll > maxStop || w.Detect > maxStop || w.Restore > maxStop,
			"the watchdog's times of %d ps (poll), %d ps (detect) and %d ps (restore) are not within 1 and %d", w.Poll, w.Detect, w.Restore, Time(maxStop))
	}
}

func (v *validator) group(i, j, pools int) {
	g := &v.c.Ports[i].Groups[j]
	say := func(bad bool, format string, args ...any) {
		v.say(bad, "port", i, "group %d: "+format, append([]any{j}, args...)...)
	}
	say(g.Pool < 0 || int(g.Pool) >= pools, "pool %d of %d does not exist", g.Pool, pools)
	say(g.Alpha < 0 || g.Alpha > 1<<23, "alpha of %d/65536 is not within 0 and %d/65536", g.Alpha, 1<<23)
	say(g.Static < 0, "a threshold of %d bytes", g.Static)
	for _, x := range []struct {
		name  string
		bytes int64
	}{{"reserve", g.Reserved}, {"headroom", g.Headroom}, {"xon", g.Xon}, {"xon offset", g.XonOffset}} {
		say(x.bytes < 0 || x.bytes > maxSpan, "%s of %d bytes is not within 0 and %d", x.name, x.bytes, maxSpan)
	}
}

func (v *validator) queue(i, j, pools int) {
	q := &v.c.Ports[i].Queues[j]
	say := func(bad bool, format string, args ...any) {
		v.say(bad, "port", i, "queue %d: "+format, append([]any{j}, args...)...)
	}
	say(q.Pool < 0 || int(q.Pool) >= pools, "pool %d of %d does not exist", q.Pool, pools)
	say(q.Alpha < 0 || q.Alpha > 1<<23, "alpha of %d/65536 is not within 0 and %d/65536", q.Alpha, 1<<23)
	say(q.Limit < 0, "a limit of %d bytes", q.Limit)
	say(q.Weight < 0 || q.Weight > 1<<24, "a weight of %d bytes is not within 0 and %d", q.Weight, 1<<24)
	if q.Marks || q.Drops {
		say(q.Kmin < 0 || q.Kmax < q.Kmin, "kmin of %d bytes and kmax of %d bytes: 0 <= kmin <= kmax", q.Kmin, q.Kmax)
		say(!(q.Pmax >= 0 && q.Pmax <= 1), "pmax of %g is not within 0 and 1", q.Pmax)
	}
}

func (v *validator) nic(i int) {
	c := v.c
	n := &c.NICs[i]
	say := func(bad bool, format string, args ...any) { v.say(bad, "NIC", i, format, args...) }
	if n.Port < 0 || n.Port >= len(c.Ports) {
		say(true, "port %d of %d does not exist", n.Port, len(c.Ports))
		return
	}
	say(c.Ports[n.Port].Switch != None, "port %d is one of switch %d", n.Port, c.Ports[n.Port].Switch)
	say(n.CNPMark < 0 || n.CNPMark >= NumMarks, "mark %d of notifications is not within 0 and %d", n.CNPMark, NumMarks-1)
	say(n.CNPClass < 0 || n.CNPClass >= NumPriorities, "class %d of notifications is not within 0 and %d", n.CNPClass, NumPriorities-1)
	say(n.CNPWait < 0 || n.CNPWait > Second || n.CNPGap < 0 || n.CNPGap > Second, "times of notifications of %d ps (wait) and %d ps (gap) are not within 0 and %d", n.CNPWait, n.CNPGap, Second)
	say(n.Drain < 0 || n.Drain > maxRate || n.Drain > 0 && n.Drain < 1_000_000, "it takes in %d bit/s, which is neither 0 nor within 1000000 and %d", n.Drain, int64(maxRate))
	say(n.Buffer < 0 || n.Xoff < 0 || n.Xon < 0 || n.Xoff > 0 && n.Xon >= n.Xoff || n.Xoff > n.Buffer, "buffer of %d bytes, xoff at %d, xon at %d: 0 <= xon < xoff <= buffer", n.Buffer, n.Xoff, n.Xon)
	say(len(n.Storms) > 100, "%d storms are more than 100", len(n.Storms))
	for j, st := range n.Storms {
		say(st.From < 0 || st.To > maxStop || st.To != 0 && st.To <= st.From, "storm %d from %d ps to %d ps", j, st.From, st.To)
	}
	if n.React.On {
		v.react(i, &n.React)
	}
}

func (v *validator) react(i int, r *Reaction) {
	say := func(bad bool, format string, args ...any) { v.say(bad, "NIC", i, format, args...) }
	say(r.AlphaTimer <= 0 || r.RateTimer <= 0 || !r.CutOnCNP && r.CutTimer <= 0 || r.AlphaTimer > maxStop || r.RateTimer > maxStop || r.CutTimer > maxStop,
		"timers of %d ps (alpha), %d ps (increase) and %d ps (decrease) are not within 1 and %d", r.AlphaTimer, r.RateTimer, r.CutTimer, Time(maxStop))
	say(!(r.G > 0 && r.G <= 1), "g of %g is not above 0 and up to 1", r.G)
	say(r.AI < 0 || r.HAI < 0 || r.AI > maxRate || r.HAI > maxRate, "steps of %d (additive) and %d (hyper) bit/s are not within 0 and %d", r.AI, r.HAI, int64(maxRate))
	say(r.MinRate < 1_000_000 || r.MinRate > v.c.Ports[v.c.NICs[i].Port].Rate, "a smallest rate of %d bit/s is not within 1000000 and the port's %d", r.MinRate, v.c.Ports[v.c.NICs[i].Port].Rate)
	say(r.ByteCounter < 0 || r.FastRecovery < 0 || r.FastRecovery > math.MaxInt32, "a byte counter of %d and %d steps of fast recovery", r.ByteCounter, r.FastRecovery)
}

func (v *validator) flow(i int) {
	c := v.c
	f := &c.Flows[i]
	say := func(bad bool, format string, args ...any) { v.say(bad, "flow", i, format, args...) }
	if f.Src < 0 || f.Src >= len(c.NICs) || f.Dst < 0 || f.Dst >= len(c.NICs) || f.Src == f.Dst {
		say(true, "from NIC %d to NIC %d: two of %d", f.Src, f.Dst, len(c.NICs))
		return
	}
	say(f.Start < 0 || f.Start > maxStop, "a start at %d ps is not within 0 and %d", f.Start, Time(maxStop))
	say(f.Mark < 0 || f.Mark >= NumMarks, "mark %d is not within 0 and %d", f.Mark, NumMarks-1)
	say(f.Class < 0 || f.Class >= NumPriorities, "class %d is not within 0 and %d", f.Class, NumPriorities-1)
	say(c.Compat && f.Class == controlClass, "class %d is that of answers", f.Class)
	say(f.Bytes < 0 || f.Message < 0 || f.Depth < 0, "%d bytes in messages of %d bytes, %d at once", f.Bytes, f.Message, f.Depth)
	say(f.Depth > 0 && f.Message == 0, "at most %d messages at once, but it is one", f.Depth)
	say(f.Payload < 1 || f.Payload+c.Transport.Header > maxFrame, "a payload of %d bytes with a header of %d is not within 1 and %d", f.Payload, c.Transport.Header, maxFrame)
	if f.Payload < 1 {
		return
	}
	most := int64(endless - 1)
	say(f.Bytes/int64(f.Payload) >= most || f.Message/int64(f.Payload) >= most || f.Message > 0 && f.Bytes/f.Message*int64(packets(f.Message, f.Payload)) >= most,
		"%d bytes are more than %d packets of %d", f.Bytes, most, f.Payload)
	sender := &c.NICs[f.Src]
	if f.Read {
		sender = &c.NICs[f.Dst]
	}
	from := c.Ports[sender.Port]
	largest := int64(f.Payload)
	if f.Bytes > 0 {
		largest = min(largest, f.Bytes)
	}
	if f.Message > 0 {
		largest = min(largest, f.Message)
	}
	largest += int64(c.Transport.Header)
	say(sender.React.On && sender.React.ByteCounter > 0 && sender.React.ByteCounter < largest,
		"frames of %d bytes, and a byte counter of %d", largest, sender.React.ByteCounter)
	say(from.MTU > 0 && largest > int64(from.MTU), "frames of %d bytes are longer than the MTU of %d bytes of the NIC that sends them", largest, from.MTU)
	say(f.After != None && (f.After < 0 || f.After >= len(c.Flows) || c.Flows[f.After].Bytes == 0), "it starts after flow %d, which does not exist or has no end", f.After)
}

// chains finds flows that wait for each other.
func (v *validator) chains() {
	state := make([]int32, len(v.c.Flows)) // 0 = not seen, i+1 = on the way that began at i
	for i := range v.c.Flows {
		for j := i; j != None && state[j] <= 0; j = v.c.Flows[j].After {
			state[j] = int32(i + 1)
			if next := v.c.Flows[j].After; next != None && state[next] == int32(i+1) {
				v.say(true, "flow", j, "it starts after flow %d, which waits for it", next)
				return
			}
		}
	}
}
