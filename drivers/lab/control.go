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
)

// Controlled is an emulated device that can be made to misbehave by words, and says what happened to it.
type Controlled interface {
	Control(words ...string) (string, error)
}

// controlFile is where a lab leaves how it is told things: an address and a word that proves that the file was read.
const controlFile = "control"

// order is what a lab is told, one on a connection, and told is its answer.
type (
	order struct {
		Word   string   `json:"word"`
		Device string   `json:"device"`
		Words  []string `json:"words"`
	}
	told struct {
		Said  string `json:"said"`
		Error string `json:"error,omitempty"`
	}
)

// maxOrder is the longest order and the longest answer, in bytes.
const maxOrder = 4 << 20

// Tell does something to a device of the lab that runs with this directory, and returns what it has to say.
func Tell(ctx context.Context, dir, device string, words ...string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, controlFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no lab runs with %s: start one with lab up --out %[1]s", dir)
	}
	if err != nil {
		return "", err
	}
	addr, word, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("the lab of %s does not run any more: %w", dir, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	var t told
	err = json.NewEncoder(c).Encode(order{word, device, words})
	if err == nil {
		err = json.NewDecoder(io.LimitReader(c, maxOrder)).Decode(&t)
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("the lab of %s: %w", dir, err)
	case t.Error != "":
		return t.Said, fmt.Errorf("%s: %s", device, t.Error)
	}
	return t.Said, nil
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
	line, err := bufio.NewReader(io.LimitReader(c, maxOrder)).ReadBytes('\n')
	var o order
	if err != nil || json.Unmarshal(line, &o) != nil || subtle.ConstantTimeCompare([]byte(o.Word), []byte(l.console.word)) != 1 {
		return
	}
	said, err := l.Control(o.Device, o.Words...)
	t := told{Said: said}
	if err != nil {
		t.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(t)
}

func (c *console) close() error {
	err := c.listener.Close()
	c.wg.Wait()
	return err
}
