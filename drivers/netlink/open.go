package netlink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// Open is the device of the machine that the process runs on, in the network namespace of the calling thread. What is
// nil in cfg is the kernel's; a kernel without RDMA has none of it.
func Open(cfg Config) (*Device, error) {
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	var errs []error
	open := func(err error) { errs = append(errs, err) }
	var err error
	if cfg.Links == nil {
		cfg.Links, err = Dial()
		open(err)
	}
	if cfg.DCB == nil {
		cfg.DCB, err = dcb.Open(dcb.Options{})
		open(err)
	}
	if cfg.Ethtool == nil {
		cfg.Ethtool, err = DialEthtool()
		open(err)
	}
	if cfg.RDMA == nil {
		cfg.RDMA, err = DialRDMA()
		open(err)
	}
	if cfg.Run == nil {
		cfg.Run = runProgram
	}
	if cfg.PID == 0 {
		cfg.PID = os.Getpid()
	}
	if err := errors.Join(errs...); err != nil {
		for _, c := range []interface{ Close() error }{cfg.Links, cfg.Ethtool, cfg.RDMA} {
			if c != nil {
				_ = c.Close()
			}
		}
		if cfg.DCB != nil {
			_ = cfg.DCB.Close()
		}
		return nil, err
	}
	return New(cfg), nil
}

// How long a program of a knob may take, and how much it may say.
const (
	programTime   = 5 * time.Second
	programOutput = 1 << 16
)

// runProgram runs a program that shows a setting: no shell, no input, no environment but a path and a language.
func runProgram(ctx context.Context, argv []string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, programTime)
	defer stop()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	out := &limited{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	if out.over {
		return nil, fmt.Errorf("it says more than %d bytes", programOutput)
	}
	return out.Bytes(), nil
}

// limited keeps the first programOutput bytes.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(b []byte) (int, error) {
	n := len(b)
	if room := programOutput - l.Len(); len(b) > room {
		b, l.over = b[:room], true
	}
	_, err := l.Buffer.Write(b)
	return n, err
}
