package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	gossh "golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// paused is a fabric that leaves everything to PFC: two EOS leaves below a SONiC spine, with four hosts each.
var paused = strings.NewReplacer(
	"leaves: {count: 1", "leaves: {count: 2", "per_leaf: 1", "per_leaf: 4", "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}", "ecn: off",
).Replace(trio)

// loaded is lab load as JSON.
func (b *bench) loaded(t *testing.T, workload string) lab.Loaded {
	t.Helper()
	r := b.call(t, "lab", "load", filepath.Join(b.dir, "lab"), workload, "--window", "5ms", "-o", "json")
	var out lab.Loaded
	if err := json.Unmarshal([]byte(r.out), &out); r.code != 0 || err != nil {
		t.Fatal(r, err)
	}
	return out
}

// password is that of the lab.
func (b *bench) password(t *testing.T) string {
	t.Helper()
	p, err := os.ReadFile(filepath.Join(b.dir, "lab", "password"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(p))
}

// ssh types lines into a switch with a client that has nothing of ours.
func (b *bench) ssh(t *testing.T, device string, lines ...string) string {
	t.Helper()
	s := b.lab.Box(device).(*eos.Switch)
	c, err := gossh.Dial("tcp", s.Addr(), &gossh.ClientConfig{
		User: lab.User, Auth: []gossh.AuthMethod{gossh.Password(b.password(t))}, HostKeyCallback: gossh.FixedHostKey(s.HostKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	out, err := x.CombinedOutput(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return string(out)
}

// gnmi is a connection to a SONiC switch with the stock gNMI service, and a context that logs in.
func (b *bench) gnmi(t *testing.T, device string) (gpb.GNMIClient, context.Context) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(b.dir, "lab", "ca", device+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	c, err := grpc.NewClient(b.lab.Box(device).(*sonic.Switch).Addr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return gpb.NewGNMIClient(c), metadata.AppendToOutgoingContext(t.Context(), "username", lab.User, "password", b.password(t))
}

func elems(names ...string) (p []*gpb.PathElem) {
	for _, n := range names {
		p = append(p, &gpb.PathElem{Name: n})
	}
	return p
}

// Who breaks PFC on ports of an emulated switch, with any client, sees it in the counters that the switches show and in the verdict.
func TestBreakPFCWithStockClients(t *testing.T) {
	b := newBench(t, paused)
	b.must(t, 0, "apply", "--yes", "--allow-disruptive")
	const load = "incast:7,to=host1"
	verdict := func(what string, drops bool, at string) {
		t.Helper()
		r := b.loaded(t, load).Result
		why := strings.Join(r.Why, "\n")
		if (r.Totals.Drops > 0) != drops || !strings.Contains(why, at) {
			t.Errorf("%s: %+v\n%s", what, r.Totals, why)
		}
	}

	// EOS, by SSH
	discards := func(leaf string) (n int) {
		t.Helper()
		var shown struct{ InDiscardsTotal, OutDiscardsTotal int }
		out := b.ssh(t, leaf, "enable", "show interfaces counters discards | json")
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err, out)
		}
		return shown.InDiscardsTotal + shown.OutDiscardsTotal
	}
	verdict("a good fabric", false, "no packet was dropped")
	if n := discards("leaf2"); n != 0 {
		t.Errorf("leaf2 has discarded %d packets in a good fabric", n)
	}
	if s := b.ssh(t, "leaf2", "enable", "show priority-flow-control counters | json"); !regexp.MustCompile(`"Ethernet1/1": \{\s*"rxFrames": 0,\s*"txFrames": [1-9]`).MatchString(s) {
		t.Errorf("leaf2 pauses no host: %s", s)
	}
	everywhere := func(line string) {
		t.Helper()
		lines := []string{"enable", "configure"}
		for _, p := range b.net.Device("leaf2").Ports {
			lines = append(lines, "interface "+p.Iface, line, "exit")
		}
		b.ssh(t, "leaf2", append(lines, "end")...)
	}
	everywhere("priority-flow-control priority 3 drop")
	verdict("leaf2 without PFC", true, "leaf2:Ethernet5/1 dropped")
	if discards("leaf2") == 0 {
		t.Error("leaf2 shows no discards")
	}
	everywhere("no priority-flow-control priority 3")
	was := discards("leaf2")
	verdict("repaired", false, "no packet was dropped")
	if n := discards("leaf2"); n != was {
		t.Errorf("leaf2 was repaired, and went on from %d to %d discards", was, n)
	}

	// SONiC, by gNMI
	client, ctx := b.gnmi(t, "spine1")
	ports := b.net.Device("spine1").Ports
	paused := func() (n int) {
		t.Helper()
		for _, p := range ports {
			r, err := client.Get(ctx, &gpb.GetRequest{
				Prefix: &gpb.Path{Target: "COUNTERS_DB"}, Path: []*gpb.Path{{Elem: elems("COUNTERS", p.Iface)}}, Encoding: gpb.Encoding_JSON_IETF,
			})
			if err != nil {
				t.Fatal(err)
			}
			var row map[string]string
			if err := json.Unmarshal(r.Notification[0].Update[0].Val.GetJsonIetfVal(), &row); err != nil {
				t.Fatal(err)
			}
			ns, err := strconv.Atoi(row["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"])
			if err != nil {
				t.Fatal(err, row)
			}
			n += ns
		}
		return n
	}
	before, lost := paused(), discards("leaf1")
	if before == 0 {
		t.Error("spine1 was never paused")
	}
	var off gpb.SetRequest
	for _, p := range ports {
		off.Update = append(off.Update, &gpb.Update{
			Path: &gpb.Path{Origin: "sonic-db", Elem: elems("CONFIG_DB", "localhost", "PORT_QOS_MAP", p.Iface, "pfc_enable")},
			Val:  &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(`""`)}},
		})
	}
	if _, err := client.Set(ctx, &off); err != nil {
		t.Fatal(err)
	}
	verdict("spine1 without PFC", true, "leaf1:Ethernet5/1 dropped") // what it sends while it is asked to stop
	if n := paused(); n != before {
		t.Errorf("spine1 obeys no pause, and has stood still for %d us more", n-before)
	}
	if discards("leaf1") == lost {
		t.Error("leaf1 shows no discards")
	}
}
