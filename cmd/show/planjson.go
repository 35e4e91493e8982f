package show

import (
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// PlanJSON is what plan, plan show and drift print with -o json: fabricctl/plan/v1, and fabricctl/drift/v1, which is
// the same without the time, so that the same drift gives the same bytes. It is for reading; apply takes the file that
// plan --out writes. docs/apply.md describes it.
type PlanJSON struct {
	Schema   string            `json:"schema"`
	Tool     string            `json:"tool"`
	Fabric   string            `json:"fabric"`
	Model    string            `json:"model"` // digest
	Created  *time.Time        `json:"created,omitempty"`
	Lab      bool              `json:"lab"`
	Summary  planSummary       `json:"summary"`
	Risks    []rollout.RiskRow `json:"risks"`
	Groups   []rollout.Group   `json:"groups"`
	Left     []rollout.Group   `json:"left"` // changes that holds keep back
	Observed []rollout.Group   `json:"observed"`
	Notes    []rollout.Note    `json:"notes"`
	Devices  []planDeviceJSON  `json:"devices"`
	Findings diag.List         `json:"findings"` // about the plan as a whole
}

// planDeviceJSON is the part about one device. Steps hold the device's own settings.
type planDeviceJSON struct {
	Name     string         `json:"name"`
	OS       string         `json:"os"`
	Platform string         `json:"platform"`
	Verified bool           `json:"verified"` // the platform was tried on a real device
	Mode     rollout.Mode   `json:"mode"`
	Reason   string         `json:"reason,omitempty"` // why the mode is not "write"
	Facts    render.Facts   `json:"facts"`
	Caps     drivers.Caps   `json:"caps"`
	Held     []journal.Hold `json:"held,omitempty"`    // holds in force on it or its ports
	Left     *rollout.Ops   `json:"left,omitempty"`    // settings left out because of them
	Cut      *rollout.Cut   `json:"cut,omitempty"`     // the steps may cut our own way to it
	Adopted  render.Names   `json:"adopted,omitempty"` // live objects that stand for ours
	Ops      rollout.Ops    `json:"settings"`
	Steps    []planStepJSON `json:"steps,omitempty"`
	Findings diag.List      `json:"findings,omitempty"`
	Blocked  bool           `json:"blocked"`         // refused for safety; the findings say why
	Error    string         `json:"error,omitempty"` // it could not be read or rendered
}

// planStepJSON is one transaction.
type planStepJSON struct {
	Wave    int             `json:"wave"`
	Why     string          `json:"why"`
	Changes []render.Change `json:"changes"`
}

// JSON is p for reading. verb is "plan" or "drift".
func JSON(p *rollout.Plan, verb string) PlanJSON {
	v := PlanJSON{
		Schema: "fabricctl/" + verb + "/v1", Tool: p.Tool, Fabric: p.Fabric, Model: p.Model, Lab: p.Lab, Summary: summarise(p),
		Risks: Some(rollout.Risks(p)), Groups: Some(rollout.Groups(p)), Left: Some(rollout.LeftGroups(p)), Observed: Some(rollout.ObservedGroups(p)),
		Notes: Some(rollout.Notes(p, true)), Devices: []planDeviceJSON{}, Findings: Some(p.Finds),
	}
	if verb == "plan" {
		v.Created = &p.Created
	}
	for _, d := range p.Devices {
		j := planDeviceJSON{
			Name: d.Name, OS: d.OS, Platform: d.Platform, Verified: d.Verified, Mode: d.Mode, Reason: d.Reason, Facts: d.Facts,
			Caps: d.Caps, Adopted: d.Adopted, Ops: d.Ops, Findings: d.Findings, Blocked: d.Blocked, Error: d.Error,
		}
		j.Held, j.Cut = d.Held, d.Cut
		if d.Left != nil {
			j.Left = &d.Left.Ops
		}
		for _, s := range d.Steps {
			j.Steps = append(j.Steps, planStepJSON{Wave: s.Wave, Why: s.Why, Changes: s.Changes})
		}
		v.Devices = append(v.Devices, j)
	}
	return v
}

// Some is l, or an empty list in place of none, so that readers always find a list.
func Some[S ~[]E, E any](l S) S {
	if l == nil {
		return S{}
	}
	return l
}
