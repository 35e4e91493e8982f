package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
)

// commands are external variables' commands as tuning.Knobs: run here, without a shell, with as little of our environment as a drain hook
// gets, and never for longer than they may take.
type commands struct {
	env      []string
	patience time.Duration // of a command that gives no time-out
	grace    time.Duration // to end in, after it was told to
	readOnly bool
}

var _ tuning.Knobs = (*commands)(nil)

const (
	knobPatience = 10 * time.Second
	knobGrace    = 2 * time.Second
)

// knobs are the commands of an experiment on a fabric.
func (a *app) knobs(fabric string) *commands {
	return &commands{env: hookEnv(a.sys.env, fabric), patience: knobPatience, grace: knobGrace, readOnly: a.readOnly}
}

// externals reads a file of external variables, and what each of them is now, or was before an experiment that is gone on with. Nothing is
// set.
func (a *app) externals(ctx context.Context, file, fabric string, was map[string]float64) ([]tuning.ExternalSpec, *commands, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fail(exitError, "", "external variables: %w", err)
	}
	specs, err := tuning.ReadExternals(b)
	if err != nil {
		return nil, nil, fail(exitError, "", "%s: %w", file, err)
	}
	k := a.knobs(fabric)
	for i := range specs {
		if now, ok := was[specs[i].Name]; ok {
			specs[i].Now = now
			continue
		}
		if specs[i].Now, err = k.Get(ctx, &specs[i].Variable); err != nil {
			return nil, nil, interrupted(ctx, fail(exitError, "run the command by hand: "+strings.Join(specs[i].External.Read, " "), "%w; nothing was changed", err))
		}
	}
	return specs, k, nil
}

// Set sets a variable, and has read it back when it returns nil. After an error nobody knows what holds.
func (k *commands) Set(ctx context.Context, v *tuning.Variable, value float64) error {
	if v.External == nil {
		return fmt.Errorf("%s is no external variable", v.Name)
	}
	if k.readOnly {
		return fmt.Errorf("%s is not set: --read-only", v.Name)
	}
	words := slices.Clone(v.External.Set)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], tuning.Placeholder, v.Word(value))
	}
	if _, err := k.run(ctx, v, words); err != nil {
		return fmt.Errorf("%s: set to %s: %w", v.Name, v.Text(value), err)
	}
	is, err := k.Get(ctx, v)
	switch {
	case err != nil:
		return fmt.Errorf("%s was set to %s, and cannot be read back: %w", v.Name, v.Text(value), err)
	case !v.Holds(value, is):
		return fmt.Errorf("%s was set to %s, and %s holds: its command does not do what it says, or it holds only some values, which tolerance, whole and ladder can say", v.Name, v.Text(value), v.Text(is))
	}
	return nil
}

// Get reads a variable.
func (k *commands) Get(ctx context.Context, v *tuning.Variable) (float64, error) {
	if v.External == nil {
		return 0, fmt.Errorf("%s is no external variable", v.Name)
	}
	said, err := k.run(ctx, v, v.External.Read)
	if err != nil {
		return 0, fmt.Errorf("%s: read: %w", v.Name, err)
	}
	x, err := v.FromWord(said)
	if err != nil {
		return 0, fmt.Errorf("%s: read: %s: %w", v.Name, diag.Line(v.External.Read[0]), err)
	}
	return x, nil
}

// mostSaid is how much is kept of what a command prints: its value is the first word.
const mostSaid = 4096

// run runs a command in a process group of its own, and returns the beginning of what it printed.
func (k *commands) run(ctx context.Context, v *tuning.Variable, words []string) (string, error) {
	patience := cmp.Or(time.Duration(v.External.Timeout), k.patience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %s", patience))
	defer cancel()
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = k.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = k.grace
	var out firstWords
	var complaint lastWords
	c.Stdout, c.Stderr = &out, &complaint
	err := c.Run()
	if ctx.Err() != nil && c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it has begun, and left behind
	}
	switch exit, isExit := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case isExit:
		err = errors.New(exit.ProcessState.String())
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and somebody keeps its output open
		return out.String(), nil
	}
	err = fmt.Errorf("%s: %w", diag.Line(words[0]), err)
	if said := complaint.String(); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return "", err
}

// firstWords keeps the beginning of what a program says.
type firstWords struct{ strings.Builder }

func (w *firstWords) Write(p []byte) (int, error) {
	w.Builder.Write(p[:min(len(p), mostSaid-min(w.Len(), mostSaid))])
	return len(p), nil
}
