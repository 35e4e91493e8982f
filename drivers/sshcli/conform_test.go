package sshcli

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

func TestConform(t *testing.T) {
	for _, version := range []string{"4.31.2F", "4.35.0F"} {
		t.Run(version, func(t *testing.T) {
			conform.Run(t, func(t *testing.T) conform.Subject {
				return subject(t, lab.Options{Version: version, EnablePassword: "swordfish"})
			})
		})
	}
}

// faults turns the suite's one-shot faults into the emulator's: a rule looks at each line before it acts, and is
// forgotten once it has fired.
type faults struct {
	mu   sync.Mutex
	sw   *lab.Switch
	base lab.Faults
	rule func(line string) *lab.Faults // the faults for this line alone, nil to go on waiting

	writes int
}

func (f *faults) onLine(l string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if writes(l) {
		f.writes++
	}
	now := f.base
	if f.rule != nil {
		if x := f.rule(l); x != nil {
			f.rule, now = nil, *x
		}
	}
	now.OnLine = f.onLine
	f.sw.SetFaults(now)
}

func (f *faults) once(rule func(line string) *lab.Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rule = rule
}

// writes reports whether a line writes: it begins a session, is typed in one, or ends one.
func writes(l string) bool {
	return !strings.HasPrefix(l, "show ") && !strings.HasPrefix(l, "terminal ") && l != "enable" && l != ""
}

func subject(t *testing.T, o lab.Options) conform.Subject {
	b := newBench(t, o)
	proxy := conform.NewProxy(t, b.addr)
	f := &faults{sw: b.sw}
	f.onLine("")
	b.cfg.SSH.Address, b.addr = proxy.Addr(), proxy.Addr()
	b.cfg.SSH.KnownHosts = []string{b.knownHosts(b.sw.HostKey())}
	open := func(change func(*Config)) func(context.Context) (drivers.Device, error) {
		return func(ctx context.Context) (drivers.Device, error) {
			c := b.cfg
			change(&c)
			d, err := Dial(ctx, c)
			if err != nil {
				return nil, err
			}
			return d, nil
		}
	}
	other, err := lab.New(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := b.knownHosts(other.HostKey())
	return conform.Subject{
		Name:    b.cfg.Name,
		Secrets: []string{password, "wrong-canary", o.EnablePassword},
		Same:    render.ByOS("eos").Same,

		Open:          open(func(*Config) {}),
		WrongPassword: open(func(c *Config) { c.SSH.Password = secret.New("wrong-canary") }),
		WrongHostKey:  open(func(c *Config) { c.SSH.KnownHosts = []string{wrong} }),
		Auths:         func() int { return b.sw.Counters().AuthFailures },

		Changes: func(live render.Config) []render.Change { return b.edit(live, small) },
		Other: func(live render.Config) []render.Change {
			return b.edit(live, strings.ReplaceAll(small, "9100", "9000"))
		},
		Bad: func(live render.Config) ([]render.Change, int) {
			cs := b.edit(live, "interface Ethernet1/1\nmtu 9100\ninterface Ethernet2/1\nmtu 9100\ninterface Ethernet3/1\nmtu 9100\n")
			high := "9999"
			cs[1].After = &high
			return cs, 1
		},

		Writes:  func() int { f.mu.Lock(); defer f.mu.Unlock(); return f.writes },
		State:   b.sw.Running,
		Advance: b.clock.Advance,
		LeaveOpen: func(tx drivers.TxID) {
			if err := b.sw.OpenSession(prefix+string(tx), "admin", small); err != nil {
				t.Error(err)
			}
		},

		RejectNext: func(sentence string) {
			f.once(func(l string) *lab.Faults {
				if !strings.HasPrefix(l, "interface ") && !strings.HasPrefix(l, "qos ") {
					return nil
				}
				return &lab.Faults{Reject: regexp.MustCompile("."), RejectWith: "% " + sentence}
			})
		},
		OKButDoNot: func() {
			f.once(func(l string) *lab.Faults {
				if !strings.HasPrefix(l, "commit") {
					return nil
				}
				return &lab.Faults{IgnoreCommit: true}
			})
		},
		Slow: func(d time.Duration) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.base.Delay = d
		},
		Stall: func() <-chan struct{} {
			held := make(chan struct{})
			f.once(func(l string) *lab.Faults {
				if !writes(l) {
					return nil
				}
				close(held)
				return &lab.Faults{StallAt: regexp.MustCompile(regexp.QuoteMeta(l))}
			})
			return held
		},
		ChangeBehind: func(k render.Key) {
			if err := b.sw.Type("interface Ethernet1/1\nmtu 8888\nqos profile FCTL-A\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 7 bytes maximum-threshold 77 bytes max-mark-probability 20 weight 0"); err != nil {
				t.Error(err)
			}
		},
		DropAfter: proxy.DropAfter,
		Bytes:     proxy.Bytes,
		Counting:  counting(t, b, f),
	}
}

