package model

import "github.com/fabricctl/fabricctl/model/diag"

// Kind says where a value came from.
type Kind uint8

const (
	FromLine       Kind = iota + 1 // a line of the model
	FromProfile                    // hardware data; Ref names the profile and its source
	FromPublished                  // a published default; Ref names the publication
	FromFormula                    // computed; Ref names the formula, Inputs what went in
	FromExperiment                 // measured by a tuning run; Ref names the run
	FromDefault                    // fabricctl's own default; Ref says why
)

// String is the word explain prints.
func (k Kind) String() string {
	switch k {
	case FromLine:
		return "model"
	case FromProfile:
		return "profile"
	case FromPublished:
		return "published"
	case FromFormula:
		return "formula"
	case FromExperiment:
		return "experiment"
	case FromDefault:
		return "default"
	}
	return "unknown"
}

// Origin says where one value came from, and what it won over. Origins are shared and never changed once made.
type Origin struct {
	Kind   Kind       // where from
	Pos    diag.Pos   // the winning line, for FromLine
	Ref    string     // profile, publication, formula or run, in words
	Inputs []*Origin  // for formulas
	Lost   []diag.Pos // lines that were overridden, nearest first
}

// At is the position of o, or the zero Pos for nil and for origins that are not lines.
func (o *Origin) At() diag.Pos {
	if o == nil {
		return diag.Pos{}
	}
	return o.Pos
}
