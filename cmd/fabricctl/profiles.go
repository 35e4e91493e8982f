package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/profiles"
)

// hardware are the layers with Profile documents that lie below the model's own: the user's directory if there is one,
// then those of --profiles. Findings are errors in them.
func (a *app) hardware() ([]string, diag.List) {
	var dirs []string
	config := a.sys.env("XDG_CONFIG_HOME")
	if home := a.sys.env("HOME"); !filepath.IsAbs(config) && filepath.IsAbs(home) {
		config = filepath.Join(home, ".config")
	}
	if own := filepath.Join(config, "fabricctl", "profiles"); filepath.IsAbs(config) && holdsYAML(own) {
		dirs = append(dirs, own)
	}
	dirs = append(dirs, a.profiles...)
	if len(dirs) == 0 {
		return nil, nil
	}
	_, l := model.LoadProfiles(osFS{}, dirs...)
	return dirs, l
}

// holdsYAML reports whether a directory is there and not empty, as far as a model's layer goes.
func holdsYAML(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		ext := filepath.Ext(e.Name())
		return !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".")
	})
}

type profilesJSON struct {
	Schema   string        `json:"schema"`
	Profiles []profileJSON `json:"profiles"`
}

type profileJSON struct {
	Kind        profiles.Kind `json:"kind"`
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Verified    *bool         `json:"verified,omitempty"` // tried on a real device; of platforms and NICs
	Confidence  string        `json:"confidence"`
	Source      string        `json:"source"`
	Facts       []factJSON    `json:"facts"`
}

type factJSON struct {
	Key        string         `json:"key"`
	Values     []string       `json:"values"`         // empty for a table and for a knob
	Rows       []rowJSON      `json:"rows,omitempty"` // of a table
	Knob       *profiles.Knob `json:"knob,omitempty"` // of a personality: where a setting is
	Source     string         `json:"source"`
	Confidence string         `json:"confidence"`
	Pos        diag.Pos       `json:"pos,omitzero"`
	BuiltIn    bool           `json:"built_in,omitempty"` // came with fabricctl
	ASIC       string         `json:"asic,omitempty"`     // the platform's ASIC says it, not the platform
	Of         string         `json:"of,omitempty"`       // the personality that says it where the one shown does not: generic
	Over       *factJSON      `json:"over,omitempty"`     // what it replaced

	from string // source and place, for people
}

// rowJSON is a row of a headroom table, with the keys of a Profile document.
type rowJSON struct {
	Speed     string `json:"speed"`
	Cable     string `json:"cable"`
	Size      string `json:"size"`
	Xon       string `json:"xon"`
	Xoff      string `json:"xoff"`
	Alpha     string `json:"alpha,omitempty"`
	Static    string `json:"static,omitempty"`
	XonOffset string `json:"xon_offset,omitempty"`
}

func (a *app) newProfiles() *cobra.Command {
	var kind, match string
	var points bool
	c := &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the hardware that is known, or show one of it fact by fact",
		Long: `Without NAME, list platforms, ASICs, NICs, personalities (how drivers of NICs behave) and rows of the
compatibility matrix. With NAME, show each fact of it: the value, how far it is to be trusted,
its source, and the file and line where it stands. Hardware is built in and described by documents of kind Profile;
what is nearer to the model wins, fact by fact: built in, $XDG_CONFIG_HOME/fabricctl/profiles, each --profiles, each -f.
With --starting-points, show instead where thresholds of lossless classes may start, in general or on the platform NAME,
each value with who stands behind it, and the ECN settings that others have published.`,
		Example: "  fabricctl profiles --kind nic\n  fabricctl profiles --match 15b3:1021\n  fabricctl profiles sonic/sn5600\n  fabricctl profiles --profiles hardware/ -o json\n  fabricctl profiles sonic/sn4600c --starting-points",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("profiles wants at most one name")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			cat, _ := a.catalog()
			var names []string
			for _, k := range profiles.Kinds() {
				names = append(names, cat.NamesOf(k)...)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			if kind != "" && !slices.Contains(profiles.Kinds(), profiles.Kind(kind)) {
				return usage("--kind %s: want platform, asic, nic, personality or compat", kind)
			}
			cat, l := a.catalog()
			show.Findings(a.sys.err, l)
			if l.HasErrors() {
				return fail(exitError, "", "the layers have %s", diag.Count(l.Count(diag.Error), "error"))
			}
			if points {
				if kind != "" || match != "" {
					return usage("--starting-points lists no hardware: leave out --kind and --match")
				}
				r, err := starting(cat, args)
				switch {
				case err != nil:
					return err
				case json:
					return a.printJSON(r)
				}
				printStarting(a.sys.out, r)
				return nil
			}
			r := profilesJSON{"fabricctl/profiles/v1", listed(cat, kind, match, args)}
			if len(r.Profiles) == 0 {
				return noProfile(cat, kind, match, args)
			}
			switch {
			case json:
				return a.printJSON(r)
			case len(args) == 1:
				printProfile(a.sys.out, r.Profiles)
			default:
				printProfiles(a.sys.out, r.Profiles)
			}
			return nil
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "list one kind: platform, asic, nic, personality or compat")
	c.Flags().StringVar(&match, "match", "", "list what has this text in its name or in a fact, such as a PCI id or a vendor")
	c.Flags().BoolVar(&points, "starting-points", false, "show where thresholds may start, and what others have published")
	mustComplete(c, "kind", "platform", "asic", "nic", "personality", "compat")
	return c
}

