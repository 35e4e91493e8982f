package engine_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// The engine against what can be known without one. Each theory makes claims, which a test judges and docs/evidence/simulator.md
// shows; what takes long is claimed for that page only.

// claim is a figure that theory gives, and the engine's.
type claim struct {
	What         string
	Theory, Ours float64
	Unit         string
	Within       float64 // part of the theory's; 0 = equal
}

// theory is a kind of claims.
type theory struct {
	Name   string
	Claims func(t testing.TB, long bool) []claim
}

func theories() []theory {
	return []theory{
		{"DCQCN at rest: mean of the queue", fixedPoints},
		{"DCQCN: swings or rests", stability},
		{"DCQCN: fairness", fairness},
		{"DCQCN: a screened grid", screening},
		{"PFC alone: its cycle", pauseCycles},
		{"Headroom", headrooms},
		{"Dynamic threshold", dynamicThresholds},
		{"Schedulers", schedulers},
		{"Goodput of a wire", ceilings},
	}
}

func TestTheory(t *testing.T) {
	for _, th := range theories() {
		t.Run(strings.ReplaceAll(th.Name, " ", "-"), func(t *testing.T) {
			for _, c := range th.Claims(t, false) {
				if !c.holds() {
					t.Errorf("%s: %s %s, want %s within %.3g %%: %s", c.What, c.figure(c.Ours), c.Unit, c.figure(c.Theory), 100*c.Within, c.difference())
				}
				if testing.Verbose() {
					t.Logf("%s: %s %s, theory %s (%s)", c.What, c.figure(c.Ours), c.Unit, c.figure(c.Theory), c.difference())
				}
			}
		})
	}
}

func (c claim) holds() bool { return math.Abs(c.Ours-c.Theory) <= c.Within*math.Abs(c.Theory) }

// figure is a number with as many digits as it is worth; large ones are whole.
func (c claim) figure(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 10_000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.5g", v)
}

func (c claim) difference() string {
	switch {
	case c.Ours == c.Theory:
		return "none"
	case c.Theory == 0:
		return "not 0"
	}
	return fmt.Sprintf("%+.2g %%", 100*(c.Ours-c.Theory)/c.Theory)
}

// Packets of a star's data and of its notifications, and the classes that they are.
const (
	dataMark, cnpMark = 0, 1
	dataClass         = 3
	cnpClass          = 6
)

// star is hosts around a switch, all with one rate and delay: port i of the switch is that of host i, whose own is port hosts+i. Data is lossless, in
// a buffer that no test fills by chance; frames are of frame bytes, with nothing around them on the wire; nobody reacts or marks.
func star(hosts int, rate int64, delay engine.Time) *engine.Config {
	c := &engine.Config{
		Seed:      1,
		Switches:  []engine.Switch{{Pools: []engine.Pool{{Size: 1 << 31}, {Size: 1 << 24}}}},
		Transport: engine.Transport{AckSize: 64, CNPSize: 64, PauseSize: 64, Header: 48, AckEvery: 16},
	}
	for i := range 2 * hosts {
		p := engine.Port{Switch: 0, Peer: hosts + i, Rate: rate, Delay: delay}
		p.Obeys[dataClass] = 1 << dataClass
		p.Classify[dataMark] = engine.Class{Group: dataClass, Queue: dataClass}
		p.Classify[cnpMark] = engine.Class{Group: cnpClass, Queue: cnpClass}
		p.Groups[dataClass] = engine.Group{Lossless: true, Alpha: 1 << 16, XonOffset: 4096}
		p.Groups[cnpClass] = engine.Group{Pool: 1, Alpha: 1 << 16}
		p.Queues[dataClass] = engine.Queue{Weight: 4096}
		p.Queues[cnpClass] = engine.Queue{Strict: true, Weight: 4096, Pool: 1}
		if i >= hosts {
			p.Switch, p.Peer = engine.None, i-hosts
			p.Groups[cnpClass].Pool, p.Queues[cnpClass].Pool = 0, 0
		}
		c.Ports = append(c.Ports, p)
	}
	for i := range hosts {
		c.NICs = append(c.NICs, engine.NIC{Port: hosts + i, Address: uint32(i + 1), CNPMark: cnpMark, CNPClass: cnpClass, CNPGap: 50 * engine.Microsecond})
	}
	return c
}

// frame is the bytes of a full data frame of most tests, so that packets are those of theory.
const frame = 1000

// flow adds an endless one.
func flow(c *engine.Config, src, dst int) *engine.Flow {
	c.Flows = append(c.Flows, engine.Flow{
		Src: src, Dst: dst, After: engine.None, Mark: dataMark, Class: dataClass, Payload: frame - c.Transport.Header, SourcePort: uint16(10000 + len(c.Flows)),
	})
	return &c.Flows[len(c.Flows)-1]
}

// incast adds a flow from each host but the last to it.
func incast(c *engine.Config) {
	for i := range len(c.NICs) - 1 {
		flow(c, i, len(c.NICs)-1)
	}
}

// eachSwitchPort changes the ports of the only switch.
func eachSwitchPort(c *engine.Config, change func(*engine.Port)) {
	for i := range c.Ports {
		if c.Ports[i].Switch == 0 {
			change(&c.Ports[i])
		}
	}
}

// measured runs a fabric and counts from warm to stop.
func measured(t testing.TB, c *engine.Config, warm, span engine.Time) *engine.Result {
	t.Helper()
	c.Measure, c.Stop = warm, warm+span
	r, err := engine.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dropped is the packets that were discarded anywhere.
func dropped(r *engine.Result) (n uint64) {
	for i := range r.Ports {
		for _, d := range r.Ports[i].Drops {
			n += d
		}
	}
	return n
}

func seconds(t engine.Time) float64 { return float64(t) / float64(engine.Second) }
