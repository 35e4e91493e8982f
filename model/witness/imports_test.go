package witness_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The shape of the tree, as docs/architecture.md tells it: which of our packages each package may import directly, and
// what it must not reach by any way. Test files are exempt.

const module = "github.com/fabricctl/fabricctl/"

// row says what the packages that match (path.Match) may import; words are patterns too. The first row that matches
// counts.
type row struct{ packages, may string }

const (
	all       = "cmd/* examples drivers drivers/* drivers/lab/* drivers/netlink/* model model/* profiles render tuning tuning/* tuning/sim/*"
	testsOnly = "model/witness profiles/rows render/yang drivers/conform drivers/ssh/sshtest" // made for tests, imported by nothing else
)

var table = []row{
	{"model/units model/diag model/journal model/witness profiles/rows", ""},
	{"model", "model/units model/diag profiles"},
	{"profiles", "model/units model/diag"},
	{"model/derive", "model/units"},
	{"model/observe", "model model/units"},
	{"model/intent", "model model/derive profiles model/units model/diag"},
	{"model/routes", "model/intent model/units"},
	{"model/lint", "model model/intent model/routes model/derive profiles model/units model/diag"},
	{"model/infer", "model model/intent profiles model/units model/diag"},
	{"model/picture", "model/intent model/routes model/diag model/units"},
	{"render/factory", "model/units"},
	{"render", "model model/intent model/derive profiles model/units model/diag render/factory"},
	{"render/yang", "model/witness"},
	{"drivers", "render model/observe model/diag"},
	{"drivers/secret drivers/whole", ""},
	{"drivers/ssh", "drivers/secret"},
	{"drivers/ssh/sshtest", ""},
	{"drivers/hostwire", "drivers render model/observe model/journal model/diag"},
	{"drivers/gnmi drivers/sshcli", "drivers render model/observe model/journal model/units model/diag drivers/ssh drivers/secret"},
	{"drivers/netlink/dcb", ""},
	{"drivers/netlink/dcb/dcbfake", "drivers/netlink/dcb"},
	{"drivers/netlink", "drivers render model/observe model/journal model/units model/diag profiles drivers/netlink/dcb"},
	{"drivers/hostssh", "drivers render model/observe model/journal model/units model/diag profiles drivers/ssh drivers/secret drivers/hostwire"},
	{"drivers/rollout", "drivers drivers/whole render model/intent model/journal model/observe model profiles model/diag"},
	{"drivers/check", "drivers drivers/whole render model/intent model/lint model/observe model profiles model/diag model/units"},
	{"drivers/lab", "render model/intent model/observe tuning/sim model profiles model/units model/diag drivers/lab/*"},
	// What the lab's hosts say to dcbnl goes through our client to a kernel that is made up: the client is compared with
	// iproute2's in real kernels, and the emulators stay without render, whose codec they are to witness.
	{"drivers/lab/host", "model/observe model/units drivers/lab/perftest drivers/lab/tally drivers/netlink/dcb drivers/netlink/dcb/dcbfake"},
	{"drivers/lab/sonic", "model/observe model/units drivers/lab/tally render/factory"},
	{"drivers/lab/*", "model/observe model/units drivers/lab/tally"},
	{"drivers/conform", "drivers render model/observe"},
	{"tuning", "model model/intent model/lint model/derive profiles model/observe model/journal model/units model/diag tuning/stats"},
	{"tuning/stats tuning/report", "model/observe model/units"},
	{"tuning/sim/engine", ""},
	{"tuning/sim/fluid", "model/derive model/units"},
	{"tuning/sim", "model/intent model/routes model/derive model/observe profiles model model/units model/diag tuning/sim/engine tuning/sim/fluid"},
	{"tuning/perftest tuning/diagnose tuning/soak", "model/observe model/units model/journal tuning/stats model model/intent"},
	{"tuning/baseline", "model/observe model/units tuning/stats"},
	{"examples", ""},
	{"drivers/hostlocal", "drivers drivers/netlink drivers/netlink/dcb drivers/hostwire drivers/rollout render model model/intent model/journal model/units model/diag profiles"},
	{"cmd/hostverb", "cmd/show drivers drivers/hostlocal drivers/netlink/dcb drivers/rollout render model/intent model/journal model/diag"},
	{"cmd/show", "drivers drivers/rollout render model/journal model/diag model/intent"},
	{"cmd/fabricctl", all},
	{"cmd/fabricctl-host", "cmd/show cmd/hostverb drivers drivers/hostlocal drivers/hostwire render model/diag"},
}

// ban says that packages matching from must not reach to, except from those matching unless. Patterns of ours are
// without the module path; "/..." matches everything below too. Direct looks at direct imports only.
type ban struct {
	from, unless, to, why string
	direct                bool
}

const everything = "..."