// catalog is all hardware that this call knows, whether its layers hold a whole model or not.
func (a *app) catalog() (*profiles.Catalog, diag.List) {
	hardware, l := a.hardware()
	if l.HasErrors() {
		return new(profiles.Catalog), l
	}
	return model.LoadCatalog(osFS{}, append(hardware, a.fabric...)...)
}

// noProfile says that nothing was found, and what is near.
func noProfile(cat *profiles.Catalog, kind, match string, args []string) error {
	if len(args) == 0 {
		return fail(exitError, "fabricctl profiles lists all", "no %s has %q in its name or facts", cmp.Or(kind, "hardware"), match)
	}
	hint := "fabricctl profiles lists them; docs/model.md says how to describe hardware that is not there"
	if near := listed(cat, kind, args[0], nil); len(near) > 0 {
		var names []string
		for _, p := range near[:min(len(near), 5)] {
			names = append(names, p.Name)
		}
		hint = "there are " + strings.Join(names, ", ") + "; " + hint
	} else {
		var names []string
		for _, p := range listed(cat, kind, "", nil) {
			names = append(names, p.Name)
		}
		hint = meant(args[0], names, hint)
	}
	return fail(exitError, hint, "no hardware is called %q", args[0])
}

// listed are the entries of a kind (all when empty) that match a text and a name.
func listed(cat *profiles.Catalog, kind, match string, name []string) []profileJSON {
	list := []profileJSON{}
	for _, k := range profiles.Kinds() {
		for _, n := range cat.NamesOf(k) {
			if kind != "" && kind != string(k) || len(name) == 1 && name[0] != n {
				continue
			}
			if e, _ := cat.Entry(k, n); matches(e, match) {
				list = append(list, profile(cat, e))
			}
		}
	}
	return list
}

func matches(e profiles.Entry, text string) bool {
	text = strings.ToLower(text)
	if strings.Contains(strings.ToLower(e.Name), text) {
		return true
	}
	return slices.ContainsFunc(e.Facts, func(f profiles.Fact) bool { return strings.Contains(strings.ToLower(f.Text()), text) })
}

// profile is an entry, with what its ASIC says where it is a platform that does not say so itself, and with the knobs of the
// generic personality where it is a personality that has none.
func profile(cat *profiles.Catalog, e profiles.Entry) profileJSON {
	p := profileJSON{Kind: e.Kind, Name: e.Name, Facts: []factJSON{}}
	get := func(key string) string {
		f, _ := e.Fact(key)
		return f.Text()
	}
	p.Description, p.Confidence, p.Source = get("description"), get("confidence"), get("source")
	if e.Kind != profiles.KindASIC && e.Kind != profiles.KindCompat {
		verified := get("verified") == "true"
		p.Verified = &verified
	}
	for _, f := range e.Facts {
		if f.Source != "" {
			p.Facts = append(p.Facts, fact(f))
		}
	}
	if e.Kind == profiles.KindPersonality && e.Name != profiles.Generic {
		generic, _ := cat.Entry(profiles.KindPersonality, profiles.Generic)
		for _, f := range generic.Facts {
			if _, own := e.Fact(f.Key); !own && slices.Contains(profiles.KnobNames(), f.Key) {
				j := fact(f)
				j.Of = generic.Name
				p.Facts = append(p.Facts, j)
			}
		}
	}
	asic, ok := cat.Entry(profiles.KindASIC, get("asic"))
	for _, f := range asic.Facts {
		if _, own := e.Fact(f.Key); ok && e.Kind == profiles.KindPlatform && !own && f.Source != "" {
			j := fact(f)
			j.ASIC = asic.Name
			p.Facts = append(p.Facts, j)
		}
	}
	return p
}

func fact(f profiles.Fact) factJSON {
	j := factJSON{Key: f.Key, Values: f.Values, Source: f.Source, Confidence: f.Confidence, Pos: f.Pos, BuiltIn: f.BuiltIn, from: f.From()}
	if f.Over != nil {
		over := fact(*f.Over)
		j.Over = &over
	}
	if f.Key == "headroom" {
		j.Values = []string{}
		for _, v := range f.Values {
			j.Rows = append(j.Rows, headroomRow(v))
		}
	}
	if k, err := profiles.ParseKnob(f.Text()); err == nil && slices.Contains(profiles.KnobNames(), f.Key) {
		j.Values, j.Knob = []string{}, &k
	}
	return j
}

