package check

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
)

// anonymised is the configuration in an anonymised capture of one device.
func anonymised(t *testing.T, os, raw string, heard ...drivers.Neighbour) string {
	t.Helper()
	d := &Diagnosis{Name: os + ":10.0.0.9", OS: os, Address: "10.0.0.9:22"}
	b, m, err := Capture{Anonymise: true}.Bytes([]Evidence{{Diagnosis: d, OS: os, Raw: []byte(raw), Neighbours: heard}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range unpack(t, b) {
		if strings.Contains(name, "running-config") {
			return body
		}
	}
	t.Fatalf("no configuration: %+v", m)
	return ""
}

// What a configuration says by its own words it says still when names are taken out of it, whatever these names are.
func TestAnonymiseKeepsWords(t *testing.T) {
	heard := []drivers.Neighbour{
		{Port: "Ethernet8", System: "spine1", PeerPort: "etp1", PeerDescr: "Ethernet0"}, // SONiC sends its front panel's name, and its own
		{Port: "Ethernet16", System: "Ethernet24", PeerPort: "swp1", PeerDescr: "BUFFER_PG"},
		{Port: "Ethernet24", System: "server", PeerPort: "eth0", PeerDescr: "lossless"},
		{Port: "Ethernet32", System: "gpu7", PeerPort: "eth0", PeerDescr: "mtu 9100"},
	}
	got := anonymised(t, "sonic", `{
 "PORT": {"Ethernet0": {"description": "drop", "mtu": "9100"}, "Ethernet8": {"description": "to spine1"}, "Ethernet24": {"mtu": "9100"}},
 "BUFFER_PG": {"Ethernet0|3-4": {"profile": "lossless"}},
 "PFC_WD": {"Ethernet0": {"action": "drop"}},
 "BGP_NEIGHBOR": {"10.1.1.1": {"name": "spine1"}},
 "USER": {"jdoe": {"shell": "x"}},
 "SYSLOG_SERVER": {"log1.corp.example": {"server": "x"}}
}`, heard...)
	for _, want := range []string{`"Ethernet0": {`, `"Ethernet24": {`, `"BUFFER_PG"`, `"Ethernet0|3-4"`, `"profile": "lossless"`, `"action": "drop"`, `"server": "x"`} {
		if !strings.Contains(got, want) {
			t.Errorf("sonic: no %s in\n%s", want, got)
		}
	}
	for _, private := range []string{"spine1", "jdoe", "log1", "corp.example"} {
		if strings.Contains(got, private) {
			t.Errorf("sonic: %s in\n%s", private, got)
		}
	}
	got = anonymised(t, "eos", `hostname trust
username admin privilege 15
ntp server vrf MGMT ntp1.corp.example prefer
logging vrf MGMT host log1
radius-server host rad.corp.example vrf MGMT
tacacs-server host tac7
ip host gpu7 10.9.9.9
snmp-server host trap3 version 2c
aaa group server radius R
   server aaa4 vrf MGMT
router bgp 65001
   neighbor 10.1.1.1 description to the bank
interface Ethernet8
   description trust
   mtu 9100
   qos trust dscp
interface Ethernet24
   description qos trust dscp
   no switchport
`, heard...)
	for _, want := range []string{
		"interface Ethernet8\n", "interface Ethernet24\n", "   mtu 9100\n   qos trust dscp\n", "ntp server vrf MGMT device-", " prefer\n", "logging vrf MGMT host device-",
		"radius-server host device-", "aaa group server radius R\n   server device-", "neighbor 198.18.0.", "username user-1 privilege 15\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("eos: no %q in\n%s", want, got)
		}
	}
	for _, private := range []string{"ntp1", "log1", "host rad", "tac7", "gpu7", "trap3", "aaa4", "corp.example", "the bank"} {
		if strings.Contains(got, private) {
			t.Errorf("eos: %s in\n%s", private, got)
		}
	}
}

// The keys of our own files stay, whatever a description says.
func TestAnonymiseKeepsKeys(t *testing.T) {
	d := &Diagnosis{Name: "eos:10.0.0.9", OS: "eos", Address: "10.0.0.9:22"}
	d.add(Reach, "ping", OK, "section", "")
	b, _, err := Capture{Anonymise: true}.Bytes([]Evidence{{Diagnosis: d, OS: "eos", Raw: []byte("interface Ethernet1\n   description section\n")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range unpack(t, b) {
		if strings.HasSuffix(name, "doctor.json") && !strings.Contains(body, `"section": "reach"`) {
			t.Error(body)
		}
	}
}

// Commands to a shell and keys in fields that nobody knows are taken out, and what such a command names besides stays.
func TestScrubCommandsAndKeys(t *testing.T) {
	const eos = `event-handler a
   action bash curl -u admin:Sup3rS3cret9 https://example.net/?if=Ethernet1/1 Ethernet1/1 2001:db8::7 10.0.0.0/24
daemon X
   exec /opt/agent --login CANARY-1234
alias up bash sshpass -p CANARYpass9 ssh 10.0.0.1
schedule s interval 5 max-log-files 1 command bash echo CANARYcmd77
interface Ethernet1/1
   description see bash and exec
   ipv6 address 2001:db8::7/64
`
	s := newScrubber()
	got := s.everywhere().Replace(s.eos(eos))
	for _, w := range []string{"Sup3rS3cret9", "CANARY"} {
		if strings.Contains(got, w) {
			t.Errorf("%s in\n%s", w, got)
		}
	}
	for _, w := range []string{"interface Ethernet1/1\n", "description see bash and exec\n", "ipv6 address 2001:db8::7/64\n", "   action bash " + scrubbed, "   exec " + scrubbed} {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
	stay := 0
	for i := range 10_000 {
		sum := sha256.Sum256(fmt.Append(nil, i))
		if key := base64.StdEncoding.EncodeToString(sum[:]); !isRandom(key) || strings.Contains(newScrubber().shaped("x", "blob "+key+" end"), key[:20]) {
			stay++
		}
	}
	if stay > 20 { // those without a digit
		t.Errorf("%d of 10,000 keys stay", stay)
	}
	for _, w := range []string{
		"curl -u bob:Sup3rS3cret9 x", "curl --user bob:Sup3rS3cret9", "-H 'Authorization: Bearer Sup3rS3cret9'", "-H 'Authorization: Sup3rS3cret9'",
	} {
		if out := newScrubber().shaped("x", w); strings.Contains(out, "Sup3rS3cret9") {
			t.Errorf("%s became %s", w, out)
		}
	}
	for _, w := range []string{"/usr/share/sonic/device/x86_64-nvidia_sn5600-r0/plugins/led_control.py", "/usr/share/sonic/device/x86_64/Mellanox/pg_profile_lookup.ini"} {
		if out := newScrubber().shaped("x", w); out != w {
			t.Errorf("%s became %s", w, out)
		}
	}
}

// Names and secrets are looked for in one pass: the work grows with the text, and not with the text times the names.
func TestPhrases(t *testing.T) {
	p := &phrases{}
	for _, n := range []string{"to spine1", "to", "spine1", "(row 7)", "a.b", "x-y"} {
		p.add(n, "<"+n+">", n)
	}
	for in, want := range map[string]string{
		"to spine1, spine1: spine10 to-spine1": "<to spine1>, <spine1>: spine10 to-spine1",
		"(row 7) (row 7)x z(row 7)":            "<(row 7)> (row 7)x z(row 7)",
		"a.b a.bc xa.b a.b.c x-y x-y_":         "<a.b> a.bc xa.b <a.b>.c <x-y> x-y_",
		"é to é":                               "é <to> é",
		"to":                                   "<to>",
		"":                                     "",
	} {
		if got := p.replace(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	var all []string
	p.each("to spine1", func(n string) { all = append(all, n) })
	if fmt.Sprint(all) != "[to to spine1 spine1]" {
		t.Errorf("%q", all)
	}
}

// BenchmarkAnonymise is a switch with many descriptions, once and twice as many.
func BenchmarkAnonymise(b *testing.B) {
	for _, n := range []int{3200, 6400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var raw strings.Builder
			for i := range n {
				fmt.Fprintf(&raw, "interface Ethernet%d\n   description to host %d of row %d\n", i, i, i%7)
				fmt.Fprintf(&raw, "username u%d secret 0 Pa55word%d\n", i, i)
			}
			d := &Diagnosis{Name: "eos:10.0.0.9", OS: "eos", Address: "10.0.0.9:22"}
			for b.Loop() {
				if _, _, err := (Capture{Anonymise: true}).Bytes([]Evidence{{Diagnosis: d, OS: "eos", Raw: []byte(raw.String())}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
