package sonic

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Get is the gNMI call: one notification per path, JSON_IETF values, all leaves strings.
func (s *Switch) Get(ctx context.Context, r *gpb.GetRequest) (*gpb.GetResponse, error) {
	s.mu.Lock()
	s.stats.Gets++
	s.mu.Unlock()
	if err := s.enter(ctx, "Get"); err != nil {
		return nil, err
	}
	if r.Type != gpb.GetRequest_ALL {
		return nil, status.Errorf(codes.Unimplemented, "unsupported request type: %s", r.Type)
	}
	if r.Encoding != gpb.Encoding_JSON && r.Encoding != gpb.Encoding_JSON_IETF {
		return nil, status.Errorf(codes.Unimplemented, "unsupported encoding: %s", r.Encoding)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &gpb.GetResponse{}
	keys := sync.OnceValue(s.redisKeys) // for all paths the same, at one time
	for _, p := range r.Path {
		v, err := s.lookup(r.Prefix, p, keys)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		resp.Notification = append(resp.Notification, &gpb.Notification{
			Prefix: r.Prefix,
			Update: []*gpb.Update{{Path: p, Val: &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: b}}}},
		})
	}
	return resp, nil
}

// lookup finds what a path names. There are two forms: origin sonic-db with database and namespace as first elements,
// and the old one with the database as the prefix's target. Elements are taken as they are: "~1" is not "/".
func (s *Switch) lookup(prefix, p *gpb.Path, keys func() map[string]map[string]any) (any, error) {
	if path, ok := isCounters(prefix, p); ok {
		return s.counted(path, keys)
	}
	origin, elems := p.GetOrigin(), names(prefix, p)
	if origin == "" {
		origin = prefix.GetOrigin()
	}
	if origin == "" && prefix.GetTarget() != "" {
		elems = append([]string{prefix.GetTarget(), "localhost"}, elems...)
	} else if origin != "sonic-db" {
		return nil, status.Errorf(codes.Unimplemented, "unsupported origin %q", origin)
	}
	if len(elems) < 2 {
		return nil, status.Error(codes.NotFound, "No valid entry found for path "+strings.Join(elems, "/"))
	}
	database, namespace, rest := elems[0], elems[1], elems[2:]
	db := DB{}
	switch {
	case database == "CONFIG_DB" && namespace == "localhost":
		db = s.running
	case database == "CONFIG_DB" && s.isASIC(namespace):
	case database == "APPL_DB" && namespace == "localhost":
		db = s.heard()
	case database == "CONFIG_DB":
		return nil, status.Errorf(codes.NotFound, "Failed to find namespace %s", namespace)
	default: // the others: nothing is in them, and nothing of COUNTERS_DB this way
		return nil, status.Errorf(codes.NotFound, "Failed to find %s %s <nil> []", database, strings.Join(rest, ":"))
	}
	if len(rest) == 0 {
		return redis(db), nil
	}
	rows, ok := db[rest[0]]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "Failed to find %s %s <nil> []", database, strings.Join(rest, "|"))
	}
	missing := status.Error(codes.NotFound, "No valid entry found for path "+strings.Join(elems, "/"))
	if len(rest) == 1 {
		return redis(DB{"": rows})[""], nil
	}
	row, ok := rows[rest[1]]
	switch {
	case !ok:
		return nil, missing
	case len(rest) == 2:
		return redis(DB{"": {"": row}})[""][""], nil
	}
	v, ok := row[rest[2]]
	if !ok || len(rest) > 3 {
		return nil, missing
	}
	return v, nil
}

func (s *Switch) isASIC(namespace string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(namespace, "asic"))
	return err == nil && namespace == fmt.Sprintf("asic%d", n) && n >= 0 && n < s.options.ASICs
}

// redis is db as redis holds it: an empty row has the field NULL.
func redis(db DB) DB {
	out := make(DB, len(db))
	for t, rows := range db {
		out[t] = make(map[string]map[string]any, len(rows))
		for k, row := range rows {
			if len(row) == 0 {
				row = map[string]any{"NULL": "NULL"}
			}
			out[t][k] = row
		}
	}
	return out
}

// names are the element names of prefix and path. Keys in brackets are not part of ConfigDB paths.
func names(prefix, p *gpb.Path) []string {
	var out []string
	for _, e := range append(append([]*gpb.PathElem(nil), prefix.GetElem()...), p.GetElem()...) {
		out = append(out, e.GetName())
	}
	return out
}
