package profiles

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Fitted is a NIC in a host.
type Fitted struct {
	Device string   // the host
	Iface  string   // the NIC's interface
	Pos    diag.Pos // line of the model that is about it; zero = none
	Build
}

// Fleet judges the NICs of a fabric: what the compatibility matrix says of each, and where NICs of one kind differ in firmware
// or driver, or hosts with such NICs in their kernels. Findings are sorted; each names the devices that it is about, so that a model may
// acknowledge it for them.
func (c *Catalog) Fleet(fleet []Fitted) diag.List {
	if len(fleet) == 0 {
		return nil
	}
	l := c.matrix(fleet)
	byNIC := map[string][]Fitted{}
	for _, f := range fleet {
		if f.NIC != "" {
			byNIC[f.NIC] = append(byNIC[f.NIC], f)
		}
	}
	for _, nic := range slices.Sorted(maps.Keys(byNIC)) {
		for _, of := range []struct {
			what string
			get  func(Fitted) string
		}{
			{"firmware", func(f Fitted) string { return f.Firmware }},
			{"driver", func(f Fitted) string { return f.driver() }},
			{"kernel", func(f Fitted) string { return f.Kernel }},
		} {
			l.Add(uneven(nic, of.what, byNIC[nic], of.get)...)
		}
	}
	return l.Sort()
}

// driver is which driver and whose it is, with its version, for comparing.
func (b Build) driver() string {
	switch {
	case b.Driver == "":
		return ""
	case b.Vendor:
		return strings.TrimRight(b.Driver+" "+b.DriverVersion, " ") + " of the vendor"
	}
	return b.Driver + " of the kernel"
}

// matrix says what the compatibility matrix says, once for each row and build.
func (c *Catalog) matrix(fleet []Fitted) diag.List {
	type said struct {
		row, build string
	}
	of := map[said][]Fitted{}
	verdicts := map[said]Verdict{}
	known := map[Build][]Verdict{}
	for _, f := range fleet {
		vs, ok := known[f.Build]
		if !ok {
			vs = c.Compat(f.Build)
			known[f.Build] = vs
		}
		for _, v := range vs {
			if v.Grade == GradeOK {
				continue
			}
			key := said{v.Name + v.Says, f.String()}
			of[key], verdicts[key] = append(of[key], f), v
		}
	}
	var l diag.List
	for key, fs := range of {
		v := verdicts[key]
		or := "acknowledge compatibility with the reason"
		if v.Grade == GradeBad { // an error, which nobody can acknowledge
			or = "correct the row in a Profile document of your own"
		}
		x := diag.Finding{
			Rule: "compatibility", Severity: map[Grade]diag.Severity{GradeBad: diag.Error, GradeWarn: diag.Warning}[v.Grade], Pos: fs[0].Pos, At: fs[0].at(),
			Msg:  fmt.Sprintf("%s %s (%s; %s confidence), on %s", key.build, v.Says, v.Source, v.Confidence, places(fs)),
			Hint: cmp.Or(v.Remedy, "bring it to another version, or "+or), Devices: devices(fs),
		}
		if v.Pos.File != "" && !v.BuiltIn {
			x.Related = append(x.Related, diag.Related{Pos: v.Pos, Msg: "the row " + v.Name + " of the matrix stands here"})
		}
		l.Add(x)
	}
	return l
}

// uneven says where NICs of one kind differ in what get gives. What most have is taken for what is meant, and of equals the newest.
func uneven(nic, what string, fleet []Fitted, get func(Fitted) string) diag.List {
	by := map[string][]Fitted{}
	for _, f := range fleet {
		if v := get(f); v != "" {
			by[v] = append(by[v], f)
		}
	}
	if len(by) < 2 {
		return nil
	}
	values := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), compareVersions(b, a), cmp.Compare(a, b))
	})
	most, rest := values[0], values[1:]
	var others []string
	var odd []Fitted
	for _, v := range rest {
		others = append(others, fmt.Sprintf("%s on %s", v, places(by[v])))
		odd = append(odd, by[v]...)
	}
	return diag.List{{
		Rule: "fleet-versions", Severity: diag.Warning, Pos: odd[0].Pos, At: odd[0].at(), Devices: devices(odd),
		Msg: fmt.Sprintf("%s of %s is %s on %s of %s, and %s", what, nic, most, diag.Count(len(by[most]), "NIC"), diag.Count(len(devices(by[most])), "host"), strings.Join(others, ", ")),
		Hint: fmt.Sprintf("bring %s to %s and measure again, or acknowledge fleet-versions with the reason",
			strings.Join(few(devices(odd)), ", "), most),
	}}
}

// compareVersions orders by the parts of the first version in each text.
func compareVersions(a, b string) int {
	x, y := parts(firstVersion.FindString(a)), parts(firstVersion.FindString(b))
	for i := range min(len(x), len(y)) {
		if c := cmp.Or(cmp.Compare(len(x[i]), len(y[i])), cmp.Compare(x[i], y[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

func (f Fitted) at() string {
	if f.Pos.Line > 0 {
		return ""
	}
	return f.Device + ":" + f.Iface
}

// places are the NICs by host and interface, not too many of them.
func places(fs []Fitted) string {
	var all []string
	for _, f := range fs {
		all = append(all, f.Device+":"+f.Iface)
	}
	slices.Sort(all)
	return strings.Join(few(slices.Compact(all)), ", ")
}

// few are at most three of a list, and how many more there are.
func few(all []string) []string {
	if len(all) <= 4 {
		return all
	}
	return append(slices.Clone(all[:3]), fmt.Sprintf("%d more", len(all)-3))
}

// devices are the hosts, sorted.
func devices(fs []Fitted) []string {
	var ds []string
	for _, f := range fs {
		ds = append(ds, f.Device)
	}
	slices.Sort(ds)
	return slices.Compact(ds)
}
