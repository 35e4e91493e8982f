package profiles

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

// TestStartingPoint: the point fits the speed and the buffer; a speed without one is scaled, and called a guess.
func TestStartingPoint(t *testing.T) {
	for _, x := range []struct {
		speed        units.BitRate
		buffer       units.Bytes
		id           string
		kmin         units.Bytes
		label, alpha Label
	}{
		{25 * units.Gbps, 16 * units.MB, "25g", 100 * units.KB, LabelPublished, LabelPublished},
		{100 * units.Gbps, 0, "100g-shallow-16MB", 150 * units.KB, LabelPublished, LabelPublished},
		{100 * units.Gbps, 12 * units.MB, "100g-shallow-16MB", 150 * units.KB, LabelPublished, LabelPublished},
		{100 * units.Gbps, 42 * units.MB, "100g-hpcc", 400 * units.KB, LabelPublished, LabelPublished},
		{400 * units.Gbps, 113 * units.MB, "400g", 800 * units.KB, LabelExtrapolated, LabelGuess},
		{400 * units.Gbps, 165_200_000, "400g-sonic", units.MiB, LabelPublished, LabelPublished},
		{800 * units.Gbps, 0, "800g", 1600 * units.KB, LabelGuess, LabelGuess},
		{1600 * units.Gbps, 0, "800g-scaled", 3200 * units.KB, LabelGuess, LabelGuess},
		{units.Gbps, 0, "10g-scaled", 4 * units.KB, LabelGuess, LabelGuess},
		{150 * units.Gbps, 12 * units.MB, "100g-shallow-16MB-scaled", 225 * units.KB, LabelGuess, LabelGuess},
		{150 * units.Gbps, 42 * units.MB, "100g-hpcc-scaled", 600 * units.KB, LabelGuess, LabelGuess},
		{0, 0, "", 0, "", ""},
	} {
		s := StartingPoint(x.speed, x.buffer)
		if s.ID != x.id || s.Kmin != x.kmin || s.Ramp.Label != x.label || s.AlphaFrom.Label != x.alpha {
			t.Errorf("%s with %s: %+v, want %+v", x.speed, x.buffer, s, x)
		}
	}
	huge := StartingPoint(1<<62, 1<<62)
	if tiny := StartingPoint(1, 0); tiny.Kmin <= 0 || huge.Kmin <= 0 {
		t.Errorf("of 1bps %v, of the fastest %v", tiny, huge)
	}
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sonic/sn5600": "400g", "sonic/7060x6-64pe": "400g-sonic", "sonic/z9332f": "400g", "eos/7280r3": "400g-sonic"} {
		p, _ := c.Platform(name)
		if s := p.Start(400 * units.Gbps); s.ID != want {
			t.Errorf("%s starts at %s, want %s", name, s.ID, want)
		}
	}
	for name, want := range map[string]string{
		"sonic/sn5600": "1 published: headroom table of sonic/sn5600", "sonic/z9332f": "1/4 published: headroom table of sonic/z9332f",
		"sonic/sn5400": "1/2 guess: between 1/8 (Azure) and 1 (SONiC)", "sonic/7800r3a-36d2": "1/32 published: headroom table of sonic/7800r3a-36d2",
	} {
		p, _ := c.Platform(name)
		s := p.Start(400 * units.Gbps)
		if got := s.Alpha.String() + " " + s.AlphaFrom.String(); got != want || less(s.Alpha, s.AlphaLo) || less(s.AlphaHi, s.Alpha) {
			t.Errorf("%s starts with alpha %s (%s to %s), want %s", name, got, s.AlphaLo, s.AlphaHi, want)
		}
	}
}

// TestStartOfAnotherSpeed: a table that has no row for a speed still says at which alpha its makers have the platform pause.
func TestStartOfAnotherSpeed(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := c.Platform("sonic/z9332f")
	s := p.Start(200 * units.Gbps)
	if got, want := s.Alpha.String()+" "+s.AlphaFrom.String(), "1/4 extrapolated: headroom table of sonic/z9332f, which has other speeds"; got != want {
		t.Errorf("alpha %s, want %s", got, want)
	}
}

