package rollout

import (
	"context"
	"testing"
)

func TestApplyPlain(t *testing.T) {
	for _, v := range flavours {
		f := newFabric(stateDir(t), "s1", "s2", "h1")
		f.flavour(v)
		p := f.plan(t)
		r, err := f.e.Apply(context.Background(), p, ApplyOptions{AllowDisruptive: true})
		if code := ExitCode(r, err); code != 0 {
			t.Fatalf("%v: exit %d, %v, %+v", v, code, err, r)
		}
		f.mustHold(t, v.String(), true, r)
		before := f.writes()
		p = f.plan(t)
		r, err = f.e.Apply(context.Background(), p, ApplyOptions{})
		if ExitCode(r, err) != 0 || f.writes() != before || p.Changes() {
			t.Errorf("%v: second apply: %+v, %v, %d writes", v, r, err, f.writes()-before)
		}
	}
}
