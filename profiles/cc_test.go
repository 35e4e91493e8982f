package profiles

import (
	"regexp"
	"testing"
)

// TestCCParams: names are those of keys, each once, and every parameter says what it does and who says so.
func TestCCParams(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for i, p := range CCParams() {
		switch {
		case !name.MatchString(p.Name) || CCIndex(p.Name) != i:
			t.Errorf("%q is no name, or stands twice", p.Name)
		case p.Doc == "" || p.Source == "":
			t.Errorf("%s: what it does, or the source of that, is missing", p.Name)
		case p.Max > 0 && p.Max < p.Min:
			t.Errorf("%s is from %d to %d", p.Name, p.Min, p.Max)
		}
	}
	if CCIndex("no_such") != -1 {
		t.Error("no_such is a parameter")
	}
	for name, want := range map[string]string{
		"ai_rate": "5Mbps", "time_reset": "5us", "byte_reset": "5B", "min_dec_fac": "5%", "gd": "5", "dce_tcp_g": "5", "clamp_tgt_rate": "true",
	} {
		if got := CCParams()[CCIndex(name)].Text(5); got != want {
			t.Errorf("5 of %s is %s, want %s", name, got, want)
		}
	}
}
