// Package gnmi reads and writes SONiC switches over gNMI, origin sonic-db: the whole CONFIG_DB in, one Set per commit
// out. The wire is gnmic's; what a path and a value look like is built by hand here, because SONiC takes neither its
// numbers nor its split of "10.0.0.1/31".
//
// What SONiC's server does to a Set, and what follows from it, is at Commit. The behaviour was measured on the real
// server of sonic-gnmi 5ec1c20b; nothing here was tried on a hardware switch.
package gnmi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmic/pkg/api"
	"github.com/openconfig/gnmic/pkg/api/target"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/render"
)

// ErrAuth is returned when the switch does not accept the user. Trying again with the same password costs another
// attempt.
var ErrAuth = errors.New("login refused")

// ErrTLS is returned by Dial when the switch answered and is not known to be the one that was meant: its certificate is
// not accepted, or it does not speak TLS. No user name was sent.
var ErrTLS = errors.New("TLS")

// ErrMultiASIC is returned for a switch with several ASICs. Each of them has a ConfigDB of its own, and writing to
// the wrong one is a known fault (sonic-gnmi#329), so fabricctl keeps off.
var ErrMultiASIC = errors.New("multi-ASIC switch: not supported")

// maxMessage is the largest answer taken, in bytes. A whole ConfigDB passes gRPC's 4 MiB.
const maxMessage = 256 << 20

// readBuffer is how many bytes gRPC reads ahead of a connection. TLS reads ahead by itself, and answers are read past the
// buffer, so that it is for the heads of frames; gRPC's own 32 KiB would be a tenth of what a connection is made of.
const readBuffer = 4 << 10

// Config is how to reach one switch.
type Config struct {
	Name      string // inventory name, for errors and logs
	Address   string // host:port
	Username  string // "" = no login
	Password  secret.Secret
	TLS       TLS
	Plaintext bool             // no TLS at all, password in the clear; warned about
	Via       []ssh.Config     // jump hosts, the first one reached directly
	ReadOnly  bool             // makes every write impossible, also the Set of Try
	Known     *Known           // what other connections of the run have learned; nil = nothing, and nothing is kept
	Log       *slog.Logger     // nil = silent
	Now       func() time.Time // of readings of counters; nil = time.Now
}

// TLS is whom to trust and what to show.
type TLS struct {
	CA         []byte        // PEM; nil = the system's authorities
	Cert       []byte        // PEM of the client's certificate, for client_auth cert
	Key        secret.Secret // PEM of its key
	ServerName string        // name in the server's certificate; "" = the host of Address
	Insecure   bool          // do not verify the certificate; warned about
}

// Device is a connected SONiC switch. It is a drivers.Device.
type Device struct {
	config Config
	target *target.Target
	via    *ssh.Client // the last jump host, or nil
	last   *look       // what was seen last, to know it again
	look   *look       // what Facts saw, for the Read that follows it
	closed bool

	answered, trusted atomic.Bool // how far a connection came: TCP, and TLS
}

var (
	_ drivers.Device      = (*Device)(nil)
	_ drivers.Guarded     = (*Device)(nil)
	_ drivers.Neighbourer = (*Device)(nil)
	_ drivers.Sensor      = (*Device)(nil)
)

// Dial prepares a connection, which gRPC makes at the first call. That call is made here, so that a bad address,
// certificate or password shows: it asks for a second ASIC. Where Config.Known has the answer no call is made, and
// what is wrong with the connection shows at its first use. The context bounds the dialling only.
func Dial(ctx context.Context, c Config) (*Device, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &Device{config: c}
	if err := d.dial(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) dial(ctx context.Context) error {
	c := d.config
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" || strings.Contains(host, ",") {
		return fmt.Errorf("%s: gnmi address %q is not host:port", c.Name, c.Address)
	}
	if d.target, err = api.NewTarget(api.Name(c.Name), api.Address(c.Address), api.Insecure(c.Plaintext)); err != nil {
		return fmt.Errorf("%s: gnmi: %w", c.Name, err)
	}
	if c.Plaintext {
		c.Log.Warn("gNMI without TLS (plaintext: true)", "device", c.Name, "address", c.Address)
	} else {
		if c.TLS.Insecure {
			c.Log.Warn("gNMI certificate not verified (insecure: true)", "device", c.Name, "address", c.Address)
		}
		conf, err := c.TLS.config(host, c.Known)
		if err != nil {
			return fmt.Errorf("%s: gnmi: %w", c.Name, err)
		}
		conf.ClientSessionCache = c.Known.sessions(c)
		conf.VerifyConnection = func(tls.ConnectionState) error { // asked last, when nothing else was amiss
			d.trusted.Store(true)
			return nil
		}
		d.target.Config.SetTLSConfig(conf)
	}
	dialTCP := (&net.Dialer{}).DialContext
	if n := len(c.Via); n > 0 {
		last := c.Via[n-1]
		last.Via = c.Via[:n-1]
		if d.via, err = ssh.Dial(ctx, last); err != nil {
			return fmt.Errorf("%s: via %w", c.Name, err)
		}
		dialTCP = d.via.DialContext
	}
	// gnmic puts its own dialler over one given as an option, unless the target looks tunnelled.
	d.target.Config.TunnelTargetType = "fabricctl"
	err = d.target.CreateGNMIClient(ctx,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dialTCP(ctx, "tcp", c.Address)
			if err == nil {
				d.answered.Store(true)
			}
			return conn, err
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithUserAgent("fabricctl"),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return d.failed(ctx, "dial "+c.Address, err)
	}
	if c.Known.single(c) {
		return nil
	}
	if err := d.oneASIC(ctx); err != nil {
		return err
	}
	c.Known.addSingle(c)
	c.Log.Debug("gnmi connected", "device", c.Name, "address", c.Address)
	return nil
}

