package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// progress tells how far long work of several equal parts is, and how long it will take: on a terminal in a line that goes
// again, elsewhere in a line now and then. Short work is not told of.
type progress struct {
	screen *show.Screen // nil = nobody is told
	what   string
	now    func() time.Time
	start  time.Time

	mu   sync.Mutex
	last time.Time
	part []float64 // 0 to 1
	said []string  // how far each is, in words
}

// How often progress is told.
const (
	onTerminal = 200 * time.Millisecond
	onPaper    = 10 * time.Second
	patience   = time.Second // before which nothing is told
)

// progressOf tells of the simulation of a fabric with so many seeds.
func (a *app) progressOf(fabric string, runs int) *progress {
	p := &progress{what: "simulating " + fabric, now: time.Now, start: time.Now(), part: make([]float64, runs), said: make([]string, runs)}
	p.screen, _ = a.sys.err.(*show.Screen)
	return p
}

// of is told how far run i is; of a run that ends when its flows have, nobody knows.
func (p *progress) of(i int) func(at, end units.Duration) {
	return func(at, end units.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said[i] = lasting(at) + " simulated"
		if end > 0 {
			p.part[i] = min(float64(at)/float64(end), 1)
			p.said[i] = fmt.Sprintf("%s of %s simulated", lasting(at), lasting(end))
		}
		p.tell()
	}
}

// done says that run i is over.
func (p *progress) done(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part[i] = 1
	p.tell()
}

// tell says how far it is, if it is time to.
func (p *progress) tell() {
	now := p.now()
	each := onPaper
	if p.screen != nil && p.screen.Terminal() {
		each = onTerminal
	}
	if p.screen == nil || now.Sub(p.start) < patience || now.Sub(p.last) < each || each == onPaper && now.Sub(p.start) < onPaper {
		return
	}
	p.last = now
	if line := p.line(now.Sub(p.start)); each == onTerminal {
		p.screen.Brief(line)
	} else {
		fmt.Fprintln(p.screen, line)
	}
}

// line is "simulating pod1: 3.2ms of 11ms simulated, about 12s left".
func (p *progress) line(since time.Duration) string {
	done, whole := 0.0, 0
	for _, x := range p.part {
		done += x
		if x == 1 {
			whole++
		}
	}
	s := p.what + ": " + p.said[0]
	if len(p.part) > 1 {
		s = fmt.Sprintf("%s: %d of %s", p.what, whole, diag.Count(len(p.part), "run"))
	}
	if share := done / float64(len(p.part)); share > 0.01 {
		left := time.Duration(float64(since) * (1 - share) / share)
		s += ", about " + left.Round(time.Second).String() + " left"
	}
	return s
}

// end takes the line away.
func (p *progress) end() {
	if p.screen != nil {
		p.screen.Brief("")
	}
}
