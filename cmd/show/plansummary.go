package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// planSummary is a plan in numbers: what changes, what apply will ask for, and what is not part of it.
type planSummary struct {
	Devices         int         `json:"devices"`
	Changing        int         `json:"changing"` // devices that are written to
	Settings        rollout.Ops `json:"settings"` // of what will be written
	Refused         int         `json:"refused"`  // devices that must not be written
	Unread          int         `json:"unread"`   // devices that could not be read
	Left            rollout.Ops `json:"left"`     // settings that holds keep back
	LeftDevices     int         `json:"left_devices"`
	Disruptive      portCount   `json:"disruptive"`           // flap, or worse: apply needs --allow-disruptive
	Jobs            JobCount    `json:"jobs,omitzero"`        // live queue pairs that die with that: apply needs --allow-jobs
	Unverified      []string    `json:"unverified,omitempty"` // platforms for which apply needs --accept-unverified
	ObservedValues  int         `json:"observed_values"`      // that differ and that nobody writes
	ObservedDevices int         `json:"observed_devices"`
	unsafe          bool        // what is held cannot be left out
	owning          int         // devices that the model owns something on
	unread          string      // the first that could not be read
	adoptable       int         // devices on which adoption would leave a tenth of the settings, or less
	spared          int         // settings there that it would spare
}

type portCount struct {
	Ports   int `json:"ports"`
	Devices int `json:"devices"`
}

// JobCount is live queue pairs that a plan kills.
type JobCount struct {
	Pairs     int `json:"queue_pairs"`
	Devices   int `json:"devices"`
	Uncounted int `json:"uncounted"` // devices of which nobody can tell
}

func summarise(p *rollout.Plan) planSummary {
	s := planSummary{Devices: len(p.Devices), Changing: Changing(p), Unverified: Unverified(p)}
	for _, d := range p.Devices {
		if d.Mode == rollout.Write {
			s.owning++
		}
		switch {
		case d.Error != "":
			s.Unread++
			s.unread = cmp.Or(s.unread, d.Name)
		case d.Blocked:
			s.Refused++
		default:
			s.Settings.Add += d.Ops.Add
			s.Settings.Set += d.Ops.Set
			s.Settings.Remove += d.Ops.Remove
			if x := d.Adopting; x != nil && x.Total()*10 <= d.Ops.Total() {
				s.adoptable++
				s.spared += d.Ops.Total() - x.Total()
			}
		}
	}
	for _, d := range p.Devices {
		if d.Left != nil {
			s.LeftDevices++
			s.Left.Add += d.Left.Ops.Add
			s.Left.Set += d.Left.Ops.Set
			s.Left.Remove += d.Left.Ops.Remove
		}
	}
	s.unsafe = p.Finds.HasErrors()
	s.Disruptive.Ports, s.Disruptive.Devices = Disruptive(p)
	s.Jobs = Working(p)
	s.ObservedValues, s.ObservedDevices = observed(p)
	return s
}

// sentence is one line of a summary.
type sentence struct {
	style Style
	text  string
}

