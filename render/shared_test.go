package render

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Twins are rendered once; whoever has findings, has names of its own, or is a host that was asked, each for itself.
func TestSharedRendersTwinsOnce(t *testing.T) {
	var n atomic.Int32
	d := &Dialect{Render: func(d intent.Device, f Facts) (Config, diag.List) {
		n.Add(1)
		c := config([4]string{"PORT", "Ethernet0", "mtu", fmt.Sprint(d.Tier)})
		if d.Tier == 9 {
			return c, diag.List{{Msg: d.Name}}
		}
		return c, nil
	}}
	for _, c := range []struct {
		what string
		dev  intent.Device
		f    Facts
		want int32
	}{
		{"twins", intent.Device{Tier: 1}, Facts{}, 1},
		{"with findings", intent.Device{Tier: 9}, Facts{}, 5},
		{"hosts", intent.Device{Tier: 1, Host: true}, Facts{}, 1},
		{"hosts that were asked", intent.Device{Tier: 1, Host: true}, Facts{Hostname: "leaf"}, 5},
		{"with adopted objects", intent.Device{Tier: 1}, Facts{Names: Names{Key{"X", "a", ""}: "b"}}, 5},
	} {
		n.Store(0)
		var s Shared
		for i := range 5 {
			dev := c.dev
			dev.Name = fmt.Sprint("leaf", i)
			got, l := s.Render(d, &dev, c.f)
			if got.Get("PORT", "Ethernet0", "mtu") != fmt.Sprint(dev.Tier) || len(l) > 0 && l[0].Msg != dev.Name {
				t.Errorf("%s: %v, %v", c.what, got, l)
			}
		}
		if n.Load() != c.want {
			t.Errorf("%s: rendered %d times, want %d", c.what, n.Load(), c.want)
		}
	}
	n.Store(0)
	var s Shared
	var wg sync.WaitGroup
	for i := range 4 * sharedKinds { // more kinds than are kept
		wg.Go(func() {
			dev := intent.Device{Name: fmt.Sprint("leaf", i), Tier: 10 + i/2}
			if got, _ := s.Render(d, &dev, Facts{}); got.Get("PORT", "Ethernet0", "mtu") != fmt.Sprint(dev.Tier) {
				t.Errorf("%s got the rendering of another: %v", dev.Name, got)
			}
		})
	}
	wg.Wait()
	if len(s.kept) > sharedKinds {
		t.Errorf("%d renderings kept", len(s.kept))
	}
}
