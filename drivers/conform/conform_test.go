package conform_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

func same(_ render.Key, a, b *string, _ render.Facts) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// to is the change of k from what live holds to value; nil removes.
func to(live render.Config, k render.Key, value *string) render.Change {
	c := render.Change{Op: render.Modify, Key: k, After: value}
	if v, ok := live.Find(k); ok {
		c.Before = &v
	} else {
		c.Op = render.Add
	}
	if value == nil {
		c.Op = render.Remove
	}
	return c
}

func ptr(s string) *string { return &s }

func subject(t *testing.T, confirm bool, mutant string) conform.Subject {
	b := newBox(t, confirm)
	p := conform.NewProxy(t, b.ln.Addr().String())
	open := func(hostKey, pass string) func(context.Context) (drivers.Device, error) {
		return func(ctx context.Context) (drivers.Device, error) {
			return dial(ctx, "box1", p.Addr(), hostKey, pass, mutant, confirm)
		}
	}
	s := conform.Subject{
		Name: "box1", Secrets: []string{password, "wrong-canary"}, Same: same,
		Open:          open("the right key", password),
		WrongPassword: open("the right key", "wrong-canary"),
		WrongHostKey:  open("another key", password),
		// The reference device has one proof of who it is; it stands for host key and certificate.
		WrongCertificate: open("another certificate", password),
		Auths:            func() int { return b.count(&b.auths) },
		Changes: func(live render.Config) []render.Change {
			return []render.Change{to(live, wred("training", "kmin"), ptr("800")), to(live, mtu("p1"), ptr("9216")), to(live, mtu("p2"), nil)}
		},
		Other: func(live render.Config) []render.Change {
			return []render.Change{to(live, mtu("p1"), ptr("4200")), to(live, mtu("p3"), ptr("4200"))}
		},
		Bad: func(live render.Config) ([]render.Change, int) {
			return []render.Change{to(live, mtu("p1"), ptr("9216")), to(live, mtu("p2"), ptr("99999")), to(live, mtu("p3"), ptr("9216"))}, 1
		},
		Writes:       func() int { return b.count(&b.writes) },
		State:        b.state,
		RejectNext:   func(sentence string) { b.with(func() { b.reject = sentence }) },
		OKButDoNot:   func() { b.with(func() { b.liar = true }) },
		Slow:         func(d time.Duration) { b.with(func() { b.slow = d }) },
		ChangeBehind: func(k render.Key) { b.with(func() { b.running[k] = "5000" }) },
		DropAfter:    p.DropAfter,
		Bytes:        p.Bytes,
		Stall: func() <-chan struct{} {
			held := make(chan struct{})
			b.with(func() { b.stall = held })
			return held
		},
	}
	s.Counting = &conform.Counting{
		Values: map[observe.Port]uint64{{Iface: "p1", Name: "pfc.rx.3"}: 7, {Iface: "p2", Name: "pfc.rx.3"}: 0, {Iface: "p2", Name: "drop.3"}: 1 << 63},
		Set: func(values map[observe.Port]uint64) {
			b.with(func() {
				b.counters = map[string]string{}
				for p, v := range values {
					b.counters[p.Iface+" "+string(p.Name)] = strconv.FormatUint(v, 10)
				}
			})
		},
		Junk: map[string]func(){
			"no number": func() { b.with(func() { b.counters = map[string]string{"p1 pfc.rx.3": "N/A", "p2 drop.3": "-1"} }) },
		},
		Asked: func() int { return b.count(&b.asked) },
		Most:  1,
	}
	if confirm {
		s.Advance = b.advance
		s.LeaveOpen = func(tx drivers.TxID) { b.with(func() { b.open[tx] = settings{} }) }
	}
	return s
}

// The reference devices pass, with and without transactions.
func TestAtomicReference(t *testing.T) {
	conform.Run(t, func(t *testing.T) conform.Subject { return subject(t, true, "") })
}

func TestPlainReference(t *testing.T) {
	conform.Run(t, func(t *testing.T) conform.Subject { return subject(t, false, "") })
}

func TestReadOnlyReference(t *testing.T) {
	s := subject(t, true, "")
	d, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ro := drivers.ReadOnly("box1", d)
	defer ro.Close()
	live, err := ro.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = ro.Commit(t.Context(), "t1", s.Changes(live), 0)
	if err == nil || !strings.Contains(err.Error(), "box1") || s.Writes() != 0 {
		t.Errorf("commit through a read-only device: %v, %d writes", err, s.Writes())
	}
}

