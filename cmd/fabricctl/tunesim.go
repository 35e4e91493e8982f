package main

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// simRunner makes runs in the simulator. It may be called from several goroutines.
type simRunner struct {
	fabric  *model.Fabric
	options sim.Options
	class   string // that is tuned; "" = whatever carries the workload

	mu   sync.Mutex
	nets map[string]*list.Element // by patch
	used *list.List               // of simNet, the last used first
}

// simNet is the fabric under a setting.
type simNet struct {
	key  string
	once sync.Once
	net  *intent.Net
	err  error
}

// mostNets is how many settings are kept resolved: a race has hardly more.
const mostNets = 32

// newSimRunner simulates f with the patches of trials. class, when not "", has to carry the workload.
func newSimRunner(f *model.Fabric, o sim.Options, class string) *simRunner {
	return &simRunner{fabric: f, options: o, class: class, nets: map[string]*list.Element{}, used: list.New()}
}

// Run simulates a trial.
func (s *simRunner) Run(ctx context.Context, t tuning.Trial) (observe.Observation, error) {
	net, err := s.net(t.Change.Patch)
	if err != nil {
		return observe.Observation{}, err
	}
	r, err := sim.Run(ctx, net, t.Workload, s.options, t.Seed)
	if err != nil {
		return observe.Observation{}, err
	}
	if class, share := s.astray(net, r); share > 0 {
		return observe.Observation{}, &tuning.Rejected{
			Code: "wrong-class",
			Why:  fmt.Sprintf("%.0f%% of the bytes went through class %s, and %s is tuned", 100*share, class, s.class),
		}
	}
	o := r.Observation()
	o.Notes = nil // they are about the fabric and the workload, and the same for each run
	return o, nil
}

// astray is the class that carried most of the traffic, when that is not the one that is tuned.
func (s *simRunner) astray(net *intent.Net, r *sim.Result) (class string, share float64) {
	if s.class == "" {
		return "", 0
	}
	host := map[string]bool{}
	for i := range net.Devices {
		host[net.Devices[i].Name] = net.Devices[i].Host
	}
	carried, total := map[string]uint64{}, uint64(0)
	for i := range r.Queues {
		if q := &r.Queues[i]; !host[q.Device] {
			carried[q.Class] += q.Bytes
			total += q.Bytes
		}
	}
	for name, bytes := range carried {
		if name != s.class && 2*bytes > total {
			return name, float64(bytes) / float64(total)
		}
	}
	return "", 0
}

// net is the fabric with a patch.
func (s *simRunner) net(p model.Patch) (*intent.Net, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	e := s.nets[string(b)]
	if e == nil {
		e = s.used.PushFront(&simNet{key: string(b)})
		s.nets[string(b)] = e
		if s.used.Len() > mostNets {
			old := s.used.Remove(s.used.Back()).(*simNet)
			delete(s.nets, old.key)
		}
	} else {
		s.used.MoveToFront(e)
	}
	n := e.Value.(*simNet)
	s.mu.Unlock()
	n.once.Do(func() { n.net, n.err = resolved(s.fabric, p) })
	return n.net, n.err
}

// resolved is what a fabric with a patch asks of every port.
func resolved(f *model.Fabric, p model.Patch) (*intent.Net, error) {
	g, found := f.With(p)
	if found.HasErrors() {
		return nil, firstError(found)
	}
	net, found := intent.Resolve(g)
	if found.HasErrors() {
		return nil, firstError(found)
	}
	return net, nil
}

func firstError(l diag.List) error {
	for _, f := range l {
		if f.Severity == diag.Error {
			return fmt.Errorf("%s: %s", f.Rule, f.Msg)
		}
	}
	return nil
}
