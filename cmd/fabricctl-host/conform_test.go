package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/drivers/netlink"
	"github.com/fabricctl/fabricctl/render"
)

// kernel stands in for the kernel's links, for several connections at once.
type kernel struct {
	mu     sync.Mutex
	links  []netlink.Link
	sets   int
	refuse string        // the next set, with this sentence
	keep   bool          // acknowledge and keep the old value
	held   chan struct{} // the next set closes it and waits for the end of its context
}

func (k *kernel) List(ctx context.Context) ([]netlink.Link, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.links), ctx.Err()
}

func (k *kernel) Addresses(ctx context.Context) (map[int32][]netip.Prefix, error) {
	return nil, ctx.Err()
}

func (k *kernel) SetMTU(ctx context.Context, index int32, mtu uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sets++
	if held := k.held; held != nil {
		k.held = nil
		close(held)
		k.mu.Unlock()
		<-ctx.Done()
		k.mu.Lock()
		return ctx.Err()
	}
	if s := k.refuse; s != "" {
		k.refuse = ""
		return errors.New(s)
	}
	if !k.keep {
		k.links[index-1].MTU = mtu
	}
	return nil
}

func (k *kernel) Close() error { return nil }

// state is what is in effect: the links and the file.
func (k *kernel) state(file string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := ""
	for _, l := range k.links {
		s += fmt.Sprintln(l.Name, l.MTU)
	}
	b, _ := os.ReadFile(file)
	return s + string(b)
}

// The host side as it runs, but for SSH and the kernel: client, JSON lines, the device, real files.
func TestConform(t *testing.T) {
	conform.Run(t, func(t *testing.T) conform.Subject {
		k := &kernel{links: []netlink.Link{{Index: 1, Name: "eth0", MTU: 1500, Min: 68, Max: 9978}, {Index: 2, Name: "eth1", MTU: 9000, Min: 68, Max: 9978}}}
		root := t.TempDir()
		file := filepath.Join(root, "etc/nccl.conf")
		write := func(path, text string) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Error(err)
			}
		}
		write(filepath.Join(root, "proc/sys/kernel/hostname"), "gpu-17\n")
		write(filepath.Join(root, "proc/sys/kernel/osrelease"), "6.12.0\n")
		put := func(text string) { write(file, text) }
		put("# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n")
		var was os.FileInfo
		rewrites := 0
		mtu := func(link, v string) render.Setting {
			return render.Setting{Key: render.Key{Scope: "link", Object: link, Field: "mtu"}, Value: v}
		}
		variable := func(name, v string) render.Setting {
			return render.Setting{Key: render.Key{Scope: "nccl", Object: render.NCCLPath, Field: name}, Value: v}
		}
		return conform.Subject{
			Name: "host1",
			Same: render.ByOS("linux").Same,
			Open: func(ctx context.Context) (drivers.Device, error) {
				near, far := net.Pipe()
				go func() {
					_ = hostwire.Serve(context.Background(), far, far, hostwire.Host{Device: netlink.New(netlink.Config{Root: root, Links: k})}, hostwire.Hello{})
					_ = far.Close()
				}()
				return hostwire.NewClient(ctx, "host1", near)
			},
			Changes: func(live render.Config) []render.Change {
				return to(live, mtu("eth0", "9000"), mtu("eth1", "4200"), variable("NCCL_IB_TC", "104"), variable("NCCL_IB_TIMEOUT", "20"))
			},
			Other: func(live render.Config) []render.Change {
				return to(live, mtu("eth0", "4200"), variable("NCCL_IB_TC", "128"))
			},
			Bad: func(live render.Config) ([]render.Change, int) {
				return to(live, mtu("eth0", "9000"), mtu("eth1", "9979"), variable("NCCL_IB_TC", "104")), 1
			},
			Writes: func() int { // the file is replaced as a whole, so a write of it is a new file
				now, err := os.Stat(file)
				if err != nil {
					t.Error(err)
				}
				if was != nil && !os.SameFile(was, now) {
					rewrites++
				}
				was = now
				k.mu.Lock()
				defer k.mu.Unlock()
				return k.sets + rewrites
			},
			State: func() string { return k.state(file) },
			RejectNext: func(sentence string) {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.refuse = sentence
			},
			OKButDoNot: func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				k.keep = true
			},
			Stall: func() <-chan struct{} {
				k.mu.Lock()
				defer k.mu.Unlock()
				held := make(chan struct{})
				k.held = held
				return held
			},
			ChangeBehind: func(key render.Key) {
				if key.Scope == "nccl" {
					put(key.Field + "=77\n")
					return
				}
				k.mu.Lock()
				defer k.mu.Unlock()
				for i := range k.links {
					if k.links[i].Name == key.Object {
						k.links[i].MTU = 1234
					}
				}
			},
		}
	})
}

// to is the changes that lead from live to the values given.
func to(live render.Config, want ...render.Setting) []render.Change {
	var cs []render.Change
	for _, w := range want {
		c := render.Change{Op: render.Add, Key: w.Key, After: &w.Value}
		if now, ok := live.Find(c.Key); ok {
			c.Op, c.Before = render.Modify, &now
		}
		cs = append(cs, c)
	}
	return cs
}
