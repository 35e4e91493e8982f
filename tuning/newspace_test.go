package tuning_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

var update = flag.Bool("update", false, "write the golden files")

// fabric is a model of the examples.
func fabric(t testing.TB, dir string, files ...string) *model.Fabric {
	t.Helper()
	f, found := model.Load(os.DirFS(filepath.Join("../examples", dir)), files...)
	if found.HasErrors() {
		t.Fatal(found)
	}
	return f
}

// space is the space of a fabric, and what was found as text.
func space(t testing.TB, f *model.Fabric, o tuning.SpaceOptions) (*tuning.Space, string) {
	t.Helper()
	s, found := tuning.NewSpace(f, o)
	return s, said(found)
}

func said(l diag.List) string {
	var b strings.Builder
	for _, f := range l {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func change(s *tuning.Space, x tuning.Setting) string {
	var parts []string
	c := s.Change(x)
	for _, e := range c.Patch {
		parts = append(parts, e.Path+"="+e.Value)
	}
	for _, a := range c.External {
		parts = append(parts, fmt.Sprintf("%s=%g", a.Variable, a.Value))
	}
	return strings.Join(parts, " ")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// TestSpaces: what can be moved of the examples, from where to where, what formulas give, and what each of it writes.
func TestSpaces(t *testing.T) {
	var b strings.Builder
	for _, x := range []struct {
		dir     string
		options tuning.SpaceOptions
	}{
		{"small", tuning.SpaceOptions{}},
		{"small", tuning.SpaceOptions{Scope: "leaf", FanIn: 8}},
		{"small", tuning.SpaceOptions{Variables: []string{"kmax@leaf", "kmax@spine", "bandwidth", "headroom", "xon-offset"}}},
		{"rail8", tuning.SpaceOptions{}},
		{"mixed", tuning.SpaceOptions{}},
		{"storage-and-training", tuning.SpaceOptions{Class: "storage"}},
		{"three-tier", tuning.SpaceOptions{Workload: observe.Workload{Parts: []observe.Part{{Kind: observe.Incast, N: 8}}}}},
	} {
		files := []string{"fabric.yaml"}
		if x.dir == "three-tier" {
			files = append(files, "edge-box.yaml")
		}
		f := fabric(t, x.dir, files...)
		s, found := tuning.NewSpace(f, x.options)
		fmt.Fprintf(&b, "# %s %+v\n%s", x.dir, x.options, said(found))
		for i, v := range s.Vars {
			fmt.Fprintf(&b, "%s is %s, %s to %s:", v.Name, s.Text(i, s.Base[i]), s.Text(i, v.Low), s.Text(i, v.High))
			for _, r := range v.Ladder {
				fmt.Fprintf(&b, " %s", s.Text(i, r))
			}
			fmt.Fprintf(&b, "\n    %s\n", strings.Join(v.Paths, " "))
		}
		if found.HasErrors() {
			continue
		}
		if s.Unmarked != nil {
			fmt.Fprintf(&b, "PFC alone: %s\n", change(s, s.Unmarked(s.Base)))
		}
		for _, st := range s.Starts(s.Base) {
			fmt.Fprintf(&b, "%s\n    %s\n    %s\n", st.Name, st.Why, change(s, st.Setting))
			if l := s.Check(st.Setting); len(l) > 0 {
				fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(strings.TrimSpace(said(l)), "\n", "\n    "))
			}
		}
		fmt.Fprintln(&b)
	}
	golden(t, "spaces.golden", b.String())
}

// TestChange: what stands as in the model is not written, the ramp is written as a whole, and kmin follows kmax.
func TestChange(t *testing.T) {
	s, _ := space(t, fabric(t, "small", "fabric.yaml"), tuning.SpaceOptions{})
	if got := change(s, s.Base); got != "" {
		t.Errorf("what there is writes %s", got)
	}
	for _, x := range []struct {
		setting tuning.Setting
		want    string
	}{
		{tuning.Setting{1.0 / 8, 3.2e6, 0.25, 0.2}, "classes.training.pfc.xoff.alpha=1/8"},
		{tuning.Setting{0.5, 1.6e6, 0.25, 0.2}, "classes.training.ecn.kmin=400KB classes.training.ecn.kmax=1.6MB"},
		{tuning.Setting{0.5, 3.2e6, 0.5, 0.2}, "classes.training.ecn.kmin=1.6MB"},
		{tuning.Setting{0.5, 3.2e6, 0.25, 1}, "classes.training.ecn.pmax=100%"},
		{tuning.Setting{4, 1e5, 0.02, 0.01}, "classes.training.ecn.kmin=2000B classes.training.ecn.kmax=100KB classes.training.ecn.pmax=1% classes.training.pfc.xoff.alpha=4"},
	} {
		if got := change(s, x.setting); got != x.want {
			t.Errorf("%v writes %q, want %q", x.setting, got, x.want)
		}
	}
}

// TestNormal: values are within their ranges, and as devices have them; what the model has is not rounded.
func TestNormal(t *testing.T) {
	s, _ := space(t, fabric(t, "small", "fabric.yaml"), tuning.SpaceOptions{})
	for _, x := range []struct{ in, want tuning.Setting }{
		{s.Base, s.Base},
		{tuning.Setting{0.2, 1234567, 0.12345, 0.1234}, tuning.Setting{0.25, 1.23e6, 0.123, 0.12}},
		{tuning.Setting{100, 1e12, 7, 7}, tuning.Setting{4, 25.6e6, 0.9, 1}},
		{tuning.Setting{0, 0, 0, 0}, tuning.Setting{1.0 / 64, 1e5, 0.02, 0.01}},
		{tuning.Setting{0.5, 3.2e6 * 1.25 * 0.8, 0.25, 0.2 * 1.25}, tuning.Setting{0.5, 3.2e6, 0.25, 0.25}},
	} {
		if d := cmp.Diff(x.want, s.Normal(x.in)); d != "" {
			t.Errorf("%v (-want +got):\n%s", x.in, d)
		}
		if again := s.Normal(s.Normal(x.in)); again.Key() != s.Normal(x.in).Key() {
			t.Errorf("%v: %v becomes %v", x.in, s.Normal(x.in), again)
		}
	}
	off := s.Unmarked(s.Base)
	if got := s.Normal(off); got.Key() != off.Key() {
		t.Errorf("PFC alone, %v, becomes %v", off, got)
	}
}

// TestCheck: what lint calls an error is never tried, and PFC alone may be.
func TestCheck(t *testing.T) {
	s, found := space(t, fabric(t, "small", "fabric.yaml"), tuning.SpaceOptions{})
	if found != "" {
		t.Error(found)
	}
	for _, x := range []struct {
		setting tuning.Setting
		want    string
	}{
		{s.Base, ""},
		{tuning.Setting{1.0 / 64, 25.6e6, 0.9, 1}, "ecn-never-marks: kmin 23MB of class training is never reached"},
		{s.Unmarked(s.Base), ""},
		{s.Unmarked(tuning.Setting{1.0 / 64, 25.6e6, 0.9, 1}), ""},
		{tuning.Setting{1}, "the setting has 1 value, and the space 4 variables"},
	} {
		for range 2 { // the second time from memory
			if got := said(s.Check(x.setting)); !strings.Contains(got, x.want) || (got == "") != (x.want == "") {
				t.Errorf("%v: %q, want %q", x.setting, got, x.want)
			}
		}
	}
}

// TestSpaceRefused: what cannot be moved is said, with what to do.
func TestSpaceRefused(t *testing.T) {
	for _, x := range []struct {
		dir     string
		options tuning.SpaceOptions
		want    string
	}{
		{"small", tuning.SpaceOptions{Class: "trainig"}, "there is no class trainig\n    hint: there are training, cnp, default"},
		{"small", tuning.SpaceOptions{Class: "cnp"}, "class cnp is lossy"},
		{"mixed", tuning.SpaceOptions{}, "training and storage are lossless, and one is tuned at a time\n    hint: --class training"},
		{"small", tuning.SpaceOptions{Variables: []string{"kmin"}}, "there is no variable kmin\n    hint: kmin follows kmax, and is moved as kmin/kmax"},
		{"small", tuning.SpaceOptions{Variables: []string{"kmax\x1b[31m"}}, "there is no variable"},
		{"small", tuning.SpaceOptions{Variables: []string{"kmax", "kmax"}}, "the variable kmax is named twice"},
		{"small", tuning.SpaceOptions{Variables: []string{"xoff"}}, "xoff cannot be moved: xoff is alpha 1/2 of what is free there, and not a size\n    hint: name alpha in its place"},
		{"small", tuning.SpaceOptions{Scope: "lef"}, "there is no role and no device lef\n    hint: there are host, leaf, spine, and devices by name"},
		{"small", tuning.SpaceOptions{Scope: "host"}, "alpha cannot be moved: it is a variable of switches, and there are none in the scope host"},
		{"small", tuning.SpaceOptions{Variables: []string{"cc.ai_rate"}, Scope: "leaf"}, "cc.ai_rate cannot be moved: it is a variable of hosts, and there are none in the scope leaf\n    hint: write cc.ai_rate@host"},
		{"small", tuning.SpaceOptions{Variables: []string{"weight"}}, "the class has no weight\n    hint: name bandwidth in its place"},
		{"small", tuning.SpaceOptions{Variables: []string{"cc.ai_rate"}}, "the model leaves it as it is on the hosts, so that nobody could bring it back\n    hint: write what the NICs have now"},
		{"three-tier", tuning.SpaceOptions{Variables: []string{"alpha"}}, "fabricctl does not write buffers of eos/7060x6"},
	} {
		files := []string{"fabric.yaml"}
		if x.dir == "three-tier" {
			files = append(files, "edge-box.yaml")
		}
		_, found := tuning.NewSpace(fabric(t, x.dir, files...), x.options)
		if got := said(found); !strings.Contains(got, x.want) || !found.HasErrors() || strings.Contains(got, "\x1b") {
			t.Errorf("%+v: %q, want %q", x.options, got, x.want)
		}
	}
}

// TestFanIn: how many ports of a leaf a load comes in by towards one host.
func TestFanIn(t *testing.T) {
	net, _ := intent.Resolve(fabric(t, "small", "fabric.yaml")) // 8 hosts and 2 uplinks
	leaf := net.Device("leaf1")
	for text, want := range map[string]int{
		"single":                      0,
		"incast:4":                    4,
		"incast:16":                   9,
		"incast":                      9,
		"incast:8,across":             2,
		"alltoall:4,bytes=1MB":        3,
		"alltoall,bytes=1MB":          9,
		"permutation + incast:5":      5,
		"incast:2 + incast:7":         7,
		"ring:4,bytes=1MB + victim:2": 0,
	} {
		w, err := observe.ParseWorkload(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tuning.FanIn(w, leaf); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
