package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// FaultKind is what is broken.
type FaultKind string

// The faults.
const (
	Storm FaultKind = "storm" // a NIC pauses without end and takes nothing in
	Slow  FaultKind = "slow"  // a NIC takes in less than its link brings, and pauses
	Down  FaultKind = "down"  // a link carries nothing
)

// Fault is something that is broken on purpose. Its text form is "storm:host3,from=1ms,to=4ms,priorities=3",
// "slow:host3,rate=50Gbps,buffer=1MB" or "down:leaf1:Ethernet8".
type Fault struct {
	Kind       FaultKind
	Device     string
	Port       string         // "" = all ports of the host
	From, To   units.Duration // storm; To 0 = until the end
	Priorities uint8          // storm, as bits; 0 = those that are lossless at the port
	Rate       units.BitRate  // slow
	Buffer     units.Bytes    // slow: what the NIC keeps of each priority; 0 = 1MB
}

// ParseFault reads the text form of a fault.
func ParseFault(s string) (Fault, error) {
	fail := func(format string, a ...any) (Fault, error) {
		return Fault{}, fmt.Errorf("fault %q: "+format, append([]any{s}, a...)...)
	}
	head, rest, more := strings.Cut(s, ",")
	kind, at, _ := strings.Cut(head, ":")
	f := Fault{Kind: FaultKind(kind)}
	f.Device, f.Port, _ = strings.Cut(at, ":")
	switch {
	case f.Kind != Storm && f.Kind != Slow && f.Kind != Down:
		return fail("there is no such fault: use storm, slow or down")
	case f.Device == "":
		return fail("it names no device: write %s:host3", kind)
	case f.Kind == Down && f.Port == "":
		return fail("it names no port: write down:%s:PORT", f.Device)
	}
	for more {
		var pair string
		pair, rest, more = strings.Cut(rest, ",")
		if err := f.set(pair); err != nil {
			return fail("%w", err)
		}
	}
	switch {
	case f.Kind == Slow && f.Rate == 0:
		return fail("it has no rate: add rate=50Gbps")
	case f.To != 0 && f.To <= f.From:
		return fail("it ends at %s and begins at %s", f.To, f.From)
	}
	return f, nil
}

func (f *Fault) set(pair string) (err error) {
	key, v, _ := strings.Cut(pair, "=")
	switch f.Kind + "," + FaultKind(key) {
	case Storm + ",from":
		f.From, err = units.ParseDuration(v)
	case Storm + ",to":
		f.To, err = units.ParseDuration(v)
	case Storm + ",priorities":
		for _, s := range strings.Split(v, "/") {
			n, err := strconv.ParseUint(s, 10, 3)
			if err != nil {
				return fmt.Errorf("%q is no priority: write numbers from 0 to 7, as 3/4", s)
			}
			f.Priorities |= 1 << n
		}
	case Slow + ",rate":
		f.Rate, err = units.ParseBitRate(v)
	case Slow + ",buffer":
		f.Buffer, err = units.ParseBytes(v)
	default:
		return fmt.Errorf("%q is no key of %s", key, f.Kind)
	}
	return err
}

// String is the text form; ParseFault reads it back.
func (f Fault) String() string {
	s := string(f.Kind) + ":" + f.Device
	if f.Port != "" {
		s += ":" + f.Port
	}
	add := func(key, v string, said bool) {
		if said {
			s += "," + key + "=" + v
		}
	}
	add("from", f.From.String(), f.From != 0)
	add("to", f.To.String(), f.To != 0)
	var ps []string
	for p := range 8 {
		if f.Priorities&(1<<p) != 0 {
			ps = append(ps, strconv.Itoa(p))
		}
	}
	add("priorities", strings.Join(ps, "/"), len(ps) > 0)
	add("rate", f.Rate.String(), f.Rate != 0)
	add("buffer", f.Buffer.String(), f.Buffer != 0)
	return s
}
