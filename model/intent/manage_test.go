package intent

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestManageJSON: a Manage is written as encoding/json would write its areas, and read back.
func TestManageJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var m Manage
		for a := range m {
			m[a] = Mode(rnd.IntN(3) * rnd.IntN(2))
		}
		want, err := json.Marshal(manageJSON{m.with(Own), m.with(Ignore)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(m)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v: %s, want %s (%v)", m, got, want, err)
		}
		var back Manage
		if err := json.Unmarshal(got, &back); err != nil || back != m {
			t.Fatalf("%s is read as %v: %v", got, back, err)
		}
	}
}
