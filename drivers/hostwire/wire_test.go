package hostwire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// box is a device whose answers are given.
type box struct {
	facts  render.Facts
	config render.Config
	err    error
	got    []render.Change
	within time.Duration
	commit func(context.Context) error // instead of err
}

func (b *box) Facts(context.Context) (render.Facts, drivers.Caps, error) {
	return b.facts, drivers.Caps{PersistsOnCommit: true}, b.err
}
func (b *box) Read(context.Context) (render.Config, error) { return b.config, b.err }
func (b *box) Close() error                                { return nil }
func (b *box) Commit(ctx context.Context, _ drivers.TxID, cs []render.Change, within time.Duration) error {
	b.got, b.within = cs, within
	if b.commit != nil {
		return b.commit(ctx)
	}
	return b.err
}

// serve connects a client to dev and returns what Serve returned on a channel.
func serve(t *testing.T, dev drivers.Device) (*Client, <-chan error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(context.Background(), far, far, Host{Device: dev}, Hello{Version: "v1", Host: "gpu-17", OS: "linux", Arch: "amd64"})
		far.Close()
	}()
	c, err := NewClient(t.Context(), "host1", near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, ended
}

// played is a client of a host that says its lines whatever it hears.
func played(t *testing.T, lines string) (*Client, error) {
	t.Helper()
	return NewClient(t.Context(), "host1", half{strings.NewReader(lines), io.Discard})
}

type half struct {
	io.Reader
	io.Writer
}

func (half) Close() error { return nil }

// counted counts how often it is closed.
type counted struct {
	io.ReadWriteCloser
	closed int
}

func (c *counted) Close() error {
	c.closed++
	return c.ReadWriteCloser.Close()
}

const hi = `{"hello":"fabricctl-host","protocol":3,"version":"v1","host":"gpu-17","os":"linux","arch":"amd64","uid":0}` + "\n"

