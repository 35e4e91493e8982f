package sshcli

import (
	"regexp"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// flow is how one operating system is talked to: all that this package knows about it. Adding a CLI is adding its
// file and its row in flows; what is not in the table is the same for every CLI. Where a step is a list of lines, they
// are sent one after the other, and each answer is checked.
type flow struct {
	os   string // name of the dialect
	caps drivers.Caps

	// Getting in.
	login      *regexp.Regexp                   // a prompt before the device's name is known; group 1 is what all its prompts start with
	prompts    func(name string) *regexp.Regexp // any prompt of that device, at the end of what was received
	privileged func(prompt string) bool         // whether a prompt may change things
	enable     string                           // the line that gets there
	question   *regexp.Regexp                   // how it asks for a password
	setup      []string                         // no paging, no wrapping

	refused *regexp.Regexp // the sentence of a line that was not taken

	// Reading.
	running string // the line that shows the running configuration
	comment string // how its comments start, which may tell the time
	end     string // its last line, without which it was cut short; "" when the system writes none
	facts   []fact

	neighbours string // the line that lists what is heard over LLDP, and how to read its answer
	heard      func(answer string) ([]drivers.Neighbour, error)

	counters []tally // what Sense reads, in this order

	// Changing. Names of sessions are made of prefix and a transaction id.
	begin    func(session string) []string
	inside   *regexp.Regexp // the prompt inside a session
	diff     string         // the line that shows what the session would change; empty answer: nothing
	commit   func(session string, within time.Duration) []string
	abort    []string // inside the session
	list     string   // the line that lists sessions, and how to read its answer: each name once, as timed if it is that too
	sessions func(answer string, now time.Time) ([]session, error)
	confirm  func(session string) []string // outside
	cancel   func(s session) []string      // outside: drop an open one, revert a timed one
	forget   func(session string) []string // outside: make the name of one that ended free again

	probes []probe // what Try types into a session

	save  string
	saved string // the line that shows how running differs from startup; empty answer: not at all
}

// fact is a line whose answer fills in part of render.Facts.
type fact struct {
	line string
	read func(answer string, f *render.Facts)
}

// session is a transaction as the device lists it.
type session struct {
	name     string
	user     string
	state    drivers.TxState // "" when it has ended
	deadline time.Time       // of a timed one; zero when the device does not say
}

// flows is the table of all CLIs.
func flows() []*flow { return []*flow{&eos} }

func flowOf(os string) *flow {
	for _, f := range flows() {
		if f.os == os {
			return f
		}
	}
	return nil
}
