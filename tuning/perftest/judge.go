package perftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// Finding is something about a run that has to be known before its numbers are used.
type Finding struct {
	Code   Code
	Reject bool   // the run must not be used
	Why    string // in words
	Line   string // of the output; "" where there is none
}

// Limits say how much has to be measured. Zero values are those of Usual.
type Limits struct {
	Messages int64         // a row of fewer messages is not used
	Time     time.Duration // nor one of a shorter time
	CPU      float64       // percent: from here on the host is the bottleneck
}

// Usual are limits for hosts with NICs. At 100 Gbit/s and 64KiB the time is 380,000 messages; software that moves fewer
// than 50 a second needs less.
func Usual() Limits { return Limits{Messages: 100, Time: 2 * time.Second, CPU: 95} }

// Judge says what is wrong with a run, the gravest first; nothing that is to be rejected means that the one row may be used. t is the
// test that was asked for. A server that measures nothing (of reads and of one-way sends by its client) is judged alike:
// ask it of the side that has the result, and of the other only whether it has failed.
//
// Which class the bytes went through is not in the output, but with rdma_cm: that is for counters to say.
func (r *Report) Judge(t *Test, l Limits) []Finding {
	j := judge{r: r, t: t, l: l.or(Usual())}
	j.failure()
	failed := len(j.found) > 0
	j.spoilt()
	j.asked()
	if failed { // what it has printed as numbers is not worth a word
		return j.found
	}
	if w := j.row(); w != nil {
		j.numbers(w)
		j.length(w)
	}
	return j.found
}

func (l Limits) or(d Limits) Limits {
	if l.Messages == 0 {
		l.Messages = d.Messages
	}
	if l.Time == 0 {
		l.Time = d.Time
	}
	if l.CPU == 0 {
		l.CPU = d.CPU
	}
	return l
}

type judge struct {
	r     *Report
	t     *Test
	l     Limits
	found []Finding
}

func (j *judge) reject(c Code, line, why string, args ...any) {
	j.found = append(j.found, Finding{c, true, fmt.Sprintf(why, args...), line})
}

func (j *judge) has(c Code) bool {
	return slices.ContainsFunc(j.found, func(f Finding) bool { return f.Code == c })
}

// failure says why the test has failed. Of several sentences the one nearest to the cause counts; exit code 0 does not make up for one, since
// a pipe or a wrapper may have lost it.
func (j *judge) failure() {
	var worst *Note
	all := phrases()
	for i := range j.r.Notes {
		if n := &j.r.Notes[i]; all[n.rank].kind == fails && (worst == nil || n.rank < worst.rank) {
			worst = n
		}
	}
	switch rc := j.r.RC; {
	case worst != nil:
		j.reject(worst.Code, worst.Line, "%s", all[worst.rank].why)
	case rc == 0:
	case rc < 0:
		j.reject(NoEnd, "", "it did not end in time")
	case rc == 124:
		j.reject(NoEnd, "", "it did not end in time: exit code 124 is that of timeout")
	case rc == 126, rc == 127:
		j.reject(NoTool, "", "perftest is not installed or can't be run: exit code %d", rc)
	case rc > 128:
		j.reject(Killed, "", "it was killed, or the connection to its host has ended: exit code %d", rc)
	default:
		j.reject(Failed, "", "exit code %d, and nothing in the output says why", rc)
	}
}

// spoilt says what the output itself says against its numbers.
func (j *judge) spoilt() {
	all := phrases()
	said := map[Code]bool{}
	for _, n := range j.r.Notes {
		if f := all[n.rank]; f.kind != fails && !said[n.Code] {
			said[n.Code] = true
			j.found = append(j.found, Finding{n.Code, f.kind == spoils, f.why, n.Line})
		}
	}
	if j.r.Cycles {
		j.reject(Nonsense, "#, cycles", "the latencies are in CPU cycles (-C), whatever the table says")
	}
}

