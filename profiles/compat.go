package profiles

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Grade is what a row of the compatibility matrix says of the builds that it fits.
type Grade string

// The grades.
const (
	GradeOK   Grade = "ok"   // it is known to work; where rows with this grade name a NIC, a build that none of them fits is warned of
	GradeWarn Grade = "warn" // it may work, and somebody should look
	GradeBad  Grade = "bad"  // it is known not to work
)

// Whose driver a row of the compatibility matrix is about.
const (
	WhoseKernel   = "kernel"   // the kernel's own
	WhoseMainline = "mainline" // of those, as kernel.org has it in that release
	WhoseVendor   = "vendor"
)

// CompatRow is a row of the compatibility matrix. It fits a build when every condition that it has holds; a condition on something
// that the host did not say does not.
type CompatRow struct {
	Name          string
	Description   string   // for people
	NICs          []string // of the catalog; empty = any
	Drivers       []string // Linux network drivers; empty = any
	Whose         string   // whose driver: a Whose constant; "" = anybody's
	DriverVersion []string // bounds, all of which hold: ">= 24.10"; MLNX_OFED and DOCA-OFED give their drivers their own version
	Firmware      []string // bounds of firmware
	Kernel        []string // bounds of the kernel's release
	Grade         Grade
	Says          string // what is wrong, or that it is right, as a sentence without its subject
	Remedy        string // what to do about it
	Source        string
	Confidence    string
}

func rowSpecs() []spec[CompatRow] {
	bounds := func(key, doc string, at func(*CompatRow) *[]string) spec[CompatRow] {
		return names(key, "bound", doc, Bound, at)
	}
	return []spec[CompatRow]{
		text("description", "for people", func(r *CompatRow) *string { return &r.Description }),
		names("nics", "NIC", "NICs that it is about, by their names", Name, func(r *CompatRow) *[]string { return &r.NICs }),
		names("drivers", "driver", "Linux network drivers that it is about", Name, func(r *CompatRow) *[]string { return &r.Drivers }),
		word("whose", "whose driver it is about: the kernel's own, the vendor's, or mainline: the kernel's own where the distribution brings in none from newer kernels", []string{WhoseKernel, WhoseMainline, WhoseVendor}, func(r *CompatRow) *string { return &r.Whose }),
		bounds("driver_version", "versions of the driver: \">= 24.10\"; of MLNX_OFED and DOCA-OFED it is theirs", func(r *CompatRow) *[]string { return &r.DriverVersion }),
		bounds("firmware", "versions of firmware: \"< *.43\", with * for a part that may be anything", func(r *CompatRow) *[]string { return &r.Firmware }),
		bounds("kernel", "releases of the kernel: \"< 5.14\"", func(r *CompatRow) *[]string { return &r.Kernel }),
		typed("grade", "ok, warn or bad: what is known of such a build", []string{string(GradeOK), string(GradeWarn), string(GradeBad)}, func(r *CompatRow) *Grade { return &r.Grade }).must(),
		text("says", "what is wrong or right, without its subject: \"is not supported by this driver\"", func(r *CompatRow) *string { return &r.Says }).must(),
		text("remedy", "what to do about it", func(r *CompatRow) *string { return &r.Remedy }),
		text("source", "where it is from", func(r *CompatRow) *string { return &r.Source }).about(),
		word("confidence", "how far it is to be trusted", confidences(), func(r *CompatRow) *string { return &r.Confidence }).about(),
	}
}

// Build is what a NIC of a host runs. What the host did not say is "".
type Build struct {
	NIC           string // name in the catalog, see Catalog.NICOf
	Driver        string // Linux network driver
	Vendor        bool   // the driver is its vendor's, not the kernel's own
	DriverVersion string // as the driver says it; "" for the kernel's own
	Firmware      string
	Kernel        string
}

// String is the build for people.
func (b Build) String() string {
	s := cmp.Or(b.NIC, "NIC")
	if b.Driver != "" {
		s += " with driver " + b.Driver
		switch {
		case b.Vendor:
			s += strings.TrimRight(" "+b.DriverVersion, " ") + " (the vendor's)"
		default:
			s += " (the kernel's own)"
		}
	}
	if b.Firmware != "" {
		s += ", firmware " + b.Firmware
	}
	if b.Kernel != "" {
		s += ", kernel " + b.Kernel
	}
	return s
}

// NICOf is the NIC with this PCI id ("15b3:1021") and driver ("" = not known). Where several have the id it is the first by name
// that has the driver.
func (c *Catalog) NICOf(pci, driver string) (NIC, bool) {
	if pci == "" {
		return NIC{}, false
	}
	for _, name := range c.NamesOf(KindNIC) {
		if n, _ := c.NIC(name); slices.Contains(n.PCI, pci) && (driver == "" || n.Driver == "" || n.Driver == driver) {
			return n, true
		}
	}
	return NIC{}, false
}

