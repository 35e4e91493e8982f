package sshcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/render"
)

// says checks an error for its kind and its words; kind may be nil.
func says(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("is not %q: %v", kind, err)
	}
	for _, w := range append(words, "leaf-one") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in: %v", w, err)
		}
	}
}

// A refused line leaves running alone and no session behind; the error names the line, its block and the sentence.
func TestRefusedLine(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	cs := b.edit(b.read(d), small)
	before := b.sw.Running()
	b.sw.SetFaults(lab.Faults{Reject: regexp.MustCompile("random-detect"), RejectWith: "% ECN is not supported on this hardware platform"})
	err := d.Commit(b.ctx(), "t1", cs, 0)
	says(t, err, nil, "% ECN is not supported", "qos profile FCTL-A / uc-tx-queue 3", "nothing of session fctl-t1 is left")
	var r *drivers.RejectedError
	if !errors.As(err, &r) || !strings.HasPrefix(r.Sent, "random-detect ecn minimum-threshold 600000 bytes") || r.Device != "leaf-one" {
		t.Errorf("%+v", r)
	}
	if b.sw.Running() != before || b.states() != "" {
		t.Errorf("left behind: %q\n%s", b.states(), cmp.Diff(before, b.sw.Running()))
	}
	if c := b.sw.Counters(); c.Commits != 0 || c.Aborts != 1 {
		t.Errorf("%+v", c)
	}
}

// One bad line in four hundred: the ones after it are not sent.
func TestOneBadLineInFourHundred(t *testing.T) {
	var ports []string
	for i := range 400 {
		ports = append(ports, fmt.Sprintf("Ethernet%d/1", i+1))
	}
	b := newBench(t, lab.Options{Ports: ports})
	d := b.dial()
	var cs []render.Change
	for i, p := range ports {
		v := "9100"
		if i == 200 {
			v = "9999"
		}
		c := render.Change{Op: render.Add, Key: render.Key{Scope: "interface " + p, Object: "mtu"}, After: &v}
		if i < 2 {
			was := "9214"
			c.Op, c.Before = render.Modify, &was
		}
		cs = append(cs, c)
	}
	before := b.sw.Running()
	err := d.Commit(b.ctx(), "t1", cs, 0)
	says(t, err, nil, `"mtu 9999"`, "% Invalid input", "in interface Ethernet201/1")
	if b.sw.Running() != before || b.states() != "" {
		t.Error("left behind:", b.states())
	}
	if n := b.sw.Counters().ConfigLines; n != 401 { // 200 ports with their mode line, and the mode line of the bad one
		t.Errorf("%d lines were taken, want 401", n)
	}
	v := "9100"
	cs[200].After = &v
	start := time.Now()
	if err := d.Commit(b.ctx(), "t2", cs, 0); err != nil {
		t.Fatal(err)
	}
	t.Logf("a commit of 400 ports took %v", time.Since(start))
	if n := strings.Count(b.sw.Running(), "mtu 9100"); n != 400 {
		t.Errorf("%d ports have the new size", n)
	}
}

