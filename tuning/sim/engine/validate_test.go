package engine

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestValidate: each thing that makes no sense is an error that says where, and both numbers.
func TestValidate(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"stop (ps) of -1 is not within":                                  func(c *Config) { c.Stop = -1 },
		"flow 0: start (ps) of 4665600000000000000 is not within":        func(c *Config) { c.Flows[0].Start = 54 * 86400 * Second },
		"measuring begins at 3000000000 ps, and the run ends at 2":       func(c *Config) { c.Measure = 3 * Millisecond },
		"the run has no end":                                             func(c *Config) { c.Stop, c.Flows[0].Bytes, c.Flows = 0, 0, c.Flows[:1] },
		"queue 8 of port 0, which is to be watched":                      func(c *Config) { c.Watch = []QueueRef{{0, 8}} },
		"packets for an acknowledgement of 0":                            func(c *Config) { c.Transport.AckEvery = 0 },
		"switch 0: number of pools of 0":                                 func(c *Config) { c.Switches[0].Pools = nil },
		"switch 0: pools and shared headroom of 9437184 bytes, and 204":  func(c *Config) { c.Switches[0].Buffer = 9_500_000 },
		"port 1: rate (bit/s) of 10":                                     func(c *Config) { c.Ports[1].Rate = 10 },
		"port 1: it sends 50000000000 bit/s, and its peer 0 sends 1000":  func(c *Config) { c.Ports[1].Rate = 50e9 },
		"port 1: its peer 1 is no other port":                            func(c *Config) { c.Ports[1].Peer = 1 },
		"port 1: its peer 2 has peer 3":                                  func(c *Config) { c.Ports[1].Peer = 2 },
		"port 0: switch 7 of 1 does not exist":                           func(c *Config) { c.Ports[0].Switch = 7 },
		"port 0: mark 3: group 8":                                        func(c *Config) { c.Ports[0].Classify[3].Group = 8 },
		"port 0: group 3: pool of 5":                                     func(c *Config) { c.Ports[0].Groups[3].Pool = 5 },
		"port 0: group 3: headroom (bytes) of -1":                        func(c *Config) { c.Ports[0].Groups[3].Headroom = -1 },
		"port 0: queue 3: kmin of 500000 bytes and kmax of 400000 bytes": func(c *Config) { c.Ports[0].Queues[3].Kmin = 500_000 },
		"port 0: queue 3: pmax of NaN":                                   func(c *Config) { c.Ports[0].Queues[3].Pmax = math.NaN() },
		"port 0: pause (quanta) of 3 is not within 16":                   func(c *Config) { c.Ports[0].Quanta = 3 },
		"port 0: watchdog poll (ps) of 0":                                func(c *Config) { c.Ports[0].Watchdog.Action = WatchdogDrop },
		"port 1: a NIC has no watchdog":                                  func(c *Config) { c.Ports[1].Watchdog = Watchdog{WatchdogDrop, 1, 1, 1, 1} },
		"port 1: it is of no switch and of no NIC":                       func(c *Config) { c.NICs[0].Port = 3 },
		"NIC 1: port 1 is that of NIC 0":                                 func(c *Config) { c.NICs[1].Port = 1 },
		"NIC 0: xon at 5 bytes, xoff at 5, buffer of 9":                  func(c *Config) { c.NICs[0].Buffer, c.NICs[0].Xoff, c.NICs[0].Xon = 9, 5, 5 },
		"NIC 0: storm 0 from 5 ps to 4 ps":                               func(c *Config) { c.NICs[0].Storms = []Storm{{5, 4, 1}} },
		"NIC 0: g of 0":                                                  func(c *Config) { c.NICs[0].React.G = 0 },
		"NIC 0: smallest rate (bit/s) of 200000000000":                   func(c *Config) { c.NICs[0].React.MinRate = 200e9 },
		"flow 0: from NIC 0 to NIC 0: two of 2":                          func(c *Config) { c.Flows[0].Dst = 0 },
		"flow 0: payload (bytes) of 0":                                   func(c *Config) { c.Flows[0].Payload = 0 },
		"flow 0: at most 2 messages at once, but it is one":              func(c *Config) { c.Flows[0].Depth = 2 },
		"flow 0: frames of 1048 bytes are longer than the MTU of 1000":   func(c *Config) { c.Ports[1].MTU = 1000 },
		"flow 0: frames of 49 bytes take less than a nanosecond at 8000000000000 bit/s": func(c *Config) {
			c.Compat, c.Overhead, c.Flows[0].Payload = true, 0, 1
			c.Ports[0].Rate, c.Ports[1].Rate = 8e12, 8e12
		},
		"flow 0: 1000000000000000 bytes in messages of 0":        func(c *Config) { c.Flows[0].Bytes = 1e15 },
		"flow 0: it starts after flow 9":                         func(c *Config) { c.Flows[0].After = 9 },
		"flow 1: it starts after flow 0, which waits for it":     func(c *Config) { c.Flows[0].After, c.Flows[1].After = 1, 0 },
		"flow 0: switch 0 has no way to NIC 1":                   func(c *Config) { c.Next = func(_, _ int) []int32 { return nil } },
		"flow 0: switch 0 has no port 3 by which to reach NIC 1": func(c *Config) { c.Next = func(_, _ int) []int32 { return []int32{3} } },
	} {
		c := star(2)
		c.flow(0, 1, 10_000, lossless)
		c.flow(1, 0, 10_000, lossless)
		if err := Validate(c); err != nil {
			t.Fatal(err)
		}
		spoil(c)
		_, err := Run(t.Context(), c)
		var e *ConfigError
		if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestWayInACircle: ways that lead nowhere are found before the run.
func TestWayInACircle(t *testing.T) {
	c := circular(300_000)
	c.Next = func(sw, _ int) []int32 { return []int32{int32(2 * sw)} }
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "goes in a circle") {
		t.Error(err)
	}
}
