package eos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type sessionState string

const (
	pending   sessionState = "pending"
	timed     sessionState = "pendingCommitTimer"
	completed sessionState = "completed"
	aborted   sessionState = "aborted"
)

// session is a configuration session: a copy of running-config that becomes running-config on commit, overwriting
// whatever changed meanwhile.
type session struct {
	name, user, tty string
	state           sessionState
	config          *config
	before          *config // what a timer goes back to
	deadline        time.Time
	done            time.Time
	doneBy          string
	stop            func()
}

func (x *session) stopTimer() {
	if x.stop != nil {
		x.stop()
		x.stop = nil
	}
}

// open finds a pending session or begins one.
func (s *Switch) open(name, user, tty string) (*session, string) {
	if x := s.session(name); x != nil {
		if x.state != pending {
			return nil, fmt.Sprintf("%% Cannot enter session %s (state: %s)", name, x.state)
		}
		x.tty = tty
		return x, ""
	}
	n := 0
	for _, x := range s.sessions {
		if x.state == pending {
			n++
		}
	}
	if n >= s.opt.MaxPending {
		return nil, "% Maximum number of pending sessions has been reached. Please commit or abort previous sessions before creating a new one."
	}
	x := &session{name: name, user: user, tty: tty, state: pending, config: s.running.clone()}
	s.sessions = append(s.sessions, x)
	return x, ""
}

// commit makes a pending session running, for good or until the timer ends.
func (s *Switch) commit(x *session, timer time.Duration) string {
	switch {
	case s.faults.CommitError != "":
		return s.faults.CommitError
	case x.state != pending:
		return fmt.Sprintf("%% Cannot commit session %s (state: %s)", x.name, x.state)
	case timer > 0:
		for _, y := range s.sessions {
			if y.state == timed { // the sentence is ours: the real one was not recorded
				return "% Cannot commit: session " + y.name + " has a pending commit timer"
			}
		}
	}
	before := s.running
	if !s.faults.IgnoreCommit {
		s.running = x.config.clone()
	}
	s.counters.Commits++
	x.done, x.doneBy = s.opt.Clock.Now(), x.user
	if timer == 0 {
		s.finish(x, completed)
		return ""
	}
	x.state, x.before, x.deadline = timed, before, x.done.Add(timer)
	x.stop = s.opt.Clock.AfterFunc(timer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if x.state == timed && s.session(x.name) == x {
			s.counters.Reverts++
			s.revert(x)
		}
	})
	return ""
}

func (s *Switch) revert(x *session) {
	s.running = x.before
	s.finish(x, aborted)
}

// finish ends a session. Only the last one that ended is remembered.
func (s *Switch) finish(x *session, state sessionState) {
	x.stopTimer()
	x.state, x.before = state, nil
	s.sessions = slices.DeleteFunc(s.sessions, func(y *session) bool {
		return y != x && (y.state == completed || y.state == aborted)
	})
}

// confirmOrCommit is configure session NAME commit: it ends the timer of a timed session, and commits a pending one.
func (s *Switch) confirmOrCommit(name string) string {
	x := s.session(name)
	switch {
	case x == nil:
		return "% Session " + name + " not found"
	case x.state != timed:
		return s.commit(x, 0)
	case s.faults.RefuseConfirm:
		return "% Internal error"
	}
	s.counters.Confirms++
	s.finish(x, completed)
	return ""
}

// abort drops a pending session and reverts a timed one.
func (s *Switch) abort(name string) string {
	x := s.session(name)
	switch {
	case x == nil:
		return "% Session " + name + " not found"
	case s.faults.RefuseAbort:
		return "% Internal error"
	case x.state == pending:
		s.finish(x, aborted)
	case x.state == timed:
		s.revert(x)
	default:
		return fmt.Sprintf("%% Cannot abort session %s (state: %s)", name, x.state)
	}
	s.counters.Aborts++
	return ""
}

// listSessions is show configuration sessions, with its detail. Since 4.32 a timed session is listed as committed,
// and only two lines above the table of the detail name it.
func (s *Switch) listSessions(current *session, detail bool) string {
	var b strings.Builder
	now := s.opt.Clock.Now()
	fmt.Fprintf(&b, "Maximum number of completed sessions: 1\nMaximum number of pending sessions: %d\n", s.opt.MaxPending)
	recent := s.minor() >= 32
	if recent && detail {
		b.WriteString("Merge on commit is disabled\nAutosave to startup-config on commit is disabled\n")
		for _, x := range s.sessions {
			if x.state == timed {
				fmt.Fprintf(&b, "\nSession with pending commit timer: %s\nTime left until commit timer expiry: in %s\n", x.name, clockTime(x.deadline.Sub(now)))
			}
		}
	}
	columns := []string{"", "Name", "State", "User", "Terminal"}
	if detail && !recent {
		columns = append(columns, "Commit Time Left")
	}
	if detail {
		columns = append(columns, "Completed Time", "Committed By")
	}
	rows := [][]string{columns}
	for _, x := range s.sessions {
		state, left, done := string(x.state), "", ""
		if recent && (x.state == timed || x.state == completed) {
			state = "committed"
		}
		if x.state == timed {
			left = clockTime(x.deadline.Sub(now))
		}
		if !x.done.IsZero() {
			done = x.done.Format(time.DateTime)
		}
		row := []string{"", x.name, state, "", ""}
		if x == current {
			row[0] = "*"
		}
		if x.state == pending {
			row[3], row[4] = x.user, x.tty
		}
		if detail && !recent {
			row = append(row, left)
		}
		if detail {
			row = append(row, done, x.doneBy)
		}
		rows = append(rows, row)
	}
	b.WriteString("\n" + table(rows, recent))
	return b.String()
}

// table lays rows out in columns under a ruler. The first column holds a mark, which only newer versions rule.
func table(rows [][]string, ruleMark bool) string {
	width := make([]int, len(rows[0]))
	width[0] = 1
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], len(c))
		}
	}
	ruler := make([]string, len(width))
	for i, w := range width {
		if i > 0 || ruleMark {
			ruler[i] = strings.Repeat("-", w)
		}
	}
	var b strings.Builder
	for _, r := range append([][]string{rows[0], ruler}, rows[1:]...) {
		var l strings.Builder
		for i, c := range r {
			fmt.Fprintf(&l, "%-*s ", width[i], c)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

// clockTime is H:MM:SS.
func clockTime(d time.Duration) string {
	n := int(max(d, 0).Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", n/3600, n/60%60, n%60)
}
