package sonic_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

const start = `{
  "PORT": {"Ethernet0": {"lanes": "0,1", "speed": "400000", "admin_status": "up"}, "Ethernet8": {"lanes": "8,9", "speed": "400000", "admin_status": "down"}},
  "QUEUE": {"Ethernet0|3": {"scheduler": "scheduler.0", "wred_profile": "P"}, "Ethernet8|3": {"scheduler": "scheduler.0"}},
  "SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": "14"}},
  "WRED_PROFILE": {"P": {"ecn": "ecn_all", "green_min_threshold": "1000", "green_max_threshold": "2000"}},
  "INTERFACE": {"Ethernet0": {}, "Ethernet0|10.0.0.1/31": {}},
  "BUFFER_POOL": {"egress_lossless_pool": {"type": "egress", "mode": "dynamic", "size": "1000"}},
  "BUFFER_PROFILE": {"lossless": {"pool": "egress_lossless_pool", "size": "0", "dynamic_th": "7", "xon": "10"}},
  "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}}
}`

// client is a stock gNMI client.
type client struct {
	gpb.GNMIClient
	t   *testing.T
	ctx context.Context
}

func launch(t *testing.T, o sonic.Options) *sonic.Switch {
	t.Helper()
	if o.Config == nil {
		db, err := sonic.Parse([]byte(start))
		if err != nil {
			t.Fatal(err)
		}
		o.Config = db
	}
	s, err := sonic.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t *testing.T, s *sonic.Switch) *client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA()) {
		t.Fatal("no CA")
	}
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return &client{gpb.NewGNMIClient(conn), t, ctx}
}

// db is a path below CONFIG_DB of origin sonic-db: "TABLE", "row", "field".
func db(elems ...string) *gpb.Path {
	return origin(append([]string{"CONFIG_DB", "localhost"}, elems...)...)
}

func origin(elems ...string) *gpb.Path {
	p := &gpb.Path{Origin: "sonic-db"}
	for _, e := range elems {
		p.Elem = append(p.Elem, &gpb.PathElem{Name: e})
	}
	return p
}

func old(elems ...string) *gpb.Path {
	p := origin(elems...)
	p.Origin = ""
	return p
}

func ietf(json string) *gpb.TypedValue {
	return &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(json)}}
}

func set(p *gpb.Path, json string) *gpb.Update { return &gpb.Update{Path: p, Val: ietf(json)} }

// said is the outcome of a call in one line: the value, or code and sentence.
func said(v string, err error) string {
	if err != nil {
		st := status.Convert(err)
		return st.Code().String() + ": " + st.Message()
	}
	return v
}

func (c *client) get(r *gpb.GetRequest) string {
	resp, err := c.Get(c.ctx, r)
	if err != nil {
		return said("", err)
	}
	var out []string
	for _, n := range resp.Notification {
		for _, u := range n.Update {
			out = append(out, string(u.Val.GetJsonIetfVal()))
		}
	}
	return strings.Join(out, " ")
}

func (c *client) set(r *gpb.SetRequest) string {
	_, err := c.Set(c.ctx, r)
	return said("ok", err)
}

const gcu = "Unknown: Error: Failed to apply patch on the following scopes:"

