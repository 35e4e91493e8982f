package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// fatal is what a test and a property have in common.
type fatal interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// parse is the texts of a picture by their class, and the paths of its lines. The picture must be well-formed and hold no script
// and no reference.
func parse(t fatal, svg []byte) (texts map[string][]string, paths []string) {
	t.Helper()
	texts = map[string][]string{}
	var open []string
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts, paths
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			name := tok.Name.Local
			if !slices.Contains(strings.Fields("svg title desc style rect text line path circle"), name) {
				t.Errorf("unexpected element %s", name)
			}
			class := name
			for _, a := range tok.Attr {
				switch a.Name.Local {
				case "class":
					class = a.Value
				case "d":
					paths = append(paths, a.Value)
				case "href":
					t.Errorf("a reference in %s", name)
				}
				if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("unexpected attribute %s=%q of %s", a.Name.Local, a.Value, name)
				}
			}
			open = append(open, class)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if s := strings.TrimSpace(string(tok)); s != "" {
				at := open[len(open)-1]
				texts[at] = append(texts[at], s)
			}
		}
	}
}

// sample has everything that a chart can have.
func sample() Chart {
	x := []float64{0, 1e-3, 2e-3, 3e-3, 4e-3}
	return Chart{
		Title: "8:1 into host9", Caption: "a model's answer",
		X:     Axis{"time", Time},
		Spans: []Span{{"warm-up", 0, 1e-3}, {"storm of host3", 1.2e-3, 9}, {"before", -2, -1}},
		Panels: []Panel{
			{
				Y:      Axis{"queue", Bytes},
				Lines:  []Line{{"leaf1:downlink-9", x, []float64{0, 1.3e6, math.NaN(), 4e5, 0}}},
				Levels: []Level{{"pause", 9e6}, {"Kmax", 1.6e6}, {"Kmin", 4e5}},
			},
			{Y: Axis{"rate", Rate}, Lines: []Line{{"host1", x, []float64{1e11, 5e10, 2e10, 1e10, 1.25e10}}, {"host1", x, []float64{0, 0, 0, 0, 0}}}},
			{Y: Axis{"paused", Share}, Levels: []Level{{"ceiling", 0.01}}, Lines: []Line{{"leaf1:downlink-1", x, []float64{0, 0, 0, 0, 0}}}},
			{Y: Axis{"drops", Count}},
		},
	}
}

