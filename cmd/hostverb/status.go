package hostverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Status shows what the machine is and holds. Without a host file it shows that alone.
func (p *Program) Status(ctx context.Context, file *hostlocal.File, o Options) error {
	m, err := p.Machine(file, o)
	if err != nil {
		return err
	}
	s, err := m.Look(ctx, file, p.engine(m))
	if err != nil {
		return interrupted(ctx, err)
	}
	if p.JSON {
		err = p.printJSON(s)
	} else {
		var b strings.Builder
		printStatus(&b, s, o.Details)
		_, err = io.WriteString(p.Out, b.String())
	}
	if err == nil && o.Detailed && !s.InStep() {
		return ended(exitChanges)
	}
	return err
}

// Optional is the host file where there is one; nil where there is none and none was named.
func (o *Options) Optional() (*hostlocal.File, error) {
	f, err := hostlocal.ReadFile(o.File)
	if errors.Is(err, fs.ErrNotExist) && o.File == hostlocal.DefaultFile {
		return nil, nil
	}
	if err != nil {
		return o.Read()
	}
	return f, nil
}

func printStatus(b *strings.Builder, s *hostlocal.Status, details bool) {
	line := func(label, format string, args ...any) {
		show.Hang(b, show.Pad(label, 12), fmt.Sprintf(format, args...))
	}
	line("host", "%s", s.Facts.Hostname)
	if s.Facts.Serial != "" {
		line("serial", "%s", s.Facts.Serial)
	}
	line("kernel", "%s", s.Facts.Version)
	if s.Device == "" {
		line("model", "none: there is no %s", hostlocal.DefaultFile)
	} else {
		line("model", "%s of %s, digest %.12s", s.Device, s.Fabric, s.Model)
		line("drift", "%s", driftText(s.Drift))
	}
	if s.Agent != nil {
		line("agent", "%s at %s", s.Agent.Says, s.Agent.Time.UTC().Format(time.RFC3339))
	}
	for _, o := range s.Facts.Owners {
		line("owner", "%s", show.Paint(show.Yellow, o))
	}
	for _, h := range s.Holds {
		line("held", "%s", h)
	}
	for _, x := range s.Pending {
		line("pending", "%s goes back at %s unless it is confirmed", x.ID, x.Deadline.UTC().Format(time.RFC3339))
	}
	for _, x := range s.Missing {
		line("not seen", "%s", x)
	}
	for _, n := range s.NICs {
		printNIC(b, n, details)
	}
	if len(s.NICs) == 0 {
		line("NICs", "none with hardware, or with DCB")
	}
	for _, l := range s.Links {
		line("link", "%s, mtu %d", l.Name, l.MTU)
	}
	if d := s.Drift; d != nil {
		for _, c := range d.Changes {
			line("differs", "%s", changeText(c))
		}
		show.Findings(b, d.Findings)
	}
	show.Findings(b, slices.DeleteFunc(slices.Clone(s.Builds), func(f diag.Finding) bool { return f.Severity == diag.Info && !details }))
	if details {
		for _, n := range s.Facts.Notes {
			line("note", "%s", n)
		}
	}
}

func driftText(d *hostlocal.Drift) string {
	switch {
	case d.Error != "":
		return show.Paint(show.Red, "not known: "+d.Error)
	case len(d.Changes) == 0 && d.Findings.HasErrors():
		return show.Paint(show.Red, "refused, as said below")
	case len(d.Changes) == 0 && d.Left > 0:
		return show.Paint(show.Yellow, diag.Count(d.Left, "held setting")+" left out")
	case len(d.Changes) == 0:
		return show.Paint(show.Green, "none")
	}
	text := fmt.Sprintf("%s, %s", diag.Count(len(d.Changes), "setting"), d.Risk)
	if d.Left > 0 {
		text += ", and " + diag.Count(d.Left, "held one") + " left out"
	}
	return show.Paint(show.Yellow, text)
}

func changeText(c render.Change) string {
	was, will := "absent", "absent"
	if c.Before != nil {
		was = *c.Before
	}
	if c.After != nil {
		will = *c.After
	}
	text := fmt.Sprintf("%s is %s, wanted %s", diag.Line(c.Key.String()), diag.Line(was), diag.Line(will))
	if !c.From.IsZero() {
		text += "  " + c.From.String()
	}
	return text
}