// headroomRow is the row that a checked text stands for.
func headroomRow(text string) rowJSON {
	r, _ := profiles.ParseHeadroomRow(text)
	j := rowJSON{Speed: r.Speed.String(), Cable: r.Cable.String(), Size: r.Size.String(), Xon: r.Xon.String(), Xoff: r.Xoff.String(), Alpha: r.Alpha.String()}
	if r.Static > 0 {
		j.Static = r.Static.String()
	}
	if r.XonOffset > 0 {
		j.XonOffset = r.XonOffset.String()
	}
	return j
}

func verifiedWord(p profileJSON) string {
	switch {
	case p.Verified == nil:
		return "-"
	case *p.Verified:
		return "yes"
	}
	return "no"
}

// printProfiles writes one line for each.
func printProfiles(w io.Writer, ps []profileJSON) {
	kind, wide := len("platform"), len("NAME")
	for _, p := range ps {
		kind, wide = max(kind, len(p.Kind)), max(wide, len(p.Name))
	}
	fmt.Fprintf(w, "%-*s  %-*s  %-10s  %-8s  %s\n", kind, "KIND", wide, "NAME", "CONFIDENCE", "VERIFIED", "WHAT")
	for _, p := range ps {
		fmt.Fprintf(w, "%-*s  %-*s  %-10s  %-8s  %s\n", kind, p.Kind, wide, p.Name, p.Confidence, verifiedWord(p), p.Description)
	}
}

// printProfile writes entries of one name, which may be of several kinds, fact by fact.
func printProfile(w io.Writer, ps []profileJSON) {
	for i, p := range ps {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s %s: %s\n", p.Kind, p.Name, p.Description)
		switch {
		case p.Verified != nil && *p.Verified:
			fmt.Fprintln(w, "verified on a real device, by the word of its profile")
		case p.Kind == profiles.KindPlatform:
			fmt.Fprintln(w, "never tried on a real device: writing to one needs --accept-unverified")
		case p.Kind == profiles.KindNIC || p.Kind == profiles.KindPersonality:
			fmt.Fprintln(w, "never tried on a real adapter")
		}
		wide := 0
		for _, f := range p.Facts {
			wide = max(wide, len(f.Key))
		}
		for _, f := range p.Facts {
			if f.Key != "description" || f.Over != nil {
				printFact(w, f, wide)
			}
		}
	}
}

// printFact writes a value, a line each where it is a list of sentences, and below it where it is from.
func printFact(w io.Writer, f factJSON, wide int) {
	key, values := f.Key, []string{f.text()}
	switch {
	case f.Rows != nil:
		values = headroomTable(f.Rows)
	case f.Knob != nil:
		values = f.Knob.Lines()
	case f.Key == "traps" || f.Key == "counters":
		values = f.Values
	}
	for _, v := range values {
		fmt.Fprintf(w, "  %-*s  %s\n", wide, key, v)
		key = ""
	}
	whose := ""
	if of := cmp.Or(f.ASIC, f.Of); of != "" {
		whose = "of " + of + ": "
	}
	fmt.Fprintf(w, "  %-*s    %s%s confidence, %s\n", wide, "", whose, f.Confidence, f.from)
	for o := f.Over; o != nil; o = o.Over {
		fmt.Fprintf(w, "  %-*s    over %s, %s\n", wide, "", o.text(), o.from)
	}
}

// text is the value in one line; of a table, how long it is.
func (f factJSON) text() string {
	if f.Rows != nil {
		return diag.Count(len(f.Rows), "row")
	}
	if f.Knob != nil {
		return strings.Join(f.Knob.Lines(), "; ")
	}
	return strings.Join(f.Values, ", ")
}

// headroomTable is a header and a line for each row, with aligned columns.
func headroomTable(rows []rowJSON) []string {
	lines := [][]string{{"speed", "cable", "size", "xon", "xoff", "threshold", "xon_offset"}}
	for _, r := range rows {
		threshold := "static " + r.Static
		if r.Static == "" {
			threshold = "alpha " + cmp.Or(r.Alpha, "?")
		}
		lines = append(lines, []string{r.Speed, r.Cable, r.Size, r.Xon, r.Xoff, threshold, cmp.Or(r.XonOffset, "-")})
	}
	return aligned(lines)
}

// aligned aligns the cells of lines.
func aligned(lines [][]string) []string {
	wide := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, cell := range l {
			wide[i] = max(wide[i], len(cell))
		}
	}
	table := make([]string, len(lines))
	for i, l := range lines {
		for j, cell := range l {
			table[i] += fmt.Sprintf("%-*s  ", wide[j], cell)
		}
		table[i] = strings.TrimRight(table[i], " ")
	}
	return table
}