const mutantEnv = "FABRICCTL_CONFORM_MUTANT"

// mutant is a way to break a driver, with the case that has to notice. A plain one has no transactions.
type mutant struct {
	name, notices string
	plain         bool
}

var mutants = []mutant{
	{name: "promises a timer", notices: "facts", plain: true},
	{name: "commits nothing too", notices: "nothing_to_do_writes_nothing"},
	{name: "demands before", notices: "half-applied_changes_are_finished"},
	{name: "never removes", notices: "undo_restores"},
	{name: "ignores contexts", notices: "ended_context_writes_nothing"},
	{name: "leaks", notices: "closed_device"},
	{name: "claims to be atomic", notices: "refused_by_the_device's_rules", plain: true},
	{name: "reads what it wrote", notices: "says_OK_but_did_not"},
	{name: "is impatient", notices: "slow_answers"},
	{name: "takes a lost answer for a yes", notices: "disconnect_at_any_byte"},
	{name: "takes a lost answer for a yes", notices: "disconnect_at_any_byte_of_a_timed_commit"},
	{name: "trusts any key", notices: "wrong_certificate"},
	{name: "knows no transaction", notices: "unconfirmed_commit_reverts"},
	{name: "confirms nothing", notices: "confirmed_commit_stays"},
	{name: "ignores before", notices: "changed_behind_is_refused_before_any_write"},
	{name: "reads from a cache", notices: "two_connections,_one_change"},
	{name: "writes all again", notices: "second_commit_writes_nothing"},
	{name: "forgets the last", notices: "read_your_writes"},
	{name: "writes elsewhere", notices: "read_your_writes"},
	{name: "reads unsorted", notices: "hundred_reads_are_identical"},
	{name: "goes on after a refusal", notices: "refused_by_the_device's_rules", plain: true},
	{name: "applies in reverse", notices: "refused_by_the_device's_rules", plain: true},
	{name: "swallows sentences", notices: "refused_line_or_path"},
	{name: "hides cancellation", notices: "cancel_in_the_middle_of_a_commit"},
	{name: "leaks", notices: "disconnect_at_any_byte"},
	{name: "trusts any key", notices: "wrong_host_key"},
	{name: "tells the password", notices: "wrong_password_is_tried_once"},
	{name: "tries twice", notices: "wrong_password_is_tried_once"},
	{name: "ignores the window", notices: "confirm_window_without_a_timer", plain: true},
	{name: "forgets the timer", notices: "unconfirmed_commit_reverts"},
	{name: "confirms anything", notices: "open_transaction"},
	{name: "aborts nothing", notices: "timed_commit_is_aborted"},
	{name: "always saved", notices: "saved"},
	{name: "invents counters", notices: "sensor"},
	{name: "counts from zero", notices: "sensor_tells_what_is_counted"},
	{name: "believes nonsense", notices: "sensor_and_nonsense"},
	{name: "senses on and on", notices: "sensor_ends_with_its_context"},
	{name: "asks and goes on", notices: "a_guarded_commit_shows_what_it_read"},
	{name: "shows what it remembers", notices: "a_guarded_commit_shows_what_it_read"},
	{name: "tries in earnest", notices: "trials_change_nothing"},
}

// TestMutants runs the suite on broken drivers, in processes of their own because failing is what they have to do.
func TestMutants(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name+"/"+m.notices, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestMutant$/^"+m.notices+"$")
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestMutant/"+m.notices) {
				t.Errorf("the case %s does not notice a driver that %s (%v):\n%s", m.notices, m.name, err, out)
			}
			if strings.Contains(string(out), "panic:") {
				t.Errorf("a driver that %s makes the suite panic:\n%s", m.name, out)
			}
		})
	}
}

// Every case has a driver that it catches.
func TestEveryCaseHasAMutant(t *testing.T) {
	for _, name := range conform.CaseNames() {
		name = strings.ReplaceAll(name, " ", "_")
		if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.notices == name }) {
			t.Errorf("no broken driver shows that the case %s can fail", name)
		}
	}
}

// TestMutant is what TestMutants runs.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	if name == "" {
		t.Skip("run by TestMutants")
	}
	for _, m := range mutants {
		if m.name == name {
			conform.Run(t, func(t *testing.T) conform.Subject { return subject(t, !m.plain, m.name) })
		}
	}
}
