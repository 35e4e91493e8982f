// Package tuning looks for better settings of a fabric by experiment: it changes a model one variable at a time, has a
// workload run under each setting, decides by statistics whether one is better, and writes down what it did and why.
//
// A Space says what may be moved, and what a Setting of it means for the model. An Experiment says how: workload, objective,
// limits, method, budget. Run carries it out on a Runner, which makes one run, and on a Bench, which brings a setting onto
// devices; a simulator needs none. All of it goes into a journal, from which a run is resumed, replayed and reported.
//
// The package reaches no device and reads no clock: both come from whoever calls it.
package tuning

import (
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// Setting is one value for each variable of a Space, in its order.
type Setting []float64

// Key is the setting as a key of maps. Equal settings have equal keys.
func (s Setting) Key() string {
	var b []byte
	for _, v := range s {
		b = append(strconv.AppendFloat(b, v, 'g', -1, 64), ' ')
	}
	return string(b)
}

// Quantity is what the values of a variable are, from which follows how they are written and rounded.
type Quantity uint8

// The quantities.
const (
	Number Quantity = iota // a plain number
	Factor                 // of a dynamic threshold: 0.125 is written 1/8
	Size                   // bytes
	Share                  // 0 to 1, written in percent
	Ratio                  // of one variable to another
	Rate                   // bits per second
	Time                   // seconds
)

// Variable is one number that an experiment moves.
type Variable struct {
	Name     string    `json:"name"` // "alpha", "kmax", "kmin/kmax"; of a part of the fabric "kmax@leaf"
	Doc      string    `json:"doc"`  // what it does, in a sentence
	Of       Quantity  `json:"of"`
	Low      float64   `json:"low"` // inclusive
	High     float64   `json:"high"`
	Ladder   []float64 `json:"ladder"`             // levels over the full range, ascending; none: Low and High alone
	Whole    bool      `json:"whole,omitempty"`    // only whole numbers
	Least    bool      `json:"least,omitempty"`    // the smallest value that is as good is wanted, as of a buffer: it is searched for by bisection
	Linear   bool      `json:"linear,omitempty"`   // steps are added and not multiplied: Step is then a difference
	Step     float64   `json:"step"`               // of a walk: 2 doubles and halves
	Fine     float64   `json:"fine"`               // of the polish at the end
	Paths    []string  `json:"paths"`              // of the model that it sets; none for an external one
	External *External `json:"external,omitempty"` // what sets it, when it is nothing that the model knows
	Costs    []Cost    `json:"costs"`              // of moving it, by platform; nothing is known of what is not listed
}

// Cost is what moving a variable costs on devices of a platform. It comes from the dialect that writes it.
type Cost struct {
	Platform string   `json:"platform"`
	Devices  []string `json:"devices"`
	Kind     CostKind `json:"kind"`
	Why      string   `json:"why"` // in words; "" for hitless
}

// CostKind is what a write does to traffic.
type CostKind string

// The costs.
const (
	Hitless CostKind = "hitless" // traffic does not notice
	Flaps   CostKind = "flaps"   // ports go down and up
	Refused CostKind = "refused" // the device does not take it, or fabricctl cannot write it
	Unowned CostKind = "unowned" // the model does not own it there
)

// External is a knob of something that has no dialect. Both commands run where fabricctl runs, without a shell, with "{value}"
// in any word replaced.
type External struct {
	Set  []string `json:"set"`  // exit code 0 = it is set
	Read []string `json:"read"` // prints the value that holds

	Tolerance float64        `json:"tolerance,omitempty"` // how far what holds may be from what was set, as a part of it; 0 = not at all
	Timeout   units.Duration `json:"timeout,omitempty"`   // of a command; 0 = as the runner has it
}

// Assign is a value for an external variable.
type Assign struct {
	Variable string  `json:"variable"`
	Value    float64 `json:"value"`
}

// Change is what a setting means: edits of the model, and values of external variables. Both are complete, so that settings can be
// tried in any order: the edits are of the model as it is (what stands as in it needs none), and not of the setting before.
type Change struct {
	Patch    model.Patch `json:"patch"`
	External []Assign    `json:"external,omitempty"`
}

// Space is what is moved, where it stands, and what a setting means. A function that is nil stands for what its comment says.
type Space struct {
	Vars []Variable
	Base Setting // what the model has

	Change   func(Setting) Change          // nil: no edits, as for objective functions of tests
	Check    func(Setting) diag.List       // errors say that it must never be tried; nil: everything may be
	Normal   func(Setting) Setting         // within the ranges, and rounded to what a model can hold; nil: within the ranges
	Unmarked func(Setting) Setting         // the same without a mark ever, for PFC alone; nil: there is no such thing
	Starts   func(floor Setting) []Start   // settings that formulas give, once the smallest alpha is known that PFC alone takes; nil: none
	Mends    func() []string               // rules that the model breaks, and that not all of what formulas give does: an experiment finds the way out; nil: none
	Text     func(i int, v float64) string // a value of Vars[i] as people and YAML write it
}

// Start is a setting that a formula gives.
type Start struct {
	Name    string  `json:"name"` // "0.7 N T_N, steep"
	Why     string  `json:"why"`  // the formula with its numbers
	Setting Setting `json:"setting"`
}
