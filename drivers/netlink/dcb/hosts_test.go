package dcb_test

import (
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model/witness"
)

var update = flag.Bool("update", false, "write the tables of a run in the virtual machine into docs/evidence/hosts.md")

// TestHostsPage: the table of docs/evidence/hosts.md is what the virtual machine of tools/vm found, and the fake kernel
// answers and looks the way the page says that a real one did.
func TestHostsPage(t *testing.T) {
	onPage := witness.Table(t, "docs/evidence/hosts.md", "dcb", *update)
	for _, line := range onPage {
		if !strings.HasSuffix(line, "| yes |") {
			t.Errorf("dcb and the client do not agree: %s", line)
		}
	}
	var now []string
	for _, r := range playAgain(t) {
		now = append(now, r.String())
	}
	if !slices.Equal(onPage, now) {
		t.Errorf("the fake kernel is not like the real one:\n%s", witness.FirstDifference(onPage, now))
	}
}

// playAgain does the steps on the fake kernel. There is no dcb, so what it would show is what we read, and what it would do
// we do.
func playAgain(t *testing.T) []row {
	t.Helper()
	const dev = "dcb0"
	k := dcbfake.New()
	nic := k.Add(dev, dcbfake.Generic())
	c := dcb.New(k)
	look := func() view {
		s, err := c.Get(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		return read(s)
	}
	now := look()
	first := now.since(view{})
	out := []row{{freshDriver, "", first, first}}
	for _, s := range steps() {
		before := now
		nic.Use(driver(t, s.play))
		said := answer(s.do(t.Context(), c, dev))
		if s.tool != nil {
			if said != "done" {
				t.Errorf("%s, by the client: %s", s.what, said)
			}
			said = ""
		}
		now = look()
		out = append(out, row{s.what, said, now.since(before), now.since(before)})
	}
	return out
}

// driver behaves as a step says.
func driver(t *testing.T, play string) dcbfake.Driver {
	t.Helper()
	d := dcbfake.Generic()
	w := strings.Fields(play)
	if len(w) == 0 {
		return d
	}
	status := -16
	if len(w) > 2 {
		n, err := strconv.Atoi(w[2])
		if err != nil {
			t.Fatal(err)
		}
		status = n
	}
	switch w[0] {
	case "replace":
		return d.SelfReplacing()
	case "absent":
		return d.Without(dcbfake.Op(w[1]))
	case "missing":
		return d.ReadOnly(dcbfake.Op(w[1]))
	case "lie":
		return d.Lying(dcbfake.Op(w[1]))
	case "refuse":
		return d.Refusing(status, dcbfake.Op(w[1]))
	case "odd":
		return d.Answering(status, dcbfake.Op(w[1]))
	}
	t.Fatalf("unknown play %q", play)
	return d
}
