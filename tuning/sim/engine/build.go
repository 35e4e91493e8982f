package engine

import "math"

// newRun makes the state of a fabric whose Config is valid.
func newRun(cfg *Config) (*run, error) {
	np, nf := len(cfg.Ports), len(cfg.Flows)
	s := &run{
		cfg:      cfg,
		ports:    make([]port, np),
		cold:     make([]portCold, np),
		queues:   make([]queue, np*NumPriorities),
		groups:   make([]group, np*NumPriorities),
		switches: make([]swtch, len(cfg.Switches)),
		nics:     make([]nic, len(cfg.NICs)),
		snd:      make([]sender, nf),
		rcv:      make([]receiver, nf),
		stop:     cfg.Stop,
		compat:   cfg.Compat,
		overhead: Time(cfg.Overhead),
	}
	if s.stop == 0 {
		s.stop = never - 1
	}
	if s.compat {
		s.stop-- // it was asked for before all else, and is the first event of its time
		s.drawn = newStreams(len(cfg.Switches)+len(cfg.NICs), cfg.Seed)
	}
	if cfg.Audit > 0 {
		s.ledger = &ledger{every: cfg.Audit, left: cfg.Audit}
	}
	s.watch = watch{patience: cfg.patience(true), brisk: cfg.patience(false), since: -1, at: cfg.firstStart()}
	s.limit = min(s.stop, watchEvery)
	n := int32(np)
	s.wires, s.chores, s.timers, s.notices = n, 2*n, 3*n, 3*n+int32(nf)
	s.clock = s.notices
	for i := range cfg.NICs {
		if cfg.NICs[i].CNPWait > 0 {
			s.clock = s.notices + int32(nf)
			s.behind = make([]times, nf)
			break
		}
	}
	s.wheel = newWheel(int(s.clock)+numClocks, np, cfg.horizon())
	for i := range cfg.Switches {
		s.buildSwitch(i)
	}
	for i := range cfg.Ports {
		s.buildPort(i)
	}
	for i := range cfg.NICs {
		s.buildNIC(i)
	}
	if err := s.findWays(); err != nil {
		return nil, err
	}
	for i := range cfg.Flows {
		s.buildFlow(i)
	}
	s.chain()
	s.startClocks()
	return s, nil
}

func (s *run) buildSwitch(i int) {
	c := &s.cfg.Switches[i]
	w := &s.switches[i]
	w.onEntry = c.OnEntry
	w.roomCap = c.Headroom
	w.rng = mix(mix(s.cfg.Seed) + uint64(i))
	w.pools = make([]pool, len(c.Pools))
	for j, p := range c.Pools {
		w.pools[j].size = p.Size
	}
}

// mix is the finaliser of splitmix64: it makes of numbers that differ a little others that differ in all bits, never 0.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	if x ^= x >> 31; x != 0 {
		return x
	}
	return 1
}

func (s *run) buildPort(i int) {
	c := &s.cfg.Ports[i]
	p := &s.ports[i]
	*p = port{busy: -1, delay: c.Delay, peer: uint16(c.Peer), owner: int32(c.Switch), mtu: math.MaxUint16}
	if bits := int64(8 * Second); bits%c.Rate == 0 {
		p.perB = Time(bits / c.Rate)
	}
	if c.MTU > 0 && c.MTU < math.MaxUint16 {
		p.mtu = uint16(c.MTU)
	}
	for m, to := range c.Classify {
		p.class[m] = noClass
		if to.Group >= 0 {
			p.class[m] = uint8(to.Group)<<4 | uint8(to.Queue)
		}
	}
	for j := range c.Groups {
		g := &c.Groups[j]
		s.groups[s.place(int32(i), uint8(j))] = group{
			static: g.Static, alpha: int32(g.Alpha), reserved: int32(g.Reserved), room: int32(g.Headroom), xon: int32(g.Xon),
			offset: int32(g.XonOffset), pool: g.Pool, lossless: g.Lossless, listed: None,
		}
	}
	for j := range c.Queues {
		s.buildQueue(p, &s.queues[s.place(int32(i), uint8(j))], &c.Queues[j], uint8(1)<<j)
	}
	if c.Switch == None {
		p.flags |= isNIC
		p.strict |= s.controlBit()
	}
	if c.Watchdog.Action != WatchdogOff {
		s.cold[i].dog = &dog{}
	}
}

func (s *run) buildQueue(p *port, q *queue, c *Queue, bit uint8) {
	*q = queue{weight: max(c.Weight, 1), pool: c.Pool, alpha: c.Alpha, limit: c.Limit, kmin: math.MaxInt64, kmax: math.MaxInt64}
	if c.Strict {
		p.strict |= bit
	}
	if c.Marks || c.Drops {
		q.kmin, q.kmax = c.Kmin, c.Kmax
		if c.Kmax > c.Kmin {
			q.slope = c.Pmax / float64(c.Kmax-c.Kmin)
		}
	}
	if c.Drops {
		q.flags |= queueLimited | queueDrops
	}
	if c.Alpha > 0 || c.Limit > 0 {
		q.flags |= queueLimited
	}
}

