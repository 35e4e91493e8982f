package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
)

var update = flag.Bool("update", false, "write the golden files of testdata")

// resolved is an example's Net.
func resolved(t *testing.T, name string) *intent.Net {
	t.Helper()
	for _, e := range examples.Models() {
		if e.Name == name {
			f, _ := model.Load(examples.FS, e.Layers...)
			n, _ := intent.Resolve(f)
			return n
		}
	}
	t.Fatalf("no example %q", name)
	return nil
}

// fatal is what a test and a property have in common.
type fatal interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// parse is the texts of an SVG document by their classes, which must be well-formed and hold no script and no reference.
func parse(t fatal, svg []byte) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	var open []string
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			name := tok.Name.Local
			if !slices.Contains(strings.Fields("svg title desc style g rect text line path circle ellipse polygon"), name) {
				t.Errorf("unexpected element %s", name)
			}
			classes := name
			for _, a := range tok.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("unexpected attribute %s of %s", a.Name.Local, name)
				}
				if a.Name.Local == "class" {
					classes = a.Value
				}
			}
			open = append(open, classes)
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

// TestSVGIsText: what names and findings hold cannot become an element, an attribute or a control character.
func TestSVGIsText(t *testing.T) {
	n := wired()
	n.Fabric = `</text><script>alert(1)</script>"'&` + "\x00\x1b[2J\u202e\xff\ufffe]]>"
	for i := range n.Devices {
		n.Devices[i].Role += "<b>&amp;"
		n.Devices[i].Platform = "\"><image href='x'/>"
	}
	svg := SVG(n, Sheet{Caption: "<a>", Findings: diag.List{{Rule: "<r>", Severity: diag.Error, Msg: "--><!ENTITY x \x07>", Devices: []string{"leaf1"}}}})
	texts := parse(t, svg)
	if got := texts["title"]; !slices.Contains(got, `Fabric </text><script>alert(1)</script>"'&\u0000\u001b[2J\u202e\xff\ufffe]]>`) {
		t.Errorf("title %q", got)
	}
	if got := texts["found"]; !slices.Contains(got, `error: <r>: --><!ENTITY x \u0007>`) {
		t.Errorf("findings %q", got)
	}
}

// TestSVGCycle: every hop has its number, its place in the list, and its link; the rest is grey.
func TestSVGCycle(t *testing.T) {
	n := resolved(t, "small")
	cycle := []Hop{
		{"leaf1", "uplink-1", 3, "training"},
		{"spine1", "downlink-3", 3, "training"},
		{"leaf3", "uplink-2", 3, "training"},
		{"spine2", "downlink-1", 3, "training"},
		{"nowhere", "uplink-1", 3, ""},
	}
	svg := SVG(n, Sheet{Cycle: cycle, Caption: "a cycle"})
	texts := parse(t, svg)
	if got := texts["numbertext mid"]; !slices.Equal(got, []string{"1", "2", "3", "4", "1", "2", "3", "4", "5"}) {
		t.Errorf("numbers %q: four on the links, five in the list", got)
	}
	if !slices.Contains(texts["small"], "spine2:downlink-1 → leaf1:uplink-2, priority 3 training") || !slices.Contains(texts["small"], "nowhere:uplink-1, priority 3") {
		t.Errorf("the list of hops: %q", texts["small"])
	}
	if got := strings.Count(string(svg), `class="box"`); got != 4 {
		t.Errorf("%d boxes stand out, want the 4 of the cycle", got)
	}
}

