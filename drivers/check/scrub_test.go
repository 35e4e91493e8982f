package check

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// secretsEOS are lines of a switch with a secret of each kind that a running configuration may hold: CANARYnn.
const secretsEOS = `username admin privilege 15 role network-admin secret sha512 $6$CANARY01$abcdefABCDEF0123
username ops secret 0 CANARY02pw
username ops ssh-key ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICANARY03abcdefghij ops@desk
enable secret sha512 $6$salt$CANARY04
enable password 0 CANARY05pw
aaa root secret sha512 $6$x$CANARY06
radius-server key 7 CANARY07AA
radius-server host 10.0.0.5 key 7 CANARY08AA
tacacs-server host 10.0.0.6 vrf MGMT key 7 CANARY09AA
snmp-server community CANARY10ro ro
snmp-server host 10.0.0.7 version 2c CANARY11host
snmp-server user mon netmon v3 auth sha CANARY12auth priv aes CANARY13priv
snmp-server user mon netmon v3 localized f5717f001c730000 auth sha CANARY14auth priv aes CANARY15priv
ntp authentication-key 1 md5 7 CANARY16ntp
router bgp 65001
   neighbor 10.1.1.1 password 7 CANARY17bgp
   neighbor SPINES password CANARY18bgp
router ospf 1
   area 0 authentication
interface Vlan10
   ip ospf authentication-key 7 CANARY19ospf
   ip ospf message-digest-key 1 md5 7 CANARY20ospf
   isis authentication key 7 CANARY21isis
   vrrp 1 peer authentication text CANARY22vrrp
   vrrp 2 peer authentication ietf-md5 key-string 7 CANARY23vrrp
mac security
   profile P
      key 0123456789abcdef 7 CANARY24cak
   shared-key CANARY25shared
daemon TerminAttr
   exec /usr/bin/TerminAttr -cvaddr=10.0.0.9:9910 -cvauth=key,CANARY26cv -taillogs
   exec /usr/bin/TerminAttr -ingestauth key,CANARY27in
alias login bash curl -u admin:x https://bob:CANARY28url@example.net/
alias token bash echo token=CANARY29tok
event-handler h
   action bash
export PASS=CANARY30free
EOF
banner login
The password is CANARY31banner
EOF
email
   auth username mail password 7 CANARY32mail
ip security
   sa policy s
   pre-shared-key CANARY33psk
management security
   ssl profile x
      certificate a.pem key CANARY34.key
interface Ethernet49/1
   description to CANARY10ro by eyJhbGciOiJIUzI1.CANARY35.sig
`

// secretsSONiC are the same of a ConfigDB.
const secretsSONiC = `{
 "TACPLUS": {"global": {"passkey": "CANARY51tac", "auth_type": "pap"}},
 "TACPLUS_SERVER": {"10.0.0.6": {"passkey": "CANARY52tac", "priority": "1"}},
 "RADIUS": {"global": {"passkey": "CANARY53rad"}},
 "RADIUS_SERVER": {"10.0.0.5": {"passkey": "CANARY54rad"}},
 "LDAP": {"global": {"bind_password": "CANARY55ldap"}},
 "SNMP_COMMUNITY": {"CANARY56comm": {"TYPE": "RO"}},
 "SNMP": {"LOCATION": {"Location": "dc"}},
 "SNMP_USER": {"mon": {"SNMP_USER_AUTH_PASSWORD": "CANARY57a", "SNMP_USER_ENCRYPTION_PASSWORD": "CANARY58e", "SNMP_USER_PERMISSION": "RO"}},
 "BGP_NEIGHBOR": {"10.1.1.1": {"auth_password": "CANARY59bgp", "asn": "65000"}},
 "BGP_PEER_RANGE": {"r": {"password": "CANARY60bgp"}},
 "MACSEC_PROFILE": {"p": {"primary_cak": "CANARY61cak", "primary_ckn": "CANARY62ckn", "fallback_cak": "CANARY63cak", "priority": "64"}},
 "NTP_KEY": {"1": {"type": "md5", "value": "CANARY64ntp"}},
 "USER": {"admin": {"password_hash": "$6$CANARY65$aaaaaaaaaa", "ssh_key": "ssh-rsa AAAAB3NzaC1yc2EAAAADCANARY66abcdefgh admin@x"}},
 "GNMI": {"certs": {"server_key": "/etc/sonic/CANARY67.key", "server_crt": "/etc/sonic/t.cer"}},
 "X509": {"c": {"text": "-----BEGIN PRIVATE KEY-----\nCANARY68\n-----END PRIVATE KEY-----\n"}},
 "SYSLOG_SERVER": {"10.0.0.8": {"token": "CANARY69tok"}},
 "LIST": {"l": {"secrets": ["CANARY70one", "CANARY71two"]}},
 "KUBERNETES_MASTER": {"SERVER": {"url": "https://bob:CANARY72url@10.0.0.3/"}},
 "NOTE": {"n": {"text": "see CANARY52tac, the key of 10.0.0.6"}},
 "RESTAPI": {"config": {"shared_key": 123456789012345678}}
}`

