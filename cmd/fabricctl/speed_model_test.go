package main

import (
	"bytes"
	"fmt"
	"strings"
)

// chassis is a platform with as many ports as it takes.
const chassis = `apiVersion: fabricctl/v1
kind: Profile
metadata: {name: sonic/chassis}
platform: {iface: Ethernet%d, iface_step: 8, max_mtu: 9216B, source: made up, confidence: low}
---
`

// writtenOut is a fabric with every device, port, link and address listed: 16 spines, so many leaves, and 32 hosts with
// one NIC each below each leaf.
func writtenOut(leaves int) []byte {
	const spines, perLeaf = 16, 32
	var b bytes.Buffer
	b.WriteString(chassis + `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: large}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
topology:
  devices:
`)
	device := func(name, role, platform string) {
		fmt.Fprintf(&b, "    - name: %s\n      role: %s\n      platform: %s\n      ports:\n", name, role, platform)
	}
	port := func(name string, i int) {
		fmt.Fprintf(&b, "        - {name: %s, iface: Ethernet%d, speed: 400Gbps}\n", name, i*8)
	}
	for s := range spines {
		device(fmt.Sprintf("spine%d", s+1), "spine", "sonic/chassis")
		for l := range leaves {
			port(fmt.Sprintf("downlink-%d", l+1), l)
		}
	}
	for l := range leaves {
		device(fmt.Sprintf("leaf%d", l+1), "leaf", "sonic/sn5600")
		for h := range perLeaf {
			port(fmt.Sprintf("downlink-%d", h+1), h)
		}
		for s := range spines {
			port(fmt.Sprintf("uplink-%d", s+1), perLeaf+s)
		}
	}
	for h := range leaves * perLeaf {
		device(fmt.Sprintf("host%d", h+1), "host", "linux/generic")
		b.WriteString("        - {name: nic-1, iface: rdma0, speed: 400Gbps}\n")
	}
	b.WriteString("  links:\n    list:\n")
	for l := range leaves {
		for h := range perLeaf {
			fmt.Fprintf(&b, "      - {a: \"leaf%d:downlink-%d\", b: \"host%d:nic-1\", speed: 400Gbps, cable: 5m}\n", l+1, h+1, l*perLeaf+h+1)
		}
		for s := range spines {
			fmt.Fprintf(&b, "      - {a: \"leaf%d:uplink-%d\", b: \"spine%d:downlink-%d\", speed: 400Gbps, cable: 40m}\n", l+1, s+1, s+1, l+1)
		}
	}
	b.WriteString(`---
apiVersion: fabricctl/v1
kind: Inventory
defaults:
  gnmi: {port: 8080, tls: {ca: file:ca.pem}, username: env:FABRIC_USER, password: env:FABRIC_PASSWORD}
  ssh: {username: env:FABRIC_USER, password: env:FABRIC_PASSWORD, known_hosts: file:known_hosts}
devices:
`)
	for s := range spines {
		fmt.Fprintf(&b, "  spine%d: {address: 10.0.0.%d, hostname: spine%d}\n", s+1, s+1, s+1)
	}
	for l := range leaves {
		fmt.Fprintf(&b, "  leaf%d: {address: 10.1.%d.%d, hostname: leaf%d}\n", l+1, l/250, l%250+1, l+1)
	}
	for h := range leaves * perLeaf {
		fmt.Fprintf(&b, "  host%d: {address: 10.%d.%d.%d, serial: SN%08d}\n", h+1, 2+h/62500, h/250%250, h%250+1, h+1)
	}
	return b.Bytes()
}

// manySwitches is a model of 200 SONiC switches: four times 48 leaves below 2 spines. A leaf has 2 uplinks, and 16 ports
// for hosts that the model does not know.
func manySwitches(kmin string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: many}
mtu: {fabric: 9214B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: %s, kmax: 3200KB, pmax: 20%%}, bandwidth: 60%%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own}
topology:
  devices:
`, kmin)
	for l := range 192 {
		fmt.Fprintf(&b, "    - name: leaf%d\n      role: leaf\n      platform: sonic/sn5600\n      ports:\n", l+1)
		for p := range 16 {
			fmt.Fprintf(&b, "        - {name: downlink-%d, iface: Ethernet%d, role: host, speed: 400Gbps}\n", p+1, p*8)
		}
		for p := range 2 {
			fmt.Fprintf(&b, "        - {name: uplink-%d, iface: Ethernet%d, speed: 400Gbps}\n", p+1, (16+p)*8)
		}
	}
	for s := range 8 {
		fmt.Fprintf(&b, "    - name: spine%d\n      role: spine\n      platform: sonic/sn5600\n      ports:\n", s+1)
		for p := range 48 {
			fmt.Fprintf(&b, "        - {name: downlink-%d, iface: Ethernet%d, speed: 400Gbps}\n", p+1, p*8)
		}
	}
	b.WriteString("  links:\n    list:\n")
	for l := range 192 {
		for s := range 2 {
			fmt.Fprintf(&b, "      - {a: \"leaf%d:uplink-%d\", b: \"spine%d:downlink-%d\", speed: 400Gbps, cable: 40m}\n", l+1, s+1, l/48*2+s+1, l%48+1)
		}
	}
	return b.String()
}
