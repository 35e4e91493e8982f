package profiles

import (
	"testing"
)

// TestPersonalities holds every row to what the drivers of hosts rely on.
func TestPersonalities(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.NamesOf(KindPersonality) {
		if r := c.find(KindPersonality, n); r.err != nil {
			t.Errorf("%s: %v", n, r.err)
		}
		p, ok := c.PersonalityNamed(n)
		if !ok || p.Status == "" || (p.Why == "") != (p.Status == Managed) {
			t.Errorf("%s: status %q, why %q", n, p.Status, p.Why)
		}
		for _, name := range []string{"roce.mode", "roce.tos"} {
			if k, ok := p.Knob(name); !ok || !k.Writable() {
				t.Errorf("%s: %s is %v", n, name, k)
			}
		}
	}
}