// asked compares what ran with what was asked for.
func (j *judge) asked() {
	r, t := j.r, j.t
	if r.Title == "" {
		return
	}
	differs := func(c Code, what string, got, want any) {
		if got != want {
			j.reject(c, "", "%s is %v, not %v", what, got, want)
		}
	}
	if r.Op != t.Op || r.Latency != t.Latency || r.Bidirectional != t.Bidirectional {
		j.reject(NotAsked, r.Title, "it is another test than %s", t.name())
	}
	if r.Device != "" {
		differs(NotAsked, "the device", r.Device, t.Device)
	}
	if r.QPs > 0 {
		differs(NotAsked, "the number of queue pairs", r.QPs, max(t.QPs, 1))
	}
	if r.TXDepth > 0 && t.Depth > 0 {
		differs(NotAsked, "the tx depth", r.TXDepth, t.Depth)
	}
	if r.GID >= 0 {
		differs(WrongGID, "the GID index", r.GID, t.GID)
	}
	if r.Link != "" {
		differs(NotAsked, "the link type", r.Link, "Ethernet")
	}
	differs(NotAsked, "connecting by rdma_cm", r.RDMACM, t.RDMACM)
	if r.MTU > 0 && t.MTU > 0 && !j.has(WrongMTU) {
		differs(WrongMTU, "the path MTU", r.MTU.Exact(), t.MTU.Exact())
	}
	if r.ToS >= 0 {
		differs(Class, "the ToS byte", r.ToS, int(t.ToS))
	}
}

// row is the one row that the numbers are taken from; nil when there is none.
func (j *judge) row() *Row {
	r := j.r
	var rows []*Row
	for i := range r.Rows {
		if r.Rows[i].Side == Both {
			rows = append(rows, &r.Rows[i])
		}
	}
	switch {
	case len(rows) == 1:
		if f := r.File; f != nil && !rows[0].same(f) {
			j.found = append(j.found, Finding{Stale, false, "the file of --out_json_file says something else than the table: it may be of an earlier run", rows[0].Line})
		}
		return rows[0]
	case len(rows) > 1:
		j.reject(NotAsked, rows[1].Line, "the table has %d rows, where one was asked for", len(rows))
	case r.passive():
	case r.Bare.Set:
		j.reject(NoResult, "", "a number without its unit (--output): it may be anything")
	default:
		j.reject(NoResult, "", "the output has no row of results")
	}
	return nil
}

// passive reports whether a side has nothing to measure: the server of a read latency.
func (r *Report) passive() bool {
	return r.Server && r.Latency && (r.Op == Read || r.Op == Atomic)
}

// numbers says what can't be.
func (j *judge) numbers(w *Row) {
	if w.Cut {
		j.reject(NoResult, w.Line, "the output ends inside the row: its last number may be cut")
	}
	if w.Size != j.t.Size {
		j.reject(NotAsked, w.Line, "the messages are of %s, not %s", w.Size.Exact(), j.t.Size.Exact())
	}
	rate := w.Goodput()
	switch {
	case w.Size == 0 || w.Iterations == 0:
		j.reject(Nothing, w.Line, "nothing was carried")
	case j.t.Latency && !w.Mean.Set, !j.t.Latency && !rate.Set:
		j.reject(NoResult, w.Line, "the row has no average")
	case !j.t.Latency && rate.V == 0:
		j.reject(Nothing, w.Line, "nothing was carried")
	case w.Average.V < 0 || w.Rate.V < 0 || w.Mean.V < 0 || w.Min.V < 0 || j.t.Latency && w.Mean.V == 0:
		j.reject(Nonsense, w.Line, "a rate or a time below zero")
	case !w.agrees():
		j.reject(Nonsense, w.Line, "the bandwidth is %s, but the message rate makes it %s", w.Average.V, w.byRate().V)
	}
	if w.CPU.Set && w.CPU.V >= j.l.CPU {
		j.reject(Host, w.Line, "the host was the bottleneck: its CPU was busy to %.0f%%", w.CPU.V)
	}
}

