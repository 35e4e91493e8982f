package tuning_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/tuning"
)

// changed is the small example with other words in it: pairs of what is there and what is in its place.
func changed(t testing.TB, pairs ...string) *model.Fabric {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../examples/small/fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(b), pairs[i]) {
			t.Fatalf("the example has no %q", pairs[i])
		}
	}
	text := strings.NewReplacer(pairs...).Replace(string(b))
	f, found := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(text)}}, "fabric.yaml")
	if found.HasErrors() {
		t.Fatal(found)
	}
	return f
}

// TestOtherVariables: what the less usual variables write.
func TestOtherVariables(t *testing.T) {
	hosts := []string{"nccl: {class", "hosts: {congestion: {parameters: {ai_rate: 5Mbps, hai_rate: 50Mbps, time_reset: 300us, min_dec_fac: 50%, clamp_tgt_rate: false, gd: 11}}}\nnccl: {class"}
	weights := []string{"bandwidth: 60%", "weight: 6", "bandwidth: 40%", "weight: 4"}
	own := []string{"xon: auto}", "xon_offset: 40KB, reserved: 20KB}"}
	for _, x := range []struct {
		variable string
		pairs    []string
		to       float64
		want     string
	}{
		{"bandwidth", nil, 0.25, "classes.training.bandwidth=25% classes.default.bandwidth=75%"},
		{"bandwidth", nil, 0.999, "classes.training.bandwidth=95% classes.default.bandwidth=5%"},
		{"bandwidth@leaf", nil, 0.25, "overrides.leaf.classes.training.bandwidth=25% overrides.leaf.classes.default.bandwidth=75%"},
		{"weight", weights, 17.4, "classes.training.weight=17"},
		{"headroom", nil, 1e9, "classes.training.pfc.headroom=1449984B"},
		{"headroom@leaf", nil, 0, "overrides.leaf.classes.training.pfc.headroom=362496B"},
		{"xon-offset", own, 81e3, "classes.training.pfc.xon_offset=81024B"},
		{"cc.ai_rate", hosts, 20e6, "hosts.congestion.parameters.ai_rate=20Mbps"},
		{"cc.ai_rate@host", hosts, 20.4e6, "overrides.host.hosts.congestion.parameters.ai_rate=20Mbps"},
		{"cc.ai_rate@host3", hosts, 20e6, "overrides.host.devices.host3.hosts.congestion.parameters.ai_rate=20Mbps"},
		{"cc.time_reset", hosts, 1e-4, "hosts.congestion.parameters.time_reset=100us"},
		{"cc.min_dec_fac", hosts, 0.751, "hosts.congestion.parameters.min_dec_fac=75%"},
		{"cc.clamp_tgt_rate", hosts, 1, "hosts.congestion.parameters.clamp_tgt_rate=true"},
		{"cc.gd", hosts, 5.6, "hosts.congestion.parameters.gd=6"},
		{"kmax@leaf1", nil, 1e6, "overrides.leaf.devices.leaf1.classes.training.ecn.kmin=250KB overrides.leaf.devices.leaf1.classes.training.ecn.kmax=1MB overrides.leaf.devices.leaf1.classes.training.ecn.pmax=20%"},
	} {
		f := changed(t, x.pairs...)
		s, found := space(t, f, tuning.SpaceOptions{Variables: []string{x.variable}})
		if strings.Contains(found, "error") {
			t.Errorf("%s: %s", x.variable, found)
			continue
		}
		y := s.Normal(tuning.Setting{x.to})
		if got := change(s, y); got != x.want {
			t.Errorf("%s to %v writes %q, want %q", x.variable, x.to, got, x.want)
		}
		if l := s.Check(y); len(l) > 0 {
			t.Errorf("%s to %v: %s", x.variable, x.to, said(l))
		}
		if got := change(s, s.Normal(s.Base)); got != "" {
			t.Errorf("%s as it is writes %q", x.variable, got)
		}
	}
}

// TestStartingValues: where nobody chose a ramp, the baseline stays so, and a moved one is whole.
func TestStartingValues(t *testing.T) {
	s, found := space(t, changed(t, "    ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}\n", ""), tuning.SpaceOptions{Variables: []string{"pmax"}})
	if got := change(s, s.Base); got != "" {
		t.Errorf("as it is writes %q; %s", got, found)
	}
	if got := change(s, tuning.Setting{1}); !strings.Contains(got, "ecn.kmin=") || !strings.Contains(got, "ecn.kmax=") || !strings.HasSuffix(got, "ecn.pmax=100%") {
		t.Errorf("a moved ramp is %q", got)
	}
}

