package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ladder is points with intervals over a logarithmic axis, of all that a chart with points can have.
func ladder() Chart {
	x := []float64{25e3, 100e3, 400e3, 1.6e6, 6.4e6}
	return Chart{
		Title: "kmax, first cycle", Caption: "Bars are 99 % intervals.", X: Axis{"kmax", Bytes}, LogX: true,
		Places: []Place{{"start", 400e3}, {"chosen", 1.6e6}},
		Panels: []Panel{
			{Y: Axis{"J against the start", Share}, Free: true, Levels: []Level{{"start", 0}, {"far", 7}}, Marks: []Marks{
				{Name: "tried", Joined: true, X: x, Y: []float64{-.12, -.05, 0, .041, .01}, Low: []float64{math.Inf(-1), -.07, math.NaN(), .029, -.01}, High: []float64{-.1, -.03, math.NaN(), .053, .03}},
			}},
			{Y: Axis{"goodput", Rate}, Free: true, Marks: []Marks{{Name: "tried", Joined: true, X: x, Y: []float64{150e9, 160e9, 170e9, 178e9, math.NaN()}}}},
			{Y: Axis{"p99.9", Time}, LogY: true, Tall: true, Marks: []Marks{
				{Name: "arms", X: x, Y: []float64{90e-6, 100e-6, 140e-6, 169e-6, 2e-3}},
				{Name: "front", Joined: true, X: x[1:4], Y: []float64{100e-6, 140e-6, 169e-6}},
				{Name: "start", Big: true, X: x[2:3], Y: []float64{140e-6}},
				{Name: "chosen", Big: true, X: x[3:4], Y: []float64{169e-6}},
			}},
		},
	}
}

func samplePage() Page {
	return Page{
		Title: "Tuning of class training", Subtitle: "bench-ap, run 20261130T090000-1",
		Answer: Answer{Tone: Good, Head: "Set kmax to 1.6MB.", Text: []string{"It gains 4.1 % J (2.9 to 5.3 at 99 %)."}},
		Facts:  []Fact{{"goodput", "178Gbps", "170Gbps before"}, {"p99.9", "169µs", ""}},
		Sections: []Section{
			{"What was tried", []Block{Text("One variable at a time."), List{"kmax", "alpha"}, Picture{ladder(), Table{
				Head: []string{"kmax", "J"}, Numbers: []int{0, 1}, Rows: []Row{{Cells: []string{"400KB", "0"}}, {Cells: []string{"1.6MB", "+4.1 %"}, Strong: true}},
			}}}},
			{"Decisions", []Block{Log{
				{Head: "kmax 400KB to 1.6MB", Tag: "better", Tone: Good, Text: "Beyond doubt.", Facts: []string{"12 runs", "3 looks"}},
				{Head: "pmax", Tag: "no effect"},
			}}},
			{"Change", []Block{Code{"diff", "--- a/fabric.yaml\n+++ b/fabric.yaml\n-kmax: 400KB\n+kmax: 1.6MB\n"}}},
			{"Empty", []Block{List{}, Log{}, Table{}, Picture{Chart: Chart{Title: "nothing"}}}},
		},
		Foot: "fabricctl",
	}
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got)\n%s", name, d)
	}
}

// TestPage: the page as it was looked at, in a browser by day and by night, at 1280 and 390 pixels, and on paper.
func TestPage(t *testing.T) {
	golden(t, "page.html", HTML(samplePage()))
	golden(t, "page.md", Markdown(samplePage()))
	golden(t, "ladder.svg", SVG(ladder()))
}

// safe checks that a page is well-formed, holds no script, and refers to nothing outside.
func safe(t fatal, html []byte) (ids []string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(html))
	allowed := strings.Fields("html head meta title style body main header footer nav section h1 h2 p div dl dt dd ol ul li a span table caption thead tbody tr th td figure " +
		"details summary pre code svg desc rect text line path circle")
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return ids
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains(allowed, e.Name.Local) {
			t.Errorf("unexpected element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch {
			case a.Name.Local == "id":
				ids = append(ids, a.Value)
			case a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#"), a.Name.Local == "src", strings.HasPrefix(a.Name.Local, "on"),
				a.Name.Local == "style", strings.Contains(a.Value, "NaN"), strings.Contains(a.Value, "Inf"):
				t.Errorf("unexpected attribute %s=%q of %s", a.Name.Local, a.Value, e.Name.Local)
			}
		}
	}
}

// TestPageIds: charts of one page do not share what names them.
func TestPageIds(t *testing.T) {
	p := samplePage()
	p.Sections = append(p.Sections, p.Sections[0])
	ids := safe(t, HTML(p))
	slices.Sort(ids)
	if once := slices.Compact(slices.Clone(ids)); len(once) != len(ids) {
		t.Errorf("an id stands twice in %q", ids)
	}
}

// evil is a page of which every text is s.
func evil(s string) Page {
	return Page{
		Title: s, Subtitle: s, Answer: Answer{Head: s, Text: []string{s}}, Facts: []Fact{{s, s, s}}, Foot: s,
		Sections: []Section{{s, []Block{Text(s), List{s}, Table{Caption: s, Head: []string{s, s}, Rows: []Row{{Cells: []string{s, s}, Strong: true}}}, Log{{Head: s, Tag: s, Text: s, Facts: []string{s}}}, Code{"", s}, Picture{Chart: Chart{
			Title: s, Caption: s, Places: []Place{{s, 1}}, Panels: []Panel{{Y: Axis{Label: s}, Marks: []Marks{{Name: s, X: []float64{1}, Y: []float64{1}}}}},
		}}}}},
	}
}

