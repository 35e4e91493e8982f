package dcb

import (
	"errors"
	"fmt"
	"strconv"
)

// Error says which operation on which interface failed. It unwraps to the reason: a Status when the driver answered, an
// Errno when the kernel refused the message, ErrAbsent, an error of the context, or a sentence about an argument or a
// damaged answer.
type Error struct {
	Ifname string
	Op     string // "get", "set pfc", "add dscp 26 to priority 3", …
	Err    error
}

func (e *Error) Error() string {
	name := e.Ifname
	if checkName(name) != nil {
		name = strconv.Quote(name)
	}
	s := fmt.Sprintf("%s: %s: %v", name, e.Op, e.Err)
	var n Errno
	if errors.As(e.Err, &n) {
		if why := n.why(e.Op == "get"); why != "" {
			s += ": " + why
		}
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrAbsent is returned when an object cannot be set because the interface does not show it: the driver has no
	// such operation, and the kernel would answer that all is well. Nothing was sent.
	ErrAbsent = errors.New("the driver does not show it, so a set would be acknowledged and ignored; nothing was sent")

	// ErrReadBack is what a positive Status is: neither success nor refusal. Only reading back decides.
	ErrReadBack = errors.New("only reading back decides")

	// ErrAmbiguous is what the Status -12 is: out of memory, or the kernel-internal ENOTSUPP (524) cut to one byte.
	ErrAmbiguous = errors.New("out of memory or not supported")
)

// Status is the verdict of a driver in the reply to a set, never 0. A negative one is a refusal, an Errno with the sign
// turned; errors.Is finds the Errno, and on Linux that of package syscall too. A positive one is ErrReadBack.
type Status int8

// truncated is what 524 (ENOTSUPP) becomes in one byte, and at the same time -ENOMEM.
const truncated Status = -12

func (s Status) Error() string {
	switch {
	case s > 0:
		return fmt.Sprintf("the driver answered %d, neither done nor refused: %v", int8(s), ErrReadBack)
	case s == truncated:
		return "the driver refused: " + ErrAmbiguous.Error() + " (-12 stands for both)"
	}
	return "the driver refused: " + s.errno().Error()
}

func (s Status) errno() Errno { return Errno(-int(s)) }

// Is reports whether target is what the status means: ErrReadBack, ErrAmbiguous or an error number.
func (s Status) Is(target error) bool {
	switch {
	case s > 0:
		return target == ErrReadBack
	case s == truncated && target == ErrAmbiguous:
		return true
	case target == error(s.errno()):
		return true
	}
	return s.errno().Is(target)
}

// Errno is an error number of Linux, on whatever system this runs. A Transport returns one, wrapped or not, when the
// kernel refused a message. On Linux, errors.Is also matches syscall.Errno, fs.ErrPermission and their like.
type Errno uint16

// Error numbers that dcbnl is known to give.
const (
	EPERM      Errno = 1
	ENOENT     Errno = 2
	EIO        Errno = 5
	E2BIG      Errno = 7
	EAGAIN     Errno = 11
	ENOMEM     Errno = 12
	EBUSY      Errno = 16
	EEXIST     Errno = 17
	ENODEV     Errno = 19
	EINVAL     Errno = 22
	ERANGE     Errno = 34
	EMSGSIZE   Errno = 90
	EOPNOTSUPP Errno = 95
	ENOBUFS    Errno = 105
	ETIMEDOUT  Errno = 110
)

func (e Errno) Error() string {
	switch e {
	case EPERM:
		return "operation not permitted"
	case ENOENT:
		return "no such entry"
	case EIO:
		return "input/output error"
	case E2BIG:
		return "list too long"
	case EAGAIN:
		return "try again"
	case ENOMEM:
		return "out of memory"
	case EBUSY:
		return "device busy"
	case EEXIST:
		return "entry exists"
	case ENODEV:
		return "no such interface"
	case EINVAL:
		return "invalid for this device in its present mode"
	case ERANGE:
		return "out of range"
	case EMSGSIZE:
		return "message too long"
	case EOPNOTSUPP:
		return "not supported"
	case ENOBUFS:
		return "notifications were lost"
	case ETIMEDOUT:
		return "timed out"
	}
	return fmt.Sprintf("error number %d", uint16(e))
}

// why is what a refusal of the message itself, by the kernel and before any driver, means.
func (e Errno) why(get bool) string {
	switch {
	case e == EPERM:
		return "a set needs CAP_NET_ADMIN in the initial user namespace, which root in a rootless container does not have"
	case e == ENODEV:
		return "there is none of that name in this network namespace"
	case e == EOPNOTSUPP:
		return "a loopback, bridge, bond, VLAN, VF or veth has no DCB, nor has a NIC whose driver leaves it out, " +
			"nor a kernel built without CONFIG_DCB"
	case e == EINVAL:
		return "this kernel does not know the command"
	case e == EMSGSIZE && get:
		return "the state does not fit into one message, as with more than about 400 application entries"
	}
	return ""
}
