package main

import (
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/render"
)

// killing is a plan that flaps NICs under running jobs: of h1 and h2, and of h3, which cannot count them.
func killing() *rollout.Plan {
	p := &rollout.Plan{Schema: rollout.PlanSchema, Fabric: "pod1", Lab: true}
	for name, jobs := range map[string]int{"h1": 96, "h2": 32, "h3": -1, "h4": 0} {
		p.Devices = append(p.Devices, rollout.DevicePlan{
			Name: name, OS: "linux", Host: true, Mode: rollout.Write, Steps: []rollout.Step{{Device: name}}, Ops: rollout.Ops{Set: 1},
			Risks: []render.Risk{{Class: render.Flap, Ports: []string{"rdma0"}, Why: "the driver resets the port", Jobs: jobs}},
		})
	}
	return p
}

// What a plan kills is said wherever a plan is shown, and apply wants a leave for it.
func TestPlanSaysWhatItKills(t *testing.T) {
	p := killing()
	var out strings.Builder
	if err := show.Plan(&out, p, false); err != nil {
		t.Fatal(err)
	}
	const need = "apply needs --allow-jobs: the change kills 128 live queue pairs of running jobs on 2 devices, and on 1 device nobody can count the live queue pairs of running jobs"
	for _, want := range []string{"kills at least 128 live queue pairs", need} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if md := show.Markdown(p, "plan", show.DefaultComment); !strings.Contains(md, "the driver resets the port<br>**kills at least 128 live queue pairs**<br>") {
		t.Error(md)
	}
	v := show.JSON(p, "plan")
	if want := (show.JobCount{Pairs: 128, Devices: 2, Uncounted: 1}); v.Summary.Jobs != want || v.Risks[0].Jobs != 128 || len(v.Risks[0].Uncounted) != 1 || v.Risks[0].Uncounted[0] != "h3" {
		t.Errorf("%+v, %+v", v.Summary.Jobs, v.Risks)
	}
	o := rollout.ApplyOptions{AllowDisruptive: true}
	if err := applicable(p, o); err == nil || !strings.Contains(err.Error(), "nothing was written: the change kills 128 live queue pairs") {
		t.Error(err)
	}
	if o.AllowJobs = true; applicable(p, o) != nil {
		t.Error(applicable(p, o))
	}
}
