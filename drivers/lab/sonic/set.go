package sonic

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refused is all that the client hears of a failure inside GCU: its first line with "Error".
const refused = "Error: Failed to apply patch on the following scopes:"

// operation is one step of an RFC 6902 patch. At is the JSON pointer, split and unescaped.
type operation struct {
	op    string // "add", "replace", "remove"
	at    []string
	value any // string, []string, row or table
}

// Set is the gNMI call. The real server makes one JSON patch of it (deletes, replaces, updates), which GCU checks and
// applies whole, and saves the configuration at once.
func (s *Switch) Set(ctx context.Context, r *gpb.SetRequest) (*gpb.SetResponse, error) {
	s.mu.Lock()
	s.stats.Sets++
	s.stats.Paths += len(r.Delete) + len(r.Replace) + len(r.Update)
	readOnly := s.faults.ReadOnly
	s.mu.Unlock()
	if readOnly { // said before the login is looked at
		return nil, status.Error(codes.Unimplemented, "GNMI is in read-only mode")
	}
	if err := s.enter(ctx, "Set"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	f := s.faults.take(r)
	if f.Before != nil {
		f.Before(s.running)
	}
	err := s.set(r, f)
	if f.After != nil {
		f.After(s.running)
	}
	s.mu.Unlock()
	if f.Set == Hang || f.Set == HangDone {
		if f.Held != nil {
			f.Held()
		}
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return nil, err
	}
	resp := &gpb.SetResponse{Prefix: r.Prefix}
	result := func(p *gpb.Path, op gpb.UpdateResult_Operation) {
		resp.Response = append(resp.Response, &gpb.UpdateResult{Path: p, Op: op})
	}
	for _, p := range r.Delete {
		result(p, gpb.UpdateResult_DELETE)
	}
	for _, u := range r.Replace {
		result(u.Path, gpb.UpdateResult_REPLACE)
	}
	for _, u := range r.Update {
		result(u.Path, gpb.UpdateResult_UPDATE)
	}
	return resp, nil
}

// set carries out a request as the fault says. It holds the lock.
func (s *Switch) set(r *gpb.SetRequest, f Faults) error {
	generic := status.Error(codes.Unknown, refused)
	if f.Sentence != "" {
		generic = status.Error(codes.Unknown, f.Sentence)
	}
	switch f.Set {
	case Refuse:
		return generic
	case Pretend, Hang:
		return nil
	}
	next, ops, err := s.plan(r)
	if err != nil {
		return err
	}
	if f.Set == Half {
		next = s.running.clone()
		for _, o := range ops[:(len(ops)+1)/2] {
			_ = apply(next, o)
		}
		s.commit(next)
		return generic
	}
	if next == nil {
		next = s.running.clone()
		for _, o := range ops {
			if err := apply(next, o); err != nil {
				return s.refuse(err)
			}
		}
		if err := s.check(s.running, next); err != nil {
			return s.refuse(err)
		}
	}
	s.commit(next)
	if f.Set == Lie {
		return generic
	}
	return nil
}

// refuse keeps the reason for the log and gives the client the sentence that it gets.
func (s *Switch) refuse(reason error) error {
	s.refusals = append(s.refusals, reason.Error())
	s.options.Log.Info("set refused", "reason", reason)
	return status.Error(codes.Unknown, refused)
}

// commit makes next the running and the saved configuration.
func (s *Switch) commit(next DB) {
	if !bytes.Equal(s.running.JSON(), next.JSON()) {
		s.stats.Changed++
	}
	for _, port := range flapping(s.running, next) {
		s.stats.Flaps[port]++
	}
	s.buffermgrd(next)
	s.running, s.startup = next, next.clone()
}

// plan turns a request into a patch. Of a request for the whole database it is the result itself: a replace takes
// effect, a delete with an update is only kept for the next reload, a delete alone does nothing.
func (s *Switch) plan(r *gpb.SetRequest) (DB, []operation, error) {
	var ops []operation
	root := false
	for _, p := range r.Delete {
		at, err := pointer(r.Prefix, p)
		if err != nil {
			return nil, nil, err
		}
		if len(at) == 0 {
			root = true
			continue
		}
		if s.holds(at) {
			ops = append(ops, operation{op: "remove", at: at})
		}
	}
	for i, u := range append(append([]*gpb.Update(nil), r.Replace...), r.Update...) {
		replace := i < len(r.Replace)
		at, err := pointer(r.Prefix, u.Path)
		if err != nil {
			return nil, nil, err
		}
		v, err := value(u.GetVal(), depth(r.Prefix, u.Path))
		if err != nil {
			return nil, nil, err
		}
		switch {
		case len(at) == 0 && replace:
			next, _ := v.(DB)
			if err := s.check(s.running, next); err != nil {
				return nil, nil, s.refuse(err)
			}
			return next, nil, nil
		case len(at) == 0 && root:
			return s.running, nil, nil
		case len(at) == 0:
			return nil, nil, status.Error(codes.Unknown, "Invalid path")
		case replace && !s.holds(at):
			return nil, nil, status.Error(codes.Unknown, "Invalid entry "+strings.Join(at, "/"))
		case replace:
			ops = append(ops, operation{op: "replace", at: at, value: v})
		default:
			ops = append(ops, operation{op: "add", at: at, value: v})
		}
	}
	return nil, ops, nil
}

// depth is how far below the namespace a path goes: 0 the database, 1 a table, 2 a row, 3 a field.
func depth(prefix, p *gpb.Path) int {
	n := 0
	for _, e := range names(prefix, p)[2:] {
		if e != "" {
			n++
		}
	}
	return n
}

// pointer is a Set path as JSON pointer below the namespace: elements joined with "/", then split again, so that a
// key with a raw "/" goes astray and "~1" means "/".
func pointer(prefix, p *gpb.Path) ([]string, error) {
	origin := p.GetOrigin()
	if origin == "" {
		origin = prefix.GetOrigin()
	}
	elems := names(prefix, p)
	switch {
	case origin != "sonic-db":
		return nil, status.Errorf(codes.Unimplemented, "unsupported origin %q", origin)
	case len(elems) < 2 || elems[0] != "CONFIG_DB":
		return nil, status.Error(codes.Unimplemented, "Set is for CONFIG_DB only")
	case elems[1] != "localhost":
		return nil, status.Errorf(codes.Unknown, "Failed to find namespace %s", elems[1])
	}
	var at []string
	for seg := range strings.SplitSeq(strings.Join(elems[2:], "/"), "/") {
		if seg != "" {
			at = append(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(seg))
		}
	}
	return at, nil
}

// holds reports whether the running configuration has what a pointer names.
func (s *Switch) holds(at []string) bool {
	rows, ok := s.running[at[0]]
	if !ok || len(at) == 1 {
		return ok
	}
	row, ok := rows[at[1]]
	if !ok || len(at) == 2 {
		return ok
	}
	_, ok = row[at[2]]
	return ok && len(at) == 3
}

// value reads the value of an update at a depth.
func value(tv *gpb.TypedValue, depth int) (any, error) {
	ietf, ok := tv.GetValue().(*gpb.TypedValue_JsonIetfVal)
	if !ok {
		return nil, status.Error(codes.Unknown, "Fail to parse")
	}
	d := json.NewDecoder(bytes.NewReader(ietf.JsonIetfVal))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, status.Error(codes.Unknown, "Fail to parse")
	}
	return shape(v, depth)
}

// shape is v as a database, table, row or field, with strings for leaves.
func shape(v any, depth int) (any, error) {
	bad := status.Errorf(codes.Unknown, "Invalid field %v", v)
	if depth >= 3 {
		switch v := v.(type) {
		case string:
			return v, nil
		case []any:
			list, ok := asValue(v)
			if !ok {
				return nil, bad
			}
			return list, nil
		}
		return nil, bad
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, bad
	}
	db, table, row := DB{}, map[string]map[string]any{}, map[string]any{}
	for k, x := range m {
		y, err := shape(x, depth+1)
		if err != nil {
			return nil, err
		}
		switch y := y.(type) {
		case map[string]map[string]any:
			db[k] = y
		case map[string]any:
			table[k] = y
		default:
			row[k] = y
		}
	}
	return []any{db, table, row}[depth], nil
}
