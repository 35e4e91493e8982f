package report

// Page is a document that answers a question: the answer first, then what it rests on.
type Page struct {
	Title    string
	Subtitle string // what it is about, in a line; "" for none
	Answer   Answer
	Facts    []Fact // the numbers behind the answer, few
	Sections []Section
	Foot     string // who made it; "" for none
}

// Answer is what a reader takes along who reads no further.
type Answer struct {
	Tone Tone
	Head string   // a sentence
	Text []string // a few more
}

// Tone is what a reader is to feel about something. It is said in words too, since paper and eyes may know no colours.
type Tone uint8

// The tones.
const (
	Plain Tone = iota
	Good
	Careful
	Bad
)

// Fact is a number that matters, with what it is of.
type Fact struct {
	Name, Value string
	Note        string // how sure it is, or what it is compared with; "" for none
}

// Section is a part of a page.
type Section struct {
	Title  string
	Blocks []Block
}

// Block is a Text, a List, a Table, a Picture, a Log or a Code.
type Block interface {
	html(*writer)
	markdown(*text)
}

// Text is a paragraph.
type Text string

// List is short points.
type List []string

// Table is rows of cells. A row that is shorter than the head has empty cells at its end.
type Table struct {
	Caption string // "" for none
	Head    []string
	Numbers []int // columns that are aligned to the right
	Rows    []Row
}

// Row is a row of a Table.
type Row struct {
	Cells  []string
	Strong bool // the one to look at
}

// Picture is a chart, with what it shows in numbers: for who cannot see it, and for Markdown, which holds no charts.
type Picture struct {
	Chart   Chart
	Numbers Table
}

// Log is what happened, in order.
type Log []Entry

// Entry is a point of a Log.
type Entry struct {
	Head  string // what was asked
	Tag   string // what came of it, in a word or two
	Tone  Tone
	Text  string
	Facts []string // in small, behind it
}

// Code is lines to be copied, or to be read as they are.
type Code struct {
	Lang string // "yaml", "diff", "sh"; "" for none
	Text string
}
