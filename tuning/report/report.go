// Package report draws what was measured or computed: charts as SVG, for documents, wikis and browsers. A chart is a value;
// the bytes are a function of it, on any machine, hold no script and refer to nothing outside. They follow the viewer's wish for light or
// dark, and stay readable on a telephone.
package report

// Chart is panels below each other that share the axis to the right.
type Chart struct {
	Title   string
	Caption string // what is to be known before it is believed, in a sentence or two; "" for none
	X       Axis
	Spans   []Span // behind everything, in every panel
	Panels  []Panel
}

// Axis says what numbers are of. They are in base units: bytes, bits per second, seconds, 1 for the whole.
type Axis struct {
	Label string
	Of    Quantity
}

// Quantity is what is drawn along an axis, from which follow the units in which it is labelled.
type Quantity uint8

// Quantities.
const (
	Count Quantity = iota
	Bytes
	Rate // bits per second
	Time // seconds
	Share
)

// Panel is lines above one axis. It begins at 0, or below where a line goes below.
type Panel struct {
	Y      Axis
	Lines  []Line
	Levels []Level
}

// Line goes through points from left to right: X does not fall. A Y that is no number is a gap, since what was not measured is not 0.
// Lines of one name in a panel share a colour and a place in its legend.
type Line struct {
	Name string
	X, Y []float64
}

// Level is a threshold: a horizontal line with its name and value. One that is far above all lines is told of, and not drawn.
type Level struct {
	Name string
	Y    float64
}

// Span is a part of the axis to the right: a warm-up, a fault.
type Span struct {
	Name     string
	From, To float64
}
