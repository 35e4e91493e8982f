package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model/diag"
)

func (a *app) newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Play the whole story on an emulated fabric, without root, in half a minute",
		Long: `Start an emulated fabric of SONiC spines, Arista EOS leaves and Linux hosts in this process, and run the commands that
you would: validate, plan, apply, plan again, then a change by hand and how drift shows it, and the repair; then a load, one
port whose QoS is taken away over SSH, what that costs, and the repair; last a short search for better settings. Traffic is simulated on
what the devices hold. Everything happens on loopback and in a temporary directory, which is removed at the end.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := a.wants("text"); err != nil {
				return err
			}
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runDemo(ctx)
		},
	}
}

// demo is a play: commands as a user types them, with a word before each.
type demo struct {
	app *app
	dir string
}

func (a *app) runDemo(ctx context.Context) (err error) {
	start := time.Now()
	dir, err := os.MkdirTemp("", "fabricctl-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demo{app: a, dir: dir}
	layers, err := d.files()
	if err != nil {
		return err
	}
	a.fabric = layers
	m, err := a.mustLoad(ctx)
	if err != nil {
		return err
	}
	l, err := lab.Up(m.net, lab.Options{Dir: filepath.Join(dir, "lab"), Log: a.log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	d.say("%s are up on loopback: SONiC spines (gNMI over TLS), Arista EOS leaves (SSH) and Linux hosts (SSH). Emulated, but the protocols are real.",
		diag.Count(len(m.net.Devices), "device"))
	if err := d.play(ctx, l); err != nil {
		return err
	}
	d.say("That took %.1f s. Next: fabricctl init my-fabric, or fabricctl lab up to explore this with your own client.", time.Since(start).Seconds())
	return nil
}

// files writes the example's model and a layer with a mistake into the demo's directory.
func (d *demo) files() ([]string, error) {
	var layers []string
	for _, name := range []string{"fabric.yaml", "site.yaml"} {
		text, err := examples.FS.ReadFile("mixed/" + name)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(d.dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		layers = append(layers, path)
	}
	return layers, os.WriteFile(filepath.Join(d.dir, "mistake.yaml"), []byte(`apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: mixed}
classes:
  - {name: storage, ecn: {kmin: 2MB}}
