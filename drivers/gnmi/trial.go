package gnmi

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

var _ drivers.Trier = (*Device)(nil)

// nowhere is a namespace that no switch has. sonic-gnmi finds the database of a Set before it does anything with it,
// and refuses a Set for a namespace without one; had it one, the row that the Set deletes would not be there.
const nowhere = "fabricctl-doctor"

// Try reads CONFIG_DB and sends one Set that cannot reach a configuration: it deletes a row that does not exist in a
// namespace that does not exist. The answer tells a server that was started without writing, or an account that it
// does not let in, from one that looked for the namespace. A role is not asked for its say: sonic-gnmi judges it after
// the database is found, so a Set that reaches the judgement would be carried out. What CONFIG_DB says of the role of
// a client certificate is read instead. With Config.ReadOnly the Set is not sent.
func (d *Device) Try(ctx context.Context) ([]drivers.Trial, error) {
	read := drivers.Trial{Operation: "read CONFIG_DB", For: "plan", Verdict: drivers.Allowed, How: "a Get of the whole database"}
	live, err := d.Read(ctx)
	if err != nil {
		return nil, err
	}
	set := drivers.Trial{
		Operation: "reach the server's Set", For: "apply", Verdict: drivers.Allowed,
		How: "sent a Set that deletes a row which does not exist in a namespace that does not exist: it is refused before any configuration is looked at",
	}
	if d.config.ReadOnly {
		set.Verdict, set.How = drivers.NotTried, "it was not to be written to, and only a Set shows it"
		return []drivers.Trial{read, set, d.role(live)}, nil
	}
	p := path("FABRICCTL_DOCTOR", "nothing")
	p.Elem[1].Name = nowhere
	_, err = d.target.Set(d.login(ctx), &gpb.SetRequest{Delete: []*gpb.Path{p}})
	switch st := status.Convert(err); {
	case ctx.Err() != nil || st.Code() == codes.Unavailable || st.Code() == codes.DeadlineExceeded:
		return []drivers.Trial{read}, d.failed(ctx, "set", err)
	case st.Code() == codes.Unimplemented, st.Code() == codes.Unauthenticated, st.Code() == codes.PermissionDenied:
		set.Verdict, set.Answer = drivers.Refused, st.Message()
	}
	return []drivers.Trial{read, set, d.role(live)}, nil
}

// role is what CONFIG_DB says of the role of our client certificate (sonic-gnmi's -config_table_name, by default
// GNMI_CLIENT_CERT).
func (d *Device) role(live render.Config) drivers.Trial {
	const table = "GNMI_CLIENT_CERT"
	t := drivers.Trial{Operation: "change CONFIG_DB", For: "apply", Verdict: drivers.NotTried}
	name := commonName(d.config.TLS.Cert)
	text := live.Get(table, name, "role")
	if text == "" {
		text = live.Get(table, name, "role@") // a list, as redis names it
	}
	if name == "" || text == "" {
		t.How = "a Set that would ask for it would be carried out and saved"
		return t
	}
	t.How = fmt.Sprintf("read the role of %s in %s: %s", name, table, text)
	for role := range strings.SplitSeq(text, ",") {
		switch role = strings.TrimSpace(role); {
		case strings.HasSuffix(role, "readwrite"):
			t.Verdict = drivers.Allowed
			return t
		case strings.HasSuffix(role, "readonly") || strings.HasSuffix(role, "noaccess"):
			t.Verdict = drivers.Refused
		}
	}
	return t
}

// commonName is the name in a certificate in PEM form, "" when there is none.
func commonName(cert []byte) string {
	block, _ := pem.Decode(cert)
	if block == nil {
		return ""
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return c.Subject.CommonName
}

// Raw is CONFIG_DB as the switch sends it.
func (d *Device) Raw(ctx context.Context) ([]byte, error) {
	const op = "get CONFIG_DB"
	if err := d.open(op); err != nil {
		return nil, err
	}
	text, err := d.get(ctx, path())
	if err != nil {
		return nil, d.failed(ctx, op, err)
	}
	return append(text, '\n'), nil
}
