package engine

import "testing"

// What the packets of tests are, and the priorities that they travel in.
const (
	lossless = 3 // mark, group, queue and class of what must not be lost
	lossy    = 1
	notices  = 6
)

// star is a switch with hosts of 100 Gb/s, a microsecond away: PFC, marks from 100 kB on, notifications in a class of their own.
func star(hosts int) *Config {
	c := &Config{
		Seed: 1, Overhead: 24, Stop: 2 * Millisecond, Audit: 1000,
		Transport: Transport{AckSize: 64, CNPSize: 64, PauseSize: 64, Header: 48, AckEvery: 1, RTO: 500 * Microsecond, NackGap: 100 * Microsecond},
	}
	c.addSwitch(8 << 20)
	for range hosts {
		c.addHost(0, 100e9)
	}
	return c
}

func (c *Config) addSwitch(buffer int64) int {
	c.Switches = append(c.Switches, Switch{HashSeed: uint32(len(c.Switches)), Pools: []Pool{{Size: buffer}, {Size: 1 << 20}}})
	return len(c.Switches) - 1
}

func (c *Config) addHost(sw int, rate int64) int {
	_, port := c.cable(sw, None, rate)
	c.NICs = append(c.NICs, NIC{
		Port: port, Address: uint32(len(c.NICs)), CNPMark: notices, CNPClass: notices, CNPGap: 50 * Microsecond,
		React: Reaction{
			On: true, CutOnCNP: true, ClampTarget: true, AlphaTimer: 55 * Microsecond, RateTimer: 55 * Microsecond, ByteCounter: 10 << 20,
			FastRecovery: 5, G: 1.0 / 256, AI: 40e6, HAI: 200e6, MinRate: 100e6,
		},
	})
	return len(c.NICs) - 1
}

// cable connects two switches, or a switch with nothing yet, and returns the ports.
func (c *Config) cable(a, b int, rate int64) (int, int) {
	for _, sw := range []int{a, b} {
		p := Port{Switch: sw, Peer: len(c.Ports) ^ 1, Rate: rate, Delay: Microsecond, Reaction: 500 * Nanosecond}
		for i := range p.Classify {
			p.Classify[i] = Class{Group: None}
		}
		for _, i := range []int8{lossless, lossy, notices} {
			p.Classify[i] = Class{Group: i, Queue: i}
			p.Groups[i] = Group{Pool: 1, Alpha: 8 << 16}
			p.Queues[i] = Queue{Weight: 9216, Pool: 1}
		}
		p.Groups[lossless] = Group{Lossless: true, Reserved: 2000, Alpha: 1 << 13, Headroom: 100_000, XonOffset: 3000}
		p.Queues[lossless] = Queue{Weight: 9216, Marks: true, Kmin: 100_000, Kmax: 400_000, Pmax: 0.1}
		p.Queues[notices].Strict = true
		p.Obeys[lossless] = 1 << lossless
		c.Ports = append(c.Ports, p)
	}
	return len(c.Ports) - 2, len(c.Ports) - 1
}

// flow adds traffic of one kind.
func (c *Config) flow(src, dst int, bytes int64, kind int8) *Flow {
	c.Flows = append(c.Flows, Flow{Src: src, Dst: dst, Bytes: bytes, After: None, Mark: kind, Class: kind, Payload: 1000, SourcePort: uint16(len(c.Flows))})
	return &c.Flows[len(c.Flows)-1]
}

// unmarked switches ECN off.
func (c *Config) unmarked() *Config {
	for i := range c.Ports {
		c.Ports[i].Queues[lossless].Marks = false
	}
	return c
}

// run runs it to its end.
func (c *Config) run(t *testing.T) *Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dropped is the sum over all ports.
func (r *Result) dropped() (sum [NumDropReasons]uint64) {
	for i := range r.Ports {
		for reason, n := range r.Ports[i].Drops {
			sum[reason] += n
		}
	}
	return sum
}

// near fails when a value is not within a part of what is wanted.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if got < want*(1-part) || got > want*(1+part) {
		t.Errorf("%s is %.6g, want %.6g within %g", what, got, want, part)
	}
}

// gbps is the rate of bytes over a time.
func gbps(bytes int64, d Time) float64 { return float64(bytes) * 8 * 1000 / float64(d) }
