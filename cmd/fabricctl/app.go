package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/units"
)

// system is the process's surroundings, so that tests can give their own.
type system struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	exit     func(int) // for failpoints: ends the process at once
}

// app holds the global flags and what they resolve to. One app serves one call.
type app struct {
	sys  system
	args []string // of the call

	fabric    []string
	profiles  []string
	output    string
	readOnly  bool
	untrusted bool
	logLevel  string
	logFormat string
	color     string
	timeout   time.Duration
	parallel  int
	stateDir  string

	points  func(string)                                     // failpoints; nil before they were asked for, and when there are none
	wait    func(ctx context.Context, d time.Duration) error // before another attempt; nil waits for real
	log     *slog.Logger
	known   gnmi.Known  // what this call has learned of its switches
	hosts   ssh.Known   // the known_hosts files that it has read
	secrets secret.Kept // what references have led to a moment ago
	unset   unsetNames  // what references have not led to
	pastes  pastes      // the commands that it has made to be printed
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	out, errs := &show.Screen{To: sys.out}, &show.Screen{To: sys.err}
	sys.out, sys.err = out, errs
	code := play(ctx, args, sys)
	if err := cmp.Or(out.Err, errs.Err); err != nil && code == exitOK {
		fmt.Fprintf(errs, "error: the output is not whole: %v\n", err)
		return exitError
	}
	return code
}

// play runs one command whose output goes to screens.
func play(ctx context.Context, args []string, sys system) int {
	a := &app{sys: sys, args: args, log: slog.New(slog.DiscardHandler)}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(sys.in)
	root.SetOut(sys.out)
	root.SetErr(sys.err)
	c, err := root.ExecuteContextC(ctx)
	code := exitCode(ctx, err)
	var wrong *exitErr
	if errors.As(err, &wrong) && code == exitUsage && wrong.hint == "" {
		wrong.hint = "see " + c.CommandPath() + " --help"
	}
	a.printError(ctx, err, code)
	if hint := a.unset.hint(); hint != "" && code != exitOK {
		fmt.Fprintln(a.sys.err, "hint:", hint)
	}
	return code
}

// printError writes an error as one line and its hint as another. ctx is that of the call.
func (a *app) printError(ctx context.Context, err error, code int) {
	if err == nil {
		return
	}
	var e *exitErr
	if errors.As(err, &e) && e.quiet {
		return
	}
	if code == exitInterrupted {
		if s, ok := a.sys.err.(*show.Screen); ok && (s.MidLine() || s.Terminal()) { // a terminal shows ^C on the line
			fmt.Fprintln(a.sys.err)
		}
		what := diag.OneLine(err.Error())
		if cause := context.Cause(ctx); cause != nil { // "interrupted" says it
			what = strings.ReplaceAll(strings.ReplaceAll(what, cause.Error()+"; ", ""), ": "+cause.Error(), "")
		}
		fmt.Fprintln(a.sys.err, "interrupted:", a.whole(what))
	} else {
		fmt.Fprintln(a.sys.err, "error:", a.whole(diag.OneLine(err.Error())))
	}
	var lease *journal.DamagedLeaseError
	switch {
	case e != nil && e.hint != "":
		fmt.Fprintln(a.sys.err, "hint:", a.whole(e.hint))
	case errors.As(err, &lease):
		fmt.Fprintln(a.sys.err, "hint:", a.whole(a.command("lock", "break", quote(lease.Name))+" repairs it"))
	}
}

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "fabricctl",
		Short: "Configure and tune lossless RoCEv2 fabrics",
		Long: `fabricctl keeps one agreement (DSCP, priority, queue, PFC and ECN thresholds, MTU,
watchdog) on every switch port and every host of a RoCEv2 fabric, from one YAML
model. Nothing is written unless a verb says so: apply, runs resume and runs
rollback write, and host apply with its own; tune tries settings on devices with
--runner lab or perftest alone, and brings back what was; every other verb only
reads.

Try it without hardware:   fabricctl demo
Start a model:             fabricctl init my-fabric
Look before you write:     fabricctl plan -f my-fabric/fabric.yaml -f my-fabric/inventory.yaml

` + exitHelp,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args:                       wantVerb,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := notEmpty(c); err != nil {
				return err
			}
			return a.setup(c.Name())
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var bad *pflag.InvalidValueError
		if errors.As(err, &bad) && bad.GetFlag().Value.Type() == "duration" {
			return fail(exitUsage, "write a number with its unit, for example 90s, 30m or 48h", "--%s %s is not a duration", bad.GetFlag().Name, bad.GetValue())
		}
		var unit *units.Error
		if errors.As(err, &bad) && errors.As(err, &unit) {
			return fail(exitUsage, unit.Hint, "--%s %s %s", bad.GetFlag().Name, unit.Text, unit.What)
		}
		if errors.As(err, &bad) && strings.HasPrefix(bad.GetFlag().Value.Type(), "uint") {
			return fail(exitUsage, "", "--%s %s is not a number from 0 on", bad.GetFlag().Name, bad.GetValue())
		}
		var lacks *pflag.ValueRequiredError
		if errors.As(err, &lacks) {
			return fail(exitUsage, "", "--%s needs a value: %s", lacks.GetFlag().Name, lacks.GetFlag().Usage)
		}
		var none *pflag.NotExistError
		if errors.As(err, &none) && len(none.GetSpecifiedName()) > 1 {
			return fail(exitUsage, nearFlag(c, none.GetSpecifiedName()), "%s has no flag --%s", c.CommandPath(), none.GetSpecifiedName())
		}
		return fail(exitUsage, "", "%w", err)
	})
	a.globals(root.PersistentFlags())

	for _, c := range []*cobra.Command{
		a.newInit(), a.newImport(), a.newValidate(),
		a.newSchema(),
		a.newRules(), a.newProfiles(), a.newExplain(), a.newGraph(), a.newDeadlock(), a.newRender(), a.newPlan(), a.newApply(), a.newDrift(),
		a.newRuns(), a.newLock(), a.newHold(), a.newLab(), a.newDemo(), a.newVersion(), a.newCompletion(),
		a.newDoctor(), a.newCheck(), a.newSim(), a.newTune(), a.newHost(),
	} {
		root.AddCommand(c)
	}
	a.complete(root)
	return root
}