// The rows of the recorded table about reading.
func TestRecordedGets(t *testing.T) {
	c := connect(t, launch(t, sonic.Options{}))
	for _, x := range []struct {
		name   string
		prefix *gpb.Path
		path   *gpb.Path
		typ    gpb.GetRequest_DataType
		enc    gpb.Encoding
		want   string
	}{
		{name: "table", path: db("WRED_PROFILE"), want: `{"P":{"ecn":"ecn_all","green_max_threshold":"2000","green_min_threshold":"1000"}}`},
		{name: "row: the key is one element", path: db("QUEUE", "Ethernet0|3"), want: `{"scheduler":"scheduler.0","wred_profile":"P"}`},
		{name: "leaf", path: db("QUEUE", "Ethernet0|3", "wred_profile"), want: `"P"`},
		{name: "empty row", path: db("INTERFACE", "Ethernet0"), want: `{"NULL":"NULL"}`},
		{name: "raw slash in a key", path: db("INTERFACE", "Ethernet0|10.0.0.1/31"), want: `{"NULL":"NULL"}`},
		{name: "escaped slash in a key", path: db("INTERFACE", "Ethernet0|10.0.0.1~131"), want: "NotFound: No valid entry found for path CONFIG_DB/localhost/INTERFACE/Ethernet0|10.0.0.1~131"},
		{name: "missing row", path: db("QUEUE", "Ethernet0|4"), want: "NotFound: No valid entry found for path CONFIG_DB/localhost/QUEUE/Ethernet0|4"},
		{name: "missing leaf", path: db("QUEUE", "Ethernet8|3", "wred_profile"), want: "NotFound: No valid entry found for path CONFIG_DB/localhost/QUEUE/Ethernet8|3/wred_profile"},
		{name: "missing table", path: db("NOPE"), want: "NotFound: Failed to find CONFIG_DB NOPE <nil> []"},
		{name: "old style", prefix: &gpb.Path{Target: "CONFIG_DB"}, path: old("WRED_PROFILE", "P", "ecn"), want: `"ecn_all"`},
		{name: "path in the prefix", prefix: db(), path: old("QUEUE", "Ethernet0|3", "wred_profile"), want: `"P"`},
		{name: "type CONFIG", path: db("QUEUE"), typ: gpb.GetRequest_CONFIG, want: "Unimplemented: unsupported request type: CONFIG"},
		{name: "type STATE", path: db("QUEUE"), typ: gpb.GetRequest_STATE, want: "Unimplemented: unsupported request type: STATE"},
		{name: "ASCII", path: db("QUEUE"), enc: gpb.Encoding_ASCII, want: "Unimplemented: unsupported encoding: ASCII"},
		{name: "other origin", path: &gpb.Path{Origin: "openconfig", Elem: db().Elem}, want: `Unimplemented: unsupported origin "openconfig"`},
		{name: "namespace of a single ASIC", path: origin("CONFIG_DB", "asic0", "PORT"), want: "NotFound: Failed to find namespace asic0"},
		{name: "counters: virtual path, origin form", path: origin("COUNTERS_DB", "localhost", "COUNTERS", "Ethernet0"), want: "NotFound: Failed to find COUNTERS_DB COUNTERS:Ethernet0 <nil> []"},
		{name: "counters: nothing there", prefix: &gpb.Path{Target: "COUNTERS_DB"}, path: old("COUNTERS", "Ethernet0"), want: "{}"},
	} {
		enc := x.enc
		if enc == gpb.Encoding_JSON {
			enc = gpb.Encoding_JSON_IETF
		}
		if got := c.get(&gpb.GetRequest{Prefix: x.prefix, Path: []*gpb.Path{x.path}, Type: x.typ, Encoding: enc}); got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
	whole := c.get(&gpb.GetRequest{Path: []*gpb.Path{db()}, Encoding: gpb.Encoding_JSON_IETF})
	got, err := sonic.Parse([]byte(whole))
	want, _ := sonic.Parse([]byte(start))
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("whole database (-want +got): %v\n%s", err, d)
	}
	caps, err := c.Capabilities(c.ctx, &gpb.CapabilityRequest{})
	if err != nil || len(caps.SupportedModels) != 1 || caps.SupportedModels[0].Name != "sonic-db" || caps.SupportedModels[0].Version != "0.1.0" ||
		caps.GNMIVersion != "0.7.0" || !slices.Equal(caps.SupportedEncodings, []gpb.Encoding{gpb.Encoding_JSON, gpb.Encoding_JSON_IETF, gpb.Encoding_PROTO}) {
		t.Errorf("capabilities: %v %v", caps, err)
	}
}

