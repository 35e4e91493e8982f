package eos

import (
	"regexp"
	"time"
)

// Faults are ways to misbehave. The zero value behaves.
type Faults struct {
	// Lines.
	Reject     *regexp.Regexp    // configuration lines that are refused
	RejectWith string            // with this sentence; "" means "% Invalid input"
	Deny       *regexp.Regexp    // lines for which the account is not authorised, configuration or not
	OnLine     func(line string) // called before each line, configuration or not: the place to change things behind a client's back

	// The connection.
	DropAfter int            // cut each connection after this many bytes of it, both directions counted; 0 never
	DropAt    *regexp.Regexp // cut the connection at this line, before it acts
	DropOn    *regexp.Regexp // cut the connection at this line, after it acted and before the answer
	StallAt   *regexp.Regexp // at this line stop answering until the connection ends
	Chunk     int            // send output in pieces of this many bytes
	SplitAt   string         // end a piece of output after each of these
	Pause     time.Duration  // wait after each piece
	Delay     time.Duration  // wait before each answer
	NoPrompt  bool           // never show a prompt
	Flood     *regexp.Regexp // at this line send output without end
	Junk      []byte         // send these bytes before the first prompt

	// Truth.
	IgnoreCommit  bool           // say that a commit worked and change nothing
	CommitError   string         // refuse commits with this sentence
	RefuseAbort   bool           // refuse to abort a session or to revert a timed one
	RefuseConfirm bool           // refuse to confirm a timed session
	IgnoreSave    bool           // say that write memory worked and save nothing
	IgnoreLine    *regexp.Regexp // take these configuration lines and change nothing
	Deaf          *regexp.Regexp // ports on which nothing is heard over LLDP
	NoLLDP        bool           // LLDP is not running
	NoEnd         bool           // show running-config stops without its final "end"
	NoCounters    *regexp.Regexp // commands that show counters and that this switch does not have

	Counters func(command string) string // what such a command answers; nil, and "", = what was counted
}

// SetFaults replaces the faults, for connections that are open too.
func (s *Switch) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

func (s *Switch) currentFaults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

func hits(re *regexp.Regexp, line string) bool { return re != nil && re.MatchString(line) }