var bans = []ban{
	{from: "tuning/...", to: "drivers/...", why: "tuning is pure; adapters to devices live in cmd/fabricctl"},
	{
		from: everything, unless: "cmd/... drivers/lab/...", to: "drivers/lab/...",
		why: "the lab is for commands and tests; nothing that works on real devices may need it",
	},
	{from: "drivers/lab/*", to: "render", why: "an emulator that shares a codec with the dialects proves nothing"},
	{
		from: everything, unless: "drivers/gnmi drivers/lab/... cmd/fabricctl", to: "google.golang.org/grpc/...",
		why: "grpc is heavy and stays behind the gNMI transport",
	},
	{
		from: everything, unless: "cmd/fabricctl", to: "github.com/santhosh-tekuri/jsonschema/...", direct: true,
		why: "the schema's validator is a second witness, and is not what a model is loaded with",
	},
	{from: everything, unless: "tuning/baseline", to: "modernc.org/sqlite/...", why: "tuning/baseline is the library's only importer", direct: true},
	{
		from: "cmd/fabricctl-host",
		to:   "google.golang.org/grpc/... github.com/scrapli/scrapligo/... modernc.org/sqlite/... gonum.org/... github.com/prometheus/...",
		why:  "the binary for hosts is pushed over SSH and has to stay small",
	},
	{
		from: everything, unless: "drivers/lab/... cmd/fabricctl drivers/netlink/dcb/dcbfake", to: "drivers/netlink/dcb/dcbfake",
		why: "a kernel that is made up is for the lab and for tests",
	},
	{from: everything, unless: testsOnly, to: testsOnly, why: "only tests import it"},
	{
		from: pure, unless: impure, to: "os/... net/http net/rpc net math/rand math/rand/v2 crypto/rand syscall log/...",
		why: "everything left of a device is pure: no file, no network, no global randomness, no output", direct: true,
	},
}

// pure packages do no I/O and read no clock, except for those named in impure.
const (
	pure   = "model/... profiles render render/factory tuning/sim tuning/sim/... tuning/stats"
	impure = "model/journal model/witness"
)

// clock is what reads or waits for the time in package time.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// graph is the direct imports of each package, full paths, ours and others'.
type graph map[string][]string

func TestImports(t *testing.T) {
	ours, clocks := parseTree(t, "../..")
	for _, p := range checkTable(table, ours) {
		t.Error(p)
	}
	for _, p := range clocks {
		t.Error(p)
	}
	g := listDeps(t, "../..")
	maps.Copy(g, ours)
	for _, p := range checkBans(bans, g) {
		t.Error(p)
	}
}

// checkTable says which package has no row and which direct import its row does not allow.
func checkTable(table []row, g graph) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		p, ours := strings.CutPrefix(name, module)
		if !ours {
			continue
		}
		i := slices.IndexFunc(table, func(r row) bool { return matches(r.packages, p) })
		if i < 0 {
			problems = append(problems, p+" has no row in the package table: say what it is for and what it may import")
			continue
		}
		for _, imp := range g[name] {
			if q, ours := strings.CutPrefix(imp, module); ours && !matches(table[i].may, q) {
				problems = append(problems, fmt.Sprintf("%s imports %s: its row in the package table allows %s", p, q, orNothing(table[i].may)))
			}
		}
	}
	return problems
}

func orNothing(s string) string {
	if s == "" {
		return "none of our packages"
	}
	return s
}

// checkBans says which package reaches what it must not, by which way, and why not.
func checkBans(bans []ban, g graph) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		p, ours := strings.CutPrefix(name, module)
		if !ours {
			continue
		}
		for _, b := range bans {
			if !matches(b.from, p) || matches(b.unless, p) {
				continue
			}
			if way := reach(g, name, b.to, b.direct); way != nil {
				problems = append(problems, fmt.Sprintf("%s must not reach %s (%s): %s", p, way[len(way)-1], strings.Join(way, " imports "), b.why))
			}
		}
	}
	return problems
}

// reach is a shortest way from a package to one that matches to; nil when there is none.
func reach(g graph, from, to string, direct bool) []string {
	before := map[string]string{from: ""}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at != from && matches(to, strings.TrimPrefix(at, module)) {
			var way []string
			for ; at != ""; at = before[at] {
				way = append(way, strings.TrimPrefix(at, module))
			}
			slices.Reverse(way)
			return way
		}
		if direct && at != from {
			continue
		}
		for _, imp := range g[at] {
			if _, seen := before[imp]; !seen {
				before[imp] = at
				queue = append(queue, imp)
			}
		}
	}
	return nil
}

// matches reports whether one of the patterns matches p.
func matches(patterns, p string) bool {
	for _, pat := range strings.Fields(patterns) {
		if pat == everything {
			return true
		}
		if dir, below := strings.CutSuffix(pat, "/..."); below {
			if p == dir || strings.HasPrefix(p, dir+"/") {
				return true
			}
			continue
		}
		if ok, _ := path.Match(pat, p); ok {
			return true
		}
	}
	return false
}

