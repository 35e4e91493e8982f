package rollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// PlanSchema names the format of a plan file. A reader that does not know it refuses the file. What plan -o json prints
// is another format, fabricctl/plan/v1, which is for reading.
const PlanSchema = "fabricctl/plan-file/v2"

// Plan is what Apply will do, and all it needs to know: it is computed by reading devices, written to a file for
// review, and stands at the head of the run's journal. It holds no secrets. A file does not hold what the model says of
// the devices (DevicePlan.Intent): Engine.Check takes that from the model.
type Plan struct {
	Schema  string       `json:"schema"`             // PlanSchema
	Tool    string       `json:"tool"`               // version of fabricctl that made the plan
	Fabric  string       `json:"fabric"`             // metadata.name of the model
	Model   string       `json:"model"`              // digest of the model; Apply's caller compares it
	Created time.Time    `json:"created,omitzero"`   // UTC
	Lab     bool         `json:"lab,omitempty"`      // every target is an emulated device
	Adopt   bool         `json:"adopt,omitempty"`    // adoption was asked for
	Devices []DevicePlan `json:"devices"`            // in the order of the model
	Finds   diag.List    `json:"findings,omitempty"` // about the plan as a whole
}

// Mode says what a plan does with a device.
type Mode string

const (
	Write   Mode = "write"   // something is owned; differences become steps
	Watch   Mode = "observe" // nothing is owned, or it is in maintenance: read, never written
	Skipped Mode = "skipped" // planned or absent: not contacted
)

// DevicePlan is the part of a plan about one device. Steps are empty when nothing has to change, and also when Error
// is set or Blocked holds.
type DevicePlan struct {
	Name      string         `json:"name"`
	OS        string         `json:"os"`
	Platform  string         `json:"platform"`
	Host      bool           `json:"host,omitempty"`
	Mode      Mode           `json:"mode"`
	Reason    string         `json:"reason,omitempty"` // why the mode is not "write"
	Facts     render.Facts   `json:"facts"`
	Caps      drivers.Caps   `json:"caps"`
	Verified  bool           `json:"verified"`          // the platform was tried on a real device
	Adopted   render.Names   `json:"adopted,omitempty"` // live objects that stand for ours
	Adopting  *Ops           `json:"-"`                 // what the plan would be if it adopted what it can; nil where it did, or can nothing
	Live      string         `json:"live,omitempty"`    // fingerprint of the owned live settings
	Steps     []Step         `json:"steps,omitempty"`
	Ops       Ops            `json:"ops"`
	Held      []journal.Hold `json:"held,omitempty"`      // holds in force on it or its ports when the plan was made
	Left      *Left          `json:"left,omitempty"`      // what is not done because of them; not part of Ops, Behaviour and Steps
	Behaviour []Behaviour    `json:"behaviour,omitempty"` // what the steps do to ports, in the words of the model
	Observed  []Behaviour    `json:"observed,omitempty"`  // what differs from the model and is not ours to write
	Risks     []render.Risk  `json:"risks,omitempty"`
	Cut       *Cut           `json:"cut,omitempty"` // the steps may cut our own way to it
	Findings  diag.List      `json:"findings,omitempty"`
	Blocked   bool           `json:"blocked,omitempty"` // refused for safety; Findings say why
	Error     string         `json:"error,omitempty"`   // the device could not be read or rendered
	Kept      int            `json:"kept,omitempty"`    // changes that were to be left out: PlanOptions.Harmless, Spare
	Intent    *intent.Device `json:"-"`                 // resolved, without origins: decides ownership. Nil in what Decode returns, and where there are no steps
	harmless  bool
	spare     func(render.Change) bool
}

// Ops counts the changes of a device by kind.
type Ops struct {
	Add    int `json:"add"`
	Set    int `json:"set"`
	Remove int `json:"remove"`
}

// Total is the number of changes.
func (o Ops) Total() int { return o.Add + o.Set + o.Remove }

// Ops counts the changes of the whole plan.
func (p *Plan) Ops() Ops {
	var t Ops
	for _, d := range p.Devices {
		t.Add, t.Set, t.Remove = t.Add+d.Ops.Add, t.Set+d.Ops.Set, t.Remove+d.Ops.Remove
	}
	return t
}

// Failed reports whether an active device could not be read.
func (p *Plan) Failed() bool {
	return slices.ContainsFunc(p.Devices, func(d DevicePlan) bool { return d.Error != "" })
}