// The rows of the recorded table about writing, and the refusals of the updater. Edits are the table, row and field
// that the request changes, as "T|R|f=value", "-T|R" and so on; everything else must stay.
func TestRecordedSets(t *testing.T) {
	up := func(us ...*gpb.Update) *gpb.SetRequest { return &gpb.SetRequest{Update: us} }
	re := func(us ...*gpb.Update) *gpb.SetRequest { return &gpb.SetRequest{Replace: us} }
	del := func(ps ...*gpb.Path) *gpb.SetRequest { return &gpb.SetRequest{Delete: ps} }
	for _, x := range []struct {
		name string
		req  *gpb.SetRequest
		want string
		edit func(sonic.DB) // what becomes of the configuration; nil = nothing
	}{
		{"leaf", up(set(db("SCHEDULER", "scheduler.0", "weight"), `"20"`)), "ok", func(d sonic.DB) { d["SCHEDULER"]["scheduler.0"]["weight"] = "20" }},
		{"JSON instead of JSON_IETF", up(&gpb.Update{Path: db("SCHEDULER", "scheduler.0", "weight"), Val: &gpb.TypedValue{Value: &gpb.TypedValue_JsonVal{JsonVal: []byte(`"20"`)}}}), "Unknown: Fail to parse", nil},
		{"number", up(set(db("SCHEDULER", "scheduler.0", "weight"), `21`)), "Unknown: Invalid field 21", nil},
		{"number in a row", up(set(db("SCHEDULER", "s"), `{"weight":21}`)), "Unknown: Invalid field 21", nil},
		{"broken JSON", up(set(db("SCHEDULER", "s"), `{`)), "Unknown: Fail to parse", nil},
		{"update of a row is no merge", up(set(db("WRED_PROFILE", "P"), `{"ecn":"ecn_none"}`)), "ok", func(d sonic.DB) { d["WRED_PROFILE"]["P"] = map[string]any{"ecn": "ecn_none"} }},
		{"update makes a row", up(set(db("WRED_PROFILE", "Q"), `{"ecn":"ecn_none"}`)), "ok", func(d sonic.DB) { d.Set("WRED_PROFILE", "Q", "ecn", "ecn_none") }},
		{"replace of a row", re(set(db("SCHEDULER", "scheduler.0"), `{"type":"STRICT"}`)), "ok", func(d sonic.DB) { d["SCHEDULER"]["scheduler.0"] = map[string]any{"type": "STRICT"} }},
		{"replace of a missing row", re(set(db("SCHEDULER", "s"), `{"type":"STRICT"}`)), "Unknown: Invalid entry SCHEDULER/s", nil},
		{"replace of a missing table", re(set(db("DSCP_TO_TC_MAP"), `{"M":{"0":"0"}}`)), "Unknown: Invalid entry DSCP_TO_TC_MAP", nil},
		{"delete of a leaf", del(db("QUEUE", "Ethernet0|3", "wred_profile")), "ok", func(d sonic.DB) { delete(d["QUEUE"]["Ethernet0|3"], "wred_profile") }},
		{"delete of a missing row", del(db("QUEUE", "Ethernet0|7")), "ok", nil},
		{"delete of a missing table", del(db("NOPE")), "ok", nil},
		{
			"delete and update are one transaction",
			&gpb.SetRequest{Delete: []*gpb.Path{db("QUEUE", "Ethernet0|3", "wred_profile"), db("WRED_PROFILE", "P")}, Update: []*gpb.Update{set(db("WRED_PROFILE", "Q"), `{"ecn":"ecn_all"}`)}}, "ok",
			func(d sonic.DB) {
				delete(d["QUEUE"]["Ethernet0|3"], "wred_profile")
				d["WRED_PROFILE"] = map[string]map[string]any{"Q": {"ecn": "ecn_all"}}
			},
		},
		{
			"one bad part stops all",
			&gpb.SetRequest{Update: []*gpb.Update{set(db("SCHEDULER", "scheduler.0", "weight"), `"20"`), set(db("SCHEDULER", "scheduler.0", "weight2"), `5`)}}, "Unknown: Invalid field 5", nil,
		},
		{"row in a missing table", up(set(db("DSCP_TO_TC_MAP", "M"), `{"0":"0"}`)), gcu, nil},
		{"whole missing table", up(set(db("DSCP_TO_TC_MAP"), `{"M":{"0":"0"}}`)), "ok", func(d sonic.DB) { d.Set("DSCP_TO_TC_MAP", "M", "0", "0") }},
		{"leaf in a missing row", up(set(db("SCHEDULER", "s", "weight"), `"1"`)), gcu, nil},
		{"empty table", del(db("QUEUE", "Ethernet0|3"), db("QUEUE", "Ethernet8|3")), gcu, nil},
		{"table", del(db("QUEUE")), "ok", func(d sonic.DB) { delete(d, "QUEUE") }},
		{"root replaced", re(set(db(""), `{"PORT":{"Ethernet0":{"lanes":"0,1","speed":"400000"}},"BUFFER_POOL":{"egress_lossless_pool":{"type":"egress","mode":"dynamic","size":"1000"}},"PFC_WD":{"GLOBAL":{"POLL_INTERVAL":"200"}}}`)), "ok", func(d sonic.DB) {
			clear(d)
			d.Set("PORT", "Ethernet0", "lanes", "0,1")
			d.Set("PORT", "Ethernet0", "speed", "400000")
			for k, v := range map[string]string{"type": "egress", "mode": "dynamic", "size": "1000"} {
				d.Set("BUFFER_POOL", "egress_lossless_pool", k, v)
			}
			d.Set("PFC_WD", "GLOBAL", "POLL_INTERVAL", "200")
		}},
		{"root deleted and updated: for the next reload", &gpb.SetRequest{Delete: []*gpb.Path{db("")}, Update: []*gpb.Update{set(db(""), `{"PORT":{}}`)}}, "ok", nil},
		{"root deleted", del(db("")), "ok", nil},
		{"raw slash in a key", up(set(db("INTERFACE", "Ethernet0|10.0.0.3/31"), `{}`)), gcu, nil},
		{"escaped slash in a key", up(set(db("INTERFACE", "Ethernet0|10.0.0.3~131"), `{}`)), "ok", func(d sonic.DB) { d["INTERFACE"]["Ethernet0|10.0.0.3/31"] = map[string]any{} }},
		{"delete with an escaped slash", del(db("INTERFACE", "Ethernet0|10.0.0.1~131")), "ok", func(d sonic.DB) { delete(d["INTERFACE"], "Ethernet0|10.0.0.1/31") }},

		{"reference to a missing row", up(set(db("QUEUE", "Ethernet8|3", "wred_profile"), `"Q"`)), gcu, nil},
		{"referenced row removed", del(db("SCHEDULER", "scheduler.0")), gcu, nil},
		{"port that does not exist", up(set(db("QUEUE", "Ethernet16|3"), `{"scheduler":"scheduler.0"}`)), gcu, nil},
		{"thresholds cross", up(set(db("WRED_PROFILE", "P", "green_min_threshold"), `"2001"`)), gcu, nil},
		{"weight out of range", up(set(db("SCHEDULER", "scheduler.0", "weight"), `"101"`)), gcu, nil},
		{"buffer pool", up(set(db("BUFFER_POOL", "egress_lossless_pool", "size"), `"2000"`)), gcu, nil},
		{"new buffer pool", up(set(db("BUFFER_POOL", "p"), `{"type":"egress","mode":"static"}`)), gcu, nil},
		{"buffer profile, permitted field", up(set(db("BUFFER_PROFILE", "lossless", "dynamic_th"), `"1"`)), "ok", func(d sonic.DB) { d["BUFFER_PROFILE"]["lossless"]["dynamic_th"] = "1" }},
		{"buffer profile, other field", up(set(db("BUFFER_PROFILE", "lossless", "xon"), `"11"`)), gcu, nil},
		{"buffer profile, row replaced with the same", up(set(db("BUFFER_PROFILE", "lossless"), `{"pool":"egress_lossless_pool","size":"0","dynamic_th":"7","xon":"10"}`)), "ok", nil},
		{"new buffer profile", up(set(db("BUFFER_PROFILE", "new"), `{"pool":"egress_lossless_pool","size":"0"}`)), "ok", func(d sonic.DB) {
			d.Set("BUFFER_PROFILE", "new", "pool", "egress_lossless_pool")
			d.Set("BUFFER_PROFILE", "new", "size", "0")
		}},
		{"watchdog's polling interval removed", del(db("PFC_WD", "GLOBAL", "POLL_INTERVAL")), gcu, nil},
		{"watchdog's global row removed", del(db("PFC_WD")), gcu, nil},
		{"detection below polling", up(set(db("PFC_WD", "Ethernet0"), `{"action":"drop","detection_time":"100","restoration_time":"200"}`)), gcu, nil},
		{"lanes", up(set(db("PORT", "Ethernet0", "lanes"), `"4,5"`)), gcu, nil},
		{"other database", up(set(origin("APPL_DB", "localhost", "X"), `{}`)), "Unimplemented: Set is for CONFIG_DB only", nil},
		{"no origin", up(set(old("CONFIG_DB", "localhost", "X"), `{}`)), `Unimplemented: unsupported origin ""`, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := launch(t, sonic.Options{})
			c := connect(t, s)
			want := s.Config()
			if got := c.set(x.req); got != x.want {
				t.Errorf("got  %s\nwant %s", got, x.want)
			}
			changed := 0
			if x.edit != nil {
				x.edit(want)
				changed = 1
			}
			if d := cmp.Diff(want, s.Config()); d != "" {
				t.Errorf("configuration (-want +got):\n%s", d)
			}
			st := s.Stats()
			paths := len(x.req.Delete) + len(x.req.Replace) + len(x.req.Update)
			if st.Sets != 1 || st.Paths != paths || st.Changed != changed {
				t.Errorf("counted %d Sets with %d paths, %d changes; want 1, %d, %d", st.Sets, st.Paths, st.Changed, paths, changed)
			}
			if (x.want == gcu) != (len(s.Refusals()) == 1) {
				t.Errorf("the log has %q", s.Refusals())
			}
			s.Reboot() // what was set is saved
			if d := cmp.Diff(want, s.Config()); d != "" {
				t.Errorf("after a reboot (-want +got):\n%s", d)
			}
		})
	}
}

