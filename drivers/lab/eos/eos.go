// Package eos emulates an Arista EOS switch as far as its command line goes: an SSH server on a loopback port with
// exec, enable and configuration modes, configuration sessions with commit timers, a pager, shortened prompts and
// the sentences with which EOS refuses a line. It has its own grammar and shares no code with the dialects of
// package render, so that each is a witness for the other.
//
// A Switch keeps what is typed into it and forwards nothing. It can be told to misbehave (Faults). What it prints
// follows Arista's documentation and recordings published by users of EOS 4.25 to 4.35; sentences for which no
// recording was found are marked in the code. It was not compared with a switch.
package eos

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/lab/tally"
)

// Options describe a switch. The zero value of each field has the meaning given.
type Options struct {
	Hostname       string          // "localhost"
	Model          string          // "DCS-7060DX5-64S-F"
	Serial         string          // "JPE00000001"
	Version        string          // "4.31.2F"; from 4.32 sessions are listed in the newer way
	Ports          []string        // the Ethernet ports, "Ethernet1/1"; none: any name is taken
	TxQueue        string          // how this hardware calls a queue: "uc-tx-queue" or "tx-queue"
	User           string          // "admin"
	Password       string          // "" disables passwords
	AuthorizedKeys []ssh.PublicKey // keys that may log in as User
	EnablePassword string          // asked for by enable; "" asks nothing
	Privileged     bool            // logins start in privileged mode
	MaxAuthTries   int             // 3
	Banner         string          // shown before authentication
	MOTD           string          // shown after login
	MaxPending     int             // configuration sessions open at a time, 5
	Neighbours     []Neighbour     // what it hears over LLDP
	VirtualQueues  bool            // its chip has virtual output queues (Jericho), and counts drops there
	Foreign        string          // configuration of other features: shown, not understood
	Clock          Clock           // the system's
	HostKey        ssh.Signer      // a new key
}

// Counters say what was done to a switch. They only grow.
type Counters struct {
	Connections  int // TCP connections accepted
	AuthFailures int // passwords refused
	ConfigLines  int // configuration lines taken, in sessions too
	Commits      int // sessions committed, by a timer or for good
	Confirms     int // timed sessions confirmed
	Aborts       int // sessions aborted
	Reverts      int // timers that ran out
	Saves        int // write memory
	Shows        int // lines that ask for counters, refused ones too
}

// Switch is an emulated switch. Its methods may be called at any time from any goroutine.
type Switch struct {
	opt       Options
	grammar   *grammar
	commands  map[level][]variant
	commandOf map[*rule]command

	mu       sync.Mutex
	running  *config
	startup  *config
	sessions []*session
	serial   int // of unnamed sessions
	ttys     int
	counters Counters
	tally.Tally
	faults   Faults
	listener net.Listener
	conns    map[net.Conn]bool
	wg       sync.WaitGroup
}

// New makes a switch with its factory configuration, saved.
func New(o Options) (*Switch, error) {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&o.Hostname, "localhost")
	def(&o.Model, "DCS-7060DX5-64S-F")
	def(&o.Serial, "JPE00000001")
	def(&o.Version, "4.31.2F")
	def(&o.TxQueue, "uc-tx-queue")
	def(&o.User, "admin")
	if o.MaxAuthTries == 0 {
		o.MaxAuthTries = 3
	}
	if o.MaxPending == 0 {
		o.MaxPending = 5
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.HostKey == nil {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
		if o.HostKey, err = ssh.NewSignerFromKey(key); err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
	}
	s := &Switch{opt: o, grammar: newGrammar(o.TxQueue, o.Ports), conns: map[net.Conn]bool{}}
	s.Tally = tally.New(&s.mu)
	s.commands, s.commandOf = compileCommands(append(commands(), counterCommands()...))
	s.running = factoryConfig(o.Hostname, o.Ports)
	s.startup = s.running.clone()
	return s, nil
}

// HostKey is the public half of the switch's SSH key.
func (s *Switch) HostKey() ssh.PublicKey { return s.opt.HostKey.PublicKey() }

// Running is the running configuration in the words of show running-config, without its head and final "end".
func (s *Switch) Running() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running.text()
}

