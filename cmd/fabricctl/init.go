package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// modeline tells an editor's YAML language server where the schema of a document is.
const modeline = "# yaml-language-server: $schema=./" + schemaFile + "\n"

// fabricTemplate takes the name, the counts, the platform with its links and its NIC, and the thresholds of the lossless class.
const fabricTemplate = modeline + `# What every switch port and every host of the fabric agrees on.
# Check it:  fabricctl validate fabric.yaml inventory.yaml
apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: %[1]s}

topology:
  spines: {count: %[2]d, platform: %[5]s}
  leaves: {count: %[3]d, platform: %[5]s}
  hosts: {per_leaf: %[4]d%[10]s, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: %[6]s, cable: 40m%[8]s}
    host_leaf: {speed: %[7]s, cable: 5m}

# fabric: L2 size of a switch port without FCS; host: netdev MTU; roce: RDMA payload.
mtu: {fabric: %[9]s, host: 9000B, roce: 4096B}

classes:
  - name: training
    dscp: [26]
    priority: 3
    lossless: true
%[11]s    bandwidth: 60%%
    drop_incomplete_arp: true   # true of routed links to hosts; if yours are in VLANs, see fabricctl rules arp-complete
  - name: cnp
    role: cnp
    dscp: [48]
    priority: 6
    scheduling: strict
  - name: default
    dscp: rest
    priority: 0
    bandwidth: 40%%

pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}

# Hosts' NICs have the classes as the switches do. What they are told besides stands here, such as
# hosts: {pcie: {max_read_request: 4096B}, memlock: unlimited}

# Nothing is written to what is not owned. Start with observe, look at the plan, then own one area at a time, such as
# {switches: {ecn: own}}.
manage: {switches: observe, hosts: observe}
`

const inventoryTemplate = modeline + `# Which box is which, and how to reach it. Passwords are references, never literal: env:NAME, file:PATH or exec:COMMAND.
apiVersion: fabricctl/v1
kind: Inventory
defaults:
  gnmi: {port: 50051, tls: {ca: file:ca.pem}, username: env:FABRIC_USER, password: env:FABRIC_PASSWORD}
  ssh: {username: env:FABRIC_USER, password: env:FABRIC_PASSWORD}
# One line per device; replace the {} by lines like these:
#   leaf1: {address: 192.0.2.11, serial: MT2214X00123, ports: {downlink-1: Ethernet0}}
#   host1: {address: 192.0.2.101, nics: [{netdev: rdma0, ip: 192.0.2.129/31, port: "leaf1:downlink-1"}]}
devices: {}
`

var nameRE = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]*$`)

type initOptions struct {
	spines, leaves, perLeaf int
	platform, speed         string
}

func (a *app) newInit() *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a model to start from",
		Long: `Write DIR/fabric.yaml and DIR/inventory.yaml: a two-tier fabric with one lossless class, everything observed. Beside
