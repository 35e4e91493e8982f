package hostwire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
)

// counts is a device with counters.
type counts struct {
	drivers.Device
	asked []observe.Name
	err   error
}

func (c *counts) Sense(_ context.Context, names []observe.Name) (observe.Counters, error) {
	c.asked = names
	return observe.Counters{At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Values: map[observe.Port]uint64{
		{Iface: "eth1", Name: "pfc.rx.3"}: 1<<64 - 1, {Iface: "eth0", Name: "pfc.rx.3"}: 0, {Iface: "eth0", Name: "cnp.sent"}: 7, {Iface: "eth0", Name: "of.tomorrow"}: 7,
	}}, c.err
}

// TestSense: counters come whole, with the host's time; names that nobody asked for, or knows, stay behind; a host without
// counters says so.
func TestSense(t *testing.T) {
	d := &counts{}
	c, _ := serve(t, d)
	got, err := c.Sense(t.Context(), []observe.Name{"pfc.rx.3"})
	want := observe.Counters{At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Values: map[observe.Port]uint64{{Iface: "eth1", Name: "pfc.rx.3"}: 1<<64 - 1, {Iface: "eth0", Name: "pfc.rx.3"}: 0}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(d.asked) != 1 {
		t.Errorf("%v %v (-want +got):\n%s", err, d.asked, diff)
	}
	if got, err := c.Sense(t.Context(), nil); err != nil || len(got.Values) != 3 || len(d.asked) != 0 {
		t.Errorf("%v %v %v", got.Values, err, d.asked)
	}
	d.err = errors.New("no driver")
	if _, err := c.Sense(t.Context(), nil); err == nil || err.Error() != "host1: no driver" {
		t.Error(err)
	}
	without, _ := serve(t, &box{})
	if _, err := without.Sense(t.Context(), nil); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), `"sense"`) {
		t.Error(err)
	}
}
