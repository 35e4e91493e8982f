package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
)

// inventoryOnly binds two devices without a Fabric; nobody says what the second one is.
const inventoryOnly = `apiVersion: fabricctl/v1
kind: Inventory
defaults:
  gnmi: {port: 50051, username: env:WHO, password: env:PW}
  ssh: {username: ops, known_hosts: "file:kh"}
devices:
  old1: {address: 10.0.0.1, platform: sonic/sn5600}
  old2: {address: 10.0.0.2}
  old3: {platform: eos/7060x6}
`

// testApp is an app whose layers are files with these texts.
func testApp(t *testing.T, layers ...string) (*app, *bytes.Buffer) {
	t.Helper()
	var errs bytes.Buffer
	a := &app{sys: system{err: &errs, env: func(string) string { return "" }}}
	for i, text := range layers {
		file := filepath.Join(t.TempDir(), string(rune('a'+i))+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a.fabric = append(a.fabric, file)
	}
	return a, &errs
}

// A device on the command line is a name of the layers, or an operating system and an address.
func TestTargets(t *testing.T) {
	a, _ := testApp(t, inventoryOnly)
	ts, err := a.targets(t.Context(), loginFlags{username: "me", ca: "file:ca.pem"}, []string{"old1", "eos:10.0.0.9:2222", "sonic:[2001:db8::1]:8080", "sonic:2001:db8::2", "linux:host.example.net"})
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		Name, OS, Platform, Address string
		GNMI, SSH                   int
		User, CA, Hosts             string
	}
	var got []short
	for _, x := range ts.list {
		e := x.Endpoint
		got = append(got, short{x.Name, x.OS, x.Platform, e.Address.V, e.GNMI.Port.V, e.SSH.Port.V, e.SSH.Username.V, e.GNMI.CA.V, e.SSH.KnownHosts.V})
	}
	want := []short{
		{"old1", "sonic", "sonic/sn5600", "10.0.0.1", 50051, 22, "me", "file:ca.pem", "file:kh"},
		{"eos:10.0.0.9:2222", "eos", "", "10.0.0.9", 2222, 2222, "me", "file:ca.pem", "file:kh"},
		{"sonic:[2001:db8::1]:8080", "sonic", "", "2001:db8::1", 8080, 8080, "me", "file:ca.pem", "file:kh"},
		{"sonic:2001:db8::2", "sonic", "", "2001:db8::2", 50051, 22, "me", "file:ca.pem", "file:kh"},
		{"linux:host.example.net", "linux", "", "host.example.net", 50051, 22, "me", "file:ca.pem", "file:kh"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"old1", "old2"}, ts.all()); d != "" {
		t.Errorf("all (-want +got)\n%s", d)
	}
}