// Verdict is what a row says of a build.
type Verdict struct {
	CompatRow
	Pos     diag.Pos // where the row stands; zero for a build that no row lists
	BuiltIn bool
}

// Compat is what the compatibility matrix says of a build: the rows that fit, bad ones first. Where rows with the grade ok are
// about this NIC, or its driver, and none of them fits, that is a verdict of its own: the matrix does not list it.
func (c *Catalog) Compat(b Build) []Verdict {
	var vs []Verdict
	var listed []string
	good := false
	for _, name := range c.NamesOf(KindCompat) {
		r := c.find(KindCompat, name)
		about, fits := r.compat.about(b), r.compat.fits(b)
		if about && r.compat.Grade == GradeOK {
			listed = append(listed, name)
			good = good || fits
		}
		if fits {
			vs = append(vs, Verdict{r.compat, r.entry.Pos, r.entry.BuiltIn()})
		}
	}
	if len(listed) > 0 && !good {
		vs = append(vs, Verdict{CompatRow: CompatRow{
			Name: listed[0], Grade: GradeWarn, Says: "is none of the builds that the matrix lists as good: " + strings.Join(listed, ", "),
			Remedy: "bring it to one of them, or add a row with grade: ok once it was tried", Source: "the matrix", Confidence: "high",
		}, Pos: c.find(KindCompat, listed[0]).entry.Pos})
	}
	order := []Grade{GradeBad, GradeWarn, GradeOK}
	sort.SliceStable(vs, func(i, j int) bool { return slices.Index(order, vs[i].Grade) < slices.Index(order, vs[j].Grade) })
	return vs
}

// about reports whether the row is about such a NIC and driver, whatever their versions.
func (r CompatRow) about(b Build) bool {
	return (len(r.NICs) == 0 || slices.Contains(r.NICs, b.NIC)) && (len(r.Drivers) == 0 || slices.Contains(r.Drivers, b.Driver))
}

func (r CompatRow) fits(b Build) bool {
	return r.about(b) && b.of(r.Whose) &&
		within(r.DriverVersion, b.DriverVersion) && within(r.Firmware, b.Firmware) && within(r.Kernel, b.Kernel)
}

// of reports whether the driver is this one's.
func (b Build) of(whose string) bool {
	switch {
	case whose == "":
		return true
	case b.Driver == "":
		return false
	case whose == WhoseMainline:
		return !b.Vendor && b.Kernel != "" && !backports.MatchString(machine.ReplaceAllString(b.Kernel, ""))
	}
	return (whose == WhoseVendor) == b.Vendor
}

// Distributions that bring drivers of newer kernels into theirs mark its release (.el9, .oe2203, .al8, .ky10), or are
// SUSE. What is neither is taken for a kernel as it was released.
var (
	backports = regexp.MustCompile(`\.[a-z]|-default$`)
	machine   = regexp.MustCompile(`\.(x86_64|aarch64|loongarch64|riscv64|ppc64le|s390x|amd64|arm64)$`)
)

// within reports whether a version that a device gives holds all bounds.
func within(bounds []string, version string) bool {
	return !slices.ContainsFunc(bounds, func(text string) bool {
		b, err := parseBound(text)
		return err != nil || !b.holds(version)
	})
}

// bound is a bound of versions.
type bound struct {
	op      string
	version []string // parts; "*" is any
}

var boundText = regexp.MustCompile(`^(<=|>=|<|>|=) ?((?:[0-9]{1,9}|\*)(?:[.-](?:[0-9]{1,9}|\*))*)$`)

// CheckBound says why a text is not a bound of versions, such as ">= 24.10".
func CheckBound(text string) error {
	_, err := parseBound(text)
	return err
}

func parseBound(text string) (bound, error) {
	m := boundText.FindStringSubmatch(text)
	if m == nil || len(text) > 100 {
		return bound{}, fmt.Errorf("%q is not a bound such as >= 24.10 or < *.43", shorten(text))
	}
	return bound{m[1], parts(m[2])}, nil
}

func parts(version string) []string {
	return strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
}

// firstVersion is the first run of numbers with dots and dashes between them, in which a part is no longer than nine digits.
var firstVersion = regexp.MustCompile(`[0-9]{1,9}(?:[.-][0-9]{1,9})*`)

// holds compares the parts that the bound has: 28.43.1014 is not below 28.43, and equals it. What has no version, or fewer parts
// than it takes to tell, holds no bound.
func (b bound) holds(version string) bool {
	have := parts(firstVersion.FindString(version))
	if len(have) == 0 {
		return false
	}
	order := 0
	for i, want := range b.version {
		if want == "*" {
			continue
		}
		if i >= len(have) {
			return false
		}
		x, _ := strconv.Atoi(have[i])
		y, _ := strconv.Atoi(want)
		if order = cmp.Compare(x, y); order != 0 {
			break
		}
	}
	switch b.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}
