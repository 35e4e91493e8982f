package hostlocal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A manager hears what it is told, on a socket of the file system and on an abstract one.
func TestNotify(t *testing.T) {
	for _, address := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@fabricctl-test-%d", os.Getpid())} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		env := map[string]string{"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000000", "WATCHDOG_PID": "7"}
		n, err := NotifierOf(func(k string) string { return env[k] }, 7, DialNotify)
		if err != nil || n.Every != 5*time.Minute {
			t.Fatalf("%v, every %s", err, n.Every)
		}
		if err := n.tell("READY=1", status("fine\nERRNO=1")); err != nil {
			t.Error(err)
		}
		b := make([]byte, 100)
		k, err := l.Read(b)
		if got := string(b[:k]); err != nil || got != "READY=1\nSTATUS=fine ERRNO=1" {
			t.Errorf("heard %q, %v", got, err)
		}
	}
}

// Who is not asked tells nobody.
func TestNotifierOf(t *testing.T) {
	dial := func(string) (func(string) error, error) { return func(string) error { return nil }, nil }
	for _, x := range []struct {
		env   map[string]string
		tells bool
		every time.Duration
	}{
		{env: nil},
		{env: map[string]string{"NOTIFY_SOCKET": "relative"}},
		{env: map[string]string{"NOTIFY_SOCKET": "/run/s"}, tells: true},
		{env: map[string]string{"NOTIFY_SOCKET": "/run/s", "WATCHDOG_USEC": "1000000"}, tells: true, every: time.Second},
		{env: map[string]string{"NOTIFY_SOCKET": "/run/s", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "8"}, tells: true},
		{env: map[string]string{"NOTIFY_SOCKET": "/run/s", "WATCHDOG_USEC": "-1"}, tells: true},
		{env: map[string]string{"NOTIFY_SOCKET": "/run/s", "WATCHDOG_USEC": "x"}, tells: true},
	} {
		n, err := NotifierOf(func(k string) string { return x.env[k] }, 7, dial)
		if err != nil || (n.Send != nil) != x.tells || n.Every != x.every {
			t.Errorf("%v: tells %v, every %s, %v", x.env, n.Send != nil, n.Every, err)
		}
	}
	if _, err := NotifierOf(func(string) string { return "/run/s" }, 7, func(string) (func(string) error, error) { return nil, errors.New("no") }); err == nil {
		t.Error("a socket that cannot be had is no error")
	}
}
