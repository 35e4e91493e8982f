package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
)

// fleet is a fabric with a host of each family of NICs that can be managed.
const fleet = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: fleet}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: sonic/sn5600}
  hosts: {per_leaf: 4, nic: connectx-7, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 100Gbps, cable: 40m, parallel: 4}
    host_leaf: {speed: 100Gbps, cable: 5m}
  devices:
    - {name: host2, ports: [{name: nic-1, nic: e810}]}
    - {name: host3, ports: [{name: nic-1, nic: bcm57508}]}
    - {name: host4, ports: [{name: nic-1, nic: hns3}]}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 200KB, kmax: 800KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 2, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
nccl: {class: training, timeout: 20, retry_count: 7}
manage: {switches: own, hosts: own}
`

// hosts are the emulated hosts of a bench, by name.
func (b *bench) hosts() map[string]*host.Host {
	all := map[string]*host.Host{}
	for _, d := range b.net.Devices {
		if h, ok := b.lab.Box(d.Name).(*host.Host); ok {
			all[d.Name] = h
		}
	}
	return all
}

// held is what each host holds.
func (b *bench) held() map[string]string {
	all := map[string]string{}
	for name, h := range b.hosts() {
		all[name] = h.Held()
	}
	return all
}

// A driver goes wrong while an object of each family of NICs is set: it acknowledges and does nothing, is busy, or answers
// neither, and that for all of them at once. A host ends with all of the change or none of it, says which, and the run can be
// taken back. Every pair of a way and an object is played with the hosts alone, in package hostssh.
func TestFleetGoesWrong(t *testing.T) {
	dcb := []string{"app", "ets", "pfc"}
	for _, tt := range []struct {
		how    host.Wrong
		scopes []string
		fail   []string // hosts on which something in scope is set
	}{
		{host.Lies, []string{"flag"}, []string{"host2"}},
		{host.Lies, []string{"pause"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Lies, []string{"link"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Lies, []string{"app"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Lies, []string{"ets"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Lies, []string{"pfc"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Lies, []string{"cc"}, []string{"host1", "host3"}},
		{host.Lies, []string{"roce"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Busy, []string{"pfc"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Busy, []string{"roce"}, []string{"host1", "host2", "host3", "host4"}},
		{host.Positive, dcb, nil},
	} {
		t.Run(fmt.Sprintf("%s %s", tt.scopes, tt.how), func(t *testing.T) {
			b := newUsedBench(t, fleet)
			before := b.held()
			b.wrong(t, tt.how, tt.scopes)
			code := exitOK
			if tt.fail != nil {
				code = exitPartly
			}
			r := b.must(t, code, "apply", "--yes", "--allow-disruptive")
			says := map[host.Wrong]string{host.Lies: `applied-but-differs: "` + tt.scopes[0] + `|rdma0|`, host.Busy: "device or resource busy"}[tt.how]
			for name, held := range b.held() {
				line := regexp.MustCompile(`(?m)^` + name + ` +(\S+)(.*)$`).FindStringSubmatch(r.out)
				switch {
				case line == nil:
					t.Errorf("nothing about %s in %s", name, r.out)
				case !slices.Contains(tt.fail, name):
					if line[1] != "applied" {
						t.Error(line[0])
					}
				case line[1] != "rolled-back" && line[1] != "unchanged", !strings.Contains(line[2], says):
					t.Errorf("want %s: %s", says, line[0])
				case held != before[name]:
					t.Errorf("%s was taken back, and holds (-before +after):\n%s", name, cmp.Diff(before[name], held))
				}
			}
			b.wrong(t, host.Behaves, tt.scopes)
			b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			writes := b.writes()
			b.must(t, exitOK, "apply", "--yes")
			if b.writes() != writes {
				t.Errorf("a second apply wrote %d times", b.writes()-writes)
			}
			for _, run := range slices.Backward(b.runs(t)) {
				b.must(t, exitOK, "runs", "rollback", run.ID)
			}
			if d := cmp.Diff(before, b.held()); d != "" {
				t.Errorf("after the way back (-before +after):\n%s", d)
			}
		})
	}
}

// wrong makes all hosts go wrong in a way.
func (b *bench) wrong(t *testing.T, how host.Wrong, scopes []string) {
	t.Helper()
	for name, h := range b.hosts() {
		for _, scope := range scopes {
			if err := h.Misbehave("rdma0", scope, how); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}