// A change of queues, maps or buffers takes an up port down; threshold edits do not.
func TestFlaps(t *testing.T) {
	s := launch(t, sonic.Options{})
	c := connect(t, s)
	for _, u := range []*gpb.Update{
		set(db("WRED_PROFILE", "P", "green_min_threshold"), `"1500"`),
		set(db("QUEUE", "Ethernet0|4"), `{"scheduler":"scheduler.0"}`),
		set(db("QUEUE", "Ethernet8|4"), `{"scheduler":"scheduler.0"}`), // down already
	} {
		if got := c.set(&gpb.SetRequest{Update: []*gpb.Update{u}}); got != "ok" {
			t.Fatal(got)
		}
	}
	if d := cmp.Diff(map[string]int{"Ethernet0": 1}, s.Stats().Flaps); d != "" {
		t.Error(d)
	}
}

func TestPermittedSKUs(t *testing.T) {
	config := sonic.Base("leaf1", "Unheard-Of", sonic.Ports(1, 8, 400e9, 5000))
	config.Set("BUFFER_POOL", "p", "mode", "dynamic")
	config.Set("BUFFER_PROFILE", "b", "pool", "p")
	for _, skus := range [][]string{nil, {"ACS-SN5600"}, {"ACS-SN5600", "Unheard-Of"}} {
		s := launch(t, sonic.Options{Config: config, SKUs: skus})
		c := connect(t, s)
		want := "ok"
		if len(skus) == 1 {
			want = gcu
		}
		for _, u := range []*gpb.Update{set(db("PFC_WD"), `{"GLOBAL":{"POLL_INTERVAL":"200"}}`), set(db("BUFFER_PROFILE", "b", "dynamic_th"), `"1"`)} {
			if got := c.set(&gpb.SetRequest{Update: []*gpb.Update{u}}); got != want {
				t.Errorf("%v: %v: got %s, want %s", skus, u.Path, got, want)
			}
		}
	}
}

