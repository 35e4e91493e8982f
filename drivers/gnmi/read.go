package gnmi

import (
	"bytes"
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

// look is one look at the whole CONFIG_DB. It is not changed.
type look struct {
	text     []byte // as the switch sent it
	live     render.Config
	warnings []string
}

// Facts identifies the switch from its ConfigDB. Serial number and image version are in other databases and stay "".
// No competing owner shows in ConfigDB, so Owners is always empty here. What it saw also answers a Read that comes next:
// both are then of the same moment.
func (d *Device) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	now, err := d.read(ctx)
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	d.look = now
	return now.facts(), caps(), nil
}

// Rest forgets what was seen last.
func (d *Device) Rest() { d.look, d.last = nil, nil }

// facts is what the look says of the switch.
func (l *look) facts() render.Facts {
	f := facts(l.live)
	f.Notes = append(f.Notes, l.warnings...)
	return f
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

// Read is the whole CONFIG_DB, as Facts saw it if that was the last call, else as it is now. A table or row that cannot
// be understood is an error, since commits decide by what is there.
func (d *Device) Read(ctx context.Context) (render.Config, error) {
	if seen := d.look; seen != nil && !d.closed && ctx.Err() == nil {
		d.look = nil
		return seen.live, nil
	}
	now, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	return now.live, nil
}

// read looks at the switch now, and forgets what Facts saw. A switch that sends the bytes it sent before holds what it
// held, which need not be understood again.
func (d *Device) read(ctx context.Context) (*look, error) {
	const op = "get CONFIG_DB"
	d.look = nil
	if err := d.open(op); err != nil {
		return nil, err
	}
	text, err := d.get(ctx, path())
	if err != nil {
		if isAnswer(status.Code(err)) && ctx.Err() == nil {
			if err := d.isSonic(ctx); err != nil {
				return nil, err
			}
		}
		return nil, d.failed(ctx, op, err)
	}
	if d.last != nil && bytes.Equal(d.last.text, text) {
		return d.last, nil
	}
	live, findings := dialect().Parse(text)
	now := &look{text: text, live: live}
	for _, f := range findings {
		if f.Severity == diag.Error {
			return nil, fmt.Errorf("%s: gnmi %s: %s", d.config.Name, op, f)
		}
		now.warnings = append(now.warnings, f.Msg)
	}
	d.last = now
	return now, nil
}

// oneASIC refuses a switch that answers for a second namespace. One without says that it does not find it; whoever says
// anything else is asked whether it is SONiC.
func (d *Device) oneASIC(ctx context.Context) error {
	p := path()
	p.Elem[1].Name = "asic0"
	_, err := d.get(ctx, p)
	switch code := status.Code(err); {
	case err == nil:
		return fmt.Errorf("%s: gnmi: %w: it has a namespace asic0 with a ConfigDB of its own", d.config.Name, ErrMultiASIC)
	case ctx.Err() != nil || !isAnswer(code):
		return d.failed(ctx, "dial "+d.config.Address, err)
	case code == codes.NotFound:
		return nil
	}
	return d.isSonic(ctx)
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
		e.Name = strings.ReplaceAll(strings.ReplaceAll(e.Name, "~", "~0"), "/", "~1") // a Replacer is made of kilobytes
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
