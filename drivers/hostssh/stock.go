package hostssh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// stock is a host seen with its own tools: ip, dcb, ethtool, rdma, cat, test, uname and hostname. It cannot be changed.
type stock struct {
	*conn
	why error // the reason
	now func() time.Time
}

// link is what ip -j -d link show says about one link, as far as it matters here.
type link struct {
	Name      string   `json:"ifname"`
	Flags     []string `json:"flags"`
	MTU       uint32   `json:"mtu"`
	Port      string   `json:"phys_port_name"`
	ParentBus string   `json:"parentbus"`
	Parent    string   `json:"parentdev"`
	Master    string   `json:"master"`
	Info      struct {
		Slave string `json:"info_slave_kind"` // kind of Master
	} `json:"linkinfo"`
}

// representor reports whether the link stands for a port behind an adapter's own switch: its PCI device is another's.
func (l link) representor() bool {
	return strings.HasPrefix(l.Port, "pf") || strings.HasPrefix(l.Port, "c")
}

// bond is the bond that the link is a slave of; "" = none, and a bridge is none.
func (l link) bond() string {
	if l.Info.Slave != "bond" {
		return ""
	}
	return l.Master
}

// Facts are what the tools show: no serial number, and PCI addresses only where ip is new enough (5.13) to tell.
func (s *stock) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	f := render.Facts{Notes: []string{"seen with stock tools, read-only: " + s.why.Error()}}
	var err error
	if f.Hostname, err = s.line(ctx, "hostname"); err != nil {
		return f, drivers.Caps{}, err
	}
	if f.Version, err = s.line(ctx, "uname -r"); err != nil {
		return f, drivers.Caps{}, err
	}
	ls, err := s.links(ctx)
	if err != nil {
		return f, drivers.Caps{}, err
	}
	f.Aliases = aliases(ls)
	ns, err := s.nics(ctx, ls)
	if err != nil {
		return f, drivers.Caps{}, err
	}
	for _, n := range ns {
		f.NICs = append(f.NICs, n.HostNIC)
	}
	return f, drivers.Caps{Counters: true, ReadOnly: s.why.Error()}, nil
}

// aliases leads from a PCI address to its link. A representor's PCI device is another's, and a device with several
// links has no alias.
func aliases(ls []link) map[string]string {
	as, several := map[string]string{}, map[string]bool{}
	for _, l := range ls {
		if l.ParentBus != "pci" || l.representor() {
			continue
		}
		several[l.Parent] = several[l.Parent] || as[l.Parent] != ""
		as[l.Parent] = l.Name
	}
	for pci, is := range several {
		if is {
			delete(as, pci)
		}
	}
	return as
}

// Read is the MTU of every link but loopbacks, what the tools show of each NIC, and the variables of nccl.conf.
func (s *stock) Read(ctx context.Context) (render.Config, error) {
	ls, err := s.links(ctx)
	if err != nil {
		return nil, err
	}
	text, err := s.nccl(ctx)
	if err != nil {
		return nil, err
	}
	c := render.ParseNCCL(text)
	ns, err := s.nics(ctx, ls)
	if err != nil {
		return nil, err
	}
	for _, n := range ns {
		c = append(c, n.settings...)
	}
	for _, l := range ls {
		if !slices.Contains(l.Flags, "LOOPBACK") {
			c = append(c, render.Setting{Key: render.Key{Scope: "link", Object: l.Name, Field: "mtu"}, Value: strconv.FormatUint(uint64(l.MTU), 10)})
		}
	}
	return c.Sorted(), nil
}

func (s *stock) links(ctx context.Context) ([]link, error) {
	const command = "ip -j -d link show"
	out, err := s.run(ctx, command)
	if err != nil {
		return nil, err
	}
	var ls []link
	if err := json.Unmarshal(out, &ls); err != nil {
		return nil, fmt.Errorf("%s: run %q: no JSON came back: %q", s.name, command, oneLine(out))
	}
	return ls, nil
}

// nccl is the text of nccl.conf, none when there is no such file.
func (s *stock) nccl(ctx context.Context) ([]byte, error) {
	test := "test -e " + quote(render.NCCLPath)
	out, err := s.client.Run(ctx, test, nil)
	switch {
	case err != nil:
		return nil, err
	case out.Exit == 1 && len(out.Stderr) == 0:
		return nil, nil
	case out.Exit != 0:
		return nil, fmt.Errorf("%s: run %q: %w", s.name, test, status(out))
	}
	return s.run(ctx, "cat "+quote(render.NCCLPath))
}

// Commit is ErrReadOnly, with the reason.
func (s *stock) Commit(context.Context, drivers.TxID, []render.Change, time.Duration) error {
	return fmt.Errorf("%s: %w: %w", s.name, drivers.ErrReadOnly, s.why)
}

// Close ends the connection.
func (s *stock) Close() error { return s.client.Close() }

var _ drivers.Device = (*stock)(nil)
