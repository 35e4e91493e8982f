package perftest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// Test is a test between two hosts. Both sides are given the same; what may differ between their hosts is in Ends.
type Test struct {
	Op            Op
	Latency       bool
	Bidirectional bool // bandwidth only

	Device string // RDMA device of the side that the command is for
	IBPort int    // of the device; 0 = 1
	GID    int    // index in the device's table, for RoCE v2 and the address in use: resolved on the host, never assumed
	Port   int    // TCP, one for each pair of hosts: a server takes one client and then stops listening

	Size       units.Bytes   // of a message
	QPs        int           // 0 = 1
	Depth      int           // messages of a queue pair under way at most (tx depth); 0 = 128
	Duration   time.Duration // of what is measured
	Margin     time.Duration // before and after it, with a duration; 0 = 1 s
	Iterations int           // where there is no duration
	MTU        units.Bytes   // path MTU, 0 = the port's
	AckTimeout int           // after which a packet is sent again: 4.096 us times 2 to the power of it, up to 31; 0 = 14, which is 67 ms

	ToS      uint8    // ToS byte of the class: DSCP << 2
	RDMACM   bool     // connect by rdma_cm: needed where the driver does not take the class otherwise
	AnyClock bool     // go on where the CPU's frequency is not the highest, and say nothing (-F)
	CPU      bool     // measure the CPU's load, with a duration
	Samples  bool     // print each sample, of latencies without a duration
	Counters []string // of the device, to print what they have counted: "hw_counters/out_of_buffer"
	File     string   // absolute path that the client writes its results to
}

// Ranges that perftest has, by its help and its source (6.06).
const (
	mostDepth      = 15000
	mostQPs        = 16384
	mostIterations = 100_000_000
	mostSize       = units.GiB
	leastMessages  = 5
	mostGID        = 255 // 6.06 itself takes up to 64
	mostTime       = 24 * time.Hour
)

// Argv is a command line in words.
type Argv []string

