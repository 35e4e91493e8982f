// Package perftest is what there is to know of the verbs tests of linux-rdma/perftest (ib_write_bw and its kin) on real
// hosts: the command line of a test, what its output says, and whether the numbers in it may be used.
//
// A Session runs a Plan of tests on hosts, by an Exec that whoever has connections gives it. Parse reads an output,
// Report.Judge says why a run is to be rejected, Compare looks at what both sides of a test say, and Test makes the
// command lines.
//
// What is read and refused follows 72 recordings of version 6.06 on soft-RoCE, which are in testdata. Column sets and sentences that
// were not recorded follow the tool's source, and are marked so. Nothing here was seen on an RDMA NIC.
package perftest

import (
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// Op is the operation that a test measures.
type Op uint8

// The operations. Atomic tests are read, but no command is made for them.
const (
	Unknown Op = iota
	Write
	Read
	Send
	Atomic
)

// String is the operation as tools are named for it.
func (o Op) String() string {
	return [...]string{"unknown", "write", "read", "send", "atomic"}[min(o, Atomic)]
}

// Value is a quantity that an output may leave out. What is not Set was not measured, which is not zero.
type Value[T ~int64 | ~float64] struct {
	V    T
	Step T // what the last printed digit is worth: V was rounded to it
	Set  bool
}

// Report is what one side of a test has said.
type Report struct {
	RC      int    // exit code; negative = it never ended
	Version string // of perftest, where --version was asked
	Title   string // as printed: "RDMA_Write BW Test"

	Op            Op
	Latency       bool
	Bidirectional bool
	Server        bool // it has waited for a client

	Head                    // facts above the table
	Local   []QP            // its own queue pairs
	Remote  []QP            // those of the other side
	Rows    []Row           // of the table; of the file where no table was printed
	File    *Row            // of --out_json_file
	Samples []time.Duration // of messages, with -U or -H; the largest few are left out
	Cycles  bool            // the table is in CPU cycles (-C), whatever its head says
	Counts  []Count
	Bare    Value[float64] // all that --output=… prints: the unit is not said
	Notes   []Note
}

// Head is what a test says of itself before it measures. Zero values were not printed, except GID and ToS, which are -1.
type Head struct {
	Device, Transport, Connection, Link, Exchange string

	QPs     int
	TXDepth int // of whoever sends; latency tests have 1
	RXDepth int
	MTU     units.Bytes // path MTU in use
	GID     int         // index
	ToS     int         // with rdma_cm
	RDMACM  bool
}

// QP is a queue pair.
type QP struct {
	Number, PSN uint32
	GID         netip.Addr // not valid where it could not be read
}

// Side says whose result a row is, in a bidirectional test with --report-both.
type Side uint8

// The sides. Both is the sum, and every row without --report-both.
const (
	Both Side = iota
	Local
	Remote
)

// Row is one result. Rates are of payload; in bidirectional tests they are the sum of both directions, and Iterations are
// one side's.
//
// A latency is half a round trip for write and send, and a whole one for read and atomic. Max is not the largest sample: the tool
// trims. P99 and P999 of few samples are their maximum.
type Row struct {
	Size       units.Bytes
	Iterations int64
	SL         int // service level, where printed
	Side       Side

	Peak, Average Value[units.BitRate] // Peak is not measured with -D and -N
	Rate          Value[float64]       // messages per second

	Min, Max, Typical, Mean, Stdev, P99, P999 Value[time.Duration]
	Turns                                     Value[float64] // round trips per second, with -D

	CPU  Value[float64] // percent of the host's, with --cpu_util
	Line string
	Cut  bool // the output ends inside it, as when the test was killed
}

// Count is what a counter has counted meanwhile (-W).
type Count struct {
	Name  string
	Delta int64
}

// What Parse refuses.
var (
	// ErrTooLong is returned for more output than any test prints.
	ErrTooLong = errors.New("more than 16MiB of output")
	// ErrNothing is returned with exit code 0 and nothing in the output that a verbs test prints.
	ErrNothing = errors.New("no output of a verbs test")
)

const (
	tooLong = 16 << 20
	most    = 1e15 // bits per second: what is more was not measured
)

// Parse reads what a test has printed: the table on standard output first, and what --out_json_file has left (nil where there is
// none), which is not JSON in all versions and does not say its units. rc is the exit code; negative where there is none.
//
// It is tolerant: what it does not know it passes over, and a failed test is a Report like any other. An error means
// that this is not the output of a verbs test. Texts in the report are printable UTF-8 of at most a few hundred bytes;
// names in them are as the host said them.
func Parse(stdout, stderr, json []byte, rc int) (Report, error) {
	r := Report{RC: rc, Head: Head{GID: -1, ToS: -1}}
	if len(stdout)+len(stderr)+len(json) > tooLong {
		return r, ErrTooLong
	}
	p := reader{r: &r, facts: facts(), phrases: phrases()}
	p.text(stdout, true)
	p.text(stderr, false)
	if f, ok := readFile(json); ok {
		p.file(f)
	}
	if rc == 0 && !p.known && len(r.Notes) == 0 {
		return r, ErrNothing
	}
	return r, nil
}

// Goodput is the payload carried per second, in the finest resolution that was printed: tables have two decimals of Gbit/s above
// 0.1, and the message rate often has more. It is not set when nothing was measured.
func (w *Row) Goodput() Value[units.BitRate] {
	byRate := w.byRate()
	switch {
	case !byRate.Set:
		return w.Average
	case !w.Average.Set || w.agrees() && byRate.Step < w.Average.Step:
		return byRate
	}
	return w.Average
}

// byRate is the goodput that the message rate makes.
func (w *Row) byRate() (v Value[units.BitRate]) {
	bits := 8 * float64(w.Size)
	if !w.Rate.Set || w.Rate.V <= 0 || w.Rate.V*bits >= most {
		return v
	}
	return Value[units.BitRate]{V: units.BitRate(math.Round(w.Rate.V * bits)), Step: units.BitRate(math.Round(w.Rate.Step * bits)), Set: true}
}

// agrees reports whether the bandwidth and the message rate say the same, within what they were rounded to and 2 %: MB for MiB is
// 4.9 % off, and bytes for bits by a factor of eight.
func (w *Row) agrees() bool {
	r := w.byRate()
	if !r.Set || !w.Average.Set {
		return true
	}
	off := float64(r.V - w.Average.V)
	return max(off, -off) <= float64(r.Step+w.Average.Step)/2+.02*float64(max(r.V, w.Average.V))
}
