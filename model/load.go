package model

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// roots are the merged documents of a load, by kind; profiles by what they describe.
type roots struct {
	fabric, inventory *node
	profiles          map[hardware][]*node // a document for each layer that says something
}

// Load reads layers, each a file or a directory (its *.yaml and *.yml files, not those below), into one Fabric. Later
// layers win over earlier ones; inside one layer the order of documents does not matter. All findings are returned
// together, sorted. The Fabric is never nil; with errors among the findings it is not to be used for anything but
// looking.
func Load(fsys fs.FS, layers ...string) (*Fabric, diag.List) { return loadLayers(fsys, build, layers) }

// loadLayers reads and merges layers and hands the documents to build.
func loadLayers(fsys fs.FS, build func(roots, bool) (*Fabric, diag.List), layers []string) (*Fabric, diag.List) {
	r, m := &reader{}, &merger{}
	var found diag.List
	var docs roots
	for i, layer := range layers {
		of := map[string][]*node{} // the layer's documents, by kind
		files, err := layerFiles(fsys, layer)
		if err != nil {
			hint := ""
			switch {
			case !errors.Is(err, fs.ErrNotExist):
			case strings.Contains(layer, ","):
				hint = "files are not listed with commas: give each a -f of its own"
			default:
				hint = nearPath(fsys, layer)
			}
			found.Errorf("load", diag.Pos{File: layer}, hint, "%s", reason(err))
			continue
		}
		for _, file := range files {
			if r.full {
				break
			}
			b, err := readFile(fsys, file)
			if err != nil {
				found.Errorf("load", diag.Pos{File: file}, "", "%s", reason(err))
				continue
			}
			for _, n := range r.documents(file, i, b) {
				if len(found) >= maxFound {
					r.stop(n.pos(), "more than %d findings", maxFound)
					break
				}
				c := &checker{}
				kind := c.document(n)
				found.Add(c.found...)
				of[kind] = append(of[kind], n)
			}
		}
		docs.add(m, of)
	}
	if len(layers) == 0 {
		found.Errorf("load", diag.Pos{}, "name a file or directory", "no model was given")
	}
	found.Add(r.found...)
	found.Add(m.found...)
	f, more := build(docs, found.HasErrors())
	f.shaken = f.shaken || slices.ContainsFunc(found, func(x diag.Finding) bool {
		return x.Severity == diag.Error && slices.Contains([]string{"load", "yaml", "conflict", "document", "limits"}, x.Rule)
	})
	return f, shorten(append(found, more...).Sort())
}

// shorten cuts a list that nobody reads to its end. What is cut keeps its weight, and what was not read is said.
func shorten(l diag.List) diag.List {
	const most = 1000
	if len(l) <= most {
		return l
	}
	cut := diag.Finding{Rule: "limits", Pos: l[most].Pos}
	short := l[:most:most]
	for _, f := range l[most:] {
		cut.Severity = max(cut.Severity, f.Severity)
		if f.Rule == "limits" {
			short = append(short, f)
		}
	}
	cut.Msg = fmt.Sprintf("%d more findings are not shown", len(l)-len(short))
	return append(short, cut).Sort()
}

// add merges the documents of one layer into the roots.
func (d *roots) add(m *merger, of map[string][]*node) {
	fabric := m.all(fabricSchema(), of["Fabric"])
	m.sameName(d.fabric, fabric)
	d.fabric = m.merge(fabricSchema(), d.fabric, fabric, "")
	inventories := of["Inventory"]
	for i, n := range inventories {
		if n.get("metadata") != nil { // a label for people; each document may have its own
			r := *n
			r.pairs = n.without("metadata")
			inventories[i] = &r
		}
	}
	d.inventory = m.merge(inventorySchema(), d.inventory, m.all(inventorySchema(), inventories), "")
	same := map[hardware][]*node{}
	for _, n := range of["Profile"] {
		if h, ok := describes(n, &m.found); ok {
			same[h] = append(same[h], n)
		}
	}
	for h, docs := range same {
		if d.profiles == nil {
			d.profiles = map[hardware][]*node{}
		}
		d.profiles[h] = append(d.profiles[h], m.all(profileSchema(), docs))
	}
}

// layerFiles lists the files of a layer.
func layerFiles(fsys fs.FS, layer string) ([]string, error) {
	info, err := fs.Stat(fsys, layer)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{layer}, nil
	}
	entries, err := fs.ReadDir(fsys, layer)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, path.Join(layer, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the directory holds no *.yaml or *.yml file")
	}
	slices.Sort(files)
	return files, nil
}

// nearPath is a hint for a layer that is not there: the first name on its way that is missing is replaced by what is there and was probably
// meant, a folder or a YAML file; "" where nothing is like it.
func nearPath(fsys fs.FS, layer string) string {
	rest := ""
	for p := path.Clean(layer); p != path.Dir(p); p = path.Dir(p) {
		name := path.Base(p)
		entries, err := fs.ReadDir(fsys, path.Dir(p))
		if err != nil {
			rest = path.Join(name, rest)
			continue
		}
		var names []string
		for _, e := range entries {
			if ext := path.Ext(e.Name()); e.IsDir() || rest == "" && (ext == ".yaml" || ext == ".yml") {
				names = append(names, e.Name())
			}
		}
		if near := Closest(name, names); near != "" {
			return "did you mean " + path.Join(path.Dir(p), near, rest) + "?"
		}
		return ""
	}
	return ""
}

// readFile reads a file up to the limit.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d MiB; split it", maxFile>>20)
	}
	return b, nil
}

// reason is a file error without the operation and the path, which the finding's position gives.
func reason(err error) string {
	switch pe := (*fs.PathError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		return "reading is not permitted"
	case errors.Is(err, fs.ErrInvalid):
		return "not a path below the working directory"
	case errors.As(err, &pe):
		return pe.Err.Error()
	}
	return err.Error()
}

// build decodes merged documents, expands the topology and validates the whole. broken says that errors were found
// before; what merely follows from them is then not reported.
func build(docs roots, broken bool) (*Fabric, diag.List) {
	f := &Fabric{docs: docs, Roles: map[string]*Override{}, Endpoints: map[string]*Endpoint{}}
	var found diag.List
	c := &checker{}
	c.complete(fabricSchema(), docs.fabric, nil, nil)
	c.complete(inventorySchema(), docs.inventory, nil, nil)
	found.Add(c.found...)
	completeProfiles(docs, &found)
	f.Catalog = catalog(docs.profiles, &found)
	if docs.fabric == nil {
		if !broken {
			found.Errorf("document", diag.Pos{}, "add a document with kind: Fabric", "no layer holds a Fabric document")
		}
		return f, found
	}
	f.decode(docs.fabric)
	t := &topology{f: f, broken: broken || found.HasErrors()}
	t.expand(docs.fabric.get("topology"))
	t.override(docs.fabric.get("overrides"))
	f.shaken = t.found.HasErrors()
	t.bind(docs.inventory)
	found.Add(t.found...)
	v := &validator{f: f}
	v.all()
	found.Add(v.found...)
	return f, found
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
