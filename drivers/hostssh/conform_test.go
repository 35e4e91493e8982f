package hostssh

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

func TestConform(t *testing.T) {
	for name, confirm := range map[string]bool{"without a timer": false, "with a timer": true} {
		t.Run(name, func(t *testing.T) { conformTo(t, confirm) })
	}
}

func conformTo(t *testing.T, confirm bool) {
	conform.Run(t, func(t *testing.T) conform.Subject {
		links := []host.Link{
			{Name: "eth0", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:17:00.0"},
			{Name: "eth1", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:18:00.0"},
			{Name: "rdma0", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:19:00.0", NIC: "connectx-7"},
			{Name: "rdma1", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:1a:00.0", NIC: "bcm57608"},
		}
		h, cfg := emulated(t, host.Options{Links: links, Confirm: confirm, NCCL: "# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n"})
		proxy := conform.NewProxy(t, cfg.SSH.Address)
		cfg.SSH.Address = proxy.Addr()
		cfg.SSH.KnownHosts = knows(t, proxy.Addr(), h.HostKey())
		stranger, _ := keyFile(t)

		open := func(change func(*Config)) func(context.Context) (drivers.Device, error) {
			c := cfg
			change(&c)
			return func(ctx context.Context) (drivers.Device, error) { return Dial(ctx, c) }
		}
		return conform.Subject{
			Name:          "host1",
			Secrets:       []string{canary},
			Same:          render.ByOS("linux").Same,
			Open:          open(func(*Config) {}),
			WrongPassword: open(func(c *Config) { c.SSH.Password = secret.New("wrong-" + canary) }),
			WrongHostKey:  open(func(c *Config) { c.SSH.KnownHosts = knows(t, proxy.Addr(), stranger) }),
			Auths:         func() int { return h.Counters().Passwords },
			Changes: func(live render.Config) []render.Change {
				return to(live, "link/eth0/mtu", "9000", "link/eth1/mtu", "4200", "nccl/NCCL_IB_TC", "104", "nccl/NCCL_IB_TIMEOUT", "20")
			},
			Other: func(live render.Config) []render.Change {
				return to(live, "link/eth0/mtu", "4200", "nccl/NCCL_IB_TC", "128")
			},
			Bad: func(live render.Config) ([]render.Change, int) {
				return to(live, "link/eth0/mtu", "9000", "link/eth1/mtu", "9979", "nccl/NCCL_IB_TC", "104"), 1
			},
			Writes:    func() int { n := h.Counters(); return n.MTUSets + n.FileWrites },
			State:     h.Held,
			Advance:   h.Advance,
			LeaveOpen: func(tx drivers.TxID) { h.LeaveOpen(string(tx)) },
			RejectNext: func(sentence string) {
				var first sync.Once
				h.SetFaults(host.Faults{OnWrite: func(string) (refuse string) {
					first.Do(func() { refuse = sentence })
					return refuse
				}})
			},
			OKButDoNot: func() { h.SetFaults(host.Faults{Ignore: true}) },
			Slow:       func(d time.Duration) { h.SetFaults(host.Faults{Delay: d}) },
			Stall: func() <-chan struct{} {
				held := make(chan struct{})
				var first sync.Once
				h.SetFaults(host.Faults{Stall: true, OnWrite: func(string) string {
					first.Do(func() { close(held) })
					return ""
				}})
				return held
			},
			ChangeBehind: func(k render.Key) {
				if k.Scope == "link" {
					if err := h.SetMTU(k.Object, 1234); err != nil {
						t.Error(err)
					}
				} else if err := h.SetNCCL(k.Field + "=77\n"); err != nil {
					t.Error(err)
				}
			},
			DropAfter: proxy.DropAfter,
			Bytes:     proxy.Bytes,
			Counting:  counting(h),
		}
	})
}

// counting is the counters of an emulated host, and nonsense that a fabricctl-host of another make might answer.
func counting(h *host.Host) *conform.Counting {
	port := func(link string, n observe.Name) observe.Port { return observe.Port{Iface: link, Name: n} }
	junk := func(counters string) func() { return func() { h.SetFaults(host.Faults{Counters: counters}) } }
	one := func(value string) func() {
		return junk(`[{"iface": "rdma0", "name": "cnp.sent", "value": ` + value + `}]`)
	}
	return &conform.Counting{
		Set: h.SetCounters,
		Values: map[observe.Port]uint64{
			port("rdma0", observe.CNPSent): 7, port("rdma0", observe.PortDropIn): 0, port("rdma1", observe.CNPSent): 1 << 63, port("rdma1", observe.PFCPaused.Of(3)): 5000, port("rdma1", observe.PFCRx.Of(3)): 1,
		},
		Junk: map[string]func(){
			"negative": one("-1"), "not a number": one(`"NaN"`), "too large": one("18446744073709551616"), "a fraction": one("1.5"), "text": one(`"7"`), "null": junk("null"), "no list": junk(`{}`),
			"no JSON": junk("\x1b[2J"), "names of nobody": junk(`[{"iface": "", "name": "cnp.sent", "value": 1}, {"iface": "rdma0", "name": "cnp.sent.3", "value": 1}, {"iface": "rdma0", "name": "\u001b[2J", "value": 1}]`),
			"another field": junk(`[{"iface": "rdma0", "name": "cnp.sent", "value": 1, "colour": 3}]`), "too long": junk(`[` + strings.Repeat(`{"iface": "x", "name": "cnp.sent", "value": 1},`, 1<<18) + `{}]`),
		},
		Asked: func() int { return h.Counters().Senses }, Most: 1,
	}
}

// to is the changes that lead from live to the values given, in pairs of a short key and a value.
func to(live render.Config, pairs ...string) []render.Change {
	var cs []render.Change
	short := map[string]render.Key{}
	for _, link := range []string{"eth0", "eth1"} {
		short["link/"+link+"/mtu"] = render.Key{Scope: "link", Object: link, Field: "mtu"}
	}
	for _, name := range []string{"NCCL_IB_TC", "NCCL_IB_TIMEOUT"} {
		short["nccl/"+name] = render.Key{Scope: "nccl", Object: render.NCCLPath, Field: name}
	}
	for i := 0; i < len(pairs); i += 2 {
		c := render.Change{Op: render.Add, Key: short[pairs[i]], After: &pairs[i+1]}
		if v, ok := live.Find(c.Key); ok {
			c.Op, c.Before = render.Modify, &v
		}
		cs = append(cs, c)
	}
	return cs
}
