package sonic

import (
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
)

// Outcome is what becomes of a Set.
type Outcome int

const (
	Normal   Outcome = iota // as a healthy switch
	Refuse                  // an error, nothing done
	Pretend                 // OK, nothing done
	Half                    // the first half of the patch done, then an error
	Lie                     // all done, then an error (sonic-gnmi#238)
	Hang                    // nothing done, and no answer until the caller goes away
	HangDone                // all done, and no answer
)

// Certificate is what the switch shows to who connects.
type Certificate int

const (
	Proper    Certificate = iota
	Stranger              // signed by another authority
	Expired               // its time is over
	WrongName             // for another address
)

// Faults is what goes wrong from now on. The zero value is a healthy switch.
type Faults struct {
	Set      Outcome                  // what happens to Sets
	Match    func(path []string) bool // only to those with such a path below the namespace; nil = all
	Sentence string                   // what Refuse, Half and Lie say; "" = what GCU says
	Times    int                      // to how many Sets; 0 = until further notice
	Held     func()                   // called when Hang and HangDone begin to wait
	Before   func(DB)                 // changes the configuration once, before the next Set
	After    func(DB)                 // changes the configuration once, after the next Set

	ReadOnly    bool          // the server was started without writing
	Slow        time.Duration // before every answer
	DropAfter   int64         // cut all connections, once, when so many more bytes have passed; 0 = never
	Certificate Certificate   // for new connections

	Deaf func(port string) bool // nothing is heard over LLDP on these ports; nil = on none

	Counters func(path []string) any // what a path below COUNTERS_DB answers, as JSON; nil, and a nil answer, = what was counted
}

// Fault sets what goes wrong from now on, in place of what was set before.
func (s *Switch) Fault(f Faults) {
	s.mu.Lock()
	s.faults = f
	s.mu.Unlock()
	s.line.dropAfter(f.DropAfter)
}

// take is the fault for one Set, and what is left for the next.
func (f *Faults) take(r *gpb.SetRequest) Faults {
	now := *f
	f.Before, f.After = nil, nil
	if f.Match != nil && !f.matches(r) {
		now.Set = Normal
		return now
	}
	if f.Times > 0 && f.Set != Normal {
		if f.Times--; f.Times == 0 {
			f.Set = Normal
		}
	}
	return now
}

func (f *Faults) matches(r *gpb.SetRequest) bool {
	paths := append([]*gpb.Path(nil), r.Delete...)
	for _, u := range append(append([]*gpb.Update(nil), r.Replace...), r.Update...) {
		paths = append(paths, u.Path)
	}
	for _, p := range paths {
		if n := names(r.Prefix, p); len(n) > 2 && f.Match(n[2:]) {
			return true
		}
	}
	return false
}
