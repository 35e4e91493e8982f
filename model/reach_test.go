package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
)

// TestReach: a device wins over its groups, they win over the defaults, and each value remembers the lines that it won
// over, through layers too.
func TestReach(t *testing.T) {
	f, l := Load(fstest.MapFS{
		"fabric.yaml": {Data: []byte(base)},
		"base.yaml": {Data: []byte(`apiVersion: fabricctl/v1
kind: Inventory
defaults:
  gnmi: {port: 50051, via: [jump1, "ops@jump2:2222"]}
  ssh: {username: env:EVERYBODY}
groups:
  leaves: {roles: [leaf], ssh: {username: env:LEAVES, via: "jump3, [::1]:22"}}
`)},
		"site.yaml": {Data: []byte(`apiVersion: fabricctl/v1
kind: Inventory
groups:
  leaves: {ssh: {username: env:SITE}}
  rack1: {devices: [leaf1, spine1], gnmi: {port: 8080}, management: in-band}
devices:
  leaf1: {address: 10.0.0.1, management_port: uplink-1, ssh: {username: env:LEAF1}}
  leaf2: {address: 10.0.0.2, ssh: {via: []}}
`)},
	}, "fabric.yaml", "base.yaml", "site.yaml")
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	var b strings.Builder
	for _, name := range []string{"leaf1", "leaf2", "spine1", "host1"} {
		e := f.Endpoints[name]
		fmt.Fprintf(&b, "%s %v\n", name, e.Groups)
		say := func(what, v string, o *Origin) {
			fmt.Fprintf(&b, "  %s %q %s", what, v, o.At())
			for _, p := range o.Lost {
				fmt.Fprintf(&b, " over %s", p)
			}
			b.WriteString("\n")
		}
		say("ssh.username", e.SSH.Username.V, e.SSH.Username.From)
		say("gnmi.port", fmt.Sprint(e.GNMI.Port.V), e.GNMI.Port.From)
		if e.SSH.Via.Set {
			say("ssh.via", e.SSH.Via.V, e.SSH.Via.From)
		}
		say("management", e.Management.V, e.Management.From)
	}
	const want = `leaf1 [leaves rack1]
  ssh.username "env:LEAF1" site.yaml:7:73 over site.yaml:4:28 over base.yaml:7:43 over base.yaml:5:19
  gnmi.port "8080" site.yaml:5:50 over base.yaml:4:16
  ssh.via "jump3,[::1]:22" base.yaml:7:60
  management "in-band" site.yaml:5:69
leaf2 [leaves]
  ssh.username "env:SITE" site.yaml:4:28 over base.yaml:7:43 over base.yaml:5:19
  gnmi.port "50051" base.yaml:4:16
  ssh.via "" site.yaml:8:41 over base.yaml:7:60
  management "out-of-band" 
spine1 [rack1]
  ssh.username "env:EVERYBODY" base.yaml:5:19
  gnmi.port "8080" site.yaml:5:50 over base.yaml:4:16
  management "in-band" site.yaml:5:69
host1 []
  ssh.username "env:EVERYBODY" base.yaml:5:19
  gnmi.port "50051" base.yaml:4:16
  management "out-of-band" 
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got, want := Hops(f.Endpoints["leaf1"].GNMI.Via.V), []Hop{{"", "jump1"}, {"ops", "jump2:2222"}}; !slices.Equal(got, want) {
		t.Errorf("hops %v, want %v", got, want)
	}
}

// TestManyGroups: groups that all contradict each other are told with the first of them, a few of each device, and a
// device in more groups than anybody keeps apart is refused. Each group is looked at once, so a file full of them is read
// as fast as any other.
func TestManyGroups(t *testing.T) {
	groups := func(n int) string {
		return "---\napiVersion: fabricctl/v1\nkind: Inventory\ngroups:\n" + numbered("  g%[1]d: {roles: [leaf, leaf], devices: [leaf1], ssh: {port: 1%04[1]d}}\n", n)
	}
	for _, x := range []struct {
		n, conflicts int
		want         string
	}{
		{3, 2, "m.yaml:29:59: error: conflict: leaf1 and 1 more are in the groups g0 and g2, which give different values for ssh.port\n" +
			"    m.yaml:27:59: the value of g0\n    hint: give it under devices.leaf1, or in one of the groups alone"},
		{32, maxClashes, "groups g0 and g20"},
		{3000, maxClashes, "m.yaml:26:1: error: limits: leaf1 is in more than 32 groups; what the others say is not read"},
	} {
		f, l := Load(files("m.yaml", base+groups(x.n)), "m.yaml")
		conflicts := slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return f.Rule != "conflict" })
		if got := lines(l); !strings.Contains(got, x.want) || len(conflicts) != x.conflicts {
			t.Errorf("%d groups: %d conflicts, want %d and %q in\n%.3000s", x.n, len(conflicts), x.conflicts, x.want, got)
		}
		if n := len(f.Endpoints["leaf2"].Groups); n != min(x.n, maxGroups) {
			t.Errorf("%d groups: leaf2 is in %d", x.n, n)
		}
	}
}

// TestParseAddress: an address on a command line is what it is in an inventory.
func TestParseAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "10.0.0.1 0", "10.0.0.1:22": "10.0.0.1 22", "2001:DB8::1": "2001:db8::1 0", "[2001:db8::1]": "2001:db8::1 0",
		"[2001:db8::1]:8080": "2001:db8::1 8080", "leaf1.lab.example": "leaf1.lab.example 0", "leaf1:22": "leaf1 22",
		"leaf1:70000": `"70000" is not a port`, "leaf1:": `"" is not a port`, "leaf1:0": `"0" is not a port`, "leaf1:x": `"x" is not a port`,
		"[::1]:": `"" is not a port`, "": `"" is not an IP address or host name`, ".lab.example": `".lab.example" is not an IP address or host name`,
		"10.0.0.300": `"10.0.0.300" is not an IP address or host name`, "-oProxyCommand=x": `"-oProxyCommand=x" is not an IP address or host name`,
		"me:secret@leaf1": `is not an IP address or host name`, "[leaf1": `"[leaf1" is not an IP address or host name`,
	} {
		host, port, err := ParseAddress(in)
		got := fmt.Sprint(host, " ", port)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.HasSuffix(got, want)) {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// FuzzVia: jump hosts that are accepted have one canonical form, which reads back as the same hops, none of them empty.
func FuzzVia(f *testing.F) {
	for _, s := range []string{"jump", "ops@jump:2222", "a,b , c@[::1]:22", "[::1]", "::1", "1.2.3.4:22", "me:pw@jump", "@", "jump:0", "a,,b", ",", "[jump]:22", "a@b@c", "jump:", "[::1]:", "[fe80::1%eth0]:22", "[::1%%% O\x1a+]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, p := parseVia(s)
		if p != nil {
			return
		}
		again, p := parseVia(c)
		if p != nil || again != c {
			t.Fatalf("%q is %q, which is %q (%v)", s, c, again, p)
		}
		hops := Hops(c)
		if len(hops) != strings.Count(c, ",")+1 {
			t.Fatalf("%q has hops %v", c, hops)
		}
		for _, h := range hops {
			if strings.HasSuffix(h.Address, ":") {
				t.Fatalf("%q has hop %+v without the port that it announces", c, h)
			}
			if h.Address == "" || strings.ContainsAny(h.User+h.Address, " ,@\"'\x00\n") {
				t.Fatalf("%q has hop %+v", c, h)
			}
		}
	})
}
