package hostssh

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// The whole way with a write at its end: sshd and what it starts live in a network namespace of the test, with a pair
// of links whose MTU we change. The witness is the ip command there.
func TestRealCommit(t *testing.T) {
	ip := witness.Tool(t, "ip")
	cfg := thisHost(t, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network namespace: %w", err)
		}
		if out, err := exec.Command(ip, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1").CombinedOutput(); err != nil {
			return fmt.Errorf("ip link add: %w: %s", err, out)
		}
		return nil
	})
	d := dial(t, cfg)
	stock := cfg
	stock.Binary = nil
	look := dial(t, stock)
	mtus := func() string {
		var links []string
		for line := range strings.Lines(text(t, look)) {
			if strings.HasPrefix(line, "link rail") {
				links = append(links, strings.TrimSpace(line))
			}
		}
		return strings.Join(links, "\n")
	}
	if got, want := mtus(), "link rail0 mtu 1500\nlink rail1 mtu 1500"; got != want {
		t.Fatalf("the namespace has\n%s", got)
	}
	cs := []render.Change{change("rail0", "1500", "9000"), change("rail1", "1500", "4200")}
	for range 2 {
		if err := d.Commit(t.Context(), "tx1", cs, 0); err != nil {
			t.Fatal(err)
		}
		if got, want := mtus(), "link rail0 mtu 9000\nlink rail1 mtu 4200"; got != want {
			t.Errorf("after commit ip shows\n%s", got)
		}
	}
	err := d.Commit(t.Context(), "tx2", []render.Change{change("rail0", "9000", "70000")}, 0)
	if want := `here: device refused "link|rail0|mtu 70000": the driver takes 68 to 65535`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := d.Commit(t.Context(), "tx3", cs[:1], 0); err != nil {
		t.Error(err)
	}
	if err := d.Commit(t.Context(), "tx4", []render.Change{change("rail0", "4200", "1500")}, 0); !errors.Is(err, drivers.ErrMoved) {
		t.Errorf("got %v", err)
	}
	if err := d.Commit(t.Context(), "tx5", render.Undo(cs), 0); err != nil {
		t.Error(err)
	}
	if got, want := mtus(), "link rail0 mtu 1500\nlink rail1 mtu 1500"; got != want {
		t.Errorf("after undo ip shows\n%s", got)
	}
}
