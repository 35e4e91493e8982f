// Fabricctl-host is the host's own side of fabricctl: a small static binary that plans and applies on the machine it
// runs on, keeps it that way, and speaks for it when it was pushed over SSH. fabricctl-host --help lists its verbs.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/cmd/hostverb"
	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

func main() {
	// A laptop that goes away must not kill us in the middle of a commit: the end of stdin stops it between two writes.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// call is one call of the program.
type call struct {
	prog    hostverb.Program
	opts    hostverb.Options
	args    []string // what is left after the flags
	timeout time.Duration
	raw     io.Writer // standard output, for what is no text for people
}

// verb is one verb.
type verb struct {
	name, args, says string
	flags            func(c *call, f *flag.FlagSet) // besides those of all verbs; nil has none
	wants            int                            // how many arguments
	level            string                         // of its log; "" = warn
	run              func(ctx context.Context, c *call) error
}

func verbs() []verb {
	withFile := func(do func(*hostverb.Program, context.Context, *hostlocal.File, hostverb.Options) error) func(context.Context, *call) error {
		return func(ctx context.Context, c *call) error {
			file, err := c.opts.Read()
			if err != nil {
				return err
			}
			return do(&c.prog, ctx, file, c.opts)
		}
	}
	back := func(name string) func(context.Context, *call) error {
		return func(ctx context.Context, c *call) error { return c.prog.Back(ctx, name, c.args[0], c.opts) }
	}
	writes := func(c *call, f *flag.FlagSet) {
		c.opts.Files(f)
		c.opts.Writes(f)
	}
	return []verb{
		{name: "status", says: "show what this machine is and holds, and how that fits its host file", flags: func(c *call, f *flag.FlagSet) {
			c.opts.Files(f)
			c.opts.Shows(f)
			c.opts.Exits(f)
		}, run: status},
		{name: "plan", says: "show what apply would do; nothing is written", flags: func(c *call, f *flag.FlagSet) {
			c.opts.Files(f)
			c.opts.Shows(f)
			c.opts.Exits(f)
		}, run: withFile((*hostverb.Program).Plan)},
		{name: "apply", says: "make this machine what its host file says: write, read back, confirm", flags: func(c *call, f *flag.FlagSet) {
			c.opts.Files(f)
			c.opts.Shows(f)
			c.opts.Writes(f)
		}, run: withFile((*hostverb.Program).Apply)},
		{name: "agent", says: "keep this machine as its host file says, until it is told to stop", level: "info", flags: func(c *call, f *flag.FlagSet) {
			c.opts.Files(f)
			c.opts.Keeps(f)
			c.opts.Accepts(f)
		}, run: agent},
		{name: "resume", args: " RUN", wants: 1, says: "finish a run of this machine that was cut short", flags: writes, run: back("resume")},
		{name: "rollback", args: " RUN", wants: 1, says: "take a run of this machine back", flags: writes, run: back("rollback")},
		{name: "read", says: "print the settings of this machine in the host form, and change nothing", run: read},
		{name: "serve", says: "answer JSON lines on stdin and stdout, for fabricctl over SSH, until stdin ends", run: serve},
		{name: "revert", args: " TX", wants: 1, says: "wait for the deadline of a change that is not confirmed, and take it back; what begins a change starts it", run: revert},
		{name: "version", says: "print the version", run: func(_ context.Context, c *call) error {
			_, err := fmt.Fprintf(c.prog.Out, "fabricctl-host %s, protocol %d, %s/%s\n", version(), hostwire.Protocol, runtime.GOOS, runtime.GOARCH)
			return err
		}},
	}
}

const exitHelp = `
Exit status: 0 done, 1 error, 2 changes present (--detailed-exitcode), 3 partly applied, 4 refused for safety,
5 needs hands, 64 wrong usage, 130 interrupted.
`

func help(w io.Writer) {
	fmt.Fprint(w, "fabricctl-host: the host's own side of fabricctl\n\n")
	var rows [][]string
	for _, v := range verbs() {
		rows = append(rows, []string{"  fabricctl-host " + v.name + v.args, v.says})
	}
	show.Table(w, rows)
	fmt.Fprint(w, "\nfabricctl-host VERB --help lists the flags of a verb.\n"+exitHelp)
}

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, errs := &show.Screen{To: stdout}, &show.Screen{To: stderr}
	for _, s := range []*show.Screen{out, errs} {
		s.Color = os.Getenv("NO_COLOR") == "" && s.Terminal()
		s.Fit()
	}
	err := play(ctx, args, stdin, stdout, out, errs)
	if err == nil && out.Err != nil {
		err = fmt.Errorf("the output is not whole: %w", out.Err)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	code, hint := 1, ""
	var f *hostverb.Failure
	if errors.As(err, &f) {
		code, hint = f.Code, f.Hint
	}
	if f == nil || !f.Quiet {
		fmt.Fprintln(errs, "error:", diag.OneLine(err.Error()))
		if hint != "" {
			fmt.Fprintln(errs, "hint:", hint)
		}
	}
	return code
}

// usage is a wrong call.
func usage(format string, a ...any) error {
	return &hostverb.Failure{Code: 64, Err: fmt.Errorf(format, a...), Hint: "see fabricctl-host --help"}
}

// play runs one verb whose output goes to screens.
func play(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer, out, errs *show.Screen) error {
	if len(args) == 0 {
		return usage("no verb given")
	}
	if args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		help(out)
		return nil
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			return v.play(ctx, args[1:], call{raw: stdout, prog: hostverb.Program{Name: "fabricctl-host", Version: version(), In: stdin, Out: out, Err: errs}})
		}
	}
	return usage("there is no verb %q", args[0])
}

