package rollout

import (
	"context"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Devices to which a change may cut our own way come last in their wave, each alone, the farthest first, on the way there
// and on the way back. What cuts nothing is done as ever.
func TestInBand(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "s3", "s4", "s5", "h1")
	for i, way := range []intent.Way{
		{InBand: true, Hops: 1},
		{InBand: true}, // nobody knows how far
		{InBand: true, Hops: 2},
		{},
		{InBand: true, Hops: 3, Port: "downlink-1"}, // only what flaps there cuts
		{InBand: true, Hops: 2},
	} {
		f.net.Devices[i].Way = way
	}
	f.boxes["s5"].running = f.wanted("s5", oldConfig())
	f.boxes["s5"].running = render.Apply(f.boxes["s5"].running, changes("port p2 mtu 1400"))
	f.e.Parallel = 8
	p := f.plan(t)
	if c := p.Device("s3").Cut; c == nil || strings.Join(c.Ports, " ") != "p1 p2" || c.Hops != 2 {
		t.Errorf("s3: %+v", c)
	}
	for _, name := range []string{"s4", "s5"} {
		if c := p.Device(name).Cut; c != nil || len(p.Device(name).Steps) == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if err := f.e.Check(p, f.net, func(string) bool { return false }); err != nil {
		t.Errorf("the plan file: %v", err)
	}
	var order []string
	f.e.Progress = func(e Event) {
		if e.Stage == StageDone {
			order = append(order, e.Device)
		}
	}
	r := f.apply(t, p, 0)
	got := strings.Join(order, " ")
	if want := "s3 s1 s2 h1"; !strings.HasSuffix(got, want) || len(order) != 6 {
		t.Errorf("order %s, want s4 and s5, then %s", got, want)
	}
	order = nil
	if back, err := f.e.Rollback(context.Background(), r.ID); ExitCode(back, err) != 0 {
		t.Fatal(back, err)
	}
	got = strings.Join(order, " ")
	if !strings.HasPrefix(got, "h1 ") || !strings.HasSuffix(got, " s3 s1 s2") {
		t.Errorf("the way back %s, want h1, then s4 and s5, then s3 s1 s2", got)
	}
}

// One that does not come back stops the ones behind it; a file cannot hide that a way is cut.
func TestInBandStops(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	f.net.Devices[0].Way = intent.Way{InBand: true, Hops: 2}
	f.net.Devices[1].Way = intent.Way{InBand: true, Hops: 1}
	p := f.plan(t)
	notes := ""
	for _, n := range Notes(p, false) {
		notes += n.Text + "\n"
	}
	if !strings.Contains(notes, "may cut our own way") || !strings.Contains(notes, "somebody has to go there") {
		t.Errorf("what the plan says:\n%s", notes)
	}
	f.boxes["s1"].onOpen = func(n int) error {
		if f.boxes["s1"].commits > 0 {
			return errLost
		}
		return nil
	}
	r := f.apply(t, p, 5)
	if r.Results[0].Outcome != Unknown || r.Results[1].Cause != NotStarted || f.boxes["s2"].commits > 0 {
		t.Errorf("%+v", r.Results)
	}

	f = newFabric(stateDir(t), "s1")
	f.net.Devices[0].Way = intent.Way{InBand: true, Hops: 1}
	p = f.plan(t)
	p.Device("s1").Cut = nil
	if err := f.e.Check(p, f.net, func(string) bool { return false }); err == nil {
		t.Error("a plan file that hides the cut fits the model")
	}
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 4 || f.writes() > 0 {
		t.Errorf("it is carried out: %+v, %v", r, err)
	}
}

// On a platform that nobody has tried, one device with little to lose begins, and the others wait until it was read back.
func TestUntriedPlatform(t *testing.T) {
	plan := func(f *fabric, lab bool) *Plan {
		for i := range f.net.Devices {
			f.net.Devices[i].Profile.Verified = false
		}
		f.boxes["s2"].running = render.Apply(f.wanted("s2", oldConfig()), changes("port p2 mtu 1400")) // one port at risk
		f.e.Parallel = 8
		p, err := f.e.Plan(context.Background(), f.net, PlanOptions{Lab: lab})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := ApplyOptions{AllowDisruptive: true, AcceptUnverified: true}
	f := newFabric(stateDir(t), "s1", "s2", "s3")
	p := plan(f, false)
	if got := len(p.waves(false)); got != 2 || p.waves(false)[0][0].Name != "s2" || len(p.waves(true)) != 1 {
		t.Errorf("%d waves", got)
	}
	said := Notes(p, false)
	if !strings.Contains(notesText(said), "s2: nobody has tried this platform") {
		t.Errorf("what the plan says: %s", notesText(said))
	}
	f.boxes["s2"].onCommit = on(1, fault{before: errLost})
	r, err := f.e.Apply(context.Background(), p, all)
	if ExitCode(r, err) != 1 || f.boxes["s1"].commits+f.boxes["s3"].commits > 0 || r.Results[0].Cause != NotStarted {
		t.Errorf("the others did not wait: %+v, %v", r, err)
	}
	f.boxes["s2"].onCommit = nil
	if r, err := f.e.Apply(context.Background(), plan(f, false), all); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := len(plan(newFabric(stateDir(t), "s1", "s2", "s3"), true).waves(false)); got != 1 {
		t.Errorf("a lab needs no care: %d waves", got)
	}
}

func notesText(notes []Note) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString(strings.Join(n.Devices, ", ") + ": " + n.Text + "\n")
	}
	return b.String()
}
