package gnmi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/render"
)

// Each change takes the form on the wire that SONiC needs, in one Set of so many paths.
func TestWireForms(t *testing.T) {
	for _, x := range []struct {
		name  string
		cs    []render.Change
		paths int
		edit  func(sonic.DB)
	}{
		{
			"leaf of a row with other fields",
			[]render.Change{change("WRED_PROFILE", "P", "green_min_threshold", p("1000000"), p("1500000"))},
			1,
			func(db sonic.DB) { db["WRED_PROFILE"]["P"]["green_min_threshold"] = "1500000" },
		},
		{
			"already there: nothing is sent",
			[]render.Change{change("WRED_PROFILE", "P", "green_min_threshold", p("7"), p("1000000"))},
			0, nil,
		},
		{
			"half there",
			[]render.Change{change("SCHEDULER", "scheduler.0", "weight", p("14"), p("20")), change("SCHEDULER", "scheduler.0", "type", nil, p("DWRR"))},
			1,
			func(db sonic.DB) { db["SCHEDULER"]["scheduler.0"]["weight"] = "20" },
		},
		{
			"new field",
			[]render.Change{change("WRED_PROFILE", "P", "wred_green_enable", nil, p("true"))},
			1,
			func(db sonic.DB) { db["WRED_PROFILE"]["P"]["wred_green_enable"] = "true" },
		},
		{
			"new row is one path",
			[]render.Change{change("SCHEDULER", "s", "type", nil, p("DWRR")), change("SCHEDULER", "s", "weight", nil, p("20"))},
			1,
			func(db sonic.DB) {
				db.Set("SCHEDULER", "s", "type", "DWRR")
				db.Set("SCHEDULER", "s", "weight", "20")
			},
		},
		{
			"new table is one path",
			[]render.Change{change("TC_TO_QUEUE_MAP", "M", "0", nil, p("0")), change("TC_TO_QUEUE_MAP", "M", "3", nil, p("3")), change("TC_TO_QUEUE_MAP", "N", "0", nil, p("0"))},
			1,
			func(db sonic.DB) {
				db.Set("TC_TO_QUEUE_MAP", "M", "0", "0")
				db.Set("TC_TO_QUEUE_MAP", "M", "3", "3")
				db.Set("TC_TO_QUEUE_MAP", "N", "0", "0")
			},
		},
		{
			"field removed, row stays",
			[]render.Change{change("QUEUE", "Ethernet0|3", "wred_profile", p("P"), nil)},
			1,
			func(db sonic.DB) { delete(db["QUEUE"]["Ethernet0|3"], "wred_profile") },
		},
		{
			"last field removed: the row goes, and as the last row the table",
			[]render.Change{change("QUEUE", "Ethernet0|3", "wred_profile", p("P"), nil), change("QUEUE", "Ethernet0|3", "scheduler", p("scheduler.0"), nil)},
			1,
			func(db sonic.DB) { delete(db, "QUEUE") },
		},
		{
			"binding moved and profile removed, one transaction",
			[]render.Change{
				change("QUEUE", "Ethernet0|3", "wred_profile", p("P"), p("Q")), change("WRED_PROFILE", "Q", "ecn", nil, p("ecn_all")),
				change("WRED_PROFILE", "P", "ecn", p("ecn_all"), nil),
				change("WRED_PROFILE", "P", "green_min_threshold", p("1000000"), nil),
				change("WRED_PROFILE", "P", "green_max_threshold", p("2000000"), nil),
			},
			3,
			func(db sonic.DB) {
				db["QUEUE"]["Ethernet0|3"]["wred_profile"] = "Q"
				db["WRED_PROFILE"] = map[string]map[string]any{"Q": {"ecn": "ecn_all"}}
			},
		},
		{
			"item of a list",
			[]render.Change{change("PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]", p(""), nil), change("PORT_QOS_MAP", "Ethernet0", "pfc_enable[5]", nil, p(""))},
			1,
			func(db sonic.DB) { db["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "3,5" },
		},
		{
			"last item of a list: written as empty",
			[]render.Change{change("PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]", p(""), nil), change("PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]", p(""), nil)},
			1,
			func(db sonic.DB) { db["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "" },
		},
		{
			"key with a slash",
			[]render.Change{change("INTERFACE", "Ethernet0|10.0.0.1/31", "", nil, p(""))},
			1,
			func(db sonic.DB) {
				db["INTERFACE"] = map[string]map[string]any{"Ethernet0|10.0.0.1/31": {}}
			},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := launch(t, sonic.Options{})
			d := open(t, config(s))
			want := s.Config()
			if err := d.Commit(patience(t), "tx", x.cs, 0); err != nil {
				t.Fatalf("%v\nrefused: %q", err, s.Refusals())
			}
			if x.edit != nil {
				x.edit(want)
			}
			if d := cmp.Diff(want, s.Config()); d != "" {
				t.Errorf("configuration (-want +got):\n%s", d)
			}
			st := s.Stats()
			if st.Paths != x.paths || st.Sets != min(1, x.paths) {
				t.Errorf("%d Sets with %d paths, want %d paths", st.Sets, st.Paths, x.paths)
			}
			if err := d.Commit(patience(t), "tx2", x.cs, 0); err != nil || s.Stats().Sets != st.Sets {
				t.Errorf("the second commit: %v, %d Sets", err, s.Stats().Sets-st.Sets)
			}
			undo := render.Undo(x.cs)
			if x.paths == 0 || strings.HasPrefix(x.name, "half") {
				return
			}
			if err := d.Commit(patience(t), "tx3", undo, 0); err != nil {
				t.Fatalf("undo: %v\nrefused: %q", err, s.Refusals())
			}
			if d := cmp.Diff(launch(t, sonic.Options{}).Config(), s.Config()); d != "" {
				t.Errorf("after undo (-before +after):\n%s", d)
			}
		})
	}
}

// Whatever a configuration is and becomes, a commit of the difference makes it so, and undo takes it back.
func TestCommitMakesItSo(t *testing.T) {
	s := launch(t, sonic.Options{})
	d := open(t, config(s))
	dialect := render.ByOS("sonic")
	rows := rapid.MapOfN(rapid.SampledFrom([]string{"r1", "r2", "a/b~c"}), rapid.MapOfN(rapid.SampledFrom([]string{"f", "g", "h/i"}),
		rapid.SampledFrom([]string{"", "1", "x"}), 0, 3), 1, 3)
	tables := rapid.MapOfN(rapid.SampledFrom([]string{"T", "U", "V"}), rows, 0, 3)
	lists := rapid.SampledFrom([]string{"none", "", "3", "3,4", "0,4,7"})
	build := func(r *rapid.T, label string) sonic.DB {
		db := sonic.DB{}
		for table, rows := range tables.Draw(r, label) {
			db[table] = map[string]map[string]any{}
			for row, fields := range rows {
				db[table][row] = map[string]any{}
				for f, v := range fields {
					db[table][row][f] = v
				}
			}
		}
		if l := lists.Draw(r, label+" list"); l != "none" {
			db.Set("PORT_QOS_MAP", "global", "pfc_enable", l)
		}
		return db
	}
	rapid.Check(t, func(r *rapid.T) {
		old, want := build(r, "old"), build(r, "want")
		put := func(db sonic.DB) {
			s.Edit(func(live sonic.DB) {
				clear(live)
				for k, v := range db {
					live[k] = v
				}
			})
		}
		put(want)
		target := read(t, d)
		put(old)
		before := read(t, d)
		cs := render.Diff(dialect, render.Facts{}, before, target)
		if err := d.Commit(patience(t), "tx", cs, 0); err != nil {
			r.Fatalf("%v\n%q", err, s.Refusals())
		}
		after := read(t, d)
		if left := render.Diff(dialect, render.Facts{}, after, target); len(left) > 0 {
			r.Fatalf("left over: %v", left)
		}
		if err := d.Commit(patience(t), "undo", render.Undo(cs), 0); err != nil {
			r.Fatalf("undo: %v\n%q", err, s.Refusals())
		}
		if left := render.Diff(dialect, render.Facts{}, read(t, d), before); len(left) > 0 {
			r.Fatalf("undo left: %v", left)
		}
	})
}

func weight(from, to string) []render.Change {
	return []render.Change{change("SCHEDULER", "scheduler.0", "weight", &from, &to)}
}

// Nothing is written when the switch holds something else than the plan thinks.
func TestMoved(t *testing.T) {
	s := launch(t, sonic.Options{})
	d := open(t, config(s))
	cs := append(weight("13", "20"), change("QUEUE", "Ethernet0|4", "scheduler", p("x"), nil), change("QUEUE", "Ethernet0|3", "wred_profile", nil, p("Q")))
	err := d.Commit(patience(t), "tx", cs, 0)
	says(t, err, drivers.ErrMoved, `SCHEDULER|scheduler.0|weight is "14", the plan expects "13" (and 1 more)`)
	err = d.Commit(patience(t), "tx", []render.Change{change("WRED_PROFILE", "Q", "ecn", p("ecn_all"), p("ecn_green"))}, 0)
	says(t, err, drivers.ErrMoved, `WRED_PROFILE|Q|ecn is absent, the plan expects "ecn_all"`)
	says(t, d.Commit(patience(t), "tx", weight("14", "20"), 1), drivers.ErrNoConfirm)
	says(t, d.Commit(patience(t), "tx", []render.Change{change("", "x", "y", nil, p("1"))}, 0), nil, "names no row")
	if s.Stats().Sets != 0 {
		t.Error("something was written")
	}
}

// An error keeps code and sentence; the state behind it is only known after reading.
func TestFaultySets(t *testing.T) {
	two := append(weight("14", "20"), change("SCHEDULER", "scheduler.0", "type", p("DWRR"), p("WRR")))
	for _, x := range []struct {
		name  string
		fault sonic.Faults
		bad   bool
		want  string // weight and type that Read tells
	}{
		{"refused", sonic.Faults{Set: sonic.Refuse}, true, "14 DWRR"},
		{"error although applied", sonic.Faults{Set: sonic.Lie}, true, "20 WRR"},
		{"half applied", sonic.Faults{Set: sonic.Half}, true, "20 DWRR"},
		{"OK but not done", sonic.Faults{Set: sonic.Pretend}, false, "14 DWRR"},
		{"changed behind our back", sonic.Faults{After: func(db sonic.DB) { db.Set("SCHEDULER", "scheduler.0", "weight", "7") }}, false, "7 WRR"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := launch(t, sonic.Options{})
			d := open(t, config(s))
			x.fault.Times = 1
			s.Fault(x.fault)
			err := d.Commit(patience(t), "tx", two, 0)
			if (err != nil) != x.bad {
				t.Fatal(err)
			}
			if x.bad {
				says(t, err, nil, "Unknown: Error: Failed to apply patch on the following scopes:", "the reason is in the switch's syslog", "SCHEDULER/scheduler.0/weight")
				rejected, ok := errors.AsType[*drivers.RejectedError](err)
				if !ok || rejected.Device != "leaf1" || rejected.Sent != "0 deletes and 2 updates, the first SCHEDULER/scheduler.0/weight" {
					t.Errorf("%#v", rejected)
				}
			}
			for _, reader := range []drivers.Reader{d, open(t, config(s))} {
				live := read(t, reader)
				if got := live.Get("SCHEDULER", "scheduler.0", "weight") + " " + live.Get("SCHEDULER", "scheduler.0", "type"); got != x.want {
					t.Errorf("read tells %q, want %q", got, x.want)
				}
			}
		})
	}
	t.Run("refused by the switch itself", func(t *testing.T) {
		s := launch(t, sonic.Options{})
		err := open(t, config(s)).Commit(patience(t), "tx", weight("14", "101"), 0)
		says(t, err, nil, `device refused "SCHEDULER/scheduler.0/weight"`)
	})
}

// A Set in flight is given up at once when its context ends, and the connection still serves reads.
func TestCancelledSet(t *testing.T) {
	for outcome, want := range map[sonic.Outcome]string{sonic.Hang: "14", sonic.HangDone: "20"} {
		s := launch(t, sonic.Options{})
		d := open(t, config(s))
		ctx, cancel := context.WithCancel(patience(t))
		s.Fault(sonic.Faults{Set: outcome, Times: 1, Held: cancel})
		says(t, d.Commit(ctx, "tx", weight("14", "20"), 0), context.Canceled, "gnmi set SCHEDULER/scheduler.0/weight: waiting for the answer")
		if got := read(t, d).Get("SCHEDULER", "scheduler.0", "weight"); got != want {
			t.Errorf("weight %s, want %s", got, want)
		}
	}
}

func TestClosed(t *testing.T) {
	s := launch(t, sonic.Options{})
	d := open(t, config(s))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := d.Read(patience(t))
	says(t, err, nil, "closed")
	says(t, d.Commit(patience(t), "tx", weight("14", "20"), 0), nil, "closed")
}
