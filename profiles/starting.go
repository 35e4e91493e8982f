package profiles

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/units"
)

// Label says who stands behind a starting value.
type Label string

// The labels, from the strongest to the weakest.
const (
	LabelPublished    Label = "published"    // somebody uses it, or recommends it, for such a port
	LabelExtrapolated Label = "extrapolated" // it follows by a rule from what was published for other ports
	LabelGuess        Label = "guess"        // nobody does
)

// Behind is a label and the source that it is about. Its text is "published: source", so that a guess is never
// taken for more.
type Behind struct {
	Label  Label
	Source string
}

// String is the label and the source.
func (b Behind) String() string { return string(b.Label) + ": " + b.Source }

// Start is where thresholds of a lossless class may start that nobody chose: a starting point, not an answer.
type Start struct {
	ID         string
	Speed      units.BitRate // of the port
	Buffer     units.Bytes   // of the class of chips that it is meant for; 0 = of any
	Kmin, Kmax units.Bytes
	Ramp       Behind // of Kmin and Kmax
	Pmax       units.Percent
	PmaxFrom   Behind
	Alpha      units.Ratio // of the dynamic threshold at which pause is sent
	AlphaFrom  Behind
	AlphaLo    units.Ratio // where a search for alpha stays
	AlphaHi    units.Ratio
}

// Setting is an ECN ramp that somebody published.
type Setting struct {
	ID         string
	From, To   units.BitRate // speeds of ports that it is for; 0 = any
	Kmin, Kmax units.Bytes
	Pmax       units.Percent // 0 = not stated
	Source     string
	Note       string
}

// startingData is data/starting.yaml.
type startingData struct {
	Points []struct {
		ID         string
		Speed      units.BitRate
		Buffer     units.Bytes
		Kmin, Kmax units.Bytes
		Ramp       Behind
		Pmax       struct {
			Value  units.Percent
			Behind `yaml:",inline"`
		}
		Alpha struct {
			Value  units.Ratio
			Behind `yaml:",inline"`
		}
		Bounds struct{ From, To units.Ratio }
	}
	Published []Setting
}

//go:embed data/starting.yaml
var startingYAML []byte

var startingOnce parsed[startingData]

func starting() (*startingData, error) { return startingOnce.of("starting.yaml", startingYAML) }

// StartingPoints are all starting points, by speed and then by size of the buffer.
func StartingPoints() []Start {
	d, err := starting()
	if err != nil { // the embedded data is tested
		return nil
	}
	ss := make([]Start, len(d.Points))
	for i, p := range d.Points {
		ss[i] = Start{
			ID: p.ID, Speed: p.Speed, Buffer: p.Buffer, Kmin: p.Kmin, Kmax: p.Kmax, Ramp: p.Ramp, Pmax: p.Pmax.Value, PmaxFrom: p.Pmax.Behind,
			Alpha: p.Alpha.Value, AlphaFrom: p.Alpha.Behind, AlphaLo: p.Bounds.From, AlphaHi: p.Bounds.To,
		}
	}
	return ss
}

// PublishedECN are the ECN settings that others have published.
func PublishedECN() []Setting {
	d, err := starting()
	if err != nil {
		return nil
	}
	return slices.Clone(d.Published)
}

// StartingPoint is where a port of this speed starts, on a chip with this much buffer (0 = not known): the point for
// its speed whose buffer is the largest that the chip has too, else the smallest. A speed that has none gets the thresholds of
// the next slower one (else of the slowest), scaled with the speed and called a guess.
func StartingPoint(speed units.BitRate, buffer units.Bytes) Start {
	var at, slower Start
	for _, s := range StartingPoints() { // ascending
		switch {
		case s.Speed == speed && (at.ID == "" || s.Buffer <= buffer):
			at = s
		case slower.ID == "" || s.Speed < speed && (s.Speed > slower.Speed || s.Buffer <= buffer):
			slower = s
		}
	}
	if at.ID != "" || speed <= 0 {
		return at
	}
	return slower.scaled(speed)
}

// scaled is s for another speed, rounded down to a thousand bytes.
func (s Start) scaled(speed units.BitRate) Start {
	scale := func(v units.Bytes) units.Bytes {
		return max(units.Bytes(float64(v)*(float64(speed)/float64(s.Speed)))/units.KB*units.KB, units.KB)
	}
	s.Ramp = Behind{LabelGuess, fmt.Sprintf("the starting point for %v, scaled with the speed", s.Speed)}
	s.PmaxFrom = Behind{LabelGuess, fmt.Sprintf("the starting point for %v", s.Speed)}
	s.AlphaFrom = s.PmaxFrom
	s.ID, s.Speed, s.Kmin, s.Kmax = s.ID+"-scaled", speed, scale(s.Kmin), scale(s.Kmax)
	return s
}

// Start is where the ports of a platform start at a speed; see StartingPoint. The alpha is that of the platform's own
// headroom table, for the speed or else for another, and the bounds hold it: a model without an alpha gets the same.
func (p Platform) Start(speed units.BitRate) Start {
	buffer := p.Chip.Buffer
	if buffer == 0 {
		buffer = p.Pool.Lossless + p.Pool.Headroom
	}
	s := StartingPoint(speed, buffer)
	row, _, ok := p.HeadroomAt(speed, 0)
	from := Behind{LabelPublished, "headroom table of " + p.Name}
	if !ok && len(p.Headroom) > 0 {
		row = slices.MaxFunc(p.Headroom, func(a, b HeadroomRow) int { return cmp.Compare(a.Cable, b.Cable) })
		from = Behind{LabelExtrapolated, from.Source + ", which has other speeds"}
	}
	if row.Alpha.Den > 0 {
		s.Alpha, s.AlphaFrom = row.Alpha, from
		if less(s.Alpha, s.AlphaLo) {
			s.AlphaLo = s.Alpha
		}
		if less(s.AlphaHi, s.Alpha) {
			s.AlphaHi = s.Alpha
		}
	}
	return s
}

func less(a, b units.Ratio) bool { return int64(a.Num)*int64(b.Den) < int64(b.Num)*int64(a.Den) }
