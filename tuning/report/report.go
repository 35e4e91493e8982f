// Package report draws what was measured or computed, and writes pages of it: charts as SVG, for documents, wikis and browsers, and
// a Page of text, tables and charts as one HTML file or as Markdown. A chart and a page are values;
// the bytes are a function of them, on any machine, hold no script and refer to nothing outside. They follow the viewer's wish for light or
// dark, and stay readable on a telephone.
package report

// Chart is panels below each other that share the axis to the right.
type Chart struct {
	Title   string
	Caption string // what is to be known before it is believed, in a sentence or two; "" for none
	X       Axis
	LogX    bool    // the axis is logarithmic, for what is above 0
	Spans   []Span  // behind everything, in every panel
	Places  []Place // lines from top to bottom, in every panel
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
	Factor // 0.125 is 1/8, and a logarithmic axis has powers of two
)

// Panel is lines and points above one axis. It begins at 0, or below where a line goes below.
type Panel struct {
	Y      Axis
	LogY   bool // the axis is logarithmic, for what is above 0
	Free   bool // the axis shows where the numbers are, wherever 0 is
	Tall   bool // twice as high: for clouds of points
	Lines  []Line
	Marks  []Marks
	Levels []Level
}

// Line goes through points from left to right: X does not fall. A Y that is no number is a gap, since what was not measured is not 0.
// Lines of one name in a panel share a colour and a place in its legend.
type Line struct {
	Name string
	X, Y []float64
}

// Marks are points of one kind, each with an interval where one is known. Their colour and form are those of their place among the
// names of the panel, lines before marks.
type Marks struct {
	Name      string
	Joined    bool // by a thin line, in their order
	Big       bool // the few that matter among many
	X, Y      []float64
	Low, High []float64 // ends of the intervals of Y, as long as it, or nil. No number is no interval; what is infinite ends with the picture
}

// Place is something on the axis to the right: what is set now, what was chosen.
type Place struct {
	Name string
	X    float64
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
