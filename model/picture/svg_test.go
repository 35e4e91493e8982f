package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

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

// parse is the texts of an SVG document by their classes, which must be well-formed and hold no script and no reference.
func parse(t *testing.T, svg []byte) map[string][]string {
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