// globals registers the flags that every command has.
func (a *app) globals(f *pflag.FlagSet) {
	f.StringArrayVarP(&a.fabric, "fabric", "f", nil, "model file or directory; repeat for layers, later ones win")
	f.StringArrayVar(&a.profiles, "profiles", nil, "directory of Profile documents below the model's own layers; repeat, later ones win (always first: $XDG_CONFIG_HOME/fabricctl/profiles)")
	f.StringVarP(&a.output, "output", "o", "text", "text or json; plan and drift also markdown, validate also sarif, junit and github")
	f.BoolVar(&a.readOnly, "read-only", false, "make any write impossible")
	f.BoolVar(&a.untrusted, "untrusted", false, "the model is not trusted: no exec: references are run")
	f.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&a.logFormat, "log-format", "text", "text or json")
	f.StringVar(&a.color, "color", "auto", "auto, always or never (NO_COLOR is honoured)")
	f.DurationVar(&a.timeout, "timeout", 0, "end the whole call after this time, for example 10m (0 = no limit)")
	f.IntVar(&a.parallel, "parallel", 8, "devices worked on at the same time")
	f.StringVar(&a.stateDir, "state-dir", "", "runs, leases and journals (default $XDG_STATE_HOME/fabricctl); one user's, shared by all operators who work as that user")
}

// setup turns the global flags into what verbs use.
func (a *app) setup(verb string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return usage("--log-level %s: want debug, info, warn or error", a.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "text":
		a.log = slog.New(slog.NewTextHandler(a.sys.err, opts))
	case "json":
		a.log = slog.New(slog.NewJSONHandler(a.sys.err, opts))
	default:
		return usage("--log-format %s: want text or json", a.logFormat)
	}
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return usage("--color %s: want auto, always or never", a.color)
	}
	for _, w := range []io.Writer{a.sys.out, a.sys.err} {
		if s, ok := w.(*show.Screen); ok {
			s.Color = a.colored(s)
			if w == a.sys.err || a.output == "text" && !slices.Contains([]string{"render", "schema", "completion", "diff", "report"}, verb) {
				s.Fit()
			}
		}
	}
	if a.parallel < 1 {
		return usage("--parallel %d: want at least 1", a.parallel)
	}
	if a.timeout < 0 {
		return usage("--timeout %s: want a time, or 0 for no limit", a.timeout)
	}
	return nil
}

// wants checks --output against what a verb can print, and reports whether it is JSON.
func (a *app) wants(formats ...string) (json bool, err error) {
	if !slices.Contains(formats, a.output) {
		return false, usage("-o %s: this command prints %s", a.output, strings.Join(formats, ", "))
	}
	return a.output == "json", nil
}

// limit applies --timeout.
func (a *app) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("--timeout %s is over", a.timeout))
}

// state is the state directory, which need not exist yet.
func (a *app) state() (string, error) {
	if a.stateDir != "" {
		if info, err := os.Stat(a.stateDir); err == nil && !info.IsDir() {
			return "", fail(exitError, "name a directory with --state-dir", "--state-dir %s is a file; nothing was done", a.stateDir)
		}
		return filepath.Abs(a.stateDir)
	}
	if d := a.sys.env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "fabricctl"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fail(exitError, "give --state-dir", "no state directory: %w", err)
	}
	return filepath.Join(home, ".local", "state", "fabricctl"), nil
}

// osFS opens any file or directory of the machine, so that layers are named as on the command line. A pipe is refused:
// who reads one waits for its writer, and can read it once.
type osFS struct{}

func (osFS) Open(name string) (fs.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file; save the model to one")}
	}
	return os.Open(name)
}
