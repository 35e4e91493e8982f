package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
)

// TestLockBreakOfAnother: the lease that was shown may have changed hands while the question stood, and then the answer is about nobody.
func TestLockBreakOfAnother(t *testing.T) {
	var out bytes.Buffer
	a := &app{sys: quiet(), stateDir: t.TempDir()}
	a.sys.out = &out
	dir, err := a.leases()
	if err != nil {
		t.Fatal(err)
	}
	take := func(run string) *journal.Held {
		t.Helper()
		h := journal.Self(run)
		h.Owner = "op@" + run
		l, err := journal.Acquire(t.Context(), dir, "pod1", h, time.Hour, journal.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := take("run-a")
	shown := first.Lease()
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		err := a.breakLease(t.Context(), dir, "pod1", shown, false)
		if exitCode(t.Context(), err) != exitRefused || !strings.HasSuffix(err.Error(), "the lease of fabric pod1 was not broken: it has changed hands meanwhile: "+want) {
			t.Error(err)
		}
	}
	refused("nobody holds it any more")
	second := take("run-b")
	refused("op@run-b holds it for run run-b")
	if err := second.Check(t.Context()); err != nil || out.Len() > 0 {
		t.Errorf("who has it now: %v %s", err, &out)
	}
	if err := a.breakLease(t.Context(), dir, "pod1", second.Lease(), false); err != nil || !strings.HasPrefix(out.String(), "pod1: broken; it was held by op@run-b") {
		t.Errorf("%v %s", err, &out)
	}
}
