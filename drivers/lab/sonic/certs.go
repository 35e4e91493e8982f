package sonic

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// certificates are the switch's authority and what it can show.
type certificates struct {
	ca     []byte // PEM
	server map[Certificate]*tls.Certificate
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(name string) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: year(2020), NotAfter: year(2100),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key}, err
}

func (a authority) issue(until time.Time, names []string, ips []net.IP) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "emulated SONiC"},
		NotBefore: year(2020), NotAfter: until, DNSNames: names, IPAddresses: ips,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// newCertificates makes an authority and one certificate of each kind. Their times are fixed, so that no clock is
// asked.
func newCertificates() (certificates, error) {
	ours, err := newAuthority("fabricctl lab")
	if err != nil {
		return certificates{}, err
	}
	other, err := newAuthority("somebody else")
	if err != nil {
		return certificates{}, err
	}
	here := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	c := certificates{
		ca:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw}),
		server: map[Certificate]*tls.Certificate{},
	}
	for _, k := range []struct {
		kind  Certificate
		by    authority
		until time.Time
		names []string
		ips   []net.IP
	}{
		{Proper, ours, year(2100), []string{"localhost"}, here},
		{Stranger, other, year(2100), []string{"localhost"}, here},
		{Expired, ours, year(2021), []string{"localhost"}, here},
		{WrongName, ours, year(2100), []string{"elsewhere.example"}, nil},
	} {
		if c.server[k.kind], err = k.by.issue(k.until, k.names, k.ips); err != nil {
			return certificates{}, err
		}
	}
	return c, nil
}

func year(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
