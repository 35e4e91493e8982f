package render

import (
	"sync"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Shared renders the devices of one Net, and twins among them once: of a fabric's leaves, and of its hosts, most are. The zero
// value is ready, and it may be used by several goroutines.
type Shared struct {
	mu   sync.Mutex
	kept []sharedRendering
}

type sharedRendering struct {
	device *intent.Device
	config Config
}

// sharedKinds bounds how many renderings are kept. Where there are more kinds of devices, the others are rendered each
// for itself.
const sharedKinds = 32

// Render is what d.Render says of a device. The configuration is not to be changed; where its settings come from is that
// of one of the twins.
//
// What a device is called is part of findings alone, so only renderings without any are shared; and what it says about
// itself decides nothing on a switch but the names of adopted objects. What a host says of its NICs decides much: hosts that were
// asked are rendered each for itself.
func (s *Shared) Render(d *Dialect, dev *intent.Device, f Facts) (Config, diag.List) {
	if len(f.Names) > 0 || dev.Host && (f.Hostname != "" || len(f.NICs) > 0 || len(f.Aliases) > 0) {
		return d.Render(*dev, f)
	}
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	for i := range kept {
		if intent.Twins(kept[i].device, dev) {
			return kept[i].config, nil
		}
	}
	c, l := d.Render(*dev, f)
	if len(l) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.kept) < sharedKinds {
			s.kept = append(s.kept, sharedRendering{dev, c})
		}
	}
	return c, l
}
