package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/intent"
)

// trio is the smallest fabric with one device of each kind.
const trio = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: trio}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: eos/7060x6}
  hosts: {per_leaf: 1, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf: {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9214B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
`

// bench is a running lab with a model beside it.
type bench struct {
	dir    string
	lab    *lab.Lab
	net    *intent.Net
	layers []string // flags
}

// newBench starts a lab for a model, given as text, with layers of the examples on top.
func newBench(t testing.TB, model string, examples ...string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	path := filepath.Join(b.dir, "fabric.yaml")
	if err := os.WriteFile(path, []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{path}
	for _, e := range examples {
		files = append(files, filepath.Join("../../examples", e))
	}
	m, err := (&app{sys: quiet()}).load(t.Context(), files)
	if err != nil || m.findings.HasErrors() {
		t.Fatalf("the bench's model: %v %v", err, m.findings)
	}
	b.net = m.net
	b.lab, err = lab.Up(m.net, lab.Options{Dir: filepath.Join(b.dir, "lab")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.lab.Close() })
	for _, f := range append(files, b.lab.Inventory) {
		b.layers = append(b.layers, "-f", f)
	}
	return b
}

// newUsedBench is newBench with devices that were configured before. From nothing, a rollback leaves a few things behind
// that the devices do not let go of; from here it has to restore every byte.
func newUsedBench(t *testing.T, model string) *bench {
	t.Helper()
	b := newBench(t, model)
	for _, d := range b.net.Devices {
		if h, ok := b.lab.Box(d.Name).(*host.Host); ok {
			if err := h.SetNCCL("# of the site\nNCCL_DEBUG=WARN\n"); err != nil {
				t.Fatal(err)
			}
		}
		if s, ok := b.lab.Box(d.Name).(*sonic.Switch); ok {
			// SONiC never lets go of a polling interval, and PFC is switched off by an empty list, not by an absent one.
			s.Edit(func(db sonic.DB) {
				db.Set("PFC_WD", "GLOBAL", "POLL_INTERVAL", "200")
				for _, p := range d.Ports {
					db.Set("PORT_QOS_MAP", p.Iface, "pfc_enable", "")
					db.Set("PORT_QOS_MAP", p.Iface, "pfcwd_sw_enable", "")
				}
			})
		}
	}
	return b
}

// args are the arguments of a verb that reaches the lab.
func (b *bench) args(verb ...string) []string {
	return append(append(append([]string{}, verb...), b.layers...), "--state-dir", filepath.Join(b.dir, "state"))
}

// result is one finished call.
type result struct {
	code     int
	out, err string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.code, r.out, r.err) }

// call runs a verb in the process.
func (b *bench) call(t testing.TB, verb ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	sys := quiet()
	sys.out, sys.err = &out, &errs
	code := run(context.Background(), b.args(verb...), sys)
	return result{code, out.String(), errs.String()}
}

// must is call with the exit code that it wants.
func (b *bench) must(t testing.TB, code int, verb ...string) result {
	t.Helper()
	r := b.call(t, verb...)
	if r.code != code {
		t.Fatalf("%s: want exit %d, got %s", strings.Join(verb, " "), code, r)
	}
	return r
}

func quiet() system {
	return system{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}, env: func(string) string { return "" }}
}

// config is what every device holds and keeps over a restart, in its own words.
func (b *bench) config(t *testing.T) string {
	t.Helper()
	var s strings.Builder
	for _, d := range b.net.Devices {
		fmt.Fprintf(&s, "=== %s\n", d.Name)
		s.WriteString(b.lab.Box(d.Name).Held())
	}
	return s.String()
}

// writes is how often each device was written to.
func (b *bench) writes() int {
	n := 0
	for _, d := range b.net.Devices {
		n += b.lab.Box(d.Name).Writes()
	}
	return n
}
