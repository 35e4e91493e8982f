//go:build vm

package hostssh

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// A user's description of the test driver of tools/vm.
const testDriver = `apiVersion: fabricctl/v1
kind: Profile
metadata: {name: dcbtest}
personality: {description: the test driver of tools/vm, status: managed, drivers: [dcbtest], app: settable, app_effect: none, ets: settable, ets_effect: none, pfc: settable, pfc_effect: none, source: its source in this repository, confidence: high}
`

// thisVM is the virtual machine of tools/vm over an sshd of its own, with the binary that was built for it.
func thisVM(t *testing.T) Config {
	t.Helper()
	client, clientPath := keyFile(t)
	addr, hostKey := sshd(t, client, nil)
	b, err := os.ReadFile(witness.Tool(t, "fabricctl-host"))
	if err != nil {
		t.Fatal(err)
	}
	cat, found := model.LoadCatalog(fstest.MapFS{"nic.yaml": {Data: []byte(testDriver)}}, "nic.yaml")
	if len(found) > 0 {
		t.Fatal(found)
	}
	return Config{
		SSH:    ssh.Config{Name: "vm", Address: addr, User: "root", Keys: []ssh.Key{{Path: clientPath}}, KnownHosts: knows(t, addr, hostKey)},
		Binary: func(string, string) (*Binary, error) { return NewBinary(b), nil },
		Dir:    filepath.Join(t.TempDir(), "cache"),
		State:  t.TempDir(),
		Know:   cat.Tell(true),
	}
}

// The whole way to NICs of a kernel: pushed over SSH, told of a driver, set, seen by dcb. And what stock tools show of
// the same machine is what fabricctl-host reads through netlink and configfs, setting for setting.
func TestVMRoCEOverSSH(t *testing.T) {
	cfg := thisVM(t)
	near := dial(t, cfg)
	cs := asks(t, near, "pfc|dcb3|priorities=3", "app|dcb3|dscp 26=3", "ets|dcb3|prio-tc=0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0", "link|dcb3|mtu=9000", "roce|dcb3|tos=104")
	if err := near.Commit(t.Context(), "x", cs, 0); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(witness.Tool(t, "dcb"), "pfc", "show", "dev", "dcb3", "prio-pfc").Output()
	if err != nil || !strings.Contains(string(out), "3:on") {
		t.Errorf("dcb shows %s, %v", out, err)
	}
	cfg.Binary = nil
	stock := dial(t, cfg)
	if err := stock.Commit(t.Context(), "x", cs, 0); !errors.Is(err, drivers.ErrReadOnly) {
		t.Errorf("a commit with stock tools: %v", err)
	}
	if diff := cmp.Diff(shown(t, near), shown(t, stock)); diff != "" {
		t.Errorf("(-fabricctl-host +stock tools):\n%s", diff)
	}
	a, _, err1 := near.Facts(t.Context())
	b, _, err2 := stock.Facts(t.Context())
	if err1 != nil || err2 != nil || len(a.NICs) != len(b.NICs) {
		t.Fatalf("%v, %v: %d and %d NICs", err1, err2, len(a.NICs), len(b.NICs))
	}
	for _, n := range b.NICs {
		i := slices.IndexFunc(a.NICs, func(m render.HostNIC) bool { return m.Name == n.Name })
		if i < 0 {
			t.Errorf("stock tools show %s, fabricctl-host does not", n.Name)
			continue
		}
		m := a.NICs[i]
		virtual := m.Driver == "virtio_net" // to ip its parent is no PCI device
		if !virtual && (n.PCI != m.PCI || n.Model != m.Model) || n.Driver != m.Driver || n.Firmware != m.Firmware || n.RDMA != m.RDMA || n.RDMAPort != m.RDMAPort || n.QPs != m.QPs || n.Link.Up != m.Link.Up {
			t.Errorf("fabricctl-host: %+v\nstock tools:    %+v", m, n)
		}
	}
	if err := near.Commit(t.Context(), "back", render.Undo(cs), 0); err != nil {
		t.Error(err)
	}
}