// TestSVGGolden: pictures to look at, byte for byte; one of them is in the manual.
func TestSVGGolden(t *testing.T) {
	findings := diag.List{
		{Rule: "ecn-order", Severity: diag.Error, Msg: "kmin 400KB of class storage is above its kmax 350KB on leaf1", Devices: []string{"leaf1"}},
		{Rule: "mtu-path", Severity: diag.Warning, Msg: "mtu 9000B of spine2 is below mtu 9216B of leaf3", Devices: []string{"leaf3", "spine2"}},
		{Rule: "chain-consistent", Severity: diag.Warning, Msg: "host7 and leaf4 do not agree about dscp 26", Devices: []string{"host7"}},
		{Rule: "chain-consistent", Severity: diag.Warning, Msg: "host7 and leaf4 do not agree about dscp 48", Devices: []string{"host7"}},
		{Rule: "oversubscription", Severity: diag.Warning, Msg: "known", Devices: []string{"leaf2"}, Ack: "known"},
	}
	for path, svg := range map[string][]byte{
		"../../docs/three-tier.svg": SVG(resolved(t, "three-tier"), Sheet{}),
		"testdata/findings.svg":     SVG(resolved(t, "storage-and-training"), Sheet{Findings: findings}),
		"testdata/cycle.svg": SVG(resolved(t, "small"), Sheet{Caption: "a packet that bounces off leaf3", Cycle: []Hop{
			{"leaf1", "uplink-1", 3, "training"}, {"spine1", "downlink-3", 3, "training"}, {"leaf3", "uplink-2", 3, "training"}, {"spine2", "downlink-1", 3, "training"},
		}}),
	} {
		if *update {
			if err := os.WriteFile(path, svg, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(svg)); d != "" {
			t.Errorf("%s (-want +got), -update writes it:\n%s", path, d)
		}
	}
}

// TestSVGIsDrawn lets a program that draws SVG read ours: it knows every element and style, and findings come out red.
func TestSVGIsDrawn(t *testing.T) {
	rsvg := witness.Tool(t, "rsvg-convert")
	reds := func(s Sheet) int {
		c := exec.Command(rsvg)
		c.Stdin = bytes.NewReader(SVG(resolved(t, "small"), s))
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("rsvg-convert: %v\n%s", err, errs.String())
		}
		img, err := png.Decode(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				if r, g, b, _ := img.At(x, y).RGBA(); r > 2*g && r > 2*b && r > 0x8000 {
					n++
				}
			}
		}
		return n
	}
	if n := reds(Sheet{}); n > 0 {
		t.Errorf("%d red pixels without findings", n)
	}
	if n := reds(Sheet{Findings: diag.List{{Rule: "ecn-order", Severity: diag.Error, Msg: "wrong", Devices: []string{"leaf1"}}}}); n < 500 {
		t.Errorf("%d red pixels with an error", n)
	}
}

// TestLossless: a link says what it carries without loss, and when only one end protects it; an end that does not speak
// about PFC, as hosts do not, leaves it to the other.
func TestLossless(t *testing.T) {
	protects := func(known bool, priorities ...int) *intent.Device {
		p := intent.Policy{}
		if known {
			p.Known = intent.AreaSet(intent.AreaPFC)
		}
		for _, i := range priorities {
			p.Queues[i].Lossless = true
		}
		d := &intent.Device{Name: fmt.Sprint(known, priorities), Ports: []intent.Port{{}}, Policies: []intent.Policy{p}}
		d.Classes[3], d.Classes[4] = "training", "storage"
		return d
	}
	for _, c := range []struct {
		lower, upper *intent.Device
		want         string
	}{
		{protects(true, 3, 4), protects(true, 3, 4), "lossless 3 training, 4 storage"},
		{protects(true, 3), protects(true, 4, 5), "lossless 3 training (lower end only), 4 storage (upper end only), 5 (upper end only)"},
		{protects(false), protects(true, 3), "lossless 3 training"},
		{protects(true), protects(true), ""},
		{protects(false), protects(false), ""},
	} {
		got := losslessText(losslessOf(c.lower, &c.lower.Ports[0], c.upper, &c.upper.Ports[0]), c.lower.Name)
		if got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.lower.Name, c.upper.Name, got, c.want)
		}
	}
}