// A timed commit is found, confirmed or aborted by its id from another connection, and reverts by itself.
func TestTimer(t *testing.T) {
	for _, version := range []string{"4.31.2F", "4.35.0F"} {
		for _, end := range []string{"confirm", "abort", "nothing"} {
			t.Run(version+" "+end, func(t *testing.T) {
				b := newBench(t, lab.Options{Version: version})
				d := b.dial()
				before := b.sw.Running()
				if err := d.Commit(b.ctx(), "t1", b.edit(b.read(d), small), 90*time.Second+time.Millisecond); err != nil {
					t.Fatal(err)
				}
				d.Close()
				after := b.sw.Running()
				e := b.dial()
				got, err := e.Pending(b.ctx())
				want := []drivers.Tx{{ID: "t1", State: drivers.TxTimed, Deadline: epoch.Add(91 * time.Second)}}
				if d := cmp.Diff(want, got); err != nil || d != "" {
					t.Fatal(err, d)
				}
				f, _, err := e.Facts(b.ctx())
				if err != nil || len(f.Owners)+len(f.Notes) != 0 {
					t.Errorf("our own timer is held against us: %v %+v", err, f)
				}
				b.clock.Advance(time.Minute)
				wantText := before
				switch end {
				case "confirm":
					err, wantText = e.Confirm(b.ctx(), "t1"), after
				case "abort":
					err = e.Abort(b.ctx(), "t1")
				}
				if err != nil {
					t.Fatal(err)
				}
				b.clock.Advance(time.Hour)
				if diff := cmp.Diff(wantText, b.sw.Running()); diff != "" || before == after {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if p, err := e.Pending(b.ctx()); err != nil || len(p) != 0 {
					t.Errorf("pending: %v %v", p, err)
				}
				says(t, e.Confirm(b.ctx(), "t1"), nil, "no such session open or timed")
				says(t, e.Abort(b.ctx(), "t1"), nil, "no such session open or timed")
			})
		}
	}
}

// Sessions of ours and of others: ours are listed and can be dropped, others' are left alone.
func TestStaleSessions(t *testing.T) {
	b := newBench(t, lab.Options{MaxPending: 3})
	for _, name := range []string{"fctl-dead", "theirs"} {
		if err := b.sw.OpenSession(name, "bob", "ip routing"); err != nil {
			t.Fatal(err)
		}
	}
	d := b.dial()
	got, err := d.Pending(b.ctx())
	if diff := cmp.Diff([]drivers.Tx{{ID: "dead", State: drivers.TxOpen}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	f, _, err := d.Facts(b.ctx())
	if err != nil || len(f.Owners) != 0 || len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "theirs of user bob") {
		t.Errorf("%v %+v", err, f)
	}
	cs := b.edit(b.read(d), small)
	says(t, d.Commit(b.ctx(), "dead", cs, 0), nil, "session fctl-dead is already there, open")
	says(t, d.Confirm(b.ctx(), "dead"), nil, "it is open, and confirming would commit it as it stands")
	if strings.Contains(b.sw.Running(), "ip routing") {
		t.Fatal("a stale session was committed")
	}
	if err := b.sw.OpenSession("more", "bob", ""); err != nil {
		t.Fatal(err)
	}
	says(t, d.Commit(b.ctx(), "t1", cs, 0), nil, "% Maximum number of pending sessions")
	if err := d.Abort(b.ctx(), "dead"); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(b.ctx(), "dead", cs, 0); err != nil { // the name is free again
		t.Fatal(err)
	}
	if got := b.states(); got != "more:pending theirs:pending" {
		t.Errorf("sessions: %s", got)
	}
}

// A timer of somebody else would take our change with it: it is an owner, and nothing is written.
func TestForeignTimer(t *testing.T) {
	for _, version := range []string{"4.31.2F", "4.35.0F"} {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, lab.Options{Version: version})
			if err := errors.Join(b.sw.OpenSession("theirs", "bob", "ip routing"), b.sw.StartTimer("theirs", "00:10:00")); err != nil {
				t.Fatal(err)
			}
			d := b.dial()
			f, _, err := d.Facts(b.ctx())
			if err != nil || len(f.Owners) != 1 || !strings.Contains(f.Owners[0], "theirs") {
				t.Errorf("%v %+v", err, f)
			}
			before := b.sw.Counters().ConfigLines
			says(t, d.Commit(b.ctx(), "t1", b.edit(b.read(d), small), time.Minute), nil, "nothing was written", "session theirs")
			if b.sw.Counters().ConfigLines != before || b.states() != "theirs:pendingCommitTimer" {
				t.Error("something was typed:", b.states())
			}
		})
	}
}

// Somebody changes the switch while the session is being typed. The commit would take that back, so it is not made.
func TestChangedWhileTyping(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	cs := b.edit(b.read(d), small)
	var once atomic.Bool
	b.sw.SetFaults(lab.Faults{OnLine: func(l string) {
		if strings.HasPrefix(l, "random-detect") && once.CompareAndSwap(false, true) {
			if err := b.sw.Type("interface Ethernet4/1\nmtu 1500"); err != nil {
				t.Error(err)
			}
		}
	}})
	says(t, d.Commit(b.ctx(), "t1", cs, 0), drivers.ErrMoved, `became "mtu 1500"`, "nothing of session fctl-t1 is left")
	if c := b.sw.Counters(); c.Commits != 0 || b.states() != "" || !strings.Contains(b.sw.Running(), "mtu 1500") {
		t.Errorf("%+v %s", c, b.states())
	}
	b.sw.SetFaults(lab.Faults{})
	if err := d.Commit(b.ctx(), "t2", cs, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.sw.Running(), "mtu 1500") || !strings.Contains(b.sw.Running(), "mtu 9100") {
		t.Error(b.sw.Running())
	}
}