// wanted is what a switch of examples/mixed is asked for.
func wanted(t *testing.T, device string) (*render.Dialect, render.Config) {
	t.Helper()
	f, l := model.Load(os.DirFS("../../examples"), "mixed/fabric.yaml", "mixed/site.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, _ := intent.Resolve(f)
	d := n.Device(device)
	dialect := render.ByOS(d.OS())
	c, _ := dialect.Render(*d, render.Facts{Hostname: device})
	return dialect, c
}

// A scrubbed configuration holds no secret of any kind, says where each one was, and means the same to the dialect.
func TestScrubTakesEverySecret(t *testing.T) {
	for _, x := range []struct {
		device string
		secret string
	}{{"leaf1", secretsEOS}, {"spine1", secretsSONiC}} {
		dialect, want := wanted(t, x.device)
		text := []byte(x.secret + string(dialect.Text(want)) + "end\n")
		if dialect.OS == "sonic" {
			var a, b map[string]any
			if err := json.Unmarshal([]byte(x.secret), &a); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(dialect.Text(want), &b); err != nil {
				t.Fatal(err)
			}
			for k, v := range b {
				a[k] = v
			}
			text, _ = json.Marshal(a)
		}
		s := newScrubber()
		out, err := s.text(dialect.OS, text)
		if err != nil {
			t.Fatal(err)
		}
		clean := s.everywhere().Replace(string(out))
		for l := range strings.Lines(clean) {
			if strings.Contains(l, "CANARY") {
				t.Errorf("%s: a secret is left in %q", dialect.OS, l)
			}
		}
		for _, r := range s.removed {
			if strings.Contains(fmt.Sprint(r), "CANARY") || r.Where == "" || r.What == "" {
				t.Errorf("%s: the list of what was taken out says %+v", dialect.OS, r)
			}
		}
		n := strings.Count(x.secret, "CANARY")
		if len(s.removed) < n/2 {
			t.Errorf("%s: %d removals are listed, of %d secrets", dialect.OS, len(s.removed), n)
		}
		got, l := dialect.Parse([]byte(clean))
		if l.HasErrors() {
			t.Errorf("%s: %v", dialect.OS, l)
		}
		if d := cmp.Diff(want, got.Filter(func(k render.Key) bool { _, ok := want.Find(k); return ok }), cmp.Comparer(func(a, b *model.Origin) bool { return true })); d != "" {
			t.Errorf("%s: (-want +got)\n%s", dialect.OS, d)
		}
	}
}

// A text that is not what the system writes is not passed on.
func TestScrubRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{"", "password hunter2", "[1]", `{"a": `, "null"} {
		if out, err := newScrubber().text("sonic", []byte(text)); err == nil && strings.Contains(string(out), "hunter2") {
			t.Errorf("%q became %q", text, out)
		}
	}
}

