package perftest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/witness"
)

// TestMain is a verbs test when it is called by the name of one: it listens, or connects, as that does, and says what a NIC did.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ib_write_bw" {
		os.Exit(pretend(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func pretend(args []string) int {
	if slices.Equal(args, []string{"--version"}) {
		fmt.Println("Version: 6.06")
		return 0
	}
	port := args[slices.Index(args, "-p")+1]
	if server := args[len(args)-1]; strings.Contains(server, ".") {
		c, err := net.Dial("tcp", server+":"+port)
		if err != nil {
			fmt.Fprintf(os.Stderr, "Couldn't connect to %s:%s\n", server, port)
			return 1
		}
		defer c.Close()
		if os.Getenv("PRETEND") == "hang" {
			signal.Ignore(syscall.SIGTERM)
			select {}
		}
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Fprintf(os.Stderr, "Couldn't listen to port %s\n", port)
			return 1
		}
		c, err := l.Accept()
		_ = l.Close() // it takes one
		if err != nil {
			return 1
		}
		_, _ = c.Read(make([]byte, 1)) // until the client ends
	}
	fmt.Print(onRXE + gbHead + gbLong)
	return 0
}

// shellHosts are hosts that are this machine: its shell, its kernel, and its timeout. It has no RDMA, so that is made up.
type shellHosts struct{ env []string }

func (h shellHosts) command(ctx context.Context, line string) *exec.Cmd {
	line = strings.ReplaceAll(line, "ls /sys/class/infiniband", "echo rxe0")
	if i := strings.Index(line, "grep -rs ."); i >= 0 {
		line = line[:i] + "printf '%s\\n' /sys/class/infiniband/rxe0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:7f00:0001 " +
			"'/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/3:RoCE v2' /sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/3:eth0"
	}
	c := exec.CommandContext(ctx, "sh", "-c", line)
	c.Env = h.env
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as an sshd begins a session
	return c
}

func (h shellHosts) Run(ctx context.Context, _, line string) (Output, error) {
	var out, errs bytes.Buffer
	c := h.command(ctx, line)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		err = nil
	}
	return Output{out.Bytes(), errs.Bytes(), c.ProcessState.ExitCode()}, err
}

type shellRunning struct {
	ctx  context.Context
	done chan struct{}
	out  Output
}

func (r *shellRunning) Wait() (Output, error) {
	select {
	case <-r.done:
		return r.out, nil
	case <-r.ctx.Done():
		return Output{}, context.Cause(r.ctx)
	}
}

func (h shellHosts) Start(ctx context.Context, _, line string, head func(string) bool) (Running, error) {
	c := h.command(context.WithoutCancel(ctx), line)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	in := bufio.NewReader(out)
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return nil, errors.Join(err, c.Wait())
		}
		if head(text) {
			break
		}
	}
	r := &shellRunning{ctx: ctx, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		var rest bytes.Buffer
		_, _ = rest.ReadFrom(in)
		_ = c.Wait()
		r.out = Output{rest.Bytes(), errs.Bytes(), c.ProcessState.ExitCode()}
	}()
	return r, nil
}

// A real shell, kernel and timeout take what a Session asks of a host, and what it ends has ended, its children too.
func TestRealShell(t *testing.T) {
	witness.Tool(t, "timeout")
	witness.Tool(t, "ps")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "ib_write_bw")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	plan := write()
	p := &plan.Pairs[0]
	p.Client.Address, p.Server.Address = netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.1")
	session := func(how string, setup time.Duration) *Session {
		env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PRETEND="+how)
		s := New(Config{Exec: shellHosts{env}, Port: port, Pause: func(ctx context.Context, _ time.Duration) error { return pause(ctx, time.Millisecond) }})
		s.o.Setup = setup
		return s
	}
	_, err = session("", time.Minute).Run(t.Context(), plan)
	if refused, ok := errors.AsType[*Refused](err); !ok || refused.Host != "b" || !strings.Contains(refused.What, fmt.Sprintf("listens at TCP port %d already", port)) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := session("", time.Minute).Run(t.Context(), plan)
	if err != nil || res.Rejected != nil || res.Goodput == nil || len(res.Raw) != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	res, err = session("hang", 300*time.Millisecond-5*time.Second).Run(t.Context(), plan)
	if err != nil || res.Rejected == nil || res.Rejected.Code != NoEnd || len(res.Left) > 0 {
		t.Errorf("%+v %v", res.Rejected, err)
	}
	mine := fmt.Sprintf("ib_write_bw -d rxe0 -i 1 -x 3 -p %d ", port)
	for try := 0; ; try++ { // who was killed is gone soon
		ps, err := exec.Command("ps", "-eo", "pid,args").Output()
		switch {
		case err != nil:
			t.Fatal(err)
		case !strings.Contains(string(ps), mine):
			return
		case try == 1000:
			t.Fatalf("%q is left in\n%s", mine, ps)
		}
		time.Sleep(time.Millisecond)
	}
}