func (s *run) buildNIC(i int) {
	c := &s.cfg.NICs[i]
	n := &s.nics[i]
	*n = nic{port: int32(c.Port), wakeAt: never, cnpHead: headOf(cnp, c.CNPMark, 0), cnpWait: c.CNPWait, cnpGap: c.CNPGap, cnpTo: uint8(c.CNPClass)}
	if c.React.On {
		n.react = newReact(&c.React, s.compat)
	}
	s.ports[c.Port].owner = int32(i)
	n.grow(uint8(c.CNPClass))
	if s.compat {
		n.grow(controlClass)
	}
	s.buildSlow(n, c)
	if peer := &s.ports[s.ports[c.Port].peer]; n.slow == nil && int32(s.ports[c.Port].mtu) >= s.cfg.Transport.AckSize {
		peer.flags |= toNIC
	}
}

// endless is the number of packets of a flow without end.
const endless = math.MaxUint32

func (s *run) buildFlow(i int) {
	f := &s.cfg.Flows[i]
	q, r := &s.snd[i], &s.rcv[i]
	from, to := f.Src, f.Dst
	if f.Read {
		from, to = to, from
	}
	t := &s.cfg.Transport
	each, total := uint32(endless), uint32(endless)
	short := int64(f.Payload) // of a message's last packet
	if f.Message > 0 {
		each = packets(f.Message, f.Payload)
		short = f.Message - int64(each-1)*int64(f.Payload)
	}
	tail := short
	if f.Bytes > 0 {
		messages, rest := int64(0), f.Bytes
		if f.Message > 0 {
			messages, rest = f.Bytes/f.Message, f.Bytes%f.Message
		}
		total = uint32(messages) * each
		if rest > 0 {
			n := packets(rest, f.Payload)
			total += n
			tail = rest - int64(n-1)*int64(f.Payload)
		}
		s.left++
		s.sized = true
	}
	n := &s.nics[from]
	q.nic, q.class, q.mark = int32(from), uint8(f.Class), uint8(f.Mark)
	q.full, q.short, q.tail = uint16(f.Payload+t.Header), uint16(short)+uint16(t.Header), uint16(tail)+uint16(t.Header)
	q.total, q.each, q.edge, q.depth = total, each, min(each, total), f.Depth
	q.clean, q.read = !f.Read, f.Read
	q.line = s.cfg.Ports[n.port].Rate
	s.setRate(q, float64(q.line))
	q.cc.target = q.cc.rate
	if !f.Read {
		q.lim = q.window(0)
	}
	if f.Message > 0 {
		q.messages = &messages{}
	}
	answers := f.Class
	if f.Answers > 0 {
		answers = f.Answers - 1
	}
	r.nic, r.class, r.mute, r.hole, r.lastCNP, r.nackAt = int32(to), uint8(answers), f.Unnoticed, endless, -never, -1
	s.join(n, q, int32(i))
	s.nics[to].grow(r.class)
}

// packets is how many a number of bytes makes.
func packets(bytes int64, payload int32) uint32 {
	return uint32((bytes + int64(payload) - 1) / int64(payload))
}

// join makes a flow one of its NIC's.
func (s *run) join(n *nic, q *sender, fi int32) {
	n.grow(q.class)
	c := &n.classes[q.class]
	if len(c.flows) == 0 {
		c.last = None
	}
	q.local = int32(len(c.flows))
	c.flows = append(c.flows, fi)
	if len(c.eligible)*64 < len(c.flows) {
		c.eligible = append(c.eligible, 0)
	}
	n.data |= 1 << q.class
}

// grow makes room for a class.
func (n *nic) grow(c uint8) {
	for len(n.classes) <= int(c) {
		n.classes = append(n.classes, class{})
	}
}

// firstStart is when the first flow starts.
func (c *Config) firstStart() Time {
	t := never
	for i := range c.Flows {
		if f := &c.Flows[i]; f.After == None {
			t = min(t, f.Start)
		}
	}
	return t
}

// longestFrame is the bytes of the longest frame that there will be.
func (c *Config) longestFrame() Time {
	t := &c.Transport
	n := max(t.AckSize, t.CNPSize, t.PauseSize)
	for i := range c.Flows {
		n = max(n, c.Flows[i].Payload+t.Header)
	}
	return Time(n)
}

// horizon is the longest time between the start of a frame and its arrival.
func (c *Config) horizon() Time {
	t, frame := Time(0), c.longestFrame()+Time(c.Overhead)
	for i := range c.Ports {
		p := &c.Ports[i]
		t = max(t, p.Delay+8*frame*Second/Time(p.Rate))
	}
	return t
}