// TestSVG: the picture as it was looked at, in light and dark, at 640 and at 360 pixels.
func TestSVG(t *testing.T) {
	got := SVG(sample())
	const golden = "testdata/sample.svg"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestSVGSays: units follow the numbers, thresholds have their values, gaps are gaps, and what is not drawn is told.
func TestSVGSays(t *testing.T) {
	texts, paths := parse(t, SVG(sample()))
	for class, want := range map[string][]string{
		"axis":          {"queue, MB", "rate, Gbps", "paused, %", "drops"},
		"axis mid":      {"time, ms"},
		"caption":       {"a model's answer", "above what is drawn: pause 9MB"},
		"levelname end": {"Kmax 1.6MB", "Kmin 400KB", "ceiling 1%"},
		"legend":        {"leaf1:downlink-9", "host1", "leaf1:downlink-1"},
		"spanname":      {"warm-up", "storm of host3"},
		"caption mid":   {"nothing was measured"},
		"desc": {"queue of leaf1:downlink-9: 0B to 1.3MB; pause 9MB; Kmax 1.6MB; Kmin 400KB; rate of host1: 0bps to 100Gbps; " +
			"paused of leaf1:downlink-1: 0% to 0%; ceiling 1%"},
	} {
		if d := cmp.Diff(want, texts[class]); d != "" {
			t.Errorf("%s (-want +got)\n%s", class, d)
		}
	}
	if len(paths) != 4 || strings.Count(paths[0], "M") != 2 {
		t.Errorf("paths %q: want 4, the first in two pieces, since a point is missing", paths)
	}
}

// TestLevelsOutside: a threshold that has no room is told with the side on which it lies, in the words of a caption and not in red.
func TestLevelsOutside(t *testing.T) {
	c := Chart{X: Axis{"alpha", Factor}, Panels: []Panel{{
		Y: Axis{"J", Share}, Free: true, Levels: []Level{{"start", 0}, {"floor", -2}},
		Marks: []Marks{{X: []float64{.25, .5}, Y: []float64{-.5, -.6}}},
	}}}
	texts, _ := parse(t, SVG(c))
	if d := cmp.Diff([]string{"above what is drawn: start 0%", "below what is drawn: floor -200%"}, texts["caption"]); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestLevelNameAside: the name of a level gives way to points, to the line through them and to places, and a kind of points that there are none of is not in
// the legend.
func TestLevelNameAside(t *testing.T) {
	for _, c := range []struct {
		name   string
		x, y   []float64
		joined bool
		places []Place
		want   string
	}{
		{"points elsewhere", []float64{0, 5, 9}, []float64{.5, .01, -.5}, false, nil, "levelname end"},
		{"a point at the right", []float64{0, 9, 9}, []float64{.5, .01, -.5}, false, nil, "levelname"},
		{"points at both ends", []float64{0, 0, 9}, []float64{.5, .01, .01}, false, nil, "levelname"},
		{"a line at the right", []float64{0, 7.5, 9}, []float64{.5, .5, -.5}, true, nil, "levelname"},
		{"no line at the right", []float64{0, 7.5, 9}, []float64{.5, .5, -.5}, false, nil, "levelname end"},
		{"a place at the right", []float64{0, 9}, []float64{.5, -.5}, false, []Place{{"kept", 9}}, "levelname"},
	} {
		texts, _ := parse(t, SVG(Chart{X: Axis{"alpha", Factor}, Places: c.places, Panels: []Panel{{
			Y: Axis{"J", Share}, Free: true, Levels: []Level{{"start", 0}},
			Marks: []Marks{{Name: "tried"}, {Name: "breaks a limit", X: c.x, Y: c.y, Joined: c.joined}},
		}}}))
		if d := cmp.Diff([]string{"start 0%"}, texts[c.want]); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
		if d := cmp.Diff([]string{"breaks a limit"}, texts["legend"]); d != "" {
			t.Errorf("%s: legend (-want +got)\n%s", c.name, d)
		}
	}
}

// TestSVGIsText: what names hold cannot become an element, an attribute or a control character.
func TestSVGIsText(t *testing.T) {
	evil := `</text><script>alert(1)</script>"'&` + "\x00\x1b[2J\u202e\xff\ufffe]]>"
	c := sample()
	c.Title, c.Caption, c.X.Label = evil, evil, evil
	c.Spans[0].Name, c.Panels[0].Y.Label, c.Panels[0].Lines[0].Name, c.Panels[0].Levels[1].Name = evil, evil, evil, evil
	texts, _ := parse(t, SVG(c))
	if want := `</text><script>alert(1)</script>"'&` + "\ufffd\ufffd[2J\ufffd\ufffd\ufffd]]>"; !slices.Equal(texts["title"][:1], []string{want}) {
		t.Errorf("title %q, want %q", texts["title"], want)
	}
}

// TestTicks: round numbers in the unit that people would write.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		q      Quantity
		lo, hi float64
		unit   string
		want   string
	}{
		{Bytes, 0, 1.3e6, "MB", "0.0 0.5 1.0 1.5"},
		{Bytes, 0, 999, "B", "0 500 1000"},
		{Rate, 0, 4e11, "Gbps", "0 100 200 300 400"},
		{Rate, 0, 1.6e12, "Gbps", "0 500 1000 1500 2000"},
		{Rate, 0, 2.5e13, "Tbps", "0 10 20 30"},
		{Time, 0, 1e-2, "ms", "0 5 10"},
		{Time, 0, 3e-7, "ns", "0 100 200 300"},
		{Share, 0, 0.005, "%", "0.0 0.2 0.4 0.6"},
		{Share, 0, 1, "%", "0 50 100"},
		{Count, -3, 7, "", "-5 0 5 10"},
		{Count, 0, 0, "", "0.0 0.5 1.0"},
		{Count, 0, 1e12, "", "0 500000000000 1000000000000"},
	} {
		s := scaleOf(c.q, c.lo, c.hi, 4, true)
		_, texts := s.ticks()
		if got := strings.Join(texts, " "); s.unit.name != c.unit || got != c.want {
			t.Errorf("%v to %v: %s in %q, want %s in %q", c.lo, c.hi, got, s.unit.name, c.want, c.unit)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		q    Quantity
		v    float64
		want string
	}{
		{Bytes, 0, "0B"},
		{Bytes, 409_600, "410KB"},
		{Bytes, 1_250_000, "1.25MB"},
		{Bytes, -2500, "-2.5KB"},
		{Rate, 95.42e9, "95.4Gbps"},
		{Time, 1.5e-6, "1.5µs"},
		{Share, 0.123, "12.3%"},
		{Count, 12345, "12345"},
	} {
		if got := c.q.text(c.v); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

// TestPathKeepsExtremes: of many points in one column the highest and the lowest are drawn, and the file stays small.
func TestPathKeepsExtremes(t *testing.T) {
	var l Line
	for i := range 100_000 {
		y := 100.0
		switch i {
		case 41_234:
			y = 1000
		case 77_777:
			y = 0
		}
		l.X, l.Y = append(l.X, float64(i)), append(l.Y, y)
	}
	svg := SVG(Chart{X: Axis{"n", Count}, Panels: []Panel{{Y: Axis{"y", Count}, Lines: []Line{l}}}})
	_, paths := parse(t, svg)
	if len(svg) > 20_000 {
		t.Errorf("%d bytes", len(svg))
	}
	var ys []string
	for p := range strings.FieldsFuncSeq(paths[0], func(r rune) bool { return r == 'M' || r == 'L' }) {
		_, y, _ := strings.Cut(p, " ")
		ys = append(ys, y)
	}
	slices.Sort(ys)
	if ys = slices.Compact(ys); len(ys) != 3 {
		t.Errorf("%d heights %q are drawn, want the usual one, the peak and the dip", len(ys), ys)
	}
}

// TestSVGAlways: whatever the numbers, the picture is well-formed, has no number that is none, and is the same twice.
func TestSVGAlways(t *testing.T) {
	numbers := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e12), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(0.0))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		var x []float64
		for range n {
			x = append(x, rapid.Float64Range(-1, 1).Draw(t, "x"))
		}
		slices.Sort(x)
		c := Chart{Title: rapid.String().Draw(t, "title"), X: Axis{"x", Time}, Spans: []Span{{"s", rapid.Float64().Draw(t, "from"), rapid.Float64().Draw(t, "to")}}}
		for range rapid.IntRange(0, 3).Draw(t, "panels") {
			p := Panel{Y: Axis{rapid.String().Draw(t, "label"), Quantity(rapid.IntRange(0, int(Share)).Draw(t, "of"))}}
			for range rapid.IntRange(0, 20).Draw(t, "lines") {
				p.Lines = append(p.Lines, Line{rapid.StringN(0, 9, 99).Draw(t, "name"), x, rapid.SliceOfN(numbers, 0, n+1).Draw(t, "y")})
			}
			p.Levels = []Level{{rapid.String().Draw(t, "level"), rapid.Float64Range(-1e13, 1e13).Draw(t, "at")}}
			c.Panels = append(c.Panels, p)
		}
		svg := SVG(c)
		parse(t, svg)
		if !bytes.Equal(svg, SVG(c)) {
			t.Errorf("not the same twice")
		}
	})
}
