// Package hostverb is what a host's own program does, verb by verb. fabricctl-host and fabricctl host are the same verbs:
// both read flags, and call these.
package hostverb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/rollout"
)

// The exit codes that verbs end with, those of fabricctl.
const (
	exitError       = 1
	exitChanges     = 2
	exitRefused     = 4
	exitUsage       = 64
	exitInterrupted = 130
)

// Failure is why a verb did not end well. With Quiet the result said it all already.
type Failure struct {
	Code  int
	Err   error
	Hint  string
	Quiet bool
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

func fail(code int, hint, format string, a ...any) error {
	return &Failure{Code: code, Err: fmt.Errorf(format, a...), Hint: hint}
}

// ended is the end with a code after the result has been printed.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return &Failure{Code: code, Err: errors.New("see above"), Quiet: true}
}

// Program is the program that the verbs are of.
type Program struct {
	Name     string // as a user calls it: "fabricctl-host", "fabricctl host"
	Version  string
	In       io.Reader
	Out, Err io.Writer // screens
	JSON     bool      // print results as JSON
	ReadOnly bool
	State    string   // state directory
	Revert   []string // the program and arguments that take a change back in time: see hostlocal.Machine
	Log      *slog.Logger
}

// Flags is a set of flags of package flag, or of its namesake pflag.
type Flags interface {
	BoolVar(p *bool, name string, value bool, usage string)
	StringVar(p *string, name, value, usage string)
	DurationVar(p *time.Duration, name string, value time.Duration, usage string)
}

// Options are the choices of a user.
type Options struct {
	File     string // host file
	Details  bool   // list every setting
	Detailed bool   // exit 2 when there are changes
	Yes      bool   // do not ask
	Metrics  string // of the agent: a file for them; "" writes none
	Repair   string // of the agent: harmless or always
	Apply    rollout.ApplyOptions
}

// Files adds the flag for the host file.
func (o *Options) Files(f Flags) {
	f.StringVar(&o.File, "conf", hostlocal.DefaultFile, "host file: what this host is to hold; fabricctl host unit writes it")
}

// Shows adds the flags of what shows a plan.
func (o *Options) Shows(f Flags) {
	f.BoolVar(&o.Details, "details", false, "list every setting, not only what changes in behaviour")
}

// Exits adds the flag about the exit code of a plan.
func (o *Options) Exits(f Flags) {
	f.BoolVar(&o.Detailed, "detailed-exitcode", false, "exit 2 when there are changes")
}

// Writes adds the flags of what writes.
func (o *Options) Writes(f Flags) {
	f.BoolVar(&o.Yes, "yes", false, "do not ask")
	f.BoolVar(&o.Apply.AllowDisruptive, "allow-disruptive", false, "allow changes that make links flap, or worse")
	f.BoolVar(&o.Apply.AllowJobs, "allow-jobs", false, "of those, allow the ones that kill live queue pairs of running jobs")
	o.Accepts(f)
}

// Accepts adds the flag for drivers that nobody has tried.
func (o *Options) Accepts(f Flags) {
	f.BoolVar(&o.Apply.AcceptUnverified, "accept-unverified", false, "allow writing to platforms not tried on a real device")
}

// Keeps adds the flags of the agent.
func (o *Options) Keeps(f Flags) {
	f.StringVar(&o.Metrics, "metrics", "", "write metrics to this file after each look, in the text format of Prometheus; its name ends in .prom")
	f.StringVar(&o.Repair, "repair", "harmless", "what is repaired unasked: harmless, which nobody notices; or always, also what makes links flap, where no job runs over them")
}

// Read reads the host file of the options.
func (o *Options) Read() (*hostlocal.File, error) {
	f, err := hostlocal.ReadFile(o.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitError, "fabricctl host unit -f MODEL --device NAME --out DIR writes one, for "+hostlocal.DefaultFile, "nothing says what this host is to hold: there is no %s", o.File)
	}
	if err != nil {
		return nil, fail(exitError, "fabricctl host unit writes host files; with -f, fabricctl host plan takes a model", "%w", err)
	}
	return f, nil
}

// Machine is the machine that the program runs on, as the host of a file, which may be nil.
func (p *Program) Machine(file *hostlocal.File, o Options) (hostlocal.Machine, error) {
	m := hostlocal.Machine{State: p.State, Revert: p.Revert, Version: p.Version, AllowJobs: o.Apply.AllowJobs}
	if file == nil {
		return m, nil
	}
	m.Fabric, m.Device = file.Device.Fabric, file.Device.Name
	var err error
	m.Catalog, err = file.Catalog()
	return m, err
}

// engine plans and applies on the machine.
func (p *Program) engine(m hostlocal.Machine) *rollout.Engine {
	return &rollout.Engine{
		Open: m.Open, Dialect: hostlocal.Dialect, StateDir: m.State, Tool: p.Version, Now: time.Now, NewID: func() string { return rollout.NewRunID(time.Now()) },
		Log: p.Log, ReadOnly: p.ReadOnly, Parallel: 1, Command: func(words ...string) string { return p.command(m.State, words) },
		Progress: func(e rollout.Event) { fmt.Fprintln(p.Err, show.Event(e)) },
	}
}

// command is a command as it is typed here: runs are finished and taken back by verbs of this program, and a fabricctl looks into its state directory
// for the rest.
func (p *Program) command(state string, words []string) string {
	if words[0] == "runs" && len(words) == 3 {
		return p.Name + " " + words[1] + " " + words[2]
	}
	return "fabricctl " + strings.Join(words, " ") + " --state-dir " + state
}

// Await waits for the deadline of a change that is not confirmed, and takes it back: what the timer of a change starts.
func (p *Program) Await(ctx context.Context, tx string) error {
	m, err := p.Machine(nil, Options{})
	if err != nil {
		return err
	}
	dev, err := m.Direct()
	if err != nil {
		return err
	}
	defer dev.Close()
	return dev.Await(ctx, drivers.TxID(tx))
}

// printJSON writes a result as one indented JSON document.
func (p *Program) printJSON(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// interrupted gives an error of a call that was to end the code for it.
func interrupted(ctx context.Context, err error) error {
	code := exitError
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		code = exitInterrupted
	}
	return &Failure{Code: code, Err: err}
}