func TestMultiASIC(t *testing.T) {
	c := connect(t, launch(t, sonic.Options{ASICs: 2}))
	for namespace, want := range map[string]string{"asic1": "{}", "asic2": "NotFound: Failed to find namespace asic2", "asic01": "NotFound: Failed to find namespace asic01"} {
		if got := c.get(&gpb.GetRequest{Path: []*gpb.Path{origin("CONFIG_DB", namespace)}}); got != want {
			t.Errorf("%s: %s, want %s", namespace, got, want)
		}
	}
}

func TestLogin(t *testing.T) {
	s := launch(t, sonic.Options{User: "admin", Password: "right"})
	c := connect(t, s)
	for _, x := range []struct{ md, want string }{
		{"", "Unauthenticated: No Username Provided"},
		{"username admin", "Unauthenticated: No Password Provided"},
		{"username admin password wrong", "Unauthenticated: Unauthenticated"},
		{"username admin password right", "ok"},
	} {
		ctx := metadata.AppendToOutgoingContext(c.ctx, strings.Fields(x.md)...)
		_, err := c.Capabilities(ctx, &gpb.CapabilityRequest{})
		if got := said("ok", err); got != x.want {
			t.Errorf("%q: %s, want %s", x.md, got, x.want)
		}
		if _, err := c.Set(ctx, &gpb.SetRequest{}); said("ok", err) != x.want {
			t.Error(err)
		}
	}
	if st := s.Stats(); st.Logins != 6 || st.Refused != 2 {
		t.Errorf("%d logins, %d refused", st.Logins, st.Refused)
	}
}

