package profiles

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// gcuData is data/gcu.yaml.
type gcuData struct {
	Families map[string]struct{ Exact, Part []string }
	Tables   map[string]struct {
		Rows    bool
		Changes []struct {
			Fields, Ops []string
			Since       map[string]int
		}
	}
}

//go:embed data/gcu.yaml
var gcuYAML []byte

var gcuOnce parsed[gcuData]

// gcu parses the matrix once; it is asked for each change of a plan.
func gcu() (*gcuData, error) { return gcuOnce.of("gcu.yaml", gcuYAML) }

// parsed is a file of data/ that is read when somebody asks for the first of it. Its zero value costs a program nothing that never asks.
type parsed[T any] struct {
	once sync.Once
	v    *T
	err  error
}

func (p *parsed[T]) of(name string, text []byte) (*T, error) {
	p.once.Do(func() {
		p.v = new(T)
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		if err := dec.Decode(p.v); err != nil {
			p.v, p.err = nil, fmt.Errorf("profiles: data/%s: %w", name, err)
		}
	})
	return p.v, p.err
}

// GCUFamily is the ASIC family that SONiC's generic config updater gives a HwSKU; ok is false when its list does not
// name the SKU, and then it refuses every guarded change.
func GCUFamily(hwsku string) (family string, ok bool) {
	g, err := gcu()
	if err != nil || hwsku == "" {
		return "", false
	}
	for name, f := range g.Families {
		if slices.Contains(f.Exact, hwsku) {
			return name, true
		}
	}
	best := "" // the longest part decides, so that the answer does not depend on map order
	for name, f := range g.Families {
		for _, part := range f.Part {
			if strings.Contains(hwsku, part) && (len(part) > len(best) || len(part) == len(best) && name < family) {
				family, best = name, part
			}
		}
	}
	return family, best != ""
}

// GCUPermits reports whether SONiC's generic config updater lets a client make one change, and why not (or with what
// reservation). op is "add", "replace" or "remove"; field "" is the row itself. PFC_WD|GLOBAL has one field and is
// asked for as field "POLL_INTERVAL", also for the row. Tables that the updater does not guard are permitted.
//
// version is the image's version, such as "SONiC.20240531.12"; when it holds no date the answer rests on the family
// alone and says so.
func GCUPermits(hwsku, version, table, field, op string) (ok bool, why string) {
	g, err := gcu()
	if err != nil {
		return false, err.Error()
	}
	t, guarded := g.Tables[table]
	if !guarded {
		return true, ""
	}
	if table == "PFC_WD" && op == "remove" && field == "POLL_INTERVAL" {
		return false, "the generic config updater never removes PFC_WD|GLOBAL POLL_INTERVAL"
	}
	if t.Rows && field == "" && op != "replace" {
		return true, ""
	}
	what := table
	if field != "" {
		what += " " + field
	}
	i := slices.IndexFunc(t.Changes, func(c struct {
		Fields, Ops []string
		Since       map[string]int
	},
	) bool {
		return slices.Contains(c.Ops, op) && (len(c.Fields) == 0 || slices.Contains(c.Fields, field))
	})
	if i < 0 {
		return false, fmt.Sprintf("the generic config updater permits no %s of %s on any platform", op, what)
	}
	family, known := GCUFamily(hwsku)
	if !known {
		return false, fmt.Sprintf("the generic config updater does not know HwSKU %q, and then refuses to %s %s", hwsku, op, what)
	}
	since, listed := t.Changes[i].Since[family]
	if !listed {
		return false, fmt.Sprintf("the generic config updater permits no %s of %s on %s (HwSKU %s)", op, what, family, hwsku)
	}
	date, dated := imageDate(version)
	switch {
	case !dated:
		return true, fmt.Sprintf("version %q holds no image date; %s of %s needs an image of %d or later on %s", version, op, what, since, family)
	case date < since:
		return false, fmt.Sprintf("%s of %s needs an image of %d or later on %s; this one is of %d", op, what, since, family, date)
	}
	return true, ""
}

// imageDate finds the first run of exactly 8 or 6 digits that reads as 20YYMMDD or 20YYMM (day 0).
func imageDate(version string) (int, bool) {
	for i := 0; i < len(version); {
		n := 0
		for i+n < len(version) && '0' <= version[i+n] && version[i+n] <= '9' {
			n++
		}
		if (n == 8 || n == 6) && version[i:i+2] == "20" {
			date := 0
			for _, c := range []byte(version[i : i+n]) {
				date = date*10 + int(c-'0')
			}
			if n == 6 {
				date *= 100
			}
			if month := date / 100 % 100; month >= 1 && month <= 12 {
				return date, true
			}
		}
		i += max(n, 1)
	}
	return 0, false
}