// sentences are the summary in words: what changes first, what went wrong last.
func (s planSummary) sentences() []sentence {
	var out []sentence
	say := func(st Style, format string, args ...any) {
		out = append(out, sentence{st, fmt.Sprintf(format, args...)})
	}
	switch {
	case s.Settings.Total() > 0:
		say(Plain, "plan: %s (%d to add, %d to set, %d to remove) on %s",
			diag.Count(s.Settings.Total(), "setting"), s.Settings.Add, s.Settings.Set, s.Settings.Remove, diag.Count(s.Changing, "device"))
	case s.Unread+s.Refused == s.Devices:
	case s.Unread > 0 || s.Refused > 0:
		say(Plain, "plan: no changes on the other devices")
	case s.LeftDevices > 0:
		say(Plain, "plan: no changes but to what is held")
	case s.owning == 0:
		say(Plain, "no changes: the model owns nothing on these devices")
	default:
		say(Green, "no changes: the devices hold what the model owns")
	}
	if s.adoptable > 0 {
		say(Yellow, "%d of them on %s only put objects of our names in place of others that do the same; --adopt, or manage: {adopt: true} in the model, keeps those", s.spared, diag.Count(s.adoptable, "device"))
	}
	if s.LeftDevices > 0 {
		what := fmt.Sprintf("held: %s on %s left out; ", diag.Count(s.Left.Total(), "setting"), diag.Count(s.LeftDevices, "device"))
		if s.Left.Total() == 0 {
			what = fmt.Sprintf("held: %s could not be read; ", diag.Count(s.LeftDevices, "device"))
		}
		switch {
		case s.unsafe:
			say(Red, "%sapply refuses the rest, since the fabric would not agree: see above", what)
		case s.Settings.Total() > 0:
			say(Yellow, "%sapply does the rest and ends with exit 3", what)
		default:
			say(Yellow, "%sapply has nothing else to do and ends with exit 4", what)
		}
	}
	if n := s.Disruptive; n.Devices > 0 {
		say(Plain, "apply needs --allow-disruptive: %s on %s flap, or worse", diag.Count(n.Ports, "port"), diag.Count(n.Devices, "device"))
	}
	if n := s.Jobs; n.Devices+n.Uncounted > 0 {
		say(Yellow, "apply needs --allow-jobs: %s", n)
	}
	if len(s.Unverified) > 0 {
		say(Plain, "apply needs --accept-unverified: nobody has tried %s on a real device", strings.Join(s.Unverified, ", "))
	}
	if s.ObservedValues > 0 {
		verb := "differ"
		if s.ObservedValues == 1 {
			verb = "differs"
		}
		say(Plain, "observed: %s %s on %s", diag.Count(s.ObservedValues, "value"), verb, diag.Count(s.ObservedDevices, "device"))
	}
	if s.Refused > 0 {
		say(Red, "refused: %s must not be written, as said above", diag.Count(s.Refused, "device"))
	}
	if s.Unread > 0 {
		say(Red, "%s could not be read; fabricctl doctor %s says at what it fails", diag.Count(s.Unread, "device"), s.unread)
	}
	return out
}

// Disruptive counts the ports that would flap, or worse, and their devices.
func Disruptive(p *rollout.Plan) (ports, devices int) {
	for _, d := range p.Devices {
		if class, n := d.Worst(); len(d.Steps) > 0 && class > render.Hitless && class < render.Refused {
			ports, devices = ports+n, devices+1
		}
	}
	return ports, devices
}

// Working counts the live queue pairs that a plan kills, and their devices.
func Working(p *rollout.Plan) (c JobCount) {
	for _, d := range p.Devices {
		if len(d.Steps) == 0 {
			continue
		}
		n, known := d.Jobs()
		if n > 0 {
			c.Pairs, c.Devices = c.Pairs+n, c.Devices+1
		}
		if !known {
			c.Uncounted++
		}
	}
	return c
}

// String says what is killed.
func (c JobCount) String() string {
	counted := fmt.Sprintf("the change kills %s of running jobs on %s", diag.Count(c.Pairs, "live queue pair"), diag.Count(c.Devices, "device"))
	unknown := fmt.Sprintf("on %s nobody can count the live queue pairs of running jobs", diag.Count(c.Uncounted, "device"))
	switch {
	case c.Uncounted == 0:
		return counted
	case c.Devices == 0:
		return unknown
	}
	return counted + ", and " + unknown
}

// Unverified are the platforms to be written that nobody has tried on a real device.
func Unverified(p *rollout.Plan) []string {
	var names []string
	for _, d := range p.Devices {
		if len(d.Steps) > 0 && !d.Verified && !p.Lab && !slices.Contains(names, d.Platform) {
			names = append(names, d.Platform)
		}
	}
	return names
}

// observed counts the values on ports that differ from the model and that nobody writes, and their devices.
func observed(p *rollout.Plan) (values, devices int) {
	for _, d := range p.Devices {
		if len(d.Observed) > 0 {
			devices++
		}
		for _, c := range d.Observed {
			values += len(c.Changes) * max(1, len(c.Ports))
		}
	}
	return values, devices
}

// Changing counts the devices that are written to.
func Changing(p *rollout.Plan) int {
	n := 0
	for _, d := range p.Devices {
		if len(d.Steps) > 0 {
			n++
		}
	}
	return n
}
