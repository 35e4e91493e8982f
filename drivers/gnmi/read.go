package gnmi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// Facts identifies the switch from its ConfigDB. Serial number and image version are in other databases and stay "".
// No competing owner shows in ConfigDB, so Owners is always empty here.
func (d *Device) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	live, warnings, err := d.read(ctx)
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	f := facts(live)
	f.Notes = append(f.Notes, warnings...)
	return f, caps(), nil
}

// facts is what a ConfigDB says of its switch.
func facts(live render.Config) render.Facts {
	const table, row = "DEVICE_METADATA", "localhost"
	f := render.Facts{
		Hostname: live.Get(table, row, "hostname"),
		Model:    live.Get(table, row, "hwsku"),
		Aliases:  map[string]string{},
		Notes:    []string{"serial number and image version cannot be read from CONFIG_DB"},
	}
	if v := live.Get("VERSIONS", "DATABASE", "VERSION"); v != "" {
		f.Notes = append(f.Notes, "the schema of CONFIG_DB is "+v)
	}
	if live.Get(table, row, "default_pfcwd_status") == "enable" {
		f.Notes = append(f.Notes, "default_pfcwd_status is enable: loading a minigraph starts the watchdog with times of its own")
	}
	for _, s := range live {
		if s.Key.Scope == "PORT" && s.Key.Field == "alias" && s.Value != "" {
			f.Aliases[s.Value] = s.Key.Object
		}
	}
	return f
}

// Read is the whole CONFIG_DB. A table or row that cannot be understood is an error, since commits decide by what is
// there.
func (d *Device) Read(ctx context.Context) (render.Config, error) {
	live, _, err := d.read(ctx)
	return live, err
}

func (d *Device) read(ctx context.Context) (live render.Config, warnings []string, err error) {
	const op = "get CONFIG_DB"
	if err := d.open(op); err != nil {
		return nil, nil, err
	}
	if err := d.oneASIC(ctx); err != nil {
		return nil, nil, err
	}
	text, err := d.get(ctx, path())
	if err != nil {
		return nil, nil, d.failed(ctx, op, err)
	}
	live, findings := dialect().Parse(text)
	for _, f := range findings {
		if f.Severity == diag.Error {
			return nil, nil, fmt.Errorf("%s: gnmi %s: %s", d.config.Name, op, f)
		}
		warnings = append(warnings, f.Msg)
	}
	return live, warnings, nil
}

// oneASIC refuses a switch that answers for a second namespace, once per connection.
func (d *Device) oneASIC(ctx context.Context) error {
	if d.single {
		return nil
	}
	p := path()
	p.Elem[1].Name = "asic0"
	_, err := d.get(ctx, p)
	switch code := status.Code(err); {
	case err == nil:
		return fmt.Errorf("%s: gnmi: %w: it has a namespace asic0 with a ConfigDB of its own", d.config.Name, ErrMultiASIC)
	case ctx.Err() != nil || code == codes.Unavailable || code == codes.Unauthenticated || code == codes.PermissionDenied:
		return d.failed(ctx, "get namespaces", err)
	}
	d.single = true // whatever it said, it does not know asic0
	return nil
}

// get is the JSON of one path.
func (d *Device) get(ctx context.Context, p *gpb.Path) ([]byte, error) {
	r, err := d.target.Get(d.login(ctx), &gpb.GetRequest{Path: []*gpb.Path{p}, Encoding: gpb.Encoding_JSON_IETF})
	if err != nil {
		return nil, err
	}
	for _, n := range r.GetNotification() {
		for _, u := range n.GetUpdate() {
			if b := u.GetVal().GetJsonIetfVal(); b != nil {
				return b, nil
			}
		}
	}
	return nil, errors.New("the answer holds no JSON_IETF value")
}

// path is a path of origin sonic-db below CONFIG_DB: nothing, a table, a row, a field. A row key is one element. Only
// a Set takes elements as JSON pointers, so only there must they be escaped; see escaped.
func path(elems ...string) *gpb.Path {
	p := &gpb.Path{Origin: "sonic-db"}
	for _, e := range append([]string{"CONFIG_DB", "localhost"}, elems...) {
		p.Elem = append(p.Elem, &gpb.PathElem{Name: e})
	}
	return p
}

// escaped is path for a Set: "/" in a key is written "~1" (RFC 6901).
func escaped(elems ...string) *gpb.Path {
	p := path(elems...)
	for _, e := range p.Elem {
		e.Name = strings.NewReplacer("~", "~0", "/", "~1").Replace(e.Name)
	}
	return p
}

// shown is a path as people read it: TABLE/row/field.
func shown(p *gpb.Path) string {
	var names []string
	for _, e := range p.GetElem()[2:] {
		names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(e.GetName()))
	}
	return strings.Join(names, "/")
}