// TestECNOff: without ECN only alpha is left.
func TestECNOff(t *testing.T) {
	f := changed(t, "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}", "ecn: off")
	s, found := space(t, f, tuning.SpaceOptions{})
	if len(s.Vars) != 1 || s.Vars[0].Name != "alpha" || s.Unmarked != nil || !strings.Contains(found, "kmax is not moved: the class has ecn: off") {
		t.Errorf("%d variables; %s", len(s.Vars), found)
	}
	if starts := s.Starts(s.Base); len(starts) > 0 {
		t.Errorf("starts without a ramp: %v", starts)
	}
}

// TestSpaceProperties: whatever is asked for, a setting comes to rest, is within its ranges, gives a model that loads, whose ramp is in order
// and whose values are those of the setting; and what formulas give may be tried.
func TestSpaceProperties(t *testing.T) {
	for _, dir := range []string{"small", "rail8", "bench-ap", "bench-b", "bench-c"} {
		files := []string{"fabric.yaml"}
		if _, err := os.Stat(filepath.Join("../examples", dir, "bench-box.yaml")); err == nil {
			files = append(files, "bench-box.yaml")
		}
		f := fabric(t, dir, files...)
		s, found := tuning.NewSpace(f, tuning.SpaceOptions{})
		if found.HasErrors() {
			t.Fatal(found)
		}
		rapid.Check(t, func(r *rapid.T) {
			x := make(tuning.Setting, len(s.Vars))
			for i, v := range s.Vars {
				x[i] = rapid.Float64Range(v.Low/4, v.High*4).Draw(r, v.Name)
			}
			y := s.Normal(x)
			if again := s.Normal(y); again.Key() != y.Key() {
				r.Fatalf("%v becomes %v", y, again)
			}
			for i, v := range s.Vars {
				if y[i] < v.Low || y[i] > v.High {
					r.Fatalf("%s is %v, not from %v to %v", v.Name, y[i], v.Low, v.High)
				}
			}
			g, found := f.With(s.Change(y).Patch)
			if found.HasErrors() {
				r.Fatalf("%v: %v", y, found)
			}
			c := g.Classes[0]
			if c.ECN.Kmin.V <= 0 || c.ECN.Kmin.V > c.ECN.Kmax.V || float64(c.ECN.Kmax.V) != y[1] || c.Xoff.Alpha.V.String() != s.Text(0, y[0]) || c.ECN.Pmax.V.String() != s.Text(3, y[3]) {
				r.Fatalf("%v becomes %s to %s, pmax %s, alpha %s", y, c.ECN.Kmin.V, c.ECN.Kmax.V, c.ECN.Pmax.V, c.Xoff.Alpha.V)
			}
			bare := s.Unmarked(y)
			if l := s.Check(bare); len(l) > 0 {
				r.Fatalf("%v without marks: %s", y, said(l))
			}
			for _, start := range s.Starts(y) {
				if l := s.Check(start.Setting); len(l) > 0 {
					r.Fatalf("from %v, %s: %s", y, start.Name, said(l))
				}
			}
		})
	}
}

// TestCheckIsLint: the rules that Check asks find each error that all rules find.
func TestCheckIsLint(t *testing.T) {
	for _, dir := range []string{"small", "storage-and-training", "rail8"} {
		f := fabric(t, dir, "fabric.yaml")
		s, found := tuning.NewSpace(f, tuning.SpaceOptions{Class: f.Classes[0].Name, Variables: []string{"alpha", "kmax", "kmin/kmax", "pmax", "headroom", "bandwidth"}})
		if found.HasErrors() {
			t.Fatal(found)
		}
		base, _ := intent.Resolve(f)
		before := lint.Weigh(base, lint.Check(base, f))
		bad := 0
		rapid.Check(t, func(r *rapid.T) {
			x := make(tuning.Setting, len(s.Vars))
			for i, v := range s.Vars {
				x[i] = v.Low * math.Pow(v.High/v.Low, rapid.Float64Range(0, 1).Draw(r, v.Name))
			}
			x = s.Normal(x)
			g, more := f.With(s.Change(x).Patch)
			if !more.HasErrors() {
				net, l := intent.Resolve(g)
				more = append(append(more, l...), lint.Weigh(net, lint.Check(net, g))...)
			}
			had := map[string]bool{}
			for _, f := range before {
				had[f.Rule] = had[f.Rule] || f.Severity == diag.Error
			}
			more = slices.DeleteFunc(more, func(f diag.Finding) bool { return f.Severity != diag.Error || had[f.Rule] })
			if len(more) > 0 {
				bad++
			}
			if d := cmp.Diff(said(more), said(s.Check(x))); d != "" {
				r.Fatalf("%v (-all rules +Check):\n%s", x, d)
			}
		})
		t.Logf("%s: %d settings are refused", dir, bad)
	}
}

