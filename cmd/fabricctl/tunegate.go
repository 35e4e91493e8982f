package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// gateFile is a gate as its file writes it.
type gateFile struct {
	Run     []string       `yaml:"run"`
	Read    string         `yaml:"read"`
	Least   *float64       `yaml:"least"`
	Most    *float64       `yaml:"most"`
	Timeout units.Duration `yaml:"timeout"`
}

// readGate reads the program that has the last word.
func readGate(path string) (*tuning.Gate, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fail(exitError, "", "--gate: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	var f gateFile
	g := new(tuning.Gate)
	if err = d.Decode(&f); err == nil {
		*g = tuning.Gate{Argv: f.Run, Read: f.Read, Least: f.Least, Most: f.Most, Time: f.Timeout}
		err = g.Check()
	}
	if err != nil {
		return nil, fail(exitError, "for example: {run: [mpirun, -np, \"16\", all_reduce_perf, -b, 1G, -e, 1G], read: nccl, least: 180}", "--gate %s: %s", path, diag.OneLine(err.Error()))
	}
	return g, nil
}

// usualGate is how long a gate may take that gives no time.
const usualGate = time.Hour

// mostGateOutput is the most bytes of each output of a gate that are looked at.
const mostGateOutput = 8 << 20

// runGate runs a gate's program here, with the environment of this process, and judges it. What it printed is kept in dir.
func runGate(ctx context.Context, g *tuning.Gate, dir string) (tuning.Gated, error) {
	patience := cmp.Or(time.Duration(g.Time), usualGate)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(limited, g.Argv[0], g.Argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	var out, errs bounded
	c.Stdout, c.Stderr = &out, &errs
	began := time.Now()
	err := c.Run()
	if limited.Err() != nil && c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it has begun, and left behind
	}
	if ctx.Err() != nil {
		return tuning.Gated{}, context.Cause(ctx)
	}
	exit := 0
	switch e, ended := errors.AsType[*exec.ExitError](err); {
	case ended:
		exit = e.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		exit = -1
		fmt.Fprintf(&errs, "%v\n", err)
	}
	r := g.Judge(out.Bytes(), errs.Bytes(), exit)
	r.Took = units.Duration(time.Since(began))
	r.Digest, err = keepRaw(dir, ".txt", append(bytes.Clone(out.Bytes()), errs.Bytes()...))
	return r, err
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), mostGateOutput-min(b.Len(), mostGateOutput))])
	return len(p), nil
}

// gate has the program of --gate judge a setting that was found and confirmed, while devices and knobs hold it.
func (a *app) gate(ctx context.Context, x *experiment, id string, o *tuning.Outcome, log tuning.Log) error {
	if x.gate == nil || o.State != tuning.Done || o.Verdict != tuning.Better {
		return nil
	}
	dir, err := a.tuneDir()
	if err != nil {
		return err
	}
	_, h, err := a.tuned(id)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.sys.err, "gate: %s\n", diag.OneLine(fmt.Sprint(x.gate.Argv)))
	return tuning.Hold(ctx, x.exp, h, x.lab, log, o, func(ctx context.Context) (tuning.Gated, error) {
		return runGate(ctx, x.gate, filepath.Join(dir, id))
	})
}
