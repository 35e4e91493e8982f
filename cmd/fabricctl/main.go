// Command fabricctl configures and tunes lossless RoCEv2 fabrics: one YAML model is linted, rendered, planned
// against what the devices hold, applied with an undo in the journal, and read back.
//
// The verbs are one file each. A verb's logic is in a run function that returns an error; what it prints on stdout is
// its result, in text or JSON, and everything else goes to stderr. Exit codes are in exit.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ends = append(ends, syscall.SIGHUP) // a terminal that is closed must not leave a trial in force
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)                            // a second signal ends the program at once
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that leaves is seen as an error of the write
	os.Exit(run(ctx, os.Args[1:], system{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, exit: os.Exit,
	}))
}
