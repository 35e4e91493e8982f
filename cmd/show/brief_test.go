package show

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a new one: what is written to it is read from the first file, as a person would see it.
func terminal(t *testing.T) (seen, tty *os.File) {
	t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { seen.Close() })
	if err := unix.IoctlSetPointerInt(int(seen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("no terminals here: ", err)
	}
	n, err := unix.IoctlGetInt(int(seen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { tty.Close() })
	return seen, tty
}

// TestBrief: a brief line goes when the next one or anything else comes, and steers nothing.
func TestBrief(t *testing.T) {
	seen, tty := terminal(t)
	s := &Screen{To: tty}
	s.Brief("one third\x1b[2J done, " + strings.Repeat("x", 200))
	s.Brief("two thirds")
	fmt.Fprintln(s, "result")
	fmt.Fprint(s, "a line with ")
	s.Brief("not in the middle of a line")
	fmt.Fprintln(s, "an end")
	s.Brief("three")
	s.Brief("")
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := seen.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			break // the other end is closed
		}
	}
	const wipe = "\r\x1b[K"
	want := `one third\x1b[2J done, ` + strings.Repeat("x", 79-len(`one third\x1b[2J done, `)) + wipe + "two thirds" + wipe + "result\r\na line with an end\r\nthree" + wipe
	if got.String() != want {
		t.Errorf("got  %q\nwant %q", got.String(), want)
	}
}

// TestBriefElsewhere: where there is no terminal nothing is shown.
func TestBriefElsewhere(t *testing.T) {
	var b strings.Builder
	s := &Screen{To: &b}
	s.Brief("half")
	fmt.Fprintln(s, "result")
	if b.String() != "result\n" {
		t.Errorf("%q", b.String())
	}
}
