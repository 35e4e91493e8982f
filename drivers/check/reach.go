package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
)

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// reach goes from a name to a login, and says where it ended. Through a jump host the name and the connection are the
// jump host's to find, and only the login shows how they fared.
func (d *Diagnosis) reach(ctx context.Context, s *Subject, o *Surroundings) *drivers.View {
	switch {
	case s.Via != "":
		d.add(Reach, "address", NotTried, fmt.Sprintf("%s is reached through %s, which finds and calls it", d.Address, s.Via), "")
	case !d.resolve(ctx, s, o) || !d.connect(ctx, s, o):
		d.ready(ctx, s)
		d.skip(s.Trust.What, "login")
		return nil
	}
	ctx, cancel := within(ctx, o.Login, time.Minute)
	defer cancel()
	v, err := s.Open(ctx)
	if err != nil {
		d.failedAt(s, s.Stage(err), err)
		return nil
	}
	d.trusted(s)
	d.add(Reach, "login", OK, "logged in"+as(s.User), "")
	return v
}

// ready says what will be in the way once the device answers: better now than at the next try.
func (d *Diagnosis) ready(ctx context.Context, s *Subject) {
	if s.Ready == nil {
		return
	}
	if err := s.Ready(ctx); err != nil {
		d.add(Reach, "credentials", Failed, d.nameless(err), credentialsNext)
	}
}

// credentialsNext is what to do about credentials that there are not.
const credentialsNext = "correct a reference that leads nowhere; where there is none, give a user and a password reference, a key file or an ssh-agent, in the inventory or with --username and --password env:NAME"

func as(user string) string {
	if user == "" {
		return ""
	}
	return fmt.Sprintf(" as %q", user)
}

// within bounds ctx, with a cause that says so.
func within(ctx context.Context, given, usual time.Duration) (context.Context, context.CancelFunc) {
	if given <= 0 {
		given = usual
	}
	return context.WithTimeoutCause(ctx, given, fmt.Errorf("no answer within %s", given))
}

func (d *Diagnosis) resolve(ctx context.Context, s *Subject, o *Surroundings) bool {
	if _, err := netip.ParseAddr(s.Host); err == nil {
		return true
	}
	ctx, cancel := within(ctx, o.Patience, 10*time.Second)
	defer cancel()
	as, err := o.Resolve(ctx, s.Host)
	if err != nil {
		why := err.Error()
		var dns *net.DNSError
		switch {
		case ctx.Err() != nil:
			why = context.Cause(ctx).Error()
		case errors.As(err, &dns):
			why = dns.Err
		}
		d.add(Reach, "name", Failed, s.Host+": "+why, "correct the address in the inventory, or this machine's resolver; an IP address needs none")
		d.skip("connection")
		return false
	}
	d.add(Reach, "name", OK, s.Host+" is "+strings.Join(as, ", "), "")
	return true
}

func (d *Diagnosis) connect(ctx context.Context, s *Subject, o *Surroundings) bool {
	ctx, cancel := within(ctx, o.Patience, 10*time.Second)
	defer cancel()
	err := o.Connect(ctx, d.Address)
	switch {
	case err == nil:
		d.add(Reach, "connection", OK, d.Address+" accepts connections", "")
		return true
	case ctx.Err() != nil:
		d.add(Reach, "connection", Failed, fmt.Sprintf("%s: %v", d.Address, context.Cause(ctx)),
			"is it up, and is this its management address? A firewall, or a management VRF without a route back, answers nothing too")
	case errors.Is(err, syscall.ECONNREFUSED):
		d.add(Reach, "connection", Failed, d.Address+": connection refused: the machine is there, and nothing listens on this port", wrongPort(s.OS))
	default:
		d.add(Reach, "connection", Failed, fmt.Sprintf("%s: %v", d.Address, plainReason(err)), "is this its management address, and does this machine have a route to it?")
	}
	return false
}

// plainReason is err without the operation and the address.
func plainReason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	var call interface{ Unwrap() error }
	if errors.As(err, &call) {
		if inner := call.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}

// wrongPort is what to do when nothing listens.
func wrongPort(os string) string {
	if os == "sonic" {
		return `start the gNMI server, or give its port under gnmi.port: it is the field "port" of GNMI|gnmi in CONFIG_DB, and 8080 where there is none`
	}
	return "start the SSH server there, or give its port under ssh.port"
}

// trusted says how the device proved who it is.
func (d *Diagnosis) trusted(s *Subject) {
	switch {
	case s.Lab && (s.Trust.What == "" || s.Trust.Insecure):
		d.add(Reach, orElse(s.Trust.What, "encryption"), OK, "not verified, and the device is a lab's", "")
	case s.Trust.What == "":
		d.add(Reach, "encryption", Warning, "none: the password and the configuration go over the wire in the clear", "use TLS: remove plaintext: true, and give tls.ca")
	case s.Trust.Insecure:
		d.add(Reach, s.Trust.What, Warning, "not verified: whoever answers gets the password", s.Trust.Hint)
	default:
		d.add(Reach, s.Trust.What, OK, "accepted: it is the device that was meant", "")
	}
}

// failedAt says where a connection failed, what worked before, and what could not be tried after it.
func (d *Diagnosis) failedAt(s *Subject, at Stage, err error) {
	said := d.nameless(err)
	trust := orElse(s.Trust.What, "encryption")
	switch at {
	case AtCredentials:
		d.add(Reach, "credentials", Failed, said, credentialsNext)
		d.skip(trust, "login")
	case AtConnect:
		d.add(Reach, "connection", Failed, said, "")
		d.skip(trust, "login")
	case AtTrust:
		next := s.Trust.Hint
		var own interface{ Next() string } // an error that ends with what to do
		if errors.As(err, &own) && own.Next() != "" {
			next = own.Next()
			said = strings.TrimRight(strings.TrimSuffix(said, next), ";: ")
		}
		d.add(Reach, trust, Failed, said, next)
		d.skip("login")
	case AtLogin:
		d.trusted(s)
		d.add(Reach, "login", Failed, said, "one attempt was made; check user and password before the next, since many devices lock an account after a few")
	case AtSession:
		d.add(Reach, "session", Failed, said, sessionNext(s, err))
	}
}

// sessionNext is what to do when a connection fails late.
func sessionNext(s *Subject, err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "no answer within"):
		return "the device is slow or stuck: look at its load, and try again"
	case s.OS == "sonic":
		return "is this SONiC's own gNMI server? Another service on the port answers otherwise"
	}
	return "is this the SSH port? log in by hand with ssh, and see whether a prompt comes, what the enable command asks, and whether a banner asks something"
}

// skip says what could not be tried.
func (d *Diagnosis) skip(names ...string) {
	for _, n := range names {
		if n != "" {
			d.add(Reach, n, NotTried, "not reached", "")
		}
	}
}
