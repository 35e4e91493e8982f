package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
)

// Event is what is being done to a device, in one line.
func Event(e rollout.Event) string {
	text := e.Device + ": "
	switch e.Stage {
	case rollout.StageDone:
		text += string(e.Outcome)
	case rollout.StageCommit:
		if e.Step == 0 {
			text += "commit" // only a message
			break
		}
		text += fmt.Sprintf("commit step %d of %d, %s", e.Step, e.Of, diag.Count(e.Changes, "change"))
	default:
		text += string(e.Stage)
		if e.Of > 1 && e.Step > 0 {
			text += fmt.Sprintf(" step %d of %d", e.Step, e.Of)
		}
	}
	if e.Message != "" {
		text += ": " + diag.OneLine(Nameless(e.Message, e.Device))
	}
	return text
}

// Leave says what apply would refuse for want of leave, and the flag that gives it; "" when nothing.
func Leave(p *rollout.Plan, o rollout.ApplyOptions) (why, hint string) {
	if ports, devices := Disruptive(p); devices > 0 && !o.AllowDisruptive {
		return fmt.Sprintf("nothing was written: the change makes %s on %s flap, or worse", diag.Count(ports, "port"), diag.Count(devices, "device")),
			"drain them and give --allow-disruptive"
	}
	if n := Working(p); n.Devices+n.Uncounted > 0 && !o.AllowJobs && o.DrainHook == "" {
		return "nothing was written: " + n.String(),
			"wait until the jobs are done and plan again, or have them drained by --drain-hook; --allow-jobs permits it"
	}
	if untried := Unverified(p); len(untried) > 0 && !o.AcceptUnverified {
		return fmt.Sprintf("nothing was written: nobody has tried %s on a real device", strings.Join(untried, ", ")), "--accept-unverified permits it"
	}
	return "", ""
}

// ErrNoTerminal is that there is nobody to ask.
var ErrNoTerminal = errors.New("there is no terminal to ask on")

// Ask says what is at stake and waits for an answer; only the word yes is one. Where nobody can be asked the error is
// ErrNoTerminal, and the cause of ctx when that ends first.
func Ask(ctx context.Context, in io.Reader, out io.Writer, p *rollout.Plan) (yes bool, err error) {
	return AskYes(ctx, in, out, fmt.Sprintf("apply %s on %s", diag.Count(p.Ops().Total(), "change"), diag.Count(Changing(p), "device")))
}

// AskYes is Ask about anything: what is what would be done.
func AskYes(ctx context.Context, in io.Reader, out io.Writer, what string) (yes bool, err error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, ErrNoTerminal
	}
	fmt.Fprintf(out, "%s? only \"yes\" goes on: ", what)
	answer := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(f).ReadString('\n')
		answer <- strings.TrimSpace(s)
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case s := <-answer:
		return s == "yes", nil
	}
}

// Advice is what helps against an error of a run, and the error as it is said.
func Advice(err error) (hint string, said error) {
	var refused *rollout.RefusedError
	var file *fs.PathError
	var broken *rollout.DamagedError
	switch {
	case errors.As(err, &refused) && refused.Hint != "":
		return refused.Hint, errors.New(refused.Reason)
	case errors.As(err, &broken):
		return broken.Hint(), err
	case errors.As(err, &file): // a journal or a lease that cannot be kept
		return "name another directory with --state-dir", fmt.Errorf("nothing was written to any device: %w", err)
	}
	return "", err
}