func TestFaults(t *testing.T) {
	two := func() *gpb.SetRequest {
		return &gpb.SetRequest{Update: []*gpb.Update{set(db("SCHEDULER", "scheduler.0", "weight"), `"20"`), set(db("SCHEDULER", "scheduler.0", "type"), `"WRR"`)}}
	}
	for _, x := range []struct {
		name string
		f    sonic.Faults
		want string
		did  string // weight and type afterwards
	}{
		{"healthy", sonic.Faults{}, "ok", "20 WRR"},
		{"refuse", sonic.Faults{Set: sonic.Refuse}, gcu, "14 DWRR"},
		{"refuse with a sentence", sonic.Faults{Set: sonic.Refuse, Sentence: "no"}, "Unknown: no", "14 DWRR"},
		{"refuse another path", sonic.Faults{Set: sonic.Refuse, Match: func(p []string) bool { return p[0] == "QUEUE" }}, "ok", "20 WRR"},
		{"refuse this path", sonic.Faults{Set: sonic.Refuse, Match: func(p []string) bool { return slices.Equal(p, []string{"SCHEDULER", "scheduler.0", "type"}) }}, gcu, "14 DWRR"},
		{"pretend", sonic.Faults{Set: sonic.Pretend}, "ok", "14 DWRR"},
		{"half", sonic.Faults{Set: sonic.Half}, gcu, "20 DWRR"},
		{"lie", sonic.Faults{Set: sonic.Lie}, gcu, "20 WRR"},
		{"somebody before", sonic.Faults{Before: func(d sonic.DB) { delete(d["SCHEDULER"], "scheduler.0") }}, gcu, " "},
		{"somebody after", sonic.Faults{After: func(d sonic.DB) { d.Set("SCHEDULER", "scheduler.0", "weight", "7") }}, "ok", "7 WRR"},
		{"slow", sonic.Faults{Slow: time.Millisecond}, "ok", "20 WRR"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := launch(t, sonic.Options{})
			c := connect(t, s)
			x.f.Times = 1
			s.Fault(x.f)
			if got := c.set(two()); got != x.want {
				t.Errorf("got %s, want %s", got, x.want)
			}
			d := s.Config()
			if got := d.Get("SCHEDULER", "scheduler.0", "weight") + " " + d.Get("SCHEDULER", "scheduler.0", "type"); got != x.did {
				t.Errorf("the configuration is %q, want %q", got, x.did)
			}
			if x.f.Before == nil && x.f.Match == nil { // the fault is over after one Set
				if got := c.set(two()); got != "ok" {
					t.Error("second:", got)
				}
			}
		})
	}
}