// parseTree reads the imports of all our packages, for every platform, and the places where pure ones read the clock.
// It opens every file itself, so that the test cache knows what the result depends on.
func parseTree(t *testing.T, root string) (g graph, clocks []string) {
	t.Helper()
	g = graph{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if base := e.Name(); e.IsDir() && (rel == "tools" || base == "testdata" || rel != "." && strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := module + filepath.ToSlash(filepath.Dir(rel))
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			g[pkg] = append(g[pkg], imp)
		}
		if _, ok := g[pkg]; !ok {
			g[pkg] = nil
		}
		if p := strings.TrimPrefix(pkg, module); matches(pure, p) && !matches(impure, p) {
			clocks = append(clocks, readsClock(fset, f)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range g {
		slices.Sort(g[pkg])
		g[pkg] = slices.Compact(g[pkg])
	}
	return g, clocks
}

// readsClock finds uses of the clock of package time.
func readsClock(fset *token.FileSet, f *ast.File) (problems []string) {
	name := ""
	for _, spec := range f.Imports {
		if spec.Path.Value == `"time"` {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clock, sel.Sel.Name) {
			problems = append(problems, fmt.Sprintf("%s uses time.%s: a pure package takes the time as a parameter", fset.Position(sel.Pos()), sel.Sel.Name))
		}
		return true
	})
	return problems
}

// listDeps is the import graph of everything that the tree needs, other people's packages included.
func listDeps(t *testing.T, root string) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		g[p.ImportPath] = p.Imports
	}
	return g
}

// Each kind of violation, in a tree made up for it.
func TestImportsAreNoticed(t *testing.T) {
	g := func(edges ...string) graph {
		g := graph{}
		for _, e := range edges {
			from, to, _ := strings.Cut(e, " > ")
			from = module + from
			g[from] = append(g[from], strings.ReplaceAll(to, "our/", module))
		}
		return g
	}
	for _, c := range []struct {
		name, want string
		g          graph
	}{
		{"no row", "model/clever has no row in the package table: say what it is for and what it may import", g("model/clever > fmt")},
		{"row", "render imports drivers: its row in the package table allows model model/intent model/derive profiles model/units model/diag render/factory", g("render > our/drivers")},
		{"row of nothing", "model/units imports model/diag: its row in the package table allows none of our packages", g("model/units > our/model/diag")},
		{
			"tuning", "tuning must not reach drivers (tuning imports tuning/stats imports drivers): tuning is pure; adapters to devices live in cmd/fabricctl",
			g("tuning > our/tuning/stats", "tuning/stats > our/drivers"),
		},
		{"lab", "drivers/gnmi must not reach drivers/lab/sonic (drivers/gnmi imports drivers/lab/sonic): the lab is for commands and tests; nothing that works on real devices may need it", g("drivers/gnmi > our/drivers/lab/sonic")},
		{"codec", "drivers/lab/eos must not reach render (drivers/lab/eos imports model/observe imports render): an emulator that shares a codec with the dialects proves nothing", g("drivers/lab/eos > our/model/observe", "model/observe > our/render")},
		{"grpc", "drivers/sshcli must not reach google.golang.org/grpc (drivers/sshcli imports google.golang.org/grpc): grpc is heavy and stays behind the gNMI transport", g("drivers/sshcli > google.golang.org/grpc")},
		{"sqlite", "tuning/soak must not reach modernc.org/sqlite (tuning/soak imports modernc.org/sqlite): tuning/baseline is the library's only importer", g("tuning/soak > modernc.org/sqlite")},
		{"host binary", "cmd/fabricctl-host must not reach github.com/scrapli/scrapligo/driver/network (cmd/fabricctl-host imports drivers/netlink imports github.com/scrapli/scrapligo/driver/network): the binary for hosts is pushed over SSH and has to stay small", g("cmd/fabricctl-host > our/drivers/netlink", "drivers/netlink > github.com/scrapli/scrapligo/driver/network")},
		{"tests only", "drivers/rollout must not reach drivers/conform (drivers/rollout imports drivers/conform): only tests import it", g("drivers/rollout > our/drivers/conform")},
		{"files", "render must not reach os (render imports os): everything left of a device is pure: no file, no network, no global randomness, no output", g("render > os")},
		{"randomness", "model/derive must not reach math/rand/v2 (model/derive imports math/rand/v2): everything left of a device is pure: no file, no network, no global randomness, no output", g("model/derive > math/rand/v2")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := append(checkTable(table, c.g), checkBans(bans, c.g)...)
			if !slices.Contains(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestClockIsNoticed(t *testing.T) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "a.go", "package a\nimport clock \"time\"\nvar x = clock.Now()\nvar y = clock.Second\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.go:3:9 uses time.Now: a pure package takes the time as a parameter"}
	if got := readsClock(fset, f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is allowed stays allowed.
func TestImportsThatAreFine(t *testing.T) {
	g := graph{
		module + "drivers/lab":     {module + "drivers/lab/sonic", "google.golang.org/grpc"},
		module + "cmd/fabricctl":   {module + "drivers/lab", module + "tuning/sim"},
		module + "model/journal":   {"os"},
		module + "tuning/baseline": {"modernc.org/sqlite"},
		module + "drivers/gnmi":    {"google.golang.org/grpc/codes"},
		module + "model/intent":    {"net/netip"},
		module + "drivers/lab/eos": {module + "model/units"},
	}
	if got := append(checkTable(table, g), checkBans(bans, g)...); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}
