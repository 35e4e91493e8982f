package tuning

// ExternalSpec is a knob that the model does not know, as its file describes it.
type ExternalSpec struct {
	Variable         // Name, Doc, Of, Low, High, Ladder, Whole, Linear, Step, Fine, External
	Now      float64 // what it is, read before anything is moved
}

// externals adds the external variables.
func (b *spacer) externals() {
	for _, x := range b.options.Externals {
		v := x.Variable
		if b.find(v.Name, nil) >= 0 {
			b.errorf("give it another name", "there are two external variables %s", v.Name)
			continue
		}
		v.Low, v.High = min(v.Low, x.Now), max(v.High, x.Now)
		b.knobs = append(b.knobs, knob{row: row{Variable: v}, now: x.Now})
	}
}
