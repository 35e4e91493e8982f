package netlink

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/render"
)

// faulty is a kernel whose answers to sets can be made to fail.
type faulty struct {
	*dcbfake.Kernel
	at     int   // the set that fails, from 1 on; 0 = none
	err    error // how
	lie    bool  // acknowledge the next set and drop it
	refuse string
	stall  chan struct{}
	n      int
}

type sentence string

func (s sentence) Error() string { return string(s) }

func (f *faulty) Execute(ctx context.Context, typ uint16, data []byte) ([]byte, error) {
	if typ != 79 {
		return f.Kernel.Execute(ctx, typ, data)
	}
	f.n++
	switch {
	case f.stall != nil:
		close(f.stall)
		f.stall = nil
		<-ctx.Done()
		return nil, ctx.Err()
	case f.refuse != "":
		s := f.refuse
		f.refuse = ""
		return nil, sentence(s)
	case f.at > 0 && f.n == f.at:
		return nil, f.err
	case f.lie:
		answer := append([]byte{0, data[1], 0, 0}, 5, 0, 13, 0, 0, 0, 0, 0)
		if data[1] == 23 {
			answer[6] = 14
		}
		return answer, nil
	}
	return f.Kernel.Execute(ctx, typ, data)
}

// The host's own side as it runs, but for the kernel: NICs, files, the confirm timer.
func TestConform(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			conform.Run(t, func(t *testing.T) conform.Subject { return subject(t, k.name) })
		})
	}
}

func subject(t *testing.T, kind string) conform.Subject {
	r, n := nicRig(t, kind)
	for _, k := range kinds {
		if k.name == kind {
			r.plug("eth1", "18", k.model, k.driver(), k.device[:len(k.device)-1]+"9")
		}
	}
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX, h.ETS.Willing = dcb.Host|dcb.IEEE, 0 })
	f := &faulty{Kernel: r.dcb}
	conf := filepath.Join(r.cfg.Root, render.NCCLPath)
	put := func(text string) {
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	put("# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n")
	files, was := 0, os.FileInfo(nil)
	closed := func(d *Device) drivers.Device { return &closable{Device: d} }
	pick := func(live render.Config, want ...string) []render.Change {
		var cs []render.Change
		for _, w := range want {
			k, v, _ := strings.Cut(w, "=")
			c := render.Change{Op: render.Modify, Key: key(k), Before: value(live, key(k)), After: &v}
			if c.Before == nil {
				c.Op = render.Add
			}
			cs = append(cs, c)
		}
		return cs
	}
	return conform.Subject{
		Name: "host1", Counting: counting(r, kind),
		Same: render.ByOS("linux").Same,
		Open: func(context.Context) (drivers.Device, error) {
			cfg := r.cfg
			cfg.DCB, cfg.Hook = dcb.New(f), nil
			return closed(New(cfg)), nil
		},
		Changes: func(live render.Config) []render.Change {
			want := []string{"app|eth0|dscp 26=3", "app|eth0|dscp 48=2", "pfc|eth0|priorities=3", "nccl|/etc/nccl.conf|NCCL_IB_TC=104"}
			if kind == "ice" { // its first entry sets these, so a change of it names them
				want = append(want, "ets|eth0|prio-tc=0:0 1:1 2:2 3:3 4:0 5:0 6:0 7:0")
			}
			return pick(live, want...)
		},
		Other: func(live render.Config) []render.Change {
			return pick(live, "app|eth0|dscp 26=1", "nccl|/etc/nccl.conf|NCCL_IB_TC=128")
		},
		Bad: func(live render.Config) ([]render.Change, int) {
			return pick(live, "app|eth0|dscp 26=3", "pfc|eth0|priorities=9", "nccl|/etc/nccl.conf|NCCL_IB_TC=104"), 1
		},
		Writes: func() int {
			now, err := os.Stat(conf)
			if err != nil {
				t.Error(err)
			}
			if was != nil && !os.SameFile(was, now) {
				files++
			}
			was = now
			return f.n + files
		},
		State: func() string {
			b, _ := os.ReadFile(conf)
			c, err := New(r.cfg).Read(context.Background())
			if err != nil {
				t.Error(err)
			}
			var s strings.Builder
			for _, x := range c {
				s.WriteString(x.Key.String() + " " + x.Value + "\n")
			}
			return s.String() + string(b)
		},
		Advance: func(by time.Duration) {
			r.clock = r.clock.Add(by)
			if err := New(r.cfg).Expire(context.Background()); err != nil {
				t.Error(err)
			}
		},
		LeaveOpen: func(tx drivers.TxID) {
			d := New(r.cfg)
			if err := d.begin(context.Background(), tx, nil, time.Hour); err != nil {
				t.Error(err)
			}
		},
		RejectNext: func(s string) { f.refuse = s },
		OKButDoNot: func() { f.lie = true },
		Stall: func() <-chan struct{} {
			held := make(chan struct{})
			f.stall = held
			return held
		},
		ChangeBehind: func(k render.Key) {
			switch k.Scope {
			case "nccl":
				put(k.Field + "=77\n")
			case "app":
				_ = dcb.New(r.dcb).AddApp(context.Background(), k.Object, dcb.DSCP(26, 0))
				_ = dcb.New(r.dcb).AddApp(context.Background(), k.Object, dcb.DSCP(48, 0))
			case "ets":
				n.Alter(func(h *dcbfake.Hardware) { h.ETS.PrioTC[7] = 2 })
			case "pfc":
				_ = dcb.New(r.dcb).SetPFC(context.Background(), k.Object, func(p *dcb.PFC) { p.Enabled = 1 << 2 })
			}
		},
	}
}

