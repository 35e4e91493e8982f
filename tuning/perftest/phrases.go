package perftest

import (
	"strconv"
	"strings"
)

// Code says what is wrong with a run.
type Code string

// Why a test has failed.
const (
	PortBusy  Code = "port-busy"   // something listens on the port already
	NoServer  Code = "no-server"   // nobody listens, or the address leads nowhere: perftest says the same of both
	NoName    Code = "no-name"     // the server's name leads nowhere
	NoDevice  Code = "no-device"   // there is no such RDMA device, or no such port of it
	LinkDown  Code = "link-down"   // the port has no link
	WrongGID  Code = "gid"         // the GID index is empty, of another kind, or not in the table
	NoPath    Code = "no-path"     // a queue pair can't be connected: GID, MTU or route
	Retries   Code = "retries"     // the other side did not acknowledge
	NotReady  Code = "not-ready"   // the other side had no receive posted
	Options   Code = "options"     // both sides run different tests
	Failed    Code = "failed"      // something else
	PeerGone  Code = "peer-gone"   // the other side has ended first, or is another version or test
	BadOption Code = "bad-option"  // the command line is refused
	NoTool    Code = "no-tool"     // perftest is not installed
	NoMemory  Code = "no-memory"   // memory can't be registered
	TooShort  Code = "too-short"   // not enough was measured
	Killed    Code = "killed"      // by a signal, or the connection to the host has ended
	NoEnd     Code = "no-end"      // it was given up
	NoResult  Code = "no-result"   // nothing in the output can be used
	NoFile    Code = "no-file"     // the file could not be written
	WrongMTU  Code = "mtu"         // another path MTU than was asked for
	Clock     Code = "clock"       // the clock that latencies and rates are measured with is not sure
	Host      Code = "host"        // the host was the bottleneck
	Class     Code = "wrong-class" // another ToS than that of the class
	NotAsked  Code = "not-asked"   // the test that ran is not the one that was asked for
	Nothing   Code = "zero"        // nothing was carried
	Nonsense  Code = "nonsense"    // numbers that can't be
	Tail      Code = "tail"        // percentiles of too few samples
	Stale     Code = "stale-file"  // the file is of another run
	Version   Code = "version"     // both sides are different versions
	Unloaded  Code = "unloaded"    // a latency was measured when the load had ended
	Strangers Code = "strangers"   // the two sides did not talk to each other
)

// Note is a line that says something.
type Note struct {
	Code Code
	Line string
	rank int // of its phrase: what comes first is nearer to the cause
}

// phrase is a sentence that says something, and what.
type phrase struct {
	code Code
	text string // in the line; "" = see is
	is   func(string) bool
	why  string
	kind kind
}

type kind uint8

const (
	fails  kind = iota // it is why a test has failed; the first in the table is nearest to the cause
	spoils             // numbers after it are not what was asked for
	tells              // it does not matter to the numbers
)

