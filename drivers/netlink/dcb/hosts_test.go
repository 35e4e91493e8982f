package dcb_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

var update = flag.Bool("update", false, "write the tables of a run in the virtual machine into docs/evidence/hosts.md")

const hostsPage = "../../../docs/evidence/hosts.md"

// TestHostsPage: the table of docs/evidence/hosts.md is what the virtual machine of tools/vm found. FABRICCTL_VM_OUT
// names the folder with what a run left; -update takes its table over. Without a run, the fake kernel has to answer and
// look the way the page says that a real one did.
func TestHostsPage(t *testing.T) {
	page, err := os.ReadFile(hostsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- dcb: written by make vm -->\n", "<!-- end -->\n"
	head, rest, ok1 := strings.Cut(string(page), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place between %q and %q", hostsPage, begin, end)
	}
	if dir := os.Getenv("FABRICCTL_VM_OUT"); dir != "" {
		found, err := os.ReadFile(filepath.Join(dir, "dcb.md"))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			table = "\n" + string(found) + "\n"
			if err := os.WriteFile(hostsPage, []byte(head+begin+table+end+tail), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := rows(t, string(found)), rows(t, table); !slices.Equal(got, want) {
			t.Errorf("the page is not what the machine found; make vm UPDATE=-update takes it over:\n%s", firstDifference(want, got))
		}
	}
	if got, want := playAgain(t), rows(t, table); !slices.Equal(got, want) {
		t.Errorf("the fake kernel is not like the one on the page:\n%s", firstDifference(want, got))
	}
}

// rows reads a table, in which both sides must agree.
func rows(t *testing.T, text string) []row {
	t.Helper()
	var out []row
	for line := range strings.Lines(text) {
		r, agree, ok := parseRow(strings.TrimSpace(line))
		if !ok {
			continue
		}
		if agree != "yes" || r.shows != r.reads {
			t.Errorf("%s: dcb and the client do not agree", r.what)
		}
		out = append(out, r)
	}
	return out
}

func firstDifference(want, got []row) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return "on the page: " + want[i].String() + "\nnow:         " + got[i].String()
		}
	}
	return "the page has " + strconv.Itoa(len(want)) + " rows, now there are " + strconv.Itoa(len(got))
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
