package lab

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// Controlled is an emulated device that can be made to misbehave by words, and says what happened to it.
type Controlled interface {
	Control(words ...string) (string, error)
}

// controlFile is where a lab leaves how it is told things: an address and a word that proves that the file was read.
const controlFile = "control"

// order is what a lab is told, one on a connection: words for a device, or a load. told is its answer.
type (
	order struct {
		Word   string   `json:"word"`
		Device string   `json:"device,omitempty"`
		Words  []string `json:"words,omitempty"`
		Load   *Load    `json:"load,omitempty"`
	}
	told struct {
		Said     string    `json:"said,omitempty"`
		Loaded   *Loaded   `json:"loaded,omitempty"`
		Error    string    `json:"error,omitempty"`
		Findings diag.List `json:"findings,omitempty"` // why a load was refused
	}
)

// maxOrder is the longest order and the longest answer, in bytes: a load with a long trace, and what became of its flows.
const maxOrder = 256 << 20

// Tell does something to a device of the lab that runs with this directory, and returns what it has to say.
func Tell(ctx context.Context, dir, device string, words ...string) (string, error) {
	t, err := ask(ctx, dir, order{Device: device, Words: words})
	if err == nil && t.Error != "" {
		err = fmt.Errorf("%s: %s", device, t.Error)
	}
	return t.Said, err
}

// Pass lets a load pass over the fabric of the lab that runs with this directory, see Lab.Run.
func Pass(ctx context.Context, dir string, load Load) (*Loaded, error) {
	t, err := ask(ctx, dir, order{Load: &load})
	switch {
	case err != nil:
		return nil, err
	case len(t.Findings) > 0:
		return nil, &sim.Refused{Findings: t.Findings}
	case t.Error != "":
		return nil, errors.New(t.Error)
	case t.Loaded == nil || t.Loaded.Result == nil:
		return nil, fmt.Errorf("the lab of %s does not know loads: it runs another version", dir)
	}
	return t.Loaded, nil
}

// ask tells a lab something and waits for its answer. A load whose asker is gone ends.
func ask(ctx context.Context, dir string, o order) (t told, err error) {
	b, err := os.ReadFile(filepath.Join(dir, controlFile))
	if errors.Is(err, os.ErrNotExist) {
		return t, fmt.Errorf("no lab runs with %s: start one with lab up --out %[1]s", dir)
	}
	if err != nil {
		return t, err
	}
	addr, word, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return t, fmt.Errorf("the lab of %s does not run any more: %w", dir, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	o.Word = word
	err = json.NewEncoder(c).Encode(o)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(c, maxOrder)).Decode(&t)
	}
	switch {
	case ctx.Err() != nil:
		return told{}, context.Cause(ctx)
	case err != nil:
		return told{}, fmt.Errorf("the lab of %s: %w", dir, err)
	}
	return t, nil
}

// taken reports whether a lab runs with a directory: somebody answers who knows its word.
func taken(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // for whoever has the port now and says nothing
	defer cancel()
	_, err := ask(ctx, dir, order{})
	return err == nil
}

// Control does something to a device.
func (l *Lab) Control(device string, words ...string) (string, error) {
	b, ok := l.boxes[device]
	if !ok {
		return "", errors.New("the lab has no such device")
	}
	c, ok := b.(Controlled)
	if !ok {
		return "", errors.New("only emulated hosts have controls: a switch is told by its own command line or gNMI")
	}
	return c.Control(words...)
}

// console listens to what the lab is told.
type console struct {
	listener net.Listener
	word     string
	wg       sync.WaitGroup
}

func (l *Lab) listen(f *files) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	l.console = &console{listener: ln, word: newPassword()}
	l.console.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.console.wg.Go(func() { l.hear(c) })
		}
	})
	return f.write(controlFile, ln.Addr().String()+" "+l.console.word+"\n")
}

// hear is one order.
func (l *Lab) hear(c net.Conn) {
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // nobody who has something to say takes that long
	in := bufio.NewReader(io.LimitReader(c, maxOrder))
	line, err := in.ReadBytes('\n')
	var o order
	if err != nil || json.Unmarshal(line, &o) != nil || subtle.ConstantTimeCompare([]byte(o.Word), []byte(l.console.word)) != 1 {
		return
	}
	if o.Load != nil {
		_ = c.SetReadDeadline(time.Time{})
		_ = json.NewEncoder(c).Encode(l.pass(*o.Load, in))
		return
	}
	said, err := l.Control(o.Device, o.Words...)
	t := told{Said: said}
	if err != nil {
		t.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(t)
}

// pass runs a load for somebody who says no more; it ends when he is gone.
func (l *Lab) pass(load Load, asker io.Reader) (t told) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() { // ends with the connection, which is closed after this
		_, _ = io.Copy(io.Discard, asker)
		cancel()
	}()
	var err error
	if t.Loaded, err = l.Run(ctx, load); err == nil {
		return t
	}
	t.Error = err.Error()
	if r, refused := errors.AsType[*sim.Refused](err); refused {
		t.Findings = r.Findings
	}
	return t
}

func (c *console) close() error {
	err := c.listener.Close()
	c.wg.Wait()
	return err
}
