// Package hostwire is what a laptop and fabricctl-host say to each other: one JSON object a line, over any pair of
// streams. Serve answers for a drivers.Device; Client is a drivers.Device that asks. There is no transport in here.
//
//	host    {"hello":"fabricctl-host","protocol":3,"version":"v0.3.0","host":"gpu-17","os":"linux","arch":"amd64","uid":0,"confirm":true}
//	laptop  {"id":1,"op":"read"}
//	host    {"id":1,"config":[{"key":["link","eth0","mtu"],"value":"9000"}]}
//	laptop  {"id":2,"op":"commit","tx":"run7-3","changes":[{"op":"set","key":["link","eth0","mtu"],"before":"9000","after":"4200"}]}
//	host    {"id":2,"error":{"code":"rejected","message":"…","sent":"link|eth0|mtu 4200","sentence":"operation not permitted"}}
//
// Operations are
//
//	ping, facts, read        look
//	sense                    reads counters of NICs by their canonical names; without names all of them
//	know                     takes over what the laptop knows of NICs that the host's catalog lacks; before facts
//	commit, confirm, abort   write, or take back what was written
//	pending                  lists transactions that wait to be confirmed; only where the hello says confirm
//	hold, release, holds     what the host is to leave alone, whoever asks; the agent there reads it too
//	cancel                   ends the work on a request
//
// Requests are answered one at a time, in order. A cancel and a ping without an id have no answer. A cancel and the end
// of the stream stop the request that is being worked on, and so does silence while something is written: whoever waits
// for that sends pings without an id meanwhile. A commit stops between two writes.
//
// What precedes the hello is a login banner and is skipped; without a hello nothing was changed. A change of any message
// is a new Protocol, and two protocols do not talk.
package hostwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

// Protocol is the version of the messages.
const Protocol = 3

// MaxLine is the longest message, in bytes. A host with a thousand links needs about 100 KB.
const MaxLine = 8 << 20

// maxBanner is how much may precede the hello.
const maxBanner = 64 << 10

const helloWord = "fabricctl-host"

