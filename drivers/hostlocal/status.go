package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// StatusSchema names the format of Status.
const StatusSchema = "fabricctl/host-status/v1"

// Status is what a host is and holds, and how that fits its file.
type Status struct {
	Schema  string       `json:"schema"`  // StatusSchema
	Version string       `json:"version"` // of this program
	Facts   render.Facts `json:"facts"`
	NICs    []NIC        `json:"nics"`  // those of the facts
	Links   []Link       `json:"links"` // the other interfaces

	Device  string         `json:"device,omitempty"` // the host's name in the model; "" without a host file
	Fabric  string         `json:"fabric,omitempty"`
	Model   string         `json:"model,omitempty"` // digest
	Drift   *Drift         `json:"drift,omitempty"` // absent without a host file
	Holds   []journal.Hold `json:"holds"`           // what is to be left alone
	Pending []Pending      `json:"pending"`         // changes that go back unless they are confirmed
	Builds  diag.List      `json:"builds"`          // what the compatibility matrix says of the NICs
	Agent   *Report        `json:"agent,omitempty"` // what the agent said last; absent when none ever ran
	Missing []string       `json:"missing"`         // what could not be looked at, and why
}

// NIC is a network interface with hardware below it.
type NIC struct {
	render.HostNIC `json:"-"`
	Iface          string            `json:"name"`               // its name
	NIC            string            `json:"nic,omitempty"`      // its name in the catalog
	MTU            units.Bytes       `json:"mtu"`                // of the network interface
	RoCEMTU        units.Bytes       `json:"roce_mtu,omitempty"` // the largest RDMA payload that fits; absent without RDMA
	Settings       map[string]string `json:"settings"`           // what it holds: "pfc priorities" to "3", …
}

// Link is an interface without hardware.
type Link struct {
	Name string      `json:"name"`
	MTU  units.Bytes `json:"mtu"`
}

// Drift is how a host differs from its file.
type Drift struct {
	Changes  []render.Change `json:"changes"`         // what apply would do, as far as it may
	Risk     string          `json:"risk"`            // of all of them
	Left     int             `json:"left,omitempty"`  // changes left out because of holds
	Findings diag.List       `json:"findings"`        // what is in the way, or to be known
	Error    string          `json:"error,omitempty"` // why nobody can say
}

// Pending is a change with a timer.
type Pending struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Deadline time.Time `json:"deadline"`
}

// roceOverhead is what a RoCE v2 packet adds to its payload in the kernel's reckoning: GRH 40, UDP 8, BTH 12, XRC 4, atomic
// header 28, ICRC 4 bytes (include/rdma/ib_addr.h, iboe_get_mtu).
const roceOverhead = 96

// payload is the largest RDMA payload of an interface.
func payload(mtu units.Bytes) units.Bytes {
	for _, p := range []units.Bytes{4096, 2048, 1024, 512, 256} {
		if mtu >= p+roceOverhead {
			return p
		}
	}
	return 0
}

// Look is the status of the machine. file may be nil: the machine is then what it is. Engine plans for the file. What
// cannot be looked at is said in the status; an error is that nothing can.
func (m Machine) Look(ctx context.Context, file *File, e *rollout.Engine) (*Status, error) {
	dev, err := m.Direct()
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	f, _, err := dev.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	live, err := dev.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("this machine: %w", err)
	}
	cat, err := file.Catalog()
	if err != nil {
		return nil, err
	}
	s := &Status{
		Schema: StatusSchema, Version: m.Version, Facts: f, NICs: []NIC{}, Links: []Link{}, Pending: []Pending{}, Missing: []string{},
	}
	s.interfaces(f, live, cat)
	var d intent.Device
	if file != nil {
		d = file.Device
		s.Device, s.Fabric, s.Model = d.Name, d.Fabric, file.Model
		if s.Drift, err = drift(ctx, file, e); err != nil {
			return nil, err
		}
	}
	s.Builds = builds(cat, render.Fitted(d, f, cat))
	hs, err := m.Holds().List(ctx)
	s.missed("holds", err)
	s.Holds = some(hs)
	txs, err := dev.Pending(ctx)
	s.missed("pending changes", err)
	for _, tx := range txs {
		s.Pending = append(s.Pending, Pending{string(tx.ID), string(tx.State), tx.Deadline})
	}
	s.Agent, err = m.LastReport()
	s.missed("the agent's report", err)
	return s, ctx.Err()
}

