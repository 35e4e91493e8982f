package hostssh

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/render"
)

func TestConform(t *testing.T) {
	for name, confirm := range map[string]bool{"without a timer": false, "with a timer": true} {
		t.Run(name, func(t *testing.T) { conformTo(t, confirm) })
	}
}

func conformTo(t *testing.T, confirm bool) {
	conform.Run(t, func(t *testing.T) conform.Subject {
		h, cfg := emulated(t, host.Options{Confirm: confirm, NCCL: "# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n"})
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
		}
	})
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
