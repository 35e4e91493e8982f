package main

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// printed are the results of -o json, by schema.
var printed = map[string]any{
	"findings": findingsJSON{}, "rules": rulesJSON{}, "profiles": profilesJSON{}, "starting-points": startingJSON{}, "explain": explainJSON{}, "graph": graphJSON{}, "deadlock": deadlockJSON{},
	"render": renderJSON{}, "plan": planJSON{}, "drift": planJSON{}, "run": show.RunJSON{}, "runs": runsJSON{}, "locks": locksJSON{},
	"history": historyJSON{},
	"hold":    holdsJSON{}, "holds": holdsJSON{}, "hold-release": holdsJSON{}, "import": importJSON{}, "doctor": doctorJSON{},
	"check": check.Report{}, "capture": check.Manifest{}, "init": initJSON{}, "lab": labJSON{}, "lab-tell": labTellJSON{}, "lab-load": labLoadJSON{}, "version": versionJSON{}, "sim": sim.Result{}, "sim-seeds": seedsJSON{}, "sim-grid": sim.GridResult{},
	"tune": tuneJSON{}, "tune-plan": tunePlanJSON{}, "tunes": tunesJSON{}, "tune-replay": replayJSON{}, "tune-variables": tuneVariablesJSON{}, "tune-diff": tuneDiffJSON{},
	"host-status": hostlocal.Status{}, "host-unit": hostUnitJSON{},
}

// shared are objects that stand in several results and have a section of their own.
var shared = map[string]any{
	"finding": diag.Finding{}, "pos": diag.Pos{}, "origin": originJSON{}, "facts": render.Facts{}, "caps": drivers.Caps{},
	"held": journal.Hold{}, "settings": rollout.Ops{}, "group": rollout.Group{}, "attempt": rollout.Run{}, "change": render.Change{}, "step": stepJSON{},
	"place": sim.Place{}, "times": sim.Times{}, "lost": sim.Drop{}, "end": sim.End{}, "traffic": sim.Group{},
	"interval": stats.Interval{}, "arm": tuning.Arm{}, "decision": tuning.Decision{}, "variable": tuning.Variable{},
}

// opaque are objects that are said not to be for programs, or that are said to be those of another schema.
var opaque = []reflect.Type{reflect.TypeFor[rollout.Plan](), reflect.TypeFor[sim.Result]()}

// keysOf are the keys of a JSON object with those below them, as docs/json.md writes them: a list is [], a map {}.
func keysOf(ty reflect.Type, prefix string, into map[string]bool) {
	for i := range ty.NumField() {
		f := ty.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		if f.Anonymous && name == "" {
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			keysOf(of, prefix, into)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		path := prefix + name
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			switch {
			case isText(of):
			case of.Kind() == reflect.Slice:
				path += "[]"
			case of.Kind() == reflect.Map:
				path += "{}"
			}
			of = of.Elem()
		}
		into[path] = true
		if of.Kind() == reflect.Struct && of != ty && !isText(of) && !isShared(of) {
			keysOf(of, path+".", into)
		}
	}
}

// isText reports whether a type writes its own JSON.
func isText(ty reflect.Type) bool {
	p := reflect.PointerTo(ty)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

func isShared(ty reflect.Type) bool {
	for _, x := range shared {
		if reflect.TypeOf(x) == ty {
			return true
		}
	}
	for _, x := range opaque {
		if x == ty {
			return true
		}
	}
	return false
}

var (
	schemaName = regexp.MustCompile(`fabricctl/([a-z-]+)/v\d+`)
	sharedHead = regexp.MustCompile("^### `([a-z]+)`")
	keyRow     = regexp.MustCompile("^\\| `([^`]+)` \\| \\S")
)

// TestJSONDocumented: docs/json.md has a section for every schema in the code, and in it every key that is printed, and no
// other.
func TestJSONDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]map[string]bool{} // section to keys
	var now []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			now = nil
			if m := sharedHead.FindStringSubmatch(line); m != nil {
				now = []string{m[1] + " (shared)"}
			}
			for _, m := range schemaName.FindAllStringSubmatch(line, -1) {
				now = append(now, m[1])
			}
			for _, s := range now {
				said[s] = map[string]bool{}
			}
		}
		if m := keyRow.FindStringSubmatch(line); m != nil {
			for _, s := range now {
				said[s][m[1]] = true
			}
		}
	}
	want := map[string]map[string]bool{}
	add := func(section string, v any) {
		want[section] = map[string]bool{}
		keysOf(reflect.TypeOf(v), "", want[section])
		delete(want[section], "schema")
	}
	for name, v := range printed {
		add(name, v)
	}
	for name, v := range shared {
		add(name+" (shared)", v)
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("docs/json.md (-what is printed +what is said):\n%s", d)
	}
	for name, at := range schemasInCode(t) {
		file := name == "plan-file" || name == "host-file" || name == "tune-journal" || name == "lab-observation" // for apply, for hosts, and for tune alone
		if printed[name] == nil && !file {
			t.Errorf("%s: fabricctl/%s is printed, and no section of docs/json.md says what is in it", at, name)
		}
	}
}

// schemasInCode finds the names of schemas among the strings of the code that is not test code.
func schemasInCode(t *testing.T) map[string]string {
	found := map[string]string{}
	for _, dir := range []string{"../../cmd", "../../drivers", "../../model", "../../tuning"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					s, _ := strconv.Unquote(l.Value)
					if m := schemaName.FindStringSubmatch(s); m != nil && m[0] == s {
						found[m[1]] = fset.Position(l.Pos()).String()
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 15 {
		t.Fatalf("only %d schemas found: %v", len(found), found)
	}
	return found
}
