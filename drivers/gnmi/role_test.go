package gnmi

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// TestRole: what CONFIG_DB says of the role of our certificate decides without a Set; where it says nothing, or there
// is no certificate, nobody knows.
func TestRole(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fabric"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for _, x := range []struct {
		cert        []byte
		name, field string
		value       string
		want        drivers.Permission
	}{
		{cert, "fabric", "role", "gnmi_config_db_readwrite", drivers.Allowed},
		{cert, "fabric", "role@", "gnmi_readonly,gnmi_config_db_readwrite", drivers.Allowed},
		{cert, "fabric", "role", "readonly", drivers.Refused},
		{cert, "fabric", "role", "gnmi_config_db_noaccess", drivers.Refused},
		{cert, "fabric", "role", "something new", drivers.NotTried},
		{cert, "other", "role", "readwrite", drivers.NotTried},
		{nil, "", "role", "readwrite", drivers.NotTried},
		{[]byte("no PEM"), "", "role", "readwrite", drivers.NotTried},
	} {
		d := &Device{config: Config{TLS: TLS{Cert: x.cert}}}
		got := d.role(render.Config{{Key: render.Key{Scope: "GNMI_CLIENT_CERT", Object: x.name, Field: x.field}, Value: x.value}})
		if got.Verdict != x.want || got.How == "" {
			t.Errorf("%s %s: %s (%s), want %s", x.name, x.value, got.Verdict, got.How, x.want)
		}
	}
}