func TestMoved(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	cs := b.edit(b.read(d), small)
	if err := b.sw.Type("interface Ethernet1/1\nmtu 1500"); err != nil {
		t.Fatal(err)
	}
	says(t, d.Commit(b.ctx(), "t1", cs, 0), drivers.ErrMoved, `interface Ethernet1/1|mtu is "1500", the plan knew "9214" and wants "9100"`)
	if n := b.sw.Counters().ConfigLines; n != 0 {
		t.Errorf("%d lines were typed", n)
	}
}

// Failures of the device's own making end with the session dropped, or with the truth about it.
func TestCommitFailures(t *testing.T) {
	for _, x := range []struct {
		name  string
		f     lab.Faults
		says  []string
		state string
	}{
		{"commit refused", lab.Faults{CommitError: "% Cannot commit: hardware resources exhausted"}, []string{`device refused "commit"`, "hardware resources exhausted", "nothing of session fctl-t1 is left"}, ""},
		{"lines without effect", lab.Faults{IgnoreLine: regexp.MustCompile(".")}, []string{"says that they change nothing", "nothing of session fctl-t1 is left"}, ""},
		{"commit and abort refused", lab.Faults{CommitError: "% Cannot commit", RefuseAbort: true}, []string{"% Cannot commit", "session fctl-t1 could not be dropped and may still be open", "% Internal error"}, "fctl-t1:pending"},
		{"running configuration cut short in the middle", lab.Faults{NoEnd: true}, []string{"cut short"}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, lab.Options{})
			d := b.dial()
			cs := b.edit(b.read(d), small)
			before := b.sw.Running()
			b.sw.SetFaults(x.f)
			says(t, d.Commit(b.ctx(), "t1", cs, 0), nil, x.says...)
			if b.sw.Running() != before || b.states() != x.state {
				t.Errorf("sessions %q, want %q\n%s", b.states(), x.state, cmp.Diff(before, b.sw.Running()))
			}
		})
	}
}

// phases are the lines of a commit, in their order; the last one is where the outcome is unknown.
var phases = []string{"show running-config", "show configuration sessions", "configure session fctl-t1", "interface Ethernet1/1", "mtu 9100", "random-detect", "show session-config diffs", "commit timer"}

