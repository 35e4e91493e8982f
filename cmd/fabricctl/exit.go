package main

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes that pipelines rely on.
const (
	exitOK          = 0   // done; nothing to change
	exitError       = 1   // bad input, findings of severity error, device failure before any change
	exitChanges     = 2   // changes or drift present
	exitPartly      = 3   // partly applied
	exitRefused     = 4   // refused for safety
	exitNeedsHands  = 5   // rollback failed or state unknown
	exitUsage       = 64  // wrong usage
	exitInterrupted = 130 // interrupted; last good state restored
)

const exitHelp = `Exit codes:
  0    done; nothing to change
  1    error: bad input, findings of severity error, device failure before any change
  2    changes or drift present (plan --detailed-exitcode, drift, check)
  3    partly applied, or all but what is held
  4    refused for safety: stale plan, disruptive without --allow-disruptive or --allow-jobs, failed gate (rolled back), held device (nothing else was to do, or the rest needs it)
  5    needs hands: rollback failed or state unknown
  64   wrong usage
  130  interrupted; baseline or last good state restored
`

// exitErr carries an exit code to main. With quiet the result said it all already.
type exitErr struct {
	code  int
	err   error
	hint  string // what to do; of wrong usage without one, that the command has help
	quiet bool
}

func (e *exitErr) Error() string { return e.err.Error() }
func (e *exitErr) Unwrap() error { return e.err }

// fail makes an error that ends with a code.
func fail(code int, hint, format string, a ...any) error {
	return &exitErr{code: code, err: fmt.Errorf(format, a...), hint: hint}
}

// done ends with a code after the result has been printed.
func done(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitErr{code: code, err: errors.New("see above"), quiet: true}
}

// usage is a wrong call.
func usage(format string, a ...any) error {
	return fail(exitUsage, "", format, a...)
}

// exitCode is the code that err ends with.
func exitCode(ctx context.Context, err error) int {
	var e *exitErr
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	}
	return exitError
}
