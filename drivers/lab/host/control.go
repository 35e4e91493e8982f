package host

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// control is something that can be done to a host from outside of it.
type control struct {
	use   string // how to say it
	short string
	args  int // least number of words after the first
	do    func(h *Host, args []string) (string, error)
}

func controls() []control {
	nothing := func(f func(h *Host, args []string) error) func(*Host, []string) (string, error) {
		return func(h *Host, args []string) (string, error) { return "", f(h, args) }
	}
	return []control{
		{"show", "its links, what happened to them, and what is in force on it", 0, func(h *Host, _ []string) (string, error) { return h.show(), nil }},
		{"held", "all that it holds, as text", 0, func(h *Host, _ []string) (string, error) { return h.Held(), nil }},
		{"set LINK SCOPE FIELD... VALUE", "change a setting as another tool on the host would: set rdma0 pfc priorities 4; - takes an entry for a DSCP away", 3, nothing(setByHand)},
		{"wrong LINK SCOPE lie|busy|positive|off", "let the driver go wrong when something in a scope (pfc, ets, app, ...) is set", 3, nothing(func(h *Host, a []string) error {
			if a[2] == off {
				a[2] = string(Behaves)
			}
			return h.Misbehave(a[0], a[1], Wrong(a[2]))
		})},
		{"jobs LINK N", "let running programs have N queue pairs", 2, nothing(withNumber((*Host).SetJobs, 0))},
		{"count LINK COUNTER N", "let a NIC have counted so much, by the counter's canonical name: count rdma0 cnp.sent 7", 3, nothing(func(h *Host, a []string) error {
			n, err := strconv.ParseUint(a[2], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not a number of a counter", a[2])
			}
			return h.Count(a[0], observe.Name(a[1]), n)
		})},
		{"gid LINK N", "move the GID of its IPv4 address to index N; -1 takes it away", 2, nothing(withNumber((*Host).SetGID, -1))},
		{"firmware LINK on|off", "let the NIC's firmware rule QoS, or not", 2, nothing(func(h *Host, a []string) error {
			if a[1] != on && a[1] != off {
				return fmt.Errorf("%q is not on or off", a[1])
			}
			return h.Firmware(a[0], a[1] == on)
		})},
		{"owner lldpad|none|SENTENCE...", "let something else set QoS", 1, nothing(func(h *Host, a []string) error {
			switch s := strings.Join(a, " "); s {
			case "none":
				h.SetOwners()
			case "lldpad":
				h.SetOwners(Lldpad)
			default:
				h.SetOwners(s)
			}
			return nil
		})},
		{"storm LINK on|off", "let a NIC pause its switch without end, and take nothing in", 2, nothing(func(h *Host, a []string) error {
			if a[1] != on && a[1] != off {
				return fmt.Errorf("%q is not on or off", a[1])
			}
			return h.Storm(a[0], a[1] == on)
		})},
		{"slow LINK RATE|off", "let a NIC take in no more than a rate, such as 50Gbps", 2, nothing(func(h *Host, a []string) error {
			if a[1] == off {
				return h.Slow(a[0], 0)
			}
			rate, err := units.ParseBitRate(a[1])
			if err != nil {
				return err
			}
			return h.Slow(a[0], rate)
		})},
		{"clock slow|full", "let the CPU clock below its highest frequency, which perftest notes", 1, nothing(func(h *Host, a []string) error {
			if a[0] != "slow" && a[0] != "full" {
				return fmt.Errorf("%q is not slow or full", a[0])
			}
			h.SlowClock(a[0] == "slow")
			return nil
		})},
		{"stay-down LINK", "let a link stay down the next time that a write takes it down", 1, nothing(func(h *Host, a []string) error { return h.StayDown(a[0]) })},
		{"lose-at N", "cut the host off at the N-th write from now", 1, nothing(withAll(func(h *Host, n int) error { h.LoseAt(n); return nil }, 1))},
		{"change-at N LINK SCOPE FIELD... VALUE", "let another tool set something right before the N-th write from now", 5, nothing(changeAt)},
		{"lose", "cut it off: it answers nobody, and its timers go on", 0, nothing(func(h *Host, _ []string) error { return h.Lose(true) })},
		{"find", "bring it back", 0, nothing(func(h *Host, _ []string) error { return h.Lose(false) })},
		{"tick DURATION", "move its clock", 1, nothing(func(h *Host, a []string) error {
			d, err := time.ParseDuration(a[0])
			if err != nil || d < 0 {
				return fmt.Errorf("%q is no duration such as 60s", a[0])
			}
			h.Advance(d)
			return nil
		})},
		{"reload LINK", "load its driver anew", 1, nothing(func(h *Host, a []string) error { return h.Reload(a[0]) })},
		{"reboot", "start it anew", 0, nothing(func(h *Host, _ []string) error { h.Reboot(); return nil })},
	}
}