`), 0o600)
}

func (d *demo) play(ctx context.Context, l *lab.Lab) error {
	model := []string{"-f", "fabric.yaml", "-f", "site.yaml"}
	live := append(append([]string{}, model...), "-f", "lab/inventory.yaml")
	with := func(verb string, more ...string) []string { return append(append([]string{verb}, live...), more...) }

	d.say("One model says what every port agrees on. First a look at it, without touching anything.")
	if err := d.run(ctx, exitOK, append([]string{"validate"}, model...)...); err != nil {
		return err
	}
	d.say("A mistake in a site's layer: storage starts to mark above where it should mark everything. It is found before any device is.")
	if err := d.run(ctx, exitError, append([]string{"validate"}, append(model, "-f", "mistake.yaml")...)...); err != nil {
		return err
	}
	d.say("Where does a value come from, and what did it win over?")
	if err := d.run(ctx, exitOK, append([]string{"explain", "leaf2:downlink-4:3"}, model...)...); err != nil {
		return err
	}
	d.say("The switches are fresh from the box. What would have to change?")
	if err := d.run(ctx, exitOK, with("plan", "--out", "plan.json")...); err != nil {
		return err
	}
	d.say("SONiC takes ports down to rebind their queues, so this needs --allow-disruptive. Each undo is journalled before the write; each device is read back over a new connection.")
	if err := d.run(ctx, exitOK, with("apply", "plan.json", "--allow-disruptive")...); err != nil {
		return err
	}
	d.say("Again: nothing is left to do, and nothing is sent.")
	if err := d.run(ctx, exitOK, with("plan", "--detailed-exitcode")...); err != nil {
		return err
	}
	leaf, ok := l.Box("leaf1").(*eos.Switch)
	if !ok {
		return errors.New("the demo's leaf1 is not an EOS switch")
	}
	if err := leaf.Type("interface Ethernet2/1\n   mtu 1500\n"); err != nil {
		return err
	}
	d.say("Somebody logs in to leaf1 and sets the MTU of Ethernet2/1 to 1500 by hand: the classic that turns 190 Gbps into 90.")
	if err := d.run(ctx, exitChanges, with("drift")...); err != nil {
		return err
	}
	d.say("And back to what was agreed.")
	if err := d.run(ctx, exitOK, with("apply", "--yes")...); err != nil {
		return err
	}
	if err := d.run(ctx, exitOK, with("drift")...); err != nil {
		return err
	}
	return d.lossless(ctx, live)
}

// incastLoad is a load that a lossless fabric carries: three hosts of a leaf send to a fourth one.
const incastLoad = "incast:3,hosts=host1..host4,to=host1"

// lossless takes QoS from one port, as a stock client may, and shows what a load makes of that.
func (d *demo) lossless(ctx context.Context, live []string) error {
	load := []string{"lab", "load", "./lab", incastLoad}
	d.say("Is it lossless? Three hosts send to one for 10 seconds. What the devices hold is simulated, packet by packet: a model's answer, not a measurement.")
	if err := d.run(ctx, exitOK, load...); err != nil {
		return err
	}
	d.say("Now somebody takes the QoS profile from one of leaf1's 6 ports, with any SSH client.")
	if err := d.ssh(ctx, "leaf1", "enable", "configure", "interface Ethernet2/1", "no service-profile fctl-mixed-leaf", "end"); err != nil {
		return err
	}
	d.say("The same load: what host2 sends is nobody's class any more. Nothing marks it, nothing pauses it, and it is lost; leaf1's own counters show it.")
	if err := d.run(ctx, exitOK, load...); err != nil {
		return err
	}
	if err := d.ssh(ctx, "leaf1", "enable", "show interfaces counters discards | json"); err != nil {
		return err
	}
	d.say("sim --live reads the devices and knows nothing of the lab. It loses packets at the same port, and the rules say why; the numbers differ, since a NIC does not say all of its congestion control over SSH: see what was assumed.")
	if err := d.run(ctx, exitError, append(append([]string{"sim", "--live"}, live...), "--workload", incastLoad)...); err != nil {
		return err
	}
	d.say("apply brings the port back to what was agreed, and the load is carried again.")
	if err := d.run(ctx, exitOK, append(append([]string{"apply"}, live...), "--yes")...); err != nil {
		return err
	}
	if err := d.run(ctx, exitOK, load...); err != nil {
		return err
	}
	return d.tune(ctx)
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.app.sys.out, "\n%s\n", show.Paint(show.Cyan, "# "+fmt.Sprintf(format, args...)))
}

// run plays one command, and makes an unexpected exit code an error.
func (d *demo) run(ctx context.Context, want int, args ...string) error {
	fmt.Fprintf(d.app.sys.out, "%s\n", show.Paint(show.Bold, "$ fabricctl "+strings.Join(args, " ")))
	real := make([]string, 0, len(args)+4)
	for _, s := range args {
		if strings.HasSuffix(s, ".yaml") || strings.HasSuffix(s, ".json") || strings.HasPrefix(s, "./") {
			s = filepath.Join(d.dir, s)
		}
		real = append(real, s)
	}
	real = append(real, "--state-dir", filepath.Join(d.dir, "state"))
	sys := d.app.sys
	sys.out, sys.err = d.relative(sys.out), d.relative(sys.err)
	code := play(ctx, real, sys)
	if ctx.Err() != nil {
		return interrupted(ctx, fmt.Errorf("the demo: %w", context.Cause(ctx)))
	}
	if out, ok := d.app.sys.out.(*show.Screen); ok && out.Left() {
		return done(exitError) // nobody watches
	}
	if code != want {
		return fail(exitError, "", "the demo stops: %s ended with %d, not %d", args[0], code, want)
	}
	if code != exitOK {
		fmt.Fprintf(d.app.sys.out, "(exit %d)\n", code)
	}
	return nil
}