// Refused reports whether a device must not be written although it would have to change, or the plan as a whole must
// not be carried out.
func (p *Plan) Refused() bool {
	return p.Finds.HasErrors() || slices.ContainsFunc(p.Devices, func(d DevicePlan) bool { return d.Blocked })
}

// Changes reports whether the devices would have to change, held ones too.
func (p *Plan) Changes() bool {
	return p.Ops().Total() > 0 || slices.ContainsFunc(p.Devices, func(d DevicePlan) bool { return d.Left != nil && d.Left.Ops.Total() > 0 })
}

// Device finds the part about a device; nil when there is none.
func (p *Plan) Device(name string) *DevicePlan {
	for i := range p.Devices {
		if p.Devices[i].Name == name {
			return &p.Devices[i]
		}
	}
	return nil
}

// Worst is the worst risk class of a device and the number of ports that it names.
func (d *DevicePlan) Worst() (render.RiskClass, int) {
	worst, ports := render.Hitless, 0
	for _, r := range d.Risks {
		switch {
		case r.Class > worst:
			worst, ports = r.Class, len(r.Ports)
		case r.Class == worst && worst > render.Hitless:
			ports += len(r.Ports)
		}
	}
	return worst, ports
}

// Jobs is the number of live queue pairs on the ports that are hit worse than hitless. known is false when those of some
// port cannot be counted.
func (d *DevicePlan) Jobs() (n int, known bool) { return jobsOf(d.Risks) }

func jobsOf(risks []render.Risk) (n int, known bool) {
	known = true
	for _, r := range risks {
		switch {
		case r.Class == render.Hitless || r.Class == render.Refused:
		case r.Jobs < 0:
			known = false
		default:
			n += r.Jobs
		}
	}
	return n, known
}

// Still is p without what comes and goes while the fabric stays as it is: the queue pairs of jobs. It is for showing drift.
func (p *Plan) Still() *Plan {
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for i := range q.Devices {
		d := &q.Devices[i]
		d.Facts.NICs, d.Risks = slices.Clone(d.Facts.NICs), slices.Clone(d.Risks)
		for j := range d.Facts.NICs {
			d.Facts.NICs[j].QPs = -1
		}
		for j := range d.Risks {
			d.Risks[j].Jobs = 0
		}
	}
	return &q
}

// Encode is the plan as indented JSON. The same plan gives the same bytes.
func (p *Plan) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteFile writes the plan with mode 0600, whole or not at all. What is no file, as a pipe or a device, is written to, and not replaced.
func (p *Plan) WriteFile(path string) error {
	b, err := p.Encode()
	if err != nil {
		return err
	}
	if err := whole.Write(path, b, 0o600); err != nil {
		return fmt.Errorf("plan file: %w", err)
	}
	return nil
}

// ReadFile reads a plan file. A file of another schema, with unknown fields, or with anything after the plan is
// refused: what is not understood whole is not applied.
func ReadFile(path string) (*Plan, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	p, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s is not a plan file: %w", path, err)
	}
	return p, nil
}

// Decode reads what Encode writes.
func Decode(b []byte) (*Plan, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	p := new(Plan)
	err := d.Decode(p)
	if err != nil || p.Schema != PlanSchema { // a file of another kind is not judged by the fields of this one
		if other := otherSchema(b); other != nil {
			return nil, other
		}
	}
	if err != nil {
		return nil, plainJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more after the plan")
	}
	return p, p.check()
}

// otherSchema says that b is JSON with another schema than that of a plan file; nil when it is not.
func otherSchema(b []byte) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&head); err != nil {
		return nil
	}
	switch head.Schema {
	case PlanSchema:
		return nil
	case "fabricctl/plan/v1", "fabricctl/drift/v1":
		return fmt.Errorf("schema is %q, which -o json prints for reading; plan --out writes a plan file", head.Schema)
	}
	return fmt.Errorf("schema is %q, this version of fabricctl reads %q", head.Schema, PlanSchema)
}

// plainJSON is a decoder's error in the words of a user.
func plainJSON(err error) error {
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &shape) && shape.Field == "":
		return fmt.Errorf("it holds a single %s", shape.Value)
	case errors.As(err, &shape):
		return fmt.Errorf("a %s cannot stand at %q", shape.Value, shape.Field)
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("its end is missing")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON from byte %d on", syntax.Offset)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
