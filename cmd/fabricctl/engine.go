package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

// engine wires a rollout engine to this call's flags. open dials one device of the inventory.
func (a *app) engine(open func(context.Context, string) (drivers.Device, error)) (*rollout.Engine, error) {
	dir, err := a.state()
	if err != nil {
		return nil, err
	}
	hook, err := a.failpoints()
	if err != nil {
		return nil, err
	}
	return &rollout.Engine{
		Open: open, Dialect: render.ByOS, Rules: rollout.Rules{Check: lint.Check, Advise: lint.Advise}, StateDir: dir, Tool: toolVersion(), Now: time.Now, NewID: func() string { return rollout.NewRunID(time.Now()) },
		Log: a.log, Hook: hook, Wait: a.wait, Progress: a.progress, Parallel: a.parallel, ReadOnly: a.readOnly, Command: a.command,
	}, nil
}

// progress tells what is being done to a device, one line each.
func (a *app) progress(e rollout.Event) {
	fmt.Fprintln(a.sys.err, show.Event(e))
}

// failpoints is for tests of what a sudden death leaves behind: FABRICCTL_TEST_KILL_AT=N ends the process with
// SIGKILL at the N-th point (before and after each fsync and each device write). Each point is logged at debug level.
func (a *app) failpoints() (func(string), error) {
	if a.points != nil { // all that one call writes is counted together
		return a.points, nil
	}
	text := a.sys.env("FABRICCTL_TEST_KILL_AT")
	if text == "" {
		return nil, nil
	}
	at, err := strconv.Atoi(text)
	if err != nil {
		return nil, fail(exitUsage, "", "FABRICCTL_TEST_KILL_AT=%s: want a number", text)
	}
	points := make(chan int, 1) // the count, handed round: points may come from several goroutines
	points <- 0
	a.points = func(name string) {
		n := <-points + 1
		a.log.Debug("failpoint", "name", name, "n", n)
		if n == at {
			fmt.Fprintf(a.sys.err, "killed at point %d, %s\n", n, name)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
		points <- n
	}
	return a.points, nil
}