func TestHang(t *testing.T) {
	for did, outcome := range map[string]sonic.Outcome{"14": sonic.Hang, "20": sonic.HangDone} {
		s := launch(t, sonic.Options{})
		c := connect(t, s)
		held := make(chan struct{})
		s.Fault(sonic.Faults{Set: outcome, Held: func() { close(held) }})
		ctx, cancel := context.WithCancel(c.ctx)
		go func() {
			<-held
			cancel()
		}()
		_, err := c.Set(ctx, &gpb.SetRequest{Update: []*gpb.Update{set(db("SCHEDULER", "scheduler.0", "weight"), `"20"`)}})
		if status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		if got := s.Config().Get("SCHEDULER", "scheduler.0", "weight"); got != did {
			t.Errorf("weight %s, want %s", got, did)
		}
	}
}

// The connection is cut at the byte asked for, once, and the next one works.
func TestDropAfter(t *testing.T) {
	for _, n := range []int64{1, 500, 3000} {
		s := launch(t, sonic.Options{})
		s.Fault(sonic.Faults{DropAfter: n})
		whole := &gpb.GetRequest{Path: []*gpb.Path{db()}}
		c := connect(t, s)
		var err error
		for range 100 {
			if _, err = c.Get(c.ctx, whole); err != nil {
				break
			}
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%d bytes: %v", n, err)
		}
		if b := s.Stats().Bytes; b < n {
			t.Errorf("%d bytes passed of %d", b, n)
		}
		if got := connect(t, s).get(whole); !strings.Contains(got, "scheduler.0") {
			t.Error(got)
		}
	}
}

func TestCertificates(t *testing.T) {
	for kind, want := range map[sonic.Certificate]string{
		sonic.Stranger: "signed by unknown authority", sonic.Expired: "expired", sonic.WrongName: "cannot validate certificate",
	} {
		s := launch(t, sonic.Options{})
		s.Fault(sonic.Faults{Certificate: kind})
		c := connect(t, s)
		if _, err := c.Capabilities(c.ctx, &gpb.CapabilityRequest{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", kind, err, want)
		}
	}
}

// An idle connection is closed by the server; the next call dials again by itself.
func TestIdle(t *testing.T) {
	s := launch(t, sonic.Options{Idle: 20 * time.Millisecond})
	c := connect(t, s)
	whole := &gpb.GetRequest{Path: []*gpb.Path{db("PORT")}}
	c.get(whole)
	for end := time.Now().Add(10 * time.Second); s.Stats().Open > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until the server has hung up
	}
	if got := c.get(whole); !strings.Contains(got, "Ethernet0") {
		t.Error(got)
	}
	if st := s.Stats(); st.Dials < 2 {
		t.Errorf("%d dials", st.Dials)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		`{"T":{"r":{"a":1,"b":true,"c":["x",2],"NULL":"NULL"},"e":null}}`: "",
		`{"T":{"r":{"a":{}}}}`:   "T|r|a",
		`{"T":{"r":{"a":[[]]}}}`: "T|r|a",
		"{\"T\":\n5}":            "line 2: a number where an object belongs",
		`{"T":{"r":{}}} x`:       "line 1: not valid JSON",
		`{"T":{}}{}`:             "line 1: something follows",
		``:                       "the file is empty",
	} {
		db, err := sonic.Parse([]byte(in))
		if want == "" {
			if got := fmt.Sprint(db); err != nil || got != "map[T:map[e:map[] r:map[a:1 b:true c:[x 2]]]]" {
				t.Error(got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(start))
	f.Add([]byte(`{"T":{"r":{"a":["x",1.5e3,true,null]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		db, err := sonic.Parse(b)
		if err != nil {
			return
		}
		again, err := sonic.Parse(db.JSON())
		if err != nil || string(again.JSON()) != string(db.JSON()) {
			t.Errorf("%v: %s", err, db.JSON())
		}
	})
}
