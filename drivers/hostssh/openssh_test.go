package hostssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	xssh "golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/witness"
)

// keyFile is a new key and its file in OpenSSH's format.
func keyFile(t *testing.T) (xssh.PublicKey, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := xssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.PublicKey(), path
}

// sshd starts the system's OpenSSH server behind a listener of ours, one process per connection, for one client key.
// enter, if not nil, runs on the thread that starts those processes: what it does to its thread, they inherit.
func sshd(t *testing.T, client xssh.PublicKey, enter func() error, more ...string) (addr string, key xssh.PublicKey) {
	t.Helper()
	bin := witness.Tool(t, "sshd")
	if os.Getuid() == 0 { // OpenSSH's empty directory for privilege separation
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			witness.Missing(t, "sshd needs /run/sshd: "+err.Error())
		}
	}
	key, keyPath := keyFile(t)
	dir := t.TempDir()
	config, authorized := filepath.Join(dir, "config"), filepath.Join(dir, "authorized")
	for path, text := range map[string]string{
		authorized: string(xssh.MarshalAuthorizedKey(client)),
		config: "HostKey " + keyPath + "\nAuthorizedKeysFile " + authorized + "\nStrictModes no\nUsePAM no\nPidFile none\n" +
			"PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nSubsystem sftp internal-sftp\n" +
			strings.Join(append(more, ""), "\n"),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	entered := make(chan error, 1)
	wg.Go(func() {
		if enter != nil {
			runtime.LockOSThread() // without unlocking: the thread ends here, with what was done to it
			err := enter()
			if entered <- err; err != nil {
				return
			}
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f, err := c.(*net.TCPConn).File()
			_ = c.Close()
			if err != nil {
				continue
			}
			cmd := exec.Command(bin, "-i", "-f", config)
			cmd.Stdin, cmd.Stdout = f, f
			err = cmd.Start()
			_ = f.Close()
			if err == nil {
				wg.Go(func() { _ = cmd.Wait() }) // ends when the client hangs up
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	if enter != nil {
		switch err := <-entered; {
		case errors.Is(err, fs.ErrPermission):
			witness.Missing(t, "not permitted: "+err.Error())
		case err != nil:
			t.Fatal(err)
		}
	}
	return l.Addr().String(), key
}

// built is the real binary, for this machine.
var built = sync.OnceValues(func() (*Binary, error) {
	dir, err := os.MkdirTemp("", "hostssh-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "fabricctl-host")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "github.com/fabricctl/fabricctl/cmd/fabricctl-host")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	b, err := os.ReadFile(out)
	return NewBinary(b), err
})

// thisHost is this machine over its own sshd, with the real binary. more are lines of the server's configuration.
func thisHost(t *testing.T, enter func() error, more ...string) Config {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	client, clientPath := keyFile(t)
	addr, hostKey := sshd(t, client, enter, more...)
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		SSH:    ssh.Config{Name: "here", Address: addr, User: me.Username, Keys: []ssh.Key{{Path: clientPath}}, KnownHosts: knows(t, addr, hostKey)},
		Binary: func(string, string) (*Binary, error) { return bin, nil },
		Dir:    filepath.Join(t.TempDir(), "o'brien $HOME;cache"), // a name that a careless command line would trip over
		State:  filepath.Join(t.TempDir(), "state"),
	}
}

// The whole way: our dialler, the system's sshd, sftp, the real binary, the kernel. Nothing is changed.
func TestRealHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a host is a Linux machine")
	}
	cfg := thisHost(t, nil)
	first := dial(t, cfg)
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if f, _, err := first.Facts(t.Context()); err != nil || f.Hostname != name {
		t.Errorf("facts %+v, %v", f, err)
	}
	agent, parts := text(t, first), shown(t, first)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	again := text(t, dial(t, cfg)) // the warm way: nothing is uploaded
	if es, err := os.ReadDir(cfg.Dir); err != nil || len(es) != 1 {
		t.Errorf("the cache holds %v, %v", es, err)
	}
	cfg.Binary = nil
	if agent != again {
		t.Errorf("two looks differ:\n%s\n%s", agent, again)
	}
	if diff := cmp.Diff(parts, shown(t, dial(t, cfg))); diff != "" {
		t.Errorf("stock tools see something else (-agent +stock):\n%s", diff)
	}
	out, err := exec.Command(witness.Tool(t, "ip"), "-j", "link", "show").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range ipLinks(t, out) {
		if want := "link " + l.Name + " mtu " + strconv.Itoa(l.MTU) + "\n"; l.Flags[0] != "LOOPBACK" && !strings.Contains(agent, want) {
			t.Errorf("ip shows %q, we see:\n%s", want, agent)
		}
	}
}

type ipLink struct {
	Name  string   `json:"ifname"`
	MTU   int      `json:"mtu"`
	Flags []string `json:"flags"`
}

func ipLinks(t *testing.T, js []byte) []ipLink {
	t.Helper()
	var ls []ipLink
	if err := json.Unmarshal(js, &ls); err != nil {
		t.Fatalf("%v: %s", err, js)
	}
	return ls
}

// Stock OpenSSH clients can use the emulated host: look, change a link by hand, copy the file.
func TestStockClientOnTheEmulator(t *testing.T) {
	client, clientPath := keyFile(t)
	h, cfg := emulated(t, host.Options{AuthorizedKeys: []xssh.PublicKey{client}, NCCL: "NCCL_IB_TC=106\n"})
	at, port, err := net.SplitHostPort(cfg.SSH.Address)
	if err != nil {
		t.Fatal(err)
	}
	common := []string{"-F", "none", "-i", clientPath, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile=" + cfg.SSH.KnownHosts[0]}
	on := func(command string) string {
		t.Helper()
		args := append(common, "-p", port, "ops@"+at, command)
		out, err := exec.Command(witness.Tool(t, "ssh"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	want := []ipLink{{"lo", 65536, []string{"LOOPBACK", "UP", "LOWER_UP"}}, {"eth0", 1500, up()}, {"eth1", 9000, up()}}
	if diff := cmp.Diff(want, ipLinks(t, []byte(on("ip -j link show")))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	on("ip link set dev eth0 mtu 9000")
	sftp := exec.Command(witness.Tool(t, "sftp"), append(common, "-q", "-P", port, "-b", "-", "ops@"+at)...)
	mine := filepath.Join(t.TempDir(), "nccl.conf")
	if err := os.WriteFile(mine, []byte("NCCL_IB_TC=104\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sftp.Stdin = strings.NewReader("put " + mine + " /etc/nccl.conf\n")
	if out, err := sftp.CombinedOutput(); err != nil {
		t.Fatalf("sftp: %v: %s", err, out)
	}
	if got, want := h.Held(), "link eth0 mtu 9000\nlink eth1 mtu 9000\n/etc/nccl.conf:\nNCCL_IB_TC=104\n"; got != want {
		t.Errorf("the host holds %q", got)
	}
	if got, want := text(t, dial(t, cfg)), "link eth0 mtu 9000\nlink eth1 mtu 9000\nfile /etc/nccl.conf\nNCCL_IB_TC=104\n"; got != want {
		t.Errorf("we see %q", got)
	}
}

func up() []string { return []string{"BROADCAST", "MULTICAST", "UP", "LOWER_UP"} }