// TestUnmarked: no queue of the class can hold what would be marked.
func TestUnmarked(t *testing.T) {
	f := fabric(t, "small", "fabric.yaml")
	s, _ := tuning.NewSpace(f, tuning.SpaceOptions{})
	g, found := f.With(s.Change(s.Unmarked(s.Base)).Patch)
	if found.HasErrors() {
		t.Fatal(found)
	}
	net, _ := intent.Resolve(g)
	for i := range net.Devices {
		d := &net.Devices[i]
		for j := range d.Policies {
			if e := d.Policies[j].Queues[3].ECN; !d.Host && e.On && (e.Kmin != e.Kmax || e.Kmin <= d.Profile.Chip.Buffer) {
				t.Errorf("%s: %s to %s of %s", d.Name, e.Kmin, e.Kmax, d.Profile.Chip.Buffer)
			}
		}
	}
	part, _ := tuning.NewSpace(f, tuning.SpaceOptions{Scope: "leaf"})
	if part.Unmarked != nil {
		t.Error("the spines would mark all the same")
	}
	both, l := tuning.NewSpace(f, tuning.SpaceOptions{Variables: []string{"kmax@leaf", "kmin/kmax@leaf", "kmax@spine", "kmin/kmax@spine"}})
	if both.Unmarked == nil || l.HasErrors() {
		t.Error("leaves and spines are all there is", l)
	}
}

// BenchmarkCheck is what the first look at a setting costs; the others are from memory.
func BenchmarkCheck(b *testing.B) {
	for _, dir := range []string{"small", "bench-ap"} {
		files := []string{"fabric.yaml"}
		if dir == "bench-ap" {
			files = append(files, "bench-box.yaml")
		}
		f := fabric(b, dir, files...)
		s, _ := tuning.NewSpace(f, tuning.SpaceOptions{})
		n := 0
		b.Run(dir, func(b *testing.B) {
			for b.Loop() {
				n++
				x := append(tuning.Setting{}, s.Base...)
				x[1] += float64(n) * 1000
				if l := s.Check(x); l.HasErrors() {
					b.Fatal(l)
				}
			}
		})
	}
}

// TestStaticXoff: where xoff is a size, it takes alpha's place, from half of the pool down, and formulas count with it.
func TestStaticXoff(t *testing.T) {
	s, found := space(t, changed(t, "xoff: {alpha: 1/2}, headroom: auto, xon: auto", "xoff: 2MB, headroom: auto, xon_offset: 20KB, reserved: 20KB"), tuning.SpaceOptions{FanIn: 8})
	if len(s.Vars) != 4 || s.Vars[0].Name != "xoff" {
		t.Fatal(found)
	}
	x := s.Vars[0]
	if s.Base[0] != 2e6 || x.Low >= 20e3 || s.Text(0, x.High) != "33.9MB" || len(x.Ladder) < 8 {
		t.Errorf("xoff is %s, from %s to %s by %v", s.Text(0, s.Base[0]), s.Text(0, x.Low), s.Text(0, x.High), x.Ladder)
	}
	if got := change(s, s.Normal(tuning.Setting{1e6, 3.2e6, 0.25, 0.2})); got != "classes.training.pfc.xoff=999936B" {
		t.Errorf("half of it writes %q", got)
	}
	starts := s.Starts(s.Base)
	if len(starts) != 20 || starts[1].Name != "0.7 N T_N, steep, xoff 2MB" || starts[1].Why != "kmax 0.7 x 16MB, where 8 ports with xoff 2MB pause together" || starts[1].Setting[1] != 11.2e6 {
		t.Errorf("%d starts, the second %+v", len(starts), starts[1])
	}
}