// TestStartingData: every value has a source and a known label, every ramp is sound, and the order is that of the search.
func TestStartingData(t *testing.T) {
	ss := StartingPoints()
	if len(ss) < 10 || len(PublishedECN()) < 14 {
		t.Fatalf("%d points, %d settings", len(ss), len(PublishedECN()))
	}
	for _, s := range ss {
		for _, b := range []Behind{s.Ramp, s.PmaxFrom, s.AlphaFrom} {
			if !slices.Contains([]Label{LabelPublished, LabelExtrapolated, LabelGuess}, b.Label) || b.Source == "" {
				t.Errorf("%s: %q", s.ID, b)
			}
		}
		if s.Kmin <= 0 || s.Kmax <= s.Kmin || s.Pmax <= 0 || s.Alpha.Den == 0 || s.AlphaLo.Den == 0 || s.AlphaHi.Den == 0 {
			t.Errorf("%s: %+v", s.ID, s)
		}
	}
	if !slices.IsSortedFunc(ss, func(a, b Start) int {
		return int((a.Speed-b.Speed)/units.Mbps)*1000 + int((a.Buffer-b.Buffer)/units.MB)
	}) {
		t.Error("the points do not ascend by speed and buffer")
	}
	for _, p := range PublishedECN() {
		if p.ID == "" || p.Source == "" || p.Kmin <= 0 || p.Kmax < p.Kmin || p.To < p.From {
			t.Errorf("%+v", p)
		}
	}
}

// TestReferenceStarts compares with the reference tables: the same ids, thresholds and bounds.
func TestReferenceStarts(t *testing.T) {
	var want struct {
		Points []struct {
			ID     string
			Speed  int        `yaml:"speed_gbps"`
			Start  float64    `yaml:"alpha_start"`
			Bounds [2]float64 `yaml:"alpha_bounds"`
			Kmin   plainNumber
			Kmax   plainNumber
			Pmax   float64
		} `yaml:"starting_points"`
		Settings []struct {
			ID    string
			Speed string      `yaml:"speed_gbps"`
			Kmin  plainNumber `yaml:"kmin_bytes"`
			Kmax  plainNumber `yaml:"kmax_bytes"`
			Pmax  string
		}
	}
	for _, name := range []string{"reference/starting_points.yaml", "reference/ecn_published.yaml"} {
		b, err := os.ReadFile(witness.Reference(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
	}
	witness.Agree(t, "starting_points.yaml", len(want.Points))
	witness.Agree(t, "ecn_published.yaml", len(want.Settings))
	ratio := func(r units.Ratio) float64 { return float64(r.Num) / float64(r.Den) }
	for _, w := range want.Points {
		i := slices.IndexFunc(StartingPoints(), func(s Start) bool { return s.ID == w.ID })
		if i < 0 {
			t.Errorf("%s is missing", w.ID)
			continue
		}
		s := StartingPoints()[i]
		if int(s.Speed/units.Gbps) != w.Speed || int(s.Kmin) != int(w.Kmin) || int(s.Kmax) != int(w.Kmax) || float64(s.Pmax)/float64(100*units.OnePercent) != w.Pmax ||
			ratio(s.Alpha) != w.Start || ratio(s.AlphaLo) != w.Bounds[0] || ratio(s.AlphaHi) != w.Bounds[1] {
			t.Errorf("%s: %+v, want %+v", w.ID, s, w)
		}
	}
	for _, w := range want.Settings {
		i := slices.IndexFunc(PublishedECN(), func(s Setting) bool { return s.ID == w.ID })
		if i < 0 {
			t.Errorf("%s is missing", w.ID)
			continue
		}
		s := PublishedECN()[i]
		speed := fmt.Sprintf("%d-%d", s.From/units.Gbps, s.To/units.Gbps)
		if s.From == s.To {
			speed = fmt.Sprint(int(s.From / units.Gbps))
		}
		if s.From == 0 {
			speed = "any"
		}
		pmax := 0.0
		if _, err := fmt.Sscan(w.Pmax, &pmax); err != nil && !strings.HasPrefix(w.Pmax, "not stated") {
			t.Fatal(err)
		}
		if speed != w.Speed || int(s.Kmin) != int(w.Kmin) || int(s.Kmax) != int(w.Kmax) || float64(s.Pmax)/float64(100*units.OnePercent) != pmax {
			t.Errorf("%s: %+v, want %+v", w.ID, s, w)
		}
	}
	if len(want.Points) != 6 || len(want.Settings) != 14 {
		t.Errorf("%d points and %d settings were compared", len(want.Points), len(want.Settings))
	}
}

// plainNumber is a plain number of the reference.
type plainNumber int