// phrases are the sentences that are looked for. Those that end in a comment were not recorded: they are in the tool's source, or what
// users have reported.
func phrases() []phrase {
	return []phrase{
		{code: PortBusy, text: "Couldn't listen to port", why: "something listens on the port already: another test, or one that was left behind"},
		{code: NoName, text: "Name or service not known", why: "the server's name leads nowhere"},
		{code: NoServer, text: "Couldn't connect to", why: "nobody listens at the server's port, or its address can't be reached"},
		{code: NoServer, text: "Unexpected CM event", why: "nobody listens by rdma_cm: the server is not up, or runs without -R"},
		{code: NoServer, text: "RDMA_CM_EVENT_REJECTED", why: "the server has refused the connection by rdma_cm: it was not ready, or runs without -R"},
		{code: NoServer, text: "rdma_resolve_addr failed", why: "rdma_cm can't resolve the server's address on an RDMA device"}, // not recorded
		{code: NoDevice, text: "IB device ", is: and(" not found"), why: "the host has no such RDMA device"},
		{code: NoDevice, text: "Did not detect devices", why: "the host has no RDMA device; is its driver loaded?"}, // not recorded
		{code: NoDevice, text: "Unable to query port", why: "the RDMA device has no such port"},
		{code: LinkDown, text: "Port number ", is: and(" state is "), why: "the port of the RDMA device is not up"}, // not recorded
		{code: WrongGID, text: "Found Incompatibility issue with GID types", why: "both sides' GIDs are of different kinds, or one index is empty"},
		{code: WrongGID, text: "Gid index should be between", why: "the GID index is outside the table"},
		{code: WrongGID, text: "Failed to query GID", why: "the GID index is not in the device's table"},                     // not recorded
		{code: NoMemory, text: "Couldn't allocate MR", why: "memory can't be registered: check ulimit -l"},                   // not recorded
		{code: NoMemory, text: "Couldn't create QP", why: "a queue pair can't be made: too many, or too deep"},               // not recorded
		{code: NoPath, text: "Failed to modify QP", why: "a queue pair can't be connected: check GID, MTU and route"},        // not recorded
		{code: NoPath, text: "Unable to Connect the HCA's", why: "queue pairs can't be connected: check GID, MTU and route"}, // not recorded
		{code: Retries, is: status(12), why: "the other side did not acknowledge: packets are lost, or it can't be reached"}, // not recorded
		{code: NotReady, is: status(13), why: "the other side had no receive posted in time: it is too slow"},                // not recorded
		{code: Options, is: status(9), why: "the other side refuses the operation: it runs another test"},
		{code: Options, is: status(10), why: "the other side refuses the address: it runs with another message size, or another test"},
		{code: Failed, is: anyStatus, why: "a completion has failed"},                                                  // not recorded
		{code: Options, text: " mismatch: local=", why: "both sides run with different options"},                       // not recorded
		{code: TooShort, text: "margin is not long enough", why: "measuring would begin before the warm-up has ended"}, // not recorded
		{code: BadOption, text: "unrecognized option", why: "an option is not known: this is another version, or another program"},
		{code: BadOption, text: "TOS only valid for", why: "-T needs -R; without it the class is set by --tclass"},
		{code: BadOption, text: " should be between ", why: "a value is out of range"},                          // not recorded but for GIDs
		{code: BadOption, text: "only available on", why: "an option is not for this test"},                     // not recorded
		{code: BadOption, text: "Duration mode currently doesn't support", why: "-D and -a exclude each other"}, // not recorded
		{code: BadOption, text: "Invalid Command or flag", why: "the command line is refused"},
		{code: BadOption, text: "Parser function exited with Error", why: "the command line is refused"},
		{code: NoTool, text: "command not found", why: "perftest is not installed, or not in the path"},           // not recorded
		{code: NoTool, text: ": not found", why: "perftest is not installed, or not in the path"},                 // not recorded
		{code: Clock, text: "Can't produce a report", why: "the CPU's frequency is not known: fix it, or use -F"}, // not recorded
		{code: PeerGone, text: "Couldn't read remote address", why: "the other side has ended before the test was over, or runs with other options or another version"},
		{code: PeerGone, text: "Failed to exchange data", why: "the other side has ended before the test was over, or runs with other options or another version"},
		{code: PeerGone, text: "Failed to close connection", why: "the other side has ended before the test was over"},
		{code: NoServer, text: "Connection refused", why: "the server refuses connections"},         // not recorded
		{code: NoServer, text: "Connection timed out", why: "the server's address does not answer"}, // not recorded
		{code: NoServer, text: "No route to host", why: "the server's address can't be reached"},    // not recorded

		{code: Clock, text: "Conflicting CPU frequency values", why: "the CPU's frequency changes or is not the highest: set the governor to performance", kind: spoils}, // users' reports
		{code: Clock, text: "Correlation coefficient", why: "the CPU's clock could not be calibrated: the host was busy with something else", kind: spoils},
		{code: WrongMTU, text: "Requested mtu is higher than active mtu", why: "the path MTU is higher than what the port has, and was lowered", kind: spoils},
		{code: WrongMTU, text: "Invalid MTU", why: "the path MTU is none, and was replaced by the port's", kind: spoils},
		{code: WrongMTU, text: "Max msg size in UD is MTU", why: "the message was cut to the MTU", kind: spoils}, // users' reports

		{code: NoFile, text: "failed to open ", why: "the file of --out_json_file could not be written", kind: tells},
	}
}

func and(s string) func(string) bool {
	return func(line string) bool { return strings.Contains(line, s) }
}

// status says whether a line is that of a completion with the status n, as verbs number it (enum ibv_wc_status).
func status(n int) func(string) bool {
	return func(line string) bool {
		_, after, ok := strings.Cut(line, "Failed status ")
		digits, _, _ := strings.Cut(after, ":")
		got, err := strconv.Atoi(strings.TrimSpace(digits))
		return ok && err == nil && got == n
	}
}

func anyStatus(line string) bool { return strings.Contains(line, "Failed status ") }

// manyNotes is more lines than any test says something in.
const manyNotes = 64

// note looks for what a line says.
func (p *reader) note(s string) {
	if len(p.r.Notes) == manyNotes {
		return
	}
	for i, f := range p.phrases {
		if strings.Contains(s, f.text) && (f.is == nil || f.is(s)) {
			p.r.Notes = append(p.r.Notes, Note{f.code, strings.TrimSpace(s), i})
			return
		}
	}
}
