package main

import (
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// TestReadyRefuses: what owning an area would do is what a plan of it would: a name of ours that somebody else uses, and
// would change, is refused and not "nothing" or so many settings.
func TestReadyRefuses(t *testing.T) {
	f, l := model.Load(examples.FS, "small")
	if l.HasErrors() {
		t.Fatal(l)
	}
	net, _ := intent.Resolve(f)
	dev := *net.Device("leaf1")
	sonic := render.ByOS("sonic")
	live, _ := sonic.Render(dev, render.Facts{})
	if n, why := owning(dev, intent.AreaECN, &seen{live: live}); n != 0 || why != "" {
		t.Fatalf("what the model would write itself: %d changes, %q", n, why)
	}
	var profile string
	for i := range live {
		if k := live[i].Key; k.Scope == "WRED_PROFILE" && k.Field == "green_max_threshold" {
			profile, live[i].Value = k.Object, "2000000"
		}
	}
	if n, why := owning(dev, intent.AreaECN, &seen{live: live}); n == 0 || strings.Contains(why, "has our name") {
		t.Errorf("%s at another threshold: %d changes, %q", profile, n, why)
	}
	live = append(live, render.Setting{Key: render.Key{Scope: "QUEUE", Object: "Ethernet508|3", Field: "wred_profile"}, Value: profile}).Sorted()
	if n, why := owning(dev, intent.AreaECN, &seen{live: live}); n != 0 || !strings.Contains(why, "has our name") || !strings.Contains(why, "Ethernet508") {
		t.Errorf("%s bound by a port that the model does not know: %d changes, %q", profile, n, why)
	}
}