// TestPageIsText: what names hold cannot become an element, a link, a mention, a row or a heading.
func TestPageIsText(t *testing.T) {
	p := evil("</pre></script><script>alert(1)</script>\"'&\x00\x1b[2J\u202e\xff ```\n# x | [y](http://z) @all `c` **b**")
	safe(t, HTML(p))
	fenced := false
	for line := range strings.Lines(string(Markdown(p))) {
		if strings.HasPrefix(line, "````") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		for _, bad := range []string{"<script", "y](", " @all", "://", " `c`", "\x1b", "\u202e"} {
			if strings.Contains(line, bad) {
				t.Errorf("%q in %q", bad, line)
			}
		}
		if strings.HasPrefix(line, "# x") {
			t.Errorf("a heading %q", line)
		}
		if strings.HasPrefix(line, "|") && strings.Count(line, "|")-strings.Count(line, `\|`) > 4 {
			t.Errorf("more cells than there are: %q", line)
		}
	}
}

// TestPlainly: what looks like Markdown is not, and what does not stays readable.
func TestPlainly(t *testing.T) {
	for in, want := range map[string]string{
		"alpha 1/8, kmin/kmax 0.3: +4.1 % J": "alpha 1/8, kmin/kmax 0.3: +4.1 % J",
		"1. one":                             `1\. one`,
		"12":                                 "12",
		"# head":                             `\# head`,
		"- 3":                                `\- 3`,
		"a\n\n# b":                           "a # b",
		"<b> & `x` *y* _z_ [l](u) a|b ~$1":   "&lt;b&gt; &amp; \\`x\\` \\*y\\* \\_z\\_ \\[l\\](u) a\\|b \\~\\$1",
		"@all, (@me), kmax@leaf":             "&#64;all, (&#64;me), kmax@leaf",
		"http://x.y, www.x.y":                "http&#58;//x.y, www&#46;x.y",
	} {
		if got := plainly(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestPageAlways: whatever it holds, a page is well-formed, and the same twice.
func TestPageAlways(t *testing.T) {
	numbers := rapid.OneOf(rapid.Float64(), rapid.Float64Range(1e-9, 1e12), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(0.0))
	rapid.Check(t, func(t *rapid.T) {
		p := evil(rapid.String().Draw(t, "text"))
		some := func(label string) []float64 { return rapid.SliceOfN(numbers, 0, 9).Draw(t, label) }
		p.Sections = append(p.Sections, Section{"chart", []Block{Picture{Chart: Chart{
			X: Axis{"x", Quantity(rapid.IntRange(0, int(Factor)).Draw(t, "quantity"))}, LogX: rapid.Bool().Draw(t, "log x"), Places: []Place{{"p", rapid.Float64().Draw(t, "place")}},
			Panels: []Panel{{
				Y: Axis{"y", Quantity(rapid.IntRange(0, int(Factor)).Draw(t, "of"))}, LogY: rapid.Bool().Draw(t, "log y"), Free: rapid.Bool().Draw(t, "free"),
				Levels: []Level{{"l", rapid.Float64().Draw(t, "level")}},
				Marks: []Marks{
					{Name: "a", Joined: true, X: some("x"), Y: some("y"), Low: some("low"), High: some("high")},
					{Name: "b", Big: true, X: some("x"), Y: some("y")},
				},
			}},
		}}}})
		html := HTML(p)
		safe(t, html)
		if !bytes.Equal(html, HTML(p)) || !bytes.Equal(Markdown(p), Markdown(p)) {
			t.Errorf("not the same twice")
		}
	})
}

// TestWideInterval: an interval without end goes to the edge of the picture, and does not make the picture about itself.
func TestWideInterval(t *testing.T) {
	p := Panel{Y: Axis{"p99.9", Time}, LogY: true, Marks: []Marks{{X: []float64{1, 2}, Y: []float64{1e-4, 3e-4}, Low: []float64{9e-5, 1e-12}, High: []float64{1.1e-4, 40}}}}
	s, _, _ := p.scale()
	if s.lo < 2e-5 || s.hi > 1.5e-3 {
		t.Errorf("the axis goes from %v to %v", s.lo, s.hi)
	}
	p = Panel{Y: Axis{"J", Share}, Free: true, Marks: []Marks{{X: []float64{1, 2}, Y: []float64{0, .1}, Low: []float64{0, -8}, High: []float64{0, 9}}}}
	if s, _, _ = p.scale(); s.lo < -.2 || s.hi > .4 {
		t.Errorf("the axis goes from %v to %v", s.lo, s.hi)
	}
}

// TestLogTicks: a logarithmic axis has round numbers, each with its unit, and a factor powers of two.
func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		q      Quantity
		lo, hi float64
		want   string
	}{
		{Bytes, 25e3, 6.4e6, "50KB 100KB 200KB 500KB 1MB 2MB 5MB"},
		{Bytes, 90e3, 1.2e6, "100KB 200KB 500KB 1MB"},
		{Factor, 1.0 / 64, 4, "1/64 1/16 1/4 1 4"},
		{Factor, 1.0 / 16, 1, "1/16 1/8 1/4 1/2 1"},
		{Time, 90e-6, 200e-6, "100µs 120µs 140µs 160µs 180µs 200µs"},
		{Time, 1e-6, 1, "1µs 10µs 100µs 1ms 10ms 100ms 1s"},
	} {
		_, texts := logScaleOf(c.q, c.lo, c.hi, 6).ticks()
		if got := strings.Join(texts, " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}