// The caller gives up while the device does not answer, at every phase: the call comes back at once, running is
// what it was, and the session is dropped over a new connection, unless the commit itself was on its way.
func TestCancelCommit(t *testing.T) {
	for _, at := range phases {
		t.Run(at, func(t *testing.T) {
			b := newBench(t, lab.Options{})
			d := b.dial()
			if _, _, err := d.Facts(b.ctx()); err != nil {
				t.Fatal(err)
			}
			cs := b.edit(b.read(d), small)
			before := b.sw.Running()
			held := make(chan struct{})
			var once atomic.Bool
			var hook func(l string)
			hook = func(l string) {
				if strings.HasPrefix(l, at) && once.CompareAndSwap(false, true) {
					b.sw.SetFaults(lab.Faults{StallAt: regexp.MustCompile(".")})
					close(held)
				} else {
					b.sw.SetFaults(lab.Faults{OnLine: hook})
				}
			}
			b.sw.SetFaults(lab.Faults{OnLine: hook})
			ctx, cancel := context.WithCancel(b.ctx())
			done := make(chan error, 1)
			go func() { done <- d.Commit(ctx, "t1", cs, time.Minute) }()
			<-held
			b.sw.SetFaults(lab.Faults{}) // the line that is held stays held
			cancel()
			err := within1s(t, done)
			says(t, err, context.Canceled, at)
			want := ""
			if at == "commit timer" {
				want = "fctl-t1:pending"
				says(t, err, nil, "whether session fctl-t1 was committed is not known")
			}
			if b.sw.Running() != before || b.states() != want {
				t.Errorf("%v\nsessions %q, want %q", err, b.states(), want)
			}
			d.Close()
			e := b.dial()
			if want != "" {
				if err := e.Abort(b.ctx(), "t1"); err != nil {
					t.Error(err)
				}
			}
			if err := e.Commit(b.ctx(), "t1", cs, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// The connection is cut at every phase, before or after the line acted. Either nothing was committed and no session
// is left, or the error says that it is not known, and Pending tells.
func TestCutCommit(t *testing.T) {
	for _, at := range phases {
		for _, acted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, acted %v", at, acted), func(t *testing.T) {
				b := newBench(t, lab.Options{})
				d := b.dial()
				cs := b.edit(b.read(d), small)
				before := b.sw.Running()
				re := regexp.MustCompile("^" + at)
				var once atomic.Bool
				var hook func(l string)
				hook = func(l string) {
					f := lab.Faults{OnLine: hook}
					if re.MatchString(l) && once.CompareAndSwap(false, true) {
						if acted {
							f.DropOn = re
						} else {
							f.DropAt = re
						}
					}
					b.sw.SetFaults(f)
				}
				b.sw.SetFaults(lab.Faults{OnLine: hook})
				err := d.Commit(b.ctx(), "t1", cs, time.Minute)
				says(t, err, nil, at, "the device closed the connection")
				p, perr := d.Pending(b.ctx())
				if perr != nil {
					t.Fatal(perr)
				}
				switch {
				case at != "commit timer":
					if b.sw.Running() != before || len(p) != 0 {
						t.Errorf("%v\npending %v", err, p)
					}
				case len(p) != 1 || (p[0].State == drivers.TxTimed) != acted || (b.sw.Running() != before) != acted:
					t.Errorf("%v\npending %v", err, p)
				default:
					says(t, err, nil, "whether session fctl-t1 was committed is not known")
				}
			})
		}
	}
}

// The device is so slow that the session cannot be dropped in the time that is left after a cancel: said so.
func TestCancelAndNoTimeToDrop(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	cs := b.edit(b.read(d), small)
	held := make(chan struct{})
	var once atomic.Bool
	b.sw.SetFaults(lab.Faults{StallAt: regexp.MustCompile("mtu 9100|enable"), OnLine: func(l string) {
		if l == "mtu 9100" && once.CompareAndSwap(false, true) {
			close(held)
		}
	}})
	ctx, cancel := context.WithCancel(b.ctx())
	done := make(chan error, 1)
	go func() { done <- d.Commit(ctx, "t1", cs, 0) }()
	<-held
	cancel()
	says(t, within1s(t, done), context.Canceled, "mtu 9100", "session fctl-t1 could not be dropped and may still be open")
	b.sw.SetFaults(lab.Faults{})
	if p, err := b.dial().Pending(b.ctx()); err != nil || len(p) != 1 || p[0].State != drivers.TxOpen {
		t.Errorf("%v %v", p, err)
	}
}

// Confirm and Abort do not take the device's word.
func TestSettleFailures(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	if err := d.Commit(b.ctx(), "t1", b.edit(b.read(d), small), time.Minute); err != nil {
		t.Fatal(err)
	}
	b.sw.SetFaults(lab.Faults{RefuseConfirm: true, RefuseAbort: true})
	says(t, d.Confirm(b.ctx(), "t1"), nil, "% Internal error", "configure session fctl-t1 commit")
	says(t, d.Abort(b.ctx(), "t1"), nil, "% Internal error", "configure session fctl-t1 abort")
	if got := b.states(); got != "fctl-t1:pendingCommitTimer" {
		t.Error(got)
	}
}

// Passwords appear in no log line, whatever the level.
func TestLogKeepsSecrets(t *testing.T) {
	b := newBench(t, lab.Options{EnablePassword: "swordfish-canary"})
	var buf bytes.Buffer
	b.cfg.Log = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := b.dial()
	if err := d.Commit(b.ctx(), "t1", b.edit(b.read(d), small), 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), "configure session fctl-t1") {
		t.Error("the log does not say what was sent")
	}
	if strings.Contains(buf.String(), "canary") {
		t.Error("the log contains a password (not repeated here)")
	}
}

// What a terminal would act on is not typed, whatever a dialect says.
func TestUntypable(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	v := "x?\nreload now"
	err := d.Commit(b.ctx(), "t1", []render.Change{{Op: render.Add, Key: render.Key{Scope: "interface Ethernet1/1", Object: "service-profile"}, Before: ptr("FCTL-A"), After: &v}}, 0)
	says(t, err, nil, "cannot be typed", "nothing of session fctl-t1 is left")
	if c := b.sw.Counters(); c.Commits != 0 || b.states() != "" {
		t.Errorf("%+v %s", c, b.states())
	}
}

func ptr(s string) *string { return &s }