// Without any layer an address is enough.
func TestTargetsWithoutLayers(t *testing.T) {
	a, _ := testApp(t)
	ts, err := a.targets(t.Context(), loginFlags{}, []string{"eos:10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if e := ts.list[0].Endpoint; e.SSH.Port.V != 22 || e.GNMI.Port.V != 8080 || ts.list[0].Device != nil {
		t.Errorf("%+v", ts.list[0])
	}
}

// What cannot be is said with what to write instead, and a password on the command line is not repeated.
func TestTargetsRefused(t *testing.T) {
	const secretText = "hunter2-CANARY"
	for _, x := range []struct {
		name string
		o    loginFlags
		arg  string
		want string // parts of message and hint, joined by |
	}{
		{"unknown name", loginFlags{}, "old9", `there is no device "old9"|they have old[1-3]; |eos:ADDRESS`},
		{"a slip", loginFlags{}, "Old1", `there is no device "Old1"|did you mean old1?`},
		{"unknown system", loginFlags{}, "ios:10.0.0.1", `no operating system is called "ios"|eos, linux, sonic`},
		{"no platform", loginFlags{}, "old2", "nothing says what old2 is|platform: sonic/sn5600"},
		{"no address", loginFlags{}, "old3", "no layer gives an address of old3|devices: {old3: {address: 10.0.0.11}}"},
		{"bad port", loginFlags{}, "eos:10.0.0.1:70000", `"70000" is not a port|eos:10.0.0.12`},
		{"bad host", loginFlags{}, "eos:-oProxyCommand=x", "is not an IP address or host name|eos:10.0.0.12"},
		{"empty host", loginFlags{}, "eos:", "is not an IP address or host name|eos:10.0.0.12"},
		{"literal password", loginFlags{password: secretText}, "old1", "--password takes a reference|env:NAME"},
		{"literal ca", loginFlags{ca: "ca.pem"}, "old1", "--ca ca.pem is not a reference|write --ca file:ca.pem"},
		{"known hosts from env", loginFlags{knownHosts: "env:X"}, "old1", "is not a file|file:PATH"},
	} {
		t.Run(x.name, func(t *testing.T) {
			a, _ := testApp(t, inventoryOnly)
			_, err := a.targets(t.Context(), x.o, []string{x.arg})
			var e *exitErr
			if !errors.As(err, &e) {
				t.Fatalf("no error with a hint: %v", err)
			}
			said := e.Error() + "\n" + e.hint
			for _, w := range strings.Split(x.want, "|") {
				if !strings.Contains(said, w) {
					t.Errorf("%q is not in %q", w, said)
				}
			}
			if strings.Contains(said, secretText) {
				t.Errorf("the password is in %q", said)
			}
		})
	}
}

// An inventory alone is read as strictly as one with a model.
func TestInventoryAloneIsChecked(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"sonic/sn5600", "sonic/sn5601", "did you mean sonic/sn5600"},
		{"10.0.0.2", "10.0.0.1", "both have address 10.0.0.1"},
		{"password: env:PW", "password: CANARY", "literal-secret"},
		{"platform: eos", "plattform: eos", "did you mean platform"},
	} {
		a, errs := testApp(t, strings.Replace(inventoryOnly, x.from, x.to, 1))
		_, err := a.targets(t.Context(), loginFlags{}, []string{"old1"})
		if err == nil || !strings.Contains(errs.String(), x.want) || strings.Contains(errs.String(), "CANARY") {
			t.Errorf("%s: %v\n%s", x.to, err, errs)
		}
	}
}

// With a Fabric, a device is bound to its intent, and both documents agree on what it is.
func TestTargetsOfFabric(t *testing.T) {
	model, err := os.ReadFile("../../examples/small/fabric.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: fabricctl/v1\nkind: Inventory\ndevices:\n  leaf1: {address: 10.0.0.1, platform: "
	a, _ := testApp(t, string(model), head+"sonic/sn5600}\n")
	ts, err := a.targets(t.Context(), loginFlags{}, []string{"leaf1"})
	if err != nil {
		t.Fatal(err)
	}
	if ts.list[0].Device == nil || ts.list[0].OS != "sonic" {
		t.Errorf("%+v", ts.list[0])
	}
	a, errs := testApp(t, string(model), head+"eos/7060x6}\n")
	if _, err = a.targets(t.Context(), loginFlags{}, []string{"leaf1"}); err == nil || !strings.Contains(errs.String(), "leaf1 is eos/7060x6 in the inventory, but sonic/sn5600 in the topology") {
		t.Errorf("%v\n%s", err, errs)
	}
}

// What comes of opening a target can read, and nothing else.
func TestTargetOnlyReads(t *testing.T) {
	a, _ := testApp(t)
	ts, err := a.targets(t.Context(), loginFlags{}, []string{"linux:127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := ts.open(context.Background(), ts.list[0])
	if err == nil {
		t.Fatal("nobody listens on port 1")
	}
	if _, writes := any(v).(drivers.Device); writes {
		t.Error("a view is a Device")
	}
}