// described is a personality as a user's document makes it, with knobs.
func described(t *testing.T) []profiles.Personality {
	t.Helper()
	c, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	c, err = c.Know([]json.RawMessage{[]byte(`{"name":"mine","facts":[{"key":"status","values":["managed"]},{"key":"drivers","values":["mine"]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	return c.OwnPersonalities()
}

func TestRoundTrip(t *testing.T) {
	dev := &box{
		facts: render.Facts{Hostname: "gpu-17", Serial: "S1", Model: "15b3:1021", Version: "6.12", Aliases: map[string]string{"0000:17:00.0": "eth0"}, Owners: []string{"o"}, Notes: []string{"n"}, Personalities: described(t)},
		config: render.Config{
			{Key: render.Key{Scope: "link", Object: "eth0", Field: "mtu"}, Value: "9000"},
			{Key: render.Key{Scope: "nccl", Object: "/etc/nccl.conf", Field: "A"}, Value: "=\"<&>\u2028\\ \t"},
		},
	}
	c, ended := serve(t, dev)
	ctx := t.Context()
	if want := (Hello{Hello: "fabricctl-host", Protocol: Protocol, Version: "v1", Host: "gpu-17", OS: "linux", Arch: "amd64"}); c.Hello() != want {
		t.Errorf("hello %+v", c.Hello())
	}
	if err := c.Ping(ctx); err != nil {
		t.Error(err)
	}
	f, caps, err := c.Facts(ctx)
	if diff := cmp.Diff(dev.facts, f); diff != "" || caps != (drivers.Caps{PersistsOnCommit: true}) || err != nil {
		t.Errorf("facts %v, caps %v (-want +got):\n%s", err, caps, diff)
	}
	cfg, err := c.Read(ctx)
	if diff := cmp.Diff(dev.config, cfg); diff != "" || err != nil {
		t.Errorf("read %v (-want +got):\n%s", err, diff)
	}
	// Absent is not empty.
	cs := []render.Change{
		{Op: render.Add, Key: dev.config[0].Key, After: new("")},
		{Op: render.Remove, Key: dev.config[1].Key, Before: new("x")},
	}
	if err := c.Commit(ctx, "tx", cs, time.Microsecond); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(cs, dev.got); diff != "" || dev.within != time.Millisecond {
		t.Errorf("within %v, changes (-want +got):\n%s", dev.within, diff)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if _, err := c.Read(ctx); err == nil || err.Error() != "host1: read: the connection is closed" {
		t.Errorf("after close: %v", err)
	}
}

// The bytes on the wire are the protocol: a change of this test is a new Protocol.
func TestTranscript(t *testing.T) {
	dev := &box{
		facts:  render.Facts{Hostname: "gpu-17", Serial: "S1", Model: "m", Version: "6", Aliases: map[string]string{"p": "eth0"}, Owners: []string{"o"}, Notes: []string{"n"}},
		config: render.Config{{Key: render.Key{Scope: "link", Object: "eth0", Field: "mtu"}, Value: "9000"}},
	}
	dev.commit = func(context.Context) error {
		return &drivers.RejectedError{Sent: "link|eth0|mtu 1", Sentence: "invalid argument"}
	}
	near, far := net.Pipe()
	go Serve(context.Background(), far, far, Host{Device: dev}, Hello{Version: "v1", Host: "gpu-17", OS: "linux", Arch: "amd64"})
	defer near.Close()
	in := bufio.NewReader(near)
	for _, step := range [][2]string{
		{"", hi},
		{`{"id":1,"op":"ping"}`, `{"id":1}` + "\n"},
		{`{"id":2,"op":"facts"}`, `{"id":2,"facts":{"hostname":"gpu-17","serial":"S1","model":"m","version":"6","aliases":{"p":"eth0"},"owners":["o"],"notes":["n"]},` +
			`"caps":{"confirm":false,"atomic":false,"persists_on_commit":true,"counters":false}}` + "\n"},
		{`{"id":3,"op":"read"}`, `{"id":3,"config":[{"key":["link","eth0","mtu"],"value":"9000"}]}` + "\n"},
		{
			`{"id":4,"op":"commit","tx":"t-1","changes":[{"op":"set","key":["link","eth0","mtu"],"before":"9000","after":"1"}],"within_ms":5}`,
			`{"id":4,"error":{"code":"rejected","message":": device refused \"link|eth0|mtu 1\": invalid argument","sent":"link|eth0|mtu 1","sentence":"invalid argument"}}` + "\n",
		},
		{`{"id":0,"op":"ping"}` + "\n" + `{"id":7,"op":"know","know":[{"name":"xsc"}]}`, `{"id":7}` + "\n"},
		{`{"id":8,"op":"pending"}`, `{"id":8,"error":{"code":"protocol","message":"fabricctl-host is not understood: operation \"pending\""}}` + "\n"},
		{`{"id":9,"op":"confirm","tx":"t-1"}`, `{"id":9,"error":{"code":"no-confirm","message":"confirm: the device has no confirm timer"}}` + "\n"},
		{`{"id":5,"op":"reboot"}`, `{"id":5,"error":{"code":"protocol","message":"fabricctl-host is not understood: operation \"reboot\""}}` + "\n"},
		{`{"id":6,"op":"ping","color":"red"}`, `{"id":0,"error":{"code":"protocol","message":"fabricctl-host is not understood: json: unknown field \"color\" in \"{\\\"id\\\":6,\\\"op\\\":\\\"ping\\\",\\\"color\\\":\\\"red\\\"}\""}}` + "\n"},
	} {
		if step[0] != "" {
			fmt.Fprintln(near, step[0])
		}
		if got, err := in.ReadString('\n'); got != step[1] || err != nil {
			t.Errorf("%s\n got %v %s\nwant %s", step[0], err, got, step[1])
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	for _, err := range []error{
		drivers.ErrMoved, drivers.ErrNoConfirm, drivers.ErrReadOnly, drivers.ErrIdentity, drivers.ErrJobs, drivers.ErrHeld, drivers.ErrBusy,
		context.Canceled, context.DeadlineExceeded,
		errors.New("disk full"), &drivers.RejectedError{Sent: "link|eth0|mtu 9", Sentence: "operation not permitted"},
	} {
		dev := &box{err: fmt.Errorf("commit: %w: for a reason", err)}
		c, _ := serve(t, dev)
		got := c.Commit(t.Context(), "tx", nil, 0)
		if rej, ok := errors.AsType[*drivers.RejectedError](err); ok {
			want := &drivers.RejectedError{Device: "host1", Sent: rej.Sent, Sentence: rej.Sentence}
			if g, ok := errors.AsType[*drivers.RejectedError](got); !ok || *g != *want {
				t.Errorf("got %#v", got)
			}
			continue
		}
		if want := "host1: commit: " + err.Error() + ": for a reason"; got == nil || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
		if known := err.Error() != "disk full"; errors.Is(got, err) != known {
			t.Errorf("%v is not %v at the other end", got, err)
		}
		for _, c := range codes {
			if errors.Is(got, c.err) != (err == c.err) {
				t.Errorf("%v is %v: %v", got, c.err, errors.Is(got, c.err))
			}
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("after %v: %v", got, err)
		}
	}
}

func TestBannerIsSkipped(t *testing.T) {
	c, err := played(t, "Welcome to gpu-17!\n\n{\"hello\":\"world\"}\nnot the end of a line"+hi)
	if err != nil || c.Hello().Host != "gpu-17" {
		t.Error(err)
	}
}

func TestNoHello(t *testing.T) {
	long := strings.Repeat("noise\n", 20000)
	for _, tt := range []struct{ name, says, want string }{
		{
			"other protocol", strings.Replace(hi, `"protocol":3`, `"protocol":4,"colour":3`, 1),
			"host1: hello: fabricctl-host is not understood: it is version v1 with protocol 4, this fabricctl speaks 3: use the two of one release",
		},
		{"no protocol", `{"hello":"fabricctl-host"}` + "\n", "protocol 0, this fabricctl speaks 3"},
		{"bad hello", `{"hello":"fabricctl-host","protocol":"x"}` + "\n", "not understood"},
		{"silent end", "", "host1: hello: it ended without a hello"},
		{"shell error", "sh: not found\n", `host1: hello: it ended without a hello; it said "sh: not found"`},
		{"endless banner", long, "no hello in"},
	} {
		if _, err := played(t, tt.says); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "Hello.") {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	for _, tt := range []struct{ name, says, want string }{
		{"not JSON", "Segmentation fault\n", `invalid character 'S' looking for beginning of value in "Segmentation fault"`},
		{"other request", `{"id":7}` + "\n", "answer 7 to request 1"},
		{"wrong type", `{"id":1,"config":"x"}` + "\n", "a string where something else belongs"},
		{"two values", `{"id":1}{"id":2}` + "\n", "more than one value"},
		{"half a line", `{"id":1`, "the connection ended before the answer"},
		{"end", "", "the connection ended before the answer"},
		{"endless line", strings.Repeat("x", MaxLine+2), "a line of more than"},
	} {
		c, err := played(t, hi+tt.says)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Read(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "host1: read: ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hostwire") {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
		if _, err := c.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the connection was given up") {
			t.Errorf("%s: afterwards: %v", tt.name, err)
		}
	}
}

func TestFactsWithoutFacts(t *testing.T) {
	c, err := played(t, hi+`{"id":1}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Facts(t.Context()); !errors.Is(err, ErrProtocol) {
		t.Error(err)
	}
}

// A cancelled commit stops on the host, and the connection goes on.
func TestCancel(t *testing.T) {
	begun := make(chan struct{})
	dev := &box{commit: func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return fmt.Errorf("commit: eth1: %w", ctx.Err())
	}}
	c, _ := serve(t, dev)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if err := c.Commit(ctx, "tx", nil, 0); !errors.Is(err, context.Canceled) || err.Error() != "host1: commit: context canceled" {
		t.Errorf("got %v", err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A host that does not stop is left, and the connection with it.
func TestCancelOfADeafHost(t *testing.T) {
	begun, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	dev := &box{commit: func(context.Context) error { close(begun); <-free; return nil }}
	c, _ := serve(t, dev)
	rw := &counted{ReadWriteCloser: c.rw}
	c.rw = rw
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if err := c.Commit(ctx, "tx", nil, 0); !errors.Is(err, context.Canceled) || rw.closed != 1 {
		t.Errorf("got %v, closed %d times", err, rw.closed)
	}
	err := c.Ping(t.Context())
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("afterwards: %v", err)
	}
}

// The laptop goes away in mid-commit: the commit is stopped.
func TestLaptopGone(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	dev := &box{commit: func(ctx context.Context) error { close(begun); <-ctx.Done(); close(stopped); return ctx.Err() }}
	c, ended := serve(t, dev)
	go c.Commit(t.Context(), "tx", nil, 0)
	<-begun
	c.rw.Close()
	<-stopped
	if err := <-ended; err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, far, far, Host{Device: &box{}}, Hello{}) }()
	if _, err := NewClient(t.Context(), "host1", near); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCancelBeforeBegin(t *testing.T) {
	dev := &box{}
	s := &server{host: Host{Device: dev}}
	s.stop(4)
	if r := s.answer(t.Context(), request{ID: 4, Op: "commit"}); r.Error == nil || r.Error.Code != "cancelled" || dev.got != nil {
		t.Errorf("%+v", r)
	}
	if r := s.answer(t.Context(), request{ID: 5, Op: "commit"}); r.Error != nil {
		t.Errorf("%+v", r)
	}
}

func TestTooLargeRequest(t *testing.T) {
	c, _ := serve(t, &box{})
	v := strings.Repeat("x", MaxLine)
	if err := c.Commit(t.Context(), "tx", []render.Change{{After: &v}}, 0); !errors.Is(err, ErrProtocol) || len(err.Error()) > 200 {
		t.Errorf("got %.300v", err)
	}
}

func FuzzServe(f *testing.F) {
	f.Add(`{"id":1,"op":"ping"}` + "\n" + `{"id":2,"op":"commit","changes":[{"op":"set","key":["a","b","c"],"before":"1"}]}` + "\n")
	f.Add(`{"id":1,"op":"cancel"}` + "\n" + `{"id":1,"op":"read"}` + "\n{")
	f.Add(`{"id":1,"op":"know","know":[{}]}` + "\n" + `{"id":2,"op":"hold","hold":{"fabric":"a","device":"b"}}` + "\n" + `{"id":3,"op":"release"}` + "\n" + `{"id":4,"op":"abort","tx":"t"}` + "\n")
	f.Add("\x00\xff\n[]\nnull\n")
	f.Fuzz(func(t *testing.T, in string) {
		Serve(context.Background(), strings.NewReader(in), io.Discard, Host{Device: &timedBox{box: box{config: render.Config{{}}}}, Holds: &held{}}, Hello{})
	})
}

func FuzzClient(f *testing.F) {
	f.Add(hi + `{"id":1,"facts":{},"caps":{}}` + "\n" + `{"id":2,"config":[{"key":["a","b","c"],"value":"v"}]}` + "\n")
	f.Add(hi + `{"id":1,"error":{"code":"moved","message":"m"}}` + "\n" + `{"id":2,"error":{"code":"rejected"}}` + "\n")
	f.Add(hi + `{"id":1}` + "\n" + `{"id":2,"holds":[{"device":"h1"}]}` + "\n" + `{"id":3,"txs":[{"id":"t","state":"timed","deadline":"2026-01-01T00:00:00Z"}]}` + "\n")
	f.Add("banner\n" + hi + "null\n")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := NewClient(context.Background(), "host1", half{strings.NewReader(in), io.Discard})
		if err != nil {
			return
		}
		c.Facts(context.Background())
		c.Holds(context.Background())
		Timer{c}.Pending(context.Background())
		cfg, err := c.Read(context.Background())
		if err == nil && !slices.IsSortedFunc(cfg, func(a, b render.Setting) int { return a.Key.Compare(b.Key) }) {
			t.Error("not sorted")
		}
	})
}