// isSonic asks a server that answered strangely whether it is SONiC's at all.
func (d *Device) isSonic(ctx context.Context) error {
	op := "dial " + d.config.Address
	caps, err := d.target.Capabilities(d.login(ctx))
	if err != nil {
		return d.failed(ctx, op, err)
	}
	sonic := func(m *gpb.ModelData) bool { return m.GetName() == "sonic-db" }
	if !slices.ContainsFunc(caps.GetSupportedModels(), sonic) || !slices.Contains(caps.GetSupportedEncodings(), gpb.Encoding_JSON_IETF) {
		return fmt.Errorf("%s: gnmi %s: the server offers no sonic-db with JSON_IETF: it is not SONiC's, or built without it", d.config.Name, op)
	}
	return nil
}

// Known is what the connections of a run learn of their switches: which have one ASIC, so that each is asked once (it
// does not grow one meanwhile), and TLS sessions, so that a second connection need not prove again what the first has
// proven: only the switch that did has the key of its session, and any other is verified like the first time. It knows
// the authorities of a PEM text, too. The zero value knows nothing. Its methods may be called by several goroutines.
type Known struct {
	asics sync.Map // place to true, for switches with one
	tls   sync.Map // place to tls.ClientSessionCache
	pools sync.Map // PEM, as a string, to *x509.CertPool
}

// place is where a switch was asked.
type place struct{ name, address string }

func (k *Known) single(c Config) bool {
	if k == nil {
		return false
	}
	_, ok := k.asics.Load(place{c.Name, c.Address})
	return ok
}

func (k *Known) addSingle(c Config) {
	if k != nil {
		k.asics.Store(place{c.Name, c.Address}, true)
	}
}

// sessions is where the TLS sessions with a switch are kept; nil = nowhere.
func (k *Known) sessions(c Config) tls.ClientSessionCache {
	if k == nil {
		return nil
	}
	kept, _ := k.tls.LoadOrStore(place{c.Name, c.Address}, tls.NewLRUClientSessionCache(1))
	return kept.(tls.ClientSessionCache)
}

// pool is the authorities of a PEM text, of which many switches have the same. It is not changed.
func (k *Known) pool(pem []byte) (*x509.CertPool, error) {
	if k != nil {
		if p, ok := k.pools.Load(string(pem)); ok {
			return p.(*x509.CertPool), nil
		}
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, errors.New("tls.ca has no certificate in PEM form")
	}
	if k != nil {
		k.pools.Store(string(pem), p)
	}
	return p, nil
}

