// Package hostwire is what a laptop and fabricctl-host say to each other: one JSON object a line, over any pair of
// streams. Serve answers for a drivers.Device; Client is a drivers.Device that asks. There is no transport in here.
//
//	host    {"hello":"fabricctl-host","protocol":1,"version":"v0.3.0","host":"gpu-17","os":"linux","arch":"amd64","uid":0}
//	laptop  {"id":1,"op":"read"}
//	host    {"id":1,"config":[{"key":["link","eth0","mtu"],"value":"9000"}]}
//	laptop  {"id":2,"op":"commit","tx":"run7-3","changes":[{"op":"set","key":["link","eth0","mtu"],"before":"9000","after":"4200"}]}
//	host    {"id":2,"error":{"code":"rejected","message":"…","sent":"link|eth0|mtu 4200","sentence":"operation not permitted"}}
//
// Operations are ping, facts, read, commit and cancel. Requests are answered one at a time, in order; a cancel, which
// has no answer of its own, and the end of the stream stop the one that is being worked on. What precedes the hello
// is a login banner and is skipped. A change of any message is a new Protocol, and two protocols do not talk.
package hostwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Protocol is the version of the messages.
const Protocol = 1

// MaxLine is the longest message, in bytes. A host with a thousand links needs about 100 KB.
const MaxLine = 8 << 20

// maxBanner is how much may precede the hello.
const maxBanner = 64 << 10

const helloWord = "fabricctl-host"

// Hello is the first message of a host.
type Hello struct {
	Hello    string `json:"hello"` // always "fabricctl-host"
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of fabricctl-host
	Host     string `json:"host"`    // hostname
	OS       string `json:"os"`      // GOOS
	Arch     string `json:"arch"`    // GOARCH
	UID      int    `json:"uid"`     // effective; a commit usually needs 0
}

type request struct {
	ID      uint64          `json:"id"`
	Op      string          `json:"op"`
	Tx      drivers.TxID    `json:"tx,omitempty"`
	Changes []render.Change `json:"changes,omitempty"`
	Within  int64           `json:"within_ms,omitempty"`
}

type reply struct {
	ID     uint64        `json:"id"`
	Error  *failure      `json:"error,omitempty"`
	Facts  *render.Facts `json:"facts,omitempty"`
	Caps   *drivers.Caps `json:"caps,omitempty"`
	Config []setting     `json:"config,omitempty"`
}

type setting struct {
	Key   render.Key `json:"key"`
	Value string     `json:"value"`
}

// failure is an error on its way. Code says which one errors.Is and errors.As find at the other end.
type failure struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Sent     string `json:"sent,omitempty"`     // of a rejected one
	Sentence string `json:"sentence,omitempty"` // of a rejected one
}

// ErrProtocol is returned when the other side says what it should not: another protocol, no JSON, too long a line.
var ErrProtocol = errors.New("fabricctl-host is not understood")

var codes = []struct {
	code string
	err  error
}{
	{"moved", drivers.ErrMoved},
	{"no-confirm", drivers.ErrNoConfirm},
	{"read-only", drivers.ErrReadOnly},
	{"identity", drivers.ErrIdentity},
	{"protocol", ErrProtocol},
	{"cancelled", context.Canceled},
	{"deadline", context.DeadlineExceeded},
}

// pack makes an error ready to travel.
func pack(err error) *failure {
	f := &failure{Code: "failed", Message: err.Error()}
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
	if f.Code == "rejected" {
		return &drivers.RejectedError{Device: device, Sent: f.Sent, Sentence: f.Sentence}
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

func newLines(r io.Reader) lines { return lines{bufio.NewReaderSize(r, 64<<10)} }

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