// Control does to the host what words say, and returns what there is to show. Without words, or with help, it says which
// there are.
func (h *Host) Control(words ...string) (string, error) {
	if len(words) == 0 || words[0] == "help" {
		var b strings.Builder
		for _, c := range controls() {
			fmt.Fprintf(&b, "%s\n    %s\n", c.use, c.short)
		}
		return b.String(), nil
	}
	for _, c := range controls() {
		name, rest, _ := strings.Cut(c.use, " ")
		if name != words[0] {
			continue
		}
		args := slices.Clone(words[1:])
		if len(args) < c.args || len(args) > c.args && !strings.Contains(rest, "...") {
			return "", fmt.Errorf("say: %s", c.use)
		}
		return c.do(h, args)
	}
	return "", fmt.Errorf("an emulated host has no control %q: help lists them", words[0])
}

func withNumber(f func(*Host, string, int) error, least int) func(*Host, []string) error {
	return func(h *Host, a []string) error {
		return withAll(func(h *Host, n int) error { return f(h, a[0], n) }, least)(h, a[1:])
	}
}

func withAll(f func(*Host, int) error, least int) func(*Host, []string) error {
	return func(h *Host, a []string) error {
		n, err := strconv.Atoi(a[0])
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number from %d", a[0], least)
		}
		return f(h, n)
	}
}

func setByHand(h *Host, a []string) error {
	if len(a) == 3 && a[1] == "link" {
		a = []string{a[0], a[1], "mtu", a[2]}
	}
	if len(a) < 4 {
		return errors.New("say: set LINK SCOPE FIELD... VALUE")
	}
	field := a[2]
	rest := a[3:]
	if a[1] == "app" {
		if len(rest) < 2 {
			return errors.New("say: set LINK app dscp N PRIORITY")
		}
		field, rest = field+" "+rest[0], rest[1:]
	}
	value := strings.Join(rest, " ")
	if a[1] == "link" {
		mtu, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%q is no MTU", value)
		}
		return h.SetMTU(a[0], mtu)
	}
	if value == "-" {
		value = ""
	}
	return h.Set(a[0], a[1]+" "+field, value)
}

func changeAt(h *Host, a []string) error {
	return withAll(func(h *Host, n int) error {
		h.At(n, func() error { return setByHand(h, a[1:]) })
		return nil
	}, 1)(h, a)
}

// At calls f right before the n-th write from now.
func (h *Host) At(n int, f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults.OnWrite = func(string) string {
		if n--; n != 0 {
			return ""
		}
		if err := f(); err != nil {
			return err.Error()
		}
		return ""
	}
}

// LoseAt cuts the host off right before the n-th write from now, which is not done.
func (h *Host) LoseAt(n int) {
	h.At(n, func() error { return cmp.Or(h.Lose(true), errors.New("the machine stopped")) })
}

// show is the host for people.
func (h *Host) show() string {
	var b strings.Builder
	h.mu.Lock()
	for _, l := range h.links {
		n := h.nics[l.Name]
		if n == nil {
			fmt.Fprintf(&b, "%s: mtu %d\n", l.Name, l.MTU)
			continue
		}
		state := "up"
		if n.down {
			state = "down"
		}
		fmt.Fprintf(&b, "%s: %s (%s), %s, mtu %d, flaps %d, gaps %d, queue pairs %d, gid %d\n", l.Name, n.name, n.kind.driver, state, l.MTU, n.flaps(), n.gaps(), n.jobs, n.gid)
		for _, scope := range order() {
			if how := n.wrong[scope]; how != Behaves {
				fmt.Fprintf(&b, "%s: %s goes wrong: %s\n", l.Name, scope, how)
			}
		}
	}
	for _, l := range h.links {
		if n := h.nics[l.Name]; n != nil && n.storm {
			fmt.Fprintf(&b, "%s: pauses its switch without end\n", l.Name)
		} else if n != nil && n.drain > 0 {
			fmt.Fprintf(&b, "%s: takes in no more than %s\n", l.Name, n.drain)
		}
	}
	c := h.counters
	fmt.Fprintf(&b, "writes %d, flaps %d, gaps %d, queue pairs killed %d, transactions taken back %d\n", c.MTUSets+c.KnobSets+c.FileWrites, c.Downs, c.Gaps, c.Killed, c.Reverts)
	if h.lost {
		b.WriteString("nobody reaches it\n")
	}
	h.mu.Unlock()
	owners, notes := h.owners()
	for _, s := range slices.Concat(owners, notes) {
		fmt.Fprintf(&b, "%s\n", s)
	}
	for _, t := range h.transactions() {
		fmt.Fprintf(&b, "transaction %s is %s until %s\n", t.ID, t.State, t.Deadline)
	}
	for _, s := range h.Holds() {
		fmt.Fprintf(&b, "%s\n", s)
	}
	return b.String()
}