// missed notes what could not be looked at. What is not there is nothing to look at.
func (s *Status) missed(what string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Missing = append(s.Missing, what+": "+diag.OneLine(err.Error()))
	}
}

// interfaces fills in what the interfaces are and hold.
func (s *Status) interfaces(f render.Facts, live render.Config, cat *profiles.Catalog) {
	for _, h := range f.NICs {
		n := NIC{HostNIC: h, Iface: h.Name, Settings: map[string]string{}}
		if x, ok := cat.NICOf(h.Model, h.Driver); ok {
			n.NIC = x.Name
		}
		for _, x := range live {
			switch {
			case x.Key.Object != h.Name:
			case x.Key == render.Key{Scope: "link", Object: h.Name, Field: "mtu"}:
				n.MTU = bytesOf(x.Value)
			default:
				n.Settings[x.Key.Scope+" "+x.Key.Field] = x.Value
			}
		}
		if h.RDMA != "" {
			n.RoCEMTU = payload(n.MTU)
		}
		s.NICs = append(s.NICs, n)
	}
	for _, x := range live {
		if _, nic := f.NIC(x.Key.Object); !nic && x.Key.Scope == "link" && x.Key.Field == "mtu" {
			s.Links = append(s.Links, Link{x.Key.Object, bytesOf(x.Value)})
		}
	}
}

func bytesOf(digits string) units.Bytes {
	b, err := units.ParseBytes(digits + "B")
	if err != nil {
		return 0
	}
	return b
}

// drift plans the file, and does not apply it.
func drift(ctx context.Context, file *File, e *rollout.Engine) (*Drift, error) {
	net, err := file.Net()
	if err != nil {
		return nil, err
	}
	p, err := e.Plan(ctx, net, rollout.PlanOptions{Model: file.Model})
	if err != nil {
		return nil, err
	}
	dp := &p.Devices[0]
	class, _ := dp.Worst()
	d := &Drift{Changes: []render.Change{}, Risk: class.String(), Findings: some(dp.Findings), Error: dp.Error}
	for _, st := range dp.Steps {
		d.Changes = append(d.Changes, st.Changes...)
	}
	if dp.Left != nil {
		d.Left = dp.Left.Ops.Total()
	}
	return d, nil
}

// builds is what the compatibility matrix says of each NIC.
func builds(cat *profiles.Catalog, fleet []profiles.Fitted) diag.List {
	l := diag.List{}
	for _, x := range fleet {
		for _, v := range cat.Compat(x.Build) {
			f := diag.Finding{Rule: "compatibility", Severity: diag.Info, At: x.Iface, Pos: v.Pos, Msg: fmt.Sprintf("%s %s (%s)", x.Build, v.Says, v.Source), Hint: v.Remedy}
			switch v.Grade {
			case profiles.GradeBad:
				f.Severity = diag.Error
			case profiles.GradeWarn:
				f.Severity = diag.Warning
			}
			if v.Grade == profiles.GradeOK {
				f.Hint = ""
			}
			if !slices.ContainsFunc(l, func(o diag.Finding) bool { return o.String() == f.String() }) {
				l = append(l, f)
			}
		}
	}
	return l
}

// InStep reports whether the host holds what its file asks for, as far as it may be written.
func (s *Status) InStep() bool {
	d := s.Drift
	return d == nil || d.Error == "" && len(d.Changes) == 0 && d.Left == 0 && !d.Findings.HasErrors()
}

func some[S ~[]E, E any](l S) S {
	if l == nil {
		return S{}
	}
	return l
}
