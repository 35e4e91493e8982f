package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
)

// hookFlags say which program takes traffic off devices. It comes from the command line, or from the journal of the run
// that is finished, and never from a model or a plan file.
type hookFlags struct {
	program string
	timeout time.Duration
}

// noHook stands for no program, where the run had one.
const noHook = "none"

const hookPatience = 15 * time.Minute

func (f *hookFlags) register(c *cobra.Command, usual string) {
	c.Flags().StringVar(&f.program, "drain-hook", "", "program to call as PROGRAM drain DEVICE PORT... before links of a device go down, and as PROGRAM undrain DEVICE afterwards"+usual)
	c.Flags().DurationVar(&f.timeout, "drain-timeout", hookPatience, "how long one call of it may take")
}

// find is the hook, nil for none, with its absolute path. inherited is that of the run.
func (f *hookFlags) find(a *app, fabric, inherited string) (*hook, error) {
	program := cmp.Or(f.program, inherited)
	switch {
	case program == "" || f.program == noHook:
		return nil, nil
	case f.timeout <= 0:
		return nil, usage("--drain-timeout %s: want more than nothing", f.timeout)
	}
	path, err := exec.LookPath(program)
	if err == nil || errors.Is(err, exec.ErrDot) {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fail(exitUsage, "give the path of a program that can be run", "--drain-hook: %w", err)
	}
	return &hook{path: path, timeout: f.timeout, grace: 5 * time.Second, env: hookEnv(a.sys.env, fabric)}, nil
}

// hookEnv is all that a hook gets of our environment, which may hold the passwords of devices: what a program needs to
// run, and to find its scheduler. A hook that needs more reads it from a file of its own.
func hookEnv(get func(string) string, fabric string) []string {
	env := []string{"FABRICCTL_FABRIC=" + fabric}
	for _, name := range []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "KUBECONFIG", "SLURM_CONF", "SSH_AUTH_SOCK",
	} {
		if v := get(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// hook is a program as rollout.Drainer. It is run without a shell.
type hook struct {
	path    string
	timeout time.Duration // of a call
	grace   time.Duration // to end in, after it was told to
	env     []string
}

var _ rollout.Drainer = (*hook)(nil)

// Drain calls PROGRAM drain DEVICE PORT...
func (h *hook) Drain(ctx context.Context, device string, ports []string) (string, error) {
	return h.call(ctx, nil, append([]string{"drain", device}, ports...)...)
}

// Undrain calls PROGRAM undrain DEVICE, with what became of it in FABRICCTL_OUTCOME.
func (h *hook) Undrain(ctx context.Context, device string, o rollout.Outcome) (string, error) {
	return h.call(ctx, []string{"FABRICCTL_OUTCOME=" + string(o)}, "undrain", device)
}

// call runs the program in a process group of its own, which is told to end when ctx is over and killed when it does
// not. It returns the last of what the program said, in one line.
func (h *hook) call(ctx context.Context, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("it took longer than %s", h.timeout))
	defer cancel()
	c := exec.CommandContext(ctx, h.path, args...)
	c.Env = append(slices.Clone(h.env), env...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = h.grace
	var out lastWords
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if ctx.Err() != nil && c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it has begun, and left behind
	}
	said := out.String()
	switch exit, isExit := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return said, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case isExit:
		err = errors.New(exit.ProcessState.String())
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and somebody keeps its output open
		return said, nil
	}
	err = fmt.Errorf("%s %s: %w", filepath.Base(h.path), args[0], err)
	if said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return "", err
}

// lastWords keeps the end of what a program says.
type lastWords struct{ b []byte }

const mostWords = 400

func (w *lastWords) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	if n := len(w.b) - mostWords; n > 0 {
		w.b = append(w.b[:0], w.b[n:]...)
	}
	return len(p), nil
}

// String is the last lines, as one, without what would move a terminal's cursor.
func (w *lastWords) String() string {
	return diag.OneLine(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, string(bytes.ToValidUTF8(w.b, []byte("?"))))), " "))
}

// drains tells an engine of the hook, if there is one.
func drains(e *rollout.Engine, h *hook) string {
	if h == nil {
		return ""
	}
	e.Drainer = h
	return h.path
}