// closable is a device of which several are open on one machine: closing one does not close the machine.
type closable struct {
	*Device
	gone bool
}

var errGone = errors.New("host1: the device is closed")

func (c *closable) Close() error { c.gone = true; return nil }

func (c *closable) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	if c.gone {
		return render.Facts{}, drivers.Caps{}, errGone
	}
	return c.Device.Facts(ctx)
}

func (c *closable) Read(ctx context.Context) (render.Config, error) {
	if c.gone {
		return nil, errGone
	}
	return c.Device.Read(ctx)
}

func (c *closable) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	if c.gone {
		return errGone
	}
	return c.Device.Commit(ctx, tx, cs, within)
}

// A set that fails in the kernel, whichever it is, is said; the same commit again ends it, and the undo takes it back.
func TestFaultAtEveryWrite(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for at := 1; ; at++ {
				r, n := nicRig(t, k.name)
				n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
				f := &faulty{Kernel: r.dcb, at: at, err: dcb.EIO}
				r.cfg.DCB = dcb.New(f)
				want := []string{
					"app|eth0|dscp 26=3", "app|eth0|dscp 48=2", "pfc|eth0|priorities=3", "link|eth0|mtu=9000",
					"ets|eth0|tsa=0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict", "ets|eth0|bandwidth=0:50 1:50 2:0 3:0 4:0 5:0 6:0 7:0",
				}
				if k.name != "ice" {
					want = append(want, "ets|eth0|prio-tc=0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0")
				}
				was := read(t, r.Device)
				cs := changes(t, r, want...)
				err := r.Commit(t.Context(), "tx1", cs, 0)
				if f.n < at {
					if err != nil {
						t.Error(err)
					}
					if at < 5 {
						t.Errorf("only %d writes", at-1)
					}
					return
				}
				var rejected *drivers.RejectedError
				if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "input/output error") {
					t.Errorf("write %d: %v", at, err)
				}
				if at%2 == 0 {
					if err := r.Commit(t.Context(), "tx2", cs, 0); err != nil {
						t.Errorf("again after write %d: %v", at, err)
					}
					if rest := changes(t, r, want...); len(rest) > 0 {
						t.Errorf("again after write %d: %v", at, rest)
					}
				}
				if err := r.Commit(t.Context(), "tx3", render.Undo(cs), 0); err != nil {
					t.Errorf("undo after write %d: %v", at, err)
				}
				if now := read(t, r.Device); now != was {
					t.Errorf("undo after write %d:\n%s\n%s", at, was, now)
				}
			}
		})
	}
}
