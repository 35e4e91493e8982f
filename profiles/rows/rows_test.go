package rows

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write hosts.rows and switches.rows from data/")

// TestRows: what is built in is what stands in data/.
func TestRows(t *testing.T) {
	hosts, switches, err := All(os.DirFS(".."), "profiles")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"hosts.rows": hosts, "switches.rows": switches} {
		if *update {
			if err := os.WriteFile("../"+name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile("../" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what data/ says: go test ./profiles/rows -update (%v)", name, err)
		}
	}
}
