package host

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
)

// Network is what hosts run verbs tests over: who has which name and address, and who knows what a test measures. Tests that
// begin at about the same time take place together.
type Network struct {
	NetworkOptions
	ctx  context.Context // of what runs on it; ends with Close
	stop context.CancelFunc

	mu       sync.Mutex
	hosts    []*Host
	open     *gathering
	expected int
	wg       sync.WaitGroup
}

// NetworkOptions are what a network is made of.
type NetworkOptions struct {
	// Measure says what became of tests that take place at the same time, in their order.
	Measure func(ctx context.Context, tests []Test) ([]Outcome, error)
	// Load runs a workload by its text and seed, and returns the result as JSON.
	Load func(ctx context.Context, workload string, seed uint64) ([]byte, error)
	// Observe does the same, and returns what was seen, counters included, as JSON.
	Observe func(ctx context.Context, workload string, seed uint64) ([]byte, error)
	// Settle is how long after a test began another one still joins it. No more than 10 times that is waited in all, or 20 times
	// while servers wait for their clients: those are about to come.
	Settle time.Duration
}

// NewNetwork makes a network without hosts: those join it that are made with it.
func NewNetwork(o NetworkOptions) *Network {
	n := &Network{NetworkOptions: o}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// Close ends what runs on it, and waits for that.
func (n *Network) Close() {
	n.stop()
	n.mu.Lock()
	g := n.open
	n.mu.Unlock()
	if g != nil {
		n.begin(g, true)
	}
	n.wg.Wait()
}

// Test is one client with its server.
type Test struct {
	Client, Server End
	perftest.Options
	MTU int // payload of a packet that both have
}

// End is one side of a test: its NIC, and how it marks what it sends.
type End struct {
	Host, Link string
	ToS        uint8
}

// Outcome is what became of a test.
type Outcome struct {
	perftest.Numbers
	Dead bool // nothing arrived: the retries of the sender are used up
}

// gathering is tests that take place together.
type gathering struct {
	tests    []Test
	left     []bool // who did not wait
	since    time.Time
	timer    *time.Timer
	held     bool // more tests are expected: the timer has no say
	done     chan struct{}
	outcomes []Outcome
	err      error
}

// join waits for what becomes of t.
func (n *Network) join(ctx context.Context, t Test) (Outcome, error) {
	n.mu.Lock()
	g := n.open
	if g == nil {
		g = &gathering{since: time.Now(), done: make(chan struct{})}
		n.open = g
		n.wg.Add(1)
		g.timer = time.AfterFunc(n.Settle, func() { n.due(g) })
	}
	i := len(g.tests)
	g.tests, g.left = append(g.tests, t), append(g.left, false)
	g.held = len(g.tests) < n.expected
	switch {
	case g.held:
		g.timer.Stop() // which may come too late
	case n.expected > 0:
		n.expected = 0
		g.timer.Reset(0)
	case time.Since(g.since) < 9*n.Settle:
		g.timer.Reset(n.Settle)
	}
	n.mu.Unlock()
	select {
	case <-g.done:
		return g.outcomes[i], g.err
	case <-ctx.Done():
		n.mu.Lock()
		defer n.mu.Unlock()
		g.left[i] = true
		return Outcome{}, context.Cause(ctx)
	}
}

// Expect lets the next tests wait until there are so many of them, however long that takes.
func (n *Network) Expect(tests int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.expected = tests
}

// due is the timer of a gathering. It may have gone off before it was stopped, and then it does not count.
func (n *Network) due(g *gathering) {
	if !n.more(g) {
		n.begin(g, false)
	}
}

// more reports whether servers wait whose clients may come in time, and lets the timer run on then.
func (n *Network) more(g *gathering) bool {
	n.mu.Lock()
	hosts, soon := slices.Clone(n.hosts), n.open == g && !g.held && time.Since(g.since) < 20*n.Settle
	n.mu.Unlock()
	waits := func(h *Host) bool {
		return slices.ContainsFunc(h.running(), func(p process) bool { return p.server != nil })
	}
	if !soon || !slices.ContainsFunc(hosts, waits) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == g && !g.held {
		g.timer.Reset(n.Settle)
	}
	return true
}

// begin runs what has gathered; one that is held only if it has to end.
func (n *Network) begin(g *gathering, end bool) {
	n.mu.Lock()
	if n.open != g || g.held && !end { // n.open != g: its timer went off twice
		n.mu.Unlock()
		return
	}
	n.open = nil
	defer n.wg.Done()
	defer close(g.done)
	var at []int
	var tests []Test
	for i, t := range g.tests {
		if !g.left[i] {
			at, tests = append(at, i), append(tests, t)
		}
	}
	g.outcomes = make([]Outcome, len(g.tests))
	n.mu.Unlock()
	if len(tests) == 0 {
		return
	}
	found, err := n.Measure(n.ctx, tests)
	if g.err = err; err != nil {
		return
	}
	for j, i := range at {
		g.outcomes[i] = found[j]
	}
}

// find is the host with a name, or with an address on one of its links. known is whether the name means anything.
func (n *Network) find(name string, self *Host) (h *Host, known bool) {
	if name == "localhost" || strings.HasPrefix(name, "127.") {
		return self, true
	}
	a, err := netip.ParseAddr(name)
	n.mu.Lock()
	hosts := slices.Clone(n.hosts)
	n.mu.Unlock()
	for _, h := range hosts {
		if err != nil && h.opt.Hostname == name {
			return h, true
		}
		for _, l := range h.Links() {
			for _, p := range l.Addresses {
				if x, _, _ := strings.Cut(p, "/"); err == nil && x == a.String() {
					return h, true
				}
			}
		}
	}
	return nil, err == nil
}
