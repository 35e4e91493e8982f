package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"applied"}, {"serve", "now"}, {"revert"}, {"revert", "a", "b"}, {"serve", "--state-dir", "relative"}} {
		if code := run(t.Context(), args, nil, io.Discard, io.Discard); code != 64 {
			t.Errorf("%q: exit %d", args, code)
		}
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"version"}, nil, &out, io.Discard); code != 0 || !strings.HasPrefix(out.String(), "fabricctl-host ") {
		t.Errorf("got %q, exit %d", &out, code)
	}
}

// What read prints is in the host form, and says of each link what iproute2 says.
func TestRead(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"read"}, nil, &out, io.Discard); code != 0 {
		t.Fatalf("exit %d", code)
	}
	got, bad := render.ByOS("linux").Parse(out.Bytes())
	if len(bad) > 0 {
		t.Errorf("not the host form: %v\n%s", bad, &out)
	}
	js, err := exec.Command(witness.Tool(t, "ip"), "-j", "link", "show").Output()
	if err != nil {
		t.Fatal(err)
	}
	var links []struct {
		Name  string      `json:"ifname"`
		MTU   json.Number `json:"mtu"`
		Flags []string    `json:"flags"`
	}
	if err := json.Unmarshal(js, &links); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, l := range links {
		if l.Flags[0] != "LOOPBACK" {
			want[l.Name] = l.MTU.String()
		}
	}
	seen := map[string]string{}
	for _, s := range got {
		if s.Key.Scope == "link" {
			seen[s.Key.Object] = s.Value
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-ip +read):\n%s", diff)
	}
}

func TestServe(t *testing.T) {
	near, far := net.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run(context.Background(), []string{"serve"}, far, far, io.Discard); far.Close() }()
	c, err := hostwire.NewClient(t.Context(), "here", near)
	if err != nil {
		t.Fatal(err)
	}
	name, _ := os.Hostname()
	if h := c.Hello(); h.Host != name || h.UID != os.Geteuid() || h.OS != "linux" {
		t.Errorf("hello %+v", h)
	}
	if _, err := c.Read(t.Context()); err != nil {
		t.Error(err)
	}
	if f, _, err := c.Facts(t.Context()); err != nil || f.Hostname != name || f.Version == "" {
		t.Errorf("facts %+v, %v", f, err)
	}
	c.Close()
	if code := <-ended; code != 0 {
		t.Errorf("serve ended with %d", code)
	}
}

// The binary is static and small, and nothing heavy is in it.
func TestBinary(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "fabricctl-host")
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^HOSTFLAGS = (.*)$`).FindSubmatch(makefile)
	if flags == nil {
		t.Fatal("the Makefile does not say how a release is built")
	}
	build := exec.Command("sh", "-c", "go build -buildvcs=false "+string(flags[1])+" -o "+bin+" .")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
		t.Errorf("it needs %v, %v", libs, err)
	}
	st, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(st.Size())/1e6)
	if st.Size() > 6e6 {
		t.Errorf("%d bytes: too large to push to a thousand hosts", st.Size())
	}
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(deps)) {
		for _, ban := range []string{"google.golang.org/grpc", "scrapligo", "sqlite", "gonum", "prometheus", "drivers/ssh", "golang.org/x/crypto", "pkg/sftp", "cobra"} {
			if strings.Contains(dep, ban) {
				t.Errorf("it contains %s", dep)
			}
		}
	}
}