// play reads the flags of a verb and runs it.
func (v verb) play(ctx context.Context, args []string, c call) error {
	f := flag.NewFlagSet(v.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var output, level, format string
	f.StringVar(&c.prog.State, "state-dir", hostlocal.StateDir(), "holds, locks, journals and what has to be put back")
	if v.flags != nil {
		v.flags(&c, f)
		f.StringVar(&output, "o", "text", "text or json")
		f.DurationVar(&c.timeout, "timeout", 0, "end the whole call after this time, for example 10m (0 = no limit)")
		f.StringVar(&level, "log-level", cmp.Or(v.level, "warn"), "debug, info, warn or error")
		f.StringVar(&format, "log-format", "text", "text or json")
	}
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(c.prog.Out, "fabricctl-host %s%s: %s\n\n", v.name, v.args, v.says)
		f.VisitAll(func(x *flag.Flag) {
			byDefault := ""
			if d := x.DefValue; d != "" && d != "false" && d != "0s" {
				byDefault = fmt.Sprintf(" (default %q)", d)
			}
			fmt.Fprintf(c.prog.Out, "  -%s  %s%s\n", strings.Repeat("-", min(1, len(x.Name)-1))+x.Name, x.Usage, byDefault)
		})
		fmt.Fprint(c.prog.Out, exitHelp)
		return err
	case err != nil:
		return usage("%s: %w", v.name, err)
	}
	if c.args = f.Args(); len(c.args) != v.wants {
		return usage("want %s%s, and got %d arguments", v.name, v.args, len(c.args))
	}
	if !filepath.IsAbs(c.prog.State) {
		return usage("--state-dir %s: want an absolute path", c.prog.State)
	}
	if output != "" && output != "text" && output != "json" {
		return usage("-o %s: want text or json", output)
	}
	c.prog.JSON = output == "json"
	var err error
	if c.prog.Log, err = logger(c.prog.Err, level, format); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.prog.Revert = []string{self, "revert", "--state-dir", c.prog.State}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("--timeout %s is over", c.timeout))
		defer cancel()
	}
	return v.run(ctx, &c)
}

func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if level != "" && l.UnmarshalText([]byte(level)) != nil {
		return nil, usage("--log-level %s: want debug, info, warn or error", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "":
		return slog.New(slog.DiscardHandler), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usage("--log-format %s: want text or json", format)
}

func status(ctx context.Context, c *call) error {
	file, err := c.opts.Optional()
	if err != nil {
		return err
	}
	return c.prog.Status(ctx, file, c.opts)
}

// agent keeps the machine; SIGHUP has it read its file again.
func agent(ctx context.Context, c *call) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	return c.prog.Agent(ctx, reload, c.opts)
}

// machine is this machine, for the verbs that need no host file.
func (c *call) machine() (hostlocal.Machine, error) { return c.prog.Machine(nil, c.opts) }

func serve(ctx context.Context, c *call) error {
	m, err := c.machine()
	if err != nil {
		return err
	}
	h, hello, err := m.Host()
	if err != nil {
		return err
	}
	defer h.Device.Close()
	return hostwire.Serve(ctx, c.prog.In, c.raw, h, hello)
}

func revert(ctx context.Context, c *call) error { return c.prog.Await(ctx, c.args[0]) }

// read prints the settings in the host form of the linux dialect, after the facts as comments.
func read(ctx context.Context, c *call) error {
	m, err := c.machine()
	if err != nil {
		return err
	}
	dev, err := m.Direct()
	if err != nil {
		return err
	}
	defer dev.Close()
	f, _, err := dev.Facts(ctx)
	if err != nil {
		return err
	}
	cfg, err := dev.Read(ctx)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, l := range [][2]string{{"hostname", f.Hostname}, {"serial", f.Serial}, {"kernel", f.Version}} {
		if l[1] != "" {
			fmt.Fprintf(&b, "# %s %s\n", l[0], l[1])
		}
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	b.Write(render.Linux().Text(cfg))
	_, err = c.prog.Out.Write(b.Bytes())
	return err
}

// version is that of the module as the go command built it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