// Startup is the saved configuration, in the same words.
func (s *Switch) Startup() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startup.text()
}

// Held is the running and the saved configuration.
func (s *Switch) Held() string { return s.Running() + "--- startup\n" + s.Startup() }

// Writes is how often something was written: lines, commits and saves.
func (s *Switch) Writes() int {
	c := s.Counters()
	return c.ConfigLines + c.Commits + c.Saves
}

// Counters is a snapshot of the counters.
func (s *Switch) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters
}

// SessionState is one configuration session, for tests and for looking at.
type SessionState struct {
	Name  string
	State string // pending, pendingCommitTimer, completed, aborted
	Text  string // the configuration it would commit
}

// Sessions lists the configuration sessions that the switch remembers, oldest first.
func (s *Switch) Sessions() []SessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []SessionState
	for _, x := range s.sessions {
		out = append(out, SessionState{x.name, string(x.state), x.config.text()})
	}
	return out
}

// Dump is everything the switch holds, as text: configurations, sessions and counters.
func (s *Switch) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "== running\n%s== startup\n%s", s.Running(), s.Startup())
	for _, x := range s.Sessions() {
		fmt.Fprintf(&b, "== session %s (%s)\n%s", x.Name, x.State, x.Text)
	}
	fmt.Fprintf(&b, "== counters\n%+v\n", s.Counters())
	return b.String()
}

// Type changes the running configuration as another user would in configure terminal: line by line, each taking
// effect at once. It stops at the first line that is refused. Counters do not move.
func (s *Switch) Type(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.typeInto(s.running, text)
	return err
}

// Boot replaces the running and the startup configuration by the factory one with text typed over it.
func (s *Switch) Boot(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := factoryConfig(s.opt.Hostname, s.opt.Ports)
	if _, err := s.typeInto(c, text); err != nil {
		return err
	}
	s.running, s.startup = c, c.clone()
	return nil
}

func (s *Switch) typeInto(c *config, text string) (place, error) {
	var at place
	for i, l := range strings.Split(text, "\n") {
		in := fields(l)
		if len(in) == 0 || len(in) == 1 && in[0] == "end" {
			continue
		}
		var sentence string
		if at, sentence = s.grammar.config(c, at, in); sentence != "" {
			return at, fmt.Errorf("line %d: %q: %s", i+1, strings.TrimSpace(l), sentence)
		}
	}
	return at, nil
}

// OpenSession leaves a session of that name pending with the lines typed into it, as a client that died would.
func (s *Switch) OpenSession(name, user, lines string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, sentence := s.open(name, user, "")
	if sentence != "" {
		return errors.New(sentence)
	}
	_, err := s.typeInto(x.config, lines)
	return err
}

// StartTimer commits a pending session with a timer (HH:MM:SS), as another user would.
func (s *Switch) StartTimer(name, timer string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := parseTimer(timer)
	x := s.session(name)
	if !ok || x == nil {
		return fmt.Errorf("no session %s, or %q is not a time", name, timer)
	}
	if sentence := s.commit(x, d); sentence != "" {
		return errors.New(sentence)
	}
	return nil
}

// Reload restarts the switch: connections end, sessions and timers are forgotten, startup becomes running, counters begin
// anew.
func (s *Switch) Reload() {
	s.mu.Lock()
	for _, x := range s.sessions {
		x.stopTimer()
	}
	s.sessions = nil
	s.running = s.startup.clone()
	s.ClearCounters()
	s.mu.Unlock()
	s.Disconnect()
}

// Disconnect cuts every connection.
func (s *Switch) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// minor is the second number of the version: 31 of 4.31.2F.
func (s *Switch) minor() int {
	p := strings.Split(s.opt.Version, ".")
	if len(p) < 2 || p[0] != "4" {
		return 0
	}
	n, _ := strconv.Atoi(p[1])
	return n
}

func (s *Switch) session(name string) *session {
	if i := slices.IndexFunc(s.sessions, func(x *session) bool { return x.name == name }); i >= 0 {
		return s.sessions[i]
	}
	return nil
}