// String is the command line for a POSIX shell, in which every word means itself.
func (a Argv) String() string {
	words := make([]string, len(a))
	for i, w := range a {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote is s as one word of a POSIX shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// name is the program that runs the test.
func (t *Test) name() string {
	if t.Latency {
		return "ib_" + t.Op.String() + "_lat"
	}
	return "ib_" + t.Op.String() + "_bw"
}

// Serve is the command line of the side that waits. It fails with all that makes no sense, joined.
func (t *Test) Serve() (Argv, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	return t.argv(), nil
}

// Connect is the command line of the side that starts the test and has its result; server is the other's name or address.
func (t *Test) Connect(server string) (Argv, error) {
	err := t.check()
	if !plainWord(server, ".-:%") || len(server) > 253 {
		err = errors.Join(err, fmt.Errorf("server %q is not a name or an address", server))
	}
	if err != nil {
		return nil, err
	}
	a := t.argv()
	if t.File != "" { // alone, the name of the file does nothing
		a = append(a, "--out_json", "--out_json_file="+t.File)
	}
	return append(a, server), nil
}

// argv is what both sides are given. -D is all of the time, of which the margin -f is not measured, at both ends. What the margin is
// by itself depends: the help says 2 s, the recordings and the source say a quarter of -D in whole seconds. So it is always given.
func (t *Test) argv() Argv {
	a := Argv{t.name(), "-d", t.Device, "-i", strconv.Itoa(max(t.IBPort, 1)), "-x", strconv.Itoa(t.GID), "-p", strconv.Itoa(t.Port), "-s", number(t.Size)}
	flag := func(on bool, words ...string) {
		if on {
			a = append(a, words...)
		}
	}
	flag(!t.Latency, "--report_gbits")
	flag(t.QPs > 1, "-q", strconv.Itoa(t.QPs))
	flag(t.Depth > 0, "-t", strconv.Itoa(t.Depth))
	if t.Duration > 0 {
		margin := max(t.Margin, time.Second)
		flag(true, "-D", number((t.Duration+2*margin)/time.Second), "-f", number(margin/time.Second))
	}
	flag(t.Iterations > 0, "-n", strconv.Itoa(t.Iterations))
	flag(t.MTU > 0, "-m", number(t.MTU))
	flag(t.AckTimeout > 0, "-u", strconv.Itoa(t.AckTimeout))
	flag(t.Bidirectional, "-b")
	flag(t.RDMACM, "-R", "-T", strconv.Itoa(int(t.ToS)))
	flag(!t.RDMACM, "--tclass="+strconv.Itoa(int(t.ToS)))
	flag(t.AnyClock, "-F")
	flag(t.CPU, "--cpu_util")
	flag(t.Samples, "-H")
	flag(len(t.Counters) > 0, "-W", strings.Join(t.Counters, ","))
	return a
}

func number[T ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// CheckToS refuses a ToS byte that is more than a DSCP: its two lowest bits are ECN's. A sender that sets them itself (106 for
// DSCP 26) says ECN-capable for every packet whether its NIC reacts to marks or not, and no longer matches what compares the whole byte.
func CheckToS(tos int) error {
	switch {
	case tos < 0 || tos > 255:
		return fmt.Errorf("ToS %d is not a byte", tos)
	case tos&3 != 0:
		return fmt.Errorf("ToS %d sets the bits of ECN: DSCP %d alone is %d", tos, tos>>2, tos&^3)
	}
	return nil
}

// check says all that makes no sense.
func (t *Test) check() error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(t.Op != Write && t.Op != Read && t.Op != Send, "there is no test of operation %q", t.Op)
	refuse(!plainWord(t.Device, "_-.") || len(t.Device) > 63, "%q is not the name of an RDMA device", t.Device)
	refuse(t.IBPort < 0 || t.IBPort > 255, "an RDMA device has no port %d", t.IBPort)
	refuse(t.GID < 0 || t.GID > mostGID, "GID index %d is not one from 0 to %d", t.GID, mostGID)
	refuse(t.Port < 1 || t.Port > 65535, "TCP port %d is not one from 1 to 65535", t.Port)
	refuse(t.Size < 1 || t.Size > mostSize, "messages of %d bytes: not from 1 to %d", t.Size, mostSize)
	refuse(t.QPs < 0 || t.QPs > mostQPs, "%d queue pairs: not from 1 to %d", t.QPs, mostQPs)
	refuse(t.Depth < 0 || t.Depth > mostDepth, "tx depth %d: not from 1 to %d", t.Depth, mostDepth)
	switch t.MTU {
	case 0, 256, 512, 1024, 2048, 4096:
	default:
		refuse(true, "path MTU %s is none of 256, 512, 1024, 2048, 4096: perftest would take the port's", t.MTU.Exact())
	}
	refuse(t.AckTimeout < 0 || t.AckTimeout > 31, "an acknowledgement timeout of %d: not from 1 to 31", t.AckTimeout)
	errs = append(errs, CheckToS(int(t.ToS)))
	errs = append(errs, t.checkLength()...)
	refuse(t.Latency && t.Bidirectional, "a latency test has no bidirectional form")
	refuse(t.Latency && t.QPs > 1, "a latency test has one queue pair, not %d", t.QPs)
	refuse(t.Latency && t.Depth > 1, "a latency test has one message under way, not %d", t.Depth)
	for _, c := range t.Counters {
		refuse(!plainWord(c, "_/"), "%q is not the name of a counter", c)
	}
	refuse(t.File != "" && !strings.HasPrefix(t.File, "/"), "file %q: not an absolute path", t.File)
	refuse(strings.ContainsFunc(t.File, func(r rune) bool { return r < ' ' || r == 0x7f }), "file %q: control characters", t.File)
	return errors.Join(errs...)
}

// checkLength says what makes no sense about how long the test is.
func (t *Test) checkLength() (errs []error) {
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	whole := func(d time.Duration) bool { return d >= 0 && d%time.Second == 0 && d <= mostTime }
	timed := t.Duration != 0
	refuse(timed == (t.Iterations != 0), "a test has either a duration or a number of messages")
	refuse(!whole(t.Duration), "duration %s: whole seconds, at most a day", t.Duration)
	refuse(!whole(t.Margin), "margin %s: whole seconds, at most a day", t.Margin)
	refuse(!timed && t.Margin != 0, "a margin belongs to a duration")
	refuse(!timed && t.CPU, "perftest measures the CPU's load only with a duration")
	refuse(timed && t.Samples, "samples are printed only without a duration")
	refuse(!t.Latency && t.Samples, "samples are those of latency tests")
	if t.Iterations != 0 {
		refuse(t.Iterations < leastMessages || t.Iterations > mostIterations, "%d messages: not from %d to %d", t.Iterations, leastMessages, mostIterations)
		refuse(t.Depth > t.Iterations, "tx depth %d of %d messages: perftest would lower it", t.Depth, t.Iterations)
	}
	return errs
}

// plainWord reports whether s is of letters, digits and some other characters, and does not begin as an option does.
func plainWord(s, others string) bool {
	return s != "" && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+others) == ""
}
