package hostlocal

import (
	"strconv"
	"strings"
	"time"
)

// Notifier tells the service manager how the process is, in the protocol of sd_notify(3): a datagram of lines to the socket that
// NOTIFY_SOCKET names. The zero value has nobody to tell.
type Notifier struct {
	Send  func(datagram string) error // nil has nobody to tell
	Every time.Duration               // how often WATCHDOG=1 is expected at least; 0 = it is not
}

// NotifierOf is what the environment of the process asks for. A socket whose name begins with "@" is an abstract one.
// WATCHDOG_USEC counts when WATCHDOG_PID is ours, or absent. pid is ours.
func NotifierOf(env func(string) string, pid int, dial func(address string) (func(string) error, error)) (Notifier, error) {
	address := env("NOTIFY_SOCKET")
	if address == "" || address[0] != '/' && address[0] != '@' {
		return Notifier{}, nil
	}
	send, err := dial(address)
	if err != nil {
		return Notifier{}, err
	}
	n := Notifier{Send: send}
	if p := env("WATCHDOG_PID"); p == "" || p == strconv.Itoa(pid) {
		if us, err := strconv.ParseInt(env("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 && us < int64(time.Hour*24)/1000 {
			n.Every = time.Duration(us) * time.Microsecond
		}
	}
	return n, nil
}

// tell sends lines of state. That the manager cannot be told stops nothing: it acts then as if we were silent.
func (n Notifier) tell(lines ...string) error {
	if n.Send == nil {
		return nil
	}
	return n.Send(strings.Join(lines, "\n"))
}

// status is the line with what is said of the process, which may hold nothing that ends it.
func status(s string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
