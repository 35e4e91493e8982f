package gnmi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Commit reads, compares and sends one Set, which the server turns into one JSON patch, applies whole or not at all,
// and saves at once. It has no candidate and no timer. Between the read and the Set somebody else may still write:
// ConfigDB cannot refuse that.
func (d *Device) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	return d.CommitIf(ctx, tx, cs, within, func(render.Facts, render.Config) error { return nil })
}

// CommitIf is Commit with a look at all that it read, by ok, just before it sends the Set.
func (d *Device) CommitIf(ctx context.Context, _ drivers.TxID, cs []render.Change, within time.Duration, ok func(render.Facts, render.Config) error) error {
	name := d.config.Name
	if err := d.open("set"); err != nil {
		return err
	}
	if d.config.ReadOnly {
		return fmt.Errorf("%s: gnmi set: %w", name, drivers.ErrReadOnly)
	}
	if within > 0 {
		return fmt.Errorf("%s: gnmi set: %w", name, drivers.ErrNoConfirm)
	}
	for _, c := range cs {
		if c.Key.Scope == "" || c.Key.Object == "" {
			return fmt.Errorf("%s: gnmi set: %q names no row of ConfigDB", name, c.Key)
		}
	}
	now, err := d.read(ctx) // whatever was seen before
	if err != nil {
		return err
	}
	live, f := now.live, now.facts()
	if err := ok(f, live); err != nil {
		return err
	}
	todo, moved := render.Remaining(dialect(), f, live, cs)
	if len(moved) > 0 {
		return d.movedError(live, moved)
	}
	req, err := request(live, todo)
	if err != nil {
		return fmt.Errorf("%s: gnmi set: %w", name, err)
	}
	n := len(req.Delete) + len(req.Update)
	if n == 0 {
		return nil
	}
	first := shownFirst(req)
	d.config.Log.Debug("gnmi set", "device", name, "deletes", len(req.Delete), "updates", len(req.Update), "first", first)
	bounded, cancel := context.WithTimeoutCause(ctx, setDeadline, fmt.Errorf("no answer within %s: %w", setDeadline, context.DeadlineExceeded))
	defer cancel()
	_, err = d.target.Set(d.login(bounded), req)
	switch st := status.Convert(err); {
	case err == nil:
		return nil
	case bounded.Err() == nil && isAnswer(st.Code()):
		sent := first
		if n > 1 {
			sent = fmt.Sprintf("%d deletes and %d updates, the first %s", len(req.Delete), len(req.Update), first)
		}
		vague := st.Code() == codes.Unknown
		err = &drivers.RejectedError{Device: name, Sent: sent, Sentence: st.Code().String() + ": " + st.Message(), Vague: vague}
		if vague { // what the config updater says; it tells the client no more
			err = fmt.Errorf("%w (the reason is in the switch's syslog)", err)
		}
		return err
	}
	return d.failed(bounded, "set "+first, err)
}

// isAnswer reports whether a code is the switch's word about a request, rather than the fate of the connection.
func isAnswer(c codes.Code) bool {
	switch c {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unauthenticated, codes.PermissionDenied:
		return false
	}
	return true
}

// movedError names the first value that is neither what the plan expects nor what it asks for.
func (d *Device) movedError(live render.Config, moved []render.Change) error {
	c := moved[0]
	var now *string
	if v, ok := live.Find(c.Key); ok {
		now = &v
	}
	more := ""
	if n := len(moved) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("%s: %w: %s is %s, the plan expects %s%s", d.config.Name, drivers.ErrMoved, c.Key, quoted(now), quoted(c.Before), more)
}

func quoted(s *string) string {
	if s == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *s)
}

// request puts changes into the form that SONiC takes:
//
//   - A field of a row that stays is a leaf. An update of the row itself would replace it and lose the fields that we
//     do not know.
//   - A new row is sent whole, and so is a table that did not exist: a patch cannot add below a missing parent.
//   - A row that loses its last field goes, and so does a table that loses its last row: no table may be empty.
//
// Values are strings, as ConfigDB has them; list items have been joined by then.
func request(live render.Config, todo []render.Change) (*gpb.SetRequest, error) {
	tables := map[string]bool{}
	for _, c := range todo {
		tables[c.Key.Scope] = true
	}
	live = live.Filter(func(k render.Key) bool { return tables[k.Scope] })
	old, now := render.SonicRows(live), render.SonicRows(render.Apply(live, todo))
	r := &gpb.SetRequest{}
	done := map[string]bool{}
	for _, c := range todo {
		elems := []string{c.Key.Scope, c.Key.Object, render.SonicField(c.Key)}
		var value any
		switch table, row := elems[0], elems[1]; {
		case now[table] == nil || old[table] == nil:
			elems, value = elems[:1], now[table]
		case now[table][row] == nil || old[table][row] == nil:
			elems, value = elems[:2], now[table][row]
		case elems[2] == "": // the row is there before and after
			continue
		default:
			if v, ok := now[table][row][elems[2]]; ok {
				value = v
			}
		}
		if id := strings.Join(elems, "\x00"); done[id] {
			continue
		} else {
			done[id] = true
		}
		p := escaped(elems...)
		if isNothing(value) {
			r.Delete = append(r.Delete, p)
			continue
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		r.Update = append(r.Update, &gpb.Update{Path: p, Val: &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: b}}})
	}
	return r, nil
}

// isNothing reports whether a table, row or field is gone afterwards. An empty row and an empty field are something.
func isNothing(v any) bool {
	switch v := v.(type) {
	case map[string]map[string]string:
		return v == nil
	case map[string]string:
		return v == nil
	}
	return v == nil
}

func shownFirst(r *gpb.SetRequest) string {
	if len(r.Delete) > 0 {
		return shown(r.Delete[0])
	}
	return shown(r.Update[0].Path)
}