// printNIC writes what is known of one NIC.
func printNIC(b *strings.Builder, n hostlocal.NIC, details bool) {
	b.WriteString("\n" + show.Paint(show.Bold, n.Name) + "\n")
	line := func(label, format string, args ...any) {
		show.Hang(b, "  "+show.Pad(label, 12), fmt.Sprintf(format, args...))
	}
	if n.PCI != "" {
		line("NIC", "%s at PCI %s (%s)%s", cmp.Or(n.NIC, "not known"), n.PCI, cmp.Or(n.Model, "no id"), numa(n.NUMA))
	}
	line("driver", "%s", driverText(n))
	line("link", "%s", linkText(n))
	if n.RDMA == "" {
		line("RDMA", "none")
	} else {
		line("RDMA", "%s port %d, GID %s, %s", n.RDMA, n.RDMAPort, gidText(n), pairsText(n.QPs))
	}
	mtu := fmt.Sprint(int64(n.MTU))
	if n.RoCEMTU > 0 {
		mtu += fmt.Sprintf(", RoCE payload at most %d", int64(n.RoCEMTU))
	}
	line("mtu", "%s", mtu)
	for _, x := range [][2]string{{"bond", n.Bond}, {"function of", n.VFOf}, {"not ours", n.DPU}} {
		if x[1] != "" {
			line(x[0], "%s", x[1])
		}
	}
	if n.Management {
		line("management", "the way to this host goes over it")
	}
	for _, k := range settingsOf(n.Settings, details) {
		line(k[0], "%s", k[1])
	}
}

func numa(node int) string {
	if node < 0 {
		return ""
	}
	return fmt.Sprintf(", NUMA node %d", node)
}

func driverText(n hostlocal.NIC) string {
	whose := "the kernel's own"
	if n.OutOfTree {
		whose = "the vendor's"
	}
	text := cmp.Or(n.Driver, "not known")
	if n.DriverVersion != "" && n.OutOfTree {
		text += " " + n.DriverVersion
	}
	text += " (" + whose + ")"
	if n.Firmware != "" {
		text += ", firmware " + n.Firmware
	}
	return text + ", behaves as " + cmp.Or(n.Personality, "nothing known")
}

func linkText(n hostlocal.NIC) string {
	text := "down"
	if n.Link.Up {
		text = "up"
	}
	if n.Link.Speed > 0 {
		text += " at " + n.Link.Speed.String()
	}
	if l := n.Link; l.PCIeWidth > 0 {
		text += fmt.Sprintf(", PCIe x%d %s", l.PCIeWidth, l.PCIeSpeed)
		if l.PCIeWidth < l.PCIeMaxWidth || l.PCIeSpeed != l.PCIeMaxSpeed && l.PCIeMaxSpeed != "" {
			text += show.Paint(show.Yellow, fmt.Sprintf(" of x%d %s", l.PCIeMaxWidth, l.PCIeMaxSpeed))
		}
	}
	return text
}

func gidText(n hostlocal.NIC) string {
	switch {
	case n.GID < 0:
		return show.Paint(show.Yellow, "none: "+cmp.Or(n.GIDWhy, "not said why"))
	case n.GIDWhy != "":
		return fmt.Sprintf("%d (%s)", n.GID, n.GIDWhy)
	}
	return strconv.Itoa(n.GID)
}

func pairsText(n int) string {
	if n < 0 {
		return "live queue pairs not known"
	}
	return diag.Count(n, "live queue pair")
}

// settingsOf are settings, one line for each scope. The map of code points is written by priority; without details the
// priorities' own parameters of congestion control are left to them.
func settingsOf(s map[string]string, details bool) [][2]string {
	by := map[string][]string{}
	dscp := map[string][]int{}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		scope, field, _ := strings.Cut(k, " ")
		if n, ok := strings.CutPrefix(field, "dscp "); ok && scope == "app" {
			if d, err := strconv.Atoi(n); err == nil {
				dscp[s[k]] = append(dscp[s[k]], d)
				continue
			}
		}
		if scope == "cc" && !details && field != "enable" && field != "algorithm" && !strings.HasPrefix(field, "cnp-") {
			continue
		}
		by[scope] = append(by[scope], field+" "+s[k])
	}
	var out [][2]string
	for _, scope := range slices.Sorted(maps.Keys(by)) {
		out = append(out, [2]string{scope, strings.Join(by[scope], "; ")})
	}
	if len(dscp) > 0 {
		var parts []string
		for _, prio := range slices.Sorted(maps.Keys(dscp)) {
			slices.Sort(dscp[prio])
			parts = append(parts, intent.Ranges(dscp[prio])+" to "+prio)
		}
		out = append(out, [2]string{"dscp", strings.Join(parts, "; ")})
	}
	return out
}