// length says whether enough was measured.
func (j *judge) length(w *Row) {
	t := j.t
	if w.Iterations > 0 && w.Iterations < j.l.Messages {
		j.reject(TooShort, w.Line, "%d messages were measured, less than %d", w.Iterations, j.l.Messages)
	}
	if e := j.took(w); e.Set {
		want := max(j.l.Time, t.Duration)
		if e.V+e.Step < want-want/10 {
			j.reject(TooShort, w.Line, "%s were measured, not %s", rounded(e.V), units.Duration(want))
		}
	}
	for _, p := range []struct {
		v    Value[time.Duration]
		name string
		need int64
	}{{w.P99, "99%", 100}, {w.P999, "99.9%", 1000}} {
		if p.v.Set && w.Iterations < p.need {
			j.found = append(j.found, Finding{Tail, false, fmt.Sprintf("the %s percentile of %d samples is their maximum", p.name, w.Iterations), w.Line})
		}
	}
}

// rounded is a time as a person would say it.
func rounded(d time.Duration) units.Duration {
	if d < time.Second {
		return units.Duration(d.Round(10 * time.Millisecond))
	}
	return units.Duration(d.Round(100 * time.Millisecond))
}

// took is how long the messages of a row took: the output does not say, but it says how many there were and at what rate. Of
// tests with a number of messages for each of several queue pairs it is not known: versions differ in which number they print.
func (j *judge) took(w *Row) (v Value[time.Duration]) {
	n := float64(w.Iterations)
	var each, off float64 // seconds for a message, and how far off that may be, as a share
	switch rate := w.Goodput(); {
	case j.t.Duration == 0 && j.t.QPs > 1:
		return v
	case j.t.Latency && w.Turns.Set && w.Turns.V > 0:
		each, off = 1/w.Turns.V, w.Turns.Step/w.Turns.V/2
	case j.t.Latency && w.Mean.Set && w.Mean.V > 0:
		each, off = w.Mean.V.Seconds(), float64(w.Mean.Step)/float64(w.Mean.V)/2
		if j.r.Op == Write || j.r.Op == Send { // half a round trip
			each *= 2
		}
	case !j.t.Latency && rate.Set && rate.V > 0:
		each, off = 8*float64(w.Size)/float64(rate.V), float64(rate.Step)/float64(rate.V)/2
		if j.t.Bidirectional { // of both directions
			each *= 2
		}
	default:
		return v
	}
	s := n * each
	if !(s < 1e6) {
		return v
	}
	return Value[time.Duration]{V: time.Duration(s * 1e9), Step: time.Duration(s * off * 1e9), Set: true}
}

// Compare says what is wrong between the two sides of a test: whether they have talked to each other, as the same version, with the same
// path MTU and number of queue pairs. What one side does not say is not compared.
func Compare(client, server *Report) (found []Finding) {
	reject := func(c Code, why string, args ...any) {
		found = append(found, Finding{Code: c, Reject: true, Why: fmt.Sprintf(why, args...)})
	}
	if a, b := client.Version, server.Version; a != "" && b != "" && a != b {
		reject(Version, "the client is version %s, the server %s", a, b)
	}
	if a, b := client.MTU, server.MTU; a > 0 && b > 0 && a != b {
		reject(WrongMTU, "the client's path MTU is %s, the server's %s", a.Exact(), b.Exact())
	}
	if a, b := client.QPs, server.QPs; a > 0 && b > 0 && a != b {
		reject(Options, "the client has %d queue pairs, the server %d", a, b)
	}
	if a, b := client.Title, server.Title; a != "" && b != "" && a != b {
		reject(Options, "the client runs %q, the server %q", a, b)
	}
	if !crossed(client.Local, server.Remote) || !crossed(client.Remote, server.Local) {
		reject(Strangers, "the queue pairs of one side are not those that the other has connected to: each has talked to somebody else")
	}
	return found
}

// crossed reports whether what one side calls its own is what the other calls remote, as far as both say.
func crossed(own, remote []QP) bool {
	for i := range min(len(own), len(remote)) {
		if own[i] != remote[i] {
			return false
		}
	}
	return true
}
