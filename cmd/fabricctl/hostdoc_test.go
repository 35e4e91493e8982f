package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// TestHostDoc: what docs/hosts.md shows of rail8's NCCL file is what its hosts are told.
func TestHostDoc(t *testing.T) {
	f, l := model.Load(examples.FS, "rail8")
	if l.HasErrors() {
		t.Fatal(l)
	}
	net, _ := intent.Resolve(f)
	host := *net.Device("host1")
	facts := render.Facts{Hostname: "host1"}
	for i, p := range host.Ports {
		facts.NICs = append(facts.NICs, render.HostNIC{Name: p.Iface, Driver: "mlx5_core", Personality: "mlx5", RDMA: fmt.Sprintf("mlx5_%d", i), RDMAPort: 1, GID: 3})
	}
	dialect := render.ByOS("linux")
	c, _ := dialect.Render(host, facts)
	_, file, _ := strings.Cut(string(dialect.Text(c)), "file "+render.NCCLPath+"\n")
	page, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "## What NCCL is told")
	_, shown, _ = strings.Cut(shown, "\n```\n")
	shown, _, _ = strings.Cut(shown, "```")
	if d := cmp.Diff(shown, file); d != "" {
		t.Errorf("docs/hosts.md (-shown +told):\n%s", d)
	}
}