// Hello is the first message of a host.
type Hello struct {
	Hello    string `json:"hello"` // always "fabricctl-host"
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`           // of fabricctl-host
	Host     string `json:"host"`              // hostname
	OS       string `json:"os"`                // GOOS
	Arch     string `json:"arch"`              // GOARCH
	UID      int    `json:"uid"`               // effective; a commit usually needs 0
	Confirm  bool   `json:"confirm,omitempty"` // transactions can be timed, found again and taken back
}

type request struct {
	ID      uint64          `json:"id"`
	Op      string          `json:"op"`
	Tx      drivers.TxID    `json:"tx,omitempty"`
	Changes []render.Change `json:"changes,omitempty"`
	Within  int64           `json:"within_ms,omitempty"`

	AllowJobs bool              `json:"allow_jobs,omitempty"` // of a commit: live queue pairs may be killed
	Know      []json.RawMessage `json:"know,omitempty"`
	Hold      *journal.Hold     `json:"hold,omitempty"`  // of a release: Fabric, Device and Port of it
	Names     []observe.Name    `json:"names,omitempty"` // of sense; none = all
}

type reply struct {
	ID     uint64          `json:"id"`
	Error  *failure        `json:"error,omitempty"`
	Facts  *render.Facts   `json:"facts,omitempty"`
	Caps   *drivers.Caps   `json:"caps,omitempty"`
	NICs   json.RawMessage `json:"personalities,omitempty"` // of facts: how the NICs behave that a user described; Facts leaves them out
	Config []setting       `json:"config,omitempty"`
	Txs    []tx            `json:"txs,omitempty"`
	Holds  []journal.Hold  `json:"holds,omitempty"` // of hold and release: the one that was there

	At       time.Time `json:"at,omitzero"` // of sense: when, by the host's clock
	Counters []counter `json:"counters,omitempty"`
}

// counter is one counter of an interface.
type counter struct {
	Iface string       `json:"iface"`
	Name  observe.Name `json:"name"`
	Value uint64       `json:"value"`
}

// tx is a drivers.Tx.
type tx struct {
	ID       drivers.TxID    `json:"id"`
	State    drivers.TxState `json:"state"`
	Deadline time.Time       `json:"deadline,omitzero"`
}

type setting struct {
	Key   render.Key `json:"key"`
	Value string     `json:"value"`
}

// failure is an error on its way. Code says which one errors.Is and errors.As find at the other end.
type failure struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Sent     string `json:"sent,omitempty"`     // of a rejected one, and of one that differs
	Sentence string `json:"sentence,omitempty"` // of a rejected one
	Reads    string `json:"reads,omitempty"`    // of one that differs
}

// ErrProtocol is returned when the other side says what it should not: another protocol, no JSON, too long a line.
var ErrProtocol = errors.New("fabricctl-host is not understood")

// ErrSilent is returned by what writes, when it was stopped because nothing was heard from the laptop any more.
var ErrSilent = errors.New("nothing was heard from the laptop for too long")

var codes = []struct {
	code string
	err  error
}{
	{"moved", drivers.ErrMoved},
	{"no-confirm", drivers.ErrNoConfirm},
	{"jobs", drivers.ErrJobs},
	{"held", drivers.ErrHeld},
	{"busy", drivers.ErrBusy},
	{"silent", ErrSilent},
	{"read-only", drivers.ErrReadOnly},
	{"identity", drivers.ErrIdentity},
	{"protocol", ErrProtocol},
	{"cancelled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}

// pack makes an error ready to travel.
func pack(err error) *failure {
	f := &failure{Code: "failed", Message: err.Error()}
	if d, ok := errors.AsType[*drivers.DiffersError](err); ok {
		f.Code, f.Sent, f.Reads = "differs", d.Sent, d.Reads
		return f
	}
	if rej, ok := errors.AsType[*drivers.RejectedError](err); ok {
		f.Code, f.Sent, f.Sentence = "rejected", rej.Sent, rej.Sentence
		return f
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			f.Code = c.code
			break
		}
	}
	return f
}

// unpack is the error again, as seen from device.
func (f *failure) unpack(device string) error {
	switch f.Code {
	case "rejected":
		return &drivers.RejectedError{Device: device, Sent: f.Sent, Sentence: f.Sentence}
	case "differs":
		return &drivers.DiffersError{Device: device, Sent: f.Sent, Reads: f.Reads}
	}
	e := farError{text: device + ": " + f.Message}
	for _, c := range codes {
		if c.code == f.Code {
			e.is = c.err
		}
	}
	return e
}

// farError has the far side's text and our sentinel.
type farError struct {
	text string
	is   error
}

func (e farError) Error() string { return e.text }
func (e farError) Unwrap() error { return e.is }

// lines reads one message a line.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, 8<<10)} }

// next is one line without its end, of at most limit bytes. An unfinished last line is io.ErrUnexpectedEOF: half a
// message must not be taken for one.
func (l lines) next(limit int) ([]byte, error) {
	var b []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(b)+len(part) > limit+1 {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, limit)
		}
		b = append(b, part...)
		switch {
		case err == nil:
			return b[:len(b)-1], nil
		case err == io.EOF && len(b) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// decode reads one message, strictly: a field that this protocol does not have is an error.
func decode(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && len(bytes.TrimSpace(line[d.InputOffset():])) > 0 {
		err = errors.New("more than one value on the line")
	}
	if err != nil {
		return fmt.Errorf("%w: %s in %s", ErrProtocol, jsonSentence(err), excerpt(line))
	}
	return nil
}

// jsonSentence says what is wrong without the names of our types.
func jsonSentence(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "a " + t.Value + " where something else belongs"
	}
	return err.Error()
}

// excerpt is the start of a line, for an error.
func excerpt(line []byte) string {
	if len(line) > 80 {
		return fmt.Sprintf("%q…", line[:80])
	}
	return fmt.Sprintf("%q", line)
}

// write sends one message as one write.
func write(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > MaxLine {
		return fmt.Errorf("%w: a message of %d bytes, at most %d fit", ErrProtocol, len(b), MaxLine)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
