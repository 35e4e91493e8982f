package conform_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// request and reply are the JSON lines that the reference device and its driver speak.
type request struct {
	Op     string
	Pass   string        `json:",omitempty"`
	Tx     drivers.TxID  `json:",omitempty"`
	Key    render.Key    `json:"Key"`
	Value  *string       `json:",omitempty"`
	Within time.Duration `json:",omitempty"`
}

type reply struct {
	Error  string            `json:",omitempty"`
	Key    string            `json:",omitempty"` // the host key, in the greeting
	Config map[string]string `json:",omitempty"` // JSON of a render.Key to value
	Txs    []drivers.Tx      `json:",omitempty"`
	Saved  bool              `json:",omitempty"`
	Values map[string]string `json:",omitempty"` // interface and counter, a space between
}

type settings map[render.Key]string

func mtu(port string) render.Key { return render.Key{Scope: "port", Object: port, Field: "mtu"} }
func wred(profile, field string) render.Key {
	return render.Key{Scope: "wred", Object: profile, Field: field}
}

// box is the reference device: a server on loopback with transactions, a commit timer, a startup configuration and
// every fault switch. Without confirm, each set takes effect at once.
type box struct {
	confirm bool
	ln      net.Listener
	wg      sync.WaitGroup

	mu               sync.Mutex
	now              time.Time
	running, startup settings
	open             map[drivers.TxID]settings
	timed            drivers.TxID
	deadline         time.Time
	old              settings
	writes, auths    int
	asked            int
	counters         map[string]string
	reject           string
	liar             bool
	slow             time.Duration
	stall            chan struct{}
	conns            map[net.Conn]bool
	over             chan struct{} // closed at the end
}

func newBox(t *testing.T, confirm bool) *box {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{
		confirm: confirm, ln: ln, over: make(chan struct{}), conns: map[net.Conn]bool{}, open: map[drivers.TxID]settings{},
		running: settings{
			mtu("p1"): "1500", mtu("p2"): "1500", mtu("p3"): "1500", wred("storage", "kmax"): "3000",
		},
	}
	b.startup = maps.Clone(b.running)
	b.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns[conn] = true
			b.mu.Unlock()
			b.wg.Go(func() { b.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		close(b.over)
		b.mu.Lock()
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.wg.Wait()
	})
	return b
}

// serve is one connection: greeting, login, then requests until it ends.
func (b *box) serve(conn net.Conn) {
	defer func() {
		b.mu.Lock()
		delete(b.conns, conn)
		b.mu.Unlock()
		_ = conn.Close()
	}()
	in, out := bufio.NewScanner(conn), json.NewEncoder(conn)
	in.Buffer(nil, 1<<20)
	if out.Encode(reply{Key: "the right key"}) != nil {
		return
	}
	trusted := false
	for in.Scan() {
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return
		}
		if q.Op == "auth" {
			b.mu.Lock()
			b.auths++
			b.mu.Unlock()
			trusted = q.Pass == password
			if !trusted {
				_ = out.Encode(reply{Error: "access denied"})
				return
			}
		}
		if !trusted {
			return
		}
		r, hold := b.answer(q)
		if hold {
			in.Scan() // nothing more comes until the connection ends
			return
		}
		if out.Encode(r) != nil {
			return
		}
	}
}

const password = "hunter2-canary"

func (b *box) answer(q request) (r reply, hold bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slow := b.slow; slow > 0 {
		b.mu.Unlock()
		select { // the device is slow; nobody waits on this to synchronise
		case <-time.After(slow):
		case <-b.over:
		}
		b.mu.Lock()
	}
	write := slices.Contains([]string{"begin", "set", "commit"}, q.Op)
	if write {
		b.writes++
		if b.stall != nil {
			close(b.stall)
			b.stall = nil
			return r, true
		}
		if b.reject != "" {
			r.Error, b.reject = b.reject, ""
			return r, false
		}
	}
	if err := b.do(q, &r); err != nil {
		r.Error = err.Error()
	}
	return r, false
}

func (b *box) do(q request, r *reply) error {
	switch q.Op {
	case "auth", "facts":
	case "read":
		r.Config = map[string]string{}
		for k, v := range b.running {
			j, _ := json.Marshal(k)
			r.Config[string(j)] = v
		}
	case "begin":
		b.open[q.Tx] = maps.Clone(b.running)
	case "set":
		target := b.running
		if b.confirm {
			if target = b.open[q.Tx]; target == nil {
				return fmt.Errorf("no transaction %s", q.Tx)
			}
		}
		if q.Key.Field == "mtu" && q.Value != nil && len(*q.Value) > 4 {
			return fmt.Errorf("%% MTU %s is out of range 68-9999", *q.Value)
		}
		switch {
		case b.liar && !b.confirm:
		case q.Value == nil:
			delete(target, q.Key)
		default:
			target[q.Key] = *q.Value
		}
	case "commit":
		s := b.open[q.Tx]
		if s == nil {
			return fmt.Errorf("no transaction %s", q.Tx)
		}
		delete(b.open, q.Tx)
		if b.liar {
			b.liar = false
			return nil
		}
		if q.Within > 0 {
			b.timed, b.deadline, b.old = q.Tx, b.now.Add(q.Within), b.running
		}
		b.running = s
	case "pending":
		for tx := range b.open {
			r.Txs = append(r.Txs, drivers.Tx{ID: tx, State: drivers.TxOpen})
		}
		if b.timed != "" {
			r.Txs = append(r.Txs, drivers.Tx{ID: b.timed, State: drivers.TxTimed, Deadline: b.deadline})
		}
	case "confirm":
		if b.timed != q.Tx {
			return fmt.Errorf("%s is not a timed transaction", q.Tx)
		}
		b.timed = ""
	case "abort":
		if b.timed == q.Tx {
			b.running, b.timed = b.old, ""
			return nil
		}
		if b.open[q.Tx] == nil {
			return fmt.Errorf("no transaction %s", q.Tx)
		}
		delete(b.open, q.Tx)
	case "save":
		b.startup = maps.Clone(b.running)
	case "saved":
		r.Saved = maps.Equal(b.startup, b.running)
	case "sense":
		b.asked++
		r.Values = b.counters
	default:
		return fmt.Errorf("unknown operation %s", q.Op)
	}
	return nil
}

func (b *box) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
	if b.timed != "" && !b.now.Before(b.deadline) {
		b.running, b.timed = b.old, ""
	}
}

func (b *box) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for k, v := range b.running {
		lines = append(lines, k.String()+"="+v)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// with runs f under the lock: what fault switches do.
func (b *box) with(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *box) count(n *int) (v int) {
	b.with(func() { v = *n })
	return v
}
