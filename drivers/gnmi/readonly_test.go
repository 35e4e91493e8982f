package gnmi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/render"
)

// TestReadOnly: no Set leaves a device that is only to be read, not even the one that shows what the account may do.
func TestReadOnly(t *testing.T) {
	s := launch(t, sonic.Options{})
	verdicts := func(readOnly bool) map[string]drivers.Permission {
		t.Helper()
		c := config(s)
		c.ReadOnly = readOnly
		ts, err := open(t, c).Try(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]drivers.Permission{}
		for _, x := range ts {
			got[x.Operation] = x.Verdict
		}
		return got
	}
	want := map[string]drivers.Permission{"read CONFIG_DB": drivers.Allowed, "reach the server's Set": drivers.NotTried, "change CONFIG_DB": drivers.NotTried}
	if d := cmp.Diff(want, verdicts(true)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	c := config(s)
	c.ReadOnly = true
	mtu := "9000"
	err := open(t, c).Commit(patience(t), "t1", []render.Change{{Op: render.Add, Key: render.Key{Scope: "PORT", Object: "Ethernet0", Field: "mtu"}, After: &mtu}}, 0)
	if !errors.Is(err, drivers.ErrReadOnly) || !strings.Contains(err.Error(), "leaf1: gnmi set") {
		t.Errorf("commit: %v", err)
	}
	if n := s.Stats().Sets; n != 0 {
		t.Errorf("%d Sets were sent", n)
	}
	want["reach the server's Set"] = drivers.Allowed
	if d := cmp.Diff(want, verdicts(false)); d != "" || s.Stats().Sets != 1 {
		t.Errorf("%d Sets (-want +got)\n%s", s.Stats().Sets, d)
	}
}
