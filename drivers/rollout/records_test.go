package rollout

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/profiles"
)

// A run is finished or undone by what its journal says of the devices: all of it comes back, though what is long and the
// same for many stands there once.
func TestIntentsComeBack(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "h1", "s3")
	for i := range f.net.Devices {
		d := &f.net.Devices[i]
		d.Profile = profiles.Platform{Name: "test/box", Source: "a book", Words: map[string]string{"hwsku": "X"}}
		if d.Name == "s3" {
			d.Platform, d.Profile = "test/other", profiles.Platform{Name: "test/other", Ports: 7}
		}
	}
	p := f.plan(t)
	b, err := json.Marshal(headOf("run-1", p, leave))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("a book")); n != 1 {
		t.Errorf("a profile stands there %d times", n)
	}
	var r runRecord
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if err := r.whole(); err != nil {
		t.Fatal(err)
	}
	for i := range p.Devices {
		want, got := p.Devices[i].Intent, r.Plan.Devices[i].Intent
		if d := cmp.Diff(want, got); d != "" || want.Profile.Name == "" {
			t.Errorf("%s (-planned +journalled):\n%s", p.Devices[i].Name, d)
		}
	}
}