them lies ` + schemaFile + `, by which an editor with a YAML language server completes and checks them.
The thresholds are a starting point for the platform and the speed of the hosts' links, and a comment says of each whether
somebody published it; fabricctl profiles --starting-points shows all.
The directory's last element is the fabric's name. Files that exist are never overwritten.`,
		Example: "  fabricctl init pod1 --leaves 8 --hosts-per-leaf 16\n  fabricctl init pod2 --platform sonic/sn4600c --speed 100Gbps\n  fabricctl validate pod1/fabric.yaml pod1/inventory.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("init wants one directory")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.runInit(args[0], o) },
	}
	c.Flags().IntVar(&o.spines, "spines", 2, "number of spines")
	c.Flags().IntVar(&o.leaves, "leaves", 4, "number of leaves")
	c.Flags().IntVar(&o.perLeaf, "hosts-per-leaf", 8, "hosts on each leaf")
	c.Flags().StringVar(&o.platform, "platform", "sonic/sn5600", "platform of spines and leaves")
	c.Flags().StringVar(&o.speed, "speed", "", "speed of the hosts' links; default the platform's fastest, and at most 400Gbps")
	mustComplete(c, "speed", "25Gbps", "100Gbps", "200Gbps", "400Gbps", "800Gbps")
	return c
}

type initJSON struct {
	Schema string   `json:"schema"`
	Files  []string `json:"files"`
}

func (a *app) runInit(dir string, o initOptions) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	name := filepath.Base(abs)
	if !nameRE.MatchString(name) {
		return fail(exitUsage, "use letters, digits and -_.", "%q cannot be a fabric's name", name)
	}
	for _, n := range []struct {
		flag string
		v    int
	}{{"--spines", o.spines}, {"--leaves", o.leaves}, {"--hosts-per-leaf", o.perLeaf}} {
		if n.v < 1 || n.v > 10_000 {
			return usage("%s %d: want 1 to 10000", n.flag, n.v)
		}
	}
	if !regexp.MustCompile(`^[a-z]+/[a-z0-9-]+$`).MatchString(o.platform) {
		return usage("--platform %q: want OS/MODEL, such as sonic/sn5600", o.platform)
	}
	catalog, platform, err := a.switchPlatform(o.platform)
	if err != nil {
		return err
	}
	down, err := o.hostSpeed(platform)
	if err != nil {
		return err
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return fail(exitUsage, "name a new directory", "%s is a file", dir)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return err
	}
	var written []string
	for _, f := range []struct{ name, text string }{
		{"fabric.yaml", o.fabric(name, platform, down, nicFor(catalog, down))},
		{"inventory.yaml", inventoryTemplate},
		{schemaFile, string(model.JSONSchema(false))},
	} {
		if err := writeNew(filepath.Join(abs, f.name), f.text); err != nil {
			return err
		}
		written = append(written, filepath.Join(dir, f.name))
	}
	if json {
		if err := a.printJSON(initJSON{"fabricctl/init/v1", written}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.sys.out, strings.Join(written, "\n"))
	}
	fmt.Fprintf(a.sys.err, "next: fabricctl validate %[1]s/fabric.yaml %[1]s/inventory.yaml\n", dir)
	return nil
}

// fastestHost is how fast links of hosts are unless somebody says otherwise: as fast as most adapters.
const fastestHost = 400 * units.Gbps

// hostSpeed is the speed of the hosts' links.
func (o initOptions) hostSpeed(p profiles.Platform) (units.BitRate, error) {
	if o.speed == "" {
		return min(cmp.Or(p.Speed, fastestHost), fastestHost), nil
	}
	v, err := units.ParseBitRate(o.speed)
	switch {
	case err != nil:
		return 0, fail(exitUsage, "write a rate such as 400Gbps", "--speed: %v", err)
	case v < units.Gbps:
		return 0, usage("--speed %v: want 1Gbps or more", v)
	case p.Speed > 0 && v > p.Speed:
		return 0, fail(exitUsage, "name a speed up to that, or another platform", "--speed %v is more than %s has, which is %v", v, p.Name, p.Speed)
	}
	return v, nil
}

// nicFor is an adapter that is fast enough; "" when none of the two is.
func nicFor(catalog *profiles.Catalog, speed units.BitRate) string {
	for _, name := range []string{"connectx-7", "connectx-8"} {
		if nic, ok := catalog.NIC(name); ok && nic.Fastest() >= speed {
			return name
		}
	}
	return ""
}

// fabric is the Fabric document: links and MTU as the platform has them, and uplinks for an oversubscription of at most
// 2:1. Uplinks are at most twice as fast as links of hosts, so that one set of thresholds serves both.
func (o initOptions) fabric(name string, p profiles.Platform, down units.BitRate, nic string) string {
	up, mtu := min(cmp.Or(p.Speed, 2*down), 2*down), units.Bytes(9216)
	if p.MaxMTU > 0 {
		mtu = min(mtu, p.MaxMTU)
	}
	parallel := ""
	above := 2 * units.BitRate(o.spines) * up
	if n := (units.BitRate(o.perLeaf)*down + above - 1) / above; n > 1 {
		parallel = fmt.Sprintf(", parallel: %d", n)
	}
	if nic != "" {
		nic = ", nic: " + nic
	}
	return fmt.Sprintf(fabricTemplate, name, o.spines, o.leaves, o.perLeaf, o.platform, up, down, parallel, mtu, nic, thresholds(p, down))
}

// thresholds are the lines of a lossless class that give its thresholds, and of each who stands behind it.
func thresholds(p profiles.Platform, speed units.BitRate) string {
	s := p.Start(speed)
	var b strings.Builder
	say := func(what string, from profiles.Behind) {
		fmt.Fprintf(&b, "    #   %-10s  %s\n", what, from)
	}
	fmt.Fprintf(&b, "    # Starting values for ports of %v, not answers: tune them on your fabric.\n", speed)
	say("kmin, kmax", s.Ramp)
	say("pmax", s.PmaxFrom)
	written := p.OS() == "sonic"
	if written {
		say("alpha", s.AlphaFrom)
	}
	fmt.Fprintf(&b, "    ecn: {kmin: %v, kmax: %v, pmax: %v}\n", s.Kmin, s.Kmax, s.Pmax)
	if written {
		fmt.Fprintf(&b, "    pfc: {xoff: {alpha: %v}, headroom: auto, xon: auto}\n", s.Alpha)
	}
	return b.String()
}

// switchPlatform finds a platform, and refuses one that validate would refuse for a switch.
func (a *app) switchPlatform(name string) (*profiles.Catalog, profiles.Platform, error) {
	dirs, l := a.hardware()
	catalog, _ := model.LoadCatalog(osFS{}, dirs...)
	p, ok := catalog.Platform(name)
	switch {
	case l.HasErrors(): // told by validate, with their places
	case !ok:
		return catalog, p, fail(exitUsage, model.PlatformHint(name, catalog.Names()), "unknown platform %q", name)
	case strings.HasPrefix(name, "linux/"):
		return catalog, p, fail(exitUsage, "name a switch platform; fabricctl profiles lists them", "%q is a host's platform", name)
	}
	return catalog, p, nil
}

// writeNew creates a file and refuses to replace one.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return fail(exitError, "move it away, or name another directory", "%s exists and stays as it is", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