// config is the TLS configuration, strict unless Insecure.
func (t TLS) config(host string, k *Known) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if conf.ServerName == "" {
		conf.ServerName = host
	}
	if t.CA != nil {
		var err error
		if conf.RootCAs, err = k.pool(t.CA); err != nil {
			return nil, err
		}
	}
	if t.Cert != nil || !t.Key.IsZero() {
		pair, err := tls.X509KeyPair(t.Cert, []byte(t.Key.Reveal()))
		if err != nil {
			return nil, errors.New("tls.cert and tls.key are not a certificate and its key in PEM form")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// Check finds what is wrong with certificates and keys without a connection.
func (c Config) Check() error {
	if c.Plaintext {
		return nil
	}
	if _, err := c.TLS.config("", nil); err != nil {
		return fmt.Errorf("%s: gnmi: %w", c.Name, err)
	}
	return nil
}

// login is ctx with the credentials of one call. They live nowhere else in the clear.
func (d *Device) login(ctx context.Context) context.Context {
	if d.config.Username == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "username", d.config.Username, "password", d.config.Password.Reveal())
}

// failed says what went wrong with a call: the end of the context, a refused login, or the server's own sentence.
func (d *Device) failed(ctx context.Context, op string, err error) error {
	op += d.config.through()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: gnmi %s: waiting for the answer: %w", d.config.Name, op, context.Cause(ctx))
	}
	st := status.Convert(err)
	switch st.Code() {
	case codes.DeadlineExceeded: // the server keeps our deadline too, and may be a moment earlier
		return fmt.Errorf("%s: gnmi %s: waiting for the answer: %w", d.config.Name, op, context.DeadlineExceeded)
	case codes.Unauthenticated:
		return fmt.Errorf("%s: gnmi %s: %w for user %q: the password or the user's name is wrong; the device says %q", d.config.Name, op, ErrAuth, d.config.Username, st.Message())
	case codes.PermissionDenied:
		return fmt.Errorf("%s: gnmi %s: %w for user %q: the device says %q", d.config.Name, op, ErrAuth, d.config.Username, st.Message())
	case codes.Unavailable:
		why := d.config.broken(st.Message())
		if d.answered.Load() && !d.trusted.Load() && !d.config.Plaintext {
			return fmt.Errorf("%s: gnmi %s: %w", d.config.Name, op, untrusted(why))
		}
		return fmt.Errorf("%s: gnmi %s: %s", d.config.Name, op, why)
	}
	return fmt.Errorf("%s: gnmi %s: %s: %s", d.config.Name, op, st.Code(), st.Message())
}

// untrusted is why there is no TLS connection; it is ErrTLS.
type untrusted string

func (u untrusted) Error() string        { return string(u) }
func (u untrusted) Is(target error) bool { return target == ErrTLS }

// broken is gRPC's report of a broken connection without its wrapping, and what it means where that can be told. gRPC
// hands on no error value, only this text; it is shown and decides nothing.
func (c *Config) broken(s string) string {
	for _, wrap := range []string{
		"connection error: desc = ", "transport: ", "Error while dialing: ", "authentication handshake failed: ",
		"tls: failed to verify certificate: ", "to " + c.Address + ": ", "dial tcp " + c.Address + ": ", "dial tcp: ", "connect: ",
	} {
		s = strings.Trim(strings.TrimPrefix(s, wrap), `"`)
	}
	s, _, _ = strings.Cut(s, " (possibly because of ") // which authority it might have been
	if strings.Contains(s, "signed by unknown authority") {
		return "the certificate is not signed by " + c.authority()
	}
	for _, x := range []struct{ when, means string }{
		{"expired or is not yet valid", "the certificate is out of date, or a clock is wrong"},
		{"cannot validate certificate for", "the certificate is for another name; tls.server_name gives the one in it"},
		{"certificate is valid for", "the certificate is for another name; tls.server_name gives the one in it"},
		{"does not look like a TLS handshake", "the server does not speak TLS on this port"},
		{"error reading server preface", "the server does not speak plain gNMI on this port; it may want TLS"},
	} {
		if strings.Contains(s, x.when) {
			return x.means + " (" + s + ")"
		}
	}
	return s
}

// through names the jump hosts on the way.
func (c *Config) through() string {
	names := make([]string, len(c.Via))
	for i, hop := range c.Via {
		names[i] = hop.Name
	}
	if len(names) == 0 {
		return ""
	}
	return " via " + strings.Join(names, ", ")
}

// authority is who must have signed the certificate.
func (c *Config) authority() string {
	if c.TLS.CA == nil {
		return "an authority that this machine trusts, and no tls.ca is given"
	}
	return "the authority in tls.ca"
}

// open refuses calls after Close.
func (d *Device) open(op string) error {
	if d.closed {
		return fmt.Errorf("%s: gnmi %s: %w", d.config.Name, op, net.ErrClosed)
	}
	return nil
}

// Close ends the connection, and its jump hosts'. It may be called again.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	if d.target != nil {
		_ = d.target.Close() // an error means that it was closed already
	}
	return d.via.Close()
}

// caps is what SONiC over gNMI can do.
func caps() drivers.Caps { return drivers.Caps{Atomic: true, PersistsOnCommit: true, Counters: true} }

// dialect is how a ConfigDB is understood.
func dialect() *render.Dialect { return render.ByOS("sonic") }

// setDeadline bounds one Set: the server's own limits for the checkpoint (60 s), the patch (600 s) and the save
// (60 s).
const setDeadline = 720 * time.Second
