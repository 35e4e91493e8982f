// Package sonic emulates the gNMI server of a SONiC switch: the real protocol over TLS on a loopback port, a ConfigDB
// that behaves as measured on sonic-gnmi 5ec1c20b, and the refusals of the generic config updater (GCU) as read in
// sonic-utilities 691b1bbc. It shares no code with the dialect that renders ConfigDB, so that each checks the other.
//
// It keeps real state, counts what it is asked, and misbehaves on demand (Faults). COUNTERS_DB holds what SetCounters was
// given, and no number until then.
package sonic

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers/lab/tally"
)

// Options is how to start a Switch. The zero value is a switch with an empty ConfigDB that lets everybody in.
type Options struct {
	Config         DB     // the configuration it starts with, running and startup; copied
	User, Password string // of every call; User "" = no login
	Plaintext      bool   // no TLS

	// Idle closes connections without calls, as the real server does after 5 s; 0 = never.
	Idle time.Duration
	// SKUs are the hardware names for which GCU permits changes of PFC_WD and of BUFFER_PROFILE fields; nil = all.
	SKUs []string
	// Buffers are its pools and its table of lossless priority groups.
	Buffers Buffers
	// ASICs is the number of namespaces asic0, asic1, … of a multi-ASIC switch; 0 = a single ASIC. They are empty.
	ASICs int
	// Neighbours is what it hears over LLDP; none = no LLDP table, as on a switch that hears nobody.
	Neighbours []Neighbour
	Log        *slog.Logger // nil = silent
}

// Stats is what a Switch has seen.
type Stats struct {
	Dials   int   // connections accepted
	Open    int   // connections open now
	Resumed int   // TLS sessions that went on from an earlier one
	Bytes   int64 // in both directions, as encrypted
	Logins  int   // calls with a user name or a password
	Refused int   // of these, refused
	Caps    int   // Capabilities calls
	Gets    int
	Sets    int
	Paths   int            // paths in all Sets
	Changed int            // Sets that changed the configuration
	Flaps   map[string]int // by port: GCU takes a port down to change its queues, maps or buffers
}

// Switch is one running emulated switch. Its methods may be called at any time.
type Switch struct {
	gpb.UnimplementedGNMIServer
	options Options
	server  *grpc.Server
	addr    string
	certs   certificates
	line    *line
	done    sync.WaitGroup

	mu       sync.Mutex
	running  DB
	startup  DB
	faults   Faults
	stats    Stats
	refusals []string
	tally.Tally
}

// Start starts a switch on a free port of 127.0.0.1. Stop it with Close.
func Start(o Options) (*Switch, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Switch{options: o, running: o.Config.clone(), stats: Stats{Flaps: map[string]int{}}}
	s.Tally = tally.New(&s.mu)
	o.Buffers.put(s.running)
	s.buffermgrd(s.running)
	s.startup = s.running.clone()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.addr = l.Addr().String()
	s.line = newLine(l)
	opts := []grpc.ServerOption{
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: o.Idle}),
	}
	if !o.Plaintext {
		if s.certs, err = newCertificates(); err != nil {
			_ = l.Close()
			return nil, err
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS12,
			VerifyConnection: func(c tls.ConnectionState) error {
				if c.DidResume {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.stats.Resumed++
				}
				return nil
			},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.certs.server[s.faults.Certificate], nil
			},
		})))
	}
	s.server = grpc.NewServer(opts...)
	gpb.RegisterGNMIServer(s.server, s)
	s.done.Go(func() { _ = s.server.Serve(s.line) }) // ends with Close
	return s, nil
}

// Addr is where it listens, host:port.
func (s *Switch) Addr() string { return s.addr }

// CA is the certificate of the authority that signed the switch's own, in PEM; nil without TLS.
func (s *Switch) CA() []byte { return s.certs.ca }

// Close stops the switch and everything it holds.
func (s *Switch) Close() error {
	s.server.Stop()
	s.done.Wait()
	return nil
}

// Stats is what it has seen so far.
func (s *Switch) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Flaps = maps.Clone(st.Flaps)
	st.Dials, st.Open, st.Bytes = s.line.counts()
	return st
}

// Refusals are the reasons for which GCU refused Sets, oldest first: what its log would say, and the client is not
// told.
func (s *Switch) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refusals...)
}

// Held is the running configuration, which is saved at once.
func (s *Switch) Held() string { return string(s.Config().JSON()) }

// Writes is how many Sets came.
func (s *Switch) Writes() int { return s.Stats().Sets }

// Config is a copy of the running configuration.
func (s *Switch) Config() DB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running.clone()
}

// Edit changes the running configuration as somebody on the switch would, without any check and without saving.
func (s *Switch) Edit(f func(DB)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.running)
	s.buffermgrd(s.running)
}

// Reboot loads the startup configuration, lets counters begin anew and drops all connections.
func (s *Switch) Reboot() {
	s.mu.Lock()
	s.running = s.startup.clone()
	s.ClearCounters()
	s.mu.Unlock()
	s.line.cut()
}

// enter does what every call starts with: the login and the wait of a slow switch.
func (s *Switch) enter(ctx context.Context, call string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	user, password := md.Get("username"), md.Get("password")
	s.mu.Lock()
	slow, refused := s.faults.Slow, ""
	if len(user)+len(password) > 0 {
		s.stats.Logins++
	}
	switch {
	case s.options.User == "":
	case len(user) == 0:
		refused = "No Username Provided"
	case len(password) == 0:
		refused = "No Password Provided"
	case user[0] != s.options.User || password[0] != s.options.Password:
		refused = "Unauthenticated"
		s.stats.Refused++
	}
	s.mu.Unlock()
	if refused != "" {
		s.options.Log.Info("login refused", "call", call)
		return status.Error(codes.Unauthenticated, refused)
	}
	if slow > 0 {
		wait := time.NewTimer(slow)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	s.options.Log.Debug("call", "call", call)
	return nil
}

// Capabilities is the gNMI call.
func (s *Switch) Capabilities(ctx context.Context, _ *gpb.CapabilityRequest) (*gpb.CapabilityResponse, error) {
	s.mu.Lock()
	s.stats.Caps++
	s.mu.Unlock()
	if err := s.enter(ctx, "Capabilities"); err != nil {
		return nil, err
	}
	return &gpb.CapabilityResponse{
		SupportedModels:    []*gpb.ModelData{{Name: "sonic-db", Organization: "SONiC", Version: "0.1.0"}},
		SupportedEncodings: []gpb.Encoding{gpb.Encoding_JSON, gpb.Encoding_JSON_IETF, gpb.Encoding_PROTO},
		GNMIVersion:        "0.7.0",
	}, nil
}