// FuzzScrub: hostile text gives no panic, keeps no secret line, and what is scrubbed stays as it is when scrubbed again.
func FuzzScrub(f *testing.F) {
	f.Add("eos", secretsEOS)
	f.Add("sonic", secretsSONiC)
	f.Add("linux", "link rdma0 mtu 9000\n\nfile /etc/nccl.conf\nNCCL_TOKEN=x1234567\n")
	f.Fuzz(func(t *testing.T, os, text string) {
		out, err := newScrubber().text(os, []byte(text))
		if err != nil {
			return
		}
		again, err := newScrubber().text(os, out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if os == "eos" && !bytes.Equal(out, again) {
			t.Errorf("%q became %q", out, again)
		}
	})
}

// evidence is a device with secrets, names and addresses everywhere.
func evidence(t *testing.T, device, raw string) Evidence {
	t.Helper()
	dialect, _ := wanted(t, device)
	d := &Diagnosis{Name: device, OS: dialect.OS, Address: "10.0.0.11:22", Facts: &render.Facts{Hostname: device + ".fabric.example.net", Serial: "JPE7654321"}}
	d.add(Privileges, "begin", OK, "began session fctl-doctor-0a1b2c3d on 10.0.0.11; $6$CANARY80$hash1234", "")
	return Evidence{Diagnosis: d, OS: dialect.OS, Raw: []byte(raw), Neighbours: []drivers.Neighbour{
		{Port: "Ethernet1/1", System: "core9.fabric.example.net", Chassis: "00:1c:73:aa:bb:cc", PeerPort: "Ethernet5", PeerDescr: "to row seven"},
	}}
}

// A capture is the same each time, holds no secret, and with --anonymise no name, address or serial number; what was
// equal stays equal.
func TestCapture(t *testing.T) {
	const eos = secretsEOS + "hostname leaf1\ninterface Ethernet1/1\n   description to core9 in row seven\n   ip address 10.0.0.11/24\nntp server 10.0.0.12\nsnmp-server contact Jane Roe\nmac address-table static 001c.73aa.bbcc vlan 1\nipv6 route ::/0 fd00::1\nend\n"
	named := func() []Evidence {
		es := []Evidence{evidence(t, "leaf1", eos), evidence(t, "spine1", secretsSONiC), evidence(t, "leaf1", "")}
		es[2].Diagnosis.Name, es[2].Diagnosis.Address = "eos:[fd00::1]:22", "[fd00::1]:22" // named by its address
		return es
	}
	es := named()
	for _, anonymise := range []bool{false, true} {
		c := Capture{Tool: "test", Anonymise: anonymise}
		b, m, err := c.Bytes(es)
		if err != nil {
			t.Fatal(err)
		}
		again, _, _ := c.Bytes(named())
		if !bytes.Equal(b, again) {
			t.Error("the same evidence gives other bytes")
		}
		files := unpack(t, b)
		text := ""
		for name, body := range files {
			text += name + "\n" + body
		}
		for _, w := range []string{"CANARY", "0a1b2c3d"} {
			if strings.Contains(text, w) {
				t.Errorf("%s is in the capture", w)
			}
		}
		if len(m.Devices) != 3 || len(m.Devices[0].Scrubbed) < 20 {
			t.Errorf("%+v", m)
		}
		private := []string{"leaf1", "spine1", "core9", "example.net", "JPE7654321", "10.0.0.11", "row seven", "Jane Roe", "73aa", "73:aa", "fd00::1"}
		for _, w := range private {
			if got := strings.Contains(text, w); got == anonymise {
				t.Errorf("anonymise %v: %q in the capture: %v", anonymise, w, got)
			}
		}
		if !anonymise {
			continue
		}
		conf := ""
		for name, body := range files {
			if name == "device-1/running-config.txt" {
				conf = body
			}
		}
		for _, w := range []string{"hostname device-1", "ip address 198.18.0.", "mac address-table static 0200.0000.0001", "2001:db8::1", "::/0"} {
			if !strings.Contains(conf, w) {
				t.Errorf("%q is not in\n%s", w, conf)
			}
		}
	}
}

// An anonymised configuration means the same to the dialect, apart from the names that were replaced.
func TestAnonymisedParses(t *testing.T) {
	for _, device := range []string{"leaf1", "spine1"} {
		dialect, want := wanted(t, device)
		e := evidence(t, device, string(dialect.Text(want)))
		b, _, err := Capture{Anonymise: true}.Bytes([]Evidence{e})
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range unpack(t, b) {
			if !strings.Contains(name, "running-config") {
				continue
			}
			got, l := dialect.Parse([]byte(body))
			if l.HasErrors() || len(got) != len(want) {
				t.Errorf("%s: %d settings of %d, %v", device, len(got), len(want), l)
			}
		}
	}
}

// A capture is new, whole, and its owner's alone.
func TestWriteNew(t *testing.T) {
	path := t.TempDir() + "/c.tar.gz"
	if err := WriteNew(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(path, []byte("two")); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("%v", err)
	}
	b, err := os.ReadFile(path)
	info, err2 := os.Stat(path)
	if err != nil || err2 != nil || string(b) != "one" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v %v", b, err, err2, info)
	}
	if entries, _ := os.ReadDir(t.TempDir()); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// unpack is the files of a capture by name.
func unpack(t *testing.T, b []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil || h.Mode != 0o600 || !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Fatalf("%s: %v, %+v", h.Name, err, h)
		}
		files[h.Name] = string(body)
	}
}
