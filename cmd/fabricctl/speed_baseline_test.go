package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmic/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// sheet is what a device would hold, ready to be encoded: a ConfigDB, or text.
type sheet struct {
	DB   map[string]map[string]map[string]string `json:"db,omitempty"`
	Text []byte                                  `json:"text,omitempty"`
}

// sheets makes the yardstick's input of renderings.
func sheets(renderings [][]byte) ([]sheet, error) {
	out := make([]sheet, len(renderings))
	for i, r := range renderings {
		if !bytes.HasPrefix(r, []byte("{")) {
			out[i].Text = r
			continue
		}
		if err := json.Unmarshal(r, &out[i].DB); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// yardstick is what loading and rendering a model is measured against: decode the text into nodes with yaml.v3, and
// encode the same bytes as the renderings with encoding/json.
func yardstick(text []byte, sheets []sheet) (nodes []*yaml.Node, out [][]byte, err error) {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		n := new(yaml.Node)
		if err := d.Decode(n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, n)
	}
	for _, s := range sheets {
		var b bytes.Buffer
		if s.DB == nil {
			b.Write(s.Text)
		} else {
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			e.SetIndent("", "    ")
			if err := e.Encode(s.DB); err != nil {
				return nil, nil, err
			}
		}
		out = append(out, b.Bytes())
	}
	return nodes, out, nil
}

// bareChange is what an apply of one change is measured against: the same calls in bare gnmic code, eight switches at a
// time: dial, three Gets, a Set, and over a new connection a Get. Nothing that comes is looked at.
func bareChange(t testing.TB, b *bench, kmin string) {
	password, err := os.ReadFile(filepath.Join(b.dir, "lab", "password"))
	if err != nil {
		t.Fatal(err)
	}
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for _, d := range b.net.Devices {
		s, ok := b.lab.Box(d.Name).(*sonic.Switch)
		if !ok {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := bareOne(s, string(password[:len(password)-1]), kmin); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func bareOne(s *sonic.Switch, password, kmin string) error {
	ctx := metadata.AppendToOutgoingContext(context.Background(), "username", lab.User, "password", password)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA())
	path := func(elems ...string) *gpb.Path {
		p := &gpb.Path{Origin: "sonic-db"}
		for _, e := range append([]string{"CONFIG_DB", "localhost"}, elems...) {
			p.Elem = append(p.Elem, &gpb.PathElem{Name: e})
		}
		return p
	}
	get := &gpb.GetRequest{Path: []*gpb.Path{path()}, Encoding: gpb.Encoding_JSON_IETF}
	set := &gpb.SetRequest{}
	for _, c := range []string{"green", "red", "yellow"} {
		v, _ := json.Marshal(kmin)
		set.Update = append(set.Update, &gpb.Update{
			Path: path("WRED_PROFILE", "fctl-many-fabric-training", c+"_min_threshold"),
			Val:  &gpb.TypedValue{Value: &gpb.TypedValue_JsonIetfVal{JsonIetfVal: v}},
		})
	}
	for pass := range 2 {
		t, err := api.NewTarget(api.Name("x"), api.Address(s.Addr()))
		if err != nil {
			return err
		}
		t.Config.SetTLSConfig(&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
		if err := t.CreateGNMIClient(ctx, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20))); err != nil {
			return err
		}
		gets := 3
		if pass == 1 {
			gets = 1
		}
		for range gets {
			if _, err := t.Get(ctx, get); err != nil {
				return err
			}
		}
		if pass == 0 {
			if _, err := t.Set(ctx, set); err != nil {
				return err
			}
		}
		if err := t.Close(); err != nil {
			return err
		}
	}
	return nil
}
