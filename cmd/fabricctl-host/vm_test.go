//go:build vm

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// A user's description of the test driver of tools/vm, of which the host knows nothing by itself.
const testDriver = `apiVersion: fabricctl/v1
kind: Profile
metadata: {name: dcbtest}
personality: {description: the test driver of tools/vm, status: managed, drivers: [dcbtest], app: settable, app_effect: none, pfc: settable, pfc_effect: none, mtu_effect: none, source: its source in this repository, confidence: high}
`

// In the virtual machine of tools/vm: PFC and code points of a NIC that only the user knows, set over the wire with a
// window, go back though whoever asked for it was killed, and nobody told the timer about the NIC.
func TestVMNICTimer(t *testing.T) {
	cat, found := model.LoadCatalog(fstest.MapFS{"nic.yaml": {Data: []byte(testDriver)}}, "nic.yaml")
	if len(found) > 0 {
		t.Fatal(found)
	}
	state := t.TempDir()
	start := func() (*hostwire.Client, *exec.Cmd) {
		cmd := exec.Command(witness.Tool(t, "fabricctl-host"), "serve", "--state-dir", state)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := hostwire.NewClient(t.Context(), "vm", struct {
			io.Reader
			io.WriteCloser
		}{out, in})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Know(t.Context(), cat.Tell(true)); err != nil {
			t.Fatal(err)
		}
		return c, cmd
	}
	change := func(scope, field, from, to string) render.Change {
		c := render.Change{Op: render.Modify, Key: render.Key{Scope: scope, Object: "dcb3", Field: field}, Before: &from, After: &to}
		if from == "" {
			c.Op, c.Before = render.Add, nil
		}
		return c
	}
	cs := []render.Change{change("app", "dscp 26", "", "3"), change("link", "mtu", "1500", "9000"), change("pfc", "priorities", "none", "3")}
	dcb := func() string {
		pfc, err1 := exec.Command(witness.Tool(t, "dcb"), "pfc", "show", "dev", "dcb3", "prio-pfc").Output()
		app, err2 := exec.Command(witness.Tool(t, "dcb"), "-N", "app", "show", "dev", "dcb3").Output()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return strings.Join(strings.Fields(string(pfc)+string(app)), " ")
	}
	before := dcb()
	c, cmd := start()
	if err := c.Commit(t.Context(), "tx1", cs, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = c.Close()
	if now := dcb(); now == before {
		t.Log("the timer was faster than we looked")
	}
	for left := 1; left > 0; { // the limit of the whole test is under it
		files, err := os.ReadDir(filepath.Join(state, "pending"))
		if err != nil {
			t.Fatal(err)
		}
		left = len(files)
	}
	if now := dcb(); now != before {
		t.Errorf("it was taken back, and dcb shows %s; before it showed %s", now, before)
	}
}
