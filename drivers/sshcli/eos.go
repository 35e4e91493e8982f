package sshcli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// eos is Arista EOS 4.2x and 4.3x. It follows public documentation and recordings; no switch of ours has run it.
//
//   - A session is a copy of running-config, and its commit overwrites what others changed meanwhile: that is why
//     Commit compares running-config again right before.
//   - "configure session X commit" confirms a timed session, but commits a pending one as it stands: that is why
//     Confirm looks first.
//   - Before 4.32 a timed session is in state pendingCommitTimer. Since 4.32 it is listed as committed, and only the
//     detailed list names it, above the table.
var eos = flow{
	os:   "eos",
	caps: drivers.Caps{Confirm: true, Atomic: true, Counters: true},

	login: regexp.MustCompile(`(?m)^(\S{1,120})[>#] ?\z`),
	prompts: func(name string) *regexp.Regexp {
		return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `(?:\(config[^()\s]{0,200}\))?[>#] ?\z`)
	},
	privileged: func(prompt string) bool { return strings.HasSuffix(strings.TrimSpace(prompt), "#") },
	enable:     "enable",
	question:   regexp.MustCompile(`(?mi)^password: ?\z`),
	setup:      []string{"terminal length 0", "terminal width 32767"},

	refused: regexp.MustCompile(`(?m)^% .*$`),

	running: "show running-config",
	comment: "!",
	end:     "end",
	facts: []fact{
		{"show version", eosVersion},
		{"show hostname", func(answer string, f *render.Facts) { f.Hostname = after(answer, "Hostname:") }},
	},

	neighbours: "show lldp neighbors detail | json",
	heard:      eosNeighbours,
	counters:   eosCounters(),

	begin:  func(s string) []string { return []string{"configure session " + s} },
	inside: regexp.MustCompile(`\(config-s-[^()\s]*\)#`),
	diff:   "show session-config diffs",
	commit: func(_ string, within time.Duration) []string {
		if within <= 0 {
			return []string{"commit"}
		}
		n := int64((within + time.Second - 1) / time.Second)
		return []string{fmt.Sprintf("commit timer %02d:%02d:%02d", n/3600, n/60%60, n%60)}
	},
	abort:    []string{"abort"},
	list:     "show configuration sessions detail",
	sessions: eosSessions,
	confirm:  func(s string) []string { return []string{"configure session " + s + " commit"} },
	cancel:   func(s session) []string { return []string{"configure session " + s.name + " abort"} },
	forget:   func(s string) []string { return []string{"no configure session " + s} },

	probes: []probe{
		{"edit a QoS profile", "apply", func(render.Facts) string { return "qos profile fctl-doctor" }},
		{"change what is not QoS", "", eosHostname},
	},

	save:  "write memory",
	saved: "show running-config diffs",
}

var eosPlainName = regexp.MustCompile(`^[A-Za-z0-9][-.\w]*$`)

// eosHostname gives the device the name that it has.
func eosHostname(f render.Facts) string {
	if !eosPlainName.MatchString(f.Hostname) {
		return "hostname fctl-doctor"
	}
	return "hostname " + f.Hostname
}

// after is what follows a label at the start of a line.
func after(answer, label string) string {
	for l := range strings.Lines(answer) {
		if v, ok := strings.CutPrefix(l, label); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func eosVersion(answer string, f *render.Facts) {
	f.Serial, f.Version = after(answer, "Serial number:"), after(answer, "Software image version:")
	first, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	f.Model = strings.TrimSpace(strings.TrimPrefix(first, "Arista "))
}

// eosSessions reads the table under its ruler: a mark for the terminal's own session, name and state, and the rest by
// the columns that the ruler draws. A state that is not known is an error, since it might be one that holds us up.
func eosSessions(answer string, now time.Time) ([]session, error) {
	var out []session
	var timer string           // the session named above the table, since 4.32
	var deadline time.Time     // and its end
	var head string            // the line above the ruler
	var columns map[string]int // start of each
	var ruler []int
	for l := range strings.Lines(answer) {
		l = strings.TrimRight(l, "\r\n ")
		switch {
		case columns == nil && strings.HasPrefix(l, "Session with pending commit timer:"):
			timer = after(l, "Session with pending commit timer:")
		case columns == nil && strings.HasPrefix(l, "Time left until commit timer expiry:"):
			deadline = eosDeadline(l, now)
		case columns == nil && strings.Contains(l, "---") && strings.Trim(l, "- ") == "":
			columns, ruler = rule(head, l)
		case columns != nil && strings.TrimSpace(l) != "":
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(l), "*"))
			if len(words) < 2 {
				return nil, fmt.Errorf("no name and state in %q", shorten(l))
			}
			x := session{name: words[0]}
			switch words[1] {
			case "pending":
				x.state, x.user = drivers.TxOpen, cell(l, columns["User"], ruler)
			case "pendingCommitTimer":
				x.state, x.deadline = drivers.TxTimed, eosDeadline(l, now)
			case "completed", "committed", "aborted":
			default:
				return nil, fmt.Errorf("session %s is in a state that is not known: %q", words[0], words[1])
			}
			out = append(out, x)
		}
		head = l
	}
	if columns == nil && !strings.Contains(answer, "Maximum number of pending sessions") {
		return nil, errors.New("no table of sessions")
	}
	if timer == "" {
		return out, nil
	}
	for i := range out {
		if out[i].name == timer {
			out[i].state, out[i].deadline = drivers.TxTimed, deadline
			return out, nil
		}
	}
	return append(out, session{name: timer, state: drivers.TxTimed, deadline: deadline}), nil
}

// rule finds the columns of a table: where each run of dashes starts, by the heading above it.
func rule(head, ruler string) (columns map[string]int, starts []int) {
	columns = map[string]int{}
	for i := range ruler {
		if ruler[i] == '-' && (i == 0 || ruler[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	for _, s := range starts {
		columns[cell(head, s, starts)] = s
	}
	return columns, starts
}

// cell is what stands in the column that starts at start, up to the next one.
func cell(l string, start int, starts []int) string {
	end := len(l)
	for _, s := range starts {
		if s > start {
			end = min(end, s)
			break
		}
	}
	return strings.TrimSpace(l[min(start, end):end])
}

var eosLeft = regexp.MustCompile(`(?:^|\s)(\d{1,3}):(\d{2}):(\d{2})(?:\s|$)`)

// eosDeadline is now plus the first H:MM:SS of a line that is not part of a date.
func eosDeadline(l string, now time.Time) time.Time {
	m := eosLeft.FindStringSubmatch(eosStamp.ReplaceAllString(l, ""))
	if m == nil {
		return time.Time{}
	}
	var n int
	for _, p := range m[1:] {
		v, _ := strconv.Atoi(p)
		n = n*60 + v
	}
	return now.Add(time.Duration(n) * time.Second)
}

var eosStamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}`)