// counting is the counters of an emulated switch, and nonsense that a switch might answer. What a switch of the family does
// not count is not among them.
func counting(t *testing.T, b *bench, f *faults) *conform.Counting {
	if err := b.sw.Type("interface Ethernet1/1\nuc-tx-queue 3\nrandom-detect ecn count\ninterface Ethernet2/1\nuc-tx-queue 3\nrandom-detect ecn count"); err != nil {
		t.Fatal(err)
	}
	values := map[observe.Port]uint64{}
	for i, iface := range []string{"Ethernet1/1", "Ethernet2/1"} {
		for n, v := range map[observe.Name]uint64{
			observe.PFCRx.Of(3): 7, observe.PFCTx.Of(4): 0, observe.ECNMarked.Of(3): 1 << 63, observe.DropOut.Of(0): 3, observe.TxPackets.Of(3): 9,
			observe.TxBytes.Of(3): 9000, observe.WatchdogStuck.Of(3): uint64(1 - i), observe.WatchdogFreed.Of(3): 0, observe.PortRxBytes: 12, observe.PortDropIn: 2,
		} {
			values[observe.Port{Iface: iface, Name: n}] = v
		}
	}
	junk := func(text string) func() {
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.base.Counters = func(string) string { return text }
		}
	}
	with := func(v string) func() {
		return junk(strings.ReplaceAll(`{"interfaces": {"Ethernet1/1": {"priorities": {"3": {"rxFrames": X}, "33": {"rxFrames": 1}, "": {"rxFrames": 1}}, "txQueues": {"3": {"stuckCount": X}}, "inDiscards": X,
			"trafficClasses": {"TC3": {"ingressVoqCounters": {"countersSum": {"droppedPackets": X}}}}}, "leaf1#": {"inDiscards": 1}, "": {"inOctets": 1}}, "interfaceCounters": {"Ethernet1/1": {"rxFrames": X}},
			"intfQueueCounters": {"Ethernet1/1": {"queueCounters": {"3": X}}},
			"egressQueueCounters": {"interfaces": {"Ethernet1/1": {"ucastQueues": {"trafficClasses": {"TC3": {"dropPrecedences": {"DP0": {"droppedPackets": X}}}, "TC": {"dropPrecedences": {"DP0": {"droppedPackets": 1}}}}}}}}}`+"\n", "X", v))
	}
	return &conform.Counting{
		Set: b.sw.SetCounters, Values: values,
		Asked: func() int { return b.sw.Counters().Shows }, Most: 8,
		Junk: map[string]func(){
			"negative": with("-1"), "not a number": with(`"NaN"`), "too large": with("18446744073709551616"), "a fraction": with("1.5"), "an exponent": with("1e300"),
			"a list": with("[7]"), "null": with("null"), "escapes": with(`"\u001b[2J7"`), "raw escapes": junk("\x1b[2J\x1b]0;x\x07{}\n"), "no JSON": junk("Ethernet1/1 7 0\n"),
			"another shape": junk(`{"interfaces": [1], "interfaceCounters": 7, "intfQueueCounters": "x", "egressQueueCounters": []}` + "\n"), "half": junk(`{"interfaces": {"Ethernet1/1": {` + "\n"),
			"errors": junk(`{"errors": ["\u001b[31mno"]}` + "\n"), "refused": junk("% Not supported on this hardware platform\n"), "an empty object": junk("{}\n"), "a prompt": junk("{\nleaf1#\n}\n"),
		},
	}
}
